//! Smooth activation functions: exponential units, sigmoid-weighted units, gates.
//!
//! Each derivative is one fused kernel, an op of its own; second derivatives are made of plain ops.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::ternary::walk_as_is;
use crate::tensor::shape::wrap_dim;
use crate::tensor::{Cpu, TensorSpec, preserved_strides};
use crate::{ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &GELU,
    &GELU_BACKWARD,
    &SILU,
    &SILU_BACKWARD,
    &MISH,
    &MISH_BACKWARD,
    &SOFTPLUS,
    &SOFTPLUS_BACKWARD,
    &LOG_SIGMOID,
    &LOG_SIGMOID_BACKWARD,
    &ELU,
    &ELU_BACKWARD,
    &CELU,
    &SELU,
    &GLU,
];

/// The Gaussian error linear unit `self * Φ(self)`, where `Φ` is the standard normal distribution function (Hendrycks
/// and Gimpel 2016); with `approximate` "tanh" `self / 2 * (1 + tanh(sqrt(2 / π) * (self + 0.044715 * self^3)))`.
#[op("gelu(Tensor self, *, str approximate='none') -> Tensor", inplace, out, module = "nn", batch = pointwise,
     jvp = elementwise)]
impl Gelu {
    fn meta(self_: &Tensor, approximate: &str) -> Result<TensorSpec> {
        is_tanh(approximate)?;
        TensorSpec::broadcast(&[self_])
    }
    fn cpu(iter: &mut Iter, approximate: &str) -> pullback_kernels::Result<()> {
        elementwise::gelu(iter, approximate == "tanh")
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, approximate: &str) -> Result<Tensor> {
        grad.gelu_backward_with(self_, approximate)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let tanh = Sample::of(s.normal(&[2, 3])).with("approximate", "tanh");
        vec![
            Sample::of(s.normal(&[2, 3])),
            tanh,
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[0])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[2])).with("approximate", "erf");
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "approximate argument must be either none or tanh.",
        )]
    }
}

/// The derivative of `gelu`: `grad_output * (Φ(x) + x φ(x))` with the standard normal density `φ`, or the derivative of
/// the approximation.
#[op("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor", internal, meta = broadcast,
     batch = pointwise)]
impl GeluBackward {
    fn cpu(iter: &mut Iter, approximate: &str) -> pullback_kernels::Result<()> {
        elementwise::gelu_backward(iter, approximate == "tanh")
    }
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor, approximate: &str) -> Result<Tensor> {
        grad.gelu_backward_with(self_, approximate)
    }
    fn vjp_self(
        grad: &Tensor,
        grad_output: &Tensor,
        self_: &Tensor,
        approximate: &str,
    ) -> Result<Tensor> {
        grad.mul(grad_output)?.mul(&gelu_second_derivative(self_, is_tanh(approximate)?)?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
        approximate: &str,
    ) -> Result<Tensor> {
        let second = gelu_second_derivative(self_p, is_tanh(approximate)?)?;
        grad_output_t
            .gelu_backward_with(self_p, approximate)?
            .add(&self_t.mul(grad_output_p)?.mul(&second)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::new([s.normal(shape).into(), s.normal(shape).into()]);
        vec![sample(&[2, 3]), sample(&[2, 3]).with("approximate", "tanh"), sample(&[0])]
    }
}

fn is_tanh(approximate: &str) -> Result<bool> {
    match approximate {
        "none" => Ok(false),
        "tanh" => Ok(true),
        _ => bail!(runtime, "approximate argument must be either none or tanh."),
    }
}

/// The second derivative of `gelu`: `φ(x) (2 - x^2)`, or for the approximation `x (1 + t) / 2` with `t = tanh u`,
/// `(1 - t^2) (u' + x u'' / 2 - x t u'^2)`.
fn gelu_second_derivative(x: &Tensor, tanh: bool) -> Result<Tensor> {
    let square = x.mul(x)?;
    if !tanh {
        let density = square.times(-0.5)?.exp()?.times(FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5)?;
        return density.mul(&square.minus_from(2.0)?);
    }
    let (beta, kappa) = (SQRT_2 * FRAC_2_SQRT_PI * 0.5, 0.044_715);
    let t = square.times(kappa)?.plus(1.0)?.mul(x)?.times(beta)?.tanh()?;
    let first = square.times(3.0 * kappa)?.plus(1.0)?.times(beta)?;
    let half_second = square.times(3.0 * kappa * beta)?;
    let inner = first.add(&half_second)?.sub(&x.mul(&t)?.mul(&first.mul(&first)?)?)?;
    t.mul(&t)?.minus_from(1.0)?.mul(&inner)
}

/// The sigmoid linear unit, also called swish: `self * sigmoid(self)`.
#[op("silu(Tensor self) -> Tensor", inplace, out, module = "nn", meta = broadcast, cpu = silu, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl Silu {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.silu_backward(self_)
    }
}

