//! Group norm, with fused kernels for forward and backward like the other norms.

use super::norm::in_input_dtype;
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::nn::norm_backward::{NormAxes, check_channels, mask_of, stats_dtype, wanted};
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::norm;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&GROUP_NORM, &NATIVE_GROUP_NORM, &GROUP_NORM_KERNEL];

/// Refuses inputs without channels and numbers of groups that do not divide the number of channels.
pub(in crate::ops) fn check_groups(input: &Tensor, groups: i64) -> Result<()> {
    ensure!(groups > 0, runtime, "Expected num groups to be greater than 0, got {groups}");
    ensure!(
        input.shape()[1] % groups == 0,
        runtime,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
        list(input.shape())
    );
    Ok(())
}

/// Group normalisation: `(input - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over each of
/// `num_groups` groups of channels and all dimensions after them; weight and bias have one element per channel (Wu and
/// He 2018).
#[op(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    function_only
)]
impl GroupNorm {
    fn composite(
        input: &Tensor,
        num_groups: i64,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let shape = input.shape();
        ensure!(
            num_groups > 0,
            runtime,
            "Expected num groups to be greater than 0, got {num_groups}"
        );
        ensure!(
            shape.len() >= 2,
            runtime,
            "Expected at least 2 dimensions for input tensor but received {}",
            shape.len()
        );
        ensure!(
            shape[1] > 0,
            runtime,
            "Expected number of channels to be greater than 0, got {}",
            shape[1]
        );
        check_groups(input, num_groups)?;
        for (name, parameter) in [("weight", weight), ("bias", bias)] {
            if let Some(t) = parameter.filter(|t| t.shape() != &shape[1..2]) {
                bail!(
                    runtime,
                    "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {} and input of shape {}",
                    list(t.shape()),
                    list(shape)
                );
            }
        }
        let inner = shape[2..].iter().product();
        let [output, ..] =
            input.group_norm_kernel(weight, bias, shape[0], shape[1], inner, num_groups, eps)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], groups: i64| Sample::of(s.normal(x)).with("num_groups", groups);
        vec![
            sample(&[2, 4, 3], 2),
            sample(&[2, 4, 2, 2], 2).with("weight", s.normal(&[4])).with("bias", s.normal(&[4])),
            sample(&[2, 6], 3).with("weight", s.normal(&[6])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[2, 4])).with("num_groups", 3);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "divisible by num_groups, but got input of shape [2, 4]",
        )]
    }
}

/// `group_norm` together with the mean and `1 / sqrt(var + eps)` of each group, (N, group), which have gradients too.
#[op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    function_only
)]
impl NativeGroupNorm {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        n: i64,
        c: i64,
        hxw: i64,
        group: i64,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        let [out, mean, rstd] = input.group_norm_kernel(weight, bias, n, c, hxw, group, eps)?;
        let is_mixed = [weight, bias].iter().flatten().any(|p| p.dtype() != input.dtype());
        let dtype = if is_mixed { stats_dtype(input) } else { input.dtype() };
        Ok([out, mean.to_dtype(dtype)?, rstd.to_dtype(dtype)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        GroupNormKernel::samples(s)
    }
}

/// The kernel of `native_group_norm`, with statistics in at least single precision.
#[op(
    "_native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    internal,
    function_only,
    node = "NativeGroupNorm",
    method = group_norm_kernel, batch = group_norm(input, weight, bias, n, c)
)]
impl GroupNormKernel {
    fn meta(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        n: i64,
        c: i64,
        hxw: i64,
        group: i64,
    ) -> Result<[TensorSpec; 3]> {
        let inner: i64 = input.shape().get(2..).unwrap_or_default().iter().product();
        ensure!(
            input.shape().starts_with(&[n, c]) && hxw == inner,
            runtime,
            "Expected X.numel() == N * C * HxW to be true for an input of shape (N, C, ...), but got N={n}, C={c}, HxW={hxw} for one of shape {}",
            list(input.shape())
        );
        ensure!(inner > 0, runtime, "Expected HxW to be greater than 0, got {inner}");
        check_channels(input, &[("weight", weight), ("bias", bias)])?;
        check_groups(input, group)?;
        let stats = TensorSpec::beside(input, &[n, group]).computed_in(stats_dtype(input));
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
        group: i64,
        eps: f64,
    ) -> Result<()> {
        let [w, b] = in_input_dtype(cpu, input, [weight, bias])?;
        norm::group_norm(
            &mut result0.view_mut(cpu),
            &mut result1.view_mut(cpu),
            &mut result2.view_mut(cpu),
            input.view_ref(cpu),
            w.as_ref().map(|t| t.view_ref(cpu)),
            b.as_ref().map(|t| t.view_ref(cpu)),
            group as usize,
            eps,
        )?;
        Ok(())
    }
    fn vjp(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        grad_result2: Option<&Tensor>,
        input: &Tensor,
        weight: Option<&Tensor>,
        group: i64,
        eps: f64,
        result1: &Tensor,
        result2: &Tensor,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        let [mut by_input, by_weight, by_bias] = match grad_result0 {
            Some(grad) => {
                output_grads(grad, input, weight, (group, eps), [result1, result2], needs)?
            }
            None => [None, None, None],
        };
        if needs[0] && (grad_result1.is_some() || grad_result2.is_some()) {
            let grads = [grad_result1, grad_result2];
            let by_statistics = statistics_grad(grads, input, [result1, result2])?;
            by_input = Some(match by_input {
                Some(grad) => grad.add(&by_statistics)?,
                None => by_statistics,
            });
        }
        Ok([by_input, by_weight, by_bias])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let start = [s.normal(&[2, 4, 3]).into(), s.normal(&[4]).into(), s.normal(&[4]).into()];
        let call = Sample::new(start)
            .with("N", 2)
            .with("C", 4)
            .with("HxW", 3)
            .with("group", 2)
            .with("eps", 1e-5);
        vec![call.clone(), call.with("weight", Value::None).with("bias", Value::None)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[2, 4, 3]).into(), Value::None, Value::None];
        let call = |n: i64, groups: i64, text| {
            let call = Sample::new(start.clone()).with("N", n).with("C", 4).with("HxW", 3);
            let call = call.with("group", groups).with("eps", 1e-5);
            InvalidSample::new(call, ErrorKind::Runtime, text)
        };
        let text =
            "X.numel() == N * C * HxW to be true for an input of shape (N, C, ...), but got N=3";
        vec![
            call(3, 2, text),
            call(2, 0, "Expected num groups to be greater than 0, got 0"),
            call(2, -1, "Expected num groups to be greater than 0, got -1"),
            call(2, 3, "divisible by num_groups"),
        ]
    }
}

