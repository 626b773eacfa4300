//! A Python object held by the library: released at once, on whatever thread its last holder drops
//! it.
//!
//! PyO3 postpones the release where it does not know that the interpreter is attached; graphs and
//! their contexts must die with their last reference instead.

use pullback::tensor::Keeper;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A reference that attaches to the interpreter to drop.
pub(crate) struct Held<T = PyAny>(ManuallyDrop<Py<T>>);

impl<T> Held<T> {
    pub(crate) fn new(object: Py<T>) -> Self {
        Held(ManuallyDrop::new(object))
    }
}

impl<T> Held<T> {
    /// Converts it to a keeper of memory.
    pub(crate) fn into_keeper(self) -> Keeper {
        unsafe fn release(object: *mut ()) {
            let _ = Python::try_attach(|py| {
                // SAFETY: the reference that was taken below, given back once.
                drop(unsafe { Bound::from_owned_ptr(py, object.cast()) });
            });
        }
        let object = ManuallyDrop::new(self);
        // SAFETY: any thread may attach to the interpreter to give the reference back.
        unsafe { Keeper::from_raw(object.0.as_ptr().cast(), release) }
    }
}

impl<T> Deref for Held<T> {
    type Target = Py<T>;
    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // Without an interpreter the reference cannot be given back.
        let _ = Python::try_attach(|_| {
            // SAFETY: dropped here and never used again.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        });
    }
}
