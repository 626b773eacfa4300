//! What comes next: a stretch of nodes in the order in which one thread runs them, found out before they run.
//!
//! A stretch ends before the first node that somebody can watch: one with hooks, a custom function, an op of another crate,
//! values that hooks packed, tensors of classes with ops of their own. From the order follows, for each node, in which order
//! gradients are added up at it. The numbers of elements say what each node may cost.

use super::state::{AddressHasher, NO_CAPTURE, ReadyNode};
use super::task::Task;
use crate::Tensor;
use crate::autograd::graph::node::{Body, Node, SavedValue};
use crate::autograd::variable::meta::lock;
use crate::dispatch::Traits;
use crate::tensor::Device;
use smallvec::SmallVec;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::atomic::Ordering;

/// Where a gradient of a node goes.
pub(super) struct EdgeTarget {
    /// The index of the edge.
    pub(super) index: usize,
    /// The index of the state of the node that it leads to, and the input there.
    pub(super) at: usize,
    pub(super) nr: u32,
}

/// A node of a stretch.
pub(super) struct Step {
    pub(super) node: Node,
    /// The index of the node's state.
    pub(super) at: usize,
    /// Whether the node runs, or its gradients are only captured.
    pub(super) needed: bool,
    /// Whether its gradients are captured.
    pub(super) is_captured: bool,
    /// The edges whose gradients are needed, in order.
    pub(super) targets: SmallVec<[EdgeTarget; 2]>,
    /// The time, in units of the costs, at which the node would begin and end if there were a
    /// thread for each node.
    begin: u64,
    end: u64,
}

impl Step {
    /// Whether the node writes to a `.grad`, which others see.
    pub(super) fn is_effect(&self) -> bool {
        self.needed && matches!(self.node.0.body, Body::AccumulateGrad(_))
    }
}

/// What is known beforehand of a node to which gradients go.
pub(super) struct Expected {
    /// Gradients still to come after the steps so far.
    missing: u32,
    /// The step of the node, if it has one.
    pub(super) step: Option<usize>,
    /// The steps that its gradients come from, in the order in which these are added.
    pub(super) from: SmallVec<[u32; 2]>,
    begin: u64,
}

/// Nodes that are expected, by the indices of their states.
pub(super) type ByState<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// The steps of a stretch of the graph, before any of them is computed.
pub(super) struct StretchPlan {
    pub(super) steps: Vec<Step>,
    pub(super) expected: ByState<Expected>,
    /// The nodes that are ready behind the stretch.
    pub(super) ready: BinaryHeap<ReadyNode>,
}

impl StretchPlan {
    /// The stretch of at most so many nodes that comes next.
    pub(super) fn of(task: &Task<'_>, most: usize) -> StretchPlan {
        let mut plan = StretchPlan {
            steps: Vec::new(),
            expected: ByState::default(),
            ready: task.ready.clone(),
        };
        while plan.steps.len() < most
            && plan.ready.peek().is_some_and(|next| is_unwatched(task, next))
            && let Some(next) = plan.ready.pop()
        {
            plan.add(task, next);
        }
        plan
    }

    /// Adds the node that one thread runs next.
    fn add(&mut self, task: &Task<'_>, ReadyNode { node, at, .. }: ReadyNode) {
        let state = &task.states[at];
        let rank = self.steps.len();
        let entry = self.expected(task, at);
        entry.step = Some(rank);
        let begin = entry.begin;
        let mut step = Step {
            at,
            needed: !task.trimmed || state.needed,
            is_captured: state.captures != NO_CAPTURE,
            targets: SmallVec::new(),
            begin,
            end: begin + cost(&node),
            node,
        };
        if step.needed {
            self.lead_on(task, rank, &mut step);
        }
        self.steps.push(step);
    }

    /// Notes where the gradients of a step go, and which nodes are ready then.
    fn lead_on(&mut self, task: &Task<'_>, rank: usize, step: &mut Step) {
        for (index, edge) in step.node.next_edges().iter().enumerate() {
            let Some(next) = edge.node.as_ref().filter(|next| task.runs(next)) else { continue };
            let Some(at) = task.find(next) else { continue };
            step.targets.push(EdgeTarget { index, at, nr: edge.nr });
            let entry = self.expected(task, at);
            entry.from.push(rank as u32);
            entry.begin = entry.begin.max(step.end);
            entry.missing = entry.missing.saturating_sub(1);
            if entry.missing == 0 {
                self.ready.push(ReadyNode { order: next.sequence_nr(), node: next.clone(), at });
            }
        }
    }

