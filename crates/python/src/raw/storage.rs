//! The life of a storage's Python object.
//!
//! As a tensor's wrapper ([`super::object`]): usually the object holds a handle of the storage. When its last Python
//! reference goes while tensors still show the storage, an object that has state (attributes, a subclass, weak
//! references) is kept: ownership flips, the storage now owns the object, and the object's handle is not counted until it
//! is shown or used again. Invariant: exactly one of the two owns the other.

use crate::error::raise;
use crate::raw::object::{clear_slot, each_slot};
use crate::tensor::storage::PyStorage;
use pullback::Storage;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

static CLASS: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// The offset of the handle in an object, in bytes.
static HANDLE_AT: AtomicUsize = AtomicUsize::new(0);
/// The deallocator of objects of the class that nothing keeps.
static END: OnceLock<ffi::destructor> = OnceLock::new();

/// An object's handle of its storage: a handle that counts, unless the storage owns the object.
///
/// # Safety
/// `object` is a storage's object, alive or on its way out, with the GIL held; the reference is used only while it is there.
unsafe fn storage_in<'a>(object: *mut PyObject) -> &'a Storage {
    // SAFETY: the caller's promise; no reference is counted.
    unsafe {
        let object = Bound::ref_from_ptr(Python::assume_attached(), &object);
        let inner: *const PyStorage = object.cast_unchecked::<PyStorage>().get();
        (*inner).handle()
    }
}

/// Whether the object has its storage yet. The collector knows an object as soon as there is memory for it, all zero, and may
/// run when its dictionary is made; if there is no memory for that, the object goes as it is.
///
/// # Safety
/// As [`storage_in`].
unsafe fn is_made(object: *mut PyObject) -> bool {
    // SAFETY: the word that the handle is, or zero: inside of the object, whose size all its classes share.
    unsafe { !object.cast::<u8>().add(HANDLE_AT.load(Relaxed)).cast::<*mut ()>().read().is_null() }
}

/// Gives back an object that has no storage yet.
#[cold]
unsafe fn free_unmade(object: *mut PyObject) {
    // SAFETY: called by `dealloc`; there is nothing in the object but its dictionary.
    unsafe {
        let ty = ffi::Py_TYPE(object);
        if ffi::PyObject_GC_IsTracked(object) != 0 {
            ffi::PyObject_GC_UnTrack(object.cast());
        }
        clear_slot(dict(object));
        if let Some(free) = (*ty).tp_free {
            free(object.cast());
        }
        // (Objects of classes that are made at run time hold these.)
        ffi::Py_DECREF(ty.cast());
    }
}

/// The field at an offset that the class has for it.
unsafe fn field(
    object: *mut PyObject,
    offset: impl Fn(&PyTypeObject) -> isize,
) -> *mut *mut PyObject {
    // SAFETY: objects of the class and its subclasses have the field there.
    unsafe { object.cast::<u8>().offset(offset(&*CLASS.load(Relaxed))).cast() }
}

unsafe fn dict(object: *mut PyObject) -> *mut *mut PyObject {
    // SAFETY: the caller passes a storage's object.
    unsafe { field(object, |class| class.tp_dictoffset) }
}

unsafe fn weak(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller passes a storage's object.
    unsafe { *field(object, |class| class.tp_weaklistoffset) }
}

unsafe fn has_state(object: *mut PyObject) -> bool {
    // SAFETY: the caller passes a storage's object.
    unsafe {
        let attributes = *dict(object);
        ffi::Py_TYPE(object) != CLASS.load(Relaxed)
            || !weak(object).is_null()
            || (!attributes.is_null() && ffi::PyDict_Size(attributes) > 0)
    }
}

/// Whether the storage would keep the object if Python let go of it now (or keeps it already).
unsafe fn outlives_python(object: *mut PyObject) -> bool {
    // SAFETY: the caller passes a storage's object.
    unsafe {
        if !is_made(object) {
            return false;
        }
        let storage = storage_in(object);
        storage.owns_python() || (storage.use_count() > 1 && has_state(object))
    }
}

