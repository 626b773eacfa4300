//! The interpreter lock, and what can be said of the library by it.
//!
//! Calls into the library either hold the lock or are counted while they run without it. So a thread that holds
//! it and sees none counted knows that no other one is inside: then memory that tensors no longer show
//! is given back.

use pullback::binding::replaced;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls that run without the lock.
static AWAY: AtomicUsize = AtomicUsize::new(0);

/// Runs `call`, which takes long, without the lock.
pub(crate) fn without_lock<R: Send>(py: Python<'_>, call: impl FnOnce() -> R + Send) -> R {
    struct Away;
    impl Drop for Away {
        fn drop(&mut self) {
            AWAY.fetch_sub(1, Ordering::Release);
        }
    }
    AWAY.fetch_add(1, Ordering::Relaxed);
    let away = Away;
    let result = py.detach(call);
    drop(away);
    give_back();
    result
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
