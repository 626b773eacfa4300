//! When tensors were made, counted in transforms of functions (`grad`, `jvp`) that were begun, by any thread.
//!
//! A transform's function may write in place to what was made since the transform began, not to
//! what it captured. So each tensor keeps the count at the time when it was made, a view that of
//! its base, and the transform keeps its own number (`autograd::thread::captured`). Every new
//! tensor reads one word that seldom changes. When the count runs over after four thousand million
//! transforms, some writes to captured tensors pass that would have been refused.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of transforms that were begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// The birth of a tensor that is made now.
#[inline(always)]
pub(super) fn now() -> u32 {
    BEGUN.load(Relaxed)
}

/// Counts a transform; gives its number. Tensors that are made from now on have a birth of at least this.
pub(crate) fn begin_transform() -> u32 {
    BEGUN.fetch_add(1, Relaxed).wrapping_add(1)
}
