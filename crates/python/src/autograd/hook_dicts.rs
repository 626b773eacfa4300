//! The dictionaries of hooks of a leaf or a node, as Python and its cycle collector see them.
//!
//! The library's hooks from Python are closures, each over one dictionary, held by a leaf or a node
//! in Rust. A [`HookDicts`] holds the same dictionaries for Python: it is owned by the wrappers of
//! the tensor and of the node, never by the library. So a dictionary has two owners, and the
//! collector must be shown both. It always shows its own reference, and the closure's if it knows
//! all holders of the closure's leaf or node: then these are wrappers that own a reference to it,
//! and whatever keeps one of them alive keeps it alive. That makes cycles through hooks
//! collectable, and no others: what a graph still needs is never taken apart.

use super::node::PyNode;
use crate::held::Held;
use crate::raw::context::{known, track};
use crate::raw::object::{TensorObject, holds_only_handle, set_hooks, tensor_of};
use pullback::Tensor;
use pullback::autograd::hook::HookId;
use pullback::autograd::{Node, WeakNode};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of hooks in a dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookKind {
    /// Hooks on the gradient of the node's output with this number; 0 for a leaf.
    Tensor(u32),
    /// Hooks on a leaf whose `.grad` was updated.
    Accumulate,
    /// Hooks on the gradients that the node receives.
    Pre,
    /// Hooks on the gradients that the node returns.
    Post,
    /// No hooks: the dictionary holds the node's metadata, of users and of anomaly mode.
    Metadata,
}

/// A dictionary over which the library holds a closure.
pub(crate) struct Entry {
    kind: HookKind,
    dict: Py<PyDict>,
    /// The number of holders of the closure while it is not running: one, its leaf or node.
    closures: Closures,
    /// The identity by which the library removes it; none for metadata.
    id: Option<HookId>,
    /// Shared with the closure: the [`HookDicts`] that this is in.
    owner: Arc<AtomicPtr<()>>,
}

/// A closure's dictionary. With the closure it leaves the [`HookDicts`] as well.
pub(crate) struct HookDict {
    dict: Held<PyDict>,
    owner: Arc<AtomicPtr<()>>,
}

impl HookDict {
    /// A dictionary that no [`HookDicts`] knows.
    pub(super) fn of(dict: Bound<'_, PyDict>) -> HookDict {
        HookDict { dict: Held::new(dict.unbind()), owner: Arc::default() }
    }
    pub(super) fn dict<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.dict.bind(py).clone()
    }
    /// The hooks as they are now: they may remove each other as they run.
    pub(super) fn list<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.dict.bind(py).values().iter().collect()
    }
}

impl Drop for HookDict {
    fn drop(&mut self) {
        let _ = Python::try_attach(|py| {
            // SAFETY: a live object or null: it empties this when it goes, with the GIL held.
            let owner = unsafe {
                Bound::from_borrowed_ptr_or_opt(
                    py,
                    self.owner.load(Relaxed).cast::<ffi::PyObject>(),
                )
            };
            if let Some(owner) = owner.and_then(|owner| owner.cast_into::<HookDicts>().ok()) {
                owner.get().remove(|entry| Arc::ptr_eq(&entry.owner, &self.owner));
            }
        });
    }
}

/// Counts a closure's handles.
pub(crate) type Closures = Box<dyn Fn() -> usize + Send + Sync>;

/// A closure that the library holds now.
pub(crate) struct Registered {
    pub(crate) closures: Closures,
    pub(crate) id: Option<HookId>,
}

/// The number of handles of `hook`, as a function that is called later.
pub(super) fn count_of<T: ?Sized + Send + Sync + 'static>(hook: &Arc<T>) -> Closures {
    let hook = Arc::downgrade(hook);
    Box::new(move || hook.strong_count())
}

