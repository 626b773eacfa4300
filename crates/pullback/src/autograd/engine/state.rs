//! The state of a task's nodes: what each waits for, how it is found, which nodes are ready.

use crate::autograd::graph::node::Node;
use crate::autograd::graph::numbering::Numbering;
use crate::dispatch::Grads;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Nodes are keyed by address: spreading its bits is all the hashing needed.
#[derive(Default, Clone, Copy)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    fn write_usize(&mut self, value: usize) {
        self.0 = ((value as u64) >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// Indices by the addresses of nodes.
pub(super) type AddressMap = HashMap<usize, u32, BuildHasherDefault<AddressHasher>>;

/// The state of one node in a task.
pub(super) struct NodeState {
    /// The node's address.
    pub(super) node: usize,
    /// The sums of what has arrived, by inputs.
    pub(super) buffer: Grads,
    /// The number of gradients that have not arrived.
    pub(super) missing: u32,
    /// With targets: the index of its first capture, see [`Capture`]; [`NO_CAPTURE`] if it has none.
    pub(super) captures: u32,
    /// With targets: whether it must run.
    pub(super) needed: bool,
    /// Whether the current traversal has visited it.
    pub(super) seen: bool,
}

impl NodeState {
    /// With targets: whether its gradients are needed, to run it or to capture them.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.needed || self.captures != NO_CAPTURE
    }
}

/// A request to capture the gradient of input `nr` of a node into `slot` of the results. The captures of a node are a list:
/// `next` is the index of the next one.
pub(super) struct Capture {
    pub(super) nr: u32,
    pub(super) slot: usize,
    pub(super) next: u32,
}

/// The index that ends a list of captures.
pub(super) const NO_CAPTURE: u32 = u32::MAX;

/// How a task finds the states of nodes: by a number in each node, or by a hash table. A number in a node is valid only if
/// the state with that number names the node, so that numbers of earlier tasks need not be cleared (P. Briggs, L. Torczon,
/// "An efficient representation for sparse sets", 1993).
pub(super) enum StateIndex {
    Numbered {
        _right: Numbering<'static>,
    },
    /// For a task inside of, or besides, another one.
    Hashed(AddressMap),
}

/// A node that has all its gradients, ordered by when it runs.
#[derive(Clone)]
pub(super) struct ReadyNode {
    pub(super) node: Node,
    pub(super) order: u64,
    /// The index of the node's [`NodeState`].
    pub(super) at: usize,
}
impl PartialEq for ReadyNode {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for ReadyNode {}
impl PartialOrd for ReadyNode {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ReadyNode {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
