//! Orthogonal polynomials of one argument, DLMF chapter 18.
//!
//! The order is a number whose whole part counts; of negative orders (and NaN) the polynomial is 0. They are summed by their recurrences (DLMF
//! 18.9.1); Chebyshev's between -1 and 1 by their definition (DLMF 18.5.1 to 18.5.4). As in PyTorch a recurrence that
//! overflows ends in NaN. The error grows with the order: a few units in the last place of the largest value that the polynomial has near `x`, for
//! each order. So does the time, but for Chebyshev's.

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

/// The `n`-th of a sequence that begins with 1 and `first`, where `next(k, before, now)` is the one after the `k`-th.
#[inline(always)]
fn recur(n: i64, first: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    let (mut before, mut now, mut k) = (1.0, first, 1);
    while k < n && !now.is_nan() {
        (before, now) = (now, next(k as f64, before, now));
        k += 1;
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
    (above + (above * (above + 2.0)).sqrt()).ln_1p()
}

/// Chebyshev's polynomials, whose recurrence is one; `at_one` and `at_minus_one` are the values there, but for the sign of the second;
/// `wave(n, θ)` is the value at `cos θ`, `growth(n, θ, is_negative)` that at `±cosh θ` but for its sign.
#[inline(always)]
fn chebyshev(
    x: f64,
    n: f64,
    first: f64,
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
        return wave(n as f64, x.acos());
    }
    if n > MANY && x.abs() > 1.0 {
        let value = growth(n as f64, hyperbolic_angle(x.abs()), x < 0.0);
        let sign = if x < 0.0 { parity(n) } else { 1.0 };
        return if value.is_finite() { sign * value } else { f64::NAN };
    }
    recur(n, first, |_, before, now| (x + x) * now - before)
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
pub(crate) fn chebyshev_t(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| (n * angle).cos();
    let growth = |n: f64, angle: f64, _| (n * angle).cosh();
    chebyshev(x, n, x, (one, one), wave, growth)
}
/// The second kind: `U_n(cos θ) = sin (n+1)θ / sin θ`.
#[inline(always)]
pub(crate) fn chebyshev_u(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| ((n + 1.0) * angle).sin() / angle.sin();
    let growth = |n: f64, angle: f64, _| ((n + 1.0) * angle).sinh() / angle.sinh();
    chebyshev(x, n, x + x, (next, next), wave, growth)
}
/// The third kind: `V_n(cos θ) = cos (n+1/2)θ / cos θ/2`.
#[inline(always)]
pub(crate) fn chebyshev_v(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| ((n + 0.5) * angle).cos() / (0.5 * angle).cos();
    let growth = |n: f64, angle: f64, is_negative: bool| half_orders(n, angle, !is_negative);
    chebyshev(x, n, x + x - 1.0, (one, odd), wave, growth)
}
/// The fourth kind: `W_n(cos θ) = sin (n+1/2)θ / sin θ/2`.
#[inline(always)]
pub(crate) fn chebyshev_w(x: f64, n: f64) -> f64 {
    let wave = |n: f64, angle: f64| ((n + 0.5) * angle).sin() / (0.5 * angle).sin();
    let growth = |n: f64, angle: f64, is_negative: bool| half_orders(n, angle, is_negative);
    chebyshev(x, n, x + x + 1.0, (odd, one), wave, growth)
}

/// `V_n(cosh θ)` if `is_third`, else `W_n(cosh θ)`; each is the other one at the opposite argument, but for the sign.
#[inline(always)]
fn half_orders(n: f64, angle: f64, is_third: bool) -> f64 {
    let (whole, half) = ((n + 0.5) * angle, 0.5 * angle);
    if is_third { whole.cosh() / half.cosh() } else { whole.sinh() / half.sinh() }
}

/// `T_n(2x - 1)`.
#[inline(always)]
pub(crate) fn shifted_chebyshev_t(x: f64, n: f64) -> f64 {
    chebyshev_t(x + x - 1.0, n)
}
/// `U_n(2x - 1)`.
#[inline(always)]
pub(crate) fn shifted_chebyshev_u(x: f64, n: f64) -> f64 {
    chebyshev_u(x + x - 1.0, n)
}
/// `V_n(2x - 1)`.
#[inline(always)]
pub(crate) fn shifted_chebyshev_v(x: f64, n: f64) -> f64 {
    chebyshev_v(x + x - 1.0, n)
}
/// `W_n(2x - 1)`.
#[inline(always)]
pub(crate) fn shifted_chebyshev_w(x: f64, n: f64) -> f64 {
    chebyshev_w(x + x - 1.0, n)
}

/// Hermite's of the physicists, NaN above `limit`, where every value would be beyond the range.
#[inline(always)]
pub(crate) fn hermite_h(x: f64, n: f64, limit: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if n > limit as i64 {
        return f64::NAN;
    }
    recur(n, x + x, |k, before, now| (x + x) * now - 2.0 * k * before)
}
/// Hermite's of the statisticians, NaN above `limit`.
#[inline(always)]
pub(crate) fn hermite_he(x: f64, n: f64, limit: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if n > limit as i64 {
        return f64::NAN;
    }
    recur(n, x, |k, before, now| x * now - k * before)
}
/// Laguerre's.
#[inline(always)]
pub(crate) fn laguerre_l(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if x == 0.0 {
        return 1.0;
    }
    recur(n, 1.0 - x, |k, before, now| ((2.0 * k + 1.0 - x) * now - k * before) / (k + 1.0))
}
/// Legendre's.
#[inline(always)]
pub(crate) fn legendre_p(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return 0.0 };
    if x == 1.0 {
        return 1.0;
    }
    if x == -1.0 {
        return parity(n);
    }
    recur(n, x, |k, before, now| ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0))
}
