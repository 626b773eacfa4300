//! Custom functions: `autograd.Function` whole.
//!
//! The node owns the context object, the context knows its node weakly; the `grad_fn` of the outputs
//! is the context. `apply` runs the user's forward without recording, makes the node and lets the
//! library give the outputs their history. Start at [`PyContext::apply`].

use super::hook::optional;
use super::node::{call, input_metadata, next_functions};
use crate::convert::{Borrowed, items, type_name};
use crate::error::{carry, raise};
use crate::held::Held;
use crate::raw::entry::{Args, Reply, class_method, fast, vectorcall};
use crate::raw::object::{as_tensor, is_tensor, tensor_of, track, wrap};
use pullback::autograd::custom::{CustomCall, attach_outputs, save};
use pullback::autograd::{
    Backward, Edge, InputMeta, Node, SavedTensor, WeakNode, is_grad_enabled, mode,
};
use pullback::dispatch::Grads;
use pullback::{Result, Tensor, TensorSpec};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// The context of one call of a custom function.
#[pyclass(name = "_FunctionBase", module = "torch._C", frozen, subclass, dict, weakref)]
#[derive(Default)]
pub(crate) struct PyContext {
    node: RefCell<WeakNode>,
    to_save: RefCell<Option<Py<PyAny>>>,
    dirty: RefCell<Option<Py<PyAny>>>,
    non_differentiable: RefCell<Option<Py<PyAny>>>,
    saved_for_forward: RefCell<Option<Py<PyAny>>>,
    needs_input_grad: RefCell<Option<Py<PyAny>>>,
    saved: RefCell<SmallVec<[Option<SavedTensor>; 1]>>,
    has_saved: Cell<bool>,
    freed: Cell<bool>,
    keep_undefined: Cell<bool>,
    skip_non_differentiable: Cell<bool>,
    /// What the arguments were.
    inputs: RefCell<Kinds>,
    pre: RefCell<Option<Py<PyDict>>>,
    post: RefCell<Option<Py<PyDict>>>,
}

// SAFETY: every field is only touched with the GIL held.
unsafe impl Sync for PyContext {}

/// What an argument is to the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputKind {
    Other,
    Tensor,
    /// A tensor that requires grad.
    Differentiable,
}

type Kinds = SmallVec<[InputKind; 8]>;

/// The library's side of a context.
struct Body {
    context: Held,
    /// What the outputs without gradient are: zeros like them stand for their gradients.
    others: SmallVec<[Option<Box<TensorSpec>>; 2]>,
}

impl Backward for Body {
    fn name(&self) -> String {
        Python::attach(|py| {
            let class = self.context.bind(py).get_type();
            class.name().map_or_else(|_| String::new(), |name| name.to_string())
        })
    }
    fn apply(&self, node: &Node, grads: Grads) -> Result<Grads> {
        Python::attach(|py| self.run(py, node, grads)).map_err(carry)
    }
    fn release(&self) {
        Python::attach(|py| {
            let Ok(context) = self.context.bind(py).cast::<PyContext>() else { return };
            let saved = {
                let context = context.get();
                context.freed.set(context.has_saved.get());
                std::mem::take(&mut *context.saved.borrow_mut())
            };
            drop(saved);
        });
    }
    fn python_context(&self) -> Option<*mut ()> {
        Some(self.context.as_ptr().cast())
    }
}

