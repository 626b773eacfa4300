//! `grad_fn` objects: graph nodes as Python sees them.
//!
//! A node has at most one wrapper, which owns the node; the node's way back is weak. The classes are
//! made per node name, so that `type(x.grad_fn).__name__` says what it is. The `grad_fn` of a custom
//! function is its context object.

use super::hook::{register_on_node, register_post, register_pre};
use super::hook_dicts::{HookDict, HookDicts, HookKind};
use super::saved::SavedTensor;
use crate::convert::type_name;
use crate::error::raise;
use crate::interrupt::computing;
use crate::lock::without_lock;
use crate::raw::context::context_of;
use crate::raw::entry::raise_what_is_set;
use crate::raw::object::{as_tensor, wrap_bound};
use crate::raw::size::new_size;
use crate::tensor::method::current_hooks;
use pullback::Tensor;
use pullback::autograd::{Node, SavedCount};
use pullback::dispatch::{Grads, Value};
use pullback::tensor::WeakTensor;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// The base of all `grad_fn` objects.
#[pyclass(name = "_NodeBase", module = "torch._C", subclass, frozen)]
pub(crate) struct PyNode {
    node: Node,
    hooks: OnceLock<Py<HookDicts>>,
    /// The tensor that it was the `grad_fn` of when it was first asked for.
    tensor: OnceLock<WeakTensor>,
}

impl Drop for PyNode {
    fn drop(&mut self) {
        if let Some(hooks) = self.hooks.get() {
            hooks.get().set_wrapper(null());
        }
        self.node.python_slot().store(null_mut(), Relaxed);
    }
}

/// All classes by name: they live as long as the process.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

thread_local! {
    /// The classes of the nodes of ops, by the address of the op's declaration.
    static OP_CLASSES: RefCell<BTreeMap<usize, *mut PyTypeObject>> = const { RefCell::new(BTreeMap::new()) };
}

/// The class of a node, as a borrowed reference.
fn class_of(py: Python<'_>, node: &Node) -> PyResult<*mut PyTypeObject> {
    let called = || class_called(py, &short_name(node)).map(|class| class.as_ptr().cast());
    let Some(def) = node.op() else { return called() };
    let key = std::ptr::from_ref(def) as usize;
    if let Some(class) = OP_CLASSES.with_borrow(|known| known.get(&key).copied()) {
        return Ok(class);
    }
    let class = called()?;
    OP_CLASSES.with_borrow_mut(|known| known.insert(key, class));
    Ok(class)
}

/// The class of nodes called `name`.
fn class_called<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(class) = classes.get_item(name)? {
        return Ok(class);
    }
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "torch.autograd.graph")?;
    namespace.set_item("__slots__", PyTuple::empty(py))?;
    let bases = PyTuple::new(py, [py.get_type::<PyNode>()])?;
    let class = py.get_type::<PyType>().call1((name, bases, namespace))?;
    classes.set_item(name, &class)?;
    Ok(class)
}

/// The node's Python object: a new reference.
pub(crate) fn wrap_node<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    match existing(py, node) {
        Some(object) => Ok(object),
        None => Ok(new_wrapper(py, node.clone(), OnceLock::new())?.into_any()),
    }
}

/// The Python object of a tensor's node. Both share its hooks.
pub(crate) fn wrap_grad_fn<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    node: Node,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(object) = existing(py, &node) else {
        let object = new_wrapper(py, node, OnceLock::from(tensor.downgrade()))?;
        HookDicts::share(py, &object.get().node, tensor);
        return Ok(object.into_any());
    };
    let origin = match object.cast::<PyNode>() {
        Ok(wrapper) => Some(&wrapper.get().tensor),
        Err(_) => context_of(&object).map(|context| &context.tensor),
    };
    if let Some(origin) = origin {
        origin.get_or_init(|| tensor.downgrade());
    }
    HookDicts::share(py, &node, tensor);
    Ok(object)
}

/// The node's Python object, if it has one.
fn existing<'py>(py: Python<'py>, node: &Node) -> Option<Bound<'py, PyAny>> {
    if let Some(context) = node.backward().and_then(pullback::autograd::Backward::python_context) {
        // SAFETY: the node keeps its context alive.
        let object = unsafe { Bound::from_borrowed_ptr(py, context.cast()) };
        if let Some(context) = context_of(&object) {
            context.link(node);
            context.is_shown.set(true);
        }
        return Some(object);
    }
    let wrapper = node.python_slot().load(Relaxed).cast();
    // SAFETY: the slot is emptied when the wrapper goes.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, wrapper) }
}

