//! The QR decomposition of complex matrices by Householder's reflections, in the phases that LAPACK gives.
//!
//! A factorisation is unique up to the phases of R's diagonal. LAPACK makes each diagonal element real, with the sign
//! opposite to the real part of what stood there; that depends on the reflections before it, so that it cannot be
//! had by turning another library's result. As in `reflection`, columns are worked on as rows of whole registers; here
//! in double precision, real and imaginary parts apart.

use super::reflection::{Group, LANES, Rows, plus, times, total};
use crate::C128;
use crate::dense::Compute;

const ZERO: C128 = C128::new(0.0, 0.0);
const NOTHING: Group<f64> = [0.0; LANES];
/// Sizes of a vector's largest element for which its squares neither overflow nor get lost.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-120..=1e120;

/// Columns of complex numbers: their real parts and their imaginary parts, a row of groups for each column.
pub(super) struct Columns {
    re: Rows<f64>,
    im: Rows<f64>,
}

impl Columns {
    fn zeros(rows: usize, columns: usize) -> Self {
        Columns { re: Rows::zeros(columns, rows), im: Rows::zeros(columns, rows) }
    }

    /// The element at a row and a column.
    pub(super) fn at<T: Compute>(&self, row: usize, column: usize) -> T {
        let re = self.re.groups(column).as_flattened()[row];
        T::convert(C128::new(re, self.im.groups(column).as_flattened()[row]))
    }

    /// The real and imaginary parts of a column, from a group on.
    #[inline(always)]
    fn parts(&self, column: usize, first: usize) -> (&[Group<f64>], &[Group<f64>]) {
        (&self.re.groups(column)[first..], &self.im.groups(column)[first..])
    }

    #[inline(always)]
    fn parts_mut(&mut self, column: usize, first: usize) -> (&mut [Group<f64>], &mut [Group<f64>]) {
        (&mut self.re.groups_mut(column)[first..], &mut self.im.groups_mut(column)[first..])
    }

    fn set(&mut self, row: usize, column: usize, value: C128) {
        self.re.row(column)[row] = value.re;
        self.im.row(column)[row] = value.im;
    }
}

/// A = H1 H2 ... R with `Hk = I - tau v v^H`.
pub(super) struct Reflected {
    /// Row by row, as long as A's rows.
    r: Vec<C128>,
    columns: usize,
    /// One for each reflection; what comes before its 1 is zero.
    vectors: Columns,
    taus: Vec<C128>,
    rows: usize,
}

impl Reflected {
    /// Of a row-major (m, n) matrix.
    pub(super) fn of<T: Compute + crate::Element>(a: &[T], m: usize, n: usize) -> Reflected {
        let mut rest = Columns::zeros(m, n);
        for (i, row) in a.chunks_exact(n.max(1)).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                rest.set(i, j, C128::convert(value));
            }
        }
        let steps = m.min(n);
        let mut reflected = Reflected {
            r: vec![ZERO; steps * n],
            columns: n,
            vectors: Columns::zeros(m, steps),
            taus: vec![ZERO; steps],
            rows: m,
        };
        factor(&mut reflected, &mut rest);
        reflected
    }

    /// The element of R.
    pub(super) fn r<T: Compute>(&self, row: usize, column: usize) -> T {
        self.r.get(row * self.columns + column).map_or(T::default(), |&value| T::convert(value))
    }

    /// The first `k` columns of Q.
    pub(super) fn q(&self, k: usize) -> Columns {
        let mut q = Columns::zeros(self.rows, k);
        for c in 0..k {
            q.set(c, c, C128::new(1.0, 0.0));
        }
        multiply(self, &mut q);
        q
    }
}

/// Makes `x`, zero before element `at`, the `v` of the reflection that leaves of it a real beta at `at`; gives beta and tau.
#[inline(always)]
fn reflect((re, im): (&mut [Group<f64>], &mut [Group<f64>]), at: usize) -> (f64, C128) {
    let (re, im) = (&mut re[at / LANES..], &mut im[at / LANES..]);
    let at = at % LANES;
    let alpha =
        C128::new(std::mem::replace(&mut re[0][at], 0.0), std::mem::replace(&mut im[0][at], 0.0));
    let (mut sizes, mut squares) = (NOTHING, NOTHING);
    for (x, y) in re.iter().zip(im.iter()) {
        // (Hidden, as in `reflection`.)
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
        let tail = if !has_tail || SQUARED.contains(&largest) {
            total(squares).sqrt()
        } else {
            let mut squares = NOTHING;
            for (x, y) in re.iter().zip(im.iter()) {
                let (x, y) = std::hint::black_box((*x, *y));
                let (x, y) = (x.map(|x| x / largest), y.map(|y| y / largest));
                squares = times(times(squares, x, x), y, y);
            }
            largest * total(squares).sqrt()
        };
        let beta = -alpha.norm().hypot(tail).copysign(alpha.re);
        // (Of tiny numbers the square, by which a quotient divides, is zero.)
        let size = (alpha.re - beta).abs();
        let factor = C128::new(1.0, 0.0) / ((alpha - beta) / size) / size;
        for (x, y) in re.iter_mut().zip(im.iter_mut()) {
            let (x, y) = std::hint::black_box((x, y));
            let (old_x, old_y) = (*x, *y);
            *x = plus(plus(NOTHING, factor.re, old_x), -factor.im, old_y);
            *y = plus(plus(NOTHING, factor.re, old_y), factor.im, old_x);
        }
        (beta, C128::new((beta - alpha.re) / beta, -alpha.im / beta))
    };
    re[0][at] = 1.0;
    (beta, tau)
}

