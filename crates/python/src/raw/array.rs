//! `NumPy` arrays by their C structure: read without a Python call, made by `NumPy`'s own functions.
//!
//! `NumPy` keeps the first fields of an array and of its dtype, and the places in the table of functions
//! that its capsule `_ARRAY_API` shows, as they are for whole major versions of the interface; other
//! versions, subclasses and everything unusual go through `__array_interface__` in
//! `crate::tensor::numpy`, which also words the errors. `NumPy` is never imported here.

use crate::error::raise;
use pullback::{DType, Tensor};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The first fields of `PyArrayObject`.
#[repr(C)]
struct Array {
    base: PyObject,
    data: *mut u8,
    ndim: c_int,
    sizes: *const isize,
    strides: *const isize,
    owner: *mut PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// The first fields of `PyArray_Descr`.
#[repr(C)]
struct Descr {
    base: PyObject,
    scalar: *mut PyTypeObject,
    kind: c_char,
    code: c_char,
    order: c_char,
    flags: c_char,
    number: c_int,
}

const WRITEABLE: c_int = 0x400;

// Indices of functions in the table.
const VERSION: usize = 0;
const ARRAY: usize = 2;
const DESCR_FROM_TYPE: usize = 45;
const NEW_FROM_DESCR: usize = 94;
const SET_BASE_OBJECT: usize = 282;

type GetVersion = unsafe extern "C" fn() -> c_uint;
type DescrFromType = unsafe extern "C" fn(c_int) -> *mut PyObject;
type NewFromDescr = unsafe extern "C" fn(
    *mut PyTypeObject,
    *mut PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut PyObject,
) -> *mut PyObject;
type SetBaseObject = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> c_int;

/// The table, once `NumPy` was seen.
static TABLE: AtomicPtr<*mut c_void> = AtomicPtr::new(null_mut());
/// The type `numpy.ndarray`, once it was seen.
static TYPE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

/// Looks for the table in the modules that are imported already.
#[cold]
fn find(py: Python<'_>) -> Option<*mut *mut c_void> {
    let modules = py.import("sys").ok()?.getattr("modules").ok()?.cast_into::<PyDict>().ok()?;
    let names = ["numpy._core._multiarray_umath", "numpy.core._multiarray_umath"];
    let module = names.iter().find_map(|name| modules.get_item(name).ok().flatten())?;
    let capsule = module.getattr("_ARRAY_API").ok()?;
    // SAFETY: a null pointer, with an exception, is what a wrong object gives; the first entries of the
    // table are the version of the interface, as a function, and the array type, which lives forever.
    unsafe {
        let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), null_mut()).cast::<*mut c_void>();
        if table.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let version = std::mem::transmute::<*mut c_void, GetVersion>(*table.add(VERSION))();
        if !matches!(version >> 24, 1 | 2) {
            return None;
        }
        TYPE.store((*table.add(ARRAY)).cast(), Relaxed);
        TABLE.store(table, Relaxed);
        Some(table)
    }
}

fn table(py: Python<'_>) -> Option<*mut *mut c_void> {
    let table = TABLE.load(Relaxed);
    if table.is_null() { find(py) } else { Some(table) }
}

/// Whether `object` is a `numpy.ndarray` and of no subclass; never true for an interface not known here.
pub(crate) fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object has a type, which has a name.
    unsafe {
        let ty = ffi::Py_TYPE(object.as_ptr());
        if TABLE.load(Relaxed).is_null() {
            let is_named = CStr::from_ptr((*ty).tp_name) == c"numpy.ndarray";
            if !is_named || find(object.py()).is_none() {
                return false;
            }
        }
        ty == TYPE.load(Relaxed)
    }
}

/// The description of an array's memory; strides are in bytes.
pub(crate) struct Parts<'a> {
    pub(crate) data: *mut u8,
    pub(crate) sizes: &'a [isize],
    pub(crate) strides: &'a [isize],
    pub(crate) dtype: DType,
    pub(crate) is_writeable: bool,
}

