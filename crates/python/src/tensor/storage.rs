//! `UntypedStorage`: the bytes behind tensors. One object per storage, as long as somebody holds it.

use crate::dtype::device_object;
use crate::error::raise;
use crate::raw::entry::Reply;
use crate::raw::object::tensor_of;
use pullback::{DType, Storage, Tensor, binding};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// `torch.UntypedStorage`.
#[pyclass(name = "UntypedStorage", module = "torch", frozen, weakref, subclass)]
pub(crate) struct PyStorage(Storage);

impl Drop for PyStorage {
    fn drop(&mut self) {
        self.0.python_slot().store(null_mut(), Relaxed);
    }
}

/// `x.untyped_storage()`.
pub(crate) fn untyped_storage(py: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a method of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let Some(storage) = tensor.storage() else {
        return Err(PyTypeError::new_err("this tensor has no storage"));
    };
    object(py, storage)
}

fn object(py: Python<'_>, storage: Storage) -> Reply {
    let existing = storage.python_slot().load(Relaxed).cast::<PyObject>();
    if !existing.is_null() {
        // SAFETY: the slot is emptied when the object goes.
        unsafe { ffi::Py_INCREF(existing) };
        return Ok(existing);
    }
    let object = Bound::new(py, PyStorage(storage))?;
    object.get().0.python_slot().store(object.as_ptr().cast(), Relaxed);
    Ok(object.into_any().into_ptr())
}

/// A tensor over a storage object.
pub(crate) fn tensor_over(
    storage: &Bound<'_, PyAny>,
    dtype: DType,
    offset: i64,
    size: Option<Vec<i64>>,
    stride: Option<Vec<i64>>,
) -> PyResult<Tensor> {
    let storage = storage.cast::<PyStorage>()?;
    let storage = &storage.get().0;
    let size = size.unwrap_or_else(|| vec![storage.nbytes() as i64 / dtype.size() as i64 - offset]);
    let stride = stride.unwrap_or_else(|| pullback::tensor::contiguous_strides(&size).to_vec());
    binding::over_storage(storage, &size, &stride, offset, dtype).map_err(raise)
}

impl PyStorage {
    fn bytes(&self) -> &[u8] {
        if self.0.nbytes() == 0 {
            return &[];
        }
        // SAFETY: the storage holds this many bytes; the GIL keeps other Python writers away.
        unsafe { std::slice::from_raw_parts(self.0.data_ptr(), self.0.nbytes()) }
    }
    fn at(&self, index: i64) -> PyResult<usize> {
        let count = self.0.nbytes() as i64;
        let at = if index < 0 { index + count } else { index };
        if at < 0 || at >= count {
            return Err(PyIndexError::new_err(format!(
                "index {index} out of range for storage of size {count}"
            )));
        }
        Ok(at as usize)
    }
}

#[pymethods]
impl PyStorage {
    #[new]
    #[pyo3(signature = (size=0))]
    fn new(size: usize) -> PyResult<Self> {
        Ok(PyStorage(Storage::uninitialized(size).map_err(raise)?))
    }
    /// A storage that holds a copy of `data`.
    #[staticmethod]
    fn _from_bytes<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let storage = Storage::uninitialized(data.len()).map_err(raise)?;
        // SAFETY: a fresh storage of this size.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), storage.data_ptr(), data.len()) };
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(py, object(py, storage)?) })
    }
    fn data_ptr(&self) -> usize {
        self.0.data_ptr() as usize
    }
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }
    fn size(&self) -> usize {
        self.0.nbytes()
    }
    fn __len__(&self) -> usize {
        self.0.nbytes()
    }
    fn element_size(&self) -> usize {
        1
    }
    fn resizable(&self) -> bool {
        self.0.is_resizable()
    }
    fn resize_<'py>(slf: &Bound<'py, Self>, size: usize) -> PyResult<Bound<'py, Self>> {
        slf.get().0.grow(size).map_err(raise)?;
        crate::lock::give_back();
        Ok(slf.clone())
    }
    fn __getitem__(&self, index: i64) -> PyResult<u8> {
        let at = self.at(index)?;
        Ok(self.bytes()[at])
    }
    fn __setitem__(&self, index: i64, value: u8) -> PyResult<()> {
        let at = self.at(index)?;
        // SAFETY: inside the storage.
        unsafe { self.0.data_ptr().add(at).write(value) };
        Ok(())
    }
    fn tolist(&self) -> Vec<u16> {
        self.bytes().iter().map(|&b| u16::from(b)).collect()
    }
    fn _bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.bytes())
    }
    fn clone<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Self::_from_bytes(py, self.bytes())
    }
    fn copy_<'py>(
        slf: &Bound<'py, Self>,
        source: &Bound<'py, PyStorage>,
    ) -> PyResult<Bound<'py, Self>> {
        let (to, from) = (slf.get(), source.get());
        if to.0.nbytes() != from.0.nbytes() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(format!(
                "the sizes of the storages differ: {} and {} bytes",
                to.0.nbytes(),
                from.0.nbytes()
            )));
        }
        // SAFETY: both have this many bytes; they may be the same.
        unsafe { std::ptr::copy(from.0.data_ptr(), to.0.data_ptr(), to.0.nbytes()) };
        Ok(slf.clone())
    }
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        device_object(py, self.0.device())
    }
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.id()
    }
    #[pyo3(signature = (device=None))]
    fn is_pinned(&self, device: Option<&Bound<'_, PyAny>>) -> bool {
        let _ = device;
        false
    }
    #[pyo3(signature = (device=None))]
    fn pin_memory(&self, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = device;
        Err(super::construct::no_accelerator())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        false
    }
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = ("storage", slf.get().0.id());
        if let Ok(done) = memo.get_item(key) {
            return Ok(done);
        }
        let copy = slf.get().clone(slf.py())?;
        memo.set_item(key, &copy)?;
        Ok(copy)
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = slf.py().import("pullback._C")?.getattr("_storage_from_bytes")?;
        Ok((make, (slf.get()._bytes(slf.py()),)))
    }
    fn __repr__(&self) -> String {
        format!("<torch.UntypedStorage of {} bytes on {}>", self.0.nbytes(), self.0.device())
    }
}

/// A storage that holds a copy of `data`.
#[pyfunction]
fn _storage_from_bytes<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    PyStorage::_from_bytes(py, data)
}

/// A tensor over a storage: `_tensor_over(storage, dtype, offset, size, stride)`.
#[pyfunction]
fn _tensor_over<'py>(
    py: Python<'py>,
    storage: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    offset: i64,
    size: Vec<i64>,
    stride: Vec<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype =
        crate::dtype::as_dtype(dtype).ok_or_else(|| PyTypeError::new_err("expected a dtype"))?;
    let tensor = tensor_over(storage, dtype, offset, Some(size), Some(stride))?;
    super::method::wrapped(py, tensor)
}

/// Adds the class and its function.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add_function(wrap_pyfunction!(_storage_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(_tensor_over, module)?)
}
