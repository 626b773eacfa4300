//! The QR decomposition of complex matrices by Householder's reflections, in the phases that LAPACK gives.
//!
//! A factorisation is unique up to the phases of R's diagonal. LAPACK makes each diagonal element
//! real, with the sign opposite to the real part of what stood there; that depends on the
//! reflections before it, so that it cannot be had by multiplying another library's result by
//! phases. As in `reflection`, columns are worked on as rows of whole registers; here in double
//! precision, real and imaginary parts apart.

use super::reflection::{LANES, PaddedRows, ReflectionLanes, plus, times, total};
use crate::C128;
use crate::Result;
use crate::dense::Compute;
use crate::simd::math_f64;
use crate::{interrupt, memory};

const ZERO: C128 = C128::new(0.0, 0.0);
const NOTHING: ReflectionLanes<f64> = [0.0; LANES];
/// Sizes of a vector's largest element for which its squares neither overflow nor get lost.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-120..=1e120;

/// Columns of complex numbers: their real parts and their imaginary parts, a row of groups for each column.
pub(super) struct ComplexColumns {
    re: PaddedRows<f64>,
    im: PaddedRows<f64>,
}

impl ComplexColumns {
    fn zeros(rows: usize, columns: usize) -> Result<Self> {
        Ok(ComplexColumns {
            re: PaddedRows::zeros(columns, rows)?,
            im: PaddedRows::zeros(columns, rows)?,
        })
    }

    /// The element at a row and a column.
    pub(super) fn at<T: Compute>(&self, row: usize, column: usize) -> T {
        let re = self.re.groups(column).as_flattened()[row];
        T::convert(C128::new(re, self.im.groups(column).as_flattened()[row]))
    }

    /// The real and imaginary parts of a column.
    #[inline(always)]
    fn parts(&self, column: usize) -> ReflectorParts<'_> {
        (self.re.groups(column), self.im.groups(column))
    }

    #[inline(always)]
    fn parts_mut(&mut self, column: usize) -> PartsMut<'_> {
        (self.re.groups_mut(column), self.im.groups_mut(column))
    }

    /// The real and imaginary parts of a column and of the next column, if there is one.
    #[inline(always)]
    fn pair_mut(&mut self, column: usize) -> (PartsMut<'_>, Option<PartsMut<'_>>) {
        let width = self.re.width;
        let re = &mut self.re.groups[column * width..];
        let im = &mut self.im.groups[column * width..];
        let ((x, re), (y, im)) = (re.split_at_mut(width), im.split_at_mut(width));
        let next = (!re.is_empty()).then(|| (&mut re[..width], &mut im[..width]));
        ((x, y), next)
    }

    fn set(&mut self, row: usize, column: usize, value: C128) {
        self.re.row(column)[row] = value.re;
        self.im.row(column)[row] = value.im;
    }
}

/// A = H1 H2 ... R with `Hk = I - tau v v^H`.
pub(super) struct ComplexQr {
    /// Row by row, as long as A's rows.
    r: Vec<C128>,
    columns: usize,
    /// The vectors `v`, one for each reflection; elements before its 1 are zero.
    vectors: ComplexColumns,
    taus: Vec<C128>,
    rows: usize,
}

impl ComplexQr {
    /// Factorises the row-major (m, n) matrix `a`.
    pub(super) fn of<T: Compute + crate::Element>(
        a: &[T],
        m: usize,
        n: usize,
    ) -> Result<ComplexQr> {
        let mut rest = ComplexColumns::zeros(m, n)?;
        for (i, row) in a.chunks_exact(n.max(1)).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                rest.set(i, j, C128::convert(value));
            }
        }
        let steps = m.min(n);
        let mut reflected = ComplexQr {
            r: memory::filled(ZERO, steps * n)?,
            columns: n,
            vectors: ComplexColumns::zeros(m, steps)?,
            taus: memory::filled(ZERO, steps)?,
            rows: m,
        };
        factor(&mut reflected, &mut rest);
        Ok(reflected)
    }

    /// The element of R.
    pub(super) fn r<T: Compute>(&self, row: usize, column: usize) -> T {
        self.r.get(row * self.columns + column).map_or(T::default(), |&value| T::convert(value))
    }

    /// The first `k` columns of Q.
    pub(super) fn q(&self, k: usize) -> Result<ComplexColumns> {
        let mut q = ComplexColumns::zeros(self.rows, k)?;
        for c in 0..k {
            q.set(c, c, C128::new(1.0, 0.0));
        }
        multiply(self, &mut q);
        Ok(q)
    }
}

