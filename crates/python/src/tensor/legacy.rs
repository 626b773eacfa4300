//! The older ways to make tensors: `Tensor(...)`, `FloatTensor(...)` and `x.new(...)`.
//!
//! All take nothing, sizes, a storage, another tensor (an alias with history) or data. `Tensor` itself makes the
//! default dtype and takes tensors of any; the others make one dtype and take no other.

use super::construct::{device_option, from_data, is_sequence};
use crate::convert::{has_index, to_int, type_name};
use crate::error::raise;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{as_tensor, tensor_of, wrap};
use crate::tensor::storage::tensor_of_storage;
use pullback::tensor::promote::default_dtype;
use pullback::{DType, Device, Layout, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

const FORMS: &str = ", but expected one of:\n * (*, torch.device device = None)\n * (torch.Storage storage)\n * (Tensor other)\n * (tuple of ints size, *, torch.device device = None)\n * (object data, *, torch.device device = None)\n";

fn refuse(args: &[Bound<'_, PyAny>], kwargs: &[(String, Bound<'_, PyAny>)]) -> PyErr {
    let by_place = args.iter().map(type_name);
    let by_name = kwargs.iter().map(|(name, value)| format!("{name}={}", type_name(value)));
    let given: Vec<String> = by_place.chain(by_name).collect();
    PyTypeError::new_err(format!(
        "new() received an invalid combination of arguments - got ({}){FORMS}",
        given.join(", ")
    ))
}

/// Whole numbers that may be sizes; a bool is none, nor are tensors and arrays.
fn is_size(object: &Bound<'_, PyAny>) -> bool {
    has_index(object)
        && as_tensor(object).is_none()
        && !object.is_instance_of::<PyBool>()
        && !super::numpy::is_array(object)
}

fn check_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match device_option(device, "new")? {
        None | Some(Device::Cpu) => Ok(()),
        Some(other) => Err(PyRuntimeError::new_err(format!(
            "legacy constructor expects device type: cpu but device type: {} was passed",
            other.kind()
        ))),
    }
}

