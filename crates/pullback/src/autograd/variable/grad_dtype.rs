//! The dtype that the gradient of a leaf has: its own, another one, or any.
//!
//! Gradients are converted where they arrive at the leaf (`engine`), so that hooks, `.grad` and `autograd::grad` see the dtype
//! that was asked for, in graphs that were made before, too. Invariant: as long as no program asks for anything, nothing is
//! looked up.

use super::meta::{GradDType, lock};
use crate::autograd::graph::input_meta::InputMeta;
use crate::autograd::graph::node::Node;
use crate::error::ensure;
use crate::{DType, Result, Tensor};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether any tensor was ever asked for another dtype than its own.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

fn asked_of(tensor: &Tensor) -> GradDType {
    if !IS_ASKED.load(Relaxed) || tensor.meta_if_any().is_none() {
        return GradDType::Own;
    }
    lock(tensor).grad_dtype
}

/// What a gradient that arrives at `target` must look like instead of `meta`, if its leaf was asked for another dtype.
#[inline(always)]
pub(in crate::autograd) fn expected(
    target: &Node,
    meta: &InputMeta,
    grad: &Tensor,
) -> Option<InputMeta> {
    if IS_ASKED.load(Relaxed) { expected_by_leaf(target, meta, grad) } else { None }
}

#[cold]
fn expected_by_leaf(target: &Node, meta: &InputMeta, grad: &Tensor) -> Option<InputMeta> {
    match asked_of(target.leaf()?) {
        GradDType::Own => None,
        GradDType::Other(dtype) => Some(InputMeta { dtype, ..meta.clone() }),
        GradDType::Any => Some(InputMeta { dtype: grad.dtype(), ..meta.clone() }),
    }
}

impl Tensor {
    /// The dtype that the tensor's gradient has, which is its own unless [`Tensor::set_grad_dtype`] said otherwise; `None` if
    /// the gradient may have any.
    #[must_use]
    pub fn grad_dtype(&self) -> Option<DType> {
        match asked_of(self) {
            GradDType::Other(dtype) if self.is_leaf() => Some(dtype),
            GradDType::Any if self.is_leaf() => None,
            _ => Some(self.dtype()),
        }
    }
    /// Sets the dtype that gradients of this leaf are converted to when they arrive; with `None` they stay as they are.
    ///
    /// # Errors
    /// `RuntimeError` for non-leaves, and if there is a gradient of another dtype.
    pub fn set_grad_dtype(&self, dtype: Option<DType>) -> Result<()> {
        ensure!(self.is_leaf(), runtime, "grad_dtype can only be set on leaf tensors.");
        let grad = self.meta_if_any().and_then(|_| lock(self).grad.clone());
        if let (Some(wanted), Some(grad)) = (dtype, grad) {
            ensure!(
                grad.dtype() == wanted,
                runtime,
                "Cannot set grad_dtype to '{}' because there is already a gradient with dtype '{}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype.",
                wanted.name(),
                grad.dtype().name()
            );
        }
        IS_ASKED.store(true, Relaxed);
        lock(self).grad_dtype = dtype.map_or(GradDType::Any, GradDType::Other);
        Ok(())
    }
    /// Refuses a gradient of another dtype than the tensor's gradient has.
    pub(super) fn check_grad_dtype(&self, grad: &Tensor) -> Result<()> {
        let Some(wanted) = self.grad_dtype() else { return Ok(()) };
        ensure!(
            grad.dtype() == wanted,
            runtime,
            "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match.",
            grad.dtype().name(),
            wanted.name()
        );
        Ok(())
    }
}
