//! The normal distribution and its relatives: scaled error function, distribution, its logarithm, quantiles (DLMF
//! chapter 7).
//!
//! Everything is made of `erfcx`, which is smooth, and of `e^(±x²)` with the rounding error of the square. Quantiles are
//! polynomials, in the tails by `1/r` where `r = sqrt(-2 ln p)`.

use super::product;
use super::table::normal::{ERFCX, ERFCX_LARGE};
use super::table::quantile::{CENTRE, TAIL};
use crate::simd::math_f64;
use std::f64::consts::FRAC_1_SQRT_2;

/// Beyond, the distribution is 0 or 1 in double precision.
const FAR: f64 = 40.0;

/// `erfcx` of a number that is not negative.
#[inline(always)]
pub(super) fn erfcx_positive(x: f64) -> f64 {
    if x < 2.0 { ERFCX.at(x) } else { ERFCX_LARGE.at(1.0 / x) / x }
}

/// `e^(x²) erfc(x)`, within 4 ULP; infinite from -26.7 downwards.
#[inline(always)]
pub(crate) fn erfcx(x: f64) -> f64 {
    if x >= 0.0 {
        return erfcx_positive(x);
    }
    let (square, rest) = product(x, x);
    let power = math_f64::exp(square);
    if power.is_infinite() {
        return power;
    }
    2.0 * rest.mul_add(power, power) - erfcx_positive(-x)
}

/// The probability that a normal number is above `x`, for `x` in `0..=40`.
#[inline(always)]
fn above(x: f64) -> f64 {
    let (square, rest) = product(x, x);
    let power = math_f64::exp(-0.5 * square);
    let bell = (-0.5 * rest).mul_add(power, power);
    0.5 * bell * erfcx_positive(x * FRAC_1_SQRT_2)
}

/// The normal distribution `Φ(x)`, within 4 ULP.
#[inline(always)]
pub(crate) fn ndtr(x: f64) -> f64 {
    if x > 0.0 {
        return if x > FAR { 1.0 } else { 1.0 - above(x) };
    }
    if x < -FAR { 0.0 } else { above(-x) }
}

/// `ln Φ(x)`, within 4 ULP.
#[inline(always)]
pub(crate) fn log_ndtr(x: f64) -> f64 {
    if x > 0.0 {
        return if x > FAR { -0.0 } else { math_f64::log1p(-above(x)) };
    }
    math_f64::log(0.5 * erfcx_positive(-x * FRAC_1_SQRT_2)) - 0.5 * x * x
}

/// Minus the quantile of a probability up to 1/16.
#[inline(always)]
fn tail(p: f64) -> f64 {
    let r = (-2.0 * math_f64::log(p)).sqrt();
    r * TAIL.at(1.0 / r)
}

/// The inverse of `ndtr`, within 4 ULP; infinite at 0 and 1, NaN outside.
#[inline(always)]
pub(crate) fn ndtri(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.4375 {
        return q * CENTRE.at(q * q);
    }
    if p > 0.0 && p < 0.5 {
        return -tail(p);
    }
    if p > 0.5 && p < 1.0 {
        // Exact, as is `q` there.
        return tail(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 { f64::INFINITY } else { f64::NAN }
}

/// The inverse of the error function, within 4 ULP; infinite at ±1, NaN beyond.
#[inline(always)]
pub(crate) fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    if size <= 0.875 {
        let half = 0.5 * x;
        return x * (0.5 * FRAC_1_SQRT_2 * CENTRE.at(half * half));
    }
    if size < 1.0 {
        return (tail(0.5 * (1.0 - size)) * FRAC_1_SQRT_2).copysign(x);
    }
    if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN }
}
