//! Triangular systems of equations, and what is made of them: equations with a Cholesky factor, and the inverse from
//! it.

use super::decomposition::{batch_shape, eye, h, regular, sizes};
use super::layout::{check_field, check_square, columns, has_elements, transposed};
use crate::dispatch::OpDef;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::{all_examples, is_any_true};
use crate::ops::sparse::solve_triangular as solve_sparse;
use crate::tensor::Cpu;
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LINALG_SOLVE_TRIANGULAR, &TRIANGULAR_SOLVE, &CHOLESKY_SOLVE, &CHOLESKY_INVERSE];

/// The batching rule of ops on two matrices whose batches broadcast: the examples become further batch dimensions.
pub(in crate::ops) fn batched_pair(
    call: &BatchedCall<'_>,
    a: &Tensor,
    b: &Tensor,
) -> Result<Outcome> {
    if a.ndim() < 2 || b.ndim() < 2 {
        return crate::ops::batch::one_by_one(call);
    }
    crate::ops::batch::pointwise(call)
}

/// The matrices, or vectors, with this `rank` for a batch of matrices of `shape`: the single one if
/// there is only one, else all of them, expanded.
pub(super) fn matrices_for(a: &Tensor, shape: &[i64], rank: usize) -> Result<Tensor> {
    let (batch, own) = a.shape().split_at(a.ndim() - rank);
    if batch.iter().all(|&size| size == 1) {
        return (0..batch.len()).try_fold(a.clone(), |a, _| a.select(0, 0));
    }
    let full: Dims = shape[..shape.len() - 2].iter().chain(own).copied().collect();
    a.expand(&full, false)
}

/// The right-hand side of the equations for the tangent of a solution: the tangent of `B` without what the tangent of the matrix
/// moves; `None` if neither has one.
pub(in crate::ops) fn moved_right_side(
    b_t: Option<&Tensor>,
    moved: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    match (b_t, moved) {
        (Some(b), Some(moved)) => b.sub(moved).map(Some),
        (None, Some(moved)) => moved.times(Scalar::Int(-1)).map(Some),
        (b, None) => Ok(b.cloned()),
    }
}

/// The solution `X` of `A X = B` (of `X A = B` unless `left`) for triangular matrices `A` = `self` (*, n, n), of which
/// only the upper or the lower triangle is read, and with `unitriangular` not even the diagonal, which is taken to be
/// ones.
///
/// Batches broadcast. Zeros on the diagonal are not an error: they give infinities and NaN. The derivatives are those
/// of linear equations, restricted to the triangle (M. B. Giles, "An extended collection of matrix derivative results",
/// 2008).
///
/// # Errors
/// `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
     module = "linalg", exact_out, method = linalg_solve_triangular, node = "LinalgSolveTriangular")]
