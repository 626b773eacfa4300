//! Decompositions of batches of dense matrices, with gradients.
//!
//! Linear equations and determinants are in `solve`. Formulas follow M. B. Giles, "An extended collection of matrix
//! derivative results" (2008), and, for complex matrices, C. Boeddeker et al., "On the computation of complex-valued
//! gradients" (2017): a gradient is the conjugate cotangent, `A^H` is the conjugate transpose.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::ops::reduce::any_all::{all_examples, is_any_true};
use crate::tensor::shape::wrap_dim;
use crate::tensor::{Cpu, contiguous_strides};
use crate::{DType, Device, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::{Iter, elementwise, linalg as kernel};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SVD_KERNEL,
    &LINALG_SVD,
    &LINALG_SVDVALS,
    &LINALG_QR,
    &LINALG_CHOLESKY_EX,
    &LINALG_CHOLESKY,
    &EIGH_KERNEL,
    &LINALG_EIGH,
    &LINALG_EIGVALSH,
    &COMPLEX,
    &POLAR,
];

pub(in crate::ops) fn check_matrix(name: &str, a: &Tensor, square: bool) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        runtime,
        "linalg.{name}: The input tensor A must have at least 2 dimensions."
    );
    ensure!(
        a.dtype().is_floating_point() || a.dtype().is_complex(),
        not_implemented,
        "linalg.{name}: Expected a floating point or complex tensor as input. Got {}",
        a.dtype().scalar_name()
    );
    ensure!(
        !matches!(a.dtype(), DType::F16 | DType::BF16 | DType::C32),
        not_implemented,
        "linalg.{name}: Low precision dtypes not supported. Got {}",
        a.dtype().scalar_name()
    );
    let (m, n) = sizes(a.shape());
    ensure!(
        !square || m == n,
        runtime,
        "linalg.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    Ok(())
}

