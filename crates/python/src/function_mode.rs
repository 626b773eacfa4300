//! `TorchFunctionMode`: modes that answer calls of functions, methods, operators and attributes of tensors.
//!
//! A thread has a stack of them. The innermost is asked before the types of the arguments (`subclass`), and is off while
//! it answers. Invariant: [`MODES`] is the sum of the lengths of all stacks and of the modes that are answering, so that
//! calls look at nothing else while nobody uses a mode.

use crate::dispatch_mode::method_of;
use crate::raw::class::ask_for_dtype;
use crate::subclass;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many modes are on, of all threads together.
static MODES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Stack(Vec<Py<PyAny>>);

impl Drop for Stack {
    fn drop(&mut self) {
        MODES.fetch_sub(self.0.len(), Relaxed);
    }
}

thread_local! {
    static STACK: RefCell<Stack> = RefCell::default();
}

/// Whether a mode answers this thread's calls now.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    MODES.load(Relaxed) != 0 && is_on_here()
}

#[cold]
#[inline(never)]
fn is_on_here() -> bool {
    depth() > 0 && subclass::are_modes_asked()
}

fn depth() -> usize {
    STACK.with(|s| s.borrow().0.len())
}

/// The first mode makes the dtype of tensors an attribute that asks; the last one takes that back.
fn push(py: Python<'_>, mode: Py<PyAny>) -> PyResult<()> {
    if MODES.load(Relaxed) == 0 {
        ask_for_dtype(py, true)?;
    }
    MODES.fetch_add(1, Relaxed);
    STACK.with(|s| s.borrow_mut().0.push(mode));
    Ok(())
}

fn pop(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let last = STACK.with(|s| s.borrow_mut().0.pop());
    if last.is_some() && MODES.fetch_sub(1, Relaxed) == 1 {
        ask_for_dtype(py, false)?;
    }
    Ok(last)
}

/// The innermost mode, off until this is dropped.
pub(crate) struct Asked(Py<PyAny>);

impl Drop for Asked {
    fn drop(&mut self) {
        Python::attach(|py| {
            let mode = self.0.clone_ref(py);
            STACK.with(|s| s.borrow_mut().0.push(mode));
        });
    }
}

impl Asked {
    /// Takes the innermost mode, if one answers calls now.
    pub(crate) fn take() -> Option<Asked> {
        let mode = if is_on() { STACK.with(|s| s.borrow_mut().0.pop()) } else { None };
        mode.map(Asked)
    }

    /// What the mode says to a call.
    pub(crate) fn ask<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        types: &Bound<'py, PyTuple>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        let method = method_of(self.0.bind(py), intern!(py, "__torch_function__"))?;
        match named {
            None => method.call1((function, types, args)),
            Some(named) => method.call1((function, types, args, named)),
        }
    }

    /// How error messages call it.
    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("  - mode object {}", self.0.bind(py).repr()?))
    }
}

/// The modes of this thread, for one that goes on with its work.
pub(crate) fn thread_state() -> Box<dyn FnOnce() + Send> {
    let modes = Python::attach(|py| {
        STACK.with(|s| s.borrow().0.iter().map(|mode| mode.clone_ref(py)).collect::<Vec<_>>())
    });
    let answering = subclass::answering();
    Box::new(move || {
        MODES.fetch_add(modes.len(), Relaxed);
        STACK.with(|s| s.borrow_mut().0.extend(modes));
        subclass::set_answering(answering);
    })
}

/// Lets a mode answer this thread's calls.
#[pyfunction]
fn _push_on_torch_function_stack(py: Python<'_>, mode: Py<PyAny>) -> PyResult<()> {
    push(py, mode)
}

/// Takes back the innermost mode.
#[pyfunction]
fn _pop_torch_function_stack(py: Python<'_>) -> PyResult<Py<PyAny>> {
    pop(py)?.ok_or_else(|| PyRuntimeError::new_err("trying to pop from an empty mode stack"))
}

/// How many modes answer this thread's calls.
#[pyfunction]
fn _len_torch_function_stack() -> usize {
    depth()
}

/// The mode at an index, counted from the outermost one.
#[pyfunction]
fn _get_function_stack_at(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    let mode = STACK.with(|s| s.borrow().0.get(index).map(|mode| mode.clone_ref(py)));
    mode.ok_or_else(|| PyIndexError::new_err(format!("there is no function mode {index}")))
}

/// Whether a mode answers this thread's calls now.
#[pyfunction]
fn _is_torch_function_mode_enabled() -> bool {
    is_on()
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_push_on_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_len_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_get_function_stack_at, module)?)?;
    module.add_function(wrap_pyfunction!(_is_torch_function_mode_enabled, module)?)
}
