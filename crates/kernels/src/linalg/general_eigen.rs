//! Eigenvalues and eigenvectors of general matrices, which are complex even of real ones; by `faer`, in double precision.

use super::factors::{ColMajor, in_workspace};
use super::{FactorFailure, for_batch, squares, symmetric, with_batch};
use crate::dense::{SharedMut, expect_shape, load, store};
use crate::interrupt::on_own_thread;
use crate::simd::math_f64;
use crate::{C128, Error, Result, StridedMut, StridedRef, memory};
use faer::diag::DiagMut;
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch};
use faer::{Par, Spec};

const STUCK: &str = "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.";

/// Eigenvalues, and eigenvectors column by column if they are requested.
type Eigen = (Vec<C128>, Vec<C128>);

/// `a v = w v` for `a` (*, n, n), each of whose rows is a column of a matrix: `values` (*, n), and if they are asked for
/// `vectors` (*, n, n), each of whose rows is an eigenvector of length 1 whose largest element is real. Both are complex.
///
/// # Errors
/// Non-finite input, shapes that do not fit, or a dtype without linear algebra.
pub fn eig(
    values: &mut StridedMut<'_>,
    vectors: Option<&mut StridedMut<'_>>,
    a: StridedRef<'_>,
) -> Result<()> {
    let (batch, n) = squares("linalg.eig", a.shape())?;
    expect_shape("eigenvalues", values.shape(), &with_batch(a.shape(), &[n]))?;
    if let Some(vectors) = &vectors {
        expect_shape("eigenvectors", vectors.shape(), a.shape())?;
    }
    let (wants, is_batched) = (vectors.is_some(), a.ndim() > 2);
    let mut ws = memory::filled(C128::default(), batch * n)?;
    let mut vs = memory::filled(C128::default(), if wants { batch * n * n } else { 0 })?;
    let (ws_, vs_) = (SharedMut::new(&mut ws), SharedMut::new(&mut vs));
    let put = |i: usize, found: Option<Eigen>| {
        let (values, vectors) = found.ok_or(FactorFailure::OfMatrix(STUCK))?;
        // SAFETY: one task per matrix.
        unsafe {
            ws_.slice(i * n..(i + 1) * n).copy_from_slice(&values);
            vs_.slice(i * vectors.len()..(i + 1) * vectors.len()).copy_from_slice(&vectors);
        }
        Ok(())
    };
    // (`faer` does not take matrices of order 0.)
    let (count, cost) = (if n == 0 { 0 } else { batch }, 20 * n * n * n);
    if a.dtype().is_complex() {
        let a = load::<C128>(a)?;
        check_finite(a.iter().all(|v| v.re.is_finite() && v.im.is_finite()))?;
        for_batch(count, cost, "linalg.eig", is_batched, &|i| {
            let own = memory::copied(&a[i * n * n..(i + 1) * n * n])?;
            put(i, on_own_thread(cost, move || of_complex(own, n, wants))?)
        })?;
    } else {
        let a = load::<f64>(a)?;
        check_finite(a.iter().all(|v| v.is_finite()))?;
        for_batch(count, cost, "linalg.eig", is_batched, &|i| {
            let own = memory::copied(&a[i * n * n..(i + 1) * n * n])?;
            put(i, on_own_thread(cost, move || of_real(own, n, wants))?)
        })?;
    }
    store(values, &ws);
    if let Some(vectors) = vectors {
        store(vectors, &vs);
    }
    Ok(())
}

fn check_finite(is_finite: bool) -> Result<()> {
    if is_finite {
        return Ok(());
    }
    Err(Error::runtime(
        "torch.linalg.eig: input tensor should not contain infs or NaNs.".to_owned(),
    ))
}

