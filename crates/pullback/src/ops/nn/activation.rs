//! Activation functions that are piecewise linear or rational: rectifiers, thresholds and the hard forms of sigmoids.
//!
//! Each derivative is one fused kernel, an op of its own (`*_backward`) that can be differentiated again. Exponential
//! and gated units are in `activation_smooth`.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::{ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &RELU,
    &THRESHOLD,
    &THRESHOLD_BACKWARD,
    &HARDSHRINK,
    &SOFTSHRINK,
    &RELU6,
    &HARDTANH,
    &HARDTANH_BACKWARD,
    &LEAKY_RELU,
    &LEAKY_RELU_BACKWARD,
    &PRELU,
    &PRELU_KERNEL,
    &PRELU_BACKWARD_INPUT,
    &PRELU_BACKWARD_WEIGHT,
    &HARDSIGMOID,
    &HARDSIGMOID_BACKWARD,
    &HARDSWISH,
    &HARDSWISH_BACKWARD,
];

/// The rectified linear unit `max(self, 0)`, element by element; NaN stays NaN. The gradient at 0 is 0.
#[op("relu(Tensor self) -> Tensor", inplace, out, meta = broadcast, cpu = relu, batch = pointwise,
     jvp = elementwise, samples = unary_nonzero, sparse = values)]
impl Relu {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.threshold_backward(result, Scalar::Int(0))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.bools(&[2]));
        vec![InvalidSample::new(
            sample,
            ErrorKind::NotImplemented,
            "Boolean inputs not supported for relu",
        )]
    }
}

/// `self` where it is above `threshold`, else `value`, element by element. The gradient is 0 where `value` is taken.
#[op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", function_only, inplace, out, meta = broadcast,
     batch = pointwise, jvp = elementwise)]
impl Threshold {
    fn cpu(iter: &mut Iter, threshold: Scalar, value: Scalar) -> pullback_kernels::Result<()> {
        elementwise::threshold(iter, threshold, value)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, threshold: Scalar) -> Result<Tensor> {
        grad.threshold_backward(self_, threshold)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| {
            Sample::of(s.away_from_zero(shape))
                .with("threshold", Scalar::Float(0.1))
                .with("value", Scalar::Float(-3.0))
        };
        vec![sample(&[2, 3]), sample(&[]), sample(&[0])]
    }
}

/// The derivative of `threshold` and of `relu`: `grad_output` where `self` is above `threshold`, else 0.
#[op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", out, internal,
     meta = broadcast, batch = pointwise)]
impl ThresholdBackward {
    fn cpu(iter: &mut Iter, threshold: Scalar) -> pullback_kernels::Result<()> {
        elementwise::threshold_backward(iter, threshold)
    }
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor, threshold: Scalar) -> Result<Tensor> {
        grad.threshold_backward(self_, threshold)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        flat(grad)
    }
    fn jvp(grad_output_t: &Tensor, self_p: &Tensor, threshold: Scalar) -> Result<Tensor> {
        grad_output_t.threshold_backward(self_p, threshold)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| {
            Sample::new([
                s.normal(shape).into(),
                s.away_from_zero(shape).into(),
                Scalar::Float(0.1).into(),
            ])
        };
        vec![sample(&[2, 3]), sample(&[]), sample(&[0])]
    }
}

/// A mask of the elements whose absolute value is at most `lambd`.
fn is_small(name: &str, x: &Tensor, lambd: Scalar) -> Result<Tensor> {
    let kind = x.dtype();
    if !kind.is_floating_point() {
        bail!(not_implemented, "\"{name}\" not implemented for '{}'", kind.scalar_name());
    }
    x.abs()?.le(&Tensor::wrapped(lambd)?)
}

/// `self` where its absolute value is above `lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken.
#[op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", meta = broadcast, batch = pointwise, jvp = elementwise)]
impl Hardshrink {
    fn cpu(iter: &mut Iter, lambd: Scalar) -> pullback_kernels::Result<()> {
        elementwise::hardshrink(iter, lambd)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, lambd: Scalar) -> Result<Tensor> {
        grad.masked_fill(&is_small("hardshrink_cpu", self_, lambd)?, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        shrink_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.integers(&[2], 0, 3)),
            ErrorKind::NotImplemented,
            "\"hardshrink_cpu\" not implemented for 'Long'",
        )]
    }
}

