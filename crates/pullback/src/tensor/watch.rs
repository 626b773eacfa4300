//! The part of a recording (`crate::capture`) below the ops: the storages that it knows, their
//! ends, and events that it cannot record.
//!
//! A storage that a recording knows has a mark: the recording's number and one of its own. The mark says what a tensor shows
//! however the tensor came to be, so that views and aliases need no bookkeeping; it holds nothing alive, so that memory is given
//! back, and gradients are taken over, as without a recording. Invariant: one recording at a time in a process, on one thread;
//! everybody else pays one load of [`RECORDING`] on slow paths, one of [`NEW`] where a storage begins, and the comparison of a mark
//! with zero where it ends.

use crate::call_site::CallSite;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The number of the recording that is on in this process; 0 if none is.
static RECORDING: AtomicU32 = AtomicU32::new(0);
/// The mark of new storages: zero, or that of a recording, without an index.
static NEW: AtomicU64 = AtomicU64::new(0);
/// The number of the last recording.
static LAST: AtomicU32 = AtomicU32::new(0);
/// The marks of storages that ended while their recording was on.
static ENDED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

thread_local! {
    /// The number of this thread's recording; 0 if it has none, or inside of a kernel.
    static HERE: Cell<u32> = const { Cell::new(0) };
    /// Why this thread's recording cannot be replayed, if something said so.
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whether any thread records.
#[inline(always)]
pub(crate) fn is_any() -> bool {
    RECORDING.load(Relaxed) != 0
}

/// Whether this thread records, and is not inside of a kernel.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    is_any() && HERE.get() != 0
}

/// A recording of this thread, until it is dropped.
pub(crate) struct Watch {
    number: u32,
}

impl Watch {
    /// Begins a recording; `None` while another is on.
    pub(crate) fn begin() -> Option<Watch> {
        let number = LAST.fetch_add(1, Relaxed).wrapping_add(1).max(1);
        RECORDING.compare_exchange(0, number, Relaxed, Relaxed).ok()?;
        ended().clear();
        NEW.store(u64::from(number) << 32, Relaxed);
        HERE.set(number);
        REASON.take();
        Some(Watch { number })
    }
    /// The mark of storage `index` of this recording.
    pub(crate) fn mark(&self, index: usize) -> u64 {
        u64::from(self.number) << 32 | (index as u64 + 1)
    }
    /// The index that a mark has in this recording.
    pub(crate) fn index(&self, mark: u64) -> Option<usize> {
        let is_own = mark >> 32 == u64::from(self.number);
        if is_own { ((mark & u64::from(u32::MAX)) as usize).checked_sub(1) } else { None }
    }
    /// Whether this is the mark of a storage that came to be during the recording, and that it does not know yet.
    pub(crate) fn is_new(&self, mark: u64) -> bool {
        mark == u64::from(self.number) << 32
    }
    /// The storages that have ended so far.
    pub(crate) fn ended(&self) -> Vec<usize> {
        ended().iter().filter_map(|&mark| self.index(mark)).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        HERE.set(0);
        NEW.store(0, Relaxed);
        RECORDING.store(0, Relaxed);
        ended().clear();
    }
}

fn ended() -> std::sync::MutexGuard<'static, Vec<u64>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mark of a new storage.
#[inline(always)]
pub(super) fn new_mark() -> u64 {
    NEW.load(Relaxed)
}

/// Notes the end of a storage with this mark.
#[cold]
#[inline(never)]
pub(super) fn note_end(mark: u64) {
    if RECORDING.load(Relaxed) == (mark >> 32) as u32 && mark as u32 != 0 {
        ended().push(mark); // tidy: short
    }
}

/// Records that the recording of this thread, if there is one, cannot be replayed, and why. The
/// first reason stays, with the line of the program.
#[cold]
#[inline(never)]
pub(crate) fn refuse(reason: impl FnOnce() -> String) {
    if !is_on() {
        return;
    }
    REASON.with_borrow_mut(|kept| {
        if kept.is_none() {
            let line = CallSite::here().source_line();
            let line = line.map_or_else(String::new, |line| format!("\n{line}"));
            *kept = Some(reason() + &line);
        }
    });
}

/// The reason that was given first.
pub(crate) fn reason() -> Option<String> {
    REASON.with_borrow(Clone::clone)
}

/// The inside of a kernel: nothing there is recorded or refused.
pub(crate) struct InsideKernel(u32);

/// Begins the inside of a kernel.
pub(crate) fn inside() -> InsideKernel {
    InsideKernel(HERE.replace(0))
}

impl Drop for InsideKernel {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}
