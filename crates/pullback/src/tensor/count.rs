//! The counts of a block of memory: how many handles keep its value, how many only the memory.
//!
//! `Arc`'s scheme, but that the last handle of all goes without an atomic step: the holder of the
//! only strong handle, with no weak one besides, knows that none can come, for new ones are made
//! from old ones. Both counts are in one word because that is known only if both are read at one
//! moment. Read one after the other, another thread may in between trade its strong handle for a
//! weak one (or back), and one reads "no weak one" of before and "no strong one" of after.

use crate::sync::{AtomicU64, fence};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Strong handles in the lower half; weak ones in the upper, plus one for all the strong ones together.
pub(crate) struct Counts(AtomicU64);

const STRONG: u64 = 1;
const WEAK: u64 = 1 << 32;
/// One strong handle, no weak one.
const SOLE: u64 = STRONG | WEAK;
/// The highest bit of each half: far more handles than memory holds, and far from running over.
const TOO_MANY: u64 = 1 << 63 | 1 << 31;

fn strong(word: u64) -> u32 {
    word as u32
}
fn weak(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Counts {
    /// The counts of a new block, which has one strong handle.
    #[inline(always)]
    pub(crate) fn new() -> Counts {
        Counts(AtomicU64::new(SOLE))
    }
    /// The number of strong handles.
    #[inline(always)]
    pub(crate) fn strong(&self) -> usize {
        strong(self.0.load(Acquire)) as usize
    }
    /// Whether the caller's strong handle is the only one, with no weak one besides.
    #[inline(always)]
    pub(crate) fn is_sole(&self) -> bool {
        self.0.load(Acquire) == SOLE
    }
    /// Counts a strong handle made from another.
    #[inline(always)]
    pub(crate) fn add_strong(&self) {
        check(self.0.fetch_add(STRONG, Relaxed));
    }
    /// Counts a strong handle if there are others.
    pub(crate) fn try_add_strong(&self) -> bool {
        let more = |word| (strong(word) > 0).then_some(word + STRONG);
        self.0.fetch_update(Acquire, Relaxed, more).map(check).is_ok()
    }
    /// Counts the first strong handle of a value that lives on although its last one went. One thread may do so, once.
    pub(crate) fn revive(&self) {
        self.0.fetch_add(STRONG, AcqRel);
    }
    /// Removes a strong handle; returns whether it was the last one. If so, the caller drops the value, then calls
    /// [`Counts::drop_weak`] (or it revives the value).
    #[inline(always)]
    pub(crate) fn count_down(&self) -> bool {
        let was_last = strong(self.0.fetch_sub(STRONG, Release)) == 1;
        if was_last {
            fence(Acquire);
        }
        was_last
    }
    /// [`Counts::count_down`] for a value that is not revived.
    #[inline(always)]
    pub(crate) fn drop_strong(&self) -> bool {
        self.is_sole() || self.count_down()
    }
    /// Counts a weak handle made from another handle.
    pub(crate) fn add_weak(&self) {
        check(self.0.fetch_add(WEAK, Relaxed));
    }
    /// Removes a weak handle, or the one that stands for the strong ones; returns whether the memory is to be freed.
    pub(crate) fn drop_weak(&self) -> bool {
        // The last one of all needs no atomic step: no other thread has a handle.
        if weak(self.0.load(Acquire)) == 1 {
            return true;
        }
        let was_last = weak(self.0.fetch_sub(WEAK, Release)) == 1;
        if was_last {
            fence(Acquire);
        }
        was_last
    }
}

#[inline(always)]
fn check(before: u64) {
    if before & TOO_MANY != 0 {
        too_many();
    }
}

/// A count that ran over would free what is in use. Only a program that forgets handles on purpose comes here.
#[cold]
#[inline(never)]
fn too_many() {
    std::process::abort();
}
