//! The one place that starts threads.
//!
//! A small pool of our own: workers spin briefly for the next job, then park. One job runs at a
//! time; a caller that finds the pool busy (another thread's job, or its own outer one) does its
//! work alone. Invariant: work is split in blocks whose bounds depend only on the amount of work,
//! never on the number of threads, so results are the same bits for any number. The pool is never
//! shut down: idle workers sleep, and a forked child leaves the parent's pool alone and makes its own.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Calls `work` once for each block of `0..total`: blocks begin at multiples of `grain` and have
/// `grain` elements, the last what is left. Blocks run on several threads in any order; the call
/// returns when all are done. A panic of `work` reaches the caller (blocks not yet begun may then be skipped).
pub fn for_range(total: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let grain = grain.max(1);
    let blocks = total.div_ceil(grain);
    if blocks > 1 {
        let threads = num_threads().min(blocks);
        if threads > 1 && Pool::current().run(total, grain, threads, work) {
            return;
        }
    }
    for block in 0..blocks {
        work(block_range(total, grain, block));
    }
}

fn block_range(total: usize, grain: usize, block: usize) -> Range<usize> {
    block * grain..total.min((block + 1) * grain)
}

/// Most threads one job uses; what the gate's bit fields hold.
const MAX_THREADS: usize = 0xffff;
/// Looks at the gate before a worker parks: some microseconds, about what waking it costs.
const SPINS: u32 = 600;
/// Of these, how many yield the processor, so that a busy machine is not slowed by waiting.
const YIELDS: u32 = 8;

/// A caller's work, as the workers see it.
struct Job {
    work: *const (dyn Fn(Range<usize>) + Sync),
    total: usize,
    grain: usize,
    /// Blocks a thread takes at once.
    claim: usize,
}

/// The word by which workers enter a job: number of the job, whether it is closed, how many workers
/// it wants, how many have entered.
#[derive(Clone, Copy)]
struct Gate(u64);

impl Gate {
    const CLOSED: u64 = 1 << 32;
    fn open(epoch: u64, wanted: usize) -> Gate {
        Gate(epoch << 33 | (wanted as u64) << 16)
    }
    fn epoch(self) -> u64 {
        self.0 >> 33
    }
    fn wanted(self) -> u64 {
        self.0 >> 16 & 0xffff
    }
    fn entered(self) -> u64 {
        self.0 & 0xffff
    }
    fn admits(self) -> bool {
        self.0 & Self::CLOSED == 0 && self.entered() < self.wanted()
    }
}

/// What callers and workers share.
struct Shared {
    gate: AtomicU64,
    /// Written by the owner of `busy` while the gate is closed and nobody is inside.
    job: UnsafeCell<Job>,
    next_block: AtomicUsize,
    /// Workers that have finished with the job.
    left: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written only while no worker may enter, and read only by those who entered.
unsafe impl Sync for Shared {}
// SAFETY: the job's pointer is used only while its caller waits.
unsafe impl Send for Shared {}

struct Worker {
    thread: Thread,
    asleep: Arc<AtomicBool>,
}

struct Pool {
    /// The process whose threads these are.
    pid: u32,
    /// Held by the one caller whose job runs.
    busy: AtomicBool,
    shared: Arc<Shared>,
    /// Touched only by the holder of `busy`.
    workers: UnsafeCell<Vec<Worker>>,
}

// SAFETY: `workers` is touched only by the holder of `busy`.
unsafe impl Sync for Pool {}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

impl Pool {
    /// This process's pool. No lock is involved, because a lock may be held at the moment of a fork.
    fn current() -> &'static Pool {
        let pid = std::process::id();
        loop {
            let found = POOL.load(Ordering::Acquire);
            // SAFETY: pools are never freed.
            if let Some(pool) = unsafe { found.as_ref() }
                && pool.pid == pid
            {
                return pool;
            }
            let fresh = Box::into_raw(Box::new(Pool::new(pid)));
            if POOL.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: made above and never shared.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }

    fn new(pid: u32) -> Pool {
        let nothing: &'static (dyn Fn(Range<usize>) + Sync) = &|_| {};
        Pool {
            pid,
            busy: AtomicBool::new(false),
            shared: Arc::new(Shared {
                gate: AtomicU64::new(Gate::CLOSED),
                job: UnsafeCell::new(Job { work: nothing, total: 0, grain: 1, claim: 1 }),
                next_block: AtomicUsize::new(0),
                left: AtomicUsize::new(0),
                panic: Mutex::new(None),
            }),
            workers: UnsafeCell::new(Vec::new()),
        }
    }

