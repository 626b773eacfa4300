//! The rarely used part of what a tensor keeps for autograd: its gradient, hooks, tangents, what it is batched of.
//!
//! The rest lies in the tensor itself (`tensor/raw.rs`). Invariant: nothing is dropped, and no op runs, while it is locked.

use super::replay::Replay;
use crate::Tensor;
use crate::autograd::graph::hook::{AccumulateHook, HookId, TensorHook};
use crate::autograd::graph::node::Node;
use crate::autograd::thread::dispatch_mode::TorchDispatch;
use crate::autograd::thread::level::KeptTangents;
use std::sync::{Arc, MutexGuard, PoisonError};

/// What a batched tensor keeps.
pub(in crate::autograd) struct Batched {
    /// The tensor with the batch dimension, its first.
    pub(in crate::autograd) physical: Tensor,
    /// The number of its level.
    pub(in crate::autograd) level: u64,
}

/// The rarely used part of a tensor's autograd state.
#[derive(Default)]
pub struct AutogradMeta {
    pub(in crate::autograd) grad: Option<Tensor>,
    pub(in crate::autograd) hooks: Vec<(HookId, TensorHook)>,
    pub(in crate::autograd) accumulate_hooks: Vec<(HookId, AccumulateHook)>,
    /// The tangents of forward mode (see `tangent`).
    pub(in crate::autograd) tangents: KeptTangents,
    /// The tensor that a view's tangent comes from, where that is not its base.
    pub(in crate::autograd) forward_base: Option<Tensor>,
    /// What a batched tensor shows a part of.
    pub(in crate::autograd) batched: Option<Arc<Batched>>,
    /// What computes the ops on it, where its class does.
    pub(in crate::autograd) torch_dispatch: Option<Arc<dyn TorchDispatch>>,
    /// How a view is made of its base, where its geometry does not say that.
    pub(in crate::autograd) replay: Option<Arc<Replay>>,
    /// Another leaf's accumulator, where gradients of this one go.
    pub(in crate::autograd) shared_accumulator: Option<Node>,
    /// Had a `.grad` with a history once (see `cycle`).
    is_noted: bool,
}

#[inline]
pub(in crate::autograd) fn lock(tensor: &Tensor) -> MutexGuard<'_, AutogradMeta> {
    tensor.meta().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the tensors that the rarely used part of the state is known to hold; `None` if it is in use at the moment.
pub(in crate::autograd) fn each_held(tensor: &Tensor, see: &mut dyn FnMut(Tensor)) -> Option<()> {
    if tensor.meta_if_any().is_some() {
        let meta = tensor.meta().try_lock().ok()?;
        [&meta.grad, &meta.forward_base].into_iter().flatten().cloned().for_each(see);
    }
    Some(())
}

/// Whether it had a `.grad` with a history once.
pub(in crate::autograd) fn is_noted(tensor: &Tensor) -> bool {
    tensor.meta_if_any().is_some() && lock(tensor).is_noted
}

/// Says that it had one; whether that was said before.
pub(in crate::autograd) fn set_noted(tensor: &Tensor) -> bool {
    std::mem::replace(&mut lock(tensor).is_noted, true)
}

/// Takes the gradient away.
pub(in crate::autograd) fn take_grad(tensor: &Tensor) -> Option<Tensor> {
    tensor.meta_if_any().and_then(|_| lock(tensor).grad.take())
}
