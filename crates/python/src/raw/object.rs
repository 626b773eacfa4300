//! The life of a tensor's Python wrapper.
//!
//! A tensor has at most one wrapper, found through its Python slot. Usually the wrapper owns a handle
//! to the tensor. When the last Python reference goes while Rust still holds the tensor, a wrapper that
//! has state (attributes, a subclass, weak references, hooks) is kept: ownership flips, the record now
//! owns the wrapper, and the next time the tensor is shown to Python it flips back. A wrapper without
//! state is simply dropped and made anew. Invariant: exactly one of the two owns the other.

use crate::autograd::hook_dicts::HookDicts;
use crate::dtype::shared_dtype;
use crate::raw::size;
use pullback::{DType, Tensor};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use std::ffi::{CStr, c_int};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The memory of a wrapper.
#[repr(C)]
pub(crate) struct TensorObject {
    base: PyObject,
    tensor: MaybeUninit<Tensor>,
    state: WrapperState,
    pub(crate) dict: *mut PyObject,
    pub(crate) weak: *mut PyObject,
    /// Its [`HookDicts`], or null.
    hooks: *mut PyObject,
    /// The last `Size` that was shown of it, or null.
    shape: *mut PyObject,
    /// The sizes that `shape` says: they never change in place, and stay as long as the tensor.
    shape_source: *const i64,
    /// The dtype's object, which lives as long as the process: not counted. The member of this name reads it.
    pub(crate) dtype: *mut PyObject,
}

impl TensorObject {
    /// The [`HookDicts`] that it owns, or null.
    pub(crate) fn hooks(&self) -> *mut PyObject {
        self.hooks
    }
}

/// Which of the two owns the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum WrapperState {
    /// No tensor (zeroed memory).
    Empty = 0,
    /// The wrapper holds a counted handle.
    Owns = 1,
    /// The record holds a reference to the wrapper; the bits here are a handle that is not counted.
    Owned = 2,
}

static BASE: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
static CLASS: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// Wrappers' memory for reuse, linked through `dict`. Guarded by the GIL.
static FREE: AtomicPtr<TensorObject> = AtomicPtr::new(null_mut());
static FREE_COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
/// (None for a sanitizer, to which memory that is kept is memory in use.)
const FREE_LIMIT: usize = if cfg!(pullback_sanitize) { 0 } else { 512 };

/// Sets the types that wrap tensors: the base, and the class of new wrappers.
pub(crate) fn set_types(base: *mut PyTypeObject, class: *mut PyTypeObject) {
    BASE.store(base, Relaxed);
    CLASS.store(class, Relaxed);
}
/// `TensorBase`.
pub(crate) fn base_type() -> *mut PyTypeObject {
    BASE.load(Relaxed)
}
/// The class of new wrappers.
pub(crate) fn class() -> *mut PyTypeObject {
    CLASS.load(Relaxed)
}

unsafe extern "C" {
    /// The attribute of a type or one of its bases under an interned name: a borrowed reference,
    /// null if there is none; runs no code.
    #[link_name = "_PyType_Lookup"]
    pub(crate) fn look_up(ty: *mut PyTypeObject, name: *mut PyObject) -> *mut PyObject;
}

/// Whether `object` is of the class of new wrappers itself.
///
/// # Safety
/// `object` is a live object and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn is_exact(object: *mut PyObject) -> bool {
    // SAFETY: a live object has a type.
    unsafe { ffi::Py_TYPE(object) == class() }
}

/// Whether `object` is a tensor's wrapper.
///
/// # Safety
/// `object` is a live object and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn is_tensor(object: *mut PyObject) -> bool {
    // SAFETY: a live object has a type.
    let ty = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: both are live types.
    ty == class() || unsafe { ffi::PyType_IsSubtype(ty, base_type()) != 0 }
}