/// The numbers of rows and columns of matrices of this shape.
pub(in crate::ops) fn sizes(shape: &[i64]) -> (i64, i64) {
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// The batch dimensions of `a` followed by `last`.
pub(in crate::ops) fn batch_shape(a: &Tensor, last: &[i64]) -> Dims {
    a.shape()[..a.ndim() - 2].iter().chain(last).copied().collect()
}

/// The conjugate transpose.
pub(in crate::ops) fn h(a: &Tensor) -> Result<Tensor> {
    a.transpose(-2, -1)?.conj()
}

/// Raises `LinAlgError` for the first matrix in `a` whose error code is not 0, with a text that `message` makes of the
/// code.
pub(in crate::ops) fn check_codes(
    name: &str,
    a: &Tensor,
    codes: &Tensor,
    message: impl Fn(i32) -> String,
) -> Result<()> {
    let Some((element, code)) = first_failure(a, codes)? else { return Ok(()) };
    Err(Error::new(ErrorKind::LinAlg, format!("{name}: {element}{}", message(code))))
}

/// The first error code that is not 0 among the `codes` (*) of the matrices in `a`, and the prefix of the error's text,
/// which names the matrix if there is a batch. Tensors on the meta device have no codes. The codes are read by ops
/// alone, so that this works for codes that any device or subclass computed.
pub(in crate::ops) fn first_failure(a: &Tensor, codes: &Tensor) -> Result<Option<(String, i32)>> {
    // (Under `vmap` the matrices of all examples are checked.)
    let whole = all_examples(&codes.detach()?);
    if whole.device() == Device::Meta {
        return Ok(None);
    }
    let is_bad = whole.ne(&Tensor::wrapped(0)?)?;
    if !is_any_true(&is_bad)? {
        return Ok(None);
    }
    let is_batch = whole.ndim() > 0 || a.ndim() > 2;
    let first = is_bad.to_dtype(DType::U8)?.argmax(None, false)?.item()?.to_f64() as i64;
    let code = whole.reshape(&[-1])?.select(0, first)?.item()?.to_f64() as i32;
    let element = if is_batch { format!("(Batch element {first}): ") } else { String::new() };
    Ok(Some((element, code)))
}

/// The spec of the error codes of the matrices in `a`: int32, one for each matrix.
pub(in crate::ops) fn codes_spec(a: &Tensor) -> TensorSpec {
    TensorSpec::beside(a, &batch_shape(a, &[])).computed_in(DType::I32)
}

/// Writes the error codes of a batch, in row-major order, into `info`.
pub(in crate::ops) fn write_codes(cpu: Cpu, info: &Tensor, codes: &[i32]) -> Result<()> {
    // (This path allocates nothing, because another result is already written.)
    if let Some(numbers) = info.view_mut(cpu).as_slice_mut::<i32>() {
        numbers.copy_from_slice(codes);
        return Ok(());
    }
    info.copy_data(cpu, &Tensor::from_slice(codes, info.shape())?)
}

/// The spec of column-major matrices of `sizes` with the batch dimensions of `a`: the layout in which LAPACK returns
/// them.
pub(in crate::ops) fn by_columns(a: &Tensor, sizes: [i64; 2]) -> TensorSpec {
    let spec = TensorSpec::beside(a, &batch_shape(a, &sizes));
    let strides = column_strides(&spec.shape);
    spec.with_strides(strides)
}

/// The strides of a contiguous batch of column-major matrices.
pub(in crate::ops) fn column_strides(shape: &[i64]) -> Dims {
    let mut strides = contiguous_strides(shape);
    if let [.., rows, columns] = &mut strides[..] {
        (*rows, *columns) = (1, shape[shape.len() - 2].max(1));
    }
    strides
}

/// Whether `UPLO` names the upper triangle.
fn is_upper(uplo: &str) -> Result<bool> {
    match uplo {
        "U" | "u" => Ok(true),
        "L" | "l" => Ok(false),
        _ => bail!(runtime, "Expected UPLO argument to be 'L' or 'U', but got {uplo}"),
    }
}

/// Whether the values of a decomposition also need its vectors, because a derivative will be computed.
fn needs_vectors(a: &Tensor) -> bool {
    crate::autograd::needs_derivative_of(a)
}

/// The k x k identity in the dtype and on the device of `like`.
pub(in crate::ops) fn eye(k: i64, like: &Tensor) -> Result<Tensor> {
    crate::ops::creation::factory::eye_with(k, Some(like.dtype()), None, Some(like.device()), None)
}

/// Vectors (*, k) as diagonal matrices (*, k, k).
fn diagonal_matrix(d: &Tensor) -> Result<Tensor> {
    let k = d.shape()[d.ndim() - 1];
    d.unsqueeze(-2)?.mul(&eye(k, d)?)
}

/// `a - a^H`.
fn skew(a: &Tensor) -> Result<Tensor> {
    a.sub(&h(a)?)
}

/// The differences `E_ij = d_j - d_i` of all pairs of elements of vectors (*, k): (*, k, k).
pub(in crate::ops) fn gaps(d: &Tensor) -> Result<Tensor> {
    d.unsqueeze(-2)?.sub(&d.unsqueeze(-1)?)
}

/// The quotient `inner / gaps` off the diagonal, zeros on it, where `gaps` are the differences of eigenvalues (or of
/// squared singular values). Where two of these are equal, their vectors have a derivative only in directions that keep
/// them equal: there `lost`, the magnitude of the numerator, has to be negligible against `scale`, and the
/// quotient is taken as 0.
///
/// # Errors
/// `RuntimeError` with the text `refusal` where it is not negligible.
pub(in crate::ops) fn over_gaps(
    inner: &Tensor,
    gaps: &Tensor,
    (lost, scale): (&Tensor, &Tensor),
    refusal: &str,
) -> Result<Tensor> {
    let k = inner.shape()[inner.ndim() - 1];
    let is_equal = gaps.eq(&Tensor::wrapped(0)?)?;
    if inner.numel() > 0 && super::layout::has_elements(inner) {
        let bound = scale.detach()?.abs()?.amax(&[-2, -1], true)?.times(Scalar::Float(1e-4))?;
        let is_lost = off_diagonal(&lost.detach()?.abs()?, k)?.gt(&bound)?;
        ensure!(!is_any_true(&is_lost.logical_and(&is_equal)?)?, runtime, "{refusal}");
    }
    inner.div(&gaps.masked_fill(&is_equal, Scalar::Int(1))?)?.masked_fill(&is_equal, Scalar::Int(0))
}

pub(in crate::ops) fn matrix_samples(s: &Sampler) -> Vec<Sample> {
    vec![Sample::of(regular(s, &[3])), Sample::of(regular(s, &[2, 2]))]
}

/// Random diagonally dominant matrices (*batch, n, n), where `shape` is (*batch, n).
pub(in crate::ops) fn regular(s: &Sampler, shape: &[i64]) -> Tensor {
    let n = shape[shape.len() - 1];
    let full: Dims = shape.iter().copied().chain([n]).collect();
    let diagonal = eye(n, &s.normal(&[0])).and_then(|e| e.times(Scalar::Float(3.0)));
    diagonal.and_then(|d| s.uniform(&full, -1.0, 1.0).add(&d)).expect("samples are small")
}

/// The singular value decomposition that `torch.linalg.svd` and `torch.linalg.svdvals` are made of. Without
/// `compute_uv`, `U` and `Vh` are empty. Source of its gradient: M. B. Giles, "An extended collection of matrix
/// derivative results" (2008); of complex matrices: C. Boeddeker et al., "On the computation of
/// complex-valued gradients" (2017).
#[op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
     internal, node = "LinalgSvd", method = svd_kernel, batch = matrices)]
