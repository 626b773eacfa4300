//! Hooks of a Rust program: a plain closure goes in, a guard comes out, and the hook lives as long as the guard.
//!
//! [`Tensor::register_hook`] and its kin, which take and give what a language binding keeps, are beneath.

use super::history::grad_fn_of;
use crate::autograd::graph::hook::HookId;
use crate::autograd::graph::node::WeakNode;
use crate::tensor::WeakTensor;
use crate::{Result, Tensor};
use std::fmt;
use std::sync::Arc;

/// What a hook on a gradient gives: nothing (`()`), or a gradient to go on with, maybe as a `Result` or an `Option`.
pub trait HookResult {
    /// The replacement, if there is one.
    ///
    /// # Errors
    /// The error that it is.
    fn replacement(self) -> Result<Option<Tensor>>;
}
impl HookResult for () {
    fn replacement(self) -> Result<Option<Tensor>> {
        Ok(None)
    }
}
impl HookResult for Tensor {
    fn replacement(self) -> Result<Option<Tensor>> {
        Ok(Some(self))
    }
}
impl<R: HookResult> HookResult for Option<R> {
    fn replacement(self) -> Result<Option<Tensor>> {
        self.map_or(Ok(None), R::replacement)
    }
}
impl<R: HookResult> HookResult for Result<R> {
    fn replacement(self) -> Result<Option<Tensor>> {
        self.and_then(R::replacement)
    }
}

/// Removes its hook when it is dropped, unless [`HookGuard::keep`] is called.
#[must_use = "the hook is removed when its guard is dropped; `keep()` leaves it"]
pub struct HookGuard {
    tensor: Option<WeakTensor>,
    /// The node that has the hook, which may outlive the tensor, and the tensor's history may become another one.
    node: Option<WeakNode>,
    id: HookId,
}

impl HookGuard {
    fn new(tensor: &Tensor, id: HookId) -> Self {
        let node = grad_fn_of(tensor).map(|node| node.downgrade());
        HookGuard { tensor: Some(tensor.downgrade()), node, id }
    }
    /// Leaves the hook for as long as the tensor, or the graph that made it, lives.
    pub fn keep(mut self) -> HookId {
        (self.tensor, self.node) = (None, None);
        self.id
    }
}

impl fmt::Debug for HookGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookGuard").field(&self.id).finish()
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        if let Some(tensor) = self.tensor.take().and_then(|weak| weak.upgrade()) {
            tensor.remove_hook(self.id);
        }
        if let Some(node) = self.node.take().and_then(|weak| weak.upgrade()) {
            node.remove_hook(self.id);
        }
    }
}

impl Tensor {
    /// Lets `hook` see the gradient of this tensor in each backward pass, and replace it if it gives another one. If none
    /// arrives, the hook does not run.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// # fn main() -> pullback::Result<()> {
    /// let x = Tensor::from([2.0])?.with_grad()?;
    /// let guard = x.on_grad(|grad| (grad * 10.0).get())?;
    /// x.mul(&x)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [40.0]);
    /// drop(guard);
    /// x.mul(&x)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [44.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `RuntimeError` if it does not require grad.
    pub fn on_grad<R: HookResult>(
        &self,
        hook: impl Fn(&Tensor) -> R + Send + Sync + 'static,
    ) -> Result<HookGuard> {
        let id = self.register_hook(Arc::new(move |grad: Option<&Tensor>| {
            grad.map_or(Ok(None), |grad| hook(grad).replacement())
        }))?;
        Ok(HookGuard::new(self, id))
    }

    /// Runs `hook` on this leaf after each update of its gradient.
    ///
    /// # Errors
    /// `RuntimeError` unless it is a leaf that requires grad.
    pub fn on_accumulate(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookGuard> {
        let id = self.register_post_accumulate_grad_hook(Arc::new(hook))?;
        Ok(HookGuard::new(self, id))
    }
}
