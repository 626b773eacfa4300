//! Linear equations, inverses and determinants of batches of dense matrices, with gradients.
//!
//! The forms that end in `_ex` report by error codes which matrices are singular; the plain forms are made of them and
//! raise an error for such matrices. Formulas and conventions are those of `decomposition`.
//!
//! Equations and determinants are made of ops that give the LU factors of the matrix besides, which gradients use again
//! instead of factorising it once more. Derivatives go through the matrix alone: the factors, which have none, say how it
//! is computed and not what.

use super::decomposition::{
    batch_shape, by_columns, check_codes, check_matrix, codes_spec, column_strides, eye, h,
    matrix_samples, regular, sizes, write_codes,
};
use super::layout::transposed;
use super::triangular::matrices_for;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, list};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINALG_SOLVE,
    &LINALG_SOLVE_EX,
    &SOLVE_WITH_FACTORS,
    &SOLVE_BY_FACTORS,
    &LINALG_INV,
    &LINALG_INV_EX,
    &INV_BY_FACTORS,
    &LINALG_DET,
    &DET_WITH_FACTORS,
    &LINALG_SLOGDET,
    &SLOGDET_WITH_FACTORS,
];

/// Whether `b` is a batch of vectors, by the rule of `linalg.solve`: it has one dimension, or the shape of `a` without
/// its last dimension.
fn is_vector(a_shape: &[i64], b_shape: &[i64]) -> bool {
    b_shape.len() == 1
        || (a_shape.len() - 1 == b_shape.len() && b_shape == &a_shape[..a_shape.len() - 1])
}

/// The solution `X` of the linear equations `A X = B` for square matrices `A` (*, n, n), or of `X A = B` unless `left`.
///
/// `B` is (*, n, k), or (*, n) for vectors; batches broadcast. Equations of order 0 have an empty solution.
///
/// # Errors
/// `LinAlgError` for a singular matrix; `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for
/// half precision and integer dtypes.
#[op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", module = "linalg", exact_out, method = linalg_solve, autocast = fp32)]
impl LinalgSolve {
    fn composite(a: &Tensor, b: &Tensor, left: bool) -> Result<Tensor> {
        let [x, info] = a.linalg_solve_ex_with(b, left, false)?;
        check_codes("torch.linalg.solve", a, &info, |_| UNSOLVED.to_owned())?;
        Ok(x)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        solve_samples(s)
    }
}

/// The sizes of an equation `A X = B` or `X A = B`.
struct Equation {
    /// The common batch dimensions.
    batch: Dims,
    /// The order of `A`.
    n: i64,
    /// The number of right-hand sides, for `X A = B` that of rows of `X`.
    k: i64,
    /// Whether `B` is a batch of vectors.
    is_vector: bool,
    /// Whether the equation is `A X = B`.
    is_left: bool,
}

impl Equation {
    fn of(a: &Tensor, b: &Tensor, left: bool) -> Result<Self> {
        check_matrix("solve", a, true)?;
        ensure!(
            a.dtype() == b.dtype(),
            runtime,
            "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype().scalar_name(),
            b.dtype().scalar_name()
        );
        let is_vector = is_vector(a.shape(), b.shape());
        ensure!(
            left || !is_vector,
            runtime,
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        );
        let mut wide = Dims::from_slice(b.shape());
        if is_vector {
            wide.push(1);
        }
        ensure!(
            wide.len() >= 2,
            runtime,
            "linalg.solve: The input tensor B must have at least 2 dimensions."
        );
        let ((n, _), (rows, columns)) = (sizes(a.shape()), sizes(&wide));
        let (rows, k) = if left { (rows, columns) } else { (columns, rows) };
        ensure!(
            n == rows,
            runtime,
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {rows}x{k})"
        );
        let batch = broadcast_shapes(&[&a.shape()[..a.ndim() - 2], &wide[..wide.len() - 2]])?;
        Ok(Equation { batch, n, k, is_vector, is_left: left })
    }
    /// The shape of the solution.
    fn solution(&self) -> Dims {
        let mut shape = self.batch.clone();
        shape.extend(if self.is_left { [self.n, self.k] } else { [self.k, self.n] });
        if self.is_vector {
            shape.pop();
        }
        shape
    }
}

