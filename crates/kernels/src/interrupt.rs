//! How a computation that takes long is left before its end: for Ctrl-C, a deadline, a caller who no longer wants it.
//!
//! Kernels call [`check`] between chunks of their work, each worth microseconds. Every so often that asks the check of the
//! thread: one that [`with_check`] gave for a stretch of work, or the one of the process. If there is a reason to stop, the
//! thread unwinds with [`Interrupted`] as its payload (no message is printed), to the caller of [`with_check`] or to the
//! boundary of a language binding, which both make an error of it. Threads that work for another one share a flag with it
//! ([`with_stop_flag`]) and stop when that is set.
//!
//! Invariants: without any check a call of [`check`] is one load; a check that says nothing changes no result; whoever
//! is unwound leaves partly written memory and nothing else behind.

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Why work is given up: for whoever pending for it.
pub type Reason = Box<dyn Any + Send>;

/// Whether the work of this thread is to be given up, and why.
pub type Check<'a> = dyn Fn() -> Option<Reason> + 'a;

/// What the unwinding of an interrupted thread carries.
pub struct Interrupted(pub Reason);

/// The reason of a thread that works for another one, which knows the true one.
struct StopFlagSet;

/// How often the check of the process is pending, and a thread that waits for another one looks up: an interruption is felt
/// as immediate below a quarter of a second, and a question ten times a second costs nothing.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Whether there has ever been a check or a flag to look at.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// The check of every thread that has none of its own.
static PROCESS_CHECK: OnceLock<fn() -> Option<Reason>> = OnceLock::new();

/// What a thread asks. (Nothing here needs to be dropped, so that it is found without asking whether it still lives.)
struct ThreadState {
    /// From when on the check is to be pending again, in milliseconds of the clock.
    due: Cell<u64>,
    /// Milliseconds between two questions.
    interval: Cell<u64>,
    /// The check that `with_check` gave.
    check: Cell<Option<&'static Check<'static>>>,
    /// The flag of the thread for which this one works.
    stop: Cell<Option<&'static AtomicBool>>,
    /// How many hold interruptions off.
    held: Cell<u32>,
}

thread_local! {
    static THREAD_STATE: ThreadState = const {
        ThreadState {
            due: Cell::new(0),
            interval: Cell::new(INTERVAL.as_millis() as u64),
            check: Cell::new(None),
            stop: Cell::new(None),
            held: Cell::new(0),
        }
    };
}

/// Unwinds if the work of this thread is to be given up. To be called between chunks of work that take microseconds or more.
#[inline(always)]
pub fn check() {
    if IS_ACTIVE.load(Relaxed) {
        check_now();
    }
}

#[inline(never)]
fn check_now() {
    if let Some(reason) = pending() {
        resume_unwind(Box::new(Interrupted(reason)));
    }
}

/// Calls [`check`] once for every `1 << SHIFT` values of a counter: for loops whose steps are too short to ask each time.
#[inline(always)]
pub fn check_every<const SHIFT: u32>(step: usize) {
    if step & ((1 << SHIFT) - 1) == (1 << SHIFT) - 1 {
        check();
    }
}

/// Steps of a loop that are one part of its work, some ten microseconds.
const CHUNK: usize = 1 << 14;

/// `0..n` in chunks, before each of which but the first this is a [`check`].
#[inline]
pub fn chunks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(CHUNK).map(move |start| {
        if start > 0 {
            check();
        }
        start..n.min(start + CHUNK)
    })
}

/// The order of two, for sorts and selections of so many that these take long: it looks for an interruption meanwhile.
pub fn interruptible_cmp<T: Ord>() -> impl FnMut(&T, &T) -> Ordering {
    let mut count = 0_usize;
    move |a, b| {
        check_every::<16>(count);
        count = count.wrapping_add(1);
        a.cmp(b)
    }
}

/// Counts work, and is a [`check`] once there was enough of it: for chunks that may be short or long.
#[derive(Default)]
pub struct WorkCounter(usize);

impl WorkCounter {
    /// Nothing done so far.
    pub const fn new() -> WorkCounter {
        WorkCounter(0)
    }
    /// So many steps of a nanosecond or less are about to be done.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_add(steps);
        if self.0 >= 2 * CHUNK {
            self.0 = 0;
            check();
        }
    }
}

