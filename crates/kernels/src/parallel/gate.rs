//! How workers come to a job and away from it, and how they sleep in between.
//!
//! Invariants: a worker touches a job only between its step through the gate and its step out (`left`); a job is
//! replaced only when the gate is closed and all who entered have left; whoever falls asleep either sees the job
//! published meanwhile or is seen by its publisher. `crates/loom` goes through every order of these steps.

use super::{SPINS, YIELDS, block_range};
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex, Thread, UnsafeCell, park, spin_loop, yield_now,
};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What a panic carries.
pub(super) type Payload = Box<dyn Any + Send>;
/// The function that is called for a block.
pub(super) type Work<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// A caller's work, as the workers see it.
pub(super) struct Job {
    work: *const Work<'static>,
    total: usize,
    grain: usize,
    /// Blocks a thread takes at once.
    claim: usize,
}

impl Job {
    /// A job for so many threads. It remembers `work` by its address: see [`Shared::open`].
    pub(super) fn new(work: &Work<'_>, total: usize, grain: usize, threads: usize) -> Job {
        // SAFETY: only the lifetime changes, of what becomes a pointer.
        let work = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        let claim = (total.div_ceil(grain) / (threads * 16)).max(1);
        Job { work, total, grain, claim }
    }
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

/// The state that callers and workers share.
pub(super) struct Shared {
    gate: AtomicU64,
    /// Written by the caller whose turn it is, while the gate is closed and nobody is inside.
    job: UnsafeCell<Job>,
    next_block: AtomicUsize,
    /// Workers that have finished with the job.
    left: AtomicUsize,
    panic: Mutex<Option<Payload>>,
    /// Whether there is a panic, so that nobody need go on with the job.
    stop: AtomicBool,
}

// SAFETY: `job` is written only while no worker may enter, and read only by those who entered.
unsafe impl Sync for Shared {}
// SAFETY: the job's pointer is used only while its caller waits.
unsafe impl Send for Shared {}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            gate: AtomicU64::new(Gate::CLOSED),
            job: UnsafeCell::new(Job::new(&|_| {}, 0, 1, 1)),
            next_block: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
        }
    }

    /// Lets up to `wanted` workers in.
    ///
    /// # Safety
    /// One caller at a time; its last job was finished, and the new one's work lives until it is.
    pub(super) unsafe fn open(&self, job: Job, wanted: usize) {
        // SAFETY: the gate is closed, and the last job's workers have left.
        self.job.with_mut(|ptr| unsafe { *ptr = job });
        self.next_block.store(0, Relaxed);
        self.left.store(0, Relaxed);
        self.stop.store(false, Relaxed);
        let epoch = (Gate(self.gate.load(Relaxed)).epoch() + 1) & ((1 << 31) - 1);
        self.gate.store(Gate::open(epoch, wanted).0, Release);
    }

    /// The flag that is set once the job need not be continued.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Keeps a panic for the caller, the first one, and lets the others stop.
    fn give_up(&self, payload: Payload) {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
        self.stop.store(true, Release);
    }

    /// Number of the last job.
    pub(super) fn epoch(&self) -> u64 {
        Gate(self.gate.load(Relaxed)).epoch()
    }

    /// Enters the current job if it is open and wants another worker.
    fn enter(&self) -> bool {
        let gate = Gate(self.gate.load(Relaxed));
        gate.admits() && self.gate.compare_exchange(gate.0, gate.0 + 1, Acquire, Relaxed).is_ok()
    }

    /// Does blocks of the job until none is left. Keeps a panic for the caller.
    pub(super) fn take_part(&self) {
        self.job.with(|job| {
            // SAFETY: this thread owns the job or has entered it; it does not change until all have left.
            let job = unsafe { &*job };
            let blocks = job.total.div_ceil(job.grain);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.work_on(job, blocks))) {
                self.next_block.store(blocks, Relaxed);
                self.give_up(payload);
            }
        });
    }

    fn work_on(&self, job: &Job, blocks: usize) {
        // SAFETY: the caller keeps its work alive until all have left.
        let work = unsafe { &*job.work };
        loop {
            let first = self.next_block.fetch_add(job.claim, Relaxed);
            if first >= blocks {
                return;
            }
            for block in first..blocks.min(first + job.claim) {
                work(block_range(job.total, job.grain, block));
            }
        }
    }

    /// Closes the job and waits for the workers inside; returns a panic of any of them. A wait that lasts is one for which
    /// `interruption` is asked: what it gives ends the job as a panic does.
    pub(super) fn finish(&self, interruption: &dyn Fn() -> Option<Payload>) -> Option<Payload> {
        let gate = Gate(self.gate.fetch_or(Gate::CLOSED, AcqRel));
        let mut spins = 0u32;
        while self.left.load(Acquire) as u64 != gate.entered() {
            spins += 1;
            if spins < SPINS {
                spin_loop();
            } else {
                // A worker lost its processor in the middle of a block, or has a long one: let it have this one.
                yield_now();
                if let Some(payload) = interruption() {
                    self.give_up(payload);
                }
            }
        }
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes part in the job that is open, if one is and wants another worker.
    pub(super) fn help(&self) -> bool {
        let has_entered = self.enter();
        if has_entered {
            self.take_part();
            self.left.fetch_add(1, Release);
        }
        has_entered
    }

    /// Whether a job is open that wants another worker.
    pub(super) fn is_open(&self) -> bool {
        Gate(self.gate.load(Acquire)).admits()
    }

    /// Serves one turn of a worker: returns when it has worked, or has slept.
    pub(super) fn serve(&self, sleeper: &Sleeper) {
        for idle in 1..=SPINS {
            if self.help() {
                return;
            }
            pause(idle);
        }
        sleeper.sleep(|| self.is_open(), park);
    }
}

/// Waits, in the way that suits the number `idle` of looks at which there was nothing to do.
pub(super) fn pause(idle: u32) {
    if idle < SPINS - YIELDS {
        spin_loop();
    } else if idle < SPINS {
        yield_now();
    }
}

/// Whether a worker is asleep.
pub(super) struct Sleeper(AtomicBool);

impl Sleeper {
    pub(super) fn new() -> Sleeper {
        Sleeper(AtomicBool::new(false))
    }
    /// Sleeps, by `park`, until it is woken, unless there is something to do already.
    pub(super) fn sleep(&self, is_wanted: impl Fn() -> bool, park: fn()) {
        // Both sides swap, so one of the two comes second and sees what the other did before: either this worker
        // the job that was published, or the publisher that it has to wake this worker.
        self.0.swap(true, AcqRel);
        while self.0.load(Acquire) && !is_wanted() {
            park();
        }
        self.0.store(false, Relaxed);
    }
    /// Wakes the worker on `thread`, after something was published for it.
    pub(super) fn wake(&self, thread: &Thread) {
        if self.must_unpark() {
            thread.unpark();
        }
    }
    /// Whether the worker sleeps and is to be unparked by the caller, after something was published for it.
    pub(super) fn must_unpark(&self) -> bool {
        self.0.swap(false, AcqRel)
    }
}