/// The parts of an exact array of a dtype that tensors have, in the machine's byte order.
pub(crate) fn parts<'a>(object: &'a Bound<'_, PyAny>) -> Option<Parts<'a>> {
    if !is_exact(object) {
        return None;
    }
    // SAFETY: an array by its type; sizes and strides are `ndim` long, and null at most if that is 0.
    // They stay while the caller holds the GIL and runs no Python code.
    unsafe {
        let array = &*object.as_ptr().cast::<Array>();
        let descr = &*array.descr;
        if !matches!(descr.order as u8, b'=' | b'|') {
            return None;
        }
        let list = |start: *const isize| match array.ndim {
            0 => &[][..],
            ndim => std::slice::from_raw_parts(start, ndim as usize),
        };
        Some(Parts {
            data: array.data,
            sizes: list(array.sizes),
            strides: list(array.strides),
            dtype: dtype_of(descr.number)?,
            is_writeable: array.flags & WRITEABLE != 0,
        })
    }
}

/// The dtype by `NumPy`'s number; C's `long` has one of its own beside the type of the same size.
fn dtype_of(number: c_int) -> Option<DType> {
    let is_long = size_of::<c_long>() == 8;
    Some(match number {
        0 => DType::Bool,
        1 => DType::I8,
        2 => DType::U8,
        3 => DType::I16,
        4 => DType::U16,
        5 => DType::I32,
        6 => DType::U32,
        7 if !is_long => DType::I32,
        8 if !is_long => DType::U32,
        7 | 9 => DType::I64,
        8 | 10 => DType::U64,
        11 => DType::F32,
        12 => DType::F64,
        14 => DType::C64,
        15 => DType::C128,
        23 => DType::F16,
        _ => return None,
    })
}

/// `NumPy`'s number of a dtype; 64-bit integers are C's `long` where that has 64 bits, as `int64` is.
fn number_of(dtype: DType) -> Option<c_int> {
    let candidates = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 23];
    candidates.into_iter().find(|&number| dtype_of(number) == Some(dtype))
}

/// An array over the memory of `tensor`, kept alive by `owner`; `None` if that needs the long way.
pub(crate) fn make(
    py: Python<'_>,
    tensor: &Tensor,
    owner: Bound<'_, PyAny>,
) -> PyResult<Option<*mut PyObject>> {
    let (Some(table), Some(number)) = (table(py), number_of(tensor.dtype())) else {
        return Ok(None);
    };
    tensor.export_as_array().map_err(raise)?;
    let data = tensor.data_ptr_mut().map_err(raise)?;
    // Without an address, NumPy would allocate memory of its own.
    if data.is_null() {
        return Ok(None);
    }
    let size = tensor.dtype().size() as isize;
    let sizes: SmallVec<[isize; 8]> = tensor.shape().iter().map(|&n| n as isize).collect();
    let strides: SmallVec<[isize; 8]> =
        tensor.strides().iter().map(|&s| s as isize * size).collect();
    // SAFETY: the table's entries have these types in the versions that `find` accepts. The description is
    // handed over, as is the owner, and the owner's memory is what sizes and strides reach.
    unsafe {
        let function = |index: usize| *table.add(index);
        let describe = std::mem::transmute::<*mut c_void, DescrFromType>(function(DESCR_FROM_TYPE));
        let new = std::mem::transmute::<*mut c_void, NewFromDescr>(function(NEW_FROM_DESCR));
        let set = std::mem::transmute::<*mut c_void, SetBaseObject>(function(SET_BASE_OBJECT));
        let array = new(
            TYPE.load(Relaxed),
            describe(number),
            sizes.len() as c_int,
            sizes.as_ptr(),
            strides.as_ptr(),
            data.cast(),
            WRITEABLE,
            null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if set(array.as_ptr(), owner.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Some(array.into_ptr()))
    }
}
