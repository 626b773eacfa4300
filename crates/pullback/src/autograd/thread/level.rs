//! Levels of forward mode: as long as one is open, tensors can have tangents at it.
//!
//! Levels belong to the process, so that a tangent is seen by every thread. A level knows its tangents weakly:
//! they live as long as their tensors, and at the latest until the level ends. [`enter`] allows one level at a time, as
//! PyTorch does; those of function transforms nest ([`enter_nested`]). An op on tensors with tangents at several levels goes
//! from the innermost to the outermost: what computes the tangents at one level sees those before it only ([`see`]).
//! Invariant: of a level's lock and a tangent's only one is held at a time, and no tensor is dropped under either.

use crate::error::{bail, ensure};
use crate::tensor::{Flag, Key, KeySet};
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The open levels by their numbers, the outermost first; `None` where a transform of another thread has ended its level.
static LEVELS: Mutex<Vec<Option<Arc<ForwardLevel>>>> = Mutex::new(Vec::new());
/// One more than the highest number of an open level: the word that every op reads.
static OPEN: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a level is open.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    OPEN.load(Relaxed) != 0
}

/// The layers that a call has to pass whose tensors' words together are `word`. Tangents belong to
/// the process and may have come to a view's base after the view was made: so views are examined
/// while a level of forward mode is open.
#[inline(always)]
pub(in crate::autograd) fn keys_of_word(word: u32) -> KeySet {
    let keys = KeySet::joined(word);
    if word & (Flag::DUAL | Flag::VIEW) != 0 && is_open() {
        return keys | Key::ForwardAD;
    }
    keys
}