impl SvdKernel {
    fn meta(a: &Tensor, full_matrices: bool, compute_uv: bool) -> Result<[TensorSpec; 3]> {
        check_matrix("svd", a, false)?;
        let (m, n) = sizes(a.shape());
        let k = m.min(n);
        let s = TensorSpec::beside(a, &batch_shape(a, &[k])).computed_in(a.dtype().to_real());
        if !compute_uv {
            let none = TensorSpec::beside(a, &[0]);
            return Ok([none.clone(), s, none]);
        }
        let (columns, rows) = if full_matrices { (m, n) } else { (k, k) };
        Ok([by_columns(a, [m, columns]), s, by_columns(a, [rows, n])])
    }
    fn cpu(
        cpu: Cpu,
        u: &Tensor,
        s: &Tensor,
        vh: &Tensor,
        a: &Tensor,
        full_matrices: bool,
        compute_uv: bool,
    ) -> Result<()> {
        let (mut u, mut s, mut vh) = (u.view_mut(cpu), s.view_mut(cpu), vh.view_mut(cpu));
        let a = a.view_ref(cpu);
        if !compute_uv {
            return Ok(kernel::svd(None, &mut s, None, a, false)?);
        }
        Ok(kernel::svd(Some(&mut u), &mut s, Some(&mut vh), a, full_matrices)?)
    }
    fn vjp_a(
        grad_u: Option<&Tensor>,
        grad_s: Option<&Tensor>,
        grad_vh: Option<&Tensor>,
        u: &Tensor,
        s: &Tensor,
        vh: &Tensor,
    ) -> Result<Tensor> {
        svd_backward((grad_u, grad_s, grad_vh), u, s, vh)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        // Singular vectors of complex matrices are determined up to a phase, so that numerical differences do not
        // apply.
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.normal(&[3, 2])),
            Sample::of(s.normal(&[2, 3])),
            Sample::of(regular(s, &[3])),
        ]
    }
}

type Grads3<'a> = (Option<&'a Tensor>, Option<&'a Tensor>, Option<&'a Tensor>);