    fn expected(&mut self, task: &Task<'_>, at: usize) -> &mut Expected {
        let missing = task.states[at].missing;
        let new = || Expected { missing, step: None, from: SmallVec::new(), begin: 0 };
        self.expected.entry(at).or_insert_with(new)
    }

    /// The number of steps up to the last one that runs beside another.
    pub(super) fn branched_len(&self) -> usize {
        let (mut len, mut latest) = (0, 0);
        for (rank, step) in self.steps.iter().enumerate() {
            if step.begin < latest {
                len = rank + 1;
            }
            latest = latest.max(step.end);
        }
        len
    }

    /// What an unlimited number of threads would save, in elements.
    pub(super) fn gain(&self) -> u64 {
        let all: u64 = self.steps.iter().map(|step| step.end - step.begin).sum();
        all - self.steps.iter().map(|step| step.end).max().unwrap_or(0)
    }
}

/// What a node costs besides its elements, in elements: about a microsecond.
const NODE: u64 = 1 << 11;
/// Elements from which most kernels keep all threads busy by themselves.
const WIDE: u64 = 1 << 19;

/// About what a node costs that other threads could do meanwhile, in elements: those of the largest
/// gradient that it gets or gives, unless these are so many that its kernel runs on all threads.
/// Accumulators and the inverses of views move no elements.
fn cost(node: &Node) -> u64 {
    match &node.0.body {
        Body::AccumulateGrad(_) => 0,
        Body::Op { def, .. } if def.is(Traits::BIJECTIVE) => NODE,
        _ => match next_nodes(node).map(elements).fold(elements(node), u64::max) {
            WIDE.. => 0,
            elements => NODE + elements,
        },
    }
}

fn next_nodes(node: &Node) -> impl Iterator<Item = &Node> {
    node.next_edges().iter().filter_map(|edge| edge.node.as_ref())
}

/// The number of elements of the largest gradient that a node gets.
fn elements(node: &Node) -> u64 {
    let count = |shape: &[i64]| shape.iter().fold(1_u64, |n, &d| n.saturating_mul(d as u64));
    let counts = node.input_meta().iter().flatten().map(|meta| count(&meta.shape));
    // (So few that sums of costs do not run over.)
    counts.max().unwrap_or(0).min(1 << 40)
}

/// Whether a gradient of at least so many elements is a few nodes away, as seen from a few edges of each.
pub(super) fn leads_to_large(node: &Node, large: u64) -> bool {
    let mut next = Some(node);
    for _ in 0..NEAR {
        let Some(node) = next else { return false };
        if elements(node) >= large {
            return true;
        }
        next = next_nodes(node).take(NEAR).max_by_key(|next| elements(next));
    }
    false
}

/// What is near, in nodes and in edges.
const NEAR: usize = 8;

/// Whether the node runs without calling any code of the program, so that the program cannot
/// observe when it runs.
pub(super) fn is_unwatched(task: &Task<'_>, ReadyNode { node, at, .. }: &ReadyNode) -> bool {
    let is_plain = |grad: &Tensor| !grad.overrides_ops();
    let is_here = node.input_meta().iter().flatten().all(|meta| meta.device == Device::Cpu);
    let has_plain_body = match &node.0.body {
        Body::Op { def, slots, .. } => {
            !def.is(Traits::ELSEWHERE) && slots.iter().all(SavedValue::is_plain)
        }
        Body::AccumulateGrad(it) => is_unwatched_leaf(it.leaf()),
        Body::Custom(_) => false,
    };
    is_here
        && has_plain_body
        && !node.0.has_hooks.load(Ordering::Acquire)
        && task.states[*at].buffer.iter().flatten().all(is_plain)
}

/// Whether adding a gradient to the leaf's calls no code of the program.
fn is_unwatched_leaf(leaf: &Tensor) -> bool {
    if leaf.overrides_ops() {
        return false;
    }
    leaf.meta_if_any().is_none() || {
        let meta = lock(leaf);
        meta.hooks.is_empty()
            && meta.accumulate_hooks.is_empty()
            && !meta.grad.as_ref().is_some_and(Tensor::overrides_ops)
    }
}