/// `self - lambd` above `lambd`, `self + lambd` below `-lambd`, else 0; NaN stays. The gradient is 0 where 0 is taken.
#[op("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", module = "nn", batch = pointwise, jvp = elementwise)]
impl Softshrink {
    fn meta(self_: &Tensor, lambd: Scalar) -> Result<TensorSpec> {
        let (dtype, limit) = (self_.dtype(), lambd.to_f64());
        ensure!(
            limit >= 0.0 || !dtype.is_floating_point(),
            runtime,
            "lambda must be in range [0, inf) for input dtype {}, but found {limit}",
            dtype.scalar_name()
        );
        TensorSpec::broadcast(&[self_])
    }
    fn cpu(iter: &mut Iter, lambd: Scalar) -> pullback_kernels::Result<()> {
        elementwise::softshrink(iter, lambd)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, lambd: Scalar) -> Result<Tensor> {
        grad.masked_fill(&is_small("softshrink_check", self_, lambd)?, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        shrink_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[2])).with("lambd", Scalar::Float(-1.0)),
            ErrorKind::Runtime,
            "lambda must be in range [0, inf) for input dtype Double, but found -1",
        )]
    }
}

fn shrink_samples(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    // Samples differ from zero by more than a quarter, so that no element is near a kink.
    let sample =
        |shape: &[i64]| Sample::of(s.away_from_zero(shape)).with("lambd", Scalar::Float(0.05));
    vec![sample(&[2, 3]), sample(&[]), sample(&[0])]
}

/// `min(max(self, 0), 6)`, element by element. The gradient at both ends, 0 and 6, is 0.
#[op("relu6(Tensor self) -> Tensor", inplace, module = "nn", samples = unary_nonzero)]
impl Relu6 {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.hardtanh(Scalar::Int(0), Scalar::Int(6))
    }
}

/// `min(max(self, min_val), max_val)`, element by element. The gradient at both ends is 0.
#[op("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", inplace, out, module = "nn",
     batch = pointwise, jvp = elementwise)]
impl Hardtanh {
    fn meta(self_: &Tensor, min_val: Scalar, max_val: Scalar) -> Result<TensorSpec> {
        let _ = (min_val, max_val);
        TensorSpec::broadcast(&[self_])
    }
    fn cpu(iter: &mut Iter, min_val: Scalar, max_val: Scalar) -> pullback_kernels::Result<()> {
        elementwise::hardtanh(iter, min_val, max_val)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, min_val: Scalar, max_val: Scalar) -> Result<Tensor> {
        grad.hardtanh_backward(self_, min_val, max_val)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.normal(shape));
        let limits =
            sample(&[4]).with("min_val", Scalar::Float(-0.5)).with("max_val", Scalar::Float(1.5));
        vec![sample(&[2, 3]), limits, sample(&[]), sample(&[0])]
    }
}

/// The derivative of `hardtanh`: `grad_output` where `min_val < self < max_val`, else 0.
#[op("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor", out, internal,
     meta = broadcast, batch = pointwise)]
impl HardtanhBackward {
    fn cpu(iter: &mut Iter, min_val: Scalar, max_val: Scalar) -> pullback_kernels::Result<()> {
        elementwise::hardtanh_backward(iter, min_val, max_val)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        self_: &Tensor,
        min_val: Scalar,
        max_val: Scalar,
    ) -> Result<Tensor> {
        grad.hardtanh_backward(self_, min_val, max_val)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        flat(grad)
    }
    fn jvp(
        grad_output_t: &Tensor,
        self_p: &Tensor,
        min_val: Scalar,
        max_val: Scalar,
    ) -> Result<Tensor> {
        grad_output_t.hardtanh_backward(self_p, min_val, max_val)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let limits = [Scalar::Float(-1.0), Scalar::Float(1.0)];
        let sample = |shape: &[i64]| {
            Sample::new([
                s.normal(shape).into(),
                s.normal(shape).into(),
                limits[0].into(),
                limits[1].into(),
            ])
        };
        vec![sample(&[2, 3]), sample(&[]), sample(&[0])]
    }
}

/// The leaky rectified linear unit: `self` where it is above 0, else `negative_slope * self`. The gradient at 0 is
/// `negative_slope`.
#[op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", inplace, out, module = "nn", meta = broadcast,
     batch = pointwise, jvp = elementwise)]