/// The gradient of the singular value decomposition. With `A = U S V^H` the core is
/// `(skew(U^H gU) S + S skew(V^H gV)) / E + diag(gS)`, `E_ij = s_j^2 - s_i^2`, between `U` and `V^H`; the parts of `gU`
/// and `gV` outside of the spans of `U` and `V` are added.
fn svd_backward((gu, gs, gvh): Grads3<'_>, u: &Tensor, s: &Tensor, vh: &Tensor) -> Result<Tensor> {
    ensure!(
        u.ndim() >= 2 && vh.ndim() >= 2,
        runtime,
        "svd_backward: the gradient needs the singular vectors, which were not computed (compute_uv=False); use torch.linalg.svdvals, or compute them"
    );
    let (m, n, k) = (u.shape()[u.ndim() - 2], vh.shape()[vh.ndim() - 1], s.shape()[s.ndim() - 1]);
    let gu = gu.map(|g| within(g, -1, k)).transpose()?;
    let gvh = gvh.map(|g| within(g, -2, k)).transpose()?;
    let (gu, gvh) = (gu.as_ref(), gvh.as_ref());
    let (u, vh) = (u.narrow(-1, 0, k)?, vh.narrow(-2, 0, k)?);
    let zero = TensorSpec::beside(s, s.shape()).zeros()?;
    let mut core = diagonal_matrix(gs.unwrap_or(&zero))?;
    let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
    let squares = gaps(&s.mul(s)?)?;
    let left = gu.map(|g| h(&u)?.matmul(g)).transpose()?;
    let right = gvh.map(|g| vh.matmul(&h(g)?)).transpose()?;
    let size = sizes_of(&[&left, &right])?;
    let left = left.as_ref().map(skew).transpose()?;
    let right = right.as_ref().map(skew).transpose()?;
    check_phases(
        [&left, &right],
        "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on this phase term, making it ill-defined.",
    )?;
    let from_left = left.as_ref().map(|t| t.mul(&row)).transpose()?;
    let from_right = right.as_ref().map(|t| t.mul(&column)).transpose()?;
    let both = match (from_left, from_right) {
        (Some(a), Some(b)) => Some(a.add(&b)?),
        (one, None) | (None, one) => one,
    };
    // (Matrices without elements have no vectors.)
    if let (Some(both), Some(size)) = (&both, &size)
        && k > 0
    {
        // Left and right singular vectors of singular values that are 0 rotate independently of each other.
        let rotations = sizes_of(&[&left, &right])?.unwrap_or_else(|| size.clone());
        let rotations = rotations.mul(&row.add(&column)?.eq(&Tensor::wrapped(0)?)?)?;
        let largest = s.detach()?.amax(&[-1], true)?.unsqueeze(-1)?;
        let largest = largest.masked_fill(&largest.eq(&Tensor::wrapped(0)?)?, Scalar::Int(1))?;
        let lost = both.detach()?.abs()?.add(&rotations.mul(&largest)?)?;
        core =
            core.add(&over_gaps(both, &squares, (&lost, &size.mul(&largest)?), EQUAL_SINGULAR)?)?;
    }
    if let Some(left) = left.as_ref().filter(|t| t.dtype().is_complex() && gvh.is_some()) {
        // The common phase of a pair of singular vectors.
        let phase = left.diagonal(0, -2, -1)?.div(&s.times(Scalar::Float(2.0))?)?;
        core = core.add(&diagonal_matrix(&phase)?)?;
    }
    let core = core.to_dtype(u.dtype())?;
    let mut tall = u.matmul(&core)?;
    if let Some(g) = gu.filter(|_| m > k) {
        let scaled = g.div(&row)?;
        tall = tall.add(&scaled.sub(&u.matmul(&h(&u)?.matmul(&scaled)?)?)?)?;
    }
    let mut out = tall.matmul(&vh)?;
    if let Some(g) = gvh.filter(|_| n > k) {
        let scaled = g.div(&column)?;
        out = out.add(&u.matmul(&scaled.sub(&scaled.matmul(&h(&vh)?)?.matmul(&vh)?)?)?)?;
    }
    Ok(out)
}

const EQUAL_SINGULAR: &str = "svd_backward: two singular values are equal, and the specified loss function depends on their singular vectors, which have no derivative there";
const EQUAL_EIGENVALUES: &str = "linalg_eigh_backward: two eigenvalues are equal, and the specified loss function depends on their eigenvectors, which have no derivative there";

/// The sum of the absolute values of several matrices, element by element.
fn sizes_of(parts: &[&Option<Tensor>]) -> Result<Option<Tensor>> {
    let mut sum: Option<Tensor> = None;
    for part in parts.iter().copied().flatten() {
        let size = part.detach()?.abs()?;
        sum = Some(sum.map_or_else(|| Ok(size.clone()), |sum| sum.add(&size))?);
    }
    Ok(sum)
}

/// The gradients of the first `k` singular vectors along `dim`. Those beyond, which `full_matrices` adds, are an
/// arbitrary basis of the orthogonal complement, on which nothing may depend.
fn within(g: &Tensor, dim: i64, k: i64) -> Result<Tensor> {
    let more = g.shape()[wrap_dim(dim, g.ndim())?] - k;
    if more == 0 {
        return Ok(g.clone());
    }
    ensure!(
        !is_any_true(&g.narrow(dim, k, more)?)?,
        runtime,
        "svd_backward: The loss depends on singular vectors beyond the first {k}. With full_matrices=True these are an arbitrary basis, so that they have no gradient; use full_matrices=False"
    );
    g.narrow(dim, 0, k)
}

/// Refuses gradients that depend on the free phases of complex vectors: the sum of the diagonals of these
/// skew-Hermitian parts must vanish.
fn check_phases(skews: [&Option<Tensor>; 2], message: &str) -> Result<()> {
    let mut sum: Option<Tensor> = None;
    for skew in skews.into_iter().flatten().filter(|skew| skew.dtype().is_complex()) {
        let diagonal = skew.detach()?.diagonal(0, -2, -1)?.imag_part()?;
        sum = Some(sum.map_or_else(|| Ok(diagonal.clone()), |sum| sum.add(&diagonal))?);
    }
    let Some(sum) = sum.filter(|sum| sum.numel() > 0) else { return Ok(()) };
    // The skew-Hermitian part `M - M^H` has twice the derivative by the phase on its diagonal.
    let worst = all_examples(&sum).abs()?.max()?.item()?.to_f64() / 2.0;
    ensure!(worst.is_nan() || worst <= PHASE_TOLERANCE, runtime, "{message}");
    Ok(())
}

