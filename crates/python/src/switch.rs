//! What a thread is set to for a while, and the contexts that set it: who answers calls and ops, who does not.

use crate::subclass::{self, Answering};
use pullback::autograd::{mode, torch_dispatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Puts back what held before it was made.
pub(crate) struct Switched<T: Copy> {
    set: fn(T) -> T,
    previous: T,
}

impl<T: Copy> Switched<T> {
    /// Lets `set`, which gives what held before, set `value`.
    pub(crate) fn new(set: fn(T) -> T, value: T) -> Self {
        Switched { set, previous: set(value) }
    }
}

impl<T: Copy> Drop for Switched<T> {
    fn drop(&mut self) {
        (self.set)(self.previous);
    }
}

/// A context, which may be entered again inside of itself.
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
    /// Neither classes nor modes answer ops, and tensors of classes are ordinary ones.
    DisableTorchDispatch,
    "_DisableTorchDispatch",
    torch_dispatch::set_disabled,
    true,
    bool
);
context!(
    /// Inside of a `__torch_dispatch__`, ops are recorded and writes counted as outside of it.
    EnableReentrantDispatch,
    "_RestorePythonTLSSnapshot",
    mode::set_recording_excluded,
    false,
    bool
);
context!(
    /// Classes do not answer calls; modes do.
    DisableTorchFunctionSubclass,
    "DisableTorchFunctionSubclass",
    subclass::set_answering,
    Answering::Modes,
    Answering
);
context!(
    /// Neither classes nor modes answer calls.
    DisableTorchFunction,
    "DisableTorchFunction",
    subclass::set_answering,
    Answering::Nobody,
    Answering
);
/// Classes and modes answer calls from when it is made until it is gone.
#[pyclass(module = "torch._C", name = "_EnableTorchFunction", unsendable)]
struct EnableTorchFunction {
    _switched: Switched<Answering>,
}

#[pymethods]
impl EnableTorchFunction {
    #[new]
    fn new() -> Self {
        EnableTorchFunction { _switched: Switched::new(subclass::set_answering, Answering::All) }
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
