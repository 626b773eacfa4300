//! The derivatives of the digamma function.
//!
//! `polygamma(n, x) = (-1)^(n+1) n! ζ(n+1, x)` with Hurwitz's zeta function, which is summed directly up to an
//! argument of at least 12 and finished by the Euler-Maclaurin formula (error below 1e-15 relative).

use super::dense::run1;
use super::math::Real;
use crate::{Error, Iter, Result};

/// `B_2j / (2j)!` for j = 1, 2, ...
const BERNOULLI: [f64; 9] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
    43_867.0 / 5_109_094_217_170_944_000.0,
];

/// `sum over k >= 0 of (q + k)^-s` for a whole `s >= 2`.
fn zeta(s: i32, q: f64) -> f64 {
    if q <= 0.0 && q == q.floor() {
        return f64::INFINITY;
    }
    let (mut sum, mut at) = (0.0, q);
    while at < 12.0 {
        sum += at.powi(-s);
        at += 1.0;
    }
    let order = f64::from(s);
    let mut term = at.powi(-s);
    sum += at * term / (order - 1.0) + 0.5 * term;
    // The factors s (s+1) ... (s+2j-2) at^(-s-2j+1), two more of each per term.
    let mut rising = order;
    for (j, factor) in BERNOULLI.iter().enumerate() {
        term /= at;
        sum += factor * rising * term;
        term /= at;
        let next = order + 2.0 * j as f64 + 1.0;
        rising *= next * (next + 1.0);
    }
    sum
}

/// `π^2 / sin^2(πx) - trigamma(1 - x)` for negative arguments, whose direct sum would be long.
fn trigamma(x: f64) -> f64 {
    if x >= 0.5 || x == x.floor() {
        return zeta(2, x);
    }
    let sine = (std::f64::consts::PI * (x - x.round())).sin();
    let whole = std::f64::consts::PI / sine;
    whole * whole - zeta(2, 1.0 - x)
}

pub(super) fn polygamma_of(n: i32, x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.is_infinite() {
        return if x > 0.0 { 0.0 } else { f64::NAN };
    }
    let factorial: f64 = (1..=n).map(f64::from).product();
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    sign * factorial * if n == 1 { trigamma(x) } else { zeta(n + 1, x) }
}

map!(narrow PolygammaMap<T: Real>[n => i32](x: T) -> T { T::of(polygamma_of(n, x.wide())) });
/// The `n`-th derivative of `digamma`; infinite at 0 and the negative whole numbers.
///
/// # Errors
/// For a negative `n`.
pub fn polygamma(iter: &mut Iter, n: i64) -> Result<()> {
    if n < 0 {
        return Err(Error::runtime("polygamma(n, x) does not support negative n.".into()));
    }
    if n == 0 {
        return super::digamma(iter);
    }
    if n == 1 {
        return compute!(iter.input_dtype(0), "polygamma", [float], T => {
            run1::<super::unary::Trigamma<T>>(iter, ())
        });
    }
    let n = n.min(10_000) as i32;
    compute!(iter.input_dtype(0), "polygamma", [float], T => run1::<PolygammaMap<T>>(iter, n))
}

#[cfg(test)]
mod tests {
    use super::polygamma_of;

    #[test]
    fn polygamma_meets_known_values() {
        let pi = std::f64::consts::PI;
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 2e-14 * b.abs(), "{a} {b}");
        close(polygamma_of(1, 1.0), pi * pi / 6.0);
        close(polygamma_of(1, 0.5), pi * pi / 2.0);
        close(polygamma_of(1, -0.5), pi * pi / 2.0 + 4.0);
        close(polygamma_of(2, 1.0), -2.0 * 1.202_056_903_159_594_3);
        close(polygamma_of(3, 1.0), pi.powi(4) / 15.0);
    }
}
