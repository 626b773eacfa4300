//! Householder's reflections of one real matrix that fits the caches, its rows in whole registers: the QR decomposition, and
//! the steps that `symmetric` is made of.
//!
//! A reflection is `I - tau v v^T`, applied to all rows at once: `v^T a` is a sum of rows, and each row loses a multiple of it.
//! Nothing is transposed and nothing summed across a register but norms.

use crate::dense::Real;

/// Largest dimension of matrices that are decomposed here.
pub(super) const LARGEST: usize = 96;
/// Elements that are worked on at once.
pub(super) const LANES: usize = 16;
/// A part of a row.
pub(super) type Group<T> = [T; LANES];

/// Rows of whole groups, those that are begun filled up with zeros.
pub(super) struct Rows<T> {
    pub(super) groups: Vec<Group<T>>,
    /// Groups of a row.
    pub(super) width: usize,
}

impl<T: Real> Rows<T> {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let width = columns.div_ceil(LANES);
        Rows { groups: vec![[T::ZERO; LANES]; rows * width], width }
    }

    /// The groups of row `i`.
    #[inline(always)]
    pub(super) fn groups(&self, i: usize) -> &[Group<T>] {
        &self.groups[i * self.width..(i + 1) * self.width]
    }

    /// As [`Rows::groups`].
    #[inline(always)]
    pub(super) fn groups_mut(&mut self, i: usize) -> &mut [Group<T>] {
        &mut self.groups[i * self.width..(i + 1) * self.width]
    }

    /// The elements of row `i`, with those that fill it up.
    #[inline(always)]
    pub(super) fn row(&mut self, i: usize) -> &mut [T] {
        self.groups_mut(i).as_flattened_mut()
    }

    /// Takes over a row-major matrix.
    #[inline(always)]
    pub(super) fn load(&mut self, a: &[T], columns: usize) {
        for (i, a) in a.chunks_exact(columns).enumerate() {
            self.row(i)[..columns].copy_from_slice(a);
        }
    }

    /// Gives the rows back without what fills them up.
    #[inline(always)]
    pub(super) fn store(&mut self, to: &mut [T], columns: usize) {
        for (i, to) in to.chunks_exact_mut(columns).enumerate() {
            to.copy_from_slice(&self.row(i)[..columns]);
        }
    }
}

/// Whether the largest of some elements is negative. The sign of a vector is up to the iteration that found it, which a
/// change in the last digit may turn; with this vectors are given one that such a change leaves alone.
pub(super) fn points_back<T: Real>(vector: &[T]) -> bool {
    let mut largest = T::ZERO;
    for &x in vector {
        largest = if x.abs() > largest.abs() { x } else { largest };
    }
    largest < T::ZERO
}

/// `a + factor * b`. (By value, here and elsewhere: LLVM need not ask whether what is written is read again.)
#[inline(always)]
fn plus<T: Real>(mut a: Group<T>, factor: T, b: Group<T>) -> Group<T> {
    for l in 0..LANES {
        a[l] = factor.mul_add(b[l], a[l]);
    }
    a
}

/// `factor * a`.
#[inline(always)]
fn scaled<T: Real>(factor: T, mut a: Group<T>) -> Group<T> {
    for x in &mut a {
        *x *= factor;
    }
    a
}

