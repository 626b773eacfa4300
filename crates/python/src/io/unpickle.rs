//! Pickles as Python objects, by rules that define the meaning of names and what may be called.

use pullback::binding::memory;
use pullback::io::pickle::{self, Broken, Build, Constant, FaultKind, Limits};
use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple,
};

/// A Python exception.
pub(super) struct Failure(PyErr);

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure(error)
    }
}
impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Failure(unpickling_error(broken.0))
    }
}
impl From<pyo3::CastError<'_, '_>> for Failure {
    fn from(error: pyo3::CastError<'_, '_>) -> Self {
        Failure(error.into())
    }
}

/// The exception for a pickle that is wrong.
fn unpickling_error(fault: pickle::Fault) -> PyErr {
    let text = fault.to_string();
    if fault.kind == FaultKind::EndOfInput {
        return PyEOFError::new_err(text);
    }
    refuse(text)
}

fn refuse(text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("pickle").and_then(|module| module.getattr("UnpicklingError"));
        match class.and_then(|class| class.call1((text,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

/// The builder of Python objects; `rules` has methods for everything that is more than data.
struct Objects<'py> {
    rules: Bound<'py, PyAny>,
    /// How strings of Python 2 become text; `"bytes"` leaves them bytes.
    encoding: String,
}

type PyValue<'py> = Bound<'py, PyAny>;
type Unpickled<T> = Result<T, Failure>;

fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<PyValue<'py>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogatepass")),
    }
}

/// The type of an object as Python shows it.
fn shown_type(object: &PyValue<'_>) -> String {
    object.get_type().repr().map_or_else(|_| "an object".to_owned(), |text| text.to_string())
}

impl<'py> Objects<'py> {
    fn py(&self) -> Python<'py> {
        self.rules.py()
    }
    fn old_string(&self, bytes: &[u8]) -> PyResult<PyValue<'py>> {
        let bytes = PyBytes::new(self.py(), bytes);
        if self.encoding == "bytes" {
            return Ok(bytes.into_any());
        }
        bytes.call_method1("decode", (&self.encoding, "strict"))
    }
}

impl<'py> Build for Objects<'py> {
    type Object = PyValue<'py>;
    type Error = Failure;

