//! Running a node by itself, and dropping the values that it saved.

use super::{accumulate, rule};
use crate::Result;
use crate::autograd::graph::node::{Body, Edge, Node};
use crate::call_site::CallSite;
use crate::dispatch::Grads;

impl Node {
    /// Runs the node; returns one gradient per edge.
    #[inline]
    pub(in crate::autograd) fn apply(
        &self,
        grads: Grads,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Grads> {
        match &self.0.body {
            Body::Op { def, slots, facts } => {
                let kept = (slots.as_slice(), *facts);
                rule::apply(self, def, kept, &grads, wanted)
            }
            Body::AccumulateGrad(it) => {
                accumulate::accumulate(self, it.leaf(), grads).map(|()| Grads::new())
            }
            Body::Custom(custom) => custom.apply(self, grads),
        }
    }
    /// Drops the saved values.
    pub(in crate::autograd) fn release(&self) {
        match &self.0.body {
            Body::Op { slots, .. } => {
                let at = CallSite::here();
                slots.iter().for_each(|slot| slot.release(at));
            }
            Body::AccumulateGrad(_) => {}
            Body::Custom(custom) => custom.release(),
        }
    }

    /// Runs the node by hand, outside of any backward: one gradient per edge.
    ///
    /// # Errors
    /// As the node's rules.
    pub fn run(&self, grads: Grads) -> Result<Grads> {
        let edges = self.next_edges();
        self.apply(grads, &|index| edges.get(index).is_some_and(Edge::is_valid))
    }
}
