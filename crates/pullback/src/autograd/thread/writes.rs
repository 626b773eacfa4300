//! Observers of writes, which are called before an op changes a tensor in place.
//!
//! A thread has a stack of them; all are called, the innermost first. Invariant: the mode bit `WRITE_OBSERVERS` says whether
//! there are any, so that a write looks at nothing else.

use super::mode::{self, bit};
use crate::{Result, Tensor};
use std::cell::RefCell;
use std::sync::Arc;

/// An observer of in-place writes.
pub trait WriteObserver: Send + Sync {
    /// Called before an op writes to `tensor`, after all checks have passed.
    ///
    /// # Errors
    /// Any objection to it; the op fails with that and nothing is written.
    fn before_write(&self, tensor: &Tensor) -> Result<()>;
}

thread_local! {
    static OBSERVERS: RefCell<Vec<Arc<dyn WriteObserver>>> = const { RefCell::new(Vec::new()) };
}

/// Adds `observer` to this thread's observers, until [`pop`].
pub fn push(observer: Arc<dyn WriteObserver>) {
    OBSERVERS.with(|o| o.borrow_mut().push(observer));
    mode::set_bit(bit::WRITE_OBSERVERS, true);
}

/// Removes the innermost observer.
pub fn pop() {
    let last = OBSERVERS.with(|o| {
        let mut observers = o.borrow_mut();
        let last = observers.pop();
        mode::set_bit(bit::WRITE_OBSERVERS, !observers.is_empty());
        last
    });
    drop(last);
}

/// Calls the observers of this thread for a write to `tensor`.
#[inline(always)]
pub(in crate::autograd) fn announce(tensor: &Tensor) -> Result<()> {
    if mode::current() & bit::WRITE_OBSERVERS == 0 { Ok(()) } else { tell(tensor) }
}

#[cold]
fn tell(tensor: &Tensor) -> Result<()> {
    let observers = OBSERVERS.with(|o| o.borrow().clone());
    observers.iter().rev().try_for_each(|observer| observer.before_write(tensor))
}
