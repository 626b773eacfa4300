//! Functions of one `f64`, written so that LLVM turns a loop over them into whole-register code: no
//! branches (both sides are computed and one is chosen), no tables, fused multiply-adds.
//!
//! Bounds, tested in `tests/accuracy.rs`: `exp`, `exp2`, `expm1`, `log`, `log1p`, `sin`, `cos` 1.5
//! units in the last place; `pow`, `log2`, `log10`, `hypot`, `erf` 1; `tanh`, `sigmoid`, `sinh`, `cosh`, `tan` 4. Infinities, NaN, denormals and
//! zeros (with their signs) are exact everywhere; `sin`, `cos` and `tan` hold up to `TRIG_LIMIT`.

/// `c0 + c1 x + c2 x² + ...` by Horner's rule, fused.
macro_rules! horner {
    ($x:expr; $last:expr) => { $last };
    ($x:expr; $first:expr, $($rest:expr),+) => {
        f64::mul_add($crate::simd::math_f64::horner!($x; $($rest),+), $x, $first)
    };
}
pub(crate) use horner;

/// Adding it rounds to the nearest whole number, which then stands in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 in two parts, of which the first has zeros at its end.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 2 to the whole number that stands in the low bits of `t`, a sum with `MAGIC` (-1022 ..= 1023).
#[inline(always)]
pub(crate) fn power_of_two(t: f64) -> f64 {
    f64::from_bits((t.to_bits() << 52).wrapping_add(1023 << 52))
}

/// `(2^a, 2^b)` with `a + b = n` and both in range for `|n| <= 2000`.
#[inline(always)]
pub(crate) fn halves_of_power(n: f64) -> (f64, f64) {
    let t = n.mul_add(0.5, MAGIC);
    let a = t - MAGIC;
    (power_of_two(t), power_of_two((n - a) + MAGIC))
}

/// `(e^r - 1)` for `|r| <= ln(2)/2`, by the Taylor series.
#[inline(always)]
fn expm1_near_zero(r: f64) -> f64 {
    let p = horner!(r; 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0,
        1.0 / 40320.0, 1.0 / 362_880.0, 1.0 / 3_628_800.0, 1.0 / 39_916_800.0, 1.0 / 479_001_600.0,
        1.0 / 6_227_020_800.0);
    (r * r).mul_add(p, r)
}

/// The whole number `n` nearest to `x / ln 2`, and `x - n ln 2`.
#[inline(always)]
fn reduce_exp(x: f64) -> (f64, f64) {
    let n = x.mul_add(LOG2_E, MAGIC) - MAGIC;
    (n, n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x)))
}

/// The whole number `n` nearest to `x / ln 2` for `|x|` up to 1000, and `e^(x + low) / 2^n - 1` where `low` is far below `x`.
#[inline(always)]
pub(crate) fn exp_parts(x: f64, low: f64) -> (f64, f64) {
    let (n, r) = reduce_exp(x);
    (n, expm1_near_zero(r + low))
}

#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    // Written so that NaN passes.
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `x Φ(x)`; its limit, 0, at minus infinity.
#[inline(always)]
pub fn gelu(x: f64) -> f64 {
    // Φ(-40) is below every double.
    let x = if x < -40.0 { -40.0 } else { x };
    x * normal_cdf(x)
}

/// `e^x`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let (n, r) = reduce_exp(clamp(x, -746.0, 710.0));
    let (a, b) = halves_of_power(n);
    (1.0 + expm1_near_zero(r)) * a * b
}

/// `2^x`.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1076.0, 1025.0);
    let n = (x + MAGIC) - MAGIC;
    let (a, b) = halves_of_power(n);
    (1.0 + expm1_near_zero((x - n) * std::f64::consts::LN_2)) * a * b
}

