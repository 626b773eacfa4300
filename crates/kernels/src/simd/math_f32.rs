//! Functions of one `f32`, written so that LLVM turns a loop over them into whole-register code: no
//! branches, no tables, fused multiply-adds.
//!
//! They (but `erf`, which is that of `quick_f32`) are computed in double precision with polynomials just good enough for single, and
//! rounded
//! once: the error stays below 0.75 units in the last place for every function here (tested in
//! `tests/accuracy.rs`), overflow and denormals come out right by themselves, and the arithmetic
//! still hides behind memory. Infinities, NaN and signed zeros are exact; `sin`, `cos` and `tan`
//! hold up to `TRIG_LIMIT`.

use super::math_f64::{horner, power_of_two};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_E, PI};

/// See `math_f64`: adding it rounds to a whole number.
const MAGIC: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    // Written so that NaN passes.
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `(e^r - 1)` for `|r| <= ln(2)/2`, by the Taylor series.
#[inline(always)]
fn expm1_near_zero(r: f64) -> f64 {
    let p = horner!(r; 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0,
        1.0 / 40320.0);
    (r * r).mul_add(p, r)
}

/// `2^n` and `e^r - 1` with `n ln 2 + r = x`, for `|x| < 700`.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64) {
    let t = x.mul_add(LOG2_E, MAGIC);
    let r = (t - MAGIC).mul_add(-LN_2, x);
    (power_of_two(t), expm1_near_zero(r))
}

/// `2^(x scale)` for `|x scale| < 1000`, near minimax (relative error 2^-29). A NaN stays NaN: the
/// low bits of a NaN that was a single are zero, so that the addition to its exponent leaves it
/// one.
#[inline(always)]
fn exp2_scaled(x: f64, scale: f64) -> f64 {
    let t = x.mul_add(scale, MAGIC);
    let r = x.mul_add(scale, MAGIC - t);
    let p = horner!(r; 1.000_000_000_554_166_3, 0.693_147_205_737_252_6, 0.240_226_468_906_395_73,
        0.055_503_287_769_976_636, 0.009_618_488_956_522_791, 0.001_339_993_120_947_414,
        0.000_153_458_121_587_401_83);
    // The power of two is added to the exponent.
    f64::from_bits(p.to_bits().wrapping_add(t.to_bits() << 52))
}

#[inline(always)]
fn exp_wide(x: f64) -> f64 {
    // Beyond these the result is 0 or infinite in single precision, not yet in double.
    exp2_scaled(clamp(x, -200.0, 200.0), LOG2_E)
}

/// `e^x` in double precision. (Singles are limited with half as many instructions as doubles.)
#[inline(always)]
fn exp_of_single(x: f32) -> f64 {
    let x = if x < -200.0 { -200.0 } else { x };
    let x = if x > 200.0 { 200.0 } else { x };
    exp2_scaled(f64::from(x), LOG2_E)
}

#[inline(always)]
fn expm1_wide(x: f64) -> f64 {
    let (power, q) = exp_parts(clamp(x, -200.0, 200.0));
    power.mul_add(q, power - 1.0)
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exp_of_single(x) as f32
}
/// `2^x`.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = if x < -300.0 { -300.0 } else { x };
    let x = if x > 300.0 { 300.0 } else { x };
    exp2_scaled(f64::from(x), 1.0) as f32
}
/// `e^x - 1`.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    if x == 0.0 { x } else { expm1_wide(f64::from(x)) as f32 }
}
/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    (1.0 / (1.0 + exp_of_single(-x))) as f32
}
/// `ln(1 + e^-|x|)`.
#[inline(always)]
pub fn log1p_exp(x: f32) -> f32 {
    log1p_of_part(exp_of_single(-x.abs())) as f32
}
/// `log2(1 + 2^-|x|)`.
#[inline(always)]
pub fn log2_1p_exp2(x: f32) -> f32 {
    let size = x.abs();
    let size = if size > 300.0 { 300.0 } else { size };
    (log1p_of_part(exp2_scaled(f64::from(-size), 1.0)) * LOG2_E) as f32
}
/// `ln(1 + e)` for `e` in `(0, 1]`, which is halved where the sum is above the root of 2.
#[inline(always)]
fn log1p_of_part(e: f64) -> f64 {
    let is_large = e > 0.414_213_562;
    let f = if is_large { 0.5 * (e - 1.0) } else { e };
    log_from(f, if is_large { 1.0 } else { 0.0 })
}
/// `tanh x = 1 - 2 / (e^(2x) + 1)`, arranged to keep small values.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = expm1_wide(2.0 * clamp(f64::from(x), -20.0, 20.0));
    let result = (e / (e + 2.0)) as f32;
    if x == 0.0 { x } else { result }
}
/// `(e^x - e^-x) / 2`, of `|x|` because `e^x - 1` forgets `e^x` far below 0.
#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let e = expm1_wide(f64::from(x).abs());
    ((0.5 * (e + e / (e + 1.0))) as f32).copysign(x)
}
/// `(e^x + e^-x) / 2`.
#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let e = exp_of_single(x);
    (0.5 * e + 0.5 / e) as f32
}

