//! Eigenvalues and eigenvectors of one real symmetric matrix that fits the caches: Householder's reduction to a tridiagonal
//! matrix, then the QL method with implicit shifts (Bowdler, Martin, Reinsch, Wilkinson, 1968).
//!
//! Eigenvectors are kept as rows, so that a rotation of two of them is one of whole registers. The tridiagonal matrix and
//! the rotations are computed in double precision, of a matrix scaled to a largest element between 1 and 2 by a power
//! of two: no square overflows, and none that counts vanishes.

use super::reflection::{
    LANES, PaddedRows, PendingRank2Update, ReflectionLanes, Reflections, largest_is_negative,
    reflect,
};
use crate::Result;
use crate::dense::{Real, transpose};
use crate::elementwise::copy_tile;
use crate::memory;
use smallvec::SmallVec;

/// Largest order; beyond, `faer` divides and conquers. (Without vectors there is nothing to divide.)
pub(super) fn largest(has_vectors: bool) -> usize {
    if has_vectors { 256 } else { 512 }
}
/// Most sweeps for each eigenvalue, as in LAPACK.
pub(super) const SWEEPS: usize = 30;

/// The power of two that brings `largest` between 1 and 2, and its inverse; 1 where there is none.
pub(super) fn scale_of(largest: f64) -> (f64, f64) {
    let exponent = (largest.to_bits() >> 52) as i64 - 1023;
    let exponent = if largest == 0.0 { 0 } else { exponent.clamp(-1000, 1000) };
    let power = |exponent: i64| f64::from_bits(((1023 + exponent) as u64) << 52);
    (power(-exponent), power(exponent))
}

crate::multiversion! {
    /// Multiplies a matrix by a power of two so that its largest element is between 1 and 2, and gives by what its values are to
    /// be multiplied; nothing if an element is not finite.
    pub(super) fn scale<T: Real>(matrix: &mut [ReflectionLanes<T>]) -> Option<f64> {
        let (mut sizes, mut nothing) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for group in matrix.iter() {
            // Hidden, or LLVM takes the same lane of several groups together.
            let group = *std::hint::black_box(group);
            for l in 0..LANES {
                let size = group[l].abs();
                sizes[l] = if size > sizes[l] { size } else { sizes[l] };
                // (Zero times anything else is not zero.)
                nothing[l] += size * T::ZERO;
            }
        }
        if nothing.into_iter().any(T::is_nan) {
            return None;
        }
        let largest = sizes.into_iter().fold(0.0, |largest: f64, size| largest.max(size.wide()));
        let (down, up) = scale_of(largest);
        for group in matrix {
            for value in std::hint::black_box(group) {
                *value = T::of(value.wide() * down);
            }
        }
        Some(up)
    }
}

/// The workspace of the decomposition of a matrix of order `n`.
pub(super) struct EighWorkspace<T> {
    n: usize,
    matrix: PaddedRows<T>,
    reflections: Reflections<T>,
    /// The eigenvectors.
    vectors: PaddedRows<T>,
    sums: Vec<ReflectionLanes<T>>,
    pending: PendingRank2Update<T>,
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// The eigenvectors in order, without gaps.
    sorted: Vec<T>,
}

impl<T: Real> EighWorkspace<T> {
    pub(super) fn new(n: usize, has_vectors: bool) -> Result<Self> {
        let wanted = if has_vectors { n } else { 0 };
        let matrix = PaddedRows::zeros(n, n)?;
        Ok(EighWorkspace {
            n,
            reflections: Reflections::new(n, n.saturating_sub(2))?,
            vectors: PaddedRows::zeros(wanted, n)?,
            sums: memory::filled([T::ZERO; LANES], matrix.width)?,
            pending: PendingRank2Update::new(matrix.width)?,
            matrix,
            diagonal: memory::filled(0.0, n)?,
            beside: memory::filled(0.0, n)?,
            sorted: memory::filled(T::ZERO, wanted * n)?,
        })
    }

