//! Vector norms and `logsumexp`.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::sum::{reduce_into, reduced_spec, restore};
use crate::tensor::Cpu;
use crate::tensor::promote::{default_dtype, promote_types};
use crate::tensor::shape::wrap_dims;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&LINALG_VECTOR_NORM, &NORM, &NORM_NAME, &LOGSUMEXP];

/// The norm of order `ord` over `dim` (all dimensions if `None`): `sum(|x|^ord)^(1/ord)`. The orders inf and -inf are
/// the largest and the smallest absolute value, order 0 is the number of elements that are not zero. Complex input
/// gives a real result. At 0 the gradient is 0.
#[op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     out, module = "linalg", batch = reduction, sparse = norm(self, ord, dim, keepdim, dtype))]
impl LinalgVectorNorm {
    fn meta(
        self_: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<TensorSpec> {
        ensure!(
            !matches!(ord, Scalar::Complex(..)),
            runtime,
            "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
        );
        check_dtypes("linalg.vector_norm", self_.dtype(), dtype)?;
        check_identity(self_.shape(), dim, ord.to_f64())?;
        reduced_spec(self_, dim, keepdim, dtype.unwrap_or(self_.dtype()).to_real())
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        dtype: Option<DType>,
    ) -> Result<()> {
        let dims = wrap_dims(dim, self_.ndim())?;
        let input = self_.in_dtype(cpu, dtype.unwrap_or(self_.dtype()))?;
        let p = ord.to_f64();
        reduce_into(cpu, result, &input, &dims, |o, x, d| reduce::norm(o, x, d, p))
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Option<Tensor>> {
        // The norm of order 0 is a count, which has no gradient.
        if ord.is(0.0) {
            return Ok(None);
        }
        let grad = restore(grad, self_.shape(), dim, keepdim)?;
        let norm = restore(result, self_.shape(), dim, keepdim)?;
        norm_grad(&grad, self_, &norm, ord.to_f64(), dim).map(Some)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        let norm = restore(result, self_p.shape(), dim, keepdim)?;
        let slope =
            norm_grad(&Tensor::scalar_of(1.0, result.dtype())?, self_p, &norm, ord.to_f64(), dim)?;
        slope.conj()?.mul(self_t)?.real()?.sum_dim(dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let orders = [2.0, 1.0, 0.0, 3.0, 1.5, 0.5, -1.0, f64::INFINITY, f64::NEG_INFINITY];
        let sample = |&p: &f64| {
            Sample::of(s.away_from_zero(&[2, 3])).with("ord", Scalar::Float(p)).with("dim", [1])
        };
        let mut out: Vec<_> = orders.iter().map(sample).collect();
        out.push(Sample::of(s.normal(&[2, 3])).with("keepdim", true));
        out.push(Sample::of(s.away_from_zero(&[])).with("dim", [0]));
        out.push(Sample::of(s.normal(&[0, 3])).with("dim", [0]));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |x: Tensor, dtype: DType, kind, phrase| {
            InvalidSample::new(Sample::of(x).with("dtype", dtype), kind, phrase)
        };
        let (x, complex) = (s.normal(&[2]), Sampler::new(DType::C128).normal(&[2]));
        let runtime = ErrorKind::Runtime;
        vec![
            bad(
                s.integers(&[2], 0, 3),
                DType::F32,
                ErrorKind::NotImplemented,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
            ),
            bad(
                x.clone(),
                DType::F32,
                runtime,
                "the dtype of the input (Double) should be convertible without narrowing to the specified dtype (Float)",
            ),
            bad(
                x.clone(),
                DType::C128,
                runtime,
                "dtype should be real for real inputs, but got ComplexDouble",
            ),
            bad(
                complex,
                DType::F64,
                runtime,
                "dtype should be complex for complex inputs, but got Double",
            ),
            bad(x, DType::I64, runtime, "dtype should be floating point or complex, but got Long"),
        ]
    }
}

/// Refuses norms of integers, and norms in a dtype that cannot represent the elements.
fn check_dtypes(name: &str, have: DType, wanted: Option<DType>) -> Result<()> {
    ensure!(
        have.is_differentiable(),
        not_implemented,
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        have.scalar_name()
    );
    let Some(dtype) = wanted else { return Ok(()) };
    let (to, from) = (dtype.scalar_name(), have.scalar_name());
    ensure!(
        dtype.is_differentiable(),
        runtime,
        "{name}: dtype should be floating point or complex, but got {to}"
    );
    let kind = if have.is_complex() { "complex" } else { "real" };
    ensure!(
        dtype.is_complex() == have.is_complex(),
        runtime,
        "{name}: dtype should be {kind} for {kind} inputs, but got {to}"
    );
    ensure!(
        promote_types(have, dtype)? == dtype,
        runtime,
        "{name}: the dtype of the input ({from}) should be convertible without narrowing to the specified dtype ({to})"
    );
    Ok(())
}

/// Refuses an order without a value for no elements where a reduced dimension is empty.
fn check_identity(shape: &[i64], dim: Option<&[i64]>, order: f64) -> Result<()> {
    let dims = wrap_dims(dim, shape.len())?;
    let has_identity = order >= 0.0 && order != f64::INFINITY;
    let Some(empty) = dims.iter().find(|&&d| shape[d] == 0 && !has_identity) else {
        return Ok(());
    };
    let of = if dim.is_none_or(<[i64]>::is_empty) {
        "an empty tensor because the operation".to_string()
    } else {
        format!("the dimension {empty}because this dimension is empty and the operation")
    };
    bail!(
        runtime,
        "linalg.vector_norm cannot compute the {order} norm on {of} does not have an identity"
    )
}

/// The norm of order `p` (2 if `None`) over `dim` (all dimensions if `None`), computed in `dtype`: `sum(|x|^p)^(1/p)`.
/// At 0 the gradient is 0. `torch.linalg.norm` is preferred.
#[op(
    "norm(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out
)]
impl Norm {
    fn composite(
        self_: &Tensor,
        p: Option<Scalar>,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        self_.linalg_vector_norm_with(p.unwrap_or(Scalar::Int(2)), dim, keepdim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = || Sample::of(s.away_from_zero(&[2, 3]));
        vec![
            sample(),
            sample().with("p", Scalar::Float(3.0)),
            sample().with("p", Value::None).with("dim", [1]),
            sample().with("p", Scalar::Float(1.0)).with("dim", [0, 1]).with("keepdim", true),
            sample().with("p", Value::None).with("dtype", s.dtype),
            sample().with("dim", [0]).with("dtype", s.dtype),
        ]
    }
}

/// A norm by its name: "fro", the square root of the sum of squares over `dim`, or "nuc", the sum of the singular
/// values of the matrices in the two dimensions `dim` (of the whole matrix if `None`).
#[op("norm.name(Tensor self, str p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", out,
     method = norm_by_name)]
