//! Python hooks as library hooks.
//!
//! A tensor's hooks live in one ordered dictionary; the library holds one closure over it. Values are
//! taken before the first runs, so a hook may remove hooks.

use super::hook_dicts::{HookDict, Registered, count_of};
use crate::convert::type_name;
use crate::error::{carry, raise};
use crate::lock::in_python;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::Tensor;
use pullback::autograd::Node;
use pullback::dispatch::Grads;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// `None` or the wrapper.
pub(crate) fn optional<'py>(
    py: Python<'py>,
    tensor: Option<&Tensor>,
) -> PyResult<Bound<'py, PyAny>> {
    match tensor {
        Some(tensor) => wrap_bound(py, tensor.clone()),
        None => Ok(py.None().into_bound(py)),
    }
}

fn hook_name(hook: &Bound<'_, PyAny>) -> String {
    hook.getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| "<unknown>".to_owned())
}

/// Refuses a replacement of another kind, dtype or shape.
fn check(old: &Tensor, new: &Bound<'_, PyAny>, hook: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let name = hook_name(hook);
    let Some(new) = as_tensor(new) else {
        return Err(PyTypeError::new_err(format!(
            "expected Variable, but hook returned '{}'",
            type_name(new)
        )));
    };
    if old.dtype() != new.dtype() || old.layout() != new.layout() {
        return Err(PyRuntimeError::new_err(format!(
            "hook '{name}' has changed the type of value (was torch.{}Tensor got torch.{}Tensor)",
            old.dtype().scalar_name().pytorch(),
            new.dtype().scalar_name().pytorch()
        )));
    }
    if old.shape() != new.shape() {
        return Err(PyRuntimeError::new_err(format!(
            "hook '{name}' has changed the size of value"
        )));
    }
    Ok(new.clone())
}

fn run_tensor_hooks(hooks: &HookDict, grad: Option<&Tensor>) -> PyResult<Option<Tensor>> {
    in_python(|py| {
        let mut current: Option<Tensor> = None;
        for hook in hooks.list(py) {
            let value = current.as_ref().or(grad);
            let given = optional(py, value)?;
            let result = hook.call1((&given,))?;
            if !result.is_none() && !result.is(&given) {
                let Some(value) = value else { return Err(replaces_none(&hook)) };
                current = Some(check(value, &result, &hook)?);
            }
        }
        Ok(current)
    })
}

fn replaces_none(hook: &Bound<'_, PyAny>) -> PyErr {
    PyRuntimeError::new_err(format!(
        "can't replace a None gradient with a non-None value (hook '{}')",
        hook_name(hook)
    ))
}

/// Registers the closure over a tensor's dictionary of hooks. (The caller has to check whether the
/// tensor requires grad.)
pub(crate) fn register(tensor: &Tensor, hooks: HookDict) -> PyResult<Registered> {
    let hook = Arc::new(move |grad: Option<&Tensor>| run_tensor_hooks(&hooks, grad).map_err(carry));
    let closures = count_of(&hook);
    let id = tensor.add_hook(hook).map_err(raise)?;
    Ok(Registered { closures, id: Some(id) })
}

/// Registers the closure over a dictionary of hooks on the gradient of output `nr` of a node.
pub(super) fn register_on_node(node: &Node, nr: u32, hooks: HookDict) -> Registered {
    let hook = Arc::new(move |grad: Option<&Tensor>| run_tensor_hooks(&hooks, grad).map_err(carry));
    let closures = count_of(&hook);
    Registered { closures, id: Some(node.add_tensor_hook(nr, hook)) }
}

/// Registers the closure over a leaf's dictionary of post-accumulation hooks.
pub(crate) fn register_accumulate(tensor: &Tensor, hooks: HookDict) -> Registered {
    let hook = Arc::new(move |leaf: &Tensor| {
        in_python(|py| {
            for hook in hooks.list(py) {
                let given = wrap_bound(py, leaf.clone())?;
                let result = hook.call1((&given,))?;
                if !result.is_none() && !result.is(&given) {
                    return Err(PyRuntimeError::new_err("hooks should return None."));
                }
            }
            Ok(())
        })
        .map_err(carry)
    });
    let closures = count_of(&hook);
    Registered { closures, id: Some(tensor.add_post_accumulate_grad_hook(hook)) }
}

/// The tuple a node hook sees.
pub(crate) fn tuple<'py>(py: Python<'py>, grads: &Grads) -> PyResult<Bound<'py, PyTuple>> {
    let items: PyResult<Vec<_>> = grads.iter().map(|g| optional(py, g.as_ref())).collect();
    PyTuple::new(py, items?)
}

/// The replacement that a node hook returned for `old`.
fn replaced(
    old: &Grads,
    given: &Bound<'_, PyTuple>,
    result: &Bound<'_, PyAny>,
    hook: &Bound<'_, PyAny>,
) -> PyResult<Option<Grads>> {
    if result.is_none() || result.is(given) {
        return Ok(None);
    }
    let result = result.cast::<PyTuple>().map_err(|_| {
        PyTypeError::new_err(format!("expected tuple, but hook returned '{}'", type_name(result)))
    })?;
    if result.len() != old.len() {
        return Err(PyRuntimeError::new_err(format!(
            "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
            hook_name(hook),
            result.len(),
            old.len()
        )));
    }
    let mut grads = Grads::new();
    for (old, new) in old.iter().zip(result.iter()) {
        grads.push(match old {
            _ if new.is_none() => None,
            Some(old) => Some(check(old, &new, hook)?),
            None => return Err(replaces_none(hook)),
        });
    }
    Ok(Some(grads))
}

/// Registers the closure over a node's dictionary of pre-hooks.
pub(super) fn register_pre(node: &Node, hooks: HookDict) -> Registered {
    let hook = Arc::new(move |grads: &Grads| {
        in_python(|py| {
            let mut current: Option<Grads> = None;
            for hook in hooks.list(py) {
                let value = current.as_ref().unwrap_or(grads);
                let given = tuple(py, value)?;
                if let Some(new) = replaced(value, &given, &hook.call1((&given,))?, &hook)? {
                    current = Some(new);
                }
            }
            Ok(current)
        })
        .map_err(carry)
    });
    let closures = count_of(&hook);
    Registered { closures, id: Some(node.register_prehook(hook)) }
}

/// Registers the closure over a node's dictionary of post-hooks.
pub(super) fn register_post(node: &Node, hooks: HookDict) -> Registered {
    let hook = Arc::new(move |outputs: &Grads, inputs: &Grads| {
        in_python(|py| {
            let mut current: Option<Grads> = None;
            for hook in hooks.list(py) {
                let value = current.as_ref().unwrap_or(outputs);
                let (given, seen) = (tuple(py, value)?, tuple(py, inputs)?);
                let result = hook.call1((&given, seen))?;
                if let Some(new) = replaced(value, &given, &result, &hook)? {
                    current = Some(new);
                }
            }
            Ok(current)
        })
        .map_err(carry)
    });
    let closures = count_of(&hook);
    Registered { closures, id: Some(node.register_hook(hook)) }
}
