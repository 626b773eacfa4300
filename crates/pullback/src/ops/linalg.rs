//! Dense linear algebra over batches of matrices, with gradients.
//!
//! Formulas follow M. B. Giles, "An extended collection of matrix derivative results" (2008), and, for
//! complex matrices, C. Boeddeker et al., "On the computation of complex-valued gradients" (2017): a
//! gradient is the conjugate cotangent, `A^H` is the conjugate transpose.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::{Iter, elementwise, linalg as kernel};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SVD_KERNEL,
    &LINALG_SVD,
    &LINALG_SOLVE,
    &LINALG_INV,
    &LINALG_DET,
    &LINALG_QR,
    &LINALG_CHOLESKY,
    &EIGH_KERNEL,
    &LINALG_EIGH,
    &COMPLEX,
    &POLAR,
];

fn check_matrix(name: &str, a: &Tensor, square: bool) -> Result<()> {
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
        !matches!(a.dtype(), DType::F16 | DType::BF16),
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

/// Rows and columns.
fn sizes(shape: &[i64]) -> (i64, i64) {
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// The batch dimensions of `a` followed by `last`.
fn batch_shape(a: &Tensor, last: &[i64]) -> Dims {
    a.shape()[..a.ndim() - 2].iter().chain(last).copied().collect()
}

/// The conjugate transpose.
fn h(a: &Tensor) -> Result<Tensor> {
    a.transpose(-2, -1)?.conj()
}

/// The k x k identity.
fn eye(k: i64, dtype: DType) -> Result<Tensor> {
    super::creation::eye_with(k, Some(dtype), None, None, None)
}

/// A diagonal matrix of each vector.
fn diagonal_matrix(d: &Tensor) -> Result<Tensor> {
    let k = d.shape()[d.ndim() - 1];
    d.unsqueeze(-2)?.mul(&eye(k, d.dtype())?)
}

/// `a - a^H`.
fn skew(a: &Tensor) -> Result<Tensor> {
    a.sub(&h(a)?)
}

/// `d_j - d_i` with ones on the diagonal.
fn gaps(d: &Tensor) -> Result<Tensor> {
    d.unsqueeze(-2)?.sub(&d.unsqueeze(-1)?)?.add(&eye(d.shape()[d.ndim() - 1], d.dtype())?)
}

fn matrix_samples(s: &Sampler) -> Vec<Sample> {
    vec![Sample::of(regular(s, &[3])), Sample::of(regular(s, &[2, 2]))]
}

/// Square matrices with a dominant diagonal: (*batch, n, n), the last number given being n.
fn regular(s: &Sampler, shape: &[i64]) -> Tensor {
    let n = shape[shape.len() - 1];
    let full: Dims = shape.iter().copied().chain([n]).collect();
    let diagonal = eye(n, s.dtype).and_then(|e| e.times(Scalar::Float(3.0)));
    diagonal.and_then(|d| s.uniform(&full, -1.0, 1.0).add(&d)).expect("samples are small")
}

/// The decomposition behind `linalg_svd`.
#[op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
     internal, node = "LinalgSvd", method = svd_kernel)]