/// The sum of the lanes.
#[inline(always)]
pub(super) fn total<T: Real>(mut lanes: Group<T>) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Turns `x`, zero before element `at`, into the `v` of the reflection that leaves of it beta at `at`; gives beta and tau. The
/// sign of beta is opposite to the element's, as LAPACK has it; a tau of 0 means that there is nothing to do.
#[inline(always)]
pub(super) fn reflect<T: Real>(x: &mut [Group<T>], at: usize) -> (T, T) {
    let x = &mut x[at / LANES..];
    let at = at % LANES;
    let alpha = std::mem::replace(&mut x[0][at], T::ZERO);
    let (mut sizes, mut sums) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for group in x.iter() {
        for l in 0..LANES {
            let size = group[l].abs();
            sums[l] += size;
            sizes[l] = if size > sizes[l] { size } else { sizes[l] };
        }
    }
    let (mut beta, mut tau) = (alpha, T::ZERO);
    // (Not the largest size, in which NaN gets lost.)
    if total(sums) != T::ZERO {
        let mut largest = alpha.abs();
        for size in sizes {
            largest = if size > largest { size } else { largest };
        }
        let mut squares = [T::ZERO; LANES];
        for group in x.iter() {
            for l in 0..LANES {
                let x = group[l] / largest;
                squares[l] = x.mul_add(x, squares[l]);
            }
        }
        let first = alpha / largest;
        let norm = largest * first.mul_add(first, total(squares)).sqrt();
        beta = if alpha >= T::ZERO { -norm } else { norm };
        for group in x.iter_mut() {
            for v in group {
                *v /= alpha - beta;
            }
        }
        tau = (beta - alpha) / beta;
    }
    x[0][at] = T::ONE;
    (beta, tau)
}

/// `sum[g] = v^T a` of the groups from `first` on, over the rows from `top` on.
#[inline(always)]
pub(super) fn sum_of_rows<T: Real>(
    sum: &mut [Group<T>],
    a: &Rows<T>,
    v: &[T],
    (top, first): (usize, usize),
) {
    let (width, rows) = (a.width, v.len());
    let sum = &mut sum[first..width];
    sum.fill([T::ZERO; LANES]);
    let mut i = top;
    // Four rows at a time: the sums are in memory.
    while i + 4 <= rows {
        let block = &a.groups[i * width..(i + 4) * width];
        let (x, y) = (&block[first..width], &block[width + first..2 * width]);
        let (z, w) = (&block[2 * width + first..3 * width], &block[3 * width + first..]);
        let v = [v[i], v[i + 1], v[i + 2], v[i + 3]];
        for ((((sum, x), y), z), w) in sum.iter_mut().zip(x).zip(y).zip(z).zip(w) {
            // Apart from the sum so far, which is what the next rows wait for.
            let four = plus(plus(plus(scaled(v[0], *x), v[1], *y), v[2], *z), v[3], *w);
            *sum = plus(*sum, T::ONE, four);
        }
        i += 4;
    }
    while i < rows {
        for (sum, x) in sum.iter_mut().zip(&a.groups[i * width + first..(i + 1) * width]) {
            *sum = plus(*sum, v[i], *x);
        }
        i += 1;
    }
}

/// Applies a reflection to the rows from `top` on of the columns from `left` on; what lies before them in the same group must
/// not change.
#[inline(always)]
pub(super) fn apply<T: Real>(
    a: &mut Rows<T>,
    (v, tau): (&[T], T),
    (top, left): (usize, usize),
    sum: &mut [Group<T>],
) {
    let (width, first) = (a.width, left / LANES);
    if tau == T::ZERO || first >= width {
        return;
    }
    sum_of_rows(sum, a, v, (top, first));
    sum[first][..left % LANES].fill(T::ZERO);
    for (i, &v) in v.iter().enumerate().skip(top) {
        let factor = -(tau * v);
        let row = &mut a.groups[i * width + first..(i + 1) * width];
        for (x, sum) in row.iter_mut().zip(&sum[first..width]) {
            *x = plus(*x, factor, *sum);
        }
    }
}

/// Applies a reflection, whose vector comes in groups and is zero before column `left`, to rows from the other side.
#[inline(always)]
pub(super) fn apply_right<T: Real>(
    a: &mut Rows<T>,
    (v, tau): (&[Group<T>], T),
    (top, rows): (usize, usize),
    left: usize,
) {
    let (width, first) = (a.width, left / LANES);
    if tau == T::ZERO {
        return;
    }
    for i in top..rows {
        let row = &mut a.groups[i * width + first..(i + 1) * width];
        let mut product = [T::ZERO; LANES];
        for (x, v) in row.iter().zip(&v[first..]) {
            for l in 0..LANES {
                product[l] = x[l].mul_add(v[l], product[l]);
            }
        }
        let factor = -(tau * total(product));
        for (x, v) in row.iter_mut().zip(&v[first..]) {
            *x = plus(*x, factor, *v);
        }
    }
}

