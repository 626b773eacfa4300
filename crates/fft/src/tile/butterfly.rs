//! The arithmetic on the rows of a tile, one function for each kind of step, on vectors of any width.

use super::copy::TileFinish;
use super::vector::Vector;
use super::{Job, Twist, lanes};

/// A complex number of every lane.
type Pair<V> = (V, V);

/// The positions of the parts of a row, in numbers from its beginning: the real ones and the
/// imaginary ones. The inverse transform is the forward one of exchanged parts.
type Parts = (usize, usize);

/// Does `job`.
///
/// # Safety
/// As [`super::run`]; the processor has the instruction set of `V`, which the caller enables.
#[inline(always)]
pub(super) unsafe fn work<V: Vector>(job: Job<'_, V::Real>) {
    // SAFETY: the caller's promise, for each.
    unsafe {
        match job {
            Job::Four { x, m, count, roots, parts } if m == 1 => {
                pass::<V, 4, false>(x, (m, count), roots, parts);
            }
            Job::Four { x, m, count, roots, parts } => {
                pass::<V, 4, true>(x, (m, count), roots, parts);
            }
            Job::Eight { x, m, count, roots, parts } if m == 1 => {
                pass::<V, 8, false>(x, (m, count), roots, parts);
            }
            Job::Eight { x, m, count, roots, parts } => {
                pass::<V, 8, true>(x, (m, count), roots, parts);
            }
            Job::SplitSpectrum { x, places, roots } => split_spectrum::<V>(x, places, roots),
            Job::JoinSpectrum { x, roots } => join_spectrum::<V>(x, roots),
            Job::Turn { to, to_step, from, from_step } => V::turn(to, to_step, from, from_step),
            Job::Gather { x, source, step, rows } => gather::<V>(x, source, step, rows),
            Job::Scatter { x, places, target, step, finish } if finish.twist.is_none() => {
                scatter::<V, false>(x, places, (target, step), finish);
            }
            Job::Scatter { x, places, target, step, finish } => {
                scatter::<V, true>(x, places, (target, step), finish);
            }
        }
    }
}

