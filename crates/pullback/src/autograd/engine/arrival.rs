//! Gradients in the order in which one thread would have added them, where several threads make them.

use crate::Tensor;
use smallvec::SmallVec;

/// A gradient that arrived, with what says in which order one thread would have added it.
pub(super) struct Arrival {
    /// The sequence number of the node it is from, and which of its results it is.
    pub(super) from: (u64, usize),
    /// At which of the inputs.
    pub(super) nr: u32,
    /// The gradient.
    pub(super) grad: Option<Tensor>,
}

/// What has arrived at the nodes of a task, by their places, until all of it has.
pub(super) struct Arrivals(Vec<SmallVec<[Arrival; 2]>>);

impl Arrivals {
    /// Of so many nodes.
    pub(super) fn of(nodes: usize) -> Arrivals {
        Arrivals((0..nodes).map(|_| SmallVec::new()).collect())
    }

    /// Notes a gradient of the node at `at` down; once it is the last, gives all of them in order.
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
