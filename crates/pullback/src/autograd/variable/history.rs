//! The history of a tensor: its producer, its flags, its base, its accumulator.
//!
//! The producer of a view may be out of date: `refresh` makes it anew after writes to the base.

use super::meta::lock;
use crate::Tensor;
use crate::autograd::graph::node::Node;
use crate::tensor::Flag;
use std::sync::atomic::Ordering;

/// How a view was made, which decides whether a write through it can be recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum CreationMeta {
    Default = 0,
    InCustomFunction = 1,
    MultiOutput = 2,
    NoGrad = 3,
    Inference = 4,
}

impl Tensor {
    /// Whether gradients of the tensor are computed: it has its own flag, a `grad_fn`, or a base that requires grad.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        let flags = self.flags();
        if flags & (Flag::REQUIRES_GRAD | Flag::HAS_GRAD_FN) != 0 {
            return true;
        }
        flags & Flag::VIEW != 0 && self.base_if_any().is_some_and(Tensor::requires_grad)
    }
    pub(in crate::autograd) fn is_leaf_now(&self) -> bool {
        !self.has_flag(Flag::HAS_GRAD_FN)
    }
    /// The index of the tensor among the outputs of its `grad_fn`.
    #[inline]
    pub fn output_nr(&self) -> u32 {
        self.output_slot().load(Ordering::Acquire)
    }
    /// Makes the tensor output `nr` of `node`.
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
    pub(in crate::autograd) fn set_first_history(&self, node: Node, nr: u32) {
        // `link_to_base` has stored a fresh view's version already.
        let node = if self.has_flag(Flag::REQUIRES_GRAD) {
            Err(node)
        } else {
            self.set_grad_fn_fresh(node, nr)
        };
        if let Err(node) = node {
            self.set_history(node, nr);
        }
    }
    /// Removes the producer.
    pub(in crate::autograd) fn clear_history(&self) {
        self.set_flag(Flag::HAS_GRAD_FN | Flag::REQUIRES_GRAD | Flag::RETAINS_GRAD, false);
        self.output_slot().store(0, Ordering::Release);
        drop(self.grad_fn_slot().with(Option::take));
    }
    /// Removes producer, flag and retained state.
    pub(crate) fn forget_history(&self) {
        self.clear_history();
    }
    #[inline]
    pub(crate) fn creation_meta(&self) -> CreationMeta {
        match self.flags() >> Flag::CREATION_SHIFT & 15 {
            0 => CreationMeta::Default,
            1 => CreationMeta::InCustomFunction,
            2 => CreationMeta::MultiOutput,
            3 => CreationMeta::NoGrad,
            _ => CreationMeta::Inference,
        }
    }
    #[inline]
    pub(crate) fn set_creation_meta(&self, meta: CreationMeta) {
        self.set_flag(15 << Flag::CREATION_SHIFT, false);
        self.set_flag((meta as u32) << Flag::CREATION_SHIFT, true);
    }
    /// The tensor whose memory this view shows, if it is a view that autograd tracks.
    #[inline]
    pub fn base(&self) -> Option<&Tensor> {
        self.base_if_any()
    }
    /// Whether autograd tracks the tensor as a view.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.has_flag(Flag::VIEW)
    }
    /// Marks the tensor as made in inference mode.
    pub(crate) fn mark_inference(&self) {
        if !self.is_view() {
            self.set_flag(Flag::INFERENCE, true);
        }
    }
    /// Whether the tensor was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.has_flag(Flag::INFERENCE)
    }
}

impl Tensor {
    /// The node that adds to this leaf's `.grad`, made when needed; `None` unless its flag is set.
    #[inline]
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
    /// Makes gradients of this fresh leaf go to the accumulator of the leaf that it stands for.
    pub(in crate::autograd) fn share_accumulator(&self, node: Node) {
        lock(self).shared_accumulator = Some(node);
        self.set_flag(Flag::SHARED_ACCUMULATOR, true);
    }
    /// The accumulator if a graph uses it.
    pub(in crate::autograd) fn live_accumulator(&self) -> Option<Node> {
        self.accumulator_slot().live()
    }
    /// Makes later graphs take a fresh accumulator (its metadata changed).
    pub(crate) fn forget_accumulator(&self) {
        self.accumulator_slot().forget();
    }
}

/// The producer without refreshing views.
pub(in crate::autograd) fn grad_fn_of(tensor: &Tensor) -> Option<Node> {
    if tensor.has_flag(Flag::HAS_GRAD_FN) {
        tensor.grad_fn_slot().with(|n| n.clone())
    } else {
        None
    }
}

/// Called after the producer of `tensor` changed from `old`: makes the new one retain the gradient.
pub(in crate::autograd) fn move_retain(tensor: &Tensor, old: Option<&Node>) {
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
