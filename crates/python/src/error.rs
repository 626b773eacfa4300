//! Library errors as Python exceptions, and Python exceptions travelling through the library.

use pullback::{Error, ErrorKind};
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use std::sync::Arc;

pyo3::create_exception!(
    torch,
    OutOfMemoryError,
    PyRuntimeError,
    "Raised when memory cannot be allocated."
);
pyo3::create_exception!(
    torch.linalg,
    LinAlgError,
    PyRuntimeError,
    "Raised when a linear algebra function is given a matrix it has no answer for."
);

/// A Python exception carried by a library error.
struct Foreign(Py<PyAny>);

/// The Python exception for a library error.
#[cold]
pub(crate) fn raise(error: Error) -> PyErr {
    if let Some(foreign) = error.payload().and_then(|p| p.downcast_ref::<Foreign>()) {
        return Python::attach(|py| PyErr::from_value(foreign.0.bind(py).clone()));
    }
    let message = error.message().to_owned();
    match error.kind() {
        ErrorKind::Value => PyValueError::new_err(message),
        ErrorKind::Type => PyTypeError::new_err(message),
        ErrorKind::Index => PyIndexError::new_err(message),
        ErrorKind::NotImplemented => PyNotImplementedError::new_err(message),
        ErrorKind::LinAlg => LinAlgError::new_err(message),
        ErrorKind::OutOfMemory => OutOfMemoryError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The library error that carries a Python exception untouched.
#[cold]
pub(crate) fn carry(error: PyErr) -> Error {
    Python::attach(|py| {
        let message = error.to_string();
        let value = error.into_value(py).into_any();
        Error::foreign(message, Arc::new(Foreign(value)))
    })
}
