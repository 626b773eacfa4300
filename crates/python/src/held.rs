//! A Python object held by the library: given back at once, on whatever thread the last holder lets go.
//!
//! PyO3 postpones the release where it does not know that the interpreter is attached; graphs and
//! their contexts must die with their last reference instead.

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

impl<T> Deref for Held<T> {
    type Target = Py<T>;
    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // Without an interpreter there is nothing to give back to.
        let _ = Python::try_attach(|_| {
            // SAFETY: dropped here and never used again.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        });
    }
}
