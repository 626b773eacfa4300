//! The one place that starts threads.
//!
//! A small pool of our own: workers spin briefly for the next job, then park. One job runs at a
//! time; a caller that finds the pool busy (another thread's job, or its own outer one) does its
//! work alone, or as a member of a crew ([`together`]) with those members who wait. Invariant: work is split in blocks whose bounds depend only on the amount of work,
//! never on the number of threads, so results are the same bits for any number. The pool is never
//! shut down: idle workers sleep, and a forked child leaves the parent's pool alone and makes its own.

mod crew;
mod fallible;
mod gate;
mod member;
mod rows;

use crate::interrupt;
pub(crate) use fallible::RestartableBlocks;
pub use fallible::{try_for_range, try_for_restartable_range};
use gate::{Job, Shared, Sleeper, Work};
pub use member::{Member, together};
pub use rows::try_for_rows;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread::Thread;

/// What `set_num_threads` chose, or the default once asked for; 0 until then.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads a large kernel may use: what [`set_num_threads`] said, else `OMP_NUM_THREADS`,
/// else the processors that this process may run on.
#[inline]
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => default_threads(),
        n => n,
    }
}

#[cold]
fn default_threads() -> usize {
    let wanted = std::env::var("OMP_NUM_THREADS").ok().and_then(|v| v.trim().parse().ok());
    let threads = wanted
        .filter(|&n| n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
        .min(MAX_THREADS);
    // Another thread may have set a number in the meantime, which then stands.
    match THREADS.compare_exchange(0, threads, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => threads,
        Err(chosen) => chosen,
    }
}

/// Sets how many threads a large kernel may use (at least one).
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MAX_THREADS), Ordering::Relaxed);
}

/// The number of the last job that several threads shared. A test that compares it before and after
/// a call learns whether the call was shared.
pub fn last_job() -> u64 {
    ThreadPool::current().shared.epoch()
}

/// Calls `work` once for each block of `0..total`: blocks begin at multiples of `grain` and have
/// `grain` elements, the last what is left. Blocks run on several threads in any order; the call
/// returns when all are done. A panic of `work` reaches the caller (blocks not yet begun may then be skipped), and so does
/// an interruption, for which the calling thread looks before each block but the only one ([`interrupt::check`]).
pub fn for_range(total: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let grain = grain.max(1);
    let blocks = total.div_ceil(grain);
    if blocks > 1 {
        let threads = num_threads().min(blocks);
        if threads > 1
            && (ThreadPool::current().run(total, grain, threads, work)
                || member::share(total, grain, threads, work))
        {
            return;
        }
    }
    for block in 0..blocks {
        if blocks > 1 {
            interrupt::check();
        }
        work(block_range(total, grain, block));
    }
}

fn block_range(total: usize, grain: usize, block: usize) -> Range<usize> {
    block * grain..total.min((block + 1) * grain)
}

/// Most threads one job uses; what the fields of the gate's word hold.
const MAX_THREADS: usize = 0xffff;
/// Looks at the gate before a worker parks. Spinning lasts about what waking it costs (some 15 microseconds), so that
/// neither is ever paid much in vain; then come the yields.
const SPINS: u32 = 600 + YIELDS;
/// The number of these looks that yield the processor, so that a busy machine is not slowed by
/// waiting: some 50 microseconds, what a program does between two large ops.
const YIELDS: u32 = 120;

/// The panic payload of an interrupted caller.
fn interrupted(reason: interrupt::Reason) -> gate::Payload {
    Box::new(interrupt::Interrupted(reason))
}

struct Worker {
    thread: Thread,
    sleeper: Arc<Sleeper>,
}

struct ThreadPool {
    /// The process whose threads these are.
    pid: u32,
    /// Held by the one caller whose job runs.
    busy: AtomicBool,
    shared: Arc<Shared>,
    /// The workers; accessed only by the holder of `busy`.
    workers: UnsafeCell<Vec<Worker>>,
}

// SAFETY: `workers` is touched only by the holder of `busy`.
unsafe impl Sync for ThreadPool {}

