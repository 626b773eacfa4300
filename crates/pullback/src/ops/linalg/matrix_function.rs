//! Functions of square matrices: powers, the exponential, the square root; and the polar decomposition.

use super::decomposition::{batch_shape, check_matrix, eye, h, regular, sizes};
use super::layout::{check_floating, check_square, transposed};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::shape::join::cat;
use crate::tensor::Cpu;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LINALG_MATRIX_EXP, &LINALG_MATRIX_POWER, &LINALG_MATRIX_SQRTH, &LYAPUNOV, &LINALG_POLAR];

/// The derivative of the matrix exponential at `a` in direction `e`: the upper right block of `exp([[a, e], [0, a]])`
/// (R. Mathias, "A chain rule for matrix functions and applications", SIAM J. Matrix Anal. Appl. 17, 1996).
fn derivative(a: &Tensor, e: &Tensor) -> Result<Tensor> {
    let n = a.shape()[a.ndim() - 1];
    let zeros = TensorSpec::beside(a, a.shape()).zeros()?;
    let blocks = cat(&[cat(&[a.clone(), e.clone()], -1)?, cat(&[zeros, a.clone()], -1)?], -2)?;
    blocks.linalg_matrix_exp()?.narrow(-2, 0, n)?.narrow(-1, n, n)?.contiguous()
}

/// The matrix exponential `I + A + A^2 / 2! + A^3 / 3! + ...` of matrices (*, n, n), computed in double precision by
/// scaling and squaring (N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
/// Matrices with infinities or NaN give NaN.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for integer dtypes.
#[op("linalg_matrix_exp(Tensor self) -> Tensor", module = "linalg", alias("matrix_exp"), method = linalg_matrix_exp,
     node = "LinalgMatrixExp", batch = matrices)]
impl LinalgMatrixExp {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check_square("linalg.matrix_exp", self_)?;
        check_floating("linalg.matrix_exp", self_, true)?;
        Ok(TensorSpec::beside(self_, self_.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        Ok(kernel::matrix_exp(&mut result.view_mut(cpu), self_.view_ref(cpu))?)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        derivative(&h(self_)?, grad)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor) -> Result<Tensor> {
        derivative(self_p, self_t)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3, 3])),
            Sample::of(regular(s, &[2, 2])),
            Sample::of(transposed(&s.normal(&[2, 2])).expect("samples are small")),
            Sample::of(s.normal(&[0, 0])),
            Sample::of(s.normal(&[1, 1])),
            Sample::of(s.normal(&[2, 2]).times(Scalar::Float(1e-3)).expect("samples are small")),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        vec![
            bad(
                s.normal(&[3]),
                ErrorKind::Runtime,
                "linalg.matrix_exp: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[2, 3]),
                ErrorKind::Runtime,
                "linalg.matrix_exp: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                s.integers(&[2, 2], 0, 3),
                ErrorKind::NotImplemented,
                "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got Long",
            ),
        ]
    }
}

