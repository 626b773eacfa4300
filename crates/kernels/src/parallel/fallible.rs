//! Work in blocks that can fail.

use super::for_range;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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
}
