//! Householder's reflections of one real matrix that fits the caches, its rows in whole registers: the QR decomposition, and
//! the steps that `symmetric` is made of.
//!
//! A reflection is `I - tau v v^T`, applied to all rows at once: `v^T a` is a sum of rows, and each row loses a multiple of it.
//! Nothing is transposed and nothing summed across a register but norms.

use crate::Result;
use crate::dense::Real;
use crate::elementwise::copy_tile;
use crate::memory;

/// Whether a matrix is decomposed here: the rows of few columns, or all of a small one, stay in the nearer caches.
pub(super) fn fits(m: usize, n: usize) -> bool {
    m.max(n) <= 128 || (n <= 32 && m <= 1 << 14)
}
/// Elements that are worked on at once.
pub(super) const LANES: usize = 16;
/// A part of a row.
pub(super) type ReflectionLanes<T> = [T; LANES];

/// Rows of whole groups, those that are begun filled up with zeros.
pub(super) struct PaddedRows<T> {
    pub(super) groups: Vec<ReflectionLanes<T>>,
    /// Groups of a row.
    pub(super) width: usize,
}

impl<T: Real> PaddedRows<T> {
    pub(super) fn zeros(rows: usize, columns: usize) -> Result<Self> {
        let width = columns.div_ceil(LANES);
        Ok(PaddedRows { groups: memory::filled([T::ZERO; LANES], rows * width)?, width })
    }

    /// The groups of row `i`.
    #[inline(always)]
    pub(super) fn groups(&self, i: usize) -> &[ReflectionLanes<T>] {
        &self.groups[i * self.width..(i + 1) * self.width]
    }

    /// The mutable counterpart of [`PaddedRows::groups`].
    #[inline(always)]
    pub(super) fn groups_mut(&mut self, i: usize) -> &mut [ReflectionLanes<T>] {
        &mut self.groups[i * self.width..(i + 1) * self.width]
    }

    /// The elements of row `i`, with those that fill it up.
    #[inline(always)]
    pub(super) fn row(&mut self, i: usize) -> &mut [T] {
        self.groups_mut(i).as_flattened_mut()
    }
}

/// Sizes of a vector's largest element for which its squares neither overflow nor get lost, in single precision.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-10..=1e15;

/// Whether the largest of some elements is negative. The iteration that finds a vector leaves its
/// sign open, and a change in the last digit may reverse it; vectors are given the sign by which
/// their largest element is positive, which such a change leaves alone.
pub(super) fn largest_is_negative<T: Real>(vector: &[T]) -> bool {
    let mut largest = T::ZERO;
    for &x in vector {
        largest = if x.abs() > largest.abs() { x } else { largest };
    }
    largest < T::ZERO
}

/// `a + factor * b`. (By value, here and elsewhere: LLVM need not ask whether what is written is read again.)
#[inline(always)]
pub(super) fn plus<T: Real>(
    mut a: ReflectionLanes<T>,
    factor: T,
    b: ReflectionLanes<T>,
) -> ReflectionLanes<T> {
    for l in 0..LANES {
        a[l] = factor.mul_add(b[l], a[l]);
    }
    a
}

/// `factor * a`.
#[inline(always)]
fn scaled<T: Real>(factor: T, mut a: ReflectionLanes<T>) -> ReflectionLanes<T> {
    for x in &mut a {
        *x *= factor;
    }
    a
}

/// `a / by`.
#[inline(always)]
fn divided<T: Real>(mut a: ReflectionLanes<T>, by: T) -> ReflectionLanes<T> {
    for x in &mut a {
        *x /= by;
    }
    a
}

