//! Rules of ops on images: the batch becomes part of the images' own batch dimension, or of their channels.

use super::{behind, ints};
use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{Arg, OpDef, Outputs, TensorVec, Value};
use crate::{Dims, Result, Tensor};

/// Ops that look at the last `spatial` dimensions, behind a channel and perhaps a batch dimension.
fn image(call: &Call<'_>, spatial: usize) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let folds = tensor.ndim() == spatial + 2;
    if !folds && tensor.ndim() != spatial + 1 {
        return super::one_by_one(call);
    }
    let mut values = call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if folds { front.flatten(0, 1) } else { Ok(front) }
    })?;
    for (value, info) in values.iter_mut().zip(call.def.args) {
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

/// Images of one dimension.
pub(crate) fn image1(call: &Call<'_>) -> Result<Outcome> {
    image(call, 1)
}
/// Of two.
pub(crate) fn image2(call: &Call<'_>) -> Result<Outcome> {
    image(call, 2)
}
/// Of one, with a batch dimension always: whatever has none is for the op to refuse.
pub(crate) fn batches1(call: &Call<'_>) -> Result<Outcome> {
    if call.tensor(0).ndim() == 3 { image(call, 1) } else { super::one_by_one(call) }
}
/// Of three, with a batch dimension always.
pub(crate) fn batches3(call: &Call<'_>) -> Result<Outcome> {
    if call.tensor(0).ndim() == 5 { image(call, 3) } else { super::one_by_one(call) }
}
/// Of two, with a batch dimension always: whatever has none is for the op to refuse.
pub(crate) fn batches2(call: &Call<'_>) -> Result<Outcome> {
    if call.tensor(0).ndim() == 4 { image(call, 2) } else { super::one_by_one(call) }
}
/// Of three.
pub(crate) fn image3(call: &Call<'_>) -> Result<Outcome> {
    image(call, 3)
}

/// Ops of one tensor that leave its first dimension alone, whatever its rank: the batch becomes part of that one.
pub(crate) fn folded(call: &Call<'_>) -> Result<Outcome> {
    let Some(&each) = call.tensor(0).shape().first() else { return super::one_by_one(call) };
    let values = call.values(&mut |_, tensor| call.front(tensor)?.flatten(0, 1))?;
    let outputs = call.run(&values)?;
    Ok(outputs.one().unflatten(0, &[call.size, each])?.into())
}

/// Fractional pooling of `spatial` dimensions: an image and the numbers for it become one of many.
fn fractional(call: &Call<'_>, spatial: usize) -> Result<Outcome> {
    const NUMBERS: usize = 3;
    let (tensor, numbers) = (call.tensor(0), call.tensor(NUMBERS));
    let folds = tensor.ndim() == spatial + 2;
    let each = if folds { tensor.shape()[0] } else { 1 };
    let fits = folds || tensor.ndim() == spatial + 1;
    if !fits || numbers.ndim() != 3 || numbers.shape()[0] < each {
        return super::one_by_one(call);
    }
    let values = call.values(&mut |index, tensor| {
        let front = call.front(tensor)?;
        match index {
            NUMBERS => front.narrow(1, 0, each)?.flatten(0, 1),
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

/// Fractional pooling of images.
pub(crate) fn fractional2(call: &Call<'_>) -> Result<Outcome> {
    fractional(call, 2)
}
/// Of volumes.
pub(crate) fn fractional3(call: &Call<'_>) -> Result<Outcome> {
    fractional(call, 3)
}

/// Attention of queries, keys and values (B, H, L, E): the batch is part of B. A mask (L, S) that all share stays as it is; others
/// become one for each of the merged B.
pub(crate) fn attention(call: &Call<'_>) -> Result<Outcome> {
    const MASK: usize = 4;
    let query = call.tensor(0);
    let is_known = |mask: &Tensor| matches!(mask.ndim(), 2 | 4);
    if query.ndim() != 4 || !call.tensor_if_any(MASK).is_none_or(is_known) {
        return super::one_by_one(call);
    }
    let each = query.shape()[0];
    let values = call.values(&mut |index, tensor| {
        if index != MASK {
            return call.front(tensor)?.flatten(0, 1);
        }
        if tensor.ndim() == 2 && !call.is_batched(MASK) {
            return Ok(tensor.clone());
        }
        let mut front = call.front(tensor)?;
        if tensor.ndim() == 2 {
            front = front.unsqueeze(1)?.unsqueeze(1)?;
        }
        let mut shape = Dims::from_slice(front.shape());
        shape[1] = each;
        front.expand(&shape, false)?.flatten(0, 1)
    })?;
    let Outputs::Tensors(all) = call.run(&values)? else { return super::one_by_one(call) };
    let unfold = |t: Tensor| t.unflatten(0, &[call.size, each]);
    let all = all.into_iter().map(unfold).collect::<Result<TensorVec>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(all)))
}

/// The batch put in front of dimension `dim` of each example, and merged with it.
fn merged(physical: &Tensor, dim: i64) -> Result<Tensor> {
    physical.movedim_int(0, dim)?.flatten(dim, dim + 1)
}

/// The batch taken out of dimension `dim`, of which it is the outer part.
fn parted(merged: &Tensor, size: i64, dim: i64) -> Result<Tensor> {
    let each = if size == 0 { 0 } else { merged.shape()[dim as usize] / size };
    merged.unflatten(dim, &[size, each])?.movedim_int(dim, 0)
}

/// The output channels of a weight in groups, with the batch inside of each group.
fn merged_in_groups(physical: &Tensor, dim: i64, groups: i64) -> Result<Tensor> {
    if groups == 1 {
        return merged(physical, dim);
    }
    // (batch, .., groups * each, ..) -> (.., groups * batch * each, ..)
    let each = physical.shape()[dim as usize + 1] / groups;
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

const GROUPS: usize = 8;

fn with(call: &Call<'_>, first: Tensor, second: Tensor, groups: i64) -> Vec<Value> {
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(first);
    values[1] = Value::Tensor(second);
    values[GROUPS] = Value::Int(groups);
    values
}

fn one(def: &'static OpDef, values: &[Value]) -> Result<Tensor> {
    super::call(def, values).map(Outputs::one)
}

/// `convolution`: examples are further images if all have one weight, further channels if not.
pub(crate) fn convolution(call: &Call<'_>) -> Result<Outcome> {
    let (input, weight) = (call.tensor(0), call.tensor(1));
    let (groups, transposed) = (call.int(GROUPS), call.flag(6));
    if call.tensor_if_any(2).is_some_and(|bias| bias.ndim() != 1) || weight.ndim() < 2 {
        return super::one_by_one(call);
    }
    let result = match (call.physical(input), call.physical(weight)) {
        (Some(input), None) => {
            let mut values = with(call, input.flatten(0, 1)?, weight.clone(), groups);
            values[2] = Value::None;
            parted(&one(call.def, &values)?, call.size, 0)?
        }
        (None, Some(weight)) if !transposed || groups == 1 => {
            let channels = i64::from(transposed);
            let mut values =
                with(call, input.clone(), merged_in_groups(&weight, channels, groups)?, groups);
            values[2] = Value::None;
            parted_in_groups(&one(call.def, &values)?, call.size, 1, groups)?
        }
        _ => {
            let (input, weight) = (call.front(input)?, call.front(weight)?);
            let mut values =
                with(call, merged(&input, 1)?, weight.flatten(0, 1)?, groups * call.size);
            values[2] = Value::None;
            parted(&one(call.def, &values)?, call.size, 1)?
        }
    };
    let Arg::Tensor(bias) = call.args[2] else { return Ok(result.into()) };
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

/// The sizes of an example, with the batch in dimension `dim`.
fn grown(sizes: &[i64], dim: usize, size: i64) -> Value {
    let mut all = Dims::from_slice(sizes);
    all[dim] *= size;
    ints(&all)
}

/// The gradient of `convolution` with respect to its input.
pub(crate) fn convolution_backward_input(call: &Call<'_>) -> Result<Outcome> {
    let (grad, weight) = (call.tensor(0), call.tensor(1));
    let groups = call.int(GROUPS);
    if let (Some(grad), None) = (call.physical(grad), call.physical(weight)) {
        let mut values = with(call, grad.flatten(0, 1)?, weight.clone(), groups);
        values[2] = grown(call.ints(2), 0, call.size);
        return Ok(parted(&one(call.def, &values)?, call.size, 0)?.into());
    }
    let (grad, weight) = (call.front(grad)?, call.front(weight)?);
    let mut values = with(call, merged(&grad, 1)?, weight.flatten(0, 1)?, groups * call.size);
    values[2] = grown(call.ints(2), 1, call.size);
    Ok(parted(&one(call.def, &values)?, call.size, 1)?.into())
}

/// The gradient of `convolution` with respect to its weight: one for each example.
pub(crate) fn convolution_backward_weight(call: &Call<'_>) -> Result<Outcome> {
    let (grad, input) = (call.front(call.tensor(0))?, call.front(call.tensor(1))?);
    let groups = call.int(GROUPS) * call.size;
    let mut values = with(call, merged(&grad, 1)?, merged(&input, 1)?, groups);
    values[2] = grown(call.ints(2), 0, call.size);
    Ok(parted(&one(call.def, &values)?, call.size, 0)?.into())
}
