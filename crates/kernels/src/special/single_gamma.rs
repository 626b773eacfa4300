//! The incomplete gamma functions and Hurwitz's zeta function of numbers that come from single precision: many side by
//! side, each with its own number of terms, in double precision with about 30 bits right.
//!
//! What an element becomes does not depend on those beside it: sums run to the largest number of terms, but only an
//! element's own are added. Elements whose terms would be too many are left to the functions of doubles; start at [`igamma`]
//! and [`zeta`].

use super::gamma::stirling;
use super::{incomplete, lanes, zeta as whole};
use crate::simd::math_f64;

/// Numbers side by side.
const LANES: usize = 16;
type Lanes = [f64; LANES];

/// A function of pairs side by side.
trait PairFunction {
    fn of(a: &Lanes, b: &Lanes) -> Lanes;
}

/// Fills `out` from pairs, `LANES` at a time; the last ones beside pairs of twos, which take few terms.
#[inline(always)]
fn in_lanes<P: PairFunction>(out: &mut [f64], a: &[f64], b: &[f64]) {
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = P::of(a, b);
    }
    let n = out_rest.len();
    if n > 0 {
        let (mut first, mut second) = ([2.0; LANES], [2.0; LANES]);
        first[..n].copy_from_slice(&a_rest[..n]);
        second[..n].copy_from_slice(&b_rest[..n]);
        out_rest.copy_from_slice(&P::of(&first, &second)[..n]);
    }
}

/// Where the sums below hold: neither of `P` and `1 - P` loses more bits than there are to spare.
#[inline(always)]
fn is_usual(a: f64, x: f64) -> bool {
    (a >= 1.0 / 1024.0) & (x > 0.0) & (a <= 16.0) & (x <= 1000.0)
}

/// Whether the series for `P` is summed, else the continued fraction for `Q`.
#[inline(always)]
fn is_below(a: f64, x: f64) -> bool {
    x <= a + 2.0
}

/// `x^a e^-x / Γ(a + 1)`, by Stirling's series at `a + 9`.
#[inline(always)]
fn factor(a: f64, x: f64) -> f64 {
    const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;
    let mut product = 1.0;
    for i in 1..9 {
        product *= a + f64::from(i);
    }
    let at = a + 9.0;
    let log_gamma =
        (at - 0.5).mul_add(math_f64::log_of_normal(at), HALF_LOG_TAU - at) + stirling(at);
    product * math_f64::exp(a.mul_add(math_f64::log_of_normal(x), -x) - log_gamma)
}

/// The series of DLMF 8.7.1, `Σ x^n / ((a+1) ... (a+n))`, as one fraction, which needs no division for each term. (What is
/// beyond `14 + 4 x` terms is below `2^-46` of it for `x` up to 18.)
#[inline(always)]
fn series(a: &Lanes, x: &Lanes) -> Lanes {
    let counts = lanes!(i => if is_below(a[i], x[i]) { 4.0f64.mul_add(x[i], 14.0) } else { 0.0 });
    let most = counts.iter().fold(0.0, |most: f64, &count| if count > most { count } else { most });
    let (mut over, mut under, mut power): (Lanes, Lanes, Lanes) =
        ([1.0; LANES], [1.0; LANES], [1.0; LANES]);
    for n in 1..=most as u32 {
        let n = f64::from(n);
        for i in 0..LANES {
            let (at, is_mine) = (a[i] + n, n <= counts[i]);
            power[i] *= x[i];
            over[i] = if is_mine { over[i].mul_add(at, power[i]) } else { over[i] };
            under[i] = if is_mine { under[i] * at } else { under[i] };
        }
    }
    lanes!(i => over[i] / under[i])
}

/// Terms of the continued fraction, enough for 30 bits from `a + 2` on.
const STEPS: i32 = 24;

/// The continued fraction of DLMF 8.9.2, by its numerators and denominators.
#[inline(always)]
fn fraction(a: &Lanes, x: &Lanes) -> Lanes {
    let first = lanes!(i => x[i] + 1.0 - a[i]);
    let (mut over, mut over_before) = ([1.0; LANES], [0.0; LANES]);
    let (mut under, mut under_before) = (first, [1.0; LANES]);
    for n in 1..=STEPS {
        let n = f64::from(n);
        for i in 0..LANES {
            let (part, whole) = (n * (a[i] - n), first[i] + (n + n));
            let next = (
                whole.mul_add(over[i], part * over_before[i]),
                whole.mul_add(under[i], part * under_before[i]),
            );
            (over_before[i], under_before[i]) = (over[i], under[i]);
            (over[i], under[i]) = next;
        }
    }
    lanes!(i => over[i] / under[i])
}

