//! The stack of hooks that see each node which is made (`graph::creation`).
//!
//! Here they are values without a type, since nothing in this folder knows nodes. Invariant: the mode bit `CREATION_HOOKS` says
//! whether the stack has any, so that making a node looks at nothing else.

use super::mode::{self, bit};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// A hook, as `graph::creation` knows it.
pub(in crate::autograd) type AnyHook = Arc<dyn Any + Send + Sync>;

thread_local! {
    static STACK: RefCell<Vec<AnyHook>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread has hooks.
#[inline(always)]
pub(in crate::autograd) fn are_active() -> bool {
    mode::current() & bit::CREATION_HOOKS != 0
}

/// Adds a hook to this thread's.
pub(in crate::autograd) fn push(hook: AnyHook) {
    STACK.with(|stack| stack.borrow_mut().push(hook));
    mode::set_bit(bit::CREATION_HOOKS, true);
}

/// Removes the hook that was added last.
pub(in crate::autograd) fn pop() {
    let last = STACK.with(|stack| {
        let mut stack = stack.borrow_mut();
        let last = stack.pop();
        mode::set_bit(bit::CREATION_HOOKS, !stack.is_empty());
        last
    });
    // (What a hook holds may run any code as it is dropped: not while the stack is borrowed.)
    drop(last);
}

/// The hooks of this thread, in the order in which they were added.
pub(in crate::autograd) fn snapshot() -> Vec<AnyHook> {
    if are_active() { STACK.with(|stack| stack.borrow().clone()) } else { Vec::new() }
}

/// Makes `hooks`, which [`snapshot`] returned on another thread, those of this one.
pub(in crate::autograd) fn restore(hooks: Vec<AnyHook>) {
    if !hooks.is_empty() {
        STACK.with(|stack| *stack.borrow_mut() = hooks);
        mode::set_bit(bit::CREATION_HOOKS, true);
    }
}
