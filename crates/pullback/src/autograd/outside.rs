//! What is around the call of an op while its thread is observed or autocast is on: the profiler's range, and casts.
//!
//! Both are asked for by one test of the thread's modes ([`mode::is_surrounded`]), so that an op which nothing is around
//! pays for neither. The range is the outer one: casts belong to the op that wants them.

use super::autocast::{self, Paused};
use super::{Node, call_uncast, mode};
use crate::Result;
use crate::dispatch::{Arg, Grads, Kernel, OpDef, Outputs, Traits};
use crate::prof::{self, Kind, Name, Open};
use crate::site::Scope;
use std::panic::Location;

/// Runs the functional form of an op, observed or cast.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn call(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let _site = Scope::of_caller(Location::caller());
    // (An op that has no other form than the one that writes goes on to that, which opens the range.)
    let is_inplace = def.is(Traits::INPLACE_ONLY) && !matches!(def.kernel, Kernel::Composite(_));
    let is_observed = prof::is_observed() && !is_inplace;
    let _range = is_observed.then(|| prof::of_op(Name::Op(def), args));
    if autocast::is_any_enabled() { autocast::call(def, args) } else { plain(def, args) }
}

/// The same without casts, off the way that ops take every day.
#[inline(never)]
#[track_caller]
pub(super) fn plain(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    call_uncast(def, args)
}

/// What is around a form that writes into given tensors, as long as it lives: those run in their own dtypes.
pub(super) struct Outside {
    _paused: Option<Paused>,
    /// Ends last.
    _range: Option<Open>,
}

/// Around the in-place form.
#[inline(always)]
pub(super) fn enter_inplace(def: &'static OpDef, args: &[Arg<'_>]) -> Option<Outside> {
    mode::is_surrounded().then(|| enter(Name::Inplace(def), args))
}

/// Around the form with `out=`.
#[inline(always)]
pub(super) fn enter_out(def: &'static OpDef, args: &[Arg<'_>]) -> Option<Outside> {
    mode::is_surrounded().then(|| enter(Name::Op(def), args))
}

#[cold]
#[inline(never)]
fn enter(name: Name, args: &[Arg<'_>]) -> Outside {
    let range = prof::is_observed().then(|| prof::of_op(name, args));
    Outside { _paused: autocast::pause(), _range: range }
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
