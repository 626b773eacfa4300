//! Eigenvalues and eigenvectors of general matrices. They are complex, even those of real matrices.

use super::decomposition::{batch_shape, eye, gaps, h, over_gaps, regular};
use super::layout::{check_square, columns, has_elements, rows, transposed};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::all_examples;
use crate::tensor::Cpu;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&LINALG_EIG, &EIGVALS_KERNEL, &LINALG_EIGVALS];

fn check(name: &str, a: &Tensor) -> Result<()> {
    check_square(name, a)?;
    ensure!(
        a.dtype().is_differentiable(),
        runtime,
        "Unknown Complex ScalarType for {}",
        a.dtype().scalar_name()
    );
    super::layout::check_field("linalg_eig_out_cpu", a)
}

/// The eigenvalue decomposition `A V = V diag(w)` of general matrices (*, n, n): eigenvalues (*, n) in no particular
/// order, and eigenvectors, the columns of (*, n, n). Both are complex, also those of real matrices.
///
/// Eigenvectors have length 1; their phase is arbitrary (here the largest element is real), so that a loss must not
/// depend on it. They have a derivative where eigenvalues are distinct. Source: C. Boeddeker et al., "On the
/// computation of complex-valued gradients" (2017), 4.1.
///
/// # Errors
/// `RuntimeError` for matrices that are not square, integer dtypes, infinities and NaN; `NotImplementedError` for half
/// precision.
#[op("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", module = "linalg", out,
     autocast = fp32, method = linalg_eig, node = "LinalgEig", batch = matrices)]
