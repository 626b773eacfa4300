//! Nodes and edges of the backward graph.
//!
//! A node consumes the gradients of a forward op's outputs (its inputs) and gives those of the op's
//! inputs (its outputs, one per edge). Edges are fixed when the node is made. Invariant: edges lead to
//! nodes made earlier or to leaves, so the graph has no cycles; freeing is iterative, so a chain may be
//! as long as memory allows. Start at [`Node`]; what it does when run is its [`Body`].

use super::accumulator::{self, Accumulator, Home};
use super::counted::{Counted, Last, Weak};
use super::hook::Hooks;
use super::input_meta::InputMeta;
use super::sequence::next_numbers;
use crate::Result;
use crate::Tensor;
use crate::autograd::thread::level::KeptTangents;
use crate::autograd::thread::saved_hooks::Packed;
use crate::call_site::CallSite;
use crate::dispatch::{Facts, Grads, OpDef, Value};
use crate::tensor::{Flag, SpinLock};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// A counted handle to a node. (The accumulator of a leaf counts its handles itself: see `accumulator`.)
pub struct Node(pub(in crate::autograd) ManuallyDrop<Counted<Inner>>);

/// A handle that does not keep its node alive.
#[derive(Clone, Default)]
pub struct WeakNode(Weak<Inner>);

/// Where a gradient goes: input `nr` of `node`, or nowhere.
#[derive(Clone, Default)]
pub struct Edge {
    /// The node, if the gradient is wanted.
    pub node: Option<Node>,
    /// Which of its inputs.
    pub nr: u32,
}

pub(in crate::autograd) struct Inner {
    pub(in crate::autograd) sequence_nr: AtomicU64,
    pub(in crate::autograd) thread_id: u32,
    pub(in crate::autograd) topological_nr: u32,
    /// The index of the node's state in the engine's task; only the engine reads and writes it.
    pub(in crate::autograd) task_index: AtomicU32,
    pub(in crate::autograd) edges: SmallVec<[Edge; 2]>,
    /// One per forward output; `None` for outputs without gradient. Accumulators have theirs elsewhere.
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    pub(in crate::autograd) body: Body,
    pub(in crate::autograd) has_hooks: AtomicBool,
    pub(in crate::autograd) hooks: Mutex<Option<Box<Hooks>>>,
    pub(in crate::autograd) python: AtomicPtr<()>,
    /// Where the program was when it was made.
    call_site: CallSite,
}

/// What a node saved, in the order of [`OpDef::saves`].
pub(crate) type Slots = SmallVec<[Slot; 2]>;

/// One saved value. Tensors can be taken away (the graph was freed) while another thread reads.
pub(crate) enum Slot {
    /// Nothing was needed, or it was `None`.
    Empty,
    /// Anything without version.
    Plain(Value),
    /// Sizes, strides or another list of integers; two fit in without memory of their own.
    Sizes(SmallVec<[i64; 2]>),
    /// A tensor, until the graph is freed.
    Tensor(SpinLock<Option<SavedTensor>>),
    /// A list of tensors.
    Tensors(SpinLock<Option<Box<[SavedTensor]>>>),
    /// A list with gaps.
    OptTensors(SpinLock<Option<Box<[Option<SavedTensor>]>>>),
}

/// A tensor as a node keeps it. Custom functions use it too.
#[derive(Clone)]
pub struct SavedTensor(pub(in crate::autograd) Kept);

/// (The tag byte is what leaves room for the other variant, and for `None`, in sixteen bytes.)
#[derive(Clone)]
pub(in crate::autograd) enum Kept {
    /// The tensor, its version at saving time, and which output of the node it is.
    Here { tensor: Tensor, version: u32, output: OutputNr, tag: Tag },
    /// What hooks made of it.
    Packed(Arc<PackedTensor>),
    /// Nothing any more, since the backward of this line.
    Freed(CallSite),
}

const _: () = assert!(size_of::<Option<SavedTensor>>() == 16);

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(in crate::autograd) enum Tag {
    /// It had no producer.
    Leaf,
    /// It had one, without which it is not what was saved.
    Interior,
}

/// Which output of its node a saved tensor is, in 24 bits; the largest number means an input.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::autograd) struct OutputNr(pub(in crate::autograd) [u8; 3]);

