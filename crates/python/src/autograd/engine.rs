//! The engine's entry: `backward` and `grad` as Python's `torch.autograd` calls them.
//!
//! The interpreter is free while the graph runs; Python exceptions of hooks and custom functions
//! come back as they were raised.

use super::node::{node_of, wrap_node};
use crate::convert::{items, type_name};
use crate::error::{carry, raise};
use crate::held::Held;
use crate::interrupt::computing;
use crate::lock::{in_python, without_lock};
use crate::raw::entry::raise_what_is_set;
use crate::raw::object::as_tensor;
use pullback::Tensor;
use pullback::autograd::engine::{self, Goal, Request, execute};
use pullback::autograd::{self, Edge, Node};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// The edge that a tensor, or a pair of a node and a number, stands for; and whether it requires
/// grad.
fn edge_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Edge>> {
    if let Some(tensor) = as_tensor(object) {
        return tensor.gradient_edge().map(Some).map_err(raise);
    }
    if let Ok(pair) = object.cast::<PyTuple>()
        && pair.len() >= 2
    {
        let Some(node) = node_of(&pair.get_item(0)?) else {
            return Err(PyTypeError::new_err(
                "GradientEdge's first object must be an autograd.graph.Node (like grad_fn)",
            ));
        };
        let nr: i64 = pair.get_item(1)?.extract()?;
        let Some(nr) = u32::try_from(nr).ok().filter(|&nr| has_output(&node, nr)) else {
            return Err(PyRuntimeError::new_err(format!(
                "GradientEdge's output_nr {nr} is out of range for {}",
                node.name()
            )));
        };
        return Ok(Some(Edge::new(node, nr)));
    }
    Ok(None)
}

fn has_output(node: &Node, nr: u32) -> bool {
    (nr as usize) < node.input_meta().len().max(1)
}

/// The items of a sequence, or the thing itself if it is a tensor or an edge.
fn each<'py>(object: &Bound<'py, PyAny>) -> PyResult<SmallVec<[Bound<'py, PyAny>; 2]>> {
    let is_edge = || {
        let first = object.cast::<PyTuple>().ok().and_then(|pair| pair.get_item(0).ok());
        let names = |pair: &Bound<'_, PyAny>| pair.hasattr("output_nr").unwrap_or(false);
        first.is_some_and(|first| node_of(&first).is_some() || names(object))
    };
    if as_tensor(object).is_some() || is_edge() {
        return Ok(smallvec::smallvec![object.clone()]);
    }
    if let Some(items) = items(object.as_ptr()) {
        let item = |&item| {
            // SAFETY: a live item of a list that the caller holds.
            unsafe { Bound::from_borrowed_ptr(object.py(), item) }
        };
        return Ok(items.iter().map(item).collect());
    }
    object.try_iter()?.collect()
}

/// The gradient that starts at `output`: the given one, checked, or ones.
fn start(
    output: &Bound<'_, PyAny>,
    edge: &Edge,
    grad: Option<&Bound<'_, PyAny>>,
    index: usize,
) -> PyResult<Option<Tensor>> {
    let given = match grad.filter(|g| !g.is_none()) {
        None => None,
        Some(grad) => Some(as_tensor(grad).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "gradients can be either Tensors or None, but got {}",
                plain_type_name(grad)
            ))
        })?),
    };
    if let Some(output) = as_tensor(output) {
        return autograd::start(output, given, index).map_err(raise);
    }
    let node = edge.node.as_ref().expect("an edge that Python holds has a node");
    let meta = node.input_meta().get(edge.nr as usize).and_then(Option::as_ref);
    match (given, meta) {
        (Some(grad), Some(meta)) => {
            autograd::check_start(&meta.shape, meta.dtype, grad, index).map_err(raise)?;
            Ok(Some(grad.clone()))
        }
        (Some(grad), None) => Ok(Some(grad.clone())),
        (None, Some(meta)) => {
            let one = autograd::implicit_start(&meta.shape, meta.dtype, meta.device);
            one.map(Some).map_err(raise)
        }
        (None, None) => {
            Err(PyRuntimeError::new_err("grad can be implicitly created only for scalar outputs"))
        }
    }
}

fn plain_type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

type Roots = (Vec<Edge>, Vec<Option<Tensor>>);

