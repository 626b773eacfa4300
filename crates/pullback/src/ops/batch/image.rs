//! Batching rules of ops on images: the batch is merged with the images' own batch dimension, or with their channels.

use super::values::Values;
use super::{behind, ints};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Outputs, TensorVec, Value};
use crate::{Dims, Result, Tensor};

/// The rule of ops over the last `spatial` dimensions, after a channel and perhaps a batch dimension.
fn image(call: &BatchedCall<'_>, spatial: usize) -> Result<Outcome> {
    let tensor = call.subject()?;
    let folds = tensor.ndim() == spatial + 2;
    if !folds && tensor.ndim() != spatial + 1 {
        return super::one_by_one(call);
    }
    let mut values = call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if folds { front.flatten(0, 1) } else { Ok(front) }
    })?;
    for (info, value) in values.each() {
        if info.name == "input_size"
            && let Value::Ints(sizes) = value
        {
            let mut all = behind(call.size, sizes);
            if folds {
                let first = all.remove(0);
                all[0] *= first;
            }
            *value = ints(&all);
        }
    }
    let outputs = call.run(&values)?;
    if !folds {
        return Ok(Outcome::Batched(outputs));
    }
    let each = tensor.shape()[0];
    let unfold = |t: Tensor| t.unflatten(0, &[call.size, each]);
    Ok(Outcome::Batched(match outputs {
        Outputs::One(t) => Outputs::One(unfold(t)?),
        Outputs::Tensors(all) => {
            Outputs::Tensors(all.into_iter().map(unfold).collect::<Result<TensorVec>>()?)
        }
        number @ Outputs::Number(_) => number,
    }))
}

/// The rule of ops on images of one spatial dimension.
pub(crate) fn image1(call: &BatchedCall<'_>) -> Result<Outcome> {
    image(call, 1)
}
/// The rule of ops on images of two spatial dimensions.
pub(crate) fn image2(call: &BatchedCall<'_>) -> Result<Outcome> {
    image(call, 2)
}
/// The rule of ops on batches of images of one spatial dimension; an op itself refuses images without a batch.
pub(crate) fn batches1(call: &BatchedCall<'_>) -> Result<Outcome> {
    if call.subject()?.ndim() == 3 { image(call, 1) } else { super::one_by_one(call) }
}
/// The rule of ops on batches of images of three spatial dimensions.
pub(crate) fn batches3(call: &BatchedCall<'_>) -> Result<Outcome> {
    if call.subject()?.ndim() == 5 { image(call, 3) } else { super::one_by_one(call) }
}
/// The rule of ops on batches of images of two spatial dimensions; an op itself refuses images without a batch.
pub(crate) fn batches2(call: &BatchedCall<'_>) -> Result<Outcome> {
    if call.subject()?.ndim() == 4 { image(call, 2) } else { super::one_by_one(call) }
}
/// The rule of ops on images of three spatial dimensions.
pub(crate) fn image3(call: &BatchedCall<'_>) -> Result<Outcome> {
    image(call, 3)
}

/// The rule of ops on one tensor that leave its first dimension unchanged, whatever its rank: the batch is merged with
/// that dimension.
pub(crate) fn folded(call: &BatchedCall<'_>) -> Result<Outcome> {
    let Some(&each) = call.subject()?.shape().first() else { return super::one_by_one(call) };
    let values = call.values(&mut |_, tensor| call.front(tensor)?.flatten(0, 1))?;
    let outputs = call.run(&values)?;
    Ok(outputs.one().unflatten(0, &[call.size, each])?.into())
}

