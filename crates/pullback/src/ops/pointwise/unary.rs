//! Signs, parts and roundings, exponentials, logarithms and roots of one number.
//!
//! Circular and hyperbolic functions are in `trigonometry`, activations in `activation`, predicates in
//! `compare`. Derivatives of the saturating functions (`tanh`, `sigmoid`) have a kernel of their own.

use crate::dispatch::{OpDef, Value, check_cast};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &NEG,
    &ABS,
    &SIGN,
    &SGN,
    &POSITIVE,
    &ANGLE,
    &FLOOR,
    &CEIL,
    &ROUND,
    &ROUND_DECIMALS,
    &TRUNC,
    &FRAC,
    &NAN_TO_NUM,
    &EXP,
    &EXP2,
    &EXPM1,
    &LOG,
    &LOG2,
    &LOG10,
    &LOG1P,
    &SQRT,
    &RSQRT,
    &SQUARE,
    &RECIPROCAL,
    &SIGMOID,
    &SIGMOID_BACKWARD,
    &ERF,
    &ERFC,
    &LGAMMA,
    &DIGAMMA,
    &POLYGAMMA,
    &POLYGAMMA_IN_PLACE,
];

/// The negative: `out[i] = -self[i]`. Integers wrap; bool is refused.
#[op("neg(Tensor self) -> Tensor", inplace, exact_out, alias("negative"), meta = broadcast, cpu = neg, batch = pointwise,
     jvp = linear, samples = unary, sparse = values)]
impl Neg {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.neg()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.bools(&[2]));
        vec![InvalidSample::new(
            sample,
            ErrorKind::NotImplemented,
            "Negation, the `-` operator, on a bool tensor",
        )]
    }
}

/// The distance from zero. Complex numbers give their real dtype; the gradient at 0 is 0.
#[op("abs(Tensor self) -> Tensor", narrow_floats, inplace, out, alias("absolute"), meta = real, cpu = abs, batch = pointwise,
     samples = unary_nonzero, sparse = values)]
impl Abs {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.sgn()?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor) -> Result<Tensor> {
        self_t.mul(&self_p.sgn()?.conj()?)?.real()
    }
}

/// -1, 0 or 1 by the sign; 0 for NaN. The gradient is 0. Complex numbers are refused.
#[op("sign(Tensor self) -> Tensor", inplace = method, exact_out, meta = broadcast, cpu = sign, batch = pointwise, jvp = elementwise,
     samples = unary_nonzero, sparse = values)]
impl Sign {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
}

/// `self / |self|`, 0 at 0: the sign, or for complex numbers the direction.
#[op("sgn(Tensor self) -> Tensor", inplace = method, exact_out, meta = broadcast, cpu = sgn, batch = pointwise,
     samples = unary_nonzero, sparse = values)]
impl Sgn {
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        tangential(grad, self_, result)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        tangential(self_t, self_p, result)
    }
}

/// The part of `change` across the direction `unit`, over the length: the derivative of the direction. It
/// is its own adjoint, so it serves both modes.
fn tangential(change: &Tensor, z: &Tensor, unit: &Tensor) -> Result<Tensor> {
    if !z.dtype().is_complex() {
        return change.zeros_like();
    }
    let along = unit.conj()?.mul(change)?.real()?;
    let across = change.sub(&along.mul(unit)?)?.div(&z.abs()?)?;
    across.masked_fill(&z.eq(&Tensor::wrapped(0)?)?, Scalar::Int(0))
}

/// `+self`: the tensor itself; bool is refused.
#[op("positive(Tensor(a) self) -> Tensor(a)", samples = unary)]
impl Positive {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.dtype() == DType::Bool {
            bail!(not_implemented, "The `+` operator, on a bool tensor is not supported.");
        }
        Ok(self_.clone())
    }
}

