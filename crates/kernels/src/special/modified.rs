//! Modified Bessel functions of orders 0 and 1, and those scaled by `e^-|x|` and `e^x`, DLMF 10.25.
//!
//! `I`: polynomials in `x` up to 8, in `1/x` beyond (DLMF 10.40.1). `K`: up to 1 the logarithm times `I` (DLMF 10.31) and
//! a rest of the same sign, beyond in `1/x`.

use super::table::modified_i::{I0E, I0E_LARGE, I1E, I1E_LARGE};
use super::table::modified_k::{I0, I1, K0_LOG, K0E, K1_LOG, K1E};
use crate::simd::math_f64;

/// From here on a power of e is multiplied in halves, for it leaves the range of doubles before the function does.
const STEEP: f64 = 700.0;

/// `e^x value`.
#[inline(always)]
fn times_exp(x: f64, value: f64) -> f64 {
    if x.abs() < STEEP {
        return math_f64::exp(x) * value;
    }
    let half = math_f64::exp(0.5 * x);
    half * value * half
}

/// `e^-|x| I0(x)`, within 2 ULP; 0 at infinity.
#[inline(always)]
pub(crate) fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x < 8.0 { I0E.at(x) } else { I0E_LARGE.at(1.0 / x) / x.sqrt() }
}

/// `e^-|x| I1(x)`, within 3 ULP; 0 at infinity.
#[inline(always)]
pub(crate) fn i1e(x: f64) -> f64 {
    let size = x.abs();
    if size < 8.0 {
        return x * I1E.at(size);
    }
    let value = I1E_LARGE.at(1.0 / size) / size.sqrt();
    if x < 0.0 { -value } else { value }
}

/// `I0(x)`, within 4 ULP; NaN at infinity, as PyTorch has it.
#[inline(always)]
pub(crate) fn i0(x: f64) -> f64 {
    times_exp(x.abs(), i0e(x))
}

/// `I1(x)`, within 4 ULP; NaN at infinity, as PyTorch has it.
#[inline(always)]
pub(crate) fn i1(x: f64) -> f64 {
    times_exp(x.abs(), i1e(x))
}

/// The value of `K0` and `K1` at 0 and below; `None` above 0, and for NaN.
#[inline(always)]
fn k_outside(x: f64) -> Option<f64> {
    if x == 0.0 {
        return Some(f64::INFINITY);
    }
    (x < 0.0).then_some(f64::NAN)
}

/// `K0` in `0..=1`.
#[inline(always)]
fn k0_near(x: f64) -> f64 {
    (-math_f64::log(x)).mul_add(I0.at(x * x), K0_LOG.at(x * x))
}

/// `K1` in `0..=1`.
#[inline(always)]
fn k1_near(x: f64) -> f64 {
    let smooth = math_f64::log(x).mul_add(I1.at(x * x), K1_LOG.at(x * x));
    x.mul_add(smooth, 1.0 / x)
}

/// `K0(x)`, within 4 ULP; infinite at 0, NaN below.
#[inline(always)]
pub(crate) fn k0(x: f64) -> f64 {
    match k_outside(x) {
        Some(value) => value,
        None if x <= 1.0 => k0_near(x),
        None => times_exp(-x, K0E.at(1.0 / x) / x.sqrt()),
    }
}

/// `K1(x)`, within 4 ULP; infinite at 0, NaN below.
#[inline(always)]
pub(crate) fn k1(x: f64) -> f64 {
    match k_outside(x) {
        Some(value) => value,
        None if x <= 1.0 => k1_near(x),
        None => times_exp(-x, K1E.at(1.0 / x) / x.sqrt()),
    }
}

/// `e^x K0(x)`, within 4 ULP; infinite at 0, NaN below.
#[inline(always)]
pub(crate) fn k0e(x: f64) -> f64 {
    match k_outside(x) {
        Some(value) => value,
        None if x <= 1.0 => math_f64::exp(x) * k0_near(x),
        None => K0E.at(1.0 / x) / x.sqrt(),
    }
}

/// `e^x K1(x)`, within 4 ULP; infinite at 0, NaN below.
#[inline(always)]
pub(crate) fn k1e(x: f64) -> f64 {
    match k_outside(x) {
        Some(value) => value,
        None if x <= 1.0 => math_f64::exp(x) * k1_near(x),
        None => K1E.at(1.0 / x) / x.sqrt(),
    }
}
