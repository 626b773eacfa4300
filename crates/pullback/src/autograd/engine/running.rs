//! The tasks that are running on this thread, and their properties for hooks and nodes.

use super::request::{Goal, Request};
use super::state::AddressMap;
use crate::Result;
use crate::autograd::thread::saved_hooks;
use crate::error::bail;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicI64, Ordering};

pub(super) type Callback = Box<dyn FnOnce() -> Result<()> + Send>;

pub(super) type AtEnd = Box<dyn FnOnce() + Send>;

pub(super) struct RunningTask {
    id: i64,
    keep_graph: bool,
    pub(super) callbacks: Vec<Callback>,
    /// Actions for the end of the task, successful or not.
    pub(super) at_end: Vec<AtEnd>,
    /// The task's request, while the task is on the thread's list.
    request: *const Request<'static>,
    /// The nodes that the task runs, once they were asked for.
    pub(super) survey: Option<AddressMap>,
    /// The number of hooks on saved tensors that the thread had before.
    hooks: usize,
}

impl RunningTask {
    /// The task's request.
    pub(super) fn request(&self) -> &Request<'_> {
        // SAFETY: `run_here` keeps the request until it has taken this from the list, on the same thread; the
        // lifetime that was hidden is narrowed to that of the borrow.
        unsafe { &*self.request }
    }
}

thread_local! {
    /// The number of tasks on this stack.
    pub(super) static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The tasks that are running on this thread, the innermost last.
    pub(super) static RUNNING: RefCell<Vec<RunningTask>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread continues a nest of tasks of which one runs only a part of its graph.
    pub(super) static IN_PART: Cell<bool> = const { Cell::new(false) };
}

static IDS: AtomicI64 = AtomicI64::new(0);

/// The number of the task that is running on this thread; -1 outside of one.
pub fn current_task_id() -> i64 {
    RUNNING.with(|r| r.borrow().last().map_or(-1, |t| t.id))
}

/// Whether the task that is running on this thread keeps its graph; true outside of one.
pub fn current_task_keeps_graph() -> bool {
    RUNNING.with(|r| r.borrow().last().is_none_or(|t| t.keep_graph))
}

/// Whether every task that is running on this thread runs all of its graph: then a backward inside of it adds to the same
/// leaves' gradients as the outer ones.
pub fn is_whole_backward() -> bool {
    !IN_PART.with(Cell::get)
        && RUNNING.with(|r| r.borrow().iter().all(|t| t.request().targets.is_none()))
}

/// Whether the task that is running on this thread returns gradients instead of adding them to leaves.
pub fn is_capturing() -> bool {
    RUNNING.with(|r| {
        r.borrow()
            .last()
            .is_some_and(|t| t.request().targets.is_some() && t.request().goal != Goal::Accumulate)
    })
}

/// Runs `callback` when the task that is running on this thread has finished.
///
/// # Errors
/// `RuntimeError` outside of one.
pub fn queue_callback(callback: Callback) -> Result<()> {
    RUNNING.with(|r| match r.borrow_mut().last_mut() {
        Some(task) => {
            task.callbacks.push(callback);
            Ok(())
        }
        None => bail!(runtime, "Final callbacks can only be installed during backward pass."),
    })
}

/// Runs `action` when the task that is running on this thread ends, also if it ends with an error.
///
/// # Errors
/// `RuntimeError` outside of one.
pub fn at_end(action: Box<dyn FnOnce() + Send>) -> Result<()> {
    RUNNING.with(|r| match r.borrow_mut().last_mut() {
        Some(task) => {
            task.at_end.push(action);
            Ok(())
        }
        None => bail!(runtime, "there is no backward pass whose end could be waited for"),
    })
}

/// A guard that puts a task on the thread's list and counts the depth.
pub(super) struct TaskGuard;

impl TaskGuard {
    /// Starts a task of this request, which must stay where it is until the guard is dropped.
    pub(super) fn new(request: &Request<'_>) -> Self {
        Self::on(request, IDS.fetch_add(1, Ordering::Relaxed))
    }
    /// Continues the task `id` on another thread; the request must stay where it is until the guard is dropped.
    pub(super) fn on(request: &Request<'_>, id: i64) -> Self {
        DEPTH.with(|d| d.set(d.get() + 1));
        let hooks = saved_hooks::depth();
        RUNNING.with(|r| {
            r.borrow_mut().push(RunningTask {
                hooks,
                id,
                keep_graph: request.keep_graph,
                callbacks: Vec::new(),
                at_end: Vec::new(),
                request: std::ptr::from_ref(request).cast(),
                survey: None,
            });
        });
        TaskGuard
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        DEPTH.with(|d| d.set(d.get() - 1));
        let done = RUNNING.with(|r| r.borrow_mut().pop());
        saved_hooks::truncate(done.as_ref().map_or(0, |task| task.hooks));
        done.into_iter().flat_map(|task| task.at_end).for_each(|at_end| at_end());
    }
}
