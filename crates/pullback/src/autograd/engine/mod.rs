//! The engine: runs a graph backwards.
//!
//! In reading order: `request` what is asked for; `fit` gradients in the shape of their tensors, `accumulate` what is left at
//! them; `rule` and `apply` what a node does by itself; `evaluate` its turn with hooks and checks (`masked` zeros that stay
//! zero); `state` and `running` what is known of nodes and of executions; `task` the core; `device` the threads of devices;
//! `survey` what would run; `execute` all of it together. A backward inside a node runs as a task of its own on the same
//! stack, and on a fresh thread once that stack is deep. Start at [`execute`], then `task`.

pub(in crate::autograd) mod accumulate;
pub(in crate::autograd) mod apply;
mod arrival;
mod device;
mod evaluate;
mod execute;
pub(in crate::autograd) mod fit;
pub(in crate::autograd) mod masked;
mod request;
mod rule;
mod running;
mod state;
mod survey;
mod task;

pub use execute::execute;
pub use request::{Goal, Request};
pub use running::{
    at_end, current_task_id, current_task_keeps_graph, is_capturing, is_whole_backward,
    queue_callback,
};
pub use survey::{execution_order, will_execute};

pub use super::graph::current::current_node;
