//! The rarely used part of a tensor's autograd state: its gradient, hooks, tangents, and the batch of a batched tensor.
//!
//! The rest lies in the tensor itself (`tensor/raw.rs`). Invariant: while it is locked nothing is dropped and no op runs.

use super::replay::Replay;
use crate::autograd::graph::hook::{AccumulateHook, HookId, TensorHook};
use crate::autograd::graph::node::Node;
use crate::autograd::thread::dispatch_mode::TorchDispatch;
use crate::autograd::thread::level::KeptTangents;
use crate::{DType, Tensor};
use std::sync::{Arc, MutexGuard, PoisonError};

/// The state of a batched tensor.
pub(in crate::autograd) struct BatchedState {
    /// The physical tensor, with the batch as its first dimension.
    pub(in crate::autograd) physical: Tensor,
    /// The number of the level at which the tensor is batched.
    pub(in crate::autograd) level: u64,
}

/// The dtype that a program requested for a tensor's gradient.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::autograd) enum GradDType {
    /// The dtype of the tensor.
    #[default]
    Own,
    /// This dtype.
    Other(DType),
    /// No dtype in particular: gradients stay as they arrive.
    Any,
}

/// The rarely used part of a tensor's autograd state.
#[derive(Default)]
pub struct AutogradMeta {
    pub(in crate::autograd) grad: Option<Tensor>,
    /// The dtype that gradients are converted to.
    pub(in crate::autograd) grad_dtype: GradDType,
    pub(in crate::autograd) hooks: Vec<(HookId, TensorHook)>,
    pub(in crate::autograd) accumulate_hooks: Vec<(HookId, AccumulateHook)>,
    /// The tangents of forward mode (see `tangent`).
    pub(in crate::autograd) tangents: KeptTangents,
    /// The tensor that a view's tangent comes from, where that is not its base.
    pub(in crate::autograd) forward_base: Option<Tensor>,
    /// The physical tensor and level of a batched tensor.
    pub(in crate::autograd) batched: Option<Arc<BatchedState>>,
    /// The class that computes the ops on the tensor, if it has one.
    pub(in crate::autograd) torch_dispatch: Option<Arc<dyn TorchDispatch>>,
    /// The replay of a view, where its geometry does not determine how it is made of its base.
    pub(in crate::autograd) replay: Option<Arc<Replay>>,
    /// Another leaf's accumulator, where gradients of this one go.
    pub(in crate::autograd) shared_accumulator: Option<Node>,
    /// Whether the tensor ever had a `.grad` with a history (see `cycle`).
    is_noted: bool,
}

#[inline]
pub(in crate::autograd) fn lock(tensor: &Tensor) -> MutexGuard<'_, AutogradMeta> {
    tensor.meta().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `see` with the tensors that this part of the state holds, besides the lock; `None` if it is locked.
pub(in crate::autograd) fn each_held(tensor: &Tensor, see: &mut dyn FnMut(Tensor)) -> Option<()> {
    if tensor.meta_if_any().is_some() {
        let meta = tensor.meta().try_lock().ok()?;
        [&meta.grad, &meta.forward_base].into_iter().flatten().cloned().for_each(see);
    }
    Some(())
}

/// Whether the tensor ever had a `.grad` with a history.
pub(in crate::autograd) fn is_noted(tensor: &Tensor) -> bool {
    tensor.meta_if_any().is_some() && lock(tensor).is_noted
}

/// Marks the tensor as one that had a `.grad` with a history; returns whether it was marked before.
pub(in crate::autograd) fn set_noted(tensor: &Tensor) -> bool {
    std::mem::replace(&mut lock(tensor).is_noted, true)
}

/// Removes the gradient and returns it.
pub(in crate::autograd) fn take_grad(tensor: &Tensor) -> Option<Tensor> {
    tensor.meta_if_any().and_then(|_| lock(tensor).grad.take())
}
