//! A lock of one byte, for a few instructions' work.

use crate::sync::{AtomicBool, UnsafeCell, spin_loop};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A lock for a few instructions' work.
pub(crate) struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached while `locked` was won, or by who promises to be alone.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
    /// The value of a lock that nothing else can reach.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        // SAFETY: borrowed mutably.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
    /// The value.
    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
    /// Runs `f` on the value. `f` must be short and must not take this lock again.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        while self.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            spin_loop();
        }
        struct Unlock<'a>(&'a AtomicBool);
        impl Drop for Unlock<'_> {
            fn drop(&mut self) {
                self.0.store(false, Release);
            }
        }
        let _unlock = Unlock(&self.locked);
        // SAFETY: the lock was won just above and is held until `_unlock` drops.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }
    /// [`SpinLock::with`] without taking the lock.
    ///
    /// # Safety
    /// No other thread can reach the lock meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn with_alone<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: as the caller promises.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
