//! The nodes that a running task runs, and their order, found by a second traversal.

use super::running::RUNNING;
use super::state::ReadyNode;
use super::task::Task;
use crate::Result;
use crate::autograd::graph::node::Node;
use crate::autograd::mode;
use crate::error::{bail, ensure};

/// Whether the task that is running on this thread runs `node` (or captures its gradients).
///
/// # Errors
/// `RuntimeError` outside of one.
pub fn will_execute(node: &Node) -> Result<bool> {
    RUNNING.with(|r| {
        let mut running = r.borrow_mut();
        let Some(task) = running.last_mut() else {
            bail!(
                runtime,
                "_get_should_execute_nodes should only be called during the backward pass"
            );
        };
        if task.survey.is_none() {
            let survey = Task::survey(task.request());
            let runs = survey.states.iter().filter(|state| !survey.trimmed || state.runs());
            task.survey = Some(runs.map(|state| (state.node, 0)).collect());
        }
        Ok(task.survey.as_ref().is_some_and(|survey| survey.contains_key(&node.id())))
    })
}

/// The nodes that the task running on this thread runs, in their order.
///
/// # Errors
/// `RuntimeError` outside of one, and unless multithreading is disabled.
pub fn execution_order() -> Result<Vec<Node>> {
    RUNNING.with(|r| {
        let running = r.borrow();
        let Some(task) = running.last() else {
            bail!(
                runtime,
                "_current_graph_task_execution_order should only be called during the backward pass"
            );
        };
        ensure!(
            !mode::is_multithreading_enabled(),
            runtime,
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, e.g. inside of `with torch.autograd.set_multithreading_enabled(False):`"
        );
        let mut survey = Task::survey(task.request());
        let mut order = Vec::new();
        for root in task.request().roots.iter().filter_map(|e| e.node.as_ref()) {
            if let Some(at) = survey.first_visit_of_root(root) {
                survey.push(at, root.clone());
            }
        }
        while let Some(ReadyNode { node, .. }) = survey.ready.pop() {
            for next in node.next_edges().iter().filter_map(|e| e.node.as_ref()) {
                let Some(at) = survey.find(next).filter(|_| survey.runs(next)) else { continue };
                survey.states[at].missing -= 1;
                if survey.states[at].missing == 0 {
                    survey.push(at, next.clone());
                }
            }
            order.push(node);
        }
        Ok(order)
    })
}
