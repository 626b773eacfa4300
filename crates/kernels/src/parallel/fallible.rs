//! Work in blocks that can fail.

use super::for_range;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

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

/// Calls `work` for blocks as [`try_for_range`] does, for blocks that write into the caller's
/// tensor and may find no memory for their work area: such a block is run again, alone, when the
/// blocks beside it have ended, with the memory that these gave back. Hence the first blocks fail,
/// and nothing has been written, or all of them come to their end.
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

/// Blocks that can begin again where they find no memory.
#[derive(Default)]
pub(crate) struct RestartableBlocks {
    /// Held together by the blocks that run, and alone by one that runs again: none begins meanwhile.
    running: RwLock<()>,
    has_succeeded: AtomicBool,
    has_failed: AtomicBool,
}

impl RestartableBlocks {
    /// Runs a block that asks for memory before it writes; does nothing once a block has failed.
    pub(crate) fn run(&self, block: impl Fn() -> Result<()>) -> Result<()> {
        let result = {
            let _running = self.running.read().unwrap_or_else(PoisonError::into_inner);
            if self.has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.counted(&block)
        };
        match result {
            Err(error) if is_out_of_memory(&error) => self.run_alone(&block, error),
            other => other,
        }
    }

    fn counted(&self, block: &impl Fn() -> Result<()>) -> Result<()> {
        let result = block();
        if result.is_ok() {
            self.has_succeeded.store(true, Ordering::Relaxed);
        }
        result
    }

    #[cold]
    fn run_alone(&self, block: &impl Fn() -> Result<()>, error: Error) -> Result<()> {
        let _alone = self.running.write().unwrap_or_else(PoisonError::into_inner);
        let mut result = Err(error);
        if self.has_failed.load(Ordering::Relaxed) {
            return result;
        }
        // (Twice: what a refused request frees may be enough for the next one.)
        for _ in 0..2 {
            let is_refused = result.as_ref().is_err_and(is_out_of_memory);
            if is_refused && self.has_succeeded.load(Ordering::Relaxed) {
                result = self.counted(block);
            }
        }
        self.has_failed.store(result.is_err(), Ordering::Relaxed);
        result
    }
}

fn is_out_of_memory(error: &Error) -> bool {
    error.kind() == ErrorKind::OutOfMemory
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

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
            let (attempts, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |range: Range<usize>| {
                if attempts.fetch_add(1, Ordering::Relaxed) % 3 == 1 {
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
