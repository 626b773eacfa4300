//! `F.apply` of a custom function `F`, made once per class.
//!
//! As a class method it would be bound anew at every call, and look up `forward` and its siblings each time. This
//! object stands in the class's dictionary, remembers what it found there, and looks again when the class changed:
//! CPython gives a class another version then.

use crate::autograd::function::{Protocol, apply_with};
use crate::raw::entry::{Args, guard};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;

#[repr(C)]
struct Apply {
    base: PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    /// The function class: a reference.
    class: *mut PyObject,
    /// The class's version that `protocol` was read at.
    version: u32,
    protocol: Option<Protocol>,
}

/// The version of a class, 0 if it has none now.
unsafe fn version_of(class: *mut PyObject) -> u32 {
    let ty = class.cast::<PyTypeObject>();
    // SAFETY: a live class.
    unsafe {
        if (*ty).tp_flags & ffi::Py_TPFLAGS_VALID_VERSION_TAG != 0 {
            (*ty).tp_version_tag
        } else {
            0
        }
    }
}

unsafe extern "C" fn call(
    object: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls objects of this type by this convention, with the GIL.
    unsafe {
        guard(|py| {
            let this = object.cast::<Apply>();
            let class = Bound::from_borrowed_ptr(py, (*this).class);
            let args = Args::new(args, ffi::PyVectorcall_NARGS(count) as usize, names);
            let version = version_of((*this).class);
            // Counted, or read anew: a call further in may change the class, and what is kept here with it.
            let known =
                (*this).protocol.as_ref().filter(|_| version != 0 && version == (*this).version);
            let protocol = if let Some(known) = known {
                known.clone_ref(py)
            } else {
                let read = Protocol::of(&class)?;
                // Looking up the version gave the class one, if it can have one.
                (*this).version = version_of((*this).class);
                let old = (*this).protocol.replace(read.clone_ref(py));
                drop(old);
                read
            };
            apply_with(&class, &protocol, args)
        })
    }
}

unsafe extern "C" fn new(
    ty: *mut PyTypeObject,
    args: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with a type, a tuple and a dictionary or null.
    unsafe {
        guard(|py| {
            let args = Bound::from_borrowed_ptr(py, args).cast_into::<PyTuple>()?;
            let (class,) = args.extract::<(Bound<'_, PyAny>,)>()?;
            if ffi::PyType_Check(class.as_ptr()) == 0 {
                return Err(PyTypeError::new_err("apply objects belong to a class"));
            }
            let object = (*ty).tp_alloc.expect("a ready type can allocate")(ty, 0);
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            let this = object.cast::<Apply>();
            (*this).vectorcall = Some(call);
            (&raw mut (*this).protocol).write(None);
            (*this).class = class.into_ptr();
            Ok(object)
        })
    }
}

unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    let this = object.cast::<Apply>();
    // SAFETY: called with the GIL on a live object.
    unsafe {
        let old = (*this).protocol.take();
        drop(old);
    }
    0
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: called once the count is zero, with the GIL.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        clear(object);
        ffi::Py_DECREF((*object.cast::<Apply>()).class);
        (*ffi::Py_TYPE(object)).tp_free.expect("a ready type can free")(object.cast());
    }
}

unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    let this = object.cast::<Apply>();
    // SAFETY: the collector calls with the GIL on a live object.
    unsafe {
        let mut result = visit((*this).class, arg);
        for target in (*this).protocol.iter().flat_map(Protocol::objects) {
            if result == 0 {
                result = visit(target, arg);
            }
        }
        result
    }
}

unsafe extern "C" fn describe(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called on an object of this type.
    unsafe {
        guard(|py| {
            let class = Bound::from_borrowed_ptr(py, (*object.cast::<Apply>()).class);
            let text = format!("<bound method Function.apply of {}>", class.repr()?);
            Ok(text.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

unsafe extern "C" fn owner(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: a getter of this type.
    unsafe {
        let class = (*object.cast::<Apply>()).class;
        ffi::Py_INCREF(class);
        class
    }
}

unsafe extern "C" fn text(_: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    // SAFETY: the closure is a text that ends with a zero.
    unsafe { ffi::PyUnicode_FromString(closure.cast()) }
}

/// `copy` and `pickle` find it again by its class.
unsafe extern "C" fn reduce(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: a method of this type.
    unsafe {
        guard(|py| {
            let class = Bound::from_borrowed_ptr(py, (*object.cast::<Apply>()).class);
            let find = py.import("builtins")?.getattr("getattr")?;
            Ok((find, (class, "apply")).into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// Makes the type and adds it to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let getset = |name: &'static CStr, get, text: Option<&'static CStr>| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: null_mut(),
        closure: text.map_or(null_mut(), |t| t.as_ptr().cast_mut().cast()),
    };
    let doc =
        c"Calls ``forward`` on the arguments, recorded as one node whose rule is ``backward``.";
    let py = module.py();
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects; tables live
    // forever.
    unsafe {
        let getset = Box::leak(Box::new([
            getset(c"__self__", owner, None),
            getset(c"__name__", text, Some(c"apply")),
            getset(c"__qualname__", text, Some(c"Function.apply")),
            getset(c"__doc__", text, Some(doc)),
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
        ty.tp_name = c"torch._C._FunctionApply".as_ptr();
        ty.tp_basicsize = size_of::<Apply>() as isize;
        ty.tp_flags =
            ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_VECTORCALL | ffi::Py_TPFLAGS_HAVE_GC;
        ty.tp_vectorcall_offset = offset_of!(Apply, vectorcall) as isize;
        ty.tp_call = Some(ffi::PyVectorcall_Call);
        ty.tp_new = Some(new);
        ty.tp_dealloc = Some(dealloc);
        ty.tp_traverse = Some(traverse);
        ty.tp_clear = Some(clear);
        ty.tp_repr = Some(describe);
        ty.tp_getset = getset.as_mut_ptr();
        ty.tp_methods = methods.as_mut_ptr();
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(py));
        }
        module.add("_FunctionApply", Bound::from_borrowed_ptr(py, std::ptr::from_mut(ty).cast()))
    }
}
