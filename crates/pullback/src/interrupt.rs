//! Leaving a computation before its end: for a deadline, a signal, a caller who no longer wants the result.
//!
//! [`watch`] runs some work and calls a check at intervals, which decides whether the work
//! continues: in the middle of kernels that run long, and between the nodes of a backward. The
//! results of an interrupted op are dropped; what it wrote in place stays partly written, and its
//! version counts as written. In a Python program the check is whether a signal has arrived
//! ([`crate::host`]).

use crate::{Error, Result};
use pullback_kernels::interrupt::{self, Reason};
use std::any::Any;
use std::time::Duration;

pub use interrupt::INTERVAL;
pub(crate) use interrupt::{
    WorkCounter, check_every, chunks, receive, with_stop_flag, without_interrupts,
};

/// Returns, unless the work of this thread is to be interrupted: then it unwinds to the [`watch`]
/// around it. The library's own ops call this; a program's own long computations may call it too.
#[inline(always)]
pub fn check() {
    interrupt::check();
}

/// Runs `work` and calls `check` about every `interval` ([`INTERVAL`] is a good one), on this
/// thread and in the middle of its ops; if `check` fails, the work is interrupted.
///
/// # Errors
/// The error of `check`, else that of `work`.
///
/// # Examples
/// ```
/// use pullback::{Error, Tensor, interrupt};
/// use std::time::{Duration, Instant};
/// # fn main() -> pullback::Result<()> {
/// let start = Instant::now();
/// let deadline = || match start.elapsed() < Duration::from_millis(20) {
///     true => Ok(()),
///     false => Err(Error::runtime("out of time")),
/// };
/// let x = Tensor::from_slice(&vec![0.5_f32; 1 << 20], &[1 << 20])?;
/// let forever = || loop {
///     x.sin()?;
/// };
/// let error = interrupt::watch::<()>(Duration::from_millis(5), &deadline, forever).unwrap_err();
/// assert_eq!(error.message(), "out of time");
/// # Ok(())
/// # }
/// ```
pub fn watch<R>(
    interval: Duration,
    check: &dyn Fn() -> Result<()>,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let check = || check().err().map(boxed);
    interrupt::with_check(interval, &check, work).unwrap_or_else(|reason| Err(error_of(reason)))
}

/// Runs `work`; an interruption becomes its error.
pub(crate) fn caught<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    interrupt::catch(work).unwrap_or_else(|reason| Err(error_of(reason)))
}

/// An error as a reason for an interruption.
pub(crate) fn boxed(error: Error) -> Reason {
    Box::new(error)
}

/// The error of an interruption.
#[cold]
fn error_of(reason: Reason) -> Error {
    reason.downcast::<Error>().map_or_else(|_| Error::runtime("interrupted"), |error| *error)
}

/// The error that a panic stands for, if it is an interruption.
///
/// # Errors
/// Any other panic.
pub(crate) fn error_of_panic(
    panic: Box<dyn Any + Send>,
) -> std::result::Result<Error, Box<dyn Any + Send>> {
    panic.downcast::<interrupt::Interrupted>().map(|interrupted| error_of(interrupted.0))
}
