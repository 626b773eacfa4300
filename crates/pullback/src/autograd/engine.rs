//! The engine: runs a graph backwards.
//!
//! One execution is a `Task`: the nodes to run, how many gradients each still waits for, the buffers that
//! sum what has arrived, and what to capture. Nodes run in order of sequence number, latest first, and a
//! node runs when everything it depends on has. Sums are made in that order too, so results are the same
//! bits every time. A backward inside a node runs as a task of its own on the same stack, and on a fresh
//! thread once that stack is deep. Nodes of devices run on threads of these (`device`).

mod device;
mod evaluate;

use self::evaluate::{explained, run_node, seen};
use super::fit::fit;
use super::node::{Edge, Node};
use super::numbering::Numbering;
use super::thread_state::ThreadState;
use super::{arithmetic, blame, mode, saved_hooks};
use crate::dispatch::Grads;
use crate::error::{bail, ensure};
use crate::interrupt;
use crate::prof::{self, Kind};
use crate::site::{Scope, Site};
use crate::tensor::Flag;
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::channel;

/// Nested backwards on one stack before a new thread takes over.
const MAX_DEPTH: u32 = 60;

/// The engine looks for an interruption once for so many nodes (as a power of two): a look costs a thirtieth of a node, and
/// nodes that run long look themselves.
const LOOKS: u32 = 3;

/// What to do in one execution.
pub struct Request<'a> {
    /// Where to start.
    pub roots: Vec<Edge>,
    /// The gradients that start there.
    pub grads: Vec<Option<Tensor>>,
    /// Whether the graph can be run again.
    pub keep_graph: bool,
    /// Whether the backward is itself recorded.
    pub create_graph: bool,
    /// If given: only what leads to these edges runs.
    pub targets: Option<&'a [Edge]>,
    /// What becomes of the targets' gradients.
    pub goal: Goal,
}

/// What becomes of gradients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// They are added to `.grad` (backward).
    Accumulate,
    /// They are handed out (grad). One for which nothing arrived is `None`, if that is allowed.
    Capture {
        /// Whether it is.
        allow_unused: bool,
    },
}

/// Nodes are keyed by address: spreading its bits is all the hashing needed.
#[derive(Default, Clone, Copy)]
struct AddressHasher(u64);
impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    fn write_usize(&mut self, value: usize) {
        self.0 = ((value as u64) >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}
type Index = HashMap<usize, u32, BuildHasherDefault<AddressHasher>>;

/// What a task knows of one node.
struct State {
    /// The node's address.
    node: usize,
    buffer: Grads,
    /// Gradients still to come.
    missing: u32,
    /// With targets: where its list of captures begins, see [`Capture`].
    captures: u32,
    /// With targets: whether it must run.
    needed: bool,
    /// Whether it was met before, where nodes are gone through.
    seen: bool,
}

impl State {
    /// With targets: whether its gradients are wanted.
    fn runs(&self) -> bool {
        self.needed || self.captures != NO_CAPTURE
    }
}

/// Where to put input `nr` of a node, and where the node's next capture is.
struct Capture {
    nr: u32,
    slot: usize,
    next: u32,
}
const NO_CAPTURE: u32 = u32::MAX;

/// Whether a task numbers nodes.
static IS_NUMBERING: AtomicBool = AtomicBool::new(false);

/// Where the states of nodes are. A number in a node is taken at its word only if the state there names the node:
/// numbers of earlier tasks need not be cleared (P. Briggs, L. Torczon, "An efficient representation for sparse
/// sets", 1993).
enum Places {
    Numbered {
        _right: Numbering<'static>,
    },
    /// For a task inside of, or besides, another one.
    Hashed(Index),
}

struct Ready {
    node: Node,
    order: u64,
    /// Where its state is.
    at: usize,
}
impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

type Callback = Box<dyn FnOnce() -> Result<()> + Send>;
type AtEnd = Box<dyn FnOnce() + Send>;

struct Running {
    id: i64,
    keep_graph: bool,
    callbacks: Vec<Callback>,
    /// What is done when it is over, well or not.
    at_end: Vec<AtEnd>,
    /// What is being executed, while this is on the thread's list.
    request: *const Request<'static>,
    /// The nodes that it runs, once somebody asked.
    survey: Option<Index>,
    /// How many hooks on saved tensors the thread had before.
    hooks: usize,
}

impl Running {
    fn request(&self) -> &Request<'_> {
        // SAFETY: `run_here` keeps the request until it has taken this from the list, on the same thread; the
        // lifetime that was hidden is narrowed to that of the borrow.
        unsafe { &*self.request }
    }
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The handle of the node that is being run, as long as an [`Evaluation`] lives.
    static EVALUATED: Cell<*const Node> = const { Cell::new(std::ptr::null()) };
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread goes on with a nest of executions in which not everything runs.
    static IN_PART: Cell<bool> = const { Cell::new(false) };
}
static IDS: AtomicI64 = AtomicI64::new(0);