/// The tensor of a wrapper.
///
/// # Safety
/// `object` passed [`is_tensor`]; the reference is used only while the wrapper lives.
#[inline(always)]
pub(crate) unsafe fn tensor_of<'a>(object: *mut PyObject) -> &'a Tensor {
    let this = object.cast::<TensorObject>();
    // SAFETY: checked by type.
    unsafe {
        if (*this).state != WrapperState::Owns {
            take_back(this);
        }
        (*this).tensor.assume_init_ref()
    }
}

/// The tensor of `object` if it is one.
#[inline(always)]
pub(crate) fn as_tensor<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    // SAFETY: the borrow keeps the wrapper alive.
    unsafe { is_tensor(object.as_ptr()).then(|| tensor_of(object.as_ptr())) }
}

/// A wrapper that the record owned was reached another way (a weak reference): it owns again.
#[cold]
unsafe fn take_back(this: *mut TensorObject) {
    // SAFETY: the caller checked the type and holds a reference to the wrapper.
    unsafe {
        match (*this).state {
            WrapperState::Owns => {}
            WrapperState::Owned => {
                let borrowed = ManuallyDrop::new(std::ptr::read((*this).tensor.as_ptr()));
                let (tensor, was_gone) = Tensor::take_back(&borrowed);
                if !was_gone {
                    tensor.set_owns_python(false);
                }
                (*this).tensor.write(tensor);
                (*this).state = WrapperState::Owns;
                // The record's reference goes, unless another thread waits to give it back (see `release`); the caller's keeps
                // the wrapper alive.
                if !was_gone {
                    ffi::Py_DECREF(this.cast());
                }
            }
            WrapperState::Empty => {
                hold_placeholder(this);
            }
        }
    }
}

/// Gives a wrapper whose tensor is gone a placeholder to show.
///
/// # Safety
/// `this` is a live wrapper that holds no handle; the GIL is held.
unsafe fn hold_placeholder(this: *mut TensorObject) {
    let tensor = Tensor::empty_of(&[0], DType::F32).expect("an empty tensor can be made");
    tensor.python_slot().store(this.cast(), Relaxed);
    // SAFETY: the caller's promise.
    unsafe {
        (*this).dtype = shared_dtype(tensor.dtype());
        (*this).shape_source = null();
        (*this).tensor.write(tensor);
        (*this).state = WrapperState::Owns;
    }
}

/// The wrapper of `tensor`: the one it has, or a new one. A new reference.
#[inline(always)]
pub(crate) fn wrap(tensor: Tensor) -> PyResult<*mut PyObject> {
    let existing = tensor.python_slot().load(Relaxed).cast::<TensorObject>();
    if existing.is_null() {
        // SAFETY: the class is set at import.
        return unsafe { wrap_new(tensor, class()) };
    }
    // SAFETY: the slot holds the tensor's live wrapper.
    unsafe {
        if (*existing).state == WrapperState::Owned {
            tensor.set_owns_python(false);
            (*existing).tensor.write(tensor);
            (*existing).state = WrapperState::Owns;
        } else {
            ffi::Py_INCREF(existing.cast());
            drop(tensor);
        }
    }
    Ok(existing.cast())
}

/// As [`wrap`], as a PyO3 value.
pub(crate) fn wrap_bound(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    let object = wrap(tensor)?;
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, object) })
}

/// The error for a wrapper of type `ty` of a tensor that has a wrapper.
#[cold]
fn already_wrapped(tensor: &Tensor, ty: *mut PyTypeObject) -> PyErr {
    let existing = tensor.python_slot().load(Relaxed).cast::<PyObject>();
    // SAFETY: a live wrapper, and types, which have names.
    let (wanted, present) = unsafe {
        let name = |ty: *mut PyTypeObject| CStr::from_ptr((*ty).tp_name).to_string_lossy();
        (name(ty), name(ffi::Py_TYPE(existing)))
    };
    pyo3::exceptions::PyRuntimeError::new_err(format!(
        "Creating a new Tensor subclass {wanted} but the raw Tensor object is already associated to a python object of type {present}, whose __torch_dispatch__ has made it"
    ))
}

