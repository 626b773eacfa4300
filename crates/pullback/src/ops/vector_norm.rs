//! Vector norms and `logsumexp`.

use crate::dispatch::{OpDef, Value};
use crate::gradcheck::{Sample, Sampler};
use crate::ops::reduce::{reduced, restore};
use crate::tensor::promote::default_dtype;
use crate::tensor::shape::wrap_dims;
use crate::{DType, Result, Scalar, Tensor};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LINALG_VECTOR_NORM, &NORM, &NORM_DIM, &NORM_DTYPE, &NORM_DIM_DTYPE, &LOGSUMEXP];

/// The norm of order `ord` over `dim` (all dimensions if `None`): `sum(|x|^ord)^(1/ord)`; infinite orders take
/// the largest or smallest magnitude, order 0 counts what is not zero. Complex input gives a real result; at 0
/// the gradient is 0.
#[op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     out, module = "linalg", batch = reduction)]
impl LinalgVectorNorm {
    fn cpu(
        self_: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let dims = wrap_dims(dim, self_.ndim())?;
        let input = self_.in_dtype(dtype.unwrap_or(self_.dtype()))?;
        let p = ord.to_f64();
        reduced(&input, &dims, keepdim, input.dtype().to_real(), |o, x, d| reduce::norm(o, x, d, p))
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        ord: Scalar,
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        let grad = restore(grad, self_.shape(), dim, keepdim)?;
        let norm = restore(result, self_.shape(), dim, keepdim)?;
        norm_grad(&grad, self_, &norm, ord.to_f64(), dim)
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
}

/// The norm of order `p` (2 if `None`) of all elements.
#[op("norm.Scalar(Tensor self, Scalar p=2) -> Tensor")]
impl Norm {
    fn composite(self_: &Tensor, p: Scalar) -> Result<Tensor> {
        self_.linalg_vector_norm(p, None, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.away_from_zero(&[2, 3])),
            Sample::of(s.away_from_zero(&[3])).with("p", Scalar::Float(3.0)),
        ]
    }
}

/// The norm of order `p` (2 if `None`) over `dim`.
#[op("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", out)]
impl NormDim {
    fn composite(self_: &Tensor, p: Option<Scalar>, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        self_.linalg_vector_norm(p.unwrap_or(Scalar::Int(2)), Some(dim), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        norm_dim_samples(s)
    }
}

/// The norm of order `p` (2 if `None`) of all elements, computed in `dtype`.
#[op("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")]
impl NormDtype {
    fn composite(self_: &Tensor, p: Option<Scalar>, dtype: DType) -> Result<Tensor> {
        self_.linalg_vector_norm_with(p.unwrap_or(Scalar::Int(2)), None, false, Some(dtype))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.away_from_zero(&[2, 3])).with("p", Value::None).with("dtype", s.dtype)]
    }
}

/// The norm of order `p` (2 if `None`) over `dim`, computed in `dtype`.
#[op(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim=False, *, ScalarType dtype) -> Tensor",
    out
)]
impl NormDimDtype {
    fn composite(
        self_: &Tensor,
        p: Option<Scalar>,
        dim: &[i64],
        keepdim: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        self_.linalg_vector_norm_with(p.unwrap_or(Scalar::Int(2)), Some(dim), keepdim, Some(dtype))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        norm_dim_samples(s).into_iter().map(|sample| sample.with("dtype", s.dtype)).collect()
    }
}

/// `ln(sum(e^self))` over `dim`, shifted by the maximum so that it cannot overflow. Integers give the default
/// floating dtype; no elements give -inf.
#[op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", out, batch = reduction)]
impl Logsumexp {
    fn cpu(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let dtype = if self_.dtype().is_integral(true) { default_dtype() } else { self_.dtype() };
        reduced(
            &self_.in_dtype(dtype)?,
            &wrap_dims(Some(dim), self_.ndim())?,
            keepdim,
            dtype,
            reduce::logsumexp,
        )
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

/// The gradient of a norm; `grad` and `norm` have the reduced dimensions in them. Where the norm (or, for
/// orders below 1, the element) is 0 the subgradient 0 is taken.
pub(super) fn norm_grad(
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

fn norm_dim_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.away_from_zero(&[2, 3])).with("p", Value::None).with("dim", [1]),
        Sample::of(s.away_from_zero(&[2, 3]))
            .with("p", Scalar::Float(1.0))
            .with("dim", [0, 1])
            .with("keepdim", true),
    ]
}
