//! Types that answer calls for themselves: `__torch_function__`.
//!
//! A call is theirs if an argument, or an element of a list among the arguments, is of a type that has the attribute
//! and is neither exactly `Tensor` nor `Parameter`; while a mode is on (`function_mode`), all calls are the mode's first.
//! Only the general path of a call asks: the quick path leaves such arguments to it. `answer` and its siblings find who may answer, and ask one after the other. What subclasses
//! do by default, their results being theirs too, is `Tensor.__torch_function__` in Python.

use crate::bind::Function;
use crate::convert::items;
use crate::function_mode::{self, Asked};
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{base_type, class, is_exact, look_up};
use crate::switch::Switched;
use pullback::dispatch::Traits;
use pullback_schema::python::Form;
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyUserWarning};
use pyo3::ffi::{self, PyObject, PyTypeObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `Parameter`, which answers nothing.
static PARAMETER: AtomicPtr<PyTypeObject> = AtomicPtr::new(null_mut());
/// The attribute's value in types that answer nothing.
static SILENT: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// Who answers a thread's calls.
#[pyclass(module = "torch._C", name = "_TorchFunctionState", eq, frozen, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Answering {
    #[default]
    #[pyo3(name = "ENABLED")]
    All,
    /// Types do not.
    #[pyo3(name = "SUBCLASSES_DISABLED")]
    Modes,
    #[pyo3(name = "ALL_DISABLED")]
    Nobody,
}

thread_local! {
    static ANSWERING: Cell<Answering> = const { Cell::new(Answering::All) };
}

/// Says who answers this thread's calls from now on; gives what held before.
pub(crate) fn set_answering(answering: Answering) -> Answering {
    ANSWERING.replace(answering)
}

/// Who answers this thread's calls.
pub(crate) fn answering() -> Answering {
    ANSWERING.get()
}

/// Whether modes may answer this thread's calls.
pub(crate) fn are_modes_asked() -> bool {
    answering() != Answering::Nobody
}

/// Whether a call of a method or an attribute of `receiver` may be somebody else's to answer.
///
/// # Safety
/// As [`overrides`].
#[inline(always)]
pub(crate) unsafe fn may_answer(receiver: *mut PyObject) -> bool {
    // SAFETY: the caller's promise.
    unsafe { overrides(receiver) || function_mode::is_on() }
}

/// Whether calls with `object` are its type's to answer.
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
            && is_answering(ty)
    }
}

#[cold]
#[inline(never)]
unsafe fn is_answering(ty: *mut PyTypeObject) -> bool {
    // SAFETY: a live type; the static types are only compared with.
    unsafe {
        let known =
            [&raw mut ffi::PyFloat_Type, &raw mut ffi::PySlice_Type, &raw mut ffi::PyComplex_Type];
        if answering() != Answering::All
            || known.contains(&ty)
            || ty == ffi::Py_TYPE(ffi::Py_None())
        {
            return false;
        }
        let name = intern!(Python::assume_attached(), "__torch_function__");
        let found = look_up(ty, name.as_ptr());
        !found.is_null() && found != SILENT.load(Relaxed)
    }
}

/// What is called, as those who answer see it.
enum Callee<'a> {
    Function(&'a Function),
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

    /// Asks whoever may answer for `given`; `None` if there is nobody.
    fn ask(&self, py: Python<'_>, given: &[*mut PyObject], args: Args<'_>) -> Option<Reply> {
        // (Builtins take anything for their data: what it is answers nothing.)
        let mut answerers = Vec::new();
        if !matches!(self, Callee::Builtin(_)) {
            answerers = self::answerers(py, given.iter().chain(args.all).copied());
        }
        (!answerers.is_empty() || function_mode::is_on()).then(|| {
            let (rest, named) = args.to_python(py)?;
            // SAFETY: live arguments.
            let given = given.iter().map(|&g| unsafe { Bound::from_borrowed_ptr(py, g) });
            let all: Vec<Bound<'_, PyAny>> = given.chain(rest.iter()).collect();
            let named = Some(named).filter(|named| !named.is_empty());
            let (function, args) = (self.object(py)?, PyTuple::new(py, all)?);
            let text = || self.text();
            let is_python = matches!(self, Callee::Python(_));
            ask_each(&function, &answerers, &args, named.as_ref(), (&text, is_python))
                .map(Bound::into_ptr)
        })
    }
}