/// One level of a transform: in each of `count` blocks of `R m` rows the rows `p`, `p + m`, `p + 2 m`, ... are transformed among
/// themselves, and the result `k` is multiplied by `w^(p k)`, which `roots` holds one `p` after the other, unless `m` is 1.
#[inline(always)]
unsafe fn pass<V: Vector, const R: usize, const TWISTED: bool>(
    x: *mut V::Real,
    (m, count): (usize, usize),
    roots: &[V::Real],
    (real, imag): Parts,
) {
    let row = 2 * lanes::<V::Real>();
    debug_assert!(!TWISTED || roots.len() == m * (R - 1) * 2, "the table is the level's");
    // SAFETY: the blocks are rows of the tile, and the table holds as many factors as the level has.
    unsafe {
        for block in 0..count {
            for p in 0..m {
                let roots = roots.as_ptr().add(if TWISTED { p * (R - 1) * 2 } else { 0 });
                for lane in (0..lanes::<V::Real>()).step_by(V::LANES) {
                    let at = x.add((block * R * m + p) * row + lane);
                    let mut a = [(V::load(at.add(real)), V::load(at.add(imag))); R];
                    for (j, pair) in a.iter_mut().enumerate().skip(1) {
                        let at = at.add(j * m * row);
                        *pair = (V::load(at.add(real)), V::load(at.add(imag)));
                    }
                    let b = if R == 4 { four(&a) } else { eight(&a) };
                    for k in 0..R {
                        let at = at.add(k * m * row);
                        let mut b = b[k];
                        if TWISTED && k > 0 {
                            let (re, im) = (*roots.add(2 * k - 2), *roots.add(2 * k - 1));
                            b = times(b, (V::splat(re), V::splat(im)));
                        }
                        b.0.store(at.add(real));
                        b.1.store(at.add(imag));
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn times<V: Vector>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: the caller's promise.
    unsafe { (a.0.mul_sub(b.0, a.1.mul(b.1)), a.0.mul_add(b.1, a.1.mul(b.0))) }
}

#[inline(always)]
unsafe fn plus<V: Vector>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: the caller's promise.
    unsafe { (a.0.add(b.0), a.1.add(b.1)) }
}

#[inline(always)]
unsafe fn minus<V: Vector>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: the caller's promise.
    unsafe { (a.0.sub(b.0), a.1.sub(b.1)) }
}

/// `a - i b` and `a + i b`.
#[inline(always)]
unsafe fn turned<V: Vector>(a: Pair<V>, b: Pair<V>) -> (Pair<V>, Pair<V>) {
    // SAFETY: the caller's promise.
    unsafe { ((a.0.add(b.1), a.1.sub(b.0)), (a.0.sub(b.1), a.1.add(b.0))) }
}

/// Transforms the first four numbers of the array; the others stay.
#[inline(always)]
unsafe fn four<V: Vector, const R: usize>(a: &[Pair<V>; R]) -> [Pair<V>; R] {
    let mut b = *a;
    // SAFETY: the caller's promise.
    unsafe {
        let (even, odd) = (plus(a[0], a[2]), plus(a[1], a[3]));
        (b[0], b[2]) = (plus(even, odd), minus(even, odd));
        (b[1], b[3]) = turned(minus(a[0], a[2]), minus(a[1], a[3]));
    }
    b
}

/// Eight numbers transformed: those at even and at odd places, and then pairs of the two.
#[inline(always)]
unsafe fn eight<V: Vector, const R: usize>(a: &[Pair<V>; R]) -> [Pair<V>; R] {
    let mut b = *a;
    // SAFETY: the caller's promise.
    unsafe {
        let even = four(&[a[0], a[2], a[4], a[6]]);
        let odd = four(&[a[1], a[3], a[5], a[7]]);
        let half = V::splat(<V::Real as super::Tiled>::SQRT_HALF);
        (b[0], b[4]) = (plus(even[0], odd[0]), minus(even[0], odd[0]));
        (b[2], b[6]) = turned(even[2], odd[2]);
        // `(1 - i) sqrt(1/2)` and `(-1 - i) sqrt(1/2)` times the odd ones, their factor with the sum.
        let one = (odd[1].0.add(odd[1].1), odd[1].1.sub(odd[1].0));
        let three = (odd[3].1.sub(odd[3].0), odd[3].0.add(odd[3].1));
        let (first, last) = (even[1], even[3]);
        b[1] = (one.0.mul_add(half, first.0), one.1.mul_add(half, first.1));
        b[5] = (one.0.neg_mul_add(half, first.0), one.1.neg_mul_add(half, first.1));
        b[3] = (three.0.mul_add(half, last.0), three.1.neg_mul_add(half, last.1));
        b[7] = (three.0.neg_mul_add(half, last.0), three.1.mul_add(half, last.1));
    }
    b
}

#[inline(always)]
unsafe fn load<V: Vector>(at: *const V::Real) -> Pair<V> {
    // SAFETY: the caller's promise.
    unsafe { (V::load(at), V::load(at.add(lanes::<V::Real>()))) }
}

#[inline(always)]
unsafe fn store<V: Vector>(at: *mut V::Real, pair: Pair<V>) {
    // SAFETY: the caller's promise.
    unsafe {
        pair.0.store(at);
        pair.1.store(at.add(lanes::<V::Real>()));
    }
}

/// From the transform `Z` of `m` pairs of real numbers, result `k` in row `places[k]`, to the first half of the spectrum of the `2 m`
/// numbers: with `E = (Z[k] + conj Z[m - k]) / 2` and `O = -i (Z[k] - conj Z[m - k]) / 2` it is `X[k] = E + w^k O` and
/// `X[m - k] = conj(E - w^k O)`. Row `m` is added.
#[inline(always)]
unsafe fn split_spectrum<V: Vector>(x: *mut V::Real, places: &[u32], roots: &[V::Real]) {
    let (row, m) = (2 * lanes::<V::Real>(), places.len() - 1);
    // SAFETY: the places are rows of the tile, and there is a root for each pair.
    unsafe {
        let half = V::splat(<V::Real as super::Tiled>::HALF);
        for lane in (0..lanes::<V::Real>()).step_by(V::LANES) {
            let zero = V::splat(<V::Real as super::Tiled>::NONE);
            let (first, last) = (x.add(lane), x.add(m * row + lane));
            let z: Pair<V> = load(first);
            store(first, (z.0.add(z.1), zero));
            store(last, (z.0.sub(z.1), zero));
            for k in 1..=m / 2 {
                let low = x.add(places[k] as usize * row + lane);
                let high = x.add(places[m - k] as usize * row + lane);
                let (a, b): (Pair<V>, Pair<V>) = (load(low), load(high));
                let e = (a.0.add(b.0).mul(half), a.1.sub(b.1).mul(half));
                let o = (a.1.add(b.1).mul(half), b.0.sub(a.0).mul(half));
                let o = times(o, (V::splat(roots[2 * k]), V::splat(roots[2 * k + 1])));
                store(high, (e.0.sub(o.0), o.1.sub(e.1)));
                store(low, plus(e, o));
            }
        }
    }
}

/// From the first half of a spectrum, `m + 1` rows in order, to the `m` numbers whose inverse transform are pairs of real numbers:
/// with `E = X[k] + conj X[m - k]` and `O = (X[k] - conj X[m - k]) conj w^k` it is `Z[k] = E + i O` and `Z[m - k] = conj E + i conj O`.
#[inline(always)]
unsafe fn join_spectrum<V: Vector>(x: *mut V::Real, roots: &[V::Real]) {
    let (row, m) = (2 * lanes::<V::Real>(), (roots.len() / 2 - 1) * 2);
    // SAFETY: the tile has `m + 1` rows.
    unsafe {
        for lane in (0..lanes::<V::Real>()).step_by(V::LANES) {
            // The imaginary parts of the ends are taken as zero.
            let (first, last) = (V::load(x.add(lane)), V::load(x.add(m * row + lane)));
            store(x.add(lane), (first.add(last), first.sub(last)));
            for k in 1..=m / 2 {
                let (low, high) = (x.add(k * row + lane), x.add((m - k) * row + lane));
                let (a, b): (Pair<V>, Pair<V>) = (load(low), load(high));
                let e = (a.0.add(b.0), a.1.sub(b.1));
                let o = (a.0.sub(b.0), a.1.add(b.1));
                let (re, im) = (V::splat(roots[2 * k]), V::splat(roots[2 * k + 1]));
                let o = (o.0.mul_add(re, o.1.mul(im)), o.1.mul_sub(re, o.0.mul(im)));
                store(high, (e.0.add(o.1), o.0.sub(e.1)));
                store(low, (e.0.sub(o.1), e.1.add(o.0)));
            }
        }
    }
}

/// Complex numbers that lie side by side, a row of the tile for each `step`.
#[inline(always)]
unsafe fn gather<V: Vector>(x: *mut V::Real, source: *const V::Real, step: isize, rows: usize) {
    let row = 2 * lanes::<V::Real>();
    for k in 0..rows {
        let from = source.wrapping_offset(k as isize * step);
        for lane in (0..lanes::<V::Real>()).step_by(V::LANES) {
            // SAFETY: the numbers of all lanes are live, and the row is one of the tile.
            unsafe {
                let from = from.add(2 * lane);
                let pair = V::unzip(V::load(from), V::load(from.add(V::LANES)));
                store(x.add(k * row + lane), pair);
            }
        }
    }
}

/// Rows of the tile as complex numbers side by side, times the scale and, if `TWISTED`, times the factor of row and lane.
#[inline(always)]
unsafe fn scatter<V: Vector, const TWISTED: bool>(
    x: *const V::Real,
    places: &[u32],
    (target, step): (*mut V::Real, isize),
    TileFinish { scale, twist, parts: (real, imag) }: TileFinish<'_, V::Real>,
) {
    let twist = twist.unwrap_or(Twist::none());
    let row = 2 * lanes::<V::Real>();
    assert!(!TWISTED || twist.fine.len() >= places.len() * row, "a factor for each lane");
    assert!(!TWISTED || twist.coarse.len() >= places.len() * 2, "a factor for each row");
    // SAFETY: the places are rows of the tile; the numbers of all lanes are the caller's to write.
    unsafe {
        let scale = V::splat(scale);
        for (k, &place) in places.iter().enumerate() {
            let to = target.wrapping_offset(k as isize * step);
            for lane in (0..lanes::<V::Real>()).step_by(V::LANES) {
                let at = x.add(place as usize * row + lane);
                let mut pair = (V::load(at.add(real)), V::load(at.add(imag)));
                if TWISTED {
                    let coarse = (V::splat(twist.coarse[2 * k]), V::splat(twist.coarse[2 * k + 1]));
                    let fine = load(twist.fine.as_ptr().add(k * row + lane));
                    pair = times(pair, times(fine, coarse));
                }
                let pair = (pair.0.mul(scale), pair.1.mul(scale));
                let pair = if real == 0 { pair } else { (pair.1, pair.0) };
                let (first, second) = V::zip(pair.0, pair.1);
                let to = to.add(2 * lane);
                first.store(to);
                second.store(to.add(V::LANES));
            }
        }
    }
}
