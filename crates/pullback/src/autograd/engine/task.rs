//! A task, which is one run of the engine: the nodes to run, the number of gradients that each still waits for, the buffers
//! that sum the gradients that have arrived, and the gradients to capture.
//!
//! Nodes run in order of sequence number, latest first, and a node runs when everything it depends on has. Sums are made in
//! that order too, so results are the same bits every time. Start at [`Task::new`] and [`Task::run`].

use super::arrival::{Arrival, Arrivals};
use super::evaluate::{explained, run_node, seen};
use super::request::{Goal, Request};
use super::state::{AddressMap, Capture, NO_CAPTURE, NodeState, ReadyNode, StateIndex};
use crate::autograd::graph::current::Evaluation;
use crate::autograd::graph::node::{Edge, Node};
use crate::autograd::graph::numbering::Numbering;
use crate::autograd::{arithmetic, mode};
use crate::dispatch::Grads;
use crate::error::ensure;
use crate::interrupt;
use crate::prof::{self, RangeKind};
use crate::tensor::Flag;
use crate::{Result, Tensor};
use smallvec::SmallVec;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The engine checks for an interruption once in `2^LOOKS` nodes: a check costs a thirtieth of a node, and nodes that run
/// long check by themselves.
const LOOKS: u32 = 3;

/// Whether a task of the process numbers nodes; only one at a time may.
static IS_NUMBERING: AtomicBool = AtomicBool::new(false);

/// One run of the engine.
pub(super) struct Task<'a> {
    pub(super) request: &'a Request<'a>,
    /// The states in the order in which the traversal found the nodes, so that neighbours in a chain are neighbours here.
    pub(super) states: Vec<NodeState>,
    state_index: StateIndex,
    captures: SmallVec<[Capture; 2]>,
    pub(super) ready: BinaryHeap<ReadyNode>,
    captured: Vec<Option<Tensor>>,
    /// Whether only nodes that lead to the targets run.
    pub(super) trimmed: bool,
    /// The gradients that have arrived, where threads of devices run nodes.
    pub(super) arrivals: Option<Arrivals>,
}

