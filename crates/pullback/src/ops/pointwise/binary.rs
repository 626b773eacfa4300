//! Powers, `maximum`, `minimum` and other functions of two numbers.
//!
//! Sums, products and quotients are in `arithmetic`, comparisons in `compare`.

use super::arithmetic::by_both;
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::{binary, values_only};
use crate::tensor::TensorSpec;
use crate::{ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &POW_SCALAR,
    &POW,
    &POW_OF_SCALAR,
    &ATAN2,
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
    &HYPOT,
    &COPYSIGN,
    &COPYSIGN_OF,
    &XLOGY,
    &XLOGY_OF,
    &XLOGY_BY,
    &LOGADDEXP,
    &HEAVISIDE,
];

/// Raises to one exponent: `out[i] = self[i]^exponent`. Integers refuse negative exponents; the gradient of
/// the power 0 is 0 everywhere, also at 0.
#[op("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", inplace = method, out, batch = pointwise, jvp = elementwise, sparse = power(call, exponent))]
impl PowScalar {
    fn meta(self_: &Tensor, exponent: Scalar) -> Result<TensorSpec> {
        TensorSpec::broadcast(&[self_, &Tensor::wrapped(exponent)?])
    }
    fn cpu(iter: &mut Iter, exponent: Scalar) -> pullback_kernels::Result<()> {
        elementwise::pow_scalar(iter, exponent)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, exponent: Scalar) -> Result<Tensor> {
        if exponent.is(0.0) {
            return grad.zeros_like();
        }
        let slope = self_.pow_scalar(one_less(exponent))?.times(exponent)?;
        grad.mul(&slope.conj()?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let exponents = [2.0, 0.0, 1.0, 3.0, -1.5, 0.5, -2.0];
        let sample = |&e: &f64| Sample::of(s.positive(&[2, 3])).with("exponent", Scalar::Float(e));
        let mut out: Vec<_> = exponents.iter().map(sample).collect();
        out.push(Sample::of(s.normal(&[])).with("exponent", Scalar::Int(3)));
        out.push(Sample::of(s.transposed(3, 2)).with("exponent", Scalar::Int(2)));
        out.push(Sample::of(s.normal(&[0])).with("exponent", Scalar::Int(2)));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.integers(&[2], 1, 4)).with("exponent", Scalar::Int(-1));
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "Integers to negative integer powers are not allowed.",
        )]
    }
}

/// Raises to the power: `out[i] = self[i]^exponent[i]`. Shapes broadcast; dtypes promote. By `self` the
/// gradient is 0 where the exponent is 0, by `exponent` it is 0 where the base is 0 and the exponent not negative.
#[op("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", inplace = method, out, node = "PowBackward1",
     meta = broadcast, cpu = pow, batch = pointwise)]
impl Pow {
    fn vjp_self(grad: &Tensor, self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        power_grad(grad, self_, exponent)
    }
    fn vjp_exponent(
        grad: &Tensor,
        self_: &Tensor,
        exponent: &Tensor,
        result: &Tensor,
    ) -> Result<Tensor> {
        exponent_grad(grad, self_, exponent, result)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        exponent_p: &Tensor,
        exponent_t: Option<&Tensor>,
        result: &Tensor,
    ) -> Result<Option<Tensor>> {
        let by_base = |t: &Tensor| power_grad(&t.conj()?, self_p, exponent_p)?.conj();
        let by_exponent =
            |t: &Tensor| exponent_grad(&t.conj()?, self_p, exponent_p, result)?.conj();
        by_both(self_t.map(by_base), exponent_t.map(by_exponent))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        crate::ops::classes::samples::binary_positive(s)
    }
}

/// Raises one number to each power: `out[i] = self^exponent[i]`.
#[op("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", out, operand(self), node = "PowBackward2", cpu = pow, result = same,
     batch = pointwise, jvp = elementwise)]
impl PowOfScalar {
    fn meta(self_: Scalar, exponent: &Tensor) -> Result<TensorSpec> {
        TensorSpec::broadcast(&[exponent, &Tensor::wrapped(self_)?])
    }
    fn vjp_exponent(
        grad: &Tensor,
        self_: Scalar,
        exponent: &Tensor,
        result: &Tensor,
    ) -> Result<Tensor> {
        // (The logarithm of a whole number would be one of single precision.)
        let base = match self_ {
            other if other.is_integral() => Scalar::Float(self_.to_f64()),
            other => other,
        };
        exponent_grad(grad, &Tensor::wrapped(base)?, exponent, result)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |base: Scalar, shape: &[i64]| Sample::new([base.into(), s.normal(shape).into()]);
        vec![
            sample(2.5.into(), &[2, 3]),
            sample(1.0.into(), &[]),
            sample(0.5.into(), &[0]),
            sample(3.into(), &[2]),
        ]
    }
}

