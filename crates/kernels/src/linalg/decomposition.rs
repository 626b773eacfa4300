//! Decompositions through `faer`: SVD, QR, Cholesky and the Hermitian eigenvalue problem.

use super::cholesky::of_real as real_cholesky;
use super::{
    FactorFailure, Field, GRAIN, codes_of_batch, factors, for_batch, for_batch_with, for_field,
    householder, matrices, optional, reflection, singular, small, squares, store_optional,
    symmetric, to_columns, undefined, with_batch, write,
};
use crate::dense::{
    Compute, OptionalOutput, Real, SharedMut, expect_shape, load, store, store_columns, with_output,
};
use crate::interrupt::on_own_thread;
use crate::{C128, DType, Result, StridedMut, StridedRef, memory, parallel};

const NOT_FINITE: &str =
    "The algorithm failed to converge because the input matrix contained non-finite values.";

/// `a = u diag(s) vh` for `a` (*, m, n): `s` (*, k) descending with k = min(m, n), `u` (*, m, m) or (*, m, k),
/// `vh` (*, n, n) or (*, k, n), the first form with `full_matrices`. `s` has the real dtype.
///
/// # Errors
/// Non-finite input, shapes that do not fit, or a dtype without linear algebra.
pub fn svd(
    u: OptionalOutput<'_, '_>,
    s: &mut StridedMut<'_>,
    vh: OptionalOutput<'_, '_>,
    a: StridedRef<'_>,
    full_matrices: bool,
) -> Result<()> {
    let (batch, m, n) = matrices("linalg.svd", a.shape())?;
    let k = m.min(n);
    let (columns, rows) = if full_matrices { (m, n) } else { (k, k) };
    expect_shape("S", s.shape(), &with_batch(a.shape(), &[k]))?;
    // Matrices without elements whose factors have none either; their other dimension may be beyond walking.
    let is_empty = u.as_ref().is_none_or(|u| u.numel() == 0);
    if s.numel() == 0 && is_empty && vh.as_ref().is_none_or(|vh| vh.numel() == 0) {
        return Ok(());
    }
    if k > 0 && singular::fits(m, n, [columns, rows], u.is_some() || vh.is_some()) {
        let sizes = (batch, m, n, [columns, rows]);
        match a.dtype() {
            DType::F32 => return svd_of_small::<f32>(u, s, vh, a, sizes),
            DType::F64 => return svd_of_small::<f64>(u, s, vh, a, sizes),
            _ => {}
        }
    }
    let (shape, is_batched) = (a.shape(), a.ndim() > 2);
    for_field!(a.dtype(), "linalg.svd", "linalg_svd_cpu", T => {
        let a = load::<T>(a)?;
        let mut us = optional::<T>("U", u.as_deref(), &with_batch(shape, &[m, columns]))?;
        let mut vs = optional::<T>("Vh", vh.as_deref(), &with_batch(shape, &[rows, n]))?;
        let mut ss = memory::filled(<T as Field>::RealPart::default(), batch * k)?;
        let wanted = (u.is_some(), vh.is_some());
        let (us_, vs_, ss_) = (SharedMut::new(&mut us), SharedMut::new(&mut vs), SharedMut::new(&mut ss));
        for_batch(batch, 8 * m * n * k, "linalg.svd", is_batched, &|i| {
            let mut matrix = to_columns(&a, i, m, n)?;
            let up = scale(matrix.elements()).ok_or(FactorFailure::OfMatrix(NOT_FINITE))?;
            // SAFETY: one task per matrix.
            let ss = unsafe { ss_.slice(i * k..(i + 1) * k) };
            let decompose = move || factors::singular(&matrix, full_matrices);
            let found = on_own_thread(8 * m * n * k, decompose)?.ok_or(FactorFailure::OfMatrix(NOT_FINITE))?;
            for (s, &found) in ss.iter_mut().zip(&found.s) {
                *s = unscaled(found, up);
            }
            // SAFETY: as above.
            unsafe {
                if wanted.0 {
                    us_.slice(i * m * columns..(i + 1) * m * columns).copy_from_slice(found.u.columns());
                }
                if wanted.1 {
                    write(vs_, i, rows, n, |r, c| found.v.at(c, r).conjugate());
                }
            }
            Ok(())
        })?;
        store(s, &ss);
        if let Some(u) = u {
            store_columns(u, &us);
        }
        store_optional(vh, &vs);
        Ok(())
    })
}

