//! Dispatch to `__torch_function__`: types and modes that override calls of functions, methods, operators and attributes.
//!
//! An argument, or an element of a list among the arguments, overrides a call if its type has the attribute and is neither
//! exactly `Tensor` nor `Parameter`; while a mode is on (`function_mode`), the mode comes first. Only the general path of a
//! call looks for overrides: the fast path leaves such arguments to it. [`dispatch`] and its siblings collect the overloaded
//! arguments and call the overrides one after the other until one does not return `NotImplemented`. What subclasses do by
//! default, converting results to the subclass, is `Tensor.__torch_function__` in Python.

use crate::bind::OpFunction;
use crate::convert::items;
use crate::function_mode::{self, InnermostMode};
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{base_type, class, is_exact, look_up};
use crate::thread_guard::ThreadGuard;
use pullback::dispatch::Traits;
use pullback_schema::python::PythonForm;
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyUserWarning};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The class `Parameter`, which overrides nothing.
static PARAMETER: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// `_disabled_torch_function_impl`: the value of `__torch_function__` in types that override nothing.
static DISABLED: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// Which overrides a thread's calls look for.
#[pyclass(module = "torch._C", name = "_TorchFunctionState", eq, frozen, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TorchFunctionState {
    #[default]
    #[pyo3(name = "ENABLED")]
    Enabled,
    /// Modes override calls, types do not.
    #[pyo3(name = "SUBCLASSES_DISABLED")]
    SubclassesDisabled,
    #[pyo3(name = "ALL_DISABLED")]
    AllDisabled,
}

thread_local! {
    static STATE: Cell<TorchFunctionState> = const { Cell::new(TorchFunctionState::Enabled) };
}

/// Sets the state of this thread; returns the previous one.
pub(crate) fn set_state(state: TorchFunctionState) -> TorchFunctionState {
    STATE.replace(state)
}

/// The state of this thread.
pub(crate) fn state() -> TorchFunctionState {
    STATE.get()
}

/// Whether modes may override this thread's calls.
pub(crate) fn are_modes_enabled() -> bool {
    state() != TorchFunctionState::AllDisabled
}

/// Whether the type of `receiver` or a mode may override a call of one of its methods or attributes.
///
/// # Safety
/// As [`overrides`].
#[inline(always)]
pub(crate) unsafe fn has_override(receiver: *mut PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe { overrides(receiver) || function_mode::is_on() }
}

/// Whether the type of `object` overrides calls with it.
///
/// # Safety
/// `object` is a live object and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn overrides(object: *mut PyObject) -> bool {
    /// Integers, lists, tuples, strings, dictionaries and types: never tensors.
    const PLAIN: std::ffi::c_ulong = ffi::Py_TPFLAGS_LONG_SUBCLASS
        | ffi::Py_TPFLAGS_LIST_SUBCLASS
        | ffi::Py_TPFLAGS_TUPLE_SUBCLASS
        | ffi::Py_TPFLAGS_UNICODE_SUBCLASS
        | ffi::Py_TPFLAGS_DICT_SUBCLASS
        | ffi::Py_TPFLAGS_TYPE_SUBCLASS;
    // SAFETY: a live object has a type.
    unsafe {
        let ty = ffi::Py_TYPE(object);
        ty != class()
            && ty != PARAMETER.load(Relaxed)
            && (*ty).tp_flags & PLAIN == 0
            && defines_torch_function(ty)
    }
}

#[cold]
#[inline(never)]
unsafe fn defines_torch_function(ty: *mut PyTypeObject) -> bool {
    // SAFETY: a live type; the static types are only compared with.
    unsafe {
        let known =
            [&raw mut ffi::PyFloat_Type, &raw mut ffi::PySlice_Type, &raw mut ffi::PyComplex_Type];
        if state() != TorchFunctionState::Enabled
            || known.contains(&ty)
            || ty == ffi::Py_TYPE(ffi::Py_None())
        {
            return false;
        }
        let name = intern!(Python::assume_attached(), "__torch_function__");
        let found = look_up(ty, name.as_ptr());
        !found.is_null() && found != DISABLED.load(Relaxed)
    }
}

