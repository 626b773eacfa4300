//! The interpreter lock, and what its holder can conclude about other threads inside of the
//! library.
//!
//! Calls into the library either hold the lock or are counted while they run without it. So a thread that holds
//! it and sees none counted but its own knows that no other one is inside: then memory that tensors no longer show
//! is given back, and then the process is forked (a child has no other threads, and whatever they held or were
//! changing stays so for ever).

use pullback::binding::{self, replaced};
use pullback::call_site::{CallSite, Scope};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of calls that run without the lock, or wait inside of the library for Python.
static AWAY: AtomicUsize = AtomicUsize::new(0);
/// The number of threads that are about to fork: until they have, no other thread may leave the
/// lock for the library.
static FORKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's part of [`AWAY`].
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Counts in [`AWAY`] while it lives.
struct Away;
impl Away {
    fn new() -> Away {
        OWN.set(OWN.get() + 1);
        AWAY.fetch_add(1, Ordering::Relaxed);
        Away
    }
}
impl Drop for Away {
    fn drop(&mut self) {
        AWAY.fetch_sub(1, Ordering::Release);
        OWN.set(OWN.get() - 1);
    }
}

/// Runs `call`, which takes long, without the lock; its call site is the line that the program is
/// at now.
pub(crate) fn without_lock<R: Send>(py: Python<'_>, call: impl FnOnce() -> R + Send) -> R {
    if FORKING.load(Ordering::Relaxed) != 0 && OWN.get() == 0 {
        wait_for_fork(py);
    }
    let away = Away::new();
    let call_site = CallSite::here().enter();
    binding::begin_watch();
    let result = py.detach(call);
    drop(call_site);
    drop(away);
    give_back();
    result
}

/// Runs Python code for the library, on a thread that may not have the lock; calls of this code
/// have call sites of their own.
pub(crate) fn in_python<R>(call: impl FnOnce(Python<'_>) -> R) -> R {
    Python::attach(|py| {
        let _scope = Scope::of_host();
        call(py)
    })
}

/// Runs Python code in the middle of an op, which may hold addresses of elements: a warning, say.
pub(crate) fn inside_of_op<R>(call: impl FnOnce() -> R) -> R {
    let _away = Away::new();
    call()
}

/// Frees memory that tensors no longer show, unless another thread may be reading it: then the last
/// thread that returns does it. To be called with the lock, where no address of elements is held.
#[inline]
pub(crate) fn give_back() {
    if replaced::is_any() && AWAY.load(Ordering::Acquire) == 0 {
        // SAFETY: with the lock held and nobody away, all that is left of the library on any stack are frames that
        // called Python; they hold tensors, and at most their sizes and strides.
        unsafe { replaced::give_back() };
    }
}

/// Whether no other thread is inside of the library, nor this one further up its stack. The caller holds the lock.
pub(crate) fn is_alone() -> bool {
    AWAY.load(Ordering::Acquire) == 0
}

/// The interval between two checks of other threads.
const PAUSE: Duration = Duration::from_micros(50);
/// The longest time that a fork waits for other threads to return.
const PATIENCE: Duration = Duration::from_secs(10);

#[cold]
fn wait_for_fork(py: Python<'_>) {
    while FORKING.load(Ordering::Acquire) != 0 {
        py.detach(|| std::thread::sleep(PAUSE));
    }
}

/// Waits until no other thread is inside of the library; from then on none goes in.
#[pyfunction]
fn _before_fork(py: Python<'_>) -> PyResult<()> {
    FORKING.fetch_add(1, Ordering::AcqRel);
    let start = Instant::now();
    while AWAY.load(Ordering::Acquire) > OWN.get() {
        if start.elapsed() > PATIENCE {
            let text = c"the process is forked while another thread has been inside of the library for ten seconds: what that thread holds stays locked in the child";
            return PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), text, 1);
        }
        py.detach(|| std::thread::sleep(PAUSE));
    }
    Ok(())
}

/// Lets the parent's threads continue.
#[pyfunction]
fn _after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::AcqRel);
}

/// In the child there is no other thread.
#[pyfunction]
fn _after_fork_in_child() {
    AWAY.store(OWN.get(), Ordering::Release);
    FORKING.store(0, Ordering::Release);
    crate::interrupt::forked();
}

/// Registers functions that run before and after a fork.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    let Ok(register) = os.getattr("register_at_fork") else { return Ok(()) };
    let told = PyDict::new(py);
    told.set_item("before", wrap_pyfunction!(_before_fork, module)?)?;
    told.set_item("after_in_parent", wrap_pyfunction!(_after_fork_in_parent, module)?)?;
    told.set_item("after_in_child", wrap_pyfunction!(_after_fork_in_child, module)?)?;
    register.call((), Some(&told)).map(drop)
}
