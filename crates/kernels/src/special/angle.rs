//! Angles of numbers (arcus functions) without branches, and the circular functions of angles of any size.
//!
//! `atan` is a polynomial up to `tan(π/8)`, to which the quotients `(a - 1) / (a + 1)` and `-1 / a` bring larger numbers;
//! `asin` one up to 1/2, to which `sqrt((1 - a) / 2)` does (DLMF 4.24). Angles beyond `TRIG_LIMIT` are reduced with as
//! many digits of `2/π` as it takes: M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM
//! Newsletter 18 (1983).

use super::polynomial_at;
use super::table::angle::{ASIN, ATAN};
use crate::simd::math_f64::{TRIG_LIMIT, cos, cos_near_zero, sin, sin_near_zero, tan};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

/// `tan(π/8)` and `tan(3π/8)`.
const EIGHTH: f64 = std::f64::consts::SQRT_2 - 1.0;
const THREE_EIGHTHS: f64 = std::f64::consts::SQRT_2 + 1.0;
/// What `FRAC_PI_2` lacks of `π/2`.
const PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// `atan t` for `|t|` up to `tan(π/8)`.
#[inline(always)]
fn atan_near(t: f64) -> f64 {
    let z = t * t;
    (t * z).mul_add(polynomial_at(z, &ATAN), t)
}

/// `n π/4 + value`.
#[inline(always)]
fn add_octants(n: f64, value: f64) -> f64 {
    let multiple = n * FRAC_PI_4;
    let low = n.mul_add(FRAC_PI_4, -multiple);
    multiple + (value + n.mul_add(0.5 * PI_2_LOW, low))
}

/// The angle in `-π/2..=π/2` whose tangent is `x`, within 1.5 ULP.
#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let size = x.abs();
    let (is_middle, is_far) = (size > EIGHTH, size > THREE_EIGHTHS);
    let over = if is_middle { size - 1.0 } else { size };
    let under = if is_middle { size + 1.0 } else { 1.0 };
    let t = if is_far { -1.0 } else { over } / if is_far { size } else { under };
    let value = atan_near(t);
    let n = if is_far { 2.0 } else { 1.0 };
    (if is_middle { add_octants(n, value) } else { value }).copysign(x)
}

/// The angle of the point `(x, y)` in `-π..=π`, within 2 ULP; signs of zeros and infinities as C has them.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let are_infinite = (a == f64::INFINITY) & (b == f64::INFINITY);
    let (a, b) = if are_infinite { (1.0, 1.0) } else { (a, b) };
    let is_steep = a > b;
    let (small, big) = if is_steep { (b, a) } else { (a, b) };
    // A sum below must not overflow, and what is scaled down must not be lost.
    let scale = if big > 1e300 { 1.0 / 1024.0 } else { 1.0 };
    let (small, big) = (small * scale, big * scale);
    let is_middle = small > EIGHTH * big;
    let over = if is_middle { small - big } else { small };
    let under = if is_middle { small + big } else { big };
    let under = if under == 0.0 { 1.0 } else { under };
    let value = atan_near(over / under);
    // The angle from the nearer axis is n π/4 + value, and the point's is that or the rest of a quarter or half turn.
    let n = if is_middle { 1.0 } else { 0.0 };
    let (n, value) = if is_steep { (2.0 - n, -value) } else { (n, value) };
    let is_left = x.is_sign_negative();
    let (n, value) = if is_left { (4.0 - n, -value) } else { (n, value) };
    let angle = if n == 0.0 { value } else { add_octants(n, value) };
    let angle = if x.is_nan() | y.is_nan() { f64::NAN } else { angle };
    angle.copysign(y)
}

/// `asin s - s` of the number whose square is `z`, for `s` up to 1/2.
#[inline(always)]
fn asin_rest(s: f64, z: f64) -> f64 {
    s * z * polynomial_at(z, &ASIN)
}

/// For `a` above 1/2: `asin sqrt((1 - a) / 2)`, and half of `acos a`, as two numbers.
#[inline(always)]
fn half_complement(a: f64) -> (f64, f64) {
    let z = 0.5 * (1.0 - a);
    let root = z.sqrt();
    let lost = (-root).mul_add(root, z) / (2.0 * root);
    let lost = if root == 0.0 { 0.0 } else { lost };
    (root, lost + asin_rest(root, z))
}

/// The angle in `-π/2..=π/2` whose sine is `x`, within 1.5 ULP; NaN beyond ±1.
#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let size = x.abs();
    let near = size + asin_rest(size, size * size);
    let (half, low) = half_complement(size);
    let high = FRAC_PI_2 - 2.0 * half;
    let high_low = (FRAC_PI_2 - high) - 2.0 * half;
    let far = high + (high_low + 2.0f64.mul_add(-low, PI_2_LOW));
    (if size <= 0.5 { near } else { far }).copysign(x)
}