/// The called function, which `__torch_function__` gets as its argument `func`.
enum Callee<'a> {
    Function(&'a OpFunction),
    /// A function of the extension that is no op.
    Builtin(&'a str),
    /// A function of Python (`raw::overridable`).
    Python(&'a Bound<'a, PyAny>),
    Method(&'a str),
    Getter(&'a str),
    Setter(&'a str),
}

impl Callee<'_> {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // What users see as `torch.Tensor.name`.
        // SAFETY: the class of tensors lives as long as the process.
        let class: Bound<'py, PyAny> =
            unsafe { Bound::from_borrowed_ptr(py, class().cast::<PyObject>()) };
        match *self {
            Callee::Function(function) if function.object.get().is_some() => {
                Ok(function.object.get().expect("just checked").bind(py).clone())
            }
            Callee::Function(function) => {
                let space = match function.module.as_str() {
                    "" => "VariableFunctions",
                    module => module,
                };
                let space = py.import("pullback._C")?.getattr(format!("_{space}"))?;
                space.getattr(&function.name)
            }
            Callee::Builtin(name) => py.import("pullback._C")?.getattr(name),
            // SAFETY: a live object.
            Callee::Python(object) => unsafe { Ok(Bound::from_borrowed_ptr(py, object.as_ptr())) },
            Callee::Method(name) => class.getattr(name),
            Callee::Getter(name) => class.getattr(name)?.getattr("__get__"),
            Callee::Setter(name) => class.getattr(name)?.getattr("__set__"),
        }
    }

    fn text(&self) -> String {
        match *self {
            Callee::Function(function) if function.module.is_empty() => {
                format!("torch.{}", function.name)
            }
            Callee::Function(function) => {
                format!("torch._C._{}.{}", function.module, function.name)
            }
            Callee::Builtin(name) => format!("torch.{name}"),
            Callee::Python(object) => {
                let part =
                    |name: &str| object.getattr(name).map_or(String::new(), |t| t.to_string());
                format!(
                    "{}.{}",
                    part("__module__").replacen("pullback", "torch", 1),
                    part("__qualname__")
                )
            }
            Callee::Method(name) => format!("torch.Tensor.{name}"),
            Callee::Getter(name) => format!("torch.Tensor.{name}.__get__"),
            Callee::Setter(name) => format!("torch.Tensor.{name}.__set__"),
        }
    }

    /// The result of the first override for the arguments `given` and `args`; `None` if nothing overrides the call.
    fn dispatch(&self, py: Python<'_>, given: &[*mut PyObject], args: Args<'_>) -> Option<Reply> {
        // (Builtins such as `torch.tensor` take objects of any type as data; only modes override them.)
        let mut overloaded = Vec::new();
        if !matches!(self, Callee::Builtin(_)) {
            overloaded = overloaded_args(py, given.iter().chain(args.all).copied());
        }
        (!overloaded.is_empty() || function_mode::is_on()).then(|| {
            let (rest, named) = args.to_python(py)?;
            // SAFETY: live arguments.
            let given = given.iter().map(|&g| unsafe { Bound::from_borrowed_ptr(py, g) });
            let all: Vec<Bound<'_, PyAny>> = given.chain(rest.iter()).collect();
            let named = Some(named).filter(|named| !named.is_empty());
            let (function, args) = (self.object(py)?, PyTuple::new(py, all)?);
            let text = || self.text();
            let is_python = matches!(self, Callee::Python(_));
            call_overrides(&function, &overloaded, &args, named.as_ref(), (&text, is_python))
                .map(Bound::into_ptr)
        })
    }
}

/// Warns if `__torch_function__` is a plain method and no class method. For functions that are written in Python the warning
/// is a `DeprecationWarning`, else a `UserWarning`, as in PyTorch.
fn warn_of_plain_method(
    torch_function: &Bound<'_, PyAny>,
    overloaded_arg: &Bound<'_, PyAny>,
    is_python: bool,
) -> PyResult<()> {
    let py = torch_function.py();
    let Ok(owner) = torch_function.getattr(intern!(py, "__self__")) else { return Ok(()) };
    if !owner.is(overloaded_arg) {
        return Ok(());
    }
    let category = if is_python {
        py.get_type::<PyDeprecationWarning>()
    } else {
        py.get_type::<PyUserWarning>()
    };
    let text = c"Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a classmethod.";
    PyErr::warn(py, &category, text, 1)
}

/// Calls the `__torch_function__` of the innermost mode, then those of the arguments `overloaded`, for a call of `function`.
/// Returns the first result that is not `NotImplemented`; a `TypeError` that names all of them if there is none.
fn call_overrides<'py>(
    function: &Bound<'py, PyAny>,
    overloaded: &[Bound<'py, PyAny>],
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
    (text, is_python): (&dyn Fn() -> String, bool),
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let types = PyTuple::new(py, overloaded.iter().map(PyAnyMethods::get_type))?;
    let mut declined = Vec::new();
    if let Some(mode) = InnermostMode::take() {
        let reply = mode.call(function, &types, args, named)?;
        if !reply.is(py.NotImplemented()) {
            return Ok(reply);
        }
        declined.push(mode.text(py)?);
    }
    for overloaded_arg in overloaded {
        let torch_function = overloaded_arg.getattr(intern!(py, "__torch_function__"))?;
        warn_of_plain_method(&torch_function, overloaded_arg, is_python)?;
        let reply = match named {
            None => torch_function.call1((function, &types, args))?,
            Some(named) => torch_function.call1((function, &types, args, named))?,
        };
        if !reply.is(py.NotImplemented()) {
            return Ok(reply);
        }
    }
    for overloaded_arg in overloaded {
        let ty = overloaded_arg.get_type();
        // SAFETY: live types.
        let is_tensor = unsafe { ffi::PyType_IsSubtype(ty.as_type_ptr(), base_type()) != 0 };
        let kind = if is_tensor { "tensor subclass" } else { "object of" };
        declined.push(format!("  - {kind} {}", ty.repr()?));
    }
    Err(PyTypeError::new_err(format!(
        "Multiple dispatch failed for '{}'; all __torch_function__ handlers returned NotImplemented:\n\n{}",
        text(),
        declined.join("\n")
    )))
}

/// The arguments whose types override calls: one of each type, a subclass before its bases, else in order.
fn overloaded_args(
    py: Python<'_>,
    given: impl Iterator<Item = *mut PyObject>,
) -> Vec<Bound<'_, PyAny>> {
    let mut found: Vec<Bound<'_, PyAny>> = Vec::new();
    let mut consider = |object: *mut PyObject| {
        // SAFETY: live arguments and their types.
        unsafe {
            let ty = ffi::Py_TYPE(object);
            if !overrides(object) || found.iter().any(|f| f.get_type_ptr() == ty) {
                return;
            }
            let is_base = |f: &Bound<'_, PyAny>| ffi::PyType_IsSubtype(ty, f.get_type_ptr()) != 0;
            let index = found.iter().position(is_base).unwrap_or(found.len());
            found.insert(index, Bound::from_borrowed_ptr(py, object));
        }
    };
    for object in given {
        match items(object) {
            // (Within an index, a tuple may stand for one dimension: `x[(a, b), 0]`.)
            Some(list) => list.iter().for_each(|&item| match items(item) {
                Some(inner) => inner.iter().copied().for_each(&mut consider),
                None => consider(item),
            }),
            None => consider(object),
        }
    }
    found
}

/// The result of an override of an op's call, if there is one.
pub(crate) fn dispatch(
    py: Python<'_>,
    function: &OpFunction,
    receiver: Option<*mut PyObject>,
    args: Args<'_>,
) -> Option<Reply> {
    let callee = match function.form {
        PythonForm::Function => Callee::Function(function),
        PythonForm::Method if function.ops[0].is(Traits::ATTRIBUTE) => {
            Callee::Getter(&function.name)
        }
        PythonForm::Method => Callee::Method(&function.name),
    };
    callee.dispatch(py, receiver.as_slice(), args)
}

fn text_of(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

/// The result of an override of an operator with the operands `given`; `name` is the method that stands for the operator.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_operator(
    py: Python<'_>,
    name: &str,
    given: &[*mut PyObject],
) -> Option<Reply> {
    Callee::Method(name).dispatch(py, given, Args::none())
}

/// The result of an override of the method `name`.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_method(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
    args: Args<'_>,
) -> Option<Reply> {
    Callee::Method(text_of(name)).dispatch(py, &[receiver], args)
}