/// The largest derivative by a phase that counts as rounding.
const PHASE_TOLERANCE: f64 = 1e-2;

fn off_diagonal(a: &Tensor, k: i64) -> Result<Tensor> {
    let one = eye(k, a)?;
    a.mul(&TensorSpec::beside(a, &[k, k]).full(Scalar::Int(1))?.sub(&one)?)
}

/// The singular value decomposition `A = U diag(S) Vh` of matrices (*, m, n), singular values in descending order.
///
/// `S` has shape (*, k) with k = min(m, n) and a real dtype; `U` is (*, m, k) and `Vh` (*, k, n), or with
/// `full_matrices` (*, m, m) and (*, n, n). Their columns and rows are orthonormal. The gradient of the first k
/// singular vectors exists where singular values are distinct; those beyond are an arbitrary basis and have none.
/// Singular vectors of complex matrices are determined up to a phase, on which a loss must not depend.
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions and for a `driver`, which only other devices have;
/// `NotImplementedError` for half precision and integer dtypes. The backward pass raises `RuntimeError` where the loss
/// depends on a free phase, on vectors beyond the first k, or on singular vectors of equal singular values.
#[op("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", module = "linalg", exact_out, method = linalg_svd, autocast = fp32)]
impl LinalgSvd {
    fn composite(a: &Tensor, full_matrices: bool, driver: Option<&str>) -> Result<[Tensor; 3]> {
        check_driver(driver)?;
        a.svd_kernel(full_matrices, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[3, 2])).without_gradient()]
    }
}

/// The singular values (*, min(m, n)) of matrices (*, m, n), in descending order and of a real dtype. Their gradient
/// exists where singular values are distinct, and needs the singular vectors, which are computed only if it is needed.
///
/// # Errors
/// The same as those of `torch.linalg.svd`.
#[op("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", module = "linalg", exact_out, method = linalg_svdvals, autocast = fp32)]
impl LinalgSvdvals {
    fn composite(a: &Tensor, driver: Option<&str>) -> Result<Tensor> {
        check_driver(driver)?;
        let [_, s, _] = a.svd_kernel(false, needs_vectors(a))?;
        Ok(s)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3, 2])),
            Sample::of(s.normal(&[2, 2, 3])),
            Sample::of(s.normal(&[2, 0])),
        ]
    }
}

fn check_driver(driver: Option<&str>) -> Result<()> {
    ensure!(
        driver.is_none(),
        runtime,
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
    );
    Ok(())
}

