//! Batching rules of random ops: refused, drawn for each example, or drawn once for all, as the level's randomness
//! says.
//!
//! [`random`] is the rule of random ops that name none; the others are those of ops whose draws depend on their
//! arguments in another way. What all have in common is in [`drawn`].

use super::values::Values;
use super::{behind, ints};
use crate::dispatch::batch::{BatchedCall, Outcome, Randomness};
use crate::dispatch::{Arg, Outputs};
use crate::error::bail;
use crate::{Result, Tensor};

/// The rule by the randomness of the level.
pub(crate) fn random(call: &BatchedCall<'_>) -> Result<Outcome> {
    drawn(call, different, same_if_only_written)
}

/// The rule of `rand_like` and other ops that read no element: all examples can share the random numbers.
pub(crate) fn drawn_like(call: &BatchedCall<'_>) -> Result<Outcome> {
    drawn(call, different, |call| {
        let mut values = Values::given(call);
        values.set_subject(unset(call)?);
        values.call().map(Outcome::Same)
    })
}

/// The rule of `native_dropout`, whose mask all examples can share.
pub(crate) fn dropout(call: &BatchedCall<'_>) -> Result<Outcome> {
    drawn(call, different, |call| {
        let input = call.front(call.subject()?)?;
        let mut values = Values::given(call);
        values.set_subject(unset(call)?.ones_like()?);
        let drawn = values.call()?.tensors();
        let mask = drawn[1].unsqueeze(0)?.expand(input.shape(), false)?;
        let outputs = smallvec::smallvec![input.mul(&drawn[0])?, mask];
        Ok(Outcome::Batched(Outputs::Tensors(outputs)))
    })
}

/// The rule of `randperm`: a permutation for each example.
pub(crate) fn permutation(call: &BatchedCall<'_>) -> Result<Outcome> {
    drawn(call, one_by_one, same_if_only_written)
}

/// The rule of `multinomial`, whose examples are one row of weights or several.
pub(crate) fn multinomial(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    drawn(call, if self_.ndim() == 1 { different } else { one_by_one }, same_if_only_written)
}

/// The rule of `_sample_dirichlet`: for 0-dimensional examples the batch would be taken for the simplex.
pub(crate) fn dirichlet(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    drawn(call, if self_.ndim() == 0 { one_by_one } else { different }, same_if_only_written)
}

/// The rule of `binomial`: for tensors of different ranks the batch would be taken for a dimension of the other.
pub(crate) fn binomial(call: &BatchedCall<'_>, count: &Tensor, prob: &Tensor) -> Result<Outcome> {
    let fits = count.ndim() == prob.ndim();
    drawn(call, if fits { different } else { one_by_one }, same_if_only_written)
}

/// A rule for one kind of randomness.
type Draw = fn(&BatchedCall<'_>) -> Result<Outcome>;

/// Calls `each` where each example is to have its own random numbers, and `same` where an argument is batched and all
/// are to share them.
fn drawn(call: &BatchedCall<'_>, each: Draw, same: Draw) -> Result<Outcome> {
    match call.randomness {
        Randomness::Error => bail!(
            runtime,
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        ),
        Randomness::Different => each(call),
        Randomness::Same if has_batched(call) => same(call),
        Randomness::Same => once(call),
    }
}

fn has_batched(call: &BatchedCall<'_>) -> bool {
    let mut is_batched = false;
    crate::dispatch::each_tensor(call.args, |t| is_batched |= call.is_batched(t));
    is_batched
}

/// Whether the call writes into its first argument.
fn writes(call: &BatchedCall<'_>) -> bool {
    call.writes() || call.def.schema().is_inplace()
}

/// Draws random numbers for each example.
fn different(call: &BatchedCall<'_>) -> Result<Outcome> {
    if writes(call) {
        if !call.is_batched(call.subject()?) {
            if has_batched(call) {
                call.target()?;
            }
            return Err(super::unsupported(
                call,
                "called in place on an unbatched tensor: vmap: We do not support calling in-place random operations with different inplace randomness on an unbatched tensor. Use the form that gives a new tensor, or randomness='same'",
            ));
        }
        let mut values = call.values(&mut |_, tensor| call.front(tensor))?;
        values.set_subject(call.target()?);
        return Ok(written(call, &values)?.into());
    }
    let mut values = call.values(&mut |_, tensor| dense_front(call, tensor))?;
    if let Some(Arg::Ints(size)) = call.named("size") {
        values.set("size", ints(&behind(call.size, size)));
    }
    values.call().map(Outcome::Batched)
}

/// Writes into the first of these arguments, and returns it.
fn written(call: &BatchedCall<'_>, values: &Values) -> Result<Tensor> {
    crate::autograd::call_inplace(call.def, &values.args())
}

/// (New tensors take the strides of this one: if it were expanded, their elements would share memory.)
fn dense_front(call: &BatchedCall<'_>, tensor: &Tensor) -> Result<Tensor> {
    match call.physical(tensor) {
        Some(physical) => Ok(physical),
        None => call.front(tensor)?.clone_tensor(Some(crate::MemoryFormat::Contiguous)),
    }
}

fn one_by_one(call: &BatchedCall<'_>) -> Result<Outcome> {
    let mut each = Vec::new();
    for example in 0..call.size {
        let values = call.values(&mut |_, tensor| match call.physical(tensor) {
            Some(physical) => physical.select(0, example),
            None => Ok(tensor.clone()),
        })?;
        each.push(values.call()?.one());
    }
    Ok(crate::ops::shape::join::stack(&each, 0)?.into())
}

/// Draws the random numbers once for all examples, where no argument is batched.
fn once(call: &BatchedCall<'_>) -> Result<Outcome> {
    let values = Values::given(call);
    if writes(call) {
        return Ok(Outcome::Same(Outputs::One(written(call, &values)?)));
    }
    values.call().map(Outcome::Same)
}

/// An uninitialised tensor of the shape and dtype of an example.
fn unset(call: &BatchedCall<'_>) -> Result<Tensor> {
    let example = call.subject()?;
    Tensor::empty_of(example.shape(), example.dtype())
}

/// Draws for one example and writes to all, where the tensor is only written to.
fn same_if_only_written(call: &BatchedCall<'_>) -> Result<Outcome> {
    // (In-place forms of ops that read `self` have tensors of their own: parameters are those of ops that only fill.)
    let only_fills = call.def.schema().is_inplace();
    let is_shared = |arg: &Arg<'_>| match arg {
        Arg::Tensor(parameter) => only_fills && !call.is_batched(*parameter),
        _ => true,
    };
    if writes(call) && call.args.len() > 1 && call.args.iter().skip(1).all(is_shared) {
        let one = unset(call)?;
        let mut values = Values::given(call);
        values.set_subject(one.clone());
        written(call, &values)?;
        let target = call.target()?;
        target.copy_(&one, false)?;
        return Ok(target.into());
    }
    bail!(
        runtime,
        "Vmap does not currently support same randomness with a batched tensor input: what {}() draws depends on each example. Use randomness='different'",
        call.def.name
    )
}
