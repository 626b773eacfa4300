//! Running a stretch of nodes on several threads, with the same observable effects as on one
//! thread.
//!
//! The members of a crew of the pool take nodes from a board that one lock guards, the one that comes first in one thread's
//! order first. Nodes are computed as soon as their gradients are there, but what can be seen is done in that order, by one
//! member at a time: adding to a leaf's `.grad`, dropping what nodes saved. So after an error, which is the first one in that
//! order, nothing has happened that one thread would not have done. Gradients are added up at a node in that order too, by
//! whichever member brings the one that is next; those that come early wait. Memory: as long as early gradients hold more
//! than [`AHEAD`] bytes, only the node runs that is first in order.
//!
//! A member that finds nothing to do helps with the kernels of the others until something changes (`Member::wait_until`).

use super::evaluate::{compute, explained};
use super::plan::{ByState, Expected, Step, StretchPlan};
use super::request::Request;
use super::running::{TaskGuard, current_task_id};
use super::task::{Task, sum_up};
use crate::autograd::graph::current::Evaluation;
use crate::autograd::thread::state::QuietState;
use crate::dispatch::Grads;
use crate::tensor::memory;
use crate::{Error, Result, Tensor, interrupt, warning};
use pullback_kernels::parallel::{Member, together};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of gradients that may wait for their nodes before only the first node in order runs.
const AHEAD: usize = 64 << 20;

/// A gradient on its way to a node, ordered by when one thread would add it, the first one greatest.
struct Early {
    /// The step that it comes from, and the edge.
    from: Reverse<(usize, usize)>,
    nr: u32,
    grad: Option<Tensor>,
}
impl PartialEq for Early {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from
    }
}
impl Eq for Early {}
impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Early {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.from.cmp(&other.from)
    }
}

/// What arrives at a node.
struct Inbox {
    expected: Expected,
    /// The number of gradients that have been added.
    added: usize,
    early: BinaryHeap<Early>,
    /// Whether its node has effects that others see, which happen in order.
    is_effect: bool,
    /// Whether a member is adding, which then goes on with what came meanwhile.
    is_busy: bool,
    /// Bytes of gradients that have arrived.
    bytes: usize,
}

/// The progress of a step.
#[derive(Clone, Copy, Default)]
struct StretchProgress {
    has_run: bool,
    /// The number of the step's gradients that have not been added yet.
    unadded: usize,
}

/// An error, and the step in which it occurred.
struct StretchFailure {
    step: usize,
    error: Error,
    /// Whether the node itself failed, rather than the sum of its gradients with others.
    is_of_node: bool,
}

/// The state of a stretch that its members share, under a lock.
struct Board<'t, 'a> {
    task: &'t mut Task<'a>,
    inboxes: ByState<Inbox>,
    progress: Vec<StretchProgress>,
    /// The steps that can be computed.
    ready: BinaryHeap<Reverse<usize>>,
    /// The number of steps at the beginning that are computed and whose effects are visible.
    done: usize,
    /// Whether a member is making the effects of step `done` visible (hooks, `.grad`s), which is done in order.
    is_finishing: bool,
    /// Bytes of gradients that wait for their nodes.
    ahead: usize,
    /// The number of members who wait for a step.
    waiting: usize,
    /// The first error in order so far.
    failure: Option<StretchFailure>,
    warnings: Vec<(usize, Vec<String>)>,
    /// Whether a member unwinds.
    is_given_up: bool,
}

/// What a member does next.
enum Next {
    /// Compute a step, given these gradients.
    Compute(usize, Grads),
    /// Make a step's effect visible: add these gradients to a leaf's.
    Accumulate(usize, Grads),
    /// Make a step's effect visible: drop the values that its node saved.
    Release(usize),
    /// Wait for another change than this one.
    Wait(usize),
    End,
}

struct Stretch<'s, 't, 'a> {
    steps: &'s [Step],
    request: &'a Request<'a>,
    id: i64,
    state: QuietState,
    board: Mutex<Board<'t, 'a>>,
    /// Counts what members who wait must hear of.
    changes: AtomicUsize,
}

