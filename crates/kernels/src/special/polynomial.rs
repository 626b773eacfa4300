//! Orthogonal polynomials of one argument, DLMF chapter 18.
//!
//! The order is a number whose whole part counts; of negative orders (and NaN) the polynomial is 0. They are summed by their recurrences (DLMF
//! 18.9.1); Chebyshev's between -1 and 1 by their definition (DLMF 18.5.1 to 18.5.4). As in PyTorch a recurrence that
//! overflows ends in NaN. The error grows with the order: a few units in the last place of the largest value that the polynomial has near `x`, for
//! each order. So does the time, but for Chebyshev's.

use super::lanes;
use crate::simd::math_f64;

/// Orders up to which Chebyshev's polynomials are summed between -1 and 1 too.
const FEW: i64 = 6;
/// Orders above which they are not summed anywhere.
const MANY: i64 = 1 << 16;

/// The whole part of an order; `None` for those whose polynomial is 0.
#[inline(always)]
fn order(n: f64) -> Option<i64> {
    let n = if n.is_nan() { -1 } else { n as i64 };
    (n >= 0).then_some(n)
}

/// The `n`-th of a sequence by its recurrence, whose argument is `x`.
#[inline(always)]
fn recur<S: PolynomialSequence>(x: f64, n: i64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    let (mut before, mut now, mut k) = (1.0, S::first(x), 1);
    while k < n && !now.is_nan() {
        (before, now) = (now, S::next(x, k as f64, before, now));
        k += 1;
    }
    now
}

/// A sequence of polynomials as loops need it: the `n`-th at one number, and by recurrence at several.
pub(crate) trait PolynomialSequence {
    /// The polynomial of any order; `limit` is the order above which it is NaN, if the sequence has one.
    fn at(x: f64, n: f64, limit: f64) -> f64;
    /// The largest order up to which [`PolynomialSequence::at`] is the recurrence everywhere, or equal to it.
    fn recurs_up_to(limit: f64) -> f64;
    /// What the recurrence runs over.
    #[inline(always)]
    fn argument(x: f64) -> f64 {
        x
    }
    /// The polynomial of order 1. (That of order 0 is 1.)
    fn first(x: f64) -> f64;
    /// The one after the `k`-th, which is `now`.
    fn next(x: f64, k: f64, before: f64, now: f64) -> f64;
}

/// Numbers whose recurrences run side by side.
const LANES: usize = 16;

/// The polynomials of the orders `n` at `x`. Where neighbours have one order, which is the usual case, their recurrences run
/// side by side; the results are the same.
#[inline(always)]
pub(crate) fn line<S: PolynomialSequence>(out: &mut [f64], x: &[f64], n: &[f64], limit: f64) {
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    let ((x, x_rest), (n, n_rest)) = (x.as_chunks::<LANES>(), n.as_chunks::<LANES>());
    for ((out, x), n) in out.iter_mut().zip(x).zip(n) {
        if n[0] >= 1.0 && n[0] <= S::recurs_up_to(limit) && n.iter().all(|&other| other == n[0]) {
            *out = side_by_side::<S>(x, n[0]);
        } else {
            for i in 0..LANES {
                out[i] = S::at(x[i], n[i], limit);
            }
        }
    }
    for ((out, &x), &n) in out_rest.iter_mut().zip(x_rest).zip(n_rest) {
        *out = S::at(x, n, limit);
    }
}

/// As [`recur`], for one order from 1 upwards.
#[inline(always)]
fn side_by_side<S: PolynomialSequence>(x: &[f64; LANES], n: f64) -> [f64; LANES] {
    let mut before = [1.0; LANES];
    let x = lanes!(i => S::argument(x[i]));
    let mut now = lanes!(i => S::first(x[i]));
    for k in 1..n as i64 {
        let next = lanes!(i => S::next(x[i], k as f64, before[i], now[i]));
        (before, now) = (now, next);
    }
    now
}

/// The sign of a polynomial at -1.
#[inline(always)]
fn parity(n: i64) -> f64 {
    if n % 2 == 0 { 1.0 } else { -1.0 }
}

/// A value that depends on the order alone.
type OfOrder = fn(f64) -> f64;

