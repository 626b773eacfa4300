//! Dispatch to `__torch_dispatch__`: types that override ops below autograd.
//!
//! A tensor is marked for the library (`pullback::autograd::torch_dispatch`) when its wrapper is made and its type has
//! the attribute. The library then hands ops on it to [`Classes`], which calls the types' methods and takes their results. They
//! get the op as an `OpOverload` (`pullback/_ops.py`), made once per op and form. Not here: `__torch_function__`, which
//! overrides calls before their arguments are bound (`torch_function`).

use crate::autograd::node::value;
use crate::bind::{CallKind, OpFunction};
use crate::convert::{items, type_name};
use crate::dtype::{as_device, as_dtype, as_layout};
use crate::error::{carry, raise};
use crate::lock::in_python;
use crate::raw::asked::Facts;
use crate::raw::callable;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{as_tensor, class, look_up, wrap_bound, wrap_new};
use crate::thread_guard::ThreadGuard;
use pullback::autograd::torch_dispatch::{self, Dispatched, TorchDispatch};
use pullback::dispatch::{Arg, Form, OpDef, Outputs, TensorVec, Traits, Value};
use pullback::{Scalar, Tensor};
use pullback_schema::Default;
use pullback_schema::python::{PythonForm, accepts_numbers};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::PyTypeObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyTuple, PyType};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// `_disabled_torch_dispatch_impl`: the value of `__torch_dispatch__` in types that override no op.
static DISABLED: AtomicPtr<pyo3::ffi::PyObject> = AtomicPtr::new(null_mut());
/// The objects that stand for ops, by definition and form.
static OVERLOADS: Mutex<Option<OverloadObjects>> = Mutex::new(None);
type OverloadObjects = HashMap<(usize, u8), Py<PyAny>>;

/// Whether a type has a `__torch_dispatch__` that overrides the ops on its tensors.
///
/// # Safety
/// A live type, and the GIL is held.
pub(crate) unsafe fn is_defined_by(ty: *mut PyTypeObject) -> bool {
    if ty == class() {
        return false;
    }
    // SAFETY: the caller's promise.
    let found =
        unsafe { look_up(ty, intern!(Python::assume_attached(), "__torch_dispatch__").as_ptr()) };
    !found.is_null() && found != DISABLED.load(Relaxed)
}

/// The classes of a call's tensors, a subclass before its bases, as what the library calls in place of a kernel.
#[derive(Default)]
pub(crate) struct Classes {
    /// The properties of the tensor that its class overrides.
    pub(crate) facts: Facts,
}

