//! Nodes that are no op's and no user's: errors that wait for a gradient, and gradients that are undefined.
//!
//! Their outputs are like those of an op: a node if gradients are wanted, plain tensors if not. Invariant: the outputs
//! share nothing of the inputs' histories but the edges. Start at [`delayed_error`].

use crate::autograd::graph::creation;
use crate::autograd::graph::current::current_node;
use crate::autograd::graph::input_meta::InputMeta;
use crate::autograd::graph::node::{Backward, Edge, Node};
use crate::autograd::{arithmetic, mode};
use crate::dispatch::Grads;
use crate::{Error, Result, Tensor};
use smallvec::SmallVec;

/// Fails with a message.
struct DelayedErrorBackward(String);

impl Backward for DelayedErrorBackward {
    fn name(&self) -> String {
        "torch::autograd::Error".into()
    }
    fn apply(&self, _: &Node, _: Grads) -> Result<Grads> {
        Err(Error::runtime(self.0.clone()))
    }
}

/// Takes gradients and gives none.
struct UndefinedGrad;

impl Backward for UndefinedGrad {
    fn name(&self) -> String {
        "torch::autograd::UndefinedGradBackward".into()
    }
    fn apply(&self, node: &Node, _: Grads) -> Result<Grads> {
        Ok(node.next_edges().iter().map(|_| None).collect())
    }
}

/// Aliases of `tensors` through which no gradient flows: a backward that gets there fails with `message`.
///
/// # Errors
/// As [`Tensor::gradient_edge`].
pub fn delayed_error(message: String, tensors: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let aliases = tensors.iter().map(|t| t.as_ref().map(Tensor::detached).transpose());
    let aliases: Vec<Option<Tensor>> = aliases.collect::<Result<_>>()?;
    // The error blames the line of the function whose backward this is, because that line is the
    // one to look at.
    let _site = current_node().map(|node| node.call_site().enter());
    attach(tensors, &aliases, Box::new(DelayedErrorBackward(message)))?;
    Ok(aliases)
}

/// A copy of `tensor` whose gradients do not reach it, not even as zeros.
///
/// # Errors
/// As [`Tensor::gradient_edge`], and for want of memory.
pub fn undefined_grad(tensor: &Tensor) -> Result<Tensor> {
    let copy = {
        let _below = mode::set_grad(false);
        arithmetic::contiguous_clone(tensor)?
    };
    attach(&[Some(tensor.clone())], &[Some(copy.clone())], Box::new(UndefinedGrad))?;
    Ok(copy)
}

/// Gives the outputs one node, with an edge for each input, if an input requires grad.
pub(in crate::autograd) fn attach(
    inputs: &[Option<Tensor>],
    outputs: &[Option<Tensor>],
    backward: Box<dyn Backward>,
) -> Result<()> {
    if !mode::is_recording() || !inputs.iter().flatten().any(Tensor::requires_grad) {
        return Ok(());
    }
    let edge = |t: &Option<Tensor>| t.as_ref().map_or(Ok(Edge::default()), Tensor::gradient_edge);
    let edges: SmallVec<[Edge; 2]> = inputs.iter().map(edge).collect::<Result<_>>()?;
    let is_due = |t: &&Tensor| t.dtype().is_differentiable();
    let metas = outputs.iter().map(|t| t.as_ref().filter(is_due).map(InputMeta::of)).collect();
    let node = Node::custom(backward, edges, metas);
    for (nr, output) in outputs.iter().enumerate() {
        if let Some(output) = output.as_ref().filter(is_due) {
            output.set_history(node.clone(), nr as u32);
        }
    }
    creation::announce()
}
