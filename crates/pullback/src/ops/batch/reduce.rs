//! Reductions: those of all elements are along the elements of each example in a row.

use super::ints;
use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{OpDef, Outputs, TensorVec, Value};
use crate::tensor::shape::{wrap_dim, wrap_dims};
use crate::{Result, Tensor};

/// Reductions along dimensions; of all elements where none is chosen.
pub(crate) fn reduction(call: &Call<'_>) -> Result<Outcome> {
    reduced(call, Empty::Everything, None)
}

/// As [`reduction`], of ops that reduce nothing where the list of dimensions is empty.
pub(crate) fn reduction_of_listed(call: &Call<'_>) -> Result<Outcome> {
    reduced(call, Empty::Nothing, None)
}

/// Reductions of all elements: `along` is the op along one dimension, whose first result is the one.
pub(crate) fn reduction_by(call: &Call<'_>, along: &'static OpDef) -> Result<Outcome> {
    reduced(call, Empty::Everything, Some(along))
}

/// What an empty list of dimensions means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Everything,
    Nothing,
}

fn reduced(call: &Call<'_>, empty: Empty, along: Option<&'static OpDef>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let rank = tensor.ndim();
    let physical = call.front(tensor)?;
    let dim = call.place("dim");
    let keeps = call.place("keepdim").is_some_and(|index| call.flag(index));
    let chosen: Option<Vec<i64>> = match dim.map(|index| &call.args[index]) {
        Some(crate::dispatch::Arg::Int(dim)) => Some(vec![*dim]),
        Some(crate::dispatch::Arg::Ints(dims)) if !dims.is_empty() || empty == Empty::Nothing => {
            Some(dims.to_vec())
        }
        _ => None,
    };
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    let (Some(chosen), true) = (&chosen, rank > 0) else {
        // Checked as the caller gave them.
        wrap_dims(chosen.as_deref(), rank)?;
        let flat = physical.reshape(&[call.size, tensor.numel()])?;
        let outputs = match dim {
            Some(index) => {
                values[0] = Value::Tensor(flat);
                values[index] = one_dim(call.def, index);
                if let Some(index) = call.place("keepdim") {
                    values[index] = Value::Bool(false);
                }
                super::call(call.def, &values)?
            }
            None => whole(call, along, &flat, &values)?,
        };
        let mut shape = vec![call.size];
        if keeps {
            shape.resize(rank + 1, 1);
        }
        return Ok(Outcome::Batched(reshaped(outputs, &shape)?));
    };
    values[0] = Value::Tensor(physical);
    let further = |dim: &i64| Ok(wrap_dim(*dim, rank)? as i64 + 1);
    // bounded: by the rank.
    let further: Vec<i64> = chosen.iter().map(further).collect::<Result<_>>()?;
    let index = dim.unwrap_or(0);
    values[index] = match &values[index] {
        Value::Int(_) => Value::Int(further[0]),
        _ => ints(&further),
    };
    super::call(call.def, &values).map(Outcome::Batched)
}

/// The dimension of the elements of each example, as the op's argument takes it.
fn one_dim(def: &OpDef, index: usize) -> Value {
    if def.schema().args[index].ty.list.is_some() { ints(&[1]) } else { Value::Int(1) }
}

/// An op that has no dimension to choose.
fn whole(
    call: &Call<'_>,
    along: Option<&'static OpDef>,
    flat: &Tensor,
    values: &[Value],
) -> Result<Outputs> {
    let Some(def) = along else {
        return Err(super::unsupported(call, "has no batching rule"));
    };
    let place = |name: &str| def.args.iter().position(|arg| arg.name == name);
    let mut with: Vec<Value> = def.args.iter().map(|_| Value::None).collect();
    with[0] = Value::Tensor(flat.clone());
    if let Some(index) = place("dim") {
        with[index] = one_dim(def, index);
    }
    if let Some(index) = place("keepdim") {
        with[index] = Value::Bool(false);
    }
    if let (Some(to), Some(from)) = (place("dtype"), call.place("dtype")) {
        with[to] = values[from].clone();
    }
    let first = super::call(def, &with)?.tensors().remove(0);
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
