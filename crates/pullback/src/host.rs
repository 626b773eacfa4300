//! The host: the binding of a program that is not written in Rust, and the functions that the
//! library calls in it.
//!
//! A binding implements [`Host`] and registers it before the first call ([`set_host`]); a Rust
//! program has no host. This is the only way by which the library calls into a binding that it does
//! not know (`cargo xtask tidy` refuses functions that are set at run time elsewhere); the kernels,
//! a crate below, are told by [`set_host`] whom to ask about interrupts. Invariant: a host is set
//! once and stays.

use crate::autograd::anomaly::AnomalyRecorder;
use crate::call_site::SourceLine;
use crate::{Result, Tensor};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// The functions of a binding that the library calls.
pub trait Host: Sync {
    /// A number for the line that the program is at on this thread, less than 2^63; 0 if that is not known, or if this
    /// thread does not run the program.
    fn line(&self) -> u64;
    /// Numbers for the lines that led the program to where it is on this thread, innermost first; none if this thread does
    /// not run the program. It may wait for the binding's lock.
    fn call_stack(&self) -> Vec<u64>;
    /// The line that a number stands for, if that is still known.
    fn source_line(&self, line: u64) -> Option<SourceLine>;
    /// Called in the middle of long calls, on every thread that has no check of its own
    /// (`crate::interrupt`).
    ///
    /// # Errors
    /// An error gives the call up. It may be given only on a thread whose call into the library ends at a boundary that knows
    /// `binding::interruption`.
    fn check_interrupt(&self) -> Result<()>;
    /// Captures what the host keeps for this thread. Where a backward goes on in another thread, that thread calls the closure
    /// first.
    fn thread_state(&self) -> Box<dyn FnOnce() + Send>;
    /// The recorder of the places where nodes were made, in anomaly mode.
    fn anomaly_recorder(&self) -> &dyn AnomalyRecorder;
    /// Called when the last handle goes of a tensor that keeps its host's object alive ([`Tensor::set_owns_python`]): the object,
    /// which the program may still use, has the tensor from now on, by [`Tensor::revive`].
    fn tensor_released(&self, object: *mut (), tensor: ManuallyDrop<Tensor>);
    /// Called when the last handle goes of a storage that keeps its host's object alive
    /// ([`Storage::give_python`](crate::Storage::give_python)): the object, which has a handle that is not counted, has the
    /// storage from now on.
    fn storage_released(&self, object: *mut ());
    /// Called when a tensor has got another dtype, which its object may show.
    fn dtype_changed(&self, tensor: &Tensor);
}

static HOST: OnceLock<&'static dyn Host> = OnceLock::new();

/// Sets the host of the process; further calls do nothing. (A second host would not know the numbers of the first.)
pub fn set_host(host: &'static dyn Host) {
    if HOST.set(host).is_ok() {
        pullback_kernels::interrupt::set_process_check(|| {
            HOST.get()?.check_interrupt().err().map(crate::interrupt::boxed)
        });
    }
}

/// The host, if there is one.
#[inline(always)]
pub(crate) fn host() -> Option<&'static dyn Host> {
    HOST.get().copied()
}
