//! The derivatives of the norms: fused kernels, and the same formulas in plain ops for second derivatives.
//!
//! With `h = (x - mean) * rstd` and `g = grad * weight`: `grad_x = rstd (g - mean(g) - h mean(g h))` over the
//! normalised dimensions, `grad_weight = sum(grad h)`, `grad_bias = sum(grad)`. The fused ops compute the gradients
//! that `output_mask` (bits 1, 2, 4) asks for; the others are empty. They record nothing.

use super::norm_group::check_groups;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::{Cpu, Dims};
use crate::{DType, Result, Tensor, TensorSpec};
use pullback_kernels::{StridedMut, check_shape, norm};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&LAYER_NORM_BACKWARD, &RMS_NORM_BACKWARD, &BATCH_NORM_BACKWARD, &GROUP_NORM_BACKWARD];

/// The gradients of `layer_norm` with respect to input, weight and bias, those that `output_mask` (bits 1, 2, 4) asks
/// for.
#[op("_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, int output_mask) -> (Tensor, Tensor, Tensor)",
     internal, not_differentiable, method = layer_norm_backward)]
impl LayerNormBackward {
    fn meta(
        grad_out: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        mean: &Tensor,
        rstd: &Tensor,
        weight: Option<&Tensor>,
        output_mask: i64,
    ) -> Result<[TensorSpec; 3]> {
        let rows = rows(input, normalized_shape)?;
        let parameters = normalized_shape.iter().product();
        let given =
            NormOperands { grad_out, statistics: &[("mean", mean), ("rstd", rstd)], weight };
        given.check(input, rows, parameters)?;
        Ok(specs(TensorSpec::like(input), normalized_shape, output_mask))
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        grad_out: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        mean: &Tensor,
        rstd: &Tensor,
        weight: Option<&Tensor>,
        output_mask: i64,
    ) -> Result<()> {
        let weight = weight.map(|w| w.in_dtype(cpu, input.dtype())).transpose()?;
        let [mut x, mut w, mut b] = views(cpu, input, [result0, result1, result2], output_mask);
        norm::layer_norm_backward(
            x.as_mut(),
            w.as_mut(),
            b.as_mut(),
            grad_out.view_ref(cpu),
            input.view_ref(cpu),
            mean.view_ref(cpu),
            rstd.view_ref(cpu),
            weight.as_ref().map(|t| t.view_ref(cpu)),
            normalized_shape.iter().product::<i64>() as usize,
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |mask: i64| {
            let start = [s.normal(&[3, 4]).into(), s.normal(&[3, 4]).into(), [4].as_slice().into()];
            let call = Sample::new(start)
                .with("mean", s.normal(&[3, 1]))
                .with("rstd", s.positive(&[3, 1]));
            call.with("weight", s.normal(&[4])).with("output_mask", mask)
        };
        vec![call(7), call(1), call(6)]
    }
}

/// The gradients of `rms_norm` with respect to input and weight, those that `output_mask` (bits 1, 2) asks for.
#[op("_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, int output_mask) -> (Tensor, Tensor)",
     internal, not_differentiable, method = rms_norm_backward)]
impl RmsNormBackward {
    fn meta(
        grad_out: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        rstd: &Tensor,
        weight: Option<&Tensor>,
        output_mask: i64,
    ) -> Result<[TensorSpec; 2]> {
        let rows = rows(input, normalized_shape)?;
        let parameters = normalized_shape.iter().product();
        NormOperands { grad_out, statistics: &[("rstd", rstd)], weight }
            .check(input, rows, parameters)?;
        let [x, w, _] = specs(TensorSpec::like(input), normalized_shape, output_mask);
        Ok([x, w])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        grad_out: &Tensor,
        input: &Tensor,
        normalized_shape: &[i64],
        rstd: &Tensor,
        weight: Option<&Tensor>,
        output_mask: i64,
    ) -> Result<()> {
        let weight = weight.map(|w| w.in_dtype(cpu, input.dtype())).transpose()?;
        let [mut x, mut w] = views(cpu, input, [result0, result1], output_mask);
        norm::rms_norm_backward(
            x.as_mut(),
            w.as_mut(),
            grad_out.view_ref(cpu),
            input.view_ref(cpu),
            rstd.view_ref(cpu),
            weight.as_ref().map(|t| t.view_ref(cpu)),
            normalized_shape.iter().product::<i64>() as usize,
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let start = [s.normal(&[3, 4]).into(), s.normal(&[3, 4]).into(), [4].as_slice().into()];
        let call = Sample::new(start).with("rstd", s.positive(&[3, 1])).with("weight", Value::None);
        vec![call.with("output_mask", 3)]
    }
}

/// The gradients of `batch_norm` with respect to input, weight and bias, those that `output_mask` (bits 1, 2, 4) asks
/// for. In training `mean` and `rstd` are the batch's, otherwise they are the running mean and variance.
#[op("_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool training, float eps, int output_mask) -> (Tensor, Tensor, Tensor)",
     internal, not_differentiable, method = batch_norm_backward)]
