//! Layer, RMS, batch and instance norm; group norm is in `norm_group`.
//!
//! Forward and backward are fused kernels. Where the backward pass must itself be differentiable it is computed by
//! [`NormAxes`] from plain ops; the fused backward ops (`_*_norm_backward`) serve all other cases.

use crate::dispatch::{OpDef, Value, check_separate};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::nn::norm_backward::{
    NormAxes, channel_shape, check_channels, mask_of, stats_dtype, wanted,
};
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::norm;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LAYER_NORM,
    &NATIVE_LAYER_NORM,
    &LAYER_NORM_KERNEL,
    &RMS_NORM,
    &FUSED_RMS_NORM,
    &BATCH_NORM,
    &NATIVE_BATCH_NORM,
    &BATCH_NORM_KERNEL,
    &INSTANCE_NORM,
];

/// `(input - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance over the trailing
/// dimensions `normalized_shape` (Ba et al. 2016).
#[op(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    function_only
)]
impl LayerNorm {
    fn composite(
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let [output, ..] = input.layer_norm_kernel(normalized_shape, weight, bias, eps)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], n: &[i64]| Sample::of(s.normal(x)).with("normalized_shape", n);
        vec![
            sample(&[2, 3, 2], &[3, 2]),
            sample(&[3, 4], &[4]).with("weight", s.normal(&[4])).with("bias", s.normal(&[4])),
            sample(&[3, 4], &[4]).with("bias", s.normal(&[4])).with("eps", 0.1),
            sample(&[0, 3], &[3]).with("weight", s.normal(&[3])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (x, empty) = (Sample::of(s.normal(&[3, 4])), Sample::of(s.normal(&[3])));
        let wrong = x.clone().with("normalized_shape", [3]);
        let weight = x.with("normalized_shape", [4]).with("weight", s.normal(&[3]));
        vec![
            InvalidSample::new(
                wrong,
                ErrorKind::Runtime,
                "Given normalized_shape=[3], expected input with shape [*, 3]",
            ),
            InvalidSample::new(
                weight,
                ErrorKind::Runtime,
                "Expected weight to be of same shape as normalized_shape",
            ),
            InvalidSample::new(
                empty.with("normalized_shape", []),
                ErrorKind::Runtime,
                "at least 1-dimensional",
            ),
        ]
    }
}

/// `layer_norm` together with the mean and `1 / sqrt(var + eps)` of each row.
#[op(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    function_only
)]
impl NativeLayerNorm {
    fn composite(
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        let results = input.layer_norm_kernel(normalized_shape, weight, bias, eps)?;
        with_returned_statistics(input, results, &[weight, bias])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        LayerNormKernel::samples(s)
    }
}

/// The kernel of `native_layer_norm`, with statistics in at least single precision.
#[op(
    "_native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    internal,
    function_only,
    node = "NativeLayerNorm",
    method = layer_norm_kernel, batch = layer_norm(input, normalized_shape, weight, bias)
)]
impl LayerNormKernel {
    fn meta(
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
    ) -> Result<[TensorSpec; 3]> {
        let (stats, _) = rows(input, normalized_shape, &[("weight", weight), ("bias", bias)])?;
        let stats = TensorSpec::beside(input, &stats).computed_in(stats_dtype(input));
        Ok([TensorSpec::like(input), stats.clone(), stats])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<()> {
        let [w, b] = in_input_dtype(cpu, input, [weight, bias])?;
        norm::layer_norm(
            &mut result0.view_mut(cpu),
            &mut result1.view_mut(cpu),
            &mut result2.view_mut(cpu),
            input.view_ref(cpu),
            w.as_ref().map(|t| t.view_ref(cpu)),
            b.as_ref().map(|t| t.view_ref(cpu)),
            normalized_shape.iter().product::<i64>() as usize,
            eps,
        )?;
        Ok(())
    }
    fn vjp(
        grad: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        eps: f64,
        result1: &Tensor,
        result2: &Tensor,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        if crate::autograd::needs_ops([Some(grad), Some(input), weight]) {
            return NormAxes::trailing(input, normalized_shape, eps, true)
                .backward(grad, input, weight, needs);
        }
        let outputs = grad.layer_norm_backward(
            input,
            normalized_shape,
            result1,
            result2,
            weight,
            mask_of(needs),
        )?;
        Ok(wanted(outputs, needs))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], n: &[i64], weight: Value, bias: Value| {
            Sample::new([s.normal(x).into(), n.into(), weight, bias, Value::Float(1e-5)])
        };
        let four = || Value::Tensor(s.normal(&[4]));
        // The returned statistics have no gradient, but numerical differences would give one.
        vec![
            sample(&[3, 4], &[4], four(), four()).without_gradient(),
            sample(&[3, 4], &[3, 4], Value::None, Value::None).without_gradient(),
        ]
    }
}

