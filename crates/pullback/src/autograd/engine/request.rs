//! A request to the engine: the graph to run, and what to do with the gradients.

use crate::Tensor;
use crate::autograd::graph::node::Edge;

/// A request to run a graph backwards.
pub struct Request<'a> {
    /// The edges at which gradients start.
    pub roots: Vec<Edge>,
    /// The gradients that start there.
    pub grads: Vec<Option<Tensor>>,
    /// Whether the graph can be run again.
    pub keep_graph: bool,
    /// Whether the backward is itself recorded.
    pub create_graph: bool,
    /// If given, only nodes that lead to these edges run.
    pub targets: Option<&'a [Edge]>,
    /// What is done with the targets' gradients.
    pub goal: Goal,
}

/// What is done with gradients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// They are added to `.grad` (`backward`).
    Accumulate,
    /// They are returned (`grad`). A target at which no gradient arrived gives `None`, if that is
    /// allowed.
    Capture {
        /// Whether `None` is allowed.
        allow_unused: bool,
    },
}
