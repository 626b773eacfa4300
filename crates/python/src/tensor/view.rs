//! Views replayed: `_view_func`, `_view_func_unsafe`, `_rev_view_func_unsafe`.

use crate::convert::{to_int, type_name};
use crate::error::{carry, raise};
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{as_tensor, tensor_of, wrap};
use crate::result::none;
use crate::tensor::method::wrapped;
use pullback::Tensor;
use pullback::autograd::Visitor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;

/// A tensor, or `None`.
fn reply(tensor: Option<Tensor>) -> Reply {
    tensor.map_or_else(|| Ok(none()), wrap)
}

fn call_number(visit: &Bound<'_, PyAny>, number: i64) -> PyResult<i64> {
    to_int(&visit.call1((number,))?)
}

fn call_tensor(visit: &Bound<'_, PyAny>, tensor: Tensor) -> PyResult<Tensor> {
    let given = visit.call1((wrapped(visit.py(), tensor)?,))?;
    as_tensor(&given).cloned().ok_or_else(|| {
        PyTypeError::new_err(format!(
            "tensor_visitor_fn must give a Tensor, not {}",
            type_name(&given)
        ))
    })
}

fn replay(
    py: Python<'_>,
    slf: *mut PyObject,
    args: Args<'_>,
    (name, is_checked): (&str, bool),
) -> Reply {
    let names = ["new_base", "symint_visitor_fn", "tensor_visitor_fn"];
    let [base, number, tensor] = args.bind(py, name, names, 1)?;
    let base = base.expect("required");
    let base = as_tensor(&base).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{name}(): argument 'new_base' (position 1) must be Tensor, not {}",
            type_name(&base)
        ))
    })?;
    let number = number.filter(|visit| !visit.is_none());
    let tensor = tensor.filter(|visit| !visit.is_none());
    let mut on_number = number.map(|visit| move |n| call_number(&visit, n).map_err(carry));
    let mut on_tensor = tensor.map(|visit| move |t: Tensor| call_tensor(&visit, t).map_err(carry));
    let mut visitor = Visitor::default();
    if let Some(visit) = &mut on_number {
        visitor.number = Some(visit);
    }
    if let Some(visit) = &mut on_tensor {
        visitor.tensor = Some(visit);
    }
    // SAFETY: a method of tensors.
    let this = unsafe { tensor_of(slf) };
    reply(this.view_func_with(base, is_checked, &mut visitor).map_err(raise)?)
}

/// `x._view_func(new_base, symint_visitor_fn=None, tensor_visitor_fn=None)`: the same view of a tensor like the base, or `None`.
pub(super) fn view_func(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    replay(py, slf, args, ("_view_func", true))
}

/// `x._view_func_unsafe(new_base, ...)`: as `_view_func`, without a check that `new_base` is like the base.
pub(super) fn view_func_unsafe(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    replay(py, slf, args, ("_view_func_unsafe", false))
}

/// `x._rev_view_func_unsafe(new_view)`: the tensor of which `new_view` is the same view as `x` is
/// of its base, or `None`.
pub(super) fn rev_view_func_unsafe(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [new_view] = args.bind(py, "_rev_view_func_unsafe", ["new_view"], 1)?;
    let new_view = new_view.expect("required");
    let new_view = as_tensor(&new_view).ok_or_else(|| {
        PyRuntimeError::new_err("_rev_view_func expect a single argument that is a Tensor")
    })?;
    // SAFETY: a method of tensors.
    reply(unsafe { tensor_of(slf) }.rev_view_func(new_view).map_err(raise)?)
}
