//! What an execution knows of its nodes: what each waits for, where it is found, which are ready.

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

/// Where something about each node is.
pub(super) type Index = HashMap<usize, u32, BuildHasherDefault<AddressHasher>>;

/// What a task knows of one node.
pub(super) struct State {
    /// The node's address.
    pub(super) node: usize,
    /// The sums of what has arrived, by inputs.
    pub(super) buffer: Grads,
    /// Gradients still to come.
    pub(super) missing: u32,
    /// With targets: where its list of captures begins, see [`Capture`].
    pub(super) captures: u32,
    /// With targets: whether it must run.
    pub(super) needed: bool,
    /// Whether it was met before, where nodes are gone through.
    pub(super) seen: bool,
}

impl State {
    /// With targets: whether its gradients are wanted.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.needed || self.captures != NO_CAPTURE
    }
}

/// Where to put input `nr` of a node, and where the node's next capture is.
pub(super) struct Capture {
    pub(super) nr: u32,
    pub(super) slot: usize,
    pub(super) next: u32,
}

/// No capture.
pub(super) const NO_CAPTURE: u32 = u32::MAX;

/// Where the states of nodes are. A number in a node is taken at its word only if the state there names the node:
/// numbers of earlier tasks need not be cleared (P. Briggs, L. Torczon, "An efficient representation for sparse
/// sets", 1993).
pub(super) enum Places {
    Numbered {
        _right: Numbering<'static>,
    },
    /// For a task inside of, or besides, another one.
    Hashed(Index),
}

/// A node that has all its gradients; in the order in which such nodes run.
pub(super) struct Ready {
    pub(super) node: Node,
    pub(super) order: u64,
    /// Where its state is.
    pub(super) at: usize,
}
impl PartialEq for Ready {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
