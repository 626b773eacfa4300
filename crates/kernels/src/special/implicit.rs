//! How a sample moves with a parameter of its distribution when its probability stays: `dx/dα = -(∂F/∂α)(x; α) / f(x; α)`, with
//! `F` the distribution function and `f` its derivative.
//!
//! Source: M. Figurnov, S. Mohamed, A. Mnih, "Implicit Reparameterization Gradients", 2018, eq. 5. The functions `F` are the
//! incomplete gamma and beta functions (DLMF chapter 8), whose series and continued fractions are evaluated together with
//! their derivatives by the parameter ([`Dual`]). Each side of the distribution is integrated where nothing cancels:
//! `∂F/∂α` is the integral of `f(t) (ln t - E ln t)` below `x`, and minus that above. Where parameters are large, this
//! integral is a smooth peak, and quadrature gives it at once. Errors are below 1e-12 of the value.

use super::gamma::digamma;
use crate::simd::math_f64;
use std::ops::{Add, Div, Mul};

/// A number and its derivative.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl Add for Dual {
    type Output = Dual;
    #[inline(always)]
    fn add(self, other: Dual) -> Dual {
        Dual(self.0 + other.0, self.1 + other.1)
    }
}

impl Mul for Dual {
    type Output = Dual;
    #[inline(always)]
    fn mul(self, other: Dual) -> Dual {
        Dual(self.0 * other.0, self.0.mul_add(other.1, self.1 * other.0))
    }
}

impl Div for Dual {
    type Output = Dual;
    #[inline(always)]
    fn div(self, other: Dual) -> Dual {
        let ratio = self.0 / other.0;
        Dual(ratio, (self.1 - ratio * other.1) / other.0)
    }
}

/// The size of a term, relative to the sum, from which on terms are not added.
const TINY: f64 = 1e-16;
/// The distance of a factor from 1, which is rounded where a term is not, from which on a continued
/// fraction is complete.
const CLOSE: f64 = 2e-15;
/// Terms or factors after which a sum counts as complete: far more than are needed where it is used.
const MOST: u32 = 4000;

/// Whether a factor changes neither the value that it multiplies nor its derivative.
#[inline(always)]
fn is_one(factor: Dual, value: Dual) -> bool {
    (factor.0 - 1.0).abs() < CLOSE && (value.0 * factor.1).abs() <= CLOSE * value.1.abs()
}

/// From here on a parameter counts as large.
const LARGE: f64 = 100.0;

/// `∂x/∂a` of a sample `x` of the gamma distribution with shape `a` and rate 1.
///
/// At `x = 0` it is 0. NaN for a shape that is not positive and for `x` outside of `0..∞`.
#[inline(always)]
pub(crate) fn gamma(a: f64, x: f64) -> f64 {
    if !(a > 0.0 && a.is_finite() && x >= 0.0 && x.is_finite()) {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    if a > LARGE {
        return gamma_by_quadrature(a, x);
    }
    if x <= a + 0.5 { gamma_by_series(a, x) } else { gamma_by_fraction(a, x) }
}

/// The gradient with `F = x^a e^-x / Γ(a+1) S` and `S` the sum of `x^n / ((a+1) .. (a+n))` (DLMF
/// 8.7.1).
#[inline(always)]
fn gamma_by_series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term) = (Dual(1.0, 0.0), Dual(1.0, 0.0));
    for n in 1..MOST {
        term = term * (Dual(x, 0.0) / Dual(a + f64::from(n), 1.0));
        sum = sum + term;
        if term.0 <= TINY * sum.0 && term.1.abs() <= TINY * sum.1.abs() {
            break;
        }
    }
    x / a * (sum.0 * (digamma(a + 1.0) - math_f64::log(x)) - sum.1)
}

/// The gradient with `1 - F = x^a e^-x / Γ(a) K` and `K` the continued fraction DLMF 8.9.2, by
/// Lentz's method.
#[inline(always)]
fn gamma_by_fraction(a: f64, x: f64) -> f64 {
    let one = Dual(1.0, 0.0);
    let mut under = Dual(x + 1.0 - a, -1.0);
    let mut inverse = one / under;
    let mut value = inverse;
    let mut ratio = Dual(1e300, 0.0);
    for n in 1..MOST {
        let n = f64::from(n);
        let over = Dual(n * (a - n), n);
        under.0 += 2.0;
        inverse = one / (over * inverse + under);
        ratio = under + over / ratio;
        let factor = inverse * ratio;
        value = value * factor;
        if is_one(factor, value) {
            break;
        }
    }
    x * (value.0 * (math_f64::log(x) - digamma(a)) + value.1)
}