/// The `n`-th power of matrices (*, m, m), by repeated squaring. For `n` = 0 it is the identity, for negative `n` a
/// power of the inverse.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; for negative `n` also `LinAlgError` where there is no inverse.
#[op("linalg_matrix_power(Tensor self, int n) -> Tensor", module = "linalg", exact_out, alias("matrix_power"), method = linalg_matrix_power)]
impl LinalgMatrixPower {
    fn composite(self_: &Tensor, n: i64) -> Result<Tensor> {
        check_square("linalg.matrix_power", self_)?;
        if n == 0 {
            let one = eye(self_.shape()[self_.ndim() - 1], self_)?;
            // (Written over the matrix, of which it has a gradient of zeros, as in PyTorch.)
            return self_.clone_tensor(None)?.copy_(&one, false);
        }
        let mut square = if n < 0 { self_.linalg_inv()? } else { self_.clone() };
        let (mut left, mut power) = (n.unsigned_abs(), None::<Tensor>);
        loop {
            if left & 1 == 1 {
                power = Some(match power {
                    Some(power) => power.matmul(&square)?,
                    None => square.clone(),
                });
            }
            left >>= 1;
            if left == 0 {
                break;
            }
            square = square.matmul(&square)?;
        }
        match power {
            Some(power) if n == 1 => power.clone_tensor(None),
            Some(power) => Ok(power),
            None => square.clone_tensor(None),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out: Vec<Sample> = [0, 1, 2, 3, 5, -1, -2]
            .iter()
            .map(|&n: &i64| Sample::of(regular(s, &[2])).with("n", n))
            .collect();
        out.push(Sample::of(s.normal(&[2, 3, 3])).with("n", 4_i64));
        out.push(Sample::of(s.normal(&[2, 0, 0])).with("n", 3_i64));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, n: i64, kind, phrase| {
            InvalidSample::new(Sample::of(a).with("n", n), kind, phrase)
        };
        let zeros = s.normal(&[2, 2, 2]).times(Scalar::Int(0)).expect("samples are small");
        vec![
            bad(
                s.normal(&[3]),
                2,
                ErrorKind::Runtime,
                "linalg.matrix_power: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[2, 3]),
                2,
                ErrorKind::Runtime,
                "linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                zeros,
                -1,
                ErrorKind::LinAlg,
                "linalg.inv: (Batch element 0): The diagonal element 1 is zero",
            ),
        ]
    }
}

/// The positive semidefinite square root of Hermitian positive semidefinite matrices (*, n, n), of which the lower
/// triangle is read: `V diag(sqrt(w)) V^H` with the eigenvalues `w` and eigenvectors `V`.
///
/// Its derivative is the solution `dX` of `X dX + dX X = dA`, which does not need distinct eigenvalues. Negative
/// eigenvalues give NaN.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_matrix_sqrth(Tensor self) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_matrix_sqrth, node = "LinalgMatrixSqrth", batch = matrices)]
impl LinalgMatrixSqrth {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check_square("linalg.matrix_sqrth", self_)?;
        check_floating("linalg.matrix_sqrth", self_, false)?;
        Ok(TensorSpec::beside(self_, self_.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        let [w, v] = self_.eigh_kernel("L", true)?;
        let root = v.mul(&w.sqrt()?.unsqueeze(-2)?)?.matmul(&h(&v)?)?;
        result.copy_data(cpu, &root)
    }
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        result.lyapunov(&hermitian_part(grad)?)
    }
    fn jvp(self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        result.lyapunov(&hermitian_part(self_t)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(positive(s, &[3])).without_gradient(),
            Sample::of(positive(s, &[2, 2])).without_gradient(),
            Sample::of(s.normal(&[0, 0])).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        let halves = Sampler::new(DType::F16).normal(&[2, 2]);
        vec![
            bad(
                s.normal(&[3]),
                ErrorKind::Runtime,
                "linalg.matrix_sqrth: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[2, 3]),
                ErrorKind::Runtime,
                "linalg.matrix_sqrth: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                halves,
                ErrorKind::NotImplemented,
                "linalg.matrix_sqrth: Low precision dtypes not supported. Got Half",
            ),
        ]
    }
}

fn positive(s: &Sampler, shape: &[i64]) -> Tensor {
    let a = regular(s, shape);
    a.matmul(&h(&a).expect("samples are small")).expect("samples are small")
}

fn hermitian_part(a: &Tensor) -> Result<Tensor> {
    a.add(&h(a)?)?.times(Scalar::Float(0.5))
}

/// The solution `Y` of the Lyapunov equation `X Y + Y X = right` for Hermitian positive definite `X`, of which the
/// lower triangle is read: `Q ((Q^H right Q) / (w_i + w_j)) Q^H` with the eigenvalues `w` and eigenvectors `Q` of `X`.
/// Its derivatives are solutions of the same equation, which does not need distinct eigenvalues.
#[op("_linalg_lyapunov(Tensor X, Tensor right) -> Tensor", internal, method = lyapunov, node = "LinalgLyapunov", batch = matrices)]
impl Lyapunov {
    fn meta(x: &Tensor, right: &Tensor) -> Result<TensorSpec> {
        check_square("_linalg_lyapunov", x)?;
        ensure!(
            x.shape() == right.shape() && x.dtype() == right.dtype(),
            runtime,
            "_linalg_lyapunov: both matrices must have one shape and dtype"
        );
        check_matrix("eigh", x, true)?;
        Ok(TensorSpec::beside(x, x.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, x: &Tensor, right: &Tensor) -> Result<()> {
        let [w, q] = x.eigh_kernel("L", true)?;
        let adjoint = h(&q)?;
        let sums = w.unsqueeze(-2)?.add(&w.unsqueeze(-1)?)?;
        let inner = adjoint.matmul(right)?.matmul(&q)?.div(&sums)?;
        result.copy_data(cpu, &q.matmul(&inner)?.matmul(&adjoint)?)
    }
    fn vjp(
        grad: &Tensor,
        x: &Tensor,
        result: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let g = x.lyapunov(grad)?;
        if !needs[0] {
            return Ok([None, Some(g)]);
        }
        let y = h(result)?;
        let gx = g.matmul(&y)?.add(&y.matmul(&g)?)?.times(Scalar::Int(-1))?;
        Ok([Some(gx), Some(g)])
    }
    fn jvp(x_p: &Tensor, x_t: &Tensor, right_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        let moved = x_t.matmul(result)?.add(&result.matmul(x_t)?)?;
        x_p.lyapunov(&right_t.sub(&moved)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], right: &[i64]| {
            Sample::new([positive(s, shape).into(), s.normal(right).into()]).without_gradient()
        };
        vec![sample(&[3], &[3, 3]), sample(&[2, 2], &[2, 2, 2])]
    }
}

/// The polar decomposition `A = U H` of matrices (*, m, n) with m >= n: `U` (*, m, n) has orthonormal columns, `H` (*,
/// n, n) is Hermitian positive semidefinite. With the singular value decomposition `A = W S V^H`, `U = W V^H` and
/// `H = V S V^H`. It is differentiable where `A` has full rank.
///
/// # Errors
/// `RuntimeError` for fewer rows than columns; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_polar(Tensor A) -> (Tensor U, Tensor H)", module = "linalg", exact_out, method = linalg_polar, node = "LinalgPolar", batch = matrices)]
impl LinalgPolar {
    fn meta(a: &Tensor) -> Result<[TensorSpec; 2]> {
        ensure!(
            a.ndim() >= 2,
            runtime,
            "linalg.polar: The input tensor A must have at least 2 dimensions."
        );
        let (m, n) = sizes(a.shape());
        ensure!(
            m >= n,
            runtime,
            "linalg.polar: input must have at least as many rows as columns, but got {m} by {n} matrices"
        );
        check_floating("linalg.polar", a, true)?;
        super::layout::check_field("linalg_svd_cpu", a)?;
        Ok([TensorSpec::beside(a, a.shape()), TensorSpec::beside(a, &batch_shape(a, &[n, n]))])
    }
    fn cpu(cpu: Cpu, u: &Tensor, h: &Tensor, a: &Tensor) -> Result<()> {
        let [w, s, vh] = a.svd_kernel(false, true)?;
        let unitary = w.matmul(&vh)?;
        let positive = super::decomposition::h(&vh)?.mul(&s.unsqueeze(-2)?)?.matmul(&vh)?;
        u.copy_data(cpu, &unitary)?;
        h.copy_data(cpu, &positive)
    }
    // From dA = dU H + U dH follows, with the skew-Hermitian part Z of U^H dU: H Z + Z H = U^H dA - dA^H U; the part
    // outside of the span of U is dA H^-1.
    fn vjp_a(
        grad_u: Option<&Tensor>,
        grad_h: Option<&Tensor>,
        u: &Tensor,
        h: &Tensor,
    ) -> Result<Tensor> {
        polar_backward(grad_u, grad_h, u, h)
    }
    fn jvp(a_t: &Tensor, u: &Tensor, h: &Tensor) -> Result<[Tensor; 2]> {
        let inner = super::decomposition::h(u)?.matmul(a_t)?;
        let rotation = h.lyapunov(&inner.sub(&super::decomposition::h(&inner)?)?)?;
        let outside = a_t.sub(&u.matmul(&inner)?)?;
        let moved = u.matmul(&rotation)?.add(&h.linalg_solve_with(&outside, false)?)?;
        Ok([moved, inner.sub(&rotation.matmul(h)?)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(regular(s, &[3])),
            Sample::of(s.normal(&[2, 3, 2])),
            Sample::of(s.normal(&[3, 0])).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        vec![
            bad(
                s.normal(&[3]),
                ErrorKind::Runtime,
                "linalg.polar: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[3, 4]),
                ErrorKind::Runtime,
                "linalg.polar: input must have at least as many rows as columns, but got 3 by 4 matrices",
            ),
            bad(
                s.integers(&[2, 2], 0, 3),
                ErrorKind::NotImplemented,
                "linalg.polar: Expected a floating point or complex tensor as input. Got Long",
            ),
        ]
    }
}

/// The gradient, the adjoint of the rule `jvp`: the map from the right-hand side to Z is its own adjoint.
fn polar_backward(
    gu: Option<&Tensor>,
    gh: Option<&Tensor>,
    u: &Tensor,
    p: &Tensor,
) -> Result<Tensor> {
    if u.numel() == 0 {
        return TensorSpec::beside(u, u.shape()).zeros();
    }
    // dU = U Z + (1 - U U^H) dA H^-1; dH = U^H dA - Z H.
    let mut from_rotation = TensorSpec::beside(p, p.shape()).zeros()?;
    let mut out = TensorSpec::beside(u, u.shape()).zeros()?;
    let adjoint = h(u)?;
    if let Some(g) = gu {
        let inner = adjoint.matmul(g)?;
        let outside = g.sub(&u.matmul(&inner)?)?;
        out = out.add(&p.linalg_solve_with(&outside, false)?)?;
        from_rotation = from_rotation.add(&inner)?;
    }
    if let Some(g) = gh {
        out = out.add(&u.matmul(g)?)?;
        from_rotation = from_rotation.sub(&g.matmul(p)?)?;
    }
    let skew = from_rotation.sub(&h(&from_rotation)?)?;
    out.add(&u.matmul(&p.lyapunov(&skew)?)?)
}
