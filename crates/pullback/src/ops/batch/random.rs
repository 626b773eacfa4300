//! Random ops within a level: refused, drawn for each example, or drawn once for all.

use super::{behind, ints};
use crate::dispatch::batch::{Call, Outcome, Randomness};
use crate::dispatch::{Outputs, Value};
use crate::error::bail;
use crate::{Result, Tensor};

/// By the randomness of the level.
pub(crate) fn random(call: &Call<'_>) -> Result<Outcome> {
    match call.randomness {
        Randomness::Error => bail!(
            runtime,
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        ),
        Randomness::Different => different(call),
        Randomness::Same => same(call),
    }
}

/// Numbers of its own for each example.
fn different(call: &Call<'_>) -> Result<Outcome> {
    let size = call.place("size");
    match call.def.name {
        "randperm" => return one_by_one(call),
        "multinomial" if call.tensor(0).ndim() != 1 => return one_by_one(call),
        // (The batch would be taken for the simplex, or for the other's dimension.)
        "_sample_dirichlet" if call.tensor(0).ndim() == 0 => return one_by_one(call),
        "binomial" if call.tensor(0).ndim() != call.tensor(1).ndim() => return one_by_one(call),
        _ => {}
    }
    if call.writes() || call.def.schema().is_inplace() {
        if call.physical(call.tensor(0)).is_none() {
            return Err(super::unsupported(
                call,
                "called in place on an unbatched tensor: vmap: We do not support calling in-place random operations with different inplace randomness on an unbatched tensor. Use the form that gives a new tensor, or randomness='same'",
            ));
        }
        let target = call.target()?;
        let mut values = call.values(&mut |_, tensor| call.front(tensor))?;
        values[0] = Value::Tensor(target);
        return write(call, &values);
    }
    let mut values = call.values(&mut |_, tensor| dense_front(call, tensor))?;
    if let Some(index) = size {
        values[index] = ints(&behind(call.size, call.ints(index)));
    }
    super::call(call.def, &values).map(Outcome::Batched)
}

fn write(call: &Call<'_>, values: &[Value]) -> Result<Outcome> {
    let args: Vec<_> = values.iter().map(Value::as_arg).collect();
    let written = crate::autograd::call_inplace(call.def, &args)?;
    Ok(written.into())
}

/// (New tensors are laid out as this one: repeated, its elements would share memory.)
fn dense_front(call: &Call<'_>, tensor: &Tensor) -> Result<Tensor> {
    match call.physical(tensor) {
        Some(physical) => Ok(physical),
        None => call.front(tensor)?.clone_tensor(Some(crate::MemoryFormat::Contiguous)),
    }
}

fn one_by_one(call: &Call<'_>) -> Result<Outcome> {
    let mut each = Vec::new();
    for example in 0..call.size {
        let values = call.values(&mut |_, tensor| match call.physical(tensor) {
            Some(physical) => physical.select(0, example),
            None => Ok(tensor.clone()),
        })?;
        each.push(super::call(call.def, &values)?.one());
    }
    Ok(crate::ops::shape::join::stack(&each, 0)?.into())
}

/// The same numbers for all examples.
fn same(call: &Call<'_>) -> Result<Outcome> {
    let mut is_batched = false;
    crate::dispatch::each_tensor(call.args, |t| is_batched |= call.physical(t).is_some());
    if !is_batched {
        let values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
        if call.writes() || call.def.schema().is_inplace() {
            let args: Vec<_> = values.iter().map(Value::as_arg).collect();
            let written = crate::autograd::call_inplace(call.def, &args)?;
            return Ok(Outcome::Same(Outputs::One(written)));
        }
        return super::call(call.def, &values).map(Outcome::Same);
    }
    let name = call.def.name;
    let first = || Tensor::empty_of(call.tensor(0).shape(), call.tensor(0).dtype());
    if name.ends_with("_like") {
        let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
        values[0] = Value::Tensor(first()?);
        return super::call(call.def, &values).map(Outcome::Same);
    }
    if name == "native_dropout" {
        let input = call.front(call.tensor(0))?;
        let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
        values[0] = Value::Tensor(first()?.ones_like()?);
        let drawn = super::call(call.def, &values)?.tensors();
        let mask = drawn[1].unsqueeze(0)?.expand(input.shape(), false)?;
        let outputs = smallvec::smallvec![input.mul(&drawn[0])?, mask];
        return Ok(Outcome::Batched(Outputs::Tensors(outputs)));
    }
    if (call.writes() || call.def.schema().is_inplace()) && call.args.len() > 1 {
        let is_more =
            call.args[1..].iter().any(|arg| matches!(arg, crate::dispatch::Arg::Tensor(_)));
        if !is_more {
            // Drawn for one example, written to all.
            let one = first()?;
            let mut values: Vec<Value> =
                call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
            values[0] = Value::Tensor(one.clone());
            write(call, &values)?;
            let target = call.target()?;
            target.copy_(&one, false)?;
            return Ok(target.into());
        }
    }
    bail!(
        runtime,
        "Vmap does not currently support same randomness with a batched tensor input: what {name}() draws depends on each example. Use randomness='different'"
    )
}
