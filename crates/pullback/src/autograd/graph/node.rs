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
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// A counted handle to a node. (The accumulator of a leaf counts its handles itself: see `accumulator`.)
pub struct Node(pub(in crate::autograd) ManuallyDrop<Counted<NodeFields>>);

/// A handle that does not keep its node alive.
#[derive(Clone, Default)]
pub struct WeakNode(Weak<NodeFields>);

/// An edge: a gradient goes to input `nr` of `node`, or nowhere.
#[derive(Clone, Default)]
pub struct Edge {
    /// The node; `None` if the gradient is not needed.
    pub node: Option<Node>,
    /// The input of the node.
    pub nr: u32,
}

pub(in crate::autograd) struct NodeFields {
    pub(in crate::autograd) sequence_nr: AtomicU64,
    pub(in crate::autograd) thread_id: u32,
    pub(in crate::autograd) topological_nr: u32,
    /// The index of the node's state in the engine's task; only the engine reads and writes it.
    pub(in crate::autograd) task_index: AtomicU32,
    pub(in crate::autograd) edges: SmallVec<[Edge; 2]>,
    /// The properties of each forward output; `None` for outputs without gradient. Accumulators keep theirs elsewhere.
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    pub(in crate::autograd) body: Body,
    pub(in crate::autograd) has_hooks: AtomicBool,
    pub(in crate::autograd) hooks: Mutex<Option<Box<Hooks>>>,
    pub(in crate::autograd) python: AtomicPtr<()>,
    /// The call site that made the node.
    call_site: CallSite,
}

/// The saved values of a node, in the order of [`OpDef::saves`].
pub(crate) type SavedValues = SmallVec<[SavedValue; 2]>;

/// One saved value. Tensors can be taken away (the graph was freed) while another thread reads.
pub(crate) enum SavedValue {
    /// No value.
    Empty,
    /// A value that is not a tensor.
    Plain(Value),
    /// Sizes, strides or another list of integers; two fit in without memory of their own.
    Sizes(SmallVec<[i64; 2]>),
    /// A tensor, until the graph is freed.
    Tensor(SpinLock<Option<SavedTensor>>),
    /// A list of tensors.
    Tensors(SpinLock<Option<Box<[SavedTensor]>>>),
    /// A list of tensors in which some may be missing.
    OptTensors(SpinLock<Option<Box<[Option<SavedTensor>]>>>),
}

/// A tensor saved by a node, or by a custom function.
#[derive(Clone)]
pub struct SavedTensor(pub(in crate::autograd) SavedContent);

/// (The tag byte is what leaves room for the other variant, and for `None`, in sixteen bytes.)
#[derive(Clone)]
pub(in crate::autograd) enum SavedContent {
    /// The tensor, its version at saving time, and which output of the node it is.
    Here { tensor: Tensor, version: u32, output: OutputNr, tag: Tag },
    /// A tensor that hooks on saved tensors have packed.
    Packed(Arc<PackedTensor>),
    /// Freed by the backward of this call site.
    Freed(CallSite),
}

const _: () = assert!(size_of::<Option<SavedTensor>>() == 16);

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(in crate::autograd) enum Tag {
    /// The tensor had no producer.
    Leaf,
    /// The tensor had a producer, without which it is not what was saved.
    Interior,
}

/// The output of its node that a saved tensor is, in 24 bits; the largest number means an input.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::autograd) struct OutputNr(pub(in crate::autograd) [u8; 3]);

/// A saved tensor that hooks packed, with the history that it gets when it is unpacked.
pub(in crate::autograd) struct PackedTensor {
    pub(in crate::autograd) packed: Box<dyn Packed>,
    pub(in crate::autograd) history: History,
    /// The tangent, which hooks do not see: they run without forward mode.
    pub(in crate::autograd) tangent: SpinLock<KeptTangents>,
}

pub(in crate::autograd) enum History {
    /// No history.
    None,
    /// The tensor is an output of the node that saved it.
    Output(u32),
    /// The tensor is an output of another node.
    Edge(Edge),
    /// The tensor is a leaf with this accumulator, held weakly.
    Leaf(WeakNode),
}

