//! Rules of norms: the statistics are each example's own; weights that are too are applied afterwards.

use super::one_by_one;
use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{Outputs, TensorVec, Value};
use crate::{Result, Tensor};

/// Weight and bias, if an example has its own, leave the op and are applied to its result; `rank` further dimensions.
fn affine(call: &Call<'_>, at: [usize; 2], values: &mut [Value]) -> Option<[Option<Tensor>; 2]> {
    let given = at.map(|index| if index == 0 { None } else { call.tensor_if_any(index).cloned() });
    let is_any = given.iter().flatten().any(|t| call.physical(t).is_some());
    if !is_any {
        return None;
    }
    for index in at.into_iter().filter(|&index| index != 0) {
        values[index] = Value::None;
    }
    Some(given)
}

/// Layer and RMS norm: leading dimensions are free.
pub(crate) fn layer_norm(call: &Call<'_>) -> Result<Outcome> {
    let input = call.tensor(0);
    let normalized = call.ints(1);
    let fits = |t: &Tensor| t.shape() == normalized;
    let parameters = [Some(2), call.place("bias")].into_iter().flatten();
    if !input.shape().ends_with(normalized)
        || !parameters.filter_map(|index| call.tensor_if_any(index)).all(fits)
    {
        return one_by_one(call);
    }
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(call.front(input)?);
    let bias = call.place("bias").unwrap_or(0);
    let affine = affine(call, [2, bias], &mut values);
    let mut outputs = super::call(call.def, &values)?.tensors();
    if let Some([weight, bias]) = affine {
        let rank = input.ndim();
        if let Some(weight) = weight {
            outputs[0] = outputs[0].mul(&call.aligned(&weight, rank)?)?;
        }
        if let Some(bias) = bias {
            outputs[0] = outputs[0].add(&call.aligned(&bias, rank)?)?;
        }
    }
    Ok(Outcome::Batched(Outputs::Tensors(outputs)))
}

/// Weight or bias of each channel, beside images: `(batch or nothing, 1, channels, 1, ..)`.
fn of_channels(call: &Call<'_>, tensor: &Tensor, rank: usize) -> Result<Tensor> {
    let mut wide = call.front(tensor)?.unsqueeze(1)?;
    while wide.ndim() < rank + 1 {
        wide = wide.unsqueeze(-1)?;
    }
    Ok(wide)
}

fn with_affine(
    call: &Call<'_>,
    mut outputs: TensorVec,
    affine: Option<[Option<Tensor>; 2]>,
    rank: usize,
) -> Result<Outcome> {
    if let Some([weight, bias]) = affine {
        if let Some(weight) = weight {
            outputs[0] = outputs[0].mul(&of_channels(call, &weight, rank)?)?;
        }
        if let Some(bias) = bias {
            outputs[0] = outputs[0].add(&of_channels(call, &bias, rank)?)?;
        }
    }
    Ok(Outcome::Batched(Outputs::Tensors(outputs)))
}

/// Whether these arguments, as far as they are there, have an element for each channel.
fn are_of_channels(call: &Call<'_>, places: &[usize], channels: Option<i64>) -> bool {
    let mut tensors = places.iter().filter_map(|&index| call.tensor_if_any(index));
    tensors.all(|t| t.ndim() == 1 && Some(t.shape()[0]) == channels)
}

/// Batch norm: examples are further channels.
pub(crate) fn batch_norm(call: &Call<'_>) -> Result<Outcome> {
    let input = call.tensor(0);
    let channels = input.shape().get(1).copied();
    if channels.is_none() || !are_of_channels(call, &[1, 2, 3, 4], channels) {
        return one_by_one(call);
    }
    let running = [3, 4].map(|index| call.tensor_if_any(index));
    // What is written to in training must have a place for each example.
    let training = call.flag(5);
    if training && running.iter().flatten().any(|t| call.physical(t).is_none()) {
        return Err(super::unsupported(
            call,
            "in training writes to running_mean and running_var, which are not batched: give each example its own, or set track_running_stats=False",
        ));
    }
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    let front = call.front(input)?;
    values[0] = Value::Tensor(front.movedim_int(0, 1)?.flatten(1, 2)?);
    let affine = affine_always(call, &mut values);
    for (index, tensor) in [3, 4].into_iter().zip(running) {
        if let Some(tensor) = tensor {
            values[index] = Value::Tensor(call.front(tensor)?.flatten(0, 1)?);
        }
    }
    let outputs = super::call(call.def, &values)?.tensors();
    let channels = input.shape()[1];
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
    with_affine(call, parted, affine, input.ndim())
}

/// Weight and bias have another number of channels than what is computed: they always come afterwards.
fn affine_always(call: &Call<'_>, values: &mut [Value]) -> Option<[Option<Tensor>; 2]> {
    let given = [1, 2].map(|index| call.tensor_if_any(index).cloned());
    values[1] = Value::None;
    values[2] = Value::None;
    given.iter().any(Option::is_some).then_some(given)
}

/// Group norm: examples are further images.
pub(crate) fn group_norm(call: &Call<'_>) -> Result<Outcome> {
    // (input, weight, bias, N, C, HxW, group, eps)
    let input = call.tensor(0);
    if input.ndim() < 2 || !are_of_channels(call, &[1, 2], Some(call.int(4))) {
        return one_by_one(call);
    }
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(call.front(input)?.flatten(0, 1)?);
    values[3] = Value::Int(call.int(3) * call.size);
    let affine = affine(call, [1, 2], &mut values);
    let outputs = super::call(call.def, &values)?.tensors();
    let images = input.shape()[0];
    let part = |t: Tensor| t.unflatten(0, &[call.size, images]);
    let outputs = outputs.into_iter().map(part).collect::<Result<TensorVec>>()?;
    with_affine(call, outputs, affine, input.ndim())
}
