//! Interrupting a long computation: for Ctrl-C, a deadline, or a caller that no longer needs the result.
//!
//! Kernels call [`check`] between chunks of their work, each worth microseconds. At intervals, [`check`] calls the thread's
//! check function: the one that [`with_check`] installed, or else that of the process ([`set_process_check`]). If there is a reason to stop, the
//! thread unwinds with [`Interrupted`] as its payload (no message is printed), to the caller of [`with_check`] or to the
//! boundary of a language binding, which both make an error of it. Threads that work for another one share a flag with it
//! ([`with_stop_flag`]) and stop when that is set.
//!
//! Invariants: while no check function is installed, a call of [`check`] costs one load; a check that returns `None` changes no
//! result; an interrupted kernel leaves partly written outputs and no other trace.

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The reason for an interruption, handed to the caller of [`with_check`] or [`catch`].
pub type Reason = Box<dyn Any + Send>;

/// A check function: returns the reason to interrupt the work of this thread, or `None` to continue.
pub type InterruptCheck<'a> = dyn Fn() -> Option<Reason> + 'a;

/// The panic payload with which an interrupted thread unwinds.
pub struct Interrupted(pub Reason);

/// The reason of a thread that stopped because its stop flag was set; the thread that set the flag knows the original reason.
struct StopFlagSet;

/// The interval at which the check function of the process is called, and at which a thread that waits for another one looks
/// for an interruption. Users perceive less than a quarter of a second as immediate, and ten calls a second cost nothing.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Whether a check function or a stop flag has ever been installed.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// The check function of every thread that has none of its own.
static PROCESS_CHECK: OnceLock<fn() -> Option<Reason>> = OnceLock::new();

/// The check function and stop flag of a thread. (No field has a destructor, so that the access needs no liveness test.)
struct InterruptState {
    /// The time of the next call of the check function, in milliseconds of [`clock`].
    due: Cell<u64>,
    /// Milliseconds between two calls of the check function.
    interval: Cell<u64>,
    /// The check function that [`with_check`] installed.
    check: Cell<Option<&'static InterruptCheck<'static>>>,
    /// The flag of the thread for which this one works.
    stop: Cell<Option<&'static AtomicBool>>,
    /// The number of active calls of [`without_interrupts`].
    held: Cell<u32>,
}

thread_local! {
    static THREAD_STATE: InterruptState = const {
        InterruptState {
            due: Cell::new(0),
            interval: Cell::new(INTERVAL.as_millis() as u64),
            check: Cell::new(None),
            stop: Cell::new(None),
            held: Cell::new(0),
        }
    };
}

/// Unwinds with [`Interrupted`] if the work of this thread is to be interrupted. Kernels call it between chunks of work that
/// take microseconds or more.
///
/// # Panics
/// By design: the interruption is a panic with the payload [`Interrupted`].
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

/// Calls [`check`] once for every `1 << SHIFT` values of the counter `step`, for loops whose steps are too short for a call each.
#[inline(always)]
pub fn check_every<const SHIFT: u32>(step: usize) {
    if step & ((1 << SHIFT) - 1) == (1 << SHIFT) - 1 {
        check();
    }
}

/// Steps of a loop between two calls of [`check`]: some ten microseconds.
const CHUNK: usize = 1 << 14;

/// Splits `0..n` into chunks and calls [`check`] before each chunk but the first.
#[inline]
pub fn chunks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(CHUNK).map(move |start| {
        if start > 0 {
            check();
        }
        start..n.min(start + CHUNK)
    })
}

/// A comparison function that calls [`check`] at intervals, for sorts and selections that take long.
pub fn interruptible_cmp<T: Ord>() -> impl FnMut(&T, &T) -> Ordering {
    let mut count = 0_usize;
    move |a, b| {
        check_every::<16>(count);
        count = count.wrapping_add(1);
        a.cmp(b)
    }
}

/// Counts steps of work and calls [`check`] once enough have been counted, for loops whose chunks differ in length.
#[derive(Default)]
pub struct WorkCounter(usize);

impl WorkCounter {
    /// A counter at zero.
    pub const fn new() -> WorkCounter {
        WorkCounter(0)
    }
    /// Counts `steps` steps, of a nanosecond or less each, that are about to be done.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_add(steps);
        if self.0 >= 2 * CHUNK {
            self.0 = 0;
            check();
        }
    }
}

/// The reason to interrupt the work of this thread, if there is one. Calls the check function if its interval has passed.
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
            // A check function that itself runs kernels must not be interrupted.
            Some(check) => without_interrupts(check),
            None => PROCESS_CHECK.get().and_then(|check| check()),
        }
    })
}