impl NormName {
    fn composite(
        self_: &Tensor,
        p: &str,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        ensure!(
            matches!(p, "fro" | "nuc"),
            runtime,
            "linalg.matrix_norm: Order {p} not supported."
        );
        ensure!(
            p != "nuc" || self_.ndim() >= 2,
            runtime,
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        );
        let all: Vec<i64> = (0..self_.ndim() as i64).collect();
        let dims = dim.unwrap_or(&all);
        let is_matrix = dims.len() == 2;
        ensure!(
            is_matrix || p == "fro" && (dim.is_none() || dims.len() < 2),
            runtime,
            "linalg.matrix_norm: dim must be a 2-tuple. Got {}",
            dims.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
        );
        if p == "fro" {
            return self_.linalg_vector_norm_with(Scalar::Int(2), dim, keepdim, dtype);
        }
        check_dtypes("linalg.matrix_norm", self_.dtype(), dtype)?;
        let mut rows_and_columns = wrap_dims(Some(dims), self_.ndim())?;
        rows_and_columns.sort_unstable();
        let matrices = match dtype {
            Some(dtype) => self_.to_dtype(dtype)?,
            None => self_.clone(),
        };
        let norm =
            matrices.movedim(dims, &[-2, -1])?.linalg_svdvals()?.sum_dim(Some(&[-1]), false)?;
        if !keepdim {
            return Ok(norm);
        }
        rows_and_columns.iter().try_fold(norm, |norm, &d| norm.unsqueeze(d as i64))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], p: &str| Sample::of(s.away_from_zero(shape)).with("p", p);
        vec![
            sample(&[2, 3], "fro"),
            sample(&[2, 3, 2], "fro"),
            sample(&[2, 3], "fro").with("dim", [1]).with("keepdim", true),
            sample(&[2, 3], "nuc"),
            sample(&[2, 2, 3], "nuc").with("dim", [2, 0]),
            sample(&[2, 2, 3], "nuc").with("dim", [-1, 0]).with("keepdim", true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], p: &str, phrase| {
            let sample = Sample::of(s.normal(shape)).with("p", p);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[2, 2], "foo", "linalg.matrix_norm: Order foo not supported."),
            bad(&[2, 2, 2], "nuc", "linalg.matrix_norm: dim must be a 2-tuple. Got 0 1 2"),
        ]
    }
}