/// The result of a mode's override of `name`, a function of the extension that is no op. Types do not override these.
#[inline(always)]
pub(crate) fn dispatch_builtin(
    py: Python<'_>,
    name: &'static CStr,
    args: Args<'_>,
) -> Option<Reply> {
    if !function_mode::is_on() {
        return None;
    }
    Callee::Builtin(text_of(name)).dispatch(py, &[], args)
}

/// Whether a mode, or the type of an argument or of an element of a list among them, may override a call.
///
/// # Safety
/// Live objects, and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn has_override_among(args: &[*mut PyObject]) -> bool {
    // SAFETY: the caller's promise; lists and tuples hold their items.
    let is_overload = |&object: &*mut PyObject| unsafe {
        match items(object) {
            Some(list) => list.iter().any(|&item| overrides(item)),
            None => overrides(object),
        }
    };
    function_mode::is_on() || args.iter().any(is_overload)
}

/// The result of an override of a function that is written in Python.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_python(function: &Bound<'_, PyAny>, args: Args<'_>) -> Option<Reply> {
    Callee::Python(function).dispatch(function.py(), &[], args)
}

/// The result of an override of reading the attribute `name`.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_getter(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
) -> Option<Reply> {
    Callee::Getter(text_of(name)).dispatch(py, &[receiver], Args::none())
}