impl SvdKernel {
    fn cpu(a: &Tensor, full_matrices: bool) -> Result<[Tensor; 3]> {
        check_matrix("svd", a, false)?;
        let (m, n) = sizes(a.shape());
        let k = m.min(n);
        let (rows, columns) = if full_matrices { (m, n) } else { (k, k) };
        let u = Tensor::empty_of(&batch_shape(a, &[m, rows]), a.dtype())?;
        let s = Tensor::empty_of(&batch_shape(a, &[k]), a.dtype().to_real())?;
        let vh = Tensor::empty_of(&batch_shape(a, &[columns, n]), a.dtype())?;
        kernel::svd(
            Some(&mut u.view_mut()),
            &mut s.view_mut(),
            Some(&mut vh.view_mut()),
            a.view_ref(),
            full_matrices,
        )?;
        Ok([u, s, vh])
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
        // Singular vectors of complex matrices have free phases, which differences cannot see.
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

/// With `A = U S V^H`: the core is `(skew(U^H gU) S + S skew(V^H gV)) / E + diag(gS)`, `E_ij = s_j^2 - s_i^2`, between `U`
/// and `V^H`; the parts of `gU` and `gV` outside the spans of `U` and `V` are added.
fn svd_backward((gu, gs, gvh): Grads3<'_>, u: &Tensor, s: &Tensor, vh: &Tensor) -> Result<Tensor> {
    let (m, n, k) = (u.shape()[u.ndim() - 2], vh.shape()[vh.ndim() - 1], s.shape()[s.ndim() - 1]);
    let is_full = u.shape()[u.ndim() - 1] > k || vh.shape()[vh.ndim() - 2] > k;
    ensure!(
        !is_full || (gu.is_none() && gvh.is_none()),
        runtime,
        "svd_backward: The singular vectors of a full decomposition have no gradient; use full_matrices=False"
    );
    let (u, vh) = (u.narrow(-1, 0, k)?, vh.narrow(-2, 0, k)?);
    let zero = TensorSpec::of(s.shape(), s.dtype()).zeros()?;
    let mut core = diagonal_matrix(gs.unwrap_or(&zero))?;
    let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
    let squares = gaps(&s.mul(s)?)?;
    let left = gu.map(|g| skew(&h(&u)?.matmul(g)?)).transpose()?;
    if let Some(left) = &left {
        core = core.add(&off_diagonal(&left.mul(&row)?.div(&squares)?, k)?)?;
        if u.dtype().is_complex() && gvh.is_some() {
            // The common phase of a pair of singular vectors.
            let phase = left.diagonal(0, -2, -1)?.div(&s.times(Scalar::Float(2.0))?)?;
            core = core.add(&diagonal_matrix(&phase)?)?;
        }
    }
    if let Some(g) = gvh {
        let right = skew(&vh.matmul(&h(g)?)?)?;
        core = core.add(&off_diagonal(&right.mul(&column)?.div(&squares)?, k)?)?;
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

fn off_diagonal(a: &Tensor, k: i64) -> Result<Tensor> {
    let one = eye(k, a.dtype())?;
    a.mul(&super::creation::filled(&TensorSpec::of(&[k, k], a.dtype()), Scalar::Int(1))?.sub(&one)?)
}

/// The singular value decomposition `A = U diag(S) Vh`, singular values descending. Singular vectors have a gradient only
/// with `full_matrices` false and distinct singular values.
#[op("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", module = "linalg", method = linalg_svd)]
impl LinalgSvd {
    fn composite(a: &Tensor, full_matrices: bool, driver: Option<&str>) -> Result<[Tensor; 3]> {
        ensure!(
            driver.is_none(),
            runtime,
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        );
        a.svd_kernel(full_matrices, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[3, 2])).without_gradient()]
    }
}

/// Whether `b` is a batch of vectors, as `linalg.solve` decides it.
fn is_vector(a_shape: &[i64], b_shape: &[i64]) -> bool {
    b_shape.len() == 1
        || (a_shape.len() - 1 == b_shape.len() && b_shape == &a_shape[..a_shape.len() - 1])
}

/// The solution `X` of `A X = B` (or of `X A = B` unless `left`), batches broadcast; `B` may be vectors.
#[op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", module = "linalg", out, node = "LinalgSolveEx", method = linalg_solve)]
impl LinalgSolve {
    fn cpu(a: &Tensor, b: &Tensor, left: bool) -> Result<Tensor> {
        check_matrix("solve", a, true)?;
        ensure!(
            a.dtype() == b.dtype(),
            runtime,
            "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype().scalar_name(),
            b.dtype().scalar_name()
        );
        let vector = is_vector(a.shape(), b.shape());
        ensure!(
            left || !vector,
            runtime,
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        );
        let b = if vector { b.unsqueeze(-1)? } else { b.clone() };
        ensure!(
            b.ndim() >= 2,
            runtime,
            "linalg.solve: The input tensor B must have at least 2 dimensions."
        );
        let (a, b) =
            if left { (a.clone(), b) } else { (a.transpose(-2, -1)?, b.transpose(-2, -1)?) };
        let ((n, _), (rows, _)) = (sizes(a.shape()), sizes(b.shape()));
        ensure!(
            n == rows,
            runtime,
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {}x{})",
            rows,
            sizes(b.shape()).1
        );
        let batch = broadcast_shapes(&[&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2]])?;
        let full = |t: &Tensor| {
            let (m, n) = sizes(t.shape());
            let shape: Dims = batch.iter().copied().chain([m, n]).collect();
            t.expand(&shape, false)
        };
        let (a, b) = (full(&a)?, full(&b)?);
        let x = Tensor::empty_of(b.shape(), b.dtype())?;
        kernel::solve(&mut x.view_mut(), a.view_ref(), b.view_ref())?;
        let x = if left { x } else { x.transpose(-2, -1)? };
        if vector { x.squeeze_dim(-1) } else { Ok(x) }
    }
    fn vjp(
        grad: &Tensor,
        a: &Tensor,
        b_shape: &[i64],
        left: bool,
        result: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let vector = is_vector(a.shape(), b_shape);
        let wide = |t: &Tensor| if vector { t.unsqueeze(-1) } else { Ok(t.clone()) };
        let gb = h(a)?.linalg_solve_with(&wide(grad)?, left)?;
        let ga = if !needs[0] {
            None
        } else if left {
            Some(gb.matmul(&h(&wide(result)?)?)?.times(Scalar::Int(-1))?)
        } else {
            Some(h(result)?.matmul(&gb)?.times(Scalar::Int(-1))?)
        };
        Ok([ga, Some(if vector { gb.squeeze_dim(-1)? } else { gb })])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([regular(s, &[3]).into(), s.normal(&[3, 2]).into()]),
            Sample::new([regular(s, &[2, 2]).into(), s.normal(&[2, 2]).into()]),
            Sample::new([regular(s, &[3]).into(), s.normal(&[3]).into()]),
            Sample::new([regular(s, &[3]).into(), s.normal(&[2, 3]).into()]).with("left", false),
        ]
    }
}