impl LeakyRelu {
    fn cpu(iter: &mut Iter, negative_slope: Scalar) -> pullback_kernels::Result<()> {
        elementwise::leaky_relu(iter, negative_slope)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, negative_slope: Scalar) -> Result<Tensor> {
        grad.leaky_relu_backward(self_, negative_slope, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let steep = Sample::of(s.away_from_zero(&[3])).with("negative_slope", Scalar::Float(-0.5));
        vec![
            Sample::of(s.away_from_zero(&[2, 3])),
            steep,
            Sample::of(s.away_from_zero(&[])),
            Sample::of(s.normal(&[0])),
        ]
    }
}

/// The derivative of `leaky_relu`: `grad_output` above 0, else `negative_slope * grad_output`, by the sign of the input
/// or, with `self_is_result`, of the result, for which `negative_slope` must not be negative.
#[op("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor", out,
     internal, batch = pointwise)]
impl LeakyReluBackward {
    fn meta(
        grad_output: &Tensor,
        self_: &Tensor,
        negative_slope: Scalar,
        self_is_result: bool,
    ) -> Result<TensorSpec> {
        ensure!(
            !self_is_result || negative_slope.to_f64() >= 0.0,
            runtime,
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is caused by calling in-place forward function with a negative slope, please call out-of-place version instead."
        );
        TensorSpec::broadcast(&[grad_output, self_])
    }
    fn cpu(iter: &mut Iter, negative_slope: Scalar) -> pullback_kernels::Result<()> {
        elementwise::leaky_relu_backward(iter, negative_slope)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        self_: &Tensor,
        negative_slope: Scalar,
        self_is_result: bool,
    ) -> Result<Tensor> {
        grad.leaky_relu_backward(self_, negative_slope, self_is_result)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        flat(grad)
    }
    fn jvp(
        grad_output_t: &Tensor,
        self_p: &Tensor,
        negative_slope: Scalar,
        self_is_result: bool,
    ) -> Result<Tensor> {
        grad_output_t.leaky_relu_backward(self_p, negative_slope, self_is_result)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], is_result: bool| {
            let (grad, x) = (s.normal(shape), s.away_from_zero(shape));
            Sample::new([grad.into(), x.into(), Scalar::Float(0.2).into(), is_result.into()])
        };
        vec![sample(&[2, 3], false), sample(&[3], true), sample(&[0], false)]
    }
}

/// The parametric rectified linear unit: `self` where it is above 0, else `weight * self`, with one weight for all
/// elements or one per channel (dimension 1). The gradient of `self` at 0 is `weight`.
#[op("prelu(Tensor self, Tensor weight) -> Tensor", autocast = lower)]
impl Prelu {
    fn composite(self_: &Tensor, weight: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.dtype() == weight.dtype(),
            runtime,
            "prelu: Type promoting not supported. Got {} and {}",
            self_.dtype().spelled(),
            weight.dtype().spelled()
        );
        if weight.numel() == 1 && weight.ndim() <= 1 {
            return self_.prelu_kernel(&weight.reshape(&[])?);
        }
        ensure!(self_.ndim() > 0, runtime, "Not allow zero-dim input tensor.");
        let channels = if self_.ndim() > 1 { self_.shape()[1] } else { 1 };
        ensure!(
            channels == weight.numel(),
            runtime,
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {channels}.",
            weight.numel()
        );
        ensure!(
            weight.ndim() <= 1,
            runtime,
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
            weight.ndim()
        );
        let mut shape = vec![1; self_.ndim()];
        shape[1.min(self_.ndim() - 1)] = channels;
        self_.prelu_kernel(&weight.reshape(&shape)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |x: &[i64], w: &[i64]| Sample::new([s.away_from_zero(x).into(), s.normal(w).into()]);
        vec![
            sample(&[2, 3, 2], &[3]),
            sample(&[2, 3], &[1]),
            sample(&[4], &[]),
            sample(&[0, 3], &[3]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2]).into()]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "parameter numbers = 2 and channel size = 3",
        )]
    }
}

/// `prelu` with a weight that broadcasts to `self`.
#[op("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", internal, method = prelu_kernel, meta = broadcast,
     cpu = prelu, batch = pointwise, samples = binary_first_nonzero)]
