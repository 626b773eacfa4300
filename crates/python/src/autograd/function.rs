//! Custom functions: the implementation of `autograd.Function`.
//!
//! The node owns the context object, the context knows its node weakly; the `grad_fn` of the outputs
//! is the context. A context that was shown as one, and that Python still holds when the last handle of its node goes,
//! keeps the node from then on, until a graph holds the node again: one of the two owns the other. `apply` runs the user's forward without recording, makes the node and lets the
//! library give the outputs their history. Start at [`apply_with`].

use super::context::{Context, InputKind, Kinds, Saved};
use super::hook::optional;
use crate::convert::{Borrowed, items, type_name};
use crate::error::{carry, note, raise};
use crate::lock::in_python;
use crate::raw::context::{
    PyField, can_keep_node, context_of, is_context_class, is_shared, known, new_context,
};
use crate::raw::entry::{Args, Reply, vectorcall};
use crate::raw::object::{as_tensor, is_tensor, tensor_of, track, wrap};
use pullback::autograd::custom::{CustomCall, attach_outputs, save};
use pullback::autograd::custom_jvp::{InputTangents, push};
use pullback::autograd::{
    Backward, Edge, InputMeta, Node, SavedTensor, batch, creation, is_grad_enabled, mode,
};
use pullback::dispatch::{Arg, Grads};
use pullback::prof::{self, Open};
use pullback::{Result, Tensor, TensorSpec};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The library's side of a context.
pub(crate) struct Body {
    context: ManuallyDrop<Py<PyAny>>,
    /// Whether the reference to the context is counted. If not, the context owns the node. Changed
    /// with the GIL held.
    owns_context: AtomicBool,
    /// The specs of the outputs without gradient: zeros like them are passed as their gradients.
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
        in_python(|py| self.run(py, node, grads).map_err(|error| note(py, error, node)))
            .map_err(carry)
    }
    fn release(&self) {
        Python::attach(|py| self.known(py).release());
    }
    fn python_context(&self) -> Option<*mut ()> {
        Some(self.context.as_ptr().cast())
    }
    fn is_kept(&self) -> bool {
        let is_kept = Python::try_attach(|py| {
            let context = self.context.bind(py);
            self.owns_context.load(Relaxed)
                && self.known(py).is_shown.get()
                && can_keep_node(context)
        });
        is_kept == Some(true)
    }
    fn keep(&self, node: Node) {
        Python::attach(|py| {
            self.known(py).keep(py, node);
            self.owns_context.store(false, Relaxed);
            // SAFETY: the reference that counted; others are left, or the context hands the node back now.
            drop(unsafe { Bound::from_owned_ptr(py, self.context.as_ptr()) });
        });
    }
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !*self.owns_context.get_mut() {
            return;
        }
        // Without an interpreter the reference cannot be given back.
        let _ = Python::try_attach(|py| {
            // Code that still holds the context cannot use values that were saved for a freed
            // graph.
            if is_shared(self.context.bind(py)) {
                self.known(py).release();
            }
            // SAFETY: dropped here and never used again.
            unsafe { ManuallyDrop::drop(&mut self.context) };
        });
    }
}

impl Body {
    fn new(context: &Bound<'_, PyAny>, others: SmallVec<[Option<Box<TensorSpec>>; 2]>) -> Body {
        let context = ManuallyDrop::new(context.clone().unbind());
        Body { context, owns_context: AtomicBool::new(true), others }
    }

    /// Makes the body of `node`, which its context kept, own the context again; it takes over a
    /// counted reference of the caller.
    pub(crate) fn take_context(node: &Node) {
        let body = node.backward().and_then(Backward::as_any);
        let body = body.and_then(|body| body.downcast_ref::<Body>());
        body.expect("contexts keep nodes of custom functions").owns_context.store(true, Relaxed);
    }

    fn known<'a>(&'a self, py: Python<'a>) -> &'a Context {
        // SAFETY: bodies are made of contexts.
        unsafe { known(self.context.bind(py)) }
    }

