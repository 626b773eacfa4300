//! Threads that make batches ahead.
//!
//! Each thread takes the next batch that nobody has taken, and may be ahead of the program by a number of batches: a batch is
//! taken only when it is near enough to what was asked for. Batches are given in order. A panic of a dataset becomes the error of
//! its batch.

use super::loader::{BatchOf, batch_of};
use super::{Collate, Dataset};
use pullback::{Error, Result};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The state that the threads and the program share.
struct WorkerShared<B> {
    state: Mutex<WorkerState<B>>,
    changed: Condvar,
}

struct WorkerState<B> {
    /// The number of the next batch that a thread takes.
    next: usize,
    /// The number of the next batch that the program gets.
    given: usize,
    done: BTreeMap<usize, Result<B>>,
    is_over: bool,
}

impl<B> WorkerShared<B> {
    fn lock(&self) -> MutexGuard<'_, WorkerState<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wait<'a>(&self, state: MutexGuard<'a, WorkerState<B>>) -> MutexGuard<'a, WorkerState<B>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of one pass.
pub(super) struct Workers<B> {
    shared: Arc<WorkerShared<B>>,
    threads: Vec<JoinHandle<()>>,
    count: usize,
}

impl<B: Send + 'static> Workers<B> {
    pub(super) fn start<D>(
        data: &Arc<D>,
        batches: Vec<Vec<usize>>,
        workers: usize,
        prefetch: usize,
    ) -> Result<Self>
    where
        D: Dataset + 'static,
        D::Item: Collate<Batch = B>,
    {
        let state = WorkerState { next: 0, given: 0, done: BTreeMap::new(), is_over: false };
        let shared = Arc::new(WorkerShared { state: Mutex::new(state), changed: Condvar::new() });
        let (batches, ahead) = (Arc::new(batches), workers * prefetch.max(1));
        let mut started =
            Workers { shared: shared.clone(), threads: Vec::new(), count: batches.len() };
        for number in 0..workers.min(batches.len()) {
            let (data, batches, shared) = (data.clone(), batches.clone(), shared.clone());
            let work = move || run(&*data, &batches, &shared, ahead);
            let thread = Builder::new().name(format!("data loader {number}")).spawn(work);
            let thread = thread.map_err(|error| {
                Error::runtime(format!("a thread of the data loader cannot be started: {error}"))
            })?;
            started.threads.push(thread);
        }
        Ok(started)
    }
}

impl<B> Workers<B> {
    pub(super) fn next(&mut self) -> Option<Result<B>> {
        let mut state = self.shared.lock();
        if state.given == self.count {
            return None;
        }
        loop {
            let wanted = state.given;
            if let Some(batch) = state.done.remove(&wanted) {
                state.given += 1;
                self.shared.changed.notify_all();
                return Some(batch);
            }
            state = self.shared.wait(state);
        }
    }
    pub(super) fn left(&self) -> usize {
        self.count - self.shared.lock().given
    }
}

impl<B> Drop for Workers<B> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // (What a dataset does cannot make the thread panic: see `run`.)
            let _ = thread.join();
        }
    }
}

/// The work of a thread.
fn run<D>(data: &D, batches: &[Vec<usize>], shared: &WorkerShared<BatchOf<D>>, ahead: usize)
where
    D: Dataset,
    D::Item: Collate,
{
    loop {
        let mut state = shared.lock();
        while !state.is_over && state.next < batches.len() && state.next >= state.given + ahead {
            state = shared.wait(state);
        }
        if state.is_over || state.next >= batches.len() {
            return;
        }
        let number = state.next;
        state.next += 1;
        drop(state);
        let made = catch_unwind(AssertUnwindSafe(|| batch_of(data, &batches[number])));
        let made = made.unwrap_or_else(|_| {
            Err(Error::runtime(format!("the dataset panicked while batch {number} was made")))
        });
        shared.lock().done.insert(number, made);
        shared.changed.notify_all();
    }
}