/// `input / sqrt(mean(input^2) + eps) * weight` over the trailing dimensions `normalized_shape`; `eps` is the
/// dtype's machine epsilon if not given (Zhang and Sennrich 2019).
#[op(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    function_only
)]
impl RmsNorm {
    fn composite(
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<Tensor> {
        ensure!(
            input.ndim() >= normalized_shape.len(),
            value,
            "Input tensor must have at least {} dimensions, but got {}",
            normalized_shape.len(),
            input.ndim()
        );
        let [output, _] = input.fused_rms_norm(normalized_shape, weight, eps)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], n: &[i64]| Sample::of(s.normal(x)).with("normalized_shape", n);
        vec![
            sample(&[2, 3, 2], &[3, 2]),
            sample(&[3, 4], &[4]).with("weight", s.normal(&[4])).with("eps", 0.1),
            sample(&[0, 3], &[3]),
        ]
    }
}

/// `rms_norm` together with `1 / sqrt(mean(input^2) + eps)` of each row.
#[op("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)", internal,
     method = fused_rms_norm, batch = rms_norm(input, normalized_shape, weight))]
impl FusedRmsNorm {
    fn meta(
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
    ) -> Result<[TensorSpec; 2]> {
        let (stats, _) = rows(input, normalized_shape, &[("weight", weight)])?;
        let stats = TensorSpec::beside(input, &stats).computed_in(stats_dtype(input));
        Ok([TensorSpec::like(input), stats])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<()> {
        let [w, _] = in_input_dtype(cpu, input, [weight, None])?;
        norm::rms_norm(
            &mut result0.view_mut(cpu),
            &mut result1.view_mut(cpu),
            input.view_ref(cpu),
            w.as_ref().map(|t| t.view_ref(cpu)),
            normalized_shape.iter().product::<i64>() as usize,
            eps.unwrap_or(epsilon(input)),
        )?;
        Ok(())
    }
    fn vjp(
        grad: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        eps: Option<f64>,
        result1: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let needs = [needs[0], needs[1], false];
        let [by_input, by_weight, _] =
            if crate::autograd::needs_ops([Some(grad), Some(input), weight]) {
                let eps = eps.unwrap_or(epsilon(input));
                NormAxes::trailing(input, normalized_shape, eps, false)
                    .backward(grad, input, weight, needs)?
            } else {
                let [x, w] = grad.rms_norm_backward(
                    input,
                    normalized_shape,
                    result1,
                    weight,
                    mask_of(needs),
                )?;
                wanted([x, w.clone(), w], needs)
            };
        Ok([by_input, by_weight])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = Sample::new([
            s.normal(&[3, 4]).into(),
            [4].as_slice().into(),
            s.normal(&[4]).into(),
            Value::None,
        ]);
        vec![call.without_gradient()]
    }
}

/// Batch normalisation: `(input - mean) / sqrt(var + eps) * weight + bias` per channel (dimension 1). In training mean
/// and biased variance are those of the batch, and the running statistics move by `momentum` towards the mean and the
/// unbiased variance of the batch; otherwise the running statistics are used (Ioffe and Szegedy 2015).
#[op(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    function_only,
    not_differentiable(running_mean, running_var)
)]
impl BatchNorm {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        if input.numel() == 0 {
            return without_elements(input, weight, bias);
        }
        let [output, ..] = input.batch_norm_kernel(
            weight,
            bias,
            running_mean,
            running_var,
            training,
            momentum,
            eps,
        )?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], training: bool| {
            let call = Sample::of(s.normal(x)).with("training", training).with("momentum", 0.0);
            let none = || Value::None;
            let call =
                call.with("weight", none()).with("bias", none()).with("running_mean", none());
            call.with("running_var", none()).with("eps", 1e-3).with("cudnn_enabled", false)
        };
        let given = |mut call: Sample, name: &'static str, value: Tensor| {
            call.named.retain(|(n, _)| *n != name);
            call.with(name, value)
        };
        let affine =
            |call: Sample| given(given(call, "weight", s.normal(&[3])), "bias", s.normal(&[3]));
        let stats = |call: Sample| {
            given(given(call, "running_mean", s.normal(&[3])), "running_var", s.positive(&[3]))
        };
        vec![
            sample(&[4, 3], true),
            affine(sample(&[2, 3, 2, 2], true)),
            affine(stats(sample(&[4, 3], true))),
            affine(stats(sample(&[2, 3, 2], false))),
            stats(sample(&[4, 3], false)),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |training: bool, weight: Value| {
            let start = Sample::new([
                s.normal(&[4, 3]).into(),
                weight,
                Value::None,
                Value::None,
                Value::None,
            ]);
            let call = start.with("training", training).with("momentum", 0.1);
            call.with("eps", 1e-5).with("cudnn_enabled", false)
        };
        let bad_weight = call(true, s.normal(&[2]).into());
        vec![
            InvalidSample::new(
                call(true, Value::None).with("running_var", s.positive(&[3])),
                ErrorKind::Value,
                "must either both be None or neither be None",
            ),
            InvalidSample::new(
                call(false, Value::None),
                ErrorKind::Runtime,
                "running_mean must be defined in evaluation mode",
            ),
            InvalidSample::new(
                bad_weight,
                ErrorKind::Runtime,
                "weight should contain 3 elements not 2",
            ),
        ]
    }
}

