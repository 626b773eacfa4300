//! Hurwitz's zeta function and the derivatives of the digamma function that it gives, DLMF 25.11 and 5.15.
//!
//! `ζ(s, q) = sum over k >= 0 of (q + k)^-s`, summed directly to an argument of at least `s + 10`, and finished by the
//! Euler-Maclaurin formula (DLMF 25.11.7; error below 1e-16 relative).

use super::sum;
use crate::simd::math_f64;

/// `B_2j / (2j)!` for j = 1, 2, ...
pub(super) const BERNOULLI: [f64; 11] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
    43_867.0 / 5_109_094_217_170_944_000.0,
    -174_611.0 / 802_857_662_698_291_200_000.0,
    77_683.0 / 14_101_100_039_391_805_440_000.0,
];

/// `(q + k)^-s` with the rounding error of the sum.
#[inline(always)]
fn term_at(s: f64, q: f64, k: f64) -> f64 {
    let (base, rest) = sum(q, k);
    let power = math_f64::pow(base, -s);
    if rest == 0.0 { power } else { (-s * (rest / base)).mul_add(power, power) }
}

/// `ζ(s, q)` for `s > 1` and positive `q`.
#[inline(always)]
fn zeta_positive(s: f64, q: f64) -> f64 {
    let least = s + 10.0;
    let (mut total, mut k) = (0.0, 0.0);
    while q + k < least {
        let term = term_at(s, q, k);
        total += term;
        k += 1.0;
        if term <= total * 1e-19 {
            return total;
        }
    }
    let at = q + k;
    let term = term_at(s, q, k);
    let inverse = 1.0 / at;
    // The first part of the rest is representable longer than the term.
    let lead = if term > 1e-280 {
        at * (term / (s - 1.0))
    } else {
        math_f64::pow(at, 1.0 - s) / (s - 1.0)
    };
    let mut rest = lead + 0.5 * term;
    // The factors s (s+1) ... (s+2j-2) at^(-s-2j+1), two more of each per term.
    let mut factor = term * (s * inverse);
    for (j, bernoulli) in BERNOULLI.iter().enumerate() {
        let step = bernoulli * factor;
        rest += step;
        if step.abs() <= rest * 1e-18 {
            break;
        }
        let next = 2.0f64.mul_add(j as f64, s + 1.0);
        factor *= (next * inverse) * ((next + 1.0) * inverse);
    }
    total + rest
}

/// `ζ(s, q)` for a whole `s > 1` and a negative `q` that is not whole: the sum over all whole numbers has the period 1, and the
/// part of it that is not wanted is that of positive numbers.
fn zeta_negative(s: f64, q: f64) -> f64 {
    let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
    let part = q - q.round();
    let below = if part < 0.0 { -part } else { 1.0 - part };
    let whole_sum = zeta_positive(s, if part < 0.0 { 1.0 + part } else { part })
        + sign * zeta_positive(s, below);
    whole_sum - sign * zeta_positive(s, 1.0 - q)
}

/// `ζ(s, q)`, for `q > 0` within 8 ULP: infinite for `s = 1` and where a term is, NaN for `s < 1`, and for a negative `q` unless `s` is
/// whole.
#[inline(always)]
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s < 1.0 || s.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q > 0.0 {
        return zeta_limited(s, q);
    }
    if q == q.floor() {
        return f64::INFINITY;
    }
    if s == s.floor() && s.is_finite() { zeta_negative(s, q) } else { f64::NAN }
}

/// `ζ(s, q)` for positive `q`, infinities included.
#[inline(always)]
fn zeta_limited(s: f64, q: f64) -> f64 {
    if q.is_infinite() {
        return 0.0;
    }
    if s.is_infinite() {
        return math_f64::pow(q, -s);
    }
    zeta_positive(s, q)
}

/// The derivative of digamma for positive arguments, DLMF 5.15.5 and 5.15.8: the one that is asked for most.
#[inline(always)]
fn trigamma(x: f64) -> f64 {
    /// The Bernoulli numbers `B_2k`.
    const NUMBERS: [f64; 8] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
    ];
    let (mut at, mut total) = (x, 0.0);
    while at < 12.0 {
        total += 1.0 / (at * at);
        at += 1.0;
    }
    let inverse = 1.0 / at;
    let z = inverse * inverse;
    let tail = 0.5 * z + z * inverse * super::polynomial_at(z, &NUMBERS);
    total + (inverse + tail)
}

/// The `n`-th derivative of digamma for a whole `n > 0`, `(-1)^(n+1) n! ζ(n+1, x)`: infinite at 0 and the negative whole numbers.
#[inline(always)]
pub(crate) fn polygamma(n: f64, x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.is_infinite() {
        return if x > 0.0 { 0.0 } else { f64::NAN };
    }
    if n == 1.0 && x > 0.0 {
        return trigamma(x);
    }
    let value = factorial_zeta(n, x);
    if n % 2.0 == 0.0 { -value } else { value }
}

/// `n! ζ(n+1, x)`, also where one of the factors is beyond the range of doubles, as the factorial is from 171 on.
fn factorial_zeta(n: f64, x: f64) -> f64 {
    const LARGEST: f64 = 170.0;
    const LEAST: f64 = 1e-290;
    if x <= 0.0 && x == x.floor() {
        return f64::INFINITY;
    }
    if n <= LARGEST {
        let sum = zeta(n + 1.0, x);
        if sum.is_finite() && sum.abs() > LEAST {
            return (2..=n as i64).fold(1.0, |product, i| product * i as f64) * sum;
        }
    }
    let largest = if x < 0.0 { x - x.round() } else { x };
    let ratio = scaled_zeta(n + 1.0, x, largest);
    let size = largest.abs();
    let logarithm = super::gamma::log_gamma(n + 1.0) - (n + 1.0) * math_f64::log(size);
    let sign = if largest < 0.0 && n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * ratio * math_f64::exp(logarithm)
}

/// `ζ(s, q) |largest|^s` by its direct terms where these fall quickly, else by the formula for the quotient.
fn scaled_zeta(s: f64, q: f64, largest: f64) -> f64 {
    let size = largest.abs();
    if q < 0.0 {
        // The next term lies on the other side of 0.
        let next = math_f64::pow(size / (1.0 - size), s);
        return if s % 2.0 == 0.0 { 1.0 + next } else { 1.0 - next };
    }
    let at = q;
    if at >= 0.5 * s {
        let mut factor = s / at;
        let mut rest = at / (s - 1.0) + 0.5;
        for (j, bernoulli) in BERNOULLI.iter().enumerate() {
            rest += bernoulli * factor;
            let next = 2.0f64.mul_add(j as f64, s + 1.0);
            factor *= (next / at) * ((next + 1.0) / at);
        }
        return rest;
    }
    let (mut total, mut k) = (0.0, 0.0);
    loop {
        let term = math_f64::exp(-s * math_f64::log1p(k / q));
        total += term;
        k += 1.0;
        if term <= total * 1e-19 {
            return total;
        }
    }
}