/// The sum of the lanes.
#[inline(always)]
pub(super) fn total<T: Real>(lanes: ReflectionLanes<T>) -> T {
    // Hidden, or LLVM works on pieces of two lanes all the way to here.
    let mut lanes = std::hint::black_box(lanes);
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Makes `x`, which is zero before element `at`, the vector `v` of the reflection that maps it to
/// beta at `at`; gives beta and tau. The sign of beta is opposite to the element's, as LAPACK has
/// it; a tau of 0 means that there is nothing to do.
#[inline(always)]
pub(super) fn reflect<T: Real>(x: &mut [ReflectionLanes<T>], at: usize) -> (T, T) {
    let x = &mut x[at / LANES..];
    let at = at % LANES;
    let alpha = std::mem::replace(&mut x[0][at], T::ZERO);
    let (mut sizes, mut squares) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for group in x.iter() {
        // Hidden, here and below, or LLVM takes the same lane of several groups together.
        let group = *std::hint::black_box(group);
        for l in 0..LANES {
            let size = group[l].abs();
            sizes[l] = if size > sizes[l] { size } else { sizes[l] };
        }
        squares = times(squares, group, group);
    }
    let mut largest = T::ZERO;
    for size in sizes {
        largest = if size > largest { size } else { largest };
    }
    let (mut beta, mut tau) = (alpha, T::ZERO);
    // (NaN is no largest size.)
    if largest > T::ZERO || total(squares).is_nan() {
        largest = if alpha.abs() > largest { alpha.abs() } else { largest };
        let mut first = alpha;
        let is_safe = SQUARED.contains(&largest.wide());
        if !is_safe {
            first = alpha / largest;
            squares = [T::ZERO; LANES];
            for group in x.iter_mut() {
                let group = std::hint::black_box(group);
                *group = divided(*group, largest);
                squares = times(squares, *group, *group);
            }
        }
        let norm = first.mul_add(first, total(squares)).sqrt();
        beta = if alpha >= T::ZERO { -norm } else { norm };
        let inverse = T::ONE / (first - beta);
        for group in x.iter_mut() {
            let group = std::hint::black_box(group);
            *group = scaled(inverse, *group);
        }
        tau = (beta - first) / beta;
        beta = if is_safe { beta } else { beta * largest };
    }
    x[0][at] = T::ONE;
    (beta, tau)
}

/// `sum[g] = v^T a` of the groups from `first` on, over the rows from `top` on.
#[inline(always)]
pub(super) fn sum_of_rows<T: Real>(
    sum: &mut [ReflectionLanes<T>],
    a: &PaddedRows<T>,
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
            let sum = std::hint::black_box(sum);
            // Apart from the sum so far, which is what the next rows wait for.
            let four = plus(plus(plus(scaled(v[0], *x), v[1], *y), v[2], *z), v[3], *w);
            *sum = plus(*sum, T::ONE, four);
        }
        i += 4;
    }
    while i < rows {
        for (sum, x) in sum.iter_mut().zip(&a.groups[i * width + first..(i + 1) * width]) {
            let sum = std::hint::black_box(sum);
            *sum = plus(*sum, v[i], *x);
        }
        i += 1;
    }
}

/// Applies a reflection to the rows from `top` on of the columns from `left` on; what lies before them in the same group must
/// not change.
#[inline(always)]
pub(super) fn apply<T: Real>(
    a: &mut PaddedRows<T>,
    (v, tau): (&[T], T),
    (top, left): (usize, usize),
    sum: &mut [ReflectionLanes<T>],
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
            let x = std::hint::black_box(x);
            *x = plus(*x, factor, *sum);
        }
    }
}

/// The sum of the products of a row's elements and those of a vector.
#[inline(always)]
fn product<T: Real>(row: &[ReflectionLanes<T>], v: &[ReflectionLanes<T>]) -> T {
    let mut sums = [[T::ZERO; LANES]; 4];
    let ((fours, rest), (v_fours, v_rest)) = (row.as_chunks::<4>(), v.as_chunks::<4>());
    // Several sums, which do not wait for one another.
    for (x, v) in fours.iter().zip(v_fours) {
        for j in 0..4 {
            sums[j] = times(sums[j], x[j], v[j]);
        }
    }
    for (x, v) in rest.iter().zip(v_rest) {
        sums[0] = times(sums[0], *x, *v);
    }
    let [a, b, c, d] = sums;
    total(plus(plus(a, T::ONE, b), T::ONE, plus(c, T::ONE, d)))
}

