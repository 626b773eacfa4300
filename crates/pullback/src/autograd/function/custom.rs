//! Custom functions: what becomes of the tensors that a user's forward gives.
//!
//! The language binding runs the user's forward without recording, makes the node and then calls
//! [`attach_outputs`], which applies the rules for inputs given back, dirty inputs, views and outputs
//! without gradient. Invariant: an input's own flag is never changed, except for dirty inputs.

use crate::autograd::graph::input_meta::InputMeta;
use crate::autograd::graph::node::{Node, SavedTensor};
use crate::autograd::rebase::rebase_history;
use crate::autograd::variable::history::CreationMeta;
use crate::autograd::variable::view::{check_inplace, leaf_write};
use crate::autograd::{arithmetic, mode};
use crate::error::ensure;
use crate::tensor::Writer;
use crate::{Result, Tensor};

/// What is known of one call.
pub struct CustomCall<'a> {
    /// The tensors among the arguments.
    pub inputs: &'a [Tensor],
    /// Inputs that forward wrote to.
    pub dirty: &'a [Tensor],
    /// Outputs without gradient.
    pub non_differentiable: &'a [Tensor],
    /// Whether anything is recorded.
    pub executable: bool,
}

fn contains(list: &[Tensor], tensor: &Tensor) -> bool {
    list.iter().any(|t| t.is_same(tensor))
}

impl CustomCall<'_> {
    /// Whether this output gets the node as its producer.
    pub fn is_differentiable(&self, output: &Tensor) -> bool {
        self.executable
            && output.dtype().is_differentiable()
            && !contains(self.non_differentiable, output)
    }
    /// What arriving gradients of this output must look like.
    pub fn input_meta(&self, output: &Tensor) -> Option<InputMeta> {
        self.is_differentiable(output).then(|| InputMeta::of(output))
    }
}

/// Gives each raw output its history; the results are what the user sees.
///
/// # Errors
/// `RuntimeError` for dirty tensors that were not returned, leaves and views that cannot be written to.
pub fn attach_outputs(
    call: &CustomCall<'_>,
    node: Option<&Node>,
    outputs: &[Option<Tensor>],
) -> Result<Vec<Option<Tensor>>> {
    for dirty in call.dirty {
        let returned = outputs.iter().flatten().any(|o| o.is_same(dirty));
        ensure!(
            returned,
            runtime,
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be outputs of the Function."
        );
        dirty.bump_version(Writer::Inplace(&"a custom function that called mark_dirty()"));
    }
    let count = outputs.iter().flatten().filter(|o| call.is_differentiable(o)).count();
    let mut results = Vec::with_capacity(outputs.len());
    for (nr, output) in outputs.iter().enumerate() {
        results.push(match output {
            None => None,
            Some(output) => Some(attach(call, node, output, nr as u32, count, outputs.len())?),
        });
    }
    Ok(results)
}

fn alias(tensor: &Tensor) -> Result<Tensor> {
    let _below = mode::set_grad(false);
    let _plain = mode::set_forward(false);
    arithmetic::alias(tensor)
}

fn attach(
    call: &CustomCall<'_>,
    node: Option<&Node>,
    output: &Tensor,
    nr: u32,
    differentiable: usize,
    outputs: usize,
) -> Result<Tensor> {
    let is_input = contains(call.inputs, output);
    let is_dirty = contains(call.dirty, output);
    let meta =
        if differentiable > 1 { CreationMeta::MultiOutput } else { CreationMeta::InCustomFunction };
    let Some(node) = node.filter(|_| call.is_differentiable(output)) else {
        if !output.requires_grad() {
            if is_input && is_dirty {
                return Ok(output.clone());
            }
            let result = if is_input { alias(output)? } else { output.clone() };
            if result.is_view() {
                result.set_creation_meta(meta);
            }
            return Ok(result);
        }
        if is_input {
            return output.detached();
        }
        if output.is_view() {
            output.set_creation_meta(meta);
        } else {
            output.forget_history();
        }
        return Ok(output.clone());
    };
    if is_dirty && !is_input {
        crate::warn("Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to mark_dirty().".into());
    }
    let result = if is_dirty && is_input {
        if output.is_leaf_now() && output.requires_grad() && !output.is_view() {
            return Err(leaf_write(
                "a leaf Variable that requires grad has been used in an in-place operation.",
                None,
            ));
        }
        ensure!(
            !output.is_view() || outputs == 1,
            runtime,
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
        );
        {
            // (Forward wrote to it where nothing is checked.)
            let _recording = mode::set_grad(true);
            check_inplace(output, true)?;
        }
        output.put_grad(None);
        rebase_history(output, node.clone(), nr)?;
        return Ok(output.clone());
    } else if is_input {
        alias(output)?
    } else {
        output.clone()
    };
    result.set_history(node.clone(), nr);
    if result.is_view() {
        result.set_creation_meta(meta);
    }
    Ok(result)
}

/// Keeps a tensor for the node's backward: outputs without a cycle, anything else as it is.
///
/// # Errors
/// `RuntimeError` for inference tensors.
pub fn save(tensor: &Tensor, outputs: &[Option<Tensor>], node: &Node) -> Result<SavedTensor> {
    let nr = outputs.iter().position(|o| o.as_ref().is_some_and(|o| o.is_same(tensor)));
    let is_own = tensor.grad_fn()?.is_some_and(|n| n.is_same(node));
    match nr {
        Some(nr) if is_own => SavedTensor::output(tensor, nr as u32),
        _ => SavedTensor::input(tensor),
    }
}