/// Number of the execution running on this thread; -1 outside of one.
pub fn current_task_id() -> i64 {
    RUNNING.with(|r| r.borrow().last().map_or(-1, |t| t.id))
}
/// Whether the execution running on this thread keeps its graph; true outside of one.
pub fn current_task_keeps_graph() -> bool {
    RUNNING.with(|r| r.borrow().last().is_none_or(|t| t.keep_graph))
}
/// Whether every execution that is running on this thread runs all of its graph: then a backward inside of it adds to
/// the same leaves' gradients as the outer ones.
pub fn is_whole_backward() -> bool {
    !IN_PART.with(Cell::get)
        && RUNNING.with(|r| r.borrow().iter().all(|t| t.request().targets.is_none()))
}

/// Whether the execution running on this thread hands gradients out instead of adding them to leaves.
pub fn is_capturing() -> bool {
    RUNNING.with(|r| {
        r.borrow()
            .last()
            .is_some_and(|t| t.request().targets.is_some() && t.request().goal != Goal::Accumulate)
    })
}

/// Whether the execution running on this thread runs `node` (or hands its gradients out).
///
/// # Errors
/// `RuntimeError` outside of one.
pub fn will_execute(node: &Node) -> Result<bool> {
    RUNNING.with(|r| {
        let mut running = r.borrow_mut();
        let Some(task) = running.last_mut() else {
            bail!(
                runtime,
                "_get_should_execute_nodes should only be called during the backward pass"
            );
        };
        if task.survey.is_none() {
            let survey = Task::survey(task.request());
            let runs = survey.states.iter().filter(|state| !survey.trimmed || state.runs());
            task.survey = Some(runs.map(|state| (state.node, 0)).collect());
        }
        Ok(task.survey.as_ref().is_some_and(|survey| survey.contains_key(&node.id())))
    })
}

/// The nodes that the execution running on this thread runs, in their order.
///
/// # Errors
/// `RuntimeError` outside of one, and unless multithreading is disabled.
pub fn execution_order() -> Result<Vec<Node>> {
    RUNNING.with(|r| {
        let running = r.borrow();
        let Some(task) = running.last() else {
            bail!(
                runtime,
                "_current_graph_task_execution_order should only be called during the backward pass"
            );
        };
        ensure!(
            !mode::is_multithreading_enabled(),
            runtime,
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, e.g. inside of `with torch.autograd.set_multithreading_enabled(False):`"
        );
        let mut survey = Task::survey(task.request());
        let mut order = Vec::new();
        for root in task.request().roots.iter().filter_map(|e| e.node.as_ref()) {
            if let Some(at) = survey.first_visit_of_root(root) {
                survey.push(at, root.clone());
            }
        }
        while let Some(Ready { node, .. }) = survey.ready.pop() {
            for next in node.next_edges().iter().filter_map(|e| e.node.as_ref()) {
                let Some(at) = survey.find(next).filter(|_| survey.runs(next)) else { continue };
                survey.states[at].missing -= 1;
                if survey.states[at].missing == 0 {
                    survey.push(at, next.clone());
                }
            }
            order.push(node);
        }
        Ok(order)
    })
}

/// The node being run on this thread.
pub fn current_node() -> Option<Node> {
    // SAFETY: null, or a handle that outlives the `Evaluation` which put it here and takes it away.
    EVALUATED.with(|place| unsafe { place.get().as_ref().cloned() })
}
/// Runs `callback` when the execution running on this thread has finished.
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

/// Does something when the execution running on this thread is over, be it by an error.
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

