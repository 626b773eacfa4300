//! The members of a crew on their threads: where they sit, and the kernels that they share.

use super::crew::Crew;
use super::gate::{Job, Work};
use super::{MAX_THREADS, ThreadPool, interrupted};
use crate::interrupt;
use std::cell::Cell;
use std::ops::Range;
use std::panic::resume_unwind;

thread_local! {
    /// The crew that this thread is a member of, and its seat there; none while it runs a job of its own.
    static SEAT: Cell<Option<(*const Crew, usize)>> = const { Cell::new(None) };
}

/// A member of a crew, on its thread.
pub struct Member<'a> {
    crew: &'a Crew,
    at: usize,
    previous: Option<(*const Crew, usize)>,
}

impl<'a> Member<'a> {
    fn sit(crew: &'a Crew, at: usize) -> Member<'a> {
        crew.seat(at, std::thread::current());
        let previous = SEAT.replace(Some((crew, at)));
        Member { crew, at, previous }
    }

    /// Waits until `is_due`, and helps with the kernels of the others meanwhile. Whoever makes it due calls
    /// [`Member::wake_others`] afterwards. An interruption unwinds.
    pub fn wait_until(&self, is_due: &dyn Fn() -> bool) {
        let is_due = || {
            interrupt::check();
            is_due()
        };
        self.crew.wait(self.at, &is_due);
    }

    /// Wakes the members who wait, after something was published for them.
    pub fn wake_others(&self) {
        self.crew.wake_others(self.at);
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        SEAT.set(self.previous);
    }
}

/// Calls `work` on up to `threads` threads at the same time, this one among them; false, without a call, if the pool is busy.
/// No member may count on another one to be there: threads come when they can, and one may be called when the others
/// have returned. A panic of any member reaches the caller when all have returned, and so does an interruption.
pub fn together(threads: usize, work: &(dyn Fn(&Member<'_>) + Sync)) -> bool {
    let threads = threads.clamp(1, MAX_THREADS);
    let crew = Crew::of(threads);
    let one = |range: Range<usize>| range.for_each(|at| work(&Member::sit(&crew, at)));
    ThreadPool::current().run(threads, 1, threads, &one)
}

/// Runs a kernel's job with the members of this thread's crew who wait; false if it has none, or runs a job already.
pub(super) fn share(total: usize, grain: usize, threads: usize, work: &Work<'_>) -> bool {
    let Some(seat @ (crew, at)) = SEAT.take() else { return false };
    let work = |range: Range<usize>| {
        interrupt::check();
        work(range);
    };
    let job = Job::new(&work, total, grain, threads);
    // SAFETY: a crew outlives its members, this thread is the one at `at`, and without its seat in `SEAT` it opens no
    // other job until this one is finished.
    let panic = unsafe { (*crew).share(at, job, &|| interrupt::pending().map(interrupted)) };
    SEAT.set(Some(seat));
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{for_range, last_job, num_threads, set_num_threads};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    /// `together` once the pool is free: the tests beside this one use it, too.
    fn crew(threads: usize, work: &(dyn Fn(&Member<'_>) + Sync)) {
        while !together(threads, work) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn members_hand_on_to_each_other_and_share_their_kernels() {
        let before = num_threads();
        set_num_threads(3);
        for _ in 0..200 {
            let (turn, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
            crew(3, &|member| {
                // Each step is done by one of the members; the others wait for the next one.
                loop {
                    let now = turn.load(SeqCst);
                    if now >= 10 {
                        return;
                    }
                    if now % 2 == 0 && turn.compare_exchange(now, now + 1, SeqCst, SeqCst).is_ok() {
                        for_range(64, 1, &|range| {
                            for_range(4, 1, &|inner| {
                                sum.fetch_add(range.len() * inner.len(), SeqCst);
                            });
                        });
                        turn.store(now + 2, SeqCst);
                        member.wake_others();
                    } else {
                        member.wait_until(&|| turn.load(SeqCst) != now);
                    }
                }
            });
            assert_eq!(sum.into_inner(), 5 * 64 * 4);
        }
        set_num_threads(before);
    }

    #[test]
    fn a_member_who_waits_takes_blocks_of_a_kernel_of_another() {
        let before = num_threads();
        set_num_threads(2);
        let threads = Mutex::new(std::collections::HashSet::new());
        let (is_waiting, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        // (A worker that comes late finds the work done: then once more.)
        while threads.lock().unwrap().len() < 2 {
            for flag in [&is_waiting, &is_over] {
                flag.store(false, SeqCst);
            }
            let first = AtomicBool::new(true);
            crew(2, &|member| {
                if first.swap(false, SeqCst) {
                    let block = |_: Range<usize>| {
                        threads.lock().unwrap().insert(std::thread::current().id());
                        std::thread::yield_now();
                    };
                    for_range(1000, 1, &block);
                    is_over.store(true, SeqCst);
                    member.wake_others();
                } else {
                    member.wait_until(&|| is_over.load(SeqCst));
                }
            });
        }
        set_num_threads(before);
    }

    #[test]
    fn a_panic_in_a_shared_kernel_reaches_the_caller_of_the_crew() {
        let before = num_threads();
        set_num_threads(3);
        for round in 0..50 {
            let is_over = AtomicBool::new(false);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                crew(3, &|member| {
                    if is_over.swap(true, SeqCst) {
                        return;
                    }
                    member.wake_others();
                    for_range(100, 1, &|range| assert!(range.start != round, "block {round}"));
                });
            }));
            let message = *outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("block {round}"));
        }
        let job = last_job();
        crew(2, &|_| {});
        assert_ne!(last_job(), job, "the pool goes on");
        set_num_threads(before);
    }
}