/// The gradient as an integral: with `t = x e^v`, that of `e^(a v - x (e^v - 1)) |ln t - ψ(a)|`
/// over `v`, outwards from the sample.
#[inline(always)]
fn gamma_by_quadrature(a: f64, x: f64) -> f64 {
    let mean = digamma(a);
    let log_x = math_f64::log(x);
    let start = if log_x > mean { 1.0 } else { -1.0 } / a.sqrt();
    let exponent = |v: f64| a * v - x * math_f64::expm1(v);
    let slope = |v: f64| a - x * math_f64::exp(v);
    let weighted = |v: f64| math_f64::exp(exponent(v)) * (log_x + v - mean).abs();
    x * integral(reach(start, exponent, slope), weighted)
}

/// `-(∂F/∂α) / f / (1 - x)` of a sample `x` of the beta distribution with parameters `α` and `total - α`.
///
/// 0 at `x = 0`, and where `α` is all there is. NaN unless `0 < α <= total < ∞` and `x` is in `0..=1`.
#[inline(always)]
pub(crate) fn dirichlet(x: f64, alpha: f64, total: f64) -> f64 {
    let beta = total - alpha;
    if !(alpha > 0.0 && beta >= 0.0 && total.is_finite() && (0.0..=1.0).contains(&x)) {
        return f64::NAN;
    }
    if x == 0.0 || beta == 0.0 {
        return 0.0;
    }
    if alpha > LARGE && beta > LARGE && x < 1.0 {
        return dirichlet_by_quadrature(x, alpha, beta);
    }
    let distance = math_f64::log(x) - (digamma(alpha) - digamma(total));
    if x * (total + 2.0) < alpha + 1.0 {
        let h = beta_fraction(Dual(alpha, 1.0), Dual(beta, 0.0), x);
        -x / alpha * (h.0 * (distance - 1.0 / alpha) + h.1)
    } else {
        let h = beta_fraction(Dual(beta, 0.0), Dual(alpha, 1.0), 1.0 - x);
        x / beta * (h.0 * distance + h.1)
    }
}

/// The continued fraction `h` in `F = x^p (1-x)^q / (p B(p, q)) h`, DLMF 8.17.22, by Lentz's method.
#[inline(always)]
fn beta_fraction(p: Dual, q: Dual, x: f64) -> Dual {
    let number = |n: f64| Dual(n, 0.0);
    let (one, x, total) = (number(1.0), number(x), p + q);
    let mut ratio = one;
    let first = number(-1.0) * total * x / (p + one);
    let mut inverse = one / (one + first);
    let mut value = inverse;
    let mut multiply = |over: Dual| {
        inverse = one / (one + over * inverse);
        ratio = one + over / ratio;
        let factor = inverse * ratio;
        value = value * factor;
        (value, factor)
    };
    for m in 1..MOST {
        let m = f64::from(m);
        let (before, at, after) =
            (p + number(2.0 * m - 1.0), p + number(2.0 * m), p + number(2.0 * m + 1.0));
        multiply(number(m) * (q + number(-m)) * x / (before * at));
        let (value, factor) =
            multiply(number(-1.0) * (p + number(m)) * (total + number(m)) * x / (at * after));
        if is_one(factor, value) {
            return value;
        }
    }
    value
}

/// With `t` that has `ln (t / (1-t))` higher by `v` than the sample has, the integral of `t^α (1-t)^β |ln t - E ln t|` over `v`,
/// outwards from the sample and divided by its `x^α (1-x)^β`.
#[inline(always)]
fn dirichlet_by_quadrature(x: f64, alpha: f64, beta: f64) -> f64 {
    let total = alpha + beta;
    let distance = math_f64::log(x) - (digamma(alpha) - digamma(total));
    let start = if distance > 0.0 { 1.0 } else { -1.0 } * (total / (alpha * beta)).sqrt();
    // ln((1-x) / (1-t)); ln(t/x) is what it lacks of `v`.
    let rest = |v: f64| math_f64::log1p(x * math_f64::expm1(v));
    let exponent = |v: f64| alpha * v - total * rest(v);
    let slope = |v: f64| alpha - total * x * math_f64::exp(v - rest(v));
    let weighted = |v: f64| math_f64::exp(exponent(v)) * (distance + v - rest(v)).abs();
    x * integral(reach(start, exponent, slope), weighted)
}