impl BatchNormBackward {
    fn meta(
        grad_out: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
        mean: &Tensor,
        rstd: &Tensor,
        output_mask: i64,
    ) -> Result<[TensorSpec; 3]> {
        let by_input = TensorSpec::in_format_of(input, input.shape());
        let channels = channels(input)?;
        check_shape("mean", mean.shape(), channels)?;
        check_shape("rstd", rstd.shape(), channels)?;
        let given = NormOperands { grad_out, statistics: &[], weight };
        given.check(input, channels[0], channels[0])?;
        Ok(specs(by_input, channels, output_mask))
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        grad_out: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
        mean: &Tensor,
        rstd: &Tensor,
        training: bool,
        eps: f64,
        output_mask: i64,
    ) -> Result<()> {
        let weight = weight.map(|w| w.in_dtype(cpu, input.dtype())).transpose()?;
        let [mut x, mut w, mut b] = views(cpu, input, [result0, result1, result2], output_mask);
        norm::batch_norm_backward(
            x.as_mut(),
            w.as_mut(),
            b.as_mut(),
            grad_out.view_ref(cpu),
            input.view_ref(cpu),
            weight.as_ref().map(|t| t.view_ref(cpu)),
            mean.view_ref(cpu),
            rstd.view_ref(cpu),
            norm::BatchNormOptions { training, momentum: 0.0, eps },
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |training: bool| {
            let start = [s.normal(&[4, 3]).into(), s.normal(&[4, 3]).into(), s.normal(&[3]).into()];
            let call =
                Sample::new(start).with("mean", s.normal(&[3])).with("rstd", s.positive(&[3]));
            call.with("training", training).with("eps", 1e-5).with("output_mask", 7)
        };
        vec![call(true), call(false)]
    }
}

/// The gradients of `group_norm` with respect to input, weight and bias, those that `output_mask` (bits 1, 2, 4) asks
/// for.
#[op("_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int group, int output_mask) -> (Tensor, Tensor, Tensor)",
     internal, not_differentiable, method = group_norm_backward)]
impl GroupNormBackward {
    fn meta(
        grad_out: &Tensor,
        input: &Tensor,
        mean: &Tensor,
        rstd: &Tensor,
        weight: Option<&Tensor>,
        group: i64,
        output_mask: i64,
    ) -> Result<[TensorSpec; 3]> {
        let by_input = TensorSpec::in_format_of(input, input.shape());
        let channels = channels(input)?;
        check_groups(input, group)?;
        let given =
            NormOperands { grad_out, statistics: &[("mean", mean), ("rstd", rstd)], weight };
        given.check(input, input.shape()[0].saturating_mul(group), channels[0])?;
        Ok(specs(by_input, channels, output_mask))
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        grad_out: &Tensor,
        input: &Tensor,
        mean: &Tensor,
        rstd: &Tensor,
        weight: Option<&Tensor>,
        group: i64,
        output_mask: i64,
    ) -> Result<()> {
        let weight = weight.map(|w| w.in_dtype(cpu, input.dtype())).transpose()?;
        let [mut x, mut w, mut b] = views(cpu, input, [result0, result1, result2], output_mask);
        norm::group_norm_backward(
            x.as_mut(),
            w.as_mut(),
            b.as_mut(),
            grad_out.view_ref(cpu),
            input.view_ref(cpu),
            mean.view_ref(cpu),
            rstd.view_ref(cpu),
            weight.as_ref().map(|t| t.view_ref(cpu)),
            group as usize,
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let start = [s.normal(&[2, 4, 3]).into(), s.normal(&[2, 4, 3]).into()];
        let call =
            Sample::new(start).with("mean", s.normal(&[2, 2])).with("rstd", s.positive(&[2, 2]));
        vec![call.with("weight", s.normal(&[4])).with("group", 2).with("output_mask", 7)]
    }
}

/// The dimensions that a norm averages over and those that its parameters have, for its formulas in plain ops.
pub(crate) struct NormAxes {
    /// The dimensions whose elements share mean and variance.
    averaged: Dims,
    /// The dimensions over which the gradients of the parameters are summed, where their shape has size 1.
    summed: Dims,
    /// The parameters' own shape, if it differs from that of the sums.
    parameter_shape: Option<Dims>,
    eps: f64,
    /// Whether the mean is subtracted (not for RMS norm).
    centred: bool,
    /// Mean and variance where they do not depend on the input (running statistics).
    fixed: Option<(Tensor, Tensor)>,
}

impl NormAxes {
    /// The dimensions of layer and RMS norm.
    pub(crate) fn trailing(
        input: &Tensor,
        normalized: &[i64],
        eps: f64,
        centred: bool,
    ) -> NormAxes {
        let (ndim, first) = (input.ndim() as i64, (input.ndim() - normalized.len()) as i64);
        let parameter_shape = Some(Dims::from_slice(normalized));
        NormAxes {
            averaged: (first..ndim).collect(),
            summed: (0..first).collect(),
            parameter_shape,
            eps,
            centred,
            fixed: None,
        }
    }
    /// The dimensions of batch norm; `fixed` are the running mean and variance outside training.
    pub(crate) fn channels(
        input: &Tensor,
        eps: f64,
        fixed: Option<(&Tensor, &Tensor)>,
    ) -> Result<NormAxes> {
        let dims: Dims = (0..input.ndim() as i64).filter(|&d| d != 1).collect();
        let per_channel = channel_shape(&[1, input.shape()[1]], input.ndim() - 2);
        let fixed = match fixed {
            Some((mean, var)) => Some((mean.reshape(&per_channel)?, var.reshape(&per_channel)?)),
            None => None,
        };
        let parameter_shape = Some(Dims::from_slice(&input.shape()[1..2]));
        Ok(NormAxes {
            averaged: dims.clone(),
            summed: dims,
            parameter_shape,
            eps,
            centred: true,
            fixed,
        })
    }
    /// The dimensions of group norm of an input split into (N, group, channel of the group, rest).
    pub(crate) fn groups(eps: f64) -> NormAxes {
        let (averaged, summed) = ([2, 3].as_slice().into(), [0, 3].as_slice().into());
        NormAxes { averaged, summed, parameter_shape: None, eps, centred: true, fixed: None }
    }

