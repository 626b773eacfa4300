//! The way from a C call into a Rust function: arguments by position and keyword, errors, panics.
//!
//! A panic becomes a `RuntimeError` that says it is a bug, an interruption the exception of the signal's handler; neither
//! crosses into Python.

use pullback_schema::similar::closest;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The result of a slot function: a new reference.
pub(crate) type Reply = PyResult<*mut PyObject>;

/// Runs `body` for a slot that returns an object.
///
/// # Safety
/// The caller holds the GIL.
#[inline(always)]
pub(crate) unsafe fn guard(body: impl FnOnce(Python<'_>) -> Reply) -> *mut PyObject {
    // SAFETY: the caller holds the GIL.
    let reply = unsafe { run(std::ptr::null_mut(), body) };
    if ON_THE_WAY.load(Relaxed) != 0 && is_taken_on_the_way(!reply.is_null()) {
        // SAFETY: the new reference that nobody will get.
        unsafe { ffi::Py_DECREF(reply) };
        return std::ptr::null_mut();
    }
    reply
}

/// Runs `body` for a slot that returns `failed` with an exception set when something is wrong.
///
/// # Safety
/// The caller holds the GIL.
#[inline(always)]
pub(crate) unsafe fn guard_or<T: Copy + PartialEq>(
    failed: T,
    body: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> T {
    // SAFETY: the caller holds the GIL.
    let reply = unsafe { run(failed, body) };
    if ON_THE_WAY.load(Relaxed) != 0 && is_taken_on_the_way(reply != failed) {
        return failed;
    }
    reply
}

/// Exceptions that were set while a call continued (warnings that a filter made errors).
static ON_THE_WAY: AtomicU32 = AtomicU32::new(0);

/// Sets an exception while a call of the library goes on: the call raises it when it returns.
pub(crate) fn raise_on_return(py: Python<'_>, error: PyErr) {
    ON_THE_WAY.fetch_add(1, Relaxed);
    error.restore(py);
}

/// Raises the exception that was set during a successful call. For functions that no slot of this
/// module calls.
pub(crate) fn raise_what_is_set(py: Python<'_>) -> PyResult<()> {
    if ON_THE_WAY.load(Relaxed) != 0 && is_taken_on_the_way(true) {
        return Err(PyErr::fetch(py));
    }
    Ok(())
}

/// Whether a successful call on this thread has set an exception.
#[cold]
#[inline(never)]
fn is_taken_on_the_way(went_well: bool) -> bool {
    // SAFETY: slots run with the GIL.
    let is_set = went_well && unsafe { !ffi::PyErr_Occurred().is_null() };
    if is_set {
        ON_THE_WAY.fetch_sub(1, Relaxed);
    }
    is_set
}

#[inline(always)]
unsafe fn run<T: Copy>(failed: T, body: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    // SAFETY: the caller holds the GIL.
    let py = unsafe { Python::assume_attached() };
    let error = match catch_unwind(AssertUnwindSafe(|| body(py))) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(panic) => crate::interrupt::error_of(panic),
    };
    // An exception that was set during the call gives way to this one, which is more specific.
    if ON_THE_WAY.load(Relaxed) != 0 && is_taken_on_the_way(true) {
        drop(PyErr::take(py));
    }
    // PyO3 postpones the release of what is dropped here until somebody attaches: errors that were handled on the way
    // would live on, with all that they hold.
    let _ = Python::try_attach(|_| ());
    error.restore(py);
    failed
}

/// The error for a panic.
#[cold]
pub(crate) fn bug(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown panic");
    PyRuntimeError::new_err(format!("this is a bug in pullback, please report it: {text}"))
}

/// The arguments of a fast call.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub(crate) all: &'a [*mut PyObject],
    pub(crate) positional: usize,
    pub(crate) names: *mut PyObject,
}

