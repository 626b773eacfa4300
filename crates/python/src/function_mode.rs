//! `TorchFunctionMode`: modes that override calls of functions, methods, operators and attributes of tensors.
//!
//! A thread has a stack of them. The innermost is called before the types of the arguments (`torch_function`), and is off
//! while it runs. Invariant: [`MODES`] is the sum of the lengths of all stacks and of the modes that are running, so that
//! calls look at nothing else while no thread uses a mode.

use crate::dispatch_mode::method_of;
use crate::raw::class::intercept_dtype;
use crate::torch_function;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of modes that are on, of all threads together.
static MODES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct ModeStack(Vec<Py<PyAny>>);

impl Drop for ModeStack {
    fn drop(&mut self) {
        MODES.fetch_sub(self.0.len(), Relaxed);
    }
}

thread_local! {
    static STACK: RefCell<ModeStack> = RefCell::default();
}

/// Whether a mode overrides this thread's calls now.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    MODES.load(Relaxed) != 0 && is_on_here()
}

#[cold]
#[inline(never)]
fn is_on_here() -> bool {
    depth() > 0 && torch_function::are_modes_enabled()
}

fn depth() -> usize {
    STACK.with(|s| s.borrow().0.len())
}

/// Puts a mode onto this thread's stack. The first mode of the process makes `Tensor.dtype` an attribute that modes can
/// override, and [`pop`] of the last one makes it a plain field again.
fn push(py: Python<'_>, mode: Py<PyAny>) -> PyResult<()> {
    if MODES.load(Relaxed) == 0 {
        intercept_dtype(py, true)?;
    }
    MODES.fetch_add(1, Relaxed);
    STACK.with(|s| s.borrow_mut().0.push(mode));
    Ok(())
}

fn pop(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let last = STACK.with(|s| s.borrow_mut().0.pop());
    if last.is_some() && MODES.fetch_sub(1, Relaxed) == 1 {
        intercept_dtype(py, false)?;
    }
    Ok(last)
}

/// The innermost mode, off until this is dropped.
pub(crate) struct InnermostMode(Py<PyAny>);

impl Drop for InnermostMode {
    fn drop(&mut self) {
        Python::attach(|py| {
            let mode = self.0.clone_ref(py);
            STACK.with(|s| s.borrow_mut().0.push(mode));
        });
    }
}

impl InnermostMode {
    /// Takes the innermost mode off the stack, if modes override calls now; dropping it puts it back.
    pub(crate) fn take() -> Option<InnermostMode> {
        let mode = if is_on() { STACK.with(|s| s.borrow_mut().0.pop()) } else { None };
        mode.map(InnermostMode)
    }

    /// The result of the mode's `__torch_function__` for a call of `function`.
    pub(crate) fn call<'py>(
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

    /// The line of an error message that names the mode.
    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("  - mode object {}", self.0.bind(py).repr()?))
    }
}

/// The modes and the state of this thread, for another thread that goes on with its work.
pub(crate) fn thread_state() -> Box<dyn FnOnce() + Send> {
    let modes = Python::attach(|py| {
        STACK.with(|s| s.borrow().0.iter().map(|mode| mode.clone_ref(py)).collect::<Vec<_>>())
    });
    let state = torch_function::state();
    Box::new(move || {
        MODES.fetch_add(modes.len(), Relaxed);
        STACK.with(|s| s.borrow_mut().0.extend(modes));
        torch_function::set_state(state);
    })
}

/// Makes `mode` the innermost mode of this thread.
#[pyfunction]
fn _push_on_torch_function_stack(py: Python<'_>, mode: Py<PyAny>) -> PyResult<()> {
    push(py, mode)
}

/// Removes this thread's innermost mode and returns it.
#[pyfunction]
fn _pop_torch_function_stack(py: Python<'_>) -> PyResult<Py<PyAny>> {
    pop(py)?.ok_or_else(|| PyRuntimeError::new_err("trying to pop from an empty mode stack"))
}

/// The number of modes on this thread's stack.
#[pyfunction]
fn _len_torch_function_stack() -> usize {
    depth()
}

/// The mode at an index of this thread's stack, counted from the outermost one.
#[pyfunction]
fn _get_function_stack_at(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    let mode = STACK.with(|s| s.borrow().0.get(index).map(|mode| mode.clone_ref(py)));
    mode.ok_or_else(|| PyIndexError::new_err(format!("there is no function mode {index}")))
}

/// Whether a mode overrides this thread's calls now.
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
