//! Adding gradients in the order in which one thread would have added them, where several threads compute them.

use crate::Tensor;
use smallvec::SmallVec;

/// A gradient that arrived, with its position in the order in which one thread would have added it.
pub(super) struct Arrival {
    /// The sequence number of the node that computed it, and the index among that node's gradients.
    pub(super) from: (u64, usize),
    /// The input at which it arrived.
    pub(super) nr: u32,
    /// The gradient.
    pub(super) grad: Option<Tensor>,
}

/// The gradients that have arrived at the nodes of a task, by the nodes' indices, until all of a node have.
pub(super) struct Arrivals(Vec<SmallVec<[Arrival; 2]>>);

impl Arrivals {
    /// The arrivals at `nodes` nodes.
    pub(super) fn of(nodes: usize) -> Arrivals {
        Arrivals((0..nodes).map(|_| SmallVec::new()).collect())
    }

    /// Stores a gradient of the node at `at`; after the last one, returns all of them in order.
    pub(super) fn note(
        &mut self,
        at: usize,
        arrival: Arrival,
        is_last: bool,
    ) -> SmallVec<[Arrival; 2]> {
        self.0[at].push(arrival);
        if !is_last {
            return SmallVec::new();
        }
        let mut all = std::mem::take(&mut self.0[at]);
        // bounded: by the edges of a node.
        all.sort_by_key(|arrival| (u64::MAX - arrival.from.0, arrival.from.1));
        all
    }
}
