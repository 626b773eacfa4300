//! The methods of tensors that are no ops.

use crate::autograd::hook::{register, register_accumulate};
use crate::autograd::hook_dicts::{HookDicts, HookKind};
use crate::autograd::transform;
use crate::convert::{exact_int, has_index, to_int, type_name};
use crate::dtype::as_device;
use crate::error::raise;
use crate::lock;
use crate::raw::asked::{Fact, ask};
use crate::raw::entry::{Args, Reply, bare_method, fast, method, noargs};
use crate::raw::object::{
    TensorObject, as_tensor, base_type, set_hooks, shape_of, tensor_of, wrap, wrap_new,
};
use crate::result::{new_list, none, scalar};
use crate::tensor::{construct, conversion, display, dlpack, legacy, numpy, storage, view};
use crate::thread_guard::ThreadGuard;
use pullback::autograd::torch_dispatch;
use pullback::tensor::shape::wrap_dim;
use pullback::{DType, MemoryFormat, Scalar, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyMethodDef, PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::ptr::null_mut;

fn this<'a>(slf: *mut PyObject) -> &'a Tensor {
    // SAFETY: methods are called on tensors only, which the interpreter checks.
    unsafe { tensor_of(slf) }
}

fn same(slf: *mut PyObject) -> Reply {
    // SAFETY: a live object.
    unsafe { ffi::Py_INCREF(slf) };
    Ok(slf)
}

fn size(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let tensor = this(slf);
    if tensor.has_torch_dispatch() {
        let [dim] = args.bind(py, "size", ["dim"], 0)?;
        let dim = dim.filter(|d| !d.is_none());
        let question = if dim.is_some() { "size" } else { "shape" };
        // SAFETY: a method of tensors.
        if let Some(answer) = unsafe { ask(py, slf, Fact::Sizes, question, dim.as_ref()) } {
            return answer;
        }
    }
    if args.all.is_empty() {
        // SAFETY: a method of tensors.
        return unsafe { shape_of(slf) };
    }
    if let (&[dim], 0) = (args.all, args.keywords())
        && let Some(wanted) = exact_int(py, dim)
        && tensor.ndim() > 0
    {
        let at = wrap_dim(wanted, tensor.ndim()).map_err(raise)?;
        return scalar(py, Scalar::Int(tensor.shape()[at]));
    }
    let [dim] = args.bind(py, "size", ["dim"], 0)?;
    match dim.filter(|d| !d.is_none()) {
        // SAFETY: as above.
        None => unsafe { shape_of(slf) },
        Some(dim) => one_dim(py, tensor, &dim, tensor.shape(), "size"),
    }
}

/// The address of the first element, to be read; 0 if there is none.
fn const_data_address(tensor: &Tensor) -> PyResult<i64> {
    if tensor.is_sparse() {
        return Err(PyRuntimeError::new_err(
            "Cannot access data pointer of Tensor that doesn't have storage",
        ));
    }
    Ok(if tensor.numel() == 0 { 0 } else { tensor.data_ptr() as i64 })
}

/// The address of the first element, to be written; 0 if there is none. Memory that is shared with
/// a lazy clone is copied first.
fn data_address(tensor: &Tensor) -> PyResult<i64> {
    if !tensor.is_sparse() {
        tensor.data_ptr_mut().map_err(raise)?;
    }
    const_data_address(tensor)
}

fn stride(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let tensor = this(slf);
    let [dim] = args.bind(py, "stride", ["dim"], 0)?;
    let dim = dim.filter(|d| !d.is_none());
    let question = if dim.is_some() { "stride" } else { "strides" };
    // SAFETY: a method of tensors.
    if let Some(answer) = unsafe { ask(py, slf, Fact::Strides, question, dim.as_ref()) } {
        return answer;
    }
    if tensor.layout().is_compressed() {
        return Err(PyRuntimeError::new_err("Sparse CSR tensors do not have strides"));
    }
    match dim {
        None => Ok(PyTuple::new(py, tensor.strides())?.into_any().into_ptr()),
        Some(dim) => one_dim(py, tensor, &dim, tensor.strides(), "stride"),
    }
}

fn one_dim(
    py: Python<'_>,
    tensor: &Tensor,
    dim: &Bound<'_, PyAny>,
    values: &[i64],
    name: &str,
) -> Reply {
    let is_whole = as_tensor(dim).map_or_else(
        || has_index(dim) && !dim.is_instance_of::<pyo3::types::PyBool>(),
        |t| t.numel() == 1 && !t.dtype().is_differentiable() && t.dtype() != DType::Bool,
    );
    if !is_whole {
        return Err(PyTypeError::new_err(format!(
            "{name}(): argument 'dim' (position 1) must be int, not {}",
            type_name(dim)
        )));
    }
    let wanted = to_int(dim)?;
    if tensor.ndim() == 0 {
        return Err(pyo3::exceptions::PyIndexError::new_err(format!(
            "Dimension specified as {wanted} but tensor has no dimensions"
        )));
    }
    let at = wrap_dim(wanted, tensor.ndim()).map_err(raise)?;
    scalar(py, Scalar::Int(values[at]))
}

macro_rules! facts {
    ($($name:ident($t:ident) $value:expr;)*) => {$(
        fn $name(py: Python<'_>, slf: *mut PyObject) -> Reply {
            let $t = this(slf);
            scalar(py, $value)
        }
    )*};
}
facts! {
    data_ptr(t) Scalar::Int(data_address(t)?);
    const_data_ptr(t) Scalar::Int(const_data_address(t)?);
    element_size(t) Scalar::Int(t.dtype().size() as i64);
    is_floating_point(t) Scalar::Bool(t.dtype().is_floating_point());
    is_complex(t) Scalar::Bool(t.dtype().is_complex());
    is_signed(t) Scalar::Bool(t.dtype().is_signed());
    is_inference(t) Scalar::Bool(t.is_inference());
    is_view(t) Scalar::Bool(t.is_view());
    is_conj(t) Scalar::Bool(t.is_conj());
    is_neg(t) Scalar::Bool(t.is_neg());
    use_count(t) Scalar::Int(t.use_count() as i64);
}
/// Methods whose value the class of a tensor may override.
macro_rules! asked {
    ($($name:ident($t:ident), $fact:ident, $question:literal: $own:expr;)*) => {$(
        fn $name(py: Python<'_>, slf: *mut PyObject) -> Reply {
            // SAFETY: a method of tensors.
            if let Some(answer) = unsafe { ask(py, slf, Fact::$fact, $question, None) } {
                return answer;
            }
            let $t = this(slf);
            scalar(py, Scalar::Int($own))
        }
    )*};
}
asked! {
    dim(t), Sizes, "dim": t.ndim() as i64;
    numel(t), Sizes, "numel": t.numel();
    storage_offset(t), Sizes, "storage_offset": t.storage_offset();
    get_device(t), Device, "device_index": t.device().index().map_or(-1, i64::from);
}
fn no(py: Python<'_>, _: *mut PyObject) -> Reply {
    scalar(py, Scalar::Bool(false))
}

fn is_contiguous(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [format] = args.bind(py, "is_contiguous", ["memory_format"], 0)?;
    let tensor = this(slf);
    let given = format.as_ref().filter(|f| !f.is_none());
    // SAFETY: a method of tensors.
    if let Some(answer) = unsafe { ask(py, slf, Fact::Strides, "is_contiguous", given) } {
        return answer;
    }
    let format = conversion::format_of("is_contiguous", format.as_ref())?;
    let format = format.unwrap_or(MemoryFormat::Contiguous);
    let is_contiguous = match format {
        // (Tensors of such a class keep any order: only whether it is the plain one can be
        // queried.)
        MemoryFormat::Contiguous | MemoryFormat::Preserve => tensor.is_contiguous(),
        other => tensor.is_contiguous_in(other),
    };
    scalar(py, Scalar::Bool(is_contiguous))
}

fn item(py: Python<'_>, slf: *mut PyObject) -> Reply {
    if let Some(value) = this(slf).item_float() {
        return Ok(value.into_pyobject(py)?.into_any().into_ptr());
    }
    scalar(py, this(slf).item().map_err(raise)?)
}

fn tolist(py: Python<'_>, slf: *mut PyObject) -> Reply {
    let tensor = this(slf);
    tensor.check_elements().map_err(raise)?;
    check_empty_lists(tensor)?;
    if tensor.dtype() == DType::F4E2M1FNX2 {
        return Err(PyRuntimeError::new_err("load_scalar: invalid type"));
    }
    let values = tensor.elements().map_err(raise)?;
    let mut at = 0;
    Ok(nest(py, tensor.shape(), &values, &mut at)?.into_ptr())
}

/// The most empty lists that `tolist` makes: their objects take some gigabytes.
const MOST_EMPTY_LISTS: i64 = 1 << 26;

/// Refuses to list a tensor without elements whose sizes in front of the zero ask for an absurd number of empty lists.
fn check_empty_lists(tensor: &Tensor) -> PyResult<()> {
    if tensor.numel() != 0 {
        return Ok(());
    }
    let in_front = tensor.shape().iter().take_while(|&&size| size != 0);
    let count = in_front.fold(1_i64, |count, &size| count.saturating_mul(size));
    if count <= MOST_EMPTY_LISTS {
        return Ok(());
    }
    Err(raise(pullback::Error::out_of_memory(format!(
        "tolist(): a tensor of shape {:?} has no elements, but {count} empty lists, more than the {MOST_EMPTY_LISTS} that are made",
        tensor.shape()
    ))))
}

fn nest<'py>(
    py: Python<'py>,
    shape: &[i64],
    values: &[Scalar],
    at: &mut usize,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&size, rest)) = shape.split_first() else {
        *at += 1;
        // SAFETY: a new reference.
        return Ok(unsafe { Bound::from_owned_ptr(py, scalar(py, values[*at - 1])?) });
    };
    new_list(py, size as usize, |index| {
        if index & 0x3fff == 0x3fff {
            py.check_signals()?;
        }
        if rest.is_empty() {
            *at += 1;
            return scalar(py, values[*at - 1]);
        }
        Ok(nest(py, rest, values, at)?.into_ptr())
    })
}