    fn normalised(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        if let Some((mean, var)) = &self.fixed {
            let rstd = var.plus(self.eps)?.rsqrt()?;
            return Ok((x.sub(mean)?.mul(&rstd)?, rstd));
        }
        let centred =
            if self.centred { x.sub(&x.mean_dim(Some(&self.averaged), true)?)? } else { x.clone() };
        let var = centred.mul(&centred)?.mean_dim(Some(&self.averaged), true)?;
        let rstd = var.plus(self.eps)?.rsqrt()?;
        Ok((centred.mul(&rstd)?, rstd))
    }

    /// The gradients of input, weight and bias, differentiable themselves.
    pub(crate) fn backward(
        &self,
        grad: &Tensor,
        x: &Tensor,
        weight: Option<&Tensor>,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        let (h, rstd) = self.normalised(x)?;
        let summed = |t: Tensor| {
            let total =
                if self.summed.is_empty() { t } else { t.sum_dim(Some(&self.summed), true)? };
            self.parameter_shape
                .as_ref()
                .map_or_else(|| Ok(total.clone()), |shape| total.reshape(shape))
        };
        let by_weight = needs[1].then(|| summed(grad.mul(&h)?)).transpose()?;
        let by_bias = needs[2].then(|| summed(grad.clone())).transpose()?;
        if !needs[0] {
            return Ok([None, by_weight, by_bias]);
        }
        let g = match weight {
            Some(w) => grad.mul(&self.broadcastable(w, x)?)?,
            None => grad.clone(),
        };
        if self.fixed.is_some() {
            return Ok([Some(g.mul(&rstd)?), by_weight, by_bias]);
        }
        let mean = |t: &Tensor| t.mean_dim(Some(&self.averaged), true);
        let along = h.mul(&mean(&g.mul(&h)?)?)?;
        let rest = if self.centred { g.sub(&mean(&g)?)? } else { g };
        Ok([Some(rest.sub(&along)?.mul(&rstd)?), by_weight, by_bias])
    }

