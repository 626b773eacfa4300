//! Singular values and vectors of one real matrix that fits the caches: Householder's reduction to a bidiagonal matrix, then
//! QR steps with implicit shifts (Golub and Van Loan, "Matrix Computations", 8.6).
//!
//! As in `symmetric`, vectors are kept as rows, and numbers of which there are few are in double precision, of a matrix
//! scaled to a largest element between 1 and 2. A matrix is at least as high as it is wide; others come transposed.

use super::reflection::{
    LANES, PaddedRows, ReflectionLanes, Reflections, apply, apply_right, largest_is_negative,
    reflect,
};
use super::symmetric::{SWEEPS, rotate, scale};
use crate::Result;
use crate::dense::{Real, transpose};
use crate::elementwise::copy_tile;
use crate::memory;
use smallvec::SmallVec;

/// The largest number of vectors of a tall matrix that are computed here.
const MANY: usize = 1024;

/// Whether a matrix (m, n), with so many left and right vectors if they are wanted, is decomposed here: `faer` divides and
/// conquers large ones, but without vectors there is less to divide, and with a few long rows or columns nothing.
pub(super) fn fits(m: usize, n: usize, counts: [usize; 2], has_vectors: bool) -> bool {
    let largest = if has_vectors { 256 } else { 512 };
    let has_few =
        m.min(n) <= 32 && m.max(n) <= 1 << 14 && counts.iter().all(|&count| count <= MANY);
    m.max(n) <= largest || has_few
}

/// The ratio of rows to columns from which a matrix is reduced to a square one first.
const TALL_RATIO: usize = 2;

/// The workspace of the decomposition of matrices (m, n) with `m >= n`.
pub(super) struct SvdWorkspace<T> {
    m: usize,
    n: usize,
    /// Left singular vectors that are wanted.
    columns: usize,
    /// The matrix by columns; for a tall matrix, R of its QR decomposition.
    matrix: PaddedRows<T>,
    tall: Option<TallMatrix<T>>,
    left: Reflections<T>,
    right: Reflections<T>,
    /// The left and the right singular vectors.
    vectors: [PaddedRows<T>; 2],
    sums: Vec<ReflectionLanes<T>>,
    diagonal: Vec<f64>,
    above: Vec<f64>,
    sorted: Vec<T>,
}

/// A tall matrix by columns, Q of its QR decomposition, and R by rows.
struct TallMatrix<T> {
    matrix: PaddedRows<T>,
    q: Reflections<T>,
    r: Vec<T>,
    /// The left vectors of R, shorter than those of the matrix.
    left: PaddedRows<T>,
}

impl<T: Real> SvdWorkspace<T> {
    /// A workspace for `n` or `m` left singular vectors.
    pub(super) fn new(m: usize, n: usize, columns: usize) -> Result<Self> {
        let tall = if m >= TALL_RATIO * n {
            Some(TallMatrix {
                matrix: PaddedRows::zeros(n, m)?,
                q: Reflections::new(m, n)?,
                r: memory::filled(T::ZERO, n * n)?,
                left: PaddedRows::zeros(n, n)?,
            })
        } else {
            None
        };
        let height = if tall.is_some() { n } else { m };
        Ok(SvdWorkspace {
            m,
            n,
            columns,
            matrix: PaddedRows::zeros(n, height)?,
            tall,
            left: Reflections::new(height, n)?,
            right: Reflections::new(n, n.saturating_sub(1))?,
            vectors: [PaddedRows::zeros(columns, m)?, PaddedRows::zeros(n, n)?],
            sums: memory::filled([T::ZERO; LANES], height.div_ceil(LANES))?,
            diagonal: memory::filled(0.0, n)?,
            above: memory::filled(0.0, n)?,
            sorted: memory::filled(T::ZERO, m * columns)?,
        })
    }

