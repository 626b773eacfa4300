//! The printed form of tensors, and its options.

use crate::autograd::node::short_name;
use crate::error::raise;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{class, tensor_of};
use pullback::tensor::display::{
    Heading, PrintOptions, batched_text, plain_text, print_options, set_print_options, text,
};
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The text of a tensor.
pub(crate) fn repr(py: Python<'_>, slf: *mut PyObject, contents: Option<&str>) -> PyResult<String> {
    // SAFETY: called for tensors.
    let (tensor, ty) = unsafe { (tensor_of(slf), ffi::Py_TYPE(slf)) };
    if let Some(text) = batched_text(tensor, &print_options()) {
        return text.map_err(raise);
    }
    // SAFETY: a live object.
    let object = unsafe { Bound::from_borrowed_ptr(py, slf) };
    let plain = ty == class()
        || object.getattr("_is_param").is_ok_and(|p| p.is_truthy().unwrap_or(false))
        || object.get_type().name()? == "Parameter";
    let name = if plain { "tensor".to_owned() } else { object.get_type().name()?.to_string() };
    let node = match tensor.grad_fn() {
        Ok(node) => node.map(|n| short_name(&n)),
        Err(_) => Some("Invalid".to_owned()),
    };
    let options = print_options();
    let tangent = tensor.tangent().and_then(|t| t.map(|t| plain_text(&t, &options)).transpose());
    let tangent = tangent.map_err(raise)?;
    let heading = Heading {
        name: &name,
        grad_fn: node.as_deref(),
        requires_grad: tensor.requires_grad(),
        tangent: tangent.as_deref(),
        contents,
    };
    text(tensor, heading, &options).map_err(raise)
}

/// `x._repr(contents)`: the text with something else in the place of the elements, if it is not `None`.
pub(crate) fn repr_method(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [contents] = args.bind(py, "_repr", ["contents"], 1)?;
    let contents = contents.filter(|c| !c.is_none()).map(|c| c.str()).transpose()?;
    let contents = contents.as_ref().map(|c| c.to_str()).transpose()?;
    crate::result::new_string(py, &repr(py, slf, contents)?)
}

/// `torch.set_printoptions`.
#[pyfunction]
#[pyo3(signature = (precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None))]
fn set_printoptions(
    precision: Option<usize>,
    threshold: Option<&Bound<'_, PyAny>>,
    edgeitems: Option<usize>,
    linewidth: Option<usize>,
    profile: Option<&str>,
    sci_mode: Option<bool>,
) -> PyResult<()> {
    let mut options = print_options();
    let sizes = |o: PrintOptions, precision, threshold, edgeitems| PrintOptions {
        precision,
        threshold,
        edgeitems,
        linewidth: 80,
        ..o
    };
    options = match profile {
        None => options,
        Some("default") => sizes(options, 4, 1000, 3),
        Some("short") => sizes(options, 2, 1000, 2),
        // tidy: not an op, but a profile
        Some("full") => sizes(options, 4, usize::MAX, 3),
        Some(other) => return Err(PyValueError::new_err(format!("unknown profile '{other}'"))),
    };
    options.precision = precision.unwrap_or(options.precision);
    options.edgeitems = edgeitems.unwrap_or(options.edgeitems);
    options.linewidth = linewidth.unwrap_or(options.linewidth);
    if let Some(threshold) = threshold.filter(|t| !t.is_none()) {
        let value: f64 = threshold.extract()?;
        if value.is_nan() {
            return Err(PyValueError::new_err("threshold must be a number, got nan"));
        }
        options.threshold = value as usize;
    }
    // As in PyTorch each call decides anew.
    options.sci_mode = sci_mode;
    set_print_options(options);
    Ok(())
}

/// The options in force, for `torch.get_printoptions` and contexts that restore them.
#[pyfunction]
fn _get_printoptions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let options = print_options();
    let dict = PyDict::new(py);
    dict.set_item("precision", options.precision)?;
    let threshold = Some(options.threshold).filter(|&n| n != usize::MAX);
    // tidy: not an op, but an option
    dict.set_item("threshold", threshold.map_or(f64::INFINITY, |n| n as f64))?;
    dict.set_item("edgeitems", options.edgeitems)?;
    dict.set_item("linewidth", options.linewidth)?;
    dict.set_item("sci_mode", options.sci_mode)?;
    Ok(dict)
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_printoptions, module)?)?;
    module.add_function(wrap_pyfunction!(_get_printoptions, module)?)
}