/// `ln(1 + f) + e ln 2` for `1 + f` in `[sqrt(1/2), sqrt(2))`, as `2 atanh(f / (2 + f))`.
#[inline(always)]
fn log_from(f: f64, e: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let p = horner!(z; 2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0);
    e.mul_add(LN_2, (s * z).mul_add(p, 2.0 * s))
}

/// The exponent, and the mantissa in `[sqrt(1/2), sqrt(2))`, of a positive normal double.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    let e =
        f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    (e, m)
}

/// `ln x` of a single's value; denormals are normal doubles.
#[inline(always)]
fn log_wide(x: f64) -> f64 {
    let (e, m) = split(x);
    let result = log_from(m - 1.0, e);
    let result = if x == f64::INFINITY { x } else { result };
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    if x >= 0.0 { result } else { f64::NAN }
}

/// `ln(1 + x)` of a value that may be tiny.
#[inline(always)]
fn log1p_wide(x: f64) -> f64 {
    let u = 1.0 + x;
    let (e, m) = split(u);
    // Near 1 the argument itself is the distance from 1, without the rounding of the sum.
    let near = (x > -0.25) & (x < 0.375);
    let result = log_from(if near { x } else { m - 1.0 }, if near { 0.0 } else { e });
    let result = if x == f64::INFINITY { x } else { result };
    let result = if x == -1.0 { f64::NEG_INFINITY } else { result };
    if x >= -1.0 { result } else { f64::NAN }
}

/// `ln x`.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    log_wide(f64::from(x)) as f32
}
/// `log2 x`.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    (log_wide(f64::from(x)) * LOG2_E) as f32
}
/// `log10 x`.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    (log_wide(f64::from(x)) * LOG10_E) as f32
}
/// `ln(1 + x)`.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    if x == 0.0 { x } else { log1p_wide(f64::from(x)) as f32 }
}
/// `asinh x = ln(x + sqrt(x² + 1))`.
#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let a = f64::from(x).abs();
    let result = log1p_wide(a + a * a / (1.0 + a.mul_add(a, 1.0).sqrt()));
    // Infinity over infinity above; the value is infinite.
    let result = if a == f64::INFINITY { a } else { result };
    (result as f32).copysign(x)
}
/// `acosh x = ln(x + sqrt(x² - 1))`.
#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let t = f64::from(x) - 1.0;
    let result = log1p_wide(t + t.mul_add(t, 2.0 * t).sqrt()) as f32;
    if x >= 1.0 { result } else { f32::NAN }
}
/// `atanh x = ln((1 + x) / (1 - x)) / 2`.
#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let a = f64::from(x).abs();
    let result = 0.5 * log1p_wide(2.0 * a / (1.0 - a));
    (if a <= 1.0 { result as f32 } else { f32::NAN }).copysign(x)
}

/// Up to here `sin`, `cos` and `tan` hold; beyond, use the functions of doubles.
pub const TRIG_LIMIT: f32 = 1.0e6;