impl PreluKernel {
    fn vjp_self(grad: &Tensor, self_: &Tensor, weight: &Tensor) -> Result<Tensor> {
        grad.prelu_backward_input(self_, weight)
    }
    fn vjp_weight(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.prelu_backward_weight(self_)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        weight_p: &Tensor,
        weight_t: &Tensor,
    ) -> Result<Tensor> {
        self_t.prelu_backward_input(self_p, weight_p)?.add(&weight_t.prelu_backward_weight(self_p)?)
    }
}

/// The derivative of `prelu` by its input: the gradient above 0, `weight` times it below.
#[op("_prelu_backward_input(Tensor grad_output, Tensor self, Tensor weight) -> Tensor", internal,
     method = prelu_backward_input, meta = broadcast, cpu = prelu_backward, batch = pointwise, samples = ternary)]
impl PreluBackwardInput {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor, weight: &Tensor) -> Result<Tensor> {
        grad.prelu_backward_input(self_, weight)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        flat(grad)
    }
    fn vjp_weight(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(grad_output)?.masked_fill(&self_.gt(&Tensor::wrapped(0)?)?, Scalar::Int(0))
    }
}

/// The derivative of `prelu` by its weight: `grad_output * self` below 0, else 0.
#[op("_prelu_backward_weight(Tensor grad_output, Tensor self) -> Tensor", internal, method = prelu_backward_weight,
     meta = broadcast, cpu = prelu_backward_weight, batch = pointwise, samples = binary_nonzero)]
impl PreluBackwardWeight {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.prelu_backward_weight(self_)
    }
    fn vjp_self(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(grad_output)?.masked_fill(&self_.gt(&Tensor::wrapped(0)?)?, Scalar::Int(0))
    }
}

/// The piecewise linear sigmoid `min(max(self + 3, 0), 6) / 6`. The gradient at -3 and 3 is 0.
#[op("hardsigmoid(Tensor self) -> Tensor", inplace, out, module = "nn", meta = broadcast, cpu = hardsigmoid,
     batch = pointwise, jvp = elementwise, samples = unary)]
impl Hardsigmoid {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.hardsigmoid_backward(self_)
    }
}

/// The derivative of `hardsigmoid`: `grad_output / 6` where `-3 < self < 3`, else 0.
#[op("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", out, internal, meta = broadcast,
     cpu = hardsigmoid_backward, batch = pointwise, samples = binary)]
impl HardsigmoidBackward {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.hardsigmoid_backward(self_)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        flat(grad)
    }
    fn jvp(grad_output_t: &Tensor, self_p: &Tensor) -> Result<Tensor> {
        grad_output_t.hardsigmoid_backward(self_p)
    }
}

/// `self * min(max(self + 3, 0), 6) / 6` (Howard et al. 2019).
#[op("hardswish(Tensor self) -> Tensor", inplace, out, module = "nn", meta = broadcast, cpu = hardswish,
     batch = pointwise, jvp = elementwise, samples = unary)]
impl Hardswish {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.hardswish_backward(self_)
    }
}

/// The derivative of `hardswish`: `grad_output * (self / 3 + 1/2)` between -3 and 3, 0 below, `grad_output` above.
#[op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", internal, meta = broadcast,
     cpu = hardswish_backward, batch = pointwise, samples = binary)]
impl HardswishBackward {
    fn vjp_grad_output(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.hardswish_backward(self_)
    }
    fn vjp_self(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
        hardswish_second_derivative(grad, grad_output, self_)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        self_p: &Tensor,
        self_t: &Tensor,
    ) -> Result<Tensor> {
        grad_output_t.hardswish_backward(self_p)?.add(&hardswish_second_derivative(
            self_t,
            grad_output_p,
            self_p,
        )?)
    }
}

/// The product `a * b * hardswish''(x)`; the second derivative is 1/3 between -3 and 3, else 0.
fn hardswish_second_derivative(a: &Tensor, b: &Tensor, x: &Tensor) -> Result<Tensor> {
    a.mul(b)?.over(3)?.hardtanh_backward(x, Scalar::Int(-3), Scalar::Int(3))
}

/// The rule of an argument in which a derivative is piecewise constant: no gradient.
pub(crate) fn flat(grad: &Tensor) -> Result<Option<Tensor>> {
    let _ = grad;
    Ok(None)
}
