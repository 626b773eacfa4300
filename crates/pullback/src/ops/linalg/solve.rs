//! Linear equations, inverses and determinants of batches of dense matrices, with gradients.
//!
//! The forms that end in `_ex` report by error codes which matrices are singular; the plain forms are made of them and
//! raise an error for such matrices. Formulas and conventions are those of `decomposition`.

use super::decomposition::{
    batch_shape, by_columns, check_codes, check_matrix, codes_spec, column_strides, eye, h,
    matrix_samples, regular, sizes, write_codes,
};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::Cpu;
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LINALG_SOLVE, &LINALG_SOLVE_EX, &LINALG_INV, &LINALG_INV_EX, &LINALG_DET, &LINALG_SLOGDET];

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
     module = "linalg", exact_out, method = linalg_solve_ex, batch = linear_solve(a, b))]
impl LinalgSolveEx {
    fn meta(a: &Tensor, b: &Tensor, left: bool) -> Result<[TensorSpec; 2]> {
        let sizes = Equation::of(a, b, left)?;
        let info = TensorSpec::beside(a, &sizes.batch).computed_in(DType::I32);
        let x = TensorSpec::beside(b, &sizes.solution());
        // The solution is column-major, as LAPACK returns it, also where vectors are taken for the columns of a matrix.
        let strides = column_strides(&x.shape);
        Ok([if left { x.with_strides(strides) } else { x }, info])
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        info: &Tensor,
        a: &Tensor,
        b: &Tensor,
        left: bool,
        check_errors: bool,
    ) -> Result<()> {
        let sizes = Equation::of(a, b, left)?;
        let wide = |t: &Tensor| if sizes.is_vector { t.unsqueeze(-1) } else { Ok(t.clone()) };
        let transposed = |t: &Tensor| if left { Ok(t.clone()) } else { t.transpose(-2, -1) };
        let full = |t: Tensor, [m, n]: [i64; 2]| {
            let shape: Dims = sizes.batch.iter().copied().chain([m, n]).collect();
            t.expand(&shape, false)
        };
        let (x, b) = (transposed(&wide(result)?)?, transposed(&wide(b)?)?);
        let (a, b) = (full(transposed(a)?, [sizes.n, sizes.n])?, full(b, [sizes.n, sizes.k])?);
        let codes = kernel::solve(&mut x.view_mut(cpu), a.view_ref(cpu), b.view_ref(cpu))?;
        write_codes(cpu, info, &codes)?;
        if check_errors {
            check_codes("torch.linalg.solve_ex", &a, info, |_| UNSOLVED.to_owned())?;
        }
        Ok(())
    }
    fn vjp(
        grad_result: &Tensor,
        a: &Tensor,
        b_shape: &[i64],
        left: bool,
        result: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let vector = is_vector(a.shape(), b_shape);
        let wide = |t: &Tensor| if vector { t.unsqueeze(-1) } else { Ok(t.clone()) };
        let gb = h(a)?.linalg_solve_with(&wide(grad_result)?, left)?;
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
        solve_samples(s)
    }
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
        let codes = kernel::inv(&mut inverse.view_mut(cpu), a.view_ref(cpu))?;
        write_codes(cpu, info, &codes)?;
        if check_errors {
            check_codes("linalg.inv_ex", a, info, not_invertible)?;
        }
        Ok(())
    }
    fn vjp_a(grad_inverse: &Tensor, inverse: &Tensor) -> Result<Tensor> {
        let adjoint = h(inverse)?;
        adjoint.matmul(&grad_inverse.matmul(&adjoint)?)?.times(Scalar::Int(-1))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}

/// The determinant (*) of square matrices (*, n, n); that of a matrix of order 0 is 1. The gradient is `det(A)^* A^-H`
/// times that of the result, and at singular matrices the adjugate, which is computed from the singular values.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_det(Tensor A) -> Tensor", module = "linalg", exact_out, alias("det"), node = "LinalgDet", method = linalg_det, batch = matrices)]
impl LinalgDet {
    fn meta(a: &Tensor) -> Result<TensorSpec> {
        check_matrix("det", a, true)?;
        Ok(TensorSpec::beside(a, &batch_shape(a, &[])))
    }
    fn cpu(cpu: Cpu, result: &Tensor, a: &Tensor) -> Result<()> {
        Ok(kernel::det(&mut result.view_mut(cpu), a.view_ref(cpu))?)
    }
    fn vjp_a(grad: &Tensor, a: &Tensor, result: &Tensor) -> Result<Tensor> {
        let is_singular = is_any_true(&result.logical_not()?)?;
        let weight = |t: &Tensor| t.unsqueeze(-1)?.unsqueeze(-1);
        if !is_singular {
            return weight(&grad.mul(&result.conj()?)?)?.mul(&h(&a.linalg_inv()?)?);
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
        matrix_samples(s)
    }
}

/// The sign of the determinant of square matrices (*, n, n) and the natural logarithm of its absolute value, both of
/// shape (*). `sign` has absolute value 1; the logarithm is real and does not overflow where the determinant would. A
/// singular matrix gives 0 and -inf.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", module = "linalg", exact_out, alias("slogdet"),
     method = linalg_slogdet, batch = matrices)]
impl LinalgSlogdet {
    fn meta(a: &Tensor) -> Result<[TensorSpec; 2]> {
        check_matrix("slogdet", a, true)?;
        let sign = TensorSpec::beside(a, &batch_shape(a, &[]));
        Ok([sign.clone(), sign.computed_in(a.dtype().to_real())])
    }
    fn cpu(cpu: Cpu, sign: &Tensor, logabsdet: &Tensor, a: &Tensor) -> Result<()> {
        let (mut sign, mut log) = (sign.view_mut(cpu), logabsdet.view_mut(cpu));
        Ok(kernel::slogdet(&mut sign, &mut log, a.view_ref(cpu))?)
    }
    // The logarithm ln|det A| and the angle of the sign are the real and imaginary parts of ln det A, whose gradient is
    // A^-H; the sign e^(i angle) depends on the angle only.
    fn vjp_a(
        grad_sign: Option<&Tensor>,
        grad_logabsdet: Option<&Tensor>,
        a: &Tensor,
        sign: &Tensor,
    ) -> Result<Tensor> {
        let mut weight = match grad_logabsdet {
            Some(g) => g.to_dtype(a.dtype())?,
            None => TensorSpec::beside(a, sign.shape()).zeros()?,
        };
        if let Some(g) = grad_sign.filter(|_| a.dtype().is_complex()) {
            let rotation = g.conj()?.mul(sign)?.imag_part()?;
            weight = weight.sub(&rotation.mul(&Tensor::wrapped(Scalar::Complex(0.0, 1.0))?)?)?;
        }
        let [inverse, _] = a.linalg_inv_ex()?;
        weight.unsqueeze(-1)?.unsqueeze(-1)?.mul(&h(&inverse)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
}