/// A saved tensor in the form that hooks gave it, with the history it is to have when it comes back.
pub(in crate::autograd) struct PackedTensor {
    pub(in crate::autograd) packed: Box<dyn Packed>,
    pub(in crate::autograd) history: History,
    /// The tangent, which hooks do not see: they run without forward mode.
    pub(in crate::autograd) tangent: SpinLock<KeptTangents>,
}

pub(in crate::autograd) enum History {
    /// None is wanted.
    None,
    /// It is an output of the node that saved it.
    Output(u32),
    /// Another node's.
    Edge(Edge),
    /// A leaf whose gradients go to this accumulator, as long as something else keeps it.
    Leaf(WeakNode),
}

/// What a node does.
pub(in crate::autograd) enum Body {
    /// The rules of an op.
    Op { def: &'static OpDef, slots: Slots, facts: Facts },
    /// Adds what arrives to a leaf's `.grad`.
    AccumulateGrad(Accumulator),
    /// Anything else: custom functions, `CopySlices`, errors.
    Custom(Box<dyn Backward>),
}

/// A node written by hand.
pub trait Backward: Send + Sync {
    /// What `grad_fn.name()` says.
    fn name(&self) -> String;
    /// Gives one gradient per edge.
    ///
    /// # Errors
    /// Whatever the computation gives; backward stops with it.
    fn apply(&self, node: &Node, grads: Grads) -> Result<Grads>;
    /// Drops what was saved.
    fn release(&self) {}
    /// Whether a complex gradient for a real input stands for its real part; if not, it is an error.
    fn takes_real_part(&self) -> bool {
        false
    }
    /// The Python context of a custom function, for the Python face.
    fn python_context(&self) -> Option<*mut ()> {
        None
    }
    /// Whether somebody holds the node other than by handles, so that it outlives the last one.
    fn is_kept(&self) -> bool {
        false
    }
    /// Takes the node that this belongs to, whose last handle goes, until it is held again.
    fn keep(&self, node: Node) {
        drop(node);
    }
    /// Shows nodes that it holds besides those that its edges lead to.
    fn each_held(&self, _see: &mut dyn FnMut(&Node)) {}
    /// For downcasts by the crate that made it.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

thread_local! {
    /// Nodes that wait to be dropped by the loop further up this thread's stack.
    static DROPPING: RefCell<Option<Vec<Last<Inner>>>> = const { RefCell::new(None) };
}

/// A leaf's place for its accumulator.
#[derive(Default)]
pub(crate) struct AccumulatorSlot(accumulator::Slot<Inner>);

impl AccumulatorSlot {
    /// A handle to the accumulator of `leaf`, whose slot this is; whether it is the first one.
    #[inline]
    pub(in crate::autograd) fn handle(&self, leaf: &Tensor) -> (Node, bool) {
        let (handle, is_first) = self.0.get(leaf);
        (Node(handle), is_first)
    }
    /// A handle if there are others.
    pub(in crate::autograd) fn live(&self) -> Option<Node> {
        self.0.live().map(Node)
    }
    /// Lets the next graph have a new one.
    pub(crate) fn forget(&self) {
        drop(self.0.forget().map(Node));
    }
}

impl Home for Inner {
    type Hooks = Box<Hooks>;

    fn around(accumulator: Accumulator) -> Counted<Inner> {
        let body = Body::AccumulateGrad(accumulator);
        block(body, SmallVec::new(), SmallVec::new(), CallSite::UNKNOWN)
    }
    fn accumulator(&self) -> Option<&Accumulator> {
        match &self.body {
            Body::AccumulateGrad(it) => Some(it),
            _ => None,
        }
    }
    fn has_hooks(&self) -> bool {
        self.has_hooks.load(Acquire)
    }
    fn take_hooks_if(&self, is_due: impl FnOnce() -> bool) -> Option<Box<Hooks>> {
        let mut hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_due() {
            return None;
        }
        self.has_hooks.store(false, Release);
        hooks.take()
    }
}

/// A node's memory.
#[inline(always)]
pub(in crate::autograd) fn block(
    body: Body,
    edges: SmallVec<[Edge; 2]>,
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    call_site: CallSite,
) -> Counted<Inner> {
    let is_leaf = matches!(body, Body::AccumulateGrad(_));
    let topological_nr = edges
        .iter()
        .filter_map(|e| e.node.as_ref())
        .map(|n| n.0.topological_nr.saturating_add(1))
        .max();
    let (sequence_nr, thread_id) = next_numbers(is_leaf);
    // Field by field, so that the large ones are moved once.
    // SAFETY: every field is written.
    unsafe {
        Counted::make(|inner: *mut Inner| {
            (&raw mut (*inner).sequence_nr).write(AtomicU64::new(sequence_nr));
            (&raw mut (*inner).thread_id).write(thread_id);
            (&raw mut (*inner).topological_nr).write(topological_nr.unwrap_or(0));
            (&raw mut (*inner).task_index).write(AtomicU32::new(0));
            (&raw mut (*inner).edges).write(edges);
            (&raw mut (*inner).inputs).write(inputs);
            (&raw mut (*inner).body).write(body);
            (&raw mut (*inner).has_hooks).write(AtomicBool::new(false));
            (&raw mut (*inner).hooks).write(Mutex::new(None));
            (&raw mut (*inner).python).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*inner).call_site).write(call_site);
        })
    }
}