/// The QR decomposition `A = Q R` of matrices (*, m, n): `Q` has orthonormal columns, `R` is upper triangular.
///
/// With `mode` "reduced", `Q` is (*, m, k) and `R` (*, k, n) for k = min(m, n); with "complete" they are (*, m, m) and
/// (*, m, n); with "r", `Q` is empty and `R` as for "reduced". The gradient exists where the first k columns of `A` are
/// linearly independent, not for "r", and for "complete" only if m <= n (H.-J. Liao et al., "Differentiable programming
/// tensor networks", 2019).
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions and for other modes; `NotImplementedError` for half precision and
/// integer dtypes.
#[op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", module = "linalg", exact_out, node = "LinalgQr", method = linalg_qr, autocast = fp32, batch = matrices)]
impl LinalgQr {
    fn meta(a: &Tensor, mode: &str) -> Result<[TensorSpec; 2]> {
        check_matrix("qr", a, false)?;
        ensure!(
            matches!(mode, "reduced" | "complete" | "r"),
            runtime,
            "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        );
        let (m, n) = sizes(a.shape());
        let columns = if mode == "complete" { m } else { m.min(n) };
        let r = by_columns(a, [columns, n]);
        let is_alone = mode == "r";
        Ok([if is_alone { TensorSpec::beside(a, &[0]) } else { by_columns(a, [m, columns]) }, r])
    }
    fn cpu(cpu: Cpu, q: &Tensor, r: &Tensor, a: &Tensor, mode: &str) -> Result<()> {
        let (mut q, mut r) = (q.view_mut(cpu), r.view_mut(cpu));
        let q = if mode == "r" { None } else { Some(&mut q) };
        Ok(kernel::qr(q, &mut r, a.view_ref(cpu), mode == "complete")?)
    }
    fn vjp_a(
        grad_q: Option<&Tensor>,
        grad_r: Option<&Tensor>,
        q: &Tensor,
        r: &Tensor,
        mode: &str,
    ) -> Result<Tensor> {
        if mode == "r" {
            bail!(
                runtime,
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to require its derivative."
            );
        }
        let (m, n) = (q.shape()[q.ndim() - 2], r.shape()[r.ndim() - 1]);
        ensure!(
            mode != "complete" || m <= n,
            runtime,
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        );
        if m >= n {
            return qr_backward(grad_q, grad_r, q, r);
        }
        // A = [X | Y], R = [U | V]: X = Q U is square and Y = Q V.
        let (u, v) = (r.narrow(-1, 0, m)?, r.narrow(-1, m, n - m)?);
        let Some(gr) = grad_r else {
            let left = qr_backward(grad_q, None, q, &u)?;
            let zeros = TensorSpec::beside(&v, v.shape()).zeros()?;
            return crate::ops::shape::join::cat(&[left, zeros], -1);
        };
        let (gu, gv) = (gr.narrow(-1, 0, m)?, gr.narrow(-1, m, n - m)?);
        let mut gq = q.matmul(&v)?.matmul(&h(&gv)?)?;
        if let Some(g) = grad_q {
            gq = gq.add(g)?;
        }
        crate::ops::shape::join::cat(
            &[qr_backward(Some(&gq), Some(&gu), q, &u)?, q.matmul(&gv)?],
            -1,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(regular(s, &[3])),
            Sample::of(s.normal(&[4, 2])),
            Sample::of(s.normal(&[2, 3])),
        ]
    }
}

/// The gradient of the QR decomposition for at least as many rows as columns:
/// `(gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H`, where `sym` mirrors the upper triangle and keeps the real diagonal.
fn qr_backward(gq: Option<&Tensor>, gr: Option<&Tensor>, q: &Tensor, r: &Tensor) -> Result<Tensor> {
    let k = r.shape()[r.ndim() - 1];
    let from_r = gr.map(|g| g.matmul(&h(r)?)).transpose()?;
    let from_q = gq.map(|g| h(q)?.matmul(g)?.times(Scalar::Int(-1))).transpose()?;
    let middle = match (from_r, from_q) {
        (Some(a), Some(b)) => a.add(&b)?,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => {
            bail!(runtime, "the gradient of qr was asked for without one of its outputs")
        }
    };
    let upper = middle.triu(0)?;
    let both = upper.add(&h(&upper)?)?;
    let half = both.mul(&eye(k, &both)?)?.times(Scalar::Float(0.5))?;
    let mut out = q.matmul(&both.sub(&half)?)?;
    if let Some(g) = gq {
        out = out.add(g)?;
    }
    h(r)?.linalg_solve_triangular_with(&out, false, false, false)
}

/// The Cholesky factor of Hermitian positive definite matrices (*, n, n): the lower triangular `L` with `A = L L^H`, or
/// with `upper` the upper triangular `L^H`. Only the corresponding triangle of `A` is read.
///
/// # Errors
/// `LinAlgError` for a matrix that is not positive definite; `RuntimeError` for matrices that are not square;
/// `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", module = "linalg", exact_out, method = linalg_cholesky, autocast = fp32)]
impl LinalgCholesky {
    fn composite(self_: &Tensor, upper: bool) -> Result<Tensor> {
        let [l, info] = self_.linalg_cholesky_ex_with(upper, false)?;
        check_codes("linalg.cholesky", self_, &info, not_positive_definite)?;
        Ok(l)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        cholesky_samples(s)
    }
}

fn not_positive_definite(minor: i32) -> String {
    format!(
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order {minor} is not positive-definite)."
    )
}

/// The Cholesky factor of Hermitian positive definite matrices (*, n, n) together with error codes `info` (*), int32,
/// in place of an error: 0, or the order of the first leading minor that is not positive definite, where the factor is
/// NaN. `L` is what `torch.linalg.cholesky` gives. With `check_errors` a code that is not 0 raises `LinAlgError`.
/// Source of the gradient: I. Murray, "Differentiation of the Cholesky decomposition" (2016).
#[op("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
     module = "linalg", exact_out, method = linalg_cholesky_ex, autocast = fp32, batch = matrices)]