/// Runs a request and gives the captured gradients, one per target.
///
/// # Errors
/// The first error of any node; the engine is usable afterwards.
#[track_caller]
pub fn execute(mut request: Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let _site = Scope::of_caller(Location::caller());
    let _site = Site::here().enter();
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

/// A deep nest of backwards goes on with an empty stack.
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
            // (Nobody waits for it if this thread's caller was interrupted.)
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

/// Sets a flag if this thread unwinds: those that work for it stop.
struct StopOnUnwind<'a>(&'a AtomicBool);
impl Drop for StopOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn run_here(request: Request<'_>) -> Result<Vec<Option<Tensor>>> {
    let _mode = mode::set_grad(request.create_graph);
    let _entry = Entry::new(&request);
    let result = interrupt::caught(|| Task::new(&request)?.run());
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

/// Counts the depth and names the running task; undone on every way out.
struct Entry;
impl Entry {
    /// The request stays where it is until the entry is dropped.
    fn new(request: &Request<'_>) -> Self {
        Self::on(request, IDS.fetch_add(1, Ordering::Relaxed))
    }
    /// The same for a task that has a number.
    fn on(request: &Request<'_>, id: i64) -> Self {
        DEPTH.with(|d| d.set(d.get() + 1));
        let hooks = saved_hooks::depth();
        RUNNING.with(|r| {
            r.borrow_mut().push(Running {
                hooks,
                id,
                keep_graph: request.keep_graph,
                callbacks: Vec::new(),
                at_end: Vec::new(),
                request: std::ptr::from_ref(request).cast(),
                survey: None,
            });
        });
        Entry
    }
}
impl Drop for Entry {
    fn drop(&mut self) {
        DEPTH.with(|d| d.set(d.get() - 1));
        let done = RUNNING.with(|r| r.borrow_mut().pop());
        saved_hooks::truncate(done.as_ref().map_or(0, |task| task.hooks));
        done.into_iter().flat_map(|task| task.at_end).for_each(|at_end| at_end());
    }
}

/// Names the node that is being run on this thread; the one around it has its turn again afterwards.
struct Evaluation<'a> {
    previous: *const Node,
    _node: PhantomData<&'a Node>,
}
impl<'a> Evaluation<'a> {
    #[inline]
    fn of(node: &'a Node) -> Self {
        Evaluation { previous: EVALUATED.replace(node), _node: PhantomData }
    }
}
impl Drop for Evaluation<'_> {
    #[inline]
    fn drop(&mut self) {
        EVALUATED.set(self.previous);
    }
}

struct Task<'a> {
    request: &'a Request<'a>,
    /// In the order in which the walk found the nodes, so that neighbours in a chain are neighbours here.
    states: Vec<State>,
    places: Places,
    captures: SmallVec<[Capture; 2]>,
    ready: BinaryHeap<Ready>,
    captured: Vec<Option<Tensor>>,
    /// Whether only what leads to the targets runs.
    trimmed: bool,
    /// What has arrived, where threads of devices run nodes.
    arrivals: Option<device::Arrivals>,
}

impl<'a> Task<'a> {
    fn new(request: &'a Request<'a>) -> Result<Self> {
        let numbered = |right| Places::Numbered { _right: right };
        let hashed = || Places::Hashed(Index::default());
        let mut task =
            Task::walked(request, Numbering::take(&IS_NUMBERING).map_or_else(hashed, numbered));
        task.seed()?;
        Ok(task)
    }

    /// What would be run, beside a task that runs it.
    fn survey(request: &'a Request<'a>) -> Self {
        Task::walked(request, Places::Hashed(Index::default()))
    }

    fn walked(request: &'a Request<'a>, places: Places) -> Self {
        let mut task = Task {
            request,
            states: Vec::new(),
            places,
            captures: SmallVec::new(),
            ready: BinaryHeap::new(),
            captured: vec![None; request.targets.map_or(0, <[Edge]>::len)],
            trimmed: request.targets.is_some(),
            arrivals: None,
        };
        task.count_dependencies();
        task.mark_targets();
        if task.trimmed {
            task.states.iter_mut().for_each(|state| state.seen = false);
        }
        task
    }

    /// Where the state of a root is that waits for nothing, the first time it is asked about.
    fn first_visit_of_root(&mut self, root: &Node) -> Option<usize> {
        self.first_visit(root).filter(|&at| self.states[at].missing == 0 && self.runs(root))
    }