/// The result of an override of assigning to the attribute `name`.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_setter(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
    value: *mut PyObject,
) -> Option<Reply> {
    Callee::Setter(text_of(name)).dispatch(py, &[receiver, value], Args::none())
}

/// Whether nothing can override `x[index]`, or with a value `x[index] = value`. If it returns
/// `false`, there may or may not be an override: the caller dispatches.
#[inline(always)]
pub(crate) fn is_plain_indexing(
    receiver: *mut PyObject,
    index: *mut PyObject,
    value: Option<*mut PyObject>,
) -> bool {
    // SAFETY: live arguments.
    unsafe {
        is_exact(receiver)
            && !function_mode::is_on()
            && is_plain_index(index)
            && value.is_none_or(|value| is_exact(value) || !overrides(value))
    }
}

/// Whether it is an integer, a slice, `None`, `...`, a tensor, or a tuple of these.
#[inline(always)]
unsafe fn is_plain_index(index: *mut PyObject) -> bool {
    // SAFETY: a live object and its items; the static types are only compared with.
    unsafe {
        let is_number_or_slice = |ty: *mut PyTypeObject| {
            ty == &raw mut ffi::PyLong_Type || ty == &raw mut ffi::PySlice_Type
        };
        let ty = ffi::Py_TYPE(index);
        let is_plain = |&item: &*mut PyObject| {
            is_number_or_slice(ffi::Py_TYPE(item))
                || is_exact(item)
                || item == ffi::Py_None()
                || item == ffi::Py_Ellipsis()
        };
        is_plain(&index)
            || (ty == &raw mut ffi::PyTuple_Type
                && items(index).is_some_and(|i| i.iter().all(is_plain)))
    }
}

/// The result of an override of `x[index]`, or with a value of `x[index] = value`.
#[cold]
#[inline(never)]
pub(crate) fn dispatch_index(
    py: Python<'_>,
    receiver: *mut PyObject,
    index: *mut PyObject,
    value: Option<*mut PyObject>,
) -> Option<Reply> {
    let name = if value.is_some() { "__setitem__" } else { "__getitem__" };
    let given: Vec<*mut PyObject> = [receiver, index].into_iter().chain(value).collect();
    Callee::Method(name).dispatch(py, &given, Args::none())
}

/// Whether a subclass of the tensors' class leaves calls as they are: it inherits the default `__torch_function__`, or has the
/// one that does nothing.
///
/// # Safety
/// `ty` is a ready subclass of `TensorBase`, and the GIL is held.
pub(crate) unsafe fn is_default(ty: *mut PyTypeObject) -> bool {
    if class() == base_type() {
        // The package's own class is not there yet, or is being made.
        return false;
    }
    Python::attach(|py| {
        let name = intern!(py, "__torch_function__");
        // SAFETY: the caller's promise; a look-up lends what it finds.
        unsafe {
            let found = look_up(ty, name.as_ptr());
            found == DISABLED.load(Relaxed) || found == look_up(class(), name.as_ptr())
        }
    })
}

/// Sets `__torch_function__` of a new class to [`_disabled_torch_function_impl`] if the class has a `__torch_dispatch__` of its
/// own and inherits the default `__torch_function__`: its dispatch makes results of the class, so that nothing has to convert
/// them.
pub(crate) fn disable_by_default(cls: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = cls.py();
    let (dispatch, function) =
        (intern!(py, "__torch_dispatch__"), intern!(py, "__torch_function__"));
    // SAFETY: live types; a look-up lends what it finds.
    unsafe {
        let (ty, class) = (cls.as_ptr().cast::<PyTypeObject>(), class());
        let own = ffi::PyDict_GetItemWithError((*ty).tp_dict, dispatch.as_ptr());
        let is_default = look_up(ty, function.as_ptr()) == look_up(class, function.as_ptr());
        if class != base_type() && !own.is_null() && is_default {
            cls.setattr(function, Bound::from_borrowed_ptr(py, DISABLED.load(Relaxed)))?;
        }
    }
    Ok(())
}