impl<'a> Args<'a> {
    /// No arguments at all.
    pub(crate) fn none() -> Args<'a> {
        // SAFETY: nothing is read of an empty list.
        unsafe { Args::new(std::ptr::null(), 0, std::ptr::null_mut()) }
    }
    /// # Safety
    /// As for CPython's `vectorcall` convention.
    #[inline(always)]
    pub(crate) unsafe fn new(
        args: *const *mut PyObject,
        positional: usize,
        names: *mut PyObject,
    ) -> Args<'a> {
        let keywords = if names.is_null() {
            0
        } else {
            // SAFETY: keyword names are a tuple.
            unsafe { ffi::PyTuple_GET_SIZE(names) as usize }
        };
        let count = positional + keywords;
        let all = if count == 0 {
            &[][..]
        } else {
            // SAFETY: the caller passes this many borrowed references.
            unsafe { std::slice::from_raw_parts(args, count) }
        };
        Args { all, positional, names }
    }

    /// How many keywords there are.
    #[inline(always)]
    pub(crate) fn keywords(&self) -> usize {
        self.all.len() - self.positional
    }

    /// The name of keyword `index` (borrowed).
    #[inline(always)]
    pub(crate) fn name(&self, index: usize) -> *mut PyObject {
        // SAFETY: the names are a tuple with one string per keyword.
        unsafe { ffi::PyTuple_GET_ITEM(self.names, index as isize) }
    }

    /// The arguments given by position.
    pub(crate) fn positionals<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        // SAFETY: borrowed references that live through the call.
        self.all[..self.positional]
            .iter()
            .map(|&p| unsafe { Bound::from_borrowed_ptr(py, p) })
            .collect()
    }

    /// The arguments as a tuple and a dictionary.
    pub(crate) fn to_python<'py>(
        self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        for index in 0..self.keywords() {
            // SAFETY: live names and values; the values follow the positional arguments.
            let (name, value) = unsafe {
                let value = self.all[self.positional + index];
                (
                    Bound::from_borrowed_ptr(py, self.name(index)),
                    Bound::from_borrowed_ptr(py, value),
                )
            };
            named.set_item(name, value)?;
        }
        Ok((PyTuple::new(py, self.positionals(py))?, named))
    }

    /// Sorts the arguments by parameter name; the first `required` must be given.
    pub(crate) fn bind<'py, const N: usize>(
        &self,
        py: Python<'py>,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> PyResult<[Option<Bound<'py, PyAny>>; N]> {
        let mut values = [const { None }; N];
        if self.positional > N {
            let plural = if N == 1 { "" } else { "s" };
            return Err(PyTypeError::new_err(format!(
                "{function}() takes {N} positional argument{plural} but {} were given",
                self.positional
            )));
        }
        for (slot, &object) in values.iter_mut().zip(&self.all[..self.positional]) {
            // SAFETY: a borrowed reference that lives through the call.
            *slot = Some(unsafe { Bound::from_borrowed_ptr(py, object) });
        }
        for index in 0..self.keywords() {
            // SAFETY: keyword names are strings.
            let name = unsafe { Bound::from_borrowed_ptr(py, self.name(index)) };
            let text = name.extract::<String>()?;
            let Some(at) = names.iter().position(|&n| n == text) else {
                let meant = closest(&text, names.iter().copied());
                let meant = meant.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
                return Err(PyTypeError::new_err(format!(
                    "{function}() got an unexpected keyword argument '{text}'{meant}"
                )));
            };
            if values[at].is_some() {
                return Err(PyTypeError::new_err(format!(
                    "{function}() got multiple values for argument '{text}'"
                )));
            }
            // SAFETY: keyword values follow the positional ones.
            values[at] =
                Some(unsafe { Bound::from_borrowed_ptr(py, self.all[self.positional + index]) });
        }
        let missing = (0..required.min(N)).find(|&i| values[i].is_none());
        if let Some(missing) = missing {
            return Err(PyTypeError::new_err(format!(
                "{function}() missing 1 required positional arguments: \"{}\"",
                names[missing]
            )));
        }
        Ok(values)
    }
}

/// Calls `callable` with positional arguments.
///
/// # Safety
/// The arguments are live objects.
#[inline(always)]
pub(crate) unsafe fn vectorcall<'py>(
    callable: &Bound<'py, PyAny>,
    args: &[*mut PyObject],
) -> PyResult<Bound<'py, PyAny>> {
    let names = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        let reply = ffi::PyObject_Vectorcall(callable.as_ptr(), args.as_ptr(), args.len(), names);
        Bound::from_owned_ptr_or_err(callable.py(), reply)
    }
}

/// Makes a C function of the fast keyword convention of `fn(Python, *mut PyObject, Args) -> Reply`.
macro_rules! fast {
    ($function:path) => {{
        unsafe extern "C" fn entry(
            slf: *mut pyo3::ffi::PyObject,
            args: *const *mut pyo3::ffi::PyObject,
            count: isize,
            names: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: CPython calls with the GIL and by this convention.
            unsafe {
                let args = $crate::raw::entry::Args::new(args, count as usize, names);
                $crate::raw::entry::guard(|py| $function(py, slf, args))
            }
        }
        pyo3::ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry }
    }};
}

