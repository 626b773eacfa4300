//! The incomplete gamma functions `P(a, x)` and `Q(a, x) = 1 - P(a, x)`, DLMF chapter 8.
//!
//! Four methods, each used where it converges fast and does not cancel: the series for `P` (DLMF 8.7.1), the continued fraction for `Q` (DLMF
//! 8.9.2), for small `x` and `a` a series for `Q`, and for large `a` near `x` Temme's uniform expansion (DLMF 8.12). The
//! smaller of the two is computed, the other one is what it leaves of 1.
//! Errors are within about `16 + 4 |ln value|` ULP: the exponent of the common factor is a rounded difference.

use super::gamma::{gamma_of_next, log_gamma_of_next, stirling};
use super::normal::erfcx_positive;
use super::polynomial_at;
use super::table::gamma::LOG_PART;
use super::table::temme::TEMME;
use crate::simd::math_f64;
use std::f64::consts::PI;

/// One of the two functions, and which.
enum GammaTail {
    P(f64),
    Q(f64),
}

/// From here on `a` counts as large.
const LARGE: f64 = 32.0;
/// What part of a sum a term is that need not be added: in double precision, and in single precision, which has half the digits
/// and takes little more than half the terms.
pub(crate) const TINY: f64 = 1e-17;
pub(crate) const TINY_SINGLE: f64 = 1e-11;

/// `a (m - ln(1 + m))` with `m = x/a - 1`: minus the exponent of the common factor by its largest value.
#[inline(always)]
fn distance(a: f64, x: f64) -> f64 {
    let m = (x - a) / a;
    if m > -0.5 && m < 1.0 {
        a * (m * m) * LOG_PART.at(m)
    } else {
        (x - a) - a * math_f64::log(x / a)
    }
}

/// `x^a e^-x / Γ(a + 1)`.
#[inline(always)]
fn factor(a: f64, x: f64) -> f64 {
    if a >= 16.0 {
        return math_f64::exp(-distance(a, x) - stirling(a)) / (2.0 * PI * a).sqrt();
    }
    if x < 700.0 {
        return math_f64::pow(x, a) * math_f64::exp(-x) / gamma_of_next(a);
    }
    math_f64::exp(a * math_f64::log(x) - x - math_f64::log(gamma_of_next(a)))
}

/// `P` by DLMF 8.7.1; for `x` up to `a + 1`, or smaller.
#[inline(always)]
fn by_series(a: f64, x: f64, tiny: f64) -> f64 {
    let (mut sum, mut term, mut at) = (1.0, 1.0, a);
    while term > sum * tiny {
        at += 1.0;
        term *= x / at;
        sum += term;
    }
    sum * factor(a, x)
}

/// `Q` by DLMF 8.9.2 (Lentz's evaluation); for `x` from `a + 1` upwards.
#[inline(always)]
fn by_fraction(a: f64, x: f64, tiny: f64) -> f64 {
    let mut under = x + 1.0 - a;
    let mut ratio = 1e300;
    let mut inverse = 1.0 / under;
    let mut value = inverse;
    for i in 1..2000 {
        let i = f64::from(i);
        let over = i * (a - i);
        under += 2.0;
        inverse = 1.0 / over.mul_add(inverse, under);
        ratio = under + over / ratio;
        let change = inverse * ratio;
        value *= change;
        // (A change is rounded where a term is not.)
        if (change - 1.0).abs() < 20.0 * tiny {
            break;
        }
    }
    value * a * factor(a, x)
}

/// `Q` for small `x` and `a`, where `1 - P` would cancel: with `u = x^a / Γ(a+1)` it is `(1 - u) - a u Σ (-x)^n / ((a+n) n!)`.
#[inline(always)]
fn by_small_series(a: f64, x: f64, tiny: f64) -> f64 {
    let (mut sum, mut term, mut n) = (0.0f64, 1.0, 0.0);
    loop {
        n += 1.0;
        term *= -x / n;
        let step = term / (a + n);
        sum += step;
        if step.abs() <= sum.abs() * tiny {
            break;
        }
    }
    let exponent = a * math_f64::log(x) - log_gamma_of_next(a);
    -math_f64::expm1(exponent) - a * math_f64::exp(exponent) * sum
}

/// `P` by Temme's expansion; for `a` from 32 upwards and `x` within four tenths of it.
#[inline(always)]
fn by_expansion(a: f64, x: f64) -> GammaTail {
    let m = (x - a) / a;
    let eta = m * (2.0 * LOG_PART.at(m)).sqrt();
    let inverse = 1.0 / a;
    let sum =
        TEMME.iter().rev().fold(0.0, |sum: f64, row| sum.mul_add(inverse, polynomial_at(eta, row)));
    let rest = sum / (2.0 * PI * a).sqrt();
    let z = eta.abs() * (0.5 * a).sqrt();
    let power = math_f64::exp(-distance(a, x));
    let half = 0.5 * erfcx_positive(z);
    if m < 0.0 { GammaTail::P(power * (half - rest)) } else { GammaTail::Q(power * (half + rest)) }
}

#[inline(always)]
fn smaller(a: f64, x: f64, tiny: f64) -> GammaTail {
    if a >= LARGE && (x - a).abs() < 0.4 * a {
        return by_expansion(a, x);
    }
    if x <= 1.1 {
        let is_small = if x < 0.5 { a * -math_f64::log(x) < 0.4 } else { a < 1.1 * x };
        return if is_small {
            GammaTail::Q(by_small_series(a, x, tiny))
        } else {
            GammaTail::P(by_series(a, x, tiny))
        };
    }
    // For small `a` most of it lies below.
    let middle = if a < 2.0 { a } else { a + 1.0 };
    if x < middle {
        GammaTail::P(by_series(a, x, tiny))
    } else {
        GammaTail::Q(by_fraction(a, x, tiny))
    }
}

/// What `P` is at the limits of its arguments.
#[inline(always)]
fn at_limit(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 {
        return Some(0.0);
    }
    if a.is_infinite() {
        return Some(if x.is_infinite() { f64::NAN } else { 0.0 });
    }
    x.is_infinite().then_some(1.0)
}

/// `P(a, x)`: the regularised lower incomplete gamma function; NaN for negative arguments. Terms of a `tiny` part are left out.
#[inline(always)]
pub(crate) fn igamma(a: f64, x: f64, tiny: f64) -> f64 {
    if let Some(value) = at_limit(a, x) {
        return value;
    }
    match smaller(a, x, tiny) {
        GammaTail::P(value) => value,
        GammaTail::Q(value) => 1.0 - value,
    }
}

/// `Q(a, x)`: the regularised upper incomplete gamma function, as [`igamma`].
#[inline(always)]
pub(crate) fn igammac(a: f64, x: f64, tiny: f64) -> f64 {
    if let Some(value) = at_limit(a, x) {
        return 1.0 - value;
    }
    match smaller(a, x, tiny) {
        GammaTail::P(value) => 1.0 - value,
        GammaTail::Q(value) => value,
    }
}
