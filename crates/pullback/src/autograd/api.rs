//! The entry points of backward: `backward`, `grad`, and the methods of tensors that lead to them.

use super::arithmetic;
use super::engine::{Goal, Request, execute};
use super::graph::node::{Edge, Node};
use crate::error::ensure;
use crate::{DType, Device, Error, Result, Tensor};

/// Options of [`backward`] and [`grad`].
#[derive(Clone, Copy, Default)]
pub struct BackwardOptions {
    /// Whether the graph can be run again; defaults to `create_graph`.
    pub retain_graph: Option<bool>,
    /// Whether the backward is itself recorded, for higher derivatives.
    pub create_graph: bool,
    /// For [`grad`]: an input that was not used gives `None` instead of an error.
    pub allow_unused: bool,
}

/// The gradient that starts at `output`: the given one, checked, or ones for a single element;
/// `None` if none is given and `output` does not require grad.
///
/// # Errors
/// `RuntimeError` if there is none and `output` is no single real number; as [`check_start`].
pub fn start(output: &Tensor, grad: Option<&Tensor>, index: usize) -> Result<Option<Tensor>> {
    if let Some(grad) = grad {
        check_start(output.shape(), output.dtype(), grad, index)?;
        return Ok(Some(grad.clone()));
    }
    if !output.requires_grad() {
        return Ok(None);
    }
    let one = implicit_start(output.shape(), output.dtype(), Device::Cpu)?;
    // A tensor with `__torch_dispatch__` computes its own ones by its class.
    Ok(Some(if output.needs_layers() { arithmetic::ones_like(output)? } else { one }))
}

/// A tensor of one, as the gradient of an output of this shape and dtype on this device.
///
/// # Errors
/// `RuntimeError` unless that is one real number.
pub fn implicit_start(shape: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
    ensure!(
        shape.iter().all(|&size| size == 1),
        runtime,
        "grad can be implicitly created only for scalar outputs"
    );
    ensure!(
        dtype.is_floating_point(),
        runtime,
        "grad can be implicitly created only for real scalar outputs but got torch.{}",
        dtype.spelled()
    );
    let one = arithmetic::ones(shape, dtype)?;
    if device == Device::Cpu { Ok(one) } else { arithmetic::to_device(&one, device) }
}

/// Refuses a gradient that cannot start at output `index`, which has this shape and dtype.
///
/// # Errors
/// `RuntimeError` if the shapes differ, or one is complex and the other is not.
pub fn check_start(shape: &[i64], dtype: DType, grad: &Tensor, index: usize) -> Result<()> {
    ensure!(
        grad.shape() == shape,
        runtime,
        "Mismatch in shape: grad_output[{index}] has a shape of torch.Size({}) and output[{index}] has a shape of torch.Size({}).",
        arithmetic::shape_text(grad.shape()),
        arithmetic::shape_text(shape)
    );
    ensure!(
        grad.dtype().is_complex() == dtype.is_complex(),
        runtime,
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{index}] has a dtype of torch.{} and output[{index}] has a dtype of torch.{}.",
        grad.dtype().spelled(),
        dtype.spelled()
    );
    Ok(())
}

fn roots(
    outputs: &[&Tensor],
    grads: &[Option<&Tensor>],
) -> Result<(Vec<Edge>, Vec<Option<Tensor>>)> {
    ensure!(
        outputs.len() == grads.len(),
        runtime,
        "got {} tensors and {} gradients",
        outputs.len(),
        grads.len()
    );
    let mut edges = Vec::with_capacity(outputs.len());
    let mut starts = Vec::with_capacity(outputs.len());
    for (index, (output, grad)) in outputs.iter().zip(grads).enumerate() {
        starts.push(start(output, *grad, index)?);
        let edge = output.gradient_edge()?;
        ensure!(
            edge.is_valid(),
            runtime,
            "element {index} of tensors does not require grad and does not have a grad_fn"
        );
        edges.push(edge);
    }
    Ok((edges, starts))
}

/// Adds the gradients of `outputs` to the `.grad` of every leaf (or only of `inputs`).
///
/// # Errors
/// `RuntimeError` for outputs without graph, gradients of the wrong shape, freed graphs.
#[track_caller]
pub fn backward(
    outputs: &[&Tensor],
    grads: &[Option<&Tensor>],
    inputs: Option<&[&Tensor]>,
    options: BackwardOptions,
) -> Result<()> {
    let (edges, starts) = roots(outputs, grads)?;
    let mut targets = None;
    if let Some(inputs) = inputs {
        ensure!(!inputs.is_empty(), runtime, "`inputs` argument to `backward()` cannot be empty.");
        let mut list = Vec::with_capacity(inputs.len());
        for input in inputs {
            input.retain_grad()?;
            list.push(input.gradient_edge()?);
        }
        targets = Some(list);
    }
    execute(Request {
        roots: edges,
        grads: starts,
        keep_graph: options.retain_graph.unwrap_or(options.create_graph),
        create_graph: options.create_graph,
        targets: targets.as_deref(),
        goal: Goal::Accumulate,
    })?;
    Ok(())
}

/// The gradients of the sum of `outputs` (weighted by `grads`) with respect to `inputs`, as a list in
/// their order; `.grad` is left alone.
///
/// # Errors
/// As [`backward`]; also for inputs that do not require grad or were not used.
#[track_caller]
pub fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    grads: &[Option<&Tensor>],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let (edges, starts) = roots(outputs, grads)?;
    let mut targets = Vec::with_capacity(inputs.len());
    for input in inputs {
        ensure!(
            input.requires_grad(),
            runtime,
            "One of the differentiated Tensors does not require grad"
        );
        targets.push(match input.grad_fn()? {
            Some(node) => Edge::new(node, input.output_nr()),
            // A leaf that no graph uses has no accumulator: nothing will arrive.
            None => Edge { node: input.live_accumulator(), nr: 0 },
        });
    }
    grad_of_edges(edges, starts, &targets, options)
}

/// Computes gradients as [`grad`] does, between edges of the graph.
///
/// # Errors
/// As [`grad`].
#[track_caller]
pub fn grad_of_edges(
    roots: Vec<Edge>,
    grads: Vec<Option<Tensor>>,
    targets: &[Edge],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    execute(Request {
        roots,
        grads,
        keep_graph: options.retain_graph.unwrap_or(options.create_graph),
        create_graph: options.create_graph,
        targets: Some(targets),
        goal: Goal::Capture { allow_unused: options.allow_unused },
    })
}

impl Tensor {
    /// Computes the gradients of this (one-element) tensor with respect to the leaves it came from and
    /// adds them to their `.grad`.
    ///
    /// # Errors
    /// As [`backward`].
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        backward(&[self], &[None], None, BackwardOptions::default())
    }
    /// As [`Tensor::backward`], starting from `grad` (of this tensor's shape).
    ///
    /// # Errors
    /// As [`backward`].
    #[track_caller]
    pub fn backward_with(&self, grad: &Tensor) -> Result<()> {
        backward(&[self], &[Some(grad)], None, BackwardOptions::default())
    }
    /// The node and input at which a gradient of this tensor enters the graph.
    ///
    /// # Errors
    /// `RuntimeError` if it does not require grad.
    pub fn get_gradient_edge(&self) -> Result<(Node, u32)> {
        let edge = self.gradient_edge()?;
        edge.node.map(|n| (n, edge.nr)).ok_or_else(|| {
            Error::runtime("It is not possible to get the gradient edge for a Tensor that does not require gradients")
        })
    }
}