/// Runs a plan on up to so many threads; false, and nothing has run, if the pool is busy.
pub(super) fn run(
    task: &mut Task<'_>,
    plan: StretchPlan,
    state: QuietState,
    threads: usize,
) -> Result<bool> {
    let StretchPlan { steps, expected, ready } = plan;
    let request = task.request;
    let board = Mutex::new(Board::new(task, &steps, expected));
    let changes = AtomicUsize::new(0);
    let stretch = Stretch { steps: &steps, request, id: current_task_id(), state, board, changes };
    if !together(threads, &|member| stretch.take_part(member)) {
        return Ok(false);
    }
    let Board { task, failure, mut warnings, .. } =
        stretch.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    let last = failure.as_ref().map_or(usize::MAX, |failure| failure.step);
    // bounded: by the nodes of a stretch.
    warnings.sort_by_key(|(step, _)| *step);
    let given = warnings.into_iter().filter(|(step, _)| *step <= last);
    given.flat_map(|(_, texts)| texts).for_each(warning::warn);
    task.ready = ready;
    match failure {
        None => Ok(true),
        Some(StretchFailure { step, error, is_of_node: true }) => {
            let _evaluation = Evaluation::of(&steps[step].node);
            Err(explained(error, &steps[step].node))
        }
        Some(StretchFailure { error, .. }) => Err(error),
    }
}

impl<'t, 'a> Board<'t, 'a> {
    fn new(task: &'t mut Task<'a>, steps: &[Step], expected: ByState<Expected>) -> Self {
        let inbox = |(at, expected): (usize, Expected)| {
            let is_effect = expected.step.is_some_and(|step| steps[step].is_effect());
            let (early, is_busy) = (BinaryHeap::new(), false);
            (at, Inbox { expected, added: 0, early, is_effect, is_busy, bytes: 0 })
        };
        let inboxes: ByState<Inbox> = expected.into_iter().map(inbox).collect();
        let is_ready = |(_, step): &(usize, &Step)| {
            !step.is_effect() && inboxes[&step.at].expected.from.is_empty()
        };
        let ready = steps.iter().enumerate().filter(is_ready).map(|(rank, _)| Reverse(rank));
        Board {
            ready: ready.collect(),
            task,
            inboxes,
            // bounded: by the nodes of a stretch.
            progress: vec![StretchProgress::default(); steps.len()],
            done: 0,
            is_finishing: false,
            ahead: 0,
            waiting: 0,
            failure: None,
            warnings: Vec::new(),
            is_given_up: false,
        }
    }

    fn is_over(&self) -> bool {
        let has_failed = self.failure.as_ref().is_some_and(|failure| failure.step == self.done);
        self.is_given_up || has_failed || self.done == self.progress.len()
    }

    /// Keeps the first error in order.
    fn fail(&mut self, step: usize, error: Error, is_of_node: bool) {
        if self.failure.as_ref().is_none_or(|failure| step < failure.step) {
            self.failure = Some(StretchFailure { step, error, is_of_node });
        }
    }

    /// The gradients of a step's node, which begins.
    fn take(&mut self, step: &Step) -> Grads {
        let bytes =
            self.inboxes.get_mut(&step.at).map_or(0, |inbox| std::mem::take(&mut inbox.bytes));
        self.ahead -= bytes;
        std::mem::take(&mut self.task.states[step.at].buffer)
    }

    /// The effect of the step that is next in order, if that can be made visible now.
    fn next_effect(&mut self, steps: &[Step]) -> Option<Next> {
        while !self.is_finishing && !self.is_over() {
            let (rank, step) = (self.done, &steps[self.done]);
            if step.is_effect() {
                // (All steps before it are done: its gradients are there.)
                self.is_finishing = true;
                return Some(Next::Accumulate(rank, self.take(step)));
            }
            let StretchProgress { has_run, unadded } = self.progress[rank];
            if !has_run || unadded > 0 {
                return None;
            }
            if step.needed && !self.task.request.keep_graph {
                self.is_finishing = true;
                return Some(Next::Release(rank));
            }
            self.done += 1;
        }
        None
    }

