//! Queries about nodes and tensors for tools that explain where numbers come from: lines of the
//! program, ops and arguments, the memory that is kept, digests. `_trace_nan.py`, `_holders.py` and
//! `_record/` of the package are made of these.

use super::node::node_of;
use crate::convert::type_name;
use crate::error::raise;
use crate::interrupt::computing;
use crate::lock::without_lock;
use crate::raw::object::as_tensor;
use pullback::call_site::CallSite;
use pullback::dispatch::ArgDef;
use pullback_schema::{Argument, Base};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The number of elements from which the interpreter is released while they are read.
const RELEASE_FROM: i64 = 50_000;

/// The line of the program that made a node: file, line, function and text, or ``None`` if that is not known.
#[pyfunction]
fn _call_site<'py>(py: Python<'py>, node: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    line_of(py, node_of(node).map_or(CallSite::UNKNOWN, |node| node.call_site()))
}

/// The line that the program is at.
#[pyfunction]
fn _program_line(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    line_of(py, CallSite::here())
}

/// The lines that were looked up recently: code that records a run needs the same few all the time.
static LINES: Mutex<Option<HashMap<CallSite, Py<PyAny>>>> = Mutex::new(None);

/// File, number, function and text of a line.
fn line_of(py: Python<'_>, call_site: CallSite) -> PyResult<Bound<'_, PyAny>> {
    /// The size at which the table is cleared: programs that generate code have ever new lines.
    const MOST: usize = 1 << 14;
    let table = || LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = table().as_ref().and_then(|lines| lines.get(&call_site)) {
        return Ok(known.bind(py).clone());
    }
    // (Python code runs here, without the table's lock.)
    let Some(place) = call_site.source_line() else { return Ok(py.None().into_bound(py)) };
    let line = (place.file, place.line, place.function, place.text).into_pyobject(py)?.into_any();
    let former = {
        let mut table = table();
        let is_full = table.as_ref().is_some_and(|lines| lines.len() >= MOST);
        let former = if is_full { table.take() } else { None };
        table.get_or_insert_with(HashMap::new).insert(call_site, line.clone().unbind());
        former
    };
    drop(former);
    Ok(line)
}

/// The op whose derivative a node computes; for each edge the name of the argument that its gradient is for; the names of
/// the op's results. ``None`` for nodes of leaves and of custom functions.
#[pyfunction]
fn _node_op(node: &Bound<'_, PyAny>) -> Option<(String, Vec<String>, Vec<&'static str>)> {
    let node = node_of(node)?;
    let def = node.op()?;
    let differentiable: Vec<&ArgDef> = def.args.iter().filter(|arg| arg.has_vjp).collect();
    let edges = node.next_edges().len();
    // (If an argument has more than one edge, they are those of the tensors of its list.)
    let more = edges.saturating_sub(differentiable.len());
    let mut names = Vec::new();
    for arg in differentiable {
        if def.schema().arg(arg.name).is_some_and(|at| is_tensor_list(&def.schema().args[at])) {
            names.extend((0..=more).map(|at| format!("{}[{at}]", arg.name)));
        } else {
            names.push(arg.name.to_owned());
        }
    }
    names.truncate(edges);
    Some((def.full_name(), names, def.outputs.to_vec()))
}

fn is_tensor_list(arg: &Argument) -> bool {
    arg.ty.base == Base::Tensor && arg.ty.list.is_some()
}

/// The memory of the tensors that a node's op saved: the address and bytes of each storage.
#[pyfunction]
fn _saved_memory(node: &Bound<'_, PyAny>) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    if let Some(node) = node_of(node) {
        node.each_saved(&mut |tensor| {
            if let Some(storage) = tensor.storage() {
                all.push((storage.data_ptr() as usize, storage.nbytes()));
            }
        });
    }
    all
}

/// A digest of a tensor's elements in row-major order; how many numbers are infinite or NaN; least, largest and mean of the
/// others.
#[pyfunction]
fn _summary(py: Python<'_>, tensor: &Bound<'_, PyAny>) -> PyResult<(u64, u64, f64, f64, f64)> {
    let Some(tensor) = as_tensor(tensor) else {
        return Err(PyTypeError::new_err(format!(
            "_summary(): a tensor is needed, not {}",
            type_name(tensor)
        )));
    };
    let found = computing(|| {
        let summary = || tensor.summary();
        if tensor.numel() < RELEASE_FROM { summary() } else { without_lock(py, summary) }
            .map_err(raise)
    })?;
    Ok((found.digest, found.nonfinite, found.min, found.max, found.mean))
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_call_site, module)?)?;
    module.add_function(wrap_pyfunction!(_node_op, module)?)?;
    module.add_function(wrap_pyfunction!(_program_line, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_memory, module)?)?;
    module.add_function(wrap_pyfunction!(_summary, module)?)
}