fn requires_grad_(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [flag] = args.bind(py, "requires_grad_", ["requires_grad"], 0)?;
    let flag = flag.map_or(Ok(true), |f| {
        f.cast::<pyo3::types::PyBool>().map(pyo3::types::PyBoolMethods::is_true).map_err(|_| {
            PyTypeError::new_err(format!(
                "requires_grad_(): argument 'requires_grad'{} must be bool, not {}",
                if args.positional > 0 { " (position 1)" } else { "" },
                type_name(&f)
            ))
        })
    })?;
    transform::refuse(py, "requires_grad_")?;
    this(slf).requires_grad_(flag).map_err(raise)?;
    same(slf)
}
fn detach_(py: Python<'_>, slf: *mut PyObject) -> Reply {
    let object = slf.cast::<TensorObject>();
    let (node, nr) = (this(slf).grad_fn().map_err(raise)?, this(slf).output_nr());
    // SAFETY: a method of tensors.
    let hooks = unsafe { HookDicts::current(py, object, node.as_ref()) };
    this(slf).detach_().map_err(raise)?;
    if let Some(hooks) = hooks.filter(|_| node.is_some()) {
        // SAFETY: as above.
        unsafe { hooks.get().detach(py, object, nr)? };
    }
    same(slf)
}

/// The dictionary of the tensor's hooks, if there is one; the dictionary of an overwritten value is
/// dropped.
pub(crate) fn current_hooks<'py>(
    py: Python<'py>,
    slf: *mut PyObject,
    kind: HookKind,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let object = slf.cast::<TensorObject>();
    // SAFETY: a method or getter of tensors.
    unsafe {
        if (*object).hooks().is_null() {
            return Ok(None);
        }
        let node = this(slf).grad_fn().map_err(raise)?;
        let hooks = HookDicts::current(py, object, node.as_ref());
        if hooks.is_none() {
            set_hooks(object, None);
        }
        Ok(hooks.and_then(|hooks| hooks.get().get(py, kind)))
    }
}
fn retain_grad(py: Python<'_>, slf: *mut PyObject) -> Reply {
    transform::refuse(py, "retain_grad")?;
    this(slf).retain_grad().map_err(raise)?;
    Ok(none())
}