/// The derivative of `silu`: `grad_output * conj(s (1 + x (1 - s)))` with `s = sigmoid(x)`.
#[op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", out, internal, meta = broadcast, cpu = silu_backward,
     batch = pointwise, samples = binary)]
impl SiluBackward {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.silu_backward(&self_.conj()?)
    }
    fn vjp_self(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.conj()?.mul(grad_output)?.mul(&silu_second_derivative(self_)?.conj()?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
    ) -> Result<Tensor> {
        let by_self = self_t.mul(&silu_second_derivative(self_p)?)?.conj()?.mul(grad_output_p)?;
        grad_output_t.silu_backward(self_p)?.add(&by_self)
    }
}

/// The second derivative of `silu`: `s (1 - s) (2 + x (1 - 2s))`.
fn silu_second_derivative(x: &Tensor) -> Result<Tensor> {
    let s = x.sigmoid()?;
    let slope = s.minus_from(1.0)?.mul(&s)?;
    slope.mul(&s.times(-2.0)?.plus(1.0)?.mul(x)?.plus(2.0)?)
}

/// `self * tanh(ln(1 + e^self))` (Misra 2019).
#[op("mish(Tensor self) -> Tensor", inplace, out, module = "nn", meta = broadcast, cpu = mish, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl Mish {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mish_backward(self_)
    }
}

/// The derivative of `mish`: `grad_output * (t + x s (1 - t^2))` with `s = sigmoid(x)`, `t = tanh(ln(1 + e^x))`.
#[op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", internal, meta = broadcast, cpu = mish_backward,
     batch = pointwise, samples = binary)]
impl MishBackward {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mish_backward(self_)
    }
    fn vjp_self(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(grad_output)?.mul(&mish_second_derivative(self_)?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
    ) -> Result<Tensor> {
        grad_output_t
            .mish_backward(self_p)?
            .add(&self_t.mul(grad_output_p)?.mul(&mish_second_derivative(self_p)?)?)
    }
}

/// The second derivative of `mish`: `w (2 + x (1 - s - 2 s t))` with `w = s (1 - t^2)`, the slope of `t`.
fn mish_second_derivative(x: &Tensor) -> Result<Tensor> {
    let (s, t) = (x.sigmoid()?, x.softplus(Scalar::Int(1), Scalar::Int(20))?.tanh()?);
    let slope = t.mul(&t)?.minus_from(1.0)?.mul(&s)?;
    let inner = s.add(&s.mul(&t)?.times(2.0)?)?.minus_from(1.0)?;
    slope.mul(&inner.mul(x)?.plus(2.0)?)
}

/// A smooth form of `relu`: `ln(1 + e^(beta * self)) / beta`, and `self` itself where `beta * self > threshold`.
#[op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", out, module = "nn", meta = broadcast,
     batch = pointwise, jvp = elementwise)]
impl Softplus {
    fn cpu(iter: &mut Iter, beta: Scalar, threshold: Scalar) -> pullback_kernels::Result<()> {
        elementwise::softplus(iter, beta, threshold)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, beta: Scalar, threshold: Scalar) -> Result<Tensor> {
        grad.softplus_backward(self_, beta, threshold)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let steep = Sample::of(s.normal(&[3]))
            .with("beta", Scalar::Float(2.5))
            .with("threshold", Scalar::Float(1.0));
        vec![
            Sample::of(s.normal(&[2, 3])),
            steep.without_gradient(),
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[0])),
        ]
    }
}

/// The derivative of `softplus`: `grad_output * sigmoid(beta * self)`, and `grad_output` where
/// `beta * self > threshold`.
#[op("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", out, internal,
     meta = broadcast, batch = pointwise)]
impl SoftplusBackward {
    fn cpu(iter: &mut Iter, beta: Scalar, threshold: Scalar) -> pullback_kernels::Result<()> {
        elementwise::softplus_backward(iter, beta, threshold)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        self_: &Tensor,
        beta: Scalar,
        threshold: Scalar,
    ) -> Result<Tensor> {
        grad.softplus_backward(self_, beta, threshold)
    }
    fn vjp_self(
        grad: &Tensor,
        grad_output: &Tensor,
        self_: &Tensor,
        beta: Scalar,
        threshold: Scalar,
    ) -> Result<Tensor> {
        grad.mul(grad_output)?.mul(&softplus_second_derivative(self_, beta, threshold)?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
        beta: Scalar,
        threshold: Scalar,
    ) -> Result<Tensor> {
        let by_self = self_t
            .mul(grad_output_p)?
            .mul(&softplus_second_derivative(self_p, beta, threshold)?)?;
        grad_output_t.softplus_backward(self_p, beta, threshold)?.add(&by_self)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], beta: f64| {
            let pair = [s.normal(shape).into(), s.normal(shape).into()];
            Sample::new(pair)
                .with("beta", Scalar::Float(beta))
                .with("threshold", Scalar::Float(20.0))
        };
        vec![sample(&[2, 3], 1.0), sample(&[3], 2.5), sample(&[0], 1.0)]
    }
}

