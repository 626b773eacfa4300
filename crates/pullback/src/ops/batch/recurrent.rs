//! The batching rule of recurrent layers and cells with weights that all examples share.
//!
//! With weights of each example a layer is not computed by these ops, but by products and elementwise ops, which have rules
//! of their own (`RecurrentLayer::is_fused`).

use super::{behind, one_by_one};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Arg, Outputs, TensorVec};
use crate::{Result, Tensor};

/// The names of the weights and biases.
const SHARED: [&str; 4] = ["w_ih", "w_hh", "b_ih", "b_hh"];

/// The rule: the examples of the batch become further sequences.
pub(crate) fn recurrent(
    call: &BatchedCall<'_>,
    input: &Tensor,
    hx: &Tensor,
    w_hh: &Tensor,
) -> Result<Outcome> {
    // (Layers have steps, cells have none.)
    let (is_packed, rank) = match call.named("batch_sizes") {
        Some(Arg::Ints(sizes)) => (!sizes.is_empty(), 3),
        _ => (false, 2),
    };
    let is_shared = |name: &&str| !call.is_batched(call.tensor_named(name));
    if is_packed || input.ndim() != rank || w_hh.ndim() != 2 || !SHARED.iter().all(is_shared) {
        return one_by_one(call);
    }
    let (at, each, hidden) = (rank as i64 - 2, input.shape()[rank - 2], w_hh.shape()[1]);
    let sequences = call.size * each;
    let is_state = |t: Option<&Tensor>| t.is_none_or(|t| t.numel() == each * hidden);
    if !is_state(Some(hx)) || !is_state(call.tensor_named("cx")) {
        return one_by_one(call);
    }
    let values = call.values(&mut |info, tensor| match info.name {
        "input" => call.front(tensor)?.movedim_int(0, at)?.flatten(at, at + 1),
        "hx" | "cx" => call.front(tensor)?.reshape(&[sequences, hidden]),
        _ => Ok(tensor.clone()),
    })?;
    let apart = |result: Tensor| {
        if result.ndim() == rank {
            return result.unflatten(at, &[call.size, each])?.movedim_int(at, 0);
        }
        result.reshape(&behind(call.size, hx.shape()))
    };
    Ok(Outcome::Batched(match values.call()? {
        Outputs::One(result) => Outputs::One(apart(result)?),
        outputs => Outputs::Tensors(
            outputs.tensors().into_iter().map(apart).collect::<Result<TensorVec>>()?,
        ),
    }))
}
