//! Batching rules of ops along dimensions: with the batch in front, dimensions are counted one further.

use super::values::Values;
use super::{behind, ints};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Outputs, TensorVec, Value};
use crate::tensor::shape::wrap_dim;
use crate::{Result, Tensor};

/// The names of arguments that are dimensions.
const DIMS: [&str; 6] = ["dim", "dims", "dim0", "dim1", "dim2", "dimension"];
/// The names of arguments that are the sizes of a result.
const SIZES: [&str; 3] = ["sizes", "input_sizes", "input_size"];

/// The arguments with the batch dimension in front of each tensor, at least one further dimension in each, and
/// dimensions increased by one. `rank` is that of the tensor whose dimensions are meant.
pub(super) fn shifted(call: &BatchedCall<'_>, rank: usize) -> Result<Values> {
    let mut values = call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if tensor.ndim() == 0 { front.unsqueeze(-1) } else { Ok(front) }
    })?;
    let further = |dim: i64| Ok(wrap_dim(dim, rank)? as i64 + 1);
    for (info, value) in values.each() {
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

/// Removes the dimension that a 0-dimensional tensor was given.
pub(super) fn narrowed(outputs: Outputs) -> Result<Outputs> {
    // (A reduction may have removed it already.)
    let narrow = |t: Tensor| if t.ndim() > 1 { t.squeeze_dim(1) } else { Ok(t) };
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(narrow(tensor)?),
        Outputs::Tensors(all) => {
            Outputs::Tensors(all.into_iter().map(narrow).collect::<Result<TensorVec>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}

/// The rule of ops whose results have the shape of `like`.
fn along_those_of(call: &BatchedCall<'_>, like: &Tensor) -> Result<Outcome> {
    let rank = call.subject()?.ndim();
    let outputs = call.run(&shifted(call, rank)?)?;
    let narrow = like.ndim() == 0 && !call.writes();
    Ok(Outcome::Batched(if narrow { narrowed(outputs)? } else { outputs }))
}

/// The rule of ops along dimensions of the first tensor, whose shape (or part of it) the results have.
pub fn along(call: &BatchedCall<'_>) -> Result<Outcome> {
    along_those_of(call, call.subject()?)
}

/// The rule of `gather`, whose results have the shape of the index.
pub(crate) fn gather(call: &BatchedCall<'_>, index: &Tensor) -> Result<Outcome> {
    along_those_of(call, index)
}

/// The rule of `scatter` and its overloads, whose results have the shape of the tensor that is written to.
pub(crate) fn scatter(call: &BatchedCall<'_>) -> Result<Outcome> {
    along(call)
}

/// The rule of `glu`, along one dimension, which is halved.
pub(crate) fn glu(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    if self_.ndim() == 0 {
        // (Refused as it is without batch.)
        return super::one_by_one(call);
    }
    along(call)
}

/// The rule of `topk`, which picks a number whatever `k` is.
pub(crate) fn topk(call: &BatchedCall<'_>, self_: &Tensor, k: i64) -> Result<Outcome> {
    if self_.ndim() > 0 || k > 0 {
        return along(call);
    }
    let [values, indices] = call.front(self_)?.unsqueeze(1)?.topk(1, 1, true, true)?;
    Ok(Outcome::Batched(narrowed(Outputs::Tensors([values, indices].into_iter().collect()))?))
}

/// The rule of `cat`: all tensors are given the batch dimension.
pub(crate) fn joined(call: &BatchedCall<'_>, tensors: &[Tensor], dim: i64) -> Result<Outcome> {
    let is_legacy = |t: &Tensor| t.ndim() == 1 && t.numel() == 0;
    let kept: Vec<&Tensor> = if tensors.iter().all(|t| t.ndim() == tensors[0].ndim()) {
        tensors.iter().collect()
    } else {
        tensors.iter().filter(|t| !is_legacy(t)).collect()
    };
    if kept.is_empty() || kept.iter().any(|t| t.ndim() == 0) {
        return super::one_by_one(call);
    }
    let dim = wrap_dim(dim, kept[0].ndim())? as i64 + 1;
    let fronts = kept.iter().map(|t| call.front(t)).collect::<Result<Vec<_>>>()?;
    Ok(crate::ops::shape::join::cat(&fronts, dim)?.into())
}

/// The rule of `stack`: all tensors are given the batch dimension, and the result has one dimension more.
pub(crate) fn stacked(call: &BatchedCall<'_>, tensors: &[Tensor], dim: i64) -> Result<Outcome> {
    let Some(first) = tensors.first() else { return super::one_by_one(call) };
    let dim = wrap_dim(dim, first.ndim() + 1)? as i64 + 1;
    let fronts = tensors.iter().map(|t| call.front(t)).collect::<Result<Vec<_>>>()?;
    Ok(crate::ops::shape::join::stack(&fronts, dim)?.into())
}

/// The rule of `roll`, which without dimensions rolls the flattened examples.
pub(crate) fn roll(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    shifts: &[i64],
    dims: &[i64],
) -> Result<Outcome> {
    if !dims.is_empty() {
        return along(call);
    }
    let flat = call.front(self_)?.reshape(&[call.size, self_.numel()])?;
    Ok(flat.roll(shifts, &[1])?.reshape(&behind(call.size, self_.shape()))?.into())
}

/// The rule of `repeat`: new dimensions come after the batch.
pub(crate) fn repeat(call: &BatchedCall<'_>, self_: &Tensor, repeats: &[i64]) -> Result<Outcome> {
    if repeats.len() < self_.ndim() {
        return super::one_by_one(call);
    }
    let wide = super::widened(&call.front(self_)?, repeats.len())?;
    Ok(wide.repeat(&behind(1, repeats))?.into())
}

/// The tensors with the batch dimension in front; 0-dimensional ones, of which there are some if `rank` is 0, are given
/// a further dimension.
fn fronts(call: &BatchedCall<'_>, rank: usize) -> Result<Values> {
    call.values(&mut |_, tensor| {
        let front = call.front(tensor)?;
        if rank == 0 { front.unsqueeze(-1) } else { Ok(front) }
    })
}

/// The rule of `_select_along`, whose indices lack the selected dimension unless it was kept.
pub(crate) fn picked(call: &BatchedCall<'_>, self_: &Tensor, dim: i64) -> Result<Outcome> {
    let rank = self_.ndim();
    let mut values = fronts(call, rank)?;
    values.set("dim", wrap_dim(dim, rank)? as i64 + 1);
    run_picked(call, rank, values)
}

/// The rule of the gradient of `_select_along`.
pub(crate) fn picked_backward(call: &BatchedCall<'_>, dim: i64, sizes: &[i64]) -> Result<Outcome> {
    let rank = sizes.len();
    let mut values = fronts(call, rank)?;
    values.set("dim", wrap_dim(dim, rank)? as i64 + 1);
    let mut all = behind(call.size, sizes);
    if rank == 0 {
        all.push(1);
    }
    values.set("sizes", ints(&all));
    run_picked(call, rank, values)
}

fn run_picked(call: &BatchedCall<'_>, rank: usize, mut values: Values) -> Result<Outcome> {
    if rank > 0 {
        return call.run(&values).map(Outcome::Batched);
    }
    values.set("keepdim", true);
    Ok(Outcome::Batched(narrowed(call.run(&values)?)?))
}

/// The rule of the gradient of `unfold`.
pub(crate) fn windows(
    call: &BatchedCall<'_>,
    grad_in: &Tensor,
    input_sizes: &[i64],
    dim: i64,
    size: i64,
    step: i64,
) -> Result<Outcome> {
    let front = call.front(grad_in)?;
    let mut all = behind(call.size, input_sizes);
    let dim = wrap_dim(dim, input_sizes.len())? as i64 + 1;
    if !input_sizes.is_empty() {
        return Ok(front.unfold_backward(&all, dim, size, step)?.into());
    }
    all.push(1);
    Ok(front.unsqueeze(1)?.unfold_backward(&all, dim, size, step)?.squeeze_dim(1)?.into())
}