/// The second derivative of `softplus`: `beta s (1 - s)` with `s = sigmoid(beta x)`, 0 above the threshold.
fn softplus_second_derivative(x: &Tensor, beta: Scalar, threshold: Scalar) -> Result<Tensor> {
    let scaled = x.times(beta)?;
    let s = scaled.sigmoid()?;
    let second = s.minus_from(1.0)?.mul(&s)?.times(beta)?;
    second.masked_fill(&scaled.gt(&Tensor::wrapped(threshold)?)?, Scalar::Int(0))
}

/// The logarithm of the sigmoid, `ln(1 / (1 + e^-self))`, without underflow.
#[op("log_sigmoid(Tensor self) -> Tensor", out, module = "nn", meta = broadcast, cpu = log_sigmoid, batch = pointwise,
     jvp = elementwise, samples = unary)]
impl LogSigmoid {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.log_sigmoid_backward(self_)
    }
}

/// The derivative of `log_sigmoid`: `grad_output * sigmoid(-self)`.
#[op("log_sigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", internal, meta = broadcast,
     cpu = log_sigmoid_backward, batch = pointwise, samples = binary)]
impl LogSigmoidBackward {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.log_sigmoid_backward(self_)
    }
    fn vjp_self(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(grad_output)?.sigmoid_backward(&self_.sigmoid()?)?.neg()
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
    ) -> Result<Tensor> {
        let by_self = self_t.mul(grad_output_p)?.sigmoid_backward(&self_p.sigmoid()?)?;
        grad_output_t.log_sigmoid_backward(self_p)?.sub(&by_self)
    }
}

/// The exponential linear unit: `scale * self` above 0, `scale * alpha * (e^(input_scale * self) - 1)` else (Clevert et
/// al. 2016).
#[op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", inplace, out, module = "nn",
     meta = broadcast, batch = pointwise, jvp = elementwise)]
impl Elu {
    fn cpu(
        iter: &mut Iter,
        alpha: Scalar,
        scale: Scalar,
        input_scale: Scalar,
    ) -> pullback_kernels::Result<()> {
        elementwise::elu(iter, alpha, scale, input_scale)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        alpha: Scalar,
        scale: Scalar,
        input_scale: Scalar,
    ) -> Result<Tensor> {
        grad.elu_backward(alpha, scale, input_scale, false, self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.away_from_zero(shape));
        let scaled =
            sample(&[3]).with("alpha", Scalar::Float(1.5)).with("scale", Scalar::Float(0.8));
        vec![
            sample(&[2, 3]),
            scaled.with("input_scale", Scalar::Float(2.0)),
            sample(&[]),
            sample(&[0]),
        ]
    }
}

/// The derivative of `elu`: `grad_output * scale` above 0, else `grad_output * scale * alpha * input_scale *
/// e^(input_scale * x)`, computed from the input `x` or, with `is_result`, from the result.
#[op("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
     out, internal, meta = broadcast, batch = pointwise)]