    fn run(&self, py: Python<'_>, node: &Node, mut grads: Grads) -> PyResult<Grads> {
        let context = self.context.bind(py);
        let state = self.known(py);
        state.link(node);
        let skips = state.skip_non_differentiable.get();
        if !state.keep_undefined.get() {
            let missing = grads.iter_mut().zip(node.input_meta()).zip(&self.others);
            for ((grad, meta), other) in missing.filter(|((grad, _), _)| grad.is_none()) {
                *grad = match (meta, other) {
                    (Some(meta), _) => Some(meta.zeros()),
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

    /// Checks the results of the user's backward: one gradient per tensor argument.
    fn results(&self, context: &Bound<'_, PyAny>, result: Bound<'_, PyAny>) -> PyResult<Grads> {
        let kinds = self.known(context.py()).inputs.borrow();
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

/// The `backward` or `vjp` that the user defined; both together are refused.
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

/// Runs `f` on the tensors in the user's results, `None` included; any other object is refused.
fn each_tensor_in(
    given: &Bound<'_, PyAny>,
    refuse: impl Fn(usize, &Bound<'_, PyAny>) -> PyErr,
    mut f: impl FnMut(Option<&Tensor>) -> PyResult<()>,
) -> PyResult<()> {
    let mut one = |index: usize, item: &Bound<'_, PyAny>| match as_tensor(item) {
        None if !item.is_none() => Err(refuse(index, item)),
        tensor => f(tensor),
    };
    match given.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter_borrowed().enumerate().try_for_each(|(i, item)| one(i, &item)),
        Err(_) => given.try_iter()?.enumerate().try_for_each(|(i, item)| one(i, &item?)),
    }
}

/// The tensors in an attribute that the user set.
fn tensors_in(
    py: Python<'_>,
    field: &PyField,
    refuse: impl Fn(usize, &Bound<'_, PyAny>) -> PyErr,
) -> PyResult<SmallVec<[Option<Tensor>; 4]>> {
    let mut tensors = SmallVec::new();
    if let Some(given) = field.get(py) {
        each_tensor_in(&given, refuse, |tensor| {
            tensors.push(tensor.cloned());
            Ok(())
        })?;
    }
    Ok(tensors)
}

/// The node of a context object.
pub(crate) fn node_of_context(object: &Bound<'_, PyAny>) -> Option<Node> {
    context_of(object)?.node.borrow().upgrade()
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
        batch::edges_of(inputs.tensors.as_slice(), |edge| inputs.edges.push(edge))
            .map_err(raise)?;
    }
    Ok(())
}

/// Restores the thread's modes on every way out.
struct FunctionModes(u64);
impl Drop for FunctionModes {
    fn drop(&mut self) {
        mode::restore(self.0);
    }
}

/// The attributes of the class that a call uses.
pub(crate) struct Protocol {
    contexts: Py<PyAny>,
    forward: Py<PyAny>,
    has_setup: bool,
}

impl Protocol {
    /// The attributes of this class.
    pub(crate) fn of(class: &Bound<'_, PyAny>) -> PyResult<Protocol> {
        let py = class.py();
        let contexts = class.getattr(intern!(py, "_backward_cls")).map_err(|_| {
            PyNotImplementedError::new_err(
                "You must implement the forward function for custom autograd.Function.",
            )
        })?;
        if !is_context_class(&contexts) {
            return Err(PyTypeError::new_err("_backward_cls must be a class of contexts"));
        }
        let forward = class.getattr(intern!(py, "forward"))?.unbind();
        let has_setup = class.getattr(intern!(py, "_has_setup_context"));
        let has_setup = has_setup.is_ok_and(|has| has.is_truthy().unwrap_or(false));
        Ok(Protocol { contexts: contexts.unbind(), forward, has_setup })
    }
    /// Another handle to the same attributes.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Protocol {
        Protocol {
            contexts: self.contexts.clone_ref(py),
            forward: self.forward.clone_ref(py),
            has_setup: self.has_setup,
        }
    }
    /// The objects that it refers to.
    pub(crate) fn objects(&self) -> [*mut PyObject; 2] {
        [self.contexts.as_ptr(), self.forward.as_ptr()]
    }
}

/// Calls the user's forward, and `setup_context` if the class has one.
///
/// # Safety
/// The arguments are live objects.
unsafe fn forward<'py>(
    cls: &Bound<'py, PyAny>,
    protocol: &Protocol,
    context: &Bound<'py, PyAny>,
    args: &[*mut PyObject],
    setup: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let forward = protocol.forward.bind(py);
    let _modes = FunctionModes(mode::snapshot());
    mode::set_grad_enabled(false);
    mode::set_forward_enabled(false);
    if let Some(args) = setup {
        let output = forward.call1(args)?;
        cls.call_method1(intern!(py, "setup_context"), (context, args, &output))?;
        return Ok(output);
    }
    if let [arg] = *args {
        // SAFETY: the caller's promise.
        return unsafe { vectorcall(forward, &[context.as_ptr(), arg]) };
    }
    let mut all: SmallVec<[*mut PyObject; 8]> = SmallVec::with_capacity(args.len() + 1);
    all.push(context.as_ptr());
    all.extend_from_slice(args);
    // SAFETY: the caller's promise.
    unsafe { vectorcall(forward, &all) }
}

/// `cls.apply(*args)` as a class method: for classes that override it.
pub(super) fn apply(py: Python<'_>, cls: *mut PyObject, args: Args<'_>) -> Reply {
    // SAFETY: the interpreter passes a live class.
    let cls = unsafe { Bound::from_borrowed_ptr(py, cls) };
    apply_with(&cls, &Protocol::of(&cls)?, args)
}

/// Calls `forward` of the class on the arguments, recorded as one node.
pub(crate) fn apply_with(cls: &Bound<'_, PyAny>, protocol: &Protocol, args: Args<'_>) -> Reply {
    if super::transform::is_at_work(cls.py(), args.all)
        && let Some(result) = apply_in_transform(cls, &args)?
    {
        return Ok(result.into_ptr());
    }
    if !protocol.has_setup {
        if args.keywords() > 0 {
            return Err(PyTypeError::new_err("apply() takes no keyword arguments"));
        }
        // SAFETY: the arguments of a call live as long as it.
        return unsafe { record(cls, protocol, args.all, None).map(Bound::into_ptr) };
    }
    // Arguments that forward leaves to their defaults are arguments of setup_context too.
    let py = cls.py();
    let module = py.import(intern!(py, "pullback.autograd.function"))?;
    let (positional, named) = args.to_python(py)?;
    let bound = module.call_method1("_bind", (cls, positional, named))?.cast_into::<PyTuple>()?;
    let all = items(bound.as_ptr()).unwrap_or_default();
    // SAFETY: the tuple holds them.
    unsafe { record(cls, protocol, all, Some(&bound)).map(Bound::into_ptr) }
}

/// The result of the function within a transform, or for batched arguments, if that needs special
/// treatment.
#[cold]
fn apply_in_transform<'py>(
    cls: &Bound<'py, PyAny>,
    args: &Args<'_>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = cls.py();
    let module = py.import(intern!(py, "pullback.func._custom"))?;
    let (positional, named) = args.to_python(py)?;
    let result = module.call_method1("custom_function_vmap", (cls, positional, named))?;
    Ok(if result.is(py.NotImplemented()) { None } else { Some(result) })
}

/// Opens the profiler's range of a call.
#[cold]
fn open_range(cls: &Bound<'_, PyAny>, inputs: &[Tensor]) -> PyResult<Open> {
    let name = cls.getattr(intern!(cls.py(), "__name__"))?.extract::<String>()?;
    let args: SmallVec<[Arg<'_>; 4]> = inputs.iter().map(Arg::Tensor).collect();
    Ok(prof::open(prof::RangeKind::Function, || name.as_str().into(), &args))
}

/// # Safety
/// The arguments are live objects.
unsafe fn record<'py>(
    cls: &Bound<'py, PyAny>,
    protocol: &Protocol,
    args: &[*mut PyObject],
    setup: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    // SAFETY: that was checked when the protocol was read.
    let object = unsafe { new_context(protocol.contexts.bind(py))? };
    // SAFETY: an object of such a class.
    let context = unsafe { known(&object) };
    let mut inputs = Inputs::default();
    // SAFETY: the caller's promise.
    unsafe { read_inputs(args, &mut context.inputs.borrow_mut(), &mut inputs)? };
    let range = prof::is_observed().then(|| open_range(cls, inputs.tensors.as_slice()));
    let _range = range.transpose()?;
    // SAFETY: the caller's promise.
    let output = unsafe { forward(cls, protocol, &object, args, setup)? };
    let tangents = InputTangents::of(inputs.tensors.as_slice()).map_err(raise)?;
    if tangents.is_none()
        && let Some(tensor) = as_tensor(&output)
        && is_plain(context, &inputs, tensor)
    {
        if inputs.executable {
            finish_plain(object, inputs, tensor)?;
            // SAFETY: a live wrapper; through its node it may be part of a cycle.
            unsafe { track(output.as_ptr()) };
        } else {
            forget_marks(py, context);
        }
        return Ok(output);
    }
    let is_tuple = output.is_instance_of::<PyTuple>();
    let raw: SmallVec<[Bound<'py, PyAny>; 2]> = match output.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => smallvec::smallvec![output],
    };
    let results = finish(&object, &mut inputs, &raw, tangents.as_ref(), setup.is_some())?;
    wrap_results(py, raw, results, is_tuple)
}

/// Whether forward returned one fresh tensor and marked none: then that tensor is the result, and
/// only its history is set.
fn is_plain(context: &Context, inputs: &Inputs, output: &Tensor) -> bool {
    context.dirty.is_none()
        && context.non_differentiable.is_none()
        && !output.requires_grad()
        && !output.is_view()
        && output.dtype().is_differentiable()
        && !inputs.tensors.as_slice().iter().any(|t| t.is_same(output))
}

/// As [`finish`] for such a result.
fn finish_plain(object: Bound<'_, PyAny>, inputs: Inputs, output: &Tensor) -> PyResult<()> {
    let py = object.py();
    // SAFETY: the call's context.
    let context = unsafe { known(&object) };
    let wanted = context.to_save.take(py);
    forget_marks(py, context);
    let is_reachable = is_shared(&object);
    let body = Body::new(&object, smallvec::smallvec![None]);
    let metas = smallvec::smallvec![Some(InputMeta::of(output))];
    let node = Node::custom(Box::new(body), inputs.edges, metas);
    if is_reachable {
        context.link(&node);
    }
    // This comes first, because hooks see an output with its history.
    output.set_history(node, 0);
    if let Some(wanted) = wanted {
        let mut saved = Saved::new();
        each_tensor_in(&wanted, not_to_save, |tensor| {
            saved.push(match tensor {
                None => None,
                Some(t) if t.is_same(output) => Some(SavedTensor::output(t, 0).map_err(raise)?),
                Some(t) => Some(SavedTensor::input(t).map_err(raise)?),
            });
            Ok(())
        })?;
        context.has_saved.set(!saved.is_empty());
        *context.saved.borrow_mut() = saved;
    }
    creation::announce().map_err(raise)
}

/// Drops the tensors that the user marked or saved.
fn forget_marks(py: Python<'_>, context: &Context) {
    let marks =
        [&context.to_save, &context.dirty, &context.non_differentiable, &context.saved_for_forward];
    for field in marks {
        drop(field.take(py));
    }
}

#[cold]
fn not_to_save(index: usize, item: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "save_for_backward can only save variables, but argument {index} is of type {}",
        type_name(item)
    ))
}

