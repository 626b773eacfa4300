//! The function and method objects of ops: vectorcall straight into the binder.
//!
//! One Rust [`OpFunction`] per name; the Python object holds only a pointer to it. Methods carry the
//! flag that lets the interpreter call them without making a bound method. Functions are never freed.

use crate::bind::OpFunction;
use crate::raw::entry::{Args, guard, guard_or};
use crate::raw::object::{base_type, is_tensor};
use pullback::dispatch::Traits;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

#[repr(C)]
struct Callable {
    base: PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    function: &'static OpFunction,
}

static FUNCTION: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
static METHOD: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    fn PyMethod_New(function: *mut PyObject, slf: *mut PyObject) -> *mut PyObject;
}

unsafe extern "C" fn call_function(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls objects of this type by this convention, with the GIL.
    unsafe {
        let function = (*callable.cast::<Callable>()).function;
        let args = Args::new(args, ffi::PyVectorcall_NARGS(count) as usize, names);
        guard(|py| function.call(py, None, args))
    }
}

unsafe extern "C" fn call_method(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above; the first positional argument is the receiver.
    unsafe {
        let function = (*callable.cast::<Callable>()).function;
        let count = ffi::PyVectorcall_NARGS(count) as usize;
        if count == 0 || !is_tensor(*args) {
            return guard(|_| Err(wrong_receiver(function, (count > 0).then(|| *args))));
        }
        let receiver = *args;
        let args = Args::new(args.add(1), count - 1, names);
        guard(|py| function.call(py, Some(receiver), args))
    }
}

unsafe extern "C" fn get_attribute(slf: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    // SAFETY: the getter of an attribute of tensors, whose closure is its function.
    unsafe {
        let function = &*closure.cast::<OpFunction>();
        guard(|py| function.call(py, Some(slf), Args::none()))
    }
}

/// `x.real = value` writes into what `x.real` shows.
unsafe extern "C" fn set_attribute(
    slf: *mut PyObject,
    value: *mut PyObject,
    closure: *mut c_void,
) -> c_int {
    // SAFETY: as for the getter; a null value means deletion.
    unsafe {
        guard_or(-1, |py| {
            let function = &*closure.cast::<OpFunction>();
            if value.is_null() {
                return Err(PyAttributeError::new_err(format!(
                    "attribute '{}' of 'torch._C.TensorBase' objects cannot be deleted",
                    function.name
                )));
            }
            let shown = function.call(py, Some(slf), Args::none())?;
            let shown: Bound<'_, PyAny> = Bound::from_owned_ptr(py, shown);
            let value: Bound<'_, PyAny> = Bound::from_borrowed_ptr(py, value);
            shown.set_item(py.Ellipsis(), value).map(|()| 0)
        })
    }
}

/// The attribute of tensors that an op without further arguments is.
pub(crate) fn attribute<'py>(
    py: Python<'py>,
    function: &'static OpFunction,
) -> PyResult<Bound<'py, PyAny>> {
    let text = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let is_writable = function.ops[0].is(Traits::WRITABLE);
    let definition = Box::leak(Box::new(ffi::PyGetSetDef {
        name: text(&function.name),
        get: Some(get_attribute),
        set: is_writable.then_some(set_attribute as ffi::setter),
        doc: text(function.ops[0].doc.trim()),
        closure: std::ptr::from_ref(function).cast_mut().cast(),
    }));
    // SAFETY: the definition, its function and the base type live forever.
    unsafe {
        let descriptor = ffi::PyDescr_NewGetSet(base_type(), definition);
        Bound::from_owned_ptr_or_err(py, descriptor)
    }
}

#[cold]
unsafe fn wrong_receiver(function: &OpFunction, given: Option<*mut PyObject>) -> PyErr {
    let name = &function.name;
    let Some(given) = given else {
        return PyTypeError::new_err(format!(
            "unbound method TensorBase.{name}() needs an argument"
        ));
    };
    // SAFETY: a live argument.
    let ty = unsafe { CStr::from_ptr((*ffi::Py_TYPE(given)).tp_name) }.to_string_lossy();
    PyTypeError::new_err(format!(
        "descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{ty}' object"
    ))
}

