//! Exponentials of an `f32` in single precision: twice as many elements to a register as in `math_f32`, which computes in
//! double precision, and none of its conversions.
//!
//! They (but [`tanh`], which holds everywhere) hold where [`is_fast_exp_argument`] does, so that no step leaves the range of normal numbers; elsewhere use `math_f32`. The error
//! stays below 0.75 units in the last place there too (tested in `tests/accuracy.rs`), because what is rounded last is a sum
//! of two numbers, of which the smaller carries the rounding errors.

use std::f32::consts::{LN_2, LOG2_E};

/// Adding it rounds to the nearest whole number, which then stands in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// ln 2 in two parts, of which the first has zeros at its end.
#[expect(clippy::excessive_precision, reason = "the exact value")]
const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// Where the functions of this file hold.
#[inline(always)]
pub fn is_fast_exp_argument(x: f32) -> bool {
    x.abs() < 87.0
}

/// `c0 + c1 x + ... + c4 x⁴`, arranged so that little waits for another step.
#[inline(always)]
fn polynomial(x: f32, square: f32, c: [f32; 5]) -> f32 {
    let (low, middle) = (x.mul_add(c[1], c[0]), x.mul_add(c[3], c[2]));
    square.mul_add(square.mul_add(c[4], middle), low)
}

/// `e^x` as a sum of two numbers, the second below an eighth of the first, to be multiplied by the power of two whose
/// exponent stands in the low bits of the third.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32, u32) {
    let t = x.mul_add(LOG2_E, MAGIC);
    let n = t - MAGIC;
    // The first difference is exact; the second is r + r_low.
    let near = n.mul_add(-LN2_HIGH, x);
    let r = n.mul_add(-LN2_LOW, near);
    let r_low = n.mul_add(-LN2_LOW, near - r);
    // (e^r - 1 - r) / r², near minimax (relative error of the whole 2^-27.7).
    let square = r * r;
    let p = polynomial(
        r,
        square,
        [0.499_999_94, 0.166_665_2, 0.041_668_393, 0.008_368_757, 0.001_381_451_4],
    );
    let high = 1.0 + r;
    let low = square.mul_add(p, (1.0 - high) + r);
    (high, r_low.mul_add(high, low), t.to_bits())
}

/// A normal number times the power of two in the low bits of `t`, if the product is normal.
#[inline(always)]
fn scaled(x: f32, t: u32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(t << 23))
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (high, low, t) = exp_parts(x);
    scaled(high + low, t)
}

/// `2^x`.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    const LN_2_REST: f32 = -1.904_654_2e-9;
    let t = x + MAGIC;
    let r = x - (t - MAGIC);
    // (2^r - 1 - r ln 2) / r², near minimax (relative error of the whole 2^-27.9).
    let square = r * r;
    let p = polynomial(
        r,
        square,
        [0.240_226_48, 0.055_503_62, 0.009_618_526, 0.001_339_016_2, 0.000_153_211_5],
    );
    let high = r.mul_add(LN_2, 1.0);
    let low = r.mul_add(LN_2, 1.0 - high);
    let rest = square.mul_add(p, r.mul_add(LN_2_REST, low));
    scaled(high + rest, t.to_bits())
}

/// `q` and `e` with `1 / (1 + e^-x) = q + q e` up to what rounding the sum loses.
#[inline(always)]
fn sigmoid_parts(x: f32) -> (f32, f32) {
    let (high, low, t) = exp_parts(-x);
    let (high, low) = (high + low, (high - (high + low)) + low);
    let power = scaled(1.0, t);
    let e = high * power;
    // 1 + e^-x as a sum of two numbers (Knuth's two-sum), then the reciprocal with one step of Newton's.
    let sum = 1.0 + e;
    let part = sum - 1.0;
    let lost = (1.0 - (sum - part)) + (e - part);
    let rest = low.mul_add(power, lost);
    let quotient = 1.0 / sum;
    (quotient, (-quotient).mul_add(rest, (-quotient).mul_add(sum, 1.0)))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (quotient, error) = sigmoid_parts(x);
    quotient.mul_add(error, quotient)
}

/// `tanh x`, of every number: near 0 an odd polynomial, elsewhere `1 - 2 / (1 + e^(2 |x|))`, which is 1 long before 20.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    const NEAR: f32 = 0.6;
    // (tanh x - x) / x³, near minimax (relative error of the whole 2^-27).
    let square = x * x;
    let mut rest = 0.002_226_978_7_f32;
    for c in [-0.008_262_75, 0.021_732_724, -0.053_952_17, 0.133_332_45, -0.333_333_3] {
        rest = rest.mul_add(square, c);
    }
    let near = (x * square).mul_add(rest, x);
    // (NaN stays.)
    let size = if x.abs() > 20.0 { 20.0 } else { x.abs() };
    let (quotient, error) = sigmoid_parts(-2.0 * size);
    let twice = 2.0 * quotient;
    let high = 1.0 - twice;
    let far = high + (-twice).mul_add(error, (1.0 - high) - twice);
    (if x.abs() < NEAR { near } else { far }).copysign(x)
}
