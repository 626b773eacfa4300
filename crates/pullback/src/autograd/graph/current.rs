//! The node that is being run on this thread.

use super::node::Node;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// The handle of the node that is being run, as long as an [`Evaluation`] lives.
    static EVALUATED: Cell<*const Node> = const { Cell::new(std::ptr::null()) };
}

/// The node being run on this thread.
pub fn current_node() -> Option<Node> {
    // SAFETY: null, or a handle that outlives the `Evaluation` which put it here and takes it away.
    EVALUATED.with(|node| unsafe { node.get().as_ref().cloned() })
}

/// Makes a node the one that is being run on this thread, until it is dropped; then the previous one is again.
pub(in crate::autograd) struct Evaluation<'a> {
    previous: *const Node,
    _node: PhantomData<&'a Node>,
}

impl<'a> Evaluation<'a> {
    #[inline]
    pub(in crate::autograd) fn of(node: &'a Node) -> Self {
        Evaluation { previous: EVALUATED.replace(node), _node: PhantomData }
    }
}

impl Drop for Evaluation<'_> {
    #[inline]
    fn drop(&mut self) {
        EVALUATED.set(self.previous);
    }
}
