//! The hooks of a node: adding, finding and removing them. The engine runs them.

use super::hook::{HookId, Hooks, PostHook, PreHook, TensorHook, next_id};
use super::node::Node;
use crate::Tensor;
use std::any::Any;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};

impl Node {
    /// Calls `f` with the node's hooks, under their lock.
    pub(in crate::autograd) fn with_hooks<R>(&self, f: impl FnOnce(&mut Hooks) -> R) -> R {
        let mut hooks = self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        let result = f(hooks.get_or_insert_with(Box::default));
        self.0.has_hooks.store(true, Release);
        result
    }
    /// Adds a hook that sees, and may replace, the gradient of the node's forward output `nr`,
    /// which must exist.
    pub fn add_tensor_hook(&self, nr: u32, hook: TensorHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.tensor.push((id, nr, hook)));
        id
    }
    pub(in crate::autograd) fn remove_retain(&self, tensor: &Tensor) {
        self.with_hooks(|h| {
            h.retain.retain(|(_, t)| t.upgrade().is_some_and(|t| !t.is_same(tensor)));
        });
    }
    pub(in crate::autograd) fn add_retain(&self, nr: u32, tensor: &Tensor) {
        self.with_hooks(|h| h.retain.push((nr, tensor.downgrade())));
    }
    /// Adds a hook that sees, and may replace, the node's inputs.
    pub fn register_prehook(&self, hook: PreHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.pre.push((id, hook)));
        id
    }
    /// Adds a hook that sees, and may replace, the node's outputs.
    pub fn register_hook(&self, hook: PostHook) -> HookId {
        let id = next_id();
        self.with_hooks(|h| h.post.push((id, hook)));
        id
    }
    /// The tensor hooks of output `nr`.
    pub(in crate::autograd) fn tensor_hooks(&self, nr: u32) -> Vec<(HookId, TensorHook)> {
        if !self.0.has_hooks.load(Acquire) {
            return Vec::new();
        }
        self.with_hooks(|h| {
            let of_output = h.tensor.iter().filter(|(_, of, _)| *of == nr);
            of_output.map(|(id, _, hook)| (*id, hook.clone())).collect()
        })
    }
    /// The address of the Python object that owns the node's Python hooks, for the binding.
    pub fn python_hooks(&self) -> Option<Arc<AtomicPtr<()>>> {
        if !self.0.has_hooks.load(Acquire) {
            return None;
        }
        self.with_hooks(|h| h.python.upgrade())
    }
    /// Sets the address of the Python object that owns the node's Python hooks.
    pub fn set_python_hooks(&self, hooks: &Arc<AtomicPtr<()>>) {
        self.with_hooks(|h| h.python = Arc::downgrade(hooks));
    }
    /// The note that the binding set: the record of anomaly mode.
    pub fn note(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        if !self.0.has_hooks.load(Acquire) {
            return None;
        }
        self.with_hooks(|h| h.note.clone())
    }
    /// Sets the node's note.
    pub fn set_note(&self, note: Arc<dyn Any + Send + Sync>) {
        drop(self.with_hooks(|h| h.note.replace(note)));
    }
    /// Removes a hook; unknown ids are ignored.
    pub fn remove_hook(&self, id: HookId) {
        self.with_hooks(|h| {
            h.tensor.retain(|(i, ..)| *i != id);
            h.pre.retain(|(i, _)| *i != id);
            h.post.retain(|(i, _)| *i != id);
        });
    }

    pub(in crate::autograd) fn pre_hooks(&self) -> Vec<PreHook> {
        self.with_hooks(|h| h.pre.iter().map(|(_, hook)| hook.clone()).collect())
    }
    pub(in crate::autograd) fn has_post_hooks(&self) -> bool {
        self.with_hooks(|h| !h.post.is_empty())
    }
    pub(in crate::autograd) fn post_hooks(&self) -> Vec<PostHook> {
        self.with_hooks(|h| h.post.iter().map(|(_, hook)| hook.clone()).collect())
    }
}