impl<'a> Task<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Result<Self> {
        let numbered = |right| StateIndex::Numbered { _right: right };
        let hashed = || StateIndex::Hashed(AddressMap::default());
        let mut task =
            Task::walked(request, Numbering::take(&IS_NUMBERING).map_or_else(hashed, numbered));
        task.seed()?;
        Ok(task)
    }

    /// A task that finds out which nodes a run would run, beside the task that runs them.
    pub(super) fn survey(request: &'a Request<'a>) -> Self {
        Task::walked(request, StateIndex::Hashed(AddressMap::default()))
    }

    fn walked(request: &'a Request<'a>, state_index: StateIndex) -> Self {
        let mut task = Task {
            request,
            states: Vec::new(),
            state_index,
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

    /// The index of a root's state if the root waits for nothing, on the first call for it.
    pub(super) fn first_visit_of_root(&mut self, root: &Node) -> Option<usize> {
        self.first_visit(root).filter(|&at| self.states[at].missing == 0 && self.runs(root))
    }

    /// Traverses the graph once and counts, for each node, the edges that lead to it.
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
            self.index_of(root, &mut stack);
        }
        while let Some(node) = stack.pop() {
            interrupt::check_every::<12>(self.states.len());
            if self.trimmed && node.topological_nr() < lowest {
                continue;
            }
            for next in node.next_edges().iter().filter_map(|e| e.node.as_ref()) {
                let at = self.index_of(next, &mut stack);
                self.states[at].missing += 1;
            }
        }
    }

    /// The index of the state of `node`; a node that has none yet gets one and is pushed onto `stack`.
    fn index_of<'n>(&mut self, node: &'n Node, stack: &mut Vec<&'n Node>) -> usize {
        if let Some(at) = self.find(node) {
            return at;
        }
        let at = self.states.len();
        let number = u32::try_from(at).expect("that many nodes do not fit into memory");
        match &mut self.state_index {
            StateIndex::Numbered { .. } => node.0.task_index.store(number, Ordering::Relaxed),
            StateIndex::Hashed(index) => {
                index.insert(node.id(), number);
            }
        }
        self.states.push(NodeState {
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
    pub(super) fn find(&self, node: &Node) -> Option<usize> {
        let at = match &self.state_index {
            StateIndex::Numbered { .. } => node.0.task_index.load(Ordering::Relaxed),
            StateIndex::Hashed(index) => *index.get(&node.id())?,
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

    /// The index of a node's state, if it has one and the current traversal has not visited it before.
    fn first_visit(&mut self, node: &Node) -> Option<usize> {
        let at = self.find(node)?;
        (!std::mem::replace(&mut self.states[at].seen, true)).then_some(at)
    }

    fn seed(&mut self) -> Result<()> {
        for (root, grad) in self.request.roots.iter().zip(&self.request.grads) {
            let Some(node) = &root.node else { continue };
            let is_first = self.first_visit(node).is_some();
            let at = self.find(node).expect("every root has a state");
            self.add(at, node, root.nr, grad.clone())?;
            if is_first && self.states[at].missing == 0 {
                self.push(at, node.clone());
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, at: usize, node: Node) {
        self.ready.push(ReadyNode { order: node.sequence_nr(), node, at });
    }

    pub(super) fn runs(&self, node: &Node) -> bool {
        !self.trimmed || self.find(node).is_some_and(|at| self.states[at].runs())
    }

    /// Adds a gradient to what has arrived at input `nr` of `node`, whose state is `at`.
    pub(super) fn add(
        &mut self,
        at: usize,
        node: &Node,
        nr: u32,
        grad: Option<Tensor>,
    ) -> Result<()> {
        let state = &mut self.states[at];
        if state.buffer.is_empty() {
            state.buffer = SmallVec::from_elem(None, node.input_meta().len().max(1));
        }
        let Some(grad) = grad else { return Ok(()) };
        sum_up(&mut state.buffer[nr as usize], grad)
    }

    /// As [`Task::add`] where several threads run nodes: the gradients of an input are added, in a fixed order, once all have
    /// arrived.
    #[cold]
    fn arrive(
        &mut self,
        (from, index): (&Node, usize),
        (at, next, nr): (usize, &Node, u32),
        grad: Option<Tensor>,
    ) -> Result<()> {
        let is_last = self.states[at].missing == 1;
        let Some(arrivals) = &mut self.arrivals else { return self.add(at, next, nr, grad) };
        let arrival = Arrival { from: (from.sequence_nr(), index), nr, grad };
        for arrival in arrivals.note(at, arrival, is_last) {
            self.add(at, next, arrival.nr, arrival.grad)?;
        }
        Ok(())
    }

    /// Runs all nodes that are ready, and those that become ready; the captured gradients. After `look_at` nodes, as soon as
    /// several are ready, `look` may run some of the next ones; it returns the number of nodes after which to call it again.
    pub(super) fn run(
        mut self,
        mut look_at: usize,
        look: fn(&mut Self) -> Result<usize>,
    ) -> Result<Vec<Option<Tensor>>> {
        let mut count = 0_usize;
        loop {
            if self.ready.len() > 1 && count >= look_at {
                look_at = count.saturating_add(look(&mut self)?);
            }
            let Some(ready) = self.ready.pop() else { return Ok(self.captured) };
            interrupt::check_every::<LOOKS>(count);
            count = count.wrapping_add(1);
            self.run_one(&ready)?;
        }
    }

    /// Runs a node on this thread.
    #[inline(always)]
    pub(super) fn run_one(&mut self, ReadyNode { node, at, .. }: &ReadyNode) -> Result<()> {
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

    /// [`Task::step`] within a range of the profiler.
    #[cold]
    #[inline(never)]
    fn step_observed(&mut self, at: usize, node: &Node) -> Result<()> {
        let _range = prof::of_node(RangeKind::Evaluation, node, &[]);
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

    /// Stores the gradients of a node that the list of captures from `next` on requests.
    pub(super) fn capture(&mut self, mut next: u32, seen: &Grads) {
        while let Some(capture) = self.captures.get(next as usize) {
            self.captured[capture.slot] = seen.get(capture.nr as usize).cloned().flatten();
            next = capture.next;
        }
    }

    /// Passes gradients along the edges and queues nodes that have all of theirs.
    pub(super) fn hand_on(&mut self, node: &Node, outputs: Option<Grads>) -> Result<()> {
        let Some(mut outputs) = outputs else {
            // The node's gradients were captured only: no gradient behind it is needed.
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

/// Adds a gradient to the sum of those that arrived before.
pub(super) fn sum_up(slot: &mut Option<Tensor>, grad: Tensor) -> Result<()> {
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
    *slot = Some(sum);
    Ok(())
}