/// Applies a reflection, whose vector comes in groups, to both sides of a symmetric matrix of order `n`, from row and column
/// `top` on: with `w = tau a v - (tau² v^T a v / 2) v` it is `a - v w^T - w v^T`.
#[inline(always)]
pub(super) fn apply_both<T: Real>(
    a: &mut Rows<T>,
    (v, tau): (&[Group<T>], T),
    (n, top): (usize, usize),
    w: &mut [Group<T>],
) {
    let (width, first) = (a.width, top / LANES);
    if tau == T::ZERO {
        return;
    }
    sum_of_rows(w, a, &v.as_flattened()[..n], (top, first));
    w[first][..top % LANES].fill(T::ZERO);
    let mut product = [T::ZERO; LANES];
    for (w, v) in w[first..width].iter().zip(&v[first..]) {
        for l in 0..LANES {
            product[l] = w[l].mul_add(v[l], product[l]);
        }
    }
    let half = T::of(-0.5) * tau * tau * total(product);
    for (w, v) in w[first..width].iter_mut().zip(&v[first..]) {
        *w = plus(scaled(tau, *w), half, *v);
    }
    for i in top..n {
        let (by_v, by_w) = (-v.as_flattened()[i], -w.as_flattened()[i]);
        let row = &mut a.groups[i * width + first..(i + 1) * width];
        for ((x, v), w) in row.iter_mut().zip(&v[first..]).zip(&w[first..width]) {
            *x = plus(plus(*x, by_w, *v), by_v, *w);
        }
    }
}

/// The reflections of a decomposition, one after the other: all of `v`, of which what comes before its 1 is zero, and tau.
pub(super) struct Reflections<T> {
    pub(super) vectors: Rows<T>,
    pub(super) taus: Vec<T>,
    rows: usize,
}

impl<T: Real> Reflections<T> {
    pub(super) fn new(rows: usize, count: usize) -> Self {
        Reflections { vectors: Rows::zeros(count, rows), taus: vec![T::ZERO; count], rows }
    }

    #[inline(always)]
    pub(super) fn get(&self, k: usize) -> (&[T], T) {
        (&self.vectors.groups(k).as_flattened()[..self.rows], self.taus[k])
    }

    /// The first `columns` columns of their product, where reflection `k` begins at row `k + offset`.
    #[inline(always)]
    pub(super) fn product(
        &self,
        q: &mut Rows<T>,
        (columns, offset): (usize, usize),
        sum: &mut [Group<T>],
    ) {
        q.groups.fill([T::ZERO; LANES]);
        for c in 0..columns {
            q.row(c)[c] = T::ONE;
        }
        // The last first: columns before its rows are not reached yet.
        for k in (0..self.taus.len()).rev() {
            apply(q, self.get(k), (k + offset, k + offset), sum);
        }
    }
}

crate::multiversion! {
    /// `a = q r` of one matrix (m, n): `r` (k, n) and, if it is not empty, `q` (m, k).
    pub(super) fn qr<T: Real>(q: &mut [T], r: &mut [T], a: &[T], m: usize, n: usize, k: usize) {
        let mut rows = Rows::zeros(m, n);
        rows.load(a, n);
        let steps = m.min(n);
        let mut reflections = Reflections::new(m, steps);
        let mut sum = vec![[T::ZERO; LANES]; n.max(k).div_ceil(LANES)];
        for step in 0..steps {
            for i in step..m {
                let below = std::mem::replace(&mut rows.row(i)[step], T::ZERO);
                reflections.vectors.row(step)[i] = below;
            }
            let v = reflections.vectors.groups_mut(step);
            (rows.row(step)[step], reflections.taus[step]) = reflect(v, step);
            apply(&mut rows, reflections.get(step), (step, step + 1), &mut sum);
        }
        rows.store(&mut r[..k * n], n);
        if !q.is_empty() {
            let mut columns = Rows::zeros(m, k);
            reflections.product(&mut columns, (k, 0), &mut sum);
            columns.store(q, k);
        }
    }
}
