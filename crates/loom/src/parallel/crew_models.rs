//! A crew: members who hand steps on to each other, wait, sleep, and share their kernels. The board that they take steps from
//! is the engine's (`autograd/engine/stretch.rs`) in small: steps under a lock, a count of changes that those who wait look at.

use super::crew::Crew;
use super::gate::Job;
use crate::model;
use crate::sync::{AtomicUsize, Mutex, UnsafeCell};
use loom::sync::Arc;
use loom::thread::{current, spawn};
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Steps that become ready one after the other, as the engine's board has them.
struct Board {
    state: Mutex<State>,
    changes: AtomicUsize,
    /// The data that a step writes and the next one reads: a race if they are not ordered.
    value: UnsafeCell<usize>,
}

struct State {
    /// Steps that can be taken.
    ready: usize,
    taken: usize,
    done: usize,
    waiting: usize,
}

// SAFETY: loom checks each use of `value`.
unsafe impl Sync for Board {}
// SAFETY: as above.
unsafe impl Send for Board {}

impl Board {
    fn new(ready: usize) -> Board {
        let state = State { ready, taken: 0, done: 0, waiting: 0 };
        Board { state: Mutex::new(state), changes: AtomicUsize::new(0), value: UnsafeCell::new(0) }
    }

    fn tell(&self, crew: &Crew, at: usize) {
        self.changes.fetch_add(1, Release);
        crew.wake_others(at);
    }

    /// A member's part in `steps` steps, of which each makes the next one ready.
    fn take_part(&self, crew: &Crew, at: usize, steps: usize) {
        crew.seat(at, current());
        loop {
            let mut state = self.state.lock().unwrap();
            if state.done == steps {
                let must_tell = state.waiting > 0;
                drop(state);
                if must_tell {
                    self.tell(crew, at);
                }
                return;
            }
            if state.ready == state.taken {
                state.waiting += 1;
                let seen = self.changes.load(Acquire);
                drop(state);
                crew.wait(at, &|| self.changes.load(Acquire) != seen);
                self.state.lock().unwrap().waiting -= 1;
                continue;
            }
            state.taken += 1;
            drop(state);
            // SAFETY: one step at a time is ready; loom checks it.
            self.value.with_mut(|value| unsafe { *value += 1 });
            let mut state = self.state.lock().unwrap();
            state.done += 1;
            state.ready = steps.min(state.ready + 1);
        }
    }
}

#[test]
fn members_take_steps_in_turn_and_all_come_to_the_end() {
    model(2, || {
        let shared = Arc::new((Crew::of(2), Board::new(1)));
        let other = shared.clone();
        let thread = spawn(move || other.1.take_part(&other.0, 1, 2));
        shared.1.take_part(&shared.0, 0, 2);
        thread.join().unwrap();
        // SAFETY: the other member has ended; loom checks it.
        shared.1.value.with(|value| assert_eq!(unsafe { *value }, 2));
    });
}

#[test]
fn who_waits_is_woken_by_what_it_waits_for() {
    model(3, || {
        let shared = Arc::new((Crew::of(2), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = spawn(move || {
            let (crew, changes) = &*other;
            crew.seat(1, current());
            // (If it sleeps through the change, loom sees that nobody can go on.)
            crew.wait(1, &|| changes.load(Relaxed) != 0);
        });
        let (crew, changes) = &*shared;
        crew.seat(0, current());
        changes.store(1, Relaxed);
        crew.wake_others(0);
        thread.join().unwrap();
    });
}

#[test]
fn who_waits_helps_with_a_kernel_and_leaves_it_before_its_owner_does() {
    model(2, || {
        let shared = Arc::new((Crew::of(2), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = spawn(move || {
            let (crew, changes) = &*other;
            crew.seat(1, current());
            crew.wait(1, &|| changes.load(Acquire) != 0);
        });
        let (crew, changes) = &*shared;
        crew.seat(0, current());
        {
            // Freed after the kernel: a helper still in it would be seen.
            let blocks: Vec<Cell> = (0..2).map(|_| Cell(UnsafeCell::new(0))).collect();
            let work = |range: Range<usize>| range.for_each(|at| blocks[at].add());
            // SAFETY: one job, whose work lives until it is done.
            let panic = unsafe { crew.share(0, Job::new(&work, 2, 1, 2), &|| None) };
            assert!(panic.is_none());
            assert!(blocks.into_iter().all(|block| block.0.into_inner() == 1));
        }
        changes.store(1, Release);
        crew.wake_others(0);
        thread.join().unwrap();
    });
}

/// A block that counts its runs. Two at a time are a race that loom sees.
struct Cell(UnsafeCell<usize>);

// SAFETY: loom checks each use.
unsafe impl Sync for Cell {}

impl Cell {
    fn add(&self) {
        // SAFETY: loom checks it.
        self.0.with_mut(|runs| unsafe { *runs += 1 });
    }
}
