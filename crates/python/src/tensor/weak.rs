//! A weak reference to a tensor itself, not to the object by which Python shows it.

use crate::raw::object::as_tensor;
use pullback::tensor::WeakTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

#[pyclass(name = "_WeakTensorRef", module = "torch._C", frozen)]
struct WeakTensorRef(WeakTensor);

#[pymethods]
impl WeakTensorRef {
    #[new]
    fn new(tensor: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(tensor) = as_tensor(tensor) else {
            return Err(PyTypeError::new_err(format!(
                "expect Tensor, but got {}",
                crate::convert::type_name(tensor)
            )));
        };
        Ok(WeakTensorRef(tensor.downgrade()))
    }
    /// Whether the tensor is gone.
    fn expired(&self) -> bool {
        self.0.upgrade().is_none()
    }
}

/// Adds the class.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WeakTensorRef>()
}
