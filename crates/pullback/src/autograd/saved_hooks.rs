//! Hooks on saved tensors: what a node keeps instead of a tensor, and how the tensor comes back.
//!
//! A thread has a stack of hooks; the innermost pack whatever its ops save. Invariant: the mode bit
//! `SAVED_HOOKS` says whether the stack has any, so that saving looks at nothing else. A tensor that comes back
//! gets the history of the one that was packed, whatever it had; versions are not compared.

use super::mode::{self, bit};
use super::{Edge, Node, WeakNode, tangent};
use crate::error::{bail, ensure};
use crate::tensor::{Flag, SpinLock};
use crate::{Result, Tensor};
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// What becomes of tensors that are saved for backward: kept elsewhere, compressed, computed again.
pub trait SavedTensorHooks: Any + Send + Sync {
    /// What is to be kept of `tensor`. Called once, while nothing is recorded; it must not write to the tensor.
    ///
    /// # Errors
    /// Whatever went wrong; the op whose input or output is saved fails with it.
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Packed>>;
}

/// What is kept of a saved tensor.
pub trait Packed: Send + Sync {
    /// The tensor again, of the same shape and dtype. Called whenever the saved tensor is wanted.
    ///
    /// # Errors
    /// Whatever went wrong; backward stops with it.
    fn unpack(&self) -> Result<Tensor>;
}

#[derive(Default)]
struct Defaults {
    stack: Vec<Arc<dyn SavedTensorHooks>>,
    /// Why hooks may not be used, if they may not.
    disabled: Option<Arc<str>>,
}

thread_local! {
    static DEFAULTS: RefCell<Defaults> = RefCell::default();
}

/// Whether this thread has hooks.
#[inline(always)]
pub(super) fn are_active() -> bool {
    mode::current() & bit::SAVED_HOOKS != 0
}

/// The hooks that apply.
pub(super) fn innermost() -> Option<Arc<dyn SavedTensorHooks>> {
    DEFAULTS.with(|d| d.borrow().stack.last().cloned())
}

/// Lets hooks pack what this thread's ops save from now on, until [`pop`].
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

/// Takes back the innermost hooks.
pub fn pop() {
    let last = DEFAULTS.with(|d| {
        let mut d = d.borrow_mut();
        let last = d.stack.pop();
        mode::set_bit(bit::SAVED_HOOKS, !d.stack.is_empty());
        last
    });
    // What the hooks hold may run anything.
    drop(last);
}

/// Hooks pack nothing as long as it lives: what the library itself saves for a moment is not theirs.
pub(super) struct Suspended(bool);

impl Drop for Suspended {
    fn drop(&mut self) {
        mode::set_bit(bit::SAVED_HOOKS, self.0);
    }
}

/// Leaves the hooks out for a while.
pub(super) fn suspend() -> Suspended {
    let active = are_active();
    mode::set_bit(bit::SAVED_HOOKS, false);
    Suspended(active)
}

/// The hooks of this thread, the outermost first.
pub fn snapshot() -> Vec<Arc<dyn SavedTensorHooks>> {
    if are_active() { DEFAULTS.with(|d| d.borrow().stack.clone()) } else { Vec::new() }
}

/// Puts in place what [`snapshot`] gave, on a thread of its own.
pub(super) fn restore(stack: Vec<Arc<dyn SavedTensorHooks>>) {
    if !stack.is_empty() {
        DEFAULTS.with(|d| d.borrow_mut().stack = stack);
        mode::set_bit(bit::SAVED_HOOKS, true);
    }
}

/// How many hooks this thread has.
pub(super) fn depth() -> usize {
    if are_active() { DEFAULTS.with(|d| d.borrow().stack.len()) } else { 0 }
}

/// Takes back all hooks but the first `depth`: what was pushed while a graph ran ends with it.
pub(super) fn truncate(depth: usize) {
    while self::depth() > depth {
        pop();
    }
}