    /// A parameter reshaped so that it broadcasts against the input.
    fn broadcastable(&self, parameter: &Tensor, x: &Tensor) -> Result<Tensor> {
        if parameter.ndim() == x.ndim() {
            return Ok(parameter.clone());
        }
        let mut shape = Dims::from_slice(x.shape());
        for &dim in &self.summed {
            shape[dim as usize] = 1;
        }
        parameter.reshape(&shape)
    }
}

/// `lead` followed by `ones` sizes of 1.
pub(crate) fn channel_shape(lead: &[i64], ones: usize) -> Dims {
    let mut shape = Dims::from_slice(lead);
    shape.extend(std::iter::repeat_n(1, ones));
    shape
}

/// The dtype of statistics: single precision for half precision input.
pub(crate) fn stats_dtype(input: &Tensor) -> DType {
    match input.dtype() {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Refuses tensors that do not have one element per channel.
pub(crate) fn check_channels(input: &Tensor, given: &[(&str, Option<&Tensor>)]) -> Result<()> {
    ensure!(
        input.ndim() >= 2,
        runtime,
        "Expected 2 or more dimensions for batch_norm, but got input of size {}",
        crate::tensor::shape::list(input.shape())
    );
    let channels = input.shape()[1];
    for (name, tensor) in given {
        let n = tensor.map_or(channels, Tensor::numel);
        ensure!(n == channels, runtime, "{name} should contain {channels} elements not {n}");
    }
    Ok(())
}

/// The bits 1, 2, 4 of the gradients of input, weight and bias that are needed.
pub(crate) fn mask_of(needs: [bool; 3]) -> i64 {
    needs.iter().enumerate().map(|(i, &n)| i64::from(n) << i).sum()
}

/// The gradients that are needed.
pub(crate) fn wanted(outputs: [Tensor; 3], needs: [bool; 3]) -> [Option<Tensor>; 3] {
    let [x, w, b] = outputs;
    [needs[0].then_some(x), needs[1].then_some(w), needs[2].then_some(b)]
}

/// The shape of parameters with one element per channel.
fn channels(input: &Tensor) -> Result<&[i64]> {
    ensure!(
        input.ndim() >= 2,
        runtime,
        "Expected 2 or more dimensions, but got input of size {}",
        crate::tensor::shape::list(input.shape())
    );
    Ok(&input.shape()[1..2])
}

/// How many rows of `normalized_shape`, which must be its last sizes, the input has.
fn rows(input: &Tensor, normalized_shape: &[i64]) -> Result<i64> {
    ensure!(
        input.shape().ends_with(normalized_shape),
        runtime,
        "Given normalized_shape={}, but got input of size {}",
        crate::tensor::shape::list(normalized_shape),
        crate::tensor::shape::list(input.shape())
    );
    Ok(input.shape()[..input.ndim() - normalized_shape.len()].iter().product())
}

/// What the gradients of a norm are computed from beside its input.
struct NormOperands<'a> {
    grad_out: &'a Tensor,
    statistics: &'a [(&'a str, &'a Tensor)],
    weight: Option<&'a Tensor>,
}

impl NormOperands<'_> {
    /// Refuses a gradient of another shape than the input's, statistics that are not one number for each of `groups` groups
    /// of elements, and a weight of another number of elements than `parameters`.
    fn check(&self, input: &Tensor, groups: i64, parameters: i64) -> Result<()> {
        check_shape("grad_output", self.grad_out.shape(), input.shape())?;
        let statistics = self.statistics.iter().map(|&(name, tensor)| (name, tensor, groups));
        let weight = self.weight.map(|tensor| ("weight", tensor, parameters));
        for (name, tensor, count) in statistics.chain(weight) {
            ensure!(
                tensor.numel() == count,
                runtime,
                "Expected {name} to have {count} elements for an input of size {}, but got shape {}",
                crate::tensor::shape::list(input.shape()),
                crate::tensor::shape::list(tensor.shape())
            );
        }
        Ok(())
    }
}

/// The specs of the gradients that `mask` asks for; the others are empty.
fn specs(by_input: TensorSpec, parameter: &[i64], mask: i64) -> [TensorSpec; 3] {
    let wanted = |bit: i64, spec: TensorSpec| {
        if mask & bit != 0 { spec } else { TensorSpec::of(&[0], spec.dtype).on(spec.device) }
    };
    let of_parameter = TensorSpec::of(parameter, by_input.dtype).on(by_input.device);
    [wanted(1, by_input), wanted(2, of_parameter.clone()), wanted(4, of_parameter)]
}

/// Views for writing the gradients that `mask` asks for.
fn views<'a, const N: usize>(
    cpu: Cpu,
    input: &Tensor,
    outputs: [&'a Tensor; N],
    mask: i64,
) -> [Option<StridedMut<'a>>; N] {
    if input.numel() == 0 {
        // A sum over no rows is 0, which the kernel does not write where there are no rows.
        for output in outputs {
            output.zero_bytes();
        }
    }
    std::array::from_fn(|i| (mask & (1 << i) != 0).then(|| outputs[i].view_mut(cpu)))
}