/// `batch_norm` of an input without elements, of any rank: there are no statistics, but the result is part of the
/// graph.
fn without_elements(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    if input.ndim() >= 2 {
        check_channels(input, &[("weight", weight), ("bias", bias)])?;
    }
    let mut out = input.clone_tensor_default()?;
    if let Some(weight) = weight {
        out = out.mul(&weight.select(0, 0)?)?;
    }
    if let Some(bias) = bias {
        out = out.add(&bias.select(0, 0)?)?;
    }
    Ok(out)
}

/// `batch_norm` together with the mean and `1 / sqrt(var + eps)` of the batch per channel (empty outside training).
#[op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    function_only,
    out,
    not_differentiable(running_mean, running_var)
)]
impl NativeBatchNorm {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        let results = input.batch_norm_kernel(
            weight,
            bias,
            running_mean,
            running_var,
            training,
            momentum,
            eps,
        )?;
        with_returned_statistics(input, results, &[weight, bias, running_mean, running_var])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        BatchNormKernel::samples(s)
    }
}

/// The kernel of `native_batch_norm`, with statistics in at least single precision.
#[op(
    "_native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    internal,
    function_only,
    node = "NativeBatchNorm",
    method = batch_norm_kernel,
    not_differentiable(running_mean, running_var), batch = batch_norm(input, weight, bias, running_mean, running_var, training)
)]
impl BatchNormKernel {
    fn meta(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
    ) -> Result<[TensorSpec; 3]> {
        let stats = [("running_mean", running_mean), ("running_var", running_var)];
        for (name, given) in stats {
            ensure!(
                training || given.is_some(),
                runtime,
                "{name} must be defined in evaluation mode"
            );
        }
        ensure!(
            running_mean.is_some() == running_var.is_some(),
            value,
            "running_mean and running_var must either both be None or neither be None"
        );
        check_channels(input, &[("weight", weight), ("bias", bias), stats[0], stats[1]])?;
        ensure!(
            !training || input.numel() != 0,
            runtime,
            "input tensor must have at least one element, but got input_sizes = {}",
            list(input.shape())
        );
        let size = if training { input.shape()[1] } else { 0 };
        let stats = TensorSpec::beside(input, &[size]).computed_in(stats_dtype(input));
        Ok([TensorSpec::in_format_of(input, input.shape()), stats.clone(), stats])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<()> {
        if training {
            // (The statistics are written before all of the input has been read.)
            for statistic in [running_mean, running_var].into_iter().flatten() {
                for read in [Some(input), weight, bias].into_iter().flatten() {
                    check_separate(statistic, read)?;
                }
                statistic.materialize()?;
            }
            if let (Some(mean), Some(var)) = (running_mean, running_var) {
                check_separate(mean, var)?;
            }
        }
        let [w, b] = in_input_dtype(cpu, input, [weight, bias])?;
        let (mut saved_mean, mut saved_rstd) = (result1.view_mut(cpu), result2.view_mut(cpu));
        // (Statistics that are only read stay lazy.)
        let moving = |t: &Tensor| {
            if !training && t.is_lazy() { t.dense_copy(cpu) } else { Ok(t.clone()) }
        };
        let (mean, var) =
            (running_mean.map(moving).transpose()?, running_var.map(moving).transpose()?);
        let (mut moving_mean, mut moving_var) =
            (mean.as_ref().map(|t| t.view_mut(cpu)), var.as_ref().map(|t| t.view_mut(cpu)));
        norm::batch_norm(
            &mut result0.view_mut(cpu),
            training.then_some((&mut saved_mean, &mut saved_rstd)),
            input.view_ref(cpu),
            w.as_ref().map(|t| t.view_ref(cpu)),
            b.as_ref().map(|t| t.view_ref(cpu)),
            moving_mean.as_mut(),
            moving_var.as_mut(),
            norm::BatchNormOptions { training, momentum, eps },
        )?;
        Ok(())
    }
    fn vjp(
        grad: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        eps: f64,
        result1: &Tensor,
        result2: &Tensor,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        let (mean, var_or_rstd) = match (running_mean, running_var) {
            (Some(mean), Some(var)) if !training => (mean, var),
            _ => (result1, result2),
        };
        if crate::autograd::needs_ops([Some(grad), Some(input), weight]) {
            let fixed = (!training).then_some((mean, var_or_rstd));
            return NormAxes::channels(input, eps, fixed)?.backward(grad, input, weight, needs);
        }
        let outputs = grad.batch_norm_backward(
            input,
            weight,
            mean,
            var_or_rstd,
            training,
            eps,
            mask_of(needs),
        )?;
        Ok(wanted(outputs, needs))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let start = [
            s.normal(&[4, 3]).into(),
            s.normal(&[3]).into(),
            s.normal(&[3]).into(),
            Value::None,
            Value::None,
        ];
        vec![
            Sample::new(start)
                .with("training", true)
                .with("momentum", 0.1)
                .with("eps", 1e-5)
                .without_gradient(),
        ]
    }
}

/// Instance normalisation: `(input - mean) / sqrt(var + eps) * weight + bias` with mean and biased variance of each
/// channel `(n, c)` of an input (N, C, ...). The running statistics move towards the mean of the examples' statistics
/// (Ulyanov et al. 2016).
#[op(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    function_only,
    not_differentiable(running_mean, running_var)
)]
impl InstanceNorm {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        use_input_stats: bool,
        momentum: f64,
        eps: f64,
        cudnn_enabled: bool,
    ) -> Result<Tensor> {
        ensure!(
            use_input_stats || (running_mean.is_some() && running_var.is_some()),
            runtime,
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        );
        check_channels(input, &[])?;
        // Examples become channels; the copies of the running statistics are averaged afterwards.
        let (n, c) = (input.shape()[0], input.shape()[1]);
        let mut flat = Dims::from_slice(input.shape());
        (flat[0], flat[1]) = (1, n * c);
        let repeated = |t: Option<&Tensor>| t.map(|t| t.repeat(&[n])).transpose();
        let (mean, var) = (repeated(running_mean)?, repeated(running_var)?);
        let out = input.contiguous()?.view(&flat)?.batch_norm(
            repeated(weight)?.as_ref(),
            repeated(bias)?.as_ref(),
            mean.as_ref(),
            var.as_ref(),
            use_input_stats,
            momentum,
            eps,
            cudnn_enabled,
        )?;
        for (running, copies) in [(running_mean, mean), (running_var, var)] {
            if let (true, Some(running), Some(copies)) = (use_input_stats, running, copies) {
                let average = copies.view(&[n, c])?.mean_dim(Some(&[0]), false)?;
                running.detach()?.copy_(&average, false)?;
            }
        }
        out.view(input.shape())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], [w, b, mean, var]: [Value; 4], stats: bool| {
            let call = Sample::new([s.normal(x).into(), w, b, mean, var]);
            let call = call.with("use_input_stats", stats).with("momentum", 0.0);
            call.with("eps", 1e-3).with("cudnn_enabled", false)
        };
        let none = || [Value::None, Value::None, Value::None, Value::None];
        let three = || Value::Tensor(s.normal(&[3]));
        let var = || Value::Tensor(s.positive(&[3]));
        vec![
            sample(&[2, 3, 4], none(), true),
            sample(&[2, 3, 2, 2], [three(), three(), Value::None, Value::None], true),
            sample(&[2, 3, 2], [three(), Value::None, three(), var()], false),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let none = [Value::None, Value::None, Value::None, Value::None];
        let call = Sample::new(std::iter::once(s.normal(&[2, 3, 2]).into()).chain(none));
        let call = call.with("use_input_stats", false).with("momentum", 0.1);
        let call = call.with("eps", 1e-5).with("cudnn_enabled", false);
        let phrase = "to be defined when use_input_stats is false";
        vec![InvalidSample::new(call, ErrorKind::Runtime, phrase)]
    }
}