/// Whether types and modes override calls of this thread.
#[pyfunction]
fn _is_torch_function_enabled() -> bool {
    state() == TorchFunctionState::Enabled
}

/// Whether neither types nor modes override calls of this thread.
#[pyfunction]
fn _is_torch_function_all_disabled() -> bool {
    !are_modes_enabled()
}

#[pyfunction]
fn _get_torch_function_state() -> TorchFunctionState {
    self::state()
}
#[pyfunction]
fn _set_torch_function_state(state: TorchFunctionState) {
    set_state(state);
}

/// Whether the type of one of these objects, or a mode, overrides calls with them.
fn has_torch_function<'py>(mut objects: impl Iterator<Item = Bound<'py, PyAny>>) -> bool {
    // SAFETY: live objects.
    function_mode::is_on() || objects.any(|object| unsafe { overrides(object.as_ptr()) })
}

/// Whether the type of an element of the iterable, or a mode, overrides calls.
#[pyfunction]
fn _has_torch_function(relevant_args: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(args) = relevant_args.try_iter() else {
        return Err(PyTypeError::new_err("expected a sequence"));
    };
    let args: Vec<Bound<'_, PyAny>> = args.collect::<PyResult<_>>()?;
    Ok(has_torch_function(args.into_iter()))
}

/// Whether the type of the object, or a mode, overrides calls.
#[pyfunction]
fn _has_torch_function_unary(obj: Bound<'_, PyAny>) -> bool {
    has_torch_function(std::iter::once(obj))
}

/// Whether the type of one of the objects, or a mode, overrides calls.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _has_torch_function_variadic(args: &Bound<'_, PyTuple>) -> bool {
    has_torch_function(args.iter())
}

/// Whether a mode, or the type of an argument or of an element of a list among them, may override a call.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _has_override_among(args: &Bound<'_, PyTuple>) -> bool {
    // SAFETY: the tuple holds its items.
    items(args.as_ptr()).is_some_and(|args| unsafe { has_override_among(args) })
}

/// The result of the override of a call of `function`, which is called `name` in messages. Called if there is an override.
#[pyfunction]
fn _handle_torch_function<'py>(
    function: &Bound<'py, PyAny>,
    name: String,
    relevant_args: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let relevant: Vec<Bound<'py, PyAny>> = relevant_args.try_iter()?.collect::<PyResult<_>>()?;
    let overloaded = overloaded_args(function.py(), relevant.iter().map(Bound::as_ptr));
    call_overrides(function, &overloaded, args, Some(kwargs), (&|| name.clone(), true))
}

/// The `__torch_function__` of types that override nothing: it calls `func` with the overrides of types disabled.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<Bound<'py, PyTuple>>,
    kwargs: Option<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let _off = ThreadGuard::new(set_state, TorchFunctionState::SubclassesDisabled);
    func.call(args.unwrap_or_else(|| PyTuple::empty(func.py())), kwargs.as_ref())
}

/// Sets the class `Parameter`, whose instances never override calls.
#[pyfunction]
fn _set_parameter_class(class: &Bound<'_, pyo3::types::PyType>) {
    PARAMETER.store(class.as_type_ptr(), Relaxed);
    // It lives as long as the process.
    std::mem::forget(class.clone());
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_is_torch_function_enabled, module)?)?;
    module.add_class::<TorchFunctionState>()?;
    module.add_function(wrap_pyfunction!(_get_torch_function_state, module)?)?;
    module.add_function(wrap_pyfunction!(_set_torch_function_state, module)?)?;
    module.add_function(wrap_pyfunction!(_is_torch_function_all_disabled, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_unary, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_variadic, module)?)?;
    module.add_function(wrap_pyfunction!(_has_override_among, module)?)?;
    module.add_function(wrap_pyfunction!(_handle_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_set_parameter_class, module)?)?;
    let disabled = wrap_pyfunction!(_disabled_torch_function_impl, module)?;
    // The module keeps it.
    DISABLED.store(disabled.as_ptr(), Relaxed);
    std::mem::forget(disabled.clone());
    module.add_function(disabled)
}