fn new_wrapper(
    py: Python<'_>,
    node: Node,
    tensor: OnceLock<WeakTensor>,
) -> PyResult<Bound<'_, PyNode>> {
    let class = class_of(py, &node)?;
    let object = Bound::new(py, PyNode { node, hooks: OnceLock::new(), tensor })?;
    // SAFETY: the class adds nothing to its base, whose object this is so far; an object owns a reference to its class.
    unsafe {
        let base = ffi::Py_TYPE(object.as_ptr());
        ffi::Py_INCREF(class.cast());
        (*object.as_ptr()).ob_type = class;
        ffi::Py_DECREF(base.cast());
    }
    let node = &object.get().node;
    node.python_slot().store(object.as_ptr().cast(), Relaxed);
    if let Some(hooks) = HookDicts::find(py, node) {
        PyNode::give(py, node, &hooks);
    }
    Ok(object)
}

/// The name that a tensor's repr shows.
pub(crate) fn short_name(node: &Node) -> String {
    let name = node.name();
    name.rsplit("::").next().unwrap_or(&name).to_owned()
}

/// The node of a `grad_fn` object.
pub(crate) fn node_of(object: &Bound<'_, PyAny>) -> Option<Node> {
    if let Ok(wrapper) = object.cast::<PyNode>() {
        return Some(wrapper.borrow().node.clone());
    }
    super::function::node_of_context(object)
}

/// The Python value of a saved value.
pub(crate) fn value<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: each call gives a new reference.
    let own = |p: *mut PyObject| unsafe { Bound::from_owned_ptr(py, p) };
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Tensor(t) => wrap_bound(py, t)?,
        Value::Tensors(list) => {
            let items: PyResult<Vec<_>> = list.into_iter().map(|t| wrap_bound(py, t)).collect();
            PyTuple::new(py, items?)?.into_any()
        }
        Value::OptTensors(list) => {
            let items: PyResult<Vec<_>> =
                list.iter().map(|t| super::hook::optional(py, t.as_ref())).collect();
            PyTuple::new(py, items?)?.into_any()
        }
        Value::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(i) => i.into_pyobject(py)?.into_any(),
        Value::Float(f) => f.into_pyobject(py)?.into_any(),
        Value::Scalar(s) => own(crate::result::scalar(py, s)?),
        Value::Ints(list) => PyTuple::new(py, list.iter())?.into_any(),
        Value::Floats(list) => PyTuple::new(py, list.iter())?.into_any(),
        Value::Scalars(list) => {
            let items: PyResult<Vec<_>> =
                list.iter().map(|&s| Ok(own(crate::result::scalar(py, s)?))).collect();
            PyTuple::new(py, items?)?.into_any()
        }
        Value::Str(s) => s.as_ref().into_pyobject(py)?.into_any(),
        Value::DType(d) => crate::dtype::dtype_object(py, d),
        Value::Device(d) => crate::dtype::device_object(py, d)?,
        Value::Layout(l) => crate::dtype::layout_object(py, l),
        Value::Spec(spec) => own(new_size(&spec.shape)?),
        _ => py.None().into_bound(py),
    })
}

/// `next_functions` of any node.
pub(crate) fn next_functions<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    let mut pairs = Vec::new();
    for edge in node.next_edges() {
        let next = match &edge.node {
            Some(node) => wrap_node(py, node)?,
            None => py.None().into_bound(py),
        };
        pairs.push((next, edge.nr));
    }
    PyTuple::new(py, pairs)
}

/// Gradients given to a node that is called from Python.
pub(crate) fn grads_from(args: &Bound<'_, PyTuple>, expected: usize) -> PyResult<Grads> {
    if args.len() != expected {
        return Err(PyTypeError::new_err(format!(
            "expected {expected} arguments, got {} instead",
            args.len()
        )));
    }
    args.iter()
        .enumerate()
        .map(|(index, arg)| match as_tensor(&arg) {
            Some(tensor) => Ok(Some(tensor.clone())),
            None if arg.is_none() => Ok(None),
            None => Err(PyTypeError::new_err(format!(
                "argument {index} is not a Variable (got {})",
                type_name(&arg)
            ))),
        })
        .collect()
}