/// [`svd`] of small real matrices, with so many columns of `u` and rows of `vh`.
fn svd_of_small<T: Real + Field<RealPart = T>>(
    u: OptionalOutput<'_, '_>,
    s: &mut StridedMut<'_>,
    vh: OptionalOutput<'_, '_>,
    a: StridedRef<'_>,
    (batch, m, n, [columns, rows]): (usize, usize, usize, [usize; 2]),
) -> Result<()> {
    let (shape, is_batched) = (a.shape(), a.ndim() > 2);
    let mut us = optional::<T>("U", u.as_deref(), &with_batch(shape, &[m, columns]))?;
    let mut vs = optional::<T>("Vh", vh.as_deref(), &with_batch(shape, &[rows, n]))?;
    let a = load::<T>(a)?;
    let k = m.min(n);
    let per_u = if us.is_empty() { 0 } else { m * columns };
    let per_v = if vs.is_empty() { 0 } else { rows * n };
    let (us_, vs_) = (SharedMut::new(&mut us), SharedMut::new(&mut vs));
    with_output::<T, _>(s, |s| {
        let s = SharedMut::new(s);
        let make = || singular::SvdWorkspace::<T>::new(m.max(n), k, columns.max(rows));
        for_batch_with(batch, 8 * m * n * k, "linalg.svd", is_batched, &make, &|solver, i| {
            let a = &a[i * m * n..(i + 1) * m * n];
            // SAFETY: one task per matrix.
            let (s, u, v) = unsafe {
                let u = us_.slice(i * per_u..(i + 1) * per_u);
                (s.slice(i * k..(i + 1) * k), u, vs_.slice(i * per_v..(i + 1) * per_v))
            };
            if solver.decompose(s, (u, v), a, m < n) {
                Ok(())
            } else {
                Err(FactorFailure::OfMatrix(NOT_FINITE))
            }
        })
    })?;
    store_optional(u, &us);
    store_optional(vh, &vs);
    Ok(())
}

/// Multiplies a matrix by a power of two so that its largest element is about 1 (`faer` takes other sizes for zeros and
/// infinities); gives what its values are to be multiplied by, or none if not all elements are finite.
fn scale<T: Field>(elements: &mut [T]) -> Option<f64> {
    let mut largest = 0.0;
    for value in &*elements {
        let size = Field::cabs1(*value);
        // (NaN stays.)
        largest = if size > largest || size.is_nan() { size } else { largest };
    }
    if !largest.is_finite() {
        return None;
    }
    let (down, up) = symmetric::scale_of(largest);
    for value in elements {
        *value = T::convert(C128::convert(*value) * down);
    }
    Some(up)
}

/// A value of a scaled matrix.
fn unscaled<T: Field>(value: T, up: f64) -> T::RealPart {
    <T::RealPart>::convert(C128::convert(value).re * up)
}

/// `a = q r` for `a` (*, m, n), `r` upper triangular with a real diagonal (that may be negative): `q` (*, m, m) and `r`
/// (*, m, n) if `complete`, else `q` (*, m, k) and `r` (*, k, n) with k = min(m, n).
///
/// # Errors
/// Shapes that do not fit or a dtype without linear algebra.
pub fn qr(
    q: OptionalOutput<'_, '_>,
    r: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    complete: bool,
) -> Result<()> {
    let (batch, m, n) = matrices("linalg.qr", a.shape())?;
    let k = if complete { m } else { m.min(n) };
    expect_shape("R", r.shape(), &with_batch(a.shape(), &[k, n]))?;
    if r.numel() == 0 && q.as_ref().is_none_or(|q| q.numel() == 0) {
        return Ok(());
    }
    if m.min(n) > 0 && (small::fits(batch, m, n) || reflection::fits(m, n)) {
        match a.dtype() {
            DType::F32 => return qr_of_small::<f32>(q, r, a, (batch, m, n, k)),
            DType::F64 => return qr_of_small::<f64>(q, r, a, (batch, m, n, k)),
            _ => {}
        }
    }
    let sizes = (batch, m, n, k);
    match a.dtype() {
        DType::F32 => return qr_of_large::<f32>(q, r, a, sizes),
        DType::F64 => return qr_of_large::<f64>(q, r, a, sizes),
        _ => {}
    }
    let shape = a.shape();
    for_field!(a.dtype(), "linalg.qr", "geqrf_cpu", T => {
        let a = load::<T>(a)?;
        let mut qs = optional::<T>("Q", q.as_deref(), &with_batch(shape, &[m, k]))?;
        let wanted = q.is_some();
        let qs_ = SharedMut::new(&mut qs);
        with_output::<T, _>(r, |r| {
            let r = SharedMut::new(r);
            for_batch(batch, 4 * m * n * n, "linalg.qr", true, &|i| {
                let qr = householder::ComplexQr::of(&a[i * m * n..(i + 1) * m * n], m, n)?;
                // SAFETY: one task per matrix.
                unsafe {
                    write(r, i, k, n, |row, c| qr.r::<T>(row, c));
                    if wanted {
                        let q = qr.q(k)?;
                        write(qs_, i, m, k, |row, c| q.at::<T>(row, c));
                    }
                }
                Ok(())
            })
        })?;
        store_optional(q, &qs);
        Ok(())
    })
}

