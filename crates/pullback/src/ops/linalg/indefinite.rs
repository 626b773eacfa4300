//! The factorisation `A = L D L^T` of symmetric or Hermitian matrices that need not be definite, and the solution of
//! equations with its factors. Solutions have a derivative by the right-hand sides; factors, as in PyTorch, have none.

use super::decomposition::{batch_shape, first_failure, regular, sizes, write_codes};
use super::layout::{
    check_field, check_floating, check_square, columns, is_field, rows, transposed,
};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::no_derivative;
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, list};
use crate::{DType, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&LINALG_LDL_FACTOR_EX, &LINALG_LDL_FACTOR, &LINALG_LDL_SOLVE];

/// Refuses matrices with a diagonal block of zeros in D.
fn check_blocks(name: &str, a: &Tensor, info: &Tensor) -> Result<()> {
    let Some((element, d)) = first_failure(a, info)? else { return Ok(()) };
    let text = format!(
        "torch.linalg.{name}: {element}D[{d},{d}] is zero, the factors cannot be used to solve equations. To have them nevertheless, use torch.linalg.ldl_factor_ex"
    );
    Err(Error::new(ErrorKind::LinAlg, text))
}

/// The factorisation `A = L D L^T` (with `hermitian` `A = L D L^H`) of symmetric or Hermitian matrices (*, n, n) in
/// LAPACK's compact form, together with error codes. Only the lower triangle is read.
///
/// Pivots are chosen by the method of Bunch and Kaufman. `LD` holds the diagonal blocks of D, of order 1 and 2, and L
/// below them. `pivots` (*, n), int32, is positive for a block of order 1, and holds the same negative number twice for
/// one of order 2. `info` (*), int32, is 0 or the index, from 1, of the first diagonal block that is zero, which raises
/// `LinAlgError` with `check_errors`.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
     module = "linalg", exact_out, method = linalg_ldl_factor_ex, batch = matrices)]
impl LinalgLdlFactorEx {
    fn meta(self_: &Tensor) -> Result<[TensorSpec; 3]> {
        let name = "torch.linalg.ldl_factor_ex";
        check_square(name, self_)?;
        check_floating(name, self_, true)?;
        check_field("ldl_factor_kernel_cpu", self_)?;
        let n = self_.shape()[self_.ndim() - 1];
        Ok([
            columns(self_, self_.shape()),
            rows(self_, &batch_shape(self_, &[n]), DType::I32),
            rows(self_, &batch_shape(self_, &[]), DType::I32),
        ])
    }
    fn cpu(
        cpu: Cpu,
        ld: &Tensor,
        pivots: &Tensor,
        info: &Tensor,
        self_: &Tensor,
        hermitian: bool,
        check_errors: bool,
    ) -> Result<()> {
        let (own, to) = (transposed(self_)?, transposed(ld)?);
        // (All memory is allocated before a target of `out=` is written.)
        let made = Tensor::empty_of(to.shape(), to.dtype())?;
        let codes = kernel::ldl_factor(
            &mut made.view_mut(cpu),
            &mut pivots.view_mut(cpu),
            own.view_ref(cpu),
            hermitian,
        )?;
        to.copy_data(cpu, &made)?;
        write_codes(cpu, info, &codes)?;
        if check_errors { check_blocks("ldl_factor_ex", self_, info) } else { Ok(()) }
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::linalg_ldl_factor_ex")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        ldl_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        let zeros = s.normal(&[2, 2, 2]).times(Scalar::Int(0)).expect("samples are small");
        vec![
            bad(
                s.normal(&[3]),
                ErrorKind::Runtime,
                "torch.linalg.ldl_factor_ex: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[2, 3]),
                ErrorKind::Runtime,
                "torch.linalg.ldl_factor_ex: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                s.integers(&[2, 2], 0, 3),
                ErrorKind::NotImplemented,
                "torch.linalg.ldl_factor_ex: Expected a floating point or complex tensor as input. Got Long",
            ),
            InvalidSample::new(
                Sample::of(zeros).with("check_errors", true),
                ErrorKind::LinAlg,
                "torch.linalg.ldl_factor_ex: (Batch element 0): D[1,1] is zero",
            ),
        ]
    }
}