/// The inverse matrix.
#[op("linalg_inv(Tensor A) -> Tensor", module = "linalg", out, alias("inverse"), node = "LinalgInvEx", method = linalg_inv)]
impl LinalgInv {
    fn cpu(a: &Tensor) -> Result<Tensor> {
        check_matrix("inv", a, true)?;
        let out = Tensor::empty_of(a.shape(), a.dtype())?;
        kernel::inv(&mut out.view_mut(), a.view_ref())?;
        Ok(out)
    }
    fn vjp_a(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        let adjoint = h(result)?;
        adjoint.matmul(&grad.matmul(&adjoint)?)?.times(Scalar::Int(-1))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[2, 3])),
            ErrorKind::Runtime,
            "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
        )]
    }
}

/// The determinant. Its gradient at singular matrices comes from their singular values.
#[op("linalg_det(Tensor A) -> Tensor", module = "linalg", out, alias("det"), node = "LinalgDet", method = linalg_det)]
impl LinalgDet {
    fn cpu(a: &Tensor) -> Result<Tensor> {
        check_matrix("det", a, true)?;
        let out = Tensor::empty_of(&batch_shape(a, &[]), a.dtype())?;
        kernel::det(&mut out.view_mut(), a.view_ref())?;
        Ok(out)
    }
    fn vjp_a(grad: &Tensor, a: &Tensor, result: &Tensor) -> Result<Tensor> {
        let is_singular =
            pullback_kernels::index::count_true(result.view_ref()) < result.numel() as usize;
        let weight = |t: &Tensor| t.unsqueeze(-1)?.unsqueeze(-1);
        if !is_singular {
            return weight(&grad.mul(&result.conj()?)?)?.mul(&h(&a.linalg_inv()?)?);
        }
        // adj(A)^H = conj(det U det Vh) U diag(prod over j != i of s_j) Vh
        let [u, s, vh] = a.svd_kernel(false, true)?;
        let k = s.shape()[s.ndim() - 1];
        let one = eye(k, s.dtype())?;
        let mut others =
            super::creation::filled(&TensorSpec::of(s.shape(), s.dtype()), Scalar::Int(1))?;
        for j in 0..k {
            let unit = one.select(0, j)?;
            let factor = s
                .select(-1, j)?
                .unsqueeze(-1)?
                .mul(&unit.times(Scalar::Int(-1))?.add(&Tensor::wrapped(1.0)?)?)?
                .add(&unit)?;
            others = others.mul(&factor)?;
        }
        let turn = u.linalg_det()?.mul(&vh.linalg_det()?)?.conj()?;
        let adjoint = u.mul(&others.unsqueeze(-2)?)?.matmul(&vh)?;
        weight(&grad.mul(&turn)?)?.mul(&adjoint)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}

/// `A = Q R` with orthonormal columns in `Q` and `R` upper triangular; `mode` is "reduced", "complete" or "r" (no Q).
#[op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", module = "linalg", node = "LinalgQr", method = linalg_qr)]
impl LinalgQr {
    fn cpu(a: &Tensor, mode: &str) -> Result<[Tensor; 2]> {
        check_matrix("qr", a, false)?;
        ensure!(
            matches!(mode, "reduced" | "complete" | "r"),
            runtime,
            "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        );
        let (m, n) = sizes(a.shape());
        let columns = if mode == "complete" { m } else { m.min(n) };
        let r = Tensor::empty_of(&batch_shape(a, &[columns, n]), a.dtype())?;
        if mode == "r" {
            kernel::qr(None, &mut r.view_mut(), a.view_ref(), false)?;
            return real_diagonal([Tensor::empty_of(&[0], a.dtype())?, r]);
        }
        let q = Tensor::empty_of(&batch_shape(a, &[m, columns]), a.dtype())?;
        kernel::qr(Some(&mut q.view_mut()), &mut r.view_mut(), a.view_ref(), mode == "complete")?;
        real_diagonal([q, r])
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
            let zeros = TensorSpec::of(v.shape(), v.dtype()).zeros()?;
            return super::join::cat(&[left, zeros], -1);
        };
        let (gu, gv) = (gr.narrow(-1, 0, m)?, gr.narrow(-1, m, n - m)?);
        let mut gq = q.matmul(&v)?.matmul(&h(&gv)?)?;
        if let Some(g) = grad_q {
            gq = gq.add(g)?;
        }
        super::join::cat(&[qr_backward(Some(&gq), Some(&gu), q, &u)?, q.matmul(&gv)?], -1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(regular(s, &[3])),
            Sample::of(s.normal(&[4, 2])),
            Sample::of(s.normal(&[2, 3])),
        ]
    }
}

/// Turns the phases of a complex decomposition so that the diagonal of `R` is real, as LAPACK has it and as the gradient
/// supposes. An empty `Q` was not asked for.
fn real_diagonal([q, r]: [Tensor; 2]) -> Result<[Tensor; 2]> {
    if !r.dtype().is_complex() || r.numel() == 0 {
        return Ok([q, r]);
    }
    let (columns, n) = sizes(r.shape());
    let k = columns.min(n);
    let diagonal = r.diagonal(0, -2, -1)?.to_vec::<crate::C128>()?;
    let one = crate::C128::new(1.0, 0.0);
    let phase = |d: crate::C128| if d.norm() == 0.0 { one } else { d / d.norm().copysign(d.re) };
    let row = |ds: &[crate::C128]| {
        (0..columns as usize).map(|i| ds.get(i).map_or(one, |&d| phase(d))).collect::<Vec<_>>()
    };
    let phases: Vec<crate::C128> = diagonal.chunks(k as usize).flat_map(row).collect();
    let phases = Tensor::from_slice(&phases, &batch_shape(&r, &[columns]))?.converted(r.dtype())?;
    let r = r.mul(&phases.conj()?.unsqueeze(-1)?)?;
    Ok([if q.ndim() < 2 { q } else { q.mul(&phases.unsqueeze(-2)?)? }, r])
}

/// For at least as many rows as columns: `(gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H`, where `sym` mirrors the upper
/// triangle and keeps the real diagonal.
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
    let half = both.mul(&eye(k, both.dtype())?)?.times(Scalar::Float(0.5))?;
    let mut out = q.matmul(&both.sub(&half)?)?;
    if let Some(g) = gq {
        out = out.add(g)?;
    }
    h(r)?.linalg_solve_with(&out, false)
}