/// The dictionaries of hooks of a leaf or a node; see the module's comment.
#[pyclass(name = "_HookDicts", module = "torch._C", frozen)]
pub(crate) struct HookDicts {
    /// The node whose hooks they are, by address, and what keeps the address from being used again; none for a leaf.
    node: Option<(usize, WeakNode)>,
    /// Neither dropped nor called while locked, as both may run anything.
    entries: Mutex<Vec<Entry>>,
    /// The handle in the node's wrapper, or in the context that keeps it, which owns a reference to this; null if there is
    /// none.
    wrapper: AtomicPtr<Node>,
    /// The wrappers of tensors that own a reference to this.
    tensors: Mutex<Vec<AtomicPtr<TensorObject>>>,
    /// The address of this object, for access through the node; null once it is being dropped.
    owner: Arc<AtomicPtr<()>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for HookDicts {
    fn drop(&mut self) {
        self.owner.store(null_mut(), Relaxed);
        lock(&self.entries).iter().for_each(|entry| entry.owner.store(null_mut(), Relaxed));
    }
}

impl HookDicts {
    fn new<'py>(py: Python<'py>, node: Option<&Node>) -> PyResult<Bound<'py, Self>> {
        let made = HookDicts {
            node: node.map(|node| (node.id(), node.downgrade())),
            entries: Mutex::default(),
            wrapper: AtomicPtr::default(),
            tensors: Mutex::default(),
            owner: Arc::default(),
        };
        let made = Bound::new(py, made)?;
        made.get().owner.store(made.as_ptr().cast(), Relaxed);
        Ok(made)
    }

    /// The dictionaries of a node, if there are any.
    pub(super) fn find<'py>(py: Python<'py>, node: &Node) -> Option<Bound<'py, Self>> {
        let object = node.python_hooks()?.load(Relaxed);
        // SAFETY: not null, so it is alive: it is emptied first when the object goes, both with the GIL held.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object.cast()) }?;
        object.cast_into().ok()
    }

    /// The dictionaries of a node, owned by its Python object; made if there are none.
    pub(super) fn of_node<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, Self>> {
        if let Some(found) = Self::find(py, node) {
            return Ok(found);
        }
        let made = Self::new(py, Some(node))?;
        node.set_python_hooks(&made.get().owner);
        if let Some(context) =
            node.backward().and_then(pullback::autograd::Backward::python_context)
        {
            // SAFETY: the node keeps its context alive.
            unsafe {
                let context = Bound::from_borrowed_ptr(py, context.cast());
                known(&context).hooks.set(made.clone().into_any());
                made.get().set_wrapper(known(&context).kept_node_slot());
                track(context.as_ptr());
            }
        } else {
            PyNode::give(py, node, &made);
        }
        Ok(made)
    }

    /// The dictionaries of a tensor: those of its node, or its own if it is a leaf; made if there
    /// are none.
    ///
    /// # Safety
    /// `object` is a live wrapper, and the GIL is held.
    pub(crate) unsafe fn of_tensor<'py>(
        py: Python<'py>,
        object: *mut TensorObject,
    ) -> PyResult<Bound<'py, Self>> {
        // SAFETY: the caller's promise.
        unsafe {
            let node = tensor_of(object.cast()).grad_fn().map_err(crate::error::raise)?;
            if let Some(found) = Self::current(py, object, node.as_ref()) {
                return Ok(found);
            }
            let hooks = match &node {
                Some(node) => Self::of_node(py, node)?,
                None => Self::new(py, None)?,
            };
            hooks.get().adopt(&hooks, object);
            Ok(hooks)
        }
    }

    /// The dictionaries that a wrapper holds, if they belong to the tensor's present node (or to a
    /// leaf, if it is one).
    ///
    /// # Safety
    /// As for [`HookDicts::of_tensor`].
    pub(crate) unsafe fn current<'py>(
        py: Python<'py>,
        object: *mut TensorObject,
        node: Option<&Node>,
    ) -> Option<Bound<'py, Self>> {
        // SAFETY: the field is null or an owned reference to such an object.
        let held = unsafe { Bound::from_borrowed_ptr_or_opt(py, (*object).hooks()) }?;
        let held = held.cast_into::<Self>().ok()?;
        (held.get().node_id() == node.map(Node::id)).then_some(held)
    }

    fn node_id(&self) -> Option<usize> {
        self.node.as_ref().map(|(id, _)| *id)
    }

    /// Makes the wrapper own a reference to this, in place of any other dictionaries of hooks.
    ///
    /// # Safety
    /// As for [`HookDicts::of_tensor`].
    unsafe fn adopt(&self, this: &Bound<'_, Self>, object: *mut TensorObject) {
        lock(&self.tensors).push(AtomicPtr::new(object));
        // SAFETY: the caller's promise.
        unsafe { set_hooks(object, Some(this)) };
    }

    /// Called when the wrapper has dropped its reference, or is about to.
    pub(crate) fn forget(&self, object: *mut TensorObject) {
        let mut tensors = lock(&self.tensors);
        if let Some(index) = tensors.iter().position(|t| t.load(Relaxed) == object) {
            tensors.swap_remove(index);
        }
    }

    /// Sets the handle in the node's wrapper, or null when the wrapper is freed.
    pub(super) fn set_wrapper(&self, node: *const Node) {
        self.wrapper.store(node.cast_mut(), Relaxed);
    }

    /// Makes the wrapper of a tensor whose `grad_fn` is this node's Python object own the node's
    /// hooks as well.
    pub(super) fn share(py: Python<'_>, node: &Node, tensor: &Tensor) {
        let Some(hooks) = Self::find(py, node) else { return };
        let object = tensor.python_slot().load(Relaxed).cast::<TensorObject>();
        if object.is_null() || !tensor.peek_grad_fn(|own| own.is_some_and(|own| own.is_same(node)))
        {
            return;
        }
        // SAFETY: the slot holds the tensor's live wrapper.
        unsafe {
            if Self::current(py, object, Some(node)).is_none() {
                hooks.get().adopt(&hooks, object);
            }
        }
    }

    /// The dictionary of this kind, if there is one.
    pub(crate) fn get<'py>(&self, py: Python<'py>, kind: HookKind) -> Option<Bound<'py, PyDict>> {
        let entries = lock(&self.entries);
        let entry = entries.iter().find(|entry| entry.kind == kind)?;
        Some(entry.dict.bind(py).clone())
    }

    /// Shows the collector the metadata that a node holds.
    pub(super) fn show_metadata(&self, py: Python<'_>, held: &Arc<HookDict>) {
        if self.get(py, HookKind::Metadata).is_none() {
            let (dict, owner) = (held.dict(py).unbind(), Arc::clone(&held.owner));
            let closures = count_of(held);
            self.add(Entry { kind: HookKind::Metadata, dict, closures, id: None, owner });
        }
    }

    /// Removes an entry.
    fn remove(&self, which: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut entries = lock(&self.entries);
        entries.iter().position(which).map(|index| entries.swap_remove(index))
    }

    /// Adds an entry, and sets the owner of its closure.
    fn add(&self, entry: Entry) {
        entry.owner.store(self.owner.load(Relaxed), Relaxed);
        lock(&self.entries).push(entry);
    }

    /// The dictionary of this kind; if there is none, a new one, over which `register` gives the library a closure.
    pub(crate) fn get_or_make<'py>(
        &self,
        py: Python<'py>,
        kind: HookKind,
        register: impl FnOnce(HookDict) -> PyResult<Registered>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if let Some(found) = self.get(py, kind) {
            return Ok(found);
        }
        // Handles refer to it weakly, which plain dictionaries do not allow.
        let made = py.import("collections")?.getattr("OrderedDict")?.call0()?;
        let dict = made.cast_into::<PyDict>()?;
        self.put(kind, &dict, register)?;
        Ok(dict)
    }

    /// Puts a dictionary of this kind here, over which `register` gives the library a closure.
    pub(crate) fn put(
        &self,
        kind: HookKind,
        dict: &Bound<'_, PyDict>,
        register: impl FnOnce(HookDict) -> PyResult<Registered>,
    ) -> PyResult<()> {
        let hooks = HookDict::of(dict.clone());
        let owner = Arc::clone(&hooks.owner);
        let Registered { closures, id } = register(hooks)?;
        self.add(Entry { kind, dict: dict.clone().unbind(), closures, id, owner });
        Ok(())
    }

    /// Removes the dictionary of this kind; returns the identity by which the library removes its
    /// closure.
    pub(crate) fn take(&self, kind: HookKind) -> Option<HookId> {
        self.remove(|entry| entry.kind == kind)?.id
    }

    /// Whether the library has a closure of this kind over this very dictionary.
    pub(crate) fn has(&self, kind: HookKind, dict: &Bound<'_, PyDict>) -> bool {
        lock(&self.entries).iter().any(|entry| entry.kind == kind && entry.dict.is(dict))
    }

    /// Called when the tensor was detached in place: it is a leaf with the hooks that it had.
    ///
    /// # Safety
    /// As for [`HookDicts::of_tensor`].
    pub(crate) unsafe fn detach(
        &self,
        py: Python<'_>,
        object: *mut TensorObject,
        nr: u32,
    ) -> PyResult<()> {
        let leafs = Self::new(py, None)?;
        if let Some(own) = self.remove(|entry| entry.kind == HookKind::Tensor(nr)) {
            leafs.get().add(Entry { kind: HookKind::Tensor(0), ..own });
        }
        // SAFETY: the caller's promise.
        unsafe { leafs.get().adopt(&leafs, object) };
        Ok(())
    }

    /// Whether all holders of the leaf or the node, and with it of the closures, own a reference to
    /// this.
    fn knows_all_holders(&self) -> bool {
        let Ok(tensors) = self.tensors.try_lock() else { return false };
        let wrappers = tensors.iter().map(|object| object.load(Relaxed));
        // SAFETY: these wrappers are alive: they are forgotten before they go.
        let mut sole = wrappers.filter_map(|object| unsafe { holds_only_handle(object) });
        let Some(id) = self.node_id() else {
            return sole.any(|leaf| !leaf.is_view() && leaf.peek_grad_fn(|n| n.is_none()));
        };
        // SAFETY: the handle is in the wrapper of the node, which empties this before it goes.
        let wrapper = unsafe { self.wrapper.load(Relaxed).as_ref() };
        let (mut handles, mut known) = (None, 0);
        let mut count = |node: &Node| {
            if node.id() == id {
                handles = Some(node.use_count());
                known += 1;
            }
        };
        wrapper.map(&mut count);
        for tensor in sole {
            tensor.peek_grad_fn(|node| node.map(&mut count));
        }
        handles == Some(known)
    }
}

#[pymethods]
impl HookDicts {
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        let Ok(entries) = self.entries.try_lock() else { return Ok(()) };
        let shows_closures = self.knows_all_holders();
        for entry in &*entries {
            visit.call(&entry.dict)?;
            // A thread that runs a closure holds its dictionary too.
            if shows_closures && (entry.closures)() == 1 {
                visit.call(&entry.dict)?;
            }
        }
        Ok(())
    }
}