    /// The step to compute next, if one may be.
    fn next_step(&self) -> Option<usize> {
        let &Reverse(rank) = self.ready.peek()?;
        let is_due = self.failure.as_ref().is_none_or(|failure| rank < failure.step);
        (is_due && (self.ahead <= AHEAD || rank == self.done)).then_some(rank)
    }

    fn next(&mut self, steps: &[Step]) -> Option<Next> {
        if let Some(effect) = self.next_effect(steps) {
            return Some(effect);
        }
        if self.is_over() {
            return Some(Next::End);
        }
        let rank = self.next_step()?;
        self.ready.pop();
        Some(Next::Compute(rank, self.take(&steps[rank])))
    }
}

impl<'t, 'a> Stretch<'_, 't, 'a> {
    fn lock(&self) -> MutexGuard<'_, Board<'t, 'a>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a member, until all is done.
    fn take_part(&self, member: &Member<'_>) {
        let _reports = ReportOnDrop;
        let _entered = self.state.enter();
        let _task = TaskGuard::on(self.request, self.id);
        let give_up = || {
            self.lock().is_given_up = true;
            self.tell(member);
        };
        let _stop = OnUnwind(&give_up);
        loop {
            interrupt::check();
            match self.next(member) {
                Next::Compute(rank, grads) => self.compute(rank, grads),
                Next::Accumulate(rank, grads) => self.accumulate(rank, grads),
                Next::Release(rank) => {
                    self.steps[rank].node.release();
                    self.finish(rank, Ok(()));
                }
                Next::Wait(seen) => {
                    member.wait_until(&|| self.changes.load(Ordering::Acquire) != seen);
                    self.lock().waiting -= 1;
                }
                Next::End => return,
            }
        }
    }

    /// Tells the members who wait that there is something for them.
    fn tell(&self, member: &Member<'_>) {
        self.changes.fetch_add(1, Ordering::Release);
        member.wake_others();
    }

    fn next(&self, member: &Member<'_>) -> Next {
        let mut board = self.lock();
        let next = board.next(self.steps);
        let Some(next) = next else {
            board.waiting += 1;
            return Next::Wait(self.changes.load(Ordering::Acquire));
        };
        // (Whoever changes the board takes what comes first itself.)
        let is_more = matches!(next, Next::End) || board.next_step().is_some();
        let must_tell = board.waiting > 0 && is_more;
        drop(board);
        if must_tell {
            self.tell(member);
        }
        next
    }

    /// Computes a step and brings its gradients where they go.
    fn compute(&self, rank: usize, grads: Grads) {
        let step = &self.steps[rank];
        let seen = step.is_captured.then(|| grads.clone());
        let wanted = |edge: usize| step.targets.binary_search_by_key(&edge, |t| t.index).is_ok();
        let work = || -> Result<Grads> {
            if !step.needed {
                return Ok(Grads::new());
            }
            let _evaluation = Evaluation::of(&step.node);
            compute(self.request, &step.node, grads, &wanted)
        };
        let (result, warnings) = warning::collected(work);
        let mut board = self.lock();
        if !warnings.is_empty() {
            board.warnings.push((rank, warnings));
        }
        match result {
            Ok(outputs) => {
                if let Some(seen) = seen {
                    let captures = board.task.states[step.at].captures;
                    board.task.capture(captures, &seen);
                }
                self.hand_on(board, rank, outputs);
            }
            Err(error) => board.fail(rank, error, true),
        }
    }

    /// Passes the gradients of a step along the edges.
    fn hand_on<'g>(
        &'g self,
        mut board: MutexGuard<'g, Board<'t, 'a>>,
        rank: usize,
        mut outputs: Grads,
    ) {
        let step = &self.steps[rank];
        board.progress[rank] = StretchProgress { has_run: true, unadded: step.targets.len() };
        for target in &step.targets {
            let grad = outputs.get_mut(target.index).and_then(Option::take);
            let bytes = grad.as_ref().map_or(0, bytes);
            board.ahead += bytes;
            let inbox = board.inboxes.get_mut(&target.at).expect("a target is expected");
            inbox.bytes += bytes;
            let from = Reverse((rank, target.index));
            inbox.early.push(Early { from, nr: target.nr, grad });
        }
        for target in &step.targets {
            board = self.add_up(board, target.at);
        }
    }

    /// Adds the gradients at a node that are next in order, unless a member does so already.
    fn add_up<'g>(
        &'g self,
        mut board: MutexGuard<'g, Board<'t, 'a>>,
        at: usize,
    ) -> MutexGuard<'g, Board<'t, 'a>> {
        while let Some(Early { from: Reverse((rank, index)), nr, grad }) = board.next_early(at) {
            let node = self.steps[rank].node.next_edges()[index].node.as_ref();
            let node = node.expect("a target is a node");
            let slot = board.task.states[at].buffer.get_mut(nr as usize);
            let result = match (slot.and_then(Option::take), grad) {
                (Some(sum), Some(grad)) => {
                    // (Without the lock, as that may take long.)
                    let mut sum = Some(sum);
                    drop(board);
                    let result = sum_up(&mut sum, grad);
                    board = self.lock();
                    result.and_then(|()| board.task.add(at, node, nr, sum))
                }
                (sum, grad) => board.task.add(at, node, nr, sum.or(grad)),
            };
            board.has_added(at, rank, result);
        }
        board
    }

    /// Adds the gradient of a leaf to its `.grad`.
    fn accumulate(&self, rank: usize, grads: Grads) {
        let step = &self.steps[rank];
        let work = || {
            let _evaluation = Evaluation::of(&step.node);
            compute(self.request, &step.node, grads, &|_| false)
        };
        let (result, warnings) = warning::collected(work);
        if !warnings.is_empty() {
            self.lock().warnings.push((rank, warnings));
        }
        self.finish(rank, result.map(drop));
    }

    /// Notes that everything of a step is done.
    fn finish(&self, rank: usize, result: Result<()>) {
        let mut board = self.lock();
        board.is_finishing = false;
        match result {
            Ok(()) => board.done += 1,
            Err(error) => board.fail(rank, error, true),
        }
    }
}

