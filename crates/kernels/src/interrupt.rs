//! How a computation that takes long is left before its end: for Ctrl-C, a deadline, a caller who no longer wants it.
//!
//! Kernels call [`check`] between parts of their work, each worth microseconds. Every so often that asks the check of the
//! thread: one that [`watch`] gave for a stretch of work, or the one of the process. If there is a reason to stop, the
//! thread unwinds with [`Interrupted`] as its payload (no message is printed), to the caller of [`watch`] or to the
//! boundary of a language binding, which both make an error of it. Threads that work for another one share a flag with it
//! ([`obeying`]) and stop when that is set.
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

/// Why work is given up: for whoever asked for it.
pub type Reason = Box<dyn Any + Send>;

/// Whether the work of this thread is to be given up, and why.
pub type Check<'a> = dyn Fn() -> Option<Reason> + 'a;

/// What the unwinding of an interrupted thread carries.
pub struct Interrupted(pub Reason);

/// The reason of a thread that works for another one, which knows the true one.
struct Stopped;

/// How often the check of the process is asked, and a thread that waits for another one looks up: an interruption is felt
/// as immediate below a quarter of a second, and a question ten times a second costs nothing.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Whether there has ever been a check or a flag to look at.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// The check of every thread that has none of its own.
static PROCESS: OnceLock<fn() -> Option<Reason>> = OnceLock::new();

/// What a thread asks. (Nothing here needs to be dropped, so that it is found without asking whether it still lives.)
struct Watch {
    /// From when on the check is to be asked again, in milliseconds of the clock.
    due: Cell<u64>,
    /// Milliseconds between two questions.
    interval: Cell<u64>,
    /// The check that `watch` gave.
    check: Cell<Option<&'static Check<'static>>>,
    /// The flag of the thread for which this one works.
    stop: Cell<Option<&'static AtomicBool>>,
    /// How many hold interruptions off.
    held: Cell<u32>,
}

thread_local! {
    static WATCH: Watch = const {
        Watch {
            due: Cell::new(0),
            interval: Cell::new(INTERVAL.as_millis() as u64),
            check: Cell::new(None),
            stop: Cell::new(None),
            held: Cell::new(0),
        }
    };
}

/// Unwinds if the work of this thread is to be given up. To be called between parts of work that take microseconds or more.
#[inline(always)]
pub fn check() {
    if IS_USED.load(Relaxed) {
        check_now();
    }
}

