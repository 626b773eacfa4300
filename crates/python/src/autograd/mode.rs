//! Grad mode and inference mode as native context managers and decorators.
//!
//! The objects hold what they will set and what was before; the Python package derives `no_grad` and
//! its siblings from [`PyMode`] and adds what a decorator of generators needs.

use pullback::autograd::mode::{self, restore, snapshot};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use std::cell::RefCell;

fn kinds(kind: &str, enabled: bool) {
    match kind {
        "grad" => mode::set_grad_enabled(enabled),
        _ => std::mem::forget(mode::inference_mode(enabled)),
    }
}

/// A context that sets one mode for this thread.
#[pyclass(name = "_ModeContext", module = "torch._C", subclass, unsendable)]
struct PyMode {
    inference: bool,
    enabled: bool,
    previous: RefCell<Vec<u32>>,
}

#[pymethods]
impl PyMode {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyAny>>) -> Self {
        PyMode { inference: false, enabled: false, previous: RefCell::new(Vec::new()) }
    }
    /// Says what `__enter__` sets: `_configure("grad" | "inference", enabled)`.
    fn _configure(&mut self, kind: &str, enabled: bool) {
        self.inference = kind != "grad";
        self.enabled = enabled;
    }
    fn __enter__(slf: &Bound<'_, Self>) {
        let this = slf.borrow();
        this.previous.borrow_mut().push(snapshot());
        kinds(if this.inference { "inference" } else { "grad" }, this.enabled);
    }
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        let previous = self.previous.borrow_mut().pop();
        if let Some(previous) = previous {
            restore(previous);
        }
    }
}

fn flag(value: &Bound<'_, PyAny>, function: &str) -> PyResult<bool> {
    value.cast::<PyBool>().map(pyo3::types::PyBoolMethods::is_true).map_err(|_| {
        PyTypeError::new_err(format!(
            "{function}(): argument 'enabled' (position 1) must be bool, not {}",
            crate::convert::type_name(value)
        ))
    })
}

#[pyfunction]
fn is_grad_enabled() -> bool {
    mode::is_grad_enabled()
}
#[pyfunction]
fn _set_grad_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    mode::set_grad_enabled(flag(enabled, "set_grad_enabled")?);
    Ok(())
}
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    mode::is_inference_mode()
}
/// All modes of this thread as one number, and back.
#[pyfunction]
fn _modes() -> u32 {
    snapshot()
}
#[pyfunction]
fn _restore_modes(modes: u32) {
    restore(modes);
}

/// Adds the class and the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMode>()?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_modes, module)?)?;
    module.add_function(wrap_pyfunction!(_restore_modes, module)?)
}
