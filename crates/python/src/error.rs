//! Library errors as Python exceptions, and Python exceptions travelling through the library.

use crate::explain::explain;
use pullback::autograd::Node;
use pullback::{Error, ErrorKind};
use pyo3::exceptions::{
    PyAssertionError, PyIndexError, PyModuleNotFoundError, PyNotImplementedError, PyRuntimeError,
    PyTypeError, PyValueError,
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
        ErrorKind::Assertion => PyAssertionError::new_err(message),
        ErrorKind::ModuleNotFound => PyModuleNotFoundError::new_err(message),
        ErrorKind::NotImplemented => PyNotImplementedError::new_err(message),
        ErrorKind::LinAlg => LinAlgError::new_err(message),
        ErrorKind::OutOfMemory => out_of_memory(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The exception for missing memory, with a note that lists the largest holders of memory.
#[cold]
fn out_of_memory(message: String) -> PyErr {
    let error = OutOfMemoryError::new_err(message);
    Python::attach(|py| explain(py, error, "note_memory", &[]))
}

/// The Python exception for working memory that could not be allocated.
#[cold]
pub(crate) fn refused(error: impl Into<Error>) -> PyErr {
    raise(error.into())
}

/// The library error that carries a Python exception untouched.
///
/// The library's error for an exception that the binding itself raised, so that a backward can add
/// the lines of the program to it. Such an exception never went through Python code: it has no
/// traceback, and is of one of the binding's classes.
#[cold]
pub(crate) fn carry(error: PyErr) -> Error {
    Python::attach(|py| {
        if let Some(own) = own_error(py, &error) {
            return own;
        }
        let message = error.to_string();
        let value = error.into_value(py).into_any();
        Error::foreign(message, Arc::new(Foreign(value)))
    })
}

fn own_error(py: Python<'_>, error: &PyErr) -> Option<Error> {
    if error.traceback(py).is_some() || error.cause(py).is_some() {
        return None;
    }
    let class = error.get_type(py);
    let make: fn(String) -> Error = if class.is(py.get_type::<PyRuntimeError>()) {
        |text| Error::runtime(text)
    } else if class.is(py.get_type::<PyTypeError>()) {
        |text| Error::type_error(text)
    } else if class.is(py.get_type::<PyNotImplementedError>()) {
        |text| Error::not_implemented(text)
    } else {
        return None;
    };
    let arguments = error.value(py).getattr("args").ok()?;
    let (text,): (String,) = arguments.extract().ok()?;
    Some(make(text))
}

/// Adds a note to an exception of Python code: the line that made the node in which it was raised.
#[cold]
pub(crate) fn note(py: Python<'_>, error: PyErr, node: &Node) -> PyErr {
    if error.traceback(py).is_some()
        && let Some(text) = node.origin()
    {
        let Ok(text) = text.into_pyobject(py);
        return explain(py, error, "add_note", &[text.into_any()]);
    }
    error
}
