//! Batching rules of reductions: those over all elements run along the flattened examples.

use super::values::Values;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Arg, OpDef, Outputs, TensorVec, Value};
use crate::tensor::shape::{wrap_dim, wrap_dims};
use crate::{Dims, Result, Tensor};

/// The rule of reductions along dimensions, or over all elements if none is given.
pub fn reduction(call: &BatchedCall<'_>) -> Result<Outcome> {
    reduced(call, Empty::Everything, None)
}

/// The rule [`reduction`] for ops that reduce nothing if the list of dimensions is empty.
pub(crate) fn reduction_of_listed(call: &BatchedCall<'_>) -> Result<Outcome> {
    reduced(call, Empty::Nothing, None)
}

/// The rule of reductions over all elements: `along` is the op along one dimension, whose first result is used.
pub(crate) fn reduction_by(call: &BatchedCall<'_>, along: &'static OpDef) -> Result<Outcome> {
    reduced(call, Empty::Everything, Some(along))
}

/// What an empty list of dimensions means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Everything,
    Nothing,
}

fn reduced(call: &BatchedCall<'_>, empty: Empty, along: Option<&'static OpDef>) -> Result<Outcome> {
    let tensor = call.subject()?;
    let rank = tensor.ndim();
    let physical = call.front(tensor)?;
    let chosen: Option<Dims> = match call.named("dim") {
        Some(Arg::Int(dim)) => Some(Dims::from_slice(&[dim])),
        Some(Arg::Ints(dims)) if !dims.is_empty() || empty == Empty::Nothing => Some(dims.into()),
        _ => None,
    };
    let mut values = Values::given(call);
    let (Some(chosen), true) = (&chosen, rank > 0) else {
        // The dimensions are checked as the caller gave them.
        wrap_dims(chosen.as_deref(), rank)?;
        let flat = physical.reshape(&[call.size, tensor.numel()])?;
        let outputs = if values.has("dim") {
            values.set_subject(flat);
            values.set_dims("dim", &[1]);
            values.set_if_any("keepdim", false);
            values.call()?
        } else {
            whole(call, along, flat)?
        };
        let keeps = matches!(call.named("keepdim"), Some(Arg::Bool(true)));
        let mut shape = vec![call.size];
        if keeps {
            shape.resize(rank + 1, 1);
        }
        return Ok(Outcome::Batched(reshaped(outputs, &shape)?));
    };
    values.set_subject(physical);
    let further = |dim: &i64| Ok(wrap_dim(*dim, rank)? as i64 + 1);
    values.set_dims("dim", &chosen.iter().map(further).collect::<Result<Dims>>()?);
    values.call().map(Outcome::Batched)
}

/// Runs an op without dimensions over flattened examples.
fn whole(call: &BatchedCall<'_>, along: Option<&'static OpDef>, flat: Tensor) -> Result<Outputs> {
    let Some(def) = along else {
        return Err(super::unsupported(call, "has no batching rule"));
    };
    let mut with = Values::none(def);
    with.set_subject(flat);
    with.set_dims("dim", &[1]);
    with.set_if_any("keepdim", false);
    if let Some(dtype) = call.named("dtype") {
        with.set_if_any("dtype", Value::from_arg(dtype));
    }
    let first = with.call()?.tensors().remove(0);
    Ok(Outputs::One(first))
}

fn reshaped(outputs: Outputs, shape: &[i64]) -> Result<Outputs> {
    Ok(match outputs {
        Outputs::One(tensor) => Outputs::One(tensor.reshape(shape)?),
        Outputs::Tensors(all) => {
            Outputs::Tensors(all.iter().map(|t| t.reshape(shape)).collect::<Result<TensorVec>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}
