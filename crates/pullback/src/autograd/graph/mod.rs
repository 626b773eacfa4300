//! The backward graph: nodes, the edges between them, who holds them, and what is known of them.
//!
//! In the order in which the modules build on each other. Nothing here computes a gradient. Start at [`node`].

pub(in crate::autograd) mod accumulator;
pub mod anomaly;
pub(in crate::autograd) mod blame;
pub(in crate::autograd) mod counted;
pub(in crate::autograd) mod current;
pub mod hook;
pub(in crate::autograd) mod input_meta;
mod make;
pub(in crate::autograd) mod node;
mod node_hook;
pub(in crate::autograd) mod numbering;
pub(in crate::autograd) mod sequence;