/// Installs the check function of all threads that have none of their own; only the first call has an effect. The function
/// may return a reason only on a thread whose outermost call catches [`Interrupted`].
pub fn set_process_check(check: fn() -> Option<Reason>) {
    let _ = PROCESS_CHECK.set(check);
    IS_ACTIVE.store(true, Relaxed);
}

/// Restarts the interval to the next call of the check function, so that work that just begins is not checked at once.
#[inline]
pub fn restart_interval() {
    if IS_ACTIVE.load(Relaxed) {
        THREAD_STATE.with(|state| state.due.set(clock::milliseconds() + state.interval.get()));
    }
}

/// Runs `work` and calls `check` about every `interval`; if it returns a reason, `work` is interrupted.
///
/// # Errors
/// The reason that `check` returned. Panics other than interruptions propagate.
pub fn with_check<R>(
    interval: Duration,
    check: &InterruptCheck<'_>,
    work: impl FnOnce() -> R,
) -> Result<R, Reason> {
    IS_ACTIVE.store(true, Relaxed);
    // SAFETY: only the lifetime changes; `RestoreOnDrop` takes the reference away before this function returns or unwinds.
    let check = unsafe {
        std::mem::transmute::<&InterruptCheck<'_>, &'static InterruptCheck<'static>>(check)
    };
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| {
        state.check.set(Some(check));
        state.interval.set(interval.as_millis() as u64);
    });
    restart_interval();
    catch(work)
}

/// Runs `work` and catches an interruption.
///
/// # Errors
/// The reason, if `work` was interrupted. Panics other than interruptions propagate.
pub fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Reason> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result),
        Err(panic) => match panic.downcast::<Interrupted>() {
            Ok(interrupted) => Err(interrupted.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Runs `work` on behalf of another thread: it is interrupted soon after `stop` is set.
pub fn with_stop_flag<R>(stop: &AtomicBool, work: impl FnOnce() -> R) -> R {
    // SAFETY: only the lifetime changes; `RestoreOnDrop` takes the reference away before this function returns or unwinds.
    let stop = unsafe { std::mem::transmute::<&AtomicBool, &'static AtomicBool>(stop) };
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| state.stop.set(Some(stop)));
    work()
}

/// Runs `work`, which is short or must complete, without interruptions.
pub fn without_interrupts<R>(work: impl FnOnce() -> R) -> R {
    let _restored = RestoreOnDrop::now();
    THREAD_STATE.with(|state| state.held.set(state.held.get() + 1));
    work()
}

/// Restores the thread's check function, interval and stop flag when it is dropped.
struct RestoreOnDrop {
    interval: u64,
    check: Option<&'static InterruptCheck<'static>>,
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

/// Multiply-adds from which a call that cannot be split runs on a thread of its own: some 10 milliseconds, where the thread
/// costs 50 microseconds.
const OWN_THREAD_COST: usize = 1 << 26;

/// Whether [`on_own_thread`] starts a thread for a call of `cost` multiply-adds.
pub fn needs_own_thread(cost: usize) -> bool {
    cost >= OWN_THREAD_COST && IS_ACTIVE.load(Relaxed)
}

/// Runs `work`, a single uninterruptible call of about `cost` multiply-adds. A long one runs on a thread of its own that owns
/// its operands, so that an interrupted caller can return at once; the thread's result is then dropped.
///
/// # Panics
/// With the panic of `work`, or with [`Interrupted`].
pub fn on_own_thread<R: Send + 'static>(
    cost: usize,
    work: impl FnOnce() -> R + Send + 'static,
) -> R {
    if !needs_own_thread(cost) {
        return work();
    }
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    run_aside(Box::new(move || {
        let value = work();
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }));
    let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.unwrap_or_else(|| unreachable!("the work has ended without a panic"))
}

/// Runs `work` on a thread of its own and waits for its end, or here if no thread can be started.
///
/// It is apart from [`on_own_thread`], whose results have many types, so that threads and channels are compiled once.
///
/// # Panics
/// As [`on_own_thread`].
fn run_aside(work: Box<dyn FnOnce() + Send>) {
    let (done, outcome) = channel();
    // The closure is kept in a shared slot, from which it is taken back if no thread can be started.
    let slot = Arc::new(Mutex::new(Some(work)));
    let taken = {
        let slot = Arc::clone(&slot);
        move || slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let run = {
        let taken = taken.clone();
        move || {
            if let Some(work) = taken() {
                // (Nobody waits for the end of what an interrupted caller wanted.)
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
    receive(&outcome).unwrap_or_else(|panic| resume_unwind(panic));
}

/// Waits for the value that another thread sends and calls [`check`] while it waits.
///
/// # Panics
/// With [`Interrupted`]; and if the sender is dropped without sending.
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
        // Outside of `with_check` no check function is called, and one that returns `None` lets all work be done.
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