/// The angle of the point `(other, self)` with the positive first axis, in `[-π, π]`. Integers give the
/// default floating dtype. At the origin the gradient is 0.
#[op("atan2(Tensor self, Tensor other) -> Tensor", inplace = method, out, alias("arctan2"), meta = float, cpu = atan2,
     batch = pointwise, samples = binary_nonzero)]
impl Atan2 {
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        other: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let scaled = grad.mul(&inverse_square_sum(self_, other)?)?;
        let by_self = needs[0].then(|| scaled.mul(other)).transpose()?;
        let by_other = needs[1].then(|| scaled.mul(&self_.neg()?)).transpose()?;
        Ok([by_self, by_other])
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let numerator = self_t.mul(other_p)?.sub(&other_t.mul(self_p)?)?;
        numerator.mul(&inverse_square_sum(self_p, other_p)?)
    }
}

/// The larger of the two; NaN if either is. Equal elements share the gradient in halves.
#[op("maximum(Tensor self, Tensor other) -> Tensor", out, batch = pointwise, samples = binary)]
impl Maximum {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        ordered_spec("maximum", self_, other)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::maximum(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?.masked_fill(&self_.lt(other)?, Scalar::Int(0))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?.masked_fill(&self_.gt(other)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let chosen = self_p.gt(other_p)?.where_self(self_t, other_t)?;
        mean_of_equal((self_p, self_t), (other_p, other_t), &chosen)
    }
}

/// The smaller of the two; NaN if either is. Equal elements share the gradient in halves.
#[op("minimum(Tensor self, Tensor other) -> Tensor", out, batch = pointwise, samples = binary)]
impl Minimum {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        ordered_spec("minimum", self_, other)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::minimum(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?.masked_fill(&self_.gt(other)?, Scalar::Int(0))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?.masked_fill(&self_.lt(other)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let chosen = self_p.lt(other_p)?.where_self(self_t, other_t)?;
        mean_of_equal((self_p, self_t), (other_p, other_t), &chosen)
    }
}

/// The larger of the two; if one is NaN the other. Equal elements share the gradient in halves.
#[op("fmax(Tensor self, Tensor other) -> Tensor", out, batch = pointwise, samples = binary)]
impl Fmax {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        ordered_spec("fmax", self_, other)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::fmax(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?
            .masked_fill(&takes_self(&self_.ge(other)?, other)?.logical_not()?, Scalar::Int(0))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?
            .masked_fill(&takes_self(&self_.gt(other)?, other)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let chosen = takes_self(&self_p.ge(other_p)?, other_p)?.where_self(self_t, other_t)?;
        mean_of_equal((self_p, self_t), (other_p, other_t), &chosen)
    }
}

/// The smaller of the two; if one is NaN the other. Equal elements share the gradient in halves.
#[op("fmin(Tensor self, Tensor other) -> Tensor", out, batch = pointwise, samples = binary)]
impl Fmin {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        ordered_spec("fmin", self_, other)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::fmin(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?
            .masked_fill(&takes_self(&self_.le(other)?, other)?.logical_not()?, Scalar::Int(0))
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        halved(grad, self_, other)?
            .masked_fill(&takes_self(&self_.lt(other)?, other)?, Scalar::Int(0))
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let chosen = takes_self(&self_p.le(other_p)?, other_p)?.where_self(self_t, other_t)?;
        mean_of_equal((self_p, self_t), (other_p, other_t), &chosen)
    }
}

/// The length of the hypotenuse: `sqrt(self^2 + other^2)` without overflow.
#[op("hypot(Tensor self, Tensor other) -> Tensor", inplace = method, out, meta = broadcast, cpu = hypot, batch = pointwise,
     samples = binary_nonzero)]
impl Hypot {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.div(result)?)
    }
    fn vjp_other(grad: &Tensor, other: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&other.div(result)?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        other_p: &Tensor,
        other_t: &Tensor,
        result: &Tensor,
    ) -> Result<Tensor> {
        self_p.mul(self_t)?.add(&other_p.mul(other_t)?)?.div(result)
    }
}

