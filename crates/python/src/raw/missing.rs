//! Errors for names that modules of the package do not have.
//!
//! A module with a `__getattr__` would do, but the interpreter's short way to a module's names (CPython 3.11 and later) is
//! closed to such modules, and to classes of modules of one's own: every `torch.add` would take 17 ns more. So the slot of
//! the module type itself, which runs where that way does not lead, is given a function that calls the former one, and
//! adds to the error if that was asked of a module of this package. Invariant: what other modules say, and what any module
//! has, stays as it is.

use crate::explain::explain;
use crate::raw::entry::guard;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyString};
use std::sync::OnceLock;

/// What the slot held before.
static FORMER: OnceLock<ffi::getattrofunc> = OnceLock::new();

unsafe extern "C" fn get_attribute(module: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: the interpreter calls with the GIL, a module and a string; the former function is called as it was.
    unsafe {
        let Some(former) = FORMER.get() else { return std::ptr::null_mut() };
        let found = former(module, name);
        if !found.is_null() || ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
            return found;
        }
        guard(|py| {
            let error = PyErr::fetch(py);
            let module = Bound::from_borrowed_ptr(py, module);
            let name = Bound::from_borrowed_ptr(py, name);
            if is_special(&name) || !is_own(&module) {
                return Err(error);
            }
            Err(explain(py, error, "say_missing", &[module, name]))
        })
    }
}

/// Whether it is a name of the interpreter's own (`__file__`). While a module is made the interpreter asks it for several that
/// it has not got yet: to explain these would import a module, of which it asks the same.
fn is_special(name: &Bound<'_, PyAny>) -> bool {
    name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|name| name.starts_with("__")))
}

/// Whether it is a module of this package that has been loaded. (While one is, `from . import x` asks for names that come;
/// an extension module has not even a spec until its function returns, and saying something then would load it again.)
fn is_own(module: &Bound<'_, PyAny>) -> bool {
    let py = module.py();
    let Ok(module) = module.cast::<PyModule>() else { return false };
    let dict = module.dict();
    let name = dict.get_item(intern!(py, "__name__")).ok().flatten();
    let is_ours = name
        .and_then(|name| name.cast_into::<PyString>().ok())
        .is_some_and(|name| name.to_str().is_ok_and(may_be_ours));
    let spec = dict.get_item(intern!(py, "__spec__")).ok().flatten();
    is_ours
        && spec.filter(|spec| !spec.is_none()).is_some_and(|spec| {
            let is_loading = spec.getattr_opt(intern!(py, "_initializing")).ok().flatten();
            !is_loading.is_some_and(|is_loading| is_loading.is_truthy().unwrap_or(true))
        })
}

/// Whether modules of this package go by this name, depending on `pullback.as_torch()`. (The
/// package knows whose `torch` is imported.)
fn may_be_ours(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    first == "pullback" || first == "torch"
}

/// Puts the function into the slot, once.
pub(crate) fn init() -> PyResult<()> {
    // SAFETY: the type is the interpreter's own and lives as long as it does; with the lock held nobody else reads the slot.
    unsafe {
        let slot = &raw mut ffi::PyModule_Type.tp_getattro;
        let Some(former) = slot.read() else {
            return Err(PyRuntimeError::new_err("modules have no attributes"));
        };
        if FORMER.set(former).is_ok() {
            slot.write(Some(get_attribute));
        }
    }
    Ok(())
}
