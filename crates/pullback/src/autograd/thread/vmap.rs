//! The levels of `vmap` that a thread has open, with their batch sizes and what random ops do.
//!
//! Batched tensors themselves are in `batch`. Invariant: the thread includes the key `FuncTorchVmapMode` in its calls exactly
//! as long as a level is open. Start at [`enter`].

use crate::Result;
use crate::dispatch::batch::Randomness;
use crate::error::ensure;
use crate::tensor::Key;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An open level.
#[derive(Clone, Copy)]
pub(in crate::autograd) struct VmapLevel {
    pub(in crate::autograd) id: u64,
    pub(in crate::autograd) size: i64,
    pub(in crate::autograd) randomness: Randomness,
}

thread_local! {
    /// The open levels of the thread, the outermost first.
    static OPEN: RefCell<Vec<VmapLevel>> = const { RefCell::new(Vec::new()) };
    /// The level whose batching rule is running: ops that the rule calls see only the levels before it.
    static RUNNING: Cell<u64> = const { Cell::new(u64::MAX) };
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The numbers of the levels that a part of a program opened, in their order.
#[derive(Default)]
struct NumberLog {
    numbers: Vec<u64>,
    /// How many levels it has opened this time.
    opened: usize,
}

thread_local! {
    /// The logs that this thread keeps, the innermost last.
    static LOGS: RefCell<Vec<NumberLog>> = const { RefCell::new(Vec::new()) };
}

/// Begins to note the numbers of the levels that this thread opens. The first of them are to be those of `known`.
///
/// What a checkpoint computes again takes the place of what it computed first, and meets gradients of that: so it must be
/// batched at levels of the same numbers, though these are closed.
pub fn begin_numbers(known: Vec<u64>) {
    LOGS.with(|logs| logs.borrow_mut().push(NumberLog { numbers: known, opened: 0 }));
}

/// Ends what the last [`begin_numbers`] began; gives all numbers.
pub fn end_numbers() -> Vec<u64> {
    LOGS.with(|logs| logs.borrow_mut().pop()).map_or_else(Vec::new, |log| log.numbers)
}

/// A log for as long as the guard lives.
pub(in crate::autograd) struct NumberGuard(());

impl NumberGuard {
    /// Begins a log whose first levels have the numbers `known`.
    pub(in crate::autograd) fn begin(known: Vec<u64>) -> NumberGuard {
        begin_numbers(known);
        NumberGuard(())
    }
    /// Ends the log; returns the numbers of all its levels.
    pub(in crate::autograd) fn end(self) -> Vec<u64> {
        std::mem::forget(self);
        end_numbers()
    }
}

impl Drop for NumberGuard {
    fn drop(&mut self) {
        end_numbers();
    }
}

/// The number of the next level: the one that a log knows, else a new one.
fn next_number() -> u64 {
    LOGS.with(|logs| {
        let mut logs = logs.borrow_mut();
        let known = logs.iter().rev().find_map(|log| log.numbers.get(log.opened).copied());
        let number = known.unwrap_or_else(|| NEXT.fetch_add(1, Relaxed));
        for log in logs.iter_mut() {
            if log.opened == log.numbers.len() {
                log.numbers.push(number);
            }
            log.opened += 1;
        }
        number
    })
}

/// Opens a level for batches of `size` examples; returns its number, which is larger than that of any level before (but for
/// numbers that a log knows).
///
/// # Errors
/// `ValueError` for negative sizes.
pub fn enter(size: i64, randomness: Randomness) -> Result<u64> {
    ensure!(size >= 0, value, "vmap: the batch size must not be negative, got {size}");
    let id = next_number();
    OPEN.with(|open| open.borrow_mut().push(VmapLevel { id, size, randomness }));
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

/// A guard as long as which a level is open.
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
    /// The number of the level.
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
pub(in crate::autograd) fn snapshot() -> Vec<VmapLevel> {
    OPEN.with(|open| open.borrow().clone())
}

/// Opens the same levels on a thread that has none of its own.
pub(in crate::autograd) fn restore(levels: Vec<VmapLevel>) {
    Key::FuncTorchVmapMode.include(!levels.is_empty());
    OPEN.with(|open| *open.borrow_mut() = levels);
}

/// Whether a level is open on this thread.
pub fn is_any_open() -> bool {
    OPEN.with(|open| !open.borrow().is_empty())
}

/// Whether the level of this number is open on this thread.
pub(in crate::autograd) fn is_open(id: u64) -> bool {
    OPEN.with(|open| open.borrow().iter().any(|level| level.id == id))
}

/// The open level of this number, if there is one.
pub(in crate::autograd) fn open(id: u64) -> Option<VmapLevel> {
    OPEN.with(|open| open.borrow().iter().find(|open| open.id == id).copied())
}

/// The innermost open level before the one whose batching rule is running.
pub(in crate::autograd) fn innermost_open() -> Option<VmapLevel> {
    let limit = RUNNING.get();
    OPEN.with(|open| open.borrow().iter().rev().find(|level| level.id < limit).copied())
}

/// A guard as long as which a level's batching rule is running.
pub(in crate::autograd) struct RunningRule(u64);

impl RunningRule {
    /// Marks the rule of a level as running.
    pub(in crate::autograd) fn of(level: u64) -> RunningRule {
        RunningRule(RUNNING.replace(level))
    }
}

impl Drop for RunningRule {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}