#[pymethods]
impl PyNode {
    #[new]
    fn new() -> PyResult<Self> {
        Err(PyTypeError::new_err("cannot create 'Node' instances"))
    }
    fn name(&self) -> String {
        self.node.name()
    }
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        next_functions(py, &self.node)
    }
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metadata(py, &self.node, self.tensor.get())
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.node.leaf() {
            Some(leaf) => wrap_bound(py, leaf.clone()),
            None => Err(self.missing("variable")),
        }
    }
    fn _sequence_nr(&self) -> u64 {
        self.node.sequence_nr()
    }
    /// Sets the sequence number: of the nodes that are ready, the one with the largest runs next.
    fn _set_sequence_nr(&self, number: u64) {
        self.node.set_sequence_nr(number);
    }
    /// Lets the hooks of ``tensor``, an output of the node, run on the gradient that arrives there.
    fn _register_hook_dict(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        register_hook_dict(py, &self.node, tensor)
    }
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        input_metadata(py, &self.node)
    }
    /// The dictionary of pre-hooks, registered on first use.
    fn _pre_hooks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        pre_hooks(py, &self.node, self.tensor.get())
    }
    /// The dictionary of post-hooks, registered on first use.
    fn _post_hooks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        post_hooks(py, &self.node, self.tensor.get())
    }
    #[pyo3(signature = (*args))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(py, &self.node, args)
    }
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(saved) = name.strip_prefix("_raw_saved_") {
            return self.raw_saved(py, saved)?.ok_or_else(|| self.missing(name));
        }
        let Some(saved) = name.strip_prefix("_saved_") else { return Err(self.missing(name)) };
        let names = self.node.saved_names();
        if let Some(index) = names.iter().position(|n| n == saved) {
            return match self.node.saved(index) {
                None => Ok(py.None().into_bound(py)),
                Some(found) => value(py, found.map_err(raise)?),
            };
        }
        Err(self.missing(name))
    }
    fn __dir__(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = slf.get_type().dir()?.extract()?;
        let saved = slf.borrow().node.saved_names();
        for (index, saved) in saved.into_iter().enumerate() {
            if slf.get().node.saved_tensors(index).is_some() {
                names.push(format!("_raw_saved_{saved}"));
            }
            names.push(format!("_saved_{saved}"));
        }
        let is_leaf = slf.get().node.leaf().is_some();
        names.retain(|name| is_leaf || name != "variable");
        Ok(names)
    }
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?.to_string();
        Ok(format!("<{name} object at {:#x}>", slf.as_ptr() as usize))
    }
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(self.hooks.get())
    }
}

impl PyNode {
    /// Gives the node's wrapper, if it has one, the node's hooks.
    pub(super) fn give(py: Python<'_>, node: &Node, hooks: &Bound<'_, HookDicts>) {
        let object = node.python_slot().load(Relaxed).cast::<PyObject>();
        // SAFETY: the slot is emptied when the wrapper goes.
        let Some(object) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }) else { return };
        if let Ok(wrapper) = object.cast::<PyNode>()
            && wrapper.get().hooks.set(hooks.clone().unbind()).is_ok()
        {
            hooks.get().set_wrapper(&raw const wrapper.get().node);
        }
    }

    /// The saved tensor called `name` (or the tuple of them) as an object; nothing if that is no tensor.
    fn raw_saved<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let names = self.node.saved_names();
        let Some(index) = names.iter().position(|n| n == name) else { return Ok(None) };
        let object = |item: usize| Bound::new(py, SavedTensor::of_node(&self.node, index, item));
        Ok(match self.node.saved_tensors(index) {
            Some(count) => Some(match count.map_err(raise)? {
                SavedCount::One => object(0)?.into_any(),
                SavedCount::List(n) => {
                    let items: PyResult<Vec<_>> = (0..n).map(object).collect();
                    PyTuple::new(py, items?)?.into_any()
                }
            }),
            None if self.node.saved(index).is_none() => {
                Some(Bound::new(py, SavedTensor::none())?.into_any())
            }
            None => None,
        })
    }

    fn missing(&self, name: &str) -> PyErr {
        let own = short_name(&self.node);
        PyAttributeError::new_err(format!("'{own}' object has no attribute '{name}'"))
    }
}

/// A node's dictionary of pre-hooks. `tensor`, whose `grad_fn` it is, owns it too.
pub(super) fn pre_hooks<'py>(
    py: Python<'py>,
    node: &Node,
    tensor: Option<&WeakTensor>,
) -> PyResult<Bound<'py, PyDict>> {
    let hooks = hooks_of(py, node, tensor)?;
    hooks.get().get_or_make(py, HookKind::Pre, |hooks| Ok(register_pre(node, hooks)))
}

/// As [`pre_hooks`], of post-hooks.
pub(super) fn post_hooks<'py>(
    py: Python<'py>,
    node: &Node,
    tensor: Option<&WeakTensor>,
) -> PyResult<Bound<'py, PyDict>> {
    let hooks = hooks_of(py, node, tensor)?;
    hooks.get().get_or_make(py, HookKind::Post, |hooks| Ok(register_post(node, hooks)))
}

