//! Nodes and edges of the backward graph.
//!
//! A node consumes the gradients of a forward op's outputs (its inputs) and gives those of the op's
//! inputs (its outputs, one per edge). Edges are fixed when the node is made. Invariant: edges lead to
//! nodes made earlier or to leaves, so the graph has no cycles; freeing is iterative, so a chain may be
//! as long as memory allows. Start at [`Node`]; what it does when run is its [`Body`].

use super::accumulator::{self, Accumulator};
use super::anomaly;
use super::counted::{Counted, Last, Weak};
use super::hook::Hooks;
use super::leaf;
use super::record::Slots;
use super::saved::{SavedTensor, Slot};
use super::saved_hooks::SavedTensorHooks;
use crate::dispatch::{Facts, Grads, OpDef, Value};
use crate::local::local;
use crate::site::Site;
use crate::tensor::{Device, Layout};
use crate::{DType, Result, Tensor, TensorSpec};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A counted handle to a node. (The accumulator of a leaf counts its handles itself: see `accumulator`.)
pub struct Node(pub(super) ManuallyDrop<Counted<Inner>>);

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

/// The sizes of a forward output. Inline for up to three dimensions, which keeps nodes small.
pub(crate) type Sizes = SmallVec<[i64; 3]>;

/// Tensors that a node keeps for one of its op's arguments or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedCount {
    /// A tensor.
    One,
    /// A list of so many.
    List(usize),
}

/// What a gradient that arrives at a node must look like.
#[derive(Clone, Debug)]
pub struct InputMeta {
    /// Sizes of the forward output.
    pub shape: Sizes,
    /// Its dtype.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
    /// Its layout.
    pub layout: Layout,
}

/// A copy, put together in registers if it is short.
#[inline(always)]
fn sizes(shape: &[i64]) -> Sizes {
    match *shape {
        [] => Sizes::new(),
        [a] => Sizes::from_buf_and_len([a, 0, 0], 1),
        [a, b] => Sizes::from_buf_and_len([a, b, 0], 2),
        [a, b, c] => Sizes::from_buf([a, b, c]),
        _ => Sizes::from_slice(shape),
    }
}

impl InputMeta {
    /// Of a forward output.
    #[inline]
    pub fn of(tensor: &Tensor) -> Self {
        let g = tensor.geometry();
        InputMeta { shape: sizes(&g.shape), dtype: g.dtype, device: g.device, layout: g.layout }
    }
    /// Zeros that look like it.
    ///
    /// # Errors
    /// Out of memory.
    pub fn zeros(&self) -> Result<Tensor> {
        TensorSpec::of(&self.shape, self.dtype).on(self.device).zeros()
    }
    /// Whether it is what [`InputMeta::of`] gives.
    pub(super) fn is_of(&self, tensor: &Tensor) -> bool {
        let g = tensor.geometry();
        self.shape.as_slice() == g.shape.as_slice()
            && self.dtype == g.dtype
            && self.device == g.device
            && self.layout == g.layout
    }
}

pub(super) struct Inner {
    pub(super) sequence_nr: AtomicU64,
    pub(super) thread_id: u32,
    pub(super) topological_nr: u32,
    /// Where the engine keeps what it knows of the node: its business alone.
    pub(super) place: AtomicU32,
    pub(super) edges: SmallVec<[Edge; 2]>,
    /// One per forward output; `None` for outputs without gradient. Accumulators have theirs elsewhere.
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    pub(super) body: Body,
    pub(super) has_hooks: AtomicBool,
    pub(super) hooks: Mutex<Option<Box<Hooks>>>,
    pub(super) python: AtomicPtr<()>,
    /// Where the program was when it was made.
    site: Site,
}

