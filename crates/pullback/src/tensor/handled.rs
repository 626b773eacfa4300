//! Which tensors are marked: their ops are answered from outside (`dispatch::handler`), and their own elements mean nothing.

use super::{Device, Flag, Version, shares_storage};
use crate::error::ensure;
use crate::{Result, Tensor};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Who may answer ops in the place of their kernels, of all threads together: in the lower half how many dispatch modes are on,
/// levels of `vmap` are open and tensors are batched, and one if devices are simulated; above that how many special tensors there are, whose elements are not
/// what their memory holds (sparse ones, and unresolved ones); and the bit [`MARKED`] if any tensor was ever marked.
static USES: AtomicU64 = AtomicU64::new(0);
const SPECIAL: u64 = 1 << 32;
const MARKED: u64 = 1 << 63;
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

/// Whether any tensor was ever marked, or is special, or a mode is on in any thread.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USES.load(Relaxed) != 0
}

/// The same, special tensors aside: whether ops may be asked for that no kernel computes.
#[inline(always)]
pub(crate) fn is_used_by_others() -> bool {
    USES.load(Relaxed) & !(MARKED - SPECIAL) != 0
}

/// Says that there is a special tensor more.
pub(super) fn add_special() {
    USES.fetch_add(SPECIAL, Relaxed);
}

/// Says that there is one less.
pub(super) fn remove_special() {
    USES.fetch_sub(SPECIAL, Relaxed);
}

/// Says that `count` more modes, levels or batched tensors are there.
pub(crate) fn add_users(count: usize) {
    USES.fetch_add(count as u64, Relaxed);
}

/// Says that `count` fewer are.
pub(crate) fn remove_users(count: usize) {
    USES.fetch_sub(count as u64, Relaxed);
}

/// Says how a marked tensor without history is made of one.
pub(crate) fn set_detach(detach: fn(&Tensor) -> Result<Tensor>) {
    let _ = DETACH.set(detach);
}

impl Tensor {
    /// The same without history, if it is marked: a mere handle to its memory would not be the same.
    #[inline(always)]
    pub(super) fn detached_by_op(&self) -> Option<Result<Tensor>> {
        if is_used() && self.is_marked_now() {
            return DETACH.get().map(|detach| detach(self));
        }
        None
    }
    /// Lets this marked tensor, which is a view of `source` or its alias but has other memory, share its version counter.
    #[inline]
    pub(crate) fn follow_version_of(&self, source: &Tensor) {
        if self.flags() & (Flag::HANDLED | Flag::BATCHED) == Flag::HANDLED
            && !shares_storage(self, source)
        {
            self.share_version(source);
        }
    }
    #[cold]
    fn share_version(&self, source: &Tensor) {
        // (Two threads must not both give the source a counter.)
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let of_source = source.geometry();
        let counter = of_source.version.clone().unwrap_or_else(|| {
            let forked = source.version_counter().map_or_else(|| Version::new(0), Version::fork);
            let counter = Arc::new(forked);
            let version = Some(counter.clone());
            source.set_geometry(of_source.clone().with_version(version));
            counter
        });
        self.set_geometry(self.geometry().clone().with_version(Some(counter)));
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
    pub(crate) fn is_marked_now(&self) -> bool {
        let flags = self.flags();
        flags & Flag::BATCHED != 0 || flags & Flag::HANDLED != 0 && !IS_OFF.get()
    }
    /// Whether kernels cannot take it as it is on this thread now: it is marked, special, or on a device.
    pub(crate) fn is_handled_now(&self) -> bool {
        self.has_flag(Flag::SPARSE | Flag::UNRESOLVED)
            || self.is_marked_now()
            || self.is_on_device()
    }
    /// Whether it lives elsewhere than in main memory.
    pub(crate) fn is_on_device(&self) -> bool {
        self.device() != Device::Cpu
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
            !self.is_sparse(),
            type_error,
            "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.",
            self.layout().spelled()
        );
        ensure!(
            !is_used() || !self.is_marked_now(),
            not_implemented,
            "the elements of a tensor whose class has __torch_dispatch__ can only be read by ops: it has none of its own"
        );
        Ok(())
    }
}