/// `sum + x v`, lane by lane.
#[inline(always)]
pub(super) fn times<T: Real>(
    mut sum: ReflectionLanes<T>,
    x: ReflectionLanes<T>,
    v: ReflectionLanes<T>,
) -> ReflectionLanes<T> {
    for l in 0..LANES {
        sum[l] = x[l].mul_add(v[l], sum[l]);
    }
    sum
}

/// Adds multiples of `v` to rows; the sums of the products of what they are then and `next`. Rows that are worked on together
/// read the vectors once.
#[inline(always)]
fn add_and_multiply<T: Real, const N: usize>(
    rows: [&mut [ReflectionLanes<T>]; N],
    factors: [T; N],
    v: &[ReflectionLanes<T>],
    next: &[ReflectionLanes<T>],
) -> [T; N] {
    let ((v, v_rest), (next, next_rest)) = (v.as_chunks::<2>(), next.as_chunks::<2>());
    let rows = rows.map(|row| row.as_chunks_mut::<2>());
    let mut sums = [[[T::ZERO; LANES]; 2]; N];
    for g in 0..v.len() {
        // Hidden, as in `reflect`.
        let g = std::hint::black_box(g);
        let (v, next) = (v[g], next[g]);
        for i in 0..N {
            let x = &mut rows[i].0[g];
            for half in 0..2 {
                x[half] = plus(x[half], factors[i], v[half]);
                sums[i][half] = times(sums[i][half], x[half], next[half]);
            }
        }
    }
    if let ([v], [next]) = (v_rest, next_rest) {
        for i in 0..N {
            let x = &mut rows[i].1[0];
            *x = plus(*x, factors[i], *v);
            sums[i][0] = times(sums[i][0], *x, *next);
        }
    }
    // (Not by a closure, which would not be compiled for the registers that the rest of it is.)
    let mut products = [T::ZERO; N];
    for i in 0..N {
        products[i] = total(plus(sums[i][0], T::ONE, sums[i][1]));
    }
    products
}

/// Adds a multiple of `v` to a row.
#[inline(always)]
fn add<T: Real>(row: &mut [ReflectionLanes<T>], factor: T, v: &[ReflectionLanes<T>]) {
    let ((row, row_rest), (v, v_rest)) = (row.as_chunks_mut::<2>(), v.as_chunks::<2>());
    for (x, v) in row.iter_mut().zip(v) {
        let x = std::hint::black_box(x);
        for half in 0..2 {
            x[half] = plus(x[half], factor, v[half]);
        }
    }
    for (x, v) in row_rest.iter_mut().zip(v_rest) {
        *x = plus(*x, factor, *v);
    }
}

/// Applies a reflection, whose vector comes in groups and is zero before column `left`, to rows from the other side.
#[inline(always)]
pub(super) fn apply_right<T: Real>(
    a: &mut PaddedRows<T>,
    (v, tau): (&[ReflectionLanes<T>], T),
    (top, rows): (usize, usize),
    left: usize,
) {
    let (width, first) = (a.width, left / LANES);
    if tau == T::ZERO {
        return;
    }
    let v = &v[first..width];
    for i in top..rows {
        let row = &mut a.groups[i * width + first..(i + 1) * width];
        let factor = -(tau * product(row, v));
        add(row, factor, v);
    }
}

/// The rank-2 update `v w^T + w v^T` that is still to be subtracted from a symmetric matrix.
pub(super) struct PendingRank2Update<T> {
    v: Vec<ReflectionLanes<T>>,
    w: Vec<ReflectionLanes<T>>,
    /// Sums over the columns of each row, of which `w` is made together with those over rows.
    along: Vec<T>,
    /// Which lanes come after each lane: ones there, else zeros.
    after: [ReflectionLanes<T>; LANES],
}

impl<T: Real> PendingRank2Update<T> {
    pub(super) fn new(width: usize) -> Result<Self> {
        let nothing = [T::ZERO; LANES];
        let mut after = [nothing; LANES];
        for (lane, after) in after.iter_mut().enumerate() {
            after[lane + 1..].fill(T::ONE);
        }
        let (v, w) = (memory::filled(nothing, width)?, memory::filled(nothing, width)?);
        Ok(PendingRank2Update { v, w, along: memory::filled(T::ZERO, width * LANES)?, after })
    }

