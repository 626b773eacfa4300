//! The backward graph: nodes, the edges between them, and who holds them.
//!
//! In reading order: `counted` the pointer to a node; `numbering` and `sequence` the numbers of nodes; `input_meta` what a
//! gradient must look like; `hook` the types of hooks; `turn` one thread at a time; `accumulator` the node that a leaf owns;
//! `node`; `node_hook` adding and removing hooks; `current` the node that is being run; `blame` lines of the program in
//! errors; `anomaly` anomaly mode; `creation` hooks that see new nodes; `make` makes nodes. Nothing here computes a gradient. Start at [`node`].

pub(in crate::autograd) mod accumulator;
pub mod anomaly;
pub(in crate::autograd) mod blame;
pub(in crate::autograd) mod counted;
pub mod creation;
pub(in crate::autograd) mod current;
pub mod hook;
pub(in crate::autograd) mod input_meta;
mod make;
pub(in crate::autograd) mod node;
mod node_hook;
pub(in crate::autograd) mod numbering;
pub(in crate::autograd) mod sequence;
pub(in crate::autograd) mod turn;
