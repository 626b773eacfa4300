//! Custom functions: `autograd.Function` whole.
//!
//! The node owns the context object, the context knows its node weakly; the `grad_fn` of the outputs
//! is the context. `apply` runs the user's forward without recording, makes the node and lets the
//! library give the outputs their history. Start at [`PyContext::apply`].

use super::hook::tuple;
use super::node::{call, input_metadata, next_functions};
use crate::convert::type_name;
use crate::error::{carry, raise};
use crate::held::Held;
use crate::raw::object::{as_tensor, tensor_of, track, wrap};
use pullback::autograd::custom::{CustomCall, attach_outputs, save};
use pullback::autograd::{
    Backward, Edge, InputMeta, Node, SavedTensor, WeakNode, is_grad_enabled, mode,
};
use pullback::dispatch::Grads;
use pullback::{Result, Tensor, TensorSpec};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// The context of one call of a custom function.
#[pyclass(name = "_FunctionBase", module = "torch._C", subclass, dict, weakref)]
#[derive(Default)]
pub(crate) struct PyContext {
    node: RefCell<WeakNode>,
    to_save: RefCell<Option<Py<PyAny>>>,
    dirty: RefCell<Option<Py<PyAny>>>,
    non_differentiable: RefCell<Option<Py<PyAny>>>,
    saved_for_forward: RefCell<Option<Py<PyAny>>>,
    needs_input_grad: RefCell<Option<Py<PyAny>>>,
    saved: RefCell<Vec<Option<SavedTensor>>>,
    has_saved: Cell<bool>,
    freed: Cell<bool>,
    keep_undefined: Cell<bool>,
    skip_non_differentiable: Cell<bool>,
    /// Which arguments were tensors.
    is_tensor: RefCell<Vec<bool>>,
    pre: RefCell<Option<Py<PyDict>>>,
    post: RefCell<Option<Py<PyDict>>>,
}

// SAFETY: every field is only touched with the GIL held.
unsafe impl Sync for PyContext {}

/// What one output's missing gradient is filled with.
struct Fill(TensorSpec, bool);

/// The library's side of a context.
struct Body {
    context: Held,
    name: String,
    fills: Vec<Option<Fill>>,
}