/// The angle with the positive real axis, in `[-π, π]`; of real numbers 0 or π, with gradient 0.
#[op("angle(Tensor self) -> Tensor", out, batch = pointwise, samples = unary_nonzero, sparse = values)]
impl Angle {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        let spec = TensorSpec::broadcast(&[self_])?.to_float();
        let dtype = spec.dtype.to_real();
        Ok(spec.with_dtype(dtype))
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::angle(iter)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        if !self_.dtype().is_complex() {
            return grad.zeros_like();
        }
        // d angle = Im(conj(z) dz) / |z|^2, so the gradient is i z / |z|^2.
        let rotated = self_.times(Scalar::Complex(0.0, 1.0))?;
        let length = self_.abs()?;
        let slope = rotated.div(&length.mul(&length)?)?;
        grad.mul(&slope.masked_fill(&self_.eq(&Tensor::wrapped(0)?)?, Scalar::Int(0))?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor) -> Result<Tensor> {
        if !self_p.dtype().is_complex() {
            return self_t.zeros_like();
        }
        let length = self_p.abs()?;
        self_p.conj()?.mul(self_t)?.imag_part()?.div(&length.mul(&length)?)
    }
}

/// The largest whole number not above each element; integers are copied. The gradient is 0.
#[op("floor(Tensor self) -> Tensor", inplace, exact_out, meta = broadcast, cpu = floor, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Floor {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
}

/// The smallest whole number not below each element; integers are copied. The gradient is 0.
#[op("ceil(Tensor self) -> Tensor", inplace, exact_out, meta = broadcast, cpu = ceil, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Ceil {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
}

/// The nearest whole number, ties to even; integers are copied. The gradient is 0.
#[op("round(Tensor self) -> Tensor", inplace, exact_out, batch = pointwise, meta = broadcast, jvp = elementwise, samples = unary, sparse = values)]
impl Round {
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::round(iter, 0)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
}

/// The nearest number with `decimals` places (negative: tens, hundreds, ...), ties to even. The gradient is 0.
#[op("round.decimals(Tensor self, *, int decimals) -> Tensor", inplace, out, node = "RoundBackward1",
     batch = pointwise, meta = broadcast, jvp = elementwise, sparse = values)]
impl RoundDecimals {
    fn cpu(iter: &mut Iter, decimals: i64) -> pullback_kernels::Result<()> {
        let dtype = iter.input_dtype(0);
        if !dtype.is_floating_point() {
            let name = if decimals == 0 { "round_vml_cpu" } else { "round_cpu" };
            return Err(pullback_kernels::Error::not_implemented(name, dtype));
        }
        elementwise::round(iter, decimals)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], n: i64| Sample::of(s.normal(shape)).with("decimals", n);
        vec![sample(&[2, 3], 1), sample(&[], 0), sample(&[3], -1), sample(&[0], 2)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.integers(&[2], 0, 9)).with("decimals", 1);
        let phrase = "\"round_cpu\" not implemented for 'Long'";
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, phrase)]
    }
}

/// The whole part, towards zero; integers are copied. The gradient is 0.
#[op("trunc(Tensor self) -> Tensor", inplace, exact_out, alias("fix"), meta = broadcast, cpu = trunc, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Trunc {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
}

/// What rounding towards zero leaves: `self - trunc(self)`.
#[op("frac(Tensor self) -> Tensor", inplace, exact_out, meta = broadcast, cpu = frac, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Frac {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// NaN replaced by `nan` (0), positive infinity by `posinf` (the dtype's largest number) and negative
/// infinity by `neginf` (its smallest). The gradient there is 0.
#[op("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", inplace, exact_out,
     meta = broadcast, batch = pointwise, sparse = values)]
impl NanToNum {
    fn cpu(
        iter: &mut Iter,
        nan: Option<f64>,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> pullback_kernels::Result<()> {
        elementwise::nan_to_num(iter, nan, posinf, neginf)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.isfinite()?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor) -> Result<Tensor> {
        self_t.mul(&self_p.isfinite()?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with_infinity = s.away_from_zero(&[3]).over(0.0).expect("samples are small");
        vec![
            Sample::of(s.normal(&[2, 3])),
            Sample::of(s.normal(&[])).with("nan", 1.0),
            Sample::of(with_infinity)
                .with("posinf", 2.0)
                .with("neginf", Value::None)
                .without_gradient(),
            Sample::of(s.normal(&[0])),
        ]
    }
}

/// `e^self`. Integers give the default floating dtype.
#[op("exp(Tensor self) -> Tensor", inplace, out, meta = float, cpu = exp, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl Exp {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.conj()?)
    }
}

