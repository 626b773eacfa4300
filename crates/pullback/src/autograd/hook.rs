//! Hooks: what a user may have done with gradients as they pass.
//!
//! Order for one node: tensor hooks, retain-grad, node pre-hooks, the node itself, node post-hooks.
//! Hooks of one kind run in the order of registration; each sees what the one before made of the gradient.

use crate::dispatch::Grads;
use crate::{Result, Tensor};
use std::any::Any;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Sees the gradient of one tensor (`None` if nothing arrived) and may give another in the place of one that is there.
pub type TensorHook = Arc<dyn Fn(Option<&Tensor>) -> Result<Option<Tensor>> + Send + Sync>;
/// Sees a node's inputs and may give others.
pub type PreHook = Arc<dyn Fn(&Grads) -> Result<Option<Grads>> + Send + Sync>;
/// Sees a node's outputs and inputs and may give other outputs.
pub type PostHook = Arc<dyn Fn(&Grads, &Grads) -> Result<Option<Grads>> + Send + Sync>;
/// Sees a leaf whose `.grad` was just updated.
pub type AccumulateHook = Arc<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

static IDS: AtomicU64 = AtomicU64::new(0);

/// Names a hook for removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct HookId(u64);

pub(crate) fn next_id() -> HookId {
    HookId(IDS.fetch_add(1, Relaxed))
}

/// The hooks of one node.
#[derive(Default)]
pub(super) struct Hooks {
    /// Tensor hooks with the input they belong to.
    pub(super) tensor: Vec<(HookId, u32, TensorHook)>,
    /// Inputs whose gradient a tensor retains.
    pub(super) retain: Vec<(u32, crate::tensor::WeakTensor)>,
    pub(super) pre: Vec<(HookId, PreHook)>,
    pub(super) post: Vec<(HookId, PostHook)>,
    /// Where the Python object that knows the hooks from Python is; null when it is gone.
    python: Weak<AtomicPtr<()>>,
    /// What is noted down of the node.
    note: Option<Arc<dyn Any + Send + Sync>>,
}

impl super::node::Inner {
    /// Takes all hooks away if `is_due`, asked when nobody can be adding one.
    pub(super) fn take_hooks_if(&self, is_due: impl FnOnce() -> bool) -> Option<Box<Hooks>> {
        let mut hooks = self.hooks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !is_due() {
            return None;
        }
        self.has_hooks.store(false, std::sync::atomic::Ordering::Release);
        hooks.take()
    }
}

impl super::Node {
    fn with_hooks<R>(&self, f: impl FnOnce(&mut Hooks) -> R) -> R {
        let mut hooks = self.0.hooks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let result = f(hooks.get_or_insert_with(Box::default));
        self.0.has_hooks.store(true, std::sync::atomic::Ordering::Release);
        result
    }
    /// Lets `hook` see, and replace, the gradient of output `nr`, which the node must have.
    pub fn add_tensor_hook(&self, nr: u32, hook: TensorHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.tensor.push((id, nr, hook)));
        id
    }
    pub(super) fn remove_retain(&self, tensor: &Tensor) {
        self.with_hooks(|h| {
            h.retain.retain(|(_, t)| t.upgrade().is_some_and(|t| !t.is_same(tensor)));
        });
    }
    pub(super) fn add_retain(&self, nr: u32, tensor: &Tensor) {
        self.with_hooks(|h| h.retain.push((nr, tensor.downgrade())));
    }
    /// Lets `hook` see, and replace, the node's inputs.
    pub fn register_prehook(&self, hook: PreHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.pre.push((id, hook)));
        id
    }
    /// Lets `hook` see, and replace, the node's outputs.
    pub fn register_hook(&self, hook: PostHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.post.push((id, hook)));
        id
    }
    /// The tensor hooks of output `nr`.
    pub(super) fn tensor_hooks(&self, nr: u32) -> Vec<(HookId, TensorHook)> {
        if !self.0.has_hooks.load(std::sync::atomic::Ordering::Acquire) {
            return Vec::new();
        }
        self.with_hooks(|h| {
            let of_output = h.tensor.iter().filter(|(_, of, _)| *of == nr);
            of_output.map(|(id, _, hook)| (*id, hook.clone())).collect()
        })
    }
    /// Where the Python object that knows the node's hooks from Python is, for the Python face.
    pub fn python_hooks(&self) -> Option<Arc<AtomicPtr<()>>> {
        if !self.0.has_hooks.load(std::sync::atomic::Ordering::Acquire) {
            return None;
        }
        self.with_hooks(|h| h.python.upgrade())
    }
    /// Says where it is.
    pub fn set_python_hooks(&self, place: &Arc<AtomicPtr<()>>) {
        self.with_hooks(|h| h.python = Arc::downgrade(place));
    }
    /// What was noted down of the node by whoever set it: where it was made, for anomaly mode.
    pub fn note(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        if !self.0.has_hooks.load(std::sync::atomic::Ordering::Acquire) {
            return None;
        }
        self.with_hooks(|h| h.note.clone())
    }
    /// Notes something down, in the place of what was.
    pub fn set_note(&self, note: Arc<dyn Any + Send + Sync>) {
        drop(self.with_hooks(|h| h.note.replace(note)));
    }
    /// Forgets a hook; unknown ids are ignored.
    pub fn remove_hook(&self, id: HookId) {
        self.with_hooks(|h| {
            h.tensor.retain(|(i, ..)| *i != id);
            h.pre.retain(|(i, _)| *i != id);
            h.post.retain(|(i, _)| *i != id);
        });
    }

    /// Tensor hooks and retain-grad: they run even if the node itself does not.
    pub(super) fn run_tensor_hooks(&self, grads: &mut Grads) -> Result<()> {
        let (tensor, retain): (Vec<_>, Vec<_>) = self.with_hooks(|h| {
            let retain = h.retain.iter().filter_map(|(nr, t)| Some((*nr, t.upgrade()?))).collect();
            (h.tensor.iter().map(|(_, nr, hook)| (*nr, hook.clone())).collect(), retain)
        });
        for (nr, hook) in tensor {
            run_tensor_hook(&hook, &mut grads[nr as usize])?;
        }
        for (nr, tensor) in retain {
            if let Some(grad) = &grads[nr as usize] {
                super::leaf::retain(&tensor, grad)?;
            }
        }
        Ok(())
    }
    pub(super) fn pre_hooks(&self) -> Vec<PreHook> {
        self.with_hooks(|h| h.pre.iter().map(|(_, hook)| hook.clone()).collect())
    }
    pub(super) fn has_post_hooks(&self) -> bool {
        self.with_hooks(|h| !h.post.is_empty())
    }
    pub(super) fn post_hooks(&self) -> Vec<PostHook> {
        self.with_hooks(|h| h.post.iter().map(|(_, hook)| hook.clone()).collect())
    }
}

/// Runs one hook on the gradient of one tensor.
pub(super) fn run_tensor_hook(hook: &TensorHook, grad: &mut Option<Tensor>) -> Result<()> {
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

/// Refuses a gradient that a hook gave in another shape or dtype.
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