fn wanted(vectors: bool) -> ComputeEigenvectors {
    if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

fn of_complex(mut elements: Vec<C128>, n: usize, wants: bool) -> Result<Option<Eigen>> {
    let largest = elements.iter().fold(0.0, |most: f64, v| most.max(v.re.abs().max(v.im.abs())));
    let (down, up) = symmetric::scale_of(largest);
    for v in &mut elements {
        *v *= down;
    }
    let matrix = ColMajor::new(elements, n, n);
    let mut values = memory::filled(C128::default(), n)?;
    let mut vectors = if wants { Some(ColMajor::<C128>::zeros(n, n)?) } else { None };
    let request = evd_scratch::<C128>(n, wanted(false), wanted(wants), Par::Seq, Spec::default());
    let done = in_workspace(request, n * n, |stack| {
        let to = vectors.as_mut().map(ColMajor::view_mut);
        let values = DiagMut::from_slice_mut(&mut values);
        evd_cplx::<f64>(matrix.view(), values, None, to, Par::Seq, stack, Spec::default())
    })?;
    if done.is_err() {
        return Ok(None);
    }
    for v in &mut values {
        *v *= up;
    }
    let mut vectors = match &mut vectors {
        Some(vectors) => memory::copied(vectors.elements())?,
        None => Vec::new(),
    };
    vectors.chunks_exact_mut(n).for_each(|vector| normalise(vector, false));
    Ok(Some((values, vectors)))
}

fn of_real(mut elements: Vec<f64>, n: usize, wants: bool) -> Result<Option<Eigen>> {
    let largest = elements.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let (down, up) = symmetric::scale_of(largest);
    for v in &mut elements {
        *v *= down;
    }
    let matrix = ColMajor::new(elements, n, n);
    let (mut re, mut im) = (memory::filled(0.0_f64, n)?, memory::filled(0.0_f64, n)?);
    let mut packed = if wants { Some(ColMajor::<f64>::zeros(n, n)?) } else { None };
    let request = evd_scratch::<f64>(n, wanted(false), wanted(wants), Par::Seq, Spec::default());
    let done = in_workspace(request, n * n, |stack| {
        let to = packed.as_mut().map(ColMajor::view_mut);
        let (re, im) = (DiagMut::from_slice_mut(&mut re), DiagMut::from_slice_mut(&mut im));
        evd_real::<f64>(matrix.view(), re, im, None, to, Par::Seq, stack, Spec::default())
    })?;
    if done.is_err() {
        return Ok(None);
    }
    let values = memory::collect((0..n).map(|j| C128::new(re[j] * up, im[j] * up)))?;
    let vectors = match &packed {
        Some(packed) => unpack(packed, &im, n)?,
        None => Vec::new(),
    };
    Ok(Some((values, vectors)))
}

/// The vectors of a real matrix: those of a pair of conjugate values are one column plus or minus i times the next.
fn unpack(packed: &ColMajor<f64>, im: &[f64], n: usize) -> Result<Vec<C128>> {
    let mut vectors = memory::filled(C128::default(), n * n)?;
    let mut j = 0;
    while j < n {
        let is_pair = im[j] != 0.0 && j + 1 < n;
        for row in 0..n {
            let second = if is_pair { packed.at(row, j + 1) } else { 0.0 };
            vectors[j * n + row] = C128::new(packed.at(row, j), second);
        }
        normalise(&mut vectors[j * n..(j + 1) * n], !is_pair);
        if is_pair {
            let (first, second) = vectors[j * n..].split_at_mut(n);
            for (to, from) in second.iter_mut().zip(&*first) {
                *to = from.conj();
            }
            j += 1;
        }
        j += 1;
    }
    Ok(vectors)
}

/// Makes a vector one of length 1, and its largest element real if the vector is not.
fn normalise(vector: &mut [C128], is_real: bool) {
    let size = |v: &C128| math_f64::hypot(v.re, v.im);
    let largest = vector.iter().map(size).fold(0.0, f64::max);
    if !(largest > 0.0 && largest.is_finite()) {
        return;
    }
    let squares: f64 = vector.iter().map(|v| (size(v) / largest).powi(2)).sum();
    let length = largest * squares.sqrt();
    let first = vector.iter().position(|v| size(v) >= largest);
    let phase = match first.filter(|_| !is_real) {
        Some(at) => vector[at].conj() / largest,
        None => C128::new(1.0, 0.0),
    };
    for v in &mut *vector {
        *v = *v * phase / length;
    }
    if let Some(at) = first.filter(|_| !is_real) {
        vector[at].im = 0.0;
    }
}