impl Body {
    fn run(&self, py: Python<'_>, node: &Node, mut grads: Grads) -> PyResult<Grads> {
        let context = self.context.bind(py);
        let (fills, skips) = {
            let context = context.cast::<PyContext>()?.get();
            (!context.keep_undefined.get(), context.skip_non_differentiable.get())
        };
        if fills {
            let missing = grads.iter_mut().zip(node.input_meta()).zip(&self.others);
            for ((grad, meta), other) in missing.filter(|((grad, _), _)| grad.is_none()) {
                *grad = match (meta, other) {
                    (Some(meta), _) => Some(TensorSpec::of(&meta.shape, meta.dtype).zeros()),
                    (None, Some(spec)) if !skips => Some(spec.zeros()),
                    _ => None,
                }
                .transpose()
                .map_err(raise)?;
            }
        }
        let grads: SmallVec<[Bound<'_, PyAny>; 4]> =
            grads.iter().map(|grad| optional(py, grad.as_ref())).collect::<PyResult<_>>()?;
        let mut args: SmallVec<[*mut PyObject; 5]> = smallvec::smallvec![context.as_ptr()];
        args.extend(grads.iter().map(Bound::as_ptr));
        // SAFETY: the context and the gradients are held here.
        let result = unsafe { vectorcall(&users_backward(context)?, &args)? };
        self.results(context, result)
    }

    /// Checks what the user's backward gave: one gradient per tensor argument.
    fn results(&self, context: &Bound<'_, PyAny>, result: Bound<'_, PyAny>) -> PyResult<Grads> {
        let context = context.cast::<PyContext>()?.get();
        let kinds = context.inputs.borrow();
        let single = [result.as_ptr()];
        let mut given = match result.cast::<PyTuple>() {
            Ok(tuple) => items(tuple.as_ptr()).unwrap_or_default(),
            Err(_) => &single,
        };
        let count = given.len();
        // SAFETY: `None` always lives.
        let none = unsafe { pyo3::ffi::Py_None() };
        while given.len() > kinds.len() && given.last() == Some(&none) {
            given = &given[..given.len() - 1];
        }
        if given.len() != kinds.len() {
            return Err(PyRuntimeError::new_err(format!(
                "function {} returned an incorrect number of gradients (expected {}, got {count})",
                self.name(),
                kinds.len()
            )));
        }
        let mut grads = Grads::new();
        for (index, (&item, &kind)) in given.iter().zip(kinds.iter()).enumerate() {
            // SAFETY: an item of the result, which is held here.
            let item = unsafe { Bound::from_borrowed_ptr(result.py(), item) };
            match (kind, as_tensor(&item)) {
                (InputKind::Other, _) if item.is_none() => {}
                (InputKind::Other, _) => return Err(self.misplaced(index)),
                (_, Some(tensor)) => grads.push(Some(tensor.clone())),
                (_, None) if item.is_none() => grads.push(None),
                (_, None) => return Err(self.no_gradient(index, &item)),
            }
        }
        Ok(grads)
    }

    #[cold]
    fn misplaced(&self, index: usize) -> PyErr {
        PyRuntimeError::new_err(format!(
            "function {} returned a gradient different than None at position {}, but the corresponding forward input was not a Variable",
            self.name(),
            index + 1
        ))
    }

    #[cold]
    fn no_gradient(&self, index: usize, item: &Bound<'_, PyAny>) -> PyErr {
        PyRuntimeError::new_err(format!(
            "function {} returned a gradient that is no tensor at position {}: expected Variable or None (got {})",
            self.name(),
            index + 1,
            type_name(item)
        ))
    }
}

/// `backward` and `vjp` of the class `Function` itself, which stand for "not defined".
static UNDEFINED: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

/// What the user defined of `backward` and `vjp`: not both.
fn users_backward<'py>(context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = context.py();
    let [no_backward, no_vjp] = UNDEFINED.get_or_try_init(py, || -> PyResult<_> {
        let class = py.import("pullback.autograd.function")?.getattr("Function")?;
        Ok([class.getattr("backward")?.unbind(), class.getattr("vjp")?.unbind()])
    })?;
    let class = context.get_type().getattr(intern!(py, "_forward_cls"))?;
    let backward = class.getattr(intern!(py, "backward"))?;
    let vjp = class.getattr(intern!(py, "vjp"))?;
    if vjp.is(no_vjp) {
        return Ok(backward);
    }
    if !backward.is(no_backward) {
        return Err(PyRuntimeError::new_err(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.",
        ));
    }
    Ok(vjp)
}

