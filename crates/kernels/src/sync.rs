//! What threads share, under one name: atomics, cells, parking.
//!
//! These are the standard library's. Files whose threads meet without a lock take them from here, so that
//! `crates/loom` can compile the same files with loom's in their place and go through every order of steps.

use std::cell;

pub use std::alloc::{alloc, dealloc};
pub use std::hint::spin_loop;
pub use std::sync::Mutex;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
pub use std::thread::{Thread, park, yield_now};

/// Parks for so long at most that an interruption is noticed in time.
pub fn park_briefly() {
    std::thread::park_timeout(crate::interrupt::INTERVAL / 2);
}

/// A cell whose users say whether they read or write, which is what a model checks.
#[derive(Default)]
pub struct UnsafeCell<T>(cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        Self(cell::UnsafeCell::new(value))
    }
    /// Runs `f` on the value, which nobody writes meanwhile.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    /// Runs `f` on the value, which nobody else uses meanwhile.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