impl TorchDispatch for Classes {
    fn torch_dispatch(
        &self,
        def: &'static OpDef,
        form: Form<'_>,
        args: &[Arg<'_>],
    ) -> pullback::Result<Dispatched> {
        in_python(|py| {
            let call = InterceptedCall::new(py, def, form, args)?;
            let mut unimplemented = String::new();
            for ty in &call.types {
                let method = ty.getattr(intern!(py, "__torch_dispatch__"))?;
                if let Some(results) = call.dispatch_to(&method)? {
                    return Ok(Dispatched::Results(results));
                }
                unimplemented.push_str("  - tensor subclass ");
                unimplemented.push_str(ty.repr()?.to_str()?);
                unimplemented.push('\n');
            }
            Ok(Dispatched::NotImplemented(unimplemented))
        })
        .map_err(carry)
    }
}

/// A call of an op with its arguments as Python objects, ready for any `__torch_dispatch__`.
pub(crate) struct InterceptedCall<'py, 'a> {
    def: &'static OpDef,
    form: Form<'a>,
    overload: Bound<'py, PyAny>,
    types: Vec<Bound<'py, PyType>>,
    positional: Bound<'py, PyTuple>,
    named: Bound<'py, PyDict>,
}

impl<'py, 'a> InterceptedCall<'py, 'a> {
    pub(crate) fn new(
        py: Python<'py>,
        def: &'static OpDef,
        form: Form<'a>,
        args: &[Arg<'_>],
    ) -> PyResult<Self> {
        let (positional, named) = to_python(py, def, form, args)?;
        let types = types_of(py, form, args)?;
        Ok(InterceptedCall {
            def,
            form,
            overload: overload_of(py, def, form)?,
            types,
            positional,
            named,
        })
    }

    /// The results of `method`, a `__torch_dispatch__`, for this call; `None` if it returns `NotImplemented`.
    pub(crate) fn dispatch_to(&self, method: &Bound<'py, PyAny>) -> PyResult<Option<Outputs>> {
        let py = method.py();
        let types = PyTuple::new(py, &self.types)?;
        let reply = method.call1((&self.overload, types, &self.positional, &self.named))?;
        if reply.is(py.NotImplemented()) {
            return Ok(None);
        }
        Ok(Some(match self.form {
            Form::Functional => outputs(self.def, &reply)?,
            Form::Inplace | Form::Out(_) => Outputs::Tensors(TensorVec::new()),
        }))
    }
}

/// The types of a call's tensors that override ops: each once, a subclass before its bases, else in order.
fn types_of<'py>(
    py: Python<'py>,
    form: Form<'_>,
    args: &[Arg<'_>],
) -> PyResult<Vec<Bound<'py, PyType>>> {
    let mut found: Vec<Bound<'py, PyType>> = Vec::new();
    let mut consider = |tensor: &Tensor| -> PyResult<()> {
        if !tensor.has_torch_dispatch() {
            return Ok(());
        }
        let ty = wrap_bound(py, tensor.clone())?.get_type();
        if !found.iter().any(|f| f.is(&ty)) {
            let is_base = |f: &Bound<'_, PyType>| ty.is_subclass(f).unwrap_or(false);
            let index = found.iter().position(is_base).unwrap_or(found.len());
            found.insert(index, ty);
        }
        Ok(())
    };
    for arg in args {
        match arg {
            Arg::Tensor(tensor) => consider(tensor)?,
            Arg::Tensors(list) => list.iter().try_for_each(&mut consider)?,
            Arg::OptTensors(list) => list.iter().flatten().try_for_each(&mut consider)?,
            _ => {}
        }
    }
    if let Form::Out(outs) = form {
        outs.iter().try_for_each(|out| consider(out))?;
    }
    Ok(found)
}

/// The arguments as they are spelled in a call: positional ones without trailing defaults, keyword-only ones without defaults.
fn to_python<'py>(
    py: Python<'py>,
    def: &OpDef,
    form: Form<'_>,
    args: &[Arg<'_>],
) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let (mut positional, named) = (Vec::new(), PyDict::new(py));
    let mut given = 0;
    for (index, (arg, argument)) in args.iter().zip(&def.schema().args).enumerate() {
        // (Only where the call takes one again is a number given as a number.)
        let takes_number =
            accepts_numbers(def.name) || index > 0 && def.is(Traits::NUMBERS_AS_TENSORS);
        let is_default = argument.default.as_ref().is_some_and(|d| is_default(*arg, d));
        if argument.keyword_only {
            if !is_default {
                named.set_item(&argument.name, object(py, *arg, takes_number)?)?;
            }
        } else {
            positional.push(object(py, *arg, takes_number)?);
            if !is_default {
                given = positional.len();
            }
        }
    }
    positional.truncate(given);
    if let Form::Out(outs) = form {
        let outs: PyResult<Vec<_>> = outs.iter().map(|&out| wrap_bound(py, out.clone())).collect();
        match <[_; 1]>::try_from(outs?) {
            Ok([out]) => named.set_item("out", out)?,
            Err(outs) => named.set_item("out", PyTuple::new(py, outs)?)?,
        }
    }
    Ok((PyTuple::new(py, positional)?, named))
}