    /// The singular values `s` (n), descending, of a matrix (m, n), or with `is_transposed` (n, m); and unless they are empty, the
    /// vectors `u` and `vh` of the matrix as it is given. False if it has elements that are not finite, or the steps do not
    /// converge.
    pub(super) fn decompose(
        &mut self,
        s: &mut [T],
        (u, vh): (&mut [T], &mut [T]),
        a: &[T],
        is_transposed: bool,
    ) -> bool {
        let n = self.n;
        let matrix = self.load(a, is_transposed);
        let Some(up) = scale(&mut matrix.groups) else { return false };
        let is_wanted = !(u.is_empty() && vh.is_empty());
        if let Some(tall) = &mut self.tall {
            make_square(&mut self.matrix, tall);
            // They are short until `make_tall`.
            std::mem::swap(&mut self.vectors[0], &mut tall.left);
        }
        reduce(self, is_wanted);
        let is_done = diagonalise(self, is_wanted);
        if let Some(tall) = &mut self.tall {
            std::mem::swap(&mut self.vectors[0], &mut tall.left);
            if is_wanted {
                make_tall(&mut self.vectors[0], tall);
            }
        }
        if !is_done {
            return false;
        }
        if is_wanted {
            self.fix_signs();
        }
        let diagonal = &self.diagonal;
        // bounded: larger matrices are not worked on here.
        let mut order: SmallVec<[usize; 64]> = (0..n).collect();
        order.sort_unstable_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]).then(i.cmp(&j)));
        for (s, &i) in s.iter_mut().zip(&order) {
            *s = T::of(diagonal[i] * up);
        }
        self.store_vectors(&order, (u, vh), is_transposed);
        true
    }

    /// Puts the matrix `a` (m, n), or with `is_transposed` (n, m), column by column into the rows of the work area.
    fn load(&mut self, a: &[T], is_transposed: bool) -> &mut PaddedRows<T> {
        let (m, n) = (self.m, self.n);
        let matrix = match &mut self.tall {
            Some(tall) => &mut tall.matrix,
            None => &mut self.matrix,
        };
        let (item, group) = (size_of::<T>() as isize, size_of::<ReflectionLanes<T>>() as isize);
        let (wide, to_row) = (n as isize * item, matrix.width as isize * group);
        if is_transposed {
            for (j, row) in a.chunks_exact(m).enumerate() {
                matrix.row(j)[..m].copy_from_slice(row);
            }
        } else {
            let to = matrix.groups.as_mut_ptr().cast();
            // SAFETY: `m` runs of `n` elements, and `n` rows of `m`.
            unsafe { copy_tile::<T, false>(to, a.as_ptr().cast(), (to_row, wide), (m, n)) };
        }
        matrix
    }

    /// Negates pairs of singular vectors of which the left one's largest element is negative.
    fn fix_signs(&mut self) {
        let (m, n) = (self.m, self.n);
        for k in 0..n {
            let [left, right] = &mut self.vectors;
            if largest_is_negative(&left.row(k)[..m]) {
                for value in left.row(k).iter_mut().chain(right.row(k)) {
                    *value = -*value;
                }
            }
        }
    }

    /// Writes the singular vectors in the order of the singular values.
    fn store_vectors(
        &mut self,
        order: &[usize],
        (u, vh): (&mut [T], &mut [T]),
        is_transposed: bool,
    ) {
        let (m, n) = (self.m, self.n);
        let (first, second) = if is_transposed { (1, 0) } else { (0, 1) };
        for (which, to, is_first) in [(first, u, true), (second, vh, false)] {
            if to.is_empty() {
                continue;
            }
            let (count, length) = if which == 0 { (self.columns, m) } else { (n, n) };
            let rows = order.iter().copied().chain(n..count);
            let sorted = if is_first { &mut self.sorted[..count * length] } else { &mut *to };
            for (to, i) in sorted.chunks_exact_mut(length).zip(rows) {
                to.copy_from_slice(&self.vectors[which].row(i)[..length]);
            }
            if is_first {
                // SAFETY: both have as many elements.
                unsafe { transpose(to.as_mut_ptr(), self.sorted.as_ptr(), (count, length)) };
            }
        }
    }
}

