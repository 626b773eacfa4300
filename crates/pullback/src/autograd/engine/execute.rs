//! Executing a request: on this thread, or on a new one once the stack is deep.

use super::branches;
use super::device::{self, StopOnUnwind};
use super::fit::fit;
use super::request::{Goal, Request};
use super::running::{DEPTH, IN_PART, RUNNING, TaskGuard, is_whole_backward};
use super::task::Task;
use crate::autograd::graph::blame;
use crate::autograd::graph::node::Edge;
use crate::autograd::mode;
use crate::autograd::thread::state::ThreadState;
use crate::autograd::variable::grad_dtype;
use crate::call_site::{CallSite, Scope};
use crate::error::{bail, ensure};
use crate::interrupt;
use crate::{Result, Tensor};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

/// The number of nested backwards on one stack at which a new thread takes over.
const MAX_DEPTH: u32 = 60;

/// Runs a request and gives the captured gradients, one per target.
///
/// # Errors
/// The first error of any node; the engine is usable afterwards.
#[track_caller]
pub fn execute(mut request: Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let _site = Scope::of_caller(Location::caller());
    let _site = CallSite::here().enter();
    ensure!(
        request.goal == Goal::Accumulate || request.targets.is_some_and(|t| !t.is_empty()),
        value,
        "grad requires non-empty inputs."
    );
    if request.goal == Goal::Accumulate && request.create_graph {
        static GIVEN: AtomicBool = AtomicBool::new(false);
        crate::warning::warn_once(
            &GIVEN,
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.",
        );
    }
    for (index, (root, grad)) in request.roots.iter().zip(&mut request.grads).enumerate() {
        if let (Some(node), Some(g)) = (&root.node, grad.as_ref())
            && let Some(Some(meta)) = node.input_meta().get(root.nr as usize)
        {
            let expected = grad_dtype::expected(node, meta, g);
            let meta = expected.as_ref().unwrap_or(meta);
            let fitted =
                fit(g.clone(), meta, false, || format!("invalid gradient at index {index}"));
            *grad = Some(fitted.map_err(|error| blame::in_backward(error, node))?);
        }
    }
    if DEPTH.with(Cell::get) >= MAX_DEPTH {
        return on_new_thread(request);
    }
    run_here(request)
}

/// Runs a request on a new thread, with an empty stack.
fn on_new_thread(request: Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let state = ThreadState::take();
    let in_part = !is_whole_backward();
    let served = device::served();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, outcome) = channel();
        let stop = &stop;
        let run = move || {
            let _entered = state.enter();
            IN_PART.with(|p| p.set(in_part));
            device::serve(served);
            let work = || interrupt::with_stop_flag(stop, || run_here(request));
            // (Nobody receives it if this thread's caller was interrupted.)
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let name = "pullback_autograd".into();
        if let Err(error) = std::thread::Builder::new().name(name).spawn_scoped(scope, run) {
            bail!(runtime, "could not start a thread for a nested backward: {error}");
        }
        let _stopping = StopOnUnwind(stop);
        interrupt::receive(&outcome).unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn run_here(request: Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let _mode = mode::set_grad(request.create_graph);
    let _entry = TaskGuard::new(&request);
    let result = interrupt::caught(|| run(&request));
    // Callbacks may add callbacks.
    while let Some(callback) = RUNNING.with(|r| {
        let mut running = r.borrow_mut();
        let callbacks = &mut running.last_mut().expect("this task is running").callbacks;
        (result.is_ok() && !callbacks.is_empty()).then(|| callbacks.remove(0))
    }) {
        callback()?;
    }
    let found = result?;
    match found.iter().position(Option::is_none) {
        Some(index) if request.goal == (Goal::Capture { allow_unused: false }) => {
            let target = request.targets.and_then(|targets| targets.get(index));
            Err(blame::unused(&request.roots, index, target.unwrap_or(&Edge::default())))
        }
        _ => Ok(found),
    }
}

/// Runs a task: the nodes of devices on their threads, if there are devices, the others here.
fn run(request: &Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let mut task = Task::new(request)?;
    if device::are_threads_due() {
        device::run(&mut task)?;
    }
    task.run(branches::first_look(), branches::run)
}
