//! Work in blocks that can fail.

use super::for_range;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Calls `work` for blocks of `0..total` as [`for_range`] does, and returns the first error of a block when all have ended. Blocks not yet begun
/// are then skipped.
pub fn try_for_range(
    total: usize,
    grain: usize,
    work: &(dyn Fn(Range<usize>) -> Result<()> + Sync),
) -> Result<()> {
    let (has_failed, first) = (AtomicBool::new(false), Mutex::new(None::<Error>));
    for_range(total, grain, &|range| {
        if has_failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = work(range) {
            has_failed.store(true, Ordering::Relaxed);
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// As [`try_for_range`], for blocks that write into the caller's tensor and may find no memory for their work area: such a
/// block is run again, alone, when the blocks beside it have ended, with the memory that these gave back. Hence the first
/// blocks fail, and nothing has been written, or all of them come to their end.
///
/// `work` must be able to begin a block again after an `OutOfMemoryError`: it asks for its memory before it writes, or what it
/// writes does not depend on what stood there.
pub fn try_for_restartable_range(
    total: usize,
    grain: usize,
    work: &(dyn Fn(Range<usize>) -> Result<()> + Sync),
) -> Result<()> {
    if total <= grain.max(1) {
        return if total == 0 { Ok(()) } else { work(0..total) };
    }
    let blocks = RestartableBlocks::default();
    try_for_range(total, grain, &|range| blocks.run(|| work(range.clone())))
}

/// Runs `work`, which found no memory after others of its kind had it, once more if it may succeed then.
#[derive(Default)]
pub(crate) struct RestartableBlocks {
    /// Blocks that run now, but for those that wait in [`Self::run_alone`].
    running: AtomicUsize,
    has_succeeded: AtomicBool,
    /// Held by the block that runs again.
    alone: Mutex<()>,
    has_ended: Condvar,
}

impl RestartableBlocks {
    /// Runs a block that asks for memory before it writes.
    pub(crate) fn run(&self, block: impl Fn() -> Result<()>) -> Result<()> {
        let result = self.counted(&block);
        match result {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => self.run_alone(&block, error),
            other => other,
        }
    }

    fn counted(&self, block: &impl Fn() -> Result<()>) -> Result<()> {
        /// One block less, also where a panic ends it.
        struct Running<'a>(&'a RestartableBlocks);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.running.fetch_sub(1, Ordering::AcqRel);
                self.0.has_ended.notify_all();
            }
        }
        self.running.fetch_add(1, Ordering::AcqRel);
        let _running = Running(self);
        let result = block();
        if result.is_ok() {
            self.has_succeeded.store(true, Ordering::Release);
        }
        result
    }

    #[cold]
    fn run_alone(&self, block: &impl Fn() -> Result<()>, error: Error) -> Result<()> {
        /// How long to wait at a time: the end of a block may have been told between the look and the wait.
        const WAIT: std::time::Duration = std::time::Duration::from_millis(1);
        let mut alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        while self.running.load(Ordering::Acquire) > 0 {
            let waited = self.has_ended.wait_timeout(alone, WAIT);
            alone = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !self.has_succeeded.load(Ordering::Acquire) {
            return Err(error);
        }
        // (Once more: what a refused request frees may be enough for the next one.)
        let mut result = self.counted(block);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory) {
            result = self.counted(block);
        }
        drop(alone);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_comes_out_and_the_rest_is_skipped() {
        let done = AtomicUsize::new(0);
        let count = |range: Range<usize>| {
            done.fetch_add(range.len(), Ordering::Relaxed);
            Ok(())
        };
        assert!(try_for_range(1000, 7, &count).is_ok());
        assert_eq!(done.into_inner(), 1000);
        let begun = AtomicUsize::new(0);
        let fail = |_: Range<usize>| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(Error::out_of_memory(12))
        };
        assert!(try_for_range(100_000, 1, &fail).unwrap_err().message().contains("12 bytes"));
        assert!(begun.into_inner() < 100_000);
    }

    #[test]
    fn a_block_without_memory_runs_again_once_others_have_ended() {
        for total in [1, 2, 100] {
            // Every third request is refused, but never the first one.
            let (asked, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |range: Range<usize>| {
                if asked.fetch_add(1, Ordering::Relaxed) % 3 == 1 {
                    return Err(Error::out_of_memory(12));
                }
                done.fetch_add(range.len(), Ordering::Relaxed);
                Ok(())
            };
            assert!(try_for_restartable_range(total, 1, &work).is_ok());
            assert_eq!(done.into_inner(), total);
        }
    }

    #[test]
    fn where_no_block_finds_memory_nothing_is_done() {
        let fail = |_: Range<usize>| Err(Error::out_of_memory(12));
        let error = try_for_restartable_range(1000, 1, &fail).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn other_errors_are_not_tried_again() {
        let begun = AtomicUsize::new(0);
        let fail = |_: Range<usize>| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(Error::runtime("no".into()))
        };
        assert!(try_for_restartable_range(2, 1, &fail).is_err());
        assert!(begun.into_inner() <= 2);
    }
}