const UNSOLVED: &str = "The solver failed because the input matrix is singular.";

/// The solution `X` of `A X = B` (of `X A = B` unless `left`) together with error codes `info` (*), int32, in place of
/// an error: 0, or the index, from 1, of the first pivot that is zero, where the solution is NaN. With `check_errors` a
/// singular matrix raises `LinAlgError`. Source of the gradient: M. B. Giles, "An extended collection of matrix
/// derivative results" (2008).
#[op("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
     module = "linalg", exact_out, method = linalg_solve_ex)]
impl LinalgSolveEx {
    fn composite(a: &Tensor, b: &Tensor, left: bool, check_errors: bool) -> Result<[Tensor; 2]> {
        let [x, _, _, info] = a.solve_with_factors_with(b, left, check_errors)?;
        Ok([x, info])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        solve_samples(s)
    }
}

/// What `torch.linalg.solve_ex` gives, and the LU factors of `A` (*, n, n) with their pivots (*, n), column-major. A triangular
/// matrix stands for its factors.
#[op("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
     internal, one_gradient, node = "LinalgSolveEx", method = solve_with_factors, batch = linear_solve(a, b))]
impl SolveWithFactors {
    fn meta(a: &Tensor, b: &Tensor, left: bool) -> Result<[TensorSpec; 4]> {
        let sizes = Equation::of(a, b, left)?;
        let info = TensorSpec::beside(a, &sizes.batch).computed_in(DType::I32);
        let x = TensorSpec::beside(b, &sizes.solution());
        // The solution is column-major, as LAPACK returns it, also where vectors are taken for the columns of a matrix.
        let strides = column_strides(&x.shape);
        let [lu, pivots] = factors_spec(a);
        Ok([if left { x.with_strides(strides) } else { x }, lu, pivots, info])
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        info: &Tensor,
        a: &Tensor,
        b: &Tensor,
        left: bool,
        check_errors: bool,
    ) -> Result<()> {
        let sizes = Equation::of(a, b, left)?;
        let codes = factorise(cpu, (lu, pivots), a)?;
        let wide = |t: &Tensor| if sizes.is_vector { t.unsqueeze(-1) } else { Ok(t.clone()) };
        solve_by(cpu, &wide(result)?, [a, lu, pivots], &wide(b)?, (left, false))?;
        // (Matrices whose batch broadcasts are factorised once.)
        let own = Tensor::from_slice(&codes, &batch_shape(a, &[]))?;
        info.copy_data(cpu, &own.expand(&sizes.batch, false)?)?;
        if check_errors {
            check_codes("torch.linalg.solve_ex", a, info, |_| UNSOLVED.to_owned())?;
        }
        Ok(())
    }
    fn vjp(
        grad_result: &Tensor,
        a: &Tensor,
        b_shape: &[i64],
        left: bool,
        result: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let vector = is_vector(a.shape(), b_shape);
        let wide = |t: &Tensor| if vector { t.unsqueeze(-1) } else { Ok(t.clone()) };
        let gb = a.solve_by_factors(lu, pivots, &wide(grad_result)?, left, true)?;
        let ga = needs[0].then(|| minus_outer(&gb, &wide(result)?, left)).transpose()?;
        Ok([ga, Some(if vector { gb.squeeze_dim(-1)? } else { gb })])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        without_gradients(solve_samples(s))
    }
}

/// The specs of the factors of `a` and of their pivots.
fn factors_spec(a: &Tensor) -> [TensorSpec; 2] {
    let (n, _) = sizes(a.shape());
    let pivots = TensorSpec::beside(a, &batch_shape(a, &[n])).computed_in(DType::I32);
    [by_columns(a, [n, n]), pivots]
}

/// Writes the factors of `a` and their pivots; gives the error codes.
fn factorise(cpu: Cpu, (lu, pivots): (&Tensor, &Tensor), a: &Tensor) -> Result<Vec<i32>> {
    let columns = transposed(lu)?;
    Ok(kernel::factor(&mut columns.view_mut(cpu), &mut pivots.view_mut(cpu), a.view_ref(cpu))?)
}