    /// The eigenvalues `w` (n), ascending, of a matrix (n, n) of which one triangle is read, and its eigenvectors, the
    /// columns of `v` (n, n) unless that is empty. False if it has elements that are not finite, or the method does not converge.
    pub(super) fn eigen(&mut self, w: &mut [T], v: &mut [T], a: &[T], upper: bool) -> bool {
        let (n, is_wanted) = (self.n, !v.is_empty());
        // The rows from the diagonal on; nothing before it.
        let (item, group) = (size_of::<T>() as isize, size_of::<ReflectionLanes<T>>() as isize);
        if upper {
            for (r, row) in a.chunks_exact(n).enumerate() {
                self.matrix.row(r)[..n].copy_from_slice(row);
            }
        } else {
            let strides = (self.matrix.width as isize * group, n as isize * item);
            let to = self.matrix.groups.as_mut_ptr().cast();
            // SAFETY: `n` rows and columns of both.
            unsafe { copy_tile::<T, false>(to, a.as_ptr().cast(), strides, (n, n)) };
        }
        for r in 0..n {
            self.matrix.row(r)[..r].fill(T::ZERO);
        }
        let Some(up) = scale(&mut self.matrix.groups) else { return false };
        reduce(self, is_wanted);
        let is_done = if is_wanted {
            diagonalise(self)
        } else {
            for beside in &mut self.beside {
                *beside *= *beside;
            }
            let precision = precision::<T>();
            eigenvalues(&mut self.diagonal, &mut self.beside, precision * precision)
        };
        if !is_done {
            return false;
        }
        let diagonal = &self.diagonal;
        // bounded: larger matrices are not worked on here.
        let mut order: SmallVec<[usize; 64]> = (0..n).collect();
        order.sort_unstable_by(|&i, &j| diagonal[i].total_cmp(&diagonal[j]).then(i.cmp(&j)));
        for (w, &i) in w.iter_mut().zip(&order) {
            *w = T::of(diagonal[i] * up);
        }
        if is_wanted {
            for i in 0..n {
                let vector = &mut self.vectors.row(i)[..n];
                if largest_is_negative(vector) {
                    for value in vector {
                        *value = -*value;
                    }
                }
            }
            for (to, &i) in self.sorted.chunks_exact_mut(n).zip(&order) {
                to.copy_from_slice(&self.vectors.row(i)[..n]);
            }
            // SAFETY: both have `n` times `n` elements.
            unsafe { transpose(v.as_mut_ptr(), self.sorted.as_ptr(), (n, n)) };
        }
        true
    }
}

crate::multiversion! {
    /// Reduces the matrix to a tridiagonal one; the vectors become, if they are wanted, the transposed product of the
    /// reflections that do so.
    fn reduce<T: Real>(of: &mut EighWorkspace<T>, is_wanted: bool) {
        let EighWorkspace { n, matrix, reflections, vectors, sums, pending, diagonal, beside, .. } = of;
        let n = *n;
        pending.clear();
        for k in 0..n {
            pending.take(matrix, k);
            diagonal[k] = matrix.row(k)[k].wide();
            if k + 2 < n {
                let v = &mut reflections.vectors.row(k)[k + 1..n];
                v.copy_from_slice(&matrix.row(k)[k + 1..n]);
                let (beta, tau) = reflect(reflections.vectors.groups_mut(k), k + 1);
                (beside[k], reflections.taus[k]) = (beta.wide(), tau);
                pending.reflect(matrix, (reflections.vectors.groups(k), tau), (n, k + 1), sums);
            } else if k + 1 < n {
                beside[k] = matrix.row(k)[k + 1].wide();
            }
        }
        if is_wanted {
            reflections.product(vectors, 1);
        }
    }
}

/// Rotates two rows of vectors by an angle (a Givens rotation).
#[inline(always)]
pub(super) fn rotate<T: Real>(
    low: &mut [ReflectionLanes<T>],
    high: &mut [ReflectionLanes<T>],
    c: T,
    s: T,
) {
    for pair in low.iter_mut().zip(high) {
        // Hidden, or LLVM takes the same lane of several groups together.
        let (low, high) = std::hint::black_box(pair);
        let (x, y) = (*low, *high);
        let (mut first, mut second) = (x, y);
        for l in 0..LANES {
            first[l] = c.mul_add(x[l], -(s * y[l]));
            second[l] = s.mul_add(x[l], c * y[l]);
        }
        (*low, *high) = (first, second);
    }
}

/// Half the distance from 1 to the next number of the type.
fn precision<T>() -> f64 {
    if size_of::<T>() == 4 { f64::from(f32::EPSILON) * 0.5 } else { f64::EPSILON * 0.5 }
}

/// The last row of the block of a tridiagonal matrix that begins at row `first`: the square of the element beside the diagonal,
/// which the caller tells from what it keeps of it, is below `tiny` of the two on it, and that element becomes zero.
#[inline(always)]
fn end_of_block(
    d: &[f64],
    e: &mut [f64],
    first: usize,
    square: impl Fn(usize, &[f64]) -> f64,
    tiny: f64,
) -> usize {
    let mut last = first;
    while last + 1 < d.len() {
        if square(last, e) <= tiny * (d[last] * d[last + 1]).abs() + 1e-300 {
            e[last] = 0.0;
            break;
        }
        last += 1;
    }
    last
}

