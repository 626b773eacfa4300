//! Grad mode and inference mode: the functions that read and set them. The contexts are in
//! `raw::mode`.

use pullback::autograd::mode::{self, restore, snapshot};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// A switch: argument `name` of `function`, at this position.
pub(super) fn flag(
    value: &Bound<'_, PyAny>,
    function: &str,
    (name, position): (&str, usize),
) -> PyResult<bool> {
    value.cast::<PyBool>().map(pyo3::types::PyBoolMethods::is_true).map_err(|_| {
        PyTypeError::new_err(format!(
            "{function}(): argument '{name}' (position {position}) must be bool, not {}",
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
    mode::set_grad_enabled(flag(enabled, "set_grad_enabled", ("enabled", 1))?);
    Ok(())
}
#[pyfunction]
fn _is_multithreading_enabled() -> bool {
    mode::is_multithreading_enabled()
}
#[pyfunction]
fn _set_multithreading_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    let enabled = flag(enabled, "set_multithreading_enabled", ("enabled", 1))?;
    mode::set_multithreading_enabled(enabled);
    Ok(())
}
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    mode::is_inference_mode()
}
#[pyfunction]
fn _is_masked_zeros() -> bool {
    mode::is_masked_zeros()
}
#[pyfunction]
fn _set_masked_zeros(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    mode::set_masked_zeros(flag(enabled, "set_masked_zeros", ("enabled", 1))?);
    Ok(())
}
#[pyfunction]
fn _is_view_replay_enabled() -> bool {
    mode::is_view_replay_enabled()
}
#[pyfunction]
fn _set_view_replay_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    mode::set_view_replay_enabled(flag(enabled, "set_view_replay_enabled", ("enabled", 1))?);
    Ok(())
}
#[pyfunction]
fn _is_grad_layout_enforcement_enabled() -> bool {
    mode::is_grad_layout_enforced()
}
#[pyfunction]
fn _set_grad_layout_enforcement_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = "set_grad_layout_enforcement_enabled";
    mode::set_grad_layout_enforced(flag(enabled, name, ("enabled", 1))?);
    Ok(())
}
/// All modes of this thread as one number, which `_restore_modes` takes.
#[pyfunction]
fn _modes() -> u64 {
    snapshot()
}
#[pyfunction]
fn _restore_modes(modes: u64) {
    restore(modes);
}

/// Adds the classes and the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::raw::mode::init(module)?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_is_multithreading_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_multithreading_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_is_masked_zeros, module)?)?;
    module.add_function(wrap_pyfunction!(_set_masked_zeros, module)?)?;
    module.add_function(wrap_pyfunction!(_is_view_replay_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_view_replay_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_is_grad_layout_enforcement_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_layout_enforcement_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_modes, module)?)?;
    module.add_function(wrap_pyfunction!(_restore_modes, module)?)
}
