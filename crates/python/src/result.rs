//! Running a bound call and wrapping its results.

use crate::bind::{CallKind, CallPlan, Extras};
use crate::error::{raise, refused};
use crate::explain::raise_of_op;
use crate::lock::{give_back, without_lock};
use crate::raw::entry::Reply;
use crate::raw::object::{is_tensor, tensor_of, wrap};
use pullback::autograd;
use pullback::binding::memory;
use pullback::dispatch::{Arg, Outputs, Traits};
use pullback::{Scalar, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Mutex;

/// The number of elements from which the interpreter is released while the kernel runs.
const RELEASE_FROM: i64 = 50_000;

fn is_large(args: &[Arg<'_>]) -> bool {
    args.iter().any(|arg| match arg {
        Arg::Tensor(t) => t.numel() >= RELEASE_FROM,
        Arg::Tensors(list) => list.iter().map(Tensor::numel).sum::<i64>() >= RELEASE_FROM,
        Arg::Ints(sizes) => sizes.iter().fold(1_i64, |n, &s| n.saturating_mul(s)) >= RELEASE_FROM,
        _ => false,
    })
}

/// Runs the op in the form the plan says and wraps the results.
#[inline]
pub(crate) fn run(py: Python<'_>, plan: &CallPlan, args: &[Arg<'_>], extras: &Extras) -> Reply {
    if extras.out_object.is_some() {
        return run_out(py, plan, args, extras);
    }
    let call = || match plan.kind {
        CallKind::Functional => autograd::call(plan.op, args),
        CallKind::Inplace => autograd::call_inplace(plan.op, args).map(Outputs::One),
    };
    let outputs = if is_large(args) { without_lock(py, call) } else { call() };
    let outputs = outputs.map_err(|error| raise_of_op(py, plan, args, error))?;
    if matches!(plan.kind, CallKind::Inplace) {
        give_back();
    }
    let reply = wrap_outputs(py, plan, outputs)?;
    if extras.requires_grad {
        // SAFETY: a new reference to what was just wrapped.
        unsafe {
            if is_tensor(reply)
                && let Err(error) = require_grad(tensor_of(reply))
            {
                ffi::Py_DECREF(reply);
                return Err(error);
            }
        }
    }
    Ok(reply)
}

/// Applies `requires_grad=True` to a tensor that was just made.
pub(crate) fn require_grad(tensor: &Tensor) -> PyResult<()> {
    if !tensor.dtype().is_differentiable() {
        return Err(PyRuntimeError::new_err(
            "Only Tensors of floating point and complex dtype can require gradients",
        ));
    }
    tensor.requires_grad_(true).map(drop).map_err(raise)
}

#[cold]
fn run_out(py: Python<'_>, plan: &CallPlan, args: &[Arg<'_>], extras: &Extras) -> Reply {
    // SAFETY: checked to be tensors when they were collected.
    let outs: SmallVec<[&Tensor; 2]> =
        extras.outs.iter().map(|&o| unsafe { tensor_of(o) }).collect();
    without_lock(py, || autograd::call_out(plan.op, args, &outs))
        .map_err(|error| raise_of_op(py, plan, args, error))?;
    if plan.op.is(Traits::LIST_OUTPUT) {
        return Ok(none());
    }
    let object = extras.out_object.expect("checked by the caller");
    if outs.len() == 1 && plan.fields.is_none() {
        // SAFETY: a live argument.
        unsafe { ffi::Py_INCREF(object) };
        return Ok(object);
    }
    named(py, plan, all_wrapped(outs.iter().map(|&t| t.clone()))?, true)
}

/// The `out=` value's tensors.
pub(crate) fn collect_outs(
    object: *mut PyObject,
    plan: &CallPlan,
    outs: &mut SmallVec<[*mut PyObject; 2]>,
) -> PyResult<()> {
    // SAFETY: live objects.
    unsafe {
        if is_tensor(object) {
            outs.push(object);
        } else if let Some(items) = crate::convert::items(object) {
            for &item in items {
                if !is_tensor(item) {
                    return Err(PyTypeError::new_err("out must be a Tensor or a tuple of Tensors"));
                }
                outs.push(item);
            }
        }
    }
    // (How many a list has is known only once the op has run.)
    let count = plan.outs;
    if outs.len() != count && !plan.op.is(Traits::LIST_OUTPUT) {
        return Err(PyTypeError::new_err(format!(
            "expected tuple of {count} elements for out, but got {}",
            outs.len()
        )));
    }
    Ok(())
}

#[inline]
fn wrap_outputs(py: Python<'_>, plan: &CallPlan, outputs: Outputs) -> Reply {
    match outputs {
        Outputs::One(tensor) if plan.outs == 1 || !plan.returns_nothing => wrap(tensor),
        Outputs::One(_) => Ok(none()),
        Outputs::Tensors(mut tensors) => {
            if plan.outs == 1 && !plan.op.is(Traits::LIST_OUTPUT) && tensors.len() == 1 {
                return wrap(tensors.pop().expect("one output"));
            }
            if plan.returns_nothing {
                return Ok(none());
            }
            named(py, plan, all_wrapped(tensors)?, false)
        }
        Outputs::Number(number) => scalar(py, number),
    }
}

