//! The transforms of functions (`grad`, `vjp`, `jvp`) that a thread has begun, and the writes that they refuse.
//!
//! A function that is transformed must not write in place to a tensor that it captured: the transform would not see the write,
//! and the tensor would change although transformed functions have no effects. Captured is what was made before
//! the innermost transform began ([`crate::tensor::birth`]), and its views; a transform's inputs are its own ([`own`]). Only the
//! call that a program makes is looked at, not those of which an op is made. Where no transform is open, a write reads one word
//! for this.

use super::{level, mode};
use crate::dispatch::{OpDef, Traits};
use crate::tensor::birth;
use crate::{Error, Result, Tensor};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many transforms are open, of all threads together.
static OPEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The numbers of this thread's open transforms, the outermost first.
    static NUMBERS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// Whether the writes of this thread are not looked at.
    static UNCHECKED: Cell<bool> = const { Cell::new(false) };
}

/// Begins a transform on this thread; gives its number.
pub fn enter() -> u32 {
    let number = birth::begin_transform();
    NUMBERS.with(|numbers| numbers.borrow_mut().push(number));
    OPEN.fetch_add(1, Relaxed);
    number
}

/// Ends the transform of this number, if it is open on this thread.
pub fn exit(number: u32) {
    let is_mine = NUMBERS.with(|numbers| {
        let mut numbers = numbers.borrow_mut();
        let position = numbers.iter().rposition(|&known| known == number);
        position.map(|position| numbers.remove(position)).is_some()
    });
    if is_mine {
        OPEN.fetch_sub(1, Relaxed);
    }
}

/// Whether a transform is open on this thread.
pub fn is_open() -> bool {
    OPEN.load(Relaxed) != 0 && NUMBERS.with(|numbers| !numbers.borrow().is_empty())
}

/// Makes these tensors the innermost transform's own, which its function may write to, unless a transform around it may not.
pub fn own<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) {
    NUMBERS.with(|numbers| {
        let numbers = numbers.borrow();
        let [outer @ .., inner] = numbers.as_slice() else { return };
        for tensor in tensors {
            if outer.last().is_none_or(|&around| tensor.birth() >= around) {
                tensor.set_birth(*inner);
            }
        }
    });
}

/// A guard as long as which this thread's writes are not looked at.
pub(in crate::autograd) struct Unchecked(bool);

impl Drop for Unchecked {
    fn drop(&mut self) {
        UNCHECKED.set(self.0);
    }
}

/// Lets the thread write to any tensor while a transform is open: for forms with `out=` and for
/// lists of tensors, which transforms do not see.
#[inline(always)]
pub(in crate::autograd) fn uncheck() -> Option<Unchecked> {
    (OPEN.load(Relaxed) != 0).then(|| Unchecked(UNCHECKED.replace(true)))
}

/// Refuses that a program lets an op write to a tensor that an open transform's function captured.
#[inline(always)]
pub(in crate::autograd) fn check_write(def: &OpDef, target: &Tensor) -> Result<()> {
    if OPEN.load(Relaxed) == 0 { Ok(()) } else { check_birth(def, target) }
}

/// As [`check_write`], for a change that is no op and has this name in PyTorch.
#[inline(always)]
pub(crate) fn check_change(name: &str, target: &Tensor) -> Result<()> {
    if OPEN.load(Relaxed) != 0 && is_captured(target) { Err(refused(name)) } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn check_birth(def: &OpDef, target: &Tensor) -> Result<()> {
    if !is_captured(target) {
        return Ok(());
    }
    let underscore = if def.is(Traits::INPLACE_ONLY) { "" } else { "_" };
    let dot = if def.overload.is_empty() { "" } else { "." };
    Err(refused(&format!("{}{underscore}{dot}{}", def.name, def.overload)))
}

/// Whether the innermost transform's function captured the tensor, and this is a call that the program makes.
#[cold]
fn is_captured(target: &Tensor) -> bool {
    let innermost = NUMBERS.with(|numbers| numbers.borrow().last().copied());
    innermost.is_some_and(|number| target.birth() < number)
        && !UNCHECKED.get()
        && !mode::is_tracking_excluded()
        && level::sees_all()
}

#[cold]
fn refused(name: &str) -> Error {
    Error::runtime(format!(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (aten::{name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
    ))
}
