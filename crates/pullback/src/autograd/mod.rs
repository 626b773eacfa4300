//! Differentiation: nodes, saved values, the engine, leaves, views, modes; tangents of forward mode.
//!
//! The life of a recorded op: `record` makes a node with what its rules need (`saved`) and hangs the
//! outputs onto it (`leaf`); `engine` later runs nodes in reverse order; `leaf` adds to `.grad`. `view` is
//! about tensors that share memory and in-place writes to them. Nothing here names an op, except
//! `arithmetic`, which has the few that the engine itself needs. Start at `node`, then `engine`; for forward mode at
//! `forward`.

mod accumulator;
pub mod anomaly;
mod api;
mod arithmetic;
pub mod autocast;
pub mod batch;
mod blame;
mod call;
mod closure;
pub mod comm;
mod counted;
pub mod custom;
pub mod custom_jvp;
pub mod cycle;
mod detach;
pub mod dispatch_mode;
pub mod engine;
mod fit;
pub mod forward;
pub mod func;
mod function;
pub mod hook;
mod inspect;
mod leaf;
mod level;
mod masked;
pub mod mode;
mod node;
mod numbering;
pub(crate) mod outside;
mod pushforward;
mod record;
mod replay;
mod saved;
pub mod saved_hooks;
pub mod standard;
mod tangent;
mod thread_state;
pub mod torch_dispatch;
pub mod transform;
mod view;
pub mod writes;

pub(crate) use accumulator::AccumulatorSlot;
pub use api::{Options, backward, check_start, grad, grad_of_edges, implicit_start, start};
pub use autocast::{AutocastGuard, no_autocast};
pub(crate) use blame::refused_resize;
pub(crate) use call::layer;
pub use call::{call, call_inplace, call_out, is_unchanged};
pub use closure::{Custom, Results};
pub use function::{Context, Function, Tensors, apply, apply_one};
pub use leaf::Meta;
pub use masked::{MaskedZeros, masked_zeros};
pub use mode::{enable_grad, inference_mode, is_grad_enabled, no_grad};
pub use node::{Backward, Edge, InputMeta, Node, SavedCount, WeakNode, peek_sequence_nr};
pub(crate) use node::{op_name, thread_number};
pub(crate) use pushforward::Pushforward;
pub(crate) use record::{
    BeforeWrite, Refusal, Slots, needed, record, record_constant, record_inplace, record_saved,
    rules_need_self, save_inputs,
};
pub use replay::Visitor;
pub use saved::{SavedTensor, freed, freed_before_hooks};
pub use saved_hooks::{Packed, SavedTensorHooks, saved_tensors_hooks};
pub use thread_state::{Carrier, set_carrier};
pub(crate) use view::{check_inplace, check_out, link_views};

use crate::tensor::Key;
use crate::{Result, Tensor};

/// Writes `source` into `target` with history: the in-place form of a composite op.
pub(crate) fn copy_into(target: &Tensor, source: &Tensor) -> Result<()> {
    arithmetic::copy_in_place(target, source)
}

/// Whether derivatives of what is computed now may be wanted, so that it must be made of ops that have some; or a mode wants to
/// see its ops.
fn needs_derivatives() -> bool {
    mode::is_recording() || (level::is_open() && tangent::is_enabled()) || Key::Python.is_included()
}

/// Whether a rule must be made of ops that have derivatives and batching rules, in the place of one op without: for that reason,
/// or because one of these tensors has its ops computed by its class or for a batch.
pub(crate) fn needs_ops<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> bool {
    needs_derivatives() || tensors.into_iter().flatten().any(Tensor::overrides_ops)
}

/// As [`needs_ops`], of a rule that would otherwise read memory: this must hold what the tensors show, too.
pub(crate) fn needs_ops_to_read<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> bool {
    needs_derivatives() || tensors.into_iter().flatten().any(|tensor| !tensor.keys().is_empty())
}

/// Whether derivatives by this tensor are.
pub(crate) fn needs_derivative_of(tensor: &Tensor) -> bool {
    let is_dual = || level::is_open() && tangent::is_enabled() && tangent::is_dual(tensor);
    (tensor.requires_grad() && mode::is_recording()) || is_dual()
}
