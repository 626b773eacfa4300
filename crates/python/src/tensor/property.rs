//! The attributes of tensors.

use super::hook::{accumulate_hooks, hooks, set_accumulate_hooks, set_hooks};
use crate::convert::type_name;
use crate::dtype::{PyDType, device_object, dtype_object, layout_object};
use crate::error::raise;
use crate::lock;
use crate::raw::asked::{Fact, ask};
use crate::raw::entry::{Reply, getter, setter};
use crate::raw::object::{as_tensor, shape_of, tensor_of, wrap};
use crate::result::{none, scalar};
use pullback::autograd::{creation, transform};
use pullback::{Layout, Scalar, Tensor, binding};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ptr::null_mut;

fn bool_reply(value: bool) -> Reply {
    // SAFETY: the interpreter is attached in every getter.
    scalar(unsafe { Python::assume_attached() }, Scalar::Bool(value))
}

/// Wraps an optional tensor.
pub(crate) fn optional(tensor: Option<Tensor>) -> Reply {
    tensor.map_or_else(|| Ok(none()), wrap)
}

macro_rules! flags {
    ($($name:ident($t:ident) $body:expr;)*) => {$(
        fn $name(_: Python<'_>, slf: *mut PyObject) -> Reply {
            // SAFETY: a getter of tensors.
            let $t = unsafe { tensor_of(slf) };
            bool_reply($body)
        }
    )*};
}
flags! {
    requires_grad(t) t.requires_grad();
    is_leaf(t) t.is_leaf();
    retains_grad(t) t.retains_grad();
    is_sparse(t) t.layout() == Layout::SparseCoo;
    is_sparse_csr(t) t.layout() == Layout::SparseCsr;
}
macro_rules! kinds {
    ($($name:ident $kind:literal;)*) => {$(
        fn $name(py: Python<'_>, slf: *mut PyObject) -> Reply {
            let kind = PyString::intern(py, $kind);
            // SAFETY: a getter of tensors.
            let answer = unsafe { ask(py, slf, Fact::Device, "is_on", Some(kind.as_any())) };
            // SAFETY: as above.
            answer.unwrap_or_else(|| bool_reply(unsafe { tensor_of(slf) }.device().kind() == $kind))
        }
    )*};
}
kinds! {
    is_cuda "cuda";
    is_cpu "cpu";
    is_meta "meta";
}
fn never(_: Python<'_>, _: *mut PyObject) -> Reply {
    bool_reply(false)
}

macro_rules! ints {
    ($($name:ident($t:ident) $body:expr;)*) => {$(
        fn $name(py: Python<'_>, slf: *mut PyObject) -> Reply {
            // SAFETY: a getter of tensors.
            let $t = unsafe { tensor_of(slf) };
            scalar(py, Scalar::Int($body as i64))
        }
    )*};
}
ints! {
    itemsize(t) t.dtype().size();
    output_nr(t) t.output_nr();
    version(t) t.tracked_version().map_err(raise)?;
    cdata(t) t.id();
}

