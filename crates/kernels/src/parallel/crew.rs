//! A crew: members that run on a thread each, wait for each other, and meanwhile help with each other's kernels.
//!
//! A crew is one job of the pool, so that kernels which its members call find the pool busy. Each member has a seat with a
//! gate of its own instead: a kernel opens its job there, and the members who wait take part, also those who begin to wait
//! in the middle of it. Invariant: whoever falls asleep sees what was published for it, or is seen by its publisher.
//! `crates/loom` goes through every order of these steps.

use super::SPINS;
use super::gate::{Job, Payload, Shared, Sleeper, pause};
use crate::sync::{Mutex, Thread, park_briefly};
use std::sync::PoisonError;

/// The data of one member of a crew.
struct Seat {
    /// The gate of the jobs that this member's kernels open.
    gate: Shared,
    sleeper: Sleeper,
    /// The member's thread, once it has started.
    thread: Mutex<Option<Thread>>,
}

/// The seats of a crew.
pub(super) struct Crew(Vec<Seat>);

impl Crew {
    pub(super) fn of(members: usize) -> Crew {
        let seat =
            |_| Seat { gate: Shared::new(), sleeper: Sleeper::new(), thread: Mutex::new(None) };
        // bounded: by the number of threads.
        Crew((0..members).map(seat).collect())
    }

    /// Gives a seat to the member on `thread`, which then uses it alone.
    pub(super) fn seat(&self, at: usize, thread: Thread) {
        *self.0[at].thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    fn others(&self, at: usize) -> impl Iterator<Item = &Seat> {
        self.0.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, seat)| seat)
    }

    /// Wakes the members who sleep, after something was published for them.
    pub(super) fn wake_others(&self, at: usize) {
        for seat in self.others(at).filter(|seat| seat.sleeper.must_unpark()) {
            let thread = seat.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.as_ref().expect("a member who sleeps has a thread").unpark();
        }
    }

    /// Runs a job of the member at `at` together with those who wait; a panic of any of them.
    ///
    /// # Safety
    /// The member calls it, not within another job of its own; the job's work lives until it returns.
    pub(super) unsafe fn share(
        &self,
        at: usize,
        job: Job,
        interruption: &dyn Fn() -> Option<Payload>,
    ) -> Option<Payload> {
        let gate = &self.0[at].gate;
        // SAFETY: one caller, who finishes each job below.
        unsafe { gate.open(job, self.0.len() - 1) };
        self.wake_others(at);
        gate.take_part();
        gate.finish(interruption)
    }

    /// Waits until `is_due`, and helps the others meanwhile. Who makes it due calls [`Crew::wake_others`] afterwards.
    pub(super) fn wait(&self, at: usize, is_due: &dyn Fn() -> bool) {
        let mut idle = 0;
        while !is_due() {
            if self.others(at).any(|seat| seat.gate.help()) {
                idle = 0;
            } else if idle < SPINS {
                idle += 1;
                pause(idle);
            } else {
                let is_wanted = || is_due() || self.others(at).any(|seat| seat.gate.is_open());
                self.0[at].sleeper.sleep(is_wanted, park_briefly);
                idle = 0;
            }
        }
    }
}
