//! Queries about lazy clones: whether a tensor's memory may be shared, and the addresses of tensor
//! and storage.

use crate::convert::type_name;
use crate::raw::object::as_tensor;
use pullback::{Storage, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

fn tensor<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a Tensor> {
    as_tensor(object).ok_or_else(|| {
        PyTypeError::new_err(format!("expected a Tensor, but got {}", type_name(object)))
    })
}

fn storage(object: &Bound<'_, PyAny>) -> PyResult<Storage> {
    let tensor = tensor(object)?;
    tensor.storage().filter(|_| !tensor.is_sparse()).ok_or_else(|| {
        PyRuntimeError::new_err("Tensor: invalid storage: a sparse tensor has none of its own")
    })
}

/// Whether the memory of a tensor may be that of a lazy clone, too; it is copied when one of them is written.
#[pyfunction]
#[pyo3(name = "_is_cow_tensor")]
fn is_cow_tensor(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(self::tensor(tensor)?.is_lazy())
}

/// The address of the elements of a tensor, for reading only.
#[pyfunction]
#[pyo3(name = "_data_address")]
fn data_address(tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    storage(tensor)?;
    Ok(self::tensor(tensor)?.data_ptr().addr())
}

/// A number that the tensors have in common which are views of one storage, as long as it is there.
#[pyfunction]
#[pyo3(name = "_storage_address")]
fn storage_address(tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(storage(tensor)?.id())
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_cow_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(data_address, module)?)?;
    module.add_function(wrap_pyfunction!(storage_address, module)?)
}