/// The lower factor `L` of a Hermitian positive definite matrix, `A = L L^H`; with `upper`, `L^H`.
#[op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", module = "linalg", out, node = "LinalgCholeskyEx", method = linalg_cholesky)]
impl LinalgCholesky {
    fn cpu(self_: &Tensor, upper: bool) -> Result<Tensor> {
        check_matrix("cholesky", self_, true)?;
        let out = Tensor::empty_of(self_.shape(), self_.dtype())?;
        kernel::cholesky(&mut out.view_mut(), self_.view_ref(), upper)?;
        Ok(out)
    }
    fn vjp_self(grad: &Tensor, upper: bool, result: &Tensor) -> Result<Tensor> {
        let (l, g) = if upper { (h(result)?, h(grad)?) } else { (result.clone(), grad.clone()) };
        let lower = h(&l)?.matmul(&g)?.tril(0)?;
        let diagonal = lower.mul(&eye(l.shape()[l.ndim() - 1], l.dtype())?)?;
        let phi = lower.add(&h(&lower)?)?.sub(&diagonal)?.times(Scalar::Float(0.5))?;
        h(&l)?.linalg_solve(&l.linalg_solve_with(&phi, false)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let positive = |shape: &[i64]| {
            let a = regular(s, shape);
            a.matmul(&h(&a).expect("samples are small")).expect("samples are small")
        };
        // Only one triangle is read, so that free differences do not apply; the values are checked.
        vec![
            Sample::of(positive(&[3])).without_gradient(),
            Sample::of(positive(&[2, 2])).with("upper", true).without_gradient(),
        ]
    }
}

/// The decomposition behind `linalg_eigh`.
#[op("_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", internal, node = "LinalgEigh", method = eigh_kernel)]
impl EighKernel {
    fn cpu(a: &Tensor, uplo: &str) -> Result<[Tensor; 2]> {
        check_matrix("eigh", a, true)?;
        let side = uplo.to_uppercase();
        ensure!(
            matches!(side.as_str(), "U" | "L"),
            runtime,
            "Expected UPLO argument to be 'L' or 'U', but got {uplo}"
        );
        let n = a.shape()[a.ndim() - 1];
        let w = Tensor::empty_of(&batch_shape(a, &[n]), a.dtype().to_real())?;
        let v = Tensor::empty_of(a.shape(), a.dtype())?;
        kernel::eigh(&mut w.view_mut(), Some(&mut v.view_mut()), a.view_ref(), side == "U")?;
        Ok([w, v])
    }
    // V (diag(gW) + (V^H gV) / E) V^H with E_ij = w_j - w_i.
    fn vjp_a(
        grad_eigenvalues: Option<&Tensor>,
        grad_eigenvectors: Option<&Tensor>,
        eigenvalues: &Tensor,
        eigenvectors: &Tensor,
    ) -> Result<Tensor> {
        let (w, v) = (eigenvalues, eigenvectors);
        let zero = TensorSpec::of(w.shape(), w.dtype()).zeros()?;
        let mut core = diagonal_matrix(grad_eigenvalues.unwrap_or(&zero))?;
        if let Some(g) = grad_eigenvectors {
            let part = h(v)?.matmul(g)?.div(&gaps(w)?)?;
            core = core.add(&off_diagonal(&part, w.shape()[w.ndim() - 1])?)?;
        }
        v.matmul(&core.to_dtype(v.dtype())?)?.matmul(&h(v)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])).without_gradient()]
    }
}

