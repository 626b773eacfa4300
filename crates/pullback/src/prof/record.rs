//! Ranges, and the observers that are notified of them.
//!
//! A range is the time from [`begin`] until its [`Open`] is dropped. Each thread has a list of
//! observers, which a backward that continues in another thread has as well. Invariant: a thread
//! includes the key `Profiler` exactly as long as its list has entries, so that whoever opens
//! ranges asks [`is_observed`] and nothing else.

use crate::autograd::mode;
use crate::autograd::{Node, op_name, peek_sequence_nr};
use crate::call_site::Scope;
use crate::dispatch::{Arg, Form, OpDef};
use crate::tensor::Key;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// The kind of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeKind {
    /// The call of an op.
    Op,
    /// The engine's work for a node: hooks, the node itself, adding up the gradients that it gave.
    Evaluation,
    /// A node of the graph that runs.
    Backward,
    /// The forward of a custom function.
    Function,
    /// A module of the program that runs.
    Module,
    /// A function of the program, in the language of the binding.
    Program,
    /// A range that the program named itself.
    User,
}

impl RangeKind {
    /// PyTorch's number for the kind (`RecordScope`).
    #[must_use]
    pub fn scope(self) -> u8 {
        match self {
            RangeKind::Op
            | RangeKind::Evaluation
            | RangeKind::Function
            | RangeKind::Module
            | RangeKind::Program => 0,
            RangeKind::Backward => 1,
            RangeKind::User => 7,
        }
    }
}

/// The name of a range. It is made a text when it is shown, not while the program runs.
#[derive(Clone)]
pub enum Name {
    /// The name of an op: `aten::mul`.
    Op(&'static OpDef),
    /// The name of an op's in-place form: `aten::mul_`.
    Inplace(&'static OpDef),
    /// The name of a node: `MulBackward0`.
    Node(&'static OpDef),
    /// The name of the engine's work for a node: `autograd::engine::evaluate_function:
    /// MulBackward0`.
    Evaluation(&'static OpDef),
    /// Any other name.
    Text(Arc<str>),
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::Text(text.into())
    }
}

impl Name {
    fn of_node(node: &Node) -> Name {
        node.op().map_or_else(|| Name::Text(node.name().into()), Name::Node)
    }
    fn of_evaluation(node: &Node) -> Name {
        let text = || Name::Text(format!("{EVALUATION}{}", node.name()).into());
        node.op().map_or_else(text, Name::Evaluation)
    }
    /// The op's overload, if it has one with a name.
    #[must_use]
    pub fn overload(&self) -> &'static str {
        match self {
            Name::Op(def) | Name::Inplace(def) => def.overload,
            _ => "",
        }
    }
}

const EVALUATION: &str = "autograd::engine::evaluate_function: ";

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Op(def) => write!(f, "aten::{}", def.name),
            Name::Inplace(def) => write!(f, "aten::{}", Form::Inplace.spelled(def).0),
            Name::Node(def) => write!(f, "{}", op_name(def.node_name)),
            Name::Evaluation(def) => write!(f, "{EVALUATION}{}", op_name(def.node_name)),
            Name::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The data that observers get when a range begins.
pub struct Range<'a> {
    /// The kind of the range.
    pub kind: RangeKind,
    /// The name of the range.
    pub name: Name,
    /// For an op: the number of the node that it would be recorded as. For a node: its own number.
    pub sequence_nr: Option<u64>,
    /// For a node: the thread that made it; else 0.
    pub forward_thread: u64,
    /// The op's arguments, or the node's gradients.
    pub inputs: &'a [Arg<'a>],
}

/// An observer of the ranges of a thread.
pub trait RangeObserver: Send + Sync {
    /// Called when a range begins. The result is passed to [`RangeObserver::end`] when it ends.
    fn begin(&self, range: &Range<'_>) -> u64;
    /// Called when a range ends, possibly on another thread, and possibly after ranges that began
    /// within it.
    fn end(&self, token: u64);
    /// Called when this thread begins to work for another one, whose observers it has then.
    fn enter_thread(&self) {}
    /// Called when this thread ends that work.
    fn leave_thread(&self) {}
}

type Observers = Rc<[Arc<dyn RangeObserver>]>;
thread_local! {
    static OBSERVERS: RefCell<Option<Observers>> = const { RefCell::new(None) };
}

/// (None where the thread is ending.)
fn observers() -> Option<Observers> {
    OBSERVERS.try_with(|list| list.borrow().clone()).ok().flatten()
}

/// Sets the thread's list of observers.
fn set(list: Vec<Arc<dyn RangeObserver>>) {
    Key::Profiler.include(!list.is_empty());
    let list = (!list.is_empty()).then(|| list.into());
    // Dropping the previous list may drop an observer's last handle, which may run any code.
    let old = OBSERVERS.try_with(|kept| kept.replace(list));
    drop(old);
}

/// Whether anybody observes this thread.
#[inline(always)]
pub fn is_observed() -> bool {
    Key::Profiler.is_included()
}

/// Ends an observation begun by [`observe`].
#[must_use = "the observation lasts as long as the guard"]
pub struct Observing {
    observer: Arc<dyn RangeObserver>,
    /// Keeps the value on its thread, whose list it changes.
    not_send: PhantomData<*const ()>,
}

/// Notifies `observer` of this thread's ranges, as long as the guard lives.
pub fn observe(observer: Arc<dyn RangeObserver>) -> Observing {
    let mut list = observers().map_or_else(Vec::new, |list| list.to_vec());
    list.push(observer.clone());
    set(list);
    Observing { observer, not_send: PhantomData }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let Some(list) = observers() else { return };
        let mut list = list.to_vec();
        if let Some(at) = list.iter().rposition(|known| Arc::ptr_eq(known, &self.observer)) {
            list.remove(at);
        }
        set(list);
    }
}

