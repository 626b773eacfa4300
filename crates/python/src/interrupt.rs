//! Signals in the middle of long calls: Ctrl-C reaches a kernel, and a backward between its nodes.
//!
//! The library asks [`check`] about ten times a second. Python runs handlers of signals on the main
//! thread only, so on every other thread the check returns at once. An exception that a handler
//! raises interrupts the call; it travels as the payload of an unwinding to the function that
//! Python called, which raises it. Functions that PyO3 wraps, which would show an unwinding as a
//! `PanicException`, run what may take long in [`computing`].

use crate::error::{carry, raise};
use crate::lock::inside_of_op;
use crate::raw::entry::bug;
use pullback::binding;
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::c_ulong;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

// Of CPython's stable interface.
unsafe extern "C" {
    fn PyThread_get_thread_ident() -> c_ulong;
}

/// The number of the main thread, as `threading` counts.
static MAIN: AtomicU64 = AtomicU64::new(0);

fn this_thread() -> u64 {
    // SAFETY: asks the system for a number; needs no interpreter.
    unsafe { PyThread_get_thread_ident() }
}

/// Runs the handlers of signals that have arrived; an exception of one interrupts what this thread
/// computes.
pub(crate) fn check() -> pullback::Result<()> {
    if this_thread() != MAIN.load(Relaxed) {
        return Ok(());
    }
    Python::attach(|py| {
        // SAFETY: attached. An exception that waits for the end of the call must not be there when Python code runs.
        if !unsafe { ffi::PyErr_Occurred() }.is_null() {
            return Ok(());
        }
        inside_of_op(|| py.check_signals()).map_err(carry)
    })
}

/// The child of a fork has one thread, the one that forked.
pub(crate) fn forked() {
    MAIN.store(this_thread(), Relaxed);
}

/// The exception for an unwinding: an interruption's own, else that of a bug.
#[cold]
pub(crate) fn error_of(panic: Box<dyn Any + Send>) -> PyErr {
    binding::interruption(panic).map_or_else(|panic| bug(&*panic), raise)
}

/// Runs what may take long in a function that PyO3 calls.
pub(crate) fn computing<R>(work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error_of(panic)))
}

/// Notes which the main thread is.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let threading = module.py().import("threading")?;
    let main: u64 = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
    MAIN.store(main, Relaxed);
    Ok(())
}