/// Called when the object that a storage owns is used again: it holds a handle from now on.
///
/// # Safety
/// A storage's object to which the caller has a reference, with the GIL held.
#[cold]
pub(crate) unsafe fn take_back(object: *mut PyObject) {
    // SAFETY: the caller's promise.
    unsafe {
        let storage = storage_in(object);
        // The storage's reference goes, unless another thread waits to give it back (see `release`).
        if storage.owns_python() && !Storage::take_python(storage) {
            ffi::Py_DECREF(object);
        }
    }
}

/// The function that the library calls when the last handle of a storage that owns its object is
/// gone: the object keeps the storage, and takes it along when nobody in Python holds it either.
pub(crate) fn release(object: *mut ()) {
    let address = object as usize;
    // Without an interpreter both are left alone.
    let _ = Python::try_attach(move |_| {
        let object = address as *mut PyObject;
        // SAFETY: the storage's reference, which is given back here, keeps the object alive.
        unsafe {
            let storage = storage_in(object);
            if storage.owns_python() {
                Storage::take_python(storage);
            }
            ffi::Py_DECREF(object);
        }
    });
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: called once the count is zero, with the GIL, on an object of a class that has this slot.
    unsafe {
        if !is_made(object) {
            return free_unmade(object);
        }
        let storage = storage_in(object);
        if !storage.owns_python() && outlives_python(object) {
            // The storage's reference.
            ffi::Py_INCREF(object);
            // This comes last: it may be the last handle after all, and then frees the object too.
            Storage::give_python(std::ptr::read(storage));
            return;
        }
        let ty = ffi::Py_TYPE(object);
        if (*ty).tp_finalize.is_some() && ffi::PyObject_CallFinalizerFromDealloc(object) < 0 {
            return;
        }
        if ffi::PyObject_GC_IsTracked(object) != 0 {
            ffi::PyObject_GC_UnTrack(object.cast());
        }
        if !weak(object).is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        if ty != CLASS.load(Relaxed) {
            each_slot(object, CLASS.load(Relaxed), |slot| clear_slot(slot));
        }
        END.get().expect("set with the class")(object);
    }
}

unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: ffi::visitproc,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the collector calls with the GIL on a live object.
    unsafe {
        if outlives_python(object) {
            return 0;
        }
        let mut result = 0;
        let mut see = |target: *mut PyObject| {
            if result == 0 && !target.is_null() {
                result = visit(target, arg);
            }
        };
        see(ffi::Py_TYPE(object).cast());
        see(*dict(object));
        each_slot(object, CLASS.load(Relaxed), |slot| see(*slot));
        result
    }
}

unsafe extern "C" fn clear(object: *mut PyObject) -> c_int {
    // SAFETY: as for `traverse`.
    unsafe {
        if !outlives_python(object) {
            each_slot(object, CLASS.load(Relaxed), |slot| clear_slot(slot));
            clear_slot(dict(object));
        }
    }
    0
}

/// Gives objects of this class, which is new, the life cycle that the module's comment describes.
///
/// # Safety
/// The class of storages, or a subclass, of which there are no objects yet.
pub(crate) unsafe fn adopt(ty: *mut PyTypeObject) {
    // SAFETY: the caller's promise: the slots are ours to set.
    unsafe {
        (*ty).tp_dealloc = Some(dealloc);
        (*ty).tp_traverse = Some(traverse);
        (*ty).tp_clear = Some(clear);
    }
}

/// Takes over the class of storages.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    let ty = py.get_type::<PyStorage>().as_ptr().cast::<PyTypeObject>();
    let example = Bound::new(py, PyStorage::empty().map_err(raise)?)?;
    let handle = std::ptr::from_ref(example.get()).addr();
    HANDLE_AT.store(handle - example.as_ptr().addr(), Relaxed);
    drop(example);
    // SAFETY: the class, which was made just now.
    unsafe {
        let has_slots = (*ty).tp_dictoffset > 0 && (*ty).tp_weaklistoffset > 0;
        let Some(end) = (*ty).tp_dealloc.filter(|_| has_slots) else {
            return Err(PyRuntimeError::new_err(
                "the class of storages has no place for attributes or weak references",
            ));
        };
        if END.set(end).is_ok() {
            CLASS.store(ty, Relaxed);
            adopt(ty);
        }
    }
    Ok(())
}