/// Getters whose value the class of a tensor may override.
macro_rules! asked {
    ($($name:ident($py:ident, $slf:ident, $t:ident), $fact:ident, $question:literal: $own:expr;)*) => {$(
        fn $name($py: Python<'_>, $slf: *mut PyObject) -> Reply {
            // SAFETY: a getter of tensors.
            if let Some(answer) = unsafe { ask($py, $slf, Fact::$fact, $question, None) } {
                return answer;
            }
            // SAFETY: as above.
            let $t = unsafe { tensor_of($slf) };
            $own
        }
    )*};
}
asked! {
    // SAFETY: a getter of tensors.
    shape(py, slf, _t), Sizes, "shape": unsafe { shape_of(slf) };
    ndim(py, slf, t), Sizes, "dim": scalar(py, Scalar::Int(t.ndim() as i64));
    nbytes(py, slf, t), Sizes, "nbytes": scalar(py, Scalar::Int(t.numel() * t.dtype().size() as i64));
    device(py, slf, t), Device, "device": Ok(device_object(py, t.device())?.into_ptr());
    layout(py, slf, t), Layout, "layout": Ok(layout_object(py, t.layout()).into_ptr());
}
fn dtype(py: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    Ok(dtype_object(py, unsafe { tensor_of(slf) }.dtype()).into_ptr())
}
fn grad_fn(py: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let node = tensor.grad_fn().map_err(raise)?;
    // (The history of a view is made on access, after a write to its base.)
    creation::announce().map_err(raise)?;
    match node {
        Some(node) => Ok(crate::autograd::node::wrap_grad_fn(py, tensor, node)?.into_ptr()),
        None => Ok(none()),
    }
}
fn set_grad_fn(_: Python<'_>, slf: *mut PyObject, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    match value {
        None => {
            Err(PyRuntimeError::new_err("Deletion of _grad_fn not allowed. Detach tensor instead!"))
        }
        // SAFETY: a setter of tensors.
        Some(v) if v.is_none() => unsafe { tensor_of(slf) }.detach_().map_err(raise),
        Some(_) => Err(PyRuntimeError::new_err("_grad_fn can be only set to None")),
    }
}
fn set_requires_grad(
    _: Python<'_>,
    slf: *mut PyObject,
    value: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    // SAFETY: a setter of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let flag = value.as_ref().and_then(|v| v.cast::<pyo3::types::PyBool>().ok());
    let Some(flag) = flag else {
        return Err(PyRuntimeError::new_err("requires_grad must be a bool"));
    };
    let flag = flag.is_true();
    if !tensor.is_leaf() {
        let advice = if flag {
            ""
        } else {
            " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        };
        return Err(PyRuntimeError::new_err(format!(
            "you can only change requires_grad flags of leaf variables.{advice}"
        )));
    }
    if flag && !tensor.dtype().is_differentiable() {
        return Err(PyRuntimeError::new_err(
            "only Tensors of floating point and complex dtype can require gradients",
        ));
    }
    tensor.requires_grad_(flag).map(|_| ()).map_err(raise)
}
fn grad(_: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    let tensor = unsafe { tensor_of(slf) };
    if tensor.requires_grad()
        && !tensor.is_leaf()
        && !tensor.retains_grad()
        && tensor.grad().is_none()
    {
        binding::warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.".into());
        // A warning that was turned into an error is waiting.
        // SAFETY: the interpreter is attached.
        unsafe {
            if !ffi::PyErr_Occurred().is_null() {
                return Err(PyErr::fetch(Python::assume_attached()));
            }
        }
    }
    optional(tensor.grad())
}
fn set_grad(py: Python<'_>, slf: *mut PyObject, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    // SAFETY: a setter of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let Some(value) = value.filter(|v| !v.is_none()) else {
        return tensor.set_grad(None).map_err(raise);
    };
    let Some(grad) = as_tensor(&value) else {
        return Err(PyTypeError::new_err(format!(
            "assigned grad expected to be a Tensor or None but got grad of type {}",
            type_name(&value)
        )));
    };
    tensor.set_grad(Some(grad.clone())).map_err(raise)?;
    if grad.requires_grad() { crate::autograd::cycle::watch(py) } else { Ok(()) }
}
fn grad_dtype(py: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    Ok(match unsafe { tensor_of(slf) }.grad_dtype() {
        Some(dtype) => dtype_object(py, dtype).into_ptr(),
        None => py.None().into_ptr(),
    })
}
fn set_grad_dtype(
    _: Python<'_>,
    slf: *mut PyObject,
    value: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some(value) = value else {
        return Err(PyRuntimeError::new_err(
            "Deleting grad_dtype is not allowed: set it to the tensor's dtype, or to None for gradients of any dtype",
        ));
    };
    let dtype = value.cast::<PyDType>().ok().map(|dtype| dtype.get().0);
    if dtype.is_none() && !value.is_none() {
        return Err(PyRuntimeError::new_err(format!(
            "grad_dtype must be a torch.dtype or None, but got {}",
            type_name(&value)
        )));
    }
    // SAFETY: a setter of tensors.
    unsafe { tensor_of(slf) }.set_grad_dtype(dtype).map_err(raise)
}
fn data(_: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    wrap(unsafe { tensor_of(slf) }.data().map_err(raise)?)
}
fn set_data(_: Python<'_>, slf: *mut PyObject, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    // SAFETY: a setter of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let Some(value) = value else {
        return Err(PyRuntimeError::new_err(
            "Deleting tensor data is not allowed. Delete tensor instead!",
        ));
    };
    let Some(other) = as_tensor(&value) else {
        return Err(PyTypeError::new_err(format!(
            "Variable data has to be a tensor, but got {}",
            type_name(&value)
        )));
    };
    transform::check_data(tensor).map_err(raise)?;
    tensor.set_data(other).map_err(raise)?;
    lock::give_back();
    Ok(())
}
fn base(_: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a getter of tensors.
    optional(unsafe { tensor_of(slf) }.base().cloned())
}
fn name(_: Python<'_>, _: *mut PyObject) -> Reply {
    Ok(none())
}