fn object<'py>(py: Python<'py>, arg: Arg<'_>, takes_number: bool) -> PyResult<Bound<'py, PyAny>> {
    if let Arg::Tensor(tensor) = arg
        && takes_number
        && tensor.is_wrapped_number()
    {
        return value(py, Value::Scalar(tensor.element().map_err(raise)?));
    }
    match arg {
        // Lists are what a signature shows as lists.
        Arg::Tensors(_) | Arg::OptTensors(_) | Arg::Ints(_) | Arg::Floats(_) | Arg::Scalars(_) => {
            let items = value(py, Value::from_arg(arg))?;
            Ok(PyList::new(py, items.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Arg::MemoryFormat(format) => {
            py.import("pullback._C")?.getattr(crate::dtype::memory_format_name(format))
        }
        Arg::Generator(generator) => {
            Ok(Bound::new(py, crate::dtype::PyGenerator(generator.clone()))?.into_any())
        }
        other => value(py, Value::from_arg(other)),
    }
}

fn is_default(arg: Arg<'_>, default: &Default) -> bool {
    match (arg, default) {
        (Arg::None, Default::None) => true,
        (Arg::Bool(a) | Arg::Scalar(Scalar::Bool(a)), Default::Bool(b)) => a == *b,
        (Arg::Int(a) | Arg::Scalar(Scalar::Int(a)), Default::Int(b)) => a == *b,
        (Arg::Float(a) | Arg::Scalar(Scalar::Float(a)), Default::Float(b)) => a == *b,
        (Arg::Float(a), Default::Int(b)) => a == *b as f64,
        (Arg::Str(a), Default::Str(b)) => a == b,
        (Arg::Ints(a), Default::Ints(b)) => a == b.as_slice(),
        (Arg::Ints(a), Default::EmptyList) => a.is_empty(),
        (Arg::Ints(a), Default::Int(b)) => a.iter().all(|a| a == b),
        (Arg::MemoryFormat(a), Default::MemoryFormat(b)) => {
            crate::dtype::memory_format_name(a) == b
        }
        _ => false,
    }
}

/// The object that a `__torch_dispatch__` returned, as outputs of the op.
fn outputs(def: &OpDef, reply: &Bound<'_, PyAny>) -> PyResult<Outputs> {
    let wrong = |what: &Bound<'_, PyAny>| {
        PyRuntimeError::new_err(format!(
            "Unable to cast {} to Tensor: that is what __torch_dispatch__ gave as result of {}",
            type_name(what),
            def.full_name()
        ))
    };
    if let Some(tensor) = as_tensor(reply) {
        return Ok(Outputs::One(tensor.clone()));
    }
    if reply.is_none() && def.schema().returns.is_empty() {
        return Ok(Outputs::Tensors(TensorVec::new()));
    }
    if let Some(list) = items(reply.as_ptr()) {
        let mut tensors = TensorVec::new();
        for &item in list {
            // SAFETY: an item of a live container.
            let item = unsafe { Bound::from_borrowed_ptr(reply.py(), item) };
            tensors.push(as_tensor(&item).ok_or_else(|| wrong(&item))?.clone());
        }
        if !def.is(Traits::LIST_OUTPUT) && tensors.len() != def.outputs.len().max(1) {
            return Err(PyRuntimeError::new_err(format!(
                "__torch_dispatch__ gave {} results of {}, which has {}",
                tensors.len(),
                def.full_name(),
                def.outputs.len().max(1)
            )));
        }
        return Ok(Outputs::Tensors(tensors));
    }
    crate::convert::to_scalar(reply).map(Outputs::Number).map_err(|_| wrong(reply))
}

/// The number of a form, and which form of the op a call of it runs.
fn numbered(def: &OpDef, form: Form<'_>) -> (u8, CallKind) {
    match form {
        _ if def.is(Traits::INPLACE_ONLY) => (1, CallKind::Inplace),
        Form::Functional => (0, CallKind::Functional),
        Form::Inplace => (1, CallKind::Inplace),
        Form::Out(_) => (2, CallKind::Functional),
    }
}

fn overload_of<'py>(
    py: Python<'py>,
    def: &'static OpDef,
    form: Form<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let (number, kind) = numbered(def, form);
    let key = (std::ptr::from_ref(def) as usize, number);
    let known = || OVERLOADS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(found) = known().get_or_insert_default().get(&key) {
        return Ok(found.bind(py).clone());
    }
    let (name, overload) = form.spelled(def);
    let mut function =
        // bounded: by the name of an op.
        OpFunction::new(name.clone().into_owned(), def.module, PythonForm::Function, kind);
    function.ops.push(def);
    let function: &'static OpFunction = Box::leak(Box::new(function));
    let call = callable::object(py, function, false)?;
    let make = py.import("pullback._ops")?.getattr("OpOverload")?;
    let made = make.call1((&*name, &*overload, def.schema_text, call))?;
    let _ = function.object.set(made.clone().unbind());
    // Another thread may have made it first: there is one object for each.
    let kept =
        known().get_or_insert_default().entry(key).or_insert_with(|| made.unbind()).clone_ref(py);
    Ok(kept.into_bound(py))
}

/// All overloads of a name, in-place and `out=` forms included.
#[pyfunction]
fn _overloads<'py>(py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    for def in pullback::ops::registry() {
        if def.name == name {
            found.push(overload_of(py, def, Form::Functional)?);
            if def.is(Traits::OUT) {
                found.push(overload_of(py, def, Form::Out(&[]))?);
            }
        } else if def.is(Traits::INPLACE) && name.strip_suffix('_') == Some(def.name) {
            found.push(overload_of(py, def, Form::Inplace)?);
        }
    }
    Ok(found)
}