/// The tensors in an attribute that the user set; anything else is refused.
fn tensors_in(
    py: Python<'_>,
    slot: &RefCell<Option<Py<PyAny>>>,
    refuse: impl Fn(usize, &Bound<'_, PyAny>) -> String,
) -> PyResult<SmallVec<[Option<Tensor>; 4]>> {
    let mut tensors = SmallVec::new();
    let Some(object) = slot.borrow().as_ref().map(|o| o.bind(py).clone()) else {
        return Ok(tensors);
    };
    let mut add = |index: usize, item: &Bound<'_, PyAny>| {
        tensors.push(match as_tensor(item) {
            Some(tensor) => Some(tensor.clone()),
            None if item.is_none() => None,
            None => return Err(PyTypeError::new_err(refuse(index, item))),
        });
        Ok(())
    };
    match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter_borrowed().enumerate().try_for_each(|(i, item)| add(i, &item))?,
        Err(_) => object.try_iter()?.enumerate().try_for_each(|(i, item)| add(i, &item?))?,
    }
    Ok(tensors)
}

/// The node of a context object.
pub(crate) fn node_of_context(object: &Bound<'_, PyAny>) -> Option<Node> {
    object.cast::<PyContext>().ok()?.get().node.borrow().upgrade()
}

/// The arguments as the engine needs them.
#[derive(Default)]
struct Inputs {
    tensors: Borrowed,
    edges: SmallVec<[Edge; 2]>,
    executable: bool,
}

/// # Safety
/// The arguments are live objects.
unsafe fn read_inputs(
    args: &[*mut PyObject],
    kinds: &mut Kinds,
    inputs: &mut Inputs,
) -> PyResult<()> {
    for &arg in args {
        // SAFETY: the caller's promise.
        let tensor = unsafe { is_tensor(arg).then(|| tensor_of(arg)) };
        kinds.push(match tensor {
            None => InputKind::Other,
            Some(tensor) if tensor.requires_grad() => InputKind::Differentiable,
            Some(_) => InputKind::Tensor,
        });
        if tensor.is_some() {
            // SAFETY: a tensor.
            unsafe { inputs.tensors.push(arg) };
        }
    }
    inputs.executable = kinds.contains(&InputKind::Differentiable) && is_grad_enabled();
    if inputs.executable {
        for tensor in inputs.tensors.as_slice() {
            inputs.edges.push(if tensor.requires_grad() {
                tensor.gradient_edge().map_err(raise)?
            } else {
                Edge::default()
            });
        }
    }
    Ok(())
}