/// Reverses a block if its smaller end is not the one that the method begins at, which keeps the
/// small eigenvalues of graded matrices accurate; returns whether it did. The direction of blocks
/// before row `directed` is settled.
#[inline(always)]
fn reverse_block(
    d: &mut [f64],
    e: &mut [f64],
    (first, last): (usize, usize),
    directed: &mut usize,
) -> bool {
    if first < *directed {
        return false;
    }
    *directed = last + 1;
    let is_reversed = d[last].abs() < d[first].abs();
    if is_reversed {
        d[first..=last].reverse();
        e[first..last].reverse();
    }
    is_reversed
}

/// The eigenvalues of a tridiagonal matrix, of which `e` holds the squares of the elements beside the diagonal: QL with shifts,
/// rational in these squares (Pal, Walker and Kahan; Parlett, "The Symmetric Eigenvalue Problem", 8.15). The element beside the
/// diagonal may be left out where its square is below `tiny` of the two on it. False if it does not converge.
fn eigenvalues(d: &mut [f64], e: &mut [f64], tiny: f64) -> bool {
    let n = d.len();
    let mut directed = 0;
    let mut left = SWEEPS * n;
    for first in 0..n {
        loop {
            let last = end_of_block(d, e, first, |i, e| e[i], tiny);
            if last == first {
                break;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            reverse_block(d, e, (first, last), &mut directed);
            let beside = e[first].sqrt();
            let slope = (d[first + 1] - d[first]) / (2.0 * beside);
            let root = slope.mul_add(slope, 1.0).sqrt();
            let shift = d[first] - beside / (slope + root.copysign(slope));
            let (mut s, mut c, mut gamma) = (0.0, 1.0, d[last] - shift);
            let mut p = gamma * gamma;
            for i in (first..last).rev() {
                let square = e[i];
                let r = p + square;
                e[i + 1] = s * r;
                let (c_before, before, alpha) = (c, gamma, d[i]);
                c = p / r;
                s = square / r;
                gamma = c.mul_add(alpha - shift, -(s * before));
                d[i + 1] = before + (alpha - gamma);
                // The limit where the cosine vanishes takes the one before.
                p = if c == 0.0 { c_before * square } else { gamma * gamma / c };
            }
            e[first] = s * p;
            d[first] = shift + gamma;
        }
    }
    true
}

crate::multiversion! {
    /// Makes the tridiagonal matrix diagonal, up to the digits of `T`, and rotates the vectors
    /// along.
    fn diagonalise<T: Real>(of: &mut EighWorkspace<T>) -> bool {
        let EighWorkspace { n, vectors, diagonal: d, beside: e, .. } = of;
        let (n, width) = (*n, vectors.width);
        let precision = precision::<T>();
        let mut directed = 0;
        let mut left = SWEEPS * n;
        for first in 0..n {
            loop {
                let tiny = precision * precision;
                let last = end_of_block(d, e, first, |i, e| e[i] * e[i], tiny);
                if last == first {
                    break;
                }
                if left == 0 {
                    return false;
                }
                left -= 1;
                if reverse_block(d, e, (first, last), &mut directed) {
                    for (i, j) in (first..=last).zip((first..=last).rev()).take_while(|(i, j)| i < j) {
                        let (low, high) = vectors.groups.split_at_mut(j * width);
                        low[i * width..][..width].swap_with_slice(&mut high[..width]);
                    }
                }
                // Wilkinson's shift.
                let slope = (d[first + 1] - d[first]) / (2.0 * e[first]);
                let root = slope.mul_add(slope, 1.0).sqrt();
                let mut g = d[last] - d[first] + e[first] / (slope + root.copysign(slope));
                let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
                let mut is_split = false;
                for i in (first..last).rev() {
                    let (f, b) = (s * e[i], c * e[i]);
                    let size = f.mul_add(f, g * g).sqrt();
                    e[i + 1] = size;
                    if size == 0.0 {
                        // Both vanished: the matrix splits here.
                        d[i + 1] -= p;
                        is_split = true;
                        break;
                    }
                    (s, c) = (f / size, g / size);
                    let next = d[i + 1] - p;
                    let r = (d[i] - next).mul_add(s, 2.0 * c * b);
                    p = s * r;
                    d[i + 1] = next + p;
                    g = c.mul_add(r, -b);
                    let (low, high) = vectors.groups.split_at_mut((i + 1) * width);
                    rotate(&mut low[i * width..], &mut high[..width], T::of(c), T::of(s));
                }
                if is_split {
                    e[last] = 0.0;
                    continue;
                }
                d[first] -= p;
                e[first] = g;
                e[last] = 0.0;
            }
        }
        true
    }
}
