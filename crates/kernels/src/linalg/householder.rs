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
        let mut vectors = Columns::zeros(m, steps);
        let mut taus = Vec::with_capacity(steps);
        let mut r = vec![ZERO; steps * n];
        let mut x = Vec::with_capacity(m);
        for (k, r) in r.chunks_exact_mut(n.max(1)).enumerate() {
            x.clear();
            x.extend((k..m).map(|i| rest.at::<C128>(i, k)));
            let (beta, tau) = reflect(&mut x);
            for (i, &v) in (k..m).zip(&x) {
                vectors.set(i, k, v);
            }
            // H^H, as R = ... H2^H H1^H A.
            apply(&mut rest, &vectors, k, tau.conj(), k + 1);
            r[k] = C128::new(beta, 0.0);
            // A finished row goes, so that columns are zero before what is left of them.
            for (j, r) in r.iter_mut().enumerate().skip(k + 1) {
                *r = rest.at(k, j);
                rest.set(k, j, ZERO);
            }
            taus.push(tau);
        }
        Reflected { r, columns: n, vectors, taus, rows: m }
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
        // The last first: columns before its rows are not reached yet.
        for (step, &tau) in self.taus.iter().enumerate().rev() {
            apply(&mut q, &self.vectors, step, tau, step);
        }
        q
    }
}

/// Makes `x` the `v` of the reflection that turns it to `(beta, 0, ...)` with a real beta; gives beta and tau.
fn reflect(x: &mut [C128]) -> (f64, C128) {
    let Some((first, rest)) = x.split_first_mut() else { return (0.0, ZERO) };
    let alpha = std::mem::replace(first, C128::new(1.0, 0.0));
    // (NaN is not zero, but no largest size either.)
    let has_tail = rest.iter().any(|v| *v != ZERO);
    if !has_tail && alpha.im == 0.0 {
        return (alpha.re, ZERO);
    }
    let scale = rest.iter().map(|v| v.re.abs().max(v.im.abs())).fold(f64::MIN_POSITIVE, f64::max);
    let tail = scale * rest.iter().map(|v| (v / scale).norm_sqr()).sum::<f64>().sqrt();
    let beta = -alpha.norm().hypot(tail).copysign(alpha.re);
    let tau = C128::new((beta - alpha.re) / beta, -alpha.im / beta);
    let factor = C128::new(1.0, 0.0) / (alpha - beta);
    for v in rest {
        *v *= factor;
    }
    (beta, tau)
}

crate::multiversion! {
/// `x - tau v (v^H x)` of the columns from `first` on, which are zero before row `k`, where `v` is vector `k`.
fn apply(columns: &mut Columns, vectors: &Columns, k: usize, tau: C128, first: usize) {
    if tau == ZERO {
        return;
    }
    let start = k / LANES;
    let (v_re, v_im) = (&vectors.re.groups(k)[start..], &vectors.im.groups(k)[start..]);
    let count = columns.re.groups.len() / columns.re.width.max(1);
    for j in first..count {
        let re = &mut columns.re.groups_mut(j)[start..];
        let im = &mut columns.im.groups_mut(j)[start..];
        let mut sums = [NOTHING; 4];
        for (((x, y), v), w) in re.iter().zip(im.iter()).zip(v_re).zip(v_im) {
            sums[0] = times(sums[0], *x, *v);
            sums[1] = times(sums[1], *y, *w);
            sums[2] = times(sums[2], *y, *v);
            sums[3] = times(sums[3], *x, *w);
        }
        let product = C128::new(
            total(plus(sums[0], 1.0, sums[1])),
            total(plus(sums[2], -1.0, sums[3])),
        );
        let step = -(tau * product);
        for (((x, y), v), w) in re.iter_mut().zip(im.iter_mut()).zip(v_re).zip(v_im) {
            // (Hidden, as in `reflection`.)
            let (x, y) = std::hint::black_box((x, y));
            *x = plus(plus(*x, step.re, *v), -step.im, *w);
            *y = plus(plus(*y, step.re, *w), step.im, *v);
        }
    }
}
}
