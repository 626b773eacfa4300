//! The types `TensorBase` and `_TensorMeta`.
//!
//! The metaclass gives every subclass the life cycle of [`super::object`]; the base has the slots. Its
//! methods are in `crate::tensor`, those made from the registry in `crate::registry`.

use crate::raw::asked::{Fact, ask};
use crate::raw::entry::{guard, guard_or};
use crate::raw::object::{self, TensorObject};
use crate::raw::{callable, number};
use crate::torch_function;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::ffi::{CStr, c_int};
use std::mem::{offset_of, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The name of the base.
const BASE: &CStr = c"torch._C.TensorBase";
/// The descriptor that reads a tensor's dtype from its wrapper.
static DTYPE_FIELD: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

unsafe extern "C" fn meta_init(
    cls: *mut PyObject,
    args: *mut PyObject,
    kwargs: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter makes a new class; its slots are ours to set.
    unsafe {
        let init = ffi::PyType_Type.tp_init.expect("types can be made");
        if init(cls, args, kwargs) < 0 {
            return -1;
        }
        let ty = cls.cast::<PyTypeObject>();
        (*ty).tp_dealloc = Some(object::dealloc);
        (*ty).tp_traverse = Some(object::traverse);
        (*ty).tp_clear = Some(object::clear);
        guard_or(-1, |py| {
            // The package's own class stands between the base and subclasses, which rely on its
            // members.
            let is = |ty: *mut PyTypeObject, name| CStr::from_ptr((*ty).tp_name) == name;
            if is((*ty).tp_base, BASE) && !is(ty, c"Tensor") {
                return Err(PyRuntimeError::new_err("Cannot subclass _TensorBase directly"));
            }
            let cls = Bound::from_borrowed_ptr(py, cls);
            dtype_as_attribute(&cls)?;
            torch_function::disable_by_default(&cls)?;
            Ok(0)
        })
    }
}

/// Sets an attribute of a class; one that gets a `__torch_function__` no longer shows `dtype` as the plain field.
unsafe extern "C" fn meta_set_attribute(
    cls: *mut PyObject,
    name: *mut PyObject,
    value: *mut PyObject,
) -> c_int {
    // SAFETY: the interpreter sets an attribute of a class, with the GIL.
    unsafe {
        let set = ffi::PyType_Type.tp_setattro.expect("types have attributes");
        if set(cls, name, value) < 0 {
            return -1;
        }
        guard_or(-1, |py| {
            if Bound::from_borrowed_ptr(py, name).eq(intern!(py, "__torch_function__"))? {
                dtype_as_attribute(&Bound::from_borrowed_ptr(py, cls))?;
            }
            Ok(0)
        })
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
            if ty == object::base_type() {
                return Err(PyRuntimeError::new_err("Cannot directly construct TensorBase"));
            }
            let args = Bound::from_borrowed_ptr(py, args);
            let kwargs = Bound::from_borrowed_ptr_or_opt(py, kwargs);
            let tensor = crate::tensor::legacy::make_from(&args, kwargs.as_ref(), None)?;
            object::wrap_new(tensor, ty)
        })
    }
}

unsafe extern "C" fn set_attribute(
    slf: *mut PyObject,
    name: *mut PyObject,
    value: *mut PyObject,
) -> c_int {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        let result = ffi::PyObject_GenericSetAttr(slf, name, value);
        if result == 0 && !(*slf.cast::<TensorObject>()).dict.is_null() {
            object::track(slf);
        }
        result
    }
}

unsafe extern "C" fn dictionary(
    slf: *mut PyObject,
    closure: *mut std::ffi::c_void,
) -> *mut PyObject {
    // SAFETY: a getter of tensors, called with the GIL.
    unsafe {
        object::track(slf);
        ffi::PyObject_GenericGetDict(slf, closure)
    }
}

unsafe extern "C" fn hash(slf: *mut PyObject) -> ffi::Py_hash_t {
    // Objects are aligned: the low bits say nothing.
    (slf as usize).rotate_right(4) as ffi::Py_hash_t
}

unsafe extern "C" fn length(slf: *mut PyObject) -> isize {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard_or(-1, |py| {
            if let Some(reply) = number::dispatch_unary(py, "__len__", slf) {
                return reply?.extract();
            }
            if let Some(answer) = ask(py, slf, Fact::Sizes, "length", None) {
                return Bound::from_owned_ptr(py, answer?).extract();
            }
            match object::tensor_of(slf).shape().first() {
                Some(&size) => Ok(size as isize),
                None => Err(PyTypeError::new_err("len() of a 0-d tensor")),
            }
        })
    }
}

