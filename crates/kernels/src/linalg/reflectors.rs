//! `a = Q R` in LAPACK's compact form (`geqrf`): R, below it the vectors of Householder's reflections, and their factors tau.

use super::{Field, GRAIN, for_field, matrices, with_batch};
use crate::dense::{Compute, SharedMut, expect_shape, load, store, with_output};
use crate::{C128, Result, StridedMut, StridedRef, interrupt, memory, parallel};

/// For `a` (*, n, m), each of whose rows is a column of an m x n matrix: `out` alike holds R in the upper triangle and below
/// it the vectors of the reflections `H = I - tau v v^H` without their ones; `tau` is (*, k) with k = min(m, n). `Q = H1 H2 ... Hk`.
///
/// # Errors
/// Shapes that do not fit, or a dtype without linear algebra.
pub fn geqrf(out: &mut StridedMut<'_>, tau: &mut StridedMut<'_>, a: StridedRef<'_>) -> Result<()> {
    let (batch, n, m) = matrices("geqrf", a.shape())?;
    let k = m.min(n);
    expect_shape("a", out.shape(), a.shape())?;
    expect_shape("tau", tau.shape(), &with_batch(a.shape(), &[k]))?;
    for_field!(a.dtype(), "geqrf", "geqrf_cpu", T => {
        let a = load::<T>(a)?;
        let mut taus = memory::filled(T::default(), batch * k)?;
        let taus_ = SharedMut::new(&mut taus);
        with_output::<T, _>(out, |out| {
            let out = SharedMut::new(out);
            parallel::try_for_range(batch, (GRAIN / (2 * m * n * k).max(1)).max(1), &|range| {
                for i in range {
                    // SAFETY: one task per matrix.
                    let (out, taus) = unsafe {
                        (out.slice(i * m * n..(i + 1) * m * n), taus_.slice(i * k..(i + 1) * k))
                    };
                    out.copy_from_slice(&a[i * m * n..(i + 1) * m * n]);
                    factor(out, m, taus);
                }
                Ok(())
            })
        })?;
        store(tau, &taus);
        Ok(())
    })
}

fn factor<T: Field>(columns: &mut [T], m: usize, taus: &mut [T]) {
    for (p, tau) in taus.iter_mut().enumerate() {
        let (done, rest) = columns.split_at_mut((p + 1) * m);
        let own = &mut done[p * m + p..];
        let factor = reflect(own);
        *tau = T::convert(factor);
        let adjoint = T::convert(factor.conj());
        for column in rest.chunks_exact_mut(m) {
            interrupt::check();
            apply(&own[1..], adjoint, &mut column[p..]);
        }
    }
}

/// Makes a vector the reflection that brings it onto the first axis: its first element becomes what is left there, the others
/// those of `v`; gives tau. The first element is real, of the sign opposite to what stood there.
fn reflect<T: Field>(x: &mut [T]) -> C128 {
    let alpha = C128::convert(x[0]);
    let largest = x.iter().map(|v| v.magnitude()).fold(0.0, f64::max);
    let rest = x[1..].iter().any(|v| v.magnitude() != 0.0);
    if !rest && alpha.im == 0.0 || !largest.is_finite() {
        return C128::default();
    }
    let squares: f64 = x.iter().map(|v| (v.magnitude() / largest).powi(2)).sum();
    let norm = largest * squares.sqrt();
    let beta = if alpha.re >= 0.0 { -norm } else { norm };
    let below = alpha - beta;
    x[0] = T::convert(C128::new(beta, 0.0));
    for v in &mut x[1..] {
        *v = T::convert(C128::convert(*v) / below);
    }
    (C128::new(beta, 0.0) - alpha) / beta
}

crate::multiversion! {
    /// `c - factor v (v^H c)`, where the first element of `v` is 1 and left out.
    fn apply<T: Field>(v: &[T], factor: T, c: &mut [T]) {
        let (first, rest) = c.split_at_mut(1);
        let mut product = first[0];
        for (&v, &c) in v.iter().zip(&*rest) {
            product = v.conjugate().mul_add_to(c, product);
        }
        let minus = T::default().minus(factor.mul_add_to(product, T::default()));
        first[0] = minus.mul_add_to(T::one(), first[0]);
        for (&v, c) in v.iter().zip(rest) {
            *c = minus.mul_add_to(v, *c);
        }
    }
}