/// [`qr`] of large real matrices.
fn qr_of_large<T: Real + Field>(
    q: OptionalOutput<'_, '_>,
    r: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    (batch, m, n, k): (usize, usize, usize, usize),
) -> Result<()> {
    // (Column by column, as `faer` gives them and as results lie.)
    let mut qs = optional::<T>("Q", q.as_deref(), &with_batch(a.shape(), &[m, k]))?;
    let mut rs = memory::filled(T::default(), batch * k * n)?;
    let a = load::<T>(a)?;
    let (wanted, qs_, rs_) = (q.is_some(), SharedMut::new(&mut qs), SharedMut::new(&mut rs));
    for_batch(batch, 4 * m * n * n, "linalg.qr", true, &|i| {
        let matrix = to_columns(&a, i, m, n)?;
        let qr = on_own_thread(2 * m * n * k, move || factors::Qr::of(matrix))?;
        // SAFETY: one task per matrix.
        unsafe {
            qr.write_r(k, rs_.slice(i * k * n..(i + 1) * k * n));
            if wanted {
                let q = on_own_thread(2 * m * k * k, move || qr.q(k))?;
                qs_.slice(i * m * k..(i + 1) * m * k).copy_from_slice(q.columns());
            }
        }
        Ok(())
    })?;
    store_columns(r, &rs);
    if let Some(q) = q {
        store_columns(q, &qs);
    }
    Ok(())
}

/// [`qr`] of small real matrices.
fn qr_of_small<T: Real>(
    q: OptionalOutput<'_, '_>,
    r: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    sizes: (usize, usize, usize, usize),
) -> Result<()> {
    let (batch, m, n, k) = sizes;
    let mut qs = optional::<T>("Q", q.as_deref(), &with_batch(a.shape(), &[m, k]))?;
    let a = load::<T>(a)?;
    with_output::<T, _>(r, |r| {
        if small::fits(batch, m, n) {
            return small::qr(&mut qs, r, &a, sizes);
        }
        let per_q = qs.len() / batch;
        let (qs, r) = (SharedMut::new(&mut qs), SharedMut::new(r));
        let matrices = parallel::RestartableBlocks::default();
        let one = |i: usize| {
            // SAFETY: one task per matrix.
            let (q, r) = unsafe {
                (qs.slice(i * per_q..(i + 1) * per_q), r.slice(i * k * n..(i + 1) * k * n))
            };
            reflection::qr(q, r, &a[i * m * n..(i + 1) * m * n], m, n, k)
        };
        parallel::try_for_range(batch, (GRAIN / (4 * m * n * n)).max(1), &|mut range| {
            range.try_for_each(|i| matrices.run(|| one(i)))
        })
    })?;
    store_optional(q, &qs);
    Ok(())
}

/// `a = l l^H` for Hermitian positive definite `a` (*, n, n), of which one triangle is read; gives the
/// lower factor, or with `upper` its conjugate transpose. Gives for each matrix 0, or the order of the first leading
/// minor that is not positive definite; then `out` becomes NaN.
///
/// # Errors
/// Shapes that do not fit; a dtype without linear algebra.
pub fn cholesky(out: &mut StridedMut<'_>, a: StridedRef<'_>, upper: bool) -> Result<Vec<i32>> {
    let (batch, n) = squares("linalg.cholesky", a.shape())?;
    expect_shape("output", out.shape(), a.shape())?;
    match a.dtype() {
        DType::F32 => return real_cholesky::<f32>(out, a, (batch, n), upper),
        DType::F64 => return real_cholesky::<f64>(out, a, (batch, n), upper),
        _ => {}
    }
    for_field!(a.dtype(), "linalg.cholesky", "cholesky_cpu", T => {
        let a = load::<T>(a)?;
        with_output::<T, _>(out, |out| {
            let out = SharedMut::new(out);
            codes_of_batch(batch, n * n * n / 2, &|i| {
                let mut matrix = to_columns(&a, i, n, n)?;
                matrix.make_hermitian(upper);
                let l = on_own_thread(n * n * n / 6, move || factors::cholesky(matrix)).inspect_err(|_| {
                    // SAFETY: one task per matrix.
                    unsafe { write(out, i, n, n, |_, _| undefined()) };
                })?;
                let lower = |r: usize, c: usize| if r >= c { l.at(r, c) } else { T::default() };
                // SAFETY: one task per matrix.
                unsafe {
                    write(out, i, n, n, |r, c| if upper { lower(c, r).conjugate() } else { lower(r, c) });
                }
                Ok(())
            })
        })
    })
}