/// Lets the hooks of `object`, a tensor, run on the gradient of the node's output that the tensor is. Those of its own
/// `grad_fn` do so already, and so do those of a leaf.
pub(super) fn register_hook_dict(
    py: Python<'_>,
    node: &Node,
    object: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let Some(tensor) = as_tensor(object) else {
        return Err(PyTypeError::new_err(format!(
            "_register_hook_dict expected a variable, not {}",
            type_name(object)
        )));
    };
    let nr = tensor.output_nr();
    let kind = HookKind::Tensor(nr);
    let Some(dict) = current_hooks(py, object.as_ptr(), kind)? else {
        return Err(PyRuntimeError::new_err(
            "_register_hook_dict expected a variable with hooks, but its _backward_hooks is None",
        ));
    };
    if nr as usize >= node.input_meta().len().max(1) {
        return Err(PyRuntimeError::new_err(format!(
            "_register_hook_dict expected a variable that is an output of {}, which has no output {nr}",
            node.name()
        )));
    }
    let hooks = HookDicts::of_node(py, node)?;
    if node.leaf().is_some() || hooks.get().has(kind, &dict) {
        return Ok(());
    }
    hooks.get().put(kind, &dict, |hooks| Ok(register_on_node(node, nr, hooks)))
}

/// The metadata of a node, of users and of anomaly mode.
pub(super) fn metadata<'py>(
    py: Python<'py>,
    node: &Node,
    tensor: Option<&WeakTensor>,
) -> PyResult<Bound<'py, PyDict>> {
    let held = match held_metadata(node) {
        Some(held) => held,
        None => {
            let made = Arc::new(HookDict::of(PyDict::new(py)));
            node.set_note(made.clone());
            made
        }
    };
    hooks_of(py, node, tensor)?.get().show_metadata(py, &held);
    Ok(held.dict(py))
}

/// As [`metadata`], if there is any.
pub(super) fn metadata_if_any<'py>(py: Python<'py>, node: &Node) -> Option<Bound<'py, PyDict>> {
    Some(held_metadata(node)?.dict(py))
}

fn held_metadata(node: &Node) -> Option<Arc<HookDict>> {
    node.note()?.downcast().ok()
}

fn hooks_of<'py>(
    py: Python<'py>,
    node: &Node,
    tensor: Option<&WeakTensor>,
) -> PyResult<Bound<'py, HookDicts>> {
    let hooks = HookDicts::of_node(py, node)?;
    if let Some(tensor) = tensor.and_then(WeakTensor::upgrade) {
        HookDicts::share(py, node, &tensor);
    }
    Ok(hooks)
}

/// Runs a node by hand.
pub(crate) fn call<'py>(
    py: Python<'py>,
    node: &Node,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let grads = grads_from(args, node.input_meta().len())?;
    let results = computing(|| without_lock(py, || node.run(grads)).map_err(raise))?;
    raise_what_is_set(py)?;
    let tuple = super::hook::tuple(py, &results)?;
    if tuple.len() == 1 { tuple.get_item(0) } else { Ok(tuple.into_any()) }
}

/// `_input_metadata` of any node.
pub(crate) fn input_metadata<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    let mut items = Vec::new();
    for meta in node.input_meta() {
        items.push(match meta {
            None => py.None().into_bound(py),
            Some(meta) => {
                // SAFETY: a new reference.
                let shape = unsafe { Bound::from_owned_ptr(py, new_size(&meta.shape)?) };
                let data = InputMetadata {
                    shape: shape.unbind(),
                    dtype: crate::dtype::dtype_object(py, meta.dtype).unbind(),
                    device: crate::dtype::device_object(py, meta.device)?.unbind(),
                };
                Bound::new(py, data)?.into_any()
            }
        });
    }
    PyTuple::new(py, items)
}

/// The properties that a gradient arriving at a node must have.
#[pyclass(name = "_InputMetadata", module = "torch._C", frozen, get_all)]
struct InputMetadata {
    shape: Py<PyAny>,
    dtype: Py<PyAny>,
    device: Py<PyAny>,
}

#[pymethods]
impl InputMetadata {
    #[getter]
    fn is_nested_tensor(&self) -> bool {
        false
    }
    #[getter]
    fn is_cpp_nested_tensor(&self) -> bool {
        false
    }
}

/// The class of the nodes called `name`.
#[pyfunction]
fn _node_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    class_called(py, name)
}

/// Adds the class.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_node_class, module)?)?;
    module.add_class::<PyNode>()
}
