//! Subscripts: Python's index objects to the library's indices, and what is assigned.

use crate::convert::{items, to_scalar, type_name};
use crate::error::raise;
use crate::lock::without_lock;
use crate::raw::entry::Reply;
use crate::raw::object::{as_tensor, tensor_of, wrap};
use crate::tensor::construct::from_data;
use pullback::index::{self, Index};
use pullback::{DType, Scalar, Tensor, binding};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyList, PyRange, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

type Indices = SmallVec<[Index; 4]>;

/// Sequences shorter than this with an index object in them are treated as tuples.
const TREAT_AS_TUPLE: usize = 32;

fn bound_of(value: *mut PyObject, py: Python<'_>) -> PyResult<Option<i64>> {
    // SAFETY: a live part of a slice.
    let value = unsafe { Bound::from_borrowed_ptr(py, value) };
    if value.is_none() {
        return Ok(None);
    }
    if let Some(tensor) = as_tensor(&value)
        && tensor.numel() == 1
        && tensor.dtype().is_integral(true)
    {
        return Ok(Some(tensor.item().map_err(raise)?.to_i64()));
    }
    // SAFETY: a live object; out of range values are clipped.
    unsafe {
        if ffi::PyIndex_Check(value.as_ptr()) == 0 {
            return Err(PyTypeError::new_err(
                "slice indices must be integers or None or have an __index__ method",
            ));
        }
        let clipped = ffi::PyNumber_AsSsize_t(value.as_ptr(), std::ptr::null_mut());
        if clipped == -1 && !ffi::PyErr_Occurred().is_null() {
            return Err(PyErr::fetch(py));
        }
        Ok(Some(clipped as i64))
    }
}

fn invalid(object: &Bound<'_, PyAny>) -> PyErr {
    PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
        type_name(object)
    ))
}

/// One index object.
fn one(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    let py = object.py();
    if let Some(value) = crate::convert::exact_int(py, object.as_ptr()) {
        return Ok(Index::Int(value));
    }
    if let Ok(slice) = object.cast::<PySlice>() {
        let raw = slice.as_ptr().cast::<ffi::PySliceObject>();
        // SAFETY: a slice's three parts live as long as it does.
        let (start, stop, step) = unsafe { ((*raw).start, (*raw).stop, (*raw).step) };
        return Ok(Index::Slice {
            start: bound_of(start, py)?,
            stop: bound_of(stop, py)?,
            step: bound_of(step, py)?,
        });
    }
    if object.is_none() {
        return Ok(Index::NewAxis);
    }
    if object.is(py.Ellipsis()) {
        return Ok(Index::Ellipsis);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Index::Bool(flag.is_true()));
    }
    if let Some(tensor) = as_tensor(object) {
        if tensor.ndim() == 0 && tensor.dtype().is_integral(false) && tensor.dtype() != DType::U8 {
            return Ok(Index::Int(tensor.item().map_err(raise)?.to_i64()));
        }
        if tensor.dtype() == DType::U8 {
            binding::warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.".into());
        }
        return Ok(Index::Tensor(tensor.clone()));
    }
    if object.is_instance_of::<PyFloat>() {
        return Err(invalid(object));
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "new(): invalid data type '{}'",
            type_name(object)
        )));
    }
    let is_sequence = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
        || crate::tensor::numpy::is_array(object);
    if is_sequence {
        return sequence(object);
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyIndex_Check(object.as_ptr()) } != 0 {
        return Ok(Index::Int(crate::convert::to_int(object)?));
    }
    if !is_mapping(object) && object.hasattr("__len__")? && object.hasattr("__getitem__")? {
        return sequence(object);
    }
    Err(invalid(object))
}

/// Whether an object is a dictionary or similar: it has items, but no order.
fn is_mapping(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PySequence_Check(object.as_ptr()) == 0 }
}

/// A sequence of numbers as one index tensor.
fn sequence(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    let tensor = from_data(object, None, None, false)?;
    if tensor.numel() == 0 && !tensor.dtype().is_integral(true) {
        return Ok(Index::Tensor(tensor.to_dtype(DType::I64).map_err(raise)?));
    }
    Ok(Index::Tensor(tensor))
}