unsafe extern "C" fn describe(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: called on an object of these types.
    unsafe {
        guard(|py| {
            let function = (*object.cast::<Callable>()).function;
            let text = if ffi::Py_TYPE(object) == METHOD.load(Relaxed) {
                format!("<method '{}' of 'torch._C.TensorBase' objects>", function.name)
            } else {
                format!("<built-in method {} of type object>", function.name)
            };
            Ok(text.into_pyobject(py)?.into_any().into_ptr())
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

unsafe extern "C" fn name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: called on an object of these types.
    unsafe {
        guard(|py| {
            let function = (*object.cast::<Callable>()).function;
            Ok(function.name.as_str().into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// `None`, as for built-in functions of PyTorch: the namespace where they are found is not where
/// they were made.
unsafe extern "C" fn module(_: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    crate::result::none()
}

/// The interpreter's own class for such objects, so that `inspect.isroutine(torch.add)` and questions for
/// `types.BuiltinFunctionType` or `types.MethodDescriptorType` get the answer that they get for PyTorch's.
unsafe extern "C" fn class(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: called on an object of these types; the interpreter's types live forever.
    unsafe {
        let class = if ffi::Py_TYPE(object) == METHOD.load(Relaxed) {
            &raw mut ffi::PyMethodDescr_Type
        } else {
            &raw mut ffi::PyCFunction_Type
        };
        ffi::Py_INCREF(class.cast());
        class.cast()
    }
}

/// The class whose methods they are.
unsafe extern "C" fn owner(_: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: a class that lives forever.
    unsafe {
        let owner = base_type().cast::<PyObject>();
        ffi::Py_INCREF(owner);
        owner
    }
}

unsafe extern "C" fn documentation(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: called on an object of these types.
    unsafe {
        guard(|py| {
            let function = (*object.cast::<Callable>()).function;
            Ok(function.documentation().into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// `copy`, `deepcopy` and `pickle` find the function again by its name.
unsafe extern "C" fn reduce(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called on an object of these types.
    unsafe {
        guard(|py| {
            let function = (*object.cast::<Callable>()).function;
            let finder = py.import("pullback._C")?.getattr("_find_callable")?;
            let is_method = ffi::Py_TYPE(object) == METHOD.load(Relaxed);
            let args = (function.module.as_str(), function.name.as_str(), is_method);
            Ok((finder, args).into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

/// `_flops(..)`: how many operations on numbers a call with these arguments makes, or `None`.
unsafe extern "C" fn flops(
    object: *mut PyObject,
    args: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called on an object of these types, by the convention that the flags of the method say.
    unsafe {
        guard(|py| {
            let function = (*object.cast::<Callable>()).function;
            let args = Args::new(args, count as usize, names);
            Ok(function.flops(py, args)?.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: the last reference is gone.
    unsafe { ffi::PyObject_Free(object.cast()) }
}

fn make_type(name: &'static CStr, is_method: bool) -> PyResult<*mut PyTypeObject> {
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects.
    unsafe {
        let getset = Box::leak(Box::new([
            getset(c"__name__", self::name),
            getset(c"__qualname__", self::name),
            getset(c"__doc__", documentation),
            getset(c"__class__", self::class),
            // (Methods have no module, functions no owner.)
            if is_method {
                getset(c"__objclass__", owner)
            } else {
                getset(c"__module__", self::module)
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
            ffi::PyMethodDef {
                ml_name: c"_flops".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: flops },
                ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
                ml_doc: null_mut(),
            },
            zeroed(),
        ]));
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = name.as_ptr();
        ty.tp_basicsize = size_of::<Callable>() as isize;
        ty.tp_vectorcall_offset = offset_of!(Callable, vectorcall) as isize;
        ty.tp_call = Some(ffi::PyVectorcall_Call);
        ty.tp_repr = Some(describe);
        ty.tp_dealloc = Some(dealloc);
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_VECTORCALL;
        ty.tp_getset = getset.as_mut_ptr();
        ty.tp_methods = methods.as_mut_ptr();
        if is_method {
            ty.tp_flags |= ffi::Py_TPFLAGS_METHOD_DESCRIPTOR;
            ty.tp_descr_get = Some(bind_receiver);
        }
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(Python::assume_attached()));
        }
        Ok(ty)
    }
}

fn getset(name: &'static CStr, get: ffi::getter) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: null_mut(),
        closure: null_mut(),
    }
}

/// Makes the two types.
pub(crate) fn init() -> PyResult<()> {
    FUNCTION.store(make_type(c"builtin_function_or_method", false)?, Relaxed);
    METHOD.store(make_type(c"method_descriptor", true)?, Relaxed);
    Ok(())
}

/// The Python object that calls `function`.
pub(crate) fn object<'py>(
    py: Python<'py>,
    function: &'static OpFunction,
    is_method: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let ty = if is_method { METHOD.load(Relaxed) } else { FUNCTION.load(Relaxed) };
    // SAFETY: a ready type whose objects are `Callable`s without collector header.
    unsafe {
        let memory = ffi::PyObject_Malloc(size_of::<Callable>()).cast::<PyObject>();
        if memory.is_null() {
            return Err(pyo3::exceptions::PyMemoryError::new_err("out of memory"));
        }
        let object = ffi::PyObject_Init(memory, ty).cast::<Callable>();
        (&raw mut (*object).vectorcall).write(Some(if is_method {
            call_method
        } else {
            call_function
        }));
        (&raw mut (*object).function).write(function);
        Ok(Bound::from_owned_ptr(py, object.cast()))
    }
}