/// `ln(1 + e^-|x|)`.
#[inline(always)]
pub fn log1p_exp(x: f64) -> f64 {
    log1p(exp(-x.abs()))
}
/// `log2(1 + 2^-|x|)`.
#[inline(always)]
pub fn log2_1p_exp2(x: f64) -> f64 {
    log1p(exp2(-x.abs())) * LOG2_E
}
/// `e^x - 1`.
#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let (n, r) = reduce_exp(clamp(x, -40.0, 710.0));
    let (a, b) = halves_of_power(n);
    // 2^n (e^r - 1) + 2^n - 1, with the factor b = 2^(n - a) taken out.
    let result = expm1_near_zero(r).mul_add(a, a - 1.0 / b) * b;
    if x == 0.0 { x } else { result }
}

/// The exponent `e` and the mantissa `m` in `[sqrt(1/2), sqrt(2))` of a positive normal number.
#[inline(always)]
pub(crate) fn split(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    // The biased exponent as a double: its bits below those of 2^52.
    let e =
        f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    (e, m)
}

/// `ln(1 + f) + e ln 2 + tail` for `1 + f` in `[sqrt(1/2), sqrt(2))`: with `s = f / (2 + f)` it is
/// `2 atanh(s)`, arranged as in Sun's fdlibm so that the leading term is exact.
#[inline(always)]
fn log_from(f: f64, e: f64, tail: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * horner!(z; 2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0,
        2.0 / 15.0, 2.0 / 17.0, 2.0 / 19.0, 2.0 / 21.0);
    let half_square = 0.5 * f * f;
    let small = e.mul_add(LN2_LOW, tail) + s * (half_square + r);
    e.mul_add(LN2_HIGH, f - (half_square - small))
}

/// `ln x`.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    log_beside_one(x, x - 1.0)
}

/// `ln x`, where `distance` is `x - 1`, which near 1 may be known better than `x` is.
#[inline(always)]
fn log_beside_one(x: f64, distance: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let (e, m) = split(if tiny { x * 18_014_398_509_481_984.0 } else { x });
    let f = if e == 0.0 { distance } else { m - 1.0 };
    let result = log_from(f, if tiny { e - 54.0 } else { e }, 0.0);
    let result = if x == f64::INFINITY { x } else { result };
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    // Negative numbers and NaN.
    if x >= 0.0 { result } else { f64::NAN }
}

/// `ln x` of a number that is positive, finite and no denormal; of others anything.
#[inline(always)]
pub(crate) fn log_of_normal(x: f64) -> f64 {
    let (e, m) = split(x);
    log_from(m - 1.0, e, 0.0)
}

/// `ln(x + rest)` of a number as [`log_of_normal`] takes it and one far below it.
#[inline(always)]
pub(crate) fn log_of_sum(x: f64, rest: f64) -> f64 {
    let (e, m) = split(x);
    log_from(m - 1.0, e, rest / x)
}

/// `ln(x / (1 - x))`, within 4 units in the last place: infinite at 0 and 1, NaN outside.
#[inline(always)]
pub(crate) fn logit(x: f64) -> f64 {
    // Where the quotient is near 1 its distance from 1 counts, whose numerator is exact.
    let rest = 1.0 - x;
    log_beside_one(x / rest, (2.0 * x - 1.0) / rest)
}

/// `ln(1 + x)`.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let (e, m) = split(u);
    // What the sum lost, relative to it; exact where x or 1 is the larger.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let result = log_from(m - 1.0, e, lost / u);
    let result = if x == f64::INFINITY { x } else { result };
    let result = if x.abs() < 1e-17 { x } else { result };
    let result = if x == -1.0 { f64::NEG_INFINITY } else { result };
    if x >= -1.0 { result } else { f64::NAN }
}

/// Up to here `sin`, `cos` and `tan` hold; beyond, use `sin_of_any` and its like.
pub const TRIG_LIMIT: f64 = 1.0e9;
/// π/2 in three parts of full precision: multiples of the first differ from `x` exactly.
const PIO2: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_17e-33];

