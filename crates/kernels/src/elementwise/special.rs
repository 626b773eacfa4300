//! `lgamma`, `digamma` and its derivative of numbers of single precision in double precision, without branches. The
//! functions of doubles are in `crate::special`.

use crate::simd::math_f64;

/// Whether the quick functions below hold: for positive numbers.
#[inline(always)]
pub(super) fn is_quick(x: f64) -> bool {
    (x > 0.0) & (x < f64::INFINITY)
}

/// Whether [`quick_lgamma`] holds: for positive numbers apart from its zeros, where its relative
/// accuracy would suffer.
#[inline(always)]
pub(super) fn is_quick_lgamma(x: f64) -> bool {
    const NEAR: f64 = 1.0 / 1024.0;
    is_quick(x) & ((x - 1.0).abs() > NEAR) & ((x - 2.0).abs() > NEAR)
}

/// Steps by which the quick functions move small numbers up, to where their series hold.
const STEPS: usize = 10;

/// `x`, moved up by [`STEPS`] if it is small.
#[inline(always)]
fn moved(x: f64) -> f64 {
    if x < STEPS as f64 { x + STEPS as f64 } else { x }
}

/// A polynomial, its highest coefficient first.
#[inline(always)]
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    let mut sum = 0.0;
    for &coefficient in coefficients {
        sum = x.mul_add(sum, coefficient);
    }
    sum
}

/// `digamma` with about 50 bits, DLMF 5.5.2 and 5.11.2.
#[inline(always)]
pub(super) fn quick_digamma(x: f64) -> f64 {
    let y = moved(x);
    // The sum of `1 / (x + i)` as one fraction.
    let (mut over, mut under) = (0.0_f64, 1.0);
    for i in 0..STEPS {
        let factor = x + i as f64;
        over = over.mul_add(factor, under);
        under *= factor;
    }
    let steps = if x < STEPS as f64 { over / under } else { 0.0 };
    let inverse = 1.0 / y;
    let z = inverse * inverse;
    let series = [
        1.0 / 12.0,
        -691.0 / 32760.0,
        1.0 / 132.0,
        -1.0 / 240.0,
        1.0 / 252.0,
        -1.0 / 120.0,
        1.0 / 12.0,
    ];
    math_f64::log(y) - 0.5 * inverse - z * polynomial(z, &series) - steps
}

/// The derivative of `digamma` with about 50 bits, DLMF 5.15.5 and 5.15.8.
#[inline(always)]
pub(super) fn quick_trigamma(x: f64) -> f64 {
    let y = moved(x);
    let (mut over, mut under) = (0.0_f64, 1.0);
    for i in 0..STEPS {
        let factor = (x + i as f64) * (x + i as f64);
        over = over.mul_add(factor, under);
        under *= factor;
    }
    let steps = if x < STEPS as f64 { over / under } else { 0.0 };
    let inverse = 1.0 / y;
    let z = inverse * inverse;
    let series =
        [7.0 / 6.0, -691.0 / 2730.0, 5.0 / 66.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0];
    inverse + 0.5 * z + z * inverse * polynomial(z, &series) + steps
}

/// `lgamma` with about 48 bits after the point, DLMF 5.5.1 and 5.11.1.
#[inline(always)]
pub(super) fn quick_lgamma(x: f64) -> f64 {
    const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;
    let y = moved(x);
    let mut product = 1.0;
    for i in 0..STEPS {
        product *= x + i as f64;
    }
    let steps = if x < STEPS as f64 { math_f64::log(product) } else { 0.0 };
    let inverse = 1.0 / y;
    let z = inverse * inverse;
    let series = [1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    let tail = inverse * polynomial(z, &series);
    (y - 0.5).mul_add(math_f64::log(y), HALF_LOG_TAU - y) + tail - steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::log_gamma::lgamma;

    #[test]
    fn quick_functions_are_those_of_the_library() {
        let mut x = 1e-30;
        while x < 1e30 {
            let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-10 * b.abs(), "{x} {a} {b}");
            if (x - 1.461_632_f64).abs() > 1e-3 {
                close(quick_digamma(x), crate::special::gamma::digamma(x));
            }
            if is_quick_lgamma(x) {
                close(quick_lgamma(x), lgamma(x));
            }
            x *= 1.0173;
        }
        let pi = std::f64::consts::PI;
        assert!((quick_trigamma(1.0) - pi * pi / 6.0).abs() < 1e-14);
        assert!((quick_trigamma(0.5) - pi * pi / 2.0).abs() < 1e-14);
        assert!((quick_trigamma(20.0) - 0.051_270_822_93).abs() < 1e-10);
    }
}