impl Backward for Body {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn apply(&self, node: &Node, grads: Grads) -> Result<Grads> {
        Python::attach(|py| self.run(py, node, grads)).map_err(carry)
    }
    fn release(&self) {
        Python::attach(|py| {
            let Ok(context) = self.context.bind(py).cast::<PyContext>() else { return };
            let saved = {
                let context = context.borrow();
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
            let context = context.cast::<PyContext>()?.borrow();
            (!context.keep_undefined.get(), context.skip_non_differentiable.get())
        };
        if fills {
            for (grad, fill) in grads.iter_mut().zip(&self.fills) {
                if let (None, Some(Fill(spec, differentiable))) = (&grad, fill)
                    && (*differentiable || !skips)
                {
                    *grad = Some(spec.zeros().map_err(raise)?);
                }
            }
        }
        let result = context.call_method1("apply", tuple(py, &grads)?)?;
        self.results(context, node, result)
    }

    /// Checks what the user's backward gave: one gradient per tensor argument.
    fn results(
        &self,
        context: &Bound<'_, PyAny>,
        node: &Node,
        result: Bound<'_, PyAny>,
    ) -> PyResult<Grads> {
        let context = context.cast::<PyContext>()?.borrow();
        let is_tensor = context.is_tensor.borrow();
        let mut items: Vec<Bound<'_, PyAny>> = match result.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![result],
        };
        let given = items.len();
        while items.len() > is_tensor.len()
            && items.last().is_some_and(pyo3::types::PyAnyMethods::is_none)
        {
            items.pop();
        }
        if items.len() != is_tensor.len() {
            return Err(PyRuntimeError::new_err(format!(
                "function {} returned an incorrect number of gradients (expected {}, got {given})",
                self.name,
                is_tensor.len()
            )));
        }
        let mut grads = Grads::new();
        for (index, (item, &is_tensor)) in items.iter().zip(is_tensor.iter()).enumerate() {
            if !is_tensor {
                if !item.is_none() {
                    return Err(PyRuntimeError::new_err(format!(
                        "function {} returned a gradient different than None at position {}, but the corresponding forward input was not a Variable",
                        self.name,
                        index + 1
                    )));
                }
                continue;
            }
            grads.push(match as_tensor(item) {
                Some(tensor) => Some(tensor.clone()),
                None if item.is_none() => None,
                None => {
                    return Err(PyRuntimeError::new_err(format!(
                        "function {} returned a gradient that is no tensor at position {}: expected Variable or None (got {})",
                        self.name,
                        index + 1,
                        type_name(item)
                    )));
                }
            });
        }
        let _ = node;
        Ok(grads)
    }
}

/// The tensors in an attribute that the user set; anything else is refused.
fn tensors_in(
    py: Python<'_>,
    slot: &RefCell<Option<Py<PyAny>>>,
    refuse: impl Fn(usize, &Bound<'_, PyAny>) -> String,
) -> PyResult<Vec<Option<Tensor>>> {
    let Some(object) = slot.borrow().as_ref().map(|o| o.clone_ref(py)) else {
        return Ok(Vec::new());
    };
    let mut tensors = Vec::new();
    for (index, item) in object.bind(py).try_iter()?.enumerate() {
        let item = item?;
        match as_tensor(&item) {
            Some(tensor) => tensors.push(Some(tensor.clone())),
            None if item.is_none() => tensors.push(None),
            None => return Err(PyTypeError::new_err(refuse(index, &item))),
        }
    }
    Ok(tensors)
}

/// The node of a context object.
pub(crate) fn node_of_context(object: &Bound<'_, PyAny>) -> Option<Node> {
    object.cast::<PyContext>().ok()?.borrow().node.borrow().upgrade()
}

/// The arguments as the engine needs them.
struct Inputs {
    tensors: Vec<Tensor>,
    edges: SmallVec<[Edge; 2]>,
    is_tensor: Vec<bool>,
    needs: Vec<bool>,
    executable: bool,
}

fn read_inputs(args: &Bound<'_, PyTuple>) -> PyResult<Inputs> {
    let mut inputs = Inputs {
        tensors: Vec::new(),
        edges: SmallVec::new(),
        is_tensor: Vec::new(),
        needs: Vec::new(),
        executable: false,
    };
    for arg in args.iter() {
        let tensor = as_tensor(&arg);
        inputs.is_tensor.push(tensor.is_some());
        let needs = tensor.is_some_and(Tensor::requires_grad);
        inputs.needs.push(needs);
        inputs.executable |= needs;
        inputs.tensors.extend(tensor.cloned());
    }
    inputs.executable &= is_grad_enabled();
    if inputs.executable {
        for tensor in &inputs.tensors {
            inputs.edges.push(if tensor.requires_grad() {
                tensor.gradient_edge().map_err(raise)?
            } else {
                Edge::default()
            });
        }
    }
    Ok(inputs)
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

    /// Calls the function: `cls.forward` on `args`, recorded as one node.
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn apply<'py>(
        cls: &Bound<'py, PyType>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kwargs.is_some_and(|k| !k.is_empty()) {
            return Err(PyTypeError::new_err("apply() takes no keyword arguments"));
        }
        apply(cls, args)
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
        let mut items = Vec::new();
        for saved in &*self.saved.borrow() {
            items.push(match (saved, &node) {
                (Some(saved), Some(node)) => {
                    super::hook::optional(py, Some(&saved.unpack(node).map_err(raise)?))?
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
    fn needs_input_grad(&self, py: Python<'_>) -> Py<PyAny> {
        self.needs_input_grad.borrow().as_ref().map_or_else(|| py.None(), |n| n.clone_ref(py))
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
        if slf.borrow().node.borrow().upgrade().is_none() {
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

fn forward<'py>(
    cls: &Bound<'py, PyType>,
    context: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = cls.py();
    let _modes = Modes(mode::snapshot());
    mode::set_grad_enabled(false);
    let has_setup = cls.getattr("_has_setup_context").is_ok_and(|h| h.is_truthy().unwrap_or(false));
    if has_setup {
        let output = cls.call_method1("forward", args)?;
        cls.call_method1("setup_context", (context, args, &output))?;
        return Ok((output, true));
    }
    let with_context: Vec<Bound<'py, PyAny>> =
        std::iter::once(context.clone()).chain(args.iter()).collect();
    Ok((cls.call_method1("forward", PyTuple::new(py, with_context)?)?, false))
}

fn apply<'py>(cls: &Bound<'py, PyType>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let class = cls.getattr("_backward_cls").map_err(|_| {
        PyNotImplementedError::new_err(
            "You must implement the forward function for custom autograd.Function.",
        )
    })?;
    let object = class.call0()?;
    let inputs = read_inputs(args)?;
    let context = object.cast::<PyContext>()?;
    {
        let context = context.borrow();
        *context.needs_input_grad.borrow_mut() =
            Some(PyTuple::new(py, &inputs.needs)?.into_any().unbind());
        context.is_tensor.borrow_mut().clone_from(&inputs.is_tensor);
    }
    let (output, has_setup) = forward(cls, &object, args)?;
    let is_tuple = output.is_instance_of::<PyTuple>();
    let raw: Vec<Bound<'py, PyAny>> = match output.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![output],
    };
    finish(py, context, inputs, raw, is_tuple, has_setup, class.getattr("__name__")?.extract()?)
}

fn marked(py: Python<'_>, slot: &RefCell<Option<Py<PyAny>>>, text: &str) -> PyResult<Vec<Tensor>> {
    let refuse = |index: usize, item: &Bound<'_, PyAny>| {
        format!("{text}, but argument {index} is of type {}", type_name(item))
    };
    Ok(tensors_in(py, slot, refuse)?.into_iter().flatten().collect())
}

fn finish<'py>(
    py: Python<'py>,
    context: &Bound<'py, PyContext>,
    inputs: Inputs,
    raw: Vec<Bound<'py, PyAny>>,
    is_tuple: bool,
    has_setup: bool,
    name: String,
) -> PyResult<Bound<'py, PyAny>> {
    let outputs: Vec<Option<Tensor>> = raw.iter().map(|o| as_tensor(o).cloned()).collect();
    let state = context.borrow();
    let dirty = marked(py, &state.dirty, "mark_dirty can only accept variables")?;
    let plain = marked(
        py,
        &state.non_differentiable,
        "mark_non_differentiable only accepts variable arguments",
    )?;
    let custom = CustomCall {
        inputs: &inputs.tensors,
        dirty: &dirty,
        non_differentiable: &plain,
        executable: inputs.executable,
    };
    let node = inputs.executable.then(|| {
        let metas: SmallVec<[Option<InputMeta>; 1]> =
            outputs.iter().map(|o| o.as_ref().and_then(|o| custom.input_meta(o))).collect();
        let fills = outputs
            .iter()
            .map(|o| o.as_ref().map(|o| Fill(TensorSpec::like(o), custom.is_differentiable(o))));
        let body = Body {
            context: Held::new(context.clone().into_any().unbind()),
            name,
            fills: fills.collect(),
        };
        Node::custom(Box::new(body), inputs.edges.clone(), metas)
    });
    if let Some(node) = &node {
        *state.node.borrow_mut() = node.downgrade();
    }
    let results = attach_outputs(&custom, node.as_ref(), &outputs).map_err(raise)?;
    if let Some(node) = &node {
        save_tensors(py, &state, &inputs, &outputs, &results, node, has_setup)?;
    }
    let kept =
        [&state.to_save, &state.dirty, &state.non_differentiable].map(|s| s.borrow_mut().take());
    *state.saved_for_forward.borrow_mut() = None;
    drop(state);
    drop(kept);
    wrap_results(py, raw, results, is_tuple)
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
    let mut saved = Vec::with_capacity(wanted.len());
    for tensor in &wanted {
        let Some(tensor) = tensor else {
            saved.push(None);
            continue;
        };
        let is_input = inputs.tensors.iter().any(|t| t.is_same(tensor));
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
    raw: Vec<Bound<'py, PyAny>>,
    results: Vec<Option<Tensor>>,
    is_tuple: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut items = Vec::with_capacity(raw.len());
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
    module.add_class::<PyContext>()
}
