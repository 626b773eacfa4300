//! Evaluating one node: its hooks, the node itself, and gradients in the shape of the tensors they are for.
//!
//! Nothing here knows the task but for its request, so that any thread can do it. Start at [`run_node`].

use super::accumulate;
use super::fit::fit;
use super::masked;
use super::request::Request;
use crate::autograd::graph::hook::{TensorHook, run_tensor_hook};
use crate::autograd::graph::node::{Body, Node};
use crate::autograd::graph::{anomaly, blame};
use crate::autograd::variable::grad_dtype;
use crate::autograd::variable::meta::lock;
use crate::autograd::{arithmetic, mode};
use crate::dispatch::{Grads, Traits};
use crate::error::ensure;
use crate::prof::{self, RangeKind};
use crate::tensor::watch;
use crate::{Error, Result, Tensor};
use std::sync::atomic::Ordering;

/// The error of a node, with the line that made the node.
#[cold]
pub(super) fn explained(error: Error, node: &Node) -> Error {
    if anomaly::is_anomaly_enabled() {
        anomaly::explain(node);
    }
    blame::in_backward(error, node)
}

impl Node {
    /// Runs tensor hooks and retains gradients: also for a node that does not run itself.
    fn run_tensor_hooks(&self, grads: &mut Grads) -> Result<()> {
        let (tensor, retain): (Vec<_>, Vec<_>) = self.with_hooks(|h| {
            let retain = h.retain.iter().filter_map(|(nr, t)| Some((*nr, t.upgrade()?))).collect();
            (h.tensor.iter().map(|(_, nr, hook)| (*nr, hook.clone())).collect(), retain)
        });
        for (nr, hook) in tensor {
            run_tensor_hook(&hook, &mut grads[nr as usize])?;
        }
        for (nr, tensor) in retain {
            if let Some(grad) = &grads[nr as usize] {
                accumulate::retain(&tensor, grad)?;
            }
        }
        Ok(())
    }
}

/// Runs the tensor hooks of a leaf.
fn leaf_hooks(tensor: &Tensor, grads: &mut Grads) -> Result<()> {
    if tensor.meta_if_any().is_none() {
        return Ok(());
    }
    let hooks: Vec<TensorHook> = lock(tensor).hooks.iter().map(|(_, h)| h.clone()).collect();
    for hook in hooks {
        watch::refuse(|| "a hook sees a gradient".into());
        run_tensor_hook(&hook, &mut grads[0])?;
    }
    Ok(())
}

/// Runs the hooks of the tensors whose gradients these are.
fn run_tensor_hooks(node: &Node, grads: &mut Grads) -> Result<()> {
    if let Some(leaf) = node.leaf() {
        leaf_hooks(leaf, grads)?;
    }
    if !node.0.has_hooks.load(Ordering::Acquire) {
        return Ok(());
    }
    watch::refuse(|| "a hook sees a gradient".into());
    node.run_tensor_hooks(grads)
}

/// The gradients of a node as captures see them: before the node's hooks if it runs, else after the hooks of the tensors.
pub(super) fn seen(node: &Node, grads: &Grads, needed: bool) -> Result<Grads> {
    let mut seen = grads.clone();
    if !needed {
        run_tensor_hooks(node, &mut seen)?;
    }
    Ok(seen)
}

/// Runs hooks and the node; one gradient per edge, fitted to the edge's target.
pub(super) fn run_node(
    request: &Request<'_>,
    node: &Node,
    mut grads: Grads,
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Grads> {
    let has_hooks = node.0.has_hooks.load(Ordering::Acquire);
    run_tensor_hooks(node, &mut grads)?;
    if has_hooks {
        for hook in node.pre_hooks() {
            if let Some(new) = hook(&grads)? {
                grads = new;
            }
        }
    }
    let kept = if has_hooks && node.has_post_hooks() { grads.clone() } else { Grads::new() };
    let mut outputs = compute(request, node, grads, wanted)?;
    // (Read now, because the node may have registered some as it ran. These see no inputs if there were no hooks before.)
    let has_hooks = node.0.has_hooks.load(Ordering::Acquire);
    let posts = if has_hooks { node.post_hooks() } else { Vec::new() };
    for hook in posts {
        if let Some(new) = hook(&outputs, &kept)? {
            outputs = new;
        }
    }
    if !request.keep_graph {
        node.release();
    }
    if anomaly::is_anomaly_enabled() && anomaly::is_anomaly_check_nan_enabled() {
        check_nan(node, &outputs)?;
    }
    Ok(outputs)
}

/// Runs the node itself; one gradient per edge, fitted to the edge's target.
#[inline(always)]
pub(super) fn compute(
    request: &Request<'_>,
    node: &Node,
    grads: Grads,
    wanted: &dyn Fn(usize) -> bool,
) -> Result<Grads> {
    let edges = node.next_edges();
    let takes_real_part = match &node.0.body {
        Body::Custom(custom) => custom.takes_real_part(),
        _ => true,
    };
    let moves = matches!(&node.0.body, Body::Op { def, .. } if def.is(Traits::ACROSS_DEVICES));
    let given = mode::is_masked_zeros().then(|| grads.clone());
    let mut outputs = {
        // Nodes that are made in backward get the call site of the forward.
        let _site = request.create_graph.then(|| node.call_site().enter());
        if prof::is_observed() {
            apply_observed(node, grads, wanted)?
        } else {
            node.apply(grads, wanted)?
        }
    };
    if let Some(given) = given {
        masked::mend(node, &given, &mut outputs)?;
    }
    ensure!(
        outputs.len() >= edges.len() || edges.is_empty(),
        runtime,
        "Function {} returned an invalid number of gradients - expected {}, but got {}",
        node.name(),
        edges.len(),
        outputs.len()
    );
    for (index, (edge, output)) in edges.iter().zip(outputs.iter_mut()).enumerate() {
        let Some(target) = &edge.node else { continue };
        let Some(Some(meta)) = target.input_meta().get(edge.nr as usize) else { continue };
        if let Some(mut grad) = output.take() {
            let expected = grad_dtype::expected(target, meta, &grad);
            let meta = expected.as_ref().unwrap_or(meta);
            if takes_real_part && grad.dtype().is_complex() && !meta.dtype.is_complex() {
                grad = arithmetic::real_part(&grad)?;
            }
            let name = || {
                format!("Function {} returned an invalid gradient at index {index}", node.name())
            };
            *output = Some(fit(grad, meta, moves, name)?);
        }
    }
    Ok(outputs)
}

/// Refuses gradients with NaN among those that `node` computed.
#[cold]
fn check_nan(node: &Node, outputs: &Grads) -> Result<()> {
    let _guard = mode::no_grad();
    for (index, output) in outputs.iter().enumerate() {
        let has_nan = output.as_ref().map_or(Ok(false), arithmetic::has_nan)?;
        if has_nan {
            return Err(blame::nan(node, index));
        }
    }
    Ok(())
}

/// Runs a node as a range of the profiler.
#[cold]
#[inline(never)]
fn apply_observed(node: &Node, grads: Grads, wanted: &dyn Fn(usize) -> bool) -> Result<Grads> {
    let _range = prof::of_node(RangeKind::Backward, node, &grads);
    node.apply(grads, wanted)
}
