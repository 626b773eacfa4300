//! A tensor's dictionaries of hooks as attributes: `_backward_hooks` and `_post_accumulate_grad_hooks`.
//!
//! What is set is what runs: the library gets a closure over the given dictionary in the place of the one that it had.
//! Invariant: of each kind the library has at most one closure from here. Start at [`set_hooks`]; the hooks themselves are
//! in `autograd::hook`.

use super::method::current_hooks;
use crate::autograd::hook::{register, register_accumulate};
use crate::autograd::hook_dicts::{HookDict, HookDicts, HookKind, Registered};
use crate::convert::type_name;
use crate::raw::entry::Reply;
use crate::raw::object::tensor_of;
use crate::result::none;
use pullback::Tensor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn tensor<'a>(slf: *mut PyObject) -> &'a Tensor {
    // SAFETY: called for getters and setters of tensors only, with the object alive.
    unsafe { tensor_of(slf) }
}

fn or_none(dict: Option<Bound<'_, PyDict>>) -> *mut PyObject {
    dict.map_or_else(none, |dict| dict.into_any().into_ptr())
}
pub(super) fn hooks(py: Python<'_>, slf: *mut PyObject) -> Reply {
    Ok(or_none(current_hooks(py, slf, HookKind::Tensor(tensor(slf).output_nr()))?))
}
pub(super) fn accumulate_hooks(py: Python<'_>, slf: *mut PyObject) -> Reply {
    Ok(or_none(current_hooks(py, slf, HookKind::Accumulate)?))
}

/// The dictionary that an attribute is set to.
fn given<'py>(
    value: Option<Bound<'py, PyAny>>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(value) = value else {
        return Err(PyRuntimeError::new_err(format!("Deletion of {name} not allowed!")));
    };
    if value.is_none() {
        return Ok(None);
    }
    let found = type_name(&value);
    value.cast_into().map(Some).map_err(|_| {
        PyTypeError::new_err(format!("{name} can only be a dict or None, not {found}"))
    })
}

fn replace(
    py: Python<'_>,
    slf: *mut PyObject,
    kind: HookKind,
    dict: Option<&Bound<'_, PyDict>>,
    register: impl FnOnce(HookDict) -> PyResult<Registered>,
) -> PyResult<()> {
    let old = current_hooks(py, slf, kind)?;
    if old.is_none() && dict.is_none() {
        return Ok(());
    }
    // SAFETY: a setter of tensors.
    let hooks = unsafe { HookDicts::of_tensor(py, slf.cast())? };
    if let Some(id) = hooks.get().take(kind) {
        tensor(slf).remove_hook(id);
    }
    dict.map_or(Ok(()), |dict| hooks.get().put(kind, dict, register))
}

/// `x._backward_hooks = dict` (or `None`).
pub(super) fn set_hooks(
    py: Python<'_>,
    slf: *mut PyObject,
    value: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let dict = given(value, "_backward_hooks")?;
    let kind = HookKind::Tensor(tensor(slf).output_nr());
    replace(py, slf, kind, dict.as_ref(), |hooks| register(tensor(slf), hooks))
}

/// `x._post_accumulate_grad_hooks = dict` (or `None`).
pub(super) fn set_accumulate_hooks(
    py: Python<'_>,
    slf: *mut PyObject,
    value: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let dict = given(value, "_post_accumulate_grad_hooks")?;
    let register = |hooks| Ok(register_accumulate(tensor(slf), hooks));
    replace(py, slf, HookKind::Accumulate, dict.as_ref(), register)
}