/// What a node does.
pub(super) enum Body {
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
static THREADS: AtomicU32 = AtomicU32::new(1);

/// This thread's number, from 1 on.
#[inline]
pub(crate) fn thread_number() -> u32 {
    let local = local();
    let mut thread = local.thread.get();
    if thread == 0 {
        thread = THREADS.fetch_add(1, Relaxed);
        local.thread.set(thread);
    }
    thread
}

/// The sequence number of a node made now (leaves take none), and the thread's number.
#[inline]
fn next_numbers(is_leaf: bool) -> (u64, u32) {
    let thread = thread_number();
    let local = local();
    let next = local.next_node.get();
    local.next_node.set(next + u64::from(!is_leaf));
    (if is_leaf { u64::MAX } else { next }, thread)
}

/// The number that the next node made on this thread will have.
pub fn peek_sequence_nr() -> u64 {
    local().next_node.get()
}

/// A node's memory.
#[inline(always)]
pub(super) fn block(
    body: Body,
    edges: SmallVec<[Edge; 2]>,
    inputs: SmallVec<[Option<InputMeta>; 1]>,
    site: Site,
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
            (&raw mut (*inner).place).write(AtomicU32::new(0));
            (&raw mut (*inner).edges).write(edges);
            (&raw mut (*inner).inputs).write(inputs);
            (&raw mut (*inner).body).write(body);
            (&raw mut (*inner).has_hooks).write(AtomicBool::new(false));
            (&raw mut (*inner).hooks).write(Mutex::new(None));
            (&raw mut (*inner).python).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*inner).site).write(site);
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
    #[inline(always)]
    pub(super) fn new(
        body: Body,
        edges: SmallVec<[Edge; 2]>,
        inputs: SmallVec<[Option<InputMeta>; 1]>,
        site: Site,
    ) -> Node {
        let node = Node(ManuallyDrop::new(block(body, edges, inputs, site)));
        if anomaly::is_anomaly_enabled() { anomaly::made(node) } else { node }
    }

    /// A node written by hand: `edges` say where its gradients go, `outputs` which forward results'
    /// gradients it takes.
    pub fn custom(
        backward: Box<dyn Backward>,
        edges: SmallVec<[Edge; 2]>,
        inputs: SmallVec<[Option<InputMeta>; 1]>,
    ) -> Node {
        Node::new(Body::Custom(backward), edges, inputs, Site::here())
    }

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
    pub fn site(&self) -> Site {
        self.0.site
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
    /// Shows the tensors that it saved.
    pub(super) fn each_saved(&self, see: &mut dyn FnMut(&Tensor)) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots.iter().for_each(|slot| slot.each_tensor(see));
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
    /// What it keeps under number `index` of its op's saved list (the flags follow), checked and with its history;
    /// `None` if it keeps nothing there.
    pub fn saved(&self, index: usize) -> Option<Result<Value>> {
        let Body::Op { def, slots, facts, .. } = &self.0.body else { return None };
        if let Some(past) = index.checked_sub(slots.len()) {
            return def.flags.get(past).map(|&arg| Ok(Value::Bool(facts.flag(arg))));
        }
        match &slots[index] {
            Slot::Empty => None,
            Slot::Plain(value) => Some(Ok(value.clone())),
            Slot::Sizes(sizes) => Some(Ok(Value::Ints(sizes.as_slice().into()))),
            slot => Some(slot.unpack(self)),
        }
    }
    /// Keeps an output that its op saved, in the slot that was left open for it.
    pub(super) fn fill_slot(&self, index: usize, saved: SavedTensor) {
        if let Body::Op { slots, .. } = &self.0.body {
            slots[index].fill(saved);
        }
    }
    /// Gives an output that its op saved in slot `index` the tangent that it got since.
    pub(super) fn share_tangent(&self, index: usize, output: &Tensor) -> Result<()> {
        match &self.0.body {
            Body::Op { slots, .. } => slots[index].share_tangent(output),
            _ => Ok(()),
        }
    }
    /// How many tensors are kept under number `index` if there is a list of them; 1 for a single tensor. `None` if
    /// what is kept there is no tensor.
    pub fn saved_tensors(&self, index: usize) -> Option<Result<SavedCount>> {
        let Body::Op { slots, .. } = &self.0.body else { return None };
        let slot = slots.get(index)?;
        if slot.is_tensor() {
            return Some(Ok(SavedCount::One));
        }
        Some(slot.list_len()?.map(SavedCount::List))
    }
    /// Lets hooks pack the tensor kept under number `index`, or tensor `item` of the list there.
    ///
    /// # Errors
    /// `RuntimeError` if there is none, the graph was freed, or hooks did so before; those of the hooks.
    pub fn pack_saved(
        &self,
        index: usize,
        item: usize,
        hooks: &dyn SavedTensorHooks,
    ) -> Result<()> {
        match &self.0.body {
            Body::Op { slots, .. } if index < slots.len() => slots[index].pack(item, hooks),
            _ => Err(crate::Error::index(format!("{} keeps nothing under {index}", self.name()))),
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

    /// Runs it: one gradient per edge.
    #[inline]
    pub(super) fn apply(&self, grads: Grads, wanted: &dyn Fn(usize) -> bool) -> Result<Grads> {
        match &self.0.body {
            Body::Op { def, slots, facts } => {
                let kept = (slots.as_slice(), *facts);
                super::record::apply(self, def, kept, &grads, wanted)
            }
            Body::AccumulateGrad(it) => {
                leaf::accumulate(self, it.leaf(), grads).map(|()| Grads::new())
            }
            Body::Custom(custom) => custom.apply(self, grads),
        }
    }

    /// Drops what it saved.
    pub(super) fn release(&self) {
        match &self.0.body {
            Body::Op { slots, .. } => {
                let at = Site::here();
                slots.iter().for_each(|slot| slot.release(at));
            }
            Body::AccumulateGrad(_) => {}
            Body::Custom(custom) => custom.release(),
        }
    }
}

impl WeakNode {
    /// A strong handle, if the node is still alive.
    pub fn upgrade(&self) -> Option<Node> {
        let inner = self.0.upgrade()?;
        if let Body::AccumulateGrad(it) = &inner.body {
            return it.try_add_handle().then(|| accumulator::handle(&inner));
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