crate::multiversion! {
    /// Decomposes a tall matrix into Q and R, of which the columns become the rows of `square`.
    fn make_square<T: Real>(square: &mut PaddedRows<T>, tall: &mut TallMatrix<T>) {
        let TallMatrix { matrix, q, r, .. } = tall;
        let n = q.taus.len();
        q.factor(matrix, r, n);
        for j in 0..n {
            for (i, to) in square.row(j)[..n].iter_mut().enumerate() {
                *to = r[i * n + j];
            }
        }
    }
}

crate::multiversion! {
    /// The left vectors of R times Q, and as many others as there is room for.
    fn make_tall<T: Real>(vectors: &mut PaddedRows<T>, tall: &TallMatrix<T>) {
        let (n, count) = (tall.q.taus.len(), vectors.groups.len() / vectors.width.max(1));
        vectors.groups.fill([T::ZERO; LANES]);
        for k in 0..count {
            if k < n {
                let short = tall.left.groups(k);
                vectors.groups_mut(k)[..short.len()].copy_from_slice(short);
            } else {
                vectors.row(k)[k] = T::ONE;
            }
        }
        tall.q.multiply(vectors, 0, false);
    }
}

crate::multiversion! {
    /// Reduces the matrix to an upper bidiagonal one; the vectors become, if they are wanted, the transposed products of the
    /// reflections that do so.
    fn reduce<T: Real>(of: &mut SvdWorkspace<T>, is_wanted: bool) {
        let SvdWorkspace { n, matrix, left, right, vectors, sums, diagonal, above, .. } = of;
        let n = *n;
        for k in 0..n {
            let v = left.vectors.groups_mut(k);
            v.copy_from_slice(matrix.groups(k));
            v.as_flattened_mut()[..k].fill(T::ZERO);
            let (beta, tau) = reflect(v, k);
            apply_right(matrix, (v, tau), (k + 1, n), k);
            (diagonal[k], left.taus[k]) = (beta.wide(), tau);
            if k + 1 < n {
                for (j, v) in right.vectors.row(k)[..n].iter_mut().enumerate().skip(k + 1) {
                    *v = matrix.row(j)[k];
                }
                let (beta, tau) = reflect(right.vectors.groups_mut(k), k + 1);
                (above[k], right.taus[k]) = (beta.wide(), tau);
                apply(matrix, right.get(k), (k + 1, k + 1), sums);
            }
        }
        if is_wanted {
            left.product(&mut vectors[0], 0);
            right.product(&mut vectors[1], 1);
        }
    }
}

/// The cosine and sine of the Givens rotation that takes `(y, z)` to `(r, 0)`, and `r`.
#[inline(always)]
fn givens(y: f64, z: f64) -> (f64, f64, f64) {
    let r = y.mul_add(y, z * z).sqrt();
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (y / r, z / r, r) }
}

/// Applies a Givens rotation to rows `i` and `j` of vectors, if they are wanted: the first becomes `c i + s j`.
#[inline(always)]
fn rotate_rows<T: Real>(
    vectors: &mut PaddedRows<T>,
    (i, j): (usize, usize),
    (c, s): (f64, f64),
    is_wanted: bool,
) {
    if is_wanted {
        let (low, high) = vectors.groups.split_at_mut(j * vectors.width);
        let (low, high) = (&mut low[i * vectors.width..], &mut high[..vectors.width]);
        rotate(&mut low[..high.len()], high, T::of(c), T::of(-s));
    }
}

