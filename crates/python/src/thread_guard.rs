//! Guards for the state of a thread, and Python's context managers over them: which overrides of calls and ops are enabled.

use crate::torch_function::{self, TorchFunctionState};
use pullback::autograd::{mode, torch_dispatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A guard that sets a state of the thread and restores the previous one when it is dropped.
pub(crate) struct ThreadGuard<T: Copy> {
    set: fn(T) -> T,
    previous: T,
}

impl<T: Copy> ThreadGuard<T> {
    /// Sets `value` by the function `set`, which returns the previous value.
    pub(crate) fn new(set: fn(T) -> T, value: T) -> Self {
        ThreadGuard { set, previous: set(value) }
    }
}

impl<T: Copy> Drop for ThreadGuard<T> {
    fn drop(&mut self) {
        (self.set)(self.previous);
    }
}

/// A context manager, which may be entered again inside of itself.
macro_rules! context {
    ($(#[$doc:meta])* $id:ident, $name:literal, $set:path, $value:expr, $ty:ty) => {
        $(#[$doc])*
        #[pyclass(module = "torch._C", name = $name)]
        #[derive(Default)]
        struct $id {
            previous: Vec<$ty>,
        }

        #[pymethods]
        impl $id {
            #[new]
            fn new() -> Self {
                Self::default()
            }
            fn __enter__(&mut self) {
                self.previous.push($set($value));
            }
            #[pyo3(signature = (*_error))]
            fn __exit__(&mut self, _error: &Bound<'_, PyTuple>) {
                self.previous.pop().map($set);
            }
        }
    };
}
context!(
    /// Disables `__torch_dispatch__` of classes and modes: tensors of such classes are ordinary ones.
    DisableTorchDispatch,
    "_DisableTorchDispatch",
    torch_dispatch::set_disabled,
    true,
    bool
);
context!(
    /// Lets ops inside of a `__torch_dispatch__` be recorded, and writes be counted, as outside of it.
    EnableReentrantDispatch,
    "_RestorePythonTLSSnapshot",
    mode::set_recording_excluded,
    false,
    bool
);
context!(
    /// Disables `__torch_function__` of classes; modes still override calls.
    DisableTorchFunctionSubclass,
    "DisableTorchFunctionSubclass",
    torch_function::set_state,
    TorchFunctionState::SubclassesDisabled,
    TorchFunctionState
);
context!(
    /// Disables `__torch_function__` of classes and modes.
    DisableTorchFunction,
    "DisableTorchFunction",
    torch_function::set_state,
    TorchFunctionState::AllDisabled,
    TorchFunctionState
);
/// Enables `__torch_function__` of classes and modes as long as the object lives.
#[pyclass(module = "torch._C", name = "_EnableTorchFunction", unsendable)]
struct EnableTorchFunction {
    _guard: ThreadGuard<TorchFunctionState>,
}

#[pymethods]
impl EnableTorchFunction {
    #[new]
    fn new() -> Self {
        EnableTorchFunction {
            _guard: ThreadGuard::new(torch_function::set_state, TorchFunctionState::Enabled),
        }
    }
}

/// Adds the contexts.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DisableTorchDispatch>()?;
    module.add_class::<EnableReentrantDispatch>()?;
    module.add_class::<DisableTorchFunctionSubclass>()?;
    module.add_class::<DisableTorchFunction>()?;
    module.add_class::<EnableTorchFunction>()
}