    /// Makes the update empty, for a matrix that has none to be subtracted.
    pub(super) fn clear(&mut self) {
        self.w.fill([T::ZERO; LANES]);
    }

    /// Subtracts the update from group `g` of row `i`.
    #[inline(always)]
    fn taken(&self, x: ReflectionLanes<T>, i: usize, g: usize) -> ReflectionLanes<T> {
        let (by_v, by_w) = (-self.v.as_flattened()[i], -self.w.as_flattened()[i]);
        plus(plus(x, by_w, self.v[g]), by_v, self.w[g])
    }

    /// Subtracts the update from row `i`, from the diagonal on.
    #[inline(always)]
    pub(super) fn take(&self, a: &mut PaddedRows<T>, i: usize) {
        for g in i / LANES..a.width {
            let x = &mut a.groups_mut(i)[g];
            *x = self.taken(*x, i, g);
        }
    }

    /// Subtracts the update from the rows and columns of a matrix of order `n` from `top` on, of
    /// which those above the diagonal are kept up to date, and becomes the update of a reflection,
    /// whose vector comes in groups, applied to both sides: with `w = tau a v - (tau² v^T a v / 2)
    /// v` it is `v w^T + w v^T`. The matrix is read and written once for both.
    #[inline(always)]
    pub(super) fn reflect(
        &mut self,
        a: &mut PaddedRows<T>,
        (v, tau): (&[ReflectionLanes<T>], T),
        (n, top): (usize, usize),
        sums: &mut [ReflectionLanes<T>],
    ) {
        let (width, first) = (a.width, top / LANES);
        sums[first..width].fill([T::ZERO; LANES]);
        for i in top..n {
            let (g, lane, v_i) = (i / LANES, i % LANES, v.as_flattened()[i]);
            let row = &mut a.groups[i * width..(i + 1) * width];
            let x = self.taken(row[g], i, g);
            row[g] = x;
            // Beyond the diagonal each element stands for two.
            let beyond = times([T::ZERO; LANES], x, self.after[lane]);
            sums[g] = plus(sums[g], v_i, beyond);
            let mut products = [times([T::ZERO; LANES], beyond, v[g]), [T::ZERO; LANES]];
            let by = [-self.w.as_flattened()[i], -self.v.as_flattened()[i], v_i];
            let (row, sums) = (&mut row[g + 1..], &mut sums[g + 1..width]);
            let (old_v, old_w) = (&self.v[g + 1..width], &self.w[g + 1..width]);
            let (twos, rest) = row.as_chunks_mut::<2>();
            let (sum_twos, sum_rest) = sums.as_chunks_mut::<2>();
            let ((v_twos, v_rest), (w_twos, w_rest)) =
                (old_v.as_chunks::<2>(), old_w.as_chunks::<2>());
            let (new_twos, new_rest) = v[g + 1..width].as_chunks::<2>();
            for ((((x, sum), v), w), new) in
                twos.iter_mut().zip(sum_twos).zip(v_twos).zip(w_twos).zip(new_twos)
            {
                // Hidden, as in `reflect`.
                let (x, sum) = std::hint::black_box((x, sum));
                for half in 0..2 {
                    let value = plus(plus(x[half], by[0], v[half]), by[1], w[half]);
                    x[half] = value;
                    sum[half] = plus(sum[half], by[2], value);
                    products[half] = times(products[half], value, new[half]);
                }
            }
            if let ([x], [sum], [v], [w], [new]) = (rest, sum_rest, v_rest, w_rest, new_rest) {
                let value = plus(plus(*x, by[0], *v), by[1], *w);
                *x = value;
                *sum = plus(*sum, by[2], value);
                products[0] = times(products[0], value, *new);
            }
            let products = plus(products[0], T::ONE, products[1]);
            self.along[i] = x[lane].mul_add(v_i, total(products));
        }
        self.v[..first].fill([T::ZERO; LANES]);
        self.v[first..].copy_from_slice(&v[first..]);
        self.w[..first].fill([T::ZERO; LANES]);
        self.along[..top].fill(T::ZERO);
        let mut product = [T::ZERO; LANES];
        for (g, along) in self.along.as_chunks::<LANES>().0.iter().enumerate().skip(first) {
            let w = plus(sums[g], T::ONE, *along);
            self.w[g] = w;
            product = times(product, w, v[g]);
        }
        let half = T::of(-0.5) * tau * tau * total(product);
        for (w, v) in self.w[first..].iter_mut().zip(&v[first..]) {
            *w = plus(scaled(tau, *w), half, *v);
        }
    }
}