/// `a = v diag(w) v^H` for Hermitian `a` (*, n, n), of which one triangle is read: `w` (*, n) ascending with
/// the real dtype, `v` (*, n, n) with eigenvectors as columns.
///
/// # Errors
/// Non-finite input, shapes that do not fit, or a dtype without linear algebra.
pub fn eigh(
    w: &mut StridedMut<'_>,
    v: OptionalOutput<'_, '_>,
    a: StridedRef<'_>,
    upper: bool,
) -> Result<()> {
    let (batch, n) = squares("linalg.eigh", a.shape())?;
    expect_shape("eigenvalues", w.shape(), &with_batch(a.shape(), &[n]))?;
    if n <= symmetric::largest(v.is_some()) {
        match a.dtype() {
            DType::F32 => return eigh_of_small::<f32>(w, v, a, (batch, n), upper),
            DType::F64 => return eigh_of_small::<f64>(w, v, a, (batch, n), upper),
            _ => {}
        }
    }
    let (shape, is_batched) = (a.shape(), a.ndim() > 2);
    for_field!(a.dtype(), "linalg.eigh", "linalg_eigh_cpu", T => {
        let a = load::<T>(a)?;
        let mut vs = optional::<T>("eigenvectors", v.as_deref(), shape)?;
        let wanted = v.is_some();
        let mut ws = memory::filled(<T as Field>::RealPart::default(), batch * n)?;
        let (vs_, ws_) = (SharedMut::new(&mut vs), SharedMut::new(&mut ws));
        // Matrices of order 0 have no eigenvalues, and `faer` does not take them.
        let count = if n == 0 { 0 } else { batch };
        for_batch(count, 8 * n * n * n, "linalg.eigh", is_batched, &|i| {
            let mut matrix = to_columns(&a, i, n, n)?;
            matrix.make_hermitian(upper);
            let up = scale(matrix.elements()).ok_or(FactorFailure::OfMatrix(NOT_FINITE))?;
            let found = on_own_thread(8 * n * n * n, move || factors::eigen(&matrix))?;
            let (values, vectors) = found.ok_or(FactorFailure::OfMatrix(NOT_FINITE))?;
            // SAFETY: one task per matrix.
            unsafe {
                for (w, &value) in ws_.slice(i * n..(i + 1) * n).iter_mut().zip(&values) {
                    *w = unscaled(value, up);
                }
                if wanted {
                    vs_.slice(i * n * n..(i + 1) * n * n).copy_from_slice(vectors.columns());
                }
            }
            Ok(())
        })?;
        store(w, &ws);
        if let Some(v) = v {
            store_columns(v, &vs);
        }
        Ok(())
    })
}

/// [`eigh`] of small real matrices.
fn eigh_of_small<T: Real + Field<RealPart = T>>(
    w: &mut StridedMut<'_>,
    v: OptionalOutput<'_, '_>,
    a: StridedRef<'_>,
    (batch, n): (usize, usize),
    upper: bool,
) -> Result<()> {
    let is_batched = a.ndim() > 2;
    let mut vs = optional::<T>("eigenvectors", v.as_deref(), a.shape())?;
    let a = load::<T>(a)?;
    let per_v = if vs.is_empty() { 0 } else { n * n };
    let vs_ = SharedMut::new(&mut vs);
    with_output::<T, _>(w, |w| {
        let w = SharedMut::new(w);
        let count = if n == 0 { 0 } else { batch };
        let make = || symmetric::EighWorkspace::<T>::new(n, per_v > 0);
        for_batch_with(count, 8 * n * n * n, "linalg.eigh", is_batched, &make, &|solver, i| {
            let a = &a[i * n * n..(i + 1) * n * n];
            // SAFETY: one task per matrix.
            let (w, v) =
                unsafe { (w.slice(i * n..(i + 1) * n), vs_.slice(i * per_v..(i + 1) * per_v)) };
            if solver.eigen(w, v, a, upper) {
                Ok(())
            } else {
                Err(FactorFailure::OfMatrix(NOT_FINITE))
            }
        })
    })?;
    store_optional(v, &vs);
    Ok(())
}