/// Makes `x`, zero before element `at`, the `v` of the reflection that leaves of it a real beta at `at`; gives beta and tau.
#[inline(always)]
fn reflect(
    (re, im): (&mut [ReflectionLanes<f64>], &mut [ReflectionLanes<f64>]),
    at: usize,
) -> (f64, C128) {
    let (re, im) = (&mut re[at / LANES..], &mut im[at / LANES..]);
    let at = at % LANES;
    let alpha =
        C128::new(std::mem::replace(&mut re[0][at], 0.0), std::mem::replace(&mut im[0][at], 0.0));
    let (mut sizes, mut squares) = (NOTHING, NOTHING);
    for (x, y) in re.iter().zip(im.iter()) {
        // (`black_box`, as in `reflection`.)
        let (x, y) = std::hint::black_box((*x, *y));
        for l in 0..LANES {
            let size = x[l].abs().max(y[l].abs());
            sizes[l] = if size > sizes[l] { size } else { sizes[l] };
        }
        squares = times(times(squares, x, x), y, y);
    }
    let largest = sizes.into_iter().fold(0.0, f64::max);
    // (NaN is no largest size.)
    let has_tail = largest > 0.0 || total(squares).is_nan();
    let (beta, tau) = if !has_tail && alpha.im == 0.0 {
        (alpha.re, ZERO)
    } else {
        // Of largest size 1, if squares or quotients of it overflow or get lost.
        let mut largest = largest.max(alpha.re.abs()).max(alpha.im.abs());
        let mut first = alpha;
        if SQUARED.contains(&largest) {
            largest = 1.0;
        } else {
            first = alpha / largest;
            squares = NOTHING;
            for (x, y) in re.iter_mut().zip(im.iter_mut()) {
                let (x, y) = std::hint::black_box((x, y));
                for l in 0..LANES {
                    x[l] /= largest;
                    y[l] /= largest;
                }
                squares = times(times(squares, *x, *x), *y, *y);
            }
        }
        let beta = -math_f64::hypot(math_f64::hypot(first.re, first.im), total(squares).sqrt())
            .copysign(first.re);
        let factor = C128::new(1.0, 0.0) / (first - beta);
        for (x, y) in re.iter_mut().zip(im.iter_mut()) {
            let (x, y) = std::hint::black_box((x, y));
            let (old_x, old_y) = (*x, *y);
            *x = plus(plus(NOTHING, factor.re, old_x), -factor.im, old_y);
            *y = plus(plus(NOTHING, factor.re, old_y), factor.im, old_x);
        }
        (beta * largest, C128::new((beta - first.re) / beta, -first.im / beta))
    };
    re[0][at] = 1.0;
    (beta, tau)
}

/// Real and imaginary parts of a column.
type ReflectorParts<'a> = (&'a [ReflectionLanes<f64>], &'a [ReflectionLanes<f64>]);
type PartsMut<'a> = (&'a mut [ReflectionLanes<f64>], &'a mut [ReflectionLanes<f64>]);

/// `sum - x v`, lane by lane.
#[inline(always)]
fn minus_times(
    mut sum: ReflectionLanes<f64>,
    x: ReflectionLanes<f64>,
    v: ReflectionLanes<f64>,
) -> ReflectionLanes<f64> {
    for l in 0..LANES {
        sum[l] = (-x[l]).mul_add(v[l], sum[l]);
    }
    sum
}