/// The quarter turn that `x` is in (low bits) and what is left, in `[-π/4, π/4]`.
#[inline(always)]
fn reduce_trig(x: f64) -> (u64, f64) {
    let t = x.mul_add(std::f64::consts::FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    let r = n.mul_add(-PIO2[0], x);
    let r = n.mul_add(-PIO2[1], r);
    (t.to_bits(), n.mul_add(-PIO2[2], r))
}

#[inline(always)]
pub(crate) fn sin_near_zero(r: f64) -> f64 {
    let z = r * r;
    let p = horner!(z; -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0, -1.0 / 1_307_674_368_000.0, 1.0 / 355_687_428_096_000.0);
    (r * z).mul_add(p, r)
}

#[inline(always)]
pub(crate) fn cos_near_zero(r: f64) -> f64 {
    let z = r * r;
    let p = horner!(z; 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3_628_800.0,
        1.0 / 479_001_600.0, -1.0 / 87_178_291_200.0, 1.0 / 20_922_789_888_000.0);
    // 1 - z/2 rounds; what it loses is added back.
    let half = 0.5 * z;
    let w = 1.0 - half;
    w + (z * z).mul_add(p, (1.0 - w) - half)
}

#[inline(always)]
fn with_sign_bit(value: f64, bit: u64) -> f64 {
    f64::from_bits(value.to_bits() ^ (bit << 63))
}

/// `sin x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn sin(x: f64) -> f64 {
    let (quarter, r) = reduce_trig(x);
    let value = if quarter & 1 == 0 { sin_near_zero(r) } else { cos_near_zero(r) };
    let value = with_sign_bit(value, (quarter >> 1) & 1);
    if x == 0.0 { x } else { value }
}

/// `cos x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn cos(x: f64) -> f64 {
    let (quarter, r) = reduce_trig(x);
    let value = if quarter & 1 == 0 { cos_near_zero(r) } else { sin_near_zero(r) };
    with_sign_bit(value, (quarter.wrapping_add(1) >> 1) & 1)
}

/// `tan x` for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub fn tan(x: f64) -> f64 {
    let (quarter, r) = reduce_trig(x);
    let (s, c) = (sin_near_zero(r), cos_near_zero(r));
    let even = quarter & 1 == 0;
    let value = (if even { s } else { c }) / (if even { c } else { -s });
    if x == 0.0 { x } else { value }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// `tanh x = E / (E + 2)` with `E = e^(2x) - 1`.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    let e = expm1(2.0 * if a > 22.0 { 22.0 } else { a });
    let result = (e / (e + 2.0)).copysign(x);
    // Where the quotient of denormals would round twice, the function is its argument.
    if a < 1e-8 { x } else { result }
}

/// `sinh x = (E + E / (E + 1)) / 2` with `E = e^|x| - 1`.
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let a = x.abs();
    let e = expm1(a);
    let middle = 0.5 * (e + e / (e + 1.0));
    // e^a overflows before its half does.
    let half = exp(0.5 * a);
    let result = if a > 700.0 { 0.5 * half * half } else { middle };
    (if a < 1e-8 { a } else { result }).copysign(x)
}

/// `cosh x = (e^|x| + e^-|x|) / 2`.
#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let a = x.abs();
    let e = exp(a);
    let middle = 0.5 * e + 0.5 / e;
    let half = exp(0.5 * a);
    if a > 700.0 { 0.5 * half * half } else { middle }
}

/// `asinh x = ln(|x| + sqrt(x² + 1))`, with the sign of `x`.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let near = log1p(a + a * a / (1.0 + a.mul_add(a, 1.0).sqrt()));
    // Far out the square overflows and the 1 does not count.
    let far = log(a) + std::f64::consts::LN_2;
    (if a > 1e8 { far } else { near }).copysign(x)
}

/// `acosh x = ln(x + sqrt(x² - 1))`.
#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    let near = log1p(t + t.mul_add(t, 2.0 * t).sqrt());
    let far = log(x) + std::f64::consts::LN_2;
    let result = if x > 1e8 { far } else { near };
    if x >= 1.0 { result } else { f64::NAN }
}

/// `atanh x = ln((1 + x) / (1 - x)) / 2`.
#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let result = 0.5 * log1p(2.0 * a / (1.0 - a));
    (if a <= 1.0 { result } else { f64::NAN }).copysign(x)
}

pub use crate::special::angle::{
    acos, asin, atan, atan2, cos_of_any, sin_cos, sin_of_any, tan_of_any,
};
pub use crate::special::error::{erf, erfc};