unsafe extern "C" fn get_item(slf: *mut PyObject, index: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            if !torch_function::is_plain_indexing(slf, index, None)
                && let Some(reply) = torch_function::dispatch_index(py, slf, index, None)
            {
                return reply;
            }
            crate::indexing::get(py, slf, &Bound::from_borrowed_ptr(py, index))
        })
    }
}

unsafe extern "C" fn set_item(
    slf: *mut PyObject,
    index: *mut PyObject,
    value: *mut PyObject,
) -> c_int {
    // SAFETY: a slot of tensors, called with the GIL; a null value means deletion.
    unsafe {
        guard_or(-1, |py| {
            if value.is_null() {
                return Err(PyTypeError::new_err("Tensor does not support deleting items"));
            }
            if !torch_function::is_plain_indexing(slf, index, Some(value))
                && let Some(reply) = torch_function::dispatch_index(py, slf, index, Some(value))
            {
                ffi::Py_DECREF(reply?);
                return Ok(0);
            }
            let value = Bound::from_borrowed_ptr(py, value);
            crate::indexing::set(py, slf, &Bound::from_borrowed_ptr(py, index), &value)?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn repr(slf: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            if let Some(reply) = number::dispatch_unary(py, "__repr__", slf) {
                return reply.map(Bound::into_ptr);
            }
            let text = crate::tensor::display::repr(py, slf, None)?;
            crate::result::new_string(py, &text)
        })
    }
}

fn ready(ty: &mut PyTypeObject) -> PyResult<()> {
    // SAFETY: a static type with its fields set.
    if unsafe { ffi::PyType_Ready(ty) } < 0 {
        return Err(Python::attach(PyErr::fetch));
    }
    Ok(())
}

/// Makes the types and adds them to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // SAFETY: static types: zeroed memory with the fields below set is what `PyType_Ready` expects;
    // tables live forever.
    unsafe {
        let meta = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        meta.tp_name = c"torch._C._TensorMeta".as_ptr();
        meta.tp_base = &raw mut ffi::PyType_Type;
        meta.tp_flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE;
        meta.tp_init = Some(meta_init);
        meta.tp_setattro = Some(meta_set_attribute);
        ready(meta)?;

        let mapping = Box::leak(Box::new(zeroed::<ffi::PyMappingMethods>()));
        mapping.mp_length = Some(length);
        mapping.mp_subscript = Some(get_item);
        mapping.mp_ass_subscript = Some(set_item);
        let mut getset = crate::tensor::property::table();
        getset.push(ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(dictionary),
            set: Some(ffi::PyObject_GenericSetDict),
            doc: null_mut(),
            closure: null_mut(),
        });
        getset.push(zeroed());
        let mut methods = crate::tensor::method::table();
        methods.push(zeroed());

        let base = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        base.ob_base.ob_base.ob_type = meta;
        base.tp_name = BASE.as_ptr();
        base.tp_basicsize = size_of::<TensorObject>() as isize;
        base.tp_flags =
            ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC;
        base.tp_dictoffset = offset_of!(TensorObject, dict) as isize;
        base.tp_weaklistoffset = offset_of!(TensorObject, weak) as isize;
        base.tp_dealloc = Some(object::dealloc);
        base.tp_traverse = Some(object::traverse);
        base.tp_clear = Some(object::clear);
        base.tp_new = Some(new);
        base.tp_hash = Some(hash);
        base.tp_repr = Some(repr);
        base.tp_richcompare = Some(number::compare);
        base.tp_setattro = Some(set_attribute);
        base.tp_as_number = Box::leak(Box::new(number::slots()));
        base.tp_as_mapping = mapping;
        base.tp_getset = Vec::leak(getset).as_mut_ptr();
        base.tp_methods = Vec::leak(methods).as_mut_ptr();
        ready(base)?;
        object::set_types(base, base);
        module.add("_TensorMeta", Bound::from_borrowed_ptr(py, std::ptr::from_mut(meta).cast()))?;
        module.add("TensorBase", Bound::from_borrowed_ptr(py, std::ptr::from_mut(base).cast()))?;
    }
    callable::init()?;
    Ok(())
}

/// Puts something into the dictionary of `TensorBase`, before any subclass is made.
pub(crate) fn add_to_base(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    // SAFETY: the static base type's own dictionary; nobody has cached a look-up in it yet.
    unsafe {
        let dict = Bound::from_borrowed_ptr(py, (*object::base_type()).tp_dict);
        if dict.contains(name)? {
            return Ok(false);
        }
        dict.set_item(name, value)?;
        ffi::PyType_Modified(object::base_type());
    }
    Ok(true)
}