/// The arguments of [`make_wrapper_subclass`].
const WRAPPER_ARGUMENTS: [&str; 13] = [
    "cls",
    "size",
    "strides",
    "storage_offset",
    "memory_format",
    "dtype",
    "layout",
    "device",
    "pin_memory",
    "requires_grad",
    "dispatch_sizes_strides_policy",
    "dispatch_device",
    "dispatch_layout",
];

/// `Tensor._make_wrapper_subclass(cls, size, ...)`: a tensor of a class, without elements of its own as far as ops see. (It has
/// memory all the same, all zero, so that whatever passes the class by reads no other memory.)
pub(crate) fn make_wrapper_subclass(
    py: Python<'_>,
    _: *mut pyo3::ffi::PyObject,
    args: Args<'_>,
) -> Reply {
    const NAME: &str = "_make_wrapper_subclass";
    let [
        cls,
        size,
        strides,
        offset,
        _,
        dtype,
        layout,
        device,
        _,
        requires_grad,
        policy,
        asks_device,
        asks_layout,
    ] = args.bind(py, NAME, WRAPPER_ARGUMENTS, 2)?;
    let (cls, size) = (cls.expect("required"), size.expect("required"));
    let ty = crate::tensor::method::subclass_type(&cls)?;
    // SAFETY: a live type.
    if !unsafe { is_defined_by(ty) } {
        return Err(PyTypeError::new_err(format!(
            "{NAME}(): {} must define __torch_dispatch__",
            cls.repr()?
        )));
    }
    let is_on = |flag: Option<Bound<'_, PyAny>>| given(flag).map_or(Ok(false), |f| f.is_truthy());
    let policy: Option<String> = given(policy).map(|p| p.extract()).transpose()?;
    let facts = Facts::read(policy.as_deref(), is_on(asks_device)?, is_on(asks_layout)?)?;
    let wrong = |what: &str| PyTypeError::new_err(format!("{NAME}(): {what}"));
    let dtype = given(dtype)
        .map(|d| as_dtype(&d).ok_or_else(|| wrong("argument 'dtype' must be torch.dtype")))
        .transpose()?
        .unwrap_or_else(pullback::tensor::promote::default_dtype);
    if let Some(layout) = given(layout) {
        as_layout(&layout).ok_or_else(|| wrong("argument 'layout' must be torch.layout"))?;
    }
    if let Some(device) = given(device) {
        let device =
            as_device(&device)?.ok_or_else(|| wrong("argument 'device' must be torch.device"))?;
        device.check_memory("wrapper subclasses").map_err(raise)?;
    }
    let size: Vec<i64> = size.extract()?;
    let strides: Option<Vec<i64>> = given(strides).map(|s| s.extract()).transpose()?;
    let offset = given(offset).map_or(Ok(0), |o| o.extract::<i64>())?;
    let tensor =
        pullback::binding::zeroed(&size, strides.as_deref(), offset, dtype).map_err(raise)?;
    if is_on(requires_grad)? {
        crate::result::require_grad(&tensor)?;
    }
    // SAFETY: a subclass of `TensorBase`; a fresh tensor.
    let made = unsafe { wrap_new(tensor.clone(), ty) }?;
    tensor.set_torch_dispatch(Arc::new(Classes { facts }));
    Ok(made)
}

/// The argument, unless it is left out or `None`.
fn given(value: Option<Bound<'_, PyAny>>) -> Option<Bound<'_, PyAny>> {
    value.filter(|value| !value.is_none())
}

/// The `__torch_dispatch__` of types that override no op: it calls `func` with overrides of ops disabled.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_dispatch_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<Bound<'py, PyAny>>,
    kwargs: Option<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    // (Programs that change arguments have them in a list.)
    let args = args.map_or_else(
        || Ok(PyTuple::empty(func.py())),
        |args| args.cast::<PySequence>()?.to_tuple(),
    )?;
    let _off = ThreadGuard::new(torch_dispatch::set_disabled, true);
    func.call(args, kwargs.as_ref())
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_overloads, module)?)?;
    let silent = wrap_pyfunction!(_disabled_torch_dispatch_impl, module)?;
    // The module keeps it.
    DISABLED.store(silent.as_ptr(), Relaxed);
    std::mem::forget(silent.clone());
    module.add_function(silent)
}
