//! The primitives of `pullback.func`: levels of `vmap`, inputs of transforms.

use crate::convert::type_name;
use crate::error::raise;
use crate::interrupt::computing;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::Tensor;
use pullback::autograd::batch::{self, Randomness};
use pullback::autograd::{forward, transform};
use pullback::tensor::Key;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn tensor(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Tensor> {
    let tensor = as_tensor(value).cloned();
    tensor.ok_or_else(|| {
        PyTypeError::new_err(format!("{name}(): expected a Tensor, but got {}", type_name(value)))
    })
}

fn list(values: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<Tensor>> {
    values.try_iter()?.map(|value| tensor(&value?, name)).collect()
}

/// Opens a level of `vmap` on this thread.
#[pyfunction]
fn _vmap_enter(batch_size: i64, randomness: &str) -> PyResult<u64> {
    let randomness = match randomness {
        "error" => Randomness::Error,
        "different" => Randomness::Different,
        "same" => Randomness::Same,
        other => {
            return Err(PyValueError::new_err(format!(
                "randomness must be 'error', 'different' or 'same', got {other}"
            )));
        }
    };
    batch::enter(batch_size, randomness).map_err(raise)
}
/// Closes the innermost level of `vmap`.
#[pyfunction]
fn _vmap_exit(level: u64) -> PyResult<()> {
    batch::exit(level).map_err(raise)
}
/// Whether a level is open on this thread.
#[pyfunction]
fn _vmap_is_open() -> bool {
    batch::is_any_open()
}
/// A tensor seen without a dimension, which counts a level's examples.
#[pyfunction]
fn _vmap_add<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    dim: i64,
    level: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let value = tensor(value, "_vmap_add")?;
    wrap_bound(py, computing(|| batch::add_dim(&value, dim, level).map_err(raise))?)
}
/// The inverse of `_vmap_add`: a tensor with the dimension of a level.
#[pyfunction]
fn _vmap_remove<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    level: u64,
    batch_size: i64,
    out_dim: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let value = tensor(value, "_vmap_remove")?;
    let remove = || batch::remove_dim(&value, level, batch_size, out_dim).map_err(raise);
    wrap_bound(py, computing(remove)?)
}
/// The innermost level at which a tensor is batched; -1 if there is none.
#[pyfunction]
fn _vmap_level(value: &Bound<'_, PyAny>) -> i64 {
    as_tensor(value).and_then(batch::level_of).map_or(-1, |level| level as i64)
}
/// The value of a tensor one level down.
#[pyfunction]
fn _vmap_unwrapped<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match batch::physical_of(&tensor(value, "_vmap_unwrapped")?) {
        Some(physical) => wrap_bound(py, physical),
        None => Ok(value.clone()),
    }
}
/// The ops that went through examples one by one so far.
#[pyfunction]
fn _vmap_fallen_back() -> Vec<String> {
    pullback::dispatch::batch::fallen_back()
}
/// Whether a call without batching rule goes through the examples one by one.
#[pyfunction]
fn _is_vmap_fallback_enabled() -> bool {
    pullback::dispatch::batch::is_fallback_enabled()
}
/// Lets calls without batching rule go through the examples one by one, or refuses them, on all threads.
#[pyfunction]
fn _set_vmap_fallback_enabled(enabled: bool) {
    pullback::dispatch::batch::set_fallback_enabled(enabled);
}
/// Whether an op without batching rule warns when it is first called within `vmap`.
#[pyfunction]
fn _debug_only_are_vmap_fallback_warnings_enabled() -> bool {
    pullback::dispatch::batch::is_fallback_warning_enabled()
}
/// Turns the warnings of ops without batching rule on or off, on all threads.
#[pyfunction]
fn _debug_only_display_vmap_fallback_warnings(enabled: bool) {
    pullback::dispatch::batch::set_fallback_warning_enabled(enabled);
}
/// Begins to note the numbers of the levels that this thread opens, the first of which are to be `known`.
#[pyfunction]
fn _vmap_begin_numbers(known: Vec<u64>) {
    batch::begin_numbers(known);
}
/// Ends what the last `_vmap_begin_numbers` began; returns the numbers of all levels that were opened since.
#[pyfunction]
fn _vmap_end_numbers() -> Vec<u64> {
    batch::end_numbers()
}
/// An alias that requires grad, the input of a transform's function.
#[pyfunction]
fn _func_input<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    wrap_bound(py, transform::input(&tensor(value, "_func_input")?).map_err(raise)?)
}
/// Whether outputs depend on more than these inputs.
#[pyfunction]
fn _func_reaches_out(outputs: &Bound<'_, PyAny>, inputs: &Bound<'_, PyAny>) -> PyResult<bool> {
    const NAME: &str = "_func_reaches_out";
    transform::reaches_out(&list(outputs, NAME)?, &list(inputs, NAME)?).map_err(raise)
}
/// Ends the transform of these inputs.
#[pyfunction]
fn _func_close(inputs: &Bound<'_, PyAny>) -> PyResult<()> {
    transform::close(&list(inputs, "_func_close")?);
    Ok(())
}
/// The outputs, without history where they depend on nothing but the inputs.
#[pyfunction]
fn _func_detach<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    const NAME: &str = "_func_detach";
    let inputs = list(inputs, NAME)?;
    let objects = outputs.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let given = list(outputs, NAME)?;
    let shown = computing(|| transform::detach(&given, &inputs).map_err(raise))?;
    shown_as(py, objects.into_iter().zip(&given), shown.into_iter().map(Some))
}

