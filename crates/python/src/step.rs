//! Checks of lists of tensors for the steps of optimisers, which make them at every step.

use crate::convert::all_tensors;
use pullback::{DType, Layout};
use pyo3::prelude::*;

/// Whether these are all dense tensors of real floating dtypes, which the kernels of steps take.
#[pyfunction]
fn _are_dense_floats(tensors: &Bound<'_, PyAny>) -> bool {
    all_tensors(tensors, takes)
}

fn takes(tensor: &pullback::Tensor) -> bool {
    let is_float = matches!(tensor.dtype(), DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    is_float && tensor.layout() == Layout::Strided
}

/// Adds everything.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_are_dense_floats, module)?)
}
