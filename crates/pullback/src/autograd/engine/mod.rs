//! The engine, which runs a graph backwards.
//!
//! In reading order: `request` what to run; `fit` gradients in the shape of their tensors; `accumulate` `AccumulateGrad`;
//! `rule` and `apply` a node by itself; `evaluate` a node with hooks and checks (`masked`: zeros that stay zero); `state` and
//! `running` the state of nodes and of tasks; `task` the core; `device` the threads of devices; `plan`, `stretch`, `branches`
//! branches on several threads; `survey` which nodes would run; `execute` all of it together. A backward inside of a node runs
//! as a task of its own on the same stack, and on a new thread once that stack is deep. Start at [`execute`], then `task`.

pub(in crate::autograd) mod accumulate;
pub(in crate::autograd) mod apply;
mod arrival;
mod branches;
mod device;
mod evaluate;
mod execute;
pub(in crate::autograd) mod fit;
pub(in crate::autograd) mod masked;
mod plan;
mod request;
mod rule;
mod running;
mod state;
mod stretch;
mod survey;
mod task;

pub use branches::{Branches, set_branches};
pub use execute::execute;
pub use request::{Goal, Request};
pub use running::{
    at_end, current_task_id, current_task_keeps_graph, is_capturing, is_whole_backward,
    queue_callback,
};
pub use survey::{execution_order, will_execute};

pub use super::graph::current::current_node;
