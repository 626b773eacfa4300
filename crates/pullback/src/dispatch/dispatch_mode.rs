//! Modes that answer ops, whatever their arguments: what `TorchDispatchMode` of Python is made of.
//!
//! A thread has a stack of them; the innermost is asked, below autograd, and is off while it answers: ops inside of its
//! answer go to the next one. [`super::handler`] asks. Invariant: the process's count of modes
//! (`tensor::handled`) is the sum of the lengths of all stacks and of the modes that are answering.

use super::handler::{Answer, Form};
use super::{Arg, OpDef};
use crate::Result;
use crate::tensor::handled;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Answers the ops of a thread, below autograd.
pub trait DispatchMode: Any + Send + Sync {
    /// Gives the results of an op, usually by calling it: as long as this runs, the mode is off.
    ///
    /// # Errors
    /// Whatever went wrong; the op fails with it.
    fn answer(&self, def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Answer>;
}

#[derive(Default)]
struct Stack(Vec<Arc<dyn DispatchMode>>);

impl Drop for Stack {
    fn drop(&mut self) {
        handled::remove_users(self.0.len());
    }
}

thread_local! {
    static STACK: RefCell<Stack> = RefCell::default();
}

/// Lets `mode` answer this thread's ops until [`pop`].
pub fn push(mode: Arc<dyn DispatchMode>) {
    handled::add_users(1);
    STACK.with(|s| s.borrow_mut().0.push(mode));
}

/// Takes back the innermost mode.
pub fn pop() -> Option<Arc<dyn DispatchMode>> {
    let last = STACK.with(|s| s.borrow_mut().0.pop());
    handled::remove_users(usize::from(last.is_some()));
    last
}

/// How many modes this thread has.
#[must_use]
pub fn depth() -> usize {
    STACK.with(|s| s.borrow().0.len())
}

/// The mode at `index`, counted from the outermost one.
#[must_use]
pub fn at(index: usize) -> Option<Arc<dyn DispatchMode>> {
    STACK.with(|s| s.borrow().0.get(index).cloned())
}

/// Whether a mode answers this thread's ops now.
pub(super) fn is_on() -> bool {
    depth() > 0 && !handled::is_off()
}

/// What the innermost mode says, if there is one.
pub(super) fn ask(def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Option<Result<Answer>> {
    /// Puts the mode back after its answer.
    struct Asked(Arc<dyn DispatchMode>);
    impl Drop for Asked {
        fn drop(&mut self) {
            STACK.with(|s| s.borrow_mut().0.push(self.0.clone()));
        }
    }
    if handled::is_off() {
        return None;
    }
    let asked = Asked(STACK.with(|s| s.borrow_mut().0.pop())?);
    Some(asked.0.answer(def, form, args))
}

/// The modes of a thread, for one that goes on with its work.
pub(crate) struct Snapshot {
    modes: Vec<Arc<dyn DispatchMode>>,
    is_off: bool,
}

impl Snapshot {
    /// This thread's.
    pub(crate) fn take() -> Snapshot {
        let modes = STACK.with(|s| s.borrow().0.clone());
        Snapshot { modes, is_off: handled::is_off() }
    }

    /// Makes them the modes of this thread, which has none of its own.
    pub(crate) fn restore(self) {
        self.modes.into_iter().for_each(push);
        handled::set_off(self.is_off);
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

/// Lets `mode` answer this thread's ops as long as the guard lives.
///
/// ```
/// use pullback::dispatch::dispatch_mode::{DispatchMode, dispatch_mode};
/// use pullback::dispatch::handler::{Answer, Form};
/// use pullback::dispatch::{Arg, OpDef};
/// use pullback::{Result, Tensor, autograd};
/// use std::sync::{Arc, Mutex};
///
/// /// Notes the names of ops.
/// #[derive(Default)]
/// struct Log(Mutex<Vec<String>>);
/// impl DispatchMode for Log {
///     fn answer(&self, def: &'static OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Result<Answer> {
///         self.0.lock().unwrap().push(form.spelled(def).0.into_owned());
///         let results = match form {
///             Form::Functional => autograd::call(def, args)?,
///             Form::Inplace => autograd::call_inplace(def, args).map(pullback::dispatch::Outputs::One)?,
///             Form::Out(outs) => autograd::call_out(def, args, outs)
///                 .map(|()| pullback::dispatch::Outputs::Tensors(Default::default()))?,
///         };
///         Ok(Answer::Results(results))
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
pub fn dispatch_mode(mode: Arc<dyn DispatchMode>) -> DispatchModeGuard {
    push(mode);
    DispatchModeGuard(PhantomData)
}