impl LinalgEig {
    fn meta(self_: &Tensor) -> Result<[TensorSpec; 2]> {
        check("linalg.eig", self_)?;
        let dtype = self_.dtype().to_complex();
        let n = self_.shape()[self_.ndim() - 1];
        let vectors = columns(self_, self_.shape());
        Ok([
            rows(self_, &batch_shape(self_, &[n]), dtype),
            TensorSpec { dtype, compute: dtype, ..vectors },
        ])
    }
    fn cpu(cpu: Cpu, eigenvalues: &Tensor, eigenvectors: &Tensor, self_: &Tensor) -> Result<()> {
        let (a, v) = (transposed(self_)?, transposed(eigenvectors)?);
        let vectors = Some(&mut v.view_mut(cpu));
        Ok(kernel::eig(&mut eigenvalues.view_mut(cpu), vectors, a.view_ref(cpu))?)
    }
    // The gradient is V^-H (diag(gw) + (V^H gV - V^H V diag(re(V^H gV))) / conj(E)) V^H with E_ij = w_j - w_i: the
    // component of the change of an eigenvector along itself is subtracted, because its length stays 1.
    fn vjp_self(
        grad_eigenvalues: Option<&Tensor>,
        grad_eigenvectors: Option<&Tensor>,
        self_dtype: DType,
        eigenvalues: &Tensor,
        eigenvectors: &Tensor,
    ) -> Result<Tensor> {
        let (w, v) = (eigenvalues, eigenvectors);
        let adjoint = h(v)?;
        let one = eye(w.shape()[w.ndim() - 1], w)?;
        let mut core = match grad_eigenvalues {
            Some(g) => g.unsqueeze(-2)?.mul(&one)?,
            None => TensorSpec::beside(v, v.shape()).zeros()?,
        };
        if let Some(g) = grad_eigenvectors {
            let inner = adjoint.matmul(g)?;
            let diagonal = inner.diagonal(0, -2, -1)?;
            check_phases(&diagonal)?;
            let own = diagonal.real()?.to_dtype(w.dtype())?;
            let inner = inner.sub(&adjoint.matmul(v)?.mul(&own.unsqueeze(-2)?)?)?;
            core = core.add(&divided(&inner, &gaps(w)?.conj()?)?)?;
        }
        let out = adjoint.linalg_solve_with(&core.matmul(&adjoint)?, true)?;
        if self_dtype.is_complex() { Ok(out) } else { out.real() }
    }
    // The tangents are dw = diag(V^-1 dA V) and dV = V (M - diag(re(V^H V M))) with M = (V^-1 dA V) / E.
    fn jvp(self_t: &Tensor, eigenvalues: &Tensor, eigenvectors: &Tensor) -> Result<[Tensor; 2]> {
        let (w, v) = (eigenvalues, eigenvectors);
        let moved = self_t.to_dtype(w.dtype())?.matmul(v)?;
        let inner = v.linalg_solve_with(&moved, true)?;
        let mixing = divided(&inner, &gaps(w)?)?;
        let change = v.matmul(&mixing)?;
        let own = v.conj()?.mul(&change)?.sum_dim(Some(&[-2]), true)?.real()?;
        let change = change.sub(&v.mul(&own.to_dtype(w.dtype())?)?)?;
        // (The diagonal is copied because a view would share memory with the other result.)
        Ok([inner.diagonal(0, -2, -1)?.clone_tensor(None)?, change])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        // (Eigenvectors are determined up to a phase, so that numerical differences do not apply:
        // `tests/linalg_more.rs` checks them.)
        vec![
            Sample::of(s.normal(&[3, 3])).without_gradient(),
            Sample::of(regular(s, &[2, 2])).without_gradient(),
            Sample::of(s.normal(&[0, 0])).without_gradient(),
            Sample::of(s.normal(&[1, 1])).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid(s, "eig")
    }
}

fn invalid(s: &Sampler, name: &str) -> Vec<InvalidSample> {
    let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
    let nan = s.normal(&[2, 2]).times(Scalar::Float(f64::NAN)).expect("samples are small");
    let halves = Sampler::new(DType::BF16).normal(&[2, 2]);
    let runtime = ErrorKind::Runtime;
    let square = if name == "eig" {
        "linalg.eig: A must be batches of square matrices, but they are 2 by 3 matrices"
    } else {
        "linalg.eigvals: A must be batches of square matrices, but they are 2 by 3 matrices"
    };
    vec![
        bad(s.normal(&[2]), runtime, "The input tensor A must have at least 2 dimensions."),
        bad(s.normal(&[2, 3]), runtime, square),
        bad(s.integers(&[2, 2], 0, 3), runtime, "Unknown Complex ScalarType for Long"),
        bad(
            halves,
            ErrorKind::NotImplemented,
            "\"linalg_eig_out_cpu\" not implemented for 'BFloat16'",
        ),
        bad(nan, runtime, "torch.linalg.eig: input tensor should not contain infs or NaNs."),
    ]
}

const EQUAL: &str = "linalg_eig_backward: two eigenvalues are equal, and the specified loss function depends on their eigenvectors, which have no derivative there";

/// The quotient `inner / gaps` off the diagonal, zeros on it.
fn divided(inner: &Tensor, gaps: &Tensor) -> Result<Tensor> {
    over_gaps(inner, gaps, (inner, inner), EQUAL)
}

/// Refuses gradients that depend on the free phases of eigenvectors.
fn check_phases(diagonal: &Tensor) -> Result<()> {
    if diagonal.numel() == 0 || !has_elements(diagonal) {
        return Ok(());
    }
    let worst = all_examples(&diagonal.detach()?.imag_part()?.abs()?).max()?.item()?.to_f64();
    ensure!(
        worst.is_nan() || worst <= 1e-2,
        runtime,
        "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this quantity, so it is ill-defined."
    );
    Ok(())
}

/// The eigenvalues (*, n) of general matrices (*, n, n), without eigenvectors: what `torch.linalg.eigvals` computes
/// where no derivative is needed.
#[op("_linalg_eigvals(Tensor self) -> Tensor", internal, not_differentiable, method = eigvals_kernel, batch = matrices)]
impl EigvalsKernel {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check("linalg.eigvals", self_)?;
        let n = self_.shape()[self_.ndim() - 1];
        Ok(rows(self_, &batch_shape(self_, &[n]), self_.dtype().to_complex()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        let a = transposed(self_)?;
        Ok(kernel::eig(&mut result.view_mut(cpu), None, a.view_ref(cpu))?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(regular(s, &[3])), Sample::of(regular(s, &[2, 2]))]
    }
}

/// The eigenvalues (*, n) of general matrices (*, n, n), complex and in no particular order. Their derivative needs the
/// eigenvectors, which are computed only if it is needed.
///
/// # Errors
/// The same as those of `torch.linalg.eig`.
#[op("linalg_eigvals(Tensor self) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_eigvals)]
impl LinalgEigvals {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        check("linalg.eigvals", self_)?;
        if !crate::autograd::needs_derivative_of(self_) {
            return self_.eigvals_kernel();
        }
        let [w, _] = self_.linalg_eig()?;
        Ok(w)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3, 3])),
            Sample::of(regular(s, &[2, 2])),
            Sample::of(s.normal(&[0, 0])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid(s, "eigvals")
    }
}