/// The angle in `0..=π` whose cosine is `x`, within 1.5 ULP; NaN beyond ±1.
#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let size = x.abs();
    let rest = asin_rest(x, x * x);
    let near = FRAC_PI_2 - x;
    let near_low = (FRAC_PI_2 - near) - x;
    let near = near + (near_low + (PI_2_LOW - rest));
    let (half, low) = half_complement(size);
    let right = 2.0 * (half + low);
    let left = 2.0 * (FRAC_PI_2 - (half + (low - PI_2_LOW)));
    let far = if x < 0.0 { left } else { right };
    if size <= 0.5 { near } else { far }
}

/// The bits of `2/π` after the point, the first word's first.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// The quarter turn that a large number is in (low bits), and what is left of it in `-π/4..=π/4` as two numbers.
#[cold]
fn reduce_large(x: f64) -> (u64, f64, f64) {
    let bits = x.abs().to_bits();
    // x = m 2^e, of which multiples of four quarter turns do not count.
    let (m, e) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1075);
    let start = (e - 2).max(0);
    let (word, shift) = (start as usize / 64, start as u32 % 64);
    let window = |i: usize| {
        let next = TWO_OVER_PI.get(word + i + 1).copied().unwrap_or(0);
        if shift == 0 {
            TWO_OVER_PI[word + i]
        } else {
            TWO_OVER_PI[word + i] << shift | next >> (64 - shift)
        }
    };
    // The product with 192 bits, lowest word first.
    let mut words = [0_u64; 4];
    let mut carry = 0_u128;
    for (i, word) in words[..3].iter_mut().enumerate() {
        let sum = u128::from(m) * u128::from(window(2 - i)) + carry;
        *word = sum as u64;
        carry = sum >> 64;
    }
    words[3] = carry as u64;
    // Up, so that two bits are the quarter turn and the others what follows the point.
    let up = (62 + e - start) as u32;
    let high = u128::from(words[3]) << 64 | u128::from(words[2]);
    let low = u128::from(words[1]) << 64 | u128::from(words[0]);
    let value = if up == 64 {
        u128::from(words[2]) << 64 | u128::from(words[1])
    } else {
        high << up | low >> (128 - up)
    };
    // To the nearest quarter: what is left is at most half of one.
    let part = value << 2;
    let is_above = part >> 127 == 1;
    let quarter = (value >> 126) as u64 + u64::from(is_above);
    let size = if is_above { part.wrapping_neg() } else { part };
    let first = size as f64;
    let second = (size as i128).wrapping_sub(first as i128) as f64;
    // (As fractions of 2^128.)
    let unit = f64::from_bits((1023 - 128) << 52);
    let (first, second) = (first * unit, second * unit);
    let angle = first * FRAC_PI_2;
    let rest = first.mul_add(FRAC_PI_2, -angle) + first.mul_add(PI_2_LOW, second * FRAC_PI_2);
    let sign = if is_above { -1.0 } else { 1.0 };
    (quarter, sign * angle, sign * rest)
}

/// Sine and cosine of what [`reduce_large`] leaves, with the quarter it is in.
#[cold]
fn large(x: f64) -> (u64, f64, f64) {
    let (quarter, angle, rest) = reduce_large(x);
    let (s, c) = (sin_near_zero(angle), cos_near_zero(angle));
    (quarter, rest.mul_add(c, s), (-rest).mul_add(s, c))
}

/// `sin x` of any number, within 2 ULP.
#[inline(always)]
pub fn sin_of_any(x: f64) -> f64 {
    if x.abs() <= TRIG_LIMIT { sin(x) } else { large_sin(x) }
}

/// `cos x` of any number, within 2 ULP.
#[inline(always)]
pub fn cos_of_any(x: f64) -> f64 {
    if x.abs() <= TRIG_LIMIT { cos(x) } else { large_cos(x) }
}

/// `(sin x, cos x)` of any number, each within 2 ULP.
#[inline(always)]
pub fn sin_cos(x: f64) -> (f64, f64) {
    (sin_of_any(x), cos_of_any(x))
}

/// `tan x` of any number, within 4 ULP.
#[inline(always)]
pub fn tan_of_any(x: f64) -> f64 {
    if x.abs() <= TRIG_LIMIT { tan(x) } else { large_tan(x) }
}

#[cold]
fn large_sin(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (quarter, s, c) = large(x);
    let value = if quarter & 1 == 0 { s } else { c };
    let value = if quarter & 2 == 0 { value } else { -value };
    if x < 0.0 { -value } else { value }
}

#[cold]
fn large_cos(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (quarter, s, c) = large(x);
    let value = if quarter & 1 == 0 { c } else { s };
    if (quarter + 1) & 2 == 0 { value } else { -value }
}

#[cold]
fn large_tan(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (quarter, s, c) = large(x);
    let value = if quarter & 1 == 0 { s / c } else { -c / s };
    if x < 0.0 { -value } else { value }
}