/// Symmetric matrices, the last of which has a zero diagonal and therefore needs blocks of order 2.
fn ldl_samples(s: &Sampler) -> Vec<Sample> {
    let symmetric = |shape: &[i64]| {
        let a = s.normal(shape);
        a.add(&transposed(&a).expect("samples are small")).expect("samples are small")
    };
    let swap = Tensor::from_slice(&[0.0, 2.0, 2.0, 0.0], &[2, 2]).and_then(|t| t.to_dtype(s.dtype));
    vec![
        Sample::of(symmetric(&[3, 3])),
        Sample::of(symmetric(&[2, 2, 2])).with("hermitian", true),
        Sample::of(swap.expect("samples are small")),
        Sample::of(s.normal(&[0, 0])),
    ]
    .into_iter()
    .map(Sample::without_gradient)
    .collect()
}

/// The factorisation `A = L D L^T` (with `hermitian` `A = L D L^H`) of symmetric or Hermitian matrices in LAPACK's
/// compact form, with pivots, as `torch.linalg.ldl_factor_ex` describes them.
///
/// # Errors
/// Besides those of `torch.linalg.ldl_factor_ex`, `LinAlgError` where a diagonal block of D is zero.
#[op("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", module = "linalg", exact_out,
     method = linalg_ldl_factor)]
impl LinalgLdlFactor {
    fn composite(self_: &Tensor, hermitian: bool) -> Result<[Tensor; 2]> {
        let [ld, pivots, info] = self_.linalg_ldl_factor_ex_with(hermitian, false)?;
        check_blocks("ldl_factor", self_, &info)?;
        Ok([ld, pivots])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        ldl_samples(s)
    }
}

/// The solution `X` of `A X = B` for right-hand sides `B` (*, n, k), where `LD` and `pivots` are what
/// `torch.linalg.ldl_factor` gives for `A` with the same `hermitian`. Batches broadcast.
///
/// # Errors
/// `RuntimeError` for shapes or dtypes that do not fit, and for pivots that no factorisation gives.
#[op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", module = "linalg", exact_out, not_differentiable(pivots),
     method = linalg_ldl_solve, batch = factored(ld, pivots, b))]
