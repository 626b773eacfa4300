//! Types that answer calls for themselves: `__torch_function__`.
//!
//! A call is theirs if an argument, or an element of a list among the arguments, is of a type that has the attribute
//! and is neither exactly `Tensor` nor `Parameter`. Only the general path of a call asks: the quick path leaves such
//! arguments to it. `answer` and its siblings find who may answer, and ask one after the other. What subclasses
//! do by default, their results being theirs too, is `Tensor.__torch_function__` in Python.

use crate::bind::Function;
use crate::convert::items;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{base_type, class, is_exact, look_up};
use pullback::dispatch::Traits;
use pullback_schema::python::Form;
use pyo3::exceptions::PyTypeError;
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

thread_local! {
    static IS_DISABLED: Cell<bool> = const { Cell::new(false) };
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
        if IS_DISABLED.get() || known.contains(&ty) || ty == ffi::Py_TYPE(ffi::Py_None()) {
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
            Callee::Function(function) => {
                let space = match function.module.as_str() {
                    "" => "VariableFunctions",
                    module => module,
                };
                let space = py.import("pullback._C")?.getattr(format!("_{space}"))?;
                space.getattr(&function.name)
            }
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
            Callee::Method(name) => format!("torch.Tensor.{name}"),
            Callee::Getter(name) => format!("torch.Tensor.{name}.__get__"),
            Callee::Setter(name) => format!("torch.Tensor.{name}.__set__"),
        }
    }

    /// Asks whoever may answer for `given`; `None` if there is nobody.
    fn ask(&self, py: Python<'_>, given: &[*mut PyObject], args: Args<'_>) -> Option<Reply> {
        let answerers = answerers(py, given.iter().chain(args.all).copied());
        (!answerers.is_empty()).then(|| {
            let (rest, named) = args.to_python(py)?;
            // SAFETY: live arguments.
            let given = given.iter().map(|&g| unsafe { Bound::from_borrowed_ptr(py, g) });
            let all: Vec<Bound<'_, PyAny>> = given.chain(rest.iter()).collect();
            self.ask_each(py, &answerers, &PyTuple::new(py, all)?, &named)
        })
    }

    fn ask_each<'py>(
        &self,
        py: Python<'py>,
        answerers: &[Bound<'py, PyAny>],
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> Reply {
        let function = self.object(py)?;
        let types = PyTuple::new(py, answerers.iter().map(PyAnyMethods::get_type))?;
        for answerer in answerers {
            let handler = answerer.getattr(intern!(py, "__torch_function__"))?;
            let reply = if named.is_empty() {
                handler.call1((&function, &types, args))?
            } else {
                handler.call1((&function, &types, args, named))?
            };
            if !reply.is(py.NotImplemented()) {
                return Ok(reply.into_ptr());
            }
        }
        let mut lines = Vec::with_capacity(answerers.len());
        for answerer in answerers {
            let ty = answerer.get_type();
            // SAFETY: live types.
            let is_tensor = unsafe { ffi::PyType_IsSubtype(ty.as_type_ptr(), base_type()) != 0 };
            let kind = if is_tensor { "tensor subclass" } else { "object of" };
            lines.push(format!("  - {kind} {}", ty.repr()?));
        }
        Err(PyTypeError::new_err(format!(
            "Multiple dispatch failed for '{}'; all __torch_function__ handlers returned NotImplemented:\n\n{}",
            self.text(),
            lines.join("\n")
        )))
    }
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

/// The context in which subclasses are ordinary tensors.
#[pyclass(module = "torch._C")]
#[derive(Default)]
struct DisableTorchFunctionSubclass {
    previous: Vec<bool>,
}

#[pymethods]
impl DisableTorchFunctionSubclass {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    fn __enter__(&mut self) {
        self.previous.push(IS_DISABLED.replace(true));
    }
    #[pyo3(signature = (*_error))]
    fn __exit__(&mut self, _error: &Bound<'_, PyTuple>) {
        IS_DISABLED.set(self.previous.pop().unwrap_or(false));
    }
}

/// Whether subclasses are asked.
#[pyfunction]
fn _is_torch_function_enabled() -> bool {
    !IS_DISABLED.get()
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
    let previous = IS_DISABLED.replace(true);
    let reply = func.call(args.unwrap_or_else(|| PyTuple::empty(func.py())), kwargs.as_ref());
    IS_DISABLED.set(previous);
    reply
}

/// Tells which class is `Parameter`.
#[pyfunction]
fn _set_parameter_class(class: &Bound<'_, pyo3::types::PyType>) {
    PARAMETER.store(class.as_type_ptr(), Relaxed);
    // It lives as long as the process.
    std::mem::forget(class.clone());
}

/// Adds the context and the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DisableTorchFunctionSubclass>()?;
    module.add_function(wrap_pyfunction!(_is_torch_function_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_parameter_class, module)?)?;
    let silent = wrap_pyfunction!(_disabled_torch_function_impl, module)?;
    // The module keeps it.
    SILENT.store(silent.as_ptr(), Relaxed);
    std::mem::forget(silent.clone());
    module.add_function(silent)
}
