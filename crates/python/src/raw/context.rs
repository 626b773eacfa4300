//! The life of a custom function's context: the type `_FunctionBase`.
//!
//! A context is made and dropped in every call of a custom function, so its memory is kept for reuse, and the cycle
//! collector is told of it once it has attributes. Both hold for the classes that were handed to `adopt`; other
//! subclasses live as Python's objects usually do. Its members are in `crate::autograd::context`.

use crate::autograd::context::{Context, methods, properties};
use crate::autograd::function::Body;
use crate::raw::entry::guard;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{MaybeUninit, offset_of, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// A reference that an object owns, or none. The cycle collector may empty it.
#[repr(transparent)]
pub(crate) struct PyField(Cell<*mut PyObject>);

impl PyField {
    /// Without a reference.
    pub(crate) const fn none() -> PyField {
        PyField(Cell::new(null_mut()))
    }
    pub(crate) fn is_none(&self) -> bool {
        self.0.get().is_null()
    }
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: null or a live object.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, self.0.get()) }
    }
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: null or a reference that was ours.
        unsafe { Bound::from_owned_ptr_or_opt(py, self.0.replace(null_mut())) }
    }
    pub(crate) fn set(&self, object: Bound<'_, PyAny>) {
        let py = object.py();
        // SAFETY: null or a reference that was ours; dropped last, as that may run code.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, self.0.replace(object.into_ptr())) });
    }
}

/// The memory of a context object.
#[repr(C)]
struct ContextObject {
    base: PyObject,
    dict: PyField,
    weak: *mut PyObject,
    context: MaybeUninit<Context>,
}

static CLASS: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// Adopted contexts' memory for reuse, linked through `weak`. Guarded by the GIL.
static FREE: AtomicPtr<ContextObject> = AtomicPtr::new(null_mut());
static FREE_COUNT: AtomicUsize = AtomicUsize::new(0);
/// (None for a sanitizer, to which memory that is kept is memory in use.)
const FREE_LIMIT: usize = if cfg!(pullback_sanitize) { 0 } else { 512 };

/// `_FunctionBase`.
pub(crate) fn class() -> *mut PyTypeObject {
    CLASS.load(Relaxed)
}

/// The context of `object`, if it is one.
pub(crate) fn context_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Context> {
    // SAFETY: live types; objects of the class begin with this, initialised when they were made.
    unsafe {
        let is_context = ffi::PyType_IsSubtype(ffi::Py_TYPE(object.as_ptr()), class()) != 0;
        is_context.then(|| known(object))
    }
}

/// Whether `object` is a class of contexts.
pub(crate) fn is_context_class(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: live objects; a type where that is looked at.
    unsafe {
        ffi::PyType_Check(object.as_ptr()) != 0
            && ffi::PyType_IsSubtype(object.as_ptr().cast(), class()) != 0
    }
}

/// The context of `object`.
///
/// # Safety
/// It is one.
#[inline(always)]
pub(crate) unsafe fn known<'a>(object: &'a Bound<'_, PyAny>) -> &'a Context {
    // SAFETY: the caller's promise.
    unsafe { (*object.as_ptr().cast::<ContextObject>()).context.assume_init_ref() }
}

/// Whether anybody but the caller, who holds one reference, can reach the context.
pub(crate) fn is_shared(object: &Bound<'_, PyAny>) -> bool {
    let this = object.as_ptr().cast::<ContextObject>();
    // SAFETY: a live context.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) > 1 || !(*this).weak.is_null() }
}

fn has_our_end(ty: *mut PyTypeObject) -> bool {
    // SAFETY: a live type.
    unsafe { (*ty).tp_dealloc.is_some_and(|d| std::ptr::fn_addr_eq(d, dealloc as ffi::destructor)) }
}

/// Whether objects of exactly this class have the life cycle that the module's comment describes.
fn is_adopted(ty: *mut PyTypeObject) -> bool {
    has_our_end(ty) && ty != class()
}

/// Whether the slots here are those of a class that Python made, which then have to release the
/// object's class.
fn cares_for_class(mut ty: *mut PyTypeObject) -> bool {
    // SAFETY: live types; every context class has `_FunctionBase` among its bases.
    unsafe {
        while !has_our_end(ty) {
            ty = (*ty).tp_base;
        }
    }
    is_adopted(ty)
}