/// Why hooks may not be used on this thread, if they may not.
pub fn disabled() -> Option<Arc<str>> {
    DEFAULTS.with(|d| d.borrow().disabled.clone())
}

/// Says that hooks may not be used on this thread, and why; `None` allows them again.
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

/// Hooks are in use as long as it lives; it stays on its thread.
#[must_use = "the hooks are in use as long as the guard lives"]
pub struct HooksGuard(PhantomData<*const ()>);

impl Drop for HooksGuard {
    fn drop(&mut self) {
        pop();
    }
}

/// Lets `hooks` pack what this thread's ops save, as long as the guard lives.
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

/// A saved tensor in the form that hooks gave it, with the history it is to have when it comes back.
pub(super) struct PackedTensor {
    packed: Box<dyn Packed>,
    history: History,
    /// The tangent, which hooks do not see: they run without forward mode.
    tangent: SpinLock<tangent::Kept>,
}

enum History {
    /// None is wanted.
    None,
    /// It is an output of the node that saved it.
    Output(u32),
    /// Another node's.
    Edge(Edge),
    /// A leaf whose gradients go to this accumulator, as long as something else keeps it.
    Leaf(WeakNode),
}

impl PackedTensor {
    /// Lets `hooks` pack `shown`, which has the elements of `tensor`, output `output` of the node that saves it.
    pub(super) fn new(
        hooks: &dyn SavedTensorHooks,
        tensor: &Tensor,
        shown: &Tensor,
        output: Option<u32>,
    ) -> Result<PackedTensor> {
        let history = match output {
            Some(nr) => History::Output(nr),
            None => match tensor.grad_fn()? {
                Some(node) => History::Edge(Edge::new(node, tensor.output_nr())),
                None => {
                    tensor.accumulator().map_or(History::None, |n| History::Leaf(n.downgrade()))
                }
            },
        };
        let version = tensor.version();
        let kept = tangent::handle(tensor)?;
        let packed = {
            let _below = mode::no_grad();
            let _plain = mode::set_forward(false);
            hooks.pack(shown)?
        };
        ensure!(
            tensor.version() == version,
            runtime,
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook."
        );
        Ok(PackedTensor { packed, history, tangent: SpinLock::new(kept) })
    }

    /// Notes the tangent that an output got after it was packed.
    pub(super) fn share_tangent(&self, output: &Tensor) -> Result<()> {
        let kept = tangent::handle(output)?;
        drop(self.tangent.with(|place| std::mem::replace(place, kept)));
        Ok(())
    }

    /// The tensor, which `saved_for` saved.
    pub(super) fn unpack(&self, saved_for: &Node) -> Result<Tensor> {
        let data = self.packed.unpack()?;
        match self.tangent.with(|place| place.clone()) {
            // (What hooks computed anew may have its tangent already.)
            kept if !kept.is_empty() && !tangent::is_dual(&data) => {
                let again = data.detached()?;
                tangent::give(&again, kept);
                let tensor = self.with_history(again.clone(), saved_for)?;
                tangent::share(&again, &tensor);
                Ok(tensor)
            }
            _ => self.with_history(data, saved_for),
        }
    }

    /// What hooks gave, with the history that it is to have.
    fn with_history(&self, data: Tensor, saved_for: &Node) -> Result<Tensor> {
        match &self.history {
            History::None => Ok(data),
            History::Output(nr) => with_history(&data, saved_for.clone(), *nr),
            History::Edge(edge) => match &edge.node {
                Some(node) => with_history(&data, node.clone(), edge.nr),
                None => Ok(data),
            },
            History::Leaf(accumulator) => {
                let leaf = data.detached()?;
                leaf.set_flag(Flag::REQUIRES_GRAD, true);
                if let Some(node) = accumulator.upgrade() {
                    leaf.share_accumulator(node);
                }
                Ok(leaf)
            }
        }
    }
}

fn with_history(data: &Tensor, node: Node, nr: u32) -> Result<Tensor> {
    let tensor = data.detached()?;
    tensor.set_history(node, nr);
    Ok(tensor)
}