/// Sets diagonal element `zero` of the block `first..=last` to zero and chases the element beside it out of the matrix, so that
/// the block falls apart.
#[inline(always)]
fn deflate<T: Real>(
    (d, e): (&mut [f64], &mut [f64]),
    (first, zero, last): (usize, usize, usize),
    [left, right]: [&mut PaddedRows<T>; 2],
    is_wanted: bool,
) {
    d[zero] = 0.0;
    if zero < last {
        // The rest of its row moves to the right, out of the matrix.
        let mut f = std::mem::replace(&mut e[zero], 0.0);
        for j in zero + 1..=last {
            let (c, s, r) = givens(d[j], f);
            d[j] = r;
            if j < last {
                f = -s * e[j];
                e[j] *= c;
            }
            rotate_rows(left, (zero, j), (c, -s), is_wanted);
        }
        return;
    }
    // The rest of its column moves upwards.
    let mut f = std::mem::replace(&mut e[last - 1], 0.0);
    for j in (first..last).rev() {
        let (c, s, r) = givens(d[j], f);
        d[j] = r;
        if j > first {
            f = -s * e[j - 1];
            e[j - 1] *= c;
        }
        rotate_rows(right, (j, last), (c, s), is_wanted);
    }
}

/// An implicit QR step (Golub and Kahan) on the block `first..=last`, with Wilkinson's shift of the transpose times the matrix.
#[inline(always)]
fn implicit_step<T: Real>(
    (d, e): (&mut [f64], &mut [f64]),
    (first, last): (usize, usize),
    [left, right]: [&mut PaddedRows<T>; 2],
    is_wanted: bool,
) {
    let (dm, dn, en) = (d[last - 1], d[last], e[last - 1]);
    let em = if last - 1 > first { e[last - 2] } else { 0.0 };
    let (a, b, c) = (dm.mul_add(dm, em * em), dn.mul_add(dn, en * en), dm * en);
    let half = 0.5 * (a - b);
    let shift = b - c * c / (half + half.mul_add(half, c * c).sqrt().copysign(half));
    let (mut y, mut z) = (d[first].mul_add(d[first], -shift), d[first] * e[first]);
    for i in first..last {
        let (c, s, r) = givens(y, z);
        if i > first {
            e[i - 1] = r;
        }
        y = c.mul_add(d[i], s * e[i]);
        e[i] = c.mul_add(e[i], -(s * d[i]));
        z = s * d[i + 1];
        d[i + 1] *= c;
        rotate_rows(right, (i, i + 1), (c, s), is_wanted);
        let (c, s, r) = givens(y, z);
        d[i] = r;
        y = c.mul_add(e[i], s * d[i + 1]);
        d[i + 1] = c.mul_add(d[i + 1], -(s * e[i]));
        if i + 1 < last {
            z = s * e[i + 1];
            e[i + 1] *= c;
        }
        rotate_rows(left, (i, i + 1), (c, s), is_wanted);
    }
    e[last - 1] = y;
}

crate::multiversion! {
    /// Makes the bidiagonal matrix diagonal and not negative, up to the digits of `T`, and rotates the vectors along if they are
    /// wanted.
    fn diagonalise<T: Real>(of: &mut SvdWorkspace<T>, is_wanted: bool) -> bool {
        let SvdWorkspace { n, vectors: [left, right], diagonal: d, above: e, .. } = of;
        let n = *n;
        let precision = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let mut norm = 0.0_f64;
        for k in 0..n {
            norm = norm.max(d[k].abs() + if k + 1 < n { e[k].abs() } else { 0.0 });
        }
        let small = 0.125 * precision * norm;
        let mut steps = SWEEPS * n;
        let mut last = n.saturating_sub(1);
        while last > 0 {
            if e[last - 1].abs() <= small {
                last -= 1;
                continue;
            }
            let mut first = last - 1;
            while first > 0 && e[first - 1].abs() > small {
                first -= 1;
            }
            if steps == 0 {
                return false;
            }
            steps -= 1;
            if let Some(zero) = (first..=last).find(|&k| d[k].abs() <= small) {
                deflate((&mut d[..], &mut e[..]), (first, zero, last), [&mut *left, &mut *right], is_wanted);
            } else {
                implicit_step((&mut d[..], &mut e[..]), (first, last), [&mut *left, &mut *right], is_wanted);
            }
        }
        for (k, value) in d.iter_mut().enumerate() {
            if *value < 0.0 {
                *value = -*value;
                for value in right.row(k) {
                    *value = -*value;
                }
            }
        }
        true
    }
}
