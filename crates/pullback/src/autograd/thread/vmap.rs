//! The levels of `vmap` that a thread has open: how many examples there are, and what random ops do.
//!
//! Batched tensors are `batch`'s business. Invariant: the thread includes the key `FuncTorchVmapMode` in its calls exactly as
//! long as a level is open. Start at [`enter`].

use crate::Result;
use crate::dispatch::batch::Randomness;
use crate::error::ensure;
use crate::tensor::Key;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A level that is open.
#[derive(Clone, Copy)]
pub(in crate::autograd) struct Level {
    pub(in crate::autograd) id: u64,
    pub(in crate::autograd) size: i64,
    pub(in crate::autograd) randomness: Randomness,
}

thread_local! {
    /// The open levels of the thread, the outermost first. It includes the key `FuncTorchVmapMode` while there is one.
    static OPEN: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    /// The level whose rule is running: what it calls sees those before only.
    static RUNNING: Cell<u64> = const { Cell::new(u64::MAX) };
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Opens a level for batches of `size` examples; gives its number, which is larger than that of any level before.
///
/// # Errors
/// `ValueError` for negative sizes.
pub fn enter(size: i64, randomness: Randomness) -> Result<u64> {
    ensure!(size >= 0, value, "vmap: the batch size must not be negative, got {size}");
    let id = NEXT.fetch_add(1, Relaxed);
    OPEN.with(|open| open.borrow_mut().push(Level { id, size, randomness }));
    Key::FuncTorchVmapMode.include(true);
    Ok(id)
}

/// Closes the innermost level.
///
/// # Errors
/// `RuntimeError` unless it is the level of that number.
pub fn exit(id: u64) -> Result<()> {
    let closed = OPEN.with(|open| {
        let mut open = open.borrow_mut();
        open.last().is_some_and(|level| level.id == id).then(|| open.pop())
    });
    ensure!(closed.is_some(), runtime, "vmap: level {id} is not the innermost open level");
    Key::FuncTorchVmapMode.include(is_any_open());
    Ok(())
}

/// A level that is open as long as it lives.
#[must_use = "the level lasts as long as the guard"]
#[derive(Debug)]
pub struct LevelGuard(u64);

impl LevelGuard {
    /// Opens a level.
    ///
    /// # Errors
    /// As [`enter`].
    pub fn new(size: i64, randomness: Randomness) -> Result<LevelGuard> {
        enter(size, randomness).map(LevelGuard)
    }
    /// Its number.
    pub fn id(&self) -> u64 {
        self.0
    }
}

impl Drop for LevelGuard {
    fn drop(&mut self) {
        // It can only fail if somebody closed this level by hand.
        let _ = exit(self.0);
    }
}

/// The open levels, for another thread.
pub(in crate::autograd) fn snapshot() -> Vec<Level> {
    OPEN.with(|open| open.borrow().clone())
}

/// Opens the same levels on a thread that has none of its own.
pub(in crate::autograd) fn restore(levels: Vec<Level>) {
    Key::FuncTorchVmapMode.include(!levels.is_empty());
    OPEN.with(|open| *open.borrow_mut() = levels);
}

/// Whether a level is open on this thread.
pub fn is_any_open() -> bool {
    OPEN.with(|open| !open.borrow().is_empty())
}

/// Whether that level is open on this thread.
pub(in crate::autograd) fn is_open(id: u64) -> bool {
    OPEN.with(|open| open.borrow().iter().any(|level| level.id == id))
}

/// The open level of this number.
pub(in crate::autograd) fn open(id: u64) -> Option<Level> {
    OPEN.with(|open| open.borrow().iter().find(|open| open.id == id).copied())
}

/// The innermost open level before the one whose rule is running.
pub(in crate::autograd) fn innermost_open() -> Option<Level> {
    let limit = RUNNING.get();
    OPEN.with(|open| open.borrow().iter().rev().find(|level| level.id < limit).copied())
}

/// Says which level's rule is running, as long as it lives.
pub(in crate::autograd) struct RunningRule(u64);

impl RunningRule {
    /// The turn of a level.
    pub(in crate::autograd) fn of(level: u64) -> RunningRule {
        RunningRule(RUNNING.replace(level))
    }
}

impl Drop for RunningRule {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}