/// The normal distribution's `Φ(x)`.
#[inline(always)]
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(x * -std::f64::consts::FRAC_1_SQRT_2)
}

/// `sqrt(x² + y²)` without overflow, within 1 unit in the last place: a root and its correction by what rounding took from the
/// squares (C. F. Borges, "Algorithm 1014: An Improved Algorithm for hypot(x,y)", 2020).
#[inline(always)]
pub fn hypot(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let (big, small) = if x > y { (x, y) } else { (y, x) };
    // By powers of two, so that no square leaves the range.
    let (scale, back) = if big > 1e150 { (POWERS.0, POWERS.1) } else { (1.0, 1.0) };
    let (scale, back) = if big < 1e-140 { (POWERS.1, POWERS.0) } else { (scale, back) };
    let (big, small) = (big * scale, small * scale);
    let root = big.mul_add(big, small * small).sqrt();
    let (square, big_square) = (root * root, big * big);
    let error = (-small).mul_add(small, square - big_square)
        + (root.mul_add(root, -square) - big.mul_add(big, -big_square));
    let value = root - error / (2.0 * root);
    let value = if root > 0.0 { value } else { root };
    let is_infinite = (x == f64::INFINITY) | (y == f64::INFINITY);
    let is_nan = x.is_nan() | y.is_nan();
    let value = if is_nan { f64::NAN } else { value * back };
    if is_infinite { f64::INFINITY } else { value }
}
/// `2^-600` and `2^600`.
const POWERS: (f64, f64) = (f64::from_bits((1023 - 600) << 52), f64::from_bits((1023 + 600) << 52));

/// `log2 x`.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    let (log, low) = log2_pair(x);
    let log = if log.abs() < f64::INFINITY { log + low } else { log };
    // Negative numbers and NaN.
    if x >= 0.0 { log } else { f64::NAN }
}

/// `log10 x`.
#[inline(always)]
pub fn log10(x: f64) -> f64 {
    /// `log10 2` as two numbers.
    const LOG10_2: (f64, f64) = (std::f64::consts::LOG10_2, -2.803_728_127_785_170_5e-18);
    let (log, low) = log2_pair(x);
    let value = log * LOG10_2.0;
    let lost = log.mul_add(LOG10_2.0, -value) + log.mul_add(LOG10_2.1, low * LOG10_2.0);
    let value = if value.abs() < f64::INFINITY { value + lost } else { value };
    if x >= 0.0 { value } else { f64::NAN }
}

