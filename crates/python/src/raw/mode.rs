//! The contexts that set grad mode or inference mode: `no_grad` and its siblings without a Python frame.
//!
//! `_ModeContext` is told what to set; `_NoGrad` and `_EnableGrad` are made knowing it, or hand a
//! function to the package's decorator. Decorating and cloning are in `pullback.autograd.grad_mode`,
//! whose classes derive from these. Invariant: `previous` has one entry per `__enter__` not yet left.

use crate::raw::entry::{Args, Reply, fast, guard, noargs};
use crate::result::none;
use pullback::autograd::mode::{inference_mode, restore, set_grad_enabled, snapshot};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr::null_mut;

/// The mode that entering the context sets.
#[derive(Clone, Copy)]
enum ModeSetting {
    Grad(bool),
    Inference(bool),
}

#[repr(C)]
struct ModeContext {
    base: PyObject,
    mode: ModeSetting,
    previous: SmallVec<[u64; 2]>,
}

/// A new context of type `ty`.
unsafe fn alloc(py: Python<'_>, ty: *mut PyTypeObject, mode: ModeSetting) -> Reply {
    // SAFETY: `ty` derives from one of the types here, whose objects begin with a `ModeContext`.
    unsafe {
        let object = (*ty).tp_alloc.expect("a ready type can allocate")(ty, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let context = object.cast::<ModeContext>();
        (&raw mut (*context).mode).write(mode);
        (&raw mut (*context).previous).write(SmallVec::new());
        Ok(object)
    }
}

unsafe extern "C" fn new_plain(
    ty: *mut PyTypeObject,
    _: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL and a type that has this slot.
    unsafe { guard(|py| alloc(py, ty, ModeSetting::Grad(true))) }
}

/// Makes the context, or decorates the function that is given instead of brackets.
unsafe extern "C" fn new_grad<const ENABLED: bool>(
    ty: *mut PyTypeObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above; `args` is a tuple, `kwargs` a dictionary or null.
    unsafe {
        guard(|py| {
            if ffi::PyTuple_GET_SIZE(args) == 0 && kwargs.is_null() {
                return alloc(py, ty, ModeSetting::Grad(ENABLED));
            }
            match given_function(py, args, kwargs)? {
                None => alloc(py, ty, ModeSetting::Grad(ENABLED)),
                Some(function) => {
                    let class = Bound::from_borrowed_ptr(py, ty.cast());
                    let module = py.import("pullback.autograd.grad_mode")?;
                    Ok(module.call_method1("_decorate", (class, function))?.into_ptr())
                }
            }
        })
    }
}

/// The only argument, unless it is `None`.
#[cold]
unsafe fn given_function<'py>(
    py: Python<'py>,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // SAFETY: the caller passes on what the interpreter gave.
    let (args, kwargs) = unsafe {
        (Bound::from_borrowed_ptr(py, args), Bound::from_borrowed_ptr_or_opt(py, kwargs))
    };
    let mut given: Vec<Bound<'py, PyAny>> = args.cast::<PyTuple>()?.iter().collect();
    if let Some(kwargs) = kwargs {
        for (name, value) in kwargs.cast::<PyDict>()?.iter() {
            if !matches!(name.extract::<&str>()?, "function" | "orig_func") {
                return Err(PyTypeError::new_err(format!(
                    "__new__() got an unexpected keyword argument '{name}'"
                )));
            }
            given.push(value);
        }
    }
    if given.len() > 1 {
        return Err(PyTypeError::new_err(format!(
            "__new__() takes from 1 to 2 positional arguments but {} were given",
            given.len() + 1
        )));
    }
    Ok(given.pop().filter(|function| !function.is_none()))
}

/// `_configure("grad" | "inference", enabled)`: says what `__enter__` sets.
fn configure(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [kind, enabled] = args.bind(py, "_configure", ["kind", "enabled"], 2)?;
    let enabled = enabled.expect("required").is_truthy()?;
    let is_grad = kind.expect("required").extract::<String>()? == "grad";
    // SAFETY: a method of contexts.
    unsafe {
        (*slf.cast::<ModeContext>()).mode =
            if is_grad { ModeSetting::Grad(enabled) } else { ModeSetting::Inference(enabled) };
    }
    Ok(none())
}

fn enter(_: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a method of contexts.
    let context = unsafe { &mut *slf.cast::<ModeContext>() };
    context.previous.push(snapshot());
    match context.mode {
        ModeSetting::Grad(enabled) => set_grad_enabled(enabled),
        ModeSetting::Inference(enabled) => std::mem::forget(inference_mode(enabled)),
    }
    Ok(none())
}

fn exit(_: Python<'_>, slf: *mut PyObject, _exception: Args<'_>) -> Reply {
    // SAFETY: a method of contexts.
    if let Some(previous) = unsafe { (*slf.cast::<ModeContext>()).previous.pop() } {
        restore(previous);
    }
    Ok(none())
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: the last reference is gone; the type of the object knows how its memory was made.
    unsafe {
        std::ptr::drop_in_place(&raw mut (*object.cast::<ModeContext>()).previous);
        (*ffi::Py_TYPE(object)).tp_free.expect("a ready type can free")(object.cast());
    }
}

fn make_type(
    name: &'static CStr,
    base: *mut PyTypeObject,
    new: ffi::newfunc,
) -> PyResult<*mut PyTypeObject> {
    let method = |name: &'static CStr, function, flags| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: function,
        ml_flags: flags,
        ml_doc: null_mut(),
    };
    let fast_flags = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects.
    unsafe {
        let methods = Box::leak(Box::new([
            method(c"__enter__", noargs!(enter), ffi::METH_NOARGS),
            method(c"__exit__", fast!(exit), fast_flags),
            method(c"_configure", fast!(configure), fast_flags),
            zeroed(),
        ]));
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = name.as_ptr();
        ty.tp_base = base;
        ty.tp_basicsize = size_of::<ModeContext>() as isize;
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE;
        ty.tp_new = Some(new);
        ty.tp_dealloc = Some(dealloc);
        ty.tp_methods = methods.as_mut_ptr();
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(Python::assume_attached()));
        }
        Ok(ty)
    }
}

/// Makes the types and adds them to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let plain = make_type(c"torch._C._ModeContext", null_mut(), new_plain)?;
    let types = [
        ("_ModeContext", plain),
        ("_NoGrad", make_type(c"torch._C._NoGrad", plain, new_grad::<false>)?),
        ("_EnableGrad", make_type(c"torch._C._EnableGrad", plain, new_grad::<true>)?),
    ];
    for (name, ty) in types {
        // SAFETY: static types that live forever.
        module.add(name, unsafe { Bound::from_borrowed_ptr(module.py(), ty.cast()) })?;
    }
    Ok(())
}
