//! The pool: blocks, the gate, sleep. The callers here do what `ThreadPool::run` does, with `Shared` and `Sleeper` as they are.

use super::gate::{Job, Shared, Sleeper, Work};
use crate::model;
use crate::sync::{AtomicBool, AtomicUsize, Thread, UnsafeCell};
use loom::sync::Arc;
use loom::thread::{JoinHandle, spawn};
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Workers, and the flag by which a model lets them go, which the library never does.
struct Crew {
    shared: Arc<Shared>,
    is_over: Arc<AtomicBool>,
    workers: Vec<(Arc<Sleeper>, JoinHandle<()>)>,
}

impl Crew {
    fn of(count: usize) -> Crew {
        let (shared, is_over) = (Arc::new(Shared::new()), Arc::new(AtomicBool::new(false)));
        let workers = (0..count)
            .map(|_| {
                let sleeper = Arc::new(Sleeper::new());
                let (shared, is_over, its) = (shared.clone(), is_over.clone(), sleeper.clone());
                let life = move || {
                    while !is_over.load(SeqCst) {
                        shared.serve(&its);
                    }
                };
                (sleeper, spawn(life))
            })
            .collect();
        Crew { shared, is_over, workers }
    }
    fn wake(&self) {
        for (sleeper, thread) in &self.workers {
            sleeper.wake(thread.thread());
        }
    }
    /// Opens a job of single elements, one block each.
    fn open(&self, work: &Work<'_>, total: usize) {
        let threads = self.workers.len() + 1;
        // SAFETY: one caller; `run` and `end` finish their jobs.
        unsafe { self.shared.open(Job::new(work, total, 1, threads), threads - 1) };
        self.wake();
    }
    fn run(&self, work: &Work<'_>, total: usize) -> bool {
        self.open(work, total);
        self.shared.take_part();
        self.shared.finish(&|| None).is_some()
    }
    /// A last job, open until all workers have been in it. If one misses it, loom sees that nobody can go on.
    fn end(self) {
        self.is_over.store(true, SeqCst);
        self.open(&|_| {}, 1);
        self.shared.take_part();
        for (_, thread) in self.workers {
            thread.join().unwrap();
        }
        assert!(self.shared.finish(&|| None).is_none());
    }
}

/// One cell per block. Two threads in one block, or the caller in it while a worker still is, are races that loom sees.
struct Blocks(Vec<UnsafeCell<usize>>);

// SAFETY: loom checks each use.
unsafe impl Sync for Blocks {}

impl Blocks {
    fn new(count: usize) -> Blocks {
        Blocks((0..count).map(|_| UnsafeCell::new(0)).collect())
    }
    fn add(&self, range: Range<usize>) {
        for at in range {
            // SAFETY: loom checks it.
            self.0[at].with_mut(|runs| unsafe { *runs += 1 });
        }
    }
    fn were_run_once(self) {
        assert!(self.0.into_iter().all(|cell| cell.into_inner() == 1));
    }
}

#[test]
fn every_block_is_run_once_before_the_caller_returns() {
    model(3, || {
        let crew = Crew::of(1);
        let blocks = Blocks::new(2);
        crew.run(&|range| blocks.add(range), 2);
        blocks.were_run_once();
        crew.end();
    });
}

#[test]
fn two_workers_share_the_blocks() {
    model(1, || {
        let crew = Crew::of(2);
        let blocks = Blocks::new(2);
        crew.run(&|range| blocks.add(range), 2);
        blocks.were_run_once();
        crew.end();
    });
}

#[test]
fn a_second_job_sees_nothing_of_the_first() {
    model(3, || {
        let crew = Crew::of(1);
        for total in [1, 2] {
            // Freed after each job: a worker still in it, or come late, would be seen with the old cells.
            let blocks = Blocks::new(total);
            crew.run(&|range| blocks.add(range), total);
            blocks.were_run_once();
        }
        crew.end();
    });
}

#[test]
fn a_worker_asleep_is_woken_for_each_job() {
    model(3, || {
        let shared = Arc::new(Shared::new());
        let sleeper = Arc::new(Sleeper::new());
        let (its_shared, its) = (shared.clone(), sleeper.clone());
        let runs = Arc::new(AtomicUsize::new(0));
        let seen = runs.clone();
        // It may sleep any number of times; it ends when it was in both jobs, and nobody else does their blocks.
        let worker = spawn(move || {
            while seen.load(Relaxed) < 2 {
                its_shared.serve(&its);
            }
        });
        let work = |_: Range<usize>| {
            runs.fetch_add(1, Relaxed);
        };
        let thread: &Thread = worker.thread();
        for round in 1..=2 {
            // SAFETY: one caller, and the last job is finished.
            unsafe { shared.open(Job::new(&work, 1, 1, 2), 1) };
            sleeper.wake(thread);
            while runs.load(Relaxed) < round {
                loom::thread::yield_now();
            }
            assert!(shared.finish(&|| None).is_none());
        }
        worker.join().unwrap();
    });
}

#[test]
fn a_panic_of_a_block_reaches_the_caller_after_all_have_left() {
    model(2, || {
        let crew = Crew::of(1);
        let failed = crew.run(&|range| assert!(range.start != 0, "on purpose"), 2);
        assert!(failed);
        assert!(!crew.run(&|_| {}, 1), "the next job hears nothing of it");
        crew.end();
    });
}
