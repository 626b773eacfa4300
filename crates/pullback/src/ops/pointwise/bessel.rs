//! Airy's and Bessel's functions.
//!
//! Their values and bounds are in the kernels' module `special`; the derivatives are DLMF 10.6.2, 10.29.3 and 10.29.4. Those that
//! divide by the argument take their limit at 0.

use crate::dispatch::OpDef;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SPECIAL_AIRY_AI,
    &SPECIAL_BESSEL_J0,
    &SPECIAL_BESSEL_J1,
    &SPECIAL_BESSEL_Y0,
    &SPECIAL_BESSEL_Y1,
    &SPECIAL_SPHERICAL_BESSEL_J0,
    &BESSEL_I0,
    &SPECIAL_I0E,
    &SPECIAL_I1,
    &SPECIAL_I1E,
    &SPECIAL_MODIFIED_BESSEL_I0,
    &SPECIAL_MODIFIED_BESSEL_I1,
    &SPECIAL_MODIFIED_BESSEL_K0,
    &SPECIAL_MODIFIED_BESSEL_K1,
    &SPECIAL_SCALED_MODIFIED_BESSEL_K0,
    &SPECIAL_SCALED_MODIFIED_BESSEL_K1,
];

/// `value / x`, and `limit` where `x` is 0.
fn over_argument(value: &Tensor, x: &Tensor, limit: f64) -> Result<Tensor> {
    let is_zero = x.eq(&Tensor::wrapped(0)?)?;
    let safe = x.masked_fill(&is_zero, Scalar::Int(1))?;
    value.div(&safe)?.masked_fill(&is_zero, Scalar::Float(limit))
}

/// Airy's function `Ai`, which swings below 0 and decays above. It has no derivative; halves are refused.
#[op("special_airy_ai(Tensor x) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = airy_ai, not_differentiable, samples = unary)]
impl SpecialAiryAi {
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let half = s.positive(&[2]).to_dtype(DType::F16).expect("samples are small");
        let phrase = "\"airy_ai_cpu\" not implemented for 'Half'";
        vec![InvalidSample::new(Sample::of(half), ErrorKind::NotImplemented, phrase)]
    }
}

/// Bessel's function of the first kind, order 0; NaN at infinity. Halves are refused.
#[op("special_bessel_j0(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = bessel_j0, jvp = elementwise, samples = unary)]
impl SpecialBesselJ0 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_bessel_j1()?)?.neg()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let half = s.positive(&[2]).to_dtype(DType::F16).expect("samples are small");
        let phrase = "\"bessel_j0_cpu\" not implemented for 'Half'";
        vec![InvalidSample::new(Sample::of(half), ErrorKind::NotImplemented, phrase)]
    }
}

/// Bessel's function of the first kind, order 1; NaN at infinity. Halves are refused.
#[op("special_bessel_j1(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = bessel_j1, jvp = elementwise, samples = unary_nonzero)]
impl SpecialBesselJ1 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_bessel_j0()?.sub(&over_argument(result, self_, 0.5)?)?)
    }
}

/// Bessel's function of the second kind, order 0: negative infinity at 0, NaN below and at infinity. Halves are refused.
#[op("special_bessel_y0(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = bessel_y0, jvp = elementwise, samples = unary_positive)]
impl SpecialBesselY0 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_bessel_y1()?)?.neg()
    }
}

/// Bessel's function of the second kind, order 1: negative infinity at 0, NaN below and at infinity. Halves are refused.
#[op("special_bessel_y1(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = bessel_y1, jvp = elementwise, samples = unary_positive)]
impl SpecialBesselY1 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let slope = self_.special_bessel_y0()?.sub(&result.div(self_)?)?;
        // At 0 both terms are infinite, and the second one wins.
        let is_zero = self_.eq(&Tensor::wrapped(0)?)?;
        grad.mul(&is_zero.where_self(&result.neg()?, &slope)?)
    }
}

/// The spherical Bessel function of the first kind, order 0: `sin(x) / x`, 1 at 0. It has no derivative; halves are refused.
#[op("special_spherical_bessel_j0(Tensor x) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = spherical_bessel_j0, not_differentiable, samples = unary)]
impl SpecialSphericalBesselJ0 {}

/// The modified Bessel function of the first kind, order 0; NaN at infinity. Integers give the default floating dtype.
#[op("i0(Tensor self) -> Tensor", inplace, out, method = i0, meta = float, batch = pointwise,
     cpu = i0, jvp = elementwise, samples = unary)]
impl BesselI0 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_i1()?)
    }
}

/// `e^-|x| I0(x)`; 0 at infinity. The gradient at 0 is 0.
#[op("special_i0e(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise, node = "SpecialI0E",
     cpu = i0e, jvp = elementwise, samples = unary_nonzero)]
impl SpecialI0e {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_i1e()?.sub(&self_.sgn()?.mul(result)?)?)
    }
}

/// The modified Bessel function of the first kind, order 1; NaN at infinity.
#[op("special_i1(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = i1, jvp = elementwise, samples = unary_nonzero)]
impl SpecialI1 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.i0()?.sub(&over_argument(result, self_, 0.5)?)?)
    }
}

/// `e^-|x| I1(x)`; 0 at infinity.
#[op("special_i1e(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise, node = "SpecialI1E",
     cpu = i1e, jvp = elementwise, samples = unary_nonzero)]
impl SpecialI1e {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let slope = self_.special_i0e()?.sub(&result.mul(&self_.sgn()?)?)?;
        grad.mul(&slope.sub(&over_argument(result, self_, 0.5)?)?)
    }
}

/// As `i0`, for single and double precision only.
#[op("special_modified_bessel_i0(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = modified_bessel_i0, jvp = elementwise, samples = unary)]
impl SpecialModifiedBesselI0 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_modified_bessel_i1()?)
    }
}

/// As `special.i1`, for single and double precision only.
#[op("special_modified_bessel_i1(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = modified_bessel_i1, jvp = elementwise, samples = unary_nonzero)]
impl SpecialModifiedBesselI1 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_modified_bessel_i0()?.sub(&over_argument(result, self_, 0.5)?)?)
    }
}

/// The modified Bessel function of the second kind, order 0: infinite at 0, NaN below. Halves are refused.
#[op("special_modified_bessel_k0(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = modified_bessel_k0, jvp = elementwise, samples = unary_positive)]
impl SpecialModifiedBesselK0 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_modified_bessel_k1()?)?.neg()
    }
}

/// The modified Bessel function of the second kind, order 1: infinite at 0, NaN below. Halves are refused.
#[op("special_modified_bessel_k1(Tensor self) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = modified_bessel_k1, jvp = elementwise, samples = unary_positive)]
impl SpecialModifiedBesselK1 {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.special_modified_bessel_k0()?.add(&result.div(self_)?)?)?.neg()
    }
}

/// `e^x K0(x)`: infinite at 0, NaN below. It has no derivative; halves are refused.
#[op("special_scaled_modified_bessel_k0(Tensor x) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = scaled_modified_bessel_k0, not_differentiable, samples = unary_positive)]
impl SpecialScaledModifiedBesselK0 {}

/// `e^x K1(x)`: infinite at 0, NaN below. It has no derivative; halves are refused.
#[op("special_scaled_modified_bessel_k1(Tensor x) -> Tensor", module = "special", out, meta = float, batch = pointwise,
     cpu = scaled_modified_bessel_k1, not_differentiable, samples = unary_positive)]
impl SpecialScaledModifiedBesselK1 {}