/// `ln x` of a finite positive number as a sum of two numbers with more than 60 bits right.
#[inline(always)]
pub(crate) fn log_pair(x: f64) -> (f64, f64) {
    const LN_2: (f64, f64) = (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
    let (log, low) = log2_pair(x);
    let value = log * LN_2.0;
    let lost = log.mul_add(LN_2.0, -value) + log.mul_add(LN_2.1, low * LN_2.0);
    let high = value + lost;
    (high, (value - high) + lost)
}

/// `log2 x` of a positive number, infinity or NaN, as a sum of two numbers with more than 64 bits right; of 0 minus infinity. (The
/// second number is of use if the first is finite.)
#[inline(always)]
fn log2_pair(x: f64) -> (f64, f64) {
    /// `2 / ln 2` and a third of it, each as two numbers.
    const FIRST: (f64, f64) = (2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17);
    const SECOND: (f64, f64) = (0.961_796_693_925_975_6, 5.057_761_664_812_590_7e-17);
    let tiny = x < f64::MIN_POSITIVE;
    let (e, m) = split(if tiny { x * 18_014_398_509_481_984.0 } else { x });
    let e = if tiny { e - 54.0 } else { e };
    // s = (m - 1) / (m + 1) and its square. Only the sum below is rounded.
    let f = m - 1.0;
    let sum = m + 1.0;
    let sum_low = m - (sum - 1.0);
    let inverse = 1.0 / sum;
    let s = f * inverse;
    let s_low = (-s).mul_add(sum_low, (-s).mul_add(sum, f)) * inverse;
    let z = s * s;
    let z_low = (2.0 * s).mul_add(s_low, s.mul_add(s, -z));
    // log2 m = s (FIRST + SECOND z + z² tail), near minimax.
    let tail = horner!(z; 0.577_078_016_355_585_3, 0.412_198_583_111_143_9, 0.320_598_897_967_159_7,
        0.262_308_191_467_021_2, 0.221_952_788_705_961_63, 0.192_380_559_457_128_37,
        0.168_885_467_174_023_9, 0.169_127_875_823_248_92);
    let linear = SECOND.0 * z;
    let linear_low = SECOND.1.mul_add(z, SECOND.0.mul_add(z_low, SECOND.0.mul_add(z, -linear)));
    let curved = z * z * tail;
    let bend = linear + curved;
    let bend_low = (linear - bend) + curved + (linear_low + FIRST.1);
    let factor = FIRST.0 + bend;
    let factor_low = (FIRST.0 - factor) + bend + bend_low;
    let value = s * factor;
    let value_low = s.mul_add(factor_low, s_low.mul_add(factor, s.mul_add(factor, -value)));
    // The exponent is 0 or larger than the rest.
    let result = e + value;
    let result_low = (e - result) + value + value_low;
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    // Infinity and NaN are their own logarithms.
    (if x < f64::INFINITY { result } else { x }, result_low)
}

/// `2^(x + low)`, where `low` is far below `x`: rounded once, but for what is below the normal numbers.
#[inline(always)]
fn exp2_of_pair(x: f64, low: f64) -> f64 {
    const LN_2: (f64, f64) = (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
    let n = (x + MAGIC) - MAGIC;
    let near = x - n;
    let r = near + low;
    let r_low = (near - r) + low;
    let p = horner!(r; 0.240_226_506_959_100_72, 0.055_504_108_664_821_6, 0.009_618_129_107_628_479,
        0.001_333_355_814_641_693_6, 0.000_154_035_303_933_759_14, 1.525_273_382_983_612e-5,
        1.321_548_680_290_393_1e-6, 1.017_806_244_584_577_4e-7, 7.054_899_956_372_649e-9,
        4.454_960_598_186_519e-10, 2.572_508_057_683_636e-11);
    // 1 + r ln 2 as two numbers, to the lower of which the rest is added.
    let linear = r * LN_2.0;
    let linear_low = r_low.mul_add(LN_2.0, r.mul_add(LN_2.1, r.mul_add(LN_2.0, -linear)));
    let high = 1.0 + linear;
    let rest = (1.0 - high) + linear + (r * r).mul_add(p, linear_low);
    let (a, b) = halves_of_power(n);
    (high + rest) * a * b
}

/// `x^y = 2^(y log2 |x|)`, with the sign of `x` where `y` is an odd whole number: within 0.6 units in the last place, so that
/// what is a double is exact; within 1 below the normal numbers.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    const FAR: f64 = 1100.0;
    let base = x.abs();
    let (log, log_low) = log2_pair(base);
    let exponent = y * log;
    let exponent_low = y.mul_add(log_low, y.mul_add(log, -exponent));
    // Beyond the range, where the lower part may be NaN, it is of no account.
    let exponent_low = if exponent.abs() < FAR { exponent_low } else { 0.0 };
    let size = exp2_of_pair(clamp(exponent, -FAR, FAR), exponent_low);
    // 1 to any power, and any number to the power 0, is 1, also against NaN and infinity.
    let one = (y == 0.0) | (x == 1.0) | ((base == 1.0) & (y.abs() == f64::INFINITY));
    let size = if one { 1.0 } else { size };
    let whole = y.floor() == y;
    let odd = whole & ((0.5 * y).floor() * 2.0 != y);
    let signed = if odd { size.copysign(x) } else { size };
    if (x < 0.0) & !whole & (base != f64::INFINITY) { f64::NAN } else { signed }
}

/// `tanh(ln(1 + e^x)) = w / (w + 2)` with `w = e^x (e^x + 2)`; 1 long before `x` reaches 60.
#[inline(always)]
pub fn tanh_softplus(x: f64) -> f64 {
    let w = exp(clamp(x, -746.0, 60.0));
    let w = w * (w + 2.0);
    w / (w + 2.0)
}
