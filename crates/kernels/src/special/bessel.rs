//! Bessel's functions of orders 0 and 1, DLMF chapter 10.
//!
//! Up to 8 polynomials; beyond, Hankel's expansions (DLMF 10.17.3 and 10.17.4) with the shift of the angle by a multiple of
//! π/4 multiplied out. The errors below are in units of the amplitude `sqrt(J² + Y²)`: in the last place where the
//! function is not close to a zero.

use super::table::bessel_large::{DIFFERENCE0, DIFFERENCE1, SUM0, SUM1};
use super::table::bessel_middle::{Y0, Y1};
use super::table::bessel_small::{J0, J1, Y0_LOG, Y1_LOG};
use crate::simd::math_f64;
use std::f64::consts::{FRAC_2_PI, PI};

/// Where the expansions take over.
const LARGE: f64 = 8.0;

/// `1 / sqrt(π x)`.
#[inline(always)]
fn scale(x: f64) -> f64 {
    1.0 / (PI * x).sqrt()
}

/// `J0(x)`, within 4 ULP of the amplitude; NaN at infinity.
#[inline(always)]
pub(crate) fn j0(x: f64) -> f64 {
    let x = x.abs();
    if x < LARGE {
        return J0.at(x);
    }
    let ((sin, cos), z) = (math_f64::sin_cos(x), 1.0 / x);
    (cos * SUM0.at(z) + sin * DIFFERENCE0.at(z)) * scale(x)
}

/// `J1(x)`, within 4 ULP of the amplitude; NaN at infinity.
#[inline(always)]
pub(crate) fn j1(x: f64) -> f64 {
    let size = x.abs();
    if size < LARGE {
        return x * J1.at(size);
    }
    let ((sin, cos), z) = (math_f64::sin_cos(size), 1.0 / size);
    let value = (sin * SUM1.at(z) - cos * DIFFERENCE1.at(z)) * scale(size);
    if x < 0.0 { -value } else { value }
}

/// `Y0(x)`, within 4 ULP of the amplitude; negative infinity at 0, NaN below and at infinity.
#[inline(always)]
pub(crate) fn y0(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    if x < 1.0 {
        return (FRAC_2_PI * math_f64::log(x)).mul_add(J0.at(x), Y0_LOG.at(x * x));
    }
    if x < LARGE {
        return Y0.at(x);
    }
    let ((sin, cos), z) = (math_f64::sin_cos(x), 1.0 / x);
    (sin * SUM0.at(z) - cos * DIFFERENCE0.at(z)) * scale(x)
}

/// `Y1(x)`, within 4 ULP of the amplitude; negative infinity at 0, NaN below and at infinity.
#[inline(always)]
pub(crate) fn y1(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    if x < 1.0 {
        let smooth = (FRAC_2_PI * math_f64::log(x)).mul_add(J1.at(x), Y1_LOG.at(x * x));
        return x.mul_add(smooth, -FRAC_2_PI / x);
    }
    if x < LARGE {
        return Y1.at(x);
    }
    let ((sin, cos), z) = (math_f64::sin_cos(x), 1.0 / x);
    (-sin * DIFFERENCE1.at(z) - cos * SUM1.at(z)) * scale(x)
}

/// `sin(x) / x`, within 2 ULP; 1 at 0, 0 at infinity.
#[inline(always)]
pub(crate) fn spherical_j0(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    math_f64::sin_of_any(x) / x
}
