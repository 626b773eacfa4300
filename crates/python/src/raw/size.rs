//! `Size`: the tuple type of shapes. Slices, sums and products of sizes are sizes again.

use crate::raw::entry::{Reply, guard};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi::{self, Py_NewRef, PyObject, PyTypeObject};
use pyo3::prelude::*;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static SIZE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

/// The type object.
pub(crate) fn size_type() -> *mut PyTypeObject {
    SIZE.load(Relaxed)
}

/// A new `Size`.
pub(crate) fn new_size(sizes: &[i64]) -> Reply {
    // SAFETY: the type is ready; every item is set once.
    unsafe {
        let ty = size_type();
        let object = (*ty).tp_alloc.expect("a ready type can allocate")(ty, sizes.len() as isize);
        if object.is_null() {
            return Err(PyMemoryError::new_err("out of memory"));
        }
        for (index, &size) in sizes.iter().enumerate() {
            ffi::PyTuple_SET_ITEM(object, index as isize, ffi::PyLong_FromLongLong(size));
        }
        Ok(object)
    }
}

/// Moves the items of a new tuple, which are sizes, into a new `Size`.
unsafe fn from_tuple(py: Python<'_>, tuple: *mut PyObject) -> Reply {
    // SAFETY: `tuple` is null with an exception set, or a new reference to a tuple.
    unsafe {
        if tuple.is_null() {
            return Err(PyErr::fetch(py));
        }
        let tuple = Bound::from_owned_ptr(py, tuple);
        if ffi::Py_TYPE(tuple.as_ptr()) == size_type() {
            return Ok(tuple.into_ptr());
        }
        let ty = size_type();
        let count = ffi::PyTuple_GET_SIZE(tuple.as_ptr());
        let object = (*ty).tp_alloc.expect("a ready type can allocate")(ty, count);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        for index in 0..count {
            let item = ffi::PyTuple_GET_ITEM(tuple.as_ptr(), index);
            ffi::Py_INCREF(item);
            ffi::PyTuple_SET_ITEM(object, index, item);
        }
        Ok(object)
    }
}

/// Makes whole numbers of the items of a new `Size`, which nobody else knows yet.
///
/// # Safety
/// `size` is a live `Size`, or a tuple of this type's layout.
unsafe fn check_items(py: Python<'_>, size: *mut PyObject) -> PyResult<()> {
    // SAFETY: the caller's promise; each item is replaced once.
    unsafe {
        for index in 0..ffi::PyTuple_GET_SIZE(size) {
            let item = Bound::from_borrowed_ptr(py, ffi::PyTuple_GET_ITEM(size, index));
            let is_bool = ffi::PyBool_Check(item.as_ptr()) != 0;
            if ffi::PyLong_Check(item.as_ptr()) != 0 && !is_bool {
                continue;
            }
            let number = if is_bool {
                ffi::PyNumber_Long(item.as_ptr())
            } else {
                ffi::PyNumber_Index(item.as_ptr())
            };
            if number.is_null() {
                ffi::PyErr_Clear();
                return Err(PyTypeError::new_err(format!(
                    "torch.Size() takes an iterable of 'int' (item {index} is '{}')",
                    item.get_type().name()?
                )));
            }
            let old = ffi::PyTuple_GET_ITEM(size, index);
            ffi::PyTuple_SET_ITEM(size, index, number);
            ffi::Py_DECREF(old);
        }
        Ok(())
    }
}

unsafe extern "C" fn new(
    ty: *mut PyTypeObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with a type, a tuple and a dictionary or null.
    unsafe {
        guard(|py| {
            let tuple = ffi::PyTuple_Type.tp_new.expect("tuples can be made")(ty, args, kwargs);
            if tuple.is_null() {
                return Err(PyErr::fetch(py));
            }
            let made = Bound::from_owned_ptr(py, tuple);
            check_items(py, made.as_ptr())?;
            Ok(made.into_ptr())
        })
    }
}