fn resize_(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let mut given = args.positionals(py);
    let mut format = None;
    for (name, value) in args.to_python(py)?.1.iter() {
        match name.extract::<&str>()? {
            "size" if given.is_empty() => given.push(value),
            "memory_format" => format = conversion::format_of("resize_", Some(&value))?,
            other => {
                return Err(PyTypeError::new_err(format!(
                    "resize_() got an unexpected keyword argument '{other}'"
                )));
            }
        }
    }
    if given.is_empty() {
        return Err(PyTypeError::new_err(
            "resize_() missing 1 required positional arguments: \"size\"",
        ));
    }
    let sizes: Vec<i64> = match given.as_slice() {
        [one] if one.is_instance_of::<PyTuple>() || one.is_instance_of::<PyList>() => {
            one.extract()?
        }
        [one] if !has_index(one) || as_tensor(one).is_some_and(|t| t.numel() != 1) => {
            return Err(PyTypeError::new_err(format!(
                "resize_(): argument 'size' (position 1) must be tuple of ints, not {}",
                type_name(one)
            )));
        }
        many => many.iter().map(to_int).collect::<PyResult<_>>()?,
    };
    this(slf).resize_in(&sizes, format).map_err(raise)?;
    lock::give_back();
    same(slf)
}

/// `x.resize_as_(the_template, *, memory_format=None)`: `resize_` to the sizes of another tensor, and to its memory format if that
/// is to be preserved.
fn resize_as_(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["the_template", "memory_format"];
    let [template, format] = args.bind(py, "resize_as_", names, 1)?;
    let template = template.expect("required");
    let Some(like) = as_tensor(&template) else {
        return Err(PyTypeError::new_err(format!(
            "resize_as_(): argument 'the_template' (position 1) must be Tensor, not {}",
            type_name(&template)
        )));
    };
    let format = match conversion::format_of("resize_as_", format.as_ref())? {
        Some(MemoryFormat::Preserve) => Some(like.suggested_format()),
        other => other,
    };
    this(slf).resize_in(like.shape(), format).map_err(raise)?;
    lock::give_back();
    same(slf)
}

