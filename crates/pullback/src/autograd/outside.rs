//! The profiler's layer: a range around the op's call; and around a node that runs.
//!
//! A thread includes the key `Profiler` as long as it is observed, so that an op which nobody observes pays nothing.

use super::Node;
use crate::Result;
use crate::dispatch::{Call, Form, Grads, Outputs};
use crate::prof::{self, Kind, Name};

/// The layer: the range is around all other layers.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let name = match call.form {
        Form::Inplace => Name::Inplace(call.def),
        Form::Functional | Form::Out(_) => Name::Op(call.def),
    };
    let _range = prof::of_op(name, call.args);
    call.next()
}

/// Runs a node as a range of the profiler.
#[cold]
#[inline(never)]
pub(super) fn apply_observed(
    node: &Node,
    grads: Grads,
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Grads> {
    let _range = prof::of_node(Kind::Backward, node, &grads);
    node.apply(grads, wanted)
}