/// The quarter turn that `x` is in (low bits) and what is left, in `[-π/4, π/4]`.
#[inline(always)]
fn reduce_trig(x: f64) -> (u64, f64) {
    let t = x.mul_add(FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    let r = n.mul_add(-FRAC_PI_2, x);
    (t.to_bits(), n.mul_add(-6.123_233_995_736_766e-17, r))
}
#[inline(always)]
fn sin_near_zero(r: f64) -> f64 {
    let z = r * r;
    let p = horner!(z; -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0);
    (r * z).mul_add(p, r)
}
#[inline(always)]
fn cos_near_zero(r: f64) -> f64 {
    let z = r * r;
    horner!(z; 1.0, -0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3_628_800.0)
}
#[inline(always)]
fn with_sign_bit(value: f64, bit: u64) -> f64 {
    f64::from_bits(value.to_bits() ^ (bit << 63))
}
/// `sin x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (quarter, r) = reduce_trig(f64::from(x));
    let value = if quarter & 1 == 0 { sin_near_zero(r) } else { cos_near_zero(r) };
    let value = with_sign_bit(value, (quarter >> 1) & 1) as f32;
    if x == 0.0 { x } else { value }
}
/// `cos x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (quarter, r) = reduce_trig(f64::from(x));
    let value = if quarter & 1 == 0 { cos_near_zero(r) } else { sin_near_zero(r) };
    with_sign_bit(value, (quarter.wrapping_add(1) >> 1) & 1) as f32
}
/// `tan x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (quarter, r) = reduce_trig(f64::from(x));
    let (s, c) = (sin_near_zero(r), cos_near_zero(r));
    let even = quarter & 1 == 0;
    let value = ((if even { s } else { c }) / (if even { c } else { -s })) as f32;
    if x == 0.0 { x } else { value }
}

/// `atan x` for `x >= 0`: turned by 45 or 90 degrees into `[-tan(π/8), tan(π/8)]`, then a polynomial
/// interpolated at Chebyshev nodes (relative error 2^-35).
#[inline(always)]
fn atan_positive(x: f64) -> f64 {
    let far = x > 2.414_213_562_373_095;
    let middle = x > 0.414_213_562_373_095_03;
    let top = if far {
        -1.0
    } else if middle {
        x - 1.0
    } else {
        x
    };
    let bottom = if far {
        x
    } else if middle {
        x + 1.0
    } else {
        1.0
    };
    let base = if far {
        FRAC_PI_2
    } else if middle {
        FRAC_PI_4
    } else {
        0.0
    };
    let y = top / bottom;
    let z = y * y;
    let p = horner!(z; 0.999_999_999_978_384_6, -0.333_333_320_969_260_27, 0.199_998_838_038_532_33,
        -0.142_815_873_070_901_2, 0.110_404_710_095_810_72, -0.084_560_894_669_989_7,
        0.047_071_296_552_574_51);
    y.mul_add(p, base)
}
/// `atan x`.
#[inline(always)]
pub fn atan(x: f32) -> f32 {
    (atan_positive(f64::from(x).abs()) as f32).copysign(x)
}
/// `asin x = atan(x / sqrt(1 - x²))`.
#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let a = f64::from(x).abs();
    (atan_positive(a / ((1.0 - a) * (1.0 + a)).sqrt()) as f32).copysign(x)
}
/// `acos x = 2 atan(sqrt((1 - x) / (1 + x)))`.
#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let x = f64::from(x);
    (2.0 * atan_positive(((1.0 - x) / (1.0 + x)).sqrt())) as f32
}
/// The angle of the point `(x, y)`.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (f64::from(y).abs(), f64::from(x).abs());
    let ratio = a / b;
    // On the diagonal of infinity and at the origin the ratio is NaN; their angles are 45 degrees and 0.
    let ratio = if a == b { if a == 0.0 { 0.0 } else { 1.0 } } else { ratio };
    let angle = atan_positive(ratio);
    let angle = if x.to_bits() >> 31 == 1 { PI - angle } else { angle };
    // `a == b` is false for NaN, whose ratio is NaN.
    (angle as f32).copysign(y)
}