/// `P(a, x)`, or `Q(a, x)` if `UPPER`.
struct Gamma<const UPPER: bool>;
impl<const UPPER: bool> PairFunction for Gamma<UPPER> {
    #[inline(always)]
    fn of(a: &Lanes, x: &Lanes) -> Lanes {
        let (mut hard, mut below) = (0, 0);
        for i in 0..LANES {
            hard += u32::from(!is_usual(a[i], x[i]));
            below += u32::from(is_below(a[i], x[i]));
        }
        let mut out = [0.0; LANES];
        if hard < LANES as u32 {
            // Twos stand in for numbers that are computed otherwise.
            let (a, x) = (
                lanes!(i => if is_usual(a[i], x[i]) { a[i] } else { 2.0 }),
                lanes!(i => if is_usual(a[i], x[i]) { x[i] } else { 2.0 }),
            );
            let lower = if below > 0 { series(&a, &x) } else { out };
            let upper = if below < LANES as u32 { fraction(&a, &x) } else { out };
            for i in 0..LANES {
                let is_below = is_below(a[i], x[i]);
                let value = factor(a[i], x[i]) * if is_below { lower[i] } else { a[i] * upper[i] };
                out[i] = if is_below == UPPER { 1.0 - value } else { value };
            }
        }
        if hard > 0 {
            for i in (0..LANES).filter(|&i| !is_usual(a[i], x[i])) {
                out[i] = exact_igamma(a[i], x[i], UPPER);
            }
        }
        out
    }
}

/// `P(a, x)`, or `Q(a, x)` if `UPPER`.
#[inline(always)]
pub(crate) fn igamma<const UPPER: bool>(out: &mut [f64], a: &[f64], x: &[f64]) {
    in_lanes::<Gamma<UPPER>>(out, a, x);
}

/// One number, by the functions of doubles.
#[inline(never)]
fn exact_igamma(a: f64, x: f64, is_upper: bool) -> f64 {
    if is_upper {
        incomplete::igammac(a, x, incomplete::TINY_SINGLE)
    } else {
        incomplete::igamma(a, x, incomplete::TINY_SINGLE)
    }
}

/// Where the sum below has few terms.
#[inline(always)]
fn is_usual_zeta(s: f64, q: f64) -> bool {
    (s > 1.0) & (s <= 32.0) & (q > 0.0) & (q < f64::INFINITY)
}

/// `b^-s` of a base that is no denormal double.
#[inline(always)]
fn term(s: f64, base: f64) -> f64 {
    math_f64::exp(-s * math_f64::log_of_normal(base))
}

/// As `special::zeta`: direct terms up to `s/2 + 6`, then the Euler-Maclaurin formula.
#[inline(always)]
fn zeta_lanes(s: &Lanes, q: &Lanes) -> Lanes {
    let least = lanes!(i => 0.5f64.mul_add(s[i], 6.0));
    let mut most = 0.0;
    for i in 0..LANES {
        let count = least[i] - q[i];
        most = if count > most { count } else { most };
    }
    let (mut total, mut at) = ([0.0; LANES], *q);
    for _ in 0..most.ceil() as u32 {
        for i in 0..LANES {
            let is_direct = at[i] < least[i];
            total[i] += if is_direct { term(s[i], at[i]) } else { 0.0 };
            at[i] = if is_direct { at[i] + 1.0 } else { at[i] };
        }
    }
    lanes!(i => {
        let (s, at) = (s[i], at[i]);
        let (term, inverse) = (term(s, at), 1.0 / at);
        let mut rest = at * (term / (s - 1.0)) + 0.5 * term;
        let mut factor = term * (s * inverse);
        for (j, bernoulli) in whole::BERNOULLI.iter().enumerate() {
            rest = factor.mul_add(*bernoulli, rest);
            let next = 2.0f64.mul_add(j as f64, s + 1.0);
            factor *= (next * inverse) * ((next + 1.0) * inverse);
        }
        total[i] + rest
    })
}

struct Zeta;
impl PairFunction for Zeta {
    #[inline(always)]
    fn of(s: &Lanes, q: &Lanes) -> Lanes {
        let mut hard = 0;
        for i in 0..LANES {
            hard += u32::from(!is_usual_zeta(s[i], q[i]));
        }
        let mut out = [0.0; LANES];
        if hard < LANES as u32 {
            let (s, q) = (
                lanes!(i => if is_usual_zeta(s[i], q[i]) { s[i] } else { 2.0 }),
                lanes!(i => if is_usual_zeta(s[i], q[i]) { q[i] } else { 2.0 }),
            );
            out = zeta_lanes(&s, &q);
        }
        if hard > 0 {
            for i in (0..LANES).filter(|&i| !is_usual_zeta(s[i], q[i])) {
                out[i] = exact_zeta(s[i], q[i]);
            }
        }
        out
    }
}

/// `ζ(s, q)`.
#[inline(always)]
pub(crate) fn zeta(out: &mut [f64], s: &[f64], q: &[f64]) {
    in_lanes::<Zeta>(out, s, q);
}

/// One number, by the function of doubles.
#[inline(never)]
fn exact_zeta(s: f64, q: f64) -> f64 {
    whole::zeta(s, q)
}