/// The gradients of input, weight and bias from that of the normalised values.
fn output_grads(
    grad: &Tensor,
    input: &Tensor,
    weight: Option<&Tensor>,
    (group, eps): (i64, f64),
    statistics: [&Tensor; 2],
    needs: [bool; 3],
) -> Result<[Option<Tensor>; 3]> {
    if !crate::autograd::needs_ops([Some(grad), Some(input), weight]) {
        let outputs = grad.group_norm_backward(
            input,
            statistics[0],
            statistics[1],
            weight,
            group,
            mask_of(needs),
        )?;
        return Ok(wanted(outputs, needs));
    }
    let shape = input.shape();
    let inner: i64 = shape[2..].iter().product();
    let split: Dims = [shape[0], group, shape[1] / group, inner].as_slice().into();
    let weight = weight.map(|w| w.reshape(&[1, group, shape[1] / group, 1])).transpose()?;
    let axes = NormAxes::groups(eps);
    let [x, w, b] =
        axes.backward(&grad.reshape(&split)?, &input.reshape(&split)?, weight.as_ref(), needs)?;
    let flat = |t: Option<Tensor>, shape: &[i64]| t.map(|t| t.reshape(shape)).transpose();
    Ok([flat(x, shape)?, flat(w, &[shape[1]])?, flat(b, &[shape[1]])?])
}

/// The gradient of the input from those of the groups' mean `m` and `r = 1 / sqrt(var + eps)`, with `n` elements in a
/// group: `dm = dx / n` and `dr = -r^3 (x - m) dx / n`.
fn statistics_grad(
    [by_mean, by_rstd]: [Option<&Tensor>; 2],
    input: &Tensor,
    [mean, rstd]: [&Tensor; 2],
) -> Result<Tensor> {
    let groups = [mean.shape()[0], mean.shape()[1], 1];
    let size = input.shape()[1] / groups[1] * input.shape()[2..].iter().product::<i64>();
    let rows = input.to_dtype(mean.dtype())?.reshape(&[groups[0], groups[1], size])?;
    let of_group = |t: &Tensor| t.reshape(&groups)?.over(size as f64);
    let mut total = match by_mean {
        Some(grad) => of_group(grad)?.expand(rows.shape(), false)?,
        None => rows.times(0)?,
    };
    if let Some(grad) = by_rstd {
        let slope = of_group(&rstd.mul(rstd)?.mul(rstd)?.mul(grad)?)?;
        total = total.sub(&rows.sub(&mean.reshape(&groups)?)?.mul(&slope)?)?;
    }
    total.reshape(input.shape())?.to_dtype(input.dtype())
}