/// The objects of these tensors, or new ones where there is another tensor in their place.
fn shown_as<'py, 'a>(
    py: Python<'py>,
    old: impl Iterator<Item = (Bound<'py, PyAny>, &'a Tensor)>,
    new: impl IntoIterator<Item = Option<Tensor>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let show = |((object, old), new): ((Bound<'py, PyAny>, &Tensor), Option<Tensor>)| match new {
        Some(new) if !new.is_same(old) => wrap_bound(py, new),
        _ => Ok(object),
    };
    old.zip(new).map(show).collect()
}

/// The other arguments of the innermost transform's function, as aliases that this may write to: a write changes what the
/// caller gave, whose history stays as it is. What has a history of its own, or a layout or a class of its own, stays itself.
#[pyfunction]
fn _func_arguments<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let objects = values.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let given = list(values, "_func_arguments")?;
    let aliases = transform::arguments(&given).map_err(raise)?;
    shown_as(py, objects.into_iter().zip(&given), aliases)
}

/// The tangents of a transform's inputs, copied where they lie in memory that writes to another input would change.
#[pyfunction]
fn _func_apart<'py>(
    py: Python<'py>,
    primals: &Bound<'py, PyAny>,
    tangents: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    const NAME: &str = "_func_apart";
    let primals = list(primals, NAME)?;
    let objects = tangents.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let tangents = list(tangents, NAME)?;
    let (at, given): (Vec<_>, Vec<_>) =
        (primals.iter().collect(), tangents.iter().map(Some).collect());
    let apart = computing(|| forward::apart(&at, &given).map_err(raise))?;
    shown_as(py, objects.into_iter().zip(&tangents), apart)
}
/// Begins a transform whose function may not write to what it captured; gives its number.
#[pyfunction]
fn _transform_enter() -> u32 {
    transform::enter()
}
/// Ends a transform.
#[pyfunction]
fn _transform_exit(number: u32) {
    transform::exit(number);
}
/// Makes tensors the innermost transform's own.
#[pyfunction]
fn _transform_own(tensors: &Bound<'_, PyAny>) -> PyResult<()> {
    transform::own(&list(tensors, "_transform_own")?);
    Ok(())
}

/// How many transforms are open, of all threads together.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether a transform may be open on this thread, or one of these arguments is batched.
#[inline]
pub(crate) fn is_at_work(py: Python<'_>, args: &[*mut pyo3::ffi::PyObject]) -> bool {
    let is_batched = |&object: &*mut pyo3::ffi::PyObject| {
        // SAFETY: the arguments of a call live as long as it.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        as_tensor(&object).is_some_and(|tensor| tensor.keys().has(Key::FuncTorchBatched))
    };
    OPEN.load(Relaxed) != 0 || batch::is_any_open() || args.iter().any(is_batched)
}
/// Refuses a method, where a transform is open on this thread, that changes how a tensor is differentiated.
#[inline]
pub(crate) fn refuse(py: Python<'_>, method: &str) -> PyResult<()> {
    if OPEN.load(Relaxed) != 0 {
        py.import("pullback._transform")?.call_method1("refuse", (method,))?;
    }
    Ok(())
}
/// Marks a transform as open.
#[pyfunction]
fn _transform_opened() {
    OPEN.fetch_add(1, Relaxed);
}
/// Marks a transform as closed.
#[pyfunction]
fn _transform_closed() {
    let fewer = |open: usize| open.checked_sub(1);
    // (One that was never opened is not counted.)
    let _ = OPEN.fetch_update(Relaxed, Relaxed, fewer);
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_vmap_enter, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_exit, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_is_open, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_add, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_remove, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_level, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_unwrapped, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_fallen_back, module)?)?;
    module.add_function(wrap_pyfunction!(_is_vmap_fallback_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_vmap_fallback_enabled, module)?)?;
    module
        .add_function(wrap_pyfunction!(_debug_only_are_vmap_fallback_warnings_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_debug_only_display_vmap_fallback_warnings, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_begin_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(_vmap_end_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(_func_arguments, module)?)?;
    module.add_function(wrap_pyfunction!(_transform_opened, module)?)?;
    module.add_function(wrap_pyfunction!(_transform_closed, module)?)?;
    module.add_function(wrap_pyfunction!(_func_apart, module)?)?;
    module.add_function(wrap_pyfunction!(_transform_enter, module)?)?;
    module.add_function(wrap_pyfunction!(_transform_exit, module)?)?;
    module.add_function(wrap_pyfunction!(_transform_own, module)?)?;
    module.add_function(wrap_pyfunction!(_func_input, module)?)?;
    module.add_function(wrap_pyfunction!(_func_close, module)?)?;
    module.add_function(wrap_pyfunction!(_func_reaches_out, module)?)?;
    module.add_function(wrap_pyfunction!(_func_detach, module)?)
}