impl LinalgSolveTriangular {
    fn meta(self_: &Tensor, b: &Tensor, left: bool) -> Result<TensorSpec> {
        let name = "linalg.solve_triangular";
        ensure!(
            self_.dtype() == b.dtype(),
            runtime,
            "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            self_.dtype().scalar_name(),
            b.dtype().scalar_name()
        );
        check_square(name, self_)?;
        ensure!(
            b.ndim() >= 2,
            runtime,
            "{name}: The input tensor B must have at least 2 dimensions."
        );
        check_field("triangular_solve_cpu", self_)?;
        let ((n, _), (rows, columns_of_b)) = (sizes(self_.shape()), sizes(b.shape()));
        ensure!(
            n == if left { rows } else { columns_of_b },
            runtime,
            "{name}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {rows}x{columns_of_b})",
            if left { "AX = B" } else { "XA = B" }
        );
        let (own, other) = (&self_.shape()[..self_.ndim() - 2], &b.shape()[..b.ndim() - 2]);
        let batch = broadcast_shapes(&[own, other])?;
        let shape: Dims = batch.iter().copied().chain([rows, columns_of_b]).collect();
        Ok(columns(b, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        b: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
    ) -> Result<()> {
        let (a, b) = (matrices_for(self_, result.shape(), 2)?, b.expand(result.shape(), false)?);
        // The kernel solves for rows: those of X^T for `A X = B`, and those of X for `X A = B`, which is
        // `A^T X^T = B^T`.
        let (x, a, b, upper) = if left {
            (transposed(result)?, a, transposed(&b)?, upper)
        } else {
            (result.clone(), transposed(&a)?, b, !upper)
        };
        let triangle = kernel::Triangle { upper, unit: unitriangular };
        let (a, b) = (a.view_ref(cpu), b.view_ref(cpu));
        Ok(kernel::solve_triangular(&mut x.view_mut(cpu), a, b, triangle)?)
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let gb = h(self_)?.linalg_solve_triangular_with(grad, !upper, left, unitriangular)?;
        if !needs[0] {
            return Ok([None, Some(gb)]);
        }
        let ga = if left { gb.matmul(&h(result)?)? } else { h(result)?.matmul(&gb)? };
        let ga = within(&ga, upper, unitriangular)?.times(Scalar::Int(-1))?;
        Ok([Some(ga), Some(gb)])
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        b_t: Option<&Tensor>,
        result: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
    ) -> Result<Option<Tensor>> {
        let moved = match self_t {
            Some(t) => {
                let t = within(t, upper, unitriangular)?;
                Some(if left { t.matmul(result)? } else { result.matmul(&t)? })
            }
            None => None,
        };
        let Some(right) = moved_right_side(b_t, moved.as_ref())? else { return Ok(None) };
        self_p.linalg_solve_triangular_with(&right, upper, left, unitriangular).map(Some)
    }
    fn batch(call: &BatchedCall<'_>, self_: &Tensor, b: &Tensor) -> Result<Outcome> {
        batched_pair(call, self_, b)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], b: &[i64], upper: bool| {
            Sample::new([regular(s, a).into(), s.normal(b).into()]).with("upper", upper)
        };
        vec![
            sample(&[3], &[3, 2], true),
            sample(&[3], &[3, 2], false).with("unitriangular", true),
            sample(&[2, 3], &[3, 1], false),
            sample(&[3], &[2, 2, 3], true).with("left", false),
            sample(&[2, 1, 2], &[2, 3, 2], false).with("left", false).with("unitriangular", true),
            sample(&[0], &[0, 2], true),
            sample(&[2], &[2, 0], true),
            sample(&[17], &[17, 2], true).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, b: Tensor, kind, phrase| {
            let sample = Sample::new([a.into(), b.into()]).with("upper", true);
            InvalidSample::new(sample, kind, phrase)
        };
        let (runtime, f32) = (ErrorKind::Runtime, Sampler::new(DType::F32));
        vec![
            bad(
                s.normal(&[3]),
                s.normal(&[3, 1]),
                runtime,
                "The input tensor A must have at least 2 dimensions",
            ),
            bad(
                s.normal(&[3, 3]),
                s.normal(&[3]),
                runtime,
                "The input tensor B must have at least 2 dimensions",
            ),
            bad(
                s.normal(&[3, 2]),
                s.normal(&[3, 1]),
                runtime,
                "A must be batches of square matrices, but they are 3 by 2 matrices",
            ),
            bad(
                s.normal(&[3, 3]),
                s.normal(&[2, 1]),
                runtime,
                "Incompatible shapes of A and B for the equation AX = B (3x3 and 2x1)",
            ),
            bad(
                s.normal(&[2, 2]),
                f32.normal(&[2, 1]),
                runtime,
                "Expected A and B to have the same dtype, but found A of type Double and B of type Float instead",
            ),
            bad(
                s.integers(&[2, 2], 1, 3),
                s.integers(&[2, 1], 1, 3),
                ErrorKind::NotImplemented,
                "not implemented for 'Long'",
            ),
        ]
    }
}

/// The elements of `a` that a triangular matrix has: one triangle, without the diagonal if that is taken to be ones.
fn within(a: &Tensor, upper: bool, unitriangular: bool) -> Result<Tensor> {
    let beyond = i64::from(unitriangular);
    if upper { a.triu(beyond) } else { a.tril(-beyond) }
}

/// Refuses arguments `b` and `A` of the older functions that solve equations which do not fit.
fn check_equation(name: &str, b: &Tensor, a: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
        b.dtype().scalar_name(),
        a.dtype().scalar_name()
    );
    let ((m, n), (rows, columns)) = (sizes(a.shape()), sizes(b.shape()));
    ensure!(
        m == n,
        runtime,
        "A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    ensure!(
        n == rows,
        runtime,
        "Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
    );
    Ok(())
}

/// The solution `X` of `A X = self` (of `A^T X = self` with `transpose`) for triangular `A`, and a copy of `A`. It is
/// deprecated: `torch.linalg.solve_triangular`, which takes the matrix first, is its replacement.
///
/// `A` may be sparse: elements that it does not specify are zeros, those of the diagonal make the solution NaN, and no copy is
/// given (an empty tensor).
#[op("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     exact_out, autocast = fp32, method = triangular_solve)]
impl TriangularSolve {
    fn composite(
        self_: &Tensor,
        a: &Tensor,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
    ) -> Result<[Tensor; 2]> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        for (name, t) in [("b", self_), ("A", a)] {
            ensure!(
                t.ndim() >= 2,
                runtime,
                "torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {} dimensions instead",
                t.ndim()
            );
        }
        check_equation("triangular_solve", self_, a)?;
        crate::warning::warn_once(
            &WARNED,
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular, which takes the matrix first, and does not give a copy of it",
        );
        if a.is_sparse() || self_.is_sparse() {
            let x = solve_sparse(self_, a, upper, transpose, unitriangular)?;
            return Ok([x, self_.new_empty(&[0])?]);
        }
        let matrix = if transpose { transposed(a)? } else { a.clone() };
        let x =
            matrix.linalg_solve_triangular_with(self_, upper != transpose, true, unitriangular)?;
        let shape: Dims = batch_shape(&x, &a.shape()[a.ndim() - 2..]);
        let used = transposed(&transposed(&a.expand(&shape, false)?)?.clone_tensor(None)?)?;
        Ok([x, used])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |b: &[i64], a: &[i64]| Sample::new([s.normal(b).into(), regular(s, a).into()]);
        vec![
            sample(&[3, 2], &[3]),
            sample(&[2, 2, 1], &[2]).with("transpose", true),
            sample(&[3, 2], &[3]).with("upper", false).with("unitriangular", true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |b: &[i64], a: &[i64], phrase| {
            let sample = Sample::new([s.normal(b).into(), s.normal(a).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(
                &[3],
                &[3, 3],
                "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has 1 dimensions instead",
            ),
            bad(
                &[3, 1],
                &[2, 2],
                "Incompatible matrix sizes for triangular_solve: each A matrix is 2 by 2 but each b matrix is 3 by 1",
            ),
        ]
    }
}

/// The solution `X` of `A X = self`, where `input2` is a Cholesky factor of `A`: the lower `L` with `A = L L^H`, or
/// with `upper` the upper `R` with `A = R^H R`. Only that triangle of the factor is read; batches broadcast.
#[op("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", out, autocast = fp32, method = cholesky_solve)]
impl CholeskySolve {
    fn composite(self_: &Tensor, input2: &Tensor, upper: bool) -> Result<Tensor> {
        for (name, t) in [("b", self_), ("u", input2)] {
            ensure!(
                t.ndim() >= 2,
                runtime,
                "{name} should have at least 2 dimensions, but has {} dimensions instead",
                t.ndim()
            );
        }
        check_equation("cholesky_solve", self_, input2)?;
        check_field("cholesky_solve_cpu", input2)?;
        let adjoint = h(input2)?;
        let (lower, upper) = if upper { (&adjoint, input2) } else { (input2, &adjoint) };
        upper.linalg_solve_triangular(&lower.linalg_solve_triangular(self_, false)?, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |b: &[i64], a: &[i64]| Sample::new([s.normal(b).into(), regular(s, a).into()]);
        vec![
            sample(&[3, 2], &[3]),
            sample(&[2, 2, 1], &[2]).with("upper", true),
            sample(&[0, 2], &[0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |b: &[i64], a: &[i64], phrase| {
            let sample = Sample::new([s.normal(b).into(), s.normal(a).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[3], &[3, 3], "b should have at least 2 dimensions, but has 1 dimensions instead"),
            bad(
                &[3, 1],
                &[3, 2],
                "A must be batches of square matrices, but they are 3 by 2 matrices",
            ),
            bad(
                &[3, 1],
                &[2, 2],
                "Incompatible matrix sizes for cholesky_solve: each A matrix is 2 by 2 but each b matrix is 3 by 1",
            ),
        ]
    }
}

/// Refuses a factor with a zero on its diagonal.
fn check_diagonal(factor: &Tensor) -> Result<()> {
    let is_zero = factor.detach()?.diagonal(0, -2, -1)?.eq(&Tensor::wrapped(0)?)?;
    if !has_elements(factor) || !is_any_true(&is_zero)? {
        return Ok(());
    }
    let whole = all_examples(&is_zero).to_dtype(DType::I32)?;
    let n = whole.shape()[whole.ndim() - 1] as usize;
    let at = whole.to_vec::<i32>()?.iter().position(|&zero| zero != 0).unwrap_or(0);
    let element =
        if whole.ndim() > 1 { format!("(Batch element {}): ", at / n) } else { String::new() };
    let text = format!(
        "cholesky_inverse: {element}The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
        at % n + 1
    );
    Err(Error::new(ErrorKind::LinAlg, text))
}

/// The inverse of the matrices `A` of which `self` is a Cholesky factor: the lower `L` with `A = L L^H`, or with
/// `upper` the upper `R` with `A = R^H R`.
#[op("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", out, autocast = fp32, method = cholesky_inverse)]
impl CholeskyInverse {
    fn composite(self_: &Tensor, upper: bool) -> Result<Tensor> {
        check_square("cholesky_inverse", self_)?;
        check_field("cholesky_inverse_out_cpu", self_)?;
        check_diagonal(self_)?;
        eye(self_.shape()[self_.ndim() - 1], self_)?
            .expand(self_.shape(), false)?
            .cholesky_solve(self_, upper)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(regular(s, &[3])),
            Sample::of(regular(s, &[2, 2])).with("upper", true),
            Sample::of(regular(s, &[0])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], phrase| {
            InvalidSample::new(Sample::of(s.normal(shape)), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[3], "cholesky_inverse: The input tensor A must have at least 2 dimensions."),
            bad(
                &[3, 2],
                "cholesky_inverse: A must be batches of square matrices, but they are 3 by 2 matrices",
            ),
            InvalidSample::new(
                Sample::of(s.normal(&[2, 2, 2]).times(Scalar::Int(0)).expect("samples are small")),
                ErrorKind::LinAlg,
                "cholesky_inverse: (Batch element 0): The diagonal element 1 is zero",
            ),
        ]
    }
}
