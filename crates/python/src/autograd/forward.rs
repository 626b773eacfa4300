//! Forward mode: levels, dual tensors, the switch, and the `jvp` of custom functions.
//!
//! `pullback.autograd.forward_ad` is the public interface.

use super::context::Context;
use super::hook::optional;
use super::mode::flag;
use crate::convert::{items, type_name};
use crate::error::raise;
use crate::interrupt::computing;
use crate::raw::object::{as_tensor, wrap};
use pullback::Tensor;
use pullback::autograd::forward;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The number of a level, which is not negative.
fn level_number(level: i64) -> PyResult<usize> {
    usize::try_from(level)
        .map_err(|_| PyRuntimeError::new_err("Dual level must be a positive number."))
}

/// The tensor that argument `name` of `function` must be.
fn tensor<'a>(
    value: &'a Bound<'_, PyAny>,
    function: &str,
    (name, position): (&str, usize),
) -> PyResult<&'a Tensor> {
    as_tensor(value).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{function}(): argument '{name}' (position {position}) must be Tensor, not {}",
            type_name(value)
        ))
    })
}

fn to_python<'py>(py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
    let wrapper = wrap(tensor)?;
    // SAFETY: a new reference to a wrapper.
    Ok(unsafe { Bound::from_owned_ptr(py, wrapper) })
}

#[pyfunction]
fn _enter_dual_level() -> PyResult<usize> {
    forward::enter_dual_level().map_err(raise)
}
/// Ends a level; other threads may have opened levels since.
#[pyfunction]
fn _jvp_exit(level: i64) -> PyResult<()> {
    forward::exit_nested_level(level_number(level)?);
    Ok(())
}
/// Opens a level within those that are open.
#[pyfunction]
fn _jvp_enter() -> usize {
    forward::enter_nested_level()
}
#[pyfunction]
fn _exit_dual_level(level: i64) -> PyResult<()> {
    forward::exit_dual_level(level_number(level)?).map_err(raise)
}
#[pyfunction]
fn _make_dual<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    tangent: &Bound<'py, PyAny>,
    level: i64,
) -> PyResult<Bound<'py, PyAny>> {
    const NAME: &str = "_make_dual";
    let primal = self::tensor(tensor, NAME, ("primal", 1))?;
    let tangent = self::tensor(tangent, NAME, ("tangent", 2))?;
    let level = level_number(level)?;
    let make = || forward::make_dual_at(primal, tangent, level).map_err(raise);
    to_python(py, computing(make)?)
}
#[pyfunction]
fn _unpack_dual<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    level: i64,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let dual = self::tensor(tensor, "_unpack_dual", ("dual", 1))?;
    let (primal, tangent) = forward::unpack_dual_at(dual, level_number(level)?).map_err(raise)?;
    Ok((to_python(py, primal)?, optional(py, tangent.as_ref())?))
}
#[pyfunction]
fn _is_fwd_grad_enabled() -> bool {
    forward::is_forward_enabled()
}
#[pyfunction]
fn _set_fwd_grad_enabled(enabled: &Bound<'_, PyAny>) -> PyResult<()> {
    forward::set_forward_enabled(flag(enabled, "set_fwd_grad_enabled", ("enabled", 1))?);
    Ok(())
}

/// Calls the user's `jvp` for the tangents of the outputs; `given` are the tangents of the tensors
/// among the inputs.
pub(super) fn run_jvp(
    object: &Bound<'_, PyAny>,
    context: &Context,
    given: Vec<Option<Tensor>>,
) -> PyResult<Vec<Option<Tensor>>> {
    let py = object.py();
    let mut given = given.into_iter();
    let args: Vec<Bound<'_, PyAny>> = context
        .are_tensors()
        .into_iter()
        .map(|is_tensor| {
            let tangent = if is_tensor { given.next().flatten() } else { None };
            optional(py, tangent.as_ref())
        })
        .collect::<PyResult<_>>()?;
    let result = object.call_method1(intern!(py, "apply_jvp"), PyTuple::new(py, args)?)?;
    let single = [result.as_ptr()];
    let list = match result.cast::<PyTuple>() {
        Ok(tuple) => items(tuple.as_ptr()).unwrap_or_default(),
        Err(_) => &single,
    };
    list.iter()
        .map(|&item| {
            // SAFETY: an item of the result, which is held here.
            let item = unsafe { Bound::from_borrowed_ptr(py, item) };
            match as_tensor(&item) {
                Some(tensor) => Ok(Some(tensor.clone())),
                None if item.is_none() => Ok(None),
                None => Err(PyRuntimeError::new_err(format!(
                    "expected Variable or None (got {})",
                    type_name(&item)
                ))),
            }
        })
        .collect()
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_enter_dual_level, module)?)?;
    module.add_function(wrap_pyfunction!(_exit_dual_level, module)?)?;
    module.add_function(wrap_pyfunction!(_jvp_enter, module)?)?;
    module.add_function(wrap_pyfunction!(_jvp_exit, module)?)?;
    module.add_function(wrap_pyfunction!(_make_dual, module)?)?;
    module.add_function(wrap_pyfunction!(_unpack_dual, module)?)?;
    module.add_function(wrap_pyfunction!(_is_fwd_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_fwd_grad_enabled, module)?)
}
