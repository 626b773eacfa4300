//! Dispatch modes, which compute ops whatever their arguments are: Python's `TorchDispatchMode` is made of them.
//!
//! A thread has a stack of modes. The innermost is called below autograd, by the layer `torch_dispatch`, and is off meanwhile:
//! the ops that it calls go to the next one. Invariant: a thread includes the key `Python` in its calls exactly as long as its
//! stack has a mode.

use crate::Result;
use crate::dispatch::{Arg, Form, OpDef, Outputs};
use crate::tensor::Key;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

/// What a `__torch_dispatch__` returns.
pub enum Dispatched {
    /// The results of the op; ignored for forms that write.
    Results(Outputs),
    /// The op is not implemented; the text names the mode or class, for the error if none implements it.
    NotImplemented(String),
}

/// Computes ops in place of their kernels: a mode of a thread, or the class of a tensor.
pub trait TorchDispatch: Any + Send + Sync {
    /// Computes an op. A mode is off while this runs, so that it may call the op itself.
    ///
    /// # Errors
    /// Any error; the op fails with it.
    fn torch_dispatch(
        &self,
        def: &'static OpDef,
        form: Form<'_>,
        args: &[Arg<'_>],
    ) -> Result<Dispatched>;
}

/// Disables (or enables) modes and classes that compute ops, on this thread; returns the previous value.
pub fn set_disabled(is_disabled: bool) -> bool {
    Key::Python.exclude(is_disabled)
}

/// Whether modes and classes that compute ops are disabled on this thread.
pub fn is_disabled() -> bool {
    Key::Python.is_excluded()
}

thread_local! {
    static STACK: RefCell<Vec<Arc<dyn TorchDispatch>>> = RefCell::default();
    static WATCHERS: Cell<usize> = const { Cell::new(0) };
}

/// Sets how many of this thread's modes only watch: they run every op as it is, so that rules need
/// not be made of small ops for their sake, and results stay those of a thread without modes.
/// Returns the previous number.
pub fn set_watchers(count: usize) -> usize {
    WATCHERS.replace(count)
}

/// Whether a mode of this thread may do more with ops than watch them.
pub(in crate::autograd) fn wants_ops() -> bool {
    Key::Python.is_included() && depth() > WATCHERS.get()
}

/// Makes `mode` the innermost mode of this thread, until [`pop`].
pub fn push(mode: Arc<dyn TorchDispatch>) {
    STACK.with(|stack| stack.borrow_mut().push(mode));
    Key::Python.include(true);
}

/// Removes the innermost mode.
pub fn pop() -> Option<Arc<dyn TorchDispatch>> {
    let last = STACK.with(|stack| stack.borrow_mut().pop());
    Key::Python.include(depth() > 0);
    last
}

/// The number of modes of this thread.
#[must_use]
pub fn depth() -> usize {
    STACK.with(|s| s.borrow().len())
}

/// The mode at `index`, counted from the outermost one.
#[must_use]
pub fn at(index: usize) -> Option<Arc<dyn TorchDispatch>> {
    STACK.with(|s| s.borrow().get(index).cloned())
}

/// The innermost mode, off as long as this lives.
pub(in crate::autograd) struct PausedMode(Arc<dyn TorchDispatch>);

impl PausedMode {
    /// Takes this thread's innermost mode off, if it has one.
    pub(in crate::autograd) fn innermost() -> Option<PausedMode> {
        pop().map(PausedMode)
    }
    /// The mode that was taken off.
    pub(in crate::autograd) fn get(&self) -> &dyn TorchDispatch {
        &*self.0
    }
}

impl Drop for PausedMode {
    fn drop(&mut self) {
        push(self.0.clone());
    }
}

/// The modes of a thread, for another that goes on with its work.
pub(crate) struct Snapshot {
    modes: Vec<Arc<dyn TorchDispatch>>,
    watchers: usize,
    is_disabled: bool,
}

impl Snapshot {
    /// The modes of this thread.
    pub(crate) fn take() -> Snapshot {
        let modes = STACK.with(|s| s.borrow().clone());
        Snapshot { modes, watchers: WATCHERS.get(), is_disabled: is_disabled() }
    }

    /// Makes these the modes of this thread, which has none of its own.
    pub(crate) fn restore(self) {
        self.modes.into_iter().for_each(push);
        set_watchers(self.watchers);
        set_disabled(self.is_disabled);
    }
}

/// A guard as long as which a mode is on; it stays on its thread.
#[must_use = "the mode is on as long as the guard lives"]
pub struct DispatchModeGuard(PhantomData<*const ()>);

impl Drop for DispatchModeGuard {
    fn drop(&mut self) {
        drop(pop());
    }
}

/// Makes `mode` the innermost mode of this thread as long as the guard lives.
///
/// ```
/// use pullback::autograd::dispatch_mode::dispatch_mode;
/// use pullback::autograd::torch_dispatch::{Dispatched, TorchDispatch};
/// use pullback::dispatch::{Arg, Form, OpDef};
/// use pullback::{Result, Tensor, autograd};
/// use std::sync::{Arc, Mutex};
///
/// /// Notes the names of ops.
/// #[derive(Default)]
/// struct Log(Mutex<Vec<String>>);
/// impl TorchDispatch for Log {
///     fn torch_dispatch(
///         &self,
///         def: &'static OpDef,
///         form: Form<'_>,
///         args: &[Arg<'_>],
///     ) -> Result<Dispatched> {
///         self.0.lock().unwrap().push(form.spelled(def).0.into_owned());
///         let results = match form {
///             Form::Functional => autograd::call(def, args)?,
///             Form::Inplace => autograd::call_inplace(def, args).map(pullback::dispatch::Outputs::One)?,
///             Form::Out(outs) => autograd::call_out(def, args, outs)
///                 .map(|()| pullback::dispatch::Outputs::Tensors(Default::default()))?,
///         };
///         Ok(Dispatched::Results(results))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let log = Arc::new(Log::default());
/// let x = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?.with_grad()?;
/// {
///     let _log = dispatch_mode(log.clone());
///     x.sin()?.sum()?.backward()?;
/// }
/// assert_eq!(log.0.lock().unwrap()[..2], ["sin", "sum"]);
/// assert!(log.0.lock().unwrap().contains(&"cos".to_owned())); // of the backward pass
/// # Ok(())
/// # }
/// ```
pub fn dispatch_mode(mode: Arc<dyn TorchDispatch>) -> DispatchModeGuard {
    push(mode);
    DispatchModeGuard(PhantomData)
}
