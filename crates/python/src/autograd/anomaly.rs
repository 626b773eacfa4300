//! Anomaly mode with Python stacks, which lie in the metadata of nodes as PyTorch has them: the lines of `traceback_`, and
//! under `parent_` the node that was being run.

use super::hook_dicts::HookDict;
use super::mode::flag;
use super::node::{metadata_if_any, node_of, wrap_node};
use pullback::autograd::Node;
use pullback::autograd::anomaly::{self, AnomalyRecorder, Origin};
use pyo3::exceptions::PyUserWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::CString;
use std::sync::Arc;

/// The recorder of Python stacks.
pub(crate) struct Stacks;

impl Stacks {
    fn try_record(py: Python<'_>, node: &Node, parent: Option<&Node>) -> PyResult<()> {
        let stack = py.import("traceback")?.call_method0("format_stack")?;
        let metadata = PyDict::new(py);
        metadata.set_item(intern!(py, "traceback_"), stack)?;
        if let Some(parent) = parent {
            metadata.set_item(intern!(py, "parent_"), wrap_node(py, parent)?)?;
        }
        node.set_note(Arc::new(HookDict::of(metadata)));
        Ok(())
    }

    fn try_recall(py: Python<'_>, node: &Node) -> PyResult<Option<Origin>> {
        let Some(metadata) = metadata_if_any(py, node) else { return Ok(None) };
        let Some(stack) = metadata.get_item(intern!(py, "traceback_"))? else { return Ok(None) };
        let lines: Vec<String> = stack.cast_into::<PyList>()?.extract()?;
        let parent = metadata.get_item(intern!(py, "parent_"))?;
        Ok(Some(Origin { trace: lines.concat(), parent: parent.and_then(|p| node_of(&p)) }))
    }
}

impl AnomalyRecorder for Stacks {
    fn record(&self, node: &Node, parent: Option<Node>) {
        // (Without an interpreter, or memory for its objects, nothing is recorded.)
        let _ = Python::try_attach(|py| Self::try_record(py, node, parent.as_ref()));
    }
    fn recall(&self, node: &Node) -> Option<Origin> {
        Python::try_attach(|py| Self::try_recall(py, node).ok().flatten()).flatten()
    }
    fn warn(&self, text: String) {
        let _ = Python::try_attach(|py| {
            let text = CString::new(text).unwrap_or_default();
            let category = py.get_type::<PyUserWarning>();
            // The warning belongs to an error, which it must not replace where warnings are errors.
            if let Err(error) = PyErr::warn(py, &category, &text, 1) {
                error.print(py);
            }
        });
    }
}

#[pyfunction]
fn is_anomaly_enabled() -> bool {
    anomaly::is_anomaly_enabled()
}
#[pyfunction]
fn is_anomaly_check_nan_enabled() -> bool {
    anomaly::is_anomaly_check_nan_enabled()
}
#[pyfunction]
#[pyo3(signature = (enabled, check_nan = None))]
fn set_anomaly_enabled(
    enabled: &Bound<'_, PyAny>,
    check_nan: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    const NAME: &str = "set_anomaly_enabled";
    let check_nan = check_nan.map_or(Ok(true), |value| flag(value, NAME, ("check_nan", 2)))?;
    anomaly::set_detect_anomaly(flag(enabled, NAME, ("enabled", 1))?, check_nan);
    Ok(())
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_anomaly_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_anomaly_check_nan_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_anomaly_enabled, module)?)
}