/// The reflections of a decomposition, one after the other: each vector `v`, whose elements before
/// its 1 are zero, and tau.
pub(super) struct Reflections<T> {
    pub(super) vectors: PaddedRows<T>,
    pub(super) taus: Vec<T>,
    rows: usize,
}

impl<T: Real> Reflections<T> {
    pub(super) fn new(rows: usize, count: usize) -> Result<Self> {
        Ok(Reflections {
            vectors: PaddedRows::zeros(count, rows)?,
            taus: memory::filled(T::ZERO, count)?,
            rows,
        })
    }

    #[inline(always)]
    pub(super) fn get(&self, k: usize) -> (&[T], T) {
        (&self.vectors.groups(k).as_flattened()[..self.rows], self.taus[k])
    }

    /// The first columns of their product, as rows; reflection `k` begins at row `k + offset`.
    #[inline(always)]
    pub(super) fn product(&self, columns: &mut PaddedRows<T>, offset: usize) {
        let count = columns.groups.len() / columns.width.max(1);
        columns.groups.fill([T::ZERO; LANES]);
        for c in 0..count {
            columns.row(c)[c] = T::ONE;
        }
        self.multiply(columns, offset, true);
    }

    /// Their product with vectors, which come as rows: those of the identity, of which the first reflections leave the last
    /// alone, or any.
    #[inline(always)]
    pub(super) fn multiply(&self, rows: &mut PaddedRows<T>, offset: usize, is_identity: bool) {
        let width = rows.width.max(1);
        for (pair, rows) in rows.groups.chunks_mut(2 * width).enumerate() {
            let identity = is_identity.then_some(2 * pair);
            match rows.split_at_mut(width.min(rows.len())) {
                (x, []) => self.multiply_few([x], offset, identity),
                (x, y) => self.multiply_few([x, y], offset, identity),
            }
        }
    }

    /// [`Reflections::multiply`] of a few rows, or of so many of the identity from this one on.
    #[inline(always)]
    fn multiply_few<const N: usize>(
        &self,
        rows: [&mut [ReflectionLanes<T>]; N],
        offset: usize,
        of_identity: Option<usize>,
    ) {
        // Those that come after the last of these rows leave them as they are.
        let count = self.taus.len();
        let steps = of_identity.map_or(count, |c| count.min((c + N).saturating_sub(offset)));
        let Some(last) = steps.checked_sub(1) else { return };
        let (v, first) = (self.vectors.groups(last), (last + offset) / LANES);
        let mut products = [T::ZERO; N];
        for i in 0..N {
            products[i] = match of_identity {
                Some(c) => v.as_flattened()[c + i],
                None => product(&rows[i][first..], &v[first..]),
            };
        }
        self.apply_few::<N, false>(rows, products, (0, steps), offset);
    }

    /// Applies reflections `from` to `to`, the first of them first if `FORWARD`, to a few rows, whose products with that one's
    /// vector are known. Each row is read and written once for a reflection and the next one's product.
    #[inline(always)]
    fn apply_few<const N: usize, const FORWARD: bool>(
        &self,
        mut rows: [&mut [ReflectionLanes<T>]; N],
        mut products: [T; N],
        (from, to): (usize, usize),
        offset: usize,
    ) {
        for done in from..to {
            let k = if FORWARD { done } else { from + to - 1 - done };
            let mut factors = products;
            for factor in &mut factors {
                *factor = -(self.taus[k] * *factor);
            }
            let v = self.vectors.groups(k);
            if done + 1 == to {
                let first = (k + offset) / LANES;
                for (row, factor) in rows.iter_mut().zip(factors) {
                    add(&mut row[first..], factor, &v[first..]);
                }
                return;
            }
            let next = if FORWARD { k + 1 } else { k - 1 };
            let first = (k.min(next) + offset) / LANES;
            let rows = rows.each_mut().map(|row| &mut row[first..]);
            let next = &self.vectors.groups(next)[first..];
            products = add_and_multiply(rows, factors, &v[first..], next);
        }
    }