fn of_sizes(sizes: &[Bound<'_, PyAny>], dtype: DType) -> PyResult<Tensor> {
    // bounded: by the rank.
    let mut shape = Vec::with_capacity(sizes.len());
    for (at, size) in sizes.iter().enumerate() {
        if !is_size(size) {
            return Err(PyTypeError::new_err(format!(
                "new(): argument 'size' failed to unpack the object at pos {} with error \"type must be tuple of ints,but got {}\"",
                at + 1,
                type_name(size)
            )));
        }
        shape.push(to_int(size)?);
    }
    Ok(Tensor::empty_of(&shape, dtype).map_err(raise)?.filled_if_enabled())
}

/// An alias of a tensor, which must be of the dtype if there is one.
fn of_tensor(other: &Tensor, wanted: Option<DType>) -> PyResult<Tensor> {
    if let Some(wanted) = wanted
        && other.dtype() != wanted
    {
        return Err(PyTypeError::new_err(format!(
            "expected torch.{}Tensor (got torch.{}Tensor)",
            wanted.scalar_name().pytorch(),
            other.dtype().scalar_name().pytorch()
        )));
    }
    other.alias().map_err(raise)
}

fn of_data(data: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Tensor> {
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    if !is_sequence(data) {
        return Err(PyTypeError::new_err(format!(
            "new(): data must be a sequence (got {})",
            type_name(data)
        )));
    }
    from_data(data, Some(dtype), None, true)
}

/// The tensor for a single positional argument.
fn of_one(only: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    let dtype = wanted.unwrap_or_else(default_dtype);
    if let Some(tensor) = as_tensor(only) {
        return of_tensor(tensor, wanted);
    }
    if is_size(only) {
        return of_sizes(std::slice::from_ref(only), dtype);
    }
    if only.get_type().as_ptr() == crate::raw::size::size_type().cast() {
        let shape = only.extract::<Vec<i64>>()?;
        return Ok(Tensor::empty_of(&shape, dtype).map_err(raise)?.filled_if_enabled());
    }
    match tensor_of_storage(only, dtype)? {
        Some(tensor) => Ok(tensor),
        None => of_data(only, dtype),
    }
}

/// A tensor of the dtype `wanted`, or of the default dtype or another tensor's if it is left out.
pub(crate) fn make(
    args: &[Bound<'_, PyAny>],
    kwargs: &[(String, Bound<'_, PyAny>)],
    wanted: Option<DType>,
) -> PyResult<Tensor> {
    let dtype = wanted.unwrap_or_else(default_dtype);
    let (devices, rest): (Vec<_>, Vec<_>) = kwargs.iter().partition(|(name, _)| name == "device");
    match (args, rest.as_slice()) {
        _ if rest.len() > 1 => return Err(refuse(args, kwargs)),
        ([], [(name, value)]) => {
            return match name.as_str() {
                "size" => {
                    check_device(devices.first().map(|(_, device)| device))?;
                    let sizes: Vec<Bound<'_, PyAny>> =
                        value.extract().map_err(|_| refuse(args, kwargs))?;
                    of_sizes(&sizes, dtype)
                }
                "data" => {
                    check_device(devices.first().map(|(_, device)| device))?;
                    of_data(value, dtype)
                }
                "other" if devices.is_empty() => match as_tensor(value) {
                    Some(other) => of_tensor(other, wanted),
                    None => Err(refuse(args, kwargs)),
                },
                "storage" if devices.is_empty() => {
                    tensor_of_storage(value, dtype)?.ok_or_else(|| refuse(args, kwargs))
                }
                _ => Err(refuse(args, kwargs)),
            };
        }
        (_, [_, ..]) => return Err(refuse(args, kwargs)),
        _ => check_device(devices.first().map(|(_, device)| device))?,
    }
    match args {
        [] => Tensor::empty_of(&[0], dtype).map_err(raise),
        [only] => of_one(only, wanted),
        [first, ..] if is_size(first) => of_sizes(args, dtype),
        _ => Err(refuse(args, kwargs)),
    }
}

/// The arguments of a call that came as a tuple and a dictionary.
pub(crate) fn make_from(
    args: &Bound<'_, PyAny>,
    kwargs: Option<&Bound<'_, PyAny>>,
    wanted: Option<DType>,
) -> PyResult<Tensor> {
    let args: Vec<_> = args.cast::<PyTuple>()?.iter().collect();
    let kwargs = match kwargs.and_then(|k| k.cast::<PyDict>().ok()) {
        None => Vec::new(),
        Some(dict) => {
            dict.iter().map(|(k, v)| Ok((k.extract()?, v))).collect::<PyResult<Vec<_>>>()?
        }
    };
    make(&args, &kwargs, wanted)
}

/// `x.new(...)`.
pub(crate) fn new(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    // SAFETY: a method of tensors.
    let dtype = unsafe { tensor_of(slf) }.dtype();
    let by_name = |index: usize| -> PyResult<(String, Bound<'_, PyAny>)> {
        // SAFETY: live names and values.
        unsafe {
            let name = Bound::from_borrowed_ptr(py, args.name(index));
            let value = Bound::from_borrowed_ptr(py, args.all[args.positional + index]);
            Ok((name.extract()?, value))
        }
    };
    let kwargs = (0..args.keywords()).map(by_name).collect::<PyResult<Vec<_>>>()?;
    let given: Vec<_> = args.positionals(py).into_iter().collect();
    // SAFETY: a method of tensors.
    let layout = unsafe { tensor_of(slf) }.layout();
    if layout != Layout::Strided {
        return new_sparse(py, (layout, dtype), &given, &kwargs);
    }
    wrap(make(&given, &kwargs, Some(dtype))?)
}

/// `x.new(...)` of a list of coordinates; of compressed rows or columns there is none.
fn new_sparse(
    py: Python<'_>,
    (layout, dtype): (Layout, DType),
    args: &[Bound<'_, PyAny>],
    kwargs: &[(String, Bound<'_, PyAny>)],
) -> Reply {
    if layout != Layout::SparseCoo {
        return Err(PyRuntimeError::new_err(format!(
            "new(): a tensor of layout {} is made of its parts: use torch.sparse_compressed_tensor()",
            layout.spelled().pytorch()
        )));
    }
    let named = PyDict::new(py);
    for (name, value) in kwargs {
        named.set_item(name, value)?;
    }
    let make = py.import("pullback._legacy_sparse")?.getattr("make")?;
    let dtype = crate::dtype::dtype_object(py, dtype);
    let made = make.call1(("SparseTensor.new", dtype, PyTuple::new(py, args)?, named))?;
    Ok(made.into_ptr())
}

/// `FloatTensor(...)` and the like: `_legacy_tensor(dtype, args, kwargs)`.
#[pyfunction]
fn _legacy_tensor<'py>(
    py: Python<'py>,
    dtype: &Bound<'py, PyAny>,
    args: &Bound<'py, PyAny>,
    kwargs: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype =
        crate::dtype::as_dtype(dtype).ok_or_else(|| PyTypeError::new_err("expected a dtype"))?;
    let made = make_from(args, Some(kwargs), Some(dtype))?;
    made.mark_inference_if_due();
    super::method::wrapped(py, made)
}

/// Adds the function.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_legacy_tensor, module)?)
}
