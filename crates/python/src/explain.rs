//! Notes that are added to exceptions: modules, arguments, memory.
//!
//! Everything here runs once an error is on its way, never before, and leaves class and text as
//! they are. The package's `_blame.py` writes most of it; errors in that module are ignored,
//! because the first error is the one that counts.

use crate::bind::CallPlan;
use crate::error::raise;
use pullback::autograd::{self, Node};
use pullback::dispatch::Arg;
use pullback::{Error, ErrorKind, Tensor};
use pullback_schema::similar::closest;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Calls `function` of `_blame.py` to add its notes to an exception.
#[cold]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    error: PyErr,
    function: &str,
    arguments: &[Bound<'py, PyAny>],
) -> PyErr {
    let mut all = vec![error.value(py).clone().into_any()];
    all.extend_from_slice(arguments);
    let _ = py
        .import("pullback._blame")
        .and_then(|module| module.getattr(function)?.call1(PyTuple::new(py, all)?));
    error
}

/// The exception for the error of an op, with the lines that its arguments are from, where they are known.
#[cold]
#[inline(never)]
pub(crate) fn raise_of_op(
    py: Python<'_>,
    plan: &CallPlan,
    args: &[Arg<'_>],
    error: Error,
) -> PyErr {
    let (kind, is_blamed) = (error.kind(), error.is_blamed());
    let exception = raise(error);
    match kind {
        ErrorKind::Runtime | ErrorKind::Value | ErrorKind::Index | ErrorKind::Type
            if !is_blamed =>
        {
            let Some(text) = autograd::origins(arguments(plan, args).into_iter()) else {
                return exception;
            };
            let text = format!("{}() got\n{text}", plan.op.name);
            let Ok(text) = text.into_pyobject(py);
            explain(py, exception, "add_note", &[text.into_any()])
        }
        _ => exception,
    }
}

/// The tensors of a call by the names of their parameters.
fn arguments<'a>(plan: &CallPlan, args: &[Arg<'a>]) -> Vec<(String, &'a Tensor, Option<Node>)> {
    let mut all = Vec::new();
    let mut put = |name: String, tensor: &'a Tensor| {
        // (The node of a view that was written to is made anew, which may fail: then nothing is known.)
        all.push((name, tensor, tensor.grad_fn().ok().flatten()));
    };
    for (arg, info) in args.iter().zip(plan.op.args) {
        match *arg {
            Arg::Tensor(tensor) => put(info.name.to_owned(), tensor),
            Arg::Tensors(list) => {
                for (at, tensor) in list.iter().enumerate() {
                    put(format!("{}[{at}]", info.name), tensor);
                }
            }
            _ => {}
        }
    }
    all
}

/// The one of `names` that `given` may have been meant to be.
#[pyfunction]
fn _closest_name(given: &str, names: Vec<String>) -> Option<String> {
    closest(given, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Adds the function.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_closest_name, module)?)
}