/// Says that `__torch_function__` should be a method of the class; functions of Python say it in another class of warning.
fn warn_of_plain_method(
    handler: &Bound<'_, PyAny>,
    answerer: &Bound<'_, PyAny>,
    is_python: bool,
) -> PyResult<()> {
    let py = handler.py();
    let Ok(owner) = handler.getattr(intern!(py, "__self__")) else { return Ok(()) };
    if !owner.is(answerer) {
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

/// What the innermost mode answers to a call of `function`, or else the first of `answerers` that does.
fn ask_each<'py>(
    function: &Bound<'py, PyAny>,
    answerers: &[Bound<'py, PyAny>],
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
    (text, is_python): (&dyn Fn() -> String, bool),
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let types = PyTuple::new(py, answerers.iter().map(PyAnyMethods::get_type))?;
    let mut declined = Vec::new();
    if let Some(mode) = Asked::take() {
        let reply = mode.ask(function, &types, args, named)?;
        if !reply.is(py.NotImplemented()) {
            return Ok(reply);
        }
        declined.push(mode.text(py)?);
    }
    for answerer in answerers {
        let handler = answerer.getattr(intern!(py, "__torch_function__"))?;
        warn_of_plain_method(&handler, answerer, is_python)?;
        let reply = match named {
            None => handler.call1((function, &types, args))?,
            Some(named) => handler.call1((function, &types, args, named))?,
        };
        if !reply.is(py.NotImplemented()) {
            return Ok(reply);
        }
    }
    for answerer in answerers {
        let ty = answerer.get_type();
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

/// Whoever may answer for these arguments: one of each type, a subclass before its bases, else in order.
fn answerers(py: Python<'_>, given: impl Iterator<Item = *mut PyObject>) -> Vec<Bound<'_, PyAny>> {
    let mut found: Vec<Bound<'_, PyAny>> = Vec::new();
    let mut consider = |object: *mut PyObject| {
        // SAFETY: live arguments and their types.
        unsafe {
            let ty = ffi::Py_TYPE(object);
            if !overrides(object) || found.iter().any(|f| f.get_type_ptr() == ty) {
                return;
            }
            let is_base = |f: &Bound<'_, PyAny>| ffi::PyType_IsSubtype(ty, f.get_type_ptr()) != 0;
            let place = found.iter().position(is_base).unwrap_or(found.len());
            found.insert(place, Bound::from_borrowed_ptr(py, object));
        }
    };
    for object in given {
        match items(object) {
            Some(list) => list.iter().copied().for_each(&mut consider),
            None => consider(object),
        }
    }
    found
}

/// The answer to a call of an op, if somebody takes it over.
pub(crate) fn answer(
    py: Python<'_>,
    function: &Function,
    receiver: Option<*mut PyObject>,
    args: Args<'_>,
) -> Option<Reply> {
    let callee = match function.form {
        Form::Function => Callee::Function(function),
        Form::Method if function.ops[0].is(Traits::ATTRIBUTE) => Callee::Getter(&function.name),
        Form::Method => Callee::Method(&function.name),
    };
    callee.ask(py, receiver.as_slice(), args)
}

fn text_of(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

/// The answer to an operator with the operands `given`, by the name of the method that stands for it.
#[cold]
#[inline(never)]
pub(crate) fn answer_operator(
    py: Python<'_>,
    name: &str,
    given: &[*mut PyObject],
) -> Option<Reply> {
    Callee::Method(name).ask(py, given, Args::none())
}

/// The answer to a call of the method `name`.
#[cold]
#[inline(never)]
pub(crate) fn answer_method(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
    args: Args<'_>,
) -> Option<Reply> {
    Callee::Method(text_of(name)).ask(py, &[receiver], args)
}

/// The answer to a call of `name`, a function of the extension that is no op: only modes have one.
#[inline(always)]
pub(crate) fn answer_builtin(py: Python<'_>, name: &'static CStr, args: Args<'_>) -> Option<Reply> {
    if !function_mode::is_on() {
        return None;
    }
    Callee::Builtin(text_of(name)).ask(py, &[], args)
}

/// Whether a call with these arguments may be somebody else's to answer.
///
/// # Safety
/// Live objects, and the GIL is held.
#[inline(always)]
pub(crate) unsafe fn may_answer_any(args: &[*mut PyObject]) -> bool {
    // SAFETY: the caller's promise; lists and tuples hold their items.
    let answers = |&object: &*mut PyObject| unsafe {
        match items(object) {
            Some(list) => list.iter().any(|&item| overrides(item)),
            None => overrides(object),
        }
    };
    function_mode::is_on() || args.iter().any(answers)
}

/// The answer to a call of a function that is written in Python.
#[cold]
#[inline(never)]
pub(crate) fn answer_python(function: &Bound<'_, PyAny>, args: Args<'_>) -> Option<Reply> {
    Callee::Python(function).ask(function.py(), &[], args)
}

/// The answer to reading the attribute `name`.
#[cold]
#[inline(never)]
pub(crate) fn answer_getter(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
) -> Option<Reply> {
    Callee::Getter(text_of(name)).ask(py, &[receiver], Args::none())
}

/// The answer to assigning to the attribute `name`.
#[cold]
#[inline(never)]
pub(crate) fn answer_setter(
    py: Python<'_>,
    name: &'static CStr,
    receiver: *mut PyObject,
    value: *mut PyObject,
) -> Option<Reply> {
    Callee::Setter(text_of(name)).ask(py, &[receiver, value], Args::none())
}

/// Whether `x[index]`, or with a value `x[index] = value`, is certainly nobody's to answer.
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

/// The answer to `x[index]`, or with a value to `x[index] = value`.
#[cold]
#[inline(never)]
pub(crate) fn answer_index(
    py: Python<'_>,
    receiver: *mut PyObject,
    index: *mut PyObject,
    value: Option<*mut PyObject>,
) -> Option<Reply> {
    let name = if value.is_some() { "__setitem__" } else { "__getitem__" };
    let given: Vec<*mut PyObject> = [receiver, index].into_iter().chain(value).collect();
    Callee::Method(name).ask(py, &given, Args::none())
}

/// A new class of tensors that answers ops itself answers no calls, unless it says how: what ops give are its tensors then
/// and need not be made ones.
pub(crate) fn silence(cls: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = cls.py();
    let (dispatch, function) =
        (intern!(py, "__torch_dispatch__"), intern!(py, "__torch_function__"));
    // SAFETY: live types; a look-up lends what it finds.
    unsafe {
        let (ty, class) = (cls.as_ptr().cast::<PyTypeObject>(), class());
        let own = ffi::PyDict_GetItemWithError((*ty).tp_dict, dispatch.as_ptr());
        let is_default = look_up(ty, function.as_ptr()) == look_up(class, function.as_ptr());
        if class != base_type() && !own.is_null() && is_default {
            cls.setattr(function, Bound::from_borrowed_ptr(py, SILENT.load(Relaxed)))?;
        }
    }
    Ok(())
}

/// Whether types and modes are asked.
#[pyfunction]
fn _is_torch_function_enabled() -> bool {
    answering() == Answering::All
}

/// Whether nobody is asked.
#[pyfunction]
fn _is_torch_function_all_disabled() -> bool {
    !are_modes_asked()
}

#[pyfunction]
fn _get_torch_function_state() -> Answering {
    answering()
}
#[pyfunction]
fn _set_torch_function_state(state: Answering) {
    set_answering(state);
}

/// Whether one of these objects, or a mode, answers calls with them.
fn has_answer<'py>(mut objects: impl Iterator<Item = Bound<'py, PyAny>>) -> bool {
    // SAFETY: live objects.
    function_mode::is_on() || objects.any(|object| unsafe { overrides(object.as_ptr()) })
}

/// Whether an element of the iterable, or a mode, answers calls.
#[pyfunction]
fn _has_torch_function(relevant_args: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(args) = relevant_args.try_iter() else {
        return Err(PyTypeError::new_err("expected a sequence"));
    };
    let args: Vec<Bound<'_, PyAny>> = args.collect::<PyResult<_>>()?;
    Ok(has_answer(args.into_iter()))
}

/// Whether the object, or a mode, answers calls.
#[pyfunction]
fn _has_torch_function_unary(obj: Bound<'_, PyAny>) -> bool {
    has_answer(std::iter::once(obj))
}

/// Whether one of the objects, or a mode, answers calls.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _has_torch_function_variadic(args: &Bound<'_, PyTuple>) -> bool {
    has_answer(args.iter())
}

/// Whether one of the arguments, an element of a list among them, or a mode may answer a call.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _may_answer(args: &Bound<'_, PyTuple>) -> bool {
    // SAFETY: the tuple holds its items.
    items(args.as_ptr()).is_some_and(|args| unsafe { may_answer_any(args) })
}

/// What mode or objects answer to a call of `function`, which is called `name` in messages.
#[pyfunction]
fn _handle_torch_function<'py>(
    function: &Bound<'py, PyAny>,
    name: String,
    relevant_args: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let relevant: Vec<Bound<'py, PyAny>> = relevant_args.try_iter()?.collect::<PyResult<_>>()?;
    let answerers = answerers(function.py(), relevant.iter().map(Bound::as_ptr));
    ask_each(function, &answerers, args, Some(kwargs), (&|| name.clone(), true))
}

/// What a type's own `__torch_function__` is where it answers nothing.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<Bound<'py, PyTuple>>,
    kwargs: Option<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let _off = Switched::new(set_answering, Answering::Modes);
    func.call(args.unwrap_or_else(|| PyTuple::empty(func.py())), kwargs.as_ref())
}

/// Tells which class is `Parameter`.
#[pyfunction]
fn _set_parameter_class(class: &Bound<'_, pyo3::types::PyType>) {
    PARAMETER.store(class.as_type_ptr(), Relaxed);
    // It lives as long as the process.
    std::mem::forget(class.clone());
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_is_torch_function_enabled, module)?)?;
    module.add_class::<Answering>()?;
    module.add_function(wrap_pyfunction!(_get_torch_function_state, module)?)?;
    module.add_function(wrap_pyfunction!(_set_torch_function_state, module)?)?;
    module.add_function(wrap_pyfunction!(_is_torch_function_all_disabled, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_unary, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_variadic, module)?)?;
    module.add_function(wrap_pyfunction!(_may_answer, module)?)?;
    module.add_function(wrap_pyfunction!(_handle_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_set_parameter_class, module)?)?;
    let silent = wrap_pyfunction!(_disabled_torch_function_impl, module)?;
    // The module keeps it.
    SILENT.store(silent.as_ptr(), Relaxed);
    std::mem::forget(silent.clone());
    module.add_function(silent)
}
