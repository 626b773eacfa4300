//! `NumPy` arrays, both ways, sharing memory. `NumPy` is imported when an array is first made.
//!
//! Plain arrays go through `raw::array`; all others, refused ones included, through the array
//! interface: a dictionary with address, type, sizes and strides.

use crate::convert::{is_numpy_scalar, type_name};
use crate::error::raise;
use crate::held::Held;
use crate::raw::array;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{tensor_of, wrap, wrap_bound};
use pullback::tensor::{Keeper, dims_with};
use pullback::{DType, Device, Tensor, binding, is_grad_enabled};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::AtomicBool;

/// Whether `object` is an array (and no scalar), without importing `NumPy`.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    if array::is_exact(object) || type_name(object) == "numpy.ndarray" {
        return true;
    }
    object.hasattr("__array_interface__").unwrap_or(false)
        && object.hasattr("__setitem__").unwrap_or(false)
        && crate::raw::object::as_tensor(object).is_none()
}

fn dtype_of(text: &str) -> Option<DType> {
    let (order, code) = text.split_at(1);
    let dtype = match code {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        _ => return None,
    };
    let native = if cfg!(target_endian = "little") { "<" } else { ">" };
    (order == "|" || order == native || dtype.size() == 1).then_some(dtype)
}

/// The dtype of one of `NumPy`'s scalars.
pub(crate) fn dtype_of_scalar(object: &Bound<'_, PyAny>) -> Option<DType> {
    if !is_numpy_scalar(object) {
        return None;
    }
    let text: String =
        object.getattr("dtype").and_then(|d| d.getattr("str")).ok()?.extract().ok()?;
    dtype_of(&text)
}

fn code_of(dtype: DType) -> Option<String> {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::BF16 | DType::C32 | DType::BC32 => return None,
        d if d.is_narrow_float() => return None,
        d if d.is_complex() => 'c',
        d if d.is_floating_point() => 'f',
        d if d.is_signed() => 'i',
        _ => 'u',
    };
    let order = if dtype.size() == 1 {
        '|'
    } else if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    Some(format!("{order}{kind}{}", dtype.size()))
}

/// Whether an element of `dtype` may lie at this address.
fn is_aligned(address: usize, dtype: DType) -> bool {
    address.is_multiple_of(dtype.size().min(8))
}

/// A tensor over the memory of an exact array that needs neither an error nor a warning.
fn from_plain(object: &Bound<'_, PyAny>, warn: bool) -> PyResult<Option<Tensor>> {
    let Some(parts) = array::parts(object) else { return Ok(None) };
    let size = parts.dtype.size() as isize;
    // (A power of two: no division.)
    let fits = |&stride: &isize| stride >= 0 && stride & (size - 1) == 0;
    let is_plain = parts.strides.iter().all(fits)
        && (parts.is_writeable || !warn)
        && is_aligned(parts.data as usize, parts.dtype);
    if !is_plain {
        return Ok(None);
    }
    let shape = dims_with(parts.sizes, |n| n as i64);
    let strides = dims_with(parts.strides, |s| (s >> size.trailing_zeros()) as i64);
    let owner = Held::new(object.clone().unbind()).into_keeper();
    // SAFETY: the array's own description of its memory, which the owner keeps alive.
    let tensor = unsafe { binding::foreign(parts.data, &shape, &strides, parts.dtype, owner) };
    tensor.map(Some).map_err(raise)
}

/// The error for an array whose elements have no dtype here.
#[cold]
fn no_dtype(array: &Bound<'_, PyAny>, typestr: String) -> PyErr {
    let name = array
        .getattr("dtype")
        .and_then(|dtype| dtype.getattr("type")?.getattr("__name__")?.extract::<String>());
    PyTypeError::new_err(format!(
        "can't convert np.ndarray of type numpy.{}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        name.unwrap_or(typestr)
    ))
}

