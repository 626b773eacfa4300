//! Powers in double precision (`float_power`), products with powers of two (`ldexp`), and functions
//! of the bits of a number: the next one (`nextafter`), its sign (`signbit`).
//!
//! The powers themselves are in `binary`.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::binary;
use crate::ops::pointwise::arithmetic::by_both;
use crate::ops::pointwise::ternary::walk_as_is;
use crate::tensor::promote::default_dtype;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &FLOAT_POWER,
    &FLOAT_POWER_OF,
    &FLOAT_POWER_BY,
    &FLOAT_POWER_IN_PLACE,
    &FLOAT_POWER_IN_PLACE_BY,
    &LDEXP,
    &FREXP,
    &NEXTAFTER,
    &SIGNBIT,
];

fn precise(any_complex: bool) -> DType {
    if any_complex { DType::C128 } else { DType::F64 }
}

/// The power in double precision: `out[i] = self[i]^exponent[i]` as `float64`, or as `complex128` if either is complex.
#[op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", exact_out, separate, samples = binary_positive)]
impl FloatPower {
    fn composite(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        let dtype = precise(self_.dtype().is_complex() || exponent.dtype().is_complex());
        self_.to_dtype(dtype)?.pow(&exponent.to_dtype(dtype)?)
    }
}

/// The powers of one number in double precision.
#[op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", exact_out, separate, function_only, method = float_power_of)]
impl FloatPowerOf {
    fn composite(self_: Scalar, exponent: &Tensor) -> Result<Tensor> {
        let is_complex = matches!(self_, Scalar::Complex(..)) || exponent.dtype().is_complex();
        let exponent = exponent.to_dtype(precise(is_complex))?;
        Tensor::wrapped(self_)?.to_dtype(exponent.dtype())?.pow(&exponent)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Scalar::Float(1.5).into(), s.normal(&[2, 3]).into()])]
    }
}

/// One power of each number in double precision.
#[op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", exact_out, separate, method = float_power_by)]
impl FloatPowerBy {
    fn composite(self_: &Tensor, exponent: Scalar) -> Result<Tensor> {
        let is_complex = matches!(exponent, Scalar::Complex(..)) || self_.dtype().is_complex();
        self_.to_dtype(precise(is_complex))?.pow_scalar(exponent)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let by = |exponent: f64| {
            Sample::of(s.positive(&[2, 3])).with("exponent", Scalar::Float(exponent))
        };
        vec![by(2.0), by(-1.5), by(0.0)]
    }
}

/// Refuses a target of `float_power_` that has not the result's dtype.
fn check_base(base: &Tensor, is_complex: bool) -> Result<()> {
    let dtype = precise(is_complex || base.dtype().is_complex());
    ensure!(
        base.dtype() == dtype,
        runtime,
        "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
        base.dtype().scalar_name(),
        dtype.scalar_name()
    );
    Ok(())
}

fn bases(s: &Sampler) -> Tensor {
    let dtype = precise(s.dtype.is_complex());
    s.positive(&[2, 3]).to_dtype(dtype).expect("samples are small")
}

fn refused_bases(s: &Sampler, exponent: impl Into<Value>) -> Vec<InvalidSample> {
    let base = s.positive(&[2]).to_dtype(DType::F32).expect("samples are small");
    let sample = Sample::new([base.into(), exponent.into()]);
    let phrase = "the base given to float_power_ has dtype Float but the operation's result requires dtype Double";
    vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
}