#[inline(never)]
fn check_now() {
    if let Some(reason) = asked() {
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
const PART: usize = 1 << 14;

/// `0..n` in parts, before each of which but the first this is a [`check`].
#[inline]
pub fn parts(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(PART).map(move |start| {
        if start > 0 {
            check();
        }
        start..n.min(start + PART)
    })
}

/// The order of two, for sorts and selections of so many that these take long: it looks for an interruption meanwhile.
pub fn compared<T: Ord>() -> impl FnMut(&T, &T) -> Ordering {
    let mut count = 0_usize;
    move |a, b| {
        check_every::<16>(count);
        count = count.wrapping_add(1);
        a.cmp(b)
    }
}

/// Counts work, and is a [`check`] once there was enough of it: for parts that may be short or long.
#[derive(Default)]
pub struct Pace(usize);

impl Pace {
    /// Nothing done so far.
    pub const fn new() -> Pace {
        Pace(0)
    }
    /// So many steps of a nanosecond or less are about to be done.
    #[inline(always)]
    pub fn spend(&mut self, steps: usize) {
        self.0 = self.0.saturating_add(steps);
        if self.0 >= 2 * PART {
            self.0 = 0;
            check();
        }
    }
}

/// Why the work of this thread is to be given up, if it is.
pub fn asked() -> Option<Reason> {
    if !IS_USED.load(Relaxed) {
        return None;
    }
    WATCH.with(|watch| {
        if watch.held.get() != 0 {
            return None;
        }
        if watch.stop.get().is_some_and(|stop| stop.load(Relaxed)) {
            return Some(Box::new(Stopped) as Reason);
        }
        let now = clock::milliseconds();
        if now < watch.due.get() {
            return None;
        }
        watch.due.set(now + watch.interval.get());
        match watch.check.get() {
            // (A check that computes is not asked about that.)
            Some(check) => hold_off(check),
            None => PROCESS.get().and_then(|check| check()),
        }
    })
}

/// Says once what threads ask that have no check of their own. It may say yes only on a thread that is within a call
/// whose boundary knows [`Interrupted`].
pub fn set_process_check(check: fn() -> Option<Reason>) {
    let _ = PROCESS.set(check);
    IS_USED.store(true, Relaxed);
}

/// Lets the interval to the next question begin now: what just begins is not asked about at once.
#[inline]
pub fn begin() {
    if IS_USED.load(Relaxed) {
        WATCH.with(|watch| watch.due.set(clock::milliseconds() + watch.interval.get()));
    }
}

/// Runs `work` and asks `check` about every `interval` whether it is to be given up.
///
/// # Errors
/// The reason that the check gave. Other panics go on.
pub fn watch<R>(
    interval: Duration,
    check: &Check<'_>,
    work: impl FnOnce() -> R,
) -> Result<R, Reason> {
    IS_USED.store(true, Relaxed);
    // SAFETY: only the lifetime changes; `Restored` takes the reference away before this function returns or unwinds.
    let check = unsafe { std::mem::transmute::<&Check<'_>, &'static Check<'static>>(check) };
    let _restored = Restored::now();
    WATCH.with(|watch| {
        watch.check.set(Some(check));
        watch.interval.set(interval.as_millis() as u64);
    });
    begin();
    caught(work)
}

/// Runs `work`; an interruption becomes its reason.
///
/// # Errors
/// If `work` was interrupted. Other panics go on.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Reason> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result),
        Err(panic) => match panic.downcast::<Interrupted>() {
            Ok(interrupted) => Err(interrupted.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Runs `work`, for another thread: it stops soon after `stop` was set.
pub fn obeying<R>(stop: &AtomicBool, work: impl FnOnce() -> R) -> R {
    // SAFETY: only the lifetime changes; `Restored` takes the reference away before this function returns or unwinds.
    let stop = unsafe { std::mem::transmute::<&AtomicBool, &'static AtomicBool>(stop) };
    let _restored = Restored::now();
    WATCH.with(|watch| watch.stop.set(Some(stop)));
    work()
}

/// Runs `work`, which is short or must come to its end, without interruption.
pub fn hold_off<R>(work: impl FnOnce() -> R) -> R {
    let _restored = Restored::now();
    WATCH.with(|watch| watch.held.set(watch.held.get() + 1));
    work()
}

/// Puts back what the thread asked before, on every way out.
struct Restored {
    interval: u64,
    check: Option<&'static Check<'static>>,
    stop: Option<&'static AtomicBool>,
    held: u32,
}

impl Restored {
    fn now() -> Restored {
        WATCH.with(|watch| Restored {
            interval: watch.interval.get(),
            check: watch.check.get(),
            stop: watch.stop.get(),
            held: watch.held.get(),
        })
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        WATCH.with(|watch| {
            watch.interval.set(self.interval);
            watch.check.set(self.check);
            watch.stop.set(self.stop);
            watch.held.set(self.held);
        });
    }
}

/// Multiply-adds from which on a call that cannot be cut into parts has a thread of its own: some 10 milliseconds, against
/// 50 microseconds that the thread costs.
const ASIDE: usize = 1 << 26;

/// Whether a call of so many multiply-adds goes [`aside`].
pub fn is_long(cost: usize) -> bool {
    cost >= ASIDE && IS_USED.load(Relaxed)
}

/// Runs `work`, one call of about `cost` multiply-adds that nothing can interrupt. If it is long, that is on a thread of its
/// own, which owns all that it works with: an interrupted caller leaves, and the thread's result is dropped when it has one.
pub fn aside<R: Send + 'static>(cost: usize, work: impl FnOnce() -> R + Send + 'static) -> R {
    if !is_long(cost) {
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
    received(&outcome).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits for what another thread sends, which it does in any case, and is interrupted meanwhile as kernels are.
pub fn received<T>(outcome: &std::sync::mpsc::Receiver<T>) -> T {
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
        let asked = AtomicUsize::new(0);
        move || (asked.fetch_add(1, Relaxed) + 1 == limit).then(|| Box::new(limit) as Reason)
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
        let reason = watch(Duration::ZERO, &counted(4), work).unwrap_err();
        assert_eq!(*reason.downcast::<usize>().unwrap(), 4);
        assert_eq!(steps.get(), 3);
        // Nobody is asked outside of the watch, and one that says nothing lets all be done.
        work();
        assert!(watch(Duration::ZERO, &counted(100), work).is_ok());
        assert_eq!(steps.get(), 23);
    }

    #[test]
    fn an_inner_watch_and_a_hold_end_with_their_work() {
        let outer = counted(2);
        let result = watch(Duration::ZERO, &outer, || {
            let inner = watch(Duration::ZERO, &counted(1), check);
            assert!(inner.is_err());
            hold_off(|| (0..5).for_each(|_| check()));
            check();
            check();
        });
        assert!(result.is_err(), "the outer check was asked twice");
        let panicking = || hold_off(|| resume_unwind(Box::new(7_i32)));
        assert!(catch_unwind(panicking).is_err());
        assert!(watch(Duration::ZERO, &counted(1), check).is_err(), "nothing is held off any more");
    }

    #[test]
    fn the_interval_is_kept() {
        let asked = Cell::new(0);
        let start = std::time::Instant::now();
        let counts = || {
            asked.set(asked.get() + 1);
            None
        };
        let interval = Duration::from_millis(20);
        let wait = || {
            while start.elapsed() < Duration::from_millis(200) {
                check();
            }
        };
        assert!(watch(interval, &counts, wait).is_ok());
        assert!((1..=10).contains(&asked.get()), "asked {} times", asked.get());
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
        let result = watch(Duration::ZERO, &counted(1), || aside(ASIDE, call));
        assert!(result.is_err() && start.elapsed() < Duration::from_secs(2));
        go.send(()).unwrap();
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
        let value = watch(Duration::ZERO, &counted(100), || aside(ASIDE, || 5));
        assert!(matches!(value, Ok(5)));
    }
}