/// The results with the statistics as they are returned: detached, and in the input's dtype unless a parameter has
/// another.
pub(in crate::ops) fn with_returned_statistics(
    input: &Tensor,
    [out, mean, rstd]: [Tensor; 3],
    parameters: &[Option<&Tensor>],
) -> Result<[Tensor; 3]> {
    let is_mixed = parameters.iter().flatten().any(|p| p.dtype() != input.dtype());
    let dtype = if is_mixed { stats_dtype(input) } else { input.dtype() };
    let returned = |statistic: Tensor| {
        if statistic.dtype() == dtype && !statistic.requires_grad() && !statistic.overrides_ops() {
            return Ok(statistic);
        }
        statistic.detach()?.to_dtype(dtype)
    };
    Ok([out, returned(mean)?, returned(rstd)?])
}

/// The shape of the statistics (one per row) and the number of elements in a row.
fn rows(
    input: &Tensor,
    normalized: &[i64],
    parameters: &[(&str, Option<&Tensor>)],
) -> Result<(Dims, usize)> {
    ensure!(
        !normalized.is_empty(),
        runtime,
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {}",
        list(normalized)
    );
    for (name, parameter) in parameters {
        if let Some(t) = parameter.filter(|t| t.shape() != normalized) {
            bail!(
                runtime,
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and normalized_shape = {}",
                list(t.shape()),
                list(normalized)
            );
        }
    }
    let shape = input.shape();
    let fits =
        shape.len() >= normalized.len() && shape[shape.len() - normalized.len()..] == *normalized;
    ensure!(
        fits,
        runtime,
        "Given normalized_shape={}, expected input with shape [*, {}], but got input of size{}",
        list(normalized),
        list(normalized).trim_matches(['[', ']']),
        list(shape)
    );
    let mut stats = channel_shape(&shape[..shape.len() - normalized.len()], normalized.len());
    stats.truncate(shape.len());
    Ok((stats, normalized.iter().product::<i64>() as usize))
}

/// The parameters in the input's dtype.
pub(in crate::ops) fn in_input_dtype(
    cpu: Cpu,
    input: &Tensor,
    parameters: [Option<&Tensor>; 2],
) -> Result<[Option<Tensor>; 2]> {
    let [a, b] = parameters.map(|p| p.map(|t| t.in_dtype(cpu, input.dtype())).transpose());
    Ok([a?, b?])
}

/// The machine epsilon of the input's dtype.
fn epsilon(input: &Tensor) -> f64 {
    match input.dtype() {
        crate::DType::F64 => f64::EPSILON,
        crate::DType::F16 => 2.0_f64.powi(-10),
        crate::DType::BF16 => 2.0_f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}