/// `exp(z²) erfc(z)` for `z >= 0`, a polynomial in `1 / (1 + 0.4 z)` interpolated at Chebyshev nodes
/// (relative error 2^-31 up to z = 10.5, where `erfc` is below every single).
#[inline(always)]
fn scaled_erfc(z: f64) -> f64 {
    let t = 1.0 / z.mul_add(0.4, 1.0);
    t * horner!(t; 0.225_671_270_587_300_94, 0.225_804_563_860_762_8, 0.206_006_395_363_484_95,
        0.183_429_567_161_713_16, 0.064_202_547_713_809_79, 0.257_328_037_083_343_5,
        -0.424_271_057_272_065_9, 0.702_397_716_853_560_6, -0.805_951_993_788_539_2,
        0.511_248_274_078_024_5, -0.169_133_841_287_487_62, 0.023_268_519_670_641_107)
}
#[inline(always)]
fn erfc_wide(x: f64) -> f64 {
    let z = clamp(x.abs(), 0.0, 12.0);
    let tail = exp_wide(-(z * z)) * scaled_erfc(z);
    if x < 0.0 { 2.0 - tail } else { tail }
}
pub use super::quick_f32::erf;

/// `1 - erf x`.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    erfc_wide(f64::from(x)) as f32
}

/// The normal distribution's `Φ(x)`.
#[inline(always)]
pub fn normal_cdf(x: f32) -> f32 {
    (0.5 * erfc_wide(f64::from(x) * -std::f64::consts::FRAC_1_SQRT_2)) as f32
}

/// Adding it to a single rounds to a whole number, which then stands in the low bits.
const MAGIC_SINGLE: f32 = 12_582_912.0;
/// ln 2 in two parts, of which the first has zeros at its end.
#[expect(clippy::excessive_precision, reason = "the exact value")]
const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `c0 + c1 x + c2 x² + ...` by Horner's rule, fused, in single precision.
macro_rules! horner_single {
    ($x:expr; $last:expr) => { $last };
    ($x:expr; $first:expr, $($rest:expr),+) => {
        f32::mul_add(horner_single!($x; $($rest),+), $x, $first)
    };
}

/// [`horner_single!`] times 2^-64, which costs nothing as it is in the coefficients.
macro_rules! horner_scaled {
    ($x:expr; $($c:expr),+) => {
        horner_single!($x; $($c * f32::from_bits((127 - 64) << 23)),+)
    };
}

/// The whole number nearest to `x / ln 2` in the low bits of a sum with `MAGIC_SINGLE`, and `x` less so many `ln 2`.
#[inline(always)]
fn reduce_exp_single(x: f32) -> (f32, f32) {
    let t = x.mul_add(std::f32::consts::LOG2_E, MAGIC_SINGLE);
    let n = t - MAGIC_SINGLE;
    (t, n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x)))
}
/// `e^r` for `|r| <= ln(2)/2`, near minimax (relative error 2^-28).
#[inline(always)]
fn exp_near_zero_single(r: f32) -> f32 {
    horner_single!(r; 1.0, 1.0, 0.499_999_94, 0.166_665_2, 0.041_668_393, 0.008_368_781, 0.001_381_447_1)
}

/// `e^x` for a softmax, computed in single precision: within a unit in the last place, but 0 instead of the least denormal
/// numbers, and infinity from 88.38 on.
#[inline(always)]
pub fn exp_single(x: f32) -> f32 {
    // At these ends the power of two is 0 and infinity. Written so that NaN passes.
    let x = if x < -88.0 { -88.1 } else { x };
    let x = if x > 88.4 { 88.7 } else { x };
    let (t, r) = reduce_exp_single(x);
    let power = f32::from_bits(t.to_bits().wrapping_add(127) << 23);
    exp_near_zero_single(r) * power
}

/// `x Φ(x)`, as `max(x, 0) - |x| Φ(-|x|)`, in single precision: within 8 units in the last place, also where it is tiny.
///
/// `Φ(-a) = exp(-a²/2) R(a)`, and `R(a) / t` is a polynomial in `t = 1 / (1 + 0.35 a)` (relative error 2^-25 up to
/// `a` = 14.5, where the result is below every single).
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let a = gelu_tail_end(x);
    let square = a * a;
    // What the rounding of the square left out still counts in the exponential.
    let rest = a.mul_add(a, -square);
    let (n, r) = reduce_exp_single(-0.5 * square);
    let e = exp_near_zero_single(rest.mul_add(-0.5, r));
    let t = 1.0 / a.mul_add(0.35, 1.0);
    let p = horner_scaled!(t; 0.139_621_3, 0.139_863_52, 0.119_821_28, 0.105_552_53, -0.023_212_414, 0.159_319_76, -0.255_839_05, 0.144_030_93, -0.029_157_886);
    gelu_of_tail(x, p, a * t, n, e)
}