/// A tensor over the array's memory.
pub(crate) fn from_array(array: &Bound<'_, PyAny>, warn: bool) -> PyResult<Tensor> {
    if let Some(tensor) = from_plain(array, warn)? {
        return Ok(tensor);
    }
    let interface = array.getattr("__array_interface__")?;
    let interface = interface.cast::<PyDict>()?;
    let field = |name: &str| -> PyResult<Bound<'_, PyAny>> {
        interface
            .get_item(name)?
            .ok_or_else(|| PyValueError::new_err(format!("the array interface has no {name}")))
    };
    let typestr: String = field("typestr")?.extract()?;
    let Some(dtype) = dtype_of(&typestr) else {
        if matches!(typestr.chars().next(), Some('>')) && cfg!(target_endian = "little") {
            return Err(PyValueError::new_err(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.",
            ));
        }
        return Err(no_dtype(array, typestr));
    };
    let shape: Vec<i64> = field("shape")?.extract()?;
    let (address, readonly): (usize, bool) = field("data")?.extract()?;
    let size = dtype.size() as i64;
    let strides: Option<Vec<i64>> = match interface.get_item("strides")? {
        Some(strides) if !strides.is_none() => Some(strides.extract()?),
        _ => None,
    };
    let strides: Vec<i64> = match strides {
        None => pullback::tensor::contiguous_strides(&shape).to_vec(),
        Some(bytes) => {
            if bytes.iter().any(|&s| s < 0) {
                return Err(PyValueError::new_err(
                    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. (You can probably work around this by making a copy of your array  with array.copy().) ",
                ));
            }
            if bytes.iter().any(|&s| s % size != 0) {
                return Err(PyValueError::new_err(
                    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
                ));
            }
            bytes.iter().map(|s| s / size).collect()
        }
    };
    if readonly && warn {
        static GIVEN: AtomicBool = AtomicBool::new(false);
        binding::warn_once(
            &GIVEN,
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
        );
    }
    let owner = Held::new(array.clone().unbind()).into_keeper();
    if !is_aligned(address, dtype) {
        return Err(PyValueError::new_err(
            "given numpy array is not aligned. Copy the numpy array to reallocate the memory.",
        ));
    }
    // SAFETY: the array's own description of its memory, which the owner keeps alive.
    unsafe { binding::foreign(address as *mut u8, &shape, &strides, dtype, owner) }.map_err(raise)
}

/// `torch.from_numpy(array)`.
pub(crate) fn from_numpy(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [array] = args.bind(py, "from_numpy", ["ndarray"], 1)?;
    let array = array.expect("required");
    if !is_array(&array) {
        return Err(PyTypeError::new_err(format!(
            "expected np.ndarray (got {})",
            type_name(&array)
        )));
    }
    wrap(from_array(&array, true)?)
}

/// The array interface of a tensor: its memory, and the tensor itself to keep it alive.
#[pyclass(module = "pullback._C", frozen)]
struct ArrayInterface {
    tensor: Tensor,
}

#[pymethods]
impl ArrayInterface {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensor = &self.tensor;
        tensor.export_as_array().map_err(raise)?;
        let dict = PyDict::new(py);
        let size = tensor.dtype().size() as i64;
        dict.set_item("version", 3)?;
        dict.set_item("typestr", code_of(tensor.dtype()))?;
        dict.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
        dict.set_item("strides", PyTuple::new(py, tensor.strides().iter().map(|s| s * size))?)?;
        dict.set_item("data", (tensor.data_ptr().addr(), false))?;
        Ok(dict)
    }
}

