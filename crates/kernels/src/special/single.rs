//! The functions of numbers that come from single precision, whose results go back to it: in double precision with 44 bits
//! right, so that hardly more than the last rounding is lost, and without the branches and tables that keep loops from whole
//! registers.

use super::polynomial_at;
use super::table::single::{ATANH, ERFCX, ERFINV_CENTRE, ERFINV_TAIL, Rational};
use crate::simd::math_f64;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// The normal distribution `Φ(x)`.
#[inline(always)]
pub(crate) fn ndtr(x: f64) -> f64 {
    // Beyond, the distribution is 0 or 1 in single precision. (NaN stays.)
    let size = if x.abs() > FAR { FAR } else { x.abs() };
    // (The square of a single is exact.)
    let bell = math_f64::exp(-0.5 * (size * size));
    let above = 0.5 * bell * at(&ERFCX, size * FRAC_1_SQRT_2);
    if x > 0.0 { 1.0 - above } else { above }
}
const FAR: f64 = 14.5;

#[inline(always)]
fn at<const N: usize, const M: usize>(f: &Rational<N, M>, x: f64) -> f64 {
    polynomial_at(x, &f.over) / polynomial_at(x, &f.under)
}

/// The inverse of the error function: infinite at ±1, NaN beyond.
#[inline(always)]
pub(crate) fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    let is_central = size <= 0.875;
    // In the tail by the square root of minus the logarithm of what is left of 1.
    let far = (-2.0 * math_f64::log_of_normal(0.5 * (1.0 - size))).sqrt() - 2.25;
    let t = if is_central { 0.875 * 0.875 - x * x } else { far };
    let pick =
        |i: usize, centre: &[f64], tail: &[f64]| if is_central { centre[i] } else { tail[i] };
    let (mut over, mut under) = (0.0_f64, 0.0_f64);
    for i in (0..ERFINV_CENTRE.over.len()).rev() {
        over = over.mul_add(t, pick(i, &ERFINV_CENTRE.over, &ERFINV_TAIL.over));
    }
    for i in (0..ERFINV_CENTRE.under.len()).rev() {
        under = under.mul_add(t, pick(i, &ERFINV_CENTRE.under, &ERFINV_TAIL.under));
    }
    let value = over / under;
    let value = if is_central { x * value } else { value.copysign(x) };
    let limit = if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    if size < 1.0 { value } else { limit }
}

/// `ln(x / (1 - x))` of a number that is no denormal double: infinite at 0 and 1, NaN outside.
#[inline(always)]
pub(crate) fn logit(x: f64) -> f64 {
    // The quotient of the mantissas a and b is (1 + s) / (1 - s), whose logarithm is 2 atanh(s). Near a half, where the result
    // is near zero, both have one exponent, and the difference is exact.
    let ((e, a), (rest_e, b)) = (math_f64::split(x), math_f64::split(1.0 - x));
    let s = (a - b) / (a + b);
    let value = (e - rest_e).mul_add(LN_2, s * polynomial_at(s * s, &ATANH.over));
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    let value = if x == 1.0 { f64::INFINITY } else { value };
    let value = if x <= 1.0 { value } else { f64::NAN };
    if x >= 0.0 { value } else { f64::NAN }
}

/// `sin(x) / x` where [`is_hard_angle`] does not hold: 1 at 0.
#[inline(always)]
pub(crate) fn spherical_j0(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { math_f64::sin(x) / x }
}

/// Whether an angle is so large that its sine needs more digits of π.
#[inline(always)]
pub(crate) fn is_hard_angle(x: f64) -> bool {
    x.abs() > math_f64::TRIG_LIMIT
}