/// A new object of `class`, which has no `__init__` to run.
///
/// # Safety
/// A class of contexts.
pub(crate) unsafe fn new_context<'py>(class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let ty = class.as_ptr().cast::<PyTypeObject>();
    // SAFETY: the list is only touched with the GIL held; its memory has the size of an adopted class's objects.
    unsafe {
        let free = FREE.load(Relaxed);
        if free.is_null() || !is_adopted(ty) {
            let new = (*ty).tp_new.expect("a class of contexts makes objects");
            let object = new(ty, PyTuple::empty(class.py()).as_ptr(), null_mut());
            return Bound::from_owned_ptr_or_err(class.py(), object);
        }
        FREE.store((*free).weak.cast(), Relaxed);
        FREE_COUNT.store(FREE_COUNT.load(Relaxed) - 1, Relaxed);
        (*free).weak = null_mut();
        (*free).context.write(Context::default());
        Ok(Bound::from_owned_ptr(class.py(), ffi::PyObject_Init(free.cast(), ty)))
    }
}

unsafe extern "C" fn new(
    ty: *mut PyTypeObject,
    _: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL and a type that has this slot.
    unsafe {
        guard(|py| {
            let object = (*ty).tp_alloc.expect("a ready type can allocate")(ty, 0);
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            (*object.cast::<ContextObject>()).context.write(Context::default());
            if is_adopted(ty) {
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            Ok(object)
        })
    }
}

/// Whether the context may take over its node: somebody in Python holds it, and its end is ours.
pub(crate) fn can_keep_node(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live context.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) > 1 && is_adopted(ffi::Py_TYPE(object.as_ptr())) }
}

/// Releases the node that a context without references keeps. Returns whether a graph holds the
/// node, and with it the context.
///
/// # Safety
/// A live context, with the GIL held.
unsafe fn hand_back_node(object: *mut PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let context = (*object.cast::<ContextObject>()).context.assume_init_ref();
        let Some(node) = context.take_kept_node(Python::assume_attached()) else { return false };
        let is_held = node.use_count() > 1;
        if is_held {
            // The node's reference.
            ffi::Py_INCREF(object);
            Body::take_context(&node);
        }
        // This comes last: it may be the last handle after all, and then frees the context too.
        drop(node);
        is_held
    }
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    let this = object.cast::<ContextObject>();
    // SAFETY: called once the count is zero, with the GIL; fields are taken apart exactly once.
    unsafe {
        if hand_back_node(object) {
            return;
        }
        let ty = ffi::Py_TYPE(object);
        let is_adopted = is_adopted(ty);
        // For other classes Python's own slot does this.
        if is_adopted
            && (*ty).tp_finalize.is_some()
            && ffi::PyObject_CallFinalizerFromDealloc(object) < 0
        {
            return;
        }
        if ffi::PyObject_GC_IsTracked(object) != 0 {
            ffi::PyObject_GC_UnTrack(object.cast());
        }
        if !(*this).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        let py = Python::assume_attached();
        drop((*this).dict.take(py));
        (*this).context.assume_init_ref().each_field(|field| drop(field.take(py)));
        (*this).context.assume_init_drop();
        let count = FREE_COUNT.load(Relaxed);
        if is_adopted && count < FREE_LIMIT {
            (*this).weak = FREE.load(Relaxed).cast();
            FREE.store(this, Relaxed);
            FREE_COUNT.store(count + 1, Relaxed);
        } else if let Some(free) = (*ty).tp_free {
            free(object.cast());
        }
        if cares_for_class(ty) {
            ffi::Py_DECREF(ty.cast());
        }
    }
}

unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    let this = object.cast::<ContextObject>();
    // SAFETY: the collector calls with the GIL on a live context.
    unsafe {
        let mut result = 0;
        let mut see = |target: *mut PyObject| {
            if result == 0 && !target.is_null() {
                result = visit(target, arg);
            }
        };
        let ty = ffi::Py_TYPE(object);
        if cares_for_class(ty) {
            see(ty.cast());
        }
        see((*this).dict.0.get());
        (*this).context.assume_init_ref().each_field(|field| see(field.0.get()));
        result
    }
}

unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    let this = object.cast::<ContextObject>();
    // SAFETY: as for `traverse`.
    unsafe {
        let py = Python::assume_attached();
        drop((*this).dict.take(py));
        (*this).context.assume_init_ref().each_field(|field| drop(field.take(py)));
    }
    0
}

/// Lets the cycle collector see a context that may have attributes or hooks now.
///
/// # Safety
/// A live context, with the GIL held.
pub(crate) unsafe fn track(object: *mut PyObject) {
    // SAFETY: a live context, which has a collector header.
    unsafe {
        if ffi::PyObject_GC_IsTracked(object) == 0 {
            ffi::PyObject_GC_Track(object.cast());
        }
    }
}

unsafe extern "C" fn set_attribute(
    slf: *mut PyObject,
    name: *mut PyObject,
    value: *mut PyObject,
) -> c_int {
    // SAFETY: a slot of contexts, called with the GIL.
    unsafe {
        track(slf);
        ffi::PyObject_GenericSetAttr(slf, name, value)
    }
}

unsafe extern "C" fn dictionary(slf: *mut PyObject, closure: *mut c_void) -> *mut PyObject {
    // SAFETY: a getter of contexts, called with the GIL.
    unsafe {
        track(slf);
        ffi::PyObject_GenericGetDict(slf, closure)
    }
}

/// Gives `class`, a class of contexts without slots of its own, the life cycle that the module's
/// comment describes.
#[pyfunction]
pub(crate) fn _adopt_context_class(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let ty = class.as_ptr().cast::<PyTypeObject>();
    // SAFETY: checked to be a type first, whose slots are ours to set: it is new.
    unsafe {
        let fits =
            is_context_class(class) && (*ty).tp_basicsize == size_of::<ContextObject>() as isize;
        if !fits {
            return Err(pyo3::exceptions::PyTypeError::new_err(
                "a class of contexts must be a plain subclass of _FunctionBase",
            ));
        }
        (*ty).tp_dealloc = Some(dealloc);
        (*ty).tp_traverse = Some(traverse);
        (*ty).tp_clear = Some(clear);
    }
    Ok(())
}

/// A member that shows a field as it is: `None` for nothing.
pub(crate) fn member(name: &'static CStr, offset: usize) -> ffi::PyMemberDef {
    /// `T_OBJECT`, which the bindings do not name.
    const OBJECT: c_int = 6;
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: OBJECT,
        offset: (offset_of!(ContextObject, context) + offset) as isize,
        flags: 0,
        doc: null_mut(),
    }
}

/// Makes the type and adds it to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // SAFETY: a static type: zeroed memory with the fields below set is what `PyType_Ready` expects; tables live
    // forever.
    unsafe {
        let mut getset = properties();
        getset.push(ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(dictionary),
            set: Some(ffi::PyObject_GenericSetDict),
            doc: null_mut(),
            closure: null_mut(),
        });
        getset.push(zeroed());
        let mut methods = methods();
        methods.push(zeroed());
        let mut members = Context::members();
        members.push(zeroed());
        let ty = Box::leak(Box::new(zeroed::<PyTypeObject>()));
        ty.tp_name = c"torch._C._FunctionBase".as_ptr();
        ty.tp_basicsize = size_of::<ContextObject>() as isize;
        ty.tp_flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC;
        ty.tp_dictoffset = offset_of!(ContextObject, dict) as isize;
        ty.tp_weaklistoffset = offset_of!(ContextObject, weak) as isize;
        ty.tp_new = Some(new);
        ty.tp_dealloc = Some(dealloc);
        ty.tp_traverse = Some(traverse);
        ty.tp_clear = Some(clear);
        ty.tp_setattro = Some(set_attribute);
        ty.tp_getset = Vec::leak(getset).as_mut_ptr();
        ty.tp_methods = Vec::leak(methods).as_mut_ptr();
        ty.tp_members = Vec::leak(members).as_mut_ptr();
        if ffi::PyType_Ready(ty) < 0 {
            return Err(PyErr::fetch(py));
        }
        CLASS.store(ty, Relaxed);
        module.add("_FunctionBase", Bound::from_borrowed_ptr(py, std::ptr::from_mut(ty).cast()))?;
    }
    module.add_function(wrap_pyfunction!(_adopt_context_class, module)?)
}
