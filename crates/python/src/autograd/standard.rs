//! Functions that make the nodes which belong to no op, for the classes of `_C._functions`.

use crate::convert::type_name;
use crate::error::raise;
use crate::interrupt::computing;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::autograd::{comm, standard};
use pullback::{Device, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The tensors among the arguments of a node that takes `count` of them; gaps where `None` was given.
fn tensors(args: &Bound<'_, PyTuple>, count: usize) -> PyResult<Vec<Option<Tensor>>> {
    if args.len() != count {
        return Err(PyTypeError::new_err(format!(
            "expected {count} arguments, got {} instead",
            args.len()
        )));
    }
    let tensor = |(index, arg): (usize, Bound<'_, PyAny>)| match as_tensor(&arg) {
        Some(tensor) => Ok(Some(tensor.clone())),
        None if arg.is_none() => Ok(None),
        None => Err(PyTypeError::new_err(format!(
            "argument {index} is not a Variable (got {})",
            type_name(&arg)
        ))),
    };
    args.iter().enumerate().map(tensor).collect()
}

/// Aliases of tensors through which no gradient flows: backward fails with a message.
#[pyfunction]
fn _delayed_error<'py>(
    py: Python<'py>,
    message: String,
    count: usize,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let aliases = standard::delayed_error(message, &tensors(args, count)?).map_err(raise)?;
    let items: PyResult<Vec<_>> =
        aliases.iter().map(|t| super::hook::optional(py, t.as_ref())).collect();
    let tuple = PyTuple::new(py, items?)?;
    if tuple.len() == 1 { tuple.get_item(0) } else { Ok(tuple.into_any()) }
}

/// A copy of a tensor whose gradients are undefined there.
#[pyfunction]
fn _undefined_grad<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    match tensors(args, 1)?.pop().flatten() {
        Some(tensor) => wrap_bound(py, standard::undefined_grad(&tensor).map_err(raise)?),
        None => Err(PyTypeError::new_err("expected Tensor at argument 0 (got None)")),
    }
}

/// Parts of a tensor along a dimension on devices, of these sizes or as large as each other.
#[pyfunction]
#[pyo3(signature = (tensor, devices, sizes, dim))]
fn _comm_scatter<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    devices: Vec<u8>,
    sizes: Option<Vec<i64>>,
    dim: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let devices: Vec<Device> = devices.into_iter().map(Device::Cuda).collect();
    let whole = one(tensor)?;
    let scatter = || comm::scatter(&whole, &devices, sizes.as_deref(), dim).map_err(raise);
    let parts = computing(scatter)?;
    let parts = parts.into_iter().map(|part| wrap_bound(py, part));
    PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)
}

/// The tensors one after the other along a dimension on a device, main memory for a negative number.
#[pyfunction]
fn _comm_gather<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, PyAny>>,
    dim: i64,
    destination: i16,
) -> PyResult<Bound<'py, PyAny>> {
    let tensors: Vec<Tensor> = tensors.iter().map(one).collect::<PyResult<_>>()?;
    let destination = u8::try_from(destination).map_or(Device::Cpu, Device::Cuda);
    let whole = computing(|| comm::gather(&tensors, dim, destination).map_err(raise))?;
    wrap_bound(py, whole)
}

/// A tensor that is an argument.
fn one(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    as_tensor(object).cloned().ok_or_else(|| {
        PyTypeError::new_err(format!("expected a Tensor, but got {}", type_name(object)))
    })
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_delayed_error, module)?)?;
    module.add_function(wrap_pyfunction!(_undefined_grad, module)?)?;
    module.add_function(wrap_pyfunction!(_comm_scatter, module)?)?;
    module.add_function(wrap_pyfunction!(_comm_gather, module)?)
}