/// Solves `A X = B` (`X A = B` unless `left`) for matrices, with `A^H` in place of `A` if `adjoint`.
fn solve_by(
    cpu: Cpu,
    x: &Tensor,
    [a, lu, pivots]: [&Tensor; 3],
    b: &Tensor,
    (left, adjoint): (bool, bool),
) -> Result<()> {
    // The kernel solves for rows: those of X^T for `A X = B`, and those of X for `X A = B`, which is `A^T X^T = B^T`.
    let as_rows = |t: &Tensor| if left { transposed(t) } else { Ok(t.clone()) };
    let b = as_rows(&b.expand(x.shape(), false)?)?;
    let [a, lu] = [a, lu].map(|t| matrices_for(t, x.shape(), 2));
    let (a, lu, pivots) = (a?, transposed(&lu?)?, matrices_for(pivots, x.shape(), 1)?);
    let factors = kernel::LuFactors {
        a: a.view_ref(cpu),
        lu: lu.view_ref(cpu),
        pivots: pivots.view_ref(cpu),
    };
    let form = kernel::SystemForm { transposed: left == adjoint, conjugated: adjoint };
    Ok(kernel::solve(&mut as_rows(x)?.view_mut(cpu), factors, b.view_ref(cpu), form)?)
}

/// `-gB X^H`, the gradient of `A` for the solution of `A X = B`; of `X A = B` unless `left`.
fn minus_outer(gb: &Tensor, x: &Tensor, left: bool) -> Result<Tensor> {
    let product = if left { gb.matmul(&h(x)?)? } else { h(x)?.matmul(gb)? };
    product.times(Scalar::Int(-1))
}

/// The solution `X` of `A X = B` (of `X A = B` unless `left`), with `A^H` in place of `A` if `adjoint`, for matrices `B`; `LU` and
/// `pivots` are what `_linalg_solve_ex` gives for `A`. Batches broadcast. A singular matrix gives NaN.
#[op("_linalg_solve_by_factors(Tensor A, Tensor LU, Tensor pivots, Tensor B, bool left, bool adjoint) -> Tensor",
     internal, not_differentiable(lu, pivots), method = solve_by_factors, batch = factored_matrix(a, lu, pivots, b))]
impl SolveByFactors {
    fn meta(
        a: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        b: &Tensor,
        left: bool,
    ) -> Result<TensorSpec> {
        check_matrix("solve", a, true)?;
        check_factors(a, lu, pivots)?;
        ensure!(b.ndim() >= 2, runtime, "linalg.solve: B must be a batch of matrices");
        let sizes = Equation::of(&a.unsqueeze(0)?, &b.unsqueeze(0)?, left)?;
        let shape = Dims::from_slice(&sizes.solution()[1..]);
        let strides = column_strides(&shape);
        let x = TensorSpec::beside(b, &shape);
        Ok(if left { x.with_strides(strides) } else { x })
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        a: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        b: &Tensor,
        left: bool,
        adjoint: bool,
    ) -> Result<()> {
        solve_by(cpu, result, [a, lu, pivots], b, (left, adjoint))
    }
    // With `A^H X = B` the product is the gradient of `A^H`.
    fn vjp(
        grad: &Tensor,
        a: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        left: bool,
        adjoint: bool,
        result: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let gb = a.solve_by_factors(lu, pivots, grad, left, !adjoint)?;
        let ga = needs[0].then(|| minus_outer(&gb, result, left)).transpose()?;
        Ok([if adjoint { ga.map(|g| h(&g)).transpose()? } else { ga }, Some(gb)])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], b: &[i64], left: bool, adjoint: bool| {
            let [a, lu, pivots] = factored(s, a).map(Value::from);
            let b = s.normal(b).into();
            // (Numerical differences of `A` do not reach its factors: `linalg_solve` checks the rule.)
            Sample::new([a, lu, pivots, b, left.into(), adjoint.into()]).without_gradient()
        };
        vec![
            sample(&[3], &[3, 2], true, false),
            sample(&[2, 3], &[3, 2], true, true),
            sample(&[3], &[2, 2, 3], false, true),
            sample(&[3], &[1, 3], false, false),
        ]
    }
}