/// The rule of fractional pooling of `spatial` dimensions: images and random samples are merged with the batch.
fn fractional(
    call: &BatchedCall<'_>,
    tensor: &Tensor,
    numbers: &Tensor,
    spatial: usize,
) -> Result<Outcome> {
    let folds = tensor.ndim() == spatial + 2;
    let each = if folds { tensor.shape()[0] } else { 1 };
    let fits = folds || tensor.ndim() == spatial + 1;
    if !fits || numbers.ndim() != 3 || numbers.shape()[0] < each {
        return super::one_by_one(call);
    }
    let values = call.values(&mut |info, tensor| {
        let front = call.front(tensor)?;
        match info.name {
            "random_samples" => front.narrow(1, 0, each)?.flatten(0, 1),
            _ if folds => front.flatten(0, 1),
            _ => Ok(front),
        }
    })?;
    let outputs = call.run(&values)?;
    let Outputs::Tensors(all) = outputs else { return Ok(Outcome::Batched(outputs)) };
    let unfold = |t: Tensor| if folds { t.unflatten(0, &[call.size, each]) } else { Ok(t) };
    let all = all.into_iter().map(unfold).collect::<Result<TensorVec>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(all)))
}

/// The rule of fractional pooling of images.
pub(crate) fn fractional2(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    random_samples: &Tensor,
) -> Result<Outcome> {
    fractional(call, self_, random_samples, 2)
}
/// The rule of fractional pooling of volumes.
pub(crate) fn fractional3(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    random_samples: &Tensor,
) -> Result<Outcome> {
    fractional(call, self_, random_samples, 3)
}

/// The rule of attention of queries, keys and values (B, H, L, E): the batch is merged with B. A mask (L, S) that all
/// examples share stays as it is; other masks are expanded to one for each of the merged B.
pub(crate) fn attention(
    call: &BatchedCall<'_>,
    query: &Tensor,
    attn_mask: Option<&Tensor>,
) -> Result<Outcome> {
    let is_known = |mask: &Tensor| matches!(mask.ndim(), 2 | 4);
    if query.ndim() != 4 || !attn_mask.is_none_or(is_known) {
        return super::one_by_one(call);
    }
    let each = query.shape()[0];
    let mut values = call.values(&mut |info, tensor| match info.name {
        "attn_mask" => Ok(tensor.clone()),
        _ => call.front(tensor)?.flatten(0, 1),
    })?;
    if let Some(mask) = attn_mask
        && (mask.ndim() != 2 || call.is_batched(mask))
    {
        let mut front = call.front(mask)?;
        if mask.ndim() == 2 {
            front = front.unsqueeze(1)?.unsqueeze(1)?;
        }
        let mut shape = Dims::from_slice(front.shape());
        shape[1] = each;
        values.set("attn_mask", front.expand(&shape, false)?.flatten(0, 1)?);
    }
    let Outputs::Tensors(all) = call.run(&values)? else { return super::one_by_one(call) };
    let unfold = |t: Tensor| t.unflatten(0, &[call.size, each]);
    let all = all.into_iter().map(unfold).collect::<Result<TensorVec>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(all)))
}

/// Moves the batch in front of dimension `dim` of each example, and merges it with that dimension.
fn merged(physical: &Tensor, dim: i64) -> Result<Tensor> {
    physical.movedim_int(0, dim)?.flatten(dim, dim + 1)
}

/// Splits the batch off dimension `dim`, of which it is the outer part.
fn parted(merged: &Tensor, size: i64, dim: i64) -> Result<Tensor> {
    let each = if size == 0 { 0 } else { merged.shape()[dim as usize] / size };
    merged.unflatten(dim, &[size, each])?.movedim_int(dim, 0)
}

/// Merges the batch with the output channels of a weight, inside of each group.
fn merged_in_groups(physical: &Tensor, dim: i64, groups: i64) -> Result<Tensor> {
    if groups == 1 {
        return merged(physical, dim);
    }
    // (batch, .., groups * each, ..) -> (.., groups * batch * each, ..)
    let each = physical.shape()[dim as usize + 1] / groups.max(1);
    let apart = physical.unflatten(dim + 1, &[groups, each])?;
    apart.movedim_int(0, dim + 1)?.flatten(dim, dim + 2)
}

fn parted_in_groups(merged: &Tensor, size: i64, dim: i64, groups: i64) -> Result<Tensor> {
    if groups == 1 {
        return parted(merged, size, dim);
    }
    let each = merged.shape()[dim as usize] / (groups * size).max(1);
    let apart = merged.unflatten(dim, &[groups, size, each])?;
    apart.movedim_int(dim + 1, 0)?.flatten(dim + 1, dim + 2)
}