/// Gives `class` descriptors of its own for the methods and attributes that it inherits: the interpreter takes its
/// short ways (`PRECALL_NO_KW_METHOD_DESCRIPTOR_*` and their successors) only for objects of exactly the class that
/// a descriptor belongs to.
fn own_descriptors(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = class.py();
    let ty = class.as_ptr().cast::<PyTypeObject>();
    // SAFETY: both are ready types; the definitions live as long as the base type, which is forever.
    unsafe {
        let own = Bound::from_borrowed_ptr(py, (*ty).tp_dict).cast_into::<PyDict>()?;
        let inherited =
            Bound::from_borrowed_ptr(py, (*object::base_type()).tp_dict).cast_into::<PyDict>()?;
        for (name, value) in inherited {
            // A class's `__dict__` is its own.
            if own.contains(&name)? || name.eq("__dict__")? {
                continue;
            }
            let kind = ffi::Py_TYPE(value.as_ptr());
            let descriptor = if kind == &raw mut ffi::PyMethodDescr_Type {
                let method = value.as_ptr().cast::<ffi::PyMethodDescrObject>();
                ffi::PyDescr_NewMethod(ty, (*method).d_method)
            } else if kind == &raw mut ffi::PyGetSetDescr_Type {
                let attribute = value.as_ptr().cast::<ffi::PyGetSetDescrObject>();
                ffi::PyDescr_NewGetSet(ty, (*attribute).d_getset)
            } else {
                continue;
            };
            let descriptor = Bound::from_owned_ptr_or_err(py, descriptor)?;
            class.setattr(name.cast_into::<PyString>()?, descriptor)?;
        }
    }
    Ok(())
}

/// Makes `class.dtype` a field of its objects, which the interpreter reads without a call (`LOAD_ATTR_SLOT`).
fn dtype_as_field(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let member = Box::leak(Box::new(ffi::PyMemberDef {
        name: c"dtype".as_ptr(),
        type_code: ffi::Py_T_OBJECT_EX,
        offset: offset_of!(TensorObject, dtype) as isize,
        flags: ffi::Py_READONLY,
        doc: null_mut(),
    }));
    // SAFETY: a ready type whose objects have this field, and a definition that lives forever.
    let descriptor = unsafe {
        let descriptor = ffi::PyDescr_NewMember(class.as_ptr().cast(), member);
        Bound::from_owned_ptr_or_err(class.py(), descriptor)?
    };
    DTYPE_FIELD.store(descriptor.as_ptr(), Relaxed);
    // It lives as long as the process, also while the class shows the attribute.
    std::mem::forget(descriptor.clone());
    class.setattr("dtype", descriptor)
}

/// Gives a subclass of the tensors' class the attribute `dtype` that dispatches to `__torch_function__`, where it would inherit
/// the plain field and has a `__torch_function__` that may answer otherwise.
fn dtype_as_attribute(subclass: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = intern!(subclass.py(), "dtype");
    // SAFETY: live types; a look-up lends what it finds.
    unsafe {
        let found = object::look_up(subclass.as_ptr().cast(), name.as_ptr());
        let attribute = object::look_up(object::base_type(), name.as_ptr());
        if found.is_null() || found != DTYPE_FIELD.load(Relaxed) && found != attribute {
            return Ok(());
        }
        if torch_function::is_default(subclass.as_ptr().cast()) {
            return Ok(());
        }
        let found = attribute;
        subclass.setattr(name, Bound::from_borrowed_ptr(subclass.py(), found))
    }
}

/// Makes `Tensor.dtype` the attribute that modes can override, or the plain field again.
pub(crate) fn intercept_dtype(py: Python<'_>, is_intercepted: bool) -> PyResult<()> {
    let name = intern!(py, "dtype");
    // SAFETY: the types live as long as the process; the descriptors are theirs.
    unsafe {
        let class = Bound::from_borrowed_ptr(py, object::class().cast::<PyObject>());
        let attribute = object::look_up(object::base_type(), name.as_ptr());
        let shown = if is_intercepted { attribute } else { DTYPE_FIELD.load(Relaxed) };
        class.setattr(name, Bound::from_borrowed_ptr(py, shown))
    }
}

/// Makes `class`, a subclass of `TensorBase`, the class of new wrappers.
#[pyfunction]
pub(crate) fn _set_tensor_class(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let ty = class.as_ptr().cast::<PyTypeObject>();
    // SAFETY: checked to be a type first.
    let fits = unsafe {
        ffi::PyType_Check(class.as_ptr()) != 0
            && ffi::PyType_IsSubtype(ty, object::base_type()) != 0
            && (*ty).tp_basicsize == size_of::<TensorObject>() as isize
    };
    if !fits {
        return Err(PyTypeError::new_err(
            "the tensor class must be a plain subclass of TensorBase",
        ));
    }
    own_descriptors(class)?;
    dtype_as_field(class)?;
    // It lives as long as the process.
    std::mem::forget(class.clone());
    object::set_types(object::base_type(), ty);
    Ok(())
}