impl LinalgCholeskyEx {
    fn meta(self_: &Tensor) -> Result<[TensorSpec; 2]> {
        check_matrix("cholesky", self_, true)?;
        let (n, _) = sizes(self_.shape());
        Ok([by_columns(self_, [n, n]), codes_spec(self_)])
    }
    fn cpu(
        cpu: Cpu,
        l: &Tensor,
        info: &Tensor,
        self_: &Tensor,
        upper: bool,
        check_errors: bool,
    ) -> Result<()> {
        let codes = kernel::cholesky(&mut l.view_mut(cpu), self_.view_ref(cpu), upper)?;
        write_codes(cpu, info, &codes)?;
        if check_errors {
            check_codes("linalg.cholesky_ex", self_, info, not_positive_definite)?;
        }
        Ok(())
    }
    fn vjp_self(grad_l: &Tensor, upper: bool, l: &Tensor) -> Result<Tensor> {
        let (l, g) = if upper { (h(l)?, h(grad_l)?) } else { (l.clone(), grad_l.clone()) };
        let lower = h(&l)?.matmul(&g)?.tril(0)?;
        let diagonal = lower.mul(&eye(l.shape()[l.ndim() - 1], &l)?)?;
        // The diagonal of L is real, so that the imaginary part of its gradient has no effect.
        let phi = lower.add(&h(&lower)?)?.sub(&h(&diagonal)?)?.times(Scalar::Float(0.5))?;
        let right = l.linalg_solve_triangular_with(&phi, false, false, false)?;
        h(&l)?.linalg_solve_triangular(&right, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        cholesky_samples(s)
    }
}

/// Only one triangle is read, so that numerical differences of single elements do not apply: `tests/linalg.rs` checks
/// the gradient over Hermitian matrices.
fn cholesky_samples(s: &Sampler) -> Vec<Sample> {
    let positive = |shape: &[i64]| {
        let a = regular(s, shape);
        a.matmul(&h(&a).expect("samples are small")).expect("samples are small")
    };
    vec![
        Sample::of(positive(&[3])).without_gradient(),
        Sample::of(positive(&[2, 2])).with("upper", true).without_gradient(),
    ]
}

/// The eigenvalue decomposition that `torch.linalg.eigh` and `torch.linalg.eigvalsh` are made of. Without `compute_v`,
/// the eigenvectors are empty. Source of its gradient: M. B. Giles, "An extended collection of matrix derivative
/// results" (2008); of complex matrices: C. Boeddeker et al., "On the computation of
/// complex-valued gradients" (2017).
#[op("_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", internal, node = "LinalgEigh", method = eigh_kernel, batch = matrices)]
impl EighKernel {
    fn meta(a: &Tensor, uplo: &str, compute_v: bool) -> Result<[TensorSpec; 2]> {
        check_matrix("eigh", a, true)?;
        is_upper(uplo)?;
        let (n, _) = sizes(a.shape());
        let w = TensorSpec::beside(a, &batch_shape(a, &[n])).computed_in(a.dtype().to_real());
        Ok([w, if compute_v { by_columns(a, [n, n]) } else { TensorSpec::beside(a, &[0]) }])
    }
    fn cpu(
        cpu: Cpu,
        eigenvalues: &Tensor,
        eigenvectors: &Tensor,
        a: &Tensor,
        uplo: &str,
        compute_v: bool,
    ) -> Result<()> {
        let (mut w, mut v) = (eigenvalues.view_mut(cpu), eigenvectors.view_mut(cpu));
        let v = if compute_v { Some(&mut v) } else { None };
        Ok(kernel::eigh(&mut w, v, a.view_ref(cpu), is_upper(uplo)?)?)
    }
    // The gradient is V (diag(gW) + (V^H gV) / E) V^H with E_ij = w_j - w_i.
    fn vjp_a(
        grad_eigenvalues: Option<&Tensor>,
        grad_eigenvectors: Option<&Tensor>,
        eigenvalues: &Tensor,
        eigenvectors: &Tensor,
    ) -> Result<Tensor> {
        let (w, v) = (eigenvalues, eigenvectors);
        let zero = TensorSpec::beside(w, w.shape()).zeros()?;
        let mut core = diagonal_matrix(grad_eigenvalues.unwrap_or(&zero))?;
        if let Some(g) = grad_eigenvectors {
            let inner = h(v)?.matmul(g)?;
            check_phases(
                [&Some(skew(&inner)?), &None],
                "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined.",
            )?;
            // (Only the skew-Hermitian part of the numerator rotates the eigenvectors.)
            let lost = skew(&inner)?;
            core = core.add(&over_gaps(&inner, &gaps(w)?, (&lost, &inner), EQUAL_EIGENVALUES)?)?;
        }
        v.matmul(&core.to_dtype(v.dtype())?)?.matmul(&h(v)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])).without_gradient()]
    }
}