/// New references to tensors.
fn all_wrapped(tensors: impl IntoIterator<Item = Tensor>) -> PyResult<Vec<*mut PyObject>> {
    let tensors = tensors.into_iter();
    let mut items = memory::with_capacity(tensors.size_hint().0).map_err(refused)?;
    for tensor in tensors {
        let item = wrap(tensor).and_then(|item| {
            memory::push(&mut items, item).map_err(refused).inspect_err(|_| {
                // SAFETY: the new reference that has found no place.
                unsafe { ffi::Py_DECREF(item) };
            })
        });
        if let Err(error) = item {
            // SAFETY: new references, which nobody else has.
            items.iter().for_each(|&item| unsafe { ffi::Py_DECREF(item) });
            return Err(error);
        }
    }
    Ok(items)
}

/// A list of new references, `item` of its places in order.
pub(crate) fn new_list<'py>(
    py: Python<'py>,
    count: usize,
    mut item: impl FnMut(usize) -> Reply,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a new list, whose places are each filled once with a new reference; on an error the rest stays empty.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(count as isize))?;
        for at in 0..count {
            ffi::PyList_SET_ITEM(list.as_ptr(), at as isize, item(at)?);
        }
        Ok(list)
    }
}

/// A new string. (The binding's own conversion panics where there is no memory for it.)
pub(crate) fn new_string(py: Python<'_>, text: &str) -> Reply {
    // SAFETY: text of this length, in UTF-8.
    let string =
        unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize) };
    if string.is_null() { Err(PyErr::fetch(py)) } else { Ok(string) }
}

/// A new reference to `None`.
pub(crate) fn none() -> *mut PyObject {
    // SAFETY: `None` always lives.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}

/// The Python number.
pub(crate) fn scalar(py: Python<'_>, number: Scalar) -> Reply {
    // SAFETY: plain constructors; null means out of memory.
    let object = unsafe {
        match number {
            Scalar::Bool(b) => {
                let object = if b { ffi::Py_True() } else { ffi::Py_False() };
                ffi::Py_INCREF(object);
                object
            }
            Scalar::Int(i) => ffi::PyLong_FromLongLong(i),
            Scalar::UInt(u) => ffi::PyLong_FromUnsignedLongLong(u),
            Scalar::Float(f) => ffi::PyFloat_FromDouble(f),
            Scalar::Complex(re, im) => ffi::PyComplex_FromDoubles(re, im),
        }
    };
    if object.is_null() { Err(PyErr::fetch(py)) } else { Ok(object) }
}

/// A tuple of new references, with names if the op's results have some. What `out=` names is of a type of its own, as in PyTorch.
fn named(py: Python<'_>, plan: &CallPlan, items: Vec<*mut PyObject>, is_out: bool) -> Reply {
    // SAFETY: each item is a new reference that goes into the container.
    unsafe {
        let Some((name, fields)) = &plan.fields else {
            let tuple = ffi::PyTuple_New(items.len() as isize);
            if tuple.is_null() {
                return Err(PyErr::fetch(py));
            }
            for (index, item) in items.into_iter().enumerate() {
                ffi::PyTuple_SET_ITEM(tuple, index as isize, item);
            }
            return Ok(tuple);
        };
        let ty = if is_out {
            return_type(py, &format!("{name}_out"), fields)?
        } else {
            return_type(py, name, fields)?
        };
        let object = ffi::PyStructSequence_New(ty);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        for (index, item) in items.into_iter().enumerate() {
            ffi::PyStructSequence_SetItem(object, index as isize, item);
        }
        Ok(object)
    }
}

struct StructType(*mut ffi::PyTypeObject);
// SAFETY: types live forever and are only used with the GIL held.
unsafe impl Send for StructType {}

static TYPES: Mutex<Option<HashMap<String, StructType>>> = Mutex::new(None);

/// The named tuple type `torch.return_types.<name>`, made on first use.
pub(crate) fn return_type(
    py: Python<'_>,
    name: &str,
    fields: &[String],
) -> PyResult<*mut ffi::PyTypeObject> {
    let mut types = TYPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let types = types.get_or_insert_with(HashMap::new);
    if let Some(found) = types.get(name) {
        return Ok(found.0);
    }
    let text = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let mut list: Vec<ffi::PyStructSequence_Field> = fields
        .iter()
        .map(|f| ffi::PyStructSequence_Field { name: text(f), doc: text("") })
        .collect();
    list.push(ffi::PyStructSequence_Field { name: std::ptr::null(), doc: std::ptr::null() });
    let description = Box::leak(Box::new(ffi::PyStructSequence_Desc {
        name: text(&format!("torch.return_types.{name}")),
        doc: text(""),
        fields: Vec::leak(list).as_mut_ptr(),
        n_in_sequence: fields.len() as i32,
    }));
    // SAFETY: the description lives forever.
    let ty = unsafe { ffi::PyStructSequence_NewType(description) };
    if ty.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a fresh heap type; its printing is replaced before anybody sees it.
    unsafe { (*ty).tp_repr = Some(describe) };
    types.insert(name.to_owned(), StructType(ty));
    Ok(ty)
}

/// `torch.return_types.max(\nvalues=...,\nindices=...)`.
unsafe extern "C" fn describe(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: a named tuple made here.
    unsafe {
        crate::raw::entry::guard(|py| {
            let tuple = Bound::from_borrowed_ptr(py, object);
            let ty = tuple.get_type();
            let name = crate::convert::type_name(&tuple);
            let mut lines = Vec::new();
            let matches = ty.getattr("__match_args__")?;
            for (field, item) in matches.try_iter()?.zip(tuple.try_iter()?) {
                lines.push(format!("{}={}", field?.str()?, item?.repr()?));
            }
            let text = format!("{name}(\n{})", lines.join(",\n"));
            Ok(text.into_pyobject(py)?.into_any().into_ptr())
        })
    }
}
