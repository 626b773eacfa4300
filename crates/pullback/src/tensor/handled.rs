//! Which tensors are marked: their ops are answered from outside (`dispatch::handler`), and their own elements mean nothing.

use super::Flag;
use crate::error::ensure;
use crate::{Result, Tensor};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many dispatch modes are on, levels of `vmap` are open and tensors are batched, of all threads together; the bit [`MARKED`] if any tensor was ever marked.
static USES: AtomicU32 = AtomicU32::new(0);
const MARKED: u32 = 1 << 31;
static DETACH: OnceLock<fn(&Tensor) -> Result<Tensor>> = OnceLock::new();

thread_local! {
    static IS_OFF: Cell<bool> = const { Cell::new(false) };
}

/// Whether marked tensors are ordinary ones and modes see nothing, on this thread from now on; gives what held before.
pub fn set_off(is_off: bool) -> bool {
    IS_OFF.replace(is_off)
}

/// Whether ops are left alone on this thread now, although tensors are marked or modes are on.
pub fn is_off() -> bool {
    IS_OFF.get()
}

/// Whether any tensor was ever marked, or a mode is on in any thread.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USES.load(Relaxed) != 0
}

/// Says that `count` more modes are on.
pub(crate) fn add_modes(count: usize) {
    USES.fetch_add(count as u32, Relaxed);
}

/// Says that `count` fewer modes are on.
pub(crate) fn remove_modes(count: usize) {
    USES.fetch_sub(count as u32, Relaxed);
}

/// Says how a marked tensor without history is made of one.
pub(crate) fn set_detach(detach: fn(&Tensor) -> Result<Tensor>) {
    let _ = DETACH.set(detach);
}

impl Tensor {
    /// The same without history, if it is marked: a mere handle to its memory would not be the same.
    #[inline(always)]
    pub(super) fn detached_by_op(&self) -> Option<Result<Tensor>> {
        if is_used() && self.is_handled_now() {
            return DETACH.get().map(|detach| detach(self));
        }
        None
    }
    /// Leaves the kernels of ops on this tensor to the handler.
    pub fn mark_handled(&self) {
        self.set_flag(Flag::HANDLED, true);
        USES.fetch_or(MARKED, Relaxed);
    }
    /// Whether the kernels of ops on this tensor are the handler's.
    pub fn is_handled(&self) -> bool {
        self.has_flag(Flag::HANDLED)
    }
    /// Whether that holds on this thread now.
    pub(crate) fn is_handled_now(&self) -> bool {
        let flags = self.flags();
        flags & Flag::BATCHED != 0 || flags & Flag::HANDLED != 0 && !IS_OFF.get()
    }
    /// Refuses to read the elements of a marked tensor past its handler.
    ///
    /// # Errors
    /// `NotImplementedError` that says so.
    pub fn check_elements(&self) -> Result<()> {
        ensure!(
            !self.has_flag(Flag::BATCHED),
            runtime,
            "vmap: the elements of a batched tensor cannot be read (a data-dependent operation): there are some for each example. Use ops instead, or return the tensor"
        );
        ensure!(
            !is_used() || !self.is_handled_now(),
            not_implemented,
            "the elements of a tensor whose class has __torch_dispatch__ can only be read by ops: it has none of its own"
        );
        Ok(())
    }
}
