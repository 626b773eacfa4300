//! The interpreter lock, and what can be said of the library by it.
//!
//! Calls into the library either hold the lock or are counted while they run without it. So a thread that holds
//! it and sees none counted knows that no other one is inside: then memory that tensors no longer show
//! is given back.

use pullback::binding::replaced;
use pullback::site::{Scope, Site};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls that run without the lock, or wait inside of the library for Python.
static AWAY: AtomicUsize = AtomicUsize::new(0);

/// Counts in [`AWAY`] while it lives.
struct Away;
impl Away {
    fn new() -> Away {
        AWAY.fetch_add(1, Ordering::Relaxed);
        Away
    }
}
impl Drop for Away {
    fn drop(&mut self) {
        AWAY.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `call`, which takes long, without the lock: for the line that the program is at now.
pub(crate) fn without_lock<R: Send>(py: Python<'_>, call: impl FnOnce() -> R + Send) -> R {
    let away = Away::new();
    let site = Site::here().enter();
    let result = py.detach(call);
    drop(site);
    drop(away);
    give_back();
    result
}

/// Runs Python code for the library, on a thread that may not have the lock: what it calls is called by its own lines.
pub(crate) fn in_python<R>(call: impl FnOnce(Python<'_>) -> R) -> R {
    Python::attach(|py| {
        let _asked = Scope::of_binding();
        call(py)
    })
}

/// Runs Python code in the middle of an op, which may hold addresses of elements: a warning, say.
pub(crate) fn inside_of_op<R>(call: impl FnOnce() -> R) -> R {
    let _away = Away::new();
    call()
}

/// Frees memory that tensors no longer show, unless another thread may be reading it: then whoever comes back
/// last does it. To be called with the lock, where no address of elements is held.
#[inline]
pub(crate) fn give_back() {
    if replaced::is_any() && AWAY.load(Ordering::Acquire) == 0 {
        // SAFETY: with the lock held and nobody away, all that is left of the library on any stack are frames that
        // called Python; they hold tensors, and at most their sizes and strides.
        unsafe { replaced::give_back() };
    }
}