/// Replaces the elements, which must be of double precision, by their powers.
#[op("float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", method_only, method = float_power_)]
impl FloatPowerInPlace {
    fn composite(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        check_base(self_, exponent.dtype().is_complex())?;
        self_.pow_(&exponent.to_dtype(self_.dtype())?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([bases(s).into(), s.normal(&[3]).into()]),
            Sample::new([bases(s).into(), s.integers(&[], -2, 3).into()]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_bases(s, Tensor::from_slice(&[2_i64], &[1]).expect("one number"))
    }
}

/// Replaces the elements, which must be of double precision, by one power of each.
#[op("float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", method_only, method = float_power_by_)]
impl FloatPowerInPlaceBy {
    fn composite(self_: &Tensor, exponent: Scalar) -> Result<Tensor> {
        check_base(self_, matches!(exponent, Scalar::Complex(..)))?;
        self_.pow_scalar_(exponent)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        [Scalar::Float(1.5), Scalar::Int(-2)]
            .map(|by| Sample::of(bases(s)).with("exponent", by))
            .into()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_bases(s, Scalar::Float(2.0))
    }
}

/// Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`. With whole powers the result has the dtype of `self`
/// (the default one if that is whole too), and is rounded once.
#[op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", inplace, out, separate, batch = pointwise)]
impl Ldexp {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        let spec = TensorSpec::broadcast(&[self_, other])?;
        if !other.dtype().is_integral(true) {
            return Ok(spec);
        }
        let own = self_.dtype();
        Ok(spec.computed_in(if own.is_differentiable() { own } else { default_dtype() }))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, other: &Tensor) -> Result<()> {
        if other.dtype().is_integral(true) && !self_.dtype().is_complex() {
            return write_scaled(cpu, result, self_, other);
        }
        let dtype = result.dtype();
        let power = power_of_two(self_.dtype(), other)?.in_dtype(cpu, dtype)?;
        walk_as_is(cpu, result, &[self_.in_dtype(cpu, dtype)?, power], elementwise::mul)
    }
    fn vjp_self(grad: &Tensor, other: &Tensor, self_dtype: DType) -> Result<Tensor> {
        if other.dtype().is_integral(true) {
            return grad.ldexp(other);
        }
        grad.mul(&power_of_two(self_dtype, other)?.conj()?)
    }
    fn vjp_other(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.conj()?)?.times(std::f64::consts::LN_2)
    }
    fn jvp(
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
        result: &Tensor,
    ) -> Result<Option<Tensor>> {
        let by_other = other_t.map(|t| t.mul(result)?.times(std::f64::consts::LN_2));
        by_both(self_t.map(|t| t.ldexp(other_p)), by_other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let whole = |shape: &[i64], by: &[i64]| {
            Sample::new([s.normal(shape).into(), s.integers(by, -3, 4).into()])
        };
        let mut all = binary(s);
        all.extend([whole(&[2, 3], &[3]), whole(&[], &[2]), whole(&[0], &[1])]);
        all.push(Sample::new([s.normal(&[2, 3]).into(), s.bools(&[3]).into()]));
        all
    }
}

/// Each number as a mantissa, `1/2 <= |mantissa| < 1`, and an exponent (`int32`): `self = mantissa * 2^exponent`. Zeros, infinities and NaN
/// are their own mantissas, with exponent 0.
#[op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", exact_out, apart, batch = pointwise, samples = unary_nonzero)]
impl Frexp {
    fn meta(self_: &Tensor) -> Result<[TensorSpec; 2]> {
        ensure!(
            self_.dtype().is_floating_point(),
            runtime,
            "torch.frexp() only supports floating-point dtypes"
        );
        let spec = TensorSpec::laid_as(self_);
        Ok([spec.clone(), spec.with_dtype(DType::I32)])
    }
    fn cpu(cpu: Cpu, mantissa: &Tensor, exponent: &Tensor, self_: &Tensor) -> Result<()> {
        let input = std::slice::from_ref(self_);
        walk_as_is(cpu, mantissa, input, elementwise::frexp_mantissa)?;
        walk_as_is(cpu, exponent, input, elementwise::frexp_exponent)
    }
    fn vjp_self(grad_mantissa: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        grad_mantissa.div(&exponent.exp2()?)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.integers(&[2], 1, 4));
        let phrase = "torch.frexp() only supports floating-point dtypes";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// `2^exponent`; of whole exponents in the real dtype that goes with `dtype`.
fn power_of_two(dtype: DType, exponent: &Tensor) -> Result<Tensor> {
    if !exponent.dtype().is_integral(true) {
        return Tensor::wrapped(2.0)?.pow(exponent);
    }
    let real = dtype.to_real();
    let real = if real.is_floating_point() { real } else { default_dtype() };
    Tensor::scalar_of(2.0, real)?.pow(&exponent.to_dtype(real)?)
}

/// Writes `x * 2^exponent` of whole exponents, rounded once.
fn write_scaled(cpu: Cpu, result: &Tensor, x: &Tensor, exponent: &Tensor) -> Result<()> {
    let whole = exponent.to_dtype(DType::I64)?;
    let within = |e: &Tensor, least: i64, most: i64| {
        e.clamp_max(Scalar::Int(most))?.clamp_min(Scalar::Int(least))
    };
    let product = x.in_dtype(cpu, DType::F64)?;
    if result.dtype() == DType::F64 {
        // Powers beyond the exponents of a double are multiplied first: only the last product can
        // round.
        let all = within(&whole, -3066, 3069)?;
        let last = within(&all, -1022, 1023)?;
        let rest = all.sub(&last)?;
        let middle = within(&rest, -1022, 1023)?;
        let first = product.mul(&exact_power(&rest.sub(&middle)?)?)?;
        let inputs = [first.mul(&exact_power(&middle)?)?, exact_power(&last)?];
        return walk_as_is(cpu, result, &inputs, elementwise::mul);
    }
    let product = product.mul(&exact_power(&within(&whole, -500, 500)?)?)?;
    // (Of the result's shape: both are repeated to it.)
    result.copy_data(cpu, &product)
}

/// `2^exponent` as a double, of exponents that a normal one has.
fn exact_power(exponent: &Tensor) -> Result<Tensor> {
    exponent.plus(1023)?.times(1_i64 << 52)?.view_dtype(DType::F64)
}

/// The next number that the dtype has after `self` on the way to `other`; `other` where they are equal. The gradient is
/// that of `self`, or zero where they are equal.
#[op("nextafter(Tensor self, Tensor other) -> Tensor", inplace = method, out, batch = pointwise)]
impl Nextafter {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        let spec = TensorSpec::broadcast(&[self_, other])?;
        ensure!(
            spec.dtype.is_floating_point(),
            not_implemented,
            "\"nextafter_cpu\" not implemented for '{}'",
            spec.dtype.scalar_name()
        );
        Ok(spec)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::nextafter(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        grad.masked_fill(&self_.eq(other)?, Scalar::Int(0))
    }
    fn vjp_other(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, other_p: &Tensor, result: &Tensor) -> Result<Tensor> {
        let tangent = self_t.to_dtype(result.dtype())?.expand(result.shape(), false)?;
        tangent.masked_fill(&self_p.eq(other_p)?, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        binary(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let whole = || s.integers(&[2], 1, 4).into();
        let sample = Sample::new([whole(), whole()]);
        let phrase = "\"nextafter_cpu\" not implemented for 'Long'";
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, phrase)]
    }
}

/// Whether the sign of a number is set, of zero and NaN too.
#[op("signbit(Tensor self) -> Tensor", exact_out, not_differentiable, cpu = signbit, batch = pointwise, sparse = values)]
impl Signbit {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        ensure!(
            !self_.dtype().is_complex(),
            not_implemented,
            "signbit is not implemented for complex tensors."
        );
        Ok(TensorSpec::broadcast(&[self_])?.with_dtype(DType::Bool))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = s.normal(&[2]).to_dtype(DType::C128).expect("samples are small");
        let phrase = "signbit is not implemented for complex tensors.";
        vec![InvalidSample::new(Sample::of(complex), ErrorKind::NotImplemented, phrase)]
    }
}