/// The logarithm of the sum of exponentials, `ln(sum(e^self))`, over `dim`. It is shifted by the maximum, so that it
/// does not overflow. Integers give the default floating dtype; a sum of no elements gives -inf.
#[op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", out, batch = reduction)]
impl Logsumexp {
    fn meta(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<TensorSpec> {
        let dtype = if self_.dtype().is_integral(true) { default_dtype() } else { self_.dtype() };
        reduced_spec(self_, Some(dim), keepdim, dtype)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<()> {
        let dims = wrap_dims(Some(dim), self_.ndim())?;
        let input = self_.in_dtype(cpu, result.dtype())?;
        reduce_into(cpu, result, &input, &dims, reduce::logsumexp)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        let result = restore(result, self_.shape(), Some(dim), keepdim)?;
        restore(grad, self_.shape(), Some(dim), keepdim)?.mul(&self_.sub(&result)?.exp()?.conj()?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        let result = restore(result, self_p.shape(), Some(dim), keepdim)?;
        self_t.mul(&self_p.sub(&result)?.exp()?)?.sum_dim(Some(dim), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3, 2])).with("dim", [1]),
            Sample::of(s.normal(&[2, 3])).with("dim", [0, -1]).with("keepdim", true),
            Sample::of(s.normal(&[])).with("dim", [0]),
            Sample::of(s.normal(&[2, 0])).with("dim", [0]),
        ]
    }
}

/// The gradient of a norm, where `grad` and `norm` keep the reduced dimensions. Where the norm (or, for orders below 1,
/// the element) is 0 the subgradient 0 is taken.
pub(in crate::ops) fn norm_grad(
    grad: &Tensor,
    x: &Tensor,
    norm: &Tensor,
    p: f64,
    dim: Option<&[i64]>,
) -> Result<Tensor> {
    let zero = Tensor::wrapped(0)?;
    let x_dtype = x.dtype();
    let without_nan = |t: Tensor| t.masked_fill(&norm.eq(&zero)?, Scalar::Int(0));
    let power = |t: &Tensor, e: f64| t.pow_scalar(Scalar::Float(e));
    if p == 0.0 {
        return x.zeros_like();
    }
    if p == 1.0 {
        return x.sgn()?.mul(grad);
    }
    if p == 2.0 {
        return grad.mul(&without_nan(x.div(norm)?)?);
    }
    if p.is_infinite() {
        let size = x.abs()?;
        let at = size.eq(norm)?.logical_or(&size.isnan()?.logical_and(&norm.isnan()?)?)?;
        let share = grad.div(&at.sum_dim(dim, true)?)?.mul(&at)?;
        return x.sgn()?.mul(&share.to_dtype(x_dtype.to_real())?);
    }
    if p < 1.0 {
        let scaled = x
            .sgn()?
            .mul(&power(&x.abs()?, p - 1.0)?)?
            .masked_fill(&x.eq(&zero)?, Scalar::Int(0))?;
        return scaled.mul(&grad.mul(&power(norm, 1.0 - p)?)?);
    }
    let scale = without_nan(grad.div(&power(norm, p - 1.0)?)?)?;
    let scaled = if p < 2.0 {
        x.sgn()?.mul(&power(&x.abs()?, p - 1.0)?)?
    } else {
        x.mul(&power(&x.abs()?, p - 2.0)?)?
    };
    scaled.mul(&scale)
}