/// Makes a C function without arguments of `fn(Python, *mut PyObject) -> Reply`.
macro_rules! noargs {
    ($function:path) => {{
        unsafe extern "C" fn entry(
            slf: *mut pyo3::ffi::PyObject,
            _: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: CPython calls with the GIL.
            unsafe { $crate::raw::entry::guard(|py| $function(py, slf)) }
        }
        pyo3::ffi::PyMethodDefPointer { PyCFunction: entry }
    }};
}

/// Makes the getter of the attribute `$name` of tensors of `fn(Python, *mut PyObject) -> Reply`.
macro_rules! getter {
    ($name:literal, $function:path) => {{
        unsafe extern "C" fn entry(
            slf: *mut pyo3::ffi::PyObject,
            _: *mut std::ffi::c_void,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: CPython calls with the GIL.
            unsafe {
                $crate::raw::entry::guard(|py| {
                    if $crate::torch_function::has_override(slf)
                        && let Some(reply) = $crate::torch_function::dispatch_getter(py, $name, slf)
                    {
                        return reply;
                    }
                    $function(py, slf)
                })
            }
        }
        entry as pyo3::ffi::getter
    }};
}

/// Makes the setter of the attribute `$name` of tensors of
/// `fn(Python, *mut PyObject, Option<Bound<PyAny>>) -> PyResult<()>`.
macro_rules! setter {
    ($name:literal, $function:path) => {{
        unsafe extern "C" fn entry(
            slf: *mut pyo3::ffi::PyObject,
            value: *mut pyo3::ffi::PyObject,
            _: *mut std::ffi::c_void,
        ) -> std::ffi::c_int {
            // SAFETY: CPython calls with the GIL; a null value means deletion.
            unsafe {
                $crate::raw::entry::guard_or(-1, |py| {
                    if !value.is_null()
                        && $crate::torch_function::has_override(slf)
                        && let Some(reply) =
                            $crate::torch_function::dispatch_setter(py, $name, slf, value)
                    {
                        pyo3::ffi::Py_DECREF(reply?);
                        return Ok(0);
                    }
                    let value = pyo3::Bound::from_borrowed_ptr_or_opt(py, value);
                    $function(py, slf, value).map(|()| 0)
                })
            }
        }
        entry as pyo3::ffi::setter
    }};
}

/// As [`fast!`] for the function `$name` of the extension, which modes may override.
macro_rules! function {
    ($name:literal, $function:path) => {{
        fn own(
            py: pyo3::Python<'_>,
            slf: *mut pyo3::ffi::PyObject,
            args: $crate::raw::entry::Args<'_>,
        ) -> $crate::raw::entry::Reply {
            $crate::torch_function::dispatch_builtin(py, $name, args)
                .unwrap_or_else(|| $function(py, slf, args))
        }
        $crate::raw::entry::fast!(own)
    }};
}

/// As [`fast!`] for the method `$name` of tensors, which subclasses may override.
macro_rules! method {
    ($name:literal, $function:path) => {{
        fn own(
            py: pyo3::Python<'_>,
            slf: *mut pyo3::ffi::PyObject,
            args: $crate::raw::entry::Args<'_>,
        ) -> $crate::raw::entry::Reply {
            // SAFETY: a live receiver.
            if unsafe { $crate::torch_function::has_override(slf) }
                && let Some(reply) = $crate::torch_function::dispatch_method(py, $name, slf, args)
            {
                return reply;
            }
            $function(py, slf, args)
        }
        $crate::raw::entry::fast!(own)
    }};
}

/// As [`noargs!`] for the method `$name` of tensors, which subclasses may override.
macro_rules! bare_method {
    ($name:literal, $function:path) => {{
        fn own(py: pyo3::Python<'_>, slf: *mut pyo3::ffi::PyObject) -> $crate::raw::entry::Reply {
            // SAFETY: a live receiver.
            if unsafe { $crate::torch_function::has_override(slf) } {
                let args = $crate::raw::entry::Args::none();
                if let Some(reply) = $crate::torch_function::dispatch_method(py, $name, slf, args) {
                    return reply;
                }
            }
            $function(py, slf)
        }
        $crate::raw::entry::noargs!(own)
    }};
}
pub(crate) use {bare_method, fast, function, getter, method, noargs, setter};
