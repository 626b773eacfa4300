//! Exponentials, logarithms, circular functions and erf of an `f32` in single precision: twice as many elements to a register as in
//! `math_f32`, which computes in double precision, and none of its conversions.
//!
//! They (but [`tanh`] and [`erf`], which hold everywhere) hold for numbers of usual size only, so that no step leaves the range of normal
//! numbers ([`is_fast_exp_argument`], [`is_fast_log_argument`], not [`is_large_angle`]); elsewhere use `math_f32`. The error
//! stays below 0.75 units in the last place there too (tested in `tests/accuracy.rs`), because what is rounded last is a sum
//! of two numbers, of which the smaller carries the rounding errors.

use std::f32::consts::{LN_2, LOG2_E};

/// Adding it rounds to the nearest whole number, which then stands in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// What the single `LN_2` lacks.
const LN_2_REST: f32 = -1.904_654_2e-9;
/// ln 2 in two parts, of which the first has so many zeros at its end that its multiples are exact.
#[expect(clippy::excessive_precision, reason = "the exact value")]
const LN_2_HIGH: f32 = 0.693_359_375;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `c0 + c1 x + c2 x² + ...` by Horner's rule, fused.
macro_rules! horner {
    ($x:expr; $last:expr) => { $last };
    ($x:expr; $first:expr, $($rest:expr),+) => { f32::mul_add(horner!($x; $($rest),+), $x, $first) };
}

/// Where the exponentials hold.
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

/// The whole number `n` nearest to `x / ln 2`, in the low bits of the first and as the second, and `x` less `n` times the single
/// `LN_2`. The difference is exact: its digits end where those of `LN_2` do, or those of `x`.
#[inline(always)]
fn reduce_exp(x: f32) -> (u32, f32, f32) {
    let t = x.mul_add(LOG2_E, MAGIC);
    let n = t - MAGIC;
    (t.to_bits(), n, n.mul_add(-LN_2, x))
}

/// `(e^r - 1 - r) / r²` for `|r| <= ln(2)/2`, near minimax (relative error of `e^r` 2^-28).
#[inline(always)]
fn exp_rest(r: f32, square: f32) -> f32 {
    polynomial(
        r,
        square,
        [0.499_999_94, 0.166_665_17, 0.041_668_28, 0.008_369_248, 0.001_382_074_2],
    )
}

/// The power of two whose exponent stands in the low bits, if it is a normal number.
#[inline(always)]
fn power_of_two(t: u32) -> f32 {
    f32::from_bits((t << 23).wrapping_add(1.0_f32.to_bits()))
}

/// A normal number times the power of two in the low bits of `t`, if the product is normal.
#[inline(always)]
fn scaled(x: f32, t: u32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(t << 23))
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (t, n, near) = reduce_exp(x);
    let r = n.mul_add(-LN_2_REST, near);
    let square = r * r;
    let high = 1.0 + near;
    let low = n.mul_add(-LN_2_REST, (1.0 - high) + near);
    scaled(high + square.mul_add(exp_rest(r, square), low), t)
}

/// `2^x`.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
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

/// `1 / (1 + e^-x)`: one more than `2^n (1 + v)` is the sum of `2^n + 1` and `2^n v`, kept as two numbers; then a reciprocal with
/// one step of Newton's.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (t, n, r) = reduce_exp(-x);
    let square = r * r;
    let rest = exp_rest(r, square);
    let v = square.mul_add(rest, r);
    let v_low = square.mul_add(rest, r - v);
    let power = power_of_two(t);
    let base = power + 1.0;
    let lost = 1.0 - (base - power);
    let sum = power.mul_add(v, base);
    let sum_low = power.mul_add(v_low, power.mul_add(v, base - sum)) + lost;
    let quotient = 1.0 / sum;
    let error = (-quotient).mul_add(sum_low, (-quotient).mul_add(sum, 1.0));
    // The exponential lacks a factor of `1 - n LN_2_REST`.
    let error = (n * LN_2_REST).mul_add(1.0 - quotient, error);
    quotient.mul_add(error, quotient)
}