/// The computation of a node.
pub(in crate::autograd) enum Body {
    /// The gradient rules of an op.
    Op { def: &'static OpDef, slots: SavedValues, facts: Facts },
    /// Adds the gradient to a leaf's `.grad`.
    AccumulateGrad(Accumulator),
    /// A hand-written backward: custom functions, `CopySlices`, delayed errors.
    Custom(Box<dyn Backward>),
}

/// A hand-written backward.
pub trait Backward: Send + Sync {
    /// The node's name, as `grad_fn.name()` returns it.
    fn name(&self) -> String;
    /// Computes one gradient per edge.
    ///
    /// # Errors
    /// Any error of the computation; backward stops with it.
    fn apply(&self, node: &Node, grads: Grads) -> Result<Grads>;
    /// Drops the saved values.
    fn release(&self) {}
    /// Whether a complex gradient for a real input stands for its real part; if not, it is an error.
    fn takes_real_part(&self) -> bool {
        false
    }
    /// The Python context of a custom function, for the Python face.
    fn python_context(&self) -> Option<*mut ()> {
        None
    }
    /// Whether something other than handles holds the node, so that it outlives the last one.
    fn is_kept(&self) -> bool {
        false
    }
    /// Takes over the node of this backward, whose last handle is being dropped, until there is a handle again.
    fn keep(&self, node: Node) {
        drop(node);
    }
    /// Calls `_see` with each node that it holds, besides those that its edges lead to.
    fn each_held(&self, _see: &mut dyn FnMut(&Node)) {}
    /// For downcasts by the crate that made it.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

thread_local! {
    /// The nodes that the loop further up this thread's stack still has to drop.
    static DROPPING: RefCell<Option<Vec<Last<NodeFields>>>> = const { RefCell::new(None) };
}

/// The slot of a leaf for its accumulator.
#[derive(Default)]
pub(crate) struct AccumulatorSlot(accumulator::HomeSlot<NodeFields>);

impl AccumulatorSlot {
    /// A handle to the accumulator of `leaf`, whose slot this is, and whether it is the first one.
    #[inline]
    pub(in crate::autograd) fn handle(&self, leaf: &Tensor) -> (Node, bool) {
        let (handle, is_first) = self.0.get(leaf);
        (Node(handle), is_first)
    }
    /// A handle, if there are others.
    pub(in crate::autograd) fn live(&self) -> Option<Node> {
        self.0.live().map(Node)
    }
    /// Makes the next graph take a new accumulator.
    pub(crate) fn forget(&self) {
        drop(self.0.forget().map(Node));
    }
}

impl Home for NodeFields {
    type Hooks = Box<Hooks>;

