//! Backward over devices: the nodes of each device run on a thread of its own, at the same time as those of the others.
//!
//! The thread that runs the task runs the nodes of main memory, gives the others away as soon as all their gradients are
//! there, and alone touches what the task knows. A device's thread lives as long as the task: a nested backward has its
//! own, so that no two wait for each other, but runs the nodes of the device that its thread is for itself. Invariant:
//! gradients are added up in the order in which one thread would have added them, so that the sums are the same bits
//! however the threads took turns.

use super::arrival::Arrivals;
use super::evaluate::{explained, run_node, seen};
use super::request::Request;
use super::running::{
    AtEnd, Callback, IN_PART, RUNNING, TaskGuard, current_task_id, is_whole_backward,
};
use super::state::{NO_CAPTURE, ReadyNode};
use super::task::Task;
use crate::autograd::graph::current::Evaluation;
use crate::autograd::graph::node::Node;
use crate::autograd::mode;
use crate::autograd::thread::state::ThreadState;
use crate::dispatch::Grads;
use crate::error::bail;
use crate::interrupt;
use crate::prof::{self, RangeKind};
use crate::{Device, Result, warning};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::Cell;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, Scope};

thread_local! {
    /// The device that this thread runs nodes for.
    static SERVED: Cell<Option<Device>> = const { Cell::new(None) };
}

/// The device that this thread runs nodes for, for another thread that continues its work.
pub(super) fn served() -> Option<Device> {
    SERVED.get()
}
/// Sets the device that this thread runs nodes for.
pub(super) fn serve(device: Option<Device>) {
    SERVED.set(device);
}

/// Whether nodes may be on devices that have threads.
#[inline]
pub(super) fn are_threads_due() -> bool {
    crate::device_count() > 0 && mode::is_multithreading_enabled()
}

/// The device of a node: that of its first tensor that is not in main memory.
fn device_of(node: &Node) -> Device {
    let devices = node.input_meta().iter().flatten().map(|meta| meta.device);
    devices.into_iter().find(|&device| device != Device::Cpu).unwrap_or_default()
}

/// A node to be run by a device's thread.
struct DeviceJob {
    ready: ReadyNode,
    grads: Grads,
    /// Whether the node runs, or its gradients are only captured.
    needed: bool,
    /// Whether the node's gradients are captured.
    is_captured: bool,
    /// The gradients of the node that are needed.
    wanted: SmallVec<[bool; 4]>,
}
impl PartialEq for DeviceJob {
    fn eq(&self, other: &Self) -> bool {
        self.ready == other.ready
    }
}
impl Eq for DeviceJob {}
impl PartialOrd for DeviceJob {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for DeviceJob {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.ready.cmp(&other.ready)
    }
}

/// The gradients of a node to capture, and its results if it ran.
type NodeResults = (Option<Grads>, Option<Grads>);

/// The outcome of a job.
struct JobOutcome {
    ready: ReadyNode,
    results: std::result::Result<Result<NodeResults>, Box<dyn Any + Send>>,
    callbacks: Vec<Callback>,
    at_end: Vec<AtEnd>,
    warnings: Vec<String>,
}

/// The jobs that wait for a device's thread; `None` once there will be no more.
struct Queue {
    jobs: Mutex<Option<BinaryHeap<DeviceJob>>>,
    changed: Condvar,
}

impl Queue {
    fn push(&self, job: DeviceJob) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &mut *jobs {
            jobs.push(job);
        }
        self.changed.notify_one();
    }
    /// Waits for the next job.
    fn pop(&self) -> Option<DeviceJob> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = jobs.as_mut()?.pop() {
                return Some(job);
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
    /// Drops the jobs that wait: the thread ends.
    fn close(&self) {
        let forgotten = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.changed.notify_one();
        drop(forgotten);
    }
}

/// The threads of a task's devices.
struct Threads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    request: &'env Request<'env>,
    /// The task's number.
    id: i64,
    done: Sender<JobOutcome>,
    /// The flag that stops the threads in the middle of a node.
    stop: &'env AtomicBool,
    queues: Vec<(Device, Arc<Queue>)>,
}

impl Drop for Threads<'_, '_> {
    fn drop(&mut self) {
        self.queues.iter().for_each(|(_, queue)| queue.close());
    }
}

impl Threads<'_, '_> {
    /// Gives a job to the device's thread, which starts at its first.
    fn give(&mut self, device: Device, job: DeviceJob) -> Result<()> {
        if let Some((_, queue)) = self.queues.iter().find(|(of, _)| *of == device) {
            queue.push(job);
            return Ok(());
        }
        let jobs = Mutex::new(Some(BinaryHeap::from([job])));
        let queue = Arc::new(Queue { jobs, changed: Condvar::new() });
        self.queues.push((device, queue.clone()));
        let (state, in_part) = (ThreadState::take(), !is_whole_backward());
        let (request, id, done, stop) = (self.request, self.id, self.done.clone(), self.stop);
        let run = move || {
            let _entered = state.enter();
            IN_PART.set(in_part);
            serve(Some(device));
            if let Some(index) = device.index() {
                let _ = crate::set_current_device(index);
            }
            let _entry = TaskGuard::on(request, id);
            warning::withhold();
            while let Some(job) = queue.pop() {
                // (Nobody receives it if the task failed.)
                let _ = done.send(interrupt::with_stop_flag(stop, || job.run(request)));
            }
        };
        let name = format!("pullback_{device}");
        match Builder::new().name(name).spawn_scoped(self.scope, run) {
            Ok(_) => Ok(()),
            Err(error) => bail!(runtime, "could not start a thread for device {device}: {error}"),
        }
    }
}