/// Why the work of this thread is to be given up, if it is.
pub fn pending() -> Option<Reason> {
    if !IS_ACTIVE.load(Relaxed) {
        return None;
    }
    THREAD_STATE.with(|state| {
        if state.held.get() != 0 {
            return None;
        }
        if state.stop.get().is_some_and(|stop| stop.load(Relaxed)) {
            return Some(Box::new(StopFlagSet) as Reason);
        }
        let now = clock::milliseconds();
        if now < state.due.get() {
            return None;
        }
        state.due.set(now + state.interval.get());
        match state.check.get() {
            // (A check that computes is not pending about that.)
            Some(check) => without_interrupts(check),
            None => PROCESS_CHECK.get().and_then(|check| check()),
        }
    })
}

/// Says once what threads ask that have no check of their own. It may say yes only on a thread that is within a call
/// whose boundary knows [`Interrupted`].
pub fn set_process_check(check: fn() -> Option<Reason>) {
    let _ = PROCESS_CHECK.set(check);
    IS_ACTIVE.store(true, Relaxed);
}

/// Lets the interval to the next question restart_interval now: what just begins is not pending about at once.
#[inline]
pub fn restart_interval() {
    if IS_ACTIVE.load(Relaxed) {
        THREAD_STATE.with(|state| state.due.set(clock::milliseconds() + state.interval.get()));
    }
}

/// Runs `work` and asks `check` about every `interval` whether it is to be given up.
///
/// # Errors
/// The reason that the check gave. Other panics go on.
pub fn with_check<R>(
    interval: Duration,
    check: &Check<'_>,
    work: impl FnOnce() -> R,
) -> Result<R, Reason> {
    IS_ACTIVE.store(true, Relaxed);
    // SAFETY: only the lifetime changes; `RestoreOnDrop` takes the reference away before this function returns or unwinds.
    let check = unsafe { std::mem::transmute::<&Check<'_>, &'static Check<'static>>(check) };
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| {
        state.check.set(Some(check));
        state.interval.set(interval.as_millis() as u64);
    });
    restart_interval();
    catch(work)
}

/// Runs `work`; an interruption becomes its reason.
///
/// # Errors
/// If `work` was interrupted. Other panics go on.
pub fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Reason> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result),
        Err(panic) => match panic.downcast::<Interrupted>() {
            Ok(interrupted) => Err(interrupted.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Runs `work`, for another thread: it stops soon after `stop` was set.
pub fn with_stop_flag<R>(stop: &AtomicBool, work: impl FnOnce() -> R) -> R {
    // SAFETY: only the lifetime changes; `RestoreOnDrop` takes the reference away before this function returns or unwinds.
    let stop = unsafe { std::mem::transmute::<&AtomicBool, &'static AtomicBool>(stop) };
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| state.stop.set(Some(stop)));
    work()
}

/// Runs `work`, which is short or must come to its end, without interruption.
pub fn without_interrupts<R>(work: impl FnOnce() -> R) -> R {
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| state.held.set(state.held.get() + 1));
    work()
}

/// Puts back what the thread pending before, on every way out.
struct RestoreOnDrop {
    interval: u64,
    check: Option<&'static Check<'static>>,
    stop: Option<&'static AtomicBool>,
    held: u32,
}

impl RestoreOnDrop {
    fn now() -> RestoreOnDrop {
        THREAD_STATE.with(|state| RestoreOnDrop {
            interval: state.interval.get(),
            check: state.check.get(),
            stop: state.stop.get(),
            held: state.held.get(),
        })
    }
}

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        THREAD_STATE.with(|state| {
            state.interval.set(self.interval);
            state.check.set(self.check);
            state.stop.set(self.stop);
            state.held.set(self.held);
        });
    }
}

/// Multiply-adds from which on a call that cannot be cut into chunks has a thread of its own: some 10 milliseconds, against
/// 50 microseconds that the thread costs.
const OWN_THREAD_COST: usize = 1 << 26;

/// Whether a call of so many multiply-adds goes [`on_own_thread`].
pub fn needs_own_thread(cost: usize) -> bool {
    cost >= OWN_THREAD_COST && IS_ACTIVE.load(Relaxed)
}