/// `arcosh x`, for `x` above 1.
#[inline(always)]
fn hyperbolic_angle(x: f64) -> f64 {
    let above = x - 1.0;
    math_f64::log1p(above + (above * (above + 2.0)).sqrt())
}

/// Chebyshev's polynomials, by the recurrence of `S` where they are summed; `at_one` and `at_minus_one` are the values there, but for the
/// sign of the second;
/// `wave(n, θ)` is the value at `cos θ`, `growth(n, θ, is_negative)` that at `±cosh θ` but for its sign.
#[inline(always)]
fn chebyshev<S: PolynomialSequence>(
    x: f64,
    n: f64,
    (at_one, at_minus_one): (OfOrder, OfOrder),
    wave: fn(f64, f64) -> f64,
    growth: fn(f64, f64, bool) -> f64,
) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if x == 1.0 {
        return at_one(n as f64);
    }
    if x == -1.0 {
        return parity(n) * at_minus_one(n as f64);
    }
    if n > FEW && x.abs() < 1.0 {
        return wave(n as f64, math_f64::acos(x));
    }
    if n > MANY && x.abs() > 1.0 {
        let value = growth(n as f64, hyperbolic_angle(x.abs()), x < 0.0);
        let sign = if x < 0.0 { parity(n) } else { 1.0 };
        return if value.is_finite() { sign * value } else { f64::NAN };
    }
    recur::<S>(x, n)
}

fn one(_n: f64) -> f64 {
    1.0
}
fn next(n: f64) -> f64 {
    n + 1.0
}
fn odd(n: f64) -> f64 {
    n + n + 1.0
}

/// The first kind: `T_n(cos θ) = cos nθ`.
#[inline(always)]
fn chebyshev_t(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| math_f64::cos_of_any(n * angle);
    let growth = |n: f64, angle: f64, _| math_f64::cosh(n * angle);
    chebyshev::<ChebyshevT>(x, n, (one, one), wave, growth)
}
/// The second kind: `U_n(cos θ) = sin (n+1)θ / sin θ`.
#[inline(always)]
fn chebyshev_u(x: f64, n: f64) -> f64 {
    let wave =
        |n: f64, angle: f64| math_f64::sin_of_any((n + 1.0) * angle) / math_f64::sin_of_any(angle);
    let growth = |n: f64, angle: f64, _| math_f64::sinh((n + 1.0) * angle) / math_f64::sinh(angle);
    chebyshev::<ChebyshevU>(x, n, (next, next), wave, growth)
}
/// The third kind: `V_n(cos θ) = cos (n+1/2)θ / cos θ/2`.
#[inline(always)]
fn chebyshev_v(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| {
        math_f64::cos_of_any((n + 0.5) * angle) / math_f64::cos_of_any(0.5 * angle)
    };
    let growth = |n: f64, angle: f64, is_negative: bool| half_orders(n, angle, !is_negative);
    chebyshev::<ChebyshevV>(x, n, (one, odd), wave, growth)
}
/// The fourth kind: `W_n(cos θ) = sin (n+1/2)θ / sin θ/2`.
#[inline(always)]
fn chebyshev_w(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| {
        math_f64::sin_of_any((n + 0.5) * angle) / math_f64::sin_of_any(0.5 * angle)
    };
    let growth = |n: f64, angle: f64, is_negative: bool| half_orders(n, angle, is_negative);
    chebyshev::<ChebyshevW>(x, n, (odd, one), wave, growth)
}

/// `V_n(cosh θ)` if `is_third`, else `W_n(cosh θ)`; each is the other one at the opposite argument, but for the sign.
#[inline(always)]
fn half_orders(n: f64, angle: f64, is_third: bool) -> f64 {
    let (whole, half) = ((n + 0.5) * angle, 0.5 * angle);
    if is_third {
        math_f64::cosh(whole) / math_f64::cosh(half)
    } else {
        math_f64::sinh(whole) / math_f64::sinh(half)
    }
}