impl DeviceJob {
    /// Runs the job, on the thread of the device.
    fn run(self, request: &Request<'_>) -> JobOutcome {
        let DeviceJob { ready, grads, needed, is_captured, wanted } = self;
        let results = catch_unwind(AssertUnwindSafe(|| {
            let node = &ready.node;
            let _evaluation = Evaluation::of(node);
            let _range =
                prof::is_observed().then(|| prof::of_node(RangeKind::Evaluation, node, &[]));
            let run = |grads: Grads| -> Result<NodeResults> {
                let is_seen = is_captured || !needed;
                let seen = is_seen.then(|| seen(node, &grads, needed)).transpose()?;
                let wanted = |i: usize| wanted.get(i).copied().unwrap_or(false);
                let outputs =
                    needed.then(|| run_node(request, node, grads, &wanted)).transpose()?;
                Ok((seen, outputs))
            };
            run(grads).map_err(|error| explained(error, node))
        }));
        let (callbacks, at_end) = RUNNING.with(|running| {
            running.borrow_mut().last_mut().map_or_else(Default::default, |task| {
                (std::mem::take(&mut task.callbacks), std::mem::take(&mut task.at_end))
            })
        });
        JobOutcome { ready, results, callbacks, at_end, warnings: warning::withheld() }
    }
}

impl JobOutcome {
    /// Passes the warnings, callbacks and actions of the job on to the task.
    fn settle(&mut self) {
        RUNNING.with(|running| {
            if let Some(task) = running.borrow_mut().last_mut() {
                task.callbacks.append(&mut self.callbacks);
                task.at_end.append(&mut self.at_end);
            }
        });
        self.warnings.drain(..).for_each(warning::warn);
    }
}

/// A guard that sets a flag if this thread unwinds, so that the threads that work for it stop.
pub(super) struct StopOnUnwind<'a>(pub(super) &'a AtomicBool);
impl Drop for StopOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs all nodes, those of devices on their threads.
pub(super) fn run(task: &mut Task<'_>) -> Result<()> {
    let request = task.request;
    let id = current_task_id();
    task.arrivals = Some(Arrivals::of(task.states.len()));
    let (done, outcomes) = channel();
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let stop = &stop;
        let _stopping = StopOnUnwind(stop);
        let mut threads = Threads { scope, request, id, done, stop, queues: Vec::new() };
        drive(task, &mut threads, &outcomes)
    });
    // (Jobs that were running when another one failed.)
    for mut outcome in outcomes.try_iter() {
        outcome.settle();
    }
    result
}

/// Gives nodes to the threads of devices, runs the others, and takes over their outcomes.
fn drive(
    task: &mut Task<'_>,
    threads: &mut Threads<'_, '_>,
    outcomes: &Receiver<JobOutcome>,
) -> Result<()> {
    let mut here = BinaryHeap::new();
    let mut away = 0;
    loop {
        while let Some(ready) = task.ready.pop() {
            let device = device_of(&ready.node);
            if device == Device::Cpu || served() == Some(device) {
                here.push(ready);
            } else {
                let job = job(task, ready);
                threads.give(device, job)?;
                away += 1;
            }
        }
        let next = here.pop();
        let outcome = match &next {
            Some(_) => outcomes.try_recv().ok(),
            None if away == 0 => return Ok(()),
            // (The threads are alive, and each job sends an outcome.)
            None => Some(interrupt::receive(outcomes)),
        };
        if let Some(outcome) = outcome {
            here.extend(next);
            away -= 1;
            take_over(task, outcome)?;
        } else if let Some(ready) = next {
            task.run_one(&ready)?;
        }
    }
}

/// The job of running a node with the gradients that have arrived at it.
fn job(task: &mut Task<'_>, ready: ReadyNode) -> DeviceJob {
    let grads = std::mem::take(&mut task.states[ready.at].buffer);
    let state = &task.states[ready.at];
    let edges = ready.node.next_edges().iter();
    DeviceJob {
        grads,
        needed: !task.trimmed || state.needed,
        is_captured: state.captures != NO_CAPTURE,
        wanted: edges.map(|e| e.node.as_ref().is_some_and(|n| task.runs(n))).collect(),
        ready,
    }
}

/// Takes over the outcome of a job into the task.
fn take_over(task: &mut Task<'_>, mut outcome: JobOutcome) -> Result<()> {
    outcome.settle();
    let (seen, outputs) = outcome.results.unwrap_or_else(|panic| resume_unwind(panic))?;
    if let Some(seen) = seen {
        task.capture(task.states[outcome.ready.at].captures, &seen);
    }
    task.hand_on(&outcome.ready.node, outputs)
}