thread_local! {
    /// The number of levels that this thread sees at most.
    static SEEN: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The number of the level that this thread opened last.
    static LAST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of open levels.
pub(in crate::autograd) fn open() -> usize {
    OPEN.load(Relaxed)
}

/// The number of levels that this thread sees: the outermost ones.
#[inline]
pub(crate) fn seen() -> usize {
    SEEN.get().min(OPEN.load(Relaxed))
}

/// A guard that restores the levels that a thread saw.
#[must_use = "it holds as long as the guard"]
pub(in crate::autograd) struct SeenLevels(usize);

/// Lets this thread see `count` levels.
pub(in crate::autograd) fn see(count: usize) -> SeenLevels {
    SeenLevels(SEEN.replace(count))
}

/// Hides the innermost level that the thread sees.
pub(in crate::autograd) fn below() -> SeenLevels {
    see(seen().saturating_sub(1))
}

impl Drop for SeenLevels {
    fn drop(&mut self) {
        SEEN.set(self.0);
    }
}

/// Whether the thread is outside of all that computes tangents, which sees some levels only.
pub(in crate::autograd) fn sees_all() -> bool {
    SEEN.get() == usize::MAX
}

/// The number of levels that [`see`] set on this thread, for another one.
pub(in crate::autograd) fn snapshot() -> usize {
    SEEN.get()
}

/// Sets the number of levels that this thread sees.
pub(in crate::autograd) fn restore(count: usize) {
    SEEN.set(count);
}

/// A level.
#[derive(Default)]
pub(in crate::autograd) struct ForwardLevel {
    number: usize,
    tangents: Mutex<Register>,
}

/// The tangents of a level, by their slots.
#[derive(Default)]
struct Register {
    is_closed: bool,
    slots: Vec<Weak<Tangent>>,
    free: Vec<usize>,
}

/// The tangent of a tensor at one level, until the level ends.
pub(in crate::autograd) struct Tangent {
    value: Mutex<Option<Tensor>>,
    level: Arc<ForwardLevel>,
    slot: usize,
}

impl Tangent {
    /// Registers a tangent, unless the level has ended.
    pub(in crate::autograd) fn new(
        level: &Arc<ForwardLevel>,
        value: Tensor,
    ) -> Option<Arc<Tangent>> {
        let mut register = lock(&level.tangents);
        if register.is_closed {
            // (The value is dropped after the lock.)
            return None;
        }
        let slot = register.free.pop().unwrap_or(register.slots.len());
        let made = Arc::new(Tangent { value: Mutex::new(Some(value)), level: level.clone(), slot });
        let known = Arc::downgrade(&made);
        match register.slots.get_mut(slot) {
            Some(old) => *old = known,
            None => register.slots.push(known),
        }
        Some(made)
    }
    /// The number of its level.
    pub(in crate::autograd) fn number(&self) -> usize {
        self.level.number
    }
    /// The tangent, if its level has not ended.
    pub(in crate::autograd) fn get(&self) -> Option<Tensor> {
        lock(&self.value).clone()
    }
    /// Replaces the tangent.
    pub(in crate::autograd) fn replace(&self, value: Tensor) {
        let old = {
            let mut held = lock(&self.value);
            // After the level's end there is nothing to replace, and nobody would take it away again.
            if held.is_some() { held.replace(value) } else { Some(value) }
        };
        drop(old);
    }
}

impl Drop for Tangent {
    fn drop(&mut self) {
        let mut register = lock(&self.level.tangents);
        if !register.is_closed {
            register.slots[self.slot] = Weak::new();
            register.free.push(self.slot);
        }
    }
}

/// The tangents that are kept with a tensor, one for each level.
pub(in crate::autograd) type KeptTangents = SmallVec<[Arc<Tangent>; 1]>;

/// Opens a level; returns its number.
///
/// # Errors
/// `RuntimeError` if there is one already.
pub(in crate::autograd) fn enter() -> Result<usize> {
    if is_open() {
        bail!(runtime, "Nested forward mode AD is not supported at the moment");
    }
    Ok(enter_nested())
}

/// Opens a level within the open ones; returns its number.
pub(in crate::autograd) fn enter_nested() -> usize {
    let mut levels = lock(&LEVELS);
    let number = levels.len();
    levels.push(Some(Arc::new(ForwardLevel { number, ..ForwardLevel::default() })));
    OPEN.store(levels.len(), Relaxed);
    LAST.set(number);
    number
}

/// The level that this thread opened last, if that is still open, else the innermost one.
pub(in crate::autograd) fn last() -> usize {
    let (last, seen) = (LAST.get(), seen());
    if last < seen { last } else { seen.saturating_sub(1) }
}

/// Ends a level: its tangents are dropped, whoever holds their tensors.
///
/// # Errors
/// `RuntimeError` unless it is the innermost one.
pub(in crate::autograd) fn exit(number: usize) -> Result<()> {
    let is_last = lock(&LEVELS).len() == number.wrapping_add(1);
    if !is_last || !exit_nested(number) {
        bail!(
            runtime,
            "Exiting a forward AD level that is not the last that was created is not support. Ensure they are released in the reverse order they were created."
        );
    }
    Ok(())
}

/// Ends a level of a transform; other threads may have opened levels since. Returns whether the
/// level was open.
pub(in crate::autograd) fn exit_nested(number: usize) -> bool {
    let level = {
        let mut levels = lock(&LEVELS);
        let level = levels.get_mut(number).and_then(Option::take);
        while levels.last().is_some_and(Option::is_none) {
            levels.pop();
        }
        OPEN.store(levels.len(), Relaxed);
        level
    };
    if LAST.get() == number {
        LAST.set(number.wrapping_sub(1));
    }
    let Some(level) = level else { return false };
    let slots = {
        let mut register = lock(&level.tangents);
        register.is_closed = true;
        std::mem::take(&mut register.slots)
    };
    for slot in slots {
        // Dropping a tangent may drop others, which find the register closed.
        let value = slot.upgrade().and_then(|tangent| lock(&tangent.value).take());
        drop(value);
    }
    true
}

/// The open level of this number.
///
/// # Errors
/// `RuntimeError` if there is none.
pub(in crate::autograd) fn get(number: usize) -> Result<Arc<ForwardLevel>> {
    let level = lock(&LEVELS).get(number).cloned().flatten();
    level.ok_or_else(no_such_level)
}

/// Refuses numbers that no level can have: without nesting there is only one.
pub(in crate::autograd) fn check(number: usize, caller: &str) -> Result<()> {
    let known = OPEN.load(Relaxed).max(1);
    ensure!(number < known, runtime, "Invalid level given to {caller}");
    Ok(())
}

#[cold]
fn no_such_level() -> crate::Error {
    crate::Error::runtime(
        "Trying to access a forward AD level with an invalid index. This index was either not created or is already deleted.",
    )
}
