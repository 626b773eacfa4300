//! A tensor's `.grad`, its hooks, and its flag `requires_grad`.
//!
//! The engine (`engine`) writes gradients and runs hooks. Start at [`Tensor::grad`].

use super::history::grad_fn_of;
use super::meta::lock;
use super::{noted, tangent};
use crate::autograd::graph::hook::{AccumulateHook, HookId, TensorHook, next_id};
use crate::autograd::mode;
use crate::dispatch::observe;
use crate::error::ensure;
use crate::tensor::{Flag, Layout, watch};
use crate::{Result, Tensor};

impl Tensor {
    /// Sets the flag `requires_grad` of a leaf.
    ///
    /// # Errors
    /// `RuntimeError` for non-leaves (when turning off) and dtypes without gradient.
    pub fn requires_grad_(&self, requires: bool) -> Result<&Tensor> {
        if !self.is_leaf() {
            ensure!(
                requires,
                runtime,
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            );
            return Ok(self);
        }
        self.set_requires_grad(
            requires,
            "only Tensors of floating point dtype can require gradients",
        )?;
        Ok(self)
    }
    pub(crate) fn set_requires_grad(&self, requires: bool, dtype_message: &str) -> Result<()> {
        ensure!(!requires || self.dtype().is_differentiable(), runtime, "{dtype_message}");
        ensure!(
            !requires || !self.has_flag(Flag::INFERENCE) || mode::is_inference_mode(),
            runtime,
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        );
        self.set_flag(Flag::REQUIRES_GRAD, requires);
        Ok(())
    }
    /// `requires_grad_(true)` by value, for construction.
    ///
    /// # Errors
    /// As [`Tensor::requires_grad_`].
    pub fn with_grad(self) -> Result<Tensor> {
        self.requires_grad_(true)?;
        Ok(self)
    }

    /// The gradient that backward accumulated here.
    #[inline]
    pub fn grad(&self) -> Option<Tensor> {
        self.meta_if_any().and_then(|_| lock(self).grad.clone())
    }
    /// Replaces the gradient without any check.
    pub(crate) fn put_grad(&self, grad: Option<Tensor>) {
        if grad.is_none() && self.meta_if_any().is_none() {
            return;
        }
        if grad.as_ref().is_some_and(Tensor::requires_grad) {
            noted::note(self);
        }
        if watch::is_on() {
            observe::note_grad(self);
        }
        let old = std::mem::replace(&mut lock(self).grad, grad);
        drop(old);
    }
    /// Replaces the gradient.
    ///
    /// # Errors
    /// `RuntimeError` if it does not fit this tensor.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(g) = &grad {
            ensure!(!g.is_same(self), runtime, "can't assign Variable as its own grad");
            self.check_grad_dtype(g)?;
            ensure!(
                g.device() == self.device(),
                runtime,
                "attempting to assign a gradient with device type '{}' to a tensor with device type '{}'. Please ensure that the gradient and the tensor are on the same device",
                g.device().spelled(),
                self.device().spelled()
            );
            ensure!(
                g.layout() == self.layout() || g.layout() == Layout::SparseCoo,
                runtime,
                "attempting to assign a gradient to a tensor that has data of a different type: layout {} to layout {}",
                g.layout().spelled(),
                self.layout().spelled()
            );
            ensure!(
                g.shape() == self.shape(),
                runtime,
                "attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure that the gradient and the tensor are the same size",
                crate::tensor::shape::list(g.shape()),
                crate::tensor::shape::list(self.shape())
            );
        }
        self.put_grad(grad);
        Ok(())
    }

    /// Makes backward keep the gradient of a non-leaf in its `.grad` as well.
    ///
    /// # Errors
    /// `RuntimeError` if it does not require grad.
    pub fn retain_grad(&self) -> Result<()> {
        ensure!(
            self.requires_grad(),
            runtime,
            "can't retain_grad on Tensor that has requires_grad=False"
        );
        let Some(node) = self.grad_fn()? else { return Ok(()) };
        if !self.has_flag(Flag::RETAINS_GRAD) {
            self.set_flag(Flag::RETAINS_GRAD, true);
            node.add_retain(self.output_nr(), self);
        }
        Ok(())
    }
    /// Whether backward keeps the gradient of this non-leaf.
    pub fn retains_grad(&self) -> bool {
        self.has_flag(Flag::RETAINS_GRAD) && !self.is_leaf_now()
    }

    /// Removes the history, but not the hooks, which are those of the leaf from now on.
    pub(crate) fn detach_in_place(&self) -> Result<()> {
        let hooks = match self.grad_fn()? {
            Some(node) => node.tensor_hooks(self.output_nr()),
            None => Vec::new(),
        };
        self.forget_history();
        tangent::forget(self);
        if !hooks.is_empty() {
            lock(self).hooks.extend(hooks);
        }
        Ok(())
    }

    /// Registers a hook that sees, and may replace, the gradient of this tensor.
    ///
    /// # Errors
    /// `RuntimeError` if it does not require grad.
    pub fn register_hook(&self, hook: TensorHook) -> Result<HookId> {
        ensure!(
            self.requires_grad(),
            runtime,
            "cannot register a hook on a tensor that doesn't require gradient"
        );
        self.add_hook(hook)
    }
    /// As [`Tensor::register_hook`], also for a tensor that does not require grad yet.
    ///
    /// # Errors
    /// As [`Tensor::grad_fn`].
    pub fn add_hook(&self, hook: TensorHook) -> Result<HookId> {
        if let Some(node) = self.grad_fn()? {
            return Ok(node.add_tensor_hook(self.output_nr(), hook));
        }
        let id = next_id();
        lock(self).hooks.push((id, hook));
        Ok(id)
    }
    /// Registers a hook that sees this leaf after its `.grad` was updated.
    ///
    /// # Errors
    /// `RuntimeError` unless it is a leaf that requires grad.
    pub fn register_post_accumulate_grad_hook(&self, hook: AccumulateHook) -> Result<HookId> {
        ensure!(
            self.requires_grad(),
            runtime,
            "cannot register a hook on a tensor that doesn't require gradient"
        );
        ensure!(
            self.is_leaf(),
            runtime,
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        );
        Ok(self.add_post_accumulate_grad_hook(hook))
    }
    /// As [`Tensor::register_post_accumulate_grad_hook`], also for a tensor that is no leaf that requires grad: it runs
    /// once the tensor is one.
    pub fn add_post_accumulate_grad_hook(&self, hook: AccumulateHook) -> HookId {
        let id = next_id();
        lock(self).accumulate_hooks.push((id, hook));
        id
    }
    /// Removes a hook of this tensor; unknown ids are ignored.
    pub fn remove_hook(&self, id: HookId) {
        if self.meta_if_any().is_some() {
            let mut meta = lock(self);
            meta.hooks.retain(|(i, _)| *i != id);
            meta.accumulate_hooks.retain(|(i, _)| *i != id);
        }
        if let Some(node) = grad_fn_of(self) {
            node.remove_hook(id);
        }
    }
}