/// A new wrapper of type `ty` for a tensor that has none.
///
/// # Safety
/// `ty` is `TensorBase` or a subclass; the GIL is held.
#[inline(always)]
pub(crate) unsafe fn wrap_new(tensor: Tensor, ty: *mut PyTypeObject) -> PyResult<*mut PyObject> {
    if ty != class() {
        // What `__torch_dispatch__` gave, as an alias for example, has a wrapper of its own.
        if !tensor.python_slot().load(Relaxed).is_null() {
            return Err(already_wrapped(&tensor, ty));
        }
        // SAFETY: the caller's promise.
        if unsafe { crate::torch_dispatch::is_defined_by(ty) } {
            tensor
                .set_torch_dispatch(std::sync::Arc::new(crate::torch_dispatch::Classes::default()));
        }
    }
    // SAFETY: the list is only touched with the GIL held.
    unsafe {
        let free = FREE.load(Relaxed);
        let object = if ty == class() && !free.is_null() {
            FREE.store((*free).dict.cast(), Relaxed);
            FREE_COUNT.store(FREE_COUNT.load(Relaxed) - 1, Relaxed);
            (*free).dict = null_mut();
            ffi::PyObject_Init(free.cast(), ty)
        } else {
            let alloc = (*ty).tp_alloc.expect("every ready type can allocate");
            let object = alloc(ty, 0);
            if object.is_null() {
                return Err(PyErr::fetch(Python::assume_attached()));
            }
            if ty == class() {
                // Plain wrappers are tracked once they can be part of a cycle.
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            object
        };
        let this = object.cast::<TensorObject>();
        tensor.python_slot().store(object.cast(), Relaxed);
        (*this).dtype = shared_dtype(tensor.dtype());
        (*this).tensor.write(tensor);
        (*this).state = WrapperState::Owns;
        Ok(object)
    }
}

/// The shape as a `Size`: the one that was shown last, if it is still right.
///
/// # Safety
/// `object` is a wrapper and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn shape_of(object: *mut PyObject) -> PyResult<*mut PyObject> {
    // SAFETY: checked by the caller; `shape` is a `Size` that the wrapper owns, or null as long as nothing was shown.
    unsafe {
        let sizes = tensor_of(object).shape();
        let this = object.cast::<TensorObject>();
        if (*this).shape.is_null() || (*this).shape_source != sizes.as_ptr() {
            renew_shape(this, sizes)?;
        }
        ffi::Py_INCREF((*this).shape);
        Ok((*this).shape)
    }
}

#[cold]
#[inline(never)]
unsafe fn renew_shape(this: *mut TensorObject, sizes: &[i64]) -> PyResult<()> {
    // SAFETY: as for `shape_of`.
    unsafe {
        let made = size::new_size(sizes)?;
        (*this).shape_source = sizes.as_ptr();
        let old = std::mem::replace(&mut (*this).shape, made);
        ffi::Py_XDECREF(old);
    }
    Ok(())
}

/// Lets the cycle collector see the wrapper: it got attributes or hooks.
///
/// # Safety
/// `object` is a wrapper and the GIL is held.
pub(crate) unsafe fn track(object: *mut PyObject) {
    // SAFETY: wrappers have a collector header.
    unsafe {
        if ffi::PyObject_GC_IsTracked(object) == 0 {
            ffi::PyObject_GC_Track(object.cast());
        }
    }
}

unsafe fn has_state(this: *mut TensorObject) -> bool {
    // SAFETY: a wrapper.
    unsafe {
        ffi::Py_TYPE(this.cast()) != class()
            || !(*this).weak.is_null()
            || !(*this).hooks.is_null()
            || (!(*this).dict.is_null() && ffi::PyDict_Size((*this).dict) > 0)
    }
}

/// Whether the record would keep the wrapper if Python let go of it now (or keeps it already).
unsafe fn outlives_python(this: *mut TensorObject) -> bool {
    // SAFETY: a wrapper; the state says whether the tensor is there.
    unsafe {
        match (*this).state {
            WrapperState::Empty => false,
            WrapperState::Owned => true,
            WrapperState::Owns => {
                (*this).tensor.assume_init_ref().use_count() > 1 && has_state(this)
            }
        }
    }
}

