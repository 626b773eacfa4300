//! Python's cycle collector and the library's own cycles, which lead from leaves through recorded
//! gradients back to them.
//!
//! No Python object need be in such a cycle, so the collector cannot see it. Each full collection lets the library look
//! for its cycles afterwards; nothing is looked for before there could be one.

use crate::raw::object::is_held;
use pullback::autograd::cycle;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the collector calls [`_collect_cycles`].
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Lets the collector look for cycles from now on, if there may be any.
#[inline]
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    if IS_WATCHED.load(Relaxed) || !cycle::is_any() || IS_WATCHED.swap(true, Relaxed) {
        return Ok(());
    }
    let callback = wrap_pyfunction!(_collect_cycles, py)?;
    py.import("gc")?.getattr("callbacks")?.call_method1("append", (callback,)).map(drop)
}

/// The callback in `gc.callbacks`: after a full collection, frees tensors that only cycles hold.
#[pyfunction]
fn _collect_cycles(phase: &str, info: &Bound<'_, PyDict>) -> PyResult<()> {
    const FULL: u32 = 2;
    let generation = info.get_item("generation")?.map_or(Ok(FULL), |nr| nr.extract())?;
    if phase == "stop" && generation >= FULL && crate::lock::is_alone() {
        cycle::collect(&is_held);
    }
    Ok(())
}