unsafe extern "C" fn repr(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: a `Size`.
    unsafe {
        guard(|py| {
            let size = Bound::from_borrowed_ptr(py, object);
            let mut items = Vec::new();
            for item in size.try_iter()? {
                items.push(item?.str()?.to_string());
            }
            let text = format!("torch.Size([{}])", items.join(", "));
            Ok(text.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// `left + right`, one of which is a `Size`; only tuples can be added.
unsafe extern "C" fn add(left: *mut PyObject, right: *mut PyObject) -> *mut PyObject {
    // SAFETY: the slots of a static type that is never changed.
    unsafe {
        guard(|py| {
            if ffi::PyTuple_Check(left) == 0 || ffi::PyTuple_Check(right) == 0 {
                return Ok(Py_NewRef(ffi::Py_NotImplemented()));
            }
            let slots = &*ffi::PyTuple_Type.tp_as_sequence;
            let both = slots.sq_concat.expect("tuples concatenate")(left, right);
            // (A sum with nothing may be one of the two, which others know.)
            let sum = Bound::from_owned_ptr(py, from_tuple(py, both)?);
            if sum.as_ptr() != left && sum.as_ptr() != right {
                check_items(py, sum.as_ptr())?;
            }
            Ok(sum.into_ptr())
        })
    }
}

/// The fallback of [`add`] for operands that are no tuples.
unsafe extern "C" fn concat(_: *mut PyObject, right: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter passes live objects.
    unsafe {
        guard(|py| {
            let name = Bound::from_borrowed_ptr(py, right).get_type().name()?.to_string();
            Err(PyTypeError::new_err(format!(
                "can only concatenate tuple (not {name}) to torch.Size"
            )))
        })
    }
}

unsafe extern "C" fn repeat(size: *mut PyObject, times: isize) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let slots = &*ffi::PyTuple_Type.tp_as_sequence;
        guard(|py| from_tuple(py, slots.sq_repeat.expect("tuples repeat")(size, times)))
    }
}

unsafe extern "C" fn subscript(size: *mut PyObject, index: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let slots = &*ffi::PyTuple_Type.tp_as_mapping;
        guard(|py| {
            let item = slots.mp_subscript.expect("tuples have items")(size, index);
            if !item.is_null() && ffi::PySlice_Check(index) != 0 {
                return from_tuple(py, item);
            }
            if item.is_null() { Err(PyErr::fetch(py)) } else { Ok(item) }
        })
    }
}

unsafe extern "C" fn numel(size: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: a `Size`.
    unsafe {
        guard(|py| {
            let mut total = 1_i64;
            for item in Bound::from_borrowed_ptr(py, size).try_iter()? {
                total = total.saturating_mul(item?.extract()?);
            }
            Ok(ffi::PyLong_FromLongLong(total))
        })
    }
}

unsafe extern "C" fn reduce(size: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: a `Size`.
    unsafe {
        guard(|py| {
            let items = ffi::PySequence_List(size);
            if items.is_null() {
                return Err(PyErr::fetch(py));
            }
            let list = Bound::from_owned_ptr(py, items);
            let make = py.import("pullback._C")?.getattr("_make_size")?;
            let pair = (make, (list.try_iter()?.collect::<PyResult<Vec<_>>>()?,));
            Ok(pair.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// A `Size` of `sizes`, for pickle, which cannot find the type by its printed module.
#[pyfunction]
pub(crate) fn _make_size<'py>(py: Python<'py>, sizes: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, new_size(&sizes)?) })
}

/// Makes the type.
pub(crate) fn init() -> PyResult<()> {
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects.
    unsafe {
        let sequence = Box::leak(Box::new(zeroed::<ffi::PySequenceMethods>()));
        sequence.sq_concat = Some(concat);
        sequence.sq_repeat = Some(repeat);
        let number = Box::leak(Box::new(zeroed::<ffi::PyNumberMethods>()));
        number.nb_add = Some(add);
        let mapping = Box::leak(Box::new(zeroed::<ffi::PyMappingMethods>()));
        mapping.mp_subscript = Some(subscript);
        let method = |name: &'static std::ffi::CStr, function: ffi::PyCFunction| ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: null_mut(),
        };
        let methods =
            Box::leak(Box::new([method(c"numel", numel), method(c"__reduce__", reduce), zeroed()]));
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = c"torch.Size".as_ptr();
        ty.tp_base = &raw mut ffi::PyTuple_Type;
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT;
        ty.tp_new = Some(new);
        ty.tp_repr = Some(repr);
        ty.tp_as_number = number;
        ty.tp_as_sequence = sequence;
        ty.tp_as_mapping = mapping;
        ty.tp_methods = methods.as_mut_ptr();
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(Python::assume_attached()));
        }
        SIZE.store(ty, Relaxed);
    }
    Ok(())
}