fn volatile(_: Python<'_>, _: *mut PyObject) -> Reply {
    binding::warn("volatile was removed (Variable.volatile is always False)".into());
    bool_reply(false)
}
fn set_volatile(_: Python<'_>, _: *mut PyObject, _: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    binding::warn(
        "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.".into(),
    );
    Ok(())
}

/// The table of getters and setters.
pub(crate) fn table() -> Vec<ffi::PyGetSetDef> {
    let entry = |name: &'static std::ffi::CStr, get, set| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set,
        doc: null_mut(),
        closure: null_mut(),
    };
    macro_rules! read {
        ($name:literal, $get:path) => {
            entry($name, getter!($name, $get), None)
        };
    }
    macro_rules! both {
        ($name:literal, $get:path, $set:path) => {
            entry($name, getter!($name, $get), Some(setter!($name, $set)))
        };
    }
    vec![
        read!(c"shape", shape),
        read!(c"dtype", dtype),
        read!(c"device", device),
        read!(c"layout", layout),
        read!(c"ndim", ndim),
        read!(c"itemsize", itemsize),
        read!(c"nbytes", nbytes),
        read!(c"output_nr", output_nr),
        read!(c"_version", version),
        read!(c"_cdata", cdata),
        read!(c"_base", base),
        read!(c"name", name),
        read!(c"grad_fn", grad_fn),
        both!(c"_grad_fn", grad_fn, set_grad_fn),
        both!(c"requires_grad", requires_grad, set_requires_grad),
        both!(c"grad", grad, set_grad),
        both!(c"_grad", grad, set_grad),
        both!(c"grad_dtype", grad_dtype, set_grad_dtype),
        both!(c"data", data, set_data),
        both!(c"_backward_hooks", hooks, set_hooks),
        both!(c"_post_accumulate_grad_hooks", accumulate_hooks, set_accumulate_hooks),
        both!(c"volatile", volatile, set_volatile),
        read!(c"is_leaf", is_leaf),
        read!(c"retains_grad", retains_grad),
        read!(c"is_sparse", is_sparse),
        read!(c"is_sparse_csr", is_sparse_csr),
        read!(c"is_cuda", is_cuda),
        read!(c"is_cpu", is_cpu),
        read!(c"is_meta", is_meta),
        read!(c"is_quantized", never),
        read!(c"is_mkldnn", never),
        read!(c"is_nested", never),
        read!(c"is_mps", never),
        read!(c"is_xpu", never),
        read!(c"is_vulkan", never),
    ]
}