impl Clone for Node {
    #[inline]
    fn clone(&self) -> Self {
        if let Body::AccumulateGrad(it) = &self.0.body {
            it.add_handle();
            // SAFETY: such handles do not count in the block.
            return Node(ManuallyDrop::new(unsafe { self.0.uncounted() }));
        }
        Node(self.0.clone())
    }
}

impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        if let Body::AccumulateGrad(it) = &self.0.body {
            // SAFETY: this handle's own count; it goes here.
            unsafe { accumulator::drop_handle(&self.0, it) };
            return;
        }
        // SAFETY: taken once, here.
        if let Some(last) = unsafe { ManuallyDrop::take(&mut self.0) }.let_go() {
            drop_last(last);
        }
    }
}

impl Node {
    /// `MulBackward0`, `torch::autograd::AccumulateGrad`, ...
    pub fn name(&self) -> String {
        match &self.0.body {
            Body::Op { def, .. } => op_name(def.node_name),
            Body::AccumulateGrad(_) => "torch::autograd::AccumulateGrad".into(),
            Body::Custom(custom) => custom.name(),
        }
    }
    /// Where the gradients go: one edge per differentiable forward input.
    pub fn next_edges(&self) -> &[Edge] {
        &self.0.edges
    }
    /// What arriving gradients must look like; `None` for outputs without gradient.
    #[inline]
    pub fn input_meta(&self) -> &[Option<InputMeta>] {
        match &self.0.body {
            Body::AccumulateGrad(it) => it.expected(),
            _ => &self.0.inputs,
        }
    }
    /// Counts up on each thread as nodes are made; leaves have the largest number.
    pub fn sequence_nr(&self) -> u64 {
        self.0.sequence_nr.load(Relaxed)
    }
    /// Gives it another number: of the nodes that could run next, the engine takes the one with the largest.
    pub fn set_sequence_nr(&self, number: u64) {
        self.0.sequence_nr.store(number, Relaxed);
    }
    /// Length of the longest path to a leaf.
    pub fn topological_nr(&self) -> u64 {
        u64::from(self.0.topological_nr)
    }
    /// The thread that made it.
    pub fn thread_id(&self) -> u64 {
        u64::from(self.0.thread_id)
    }
    /// Where the program was when the node was made; unknown for leaves.
    pub fn call_site(&self) -> CallSite {
        self.0.call_site
    }
    /// Whether two handles mean the same node.
    #[inline(always)]
    pub fn is_same(&self, other: &Node) -> bool {
        self.id() == other.id()
    }
    /// Identity of the node.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.0.address()
    }
    /// How many handles there are.
    pub fn use_count(&self) -> usize {
        match &self.0.body {
            Body::AccumulateGrad(it) => it.handles(),
            _ => self.0.count(),
        }
    }
    /// A handle that does not keep it alive.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode(self.0.downgrade())
    }
    /// The leaf of an `AccumulateGrad` node.
    pub fn leaf(&self) -> Option<&Tensor> {
        match &self.0.body {
            Body::AccumulateGrad(it) => Some(it.leaf()),
            _ => None,
        }
    }
    /// The op whose rules it runs.
    pub fn op(&self) -> Option<&'static OpDef> {
        match &self.0.body {
            Body::Op { def, .. } => Some(def),
            _ => None,
        }
    }
    /// The hand-written part of a node made by [`Node::custom`].
    pub fn backward(&self) -> Option<&dyn Backward> {
        match &self.0.body {
            Body::Custom(custom) => Some(&**custom),
            _ => None,
        }
    }
    /// The Python wrapper's slot.
    pub fn python_slot(&self) -> &AtomicPtr<()> {
        &self.0.python
    }
}

