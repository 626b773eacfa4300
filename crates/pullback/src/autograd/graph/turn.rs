//! A lock that lets one thread at a time in, and that thread as often as it comes.
//!
//! While a gradient is added to a leaf's, modes and subclasses of a program may run, on the same thread: what they ask of
//! the leaf, and a backward that they run, must find no lock that their own thread holds.

use crate::sync::{AtomicUsize, Mutex};
use std::sync::atomic::Ordering::Relaxed;

/// Lets one thread at a time into a section, and this thread again while it is inside.
pub(in crate::autograd) struct Turn {
    lock: Mutex<()>,
    /// The number of the thread inside; 0 if there is none.
    inside: AtomicUsize,
}

impl Default for Turn {
    fn default() -> Self {
        Self { lock: Mutex::new(()), inside: AtomicUsize::new(0) }
    }
}

impl Turn {
    /// Waits until no other thread is inside. The thread stays there until the guard is dropped; there is none if it is
    /// inside already.
    pub(in crate::autograd) fn take(&self, thread: u32) -> Option<impl Drop + use<'_>> {
        // (Only this thread writes its own number, and takes it away before it leaves.)
        if self.inside.load(Relaxed) == thread as usize {
            return None;
        }
        let lock = self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.inside.store(thread as usize, Relaxed);
        Some(Inside { turn: self, _lock: lock })
    }
}

struct Inside<'a, L> {
    turn: &'a Turn,
    _lock: L,
}

impl<L> Drop for Inside<'_, L> {
    fn drop(&mut self) {
        self.turn.inside.store(0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Turn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_thread_may_come_again_and_others_wait() {
        let turn = Arc::new(Turn::default());
        let (count, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (turn, count, most) = (turn.clone(), count.clone(), most.clone());
                scope.spawn(move || {
                    for _ in 0..500 {
                        let outer = turn.take(thread);
                        assert!(outer.is_some() && turn.take(thread).is_none());
                        most.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        count.fetch_sub(1, Ordering::SeqCst);
                        drop(outer);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}