/// The size of `self` with the sign of `other` (of zero and NaN too). By `self` the gradient at 0 is 0.
#[op("copysign.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, meta = float, cpu = copysign,
     batch = pointwise, samples = binary_nonzero)]
impl Copysign {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&same_sign(self_, result)?)
    }
    fn vjp_other(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        self_t.mul(&same_sign(self_p, result)?)
    }
}

/// The size of `self` with the sign of a number.
#[op("copysign.Scalar(Tensor self, Scalar other) -> Tensor", inplace = method, out, operand(other), node = "CopysignBackward1",
     cpu = copysign, result = float, batch = pointwise, method = copysign_of)]
impl CopysignOf {
    fn meta(self_: &Tensor, other: Scalar) -> Result<TensorSpec> {
        Ok(TensorSpec::broadcast(&[self_, &Tensor::wrapped(other)?])?.to_float())
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&same_sign(self_, result)?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        self_t.mul(&same_sign(self_p, result)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let to = |shape: &[i64], sign: f64| {
            Sample::of(s.away_from_zero(shape)).with("other", Scalar::Float(sign))
        };
        vec![to(&[2, 3], -1.0), to(&[], 2.0), to(&[0], -0.0)]
    }
}

/// `self * ln(other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype.
#[op("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", inplace, out, meta = float, cpu = xlogy,
     batch = pointwise, samples = binary_positive)]
impl Xlogy {
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        log_grad(grad, self_, other)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(self_)?.div(other)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let by_other = other_t.map(|t| t.mul(self_p)?.div(other_p));
        by_both(self_t.map(|t| log_grad(t, self_p, other_p)), by_other)
    }
}

/// `self * ln(other)` of a number and a tensor.
#[op("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", out, operand(self), node = "XlogyBackward1", cpu = xlogy,
     result = float, batch = pointwise, method = xlogy_of)]
impl XlogyOf {
    fn meta(self_: Scalar, other: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::broadcast(&[other, &Tensor::wrapped(self_)?])?.to_float())
    }
    fn vjp_other(grad: &Tensor, self_: Scalar, other: &Tensor) -> Result<Tensor> {
        grad.times(self_)?.div(other)
    }
    fn jvp(self_: Scalar, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        other_t.times(self_)?.div(other_p)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |number: f64, shape: &[i64]| {
            Sample::new([Scalar::Float(number).into(), s.positive(shape).into()])
        };
        vec![of(2.5, &[2, 3]), of(0.0, &[2]), of(-1.0, &[]), of(1.5, &[0])]
    }
}

/// `self * ln(other)` of a tensor and a number.
#[op("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", inplace, out, operand(other), node = "XlogyBackward2", cpu = xlogy,
     result = float, batch = pointwise, method = xlogy_by)]
impl XlogyBy {
    fn meta(self_: &Tensor, other: Scalar) -> Result<TensorSpec> {
        Ok(TensorSpec::broadcast(&[self_, &Tensor::wrapped(other)?])?.to_float())
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: Scalar) -> Result<Tensor> {
        log_grad(grad, self_, &Tensor::wrapped(other)?)
    }
    fn jvp(self_t: &Tensor, other: Scalar) -> Result<Tensor> {
        self_t.xlogy_by(other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let by = |shape: &[i64]| Sample::of(s.positive(shape)).with("other", Scalar::Float(2.5));
        vec![by(&[2, 3]), by(&[]), by(&[0])]
    }
}

/// `ln(e^self + e^other)` without overflow.
#[op("logaddexp(Tensor self, Tensor other) -> Tensor", out, meta = broadcast, cpu = logaddexp, batch = pointwise,
     samples = binary)]
impl Logaddexp {
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.sub(other)?.sigmoid()?.conj()?)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.mul(&other.sub(self_)?.sigmoid()?.conj()?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let share = self_p.sub(other_p)?.sigmoid()?;
        other_t.add(&self_t.sub(other_t)?.mul(&share)?)
    }
}

