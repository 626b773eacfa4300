//! Calls of Python functions as ranges of the profiler.
//!
//! While a thread is traced, the interpreter says when its functions, and those written in C, are called and when they
//! return. Functions of this package are passed by, and so are calls of C functions by these. Invariant: this thread's list
//! has an entry for each frame that was entered and has not been left, so that a return ends what its call began.

use super::frame::{each_code, label_of, text_of_label};
use pullback::prof::{self, Name, Open, RangeKind};
use pyo3::ffi::{self, PyObject};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;

/// A frame that was entered.
struct Entered {
    is_own: bool,
    _range: Option<Open>,
}

/// The state of a thread that is traced.
#[derive(Default)]
struct Trace {
    entered: Vec<Entered>,
    /// Names of functions, each put together once.
    names: HashMap<u64, Arc<str>>,
}

thread_local! {
    static TRACE: RefCell<Trace> = RefCell::default();
}

impl Trace {
    /// A frame of `code` is entered.
    ///
    /// # Safety
    /// The thread holds the interpreter lock, and `code` is a live code object.
    unsafe fn enter(&mut self, code: *mut PyObject) {
        // SAFETY: the caller's promise.
        let label = unsafe { label_of(code) };
        let known = self.names.entry(label.key);
        let text = || text_of_label(label.key).unwrap_or_default().into();
        let range = (!label.is_own).then(|| {
            let name = known.or_insert_with(text).clone();
            prof::open(RangeKind::Program, || Name::Text(name), &[])
        });
        self.entered.push(Entered { is_own: label.is_own, _range: range });
    }

    /// A function written in C is called.
    ///
    /// # Safety
    /// The thread holds the interpreter lock, and `function` is a live object.
    unsafe fn enter_builtin(&mut self, function: *mut PyObject) {
        let is_own = self.entered.last().is_some_and(|entered| entered.is_own);
        // SAFETY: the caller's promise.
        let name = || unsafe { name_of_builtin(function) };
        let range = (!is_own).then(|| prof::open(RangeKind::Program, name, &[]));
        self.entered.push(Entered { is_own, _range: range });
    }
}

/// `<built-in function len>`, `<built-in method append of list object>`.
///
/// # Safety
/// A live object.
unsafe fn name_of_builtin(function: *mut PyObject) -> Name {
    // SAFETY: looked at as what its type says; names of types and of functions live as long as these.
    unsafe {
        if ffi::PyCFunction_Check(function) == 0 {
            let kind = CStr::from_ptr((*ffi::Py_TYPE(function)).tp_name).to_string_lossy();
            return format!("<{kind} object>").as_str().into();
        }
        let builtin = function.cast::<ffi::PyCFunctionObject>();
        let name = CStr::from_ptr((*(*builtin).m_ml).ml_name).to_string_lossy();
        let of = (*builtin).m_self;
        if of.is_null() || ffi::PyModule_Check(of) != 0 {
            return format!("<built-in function {name}>").as_str().into();
        }
        let kind = CStr::from_ptr((*ffi::Py_TYPE(of)).tp_name).to_string_lossy();
        format!("<built-in method {name} of {kind} object>").as_str().into()
    }
}

/// The function that the interpreter calls.
unsafe extern "C" fn on_event(
    _: *mut PyObject,
    frame: *mut ffi::PyFrameObject,
    what: c_int,
    function: *mut PyObject,
) -> c_int {
    let note = || {
        TRACE.try_with(|trace| {
            let mut trace = trace.try_borrow_mut().ok()?;
            match what {
                // SAFETY: the interpreter passes live objects, with its lock; the new reference is given back.
                ffi::PyTrace_CALL => unsafe {
                    let code = ffi::PyFrame_GetCode(frame).cast::<PyObject>();
                    trace.enter(code);
                    ffi::Py_DECREF(code);
                    None
                },
                // SAFETY: as above.
                ffi::PyTrace_C_CALL => unsafe {
                    trace.enter_builtin(function);
                    None
                },
                ffi::PyTrace_RETURN | ffi::PyTrace_C_RETURN | ffi::PyTrace_C_EXCEPTION => {
                    trace.entered.pop()
                }
                _ => None,
            }
        })
    };
    // A panic must not reach the interpreter; what it would have noted is missing then. (What was left ends here, where
    // nothing is borrowed.)
    let _ = catch_unwind(AssertUnwindSafe(|| drop(note())));
    0
}

/// Traces this thread from now on. Functions that are being run are ranges that begin now.
pub(crate) fn start() {
    TRACE.with_borrow_mut(|trace| {
        let mut codes = Vec::new();
        // SAFETY: called with the lock held; what is on the stack lives.
        unsafe {
            each_code(|code| codes.push(code));
            codes.into_iter().rev().for_each(|code| trace.enter(code));
        }
    });
    // SAFETY: called with the lock held; the function lives as long as the process.
    unsafe { ffi::PyEval_SetProfile(Some(on_event), null_mut()) };
}

/// Stops tracing the thread: frames that were entered end now.
pub(crate) fn stop() {
    // SAFETY: called with the lock held.
    unsafe { ffi::PyEval_SetProfile(None, null_mut()) };
    let mut trace = TRACE.take();
    while trace.entered.pop().is_some() {}
}