/// `tanh x`, of every number: near 0 an odd polynomial, elsewhere `1 - 2 / (1 + e^(2 |x|))`, which is 1 long before 10.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    const NEAR: f32 = 0.6;
    // (tanh x - x) / x³, near minimax (relative error of the whole 2^-28).
    let square = x * x;
    let rest =
        horner!(square; -0.333_333, 0.133_319_37, -0.053_784_717, 0.020_798_625, -0.005_897_966_7);
    let near = (x * square).mul_add(rest, x);
    // (NaN stays.)
    let size = if x.abs() > 10.0 { 10.0 } else { x.abs() };
    let (t, _, r) = reduce_exp(size + size);
    let square = r * r;
    let v = square.mul_add(exp_rest(r, square), r);
    let power = power_of_two(t);
    let base = power + 1.0;
    let sum = power.mul_add(v, base);
    let sum_low = power.mul_add(v, base - sum);
    let quotient = 2.0 / sum;
    let error = (-quotient).mul_add(sum_low, (-quotient).mul_add(sum, 2.0));
    let high = 1.0 - quotient;
    let far = high + (-0.5 * quotient).mul_add(error, (1.0 - high) - quotient);
    (if x.abs() < NEAR { near } else { far }).copysign(x)
}

/// `erf x`, of every number: near 0 an odd polynomial, elsewhere `1 - erfc |x|` with `erfc` as an exponential, whose power of two
/// and the rest come off 1 one by one.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    const NEAR: f32 = 0.72;
    /// A round number near the slope of `ln erfc` from 0 to 1.
    const SLOPE: f32 = -1.75;
    let square = x * x;
    // erf x / x - 1, near minimax (relative error of the whole 2^-28).
    let rest = horner!(square; 0.128_379_17, -0.376_126_08, 0.112_831_63, -0.026_822_32, 0.005_087_083, -0.000_654_413_7);
    let near = x.mul_add(rest, x);
    // (NaN stays.)
    let size = if x.abs() > 4.0 { 4.0 } else { x.abs() };
    // ln(erfc a) / a - SLOPE, near minimax up to 4 (error of `erfc` 2^-30).
    let slope = horner!(size; 0.621_537_4, -0.636_064_2, -0.104_358_82, 0.021_665_923, -0.002_272_843_2, -0.000_200_745_48, 9.712_758e-5, -9.364_47e-6);
    let t = size.mul_add((slope + SLOPE) * LOG2_E, MAGIC);
    let n = t - MAGIC;
    let r = size.mul_add(SLOPE, n * -LN_2_HIGH);
    let r = size.mul_add(slope, n.mul_add(-LN_2_LOW, r));
    let square = r * r;
    let v = square.mul_add(exp_rest(r, square), r);
    let power = power_of_two(t.to_bits());
    let far = (-power).mul_add(v, 1.0 - power);
    (if x.abs() < NEAR { near } else { far }).copysign(x)
}

/// Where the logarithms hold: for positive normal numbers.
#[inline(always)]
pub fn is_fast_log_argument(x: f32) -> bool {
    x.to_bits().wrapping_sub(f32::MIN_POSITIVE.to_bits())
        < f32::INFINITY.to_bits() - f32::MIN_POSITIVE.to_bits()
}

/// `ln x` as a sum of two numbers, the second far below the first: `x` is `2^e (1 + f)` with `1 + f` in `[0.7, 1.4)`, and
/// `ln(1 + f)` is `f - f²/2`, which two numbers hold exactly, and `f³` times a polynomial.
#[inline(always)]
fn log_parts(x: f32) -> (f32, f32) {
    const LEAST: u32 = 0.7_f32.to_bits();
    let bits = x.to_bits().wrapping_sub(LEAST);
    let e = (bits.cast_signed() >> 23) as f32;
    let f = f32::from_bits((bits & 0x007f_ffff).wrapping_add(LEAST)) - 1.0;
    // (ln(1 + f) - f + f²/2) / f³, near minimax (relative error of the whole 2^-27).
    let p = horner!(f; 0.333_333_08, -0.250_007_72, 0.200_034_02, -0.166_274_25, 0.141_518_79, -0.130_604_09, 0.130_923_91, -0.083_600_72);
    let sum = e.mul_add(LN_2_HIGH, f);
    let sum_low = e.mul_add(LN_2_HIGH, -sum) + f;
    let half = -0.5 * f;
    let high = half.mul_add(f, sum);
    let low = half.mul_add(f, sum - high) + e.mul_add(LN_2_LOW, sum_low);
    (high, (f * f).mul_add(f * p, low))
}