fn marked(py: Python<'_>, field: &PyField, text: &str) -> PyResult<Vec<Tensor>> {
    let refuse = |index: usize, item: &Bound<'_, PyAny>| {
        PyRuntimeError::new_err(format!(
            "{text}, but argument {index} is of type {}",
            type_name(item)
        ))
    };
    Ok(tensors_in(py, field, refuse)?.into_iter().flatten().collect())
}

/// Makes the node and gives the outputs their history.
fn finish<'py>(
    object: &Bound<'py, PyAny>,
    inputs: &mut Inputs,
    raw: &[Bound<'py, PyAny>],
    tangents: Option<&InputTangents>,
    has_setup: bool,
) -> PyResult<Vec<Option<Tensor>>> {
    let py = object.py();
    // SAFETY: the call's context.
    let context = unsafe { known(object) };
    let outputs: SmallVec<[Option<Tensor>; 2]> =
        raw.iter().map(|o| as_tensor(o).cloned()).collect();
    let dirty = marked(py, &context.dirty, "mark_dirty can only accept variables")?;
    let plain = marked(
        py,
        &context.non_differentiable,
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
        let others = outputs.iter();
        let others =
            others.map(|o| o.as_ref().filter(other).map(|o| Box::new(TensorSpec::like(o))));
        let body = Body::new(object, others.collect());
        Node::custom(Box::new(body), std::mem::take(&mut inputs.edges), metas)
    });
    if let Some(node) = &node {
        context.link(node);
    }
    let results = attach_outputs(&custom, node.as_ref(), &outputs).map_err(raise)?;
    if let Some(tangents) = tangents {
        let jvp = |given| super::forward::run_jvp(object, context, given).map_err(carry);
        let materialize = !context.keep_undefined.get();
        push(&custom, tangents, &outputs, &results, materialize, jvp).map_err(raise)?;
    }
    if let Some(node) = &node {
        save_tensors(py, context, inputs, &outputs, &results, node, has_setup)?;
        creation::announce().map_err(raise)?;
    }
    forget_marks(py, context);
    Ok(results)
}

fn save_tensors(
    py: Python<'_>,
    context: &Context,
    inputs: &Inputs,
    raw: &[Option<Tensor>],
    results: &[Option<Tensor>],
    node: &Node,
    has_setup: bool,
) -> PyResult<()> {
    let wanted = tensors_in(py, &context.to_save, not_to_save)?;
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
    context.has_saved.set(!saved.is_empty());
    *context.saved.borrow_mut() = saved;
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
