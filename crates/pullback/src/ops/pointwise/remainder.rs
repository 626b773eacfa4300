//! Remainders of division: with the divisor's sign (`remainder`) and with the dividend's (`fmod`).
//!
//! The forms by a number are ops of their own, as in PyTorch: their nodes have one edge. By the dividend the derivative
//! is 1 everywhere; by the divisor it is the quotient, rounded and negated.

use super::arithmetic::{divided, zero_divisors};
use crate::dispatch::OpDef;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::{ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&REMAINDER, &REMAINDER_BY, &REMAINDER_OF, &FMOD, &FMOD_BY];

/// The remainder with the sign of `other`: `self - other * floor(self / other)`, as Python's `%`.
/// Integers refuse a zero divisor; for floating-point numbers it gives NaN.
#[op("remainder.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, node = "RemainderBackward1",
     meta = broadcast, batch = pointwise, samples = binary_nonzero)]
impl Remainder {
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::remainder)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        zero_divisors()
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.neg()?.mul(&self_.div_mode(other, Some("floor"))?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        self_t.sub(&other_t.mul(&self_p.div_mode(other_p, Some("floor"))?)?)
    }
}

/// The remainder by a number, with the number's sign.
#[op("remainder.Scalar(Tensor self, Scalar other) -> Tensor", inplace = method, out, operand(other), result = same, batch = pointwise,
     method = remainder_by)]
impl RemainderBy {
    fn meta(self_: &Tensor, other: Scalar) -> Result<TensorSpec> {
        TensorSpec::broadcast(&[self_, &Tensor::wrapped(other)?])
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::remainder)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn jvp(self_t: &Tensor) -> Result<Tensor> {
        Ok(self_t.clone())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        by_number(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        by_zero(s)
    }
}

/// The remainder of a number, with the sign of `other`.
#[op("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", operand(self), result = same, node = "RemainderBackward2",
     batch = pointwise, method = remainder_of)]
impl RemainderOf {
    fn meta(self_: Scalar, other: &Tensor) -> Result<TensorSpec> {
        TensorSpec::broadcast(&[other, &Tensor::wrapped(self_)?])
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::remainder)
    }
    fn vjp_other(grad: &Tensor, self_: Scalar, other: &Tensor) -> Result<Tensor> {
        grad.neg()?.mul(&Tensor::wrapped(self_)?.div_mode(other, Some("floor"))?)
    }
    fn jvp(self_: Scalar, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        let whole = Tensor::wrapped(self_)?.div_mode(other_p, Some("floor"))?;
        other_t.neg()?.mul(&whole)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |number: f64, shape: &[i64]| {
            Sample::new([Scalar::Float(number).into(), s.away_from_zero(shape).into()])
        };
        vec![of(2.5, &[2, 3]), of(-1.5, &[]), of(0.5, &[0])]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let zeros = Tensor::from_slice(&[2_i64, 0], &[2]).expect("two numbers");
        let sample = Sample::new([Scalar::Int(5).into(), zeros.into()]);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "ZeroDivisionError")]
    }
}

/// The remainder with the sign of `self`: `self - other * trunc(self / other)`, as C's `fmod`.
/// Integers refuse a zero divisor; for floating-point numbers it gives NaN.
#[op("fmod.Tensor(Tensor self, Tensor other) -> Tensor", inplace = method, out, node = "FmodBackward1",
     meta = broadcast, batch = pointwise, samples = binary_nonzero)]
impl Fmod {
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::fmod)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        zero_divisors()
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.neg()?.mul(&self_.div_mode(other, Some("trunc"))?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, other_t: &Tensor) -> Result<Tensor> {
        self_t.sub(&other_t.mul(&self_p.div_mode(other_p, Some("trunc"))?)?)
    }
}

/// The remainder by a number, with the sign of `self`.
#[op("fmod.Scalar(Tensor self, Scalar other) -> Tensor", inplace = method, out, operand(other), result = same, batch = pointwise,
     method = fmod_by)]
impl FmodBy {
    fn meta(self_: &Tensor, other: Scalar) -> Result<TensorSpec> {
        TensorSpec::broadcast(&[self_, &Tensor::wrapped(other)?])
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        divided(iter, elementwise::fmod)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn jvp(self_t: &Tensor) -> Result<Tensor> {
        Ok(self_t.clone())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        by_number(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        by_zero(s)
    }
}

fn by_number(s: &Sampler) -> Vec<Sample> {
    let by = |t: Tensor, number: f64| Sample::of(t).with("other", Scalar::Float(number));
    let mut samples = vec![by(s.normal(&[2, 3]), 0.75), by(s.transposed(3, 2), -0.75)];
    samples.push(by(s.normal(&[]), 0.5));
    samples.push(by(s.normal(&[0]), 0.5));
    samples
}

fn by_zero(s: &Sampler) -> Vec<InvalidSample> {
    let sample = Sample::of(s.integers(&[2], 1, 4)).with("other", Scalar::Int(0));
    vec![InvalidSample::new(sample, ErrorKind::Runtime, "ZeroDivisionError")]
}