    fn around(accumulator: Accumulator) -> Counted<NodeFields> {
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

/// The allocated memory of a new node.
#[inline(always)]
pub(in crate::autograd) fn block(
    body: Body,
    edges: SmallVec<[Edge; 2]>,
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    call_site: CallSite,
) -> Counted<NodeFields> {
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
        Counted::make(|inner: *mut NodeFields| {
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

/// Whether a backward from `root` on might find tensors that its graph keeps. (Of functions of other makers it is not known.)
pub(crate) fn keeps_tensors(root: &Node) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![root.clone()];
    while let Some(node) = open.pop() {
        let is_keeping = match &node.0.body {
            Body::Op { slots, .. } => {
                let mut is_any = false;
                slots.iter().for_each(|slot| slot.each_tensor(&mut |_| is_any = true));
                is_any || !slots.iter().all(SavedValue::is_plain)
            }
            Body::AccumulateGrad(_) => false,
            Body::Custom(_) => true,
        };
        if is_keeping {
            return true;
        }
        let more = node.next_edges().iter().filter_map(|edge| edge.node.clone());
        open.extend(more.filter(|node| seen.insert(node.id())));
    }
    false
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
    /// The edges, one per differentiable forward input.
    pub fn next_edges(&self) -> &[Edge] {
        &self.0.edges
    }
    /// What gradients that arrive must look like; `None` for outputs without gradient.
    #[inline]
    pub fn input_meta(&self) -> &[Option<InputMeta>] {
        match &self.0.body {
            Body::AccumulateGrad(it) => it.expected(),
            _ => &self.0.inputs,
        }
    }
    /// The sequence number, which counts up on each thread as nodes are made; leaves have the largest number.
    pub fn sequence_nr(&self) -> u64 {
        self.0.sequence_nr.load(Relaxed)
    }
    /// Sets the sequence number: of the nodes that are ready, the engine runs the one with the largest.
    pub fn set_sequence_nr(&self, number: u64) {
        self.0.sequence_nr.store(number, Relaxed);
    }
    /// Length of the longest path to a leaf.
    pub fn topological_nr(&self) -> u64 {
        u64::from(self.0.topological_nr)
    }
    /// The number of the thread that made the node.
    pub fn thread_id(&self) -> u64 {
        u64::from(self.0.thread_id)
    }
    /// The call site that made the node; unknown for leaves.
    pub fn call_site(&self) -> CallSite {
        self.0.call_site
    }
    /// Whether two handles are to the same node.
    #[inline(always)]
    pub fn is_same(&self, other: &Node) -> bool {
        self.id() == other.id()
    }
    /// The identity of the node.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.0.address()
    }
    /// The number of handles.
    pub fn use_count(&self) -> usize {
        match &self.0.body {
            Body::AccumulateGrad(it) => it.handles(),
            _ => self.0.count(),
        }
    }
    /// A handle that does not keep the node alive.
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
    /// The op whose gradient rules the node runs.
    pub fn op(&self) -> Option<&'static OpDef> {
        match &self.0.body {
            Body::Op { def, .. } => Some(def),
            _ => None,
        }
    }
    /// The hand-written backward of a node made by [`Node::custom`].
    pub fn backward(&self) -> Option<&dyn Backward> {
        match &self.0.body {
            Body::Custom(custom) => Some(&**custom),
            _ => None,
        }
    }
    /// The slot of the node's Python wrapper.
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
    /// Whether the edge leads to a node.
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
    /// Whether dropping a node's values may free other nodes: one of them has, or may have, a history.
    fn holds_history(&mut self) -> bool {
        match self {
            Body::Op { slots, .. } => !slots.iter_mut().all(SavedValue::has_no_history),
            Body::AccumulateGrad(_) => false,
            Body::Custom(_) => true,
        }
    }
}

impl SavedValue {
    /// Whether dropping a node's values frees no other node.
    pub(in crate::autograd) fn has_no_history(&mut self) -> bool {
        match self {
            SavedValue::Empty | SavedValue::Plain(_) | SavedValue::Sizes(_) => true,
            SavedValue::Tensor(saved) => {
                saved.get_mut().as_ref().is_none_or(SavedTensor::has_no_history)
            }
            SavedValue::Tensors(list) => list.get_mut().is_none(),
            SavedValue::OptTensors(list) => list.get_mut().is_none(),
        }
    }
}

impl SavedTensor {
    fn has_no_history(&self) -> bool {
        match &self.0 {
            SavedContent::Here { tensor, .. } => {
                tensor.flags() & (Flag::HAS_GRAD_FN | Flag::VIEW) == 0
            }
            SavedContent::Packed(_) => false,
            SavedContent::Freed(_) => true,
        }
    }
}

/// Drops a node without handles, and the nodes that this frees, without recursion.
fn drop_last(mut last: Last<NodeFields>) {
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

/// The name of an op's node: `Mul` gives `MulBackward0`; a stem with a number of its own (`SqueezeBackward1`,
/// `SqueezeBackward1_copy`) stays, and so does a whole name with its namespace.
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
        assert!(size_of::<NodeFields>() + 2 * size_of::<usize>() <= 256);
    }
}