static POOL: AtomicPtr<ThreadPool> = AtomicPtr::new(std::ptr::null_mut());

impl ThreadPool {
    /// This process's pool. No lock is involved, because a lock may be held at the moment of a fork.
    fn current() -> &'static ThreadPool {
        let pid = std::process::id();
        loop {
            let found = POOL.load(Ordering::Acquire);
            // SAFETY: pools are never freed.
            if let Some(pool) = unsafe { found.as_ref() }
                && pool.pid == pid
            {
                return pool;
            }
            let fresh = Box::into_raw(Box::new(ThreadPool::new(pid)));
            if POOL.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: made above and never shared.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }

    fn new(pid: u32) -> ThreadPool {
        ThreadPool {
            pid,
            busy: AtomicBool::new(false),
            shared: Arc::new(Shared::new()),
            workers: UnsafeCell::new(Vec::new()),
        }
    }

    /// Runs a job with up to `threads` threads, the caller among them; false if the pool is busy.
    fn run(&self, total: usize, grain: usize, threads: usize, work: &Work<'_>) -> bool {
        if self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let shared = &*self.shared;
        // (A worker looks whether the caller was interrupted.)
        let work = |range: Range<usize>| {
            interrupt::check();
            work(range);
        };
        // SAFETY: this thread holds `busy`, whose last holder finished its job; this one is finished below.
        unsafe { shared.open(Job::new(&work, total, grain, threads), threads - 1) };
        self.wake(threads - 1);
        shared.take_part();
        let panic = shared.finish(&|| interrupt::pending().map(interrupted));
        self.busy.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        true
    }

    /// Makes sure that `wanted` workers exist and look at the gate. The caller holds `busy`.
    fn wake(&self, wanted: usize) {
        // SAFETY: only the holder of `busy` comes here.
        let workers = unsafe { &mut *self.workers.get() };
        for worker in workers.iter().take(wanted) {
            worker.sleeper.wake(&worker.thread);
        }
        while workers.len() < wanted {
            let sleeper = Arc::new(Sleeper::new());
            let (shared, its) = (Arc::clone(&self.shared), Arc::clone(&sleeper));
            let life = move || {
                interrupt::with_stop_flag(shared.stop(), || {
                    loop {
                        shared.serve(&its);
                    }
                })
            };
            let name = format!("pullback-{}", workers.len());
            match std::thread::Builder::new().name(name).spawn(life) {
                Ok(handle) => workers.push(Worker { thread: handle.thread().clone(), sleeper }),
                // The machine has no more threads to give: those there are do the work.
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::sync::Mutex;

    fn covered(total: usize, grain: usize) -> Vec<Range<usize>> {
        let seen = Mutex::new(Vec::new());
        for_range(total, grain, &|range| seen.lock().unwrap().push(range));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|r| r.start);
        seen
    }

    #[test]
    fn blocks_are_the_same_for_any_number_of_threads() {
        let before = num_threads();
        let mut all = Vec::new();
        for threads in [1, 2, 3, 7] {
            set_num_threads(threads);
            all.push(covered(10_007, 100));
        }
        set_num_threads(before);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(all[0].len(), 101);
        assert_eq!(all[0][100], 10_000..10_007);
        assert!(covered(0, 5).is_empty());
        assert_eq!(covered(3, 0), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn several_callers_and_nested_calls_do_all_their_work() {
        set_num_threads(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let sum = AtomicUsize::new(0);
                        for_range(64, 1, &|outer| {
                            for_range(8, 2, &|inner| {
                                sum.fetch_add(outer.len() * inner.len(), Ordering::Relaxed);
                            });
                        });
                        assert_eq!(sum.into_inner(), 512);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        set_num_threads(3);
        for round in 0..50 {
            let outcome = catch_unwind(|| {
                for_range(100, 1, &|range| assert!(range.start != round, "block {round}"));
            });
            let message = *outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("block {round}"));
            assert_eq!(covered(100, 10).len(), 10);
        }
    }
}
