//! Which keyword was meant, where a function of Python is called with one that it does not have.
//!
//! The interpreter's own error says which one it does not know (CPython 3.13 and later suggest another one too). Those who
//! call functions of this package for the program, and see the error on its way out, let the package add to its text.

use crate::explain::explain;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// If the exception that is set is about a keyword that `callable`, a function of Python, does not have: says which one may
/// have been meant.
///
/// # Safety
/// Called with the GIL and an exception set, on a live object.
#[cold]
#[inline(never)]
pub(crate) unsafe fn suggest_keyword(callable: *mut PyObject) {
    // SAFETY: the caller's promise.
    unsafe {
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_TypeError) == 0 {
            return;
        }
        let py = Python::assume_attached();
        let error = PyErr::fetch(py);
        // (With a traceback it is from the inside of the function.)
        if error.traceback(py).is_some() {
            return error.restore(py);
        }
        let callable = Bound::from_borrowed_ptr(py, callable);
        explain(py, error, "suggest_keyword", &[callable]).restore(py);
    }
}
