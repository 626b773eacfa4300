//! The right to number nodes in their own memory: one task at a time has it, the others look nodes up.

use crate::sync::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The right to number nodes, held as long as it lives.
pub(in crate::autograd) struct Numbering<'a>(&'a AtomicBool);

impl<'a> Numbering<'a> {
    /// Takes the right if no task has it; `is_taken` is the flag that says whether one has.
    pub(in crate::autograd) fn take(is_taken: &'a AtomicBool) -> Option<Numbering<'a>> {
        let free = is_taken.compare_exchange(false, true, Acquire, Relaxed);
        free.is_ok().then(|| Numbering(is_taken))
    }
}

impl Drop for Numbering<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}