/// A tensor of `size` in the memory of `source`, for `x.set_(source, storage_offset, size, stride=())`.
fn part_of(
    source: &Tensor,
    offset: Option<Bound<'_, PyAny>>,
    size: Option<Bound<'_, PyAny>>,
    stride: Option<Bound<'_, PyAny>>,
) -> PyResult<Tensor> {
    let (Some(offset), Some(size)) = (offset, size) else {
        return Err(PyTypeError::new_err(
            "set_() received an invalid combination of arguments - storage_offset and size go together",
        ));
    };
    if !source.is_contiguous() {
        return Err(PyRuntimeError::new_err(
            "passed in tensor to be used as storage must be contiguous",
        ));
    }
    let offset = source.storage_offset().saturating_add(to_int(&offset)?);
    let size: Vec<i64> = size.extract()?;
    let stride: Vec<i64> = stride.map_or(Ok(Vec::new()), |s| s.extract())?;
    let stride = if stride.is_empty() {
        pullback::tensor::contiguous_strides(&size).to_vec()
    } else {
        stride
    };
    // tidy: not an op here, but the check of what the memory holds
    let alias = source.detached_alias().map_err(raise)?;
    alias.as_strided(&size, &stride, Some(offset)).map_err(raise)
}

fn set_(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["source", "storage_offset", "size", "stride"];
    let [source, offset, size, stride] = args.bind(py, "set_", names, 0)?;
    let tensor = this(slf);
    let made = match source {
        None => pullback::TensorSpec::beside(tensor, &[0]).empty().map_err(raise)?,
        Some(source) => match as_tensor(&source) {
            Some(source) if offset.is_none() && size.is_none() && stride.is_none() => {
                source.clone()
            }
            Some(source) => part_of(source, offset, size, stride)?,
            None => storage::tensor_over(
                &source,
                tensor.dtype(),
                offset.map_or(Ok(0), |o| to_int(&o))?,
                size.map(|s| s.extract()).transpose()?,
                stride.map(|s| s.extract()).transpose()?,
            )?,
        },
    };
    tensor.set_storage(&made).map_err(raise)?;
    lock::give_back();
    same(slf)
}
fn is_set_to(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [other] = args.bind(py, "is_set_to", ["tensor"], 1)?;
    let (a, other) = (this(slf), other.expect("required"));
    let Some(b) = as_tensor(&other) else {
        return Err(PyTypeError::new_err("is_set_to(): argument 'tensor' must be Tensor"));
    };
    let storages = a.storage().map(|s| s.id()) == b.storage().map(|s| s.id());
    let equal = storages
        && a.data_ptr() == b.data_ptr()
        && a.shape() == b.shape()
        && a.strides() == b.strides()
        && (a.is_conj(), a.is_neg()) == (b.is_conj(), b.is_neg());
    scalar(py, Scalar::Bool(equal))
}
fn is_same_size(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [other] = args.bind(py, "is_same_size", ["other"], 1)?;
    let other = other.expect("required");
    let Some(other) = as_tensor(&other) else {
        return Err(PyTypeError::new_err(format!(
            "is_same_size(): argument 'other' (position 1) must be Tensor, not {}",
            type_name(&other)
        )));
    };
    let same = other.shape() == this(slf).shape();
    scalar(py, Scalar::Bool(same))
}