/// Samples of an op that gives factors, which have no gradient: `linalg_solve` and the determinants check the others.
fn without_gradients(samples: Vec<Sample>) -> Vec<Sample> {
    samples.into_iter().map(Sample::without_gradient).collect()
}

/// A matrix, factors of one, and pivots that exchange no rows.
fn factored(s: &Sampler, shape: &[i64]) -> [Tensor; 3] {
    let (a, lu) = (regular(s, shape), regular(s, shape));
    let n = shape[shape.len() - 1] as i32;
    let count = shape.iter().product::<i64>() as i32;
    // bounded: by the samples
    let pivots: Vec<i32> = (0..count).map(|at| at % n + 1).collect();
    [a, lu, Tensor::from_slice(&pivots, shape).expect("samples are small")]
}

/// Refuses factors and pivots that are not those of matrices like `a`.
fn check_factors(a: &Tensor, lu: &Tensor, pivots: &Tensor) -> Result<()> {
    ensure!(
        lu.shape() == a.shape() && lu.dtype() == a.dtype(),
        runtime,
        "LU must have the shape {} and the dtype {} of A, but has {} and {}",
        list(a.shape()),
        a.dtype().scalar_name(),
        list(lu.shape()),
        lu.dtype().scalar_name()
    );
    let expected = &a.shape()[..a.ndim() - 1];
    ensure!(
        pivots.shape() == expected && pivots.dtype() == DType::I32,
        runtime,
        "pivots must be Int of shape {}, but are {} of shape {}",
        list(expected),
        pivots.dtype().scalar_name(),
        list(pivots.shape())
    );
    Ok(())
}

fn solve_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::new([regular(s, &[3]).into(), s.normal(&[3, 2]).into()]),
        Sample::new([regular(s, &[2, 2]).into(), s.normal(&[2, 2]).into()]),
        Sample::new([regular(s, &[3]).into(), s.normal(&[3]).into()]),
        Sample::new([regular(s, &[3]).into(), s.normal(&[2, 3]).into()]).with("left", false),
    ]
}

/// The inverse of square matrices (*, n, n).
///
/// # Errors
/// `LinAlgError` for a singular matrix; `RuntimeError` for matrices that are not square; `NotImplementedError` for half
/// precision and integer dtypes.
#[op("linalg_inv(Tensor A) -> Tensor", module = "linalg", exact_out, alias("inverse"), method = linalg_inv, autocast = fp32)]
impl LinalgInv {
    fn composite(a: &Tensor) -> Result<Tensor> {
        let [inverse, info] = a.linalg_inv_ex()?;
        check_codes("linalg.inv", a, &info, not_invertible)?;
        Ok(inverse)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        vec![
            bad(
                s.normal(&[2, 3]),
                ErrorKind::Runtime,
                "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                s.normal(&[2, 1, 1]).times(0).expect("samples are small"),
                ErrorKind::LinAlg,
                "linalg.inv: (Batch element 0): The diagonal element 1 is zero",
            ),
        ]
    }
}

fn not_invertible(pivot: i32) -> String {
    format!(
        "The diagonal element {pivot} is zero, the inversion could not be completed because the input matrix is singular."
    )
}

/// The inverse of square matrices (*, n, n) together with error codes `info` (*), int32, in place of an error: 0, or
/// the index, from 1, of the first pivot that is zero, where the inverse is NaN. With `check_errors` a singular matrix
/// raises `LinAlgError`. Source of the gradient: M. B. Giles, "An extended collection of matrix derivative results"
/// (2008).
#[op("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", module = "linalg", exact_out,
     method = linalg_inv_ex, autocast = fp32, batch = matrices)]
