//! `ln |Γ(x)|`, DLMF chapter 5, with care for its zeros.
//!
//! Positive numbers up to 8: polynomials on pieces, below 3 times the factors `(x - 1) (x - 2)`, which keep the zeros exact;
//! beyond, Stirling's series (5.11.1). Negative ones down to -16 go up to `1 + part` by the recurrence (5.5.1), where `part`
//! is the exact distance from the nearest whole number: `ln Γ(1 + part) - ln |x (x + 1) ... part|`, both as two numbers,
//! because near the zeros that lie there they nearly cancel. Below that reflection (5.5.3) does: there a double's neighbour
//! is further from a zero than the rounding errors take it.

use super::table::gamma::LOG_GAMMA;
use super::table::log_gamma::{
    LOG_GAMMA_BEYOND, LOG_GAMMA_MIDDLE, LOG_GAMMA_NEAR, LOG_GAMMA_NEAR_LOW, STIRLING,
};
use super::{polynomial_at, product, sum};
use crate::simd::math_f64::{cos, log, log_pair, sin};
use std::f64::consts::PI;

/// From here downwards reflection is used.
const FAR: f64 = -16.0;
const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;
/// `π - PI`.
const PI_LOW: f64 = 1.224_646_799_147_353_2e-16;

/// `ln Γ(x)` from 8 on.
#[inline(always)]
fn large(x: f64) -> f64 {
    let less = log(x) - 1.0;
    if x > 1e17 {
        return x * less;
    }
    let inverse = 1.0 / x;
    let rest = inverse.mul_add(polynomial_at(inverse * inverse, &STIRLING), HALF_LOG_TAU - 0.5);
    (x - 0.5).mul_add(less, rest)
}

/// `ln Γ(x)` of a positive number.
#[inline(always)]
fn positive(x: f64) -> f64 {
    if x >= 8.0 {
        return large(x);
    }
    if x < 0.5 {
        return x.mul_add(LOG_GAMMA.at(x), -log(x));
    }
    // (NaN too.)
    if x >= 3.0 {
        return LOG_GAMMA_BEYOND.at(x);
    }
    (x - 1.0) * (x - 2.0) * LOG_GAMMA_MIDDLE.at(x)
}

/// `ln |Γ(x)|` for `x` in `-16..0`, no whole number.
#[inline(always)]
fn negative(x: f64) -> f64 {
    let (mut high, mut low) = (x, 0.0_f64);
    let mut at = x;
    while at < -0.5 {
        at += 1.0;
        let (next, lost) = product(high, at);
        low = low.mul_add(at, lost);
        high = next;
    }
    let (high, low) = (high.abs(), if high < 0.0 { -low } else { low });
    let (log, log_low) = log_pair(high);
    let log_low = log_low + low / high;
    let piece = (((at + 0.5) * 64.0) as usize).min(63);
    let (value, more) = LOG_GAMMA_NEAR.parts(at, piece);
    let (difference, rest) = sum(value, -log);
    difference + (rest + (more + (LOG_GAMMA_NEAR_LOW[piece] - log_low)))
}

/// `ln |Γ(x)|` below -16, by reflection.
#[inline(always)]
fn reflected(x: f64) -> f64 {
    let part = x - x.round();
    let (angle, rest) = product(PI, part);
    let rest = PI_LOW.mul_add(part, rest);
    let sine = rest.mul_add(cos(angle), sin(angle)).abs();
    log(PI / (-x * sine)) - positive(-x)
}

/// `ln |Γ(x)|`: within 3 ULP of the value from -16 upwards, where a value below 0.01 in size has an error of at most 2^-58;
/// below -16 within 3 ULP of `ln Γ(-x)`. Infinite at 0 and at negative whole numbers.
#[inline(always)]
pub(crate) fn lgamma(x: f64) -> f64 {
    if x > 0.0 || x.is_nan() {
        return positive(x);
    }
    if x == x.floor() {
        return f64::INFINITY;
    }
    if x > FAR { negative(x) } else { reflected(x) }
}