/// `2^self`. Integers give the default floating dtype.
#[op("exp2(Tensor self) -> Tensor", inplace, out, meta = float, cpu = exp2, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl Exp2 {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.conj()?.times(LN_2)?)
    }
}

/// `e^self - 1`, exact near 0. Integers give the default floating dtype.
#[op("expm1(Tensor self) -> Tensor", inplace, out, meta = float, cpu = expm1, batch = pointwise, jvp = elementwise,
     samples = unary, sparse = values)]
impl Expm1 {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.conj()?.plus(1)?)
    }
}

/// The natural logarithm; NaN for negative real numbers, -inf at 0. Integers give the default floating dtype.
#[op("log(Tensor self) -> Tensor", inplace, out, meta = float, cpu = log, batch = pointwise, jvp = elementwise,
     samples = unary_positive)]
impl Log {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&self_.conj()?)
    }
}

/// The logarithm to base 2. Integers give the default floating dtype.
#[op("log2(Tensor self) -> Tensor", inplace, out, meta = float, cpu = log2, batch = pointwise, jvp = elementwise,
     samples = unary_positive)]
impl Log2 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&self_.conj()?.times(LN_2)?)
    }
}

/// The logarithm to base 10. Integers give the default floating dtype.
#[op("log10(Tensor self) -> Tensor", inplace, out, meta = float, cpu = log10, batch = pointwise, jvp = elementwise,
     samples = unary_positive)]
impl Log10 {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&self_.conj()?.times(LN_10)?)
    }
}

/// `ln(1 + self)`, exact near 0. Integers give the default floating dtype.
#[op("log1p(Tensor self) -> Tensor", inplace, out, meta = float, cpu = log1p, node = "Log1P", batch = pointwise, jvp = elementwise,
     samples = unary_positive, sparse = values)]
impl Log1p {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&self_.plus(1)?.conj()?)
    }
}

/// The square root; NaN for negative real numbers. Integers give the default floating dtype.
#[op("sqrt(Tensor self) -> Tensor", inplace, out, meta = float, cpu = sqrt, batch = pointwise, jvp = elementwise,
     samples = unary_positive, sparse = values)]
impl Sqrt {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.div(&result.conj()?.times(2)?)
    }
}

/// `1 / sqrt(self)`. Integers give the default floating dtype.
#[op("rsqrt(Tensor self) -> Tensor", inplace, out, meta = float, cpu = rsqrt, batch = pointwise, jvp = elementwise,
     samples = unary_positive)]
impl Rsqrt {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&result.pow_scalar(Scalar::Int(3))?.conj()?)?.times(-0.5)
    }
}

/// `self * self`; bool gives int64.
#[op("square(Tensor self) -> Tensor", inplace, out, apart, samples = unary)]
impl Square {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.pow_scalar(Scalar::Int(2))
    }
}

/// `1 / self`. Integers give the default floating dtype.
#[op("reciprocal(Tensor self) -> Tensor", inplace, out, meta = float, cpu = reciprocal, batch = pointwise,
     jvp = elementwise, samples = unary_nonzero)]
impl Reciprocal {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.neg()?.mul(&result.mul(result)?.conj()?)
    }
}

/// `1 / (1 + e^-self)`. Integers give the default floating dtype.
#[op("sigmoid(Tensor self) -> Tensor", inplace, out, meta = float, cpu = sigmoid, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl Sigmoid {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.sigmoid_backward(result)
    }
}

/// The derivative of `sigmoid` from its result `y`: `grad_output * conj(y (1 - y))`.
#[op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", out, internal, meta = broadcast,
     cpu = sigmoid_backward, batch = pointwise, samples = binary)]
