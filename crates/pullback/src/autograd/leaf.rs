//! The tensor's side of autograd: flags, `grad`, `grad_fn`, and accumulation into leaves.

use super::batch::Batched;
use super::hook::{AccumulateHook, HookId, TensorHook, next_id};
use super::node::{Edge, Node};
use super::replay::Replay;
use super::torch_dispatch::TorchDispatch;
use super::{arithmetic, cycle, mode, view};
use crate::dispatch::Grads;
use crate::error::{bail, ensure};
use crate::interrupt;
use crate::tensor::{Flag, Layout, is_non_overlapping_and_dense};
use crate::{Result, Tensor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

/// The rarely used part of a tensor's autograd state.
#[derive(Default)]
pub struct Meta {
    grad: Option<Tensor>,
    hooks: Vec<(HookId, TensorHook)>,
    accumulate_hooks: Vec<(HookId, AccumulateHook)>,
    /// The tangents of forward mode (see `tangent`).
    pub(super) tangents: super::tangent::Kept,
    /// The tensor that a view's tangent comes from, where that is not its base.
    pub(super) forward_base: Option<Tensor>,
    /// What a batched tensor shows a part of.
    pub(super) batched: Option<Arc<Batched>>,
    /// What computes the ops on it, where its class does.
    pub(super) torch_dispatch: Option<Arc<dyn TorchDispatch>>,
    /// How a view is made of its base, where its geometry does not say that.
    pub(super) replay: Option<Arc<Replay>>,
    /// Another leaf's accumulator, where gradients of this one go.
    shared_accumulator: Option<Node>,
}

pub(super) fn lock(tensor: &Tensor) -> MutexGuard<'_, Meta> {
    tensor.meta().lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Shows the tensors that the rarely used part of the state is known to hold; `None` if it is in use at the moment.
pub(super) fn each_held(tensor: &Tensor, see: &mut dyn FnMut(Tensor)) -> Option<()> {
    if tensor.meta_if_any().is_some() {
        let meta = tensor.meta().try_lock().ok()?;
        [&meta.grad, &meta.forward_base].into_iter().flatten().cloned().for_each(see);
    }
    Some(())
}

/// Takes the gradient away.
pub(super) fn take_grad(tensor: &Tensor) -> Option<Tensor> {
    tensor.meta_if_any().and_then(|_| lock(tensor).grad.take())
}

/// The producer without refreshing views.
pub(super) fn grad_fn_of(tensor: &Tensor) -> Option<Node> {
    if tensor.has_flag(Flag::HAS_GRAD_FN) {
        tensor.grad_fn_slot().with(|n| n.clone())
    } else {
        None
    }
}

impl Tensor {
    /// Whether gradients are wanted for it: its own flag, a `grad_fn`, or a base that requires grad.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        let flags = self.flags();
        if flags & (Flag::REQUIRES_GRAD | Flag::HAS_GRAD_FN) != 0 {
            return true;
        }
        flags & Flag::VIEW != 0 && self.base_if_any().is_some_and(Tensor::requires_grad)
    }
    /// Whether no op produced it. Refreshes the history of a view first.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.grad_fn(), Ok(Some(_)))
    }
    pub(super) fn is_leaf_now(&self) -> bool {
        !self.has_flag(Flag::HAS_GRAD_FN)
    }
    /// The node that produced it; for views that of the current state of their base.
    ///
    /// # Errors
    /// `RuntimeError` if a view's base was changed in a way that leaves the view without history.
    #[inline]
    pub fn grad_fn(&self) -> Result<Option<Node>> {
        let flags = self.flags();
        if flags & Flag::VIEW != 0 {
            return view::refreshed_grad_fn(self);
        }
        Ok(if flags & Flag::HAS_GRAD_FN != 0 {
            self.grad_fn_slot().with(|n| n.clone())
        } else {
            None
        })
    }
    /// Which output of its `grad_fn` it is.
    #[inline]
    pub fn output_nr(&self) -> u32 {
        self.output_slot().load(Ordering::Acquire)
    }
    /// Makes it output `nr` of `node`.
    #[inline]
    pub fn set_history(&self, node: Node, nr: u32) {
        self.output_slot().store(nr, Ordering::Release);
        let old = self.grad_fn_slot().with(|slot| slot.replace(node));
        self.set_flag(Flag::HAS_GRAD_FN, true);
        if self.has_flag(Flag::REQUIRES_GRAD) {
            self.set_flag(Flag::REQUIRES_GRAD, false);
        }
        if self.has_flag(Flag::VIEW) {
            self.attr_version().store(self.version(), Ordering::Release);
        }
        drop(old);
    }
    /// As [`Tensor::set_history`], without atomic steps for a tensor that was made just now.
    #[inline]
    pub(super) fn set_first_history(&self, node: Node, nr: u32) {
        // `link_to_base` has noted a fresh view's version already.
        let node = if self.has_flag(Flag::REQUIRES_GRAD) {
            Err(node)
        } else {
            self.set_grad_fn_fresh(node, nr)
        };
        if let Err(node) = node {
            self.set_history(node, nr);
        }
    }
    /// Forgets its producer.
    pub(super) fn clear_history(&self) {
        self.set_flag(Flag::HAS_GRAD_FN | Flag::REQUIRES_GRAD | Flag::RETAINS_GRAD, false);
        self.output_slot().store(0, Ordering::Release);
        drop(self.grad_fn_slot().with(Option::take));
    }

    /// Where a gradient of this tensor goes.
    ///
    /// # Errors
    /// As [`Tensor::grad_fn`].
    #[inline]
    pub fn gradient_edge(&self) -> Result<Edge> {
        if let Some(node) = self.grad_fn()? {
            return Ok(Edge::new(node, self.output_nr()));
        }
        Ok(Edge { node: self.accumulator(), nr: 0 })
    }

    /// The node that adds to this leaf's `.grad`, made when needed; `None` unless its flag is set.
    pub fn accumulator(&self) -> Option<Node> {
        let flags = self.flags();
        if flags & Flag::REQUIRES_GRAD == 0 {
            return None;
        }
        if flags & Flag::SHARED_ACCUMULATOR != 0 {
            return lock(self).shared_accumulator.clone();
        }
        Some(self.accumulator_slot().get(self))
    }
    /// Lets gradients of this leaf, made just now, go to the accumulator of the leaf that it stands for.
    pub(super) fn share_accumulator(&self, node: Node) {
        lock(self).shared_accumulator = Some(node);
        self.set_flag(Flag::SHARED_ACCUMULATOR, true);
    }
    /// The accumulator if a graph uses it.
    pub(super) fn live_accumulator(&self) -> Option<Node> {
        self.accumulator_slot().live()
    }
    /// Lets later graphs make a fresh accumulator (its metadata changed).
    pub(crate) fn forget_accumulator(&self) {
        self.accumulator_slot().forget();
    }

    /// Sets the leaf flag.
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
    /// Says that it was made in inference mode.
    pub(crate) fn mark_inference(&self) {
        if !self.is_view() {
            self.set_flag(Flag::INFERENCE, true);
        }
    }
    /// Whether it was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.has_flag(Flag::INFERENCE)
    }

    /// The gradient that backward left here.
    pub fn grad(&self) -> Option<Tensor> {
        self.meta_if_any().and_then(|_| lock(self).grad.clone())
    }
    /// Replaces the gradient without any check.
    pub(crate) fn put_grad(&self, grad: Option<Tensor>) {
        if grad.is_none() && self.meta_if_any().is_none() {
            return;
        }
        if grad.as_ref().is_some_and(Tensor::requires_grad) {
            cycle::note(self);
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
            ensure!(
                g.dtype() == self.dtype(),
                runtime,
                "attempting to assign a gradient with dtype '{}' to a tensor with dtype '{}'. Please ensure that the gradient and the tensor have the same dtype",
                g.dtype().name(),
                self.dtype().name()
            );
            ensure!(
                g.device() == self.device(),
                runtime,
                "attempting to assign a gradient with device type '{}' to a tensor with device type '{}'. Please ensure that the gradient and the tensor are on the same device",
                g.device(),
                self.device()
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

    /// Keeps the gradient of a non-leaf in its `.grad` as well.
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
    /// Whether a non-leaf keeps its gradient.
    pub fn retains_grad(&self) -> bool {
        self.has_flag(Flag::RETAINS_GRAD) && !self.is_leaf_now()
    }

    /// Forgets the history, but not the hooks: they are the leaf's from now on.
    pub(crate) fn detach_in_place(&self) -> Result<()> {
        let hooks = match self.grad_fn()? {
            Some(node) => node.tensor_hooks(self.output_nr()),
            None => Vec::new(),
        };
        self.forget_history();
        super::tangent::forget(self);
        if !hooks.is_empty() {
            lock(self).hooks.extend(hooks);
        }
        Ok(())
    }

    /// Lets `hook` see, and replace, the gradient of this tensor.
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
    /// Lets `hook` see this leaf after its `.grad` was updated.
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
    /// Forgets a hook of this tensor; unknown ids are ignored.
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

/// Tensor hooks of a leaf.
pub(super) fn leaf_hooks(tensor: &Tensor, grads: &mut Grads) -> Result<()> {
    if tensor.meta_if_any().is_none() {
        return Ok(());
    }
    let hooks: Vec<TensorHook> = lock(tensor).hooks.iter().map(|(_, h)| h.clone()).collect();
    for hook in hooks {
        super::hook::run_tensor_hook(&hook, &mut grads[0])?;
    }
    Ok(())
}

/// After `tensor` got another producer than `old`: the one that is to retain its gradient now.
pub(super) fn move_retain(tensor: &Tensor, old: Option<&Node>) {
    if !tensor.has_flag(Flag::RETAINS_GRAD) {
        return;
    }
    if let Some(old) = old {
        old.remove_retain(tensor);
    }
    if let Some(new) = grad_fn_of(tensor) {
        new.add_retain(tensor.output_nr(), tensor);
    }
}

/// Adds `grad` to the `.grad` that a non-leaf retains.
pub(super) fn retain(tensor: &Tensor, grad: &Tensor) -> Result<()> {
    let new = match tensor.grad() {
        None => arithmetic::contiguous_clone(grad)?,
        Some(old) => arithmetic::add(&old, grad)?,
    };
    tensor.put_grad(Some(new));
    Ok(())
}

/// `AccumulateGrad`: the sink of every leaf.
pub(super) fn accumulate(node: &Node, leaf: &Tensor, mut grads: Grads) -> Result<()> {
    let Some(grad) = grads.pop().flatten() else { return Ok(()) };
    if leaf.has_flag(Flag::HAS_GRAD_FN) {
        bail!(runtime, "leaf variable has been moved into the graph interior");
    }
    if !leaf.has_flag(Flag::REQUIRES_GRAD) {
        return Ok(());
    }
    // (What a signal's handler computes in the middle of an addition must find nothing locked.)
    let hooks = if grad.numel() > ASKED {
        interrupt::without_interrupts(|| take_in(node, leaf, grad))
    } else {
        take_in(node, leaf, grad)
    }?;
    for hook in hooks {
        hook(leaf)?;
    }
    Ok(())
}

/// Elements up to which an addition is never asked whether it is to be given up.
const ASKED: i64 = 1 << 12;

/// Adds a gradient to the `.grad` of its leaf, and says who wants to know.
fn take_in(node: &Node, leaf: &Tensor, grad: Tensor) -> Result<Vec<AccumulateHook>> {
    // One thread at a time reads, adds and writes.
    let turn = node.0.hooks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let recording = mode::is_recording();
    match leaf.grad() {
        None => {
            // (The engine holds another handle for hooks that run after the node.)
            let held = 1 + usize::from(turn.as_ref().is_some_and(|hooks| !hooks.post.is_empty()));
            let unshared = grad.use_count() <= held
                && grad.geometry().storage.as_ref().is_none_or(|s| s.use_count() == 1);
            let is_taken = if grad.is_sparse() {
                grad.sparse().is_none_or(|parts| parts.is_unshared())
            } else {
                // (A `.grad` holds what it shows, so that it can be seen as real numbers or as an array.)
                !leaf.layout().is_compressed() && obeys_layout(leaf, &grad) && !grad.is_unresolved()
            };
            let new = if !recording && unshared && is_taken {
                if grad.requires_grad() { grad.detached()? } else { grad }
            } else {
                arithmetic::clone_like(&grad, leaf)?
            };
            leaf.put_grad(Some(new));
        }
        Some(old) if recording => leaf.put_grad(Some(arithmetic::add(&old, &grad)?)),
        Some(old) if old.is_sparse() && !grad.is_sparse() => {
            leaf.put_grad(Some(arithmetic::add(&old, &grad)?));
        }
        Some(old) => {
            arithmetic::add_in_place(&old, &grad)?;
            let is_strided = !old.is_sparse() && !leaf.is_sparse();
            if is_strided && old.strides() != leaf.strides() && !obeys_layout(leaf, &old) {
                warn_of_layout(leaf, &old);
            }
        }
    }
    drop(turn);
    Ok(lock(leaf).accumulate_hooks.iter().map(|(_, h)| h.clone()).collect())
}

/// A `.grad` that somebody put there in another layout stays as it is.
#[cold]
fn warn_of_layout(leaf: &Tensor, grad: &Tensor) {
    static GIVEN: AtomicBool = AtomicBool::new(false);
    crate::warning::warn_once(
        &GIVEN,
        &format!(
            "grad and param do not obey the gradient layout contract: this is no error, but may make steps of optimizers slower. grad has sizes {:?} and strides {:?}, param has sizes {:?} and strides {:?}",
            grad.shape(),
            grad.strides(),
            leaf.shape(),
            leaf.strides()
        ),
    );
}

/// The layout contract: a dense leaf's gradient has its strides, any other's is row-major.
pub(super) fn obeys_layout(leaf: &Tensor, grad: &Tensor) -> bool {
    if is_non_overlapping_and_dense(leaf.shape(), leaf.strides()) {
        grad.shape() == leaf.shape()
            && leaf
                .shape()
                .iter()
                .zip(leaf.strides().iter().zip(grad.strides()))
                .all(|(&size, (&a, &b))| if size > 1 { a == b } else { b != 0 })
    } else {
        grad.is_contiguous()
    }
}