impl LinalgLdlSolve {
    fn meta(ld: &Tensor, pivots: &Tensor, b: &Tensor) -> Result<TensorSpec> {
        let name = "torch.linalg.ldl_solve";
        check_square(name, ld)?;
        ensure!(
            b.ndim() >= 2,
            runtime,
            "{name}: The input tensor B must have at least 2 dimensions."
        );
        ensure!(
            pivots.dtype().is_integral(false),
            runtime,
            "{name}: Expected pivots to be integers. Got {}",
            pivots.dtype().scalar_name()
        );
        ensure!(
            pivots.shape() == &ld.shape()[..ld.ndim() - 1],
            runtime,
            "{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead",
            list(pivots.shape())
        );
        ensure!(
            ld.dtype() == b.dtype(),
            runtime,
            "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
            b.dtype().scalar_name(),
            ld.dtype().scalar_name()
        );
        check_field("ldl_solve_kernel_cpu", ld)?;
        let ((n, _), (m, k)) = (sizes(ld.shape()), sizes(b.shape()));
        ensure!(
            n == m,
            runtime,
            "Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {m} by {k}"
        );
        let batch = broadcast_shapes(&[&ld.shape()[..ld.ndim() - 2], &b.shape()[..b.ndim() - 2]])?;
        let shape: Dims = batch.iter().copied().chain([m, k]).collect();
        Ok(columns(b, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        ld: &Tensor,
        pivots: &Tensor,
        b: &Tensor,
        hermitian: bool,
    ) -> Result<()> {
        let batch = &result.shape()[..result.ndim() - 2];
        let n = ld.shape()[ld.ndim() - 1];
        let full = |last: &[i64]| batch.iter().chain(last).copied().collect::<Dims>();
        let ld = transposed(&ld.expand(&full(&[n, n]), false)?)?;
        let pivots = pivots.expand(&full(&[n]), false)?;
        let (b, x) = (transposed(&b.expand(result.shape(), false)?)?, transposed(result)?);
        let factors = (ld.view_ref(cpu), pivots.view_ref(cpu));
        Ok(kernel::ldl_solve(&mut x.view_mut(cpu), factors, b.view_ref(cpu), hermitian)?)
    }
    fn vjp_ld() -> Result<Tensor> {
        no_derivative("derivative of aten::linalg_ldl_solve by its factors")
    }
    // X = A^-1 B, so that the gradient of B is A^-H G: A is its own conjugate transpose if it is Hermitian, and A^H is the
    // conjugate of A if it is symmetric.
    fn vjp_b(
        grad: &Tensor,
        ld: &Tensor,
        pivots: &Tensor,
        b_shape: &[i64],
        hermitian: bool,
    ) -> Result<Tensor> {
        let solved = if hermitian {
            ld.linalg_ldl_solve_with(pivots, grad, true)?
        } else {
            ld.linalg_ldl_solve(pivots, &grad.conj()?)?.conj()?
        };
        solved.sum_to_size(b_shape)
    }
    fn jvp(
        ld_p: &Tensor,
        ld_t: Option<&Tensor>,
        pivots: &Tensor,
        b_t: Option<&Tensor>,
        hermitian: bool,
    ) -> Result<Option<Tensor>> {
        match (ld_t, b_t) {
            (Some(_), _) => no_derivative("derivative of aten::linalg_ldl_solve by its factors"),
            (None, Some(b_t)) => ld_p.linalg_ldl_solve_with(pivots, b_t, hermitian).map(Some),
            (None, None) => Ok(None),
        }
    }
    // (Factors that require grad are refused: `tests/linalg.rs` checks the gradient of the right-hand sides.)
    fn samples(s: &Sampler) -> Vec<Sample> {
        if !is_field(s.dtype) {
            return Vec::new();
        }
        let sample = |a: &[i64], b: &[i64]| {
            let [ld, pivots, _] = regular(s, a).linalg_ldl_factor_ex().expect("samples are small");
            Sample::new([
                ld.contiguous().expect("samples are small").into(),
                pivots.into(),
                s.normal(b).into(),
            ])
            .without_gradient()
        };
        vec![sample(&[3], &[3, 2]), sample(&[2, 2], &[2, 1]), sample(&[2], &[2, 2, 1])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |ld: &[i64], pivots: Tensor, b: &[i64], phrase| {
            let sample = Sample::new([s.normal(ld).into(), pivots.into(), s.normal(b).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let pivots =
            |of: &[i32]| Tensor::from_slice(of, &[of.len() as i64]).expect("samples are small");
        vec![
            bad(
                &[2, 2],
                s.normal(&[2]),
                &[2, 1],
                "torch.linalg.ldl_solve: Expected pivots to be integers. Got Double",
            ),
            bad(
                &[2, 2],
                pivots(&[1]),
                &[2, 1],
                "Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape [1] instead",
            ),
            bad(
                &[2, 2],
                pivots(&[1, 2]),
                &[3, 1],
                "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is 2 by 2 but each b matrix is 3 by 1",
            ),
            bad(
                &[2, 2],
                pivots(&[7, 2]),
                &[2, 1],
                "torch.linalg.ldl_solve: pivots must be those that torch.linalg.ldl_factor gives",
            ),
        ]
    }
}
