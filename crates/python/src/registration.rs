//! Registrations of ops, as PyTorch's `torch._C._dispatch_*` functions show them: names, kernels
//! and rules by dispatch key, the keys of a tensor. Of ops that a program defines, Python knows
//! (`pullback.library`).

use crate::convert::type_name;
use crate::raw::object::as_tensor;
use pullback::dispatch::{Form, OpDef, Traits, named_keys};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashMap;
use std::sync::OnceLock;

type Names = HashMap<String, (&'static OpDef, Form<'static>)>;

/// The ops in all their forms, by name: `aten::add_.Tensor`.
fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let forms = |def: &'static OpDef| def.forms().map(move |form| (def, form));
        let all = pullback::ops::registry().flat_map(forms);
        all.map(|(def, form)| (form.qualified(def), (def, form))).collect()
    })
}

/// The op of that name; without a namespace it is one of `aten`.
fn found(name: &str) -> Option<(&'static OpDef, Form<'static>)> {
    match name.contains("::") {
        true => names().get(name),
        false => names().get(&format!("aten::{name}")),
    }
    .copied()
}

/// The op that a program has defined under that name, if there is one.
fn defined<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let find = py.import("pullback.library._overload")?.getattr("find")?;
    let overload = find.call1((name,))?;
    Ok((!overload.is_none()).then_some(overload))
}

/// The signature of an op, and its kernels and rules with their dispatch keys and the lines where they stand; empty if there is no
/// such op.
#[pyfunction]
fn _dispatch_dump(py: Python<'_>, name: &str) -> PyResult<String> {
    if let Some((def, form)) = found(name) {
        return Ok(def.dump(form));
    }
    match defined(py, name)? {
        Some(overload) => overload.call_method0("_dump")?.extract(),
        None => Ok(String::new()),
    }
}

/// The kernels and rules of an op: the dispatch key, what it is, and the line where it stands.
#[pyfunction]
fn _dispatch_registrations(name: &str) -> Vec<(&'static str, &'static str, String)> {
    let all = found(name).map(|(def, _)| def.registrations()).unwrap_or_default();
    all.into_iter().map(|of| (of.key, of.text, format!("{}:{}", of.file, of.line))).collect()
}

/// Facts about an op, by name: those that `torch.Tag` has words for. None if there is no such op.
#[pyfunction]
fn _op_traits(name: &str) -> Option<Vec<&'static str>> {
    const NAMED: [(Traits, &str); 6] = [
        (Traits::RANDOM, "random"),
        (Traits::VIEW, "is_view"),
        (Traits::MULTI_VIEW, "is_view"),
        (Traits::POINTWISE, "pointwise"),
        (Traits::DYNAMIC_OUTPUT_SHAPE, "dynamic_output_shape"),
        (Traits::DATA_DEPENDENT_OUTPUT, "data_dependent_output"),
    ];
    let (def, _) = found(name)?;
    Some(NAMED.iter().filter(|(flag, _)| def.is(*flag)).map(|&(_, word)| word).collect())
}

/// Whether there is an op of that name.
#[pyfunction]
fn _dispatch_has_kernel(py: Python<'_>, name: &str) -> PyResult<bool> {
    Ok(found(name).is_some() || defined(py, name)?.is_some())
}

/// Whether an op has a kernel or rule of its own for a dispatch key.
#[pyfunction]
fn _dispatch_has_kernel_for_dispatch_key(
    py: Python<'_>,
    name: &str,
    dispatch: &str,
) -> PyResult<bool> {
    if let Some((def, _)) = found(name) {
        if !OpDef::is_key(dispatch) && !is_other_key(dispatch) {
            let text = format!("could not parse dispatch key: {dispatch}");
            return Err(PyRuntimeError::new_err(text));
        }
        return Ok(def.is_registered_for(dispatch));
    }
    match defined(py, name)? {
        Some(overload) => {
            overload.call_method1("has_kernel_for_dispatch_key", (dispatch,))?.extract()
        }
        None => Err(PyRuntimeError::new_err(format!("operator {name} does not exist"))),
    }
}

/// Whether it is the name of a key of PyTorch's for which nothing can be registered here.
fn is_other_key(key: &str) -> bool {
    const PARTS: [&str; 6] =
        ["Autograd", "Autocast", "Sparse", "Quantized", "Composite", "FuncTorch"];
    const OTHERS: [&str; 12] = [
        "XPU",
        "MPS",
        "HIP",
        "XLA",
        "IPU",
        "HPU",
        "VE",
        "Lazy",
        "MTIA",
        "MAIA",
        "PrivateUse1",
        "Functionalize",
    ];
    PARTS.iter().any(|part| key.starts_with(part)) || OTHERS.contains(&key)
}

/// The names of all ops in all their forms.
#[pyfunction]
fn _dispatch_get_all_op_names(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let mut all: Vec<&String> = names().keys().collect();
    all.sort_unstable();
    PyList::new(py, all)
}

/// The keys of a tensor: which backend its ops are for, and the layers that they pass.
#[pyclass(module = "torch", name = "DispatchKeySet", frozen, eq)]
#[derive(PartialEq)]
struct DispatchKeySet(Vec<&'static str>);

#[pymethods]
impl DispatchKeySet {
    /// Whether the set has a key, given by its name.
    fn has(&self, key: &str) -> bool {
        self.0.contains(&key)
    }
    fn __repr__(&self) -> String {
        format!("DispatchKeySet({})", self.0.join(", "))
    }
}

/// The dispatch keys of a tensor.
#[pyfunction]
fn _dispatch_keys(tensor: &Bound<'_, PyAny>) -> PyResult<DispatchKeySet> {
    let tensor = as_tensor(tensor).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "_dispatch_keys(): argument 'tensor' must be Tensor, not {}",
            type_name(tensor)
        ))
    })?;
    Ok(DispatchKeySet(named_keys(tensor)))
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DispatchKeySet>()?;
    module.add_function(wrap_pyfunction!(_dispatch_dump, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_registrations, module)?)?;
    module.add_function(wrap_pyfunction!(_op_traits, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_has_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_has_kernel_for_dispatch_key, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_get_all_op_names, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_keys, module)?)
}