/// `ln x`.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (high, low) = log_parts(x);
    high + low
}

/// `ln x` times a factor that is given to twice the digits of a single.
#[inline(always)]
fn log_times(x: f32, factor: f64) -> f32 {
    let (factor_high, factor_low) = (factor as f32, (factor - f64::from(factor as f32)) as f32);
    let (high, low) = log_parts(x);
    let sum = high + low;
    let rest = sum.mul_add(factor_low, ((high - sum) + low) * factor_high);
    sum.mul_add(factor_high, rest)
}

/// `log2 x`.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    log_times(x, std::f64::consts::LOG2_E)
}

/// `log10 x`.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    log_times(x, std::f64::consts::LOG10_E)
}

/// Where [`sin`] and [`cos`] do not hold (NaN passes).
#[inline(always)]
pub fn is_large_angle(x: f32) -> bool {
    x.abs() > 4096.0
}

/// The quarter turn that `x` is in (low bits), and what is left, in `[-π/4, π/4]`, as a difference of two numbers.
///
/// π/2 comes in three parts. The first difference is exact, as its digits end where those of the part do. The second part has
/// twelve digits, so that what rounding takes from the second difference is a single, too, however small that difference is.
#[inline(always)]
fn reduce_angle(x: f32) -> (u32, f32, f32) {
    // From below, so that what is subtracted from a zero has the sign which leaves it as it is.
    const FIRST: f32 = std::f32::consts::FRAC_PI_2.next_down();
    const SECOND: f32 = 7.549_533_6e-8;
    const THIRD: f32 = 2.563_344e-12;
    let t = x.mul_add(std::f32::consts::FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    let near = n.mul_add(-FIRST, x);
    let r = n.mul_add(-SECOND, near);
    (t.to_bits(), r, n.mul_add(THIRD, n.mul_add(SECOND, r - near)))
}

/// `sin(r - over)` for `|r| <= π/4` and a far smaller second, near minimax (relative error 2^-32); the sign of 0 stays.
#[inline(always)]
fn sin_near_zero(r: f32, over: f32) -> f32 {
    let z = r * r;
    let p = horner!(z; 0.166_666_67, -0.008_333_379, 0.000_198_530_7, -2.832_69e-6);
    r - z.mul_add(r.mul_add(p, -0.5 * over), over)
}

/// `cos(r - over)` likewise (relative error 2^-33).
#[inline(always)]
fn cos_near_zero(r: f32, over: f32) -> f32 {
    let z = r * r;
    let half = -0.5 * r;
    let high = half.mul_add(r, 1.0);
    let low = r.mul_add(over, half.mul_add(r, 1.0 - high));
    let p = horner!(z; 0.041_666_646, -0.001_388_731, 2.443_232_7e-5);
    high + (z * z).mul_add(p, low)
}

/// `sin x`.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (quarter, r, over) = reduce_angle(x);
    let value = if quarter & 1 == 0 { sin_near_zero(r, over) } else { cos_near_zero(r, over) };
    f32::from_bits(value.to_bits() ^ (quarter & 2) << 30)
}

/// `cos x`.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (quarter, r, over) = reduce_angle(x);
    let value = if quarter & 1 == 0 { cos_near_zero(r, over) } else { sin_near_zero(r, over) };
    f32::from_bits(value.to_bits() ^ (quarter.wrapping_add(1) & 2) << 30)
}