impl WeakNode {
    /// A strong handle, if the node is still alive.
    pub fn upgrade(&self) -> Option<Node> {
        let inner = self.0.upgrade()?;
        if let Body::AccumulateGrad(it) = &inner.body {
            return it.try_add_handle().then(|| Node(accumulator::handle(&inner)));
        }
        Some(Node(ManuallyDrop::new(inner)))
    }
}

impl Edge {
    /// An edge to input `nr` of `node`.
    pub fn new(node: Node, nr: u32) -> Self {
        Edge { node: Some(node), nr }
    }
    /// Whether it leads anywhere.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        self.node.is_some()
    }
}

impl Edge {
    /// Whether dropping it frees no node that leads on: it goes nowhere, to a leaf, or to a node that
    /// others hold too. (If those let go at the same moment, that node decides again for itself.)
    fn ends_here(&self) -> bool {
        self.node
            .as_ref()
            .is_none_or(|n| matches!(n.0.body, Body::AccumulateGrad(_)) || n.0.count() > 1)
    }
}

impl Body {
    /// Whether dropping it may free nodes: what it keeps has, or may have, a history.
    fn holds_history(&mut self) -> bool {
        match self {
            Body::Op { slots, .. } => !slots.iter_mut().all(Slot::has_no_history),
            Body::AccumulateGrad(_) => false,
            Body::Custom(_) => true,
        }
    }
}

impl Slot {
    /// Whether dropping it frees no node: it keeps no tensor with a history.
    pub(in crate::autograd) fn has_no_history(&mut self) -> bool {
        match self {
            Slot::Empty | Slot::Plain(_) | Slot::Sizes(_) => true,
            Slot::Tensor(saved) => saved.get_mut().as_ref().is_none_or(SavedTensor::has_no_history),
            Slot::Tensors(list) => list.get_mut().is_none(),
            Slot::OptTensors(list) => list.get_mut().is_none(),
        }
    }
}

impl SavedTensor {
    fn has_no_history(&self) -> bool {
        match &self.0 {
            Kept::Here { tensor, .. } => tensor.flags() & (Flag::HAS_GRAD_FN | Flag::VIEW) == 0,
            Kept::Packed(_) => false,
            Kept::Freed(_) => true,
        }
    }
}

/// Drops a node to which no handle is left, and those that this lets go, without recursion.
fn drop_last(mut last: Last<Inner>) {
    let inner = last.value();
    if inner.edges.iter().all(Edge::ends_here) && !inner.body.holds_history() {
        return;
    }
    if matches!(&inner.body, Body::Custom(custom) if custom.is_kept()) {
        let node = Node(ManuallyDrop::new(last.revive()));
        node.backward().expect("a custom node").keep(node.clone());
        return;
    }
    // Dropping an edge or a saved tensor may drop the next node, which then joins this list instead of this stack.
    let mut last = Some(last);
    let outermost = DROPPING.try_with(|list| {
        let mut list = list.borrow_mut();
        if let Some(waiting) = &mut *list {
            waiting.extend(last.take());
            return false;
        }
        *list = Some(Vec::new());
        true
    });
    if outermost != Ok(true) {
        return;
    }
    while let Some(node) = last {
        drop(node);
        last = DROPPING.with(|list| list.borrow_mut().as_mut().and_then(Vec::pop));
    }
    DROPPING.with(|list| *list.borrow_mut() = None);
}

/// `Mul` is `MulBackward0`; a stem that says its number itself (`SqueezeBackward1`, `SqueezeBackward1_copy`) stays, and
/// a whole name with its namespace.
pub(crate) fn op_name(stem: &str) -> String {
    if stem.contains("::") {
        return stem.into();
    }
    let own = stem.strip_suffix("_copy").unwrap_or(stem);
    let numbered = own.strip_suffix(|c: char| c.is_ascii_digit());
    if numbered.is_some_and(|s| s.ends_with("Backward")) {
        stem.into()
    } else {
        format!("{stem}Backward0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Graphs of a million nodes are made of these: the next size of block is a quarter larger.
    #[test]
    fn a_node_with_its_two_counts_fits_256_bytes() {
        assert!(size_of::<Inner>() + 2 * size_of::<usize>() <= 256);
    }
}
