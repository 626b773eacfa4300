//! Batching rules of norms: each example has its own statistics; batched weights and biases are applied afterwards.

use super::one_by_one;
use super::values::Values;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Outputs, TensorVec, Value};
use crate::{Result, Tensor};

/// Weight and bias of a norm.
#[derive(Clone, Copy)]
struct Affine<'a> {
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
}

impl Affine<'_> {
    /// Whether weight or bias is batched: then they are left out of the op, and applied to its
    /// result.
    fn is_batched(self, call: &BatchedCall<'_>) -> bool {
        call.is_batched(self.weight) || call.is_batched(self.bias)
    }
    /// Applies weight and bias to the first output, each after `place` has given it the right
    /// shape.
    fn applied(
        self,
        mut outputs: TensorVec,
        fit: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<TensorVec> {
        if let Some(weight) = self.weight {
            outputs[0] = outputs[0].mul(&fit(weight)?)?;
        }
        if let Some(bias) = self.bias {
            outputs[0] = outputs[0].add(&fit(bias)?)?;
        }
        Ok(outputs)
    }
}

/// The arguments without weight and bias.
fn without_affine(call: &BatchedCall<'_>) -> Values {
    let mut values = Values::given(call);
    values.set_if_any("weight", Value::None);
    values.set_if_any("bias", Value::None);
    values
}

/// The rule of layer norm, whose leading dimensions are arbitrary.
pub(crate) fn layer_norm(
    call: &BatchedCall<'_>,
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Outcome> {
    let affine = Affine { weight, bias };
    let fits = |t: &Tensor| t.shape() == normalized_shape;
    let all_fit = weight.is_none_or(fits) && bias.is_none_or(fits);
    if !input.shape().ends_with(normalized_shape) || !all_fit {
        return one_by_one(call);
    }
    let is_apart = affine.is_batched(call);
    let mut values = if is_apart { without_affine(call) } else { Values::given(call) };
    values.set("input", call.front(input)?);
    let mut outputs = values.call()?.tensors();
    if is_apart {
        outputs = affine.applied(outputs, |t| call.aligned(t, input.ndim()))?;
    }
    Ok(Outcome::Batched(Outputs::Tensors(outputs)))
}

/// The rule of RMS norm, which has no bias.
pub(crate) fn rms_norm(
    call: &BatchedCall<'_>,
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
) -> Result<Outcome> {
    layer_norm(call, input, normalized_shape, weight, None)
}

/// Weight or bias of each channel in a shape that broadcasts to images: `(batch or 1, 1, channels, 1, ..)`.
fn of_channels(call: &BatchedCall<'_>, tensor: &Tensor, rank: usize) -> Result<Tensor> {
    let mut wide = call.front(tensor)?.unsqueeze(1)?;
    while wide.ndim() < rank + 1 {
        wide = wide.unsqueeze(-1)?;
    }
    Ok(wide)
}

/// Whether those of these tensors that are given have one element for each channel.
fn are_of_channels(tensors: &[Option<&Tensor>], channels: i64) -> bool {
    tensors.iter().flatten().all(|t| t.shape() == [channels])
}

/// The rule of batch norm: examples become further channels.
pub(crate) fn batch_norm(
    call: &BatchedCall<'_>,
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    training: bool,
) -> Result<Outcome> {
    let Some(&channels) = input.shape().get(1) else { return one_by_one(call) };
    if !are_of_channels(&[weight, bias, running_mean, running_var], channels) {
        return one_by_one(call);
    }
    let running = [("running_mean", running_mean), ("running_var", running_var)];
    // Running statistics that are written in training must be batched, to hold those of each example.
    let is_shared = |tensor: &Tensor| !call.is_batched(tensor);
    if training && running.iter().any(|(_, tensor)| tensor.is_some_and(is_shared)) {
        return Err(super::unsupported(
            call,
            "in training writes to running_mean and running_var, which are not batched: give each example its own, or set track_running_stats=False",
        ));
    }
    // Weight and bias have fewer channels than the merged input, so they are always applied afterwards.
    let mut values = without_affine(call);
    values.set("input", call.front(input)?.movedim_int(0, 1)?.flatten(1, 2)?);
    for (name, tensor) in running {
        if let Some(tensor) = tensor {
            values.set(name, call.front(tensor)?.flatten(0, 1)?);
        }
    }
    let outputs = values.call()?.tensors();
    let mut parted = TensorVec::new();
    for (nr, output) in outputs.into_iter().enumerate() {
        parted.push(if nr == 0 {
            output.unflatten(1, &[call.size, channels])?.movedim_int(1, 0)?
        } else if output.numel() == 0 {
            output.unsqueeze(0)?.expand(&super::behind(call.size, output.shape()), false)?
        } else {
            output.unflatten(0, &[call.size, channels])?
        });
    }
    let outputs =
        Affine { weight, bias }.applied(parted, |t| of_channels(call, t, input.ndim()))?;
    Ok(Outcome::Batched(Outputs::Tensors(outputs)))
}

/// The rule of group norm: examples become further images. `n` and `c` are the numbers of images and of channels.
pub(crate) fn group_norm(
    call: &BatchedCall<'_>,
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    n: i64,
    c: i64,
) -> Result<Outcome> {
    let affine = Affine { weight, bias };
    if input.ndim() < 2 || !are_of_channels(&[weight, bias], c) {
        return one_by_one(call);
    }
    let is_apart = affine.is_batched(call);
    let mut values = if is_apart { without_affine(call) } else { Values::given(call) };
    values.set("input", call.front(input)?.flatten(0, 1)?);
    values.set("N", n * call.size);
    let images = input.shape()[0];
    let part = |t: Tensor| t.unflatten(0, &[call.size, images]);
    let mut outputs =
        values.call()?.tensors().into_iter().map(part).collect::<Result<TensorVec>>()?;
    if is_apart {
        outputs = affine.applied(outputs, |t| of_channels(call, t, input.ndim()))?;
    }
    Ok(Outcome::Batched(Outputs::Tensors(outputs)))
}
