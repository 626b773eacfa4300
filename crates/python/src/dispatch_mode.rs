//! `TorchDispatchMode` as a mode of the library: the functions that Python's classes push and pop modes with.

use crate::error::carry;
use crate::lock::in_python;
use crate::torch_dispatch::InterceptedCall;
use pullback::autograd::dispatch_mode;
use pullback::autograd::torch_dispatch::{Dispatched, TorchDispatch};
use pullback::dispatch::{Arg, Form, OpDef, Traits};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// A Python object with `__torch_dispatch__`.
struct PythonMode {
    object: Py<PyAny>,
    /// Whether views are not shown to it: such modes watch what is computed, and most ops of a backward pass are views.
    passes_views: bool,
}

impl TorchDispatch for PythonMode {
    fn torch_dispatch(
        &self,
        def: &'static OpDef,
        form: Form<'_>,
        args: &[Arg<'_>],
    ) -> pullback::Result<Dispatched> {
        let is_view = || def.is(Traits::VIEW) || def.is(Traits::MULTI_VIEW);
        if self.passes_views && matches!(form, Form::Functional) && is_view() {
            return pullback::autograd::call(def, args).map(Dispatched::Results);
        }
        in_python(|py| {
            let mode = self.object.bind(py);
            let method = method_of(mode, intern!(py, "__torch_dispatch__"))?;
            Ok(match InterceptedCall::new(py, def, form, args)?.dispatch_to(&method)? {
                Some(results) => Dispatched::Results(results),
                None => Dispatched::NotImplemented(format!("  - mode object {}\n", mode.repr()?)),
            })
        })
        .map_err(carry)
    }
}

/// The method `name` of a mode, `__torch_function__` or `__torch_dispatch__`, which must be bound to the object, not to its
/// class.
pub(crate) fn method_of<'py>(
    mode: &Bound<'py, PyAny>,
    name: &Bound<'py, pyo3::types::PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = mode.getattr(name)?;
    match method.getattr(intern!(mode.py(), "__self__")) {
        Ok(owner) if owner.is(mode) => Ok(method),
        _ => Err(PyRuntimeError::new_err(format!(
            "Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
        ))),
    }
}

/// The object behind a mode; the library's own modes have none.
fn object(py: Python<'_>, mode: &Arc<dyn TorchDispatch>) -> PyResult<Py<PyAny>> {
    let mode: &dyn Any = &**mode;
    let mode = mode.downcast_ref::<PythonMode>();
    mode.map(|mode| mode.object.clone_ref(py))
        .ok_or_else(|| PyRuntimeError::new_err("this mode is not one of Python's"))
}

/// Makes `mode` the innermost dispatch mode of this thread. Its class may say `_passes_views`.
#[pyfunction]
fn _push_on_torch_dispatch_stack(mode: Bound<'_, PyAny>) -> PyResult<()> {
    let passes = mode.getattr_opt(intern!(mode.py(), "_passes_views"))?;
    let passes_views = passes.map_or(Ok(false), |passes| passes.is_truthy())?;
    dispatch_mode::push(Arc::new(PythonMode { object: mode.unbind(), passes_views }));
    Ok(())
}

/// Removes this thread's innermost dispatch mode and returns it.
#[pyfunction]
#[pyo3(signature = (mode_key=None))]
fn _pop_torch_dispatch_stack(
    py: Python<'_>,
    mode_key: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    no_key(mode_key.as_ref())?;
    let mode = dispatch_mode::pop()
        .ok_or_else(|| PyRuntimeError::new_err("trying to pop from an empty mode stack"))?;
    object(py, &mode)
}

/// The number of dispatch modes on this thread's stack.
#[pyfunction]
fn _len_torch_dispatch_stack() -> usize {
    dispatch_mode::depth()
}

/// Sets the number of this thread's modes that only watch the ops; returns the previous number.
#[pyfunction]
fn _set_torch_dispatch_watchers(count: usize) -> usize {
    dispatch_mode::set_watchers(count)
}

/// The dispatch mode at an index of this thread's stack, counted from the outermost one.
#[pyfunction]
fn _get_dispatch_stack_at(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    let mode = dispatch_mode::at(index)
        .ok_or_else(|| PyIndexError::new_err(format!("there is no dispatch mode {index}")))?;
    object(py, &mode)
}

fn no_key(key: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match key.filter(|key| !key.is_none()) {
        None => Ok(()),
        Some(key) => Err(pyo3::exceptions::PyNotImplementedError::new_err(format!(
            "modes with a key ({key}) are part of PyTorch's tracing, which is not there yet"
        ))),
    }
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_push_on_torch_dispatch_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_torch_dispatch_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_len_torch_dispatch_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_set_torch_dispatch_watchers, module)?)?;
    module.add_function(wrap_pyfunction!(_get_dispatch_stack_at, module)?)
}