/// Adds `step v` to a column; gives the product of what it is then and `next^H`. All are given by their real and imaginary
/// parts.
#[inline(always)]
fn add_and_multiply(
    (re, im): (&mut [Group<f64>], &mut [Group<f64>]),
    step: C128,
    (v_re, v_im): (&[Group<f64>], &[Group<f64>]),
    (next_re, next_im): (&[Group<f64>], &[Group<f64>]),
) -> C128 {
    let (mut sum_re, mut sum_im, mut minus_im) = (NOTHING, NOTHING, NOTHING);
    let columns = re.iter_mut().zip(im.iter_mut());
    let vectors = v_re.iter().zip(v_im).zip(next_re.iter().zip(next_im));
    for ((x, y), ((v, w), (next, next_i))) in columns.zip(vectors) {
        // (Hidden, as in `reflection`.)
        let (x, y) = std::hint::black_box((x, y));
        *x = plus(plus(*x, step.re, *v), -step.im, *w);
        *y = plus(plus(*y, step.re, *w), step.im, *v);
        sum_re = times(times(sum_re, *x, *next), *y, *next_i);
        sum_im = times(sum_im, *y, *next);
        minus_im = times(minus_im, *x, *next_i);
    }
    C128::new(total(sum_re), total(plus(sum_im, -1.0, minus_im)))
}

crate::multiversion! {
/// Makes columns an upper triangular matrix, the R of `of`.
fn factor(of: &mut Reflected, rest: &mut Columns) {
    let Reflected { r, columns: n, vectors, taus, .. } = of;
    let (n, steps) = (*n, taus.len());
    let mut products = vec![ZERO; n];
    for step in 0..=steps {
        // Each column gets the reflection of the step before, and is multiplied with this one's vector, for the next step, in
        // one go. The first of them is made that vector. (Before there are products, nothing is changed.)
        let (before, next) = (step.saturating_sub(1), step.min(steps.saturating_sub(1)));
        for j in step..n {
            if steps > 0 {
                let first = before / LANES;
                // H^H, as R = ... H2^H H1^H A.
                let change = -(taus[before].conj() * products[j]);
                let (v, next) = (vectors.parts(before, first), vectors.parts(next, first));
                products[j] = add_and_multiply(rest.parts_mut(j, first), change, v, next);
            }
            if step > 0 {
                // A finished row goes, so that columns are zero before what is left of them.
                r[before * n + j] = rest.at(before, j);
                rest.set(before, j, ZERO);
            }
            if j == step && step < steps {
                let (re, im) = vectors.parts_mut(step, 0);
                re.copy_from_slice(rest.re.groups(step));
                im.copy_from_slice(rest.im.groups(step));
                let (beta, tau) = reflect((re, im), step);
                (r[step * n + step], taus[step]) = (C128::new(beta, 0.0), tau);
            }
        }
    }
}
}

crate::multiversion! {
/// Makes columns of the identity those of Q.
fn multiply(of: &Reflected, q: &mut Columns) {
    let (vectors, steps) = (&of.vectors, of.taus.len());
    let count = q.re.groups.len() / q.re.width.max(1);
    for c in 0..count {
        // Reflections that begin after row `c` leave the column as it is.
        let Some(last) = steps.min(c + 1).checked_sub(1) else { return };
        let mut product = vectors.at::<C128>(c, last).conj();
        for k in (0..=last).rev() {
            let next = k.saturating_sub(1);
            let first = next / LANES;
            let change = -(of.taus[k] * product);
            let (v, next) = (vectors.parts(k, first), vectors.parts(next, first));
            product = add_and_multiply(q.parts_mut(c, first), change, v, next);
        }
    }
}
}
