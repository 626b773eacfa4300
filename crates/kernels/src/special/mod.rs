//! The special functions of one or two numbers, in double precision.
//!
//! Numbers in, numbers out, one file per family; `elementwise::special_function` runs them over tensors. Each states its
//! bound, which `python/tests/test_special_values.py` checks: in units of the last place (ULP), or near the zeros of a
//! function that swings in units of its amplitude. Smooth factors come as polynomials on pieces of an interval
//! (`table`, made by `fit_special.py`); what makes a factor steep (powers of e, angles) is computed with the rounding error
//! of its argument. Everything here is inlined into loops that have fused multiply-add.

pub(crate) mod airy;
pub(crate) mod angle;
pub(crate) mod bessel;
pub(crate) mod elementary;
pub(crate) mod error;
pub(crate) mod gamma;
pub(crate) mod implicit;
pub(crate) mod incomplete;
pub(crate) mod log_gamma;
pub(crate) mod modified;
pub(crate) mod normal;
pub(crate) mod polynomial;
pub(crate) mod single;
pub(crate) mod single_gamma;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod zeta;

/// `LANES` numbers by their place. (A closure for each, as `array::from_fn` wants it, might not be compiled with the caller,
/// whose instructions it needs.)
macro_rules! lanes {
    ($i:ident => $value:expr) => {{
        let mut values = [0.0; LANES];
        for $i in 0..LANES {
            values[$i] = $value;
        }
        values
    }};
}
use lanes;

/// A product and what rounding took from it.
#[inline(always)]
fn product(a: f64, b: f64) -> (f64, f64) {
    let high = a * b;
    (high, a.mul_add(b, -high))
}

/// A sum and what rounding took from it (Knuth's two-sum, for numbers of any order).
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let high = a + b;
    let part = high - a;
    (high, (a - (high - part)) + (b - part))
}

/// A polynomial, its lowest coefficient first.
#[inline(always)]
fn polynomial_at(t: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |value, &c| value.mul_add(t, c))
}
