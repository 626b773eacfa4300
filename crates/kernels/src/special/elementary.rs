//! Functions made of logarithms and circular functions with their limits, and sums of powers of two.

use super::product;
use std::f64::consts::{FRAC_1_PI, LOG2_E, PI};

/// `-x ln x`, within 2 ULP: 0 at 0, negative infinity below.
#[inline(always)]
pub(crate) fn entr(x: f64) -> f64 {
    if x > 0.0 {
        return -x * x.ln();
    }
    if x == 0.0 {
        return 0.0;
    }
    if x < 0.0 { f64::NEG_INFINITY } else { x }
}

/// `x ln(1 + y)`, within 2 ULP: 0 where `x` is 0 and `y` not NaN.
#[inline(always)]
pub(crate) fn xlog1py(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        return y;
    }
    if x == 0.0 { 0.0 } else { x * y.ln_1p() }
}

/// `ln(x / (1 - x))`, within 4 ULP: infinite at 0 and 1, NaN outside.
#[inline(always)]
pub(crate) fn logit(x: f64) -> f64 {
    // Near its zero the quotient's distance from 1 counts, whose numerator is exact.
    if (0.25..=0.75).contains(&x) {
        return ((2.0 * x - 1.0) / (1.0 - x)).ln_1p();
    }
    (x / (1.0 - x)).ln()
}

/// As [`logit`] of `x` limited to `eps..=1 - eps`; a negative or missing (NaN) `eps` limits nothing.
#[inline(always)]
pub(crate) fn logit_limited(x: f64, eps: f64) -> f64 {
    if eps.is_nan() || eps < 0.0 {
        return logit(x);
    }
    let high = 1.0 - eps;
    logit(if x < eps {
        eps
    } else if x > high {
        high
    } else {
        x
    })
}

/// `sin(πx) / (πx)`, within 4 ULP: 1 at 0, 0 at the other whole numbers, NaN at infinity.
#[inline(always)]
pub(crate) fn sinc(x: f64) -> f64 {
    /// `π - PI`.
    const PI_REST: f64 = 1.224_646_799_147_353_2e-16;
    if x == 0.0 {
        return 1.0;
    }
    // Exact: the distance from the nearest even number, and from there the nearest whole number.
    let turn = x - 2.0 * (0.5 * x).round();
    let turn = if turn.abs() > 0.5 { 1f64.copysign(turn) - turn } else { turn };
    let (angle, rest) = product(PI, turn);
    let rest = PI_REST.mul_add(turn, rest);
    let (sin, cos) = angle.sin_cos();
    rest.mul_add(cos, sin) * FRAC_1_PI / x
}

/// `log2(2^a + 2^b)` without overflow.
#[inline(always)]
pub(crate) fn logaddexp2(a: f64, b: f64) -> f64 {
    if a == b && a.is_infinite() {
        return a;
    }
    let larger = if a.is_nan() || a > b { a } else { b };
    larger + (-(a - b).abs()).exp2().ln_1p() * LOG2_E
}
