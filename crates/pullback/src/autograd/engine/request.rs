//! What one execution is asked for.

use crate::Tensor;
use crate::autograd::graph::node::Edge;

/// What to do in one execution.
pub struct Request<'a> {
    /// Where to start.
    pub roots: Vec<Edge>,
    /// The gradients that start there.
    pub grads: Vec<Option<Tensor>>,
    /// Whether the graph can be run again.
    pub keep_graph: bool,
    /// Whether the backward is itself recorded.
    pub create_graph: bool,
    /// If given: only what leads to these edges runs.
    pub targets: Option<&'a [Edge]>,
    /// What becomes of the targets' gradients.
    pub goal: Goal,
}

/// What becomes of gradients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// They are added to `.grad` (backward).
    Accumulate,
    /// They are handed out (grad). One for which nothing arrived is `None`, if that is allowed.
    Capture {
        /// Whether it is.
        allow_unused: bool,
    },
}