/// Where a concave exponent that is 0 at 0 has fallen to -45, on the side of `start`, about: by Newton's method, from nine times
/// `start`, which is what a normal distribution needs.
#[inline(always)]
fn reach(start: f64, exponent: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> f64 {
    let mut v = 9.0 * start;
    for _ in 0..60 {
        let next = v - (exponent(v) + 45.0) / slope(v);
        // (Behind the start, or nowhere, if the exponent still rises here.)
        let next = if next.is_finite() && next * start > 0.0 { next } else { 2.0 * v };
        let is_near = (next - v).abs() < 1e-3 * v.abs();
        v = next;
        if is_near {
            break;
        }
    }
    v
}

/// Nodes and weights of Gauss and Legendre's rule of 16 points, those of positive nodes (DLMF 3.5.6).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];
/// Parts of a range that the rule is used on.
const PARTS: u32 = 3;

/// The integral of `f` between 0 and `end`, positive whichever is the larger.
#[inline(always)]
fn integral(end: f64, f: impl Fn(f64) -> f64) -> f64 {
    let half = end / f64::from(2 * PARTS);
    let mut sum = 0.0;
    for part in 0..PARTS {
        let middle = half * f64::from(2 * part + 1);
        for (node, weight) in RULE {
            sum += weight * (f(middle - half * node) + f(middle + half * node));
        }
    }
    sum * half.abs()
}

#[cfg(test)]
mod tests {
    use super::{dirichlet, gamma};

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{a:e} {b:e}");
    }

    #[test]
    fn samples_of_one_are_powers_of_their_probability() {
        // F = x^α for β = 1: dx/dα = -x ln(x) / α; the scaled gradient has another 1 / (1 - x).
        for alpha in [0.01, 0.7, 1.0, 8.0, 90.0] {
            for x in [1e-9_f64, 0.2, 0.5, 0.9, 0.999] {
                let expected = -x * x.ln() / alpha / (1.0 - x);
                close(dirichlet(x, alpha, alpha + 1.0), expected, 1e-12);
            }
        }
    }

    #[test]
    fn both_ways_agree_where_parameters_begin_to_be_large() {
        let (below, above) = (100.0, 100.0_f64.next_up());
        for x in [40.0, 80.0, 99.0, 100.6, 101.0, 130.0, 190.0] {
            close(gamma(above, x), gamma(below, x), 1e-12);
        }
        for x in [0.2, 0.33, 0.3334, 0.4, 0.6] {
            close(dirichlet(x, above, 300.0), dirichlet(x, below, 300.0), 1e-12);
        }
    }

    #[test]
    fn large_shapes_move_their_samples_as_normal_numbers_move() {
        // x = a + z √a + (z² - 1) / 3 + O(a^(-1/2)): dx/da = 1 + z / (2 √a) + O(a^(-3/2)).
        for z in [-3.0, -1.0, 0.0, 2.0, 4.0] {
            let a = 1e12_f64;
            let x = a + z * a.sqrt() + (z * z - 1.0) / 3.0;
            close(gamma(a, x), 1.0 + z / (2.0 * a.sqrt()), 1e-8);
        }
    }

    #[test]
    fn gradients_at_the_ends_and_of_impossible_arguments_are_known() {
        assert_eq!(
            (gamma(2.0, 0.0), dirichlet(0.0, 2.0, 3.0), dirichlet(1.0, 2.0, 2.0)),
            (0.0, 0.0, 0.0)
        );
        let impossible = [
            gamma(0.0, 1.0),
            gamma(-1.0, 1.0),
            gamma(f64::NAN, 1.0),
            gamma(1.0, f64::INFINITY),
            gamma(1.0, -1.0),
            dirichlet(1.5, 1.0, 2.0),
            dirichlet(0.5, 3.0, 2.0),
            dirichlet(0.5, f64::NAN, 2.0),
            dirichlet(0.5, 1.0, f64::INFINITY),
        ];
        assert!(impossible.iter().all(|v| v.is_nan()), "{impossible:?}");
    }
}