/// The arguments with the two tensors and the number of groups replaced.
fn with(call: &BatchedCall<'_>, tensors: [(&str, Tensor); 2], groups: i64) -> Values {
    let mut values = Values::given(call);
    for (name, tensor) in tensors {
        values.set(name, tensor);
    }
    values.set("groups", groups);
    values
}

/// The rule of `convolution`: examples become further images if all share one weight, else further channels.
pub(crate) fn convolution(
    call: &BatchedCall<'_>,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    transposed: bool,
    groups: i64,
) -> Result<Outcome> {
    if bias.is_some_and(|bias| bias.ndim() != 1) || weight.ndim() < 2 {
        return super::one_by_one(call);
    }
    let computed = |input: Tensor, weight: Tensor, groups: i64| -> Result<Tensor> {
        let mut values = with(call, [("input", input), ("weight", weight)], groups);
        values.set("bias", Value::None);
        values.call().map(Outputs::one)
    };
    let size = call.size;
    let result = match (call.physical(input), call.physical(weight)) {
        (Some(input), None) => {
            parted(&computed(input.flatten(0, 1)?, weight.clone(), groups)?, size, 0)?
        }
        (None, Some(weight)) if !transposed || groups == 1 => {
            let weight = merged_in_groups(&weight, i64::from(transposed), groups)?;
            parted_in_groups(&computed(input.clone(), weight, groups)?, size, 1, groups)?
        }
        _ => {
            let (input, weight) = (call.front(input)?, call.front(weight)?);
            let (input, weight) = (merged(&input, 1)?, weight.flatten(0, 1)?);
            parted(&computed(input, weight, groups * size)?, size, 1)?
        }
    };
    let Some(bias) = bias else { return Ok(result.into()) };
    if Some(&bias.shape()[0]) != result.shape().get(2) {
        return super::one_by_one(call);
    }
    // (batch, images, channels, ..) + (batch, 1, channels, 1, ..)
    let mut bias = call.front(bias)?.unsqueeze(1)?;
    while bias.ndim() < result.ndim() {
        bias = bias.unsqueeze(-1)?;
    }
    Ok(result.add(&bias)?.into())
}

/// The sizes of an example, with the batch merged with dimension `dim`.
fn grown(sizes: &[i64], dim: usize, size: i64) -> Value {
    let mut all = Dims::from_slice(sizes);
    all[dim] *= size;
    ints(&all)
}

/// The rule of the gradient of `convolution` with respect to its input.
pub(crate) fn convolution_backward_input(
    call: &BatchedCall<'_>,
    grad_output: &Tensor,
    weight: &Tensor,
    input_size: &[i64],
    groups: i64,
) -> Result<Outcome> {
    let computed = |grad: Tensor, weight: Tensor, groups: i64, dim: usize| -> Result<Outcome> {
        let mut values = with(call, [("grad_output", grad), ("weight", weight)], groups);
        values.set("input_size", grown(input_size, dim, call.size));
        Ok(parted(&values.call()?.one(), call.size, dim as i64)?.into())
    };
    if let (Some(grad), None) = (call.physical(grad_output), call.physical(weight)) {
        return computed(grad.flatten(0, 1)?, weight.clone(), groups, 0);
    }
    let (grad, weight) = (call.front(grad_output)?, call.front(weight)?);
    computed(merged(&grad, 1)?, weight.flatten(0, 1)?, groups * call.size, 1)
}

/// The rule of the gradient of `convolution` with respect to its weight, which differs for each example.
pub(crate) fn convolution_backward_weight(
    call: &BatchedCall<'_>,
    grad_output: &Tensor,
    input: &Tensor,
    weight_size: &[i64],
    groups: i64,
) -> Result<Outcome> {
    let (grad, input) = (call.front(grad_output)?, call.front(input)?);
    let tensors = [("grad_output", merged(&grad, 1)?), ("input", merged(&input, 1)?)];
    let mut values = with(call, tensors, groups * call.size);
    values.set("weight_size", grown(weight_size, 0, call.size));
    Ok(parted(&values.call()?.one(), call.size, 0)?.into())
}