/// Puts the thread's modes back on every way out.
struct Modes(u32);
impl Drop for Modes {
    fn drop(&mut self) {
        mode::restore(self.0);
    }
}

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyAny>>) -> Self {
        Self::default()
    }

    #[pyo3(signature = (*tensors))]
    fn save_for_backward(&self, tensors: Py<PyTuple>) {
        *self.to_save.borrow_mut() = Some(tensors.into_any());
    }
    #[pyo3(signature = (*tensors))]
    fn mark_dirty(&self, tensors: Py<PyTuple>) {
        *self.dirty.borrow_mut() = Some(tensors.into_any());
    }
    #[pyo3(signature = (*tensors))]
    fn mark_non_differentiable(&self, tensors: Py<PyTuple>) {
        *self.non_differentiable.borrow_mut() = Some(tensors.into_any());
    }
    fn set_materialize_grads(&self, value: bool) {
        self.keep_undefined.set(!value);
    }
    #[getter]
    fn materialize_grads(&self) -> bool {
        !self.keep_undefined.get()
    }
    #[setter(materialize_grads)]
    fn put_materialize_grads(&self, value: bool) {
        self.keep_undefined.set(!value);
    }
    #[getter]
    fn _materialize_non_diff_grads(&self) -> bool {
        !self.skip_non_differentiable.get()
    }
    #[setter]
    fn set__materialize_non_diff_grads(&self, value: bool) {
        self.skip_non_differentiable.set(!value);
    }
    #[getter]
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(saved) = &*self.saved_for_forward.borrow() {
            return Ok(saved.bind(py).cast::<PyTuple>()?.clone());
        }
        if self.freed.get() {
            return Err(PyRuntimeError::new_err(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
            ));
        }
        let node = self.node.borrow().upgrade();
        let mut items: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
        for saved in &*self.saved.borrow() {
            items.push(match (saved, &node) {
                (Some(saved), Some(node)) => {
                    optional(py, Some(&saved.unpack(node).map_err(raise)?))?
                }
                _ => py.None().into_bound(py),
            });
        }
        PyTuple::new(py, items)
    }
    #[getter]
    fn saved_variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
        PyErr::warn(py, &category, c"'saved_variables' is deprecated; use 'saved_tensors'", 1)?;
        self.saved_tensors(py)
    }
    fn maybe_clear_saved_tensors(&self) {
        let saved = std::mem::take(&mut *self.saved.borrow_mut());
        self.freed.set(self.has_saved.get());
        drop(saved);
    }
    #[getter]
    fn needs_input_grad(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(set) = &*self.needs_input_grad.borrow() {
            return Ok(set.clone_ref(py));
        }
        let kinds = self.inputs.borrow();
        if kinds.is_empty() {
            return Ok(py.None());
        }
        let needs = kinds.iter().map(|&kind| kind == InputKind::Differentiable);
        Ok(PyTuple::new(py, needs)?.into_any().unbind())
    }
    #[setter]
    fn set_needs_input_grad(&self, value: Py<PyAny>) {
        *self.needs_input_grad.borrow_mut() = Some(value);
    }
    #[getter]
    fn to_save(&self, py: Python<'_>) -> Py<PyAny> {
        self.to_save.borrow().as_ref().map_or_else(|| py.None(), |n| n.clone_ref(py))
    }
    #[setter]
    fn set_to_save(&self, value: Py<PyAny>) {
        *self.to_save.borrow_mut() = Some(value);
    }
    #[getter]
    fn dirty_tensors(&self, py: Python<'_>) -> Py<PyAny> {
        self.dirty.borrow().as_ref().map_or_else(|| py.None(), |n| n.clone_ref(py))
    }
    #[setter]
    fn set_dirty_tensors(&self, value: Py<PyAny>) {
        *self.dirty.borrow_mut() = Some(value);
    }
    #[getter]
    fn non_differentiable(&self, py: Python<'_>) -> Py<PyAny> {
        self.non_differentiable.borrow().as_ref().map_or_else(|| py.None(), |n| n.clone_ref(py))
    }
    #[setter]
    fn set_non_differentiable(&self, value: Py<PyAny>) {
        *self.non_differentiable.borrow_mut() = Some(value);
    }
    #[getter]
    fn saved_for_forward(&self, py: Python<'_>) -> Py<PyAny> {
        self.saved_for_forward.borrow().as_ref().map_or_else(|| py.None(), |n| n.clone_ref(py))
    }
    #[setter]
    fn set_saved_for_forward(&self, value: Option<Py<PyAny>>) {
        *self.saved_for_forward.borrow_mut() = value;
    }

    fn name(&self) -> PyResult<String> {
        Ok(self.live("name")?.name())
    }
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        next_functions(py, &self.live("next_functions")?)
    }
    #[getter]
    fn metadata<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().node.borrow().upgrade().is_none() {
            return Err(PyRuntimeError::new_err(
                "You attempted to access the anomaly metadata of a custom autograd function but the underlying PyNode has already been deallocated.  The most likely reason this occurred is because you assigned x.grad_fn to a local variable and then let the original variable get deallocated.",
            ));
        }
        let dict = slf.getattr("__dict__")?;
        let key = "_metadata";
        match dict.get_item(key) {
            Ok(found) => Ok(found),
            Err(_) => {
                let made = PyDict::new(slf.py()).into_any();
                dict.set_item(key, &made)?;
                Ok(made)
            }
        }
    }
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        input_metadata(py, &self.live("_input_metadata")?)
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    fn _sequence_nr(&self) -> PyResult<u64> {
        Ok(self.live("_sequence_nr")?.sequence_nr())
    }
    fn _pre_hooks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let node = self.live("register_prehook")?;
        Ok(hook_dict(py, &self.pre, |dict| super::hook::register_pre(&node, dict)))
    }
    fn _post_hooks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let node = self.live("register_hook")?;
        Ok(hook_dict(py, &self.post, |dict| super::hook::register_post(&node, dict)))
    }
    #[pyo3(signature = (*args))]
    fn _call_node<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(py, &self.live("__call__")?, args)
    }

    fn __traverse__(
        &self,
        visit: pyo3::PyVisit<'_>,
    ) -> std::result::Result<(), pyo3::PyTraverseError> {
        for slot in [
            &self.to_save,
            &self.dirty,
            &self.non_differentiable,
            &self.saved_for_forward,
            &self.needs_input_grad,
        ] {
            if let Ok(slot) = slot.try_borrow()
                && let Some(object) = &*slot
            {
                visit.call(object)?;
            }
        }
        Ok(())
    }
    fn __clear__(&self) {
        for slot in [
            &self.to_save,
            &self.dirty,
            &self.non_differentiable,
            &self.saved_for_forward,
            &self.needs_input_grad,
        ] {
            let old = slot.borrow_mut().take();
            drop(old);
        }
    }
}

