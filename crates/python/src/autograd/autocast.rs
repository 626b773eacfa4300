//! The settings of autocast: the functions that ask and set. The contexts are in `pullback.amp`.

use super::mode::flag;
use crate::convert::type_name;
use crate::dtype::{as_dtype, dtype_object};
use crate::error::raise;
use pullback::autograd::autocast::{self, AutocastDevice};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

/// A type of devices: argument `device_type` of `function`.
fn parse(device_type: &Bound<'_, PyAny>, function: &str) -> PyResult<Option<AutocastDevice>> {
    let text = device_type.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{function}(): argument 'device_type' (position 1) must be str, not {}",
            type_name(device_type)
        ))
    })?;
    AutocastDevice::parse(text.to_str()?).map_err(raise)
}

/// A device type that has autocast.
fn target(device_type: &Bound<'_, PyAny>, function: &str) -> PyResult<AutocastDevice> {
    parse(device_type, function)?.ok_or_else(|| {
        PyRuntimeError::new_err(format!("unknown device type for autocast: '{device_type}'"))
    })
}

#[pyfunction]
fn _is_autocast_available(device_type: &Bound<'_, PyAny>) -> PyResult<bool> {
    parse(device_type, "_is_autocast_available").map(|target| target.is_some())
}
#[pyfunction]
fn _is_any_autocast_enabled() -> bool {
    autocast::is_any_enabled()
}
/// Without a device type PyTorch means CUDA.
#[pyfunction]
#[pyo3(signature = (device_type = None))]
fn is_autocast_enabled(py: Python<'_>, device_type: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    let cuda = PyString::intern(py, "cuda").into_any();
    let target = target(device_type.unwrap_or(&cuda), "is_autocast_enabled")?;
    Ok(autocast::is_enabled(target))
}
/// `set_autocast_enabled(device_type, enabled)`, or with one argument for CUDA.
#[pyfunction]
#[pyo3(signature = (device_type = None, enabled = None))]
fn set_autocast_enabled(
    py: Python<'_>,
    device_type: Option<&Bound<'_, PyAny>>,
    enabled: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    const NAME: &str = "set_autocast_enabled";
    let cuda = PyString::intern(py, "cuda").into_any();
    let (device_type, enabled, position) = match (device_type, enabled) {
        (Some(device_type), Some(enabled)) => (device_type, enabled, 2),
        (Some(enabled), None) | (None, Some(enabled)) => (&cuda, enabled, 1),
        (None, None) => {
            return Err(PyTypeError::new_err(format!(
                "{NAME}() missing 1 required positional arguments: \"enabled\""
            )));
        }
    };
    let target = target(device_type, NAME)?;
    autocast::set_enabled(target, flag(enabled, NAME, ("enabled", position))?);
    Ok(())
}
#[pyfunction]
fn get_autocast_dtype<'py>(device_type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let target = target(device_type, "get_autocast_dtype")?;
    Ok(dtype_object(device_type.py(), autocast::dtype(target)))
}
#[pyfunction]
fn set_autocast_dtype(device_type: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    let target = target(device_type, "set_autocast_dtype")?;
    let dtype = as_dtype(dtype).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {}",
            type_name(dtype)
        ))
    })?;
    autocast::set_dtype(target, dtype);
    Ok(())
}
#[pyfunction]
fn is_autocast_cache_enabled() -> bool {
    autocast::is_cache_enabled()
}
#[pyfunction]
fn set_autocast_cache_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    let enabled = enabled.cast::<PyBool>().map_err(|_| {
        PyTypeError::new_err(format!("enabled must be a bool (got {})", type_name(enabled)))
    })?;
    autocast::set_cache_enabled(enabled.is_true());
    Ok(())
}
#[pyfunction]
fn autocast_increment_nesting() -> i32 {
    autocast::increment_nesting()
}
#[pyfunction]
fn autocast_decrement_nesting() -> i32 {
    autocast::decrement_nesting()
}
#[pyfunction]
fn clear_autocast_cache() {
    autocast::clear_cache();
}
/// How many converted weights are kept.
#[pyfunction]
fn _autocast_cached_count() -> usize {
    autocast::cached_count()
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! functions {
        ($($name:ident),* $(,)?) => { $(module.add_function(wrap_pyfunction!($name, module)?)?;)* };
    }
    functions![
        _is_autocast_available,
        _is_any_autocast_enabled,
        is_autocast_enabled,
        set_autocast_enabled,
        get_autocast_dtype,
        set_autocast_dtype,
        is_autocast_cache_enabled,
        set_autocast_cache_enabled,
        autocast_increment_nesting,
        autocast_decrement_nesting,
        clear_autocast_cache,
        _autocast_cached_count,
    ];
    Ok(())
}