impl Board<'_, '_> {
    /// Takes the gradient that is to be added next at a node, if it is there and nobody else is adding.
    fn next_early(&mut self, at: usize) -> Option<Early> {
        let inbox = self.inboxes.get_mut(&at)?;
        let from = *inbox.expected.from.get(inbox.added)? as usize;
        let is_next = inbox.early.peek().is_some_and(|early| early.from.0.0 == from);
        if inbox.is_busy || !is_next {
            return None;
        }
        inbox.is_busy = true;
        inbox.early.pop()
    }

    /// Notes that a gradient of a step was added at a node, which may be ready by that.
    fn has_added(&mut self, at: usize, rank: usize, result: Result<()>) {
        let inbox = self.inboxes.get_mut(&at).expect("a target is expected");
        inbox.is_busy = false;
        inbox.added += 1;
        if let Err(error) = result {
            return self.fail(rank, error, false);
        }
        self.progress[rank].unadded -= 1;
        let state = &mut self.task.states[at];
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0
            && let Some(step) = inbox.expected.step
            && !inbox.is_effect
        {
            self.ready.push(Reverse(step));
        }
    }
}

/// Bytes that a gradient holds at most.
fn bytes(grad: &Tensor) -> usize {
    (grad.numel() as usize).saturating_mul(grad.dtype().size())
}

/// Reports to the caller's thread, which counts the bytes that tensors hold, how many this thread
/// has allocated and freed.
struct ReportOnDrop;

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        memory::report();
    }
}

/// Calls what it holds if this thread unwinds.
struct OnUnwind<'a>(&'a dyn Fn());

impl Drop for OnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}