/// A range that has begun; it ends when this is dropped.
#[must_use = "the range lasts as long as this"]
pub struct Open(SmallVec<[(Arc<dyn RangeObserver>, u64); 1]>);

impl Drop for Open {
    fn drop(&mut self) {
        while let Some((observer, token)) = self.0.pop() {
            observer.end(token);
        }
    }
}

/// Calls the observers of this thread, if there are any, as a range begins.
#[cold]
#[inline(never)]
pub(crate) fn begin(range: &Range<'_>) -> Open {
    let list = observers();
    let told = list.iter().flat_map(|list| list.iter());
    Open(told.map(|observer| (observer.clone(), observer.begin(range))).collect())
}

/// The range of an op's call.
#[cold]
pub(crate) fn of_op(name: Name, args: &[Arg<'_>]) -> Open {
    begin(&Range {
        kind: RangeKind::Op,
        name,
        sequence_nr: next_number(),
        forward_thread: 0,
        inputs: args,
    })
}

/// The number that a node made now would have.
fn next_number() -> Option<u64> {
    mode::is_recording().then(peek_sequence_nr)
}

/// The range of a node that runs, or of the engine's work for it.
#[cold]
pub(crate) fn of_node(kind: RangeKind, node: &Node, grads: &[Option<crate::Tensor>]) -> Open {
    let inputs: SmallVec<[Arg<'_>; 4]> = grads.iter().map(|grad| grad.as_ref().into()).collect();
    // Leaves are not numbered: their nodes belong to no call.
    let is_leaf = node.leaf().is_some();
    begin(&Range {
        kind,
        name: if kind == RangeKind::Backward {
            Name::of_node(node)
        } else {
            Name::of_evaluation(node)
        },
        sequence_nr: (!is_leaf).then(|| node.sequence_nr()),
        forward_thread: if is_leaf { 0 } else { node.thread_id() },
        inputs: &inputs,
    })
}

/// Opens a range that the program names itself; it ends when the returned value is dropped. Without
/// observers nothing is recorded.
///
/// ```
/// let _range = pullback::prof::record_function("data loading");
/// ```
#[track_caller]
pub fn record_function(name: &str) -> Open {
    open(RangeKind::User, || name.into(), &[])
}

/// Opens a range of any kind, with the arguments that observers see, which ends when the returned
/// value is dropped: for code that runs custom functions and modules. `name` is called only if
/// there are observers.
#[track_caller]
pub fn open(kind: RangeKind, name: impl FnOnce() -> Name, inputs: &[Arg<'_>]) -> Open {
    if !is_observed() {
        return Open(SmallVec::new());
    }
    let _site = Scope::of_caller(Location::caller());
    let sequence_nr = if kind == RangeKind::Function { next_number() } else { None };
    begin(&Range { kind, name: name(), sequence_nr, forward_thread: 0, inputs })
}

/// The observers of a thread, for another thread that continues its work.
pub(crate) struct InheritedObservers(Vec<Arc<dyn RangeObserver>>);

impl InheritedObservers {
    /// The observers of this thread.
    pub(crate) fn take() -> InheritedObservers {
        InheritedObservers(observers().map_or_else(Vec::new, |list| list.to_vec()))
    }
    /// Makes these the observers of this thread, which had none, while the guard lives.
    pub(crate) fn enter(self) -> Left {
        set(self.0.clone());
        self.0.iter().for_each(|observer| observer.enter_thread());
        Left(self.0)
    }
}

/// A guard that calls the observers as a thread ends.
pub(crate) struct Left(Vec<Arc<dyn RangeObserver>>);

impl Drop for Left {
    fn drop(&mut self) {
        set(Vec::new());
        self.0.iter().for_each(|observer| observer.leave_thread());
    }
}