impl LinalgInvEx {
    fn meta(a: &Tensor) -> Result<[TensorSpec; 2]> {
        check_matrix("inv", a, true)?;
        let (n, _) = sizes(a.shape());
        Ok([by_columns(a, [n, n]), codes_spec(a)])
    }
    fn cpu(
        cpu: Cpu,
        inverse: &Tensor,
        info: &Tensor,
        a: &Tensor,
        check_errors: bool,
    ) -> Result<()> {
        let codes = kernel::inv(&mut transposed(inverse)?.view_mut(cpu), a.view_ref(cpu))?;
        write_codes(cpu, info, &codes)?;
        if check_errors {
            check_codes("linalg.inv_ex", a, info, not_invertible)?;
        }
        Ok(())
    }
    fn vjp_a(grad_inverse: &Tensor, inverse: &Tensor) -> Result<Tensor> {
        inverse_backward(grad_inverse, inverse)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}

/// The gradient of a matrix from that of its inverse.
fn inverse_backward(grad: &Tensor, inverse: &Tensor) -> Result<Tensor> {
    let adjoint = h(inverse)?;
    adjoint.matmul(&grad.matmul(&adjoint)?)?.times(Scalar::Int(-1))
}

/// The inverse of `A` (*, n, n), of which `_linalg_solve_ex` or a determinant has given `LU` and `pivots`. That of a singular matrix is
/// NaN.
#[op("_linalg_inv_by_factors(Tensor A, Tensor LU, Tensor pivots) -> Tensor", internal, not_differentiable(lu, pivots),
     method = inv_by_factors, batch = matrices)]
impl InvByFactors {
    fn meta(a: &Tensor, lu: &Tensor, pivots: &Tensor) -> Result<TensorSpec> {
        check_matrix("inv", a, true)?;
        check_factors(a, lu, pivots)?;
        let (n, _) = sizes(a.shape());
        Ok(by_columns(a, [n, n]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, a: &Tensor, lu: &Tensor, pivots: &Tensor) -> Result<()> {
        let columns = transposed(lu)?;
        let factors = kernel::LuFactors {
            a: a.view_ref(cpu),
            lu: columns.view_ref(cpu),
            pivots: pivots.view_ref(cpu),
        };
        Ok(kernel::invert(&mut transposed(result)?.view_mut(cpu), factors)?)
    }
    fn vjp_a(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        inverse_backward(grad, result)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| {
            // (As for `_linalg_solve_by_factors`.)
            Sample::new(factored(s, shape).map(Value::from)).without_gradient()
        };
        vec![sample(&[3]), sample(&[2, 2])]
    }
}

/// The determinant (*) of square matrices (*, n, n); that of a matrix of order 0 is 1. The gradient is `det(A)^* A^-H`
/// times that of the result, and at singular matrices the adjugate, which is computed from the singular values.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_det(Tensor A) -> Tensor", module = "linalg", exact_out, alias("det"), method = linalg_det)]
impl LinalgDet {
    fn composite(a: &Tensor) -> Result<Tensor> {
        let [det, ..] = a.det_with_factors()?;
        Ok(det)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}

/// What `torch.linalg.det` gives, and the LU factors of `A` with their pivots, as `_linalg_solve_ex` does.
#[op("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", internal, one_gradient, node = "LinalgDet",
     method = det_with_factors, batch = matrices)]
impl DetWithFactors {
    fn meta(a: &Tensor) -> Result<[TensorSpec; 3]> {
        check_matrix("det", a, true)?;
        let [lu, pivots] = factors_spec(a);
        Ok([TensorSpec::beside(a, &batch_shape(a, &[])), lu, pivots])
    }
    fn cpu(cpu: Cpu, result: &Tensor, lu: &Tensor, pivots: &Tensor, a: &Tensor) -> Result<()> {
        factorise(cpu, (lu, pivots), a)?;
        let columns = transposed(lu)?;
        let (lu, pivots) = (columns.view_ref(cpu), pivots.view_ref(cpu));
        Ok(kernel::det(&mut result.view_mut(cpu), lu, pivots)?)
    }
    fn vjp_a(
        grad_result: &Tensor,
        a: &Tensor,
        result: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
    ) -> Result<Tensor> {
        let grad = grad_result;
        let is_singular = is_any_true(&result.logical_not()?)?;
        let weight = |t: &Tensor| t.unsqueeze(-1)?.unsqueeze(-1);
        if !is_singular {
            let inverse = a.inv_by_factors(lu, pivots)?;
            return weight(&grad.mul(&result.conj()?)?)?.mul(&h(&inverse)?);
        }
        // The conjugate transpose of the adjugate is conj(det U det Vh) U diag(prod over j != i of s_j) Vh.
        let [u, s, vh] = a.svd_kernel(false, true)?;
        let k = s.shape()[s.ndim() - 1];
        let one = eye(k, &s)?;
        let mut others = TensorSpec::beside(&s, s.shape()).full(Scalar::Int(1))?;
        for j in 0..k {
            let unit = one.select(0, j)?;
            let factor = s
                .select(-1, j)?
                .unsqueeze(-1)?
                .mul(&unit.times(Scalar::Int(-1))?.add(&Tensor::wrapped(1.0)?)?)?
                .add(&unit)?;
            others = others.mul(&factor)?;
        }
        let phase = u.linalg_det()?.mul(&vh.linalg_det()?)?.conj()?;
        let adjoint = u.mul(&others.unsqueeze(-2)?)?.matmul(&vh)?;
        weight(&grad.mul(&phase)?)?.mul(&adjoint)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        without_gradients(matrix_samples(s))
    }
}

/// The sign of the determinant of square matrices (*, n, n) and the natural logarithm of its absolute value, both of
/// shape (*). `sign` has absolute value 1; the logarithm is real and does not overflow where the determinant would. A
/// singular matrix gives 0 and -inf.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", module = "linalg", exact_out, alias("slogdet"),
     method = linalg_slogdet)]