/// Whether Python holds the wrapper that the record of `tensor` owns, by a weak reference that was followed. (Other wrappers in
/// use have a handle.)
pub(crate) fn is_held(tensor: &Tensor) -> bool {
    let object = tensor.python_slot().load(Relaxed).cast::<TensorObject>();
    // SAFETY: the slot holds the tensor's live wrapper, which goes only with the GIL held.
    unsafe {
        !object.is_null()
            && (*object).state == WrapperState::Owned
            && ffi::Py_REFCNT(object.cast()) > 1
    }
}

/// `tp_dealloc`: flips ownership, or takes the wrapper apart.
pub(crate) unsafe extern "C" fn dealloc(object: *mut PyObject) {
    let this = object.cast::<TensorObject>();
    // SAFETY: called once the count is zero, with the GIL; fields are taken apart exactly once.
    unsafe {
        if (*this).state == WrapperState::Owns && outlives_python(this) {
            // The record's reference.
            ffi::Py_INCREF(object);
            let tensor = (*this).tensor.as_ptr().read();
            tensor.set_owns_python(true);
            (*this).state = WrapperState::Owned;
            // This comes last: it may be the last handle after all, and then frees the wrapper too.
            drop(tensor);
            return;
        }
        let ty = ffi::Py_TYPE(object);
        if (*ty).tp_finalize.is_some() && ffi::PyObject_CallFinalizerFromDealloc(object) < 0 {
            return;
        }
        if ffi::PyObject_GC_IsTracked(object) != 0 {
            ffi::PyObject_GC_UnTrack(object.cast());
        }
        if !(*this).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        if ty != class() {
            each_slot(object, base_type(), |slot| clear_slot(slot));
        }
        clear_fields(this);
        if (*this).state == WrapperState::Owns {
            (*this).state = WrapperState::Empty;
            let tensor = (*this).tensor.as_ptr().read();
            tensor.python_slot().store(null_mut(), Relaxed);
            drop(tensor);
        }
        let count = FREE_COUNT.load(Relaxed);
        if ty == class() && count < FREE_LIMIT {
            (*this).dict = FREE.load(Relaxed).cast();
            FREE.store(this, Relaxed);
            FREE_COUNT.store(count + 1, Relaxed);
        } else if let Some(free) = (*ty).tp_free {
            free(object.cast());
        }
        ffi::Py_DECREF(ty.cast());
    }
}

unsafe fn clear_fields(this: *mut TensorObject) {
    // SAFETY: each is null or a reference that the wrapper owns.
    unsafe {
        clear_slot(&raw mut (*this).dict);
        set_hooks(this, None);
        clear_slot(&raw mut (*this).shape);
    }
}

/// Gives a wrapper these hooks in the place of what it had.
///
/// # Safety
/// `this` is a live wrapper, and the GIL is held.
pub(crate) unsafe fn set_hooks(this: *mut TensorObject, hooks: Option<&Bound<'_, HookDicts>>) {
    // SAFETY: the field is null or an owned reference to such an object.
    unsafe {
        let new = hooks.map_or(null_mut(), |hooks| hooks.clone().into_ptr());
        let old = (&raw mut (*this).hooks).replace(new);
        if !new.is_null() {
            track(this.cast());
        }
        if let Some(old) = Bound::from_owned_ptr_or_opt(Python::assume_attached(), old)
            && let Ok(old) = old.cast_into::<HookDicts>()
        {
            old.get().forget(this);
        }
    }
}

/// The tensor of a wrapper that holds the only handle of it.
///
/// # Safety
/// As for [`set_hooks`].
pub(crate) unsafe fn holds_only_handle<'a>(this: *mut TensorObject) -> Option<&'a Tensor> {
    // SAFETY: a wrapper that owns has a tensor.
    unsafe {
        ((*this).state == WrapperState::Owns)
            .then(|| (*this).tensor.assume_init_ref())
            .filter(|tensor| tensor.use_count() == 1)
    }
}