fn hook_dict<'py>(
    py: Python<'py>,
    slot: &RefCell<Option<Py<PyDict>>>,
    register: impl Fn(Py<PyDict>),
) -> Bound<'py, PyDict> {
    let mut slot = slot.borrow_mut();
    if slot.is_none() {
        let dict = super::hook::ordered_dict(py).expect("collections is importable").unbind();
        register(dict.clone_ref(py));
        *slot = Some(dict);
    }
    slot.as_ref().expect("set above").bind(py).clone()
}

impl PyContext {
    fn live(&self, attribute: &str) -> PyResult<Node> {
        self.node.borrow().upgrade().ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "Attribute '{attribute}' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly on an instance of autograd.Function is a legacy access pattern that is no longer supported. For examples on how to use new-style autograd functions, see https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function "
            ))
        })
    }
}

/// Calls the user's forward, and `setup_context` if the class has one.
///
/// # Safety
/// The arguments are live objects.
unsafe fn forward<'py>(
    cls: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    args: &[*mut PyObject],
    setup: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let forward = cls.getattr(intern!(py, "forward"))?;
    let _modes = Modes(mode::snapshot());
    mode::set_grad_enabled(false);
    if let Some(args) = setup {
        let output = forward.call1(args)?;
        cls.call_method1(intern!(py, "setup_context"), (context, args, &output))?;
        return Ok(output);
    }
    if let [arg] = *args {
        // SAFETY: the caller's promise.
        return unsafe { vectorcall(&forward, &[context.as_ptr(), arg]) };
    }
    let mut all: SmallVec<[*mut PyObject; 8]> = SmallVec::with_capacity(args.len() + 1);
    all.push(context.as_ptr());
    all.extend_from_slice(args);
    // SAFETY: the caller's promise.
    unsafe { vectorcall(&forward, &all) }
}

/// `cls.apply(*args)`: calls `cls.forward` on the arguments, recorded as one node.
fn apply(py: Python<'_>, cls: *mut PyObject, args: Args<'_>) -> Reply {
    // SAFETY: the interpreter passes a live class and live arguments.
    unsafe {
        let cls = Bound::from_borrowed_ptr(py, cls);
        let has_setup = cls.getattr(intern!(py, "_has_setup_context"));
        if has_setup.is_ok_and(|has| has.is_truthy().unwrap_or(false)) {
            // What forward leaves to its defaults is an argument of setup_context too.
            let module = py.import(intern!(py, "pullback.autograd.function"))?;
            let (positional, named) = args.to_python(py)?;
            let bound = module.call_method1("_bind", (&cls, positional, named))?;
            let bound = bound.cast_into::<PyTuple>()?;
            let all = items(bound.as_ptr()).unwrap_or_default();
            return record(&cls, all, Some(&bound)).map(Bound::into_ptr);
        }
        if args.keywords() > 0 {
            return Err(PyTypeError::new_err("apply() takes no keyword arguments"));
        }
        record(&cls, args.all, None).map(Bound::into_ptr)
    }
}

