//! Powers in double precision (`float_power`), products with powers of two (`ldexp`), and what is done with the bits of a
//! number: the next one (`nextafter`), its sign (`signbit`).
//!
//! The powers themselves are in `binary`.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::{binary, values_only};
use crate::ops::ternary::walk_as_is;
use crate::tensor::TensorSpec;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&FLOAT_POWER, &FLOAT_POWER_OF, &FLOAT_POWER_BY, &LDEXP, &FREXP, &NEXTAFTER, &SIGNBIT];

fn precise(any_complex: bool) -> DType {
    if any_complex { DType::C128 } else { DType::F64 }
}

/// The power in double precision: `out[i] = self[i]^exponent[i]` as `float64`, or as `complex128` if either is complex.
#[op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", out, separate, samples = binary_positive)]
impl FloatPower {
    fn composite(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
        let dtype = precise(self_.dtype().is_complex() || exponent.dtype().is_complex());
        self_.to_dtype(dtype)?.pow(&exponent.to_dtype(dtype)?)
    }
}

/// The powers of one number in double precision.
#[op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", out, separate, function_only, method = float_power_of)]
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
#[op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", out, separate, method = float_power_by)]
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

/// Multiplies by a power of two: `out[i] = self[i] * 2^other[i]`.
#[op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", inplace, out, separate, samples = binary)]
impl Ldexp {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.mul(&Tensor::wrapped(Scalar::Float(2.0))?.pow(other)?)
    }
}

/// Each number as a mantissa, `1/2 <= |mantissa| < 1`, and an exponent (`int32`): `self = mantissa * 2^exponent`. Zeros, infinities and NaN
/// are their own mantissas, with exponent 0.
#[op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", exact_out, apart, batch = pointwise, samples = unary_nonzero)]
impl Frexp {
    fn cpu(self_: &Tensor) -> Result<[Tensor; 2]> {
        ensure!(
            self_.dtype().is_floating_point(),
            runtime,
            "torch.frexp() only supports floating-point dtypes"
        );
        let mantissa = TensorSpec::like(self_).empty()?;
        let exponent = TensorSpec::like(self_).with_dtype(DType::I32).empty()?;
        let input = std::slice::from_ref(self_);
        walk_as_is(&mantissa, input, elementwise::frexp_mantissa)?;
        walk_as_is(&exponent, input, elementwise::frexp_exponent)?;
        Ok([mantissa, exponent])
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

/// The next number that the dtype has after `self` on the way to `other`; `other` where they are equal. It has no
/// derivative.
#[op("nextafter(Tensor self, Tensor other) -> Tensor", inplace = method, out, batch = pointwise)]
impl Nextafter {
    fn meta(self_: &Tensor, other: &Tensor) -> Result<TensorSpec> {
        let spec = TensorSpec::broadcast(&[self_, other])?;
        ensure!(
            matches!(spec.dtype, DType::F32 | DType::F64),
            not_implemented,
            "\"nextafter_cpu\" not implemented for '{}'",
            spec.dtype.scalar_name()
        );
        Ok(spec)
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::nextafter(iter)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        values_only(binary(s))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let whole = || s.integers(&[2], 1, 4).into();
        let sample = Sample::new([whole(), whole()]);
        let phrase = "\"nextafter_cpu\" not implemented for 'Long'";
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, phrase)]
    }
}

/// Whether the sign of a number is set, of zero and NaN too.
#[op("signbit(Tensor self) -> Tensor", out, not_differentiable, batch = pass, sparse = values)]
impl Signbit {
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        ensure!(
            !self_.dtype().is_complex(),
            runtime,
            "signbit is not implemented for complex tensors."
        );
        if self_.dtype() == DType::Bool {
            return TensorSpec::of(self_.shape(), DType::Bool).zeros();
        }
        let zero = Tensor::wrapped(0)?;
        if !self_.dtype().is_floating_point() {
            return self_.lt(&zero);
        }
        Tensor::wrapped(Scalar::Float(1.0))?.to_dtype(self_.dtype())?.copysign(self_)?.lt(&zero)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = s.normal(&[2]).to_dtype(DType::C128).expect("samples are small");
        let phrase = "signbit is not implemented for complex tensors.";
        vec![InvalidSample::new(Sample::of(complex), ErrorKind::Runtime, phrase)]
    }
}
