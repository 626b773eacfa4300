//! Hooks that see each node that is made on their thread.
//!
//! A hook is to see a node with all that belongs to it: edges, saved tensors, outputs. So nodes are noted as they are made, and
//! the hooks run where the call that made them has come to its end ([`announce`]). Invariant: without hooks nothing is noted.

use super::node::Node;
use crate::Result;
use crate::autograd::thread::creation_hooks::{self, are_active};
use crate::error::ensure;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

/// A hook that sees nodes as they are made.
pub trait NodeCreationHook: Send + Sync {
    /// Called once for each node, when it is complete. It may add hooks to the node, but make no node of its own.
    ///
    /// # Errors
    /// Any objection to the node; the call that made it fails with that.
    fn created(&self, node: &Node) -> Result<()>;
}

/// A hook as the thread keeps it.
struct KeptHook(Box<dyn NodeCreationHook>);

thread_local! {
    /// The nodes that no hook has seen yet.
    static MADE: RefCell<Vec<Node>> = const { RefCell::new(Vec::new()) };
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Lets `hook` see the nodes that are made on this thread, after the hooks added before, until
/// [`pop`].
pub fn push(hook: Box<dyn NodeCreationHook>) {
    creation_hooks::push(Arc::new(KeptHook(hook)));
}

/// Removes the hook that was added last.
pub fn pop() {
    creation_hooks::pop();
    if !are_active() {
        forget_all();
    }
}

/// A guard as long as which a hook sees nodes; it stays on its thread.
#[must_use = "the hook sees nodes as long as the guard lives"]
pub struct CreationGuard(PhantomData<*const ()>);

impl Drop for CreationGuard {
    fn drop(&mut self) {
        pop();
    }
}

/// Lets `hook` see the nodes that are made on this thread as long as the guard lives, after the
/// hooks added before. The threads of backward have the same hooks.
pub fn node_creation_hook(hook: impl NodeCreationHook + 'static) -> CreationGuard {
    push(Box::new(hook));
    CreationGuard(PhantomData)
}

/// Notes a node for the hooks.
#[inline(always)]
pub(super) fn note(node: &Node) {
    if are_active() {
        note_now(node);
    }
}

#[cold]
fn note_now(node: &Node) {
    let node = node.clone();
    MADE.with(|made| made.borrow_mut().push(node));
}

/// Hides this node, which is a part of another one, from hooks.
pub(in crate::autograd) fn hide(node: &Node) {
    if are_active() {
        let is_it = |other: &Node| other.is_same(node);
        let hidden = MADE.with(|made| {
            let mut made = made.borrow_mut();
            made.iter().rposition(is_it).map(|at| made.remove(at))
        });
        drop(hidden);
    }
}

/// [`announce`] after a call that has made nodes; if the call failed, nobody sees them.
#[inline(always)]
pub(in crate::autograd) fn settle(result: Result<()>) -> Result<()> {
    if !are_active() {
        return result;
    }
    match result {
        Ok(()) => tell(),
        Err(error) => {
            forget_all();
            Err(error)
        }
    }
}

fn forget_all() {
    drop(MADE.with(RefCell::take));
}

/// Lets the hooks of this thread see the nodes that were made since the last time: they are complete now.
///
/// # Errors
/// The first that a hook gives; `RuntimeError` inside of a hook if it has made a node.
#[inline(always)]
pub fn announce() -> Result<()> {
    if are_active() { tell() } else { Ok(()) }
}

/// A guard: while it lives, hooks of this thread run, which must not make nodes.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.with(|it| it.set(false));
        forget_all();
    }
}

#[cold]
#[inline(never)]
fn tell() -> Result<()> {
    let made = MADE.with(RefCell::take);
    let Some(first) = made.first() else { return Ok(()) };
    ensure!(
        !IS_RUNNING.with(Cell::get),
        runtime,
        "Creating a new autograd node from inside a node creation hook is not supported. Node creation hooks should only observe the node (e.g. record it, stash metadata, or register backward hooks on it); got a new node of type {} while a hook was running.",
        first.name()
    );
    IS_RUNNING.with(|it| it.set(true));
    let _running = Running;
    let hooks = creation_hooks::snapshot();
    for node in &made {
        for hook in hooks.iter().filter_map(|hook| hook.downcast_ref::<KeptHook>()) {
            hook.0.created(node)?;
        }
    }
    Ok(())
}