/// An object of a context class: `class()`, which has no `__init__` to run.
fn new_context<'py>(class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let class = class.cast::<PyType>()?;
    // SAFETY: a live type, an empty tuple and no keywords are what the slot takes.
    unsafe {
        let Some(new) = (*class.as_type_ptr()).tp_new else { return class.call0() };
        let object = new(class.as_type_ptr(), PyTuple::empty(py).as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// # Safety
/// The arguments are live objects.
unsafe fn record<'py>(
    cls: &Bound<'py, PyAny>,
    args: &[*mut PyObject],
    setup: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let class = cls.getattr(intern!(py, "_backward_cls")).map_err(|_| {
        PyNotImplementedError::new_err(
            "You must implement the forward function for custom autograd.Function.",
        )
    })?;
    let object = new_context(&class)?;
    let context = object.cast::<PyContext>()?;
    let mut inputs = Inputs::default();
    // SAFETY: the caller's promise.
    unsafe { read_inputs(args, &mut context.get().inputs.borrow_mut(), &mut inputs)? };
    // SAFETY: the caller's promise.
    let output = unsafe { forward(cls, &object, args, setup)? };
    if let Some(tensor) = as_tensor(&output)
        && is_plain(context.get(), &inputs, tensor)
    {
        finish_plain(context, &mut inputs, tensor, setup.is_some())?;
        // SAFETY: a live wrapper; through its node it may be part of a cycle.
        unsafe {
            if tensor.requires_grad() {
                track(output.as_ptr());
            }
        }
        return Ok(output);
    }
    let is_tuple = output.is_instance_of::<PyTuple>();
    let raw: SmallVec<[Bound<'py, PyAny>; 2]> = match output.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => smallvec::smallvec![output],
    };
    let results = finish(context, &mut inputs, &raw, setup.is_some())?;
    wrap_results(py, raw, results, is_tuple)
}

/// Whether forward gave one fresh tensor and marked none: then that is the result, and all there is to do is to give it
/// its history.
fn is_plain(state: &PyContext, inputs: &Inputs, output: &Tensor) -> bool {
    state.dirty.borrow().is_none()
        && state.non_differentiable.borrow().is_none()
        && !output.requires_grad()
        && !output.is_view()
        && output.dtype().is_differentiable()
        && !inputs.tensors.as_slice().iter().any(|t| t.is_same(output))
}

/// As [`finish`] for such a result.
fn finish_plain(
    context: &Bound<'_, PyContext>,
    inputs: &mut Inputs,
    output: &Tensor,
    has_setup: bool,
) -> PyResult<()> {
    let (py, state) = (context.py(), context.get());
    if inputs.executable {
        let body = Body {
            context: Held::new(context.clone().into_any().unbind()),
            others: smallvec::smallvec![None],
        };
        let metas = smallvec::smallvec![Some(InputMeta::of(output))];
        let node = Node::custom(Box::new(body), std::mem::take(&mut inputs.edges), metas);
        *state.node.borrow_mut() = node.downgrade();
        output.set_history(node.clone(), 0);
        if state.to_save.borrow().is_some() {
            let own = [Some(output.clone())];
            save_tensors(py, state, inputs, &own, &own, &node, has_setup)?;
        }
    }
    forget_marks(py, state);
    Ok(())
}

/// Lets go of what the user marked and wanted saved.
fn forget_marks(py: Python<'_>, state: &PyContext) {
    for slot in [&state.to_save, &state.dirty, &state.non_differentiable, &state.saved_for_forward]
    {
        let kept = slot.borrow_mut().take();
        // Bound, so that it goes here and not when PyO3 next attaches; after the borrow, as it runs code.
        drop(kept.map(|object| object.into_bound(py)));
    }
}

fn marked(py: Python<'_>, slot: &RefCell<Option<Py<PyAny>>>, text: &str) -> PyResult<Vec<Tensor>> {
    if slot.borrow().is_none() {
        return Ok(Vec::new());
    }
    let refuse = |index: usize, item: &Bound<'_, PyAny>| {
        format!("{text}, but argument {index} is of type {}", type_name(item))
    };
    Ok(tensors_in(py, slot, refuse)?.into_iter().flatten().collect())
}