impl SigmoidBackward {
    fn vjp_grad_output(grad: &Tensor, output: &Tensor) -> Result<Tensor> {
        grad.sigmoid_backward(&output.conj()?)
    }
    fn vjp_output(grad: &Tensor, grad_output: &Tensor, output: &Tensor) -> Result<Tensor> {
        grad.conj()?.mul(grad_output)?.mul(&output.conj()?.times(-2)?.plus(1)?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        output_p: &Tensor,
        output_t: &Tensor,
    ) -> Result<Tensor> {
        let by_output =
            output_t.conj()?.mul(grad_output_p)?.mul(&output_p.conj()?.times(-2)?.plus(1)?)?;
        grad_output_t.sigmoid_backward(output_p)?.add(&by_output)
    }
}

/// The error function: `2/sqrt(π) * integral of e^(-t^2) from 0 to self`. Integers give the default floating dtype.
#[op("erf(Tensor self) -> Tensor", inplace, out, meta = float, cpu = erf, batch = pointwise, jvp = elementwise,
     samples = unary, sparse = values)]
impl Erf {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&bell(self_)?)
    }
}

/// `1 - erf(self)`, without cancellation. Integers give the default floating dtype.
#[op("erfc(Tensor self) -> Tensor", inplace, out, meta = float, cpu = erfc, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl Erfc {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&bell(self_)?)?.neg()
    }
}

/// `2/sqrt(π) * e^(-x^2)`.
fn bell(x: &Tensor) -> Result<Tensor> {
    x.mul(x)?.neg()?.exp()?.times(FRAC_2_SQRT_PI)
}

/// The logarithm of the absolute value of the gamma function; infinite at 0 and the negative whole numbers.
#[op("lgamma(Tensor self) -> Tensor", inplace = method, out, meta = float, cpu = lgamma, batch = pointwise, jvp = elementwise,
     samples = unary_positive)]
impl Lgamma {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.digamma()?)
    }
}

/// The logarithmic derivative of the gamma function.
#[op("digamma(Tensor self) -> Tensor", inplace = method, out, meta = float, cpu = digamma, batch = pointwise,
     jvp = elementwise, samples = unary_positive)]
impl Digamma {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&polygamma(1, self_)?)
    }
}

/// The `n`-th derivative of `digamma`; infinite at 0 and the negative whole numbers.
#[op("polygamma(int n, Tensor self) -> Tensor", out, batch = pointwise, jvp = elementwise)]
impl Polygamma {
    fn meta(n: i64, self_: &Tensor) -> Result<TensorSpec> {
        check_order(n)?;
        Ok(TensorSpec::broadcast(&[self_])?.to_float())
    }
    fn cpu(iter: &mut Iter, n: i64) -> pullback_kernels::Result<()> {
        elementwise::polygamma(iter, n)
    }
    fn vjp_self(grad: &Tensor, n: i64, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&polygamma(n.saturating_add(1), self_)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |n: i64, shape: &[i64]| Sample::new([n.into(), s.positive(shape).into()]);
        vec![sample(1, &[2, 3]), sample(0, &[3]), sample(3, &[]), sample(2, &[0])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([(-1_i64).into(), s.positive(&[2]).into()]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "polygamma(n, x) does not support negative n.",
        )]
    }
}

fn check_order(n: i64) -> Result<()> {
    ensure!(n >= 0, runtime, "polygamma(n, x) does not support negative n.");
    Ok(())
}

/// Replaces this tensor's elements by `polygamma(n, self)`.
#[op("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", method_only, method = polygamma_, node = "PolygammaBackward1", batch = pass)]
impl PolygammaInPlace {
    fn meta(self_: &Tensor, n: i64) -> Result<TensorSpec> {
        check_order(n)?;
        check_cast(TensorSpec::like(self_).to_float().dtype, self_.dtype())?;
        Ok(TensorSpec::like(self_).with_strides(self_.strides().into()))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, n: i64) -> Result<()> {
        let result = polygamma(n, self_)?;
        check_cast(result.dtype(), self_.dtype())?;
        self_.copy_data(cpu, &result)
    }
    fn vjp_self(grad: &Tensor, n: i64, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&polygamma(n.saturating_add(1), self_)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.positive(&[2, 3])).with("n", 1_i64)]
    }
}