/// The step function: 0 below 0, 1 above, `values` at 0; 0 for NaN. Both inputs have one dtype.
#[op("heaviside(Tensor self, Tensor values) -> Tensor", inplace = method, out, batch = pointwise)]
impl Heaviside {
    fn meta(self_: &Tensor, values: &Tensor) -> Result<TensorSpec> {
        ensure!(
            !self_.dtype().is_complex() && !values.dtype().is_complex(),
            not_implemented,
            "heaviside is not yet implemented for complex tensors."
        );
        ensure!(
            self_.dtype() == values.dtype(),
            runtime,
            "heaviside is not yet implemented for tensors with different dtypes."
        );
        TensorSpec::broadcast(&[self_, values])
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::heaviside(iter)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        values_only(binary(s))
    }
}

/// `exponent - 1` in the exponent's own kind.
fn one_less(exponent: Scalar) -> Scalar {
    match exponent {
        Scalar::Bool(b) => Scalar::Int(i64::from(b) - 1),
        Scalar::Int(i) => Scalar::Int(i.wrapping_sub(1)),
        Scalar::UInt(u) => Scalar::from(u - 1),
        Scalar::Float(f) => Scalar::Float(f - 1.0),
        Scalar::Complex(re, im) => Scalar::Complex(re - 1.0, im),
    }
}

fn power_grad(grad: &Tensor, base: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let slope = base.pow(&exponent.plus(-1)?)?.mul(exponent)?;
    grad.mul(&slope.conj()?)?.masked_fill(&exponent.eq(&Tensor::wrapped(0)?)?, Scalar::Int(0))
}

/// `grad * conj(result * ln(base))`, 0 where `0^exponent` is constant.
fn exponent_grad(
    grad: &Tensor,
    base: &Tensor,
    exponent: &Tensor,
    result: &Tensor,
) -> Result<Tensor> {
    let zero = Tensor::wrapped(0)?;
    let mut flat = exponent.real()?.ge(&zero)?;
    if exponent.dtype().is_complex() {
        flat = flat.logical_and(&exponent.imag_part()?.eq(&zero)?)?;
    }
    let flat = flat.logical_and(&base.eq(&zero)?)?;
    // A negative number has a logarithm among the complex ones.
    let base =
        if result.dtype().is_complex() { base.to_dtype(result.dtype())? } else { base.clone() };
    grad.mul(&result.mul(&base.log()?)?.conj()?)?.masked_fill(&flat, Scalar::Int(0))
}

/// The gradient of `a * ln(b)` by `a`, 0 where the product is 0 whatever `b` is.
fn log_grad(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let zero = Tensor::wrapped(0.0)?;
    let flat = a.eq(&zero)?.logical_and(&b.le(&zero)?)?;
    grad.xlogy(b)?.masked_fill(&flat, Scalar::Int(0))
}

fn square_sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.mul(a)?.add(&b.mul(b)?)
}

/// `1 / (a² + b²)`, and 0 at the origin.
fn inverse_square_sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let sum = square_sum(a, b)?;
    let is_origin = sum.eq(&Tensor::wrapped(0)?)?;
    sum.masked_fill(&is_origin, Scalar::Float(f64::INFINITY))?.reciprocal()
}

/// `chosen`, but the mean of both tangents where the values are equal. Operands come with their tangents.
pub(in crate::ops) fn mean_of_equal(
    (a, a_t): (&Tensor, &Tensor),
    (b, b_t): (&Tensor, &Tensor),
    chosen: &Tensor,
) -> Result<Tensor> {
    a.eq(b)?.where_self(&a_t.add(b_t)?.times(0.5)?, chosen)
}

/// The gradient with half of it where both are equal.
pub(in crate::ops) fn halved(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.eq(b)?.where_self(&grad.over(2)?, grad)
}

fn takes_self(wins: &Tensor, other: &Tensor) -> Result<Tensor> {
    wins.logical_or(&other.isnan()?)
}

/// 1 where the sign is kept, -1 where it changes, 0 at 0.
fn same_sign(from: &Tensor, to: &Tensor) -> Result<Tensor> {
    to.div(from)?.masked_fill(&from.eq(&Tensor::wrapped(0)?)?, Scalar::Int(0))
}

fn ordered_spec(name: &str, a: &Tensor, b: &Tensor) -> Result<TensorSpec> {
    let is_complex = a.dtype().is_complex() || b.dtype().is_complex();
    ensure!(!is_complex, type_error, "{name} not implemented for complex tensors.");
    TensorSpec::broadcast(&[a, b])
}