    fn constant(&mut self, constant: Constant<'_>) -> Unpickled<PyValue<'py>> {
        let py = self.py();
        Ok(match constant {
            Constant::None => py.None().into_bound(py),
            Constant::Bool(value) => {
                value.into_pyobject(py).map_err(PyErr::from)?.to_owned().into_any()
            }
            Constant::Int(value) => value.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            Constant::BigInt(bytes) => {
                let keywords = PyDict::new(py);
                keywords.set_item("signed", true)?;
                let class = py.import("builtins")?.getattr("int")?;
                let bytes = PyBytes::new(py, &bytes);
                class.call_method("from_bytes", (bytes, "little"), Some(&keywords))?
            }
            Constant::Float(value) => PyFloat::new(py, value).into_any(),
            Constant::Text(bytes) => text(py, &bytes)?,
            Constant::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Constant::ByteArray(bytes) => PyByteArray::new(py, bytes).into_any(),
            Constant::OldString(bytes) => self.old_string(&bytes)?,
        })
    }
    fn tuple(&mut self, items: Vec<PyValue<'py>>) -> Unpickled<PyValue<'py>> {
        Ok(PyTuple::new(self.py(), items)?.into_any())
    }
    fn list(&mut self, items: Vec<PyValue<'py>>) -> Unpickled<PyValue<'py>> {
        Ok(PyList::new(self.py(), items)?.into_any())
    }
    fn dict(&mut self) -> Unpickled<PyValue<'py>> {
        Ok(PyDict::new(self.py()).into_any())
    }
    fn set(&mut self, items: Vec<PyValue<'py>>, is_frozen: bool) -> Unpickled<PyValue<'py>> {
        let py = self.py();
        if is_frozen {
            return Ok(PyFrozenSet::new(py, items)?.into_any());
        }
        Ok(PySet::new(py, items)?.into_any())
    }
    fn append(&mut self, list: &PyValue<'py>, items: Vec<PyValue<'py>>) -> Unpickled<()> {
        let Ok(list) = list.cast_exact::<PyList>() else {
            let items = PyList::new(self.py(), items)?;
            self.rules.call_method1("append", (list, items))?;
            return Ok(());
        };
        for item in items {
            list.append(item)?;
        }
        Ok(())
    }
    fn set_items(&mut self, dict: &PyValue<'py>, items: Vec<PyValue<'py>>) -> Unpickled<()> {
        if let Ok(dict) = dict.cast_exact::<PyDict>() {
            for pair in items.chunks_exact(2) {
                dict.set_item(&pair[0], &pair[1])?;
            }
            return Ok(());
        }
        let items = PyList::new(self.py(), items)?;
        self.rules.call_method1("set_items", (dict, items))?;
        Ok(())
    }
    fn add(&mut self, set: &PyValue<'py>, items: Vec<PyValue<'py>>) -> Unpickled<()> {
        let Ok(set) = set.cast_exact::<PySet>() else {
            let given = shown_type(set);
            return Err(refuse(format!("Can only add to sets, but got {given}")).into());
        };
        for item in items {
            set.add(item)?;
        }
        Ok(())
    }
    fn global(&mut self, module: &str, name: &str) -> Unpickled<PyValue<'py>> {
        Ok(self.rules.call_method1("find_global", (module, name))?)
    }
    fn text(&self, object: &PyValue<'py>) -> Option<String> {
        let text = object.cast_exact::<PyString>().ok()?;
        let text = text.to_str().ok()?;
        let mut copy = String::new();
        memory::push_str(&mut copy, text).ok()?;
        Some(copy)
    }
    fn reduce(
        &mut self,
        callable: PyValue<'py>,
        arguments: PyValue<'py>,
    ) -> Unpickled<PyValue<'py>> {
        Ok(self.rules.call_method1("reduce", (callable, arguments))?)
    }
    fn new_object(
        &mut self,
        class: PyValue<'py>,
        arguments: PyValue<'py>,
        keywords: Option<PyValue<'py>>,
    ) -> Unpickled<PyValue<'py>> {
        Ok(self.rules.call_method1("new_object", (class, arguments, keywords))?)
    }
    fn build(&mut self, instance: &PyValue<'py>, state: PyValue<'py>) -> Unpickled<()> {
        self.rules.call_method1("build", (instance, state))?;
        Ok(())
    }
    fn persistent(&mut self, id: PyValue<'py>) -> Unpickled<PyValue<'py>> {
        Ok(self.rules.call_method1("persistent", (id,))?)
    }
    fn protocol(&mut self, protocol: u8) -> Unpickled<()> {
        self.rules.call_method1("protocol", (protocol,))?;
        Ok(())
    }
}

/// Reads the pickle that begins at byte `start`; gives the object, and the position after it.
#[pyfunction]
pub(super) fn _unpickle<'py>(
    data: &[u8],
    start: usize,
    rules: Bound<'py, PyAny>,
    encoding: String,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let mut objects = Objects { rules, encoding };
    pickle::run(data, start, Limits::default(), &mut objects).map_err(|failure| failure.0)
}

/// The names of classes and functions that a pickle asks for: pairs of module and name.
#[pyfunction]
pub(super) fn _pickle_globals(data: &[u8]) -> PyResult<Vec<(String, String)>> {
    pickle::globals(data).map_err(unpickling_error)
}

/// The same pickle with names in place of the persistent ids `prefix + "module\nname"`.
#[pyfunction]
pub(super) fn _resolve_names<'py>(
    py: Python<'py>,
    data: &[u8],
    prefix: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let resolved = pickle::resolve_names(data, prefix).map_err(unpickling_error)?;
    Ok(PyBytes::new(py, &resolved))
}
