//! Hooks on saved tensors: they pack a tensor into what a node keeps in its stead.
//!
//! A thread has a stack of hooks; the innermost pack whatever its ops save (`saved::packed`). Invariant: the mode bit
//! `SAVED_HOOKS` says whether the stack has any, so that saving looks at nothing else. Start at [`saved_tensors_hooks`].

use super::mode::{self, bit};
use crate::error::bail;
use crate::{Result, Tensor};
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Hooks that replace tensors saved for backward by something else: a copy elsewhere, compressed data, a recipe.
pub trait SavedTensorHooks: Any + Send + Sync {
    /// Packs `tensor`. Called once, while nothing is recorded; it must not write to the tensor.
    ///
    /// # Errors
    /// Any error; the op whose input or output is saved fails with it.
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>>;
}

/// A packed saved tensor.
pub trait Packed: Send + Sync {
    /// Unpacks the tensor, with the same shape and dtype. Called each time the saved tensor is needed.
    ///
    /// # Errors
    /// Any error; backward stops with it.
    fn unpack(&self) -> Result<Tensor>;
}

#[derive(Default)]
struct Defaults {
    stack: Vec<Arc<dyn SavedTensorHooks>>,
    /// The reason why hooks are disabled, if they are.
    disabled: Option<Arc<str>>,
}

thread_local! {
    static DEFAULTS: RefCell<Defaults> = RefCell::default();
}

/// Whether this thread has hooks.
#[inline(always)]
pub(in crate::autograd) fn are_active() -> bool {
    mode::current() & bit::SAVED_HOOKS != 0
}

/// The innermost hooks of this thread.
pub(in crate::autograd) fn innermost() -> Option<Arc<dyn SavedTensorHooks>> {
    DEFAULTS.with(|d| d.borrow().stack.last().cloned())
}

/// Makes `hooks` the innermost hooks of this thread, until [`pop`].
///
/// # Errors
/// `RuntimeError` if hooks are disabled, with the reason that was given.
pub fn push(hooks: Arc<dyn SavedTensorHooks>) -> Result<()> {
    DEFAULTS.with(|d| {
        let mut d = d.borrow_mut();
        if let Some(reason) = &d.disabled {
            bail!(runtime, "{reason}");
        }
        d.stack.push(hooks);
        mode::set_bit(bit::SAVED_HOOKS, true);
        Ok(())
    })
}

/// Removes the innermost hooks.
pub fn pop() {
    let last = DEFAULTS.with(|d| {
        let mut d = d.borrow_mut();
        let last = d.stack.pop();
        mode::set_bit(bit::SAVED_HOOKS, !d.stack.is_empty());
        last
    });
    // (What hooks hold may run any code as it is dropped: not while the stack is borrowed.)
    drop(last);
}

/// A guard that suspends hooks, so that they do not pack what the library itself saves for a short
/// time.
pub(in crate::autograd) struct Suspended(bool);

impl Drop for Suspended {
    fn drop(&mut self) {
        mode::set_bit(bit::SAVED_HOOKS, self.0);
    }
}

/// Suspends the hooks of this thread.
pub(in crate::autograd) fn suspend() -> Suspended {
    let active = are_active();
    mode::set_bit(bit::SAVED_HOOKS, false);
    Suspended(active)
}

/// The hooks of this thread, the outermost first.
pub fn snapshot() -> Vec<Arc<dyn SavedTensorHooks>> {
    if are_active() { DEFAULTS.with(|d| d.borrow().stack.clone()) } else { Vec::new() }
}

/// Makes `stack`, which [`snapshot`] returned on another thread, the hooks of this one.
pub(in crate::autograd) fn restore(stack: Vec<Arc<dyn SavedTensorHooks>>) {
    if !stack.is_empty() {
        DEFAULTS.with(|d| d.borrow_mut().stack = stack);
        mode::set_bit(bit::SAVED_HOOKS, true);
    }
}

/// The number of hooks on this thread's stack.
pub(in crate::autograd) fn depth() -> usize {
    if are_active() { DEFAULTS.with(|d| d.borrow().stack.len()) } else { 0 }
}

/// Removes all hooks but the first `depth`: those pushed while a graph ran end with the run.
pub(in crate::autograd) fn truncate(depth: usize) {
    while self::depth() > depth {
        pop();
    }
}

/// The reason why hooks are disabled on this thread, if they are.
pub fn disabled() -> Option<Arc<str>> {
    DEFAULTS.with(|d| d.borrow().disabled.clone())
}

/// Disables hooks on this thread for the given reason; `None` enables them again.
///
/// # Errors
/// `RuntimeError` with the reason if hooks are in use.
pub fn set_disabled(reason: Option<Arc<str>>) -> Result<()> {
    DEFAULTS.with(|d| {
        let mut d = d.borrow_mut();
        if let Some(reason) = &reason
            && !d.stack.is_empty()
        {
            bail!(runtime, "{reason}");
        }
        d.disabled = reason;
        Ok(())
    })
}

/// A guard as long as which hooks are in use; it stays on its thread.
#[must_use = "the hooks are in use as long as the guard lives"]
pub struct HooksGuard(PhantomData<*const ()>);

impl Drop for HooksGuard {
    fn drop(&mut self) {
        pop();
    }
}

/// Makes `hooks` the innermost hooks of this thread as long as the guard lives.
///
/// ```
/// use pullback::autograd::{Packed, SavedTensorHooks, saved_tensors_hooks};
/// use pullback::{DType, Result, Tensor};
/// use std::sync::Arc;
///
/// /// Keeps saved tensors in half precision.
/// struct InHalf;
/// struct Half(Tensor, DType);
/// impl SavedTensorHooks for InHalf {
///     fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>> {
///         Ok(Box::new(Half(tensor.to_dtype(DType::F16)?, tensor.dtype())))
///     }
/// }
/// impl Packed for Half {
///     fn unpack(&self) -> Result<Tensor> {
///         self.0.to_dtype(self.1)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let x = Tensor::from_slice(&[1.5_f32, 2.0], &[2])?.with_grad()?;
/// let y = {
///     let _hooks = saved_tensors_hooks(Arc::new(InHalf))?;
///     x.mul(&x)?.sum()?
/// };
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`push`].
pub fn saved_tensors_hooks(hooks: Arc<dyn SavedTensorHooks>) -> Result<HooksGuard> {
    push(hooks)?;
    Ok(HooksGuard(PhantomData))
}