/// `x Φ(x)` for results that are rounded to half precision: relative error 2^-15.
#[inline(always)]
pub fn gelu_half(x: f32) -> f32 {
    let a = gelu_tail_end(x);
    let exponent = -0.5 * (a * a);
    let n = exponent.mul_add(std::f32::consts::LOG2_E, MAGIC_SINGLE);
    let r = (n - MAGIC_SINGLE).mul_add(-std::f32::consts::LN_2, exponent);
    let e = horner_single!(r; 0.999_999_3, 0.999_963_4, 0.500_043_6, 0.167_909_26, 0.041_458_577);
    let t = 1.0 / a.mul_add(0.35, 1.0);
    let p = horner_scaled!(t; 0.139_258_74, 0.144_822_14, 0.096_561_07, 0.142_950_58, 0.009_842_989, -0.033_448_074);
    gelu_of_tail(x, p, a * t, n, e)
}

/// `|x|`, or 14.5 beyond it; NaN stays.
#[inline(always)]
fn gelu_tail_end(x: f32) -> f32 {
    let a = x.abs();
    if a > 14.5 { 14.5 } else { a }
}

/// `max(x, 0) - tail`, where the tail is `p 2^64 e 2^n factor`. The power of two comes in two factors, because it may be less
/// than the least normal number.
#[inline(always)]
fn gelu_of_tail(x: f32, p: f32, factor: f32, n: f32, e: f32) -> f32 {
    let power = f32::from_bits(n.to_bits().wrapping_add(127 + 64) << 23);
    (if x < 0.0 { 0.0 } else { x }) - (p * (e * power)) * factor
}

/// `sqrt(x² + y²)`; infinite if either is, even against NaN.
#[inline(always)]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (f64::from(x), f64::from(y));
    let infinite = (x.abs() == f32::INFINITY) | (y.abs() == f32::INFINITY);
    if infinite { f32::INFINITY } else { (a * a + b * b).sqrt() as f32 }
}

/// `log2 x` of a single's size, or NaN; near minimax (relative error 2^-37), as much as a power needs that may reach 2^149.
#[inline(always)]
fn log2_of_size(x: f64) -> f64 {
    let (e, m) = split(x);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = horner!(z; 2.885_390_081_790_08, 0.961_796_673_350_060_1, 0.577_083_583_269_441_9,
        0.411_672_826_895_144_2, 0.340_728_008_259_689_1);
    let result = s.mul_add(p, e);
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    // Infinity and NaN are their own logarithms.
    if x < f64::INFINITY { result } else { x }
}

/// `x^y = 2^(y log2 |x|)` in double precision, with the sign of `x` where `y` is an odd whole number.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let base = x.abs();
    let exponent = clamp(f64::from(y) * log2_of_size(f64::from(base)), -300.0, 300.0);
    let size = exp2_scaled(exponent, 1.0) as f32;
    // 1 to any power, and any number to the power 0, is 1, also against NaN and infinity.
    let one = (y == 0.0) | (x == 1.0) | ((base == 1.0) & (y.abs() == f32::INFINITY));
    let size = if one { 1.0 } else { size };
    let whole = y.floor() == y;
    let odd = whole & ((0.5 * y).floor() * 2.0 != y);
    let signed = if odd { size.copysign(x) } else { size };
    if (x < 0.0) & !whole & (base != f32::INFINITY) { f32::NAN } else { signed }
}

/// `tanh(ln(1 + e^x)) = w / (w + 2)` with `w = e^x (e^x + 2)`; 1 long before `x` reaches 60.
#[inline(always)]
pub fn tanh_softplus(x: f32) -> f32 {
    let w = exp_wide(clamp(f64::from(x), -200.0, 60.0));
    let w = w * (w + 2.0);
    (w / (w + 2.0)) as f32
}