/// `x.numpy(*, force=False)`.
pub(crate) fn numpy(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    if args.positional > 0 {
        return Err(PyTypeError::new_err(format!(
            "numpy() takes 0 positional arguments but {} was given",
            args.positional
        )));
    }
    let [force] = args.bind(py, "numpy", ["force"], 0)?;
    let force = force.map_or(Ok(false), |f| f.is_truthy())?;
    // SAFETY: a method of tensors.
    let tensor = unsafe { tensor_of(slf) };
    if tensor.requires_grad() && is_grad_enabled() && !force {
        return Err(PyRuntimeError::new_err(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ));
    }
    if code_of(tensor.dtype()).is_none() {
        let name = tensor.dtype().scalar_name().pytorch();
        return Err(PyTypeError::new_err(format!("Got unsupported ScalarType {name}")));
    }
    let tensor = &match tensor.device() {
        Device::Cpu => tensor.clone(),
        _ if force => tensor.to(None, Some(Device::Cpu), false, None).map_err(raise)?,
        device => {
            return Err(PyTypeError::new_err(format!(
                "can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )));
        }
    };
    tensor.check_elements().map_err(raise)?;
    if let (Some((bit, resolve)), false) = (tensor.unresolved_names(), force) {
        return Err(PyRuntimeError::new_err(format!(
            "Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{resolve}.numpy() instead."
        )));
    }
    let tensor = if tensor.is_unresolved() {
        tensor.copied(tensor.dtype())
    } else {
        tensor.detached_alias()
    };
    let tensor = tensor.map_err(raise)?;
    if let Some(array) = array::make(py, &tensor, wrap_bound(py, tensor.clone())?)? {
        return Ok(array);
    }
    let holder = Bound::new(py, ArrayInterface { tensor })?;
    // Having imported NumPy, the next call finds its table.
    Ok(py.import("numpy")?.call_method1("asarray", (holder,))?.into_ptr())
}

/// `torch.frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)`.
pub(crate) fn frombuffer(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["buffer", "dtype", "count", "offset", "requires_grad"];
    let [buffer, dtype, count, offset, requires_grad] = args.bind(py, "frombuffer", names, 2)?;
    let (buffer, dtype) = (buffer.expect("required"), dtype.expect("required"));
    let Some(dtype) = crate::dtype::as_dtype(&dtype) else {
        return Err(PyTypeError::new_err(format!(
            "frombuffer(): argument 'dtype' must be torch.dtype, not {}",
            type_name(&dtype)
        )));
    };
    let count = count.map_or(Ok(-1), |c| crate::convert::to_int(&c))?;
    let offset = offset.map_or(Ok(0), |o| crate::convert::to_int(&o))?;
    let tensor = over_buffer(&buffer, dtype, count, offset)?;
    if requires_grad.is_some_and(|r| r.is_truthy().unwrap_or(false)) {
        crate::result::require_grad(&tensor)?;
    }
    Ok(wrap_bound(py, tensor)?.into_ptr())
}

/// A vector over the memory of an object with the buffer protocol: `count` elements (-1: all) from `offset` bytes on.
pub(crate) fn over_buffer(
    buffer: &Bound<'_, PyAny>,
    dtype: DType,
    count: i64,
    offset: i64,
) -> PyResult<Tensor> {
    let view =
        buffer.py().import("builtins")?.call_method1("memoryview", (buffer,)).map_err(|_| {
            PyValueError::new_err("object does not implement Python buffer protocol.")
        })?;
    // (A buffer of a single element has no sizes.)
    let is_single = view.getattr("ndim")?.extract::<usize>()? == 0;
    let view = if is_single { view.call_method1("cast", ("B",))? } else { view };
    let bytes = pyo3::buffer::PyUntypedBuffer::get(&view)?;
    let (length, size) = (bytes.len_bytes() as i64, dtype.size() as i64);
    if length == 0 || count == 0 {
        return Err(PyValueError::new_err(format!(
            "both buffer length ({length}) and count ({count}) must not be 0"
        )));
    }
    if offset < 0 || offset >= length {
        return Err(PyValueError::new_err(format!(
            "offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )));
    }
    if count < 0 && (length - offset) % size != 0 {
        return Err(PyValueError::new_err(format!(
            "buffer length ({} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})",
            length - offset
        )));
    }
    let count = if count < 0 { (length - offset) / size } else { count };
    if offset + count.saturating_mul(size) > length {
        return Err(PyValueError::new_err(format!(
            "requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({length} bytes)"
        )));
    }
    if bytes.readonly() {
        static GIVEN: AtomicBool = AtomicBool::new(false);
        binding::warn_once(
            &GIVEN,
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
        );
    }
    let data = (bytes.buf_ptr() as usize + offset as usize) as *mut u8;
    // SAFETY: inside the buffer, which the view keeps exported.
    let tensor = unsafe {
        binding::foreign(
            data,
            &[count],
            &[1],
            dtype,
            Keeper::new(BufferKeeper { _bytes: bytes, _view: Held::new(view.unbind()) }),
        )
    };
    tensor.map_err(raise)
}

/// An exported buffer and the object it came from.
struct BufferKeeper {
    _bytes: pyo3::buffer::PyUntypedBuffer,
    _view: Held,
}