    /// Runs a job with up to `threads` threads, the caller among them; false if the pool is busy.
    fn run(
        &self,
        total: usize,
        grain: usize,
        threads: usize,
        work: &(dyn Fn(Range<usize>) + Sync),
    ) -> bool {
        if self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let shared = &*self.shared;
        let blocks = total.div_ceil(grain);
        // SAFETY: only the lifetime changes; `finish` returns after the last worker has let go of it.
        let work: *const (dyn Fn(Range<usize>) + Sync + 'static) = unsafe {
            std::mem::transmute::<
                &(dyn Fn(Range<usize>) + Sync + '_),
                &(dyn Fn(Range<usize>) + Sync + 'static),
            >(work)
        };
        // SAFETY: this thread holds `busy`, the gate is closed, and the last job's workers have left.
        unsafe {
            *shared.job.get() = Job { work, total, grain, claim: (blocks / (threads * 16)).max(1) };
        }
        shared.next_block.store(0, Ordering::Relaxed);
        shared.left.store(0, Ordering::Relaxed);
        let epoch = (Gate(shared.gate.load(Ordering::Relaxed)).epoch() + 1) & ((1 << 31) - 1);
        shared.gate.store(Gate::open(epoch, threads - 1).0, Ordering::SeqCst);
        self.wake(threads - 1);
        shared.take_part();
        let panic = shared.finish();
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
            if worker.asleep.swap(false, Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        while workers.len() < wanted {
            let asleep = Arc::new(AtomicBool::new(false));
            let (shared, flag) = (Arc::clone(&self.shared), Arc::clone(&asleep));
            let name = format!("pullback-{}", workers.len());
            match std::thread::Builder::new().name(name).spawn(move || shared.serve(&flag)) {
                Ok(handle) => workers.push(Worker { thread: handle.thread().clone(), asleep }),
                // The machine has no more threads to give: those there are do the work.
                Err(_) => break,
            }
        }
    }
}

impl Shared {
    /// A worker's life: enter every job that wants it, sleep when none comes.
    fn serve(&self, asleep: &AtomicBool) {
        let mut idle = 0;
        loop {
            if self.enter() {
                self.take_part();
                self.left.fetch_add(1, Ordering::Release);
                idle = 0;
                continue;
            }
            idle += 1;
            if idle < SPINS - YIELDS {
                std::hint::spin_loop();
            } else if idle < SPINS {
                std::thread::yield_now();
            } else {
                asleep.store(true, Ordering::SeqCst);
                // A job published just before is seen here, or its caller sees `asleep`.
                while asleep.load(Ordering::SeqCst)
                    && !Gate(self.gate.load(Ordering::SeqCst)).admits()
                {
                    std::thread::park();
                }
                asleep.store(false, Ordering::SeqCst);
                idle = 0;
            }
        }
    }

    /// Enters the current job if it is open and wants another worker.
    fn enter(&self) -> bool {
        let gate = Gate(self.gate.load(Ordering::Relaxed));
        gate.admits()
            && self
                .gate
                .compare_exchange(gate.0, gate.0 + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Does blocks of the job until none is left. Keeps a panic for the caller.
    fn take_part(&self) {
        // SAFETY: this thread owns the job or has entered it; it does not change until all have left.
        let job = unsafe { &*self.job.get() };
        let blocks = job.total.div_ceil(job.grain);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the caller keeps its work alive until all have left.
            let work = unsafe { &*job.work };
            loop {
                let first = self.next_block.fetch_add(job.claim, Ordering::Relaxed);
                if first >= blocks {
                    return;
                }
                for block in first..blocks.min(first + job.claim) {
                    work(block_range(job.total, job.grain, block));
                }
            }
        }));
        if let Err(payload) = outcome {
            self.next_block.store(blocks, Ordering::Relaxed);
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
        }
    }

    /// Closes the job and waits for the workers inside; returns a panic of any of them.
    fn finish(&self) -> Option<Box<dyn Any + Send>> {
        let gate = Gate(self.gate.fetch_or(Gate::CLOSED, Ordering::AcqRel));
        let mut spins = 0u32;
        while self.left.load(Ordering::Acquire) as u64 != gate.entered() {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                // A worker lost its processor in the middle of a block: let it have this one.
                std::thread::yield_now();
            }
        }
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