    /// Makes columns, which come as rows, an upper triangular matrix `r` (as many rows as reflections, `n` columns).
    #[inline(always)]
    pub(super) fn factor(&mut self, columns: &mut PaddedRows<T>, r: &mut [T], n: usize) {
        let (width, steps) = (columns.width.max(1), self.taus.len());
        r.fill(T::ZERO);
        for (pair, rows) in columns.groups.chunks_mut(2 * width).enumerate() {
            // Both get all reflections that there are, which are read once for them, then the second the one of the first.
            let j = 2 * pair;
            let (x, y) = rows.split_at_mut(width.min(rows.len()));
            let known = j.min(steps);
            if known > 0 {
                let v = self.vectors.groups(0);
                let of_x = product(x, v);
                if y.is_empty() {
                    self.apply_few::<1, true>([&mut *x], [of_x], (0, known), 0);
                } else {
                    let products = [of_x, product(y, v)];
                    self.apply_few::<2, true>([&mut *x, &mut *y], products, (0, known), 0);
                }
            }
            self.finish(x, r, n, j);
            if !y.is_empty() {
                if j < steps {
                    let of_y = product(y, self.vectors.groups(j));
                    self.apply_few::<1, true>([&mut *y], [of_y], (j, j + 1), 0);
                }
                self.finish(y, r, n, j + 1);
            }
        }
    }

    /// Takes column `j` of `r` from a column to which all reflections before its own are applied, and makes its own of the rest.
    #[inline(always)]
    fn finish(&mut self, column: &mut [ReflectionLanes<T>], r: &mut [T], n: usize, j: usize) {
        let known = j.min(self.taus.len());
        for (row, x) in column.as_flattened_mut()[..known].iter_mut().enumerate() {
            r[row * n + j] = std::mem::replace(x, T::ZERO);
        }
        if j < self.taus.len() {
            let v = self.vectors.groups_mut(j);
            v.copy_from_slice(column);
            (r[j * n + j], self.taus[j]) = reflect(v, j);
        }
    }
}

crate::multiversion! {
    /// `a = q r` of one matrix (m, n): `r` (k, n) and, if it is not empty, `q` (m, k). Columns are worked on as rows.
    pub(super) fn qr<T: Real>(q: &mut [T], r: &mut [T], a: &[T], m: usize, n: usize, k: usize) -> Result<()> {
        let steps = m.min(n);
        let mut columns = PaddedRows::zeros(n, m)?;
        let (item, group) = (size_of::<T>(), size_of::<ReflectionLanes<T>>());
        r[steps * n..].fill(T::ZERO);
        let step_of = |rows: &PaddedRows<T>| (rows.width * group) as isize;
        let strides = (step_of(&columns), (n * item) as isize);
        // SAFETY: `m` runs of `n` elements, and `n` rows of `m`.
        unsafe { copy_tile::<T, false>(columns.groups.as_mut_ptr().cast(), a.as_ptr().cast(), strides, (m, n)) };
        let mut reflections = Reflections::new(m, steps)?;
        reflections.factor(&mut columns, &mut r[..steps * n], n);
        if q.is_empty() {
            return Ok(());
        }
        let mut columns = PaddedRows::zeros(k, m)?;
        reflections.product(&mut columns, 0);
        let strides = ((k * item) as isize, step_of(&columns));
        // SAFETY: `k` rows of `m` elements, and `m` runs of `k`.
        unsafe { copy_tile::<T, false>(q.as_mut_ptr().cast(), columns.groups.as_ptr().cast(), strides, (k, m)) };
        Ok(())
    }
}
