//! Ops of libraries in Rust, which bring their own copy of the library: see the crate `pullback-extension`.
//!
//! `python/pullback/_extension_ops.py` makes ops of `torch.library` of these classes.

use crate::error::raise;
use crate::lock::without_lock;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::Tensor;
use pullback_extension::host::Extension;
use pullback_extension::{Given, Program, Step};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::ptr::NonNull;

/// A library that was loaded.
#[pyclass(module = "torch._C", name = "_Extension", frozen)]
struct PyExtension(Extension);

#[pymethods]
impl PyExtension {
    /// The library whose table is at this address.
    #[new]
    fn new(address: usize) -> PyResult<PyExtension> {
        let table = NonNull::new(address as *mut pullback_extension::Table)
            .ok_or_else(|| PyValueError::new_err("_Extension(): the address is null"))?;
        // SAFETY: what a library's function gave, which was loaded by `ctypes` and stays so.
        Ok(PyExtension(unsafe { Extension::new(table) }.map_err(raise)?))
    }
    /// The signature of each op with its namespace, and its doc text.
    fn ops(&self) -> PyResult<Vec<(String, String)>> {
        (0..self.0.count()).map(|op| self.0.describe(op).map_err(raise)).collect()
    }
    /// The program that is a call of an op, and the tensors among the arguments.
    fn call<'py>(
        &self,
        op: u32,
        arguments: &Bound<'py, PyAny>,
    ) -> PyResult<(PyProgram, Vec<Bound<'py, PyAny>>)> {
        let mut tensors = Vec::new();
        let mut given = Vec::new();
        for argument in arguments.try_iter()? {
            given.push(given_of(&argument?, &mut tensors)?);
        }
        let program = Program { op, arguments: given, steps: Vec::new() };
        Ok((PyProgram { extension: self.0, program }, tensors))
    }
}

/// An argument; tensors go into a list of their own.
fn given_of<'py>(
    object: &Bound<'py, PyAny>,
    tensors: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<Given> {
    if as_tensor(object).is_some() {
        tensors.push(object.clone());
        return Ok(Given::Tensor);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|item| given_of(&item?, tensors));
        return Ok(Given::List(items.collect::<PyResult<_>>()?));
    }
    Ok(if object.is_none() {
        Given::None
    } else if object.is_instance_of::<PyBool>() {
        Given::Bool(object.extract()?)
    } else if object.is_instance_of::<PyInt>() {
        Given::Int(object.extract()?)
    } else if object.is_instance_of::<PyFloat>() {
        Given::Float(object.extract()?)
    } else if let Ok(number) = object.cast::<PyComplex>() {
        Given::Complex(number.real(), number.imag())
    } else if object.is_instance_of::<PyString>() {
        Given::Text(object.extract()?)
    } else if matches!(object.get_type().name()?.to_str()?, "dtype" | "device") {
        Given::Text(object.str()?.to_str()?.trim_start_matches("torch.").to_owned())
    } else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("an op of an extension takes no {kind}")));
    })
}

/// A function of tensors that a library evaluates.
#[pyclass(module = "torch._C", name = "_ExtensionProgram", frozen)]
struct PyProgram {
    extension: Extension,
    program: Program,
}

impl PyProgram {
    fn then(&self, step: Step) -> PyProgram {
        PyProgram { extension: self.extension, program: self.program.then(step) }
    }
}

#[pymethods]
impl PyProgram {
    /// The gradients with respect to the marked inputs.
    fn vjp(&self, marks: Vec<bool>) -> PyProgram {
        self.then(Step::Vjp(marks))
    }
    /// The tangents of the results for tangents of the marked inputs.
    fn jvp(&self, marks: Vec<bool>) -> PyProgram {
        self.then(Step::Jvp(marks))
    }
    /// The results for each example of a batch, by the dimensions of the inputs.
    fn vmap(&self, dims: Vec<Option<i64>>) -> PyProgram {
        self.then(Step::Vmap(dims))
    }
    /// The results.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let tensor = |input: &Bound<'py, PyAny>| {
            let found = as_tensor(input).cloned();
            found.ok_or_else(|| PyTypeError::new_err("a program of an extension takes tensors"))
        };
        let tensors = inputs.iter().map(tensor).collect::<PyResult<Vec<Tensor>>>()?;
        let results =
            without_lock(py, || self.extension.run(&self.program, &tensors)).map_err(raise)?;
        let results = results.into_iter().map(|result| wrap_bound(py, result));
        PyTuple::new(py, results.collect::<PyResult<Vec<_>>>()?)
    }
}

/// Adds the classes.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExtension>()?;
    module.add_class::<PyProgram>()
}
