//! The QR decomposition of complex matrices by Householder's reflections, in the phases that LAPACK gives.
//!
//! A factorisation is unique up to the phases of R's diagonal. LAPACK makes each diagonal element real, with the sign
//! opposite to the real part of what stood there; that depends on the reflections before it, so that it cannot be
//! had by turning another library's result. One matrix at a time, column by column, computed in double precision.

use crate::C128;
use crate::dense::Compute;

const ZERO: C128 = C128::new(0.0, 0.0);

/// A matrix column by column.
pub(super) struct Columns {
    values: Vec<C128>,
    rows: usize,
}

impl Columns {
    pub(super) fn at<T: Compute>(&self, row: usize, column: usize) -> T {
        T::convert(self.values[column * self.rows + row])
    }

    fn column(&mut self, column: usize) -> &mut [C128] {
        &mut self.values[column * self.rows..(column + 1) * self.rows]
    }
}

/// A = H1 H2 ... R with `Hk = I - tau v v^H`: R above and on the diagonal, below it `v`, whose first element is 1.
pub(super) struct Reflected {
    a: Columns,
    taus: Vec<C128>,
}

impl Reflected {
    /// Of a row-major (m, n) matrix.
    pub(super) fn of<T: Compute + crate::Element>(a: &[T], m: usize, n: usize) -> Reflected {
        let mut values = vec![ZERO; m * n];
        for (flat, &value) in a.iter().enumerate() {
            values[flat % n * m + flat / n] = C128::convert(value);
        }
        let mut a = Columns { values, rows: m };
        let mut taus = Vec::with_capacity(m.min(n));
        for k in 0..m.min(n) {
            let tau = reflect(&mut a.column(k)[k..]);
            taus.push(tau);
            let (before, after) = a.values.split_at_mut((k + 1) * m);
            let v = &before[k * m + k + 1..];
            for column in after.chunks_exact_mut(m) {
                // H^H, as R = ... H2^H H1^H A.
                apply(tau.conj(), v, &mut column[k..]);
            }
        }
        Reflected { a, taus }
    }

    /// The element of R.
    pub(super) fn r<T: Compute>(&self, row: usize, column: usize) -> T {
        if row <= column { self.a.at(row, column) } else { T::default() }
    }

    /// The first `k` columns of Q.
    pub(super) fn q(&self, k: usize) -> Columns {
        let m = self.a.rows;
        let mut q = Columns { values: vec![ZERO; m * k], rows: m };
        for c in 0..k {
            let column = q.column(c);
            column[c] = C128::new(1.0, 0.0);
            // Reflections that come after `c` leave the unit vector as it is.
            for step in (0..self.taus.len().min(c + 1)).rev() {
                let v = &self.a.values[step * m + step + 1..(step + 1) * m];
                apply(self.taus[step], v, &mut column[step..]);
            }
        }
        q
    }
}

/// Makes `x` the reflection that turns it to `(beta, 0, ...)` with a real beta: beta, then `v` without its first 1.
fn reflect(x: &mut [C128]) -> C128 {
    let Some((first, rest)) = x.split_first_mut() else { return ZERO };
    let scale = rest.iter().map(|v| v.norm()).fold(0.0, f64::max);
    if scale == 0.0 && first.im == 0.0 {
        return ZERO;
    }
    let tail = if scale == 0.0 {
        0.0
    } else {
        scale * rest.iter().map(|v| (v / scale).norm_sqr()).sum::<f64>().sqrt()
    };
    let alpha = *first;
    let beta = -alpha.norm().hypot(tail).copysign(alpha.re);
    let tau = C128::new((beta - alpha.re) / beta, -alpha.im / beta);
    let factor = C128::new(1.0, 0.0) / (alpha - beta);
    for v in rest {
        *v *= factor;
    }
    *first = C128::new(beta, 0.0);
    tau
}

/// `x - tau v (v^H x)`, where `v` begins with a 1 that is left out.
fn apply(tau: C128, v: &[C128], x: &mut [C128]) {
    let (first, rest) = x.split_first_mut().expect("there is a row on the diagonal");
    let product = v.iter().zip(&*rest).fold(*first, |sum, (v, x)| sum + v.conj() * x);
    let step = tau * product;
    *first -= step;
    for (x, v) in rest.iter_mut().zip(v) {
        *x -= step * v;
    }
}
