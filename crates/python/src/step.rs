//! What the optimisers' steps ask of lists of tensors, which they ask at every step.

use crate::convert::items;
use crate::raw::object::{is_tensor, tensor_of};
use pullback::{DType, Layout};
use pyo3::prelude::*;

/// Whether these are all dense tensors of real floating dtypes, which the kernels of steps take.
#[pyfunction]
fn _are_dense_floats(tensors: &Bound<'_, PyAny>) -> bool {
    let is_dense_float = |&item: &*mut pyo3::ffi::PyObject| {
        // SAFETY: live items of a list that the caller holds.
        unsafe { is_tensor(item) && takes(tensor_of(item)) }
    };
    items(tensors.as_ptr()).is_some_and(|items| items.iter().all(is_dense_float))
}

fn takes(tensor: &pullback::Tensor) -> bool {
    let is_float = matches!(tensor.dtype(), DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    is_float && tensor.layout() == Layout::Strided
}

/// Adds everything.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_are_dense_floats, module)?)
}