/// Adds multiples of `v` to columns; gives the products of what they are then and `next^H`.
#[inline(always)]
fn add_and_multiply<const N: usize>(
    columns: &mut [PartsMut<'_>; N],
    factors: [C128; N],
    (v_re, v_im): ReflectorParts<'_>,
    (next_re, next_im): ReflectorParts<'_>,
    first: usize,
) -> [C128; N] {
    let mut sums = [[NOTHING; 2]; N];
    for g in first..v_re.len() {
        // (Hidden, as in `reflection`.)
        let g = std::hint::black_box(g);
        let (v, w, next, next_i) = (v_re[g], v_im[g], next_re[g], next_im[g]);
        for i in 0..N {
            let (re, im) = &mut columns[i];
            let x = plus(plus(re[g], factors[i].re, v), -factors[i].im, w);
            let y = plus(plus(im[g], factors[i].re, w), factors[i].im, v);
            (re[g], im[g]) = (x, y);
            sums[i][0] = times(times(sums[i][0], x, next), y, next_i);
            sums[i][1] = minus_times(times(sums[i][1], y, next), x, next_i);
        }
    }
    // (Not by a closure, as in `reflection`.)
    let mut products = [ZERO; N];
    for i in 0..N {
        products[i] = C128::new(total(sums[i][0]), total(sums[i][1]));
    }
    products
}

impl ComplexQr {
    /// Applies reflections `from` to `to` (or, if `FORWARD`, their adjoints, the first of them first) to a few columns.
    #[inline(always)]
    fn apply<const N: usize, const FORWARD: bool>(
        &self,
        mut columns: [PartsMut<'_>; N],
        (from, to): (usize, usize),
    ) {
        if from >= to {
            return;
        }
        let start = if FORWARD { from } else { to - 1 };
        let v = self.vectors.parts(start);
        // Nothing is added yet.
        let mut products = add_and_multiply(&mut columns, [ZERO; N], v, v, start / LANES);
        for done in from..to {
            let k = if FORWARD { done } else { from + to - 1 - done };
            let tau = if FORWARD { self.taus[k].conj() } else { self.taus[k] };
            let mut factors = products;
            for factor in &mut factors {
                *factor = -(tau * *factor);
            }
            let next = match done + 1 == to {
                true => k,
                false if FORWARD => k + 1,
                false => k - 1,
            };
            let (v, next_v) = (self.vectors.parts(k), self.vectors.parts(next));
            let first = k.min(next) / LANES;
            products = add_and_multiply(&mut columns, factors, v, next_v, first);
        }
    }

    /// Takes column `j` of R from a column to which all reflections before its own are applied, and makes its own of the rest.
    #[inline(always)]
    fn finish(&mut self, (re, im): PartsMut<'_>, j: usize) {
        let steps = self.taus.len();
        let (x, y) = (re.as_flattened_mut(), im.as_flattened_mut());
        for row in 0..j.min(steps) {
            let value = C128::new(std::mem::take(&mut x[row]), std::mem::take(&mut y[row]));
            self.r[row * self.columns + j] = value;
        }
        if j < steps {
            let (v, w) = self.vectors.parts_mut(j);
            v.copy_from_slice(re);
            w.copy_from_slice(im);
            let (beta, tau) = reflect((v, w), j);
            (self.r[j * self.columns + j], self.taus[j]) = (C128::new(beta, 0.0), tau);
        }
    }
}

crate::multiversion! {
/// Makes columns an upper triangular matrix, the R of `of`.
fn factor(of: &mut ComplexQr, columns: &mut ComplexColumns) {
    for j in (0..of.columns).step_by(2) {
        interrupt::check();
        // Both get all reflections that there are, then the second the one of the first.
        let known = j.min(of.taus.len());
        let (x, y) = columns.pair_mut(j);
        if let Some(y) = y {
            of.apply::<2, true>([(&mut *x.0, &mut *x.1), (&mut *y.0, &mut *y.1)], (0, known));
            of.finish(x, j);
            of.apply::<1, true>([(&mut *y.0, &mut *y.1)], (j, of.taus.len().min(j + 1)));
            of.finish(y, j + 1);
        } else {
            of.apply::<1, true>([(&mut *x.0, &mut *x.1)], (0, known));
            of.finish(x, j);
        }
    }
}
}

crate::multiversion! {
/// Makes columns of the identity those of Q.
fn multiply(of: &ComplexQr, q: &mut ComplexColumns) {
    let count = q.re.groups.len() / q.re.width.max(1);
    for c in (0..count).step_by(2) {
        interrupt::check();
        // Reflections that begin after row `c` leave the column as it is.
        let steps = of.taus.len().min(c + 2);
        match q.pair_mut(c) {
            (x, None) => of.apply::<1, false>([x], (0, steps)),
            (x, Some(y)) => of.apply::<2, false>([x, y], (0, steps)),
        }
    }
}
}