    /// Walks the graph once and counts, for each node, the edges that lead to it.
    fn count_dependencies(&mut self) {
        let lowest = self.request.targets.map_or(0, |targets| {
            targets
                .iter()
                .filter_map(|e| e.node.as_ref())
                .map(Node::topological_nr)
                .min()
                .unwrap_or(0)
        });
        let mut stack: Vec<&Node> = Vec::new();
        for root in self.request.roots.iter().filter_map(|e| e.node.as_ref()) {
            self.place(root, &mut stack);
        }
        while let Some(node) = stack.pop() {
            interrupt::check_every::<12>(self.states.len());
            if self.trimmed && node.topological_nr() < lowest {
                continue;
            }
            for next in node.next_edges().iter().filter_map(|e| e.node.as_ref()) {
                let at = self.place(next, &mut stack);
                self.states[at].missing += 1;
            }
        }
    }

    /// Where the state of `node` is; a node seen for the first time gets one and is put on the stack.
    fn place<'n>(&mut self, node: &'n Node, stack: &mut Vec<&'n Node>) -> usize {
        if let Some(at) = self.find(node) {
            return at;
        }
        let at = self.states.len();
        let number = u32::try_from(at).expect("that many nodes do not fit into memory");
        match &mut self.places {
            Places::Numbered { .. } => node.0.place.store(number, Ordering::Relaxed),
            Places::Hashed(index) => {
                index.insert(node.id(), number);
            }
        }
        self.states.push(State {
            node: node.id(),
            buffer: Grads::new(),
            missing: 0,
            captures: NO_CAPTURE,
            needed: false,
            seen: false,
        });
        stack.push(node);
        at
    }

    #[inline]
    fn find(&self, node: &Node) -> Option<usize> {
        let at = match &self.places {
            Places::Numbered { .. } => node.0.place.load(Ordering::Relaxed),
            Places::Hashed(index) => *index.get(&node.id())?,
        } as usize;
        self.states.get(at).is_some_and(|state| state.node == node.id()).then_some(at)
    }

    /// With targets: marks what leads to one, children before parents, without recursion.
    fn mark_targets(&mut self) {
        let Some(targets) = self.request.targets else { return };
        for (slot, target) in targets.iter().enumerate() {
            let Some(node) = &target.node else { continue };
            let Some(at) = self.find(node) else { continue };
            let state = &mut self.states[at];
            if self.request.goal == Goal::Accumulate {
                state.needed = true;
            } else {
                let number = self.captures.len() as u32;
                let next = std::mem::replace(&mut state.captures, number);
                self.captures.push(Capture { nr: target.nr, slot, next });
            }
        }
        let mut stack: Vec<(&Node, usize, usize)> = Vec::new();
        for root in self.request.roots.iter().filter_map(|e| e.node.as_ref()) {
            stack.extend(self.first_visit(root).map(|at| (root, at, 0)));
            while let Some((node, at, next)) = stack.pop() {
                if let Some(edge) = node.next_edges().get(next) {
                    stack.push((node, at, next + 1));
                    if let Some(child) = &edge.node
                        && let Some(at) = self.first_visit(child)
                    {
                        stack.push((child, at, 0));
                    }
                    continue;
                }
                let mut children = node.next_edges().iter().filter_map(|e| e.node.as_ref());
                let leads = children.any(|c| self.find(c).is_some_and(|at| self.states[at].runs()));
                self.states[at].needed |= leads;
            }
        }
    }

    /// Where the state of a node is, if it has one and was not asked about before.
    fn first_visit(&mut self, node: &Node) -> Option<usize> {
        let at = self.find(node)?;
        (!std::mem::replace(&mut self.states[at].seen, true)).then_some(at)
    }

    fn seed(&mut self) -> Result<()> {
        for (root, grad) in self.request.roots.iter().zip(&self.request.grads) {
            let Some(node) = &root.node else { continue };
            let is_first = self.first_visit(node).is_some();
            let at = self.find(node).expect("roots were placed first");
            self.add(at, node, root.nr, grad.clone())?;
            if is_first && self.states[at].missing == 0 {
                self.push(at, node.clone());
            }
        }
        Ok(())
    }

    fn push(&mut self, at: usize, node: Node) {
        self.ready.push(Ready { order: node.sequence_nr(), node, at });
    }

    fn runs(&self, node: &Node) -> bool {
        !self.trimmed || self.find(node).is_some_and(|at| self.states[at].runs())
    }

    /// Adds a gradient to what has arrived at input `nr` of `node`, whose state is `at`.
    fn add(&mut self, at: usize, node: &Node, nr: u32, grad: Option<Tensor>) -> Result<()> {
        let state = &mut self.states[at];
        if state.buffer.is_empty() {
            state.buffer = SmallVec::from_elem(None, node.input_meta().len().max(1));
        }
        let Some(grad) = grad else { return Ok(()) };
        let slot = &mut state.buffer[nr as usize];
        let Some(old) = slot.take() else {
            *slot = Some(grad);
            return Ok(());
        };
        let sole = !mode::is_recording()
            && old.use_count() == 1
            && old.geometry().storage.as_ref().is_some_and(|s| s.use_count() == 1)
            && old.shape() == grad.shape()
            && old.dtype() == grad.dtype()
            && !grad.overrides_ops()
            && !old.has_flag(Flag::SPARSE | Flag::UNRESOLVED)
            && old.is_contiguous();
        let sum = if sole {
            arithmetic::add_in_place(&old, &grad)?;
            old
        } else {
            arithmetic::add(&old, &grad)?
        };
        self.states[at].buffer[nr as usize] = Some(sum);
        Ok(())
    }

    fn run(mut self) -> Result<Vec<Option<Tensor>>> {
        if device::are_threads_due() {
            self.run_on_devices()?;
        }
        let mut count = 0_usize;
        while let Some(ready) = self.ready.pop() {
            interrupt::check_every::<LOOKS>(count);
            count = count.wrapping_add(1);
            self.run_one(&ready)?;
        }
        Ok(self.captured)
    }

    /// Runs a node on this thread.
    #[inline(always)]
    fn run_one(&mut self, Ready { node, at, .. }: &Ready) -> Result<()> {
        let _evaluation = Evaluation::of(node);
        if prof::is_observed() { self.step_observed(*at, node) } else { self.step(*at, node) }
    }

    /// Runs a node and passes its gradients on.
    #[inline(always)]
    fn step(&mut self, at: usize, node: &Node) -> Result<()> {
        let grads = std::mem::take(&mut self.states[at].buffer);
        let outputs = self.evaluate(at, node, grads).map_err(|error| explained(error, node))?;
        self.hand_on(node, outputs)
    }

    /// The same as a range of the profiler.
    #[cold]
    #[inline(never)]
    fn step_observed(&mut self, at: usize, node: &Node) -> Result<()> {
        let _range = prof::of_node(Kind::Evaluation, node, &[]);
        self.step(at, node)
    }

    /// Runs hooks and the node; gives one gradient per edge, fitted to the edge's target.
    fn evaluate(&mut self, at: usize, node: &Node, grads: Grads) -> Result<Option<Grads>> {
        let state = &self.states[at];
        let (needed, capture) = (!self.trimmed || state.needed, state.captures);
        if capture != NO_CAPTURE || !needed {
            self.capture(capture, &seen(node, &grads, needed)?);
        }
        if !needed {
            return Ok(None);
        }
        let edges = node.next_edges();
        let wanted =
            |i: usize| edges.get(i).and_then(|e| e.node.as_ref()).is_some_and(|n| self.runs(n));
        run_node(self.request, node, grads, &wanted).map(Some)
    }

    /// Puts what captures want of a node's gradients where it belongs.
    fn capture(&mut self, mut next: u32, seen: &Grads) {
        while let Some(capture) = self.captures.get(next as usize) {
            self.captured[capture.slot] = seen.get(capture.nr as usize).cloned().flatten();
            next = capture.next;
        }
    }

    /// Passes gradients along the edges and queues nodes that have all of theirs.
    fn hand_on(&mut self, node: &Node, outputs: Option<Grads>) -> Result<()> {
        let Some(mut outputs) = outputs else {
            // Captured only: what lies behind it is not needed.
            return Ok(());
        };
        for (index, edge) in node.next_edges().iter().enumerate() {
            let Some(next) = &edge.node else { continue };
            let Some(at) = self.find(next).filter(|&at| !self.trimmed || self.states[at].runs())
            else {
                continue;
            };
            let grad = outputs.get_mut(index).and_then(Option::take);
            if self.arrivals.is_some() {
                self.arrive((node, index), (at, next, edge.nr), grad)?;
            } else {
                self.add(at, next, edge.nr, grad)?;
            }
            let state = &mut self.states[at];
            ensure!(state.missing > 0, runtime, "dependency not found for {}", next.name());
            state.missing -= 1;
            if state.missing == 0 {
                self.push(at, next.clone());
            }
        }
        Ok(())
    }
}