/// Empties a field that holds a reference or nothing; empty first, because the drop runs code.
///
/// # Safety
/// `slot` is such a field of a live object, and the GIL is held.
pub(crate) unsafe fn clear_slot(slot: *mut *mut PyObject) {
    // SAFETY: the slot is a field of a live object.
    unsafe {
        let old = slot.replace(null_mut());
        ffi::Py_XDECREF(old);
    }
}

/// Runs `f` on every `__slots__` member that subclasses of `base` added.
///
/// # Safety
/// `object` is a live object of `base` or of a subclass.
pub(crate) unsafe fn each_slot(
    object: *mut PyObject,
    base: *mut PyTypeObject,
    mut f: impl FnMut(*mut *mut PyObject),
) {
    const OBJECT_EX: c_int = 16;
    // SAFETY: member tables end with a null name; offsets of this kind hold object pointers.
    unsafe {
        let mut ty = ffi::Py_TYPE(object);
        while !ty.is_null() && ty != base {
            let mut member = (*ty).tp_members;
            while !member.is_null() && !(*member).name.is_null() {
                if (*member).type_code == OBJECT_EX {
                    f(object.cast::<u8>().offset((*member).offset).cast());
                }
                member = member.add(1);
            }
            ty = (*ty).tp_base;
        }
    }
}

/// `tp_traverse`: a wrapper that its record would keep is a root; else its own references, and those
/// that it alone holds through the tensor.
pub(crate) unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    arg: *mut std::ffi::c_void,
) -> c_int {
    let this = object.cast::<TensorObject>();
    // SAFETY: the collector calls with the GIL on a live wrapper.
    unsafe {
        if outlives_python(this) {
            return 0;
        }
        let mut result = 0;
        let mut see = |target: *mut PyObject| {
            if result == 0 && !target.is_null() {
                result = visit(target, arg);
            }
        };
        see(ffi::Py_TYPE(object).cast());
        see((*this).dict);
        see((*this).hooks);
        each_slot(object, base_type(), |slot| see(*slot));
        // A custom function's context belongs to its node; that may be this tensor's alone.
        let context = holds_only_handle(this).and_then(|tensor| {
            tensor.peek_grad_fn(|node| {
                node.filter(|node| node.use_count() == 1)?.backward()?.python_context()
            })
        });
        see(context.unwrap_or(null_mut()).cast());
        result
    }
}

/// `tp_clear`.
pub(crate) unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    let this = object.cast::<TensorObject>();
    // SAFETY: as for `traverse`.
    unsafe {
        if outlives_python(this) {
            return 0;
        }
        each_slot(object, base_type(), |slot| clear_slot(slot));
        clear_fields(this);
    }
    0
}

/// The function that the library calls when a tensor got another dtype: its wrapper shows that one.
pub(crate) fn retype(tensor: &Tensor) {
    let _ = Python::try_attach(|_| {
        let object = tensor.python_slot().load(Relaxed).cast::<TensorObject>();
        if !object.is_null() {
            // SAFETY: the slot holds the tensor's live wrapper, which goes only with the GIL held.
            unsafe { (*object).dtype = shared_dtype(tensor.dtype()) };
        }
    });
}

/// The function that the library calls when the last handle of a record that keeps its wrapper is
/// gone: the wrapper keeps the tensor, and takes it along when nobody in Python holds it either.
pub(crate) fn release(object: *mut (), tensor: ManuallyDrop<Tensor>) {
    let Some(object) = NonNull::new(object) else { return };
    let address = object.as_ptr() as usize;
    // Without an interpreter both are left alone.
    let _ = Python::try_attach(move |_| {
        let this = address as *mut TensorObject;
        // SAFETY: the record's reference, which is given back here, keeps the wrapper alive. It changes hands only with the
        // GIL held: either it is still the record's and takes the tensor now, or it took it back before.
        unsafe {
            if (*this).state == WrapperState::Owned {
                (*this).tensor.write(Tensor::revive(tensor));
                (*this).state = WrapperState::Owns;
            } else {
                tensor.set_owns_python(false);
            }
            ffi::Py_DECREF(this.cast());
        }
    });
}
