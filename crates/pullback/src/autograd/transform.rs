//! What transforms of functions (`grad`, `vjp`) need of the graph: inputs of their own, and whether results depend on
//! anything else.
//!
//! A transform differentiates with respect to aliases of what it was given ([`input`]): their histories go on to those of
//! the originals, so that transforms around it differentiate through them. What depends on nothing else that requires
//! grad leaves the transform without history ([`detach`]).

use super::node::{Backward, Edge, InputMeta, Node};
use super::tangent;
use crate::dispatch::Grads;
use crate::{Result, Tensor};
use smallvec::smallvec;
use std::any::Any;
use std::collections::HashSet;

/// The node of an input.
struct Input;

impl Backward for Input {
    fn name(&self) -> String {
        "TransformInputBackward".into()
    }
    fn apply(&self, _: &Node, grads: Grads) -> Result<Grads> {
        Ok(grads)
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// An alias of `tensor` that requires grad, whatever the mode; its history goes on to that of `tensor`.
///
/// # Errors
/// As [`Tensor::gradient_edge`]; `RuntimeError` for dtypes without derivative.
pub fn input(tensor: &Tensor) -> Result<Tensor> {
    crate::error::ensure!(
        tensor.dtype().is_differentiable(),
        runtime,
        "only Tensors of floating point and complex dtype can require gradients, but got {}",
        tensor.dtype().name()
    );
    let alias = without_history(tensor)?;
    let edge = if tensor.requires_grad() { tensor.gradient_edge()? } else { Edge::default() };
    let node =
        Node::custom(Box::new(Input), smallvec![edge], smallvec![Some(InputMeta::of(&alias))]);
    alias.set_history(node, 0);
    Ok(alias)
}

/// Another handle to the value that has its tangent, but no history.
fn without_history(tensor: &Tensor) -> Result<Tensor> {
    let alias = tensor.detached()?;
    if let Some(tangent) = tangent::of(tensor)? {
        tangent::set(&alias, tangent, false)?;
    }
    Ok(alias)
}

/// Whether any of the outputs depends on something that requires grad beside these inputs, which [`input`] made, or on what
/// these are aliases of, if that requires grad.
///
/// # Errors
/// As [`Tensor::grad_fn`].
pub fn reaches_out(outputs: &[Tensor], inputs: &[Tensor]) -> Result<bool> {
    let mut own = Vec::new();
    for tensor in inputs {
        own.extend(tensor.grad_fn()?);
    }
    let mut seen = HashSet::new();
    let mut open = Vec::new();
    for output in outputs.iter().filter(|output| output.requires_grad()) {
        match output.gradient_edge()?.node {
            Some(node) => open.push(node),
            None => return Ok(true),
        }
    }
    while let Some(node) = open.pop() {
        if !seen.insert(node.id()) {
            continue;
        }
        let is_own = own.iter().any(|other| other.is_same(&node));
        let mut is_end = !is_own;
        for next in node.next_edges().iter().filter_map(|edge| edge.node.clone()) {
            is_end = false;
            open.push(next);
        }
        // A leaf, or an input of a transform around this one.
        if is_end {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The outputs, without history where they depend on nothing but the inputs ([`reaches_out`]).
///
/// # Errors
/// As [`reaches_out`].
pub fn detach(outputs: &[Tensor], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let one = |output: &Tensor| {
        if output.requires_grad() && !reaches_out(std::slice::from_ref(output), inputs)? {
            return without_history(output);
        }
        Ok(output.clone())
    };
    outputs.iter().map(one).collect()
}
