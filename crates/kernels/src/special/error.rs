//! The error function and its complement, without branches, so that loops over them become whole-register code.
//!
//! `erfc(x) = e^(-x²) F(t) / (1 + 2x)` for `x` that is not negative, where `F` is smooth in `t = (x - 4) / (x + 4)`: M. M.
//! Shepherd, J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc(x) in 0 <= x < ∞", Math. Comp. 36
//! (1981). The quotient is kept as two numbers, and the power of e is made with the rounding error of the square, so that
//! little more than the last product is rounded. Below 1 `erf` is `x` times a polynomial in `x²`.

use super::table::error::{ERF, ERFC, ERFC_LOW};
use super::{polynomial_at, product};
use crate::simd::math_f64::{exp_parts, halves_of_power};

/// From here on `erfc` is below every double. (The polynomial holds up to here.)
const FAR: f64 = 28.0;

/// `erfc` of a number in `0..=FAR`.
#[inline(always)]
fn tail(x: f64) -> f64 {
    let t = (x - 4.0) / (x + 4.0);
    let rest = polynomial_at(t, &ERFC[1..]);
    let over = t.mul_add(rest, ERFC[0]);
    let over_low = t.mul_add(rest, ERFC[0] - over) + ERFC_LOW;
    let under = 2.0 * x + 1.0;
    let under_low = 2.0f64.mul_add(x, 1.0 - under);
    let inverse = 1.0 / under;
    let quotient = over * inverse;
    let lost = (-quotient).mul_add(under, over) + (-quotient).mul_add(under_low, over_low);
    let (square, square_low) = product(x, x);
    let (n, power) = exp_parts(-square, -square_low);
    let (a, b) = halves_of_power(n);
    // Times 1 + power.
    let low = lost.mul_add(inverse, quotient * power);
    (quotient + low) * a * b
}

/// `|x|` where the functions still change; NaN stays.
#[inline(always)]
fn limited(x: f64) -> f64 {
    let size = x.abs();
    if size > FAR { FAR } else { size }
}

/// The error function `2/√π ∫₀ˣ e^(-t²) dt`, within 1 ULP.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let size = limited(x);
    let near = size.mul_add(polynomial_at(size * size, &ERF), size);
    let far = 1.0 - tail(size);
    (if size < 1.0 { near } else { far }).copysign(x)
}

/// `1 - erf(x)` without cancellation, within 2 ULP; where it is no normal number any more, within 1 more.
#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let size = limited(x);
    // (Where the result is near 1, half a step of it is more of the quotient above than that has right.)
    let near = (-x).mul_add(polynomial_at(size * size, &ERF), 1.0 - x);
    let tail = tail(size);
    let far = if x < 0.0 { 2.0 - tail } else { tail };
    if size < 0.5 { near } else { far }
}