/// The edges and gradients to start with. `batched` gradients were checked and unwrapped before.
fn roots(outputs: &Bound<'_, PyAny>, grads: Option<&Bound<'_, PyAny>>) -> PyResult<Roots> {
    let outputs = each(outputs)?;
    let grads = grads.filter(|g| !g.is_none()).map(each).transpose()?;
    if let Some(grads) = &grads
        && grads.len() != outputs.len()
    {
        return Err(PyRuntimeError::new_err(format!(
            "got {} tensors and {} gradients",
            outputs.len(),
            grads.len()
        )));
    }
    let (mut edges, mut starts) = (Vec::new(), Vec::new());
    for (index, output) in outputs.iter().enumerate() {
        let Some(edge) = edge_of(output)? else {
            return Err(PyRuntimeError::new_err(format!(
                "element {index} of tensors is neither a Tensor nor a GradientEdge, but {}",
                type_name(output)
            )));
        };
        let grad = grads.as_ref().map(|grads| &grads[index]);
        starts.push(start(output, &edge, grad, index)?);
        edges.push(edge);
    }
    if let Some(index) = edges.iter().position(|edge| !edge.is_valid()) {
        return Err(PyRuntimeError::new_err(format!(
            "element {index} of tensors does not require grad and does not have a grad_fn"
        )));
    }
    Ok((edges, starts))
}

/// Runs the engine: `_engine_run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs,
/// allow_unreachable, accumulate_grad)`. Tensors, gradients and inputs are one each or sequences.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, keep_graph, create_graph, inputs=None, allow_unreachable=false, accumulate_grad=true))]
fn _engine_run_backward<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyAny>,
    grad_tensors: Option<&Bound<'py, PyAny>>,
    keep_graph: bool,
    create_graph: bool,
    inputs: Option<&Bound<'py, PyAny>>,
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let inputs = inputs.filter(|i| !i.is_none()).map(each).transpose()?;
    if accumulate_grad && inputs.as_ref().is_some_and(SmallVec::is_empty) {
        return Err(PyRuntimeError::new_err("`inputs` argument to `backward()` cannot be empty."));
    }
    let (roots, grads) = roots(tensors, grad_tensors)?;
    let has_inputs = inputs.is_some();
    let targets = inputs.map(|list| targets(&list, accumulate_grad)).transpose()?;
    let request = Request {
        roots,
        grads,
        keep_graph,
        create_graph,
        targets: targets.as_deref(),
        goal: if accumulate_grad {
            Goal::Accumulate
        } else {
            Goal::Capture { allow_unused: allow_unreachable }
        },
    };
    let found = computing(|| without_lock(py, || execute(request)).map_err(raise));
    if create_graph && accumulate_grad {
        super::cycle::watch(py)?;
    }
    let found = found?;
    raise_what_is_set(py)?;
    if accumulate_grad || !has_inputs {
        return Ok(None);
    }
    let items: PyResult<SmallVec<[_; 4]>> =
        found.iter().map(|g| super::hook::optional(py, g.as_ref())).collect();
    PyTuple::new(py, items?).map(Some)
}

fn targets(inputs: &[Bound<'_, PyAny>], accumulate: bool) -> PyResult<Vec<Edge>> {
    let mut targets = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let Some(tensor) = as_tensor(input) else {
            match edge_of(input)? {
                Some(edge) => targets.push(edge),
                None => {
                    return Err(PyRuntimeError::new_err(format!(
                        "all inputs have to be Tensors or GradientEdges, but got {} at position {index}",
                        type_name(input)
                    )));
                }
            }
            continue;
        };
        targets.push(target_of(tensor, accumulate)?);
    }
    Ok(targets)
}

fn target_of(tensor: &Tensor, accumulate: bool) -> PyResult<Edge> {
    if accumulate {
        tensor.retain_grad().map_err(raise)?;
        return tensor.gradient_edge().map_err(raise);
    }
    if !tensor.requires_grad() {
        return Err(PyRuntimeError::new_err(
            "One of the differentiated Tensors does not require grad",
        ));
    }
    // A leaf without accumulator gets one that no graph leads to: nothing arrives there.
    tensor.gradient_edge().map_err(raise)
}

/// The node and number where a gradient of the tensor enters the graph.
#[pyfunction]
fn _gradient_edge<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, u32)> {
    let Some(tensor) = as_tensor(tensor) else {
        return Err(PyTypeError::new_err("get_gradient_edge() expects a Tensor"));
    };
    let (node, nr) = tensor.get_gradient_edge().map_err(raise)?;
    Ok((wrap_node(py, &node)?, nr))
}

/// Runs `callback()` when the backward that is running has finished.
#[pyfunction]
fn _queue_callback(callback: Bound<'_, PyAny>) -> PyResult<()> {
    let callback = Held::new(callback.unbind());
    engine::queue_callback(Box::new(move || {
        in_python(|py| callback.bind(py).call0().map(|_| ()).map_err(carry))
    }))
    .map_err(raise)
}