impl LinalgSlogdet {
    fn composite(a: &Tensor) -> Result<[Tensor; 2]> {
        let [sign, log, ..] = a.slogdet_with_factors()?;
        Ok([sign, log])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}

/// What `torch.linalg.slogdet` gives, and the LU factors of `A` with their pivots, as `_linalg_solve_ex` does.
#[op("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", internal,
     node = "LinalgSlogdet", method = slogdet_with_factors, batch = matrices)]
impl SlogdetWithFactors {
    fn meta(a: &Tensor) -> Result<[TensorSpec; 4]> {
        check_matrix("det", a, true)?;
        let sign = TensorSpec::beside(a, &batch_shape(a, &[]));
        let [lu, pivots] = factors_spec(a);
        Ok([sign.clone(), sign.computed_in(a.dtype().to_real()), lu, pivots])
    }
    fn cpu(
        cpu: Cpu,
        sign: &Tensor,
        logabsdet: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
        a: &Tensor,
    ) -> Result<()> {
        factorise(cpu, (lu, pivots), a)?;
        let columns = transposed(lu)?;
        let (mut sign, mut log) = (sign.view_mut(cpu), logabsdet.view_mut(cpu));
        let (lu, pivots) = (columns.view_ref(cpu), pivots.view_ref(cpu));
        Ok(kernel::slogdet(&mut sign, &mut log, lu, pivots)?)
    }
    // The logarithm ln|det A| and the angle of the sign are the real and imaginary parts of ln det A, whose gradient is
    // A^-H; the sign e^(i angle) depends on the angle only.
    fn vjp_a(
        grad_sign: Option<&Tensor>,
        grad_logabsdet: Option<&Tensor>,
        a: &Tensor,
        sign: &Tensor,
        lu: &Tensor,
        pivots: &Tensor,
    ) -> Result<Tensor> {
        let mut weight = match grad_logabsdet {
            Some(g) => g.to_dtype(a.dtype())?,
            None => TensorSpec::beside(a, sign.shape()).zeros()?,
        };
        if let Some(g) = grad_sign.filter(|_| a.dtype().is_complex()) {
            let rotation = g.conj()?.mul(sign)?.imag_part()?;
            weight = weight.sub(&rotation.mul(&Tensor::wrapped(Scalar::Complex(0.0, 1.0))?)?)?;
        }
        // (Two results have gradients, so that the factors seem to have one as well.)
        let inverse = a.inv_by_factors(&lu.detach()?, pivots)?;
        weight.unsqueeze(-1)?.unsqueeze(-1)?.mul(&h(&inverse)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        without_gradients(matrix_samples(s))
    }
}
