//! What transforms of functions (`grad`, `vjp`) need of the graph: inputs of their own, and whether results depend on
//! anything else.
//!
//! A transform differentiates with respect to aliases of what it was given ([`input`]): their histories go on to those of
//! the originals, so that transforms around it differentiate through them. What depends on nothing else that requires
//! grad leaves the transform without history ([`detach`]).

use super::graph::creation;
use super::graph::input_meta::InputMeta;
use super::graph::node::{Backward, Edge, Node};
pub(crate) use super::thread::captured::check_change;
pub use super::thread::captured::{enter, exit, is_open, own};
use super::variable::tangent;
use crate::dispatch::Grads;
use crate::tensor::Key;
use crate::{Result, Tensor};
use pullback_kernels::memory;
use smallvec::smallvec;
use std::any::Any;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The node of an input of a transform.
#[derive(Default)]
struct TransformInput {
    /// Whether the transform has ended.
    is_closed: AtomicBool,
}

impl Backward for TransformInput {
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

/// A transform as long as which its function runs: in-place writes to what the function captured are refused.
#[must_use = "the transform lasts as long as the guard"]
pub struct OpenTransform(u32);

impl OpenTransform {
    /// Begins a transform with these inputs, which are aliases made for it: its function may write to them.
    pub fn new<'a>(inputs: impl IntoIterator<Item = &'a Tensor>) -> OpenTransform {
        let open = OpenTransform(enter());
        own(inputs);
        open
    }
}

impl Drop for OpenTransform {
    fn drop(&mut self) {
        exit(self.0);
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
        tensor.dtype().spelled()
    );
    let alias = without_history(tensor)?;
    let edge = if tensor.requires_grad() { tensor.gradient_edge()? } else { Edge::default() };
    let node = Node::custom(
        Box::new(TransformInput::default()),
        smallvec![edge],
        smallvec![Some(InputMeta::of(&alias))],
    );
    alias.set_history(node, 0);
    creation::announce()?;
    Ok(alias)
}

/// Other arguments of the innermost transform's function, as aliases that are its own: it may write to them, which changes the
/// tensors, but not their history. `None` for tensors that stay themselves: those with a history of their own, which a write
/// would belong to, and those of sparse layouts and of classes with ops of their own.
///
/// # Errors
/// Only if memory runs out.
pub fn arguments(tensors: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    let is_itself = |tensor: &Tensor| {
        let keys = tensor.keys();
        tensor.requires_grad() || tensor.is_sparse() || keys.has(Key::Python)
    };
    let alias = |tensor: &Tensor| {
        if is_itself(tensor) { Ok(None) } else { without_history(tensor).map(Some) }
    };
    let mut aliases = memory::with_capacity(tensors.len())?;
    for tensor in tensors {
        aliases.push(alias(tensor)?);
    }
    own(aliases.iter().flatten());
    Ok(aliases)
}

/// Ends the transform of these inputs: tensors that depend on nothing else have no derivative any more.
pub fn close(inputs: &[Tensor]) {
    for tensor in inputs {
        // (An input that was written to has another history now, which leads to it.)
        if let Ok(Some(node)) = tensor.grad_fn()
            && let Some(input) = as_input(&node)
        {
            input.is_closed.store(true, Relaxed);
        }
    }
}

fn as_input(node: &Node) -> Option<&TransformInput> {
    node.backward()?.as_any()?.downcast_ref()
}

/// Another handle to the value that has its tangents, but no history.
pub(super) fn without_history(tensor: &Tensor) -> Result<Tensor> {
    let alias = tensor.detached()?;
    tangent::each(tensor, &mut |tangent| tangent::set(&alias, tangent))?;
    Ok(alias)
}

/// Refuses that a tensor is given other data where a transform computes with it: its derivatives, or the values of its examples,
/// would be those of the old data.
///
/// # Errors
/// `RuntimeError` if the tensor is batched, or a transform is open and it depends on its inputs.
pub fn check_data(tensor: &Tensor) -> Result<()> {
    let is_batched = tensor.keys().has(Key::FuncTorchBatched);
    let is_derived = || -> Result<bool> {
        let mut has_tangent = false;
        tangent::each(tensor, &mut |_| {
            has_tangent = true;
            Ok(())
        })?;
        Ok(has_tangent || tensor.grad_fn()?.is_some())
    };
    crate::error::ensure!(
        !is_batched,
        runtime,
        "mutating directly with `.data` under vmap transform is not allowed. Use copy_() to write to the examples"
    );
    crate::error::ensure!(
        !is_open() || !is_derived()?,
        runtime,
        "mutating directly with `.data` inside functorch transform is not allowed. Use a new tensor, or copy_()"
    );
    Ok(())
}

/// Whether any of the outputs depends on something that requires grad beside these inputs, which [`input`] made, or on what
/// these are aliases of, if that requires grad.
///
/// # Errors
/// As [`Tensor::grad_fn`].
pub fn reaches_out(outputs: &[Tensor], inputs: &[Tensor]) -> Result<bool> {
    let (own, mut seen) = (nodes_of(inputs)?, HashSet::new());
    for output in outputs {
        if reaches_beyond(output, &own, &mut seen)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nodes_of(inputs: &[Tensor]) -> Result<HashSet<usize>> {
    let id = |tensor: &Tensor| Ok(tensor.grad_fn()?.map(|node| node.id()));
    inputs.iter().filter_map(|tensor| id(tensor).transpose()).collect()
}

/// Whether a path from these nodes leads to another leaf than the inputs; `seen` are nodes from which none does.
fn reaches_beyond(
    output: &Tensor,
    own: &HashSet<usize>,
    seen: &mut HashSet<usize>,
) -> Result<bool> {
    if !output.requires_grad() {
        return Ok(false);
    }
    let Some(node) = output.gradient_edge()?.node else { return Ok(true) };
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if !seen.insert(node.id()) {
            continue;
        }
        let before = open.len();
        open.extend(node.next_edges().iter().filter_map(|edge| edge.node.clone()));
        let is_end = open.len() == before && !own.contains(&node.id());
        // A leaf, or an input of a transform around this one.
        if is_end && as_input(&node).is_none_or(|input| !input.is_closed.load(Relaxed)) {
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
    let (own, mut seen) = (nodes_of(inputs)?, HashSet::new());
    let mut shown = Vec::with_capacity(outputs.len());
    for output in outputs {
        if !output.requires_grad() {
            shown.push(output.clone());
        } else if reaches_beyond(output, &own, &mut seen)? {
            // (Nodes that were seen on the way may lead there too.)
            seen.clear();
            shown.push(output.clone());
        } else {
            shown.push(without_history(output)?);
        }
    }
    Ok(shown)
}
