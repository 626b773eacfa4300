//! Functions made of logarithms and circular functions with their limits, without branches, so that loops over them
//! become whole-register code.

use super::product;
use crate::simd::math_f64;
use std::f64::consts::{FRAC_1_PI, PI};

/// `-x ln x`, within 2 ULP: 0 at 0, negative infinity below.
#[inline(always)]
pub(crate) fn entr(x: f64) -> f64 {
    let value = -x * math_f64::log(x);
    let value = if x == 0.0 { 0.0 } else { value };
    if x < 0.0 { f64::NEG_INFINITY } else { value }
}

/// `x ln(1 + y)`, within 2 ULP: 0 where `x` is 0 and `y` not NaN.
#[inline(always)]
pub(crate) fn xlog1py(x: f64, y: f64) -> f64 {
    let value = x * math_f64::log1p(y);
    let value = if x == 0.0 { 0.0 } else { value };
    if y.is_nan() { y } else { value }
}

/// `x` limited to `eps..=1 - eps`, for `logit`; an `eps` that is negative or NaN limits nothing.
#[inline(always)]
pub(crate) fn limited(x: f64, eps: f64) -> f64 {
    let is_limited = eps >= 0.0;
    let high = 1.0 - eps;
    let limited = if x < eps { eps } else { x };
    let limited = if (x >= eps) & (x > high) { high } else { limited };
    if is_limited { limited } else { x }
}

/// `sin(πx) / (πx)`, within 4 ULP: 1 at 0, 0 at the other whole numbers, NaN at infinity.
#[inline(always)]
pub(crate) fn sinc(x: f64) -> f64 {
    /// `π - PI`.
    const PI_REST: f64 = 1.224_646_799_147_353_2e-16;
    // Exact: the distance from the nearest even number, and from there the nearest whole number.
    let reduced = x - 2.0 * (0.5 * x).round_ties_even();
    let reduced = if reduced.abs() > 0.5 { 1f64.copysign(reduced) - reduced } else { reduced };
    let (angle, rest) = product(PI, reduced);
    let rest = PI_REST.mul_add(reduced, rest);
    let sine = rest.mul_add(math_f64::cos(angle), math_f64::sin(angle));
    if x == 0.0 { 1.0 } else { sine * FRAC_1_PI / x }
}