/// Whether a list is treated as a tuple: it is short and has an item that is no number.
fn is_tuple_in_disguise(list: &[*mut PyObject], py: Python<'_>) -> bool {
    list.len() < TREAT_AS_TUPLE
        && list.iter().any(|&item| {
            // SAFETY: a live item.
            let item = unsafe { Bound::from_borrowed_ptr(py, item) };
            as_tensor(&item).is_some()
                || item.is_none()
                || item.is(py.Ellipsis())
                || item.is_instance_of::<PySlice>()
                || item.is_instance_of::<PyList>()
                || item.is_instance_of::<PyTuple>()
                || crate::tensor::numpy::is_array(&item)
        })
}

fn indices(object: &Bound<'_, PyAny>) -> PyResult<Indices> {
    let py = object.py();
    let each = |list: &[*mut PyObject]| -> PyResult<Indices> {
        // SAFETY: live items, of a tuple that the caller holds.
        list.iter().map(|&item| one(&unsafe { Bound::from_borrowed_ptr(py, item) })).collect()
    };
    if object.is_instance_of::<PyTuple>() {
        return each(items(object.as_ptr()).unwrap_or_default());
    }
    if object.is_instance_of::<PyList>() {
        let list = items(object.as_ptr()).unwrap_or_default();
        if is_tuple_in_disguise(list, py) {
            return each(list);
        }
    }
    Ok(smallvec::smallvec![one(object)?])
}

/// `x[index]`.
pub(crate) fn get(py: Python<'_>, slf: *mut PyObject, index: &Bound<'_, PyAny>) -> Reply {
    // SAFETY: a slot of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let part = |indices: &[Index]| {
        let is_copy = indices.iter().any(|i| matches!(i, Index::Tensor(_)));
        let result = if is_copy && tensor.numel() > 50_000 {
            without_lock(py, || index::get(tensor, indices))
        } else {
            index::get(tensor, indices)
        };
        wrap(result.map_err(raise)?)
    };
    // A single index needs no list.
    if index.is_instance_of::<PyTuple>() || index.is_instance_of::<PyList>() {
        part(&indices(index)?)
    } else {
        part(&[one(index)?])
    }
}

/// `x[index] = value`.
pub(crate) fn set(
    py: Python<'_>,
    slf: *mut PyObject,
    index: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: a slot of tensors.
    let tensor = unsafe { tensor_of(slf) };
    if tensor.is_sparse() {
        return Err(PyTypeError::new_err("Cannot assign to a sparse tensor"));
    }
    let indices = indices(index)?;
    let value = assigned(tensor, value)?;
    let run = || index::set(tensor, &indices, &value);
    let result = if tensor.numel() > 50_000 { without_lock(py, run) } else { run() };
    result.map_err(raise)
}

/// The assigned value as a tensor.
fn assigned(target: &Tensor, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Some(tensor) = as_tensor(value) {
        return Ok(tensor.clone());
    }
    if let Some(number) = crate::convert::exact_scalar(value.py(), value.as_ptr()) {
        return number_for(target, number);
    }
    let refuse = || {
        PyTypeError::new_err(format!(
            "can't assign a {} to a torch.{}Tensor",
            type_name(value),
            target.dtype().scalar_name().pytorch()
        ))
    };
    let is_array = crate::tensor::numpy::is_array(value) && value.len().is_ok();
    if is_array
        || value.is_none()
        || value.is_instance_of::<PyString>()
        || items(value.as_ptr()).is_some()
    {
        return Err(refuse());
    }
    let number = to_scalar(value).map_err(|_| refuse())?;
    number_for(target, number)
}

/// A number as the target's elements hold it.
fn number_for(target: &Tensor, number: Scalar) -> PyResult<Tensor> {
    // Numbers become halves by way of floats, and infinity beyond their range.
    let through = match target.dtype() {
        DType::F16 | DType::BF16 => DType::F32,
        dtype => dtype,
    };
    number.check_fits(through).map_err(|error| raise(error.into()))?;
    Tensor::scalar_of(number, target.dtype()).map_err(raise)
}