/// The eigenvalue decomposition `A = V diag(w) V^H` of Hermitian (or real symmetric) matrices (*, n, n): eigenvalues
/// (*, n), real and ascending, and orthonormal eigenvectors, the columns of (*, n, n).
///
/// Only the lower (`UPLO` "L") or upper ("U") triangle is read. Eigenvectors have a gradient where eigenvalues are
/// distinct; those of complex matrices are determined up to a phase, on which a loss must not depend.
///
/// # Errors
/// `RuntimeError` for matrices that are not square and for another `UPLO`; `NotImplementedError` for half precision and
/// integer dtypes. The backward pass raises `RuntimeError` where the loss depends on a free phase or on eigenvectors of
/// equal eigenvalues.
#[op("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", module = "linalg", exact_out, method = linalg_eigh, autocast = fp32)]
impl LinalgEigh {
    fn composite(self_: &Tensor, uplo: &str) -> Result<[Tensor; 2]> {
        self_.eigh_kernel(uplo, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])).without_gradient()]
    }
}

/// The eigenvalues (*, n) of Hermitian (or real symmetric) matrices (*, n, n), real and ascending. Only the lower
/// (`UPLO` "L") or upper ("U") triangle is read. The gradient needs the eigenvectors, which are computed only if it is
/// needed.
///
/// # Errors
/// The same as those of `torch.linalg.eigh`.
#[op("linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", module = "linalg", exact_out, method = linalg_eigvalsh, autocast = fp32)]
impl LinalgEigvalsh {
    fn composite(self_: &Tensor, uplo: &str) -> Result<Tensor> {
        let [w, _] = self_.eigh_kernel(uplo, needs_vectors(self_))?;
        Ok(w)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])).without_gradient()]
    }
}

/// The spec of the complex tensor that two real ones make.
fn complex_spec(name: &str, a: &Tensor, b: &Tensor) -> Result<TensorSpec> {
    ensure!(
        [a, b].iter().all(|t| matches!(t.dtype(), DType::F16 | DType::F32 | DType::F64)),
        not_implemented,
        "Expected both inputs to be {}, {} or {} tensors but got {} and {}",
        DType::F16.scalar_name(),
        DType::F32.scalar_name(),
        DType::F64.scalar_name(),
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "Expected object of scalar type {} but got scalar type {} for second argument of {name}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let spec = TensorSpec::broadcast(&[a, b])?;
    let dtype = spec.dtype.to_complex();
    Ok(spec.with_dtype(dtype))
}

fn real_pairs(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    vec![
        Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]),
        Sample::new([s.normal(&[2, 1]).into(), s.normal(&[3]).into()]),
        Sample::new([s.normal(&[]).into(), Value::Tensor(s.normal(&[]))]),
    ]
}

/// The complex tensor with the real parts `real` and the imaginary parts `imag`, which broadcast and have one dtype:
/// float16, float32 or float64.
#[op("complex(Tensor real, Tensor imag) -> Tensor", function_only, exact_out, batch = pointwise, method = complex_with_imag, jvp = linear)]
impl Complex {
    fn meta(real: &Tensor, imag: &Tensor) -> Result<TensorSpec> {
        complex_spec("complex", real, imag)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::complex(iter)
    }
    fn vjp_real(grad: &Tensor) -> Result<Tensor> {
        grad.real_view()
    }
    fn vjp_imag(grad: &Tensor) -> Result<Tensor> {
        grad.imag_view()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        real_pairs(s)
    }
}

/// The complex tensor with absolute values `abs` and angles `angle` in radians: `abs * (cos(angle) + i sin(angle))`.
/// Both broadcast and have one dtype: float16, float32 or float64.
#[op("polar(Tensor abs, Tensor angle) -> Tensor", function_only, exact_out, batch = pointwise, method = polar_with_angle, autocast = fp32)]
impl Polar {
    fn meta(abs: &Tensor, angle: &Tensor) -> Result<TensorSpec> {
        complex_spec("polar", abs, angle)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::polar(iter)
    }
    fn vjp_abs(grad: &Tensor, angle: &Tensor) -> Result<Tensor> {
        let one = TensorSpec::beside(angle, angle.shape()).full(Scalar::Int(1))?;
        grad.conj()?.mul(&one.polar_with_angle(angle)?)?.real()
    }
    fn vjp_angle(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.conj()?.mul(&result.times(Scalar::Complex(0.0, 1.0))?)?.real()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        real_pairs(s)
    }
}