/// The dictionary of hooks for the tensor's present `grad_fn`, made and registered if need be.
fn hook_dict(py: Python<'_>, slf: *mut PyObject) -> Reply {
    let tensor = this(slf);
    if !tensor.requires_grad() {
        return Err(PyRuntimeError::new_err(
            "cannot register a hook on a tensor that doesn't require gradient",
        ));
    }
    // SAFETY: a method of tensors.
    let hooks = unsafe { HookDicts::of_tensor(py, slf.cast())? };
    let kind = HookKind::Tensor(tensor.output_nr());
    let dict = hooks.get().get_or_make(py, kind, |hooks| register(tensor, hooks))?;
    Ok(dict.into_any().into_ptr())
}

/// The dictionary of hooks that run after this leaf's `.grad` was updated.
fn accumulate_hook_dict(py: Python<'_>, slf: *mut PyObject) -> Reply {
    let tensor = this(slf);
    // SAFETY: a method of tensors.
    let hooks = unsafe { HookDicts::of_tensor(py, slf.cast())? };
    let register = |hooks| Ok(register_accumulate(tensor, hooks));
    let dict = hooks.get().get_or_make(py, HookKind::Accumulate, register)?;
    Ok(dict.into_any().into_ptr())
}

/// A class of tensors.
pub(crate) fn subclass_type(cls: &Bound<'_, PyAny>) -> PyResult<*mut PyTypeObject> {
    // SAFETY: checked to be a type before it is read as one.
    unsafe {
        if ffi::PyType_Check(cls.as_ptr()) == 0 {
            return Err(PyTypeError::new_err(format!(
                "cls must be a type (got {})",
                type_name(cls)
            )));
        }
        let ty = cls.as_ptr().cast::<PyTypeObject>();
        if ffi::PyType_IsSubtype(ty, base_type()) == 0 {
            return Err(PyTypeError::new_err(
                "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from Tensor.",
            ));
        }
        Ok(ty)
    }
}

/// `Tensor._make_subclass(cls, data, require_grad=False)`.
fn make_subclass(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [cls, data, requires_grad] =
        args.bind(py, "_make_subclass", ["cls", "data", "require_grad"], 2)?;
    let (cls, data) = (cls.expect("required"), data.expect("required"));
    let ty = subclass_type(&cls)?;
    let Some(tensor) = as_tensor(&data) else {
        return Err(PyTypeError::new_err(format!(
            "_make_subclass(): argument 'data' (position 2) must be Tensor, not {}",
            type_name(&data)
        )));
    };
    let made = tensor.detached_alias().map_err(raise)?;
    if requires_grad.is_some_and(|r| r.is_truthy().unwrap_or(false)) {
        crate::result::require_grad(&made)?;
    }
    // SAFETY: a subclass of `TensorBase`; a fresh tensor.
    unsafe { wrap_new(made, ty) }
}

/// `x.as_subclass(cls)`: an alias with history.
fn as_subclass(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [cls] = args.bind(py, "as_subclass", ["cls"], 1)?;
    let ty = subclass_type(&cls.expect("required"))?;
    let made = {
        // The library makes the alias, not the program: no mode sees it. (A class with
        // `__torch_dispatch__` does.)
        let is_off = torch_dispatch::is_disabled() || !this(slf).has_torch_dispatch();
        let _off = ThreadGuard::new(torch_dispatch::set_disabled, is_off);
        this(slf).alias().map_err(raise)?
    };
    // SAFETY: a subclass of `TensorBase`; a fresh tensor.
    unsafe { wrap_new(made, ty) }
}

fn check_device(name: &str, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match device.filter(|d| !d.is_none()) {
        Some(device) if as_device(device)?.is_none() => Err(PyTypeError::new_err(format!(
            "{name}(): argument 'device' (position 1) must be torch.device, not {}",
            type_name(device)
        ))),
        _ => Ok(()),
    }
}

/// `x.is_pinned(device=None)`: there is no device to pin memory for.
fn is_pinned(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [device] = args.bind(py, "is_pinned", ["device"], 0)?;
    check_device("is_pinned", device.as_ref())?;
    crate::result::scalar(py, pullback::Scalar::Bool(false))
}

/// `x.pin_memory(device=None)`: an error without an accelerator.
fn pin_memory(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [device] = args.bind(py, "pin_memory", ["device"], 0)?;
    check_device("pin_memory", device.as_ref())?;
    Err(construct::no_accelerator())
}