/// Makes the node and gives the outputs their history.
fn finish<'py>(
    context: &Bound<'py, PyContext>,
    inputs: &mut Inputs,
    raw: &[Bound<'py, PyAny>],
    has_setup: bool,
) -> PyResult<Vec<Option<Tensor>>> {
    let py = context.py();
    let outputs: SmallVec<[Option<Tensor>; 2]> =
        raw.iter().map(|o| as_tensor(o).cloned()).collect();
    let state = context.get();
    let dirty = marked(py, &state.dirty, "mark_dirty can only accept variables")?;
    let plain = marked(
        py,
        &state.non_differentiable,
        "mark_non_differentiable only accepts variable arguments",
    )?;
    let custom = CustomCall {
        inputs: inputs.tensors.as_slice(),
        dirty: &dirty,
        non_differentiable: &plain,
        executable: inputs.executable,
    };
    let node = inputs.executable.then(|| {
        let metas: SmallVec<[Option<InputMeta>; 1]> =
            outputs.iter().map(|o| o.as_ref().and_then(|o| custom.input_meta(o))).collect();
        let other = |o: &&Tensor| !custom.is_differentiable(o);
        let body = Body {
            context: Held::new(context.clone().into_any().unbind()),
            others: outputs
                .iter()
                .map(|o| o.as_ref().filter(other).map(|o| Box::new(TensorSpec::like(o))))
                .collect(),
        };
        Node::custom(Box::new(body), std::mem::take(&mut inputs.edges), metas)
    });
    if let Some(node) = &node {
        *state.node.borrow_mut() = node.downgrade();
    }
    let results = attach_outputs(&custom, node.as_ref(), &outputs).map_err(raise)?;
    if let Some(node) = &node {
        save_tensors(py, state, inputs, &outputs, &results, node, has_setup)?;
    }
    forget_marks(py, state);
    Ok(results)
}

fn save_tensors(
    py: Python<'_>,
    state: &PyContext,
    inputs: &Inputs,
    raw: &[Option<Tensor>],
    results: &[Option<Tensor>],
    node: &Node,
    has_setup: bool,
) -> PyResult<()> {
    let refuse = |index: usize, item: &Bound<'_, PyAny>| {
        format!(
            "save_for_backward can only save variables, but argument {index} is of type {}",
            type_name(item)
        )
    };
    let wanted = tensors_in(py, &state.to_save, refuse)?;
    let mut saved = SmallVec::with_capacity(wanted.len());
    for tensor in &wanted {
        let Some(tensor) = tensor else {
            saved.push(None);
            continue;
        };
        let is_input = inputs.tensors.as_slice().iter().any(|t| t.is_same(tensor));
        let position = raw.iter().position(|o| o.as_ref().is_some_and(|o| o.is_same(tensor)));
        if has_setup
            && is_input
            && position.is_some_and(|p| results[p].as_ref().is_some_and(|r| !r.is_same(tensor)))
        {
            return Err(PyRuntimeError::new_err(
                "A input that has been returned as-is as output is being saved for backward. This is not supported if you override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself.",
            ));
        }
        saved.push(Some(save(tensor, results, node).map_err(raise)?));
    }
    state.has_saved.set(!saved.is_empty());
    *state.saved.borrow_mut() = saved;
    Ok(())
}

fn wrap_results<'py>(
    py: Python<'py>,
    raw: SmallVec<[Bound<'py, PyAny>; 2]>,
    results: Vec<Option<Tensor>>,
    is_tuple: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut items: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
    for (object, result) in raw.into_iter().zip(results) {
        items.push(match result {
            None => object,
            Some(tensor) => {
                let wrapper = wrap(tensor)?;
                // SAFETY: a new reference to a wrapper; through its node it may be part of a cycle.
                unsafe {
                    if tensor_of(wrapper).requires_grad() {
                        track(wrapper);
                    }
                    Bound::from_owned_ptr(py, wrapper)
                }
            }
        });
    }
    if is_tuple {
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    items.pop().ok_or_else(|| PyRuntimeError::new_err("forward gave nothing"))
}

/// Adds the class.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyContext>()?;
    let class = module.py().get_type::<PyContext>();
    class.setattr("apply", class_method(&class, c"apply", fast!(apply))?)
}
