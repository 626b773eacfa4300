//! Rules of ops along dimensions: these are counted one further.

use super::{behind, ints};
use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{Arg, Outputs, TensorVec, Value};
use crate::tensor::shape::wrap_dim;
use crate::{Result, Tensor};

/// What arguments that count dimensions are called.
const DIMS: [&str; 6] = ["dim", "dims", "dim0", "dim1", "dim2", "dimension"];
/// What those are called that list the sizes of a result.
const SIZES: [&str; 3] = ["sizes", "input_sizes", "input_size"];

/// The same arguments, each tensor with the batch in front and of at least one further dimension, dimensions counted one
/// further. `rank` is that of the tensor which the dimensions are those of.
pub(super) fn shifted(call: &Call<'_>, rank: usize) -> Result<Vec<Value>> {
    let mut values = call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if tensor.ndim() == 0 { front.unsqueeze(-1) } else { Ok(front) }
    })?;
    let further = |dim: i64| Ok(wrap_dim(dim, rank)? as i64 + 1);
    for (value, info) in values.iter_mut().zip(call.def.args) {
        if DIMS.contains(&info.name) {
            match value {
                Value::Int(dim) => *dim = further(*dim)?,
                Value::Ints(dims) => {
                    *dims = dims.iter().map(|&dim| further(dim)).collect::<Result<_>>()?;
                }
                _ => {}
            }
        } else if SIZES.contains(&info.name)
            && let Value::Ints(sizes) = value
        {
            let mut all = behind(call.size, sizes);
            if sizes.is_empty() {
                all.push(1);
            }
            *value = ints(&all);
        }
    }
    Ok(values)
}

/// Takes the dimension away that a tensor without any was given.
pub(super) fn narrowed(outputs: Outputs) -> Result<Outputs> {
    // (A reduction may have taken it already.)
    let narrow = |t: Tensor| if t.ndim() > 1 { t.squeeze_dim(1) } else { Ok(t) };
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(narrow(tensor)?),
        Outputs::Tensors(all) => {
            Outputs::Tensors(all.into_iter().map(narrow).collect::<Result<TensorVec>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}

fn along_those_of(call: &Call<'_>, index: usize) -> Result<Outcome> {
    let rank = call.tensor(0).ndim();
    let values = shifted(call, rank)?;
    let outputs = call.run(&values)?;
    let narrow = call.tensor(index).ndim() == 0 && !call.writes();
    Ok(Outcome::Batched(if narrow { narrowed(outputs)? } else { outputs }))
}

/// Along dimensions of the first tensor, whose shape (or part of it) the results have.
pub(crate) fn along(call: &Call<'_>) -> Result<Outcome> {
    along_those_of(call, 0)
}

/// `gather`: results have the shape of the index.
pub(crate) fn gather(call: &Call<'_>) -> Result<Outcome> {
    along_those_of(call, call.place("index").unwrap_or(0))
}

/// `scatter` and its kin: results have the shape of what is written to.
pub(crate) fn scatter(call: &Call<'_>) -> Result<Outcome> {
    along_those_of(call, 0)
}

/// `glu`: along one dimension, of half the size.
pub(crate) fn glu(call: &Call<'_>) -> Result<Outcome> {
    if call.tensor(0).ndim() == 0 {
        // (Refused as it is without batch.)
        return super::one_by_one(call);
    }
    along(call)
}

/// `cat`: all tensors have the batch.
pub(crate) fn joined(call: &Call<'_>) -> Result<Outcome> {
    joined_along(call, false)
}

/// `stack`: all tensors have the batch, and the result has a dimension more.
pub(crate) fn stacked(call: &Call<'_>) -> Result<Outcome> {
    joined_along(call, true)
}

fn joined_along(call: &Call<'_>, is_stack: bool) -> Result<Outcome> {
    let Arg::Tensors(list) = call.args[0] else { return super::one_by_one(call) };
    let is_legacy = |t: &Tensor| t.ndim() == 1 && t.numel() == 0;
    let kept: Vec<&Tensor> = if is_stack || list.iter().all(|t| t.ndim() == list[0].ndim()) {
        list.iter().collect()
    } else {
        list.iter().filter(|t| !is_legacy(t)).collect()
    };
    if kept.is_empty() || !is_stack && kept.iter().any(|t| t.ndim() == 0) {
        return super::one_by_one(call);
    }
    let rank = kept[0].ndim() + usize::from(is_stack);
    let dim = wrap_dim(call.int(1), rank)? as i64 + 1;
    let fronts = kept.iter().map(|t| call.front(t)).collect::<Result<Vec<_>>>()?;
    super::call(call.def, &[Value::Tensors(fronts), Value::Int(dim)]).map(Outcome::Batched)
}

/// `roll`: without dimensions, along all elements in a row.
pub(crate) fn roll(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let front = call.front(tensor)?;
    if !call.ints(2).is_empty() {
        return along(call);
    }
    let flat = front.reshape(&[call.size, tensor.numel()])?;
    let rolled = flat.roll(call.ints(1), &[1])?;
    Ok(rolled.reshape(&behind(call.size, tensor.shape()))?.into())
}

/// `repeat`: new dimensions come behind the batch.
pub(crate) fn repeat(call: &Call<'_>) -> Result<Outcome> {
    let (tensor, repeats) = (call.tensor(0), call.ints(1));
    if repeats.len() < tensor.ndim() {
        return super::one_by_one(call);
    }
    let wide = super::widened(&call.front(tensor)?, repeats.len())?;
    Ok(wide.repeat(&behind(1, repeats))?.into())
}

/// `_select_along` and its gradient, whose places lack the dimension that they are along, unless it was kept.
pub(crate) fn picked(call: &Call<'_>) -> Result<Outcome> {
    let sizes = call.place("sizes");
    let rank = sizes.map_or_else(|| call.tensor(0).ndim(), |index| call.ints(index).len());
    let mut values = call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if rank == 0 { front.unsqueeze(-1) } else { Ok(front) }
    })?;
    values[1] = Value::Int(wrap_dim(call.int(1), rank)? as i64 + 1);
    if let Some(index) = sizes {
        let mut all = behind(call.size, call.ints(index));
        if rank == 0 {
            all.push(1);
        }
        values[index] = ints(&all);
    }
    if rank == 0
        && let Some(index) = call.place("keepdim")
    {
        values[index] = Value::Bool(true);
    }
    let outputs = call.run(&values)?;
    Ok(Outcome::Batched(if rank == 0 { narrowed(outputs)? } else { outputs }))
}

/// The gradient of `unfold`.
pub(crate) fn windows(call: &Call<'_>) -> Result<Outcome> {
    // (grad_in, input_sizes, dim, size, step)
    let sizes = call.ints(1);
    let front = call.front(call.tensor(0))?;
    let mut all = behind(call.size, sizes);
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(if sizes.is_empty() { front.unsqueeze(1)? } else { front });
    if sizes.is_empty() {
        all.push(1);
    }
    values[1] = ints(&all);
    values[2] = Value::Int(wrap_dim(call.int(2), sizes.len())? as i64 + 1);
    let outputs = call.run(&values)?;
    Ok(Outcome::Batched(if sizes.is_empty() { narrowed(outputs)? } else { outputs }))
}
