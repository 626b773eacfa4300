//! Functions written in Python that types and modes may override, as they override those of the extension.
//!
//! The object wraps a function and hands calls on to it, without a Python frame of its own, unless one of the arguments or
//! a mode overrides the call. In a class it is a method. Its other attributes are those of the function.

use crate::raw::entry::{Args, guard};
use crate::raw::keyword::suggest_keyword;
use crate::torch_function;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

#[repr(C)]
struct Overridable {
    base: PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    function: *mut PyObject,
    dict: *mut PyObject,
}

static TYPE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    fn PyMethod_New(function: *mut PyObject, slf: *mut PyObject) -> *mut PyObject;
}

unsafe extern "C" fn call(
    object: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls objects of this type by this convention, with the GIL.
    unsafe {
        let function = (*object.cast::<Overridable>()).function;
        let given = Args::new(args, ffi::PyVectorcall_NARGS(count) as usize, names);
        if !torch_function::has_override_among(given.all) {
            let reply = ffi::PyObject_Vectorcall(function, args, count, names);
            if reply.is_null() && !names.is_null() {
                suggest_keyword(function);
            }
            return reply;
        }
        guard(|py| {
            let object = Bound::from_borrowed_ptr(py, object);
            torch_function::dispatch_python(&object, given).unwrap_or_else(|| {
                let reply = ffi::PyObject_Vectorcall(function, args, count, names);
                Bound::from_owned_ptr_or_err(py, reply).map(Bound::into_ptr)
            })
        })
    }
}

unsafe extern "C" fn bind_receiver(
    object: *mut PyObject,
    receiver: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: live objects, with the GIL.
    unsafe {
        if receiver.is_null() {
            ffi::Py_INCREF(object);
            object
        } else {
            PyMethod_New(object, receiver)
        }
    }
}

/// The object's own attribute, else that of the wrapped function.
unsafe extern "C" fn get_attribute(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects, with the GIL.
    unsafe {
        let found = ffi::PyObject_GenericGetAttr(object, name);
        if found.is_null() && ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) != 0 {
            ffi::PyErr_Clear();
            return ffi::PyObject_GetAttr((*object.cast::<Overridable>()).function, name);
        }
        found
    }
}

unsafe extern "C" fn describe(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called on an object of this type.
    unsafe {
        guard(|py| {
            let name = Bound::from_borrowed_ptr(py, object).getattr(intern!(py, "__qualname__"))?;
            let text = format!("<function {name} at {object:p}>");
            Ok(text.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// `copy`, `deepcopy` and `pickle` find the function again by its name.
unsafe extern "C" fn reduce(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called on an object of this type.
    unsafe {
        guard(|py| {
            let object = Bound::from_borrowed_ptr(py, object);
            Ok(object.getattr(intern!(py, "__qualname__"))?.into_ptr())
        })
    }
}

unsafe extern "C" fn dictionary(object: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    // SAFETY: called on an object of this type, which says where its dictionary is.
    unsafe { ffi::PyObject_GenericGetDict(object, closure) }
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: the last reference is gone.
    unsafe {
        let this = object.cast::<Overridable>();
        ffi::Py_XDECREF((*this).function);
        ffi::Py_XDECREF((*this).dict);
        ffi::PyObject_Free(object.cast());
    }
}

/// Wraps a function of Python so that types and modes may override calls of it.
#[pyfunction]
fn _overridable<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    if !function.is_callable() {
        return Err(PyTypeError::new_err("_overridable(): a function is needed"));
    }
    // SAFETY: a ready type whose objects are `Overridable`s without collector header: they live as long as their module.
    let made = unsafe {
        let memory = ffi::PyObject_Malloc(size_of::<Overridable>()).cast::<PyObject>();
        if memory.is_null() {
            return Err(pyo3::exceptions::PyMemoryError::new_err("out of memory"));
        }
        let object = ffi::PyObject_Init(memory, TYPE.load(Relaxed)).cast::<Overridable>();
        (&raw mut (*object).vectorcall).write(Some(call));
        (&raw mut (*object).function).write(function.clone().into_ptr());
        (&raw mut (*object).dict).write(null_mut());
        Bound::from_owned_ptr(py, object.cast::<PyObject>())
    };
    py.import("functools")?.call_method1("update_wrapper", (made, function))
}

/// Makes the type, and adds the function that makes its objects.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects.
    unsafe {
        let getset = Box::leak(Box::new([
            ffi::PyGetSetDef {
                name: c"__dict__".as_ptr(),
                get: Some(dictionary),
                set: None,
                doc: null_mut(),
                closure: null_mut(),
            },
            zeroed(),
        ]));
        let methods = Box::leak(Box::new([
            ffi::PyMethodDef {
                ml_name: c"__reduce__".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
                ml_flags: ffi::METH_NOARGS,
                ml_doc: null_mut(),
            },
            zeroed(),
        ]));
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = c"torch._C._OverridableFunction".as_ptr();
        ty.tp_basicsize = size_of::<Overridable>() as isize;
        ty.tp_vectorcall_offset = offset_of!(Overridable, vectorcall) as isize;
        ty.tp_dictoffset = offset_of!(Overridable, dict) as isize;
        ty.tp_call = Some(ffi::PyVectorcall_Call);
        ty.tp_repr = Some(describe);
        ty.tp_getattro = Some(get_attribute);
        ty.tp_setattro = Some(ffi::PyObject_GenericSetAttr);
        ty.tp_descr_get = Some(bind_receiver);
        ty.tp_dealloc = Some(dealloc);
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT
            | ffi::Py_TPFLAGS_HAVE_VECTORCALL
            | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR;
        ty.tp_getset = getset.as_mut_ptr();
        ty.tp_methods = methods.as_mut_ptr();
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(module.py()));
        }
        TYPE.store(ty, Relaxed);
        let ty = Bound::from_borrowed_ptr(module.py(), std::ptr::from_mut(ty).cast());
        module.add("_OverridableFunction", ty)?;
    }
    module.add_function(wrap_pyfunction!(_overridable, module)?)
}