impl EluBackward {
    fn cpu(
        iter: &mut Iter,
        alpha: Scalar,
        scale: Scalar,
        input_scale: Scalar,
        is_result: bool,
    ) -> pullback_kernels::Result<()> {
        elementwise::elu_backward(iter, alpha, scale, input_scale, is_result)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        alpha: Scalar,
        scale: Scalar,
        input_scale: Scalar,
        is_result: bool,
        self_or_result: &Tensor,
    ) -> Result<Tensor> {
        grad.elu_backward(alpha, scale, input_scale, is_result, self_or_result)
    }
    fn vjp_self_or_result(
        grad: &Tensor,
        grad_output: &Tensor,
        alpha: Scalar,
        scale: Scalar,
        input_scale: Scalar,
        is_result: bool,
        self_or_result: &Tensor,
    ) -> Result<Tensor> {
        let inner = input_scale.to_f64();
        let below = grad.mul(grad_output)?.times(inner)?;
        let below = if is_result {
            below
        } else {
            let curve = self_or_result
                .times(inner)?
                .exp()?
                .times(alpha.to_f64() * scale.to_f64() * inner)?;
            below.mul(&curve)?
        };
        below.masked_fill(&self_or_result.gt(&Tensor::wrapped(0)?)?, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let numbers = [1.5, 0.8, 2.0].map(|v| crate::dispatch::Value::Scalar(Scalar::Float(v)));
        let sample = |shape: &[i64], is_result: bool| {
            let [alpha, scale, inner] = numbers.clone();
            let x = s.away_from_zero(shape);
            Sample::new([s.normal(shape).into(), alpha, scale, inner, is_result.into(), x.into()])
        };
        vec![sample(&[2, 3], false), sample(&[3], true), sample(&[0], false)]
    }
}

/// The continuously differentiable exponential linear unit: `max(0, self) + min(0, alpha * (e^(self / alpha) - 1))`
/// (Barron 2017).
#[op("celu(Tensor self, Scalar alpha=1.0) -> Tensor", function_only, inplace, meta = broadcast, batch = pointwise, jvp = elementwise)]
impl Celu {
    fn cpu(iter: &mut Iter, alpha: Scalar) -> pullback_kernels::Result<()> {
        elementwise::celu(iter, alpha)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.elu_backward(alpha, Scalar::Int(1), Scalar::Float(1.0 / alpha.to_f64()), false, self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let wide = Sample::of(s.away_from_zero(&[3])).with("alpha", Scalar::Float(2.5));
        vec![
            Sample::of(s.away_from_zero(&[2, 3])),
            wide,
            Sample::of(s.away_from_zero(&[])),
            Sample::of(s.normal(&[0])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[2])).with("alpha", Scalar::Int(0));
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "ZeroDivisionError: alpha cannot be 0 for CELU",
        )]
    }
}

/// The scaled exponential linear unit: `elu` with the constants that preserve mean 0 and variance 1 (Klambauer et al.
/// 2017).
#[op("selu(Tensor self) -> Tensor", function_only, inplace, samples = unary_nonzero)]
impl Selu {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.elu(elementwise::SELU_ALPHA.into(), elementwise::SELU_SCALE.into(), Scalar::Int(1))
    }
}

/// The gated linear unit: the first half along `dim` times the sigmoid of the second (Dauphin et al. 2017).
/// The size of `dim` is even.
#[op("glu(Tensor self, int dim=-1) -> Tensor", out, module = "nn", batch = glu(self))]
impl Glu {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        let (at, half) = half_of(self_, dim)?;
        let mut spec = TensorSpec::beside(self_, self_.shape());
        spec.shape[at] = half;
        if spec.shape.len() > 1 {
            spec.strides = Some(preserved_strides(&spec.shape, self_.strides()));
        }
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        walk_as_is(cpu, result, &halves(self_, dim)?, elementwise::glu)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, dim: i64) -> Result<Tensor> {
        let [a, b] = halves(self_, dim)?;
        let (gate, n) = (b.sigmoid()?, a.shape()[wrap_dim(dim, a.ndim())?]);
        let by_a = grad.mul(&gate)?.slice_backward(self_.shape(), dim, Some(0), Some(n), 1)?;
        let by_b = grad.mul(&a)?.sigmoid_backward(&gate)?;
        by_a.add(&by_b.slice_backward(self_.shape(), dim, Some(n), None, 1)?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, dim: i64) -> Result<Tensor> {
        let ([a, b], [a_t, b_t]) = (halves(self_p, dim)?, halves(self_t, dim)?);
        let gate = b.sigmoid()?;
        a_t.mul(&gate)?.add(&b_t.mul(&a)?.sigmoid_backward(&gate)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 4])),
            Sample::of(s.normal(&[4, 3])).with("dim", 0),
            Sample::of(s.normal(&[0, 2])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (odd, none) = (Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[])));
        vec![
            InvalidSample::new(
                odd,
                ErrorKind::Runtime,
                "Halving dimension must be even, but dimension 1 is size 3",
            ),
            InvalidSample::new(
                none,
                ErrorKind::Runtime,
                "glu does not support 0-dimensional tensors",
            ),
        ]
    }
}

/// The dimension that `glu` halves, and half of its size.
fn half_of(x: &Tensor, dim: i64) -> Result<(usize, i64)> {
    ensure!(x.ndim() > 0, runtime, "glu does not support 0-dimensional tensors");
    let at = wrap_dim(dim, x.ndim())?;
    let size = x.shape()[at];
    ensure!(
        size % 2 == 0,
        runtime,
        "Halving dimension must be even, but dimension {at} is size {size}"
    );
    Ok((at, size / 2))
}

fn halves(x: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    let (_, half) = half_of(x, dim)?;
    Ok([x.slice(dim, Some(0), Some(half), 1)?, x.slice(dim, Some(half), None, 1)?])
}