/// Eigenvalues (ascending, real) and eigenvectors (as columns) of a Hermitian matrix, of which the triangle `UPLO` is
/// read. Eigenvectors have a gradient only where eigenvalues are distinct.
#[op("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", module = "linalg", method = linalg_eigh)]
impl LinalgEigh {
    fn composite(self_: &Tensor, uplo: &str) -> Result<[Tensor; 2]> {
        self_.eigh_kernel(uplo, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])).without_gradient()]
    }
}

/// What a complex tensor made of two real ones will be.
fn complex_spec(name: &str, a: &Tensor, b: &Tensor) -> Result<TensorSpec> {
    ensure!(
        matches!(a.dtype(), DType::F32 | DType::F64)
            && matches!(b.dtype(), DType::F32 | DType::F64),
        not_implemented,
        "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
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

/// Complex numbers from real and imaginary parts.
#[op("complex(Tensor real, Tensor imag) -> Tensor", function_only, out, batch = pointwise, method = complex_with_imag)]
impl Complex {
    fn meta(real: &Tensor, imag: &Tensor) -> Result<TensorSpec> {
        complex_spec("complex", real, imag)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::complex(iter)
    }
    fn vjp_real(grad: &Tensor) -> Result<Tensor> {
        grad.real()
    }
    fn vjp_imag(grad: &Tensor) -> Result<Tensor> {
        grad.imag_part()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        real_pairs(s)
    }
}

/// Complex numbers from absolute values and angles: `abs * (cos(angle) + i sin(angle))`.
#[op("polar(Tensor abs, Tensor angle) -> Tensor", function_only, out, batch = pointwise, method = polar_with_angle)]
impl Polar {
    fn meta(abs: &Tensor, angle: &Tensor) -> Result<TensorSpec> {
        complex_spec("polar", abs, angle)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::polar(iter)
    }
    fn vjp_abs(grad: &Tensor, angle: &Tensor) -> Result<Tensor> {
        let one =
            super::creation::filled(&TensorSpec::of(angle.shape(), angle.dtype()), Scalar::Int(1))?;
        grad.conj()?.mul(&one.polar_with_angle(angle)?)?.real()
    }
    fn vjp_angle(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.conj()?.mul(&result.times(Scalar::Complex(0.0, 1.0))?)?.real()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        real_pairs(s)
    }
}
