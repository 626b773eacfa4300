//! The gamma function where other functions need it, its logarithm and its logarithmic derivative, DLMF chapter 5.

use super::table::gamma::{DIGAMMA, GAMMA, LOG_GAMMA};
use crate::simd::math_f64;

/// `Γ(1 + x)` for positive `x` below 16, by the recurrence (DLMF 5.5.1) from `1..2`, without rounding `1 + x`.
#[inline(always)]
pub(super) fn gamma_of_next(x: f64) -> f64 {
    if x < 1.0 {
        return GAMMA.at(1.0 + x);
    }
    let (mut at, mut product) = (x, x);
    while at >= 2.0 {
        at -= 1.0;
        product *= at;
    }
    product * GAMMA.at(at)
}

/// `ln Γ(1 + x)` for `x` in `0..=1.5`, without loss near 0.
#[inline(always)]
pub(super) fn log_gamma_of_next(x: f64) -> f64 {
    if x <= 0.5 {
        return x * LOG_GAMMA.at(x);
    }
    let before = x - 1.0;
    math_f64::log(x) + before * LOG_GAMMA.at(before)
}

/// The coefficients of Stirling's series, DLMF 5.11.1.
const STIRLING: [f64; 7] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
];

/// `ln Γ(x) - (x - 1/2) ln x + x - ln(2π)/2` for `x >= 16`.
#[inline(always)]
pub(super) fn stirling(x: f64) -> f64 {
    let inverse = 1.0 / x;
    inverse * super::polynomial_at(inverse * inverse, &STIRLING)
}

/// `ln Γ(x)` for `x >= 16`.
pub(super) fn log_gamma(x: f64) -> f64 {
    const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;
    (x - 0.5) * math_f64::log(x) - x + HALF_LOG_TAU + stirling(x)
}

/// The zero of digamma, and what the first number lacks of it.
const ZERO: (f64, f64) = (1.461_632_144_968_362_2, 9.549_995_429_965_697e-17);

/// The coefficients `B_2k / 2k` of DLMF 5.11.2.
const SERIES: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32_760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

/// `Γ'(x) / Γ(x)` for positive `x`, within 4 ULP.
#[inline(always)]
fn digamma_positive(x: f64) -> f64 {
    if x < 10.0 {
        // By the recurrence (DLMF 5.5.2) into 1..2.
        let (mut at, mut sum) = if x < 1.0 { (1.0 + x, -1.0 / x) } else { (x, 0.0) };
        while at >= 2.0 {
            at -= 1.0;
            sum += 1.0 / at;
        }
        return ((at - ZERO.0) - ZERO.1) * DIGAMMA.at(at) + sum;
    }
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    math_f64::log(x) - 0.5 * inverse - z * super::polynomial_at(z, &SERIES)
}

/// `Γ'(x) / Γ(x)`: for negative `x` by reflection (DLMF 5.5.4). At 0 it is infinite with the sign opposite to the zero's; at
/// negative whole numbers NaN.
#[inline(always)]
pub(crate) fn digamma(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x > 0.0 || x.is_nan() {
        return digamma_positive(x);
    }
    if x == x.floor() {
        return f64::NAN;
    }
    // The distance from the nearest whole number is exact, and keeps the tangent accurate.
    let part = x - x.round();
    digamma_positive(1.0 - x) - PI / math_f64::tan_of_any(PI * part)
}