/// The table of methods.
#[allow(clippy::too_many_lines, reason = "a table, a line for each method")]
pub(crate) fn table() -> Vec<PyMethodDef> {
    use std::ffi::{CStr, CString};
    let def = |name: &'static CStr, meth, flags| PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: meth,
        ml_flags: flags,
        ml_doc: null_mut(),
    };
    let without = |name: &'static CStr, meth| {
        // (The form in which CPython keeps a signature.)
        let signature = format!("{}($self, /)\n--\n\n", name.to_string_lossy());
        let doc = CString::new(signature).unwrap_or_default().into_raw();
        PyMethodDef { ml_doc: doc, ..def(name, meth, ffi::METH_NOARGS) }
    };
    let with_args = |name, meth| def(name, meth, ffi::METH_FASTCALL | ffi::METH_KEYWORDS);
    let fixed =
        |name, meth| def(name, meth, ffi::METH_FASTCALL | ffi::METH_KEYWORDS | ffi::METH_STATIC);
    // Methods that subclasses may override.
    macro_rules! plain {
        ($name:literal, $function:path) => {
            without($name, bare_method!($name, $function))
        };
    }
    macro_rules! args {
        ($name:literal, $function:path) => {
            with_args($name, method!($name, $function))
        };
    }
    vec![
        args!(c"size", size),
        args!(c"stride", stride),
        plain!(c"dim", dim),
        plain!(c"ndimension", dim),
        plain!(c"numel", numel),
        plain!(c"nelement", numel),
        plain!(c"storage_offset", storage_offset),
        plain!(c"data_ptr", data_ptr),
        plain!(c"const_data_ptr", const_data_ptr),
        plain!(c"element_size", element_size),
        plain!(c"is_floating_point", is_floating_point),
        plain!(c"is_complex", is_complex),
        plain!(c"is_signed", is_signed),
        plain!(c"is_inference", is_inference),
        plain!(c"_is_view", is_view),
        args!(c"_view_func", view::view_func),
        args!(c"_view_func_unsafe", view::view_func_unsafe),
        args!(c"_rev_view_func_unsafe", view::rev_view_func_unsafe),
        without(c"_use_count", noargs!(use_count)),
        plain!(c"get_device", get_device),
        plain!(c"is_conj", is_conj),
        plain!(c"is_neg", is_neg),
        plain!(c"_is_zerotensor", no),
        args!(c"is_pinned", is_pinned),
        args!(c"pin_memory", pin_memory),
        // tidy: not an op
        args!(c"is_contiguous", is_contiguous),
        plain!(c"item", item),
        plain!(c"tolist", tolist),
        args!(c"requires_grad_", requires_grad_),
        plain!(c"detach_", detach_),
        plain!(c"retain_grad", retain_grad),
        args!(c"resize_", resize_),
        args!(c"resize_as_", resize_as_),
        args!(c"set_", set_),
        args!(c"is_set_to", is_set_to),
        args!(c"is_same_size", is_same_size),
        without(c"_hook_dict", noargs!(hook_dict)),
        without(c"_accumulate_hook_dict", noargs!(accumulate_hook_dict)),
        fixed(c"_make_subclass", fast!(make_subclass)),
        fixed(c"_make_wrapper_subclass", fast!(crate::torch_dispatch::make_wrapper_subclass)),
        with_args(c"as_subclass", fast!(as_subclass)),
        args!(c"new", legacy::new),
        args!(c"new_tensor", construct::new_tensor),
        args!(c"to", conversion::to),
        args!(c"type", conversion::type_),
        args!(c"cpu", conversion::cpu),
        args!(c"cuda", conversion::cuda),
        args!(c"float", conversion::float),
        args!(c"double", conversion::double),
        args!(c"half", conversion::half),
        args!(c"bfloat16", conversion::bfloat16),
        args!(c"long", conversion::long),
        args!(c"int", conversion::int),
        args!(c"short", conversion::short),
        args!(c"char", conversion::char),
        args!(c"byte", conversion::byte),
        args!(c"bool", conversion::bool),
        args!(c"chalf", conversion::chalf),
        args!(c"cfloat", conversion::cfloat),
        args!(c"cdouble", conversion::cdouble),
        args!(c"numpy", numpy::numpy),
        plain!(c"untyped_storage", storage::untyped_storage),
        args!(c"_to_dlpack", dlpack::export),
        with_args(c"_repr", fast!(display::repr_method)),
    ]
}

/// Wraps a tensor for PyO3 code.
pub(crate) fn wrapped(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, wrap(tensor)?) })
}
