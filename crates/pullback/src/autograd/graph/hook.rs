//! Hooks, by which a program observes or replaces gradients as they pass.
//!
//! Order for one node: tensor hooks, retain-grad, node pre-hooks, the node itself, node post-hooks.
//! Hooks of one kind run in the order of registration; each sees what the one before made of the gradient.

use crate::dispatch::Grads;
use crate::{Result, Tensor};
use std::any::Any;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// A hook on the gradient of one tensor (`None` if nothing arrived); it may return a replacement for a gradient that is there.
pub type TensorHook = Arc<dyn Fn(Option<&Tensor>) -> Result<Option<Tensor>> + Send + Sync>;
/// A hook that sees a node's inputs and may return replacements.
pub type PreHook = Arc<dyn Fn(&Grads) -> Result<Option<Grads>> + Send + Sync>;
/// A hook that sees a node's outputs and inputs and may return replacements of the outputs.
pub type PostHook = Arc<dyn Fn(&Grads, &Grads) -> Result<Option<Grads>> + Send + Sync>;
/// A hook that sees a leaf whose `.grad` was just updated.
pub type AccumulateHook = Arc<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

static IDS: AtomicU64 = AtomicU64::new(0);

/// The identity of a hook, for its removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HookId(u64);

pub(crate) fn next_id() -> HookId {
    HookId(IDS.fetch_add(1, Relaxed))
}

/// The hooks of one node.
#[derive(Default)]
pub(in crate::autograd) struct Hooks {
    /// Tensor hooks with the input they belong to.
    pub(in crate::autograd) tensor: Vec<(HookId, u32, TensorHook)>,
    /// Inputs whose gradients are retained, with their tensors.
    pub(in crate::autograd) retain: Vec<(u32, crate::tensor::WeakTensor)>,
    pub(in crate::autograd) pre: Vec<(HookId, PreHook)>,
    pub(in crate::autograd) post: Vec<(HookId, PostHook)>,
    /// The address of the Python object that owns the Python hooks; null when that is gone.
    pub(in crate::autograd) python: Weak<AtomicPtr<()>>,
    /// A note on the node, set by the binding.
    pub(in crate::autograd) note: Option<Arc<dyn Any + Send + Sync>>,
}

/// Runs one hook on the gradient of one tensor.
pub(in crate::autograd) fn run_tensor_hook(
    hook: &TensorHook,
    grad: &mut Option<Tensor>,
) -> Result<()> {
    let Some(new) = hook(grad.as_ref())? else { return Ok(()) };
    let Some(old) = grad else {
        crate::error::bail!(
            runtime,
            "can't replace an empty gradient with a non-empty value (tensor hook)"
        );
    };
    check_replacement(old, &new, "hook")?;
    *grad = Some(new);
    Ok(())
}

/// Refuses a hook's replacement of another shape or dtype.
pub(crate) fn check_replacement(old: &Tensor, new: &Tensor, name: &str) -> Result<()> {
    use crate::error::ensure;
    ensure!(
        old.dtype() == new.dtype() && old.layout() == new.layout(),
        runtime,
        "hook '{name}' has changed the type of value (was torch.{}Tensor got torch.{}Tensor)",
        old.dtype().scalar_name(),
        new.dtype().scalar_name()
    );
    ensure!(
        old.shape() == new.shape(),
        runtime,
        "hook '{name}' has changed the size of value (was {:?} got {:?})",
        old.shape(),
        new.shape()
    );
    Ok(())
}