/// Declares the sequences: the polynomial of any order, the last order that is summed everywhere, first and next one.
macro_rules! sequences {
    ($($(#[$meta:meta])* $Name:ident, |$x:ident, $n:ident, $limit:pat_param| $at:expr, up to $most:expr,
        $first:expr, |$k:pat_param, $before:ident, $now:ident| $next:expr $(, of $argument:expr)?;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $Name;
        impl PolynomialSequence for $Name {
            #[inline(always)]
            fn at($x: f64, $n: f64, $limit: f64) -> f64 {
                $at
            }
            #[inline(always)]
            fn recurs_up_to($limit: f64) -> f64 {
                $most
            }
            $(
                #[inline(always)]
                fn argument($x: f64) -> f64 {
                    $argument
                }
            )?
            #[inline(always)]
            fn first($x: f64) -> f64 {
                $first
            }
            #[inline(always)]
            fn next($x: f64, $k: f64, $before: f64, $now: f64) -> f64 {
                $next
            }
        }
    )*};
}

sequences! {
    /// Chebyshev's of the first kind.
    ChebyshevT, |x, n, _| chebyshev_t(x, n), up to FEW as f64, x, |_, before, now| twice(x, before, now);
    /// Chebyshev's of the second kind.
    ChebyshevU, |x, n, _| chebyshev_u(x, n), up to FEW as f64, x + x, |_, before, now| twice(x, before, now);
    /// Chebyshev's of the third kind.
    ChebyshevV, |x, n, _| chebyshev_v(x, n), up to FEW as f64, x + x - 1.0,
        |_, before, now| twice(x, before, now);
    /// Chebyshev's of the fourth kind.
    ChebyshevW, |x, n, _| chebyshev_w(x, n), up to FEW as f64, x + x + 1.0,
        |_, before, now| twice(x, before, now);
    /// `T_n(2x - 1)`.
    ShiftedChebyshevT, |x, n, _| chebyshev_t(x + x - 1.0, n), up to FEW as f64, x,
        |_, before, now| twice(x, before, now), of x + x - 1.0;
    /// `U_n(2x - 1)`.
    ShiftedChebyshevU, |x, n, _| chebyshev_u(x + x - 1.0, n), up to FEW as f64, x + x,
        |_, before, now| twice(x, before, now), of x + x - 1.0;
    /// `V_n(2x - 1)`.
    ShiftedChebyshevV, |x, n, _| chebyshev_v(x + x - 1.0, n), up to FEW as f64, x + x - 1.0,
        |_, before, now| twice(x, before, now), of x + x - 1.0;
    /// `W_n(2x - 1)`.
    ShiftedChebyshevW, |x, n, _| chebyshev_w(x + x - 1.0, n), up to FEW as f64, x + x + 1.0,
        |_, before, now| twice(x, before, now), of x + x - 1.0;
    /// Hermite's of the physicists, NaN above the limit, where every value would be beyond the range.
    HermiteH, |x, n, limit| hermite::<HermiteH>(x, n, limit), up to limit, x + x,
        |k, before, now| (x + x) * now - 2.0 * k * before;
    /// Hermite's of the statisticians, NaN above the limit.
    HermiteHe, |x, n, limit| hermite::<HermiteHe>(x, n, limit), up to limit, x,
        |k, before, now| x * now - k * before;
    /// Laguerre's polynomials.
    LaguerreL, |x, n, _| laguerre_l(x, n), up to MANY as f64, 1.0 - x,
        |k, before, now| ((2.0 * k + 1.0 - x) * now - k * before) / (k + 1.0);
    /// Legendre's polynomials.
    LegendreP, |x, n, _| legendre_p(x, n), up to MANY as f64, x,
        |k, before, now| ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0);
}

/// The recurrence of all of Chebyshev's polynomials.
#[inline(always)]
fn twice(x: f64, before: f64, now: f64) -> f64 {
    (x + x) * now - before
}
/// Hermite's polynomials, by either recurrence.
#[inline(always)]
fn hermite<S: PolynomialSequence>(x: f64, n: f64, limit: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if n > limit as i64 {
        return f64::NAN;
    }
    recur::<S>(x, n)
}
/// Laguerre's polynomials.
#[inline(always)]
fn laguerre_l(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if x == 0.0 {
        return 1.0;
    }
    recur::<LaguerreL>(x, n)
}
/// Legendre's polynomials.
#[inline(always)]
fn legendre_p(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if x == 1.0 {
        return 1.0;
    }
    if x == -1.0 {
        return parity(n);
    }
    recur::<LegendreP>(x, n)
}