/// Runs `callback()` when the running backward ends, also if it ends with an error.
#[pyfunction]
fn _at_end_of_backward(callback: Bound<'_, PyAny>) -> PyResult<()> {
    let callback = Held::new(callback.unbind());
    engine::at_end(Box::new(move || {
        let _ = Python::try_attach(|py| {
            let callback = callback.bind(py);
            if let Err(error) = callback.call0() {
                error.write_unraisable(py, Some(callback));
            }
        });
    }))
    .map_err(raise)
}

#[pyfunction]
fn _current_graph_task_id() -> i64 {
    engine::current_task_id()
}
#[pyfunction]
fn _current_graph_task_keep_graph() -> bool {
    engine::current_task_keeps_graph()
}
#[pyfunction]
fn _current_autograd_node(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    match engine::current_node() {
        Some(node) => wrap_node(py, &node),
        None => Ok(py.None().into_bound(py)),
    }
}
/// Whether the backward that is running runs a node (the ``grad_fn`` of a tensor, say).
#[pyfunction]
fn _will_engine_execute_node(node: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(node) = node_of(node) else {
        return Err(PyRuntimeError::new_err(format!(
            "_will_engine_execute_node expects an grad_fn, but got {}",
            type_name(node)
        )));
    };
    if node.leaf().is_some() && engine::is_capturing() {
        return Err(PyRuntimeError::new_err(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is currently not supported.",
        ));
    }
    engine::will_execute(&node).map_err(raise)
}
/// As ``_will_engine_execute_node``, for leaves too: for them it returns whether their gradient is
/// computed.
#[pyfunction]
fn _engine_runs(node: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(node) = node_of(node) else { return Ok(false) };
    engine::will_execute(&node).map_err(raise)
}
#[pyfunction]
fn _current_graph_task_execution_order(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    engine::execution_order().map_err(raise)?.iter().map(|node| wrap_node(py, node)).collect()
}
#[pyfunction]
fn _is_checkpoint_valid() -> bool {
    engine::is_whole_backward()
}
#[pyfunction]
fn _peek_sequence_nr() -> u64 {
    pullback::autograd::peek_sequence_nr()
}

/// Counts a write that was made without the library; inference tensors have no counter.
#[pyfunction]
fn _increment_version(tensors: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    for object in &tensors {
        let Some(tensor) = as_tensor(object) else {
            return Err(PyRuntimeError::new_err(format!(
                "increment_version expects each element of the iterable to be a tensor, not {}",
                type_name(object)
            )));
        };
        tensor.count_write(&"increment_version()");
    }
    Ok(())
}
/// Sets the version of a tensor, or those of several.
#[pyfunction]
fn _unsafe_set_version_counter(
    tensor: &Bound<'_, PyAny>,
    version: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if let Some(tensor) = as_tensor(tensor) {
        return tensor.overwrite_version(version.extract()?).map_err(raise);
    }
    let tensors: Vec<Bound<'_, PyAny>> = tensor.extract()?;
    let versions: Vec<i64> = version.extract()?;
    if tensors.len() != versions.len() {
        return Err(PyRuntimeError::new_err(format!(
            "{} tensors and {} versions were given",
            tensors.len(),
            versions.len()
        )));
    }
    for (tensor, version) in tensors.iter().zip(versions) {
        let tensor = as_tensor(tensor).ok_or_else(|| PyTypeError::new_err("expected a Tensor"))?;
        tensor.overwrite_version(version).map_err(raise)?;
    }
    Ok(())
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_engine_run_backward, module)?)?;
    module.add_function(wrap_pyfunction!(_gradient_edge, module)?)?;
    module.add_function(wrap_pyfunction!(_queue_callback, module)?)?;
    module.add_function(wrap_pyfunction!(_at_end_of_backward, module)?)?;
    module.add_function(wrap_pyfunction!(_current_graph_task_id, module)?)?;
    module.add_function(wrap_pyfunction!(_current_graph_task_keep_graph, module)?)?;
    module.add_function(wrap_pyfunction!(_current_autograd_node, module)?)?;
    module.add_function(wrap_pyfunction!(_will_engine_execute_node, module)?)?;
    module.add_function(wrap_pyfunction!(_engine_runs, module)?)?;
    module.add_function(wrap_pyfunction!(_current_graph_task_execution_order, module)?)?;
    module.add_function(wrap_pyfunction!(_is_checkpoint_valid, module)?)?;
    module.add_function(wrap_pyfunction!(_peek_sequence_nr, module)?)?;
    module.add_function(wrap_pyfunction!(_increment_version, module)?)?;
    module.add_function(wrap_pyfunction!(_unsafe_set_version_counter, module)?)
}
