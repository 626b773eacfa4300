//! Modes that compute ops, whatever their arguments: what `TorchDispatchMode` of Python is made of.
//!
//! A thread has a stack of them; the innermost is asked, below autograd, and is off meanwhile: the ops that it calls go to the
//! next one. `torch_dispatch`, a layer of calls, asks. Invariant: a thread includes the key `Python` in its calls exactly as long as its
//! stack has a mode.

use crate::Result;
use crate::dispatch::{Arg, Form, OpDef, Outputs};
use crate::tensor::Key;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a `__torch_dispatch__` gives.
pub enum Dispatched {
    /// The results of the op; for forms that write, what they are is not looked at.
    Results(Outputs),
    /// That it does not implement the op; the text says who that is, for the error if nobody does.
    NotImplemented(String),
}

/// Computes ops in the place of their kernels: a mode of a thread, or the class of a tensor.
pub trait TorchDispatch: Any + Send + Sync {
    /// Gives the results of an op. A mode is off as long as this runs, so that it may call the op itself.
    ///
    /// # Errors
    /// Whatever went wrong; the op fails with it.
    fn torch_dispatch(
        &self,
        def: &'static OpDef,
        form: Form<'_>,
        args: &[Arg<'_>],
    ) -> Result<Dispatched>;
}

/// Says whether neither modes nor classes compute ops on this thread from now on; gives what held before.
pub fn set_disabled(is_disabled: bool) -> bool {
    Key::Python.exclude(is_disabled)
}

/// Whether neither modes nor classes compute ops on this thread now.
pub fn is_disabled() -> bool {
    Key::Python.is_excluded()
}

thread_local! {
    static STACK: RefCell<Vec<Arc<dyn TorchDispatch>>> = RefCell::default();
}

/// Lets `mode` compute this thread's ops until [`pop`].
pub fn push(mode: Arc<dyn TorchDispatch>) {
    STACK.with(|stack| stack.borrow_mut().push(mode));
    Key::Python.include(true);
}

/// Takes back the innermost mode.
pub fn pop() -> Option<Arc<dyn TorchDispatch>> {
    let last = STACK.with(|stack| stack.borrow_mut().pop());
    Key::Python.include(depth() > 0);
    last
}

/// How many modes this thread has.
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
pub(in crate::autograd) struct Paused(Arc<dyn TorchDispatch>);

impl Paused {
    /// Of this thread, if it has a mode.
    pub(in crate::autograd) fn innermost() -> Option<Paused> {
        pop().map(Paused)
    }
    /// The mode.
    pub(in crate::autograd) fn get(&self) -> &dyn TorchDispatch {
        &*self.0
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        push(self.0.clone());
    }
}

/// The modes of a thread, for one that goes on with its work.
pub(crate) struct Snapshot {
    modes: Vec<Arc<dyn TorchDispatch>>,
    is_disabled: bool,
}

impl Snapshot {
    /// This thread's.
    pub(crate) fn take() -> Snapshot {
        let modes = STACK.with(|s| s.borrow().clone());
        Snapshot { modes, is_disabled: is_disabled() }
    }

    /// Makes them the modes of this thread, which has none of its own.
    pub(crate) fn restore(self) {
        self.modes.into_iter().for_each(push);
        set_disabled(self.is_disabled);
    }
}

/// The mode is on as long as it lives; it stays on its thread.
#[must_use = "the mode is on as long as the guard lives"]
pub struct DispatchModeGuard(PhantomData<*const ()>);

impl Drop for DispatchModeGuard {
    fn drop(&mut self) {
        drop(pop());
    }
}

/// Lets `mode` compute this thread's ops as long as the guard lives.
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