/// Runs `work`, one call of about `cost` multiply-adds that nothing can interrupt. If it is long, that is on a thread of its
/// own, which owns all that it works with: an interrupted caller leaves, and the thread's result is dropped when it has one.
pub fn on_own_thread<R: Send + 'static>(
    cost: usize,
    work: impl FnOnce() -> R + Send + 'static,
) -> R {
    if !needs_own_thread(cost) {
        return work();
    }
    let (done, outcome) = channel();
    // The work is in a place from which it comes back if there is no thread to be had.
    let place = Arc::new(Mutex::new(Some(work)));
    let taken = {
        let place = Arc::clone(&place);
        move || place.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let run = {
        let taken = taken.clone();
        move || {
            if let Some(work) = taken() {
                // (Nobody waits for the result of an interrupted caller.)
                let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
            }
        }
    };
    let thread = std::thread::Builder::new().name("pullback-aside".into()).spawn(run);
    if thread.is_err()
        && let Some(work) = taken()
    {
        return work();
    }
    receive(&outcome).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits for what another thread sends, which it does in any case, and is interrupted meanwhile as kernels are.
pub fn receive<T>(outcome: &std::sync::mpsc::Receiver<T>) -> T {
    loop {
        match outcome.recv_timeout(INTERVAL / 2) {
            Ok(value) => return value,
            Err(RecvTimeoutError::Timeout) => check(),
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("a thread that works for another one answers before it ends")
            }
        }
    }
}

/// A clock that costs 4 nanoseconds, good for 4 milliseconds.
mod clock {
    /// Milliseconds since some moment in the past.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    pub(super) fn milliseconds() -> u64 {
        #[repr(C)]
        struct Time {
            seconds: i64,
            nanoseconds: i64,
        }
        // Of the C library, which the standard library links in any case; its own clock is the precise one.
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut Time) -> i32;
        }
        /// `CLOCK_MONOTONIC_COARSE`, as of the kernel's last tick.
        const COARSE: i32 = 6;
        let mut time = Time { seconds: 0, nanoseconds: 0 };
        // SAFETY: on 64-bit Linux a `timespec` is two signed words, which the call fills; it keeps no reference.
        unsafe { clock_gettime(COARSE, &raw mut time) };
        time.seconds as u64 * 1000 + time.nanoseconds as u64 / 1_000_000
    }

    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    pub(super) fn milliseconds() -> u64 {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn counted(limit: usize) -> impl Fn() -> Option<Reason> {
        let count = AtomicUsize::new(0);
        move || (count.fetch_add(1, Relaxed) + 1 == limit).then(|| Box::new(limit) as Reason)
    }

    #[test]
    fn work_stops_at_the_question_that_says_so_and_the_reason_arrives() {
        let steps = Cell::new(0);
        let work = || {
            (0..10).for_each(|_| {
                check();
                steps.set(steps.get() + 1);
            });
        };
        let reason = with_check(Duration::ZERO, &counted(4), work).unwrap_err();
        assert_eq!(*reason.downcast::<usize>().unwrap(), 4);
        assert_eq!(steps.get(), 3);
        // Nobody is pending outside of the with_check, and one that says nothing lets all be done.
        work();
        assert!(with_check(Duration::ZERO, &counted(100), work).is_ok());
        assert_eq!(steps.get(), 23);
    }

    #[test]
    fn an_inner_watch_and_a_hold_end_with_their_work() {
        let outer = counted(2);
        let result = with_check(Duration::ZERO, &outer, || {
            let inner = with_check(Duration::ZERO, &counted(1), check);
            assert!(inner.is_err());
            without_interrupts(|| (0..5).for_each(|_| check()));
            check();
            check();
        });
        assert!(result.is_err(), "the outer check was asked twice");
        let panicking = || without_interrupts(|| resume_unwind(Box::new(7_i32)));
        assert!(catch_unwind(panicking).is_err());
        assert!(
            with_check(Duration::ZERO, &counted(1), check).is_err(),
            "nothing is held off any more"
        );
    }

    #[test]
    fn the_interval_is_kept() {
        let count = Cell::new(0);
        let start = std::time::Instant::now();
        let counts = || {
            count.set(count.get() + 1);
            None
        };
        let interval = Duration::from_millis(20);
        let wait = || {
            while start.elapsed() < Duration::from_millis(200) {
                check();
            }
        };
        assert!(with_check(interval, &counts, wait).is_ok());
        assert!((1..=10).contains(&count.get()), "asked {} times", count.get());
    }

    #[test]
    fn one_long_call_is_left_while_it_runs() {
        let (go, gate) = channel::<()>();
        let held = Arc::new(());
        let own = Arc::clone(&held);
        let call = move || {
            let is_open = gate.recv().is_ok();
            drop(own);
            is_open
        };
        let start = std::time::Instant::now();
        let result =
            with_check(Duration::ZERO, &counted(1), || on_own_thread(OWN_THREAD_COST, call));
        assert!(result.is_err() && start.elapsed() < Duration::from_secs(2));
        go.send(()).unwrap();
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
        let value =
            with_check(Duration::ZERO, &counted(100), || on_own_thread(OWN_THREAD_COST, || 5));
        assert!(matches!(value, Ok(5)));
    }
}
