//! Python values to op arguments: quickly for exact types, carefully for everything else.
//!
//! [`quick`] converts objects of exact types and returns nothing for others; [`GivenValue`] is the binder's view
//! of a Python object; [`convert`] makes the argument once the binder has chosen. Temporaries live
//! in an [`Arena`] as long as the call.

use crate::bind::{CallPlan, Param};
use crate::dtype::{as_device, as_dtype, as_generator, as_layout, as_memory_format};
use crate::error::raise;
use crate::raw::object::{as_tensor, is_exact, is_tensor, tensor_of};
use crate::torch_function::overrides;
use pullback::dispatch::Arg;
use pullback::{Dims, Generator, Scalar, Tensor};
use pullback_schema::bind::{Check, Elements, Given, unpack_error};
use pullback_schema::python::Parameter;
use pullback_schema::{Base, Type};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::ffi::CStr;
use std::mem::ManuallyDrop;

/// Owner of what a call's arguments borrow.
#[derive(Default)]
pub(crate) struct Arena<'py> {
    dims: [OnceCell<Dims>; 2],
    tensor_list: OnceCell<Borrowed>,
    rest: RefCell<Vec<Box<Rest<'py>>>>,
}

/// Data of a call that few calls have.
enum Rest<'py> {
    Tensor(Tensor),
    Dims(Dims),
    Tensors(Borrowed),
    OptTensors(Vec<Option<Tensor>>),
    Floats(Vec<f64>),
    Scalars(Vec<Scalar>),
    Generator(Generator),
    Object(Bound<'py, PyAny>),
}

/// The tensors of a list of Python's. Counting the references to the objects, whose tensors live as long as they
/// do, is cheaper than counting handles: only threads that hold the interpreter lock do it.
#[derive(Default)]
pub(crate) struct Borrowed {
    objects: SmallVec<[*mut PyObject; 4]>,
    tensors: SmallVec<[ManuallyDrop<Tensor>; 4]>,
}

impl Borrowed {
    /// Appends one tensor.
    ///
    /// # Safety
    /// `object` is a tensor.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, object: *mut PyObject) {
        // SAFETY: a tensor, whose reference is given back on drop; the copied handle is never dropped.
        unsafe {
            ffi::Py_INCREF(object);
            self.objects.push(object);
            self.tensors.push(std::ptr::read(std::ptr::from_ref(tensor_of(object)).cast()));
        }
    }
    pub(crate) fn as_slice(&self) -> &[Tensor] {
        // SAFETY: `ManuallyDrop` does not change the layout.
        unsafe { &*(std::ptr::from_ref(self.tensors.as_slice()) as *const [Tensor]) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        for &object in &self.objects {
            // SAFETY: counted in `push`; arenas live and die with the interpreter lock held.
            unsafe { ffi::Py_DECREF(object) };
        }
    }
}

impl<'py> Arena<'py> {
    fn put(&self, rest: Rest<'py>) -> &Rest<'py> {
        let boxed = Box::new(rest);
        let ptr = &raw const *boxed;
        self.rest.borrow_mut().push(boxed);
        // SAFETY: boxes do not move and are dropped with the arena only.
        unsafe { &*ptr }
    }
    #[inline]
    pub(crate) fn tensor(&self, tensor: Tensor) -> &Tensor {
        let Rest::Tensor(kept) = self.put(Rest::Tensor(tensor)) else { unreachable!("just put") };
        kept
    }
    #[inline]
    pub(crate) fn dims(&self, dims: Dims) -> &[i64] {
        if let Some(cell) = self.dims.iter().find(|c| c.get().is_none()) {
            return cell.get_or_init(|| dims);
        }
        let Rest::Dims(kept) = self.put(Rest::Dims(dims)) else { unreachable!("just put") };
        kept
    }
    /// The tensors that `objects` are, all of which have to be what `is_wanted` asks, which is tensors at least.
    #[inline]
    fn tensors(
        &self,
        objects: impl Iterator<Item = *mut PyObject>,
        is_wanted: impl Fn(*mut PyObject) -> bool,
    ) -> Option<&[Tensor]> {
        let mut list = Borrowed::default();
        for object in objects {
            if !is_wanted(object) {
                return None;
            }
            // SAFETY: a tensor.
            unsafe { list.push(object) };
        }
        if self.tensor_list.get().is_none() {
            return Some(self.tensor_list.get_or_init(|| list).as_slice());
        }
        let Rest::Tensors(kept) = self.put(Rest::Tensors(list)) else { unreachable!("just put") };
        Some(kept.as_slice())
    }
    fn opt_tensors(&self, list: Vec<Option<Tensor>>) -> &[Option<Tensor>] {
        let Rest::OptTensors(kept) = self.put(Rest::OptTensors(list)) else {
            unreachable!("just put")
        };
        kept
    }
    fn floats(&self, list: Vec<f64>) -> &[f64] {
        let Rest::Floats(kept) = self.put(Rest::Floats(list)) else { unreachable!("just put") };
        kept
    }
    fn scalars(&self, list: Vec<Scalar>) -> &[Scalar] {
        let Rest::Scalars(kept) = self.put(Rest::Scalars(list)) else { unreachable!("just put") };
        kept
    }
    fn generator(&self, generator: Generator) -> &Generator {
        let Rest::Generator(kept) = self.put(Rest::Generator(generator)) else {
            unreachable!("just put")
        };
        kept
    }
    pub(crate) fn keep(&self, object: Bound<'py, PyAny>) -> &Bound<'py, PyAny> {
        let Rest::Object(kept) = self.put(Rest::Object(object)) else { unreachable!("just put") };
        kept
    }
}

/// The value of an exact `int` that fits.
#[inline(always)]
pub(crate) fn exact_int(py: Python<'_>, object: *mut PyObject) -> Option<i64> {
    // SAFETY: a live object; the GIL is held.
    unsafe {
        if ffi::PyLong_CheckExact(object) == 0 {
            return None;
        }
        let value = ffi::PyLong_AsLongLong(object);
        if value == -1 && !ffi::PyErr_Occurred().is_null() {
            drop(PyErr::take(py));
            return None;
        }
        Some(value)
    }
}

/// The text of an exact `str`.
#[inline]
fn exact_str<'a>(py: Python<'_>, object: *mut PyObject) -> Option<&'a str> {
    // SAFETY: a live object, which keeps its text; the GIL is held.
    unsafe {
        if ffi::PyUnicode_CheckExact(object) == 0 {
            return None;
        }
        let mut size = 0;
        let text = ffi::PyUnicode_AsUTF8AndSize(object, &raw mut size);
        if text.is_null() {
            drop(PyErr::take(py));
            return None;
        }
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), size as usize);
        Some(std::str::from_utf8_unchecked(bytes))
    }
}

/// The number of an exact Python number.
#[inline(always)]
pub(crate) fn exact_scalar(py: Python<'_>, object: *mut PyObject) -> Option<Scalar> {
    // SAFETY: a live object; the GIL is held.
    unsafe {
        let ty = ffi::Py_TYPE(object);
        if ty == &raw mut ffi::PyFloat_Type {
            return Some(Scalar::Float(ffi::PyFloat_AS_DOUBLE(object)));
        }
        if ty == &raw mut ffi::PyLong_Type {
            return exact_int(py, object).map(Scalar::Int);
        }
        if ty == &raw mut ffi::PyBool_Type {
            return Some(Scalar::Bool(object == ffi::Py_True()));
        }
        if ty == &raw mut ffi::PyComplex_Type {
            return Some(Scalar::Complex(
                ffi::PyComplex_RealAsDouble(object),
                ffi::PyComplex_ImagAsDouble(object),
            ));
        }
        None
    }
}

/// Whether `list` is a list or tuple of tensors for all of which the question is answered with yes.
pub(crate) fn all_tensors(list: &Bound<'_, PyAny>, question: impl Fn(&Tensor) -> bool) -> bool {
    // SAFETY: live items of a list that the caller holds, while nothing else runs.
    let answer = |&item: &*mut PyObject| unsafe { is_tensor(item) && question(tensor_of(item)) };
    items(list.as_ptr()).is_some_and(|items| items.iter().all(answer))
}

/// The items of an exact list or tuple, or of a `Size`.
#[inline(always)]
pub(crate) fn items<'a>(object: *mut PyObject) -> Option<&'a [*mut PyObject]> {
    // SAFETY: a live object; the items stay while the GIL is held and the list is not changed.
    unsafe {
        let (count, first) = if ffi::PyTuple_Check(object) != 0 {
            (
                ffi::PyTuple_GET_SIZE(object),
                (&raw mut (*object.cast::<ffi::PyTupleObject>()).ob_item).cast(),
            )
        } else if ffi::PyList_Check(object) != 0 {
            (ffi::PyList_GET_SIZE(object), (*object.cast::<ffi::PyListObject>()).ob_item)
        } else {
            return None;
        };
        Some(if count == 0 { &[] } else { std::slice::from_raw_parts(first, count as usize) })
    }
}

/// Converts exact types: `Ok(None)` means certainly refused, `Err` that the binder must decide.
#[inline(always)]
pub(crate) fn quick<'a>(
    py: Python<'_>,
    param: &Param,
    numbers: bool,
    object: *mut PyObject,
    arena: &'a Arena<'_>,
) -> Result<Option<Arg<'a>>, ()> {
    // SAFETY: a live argument, the GIL is held.
    unsafe {
        if object == ffi::Py_None() {
            return if param.ty.optional {
                Ok(Some(Arg::None))
            } else if param.allows_none {
                Err(())
            } else {
                Ok(None)
            };
        }
        if param.ty.list.is_some() {
            return quick_list(py, param.ty, object, arena);
        }
        match param.ty.base {
            Base::Tensor => {
                if is_exact(object) {
                    return Ok(Some(Arg::Tensor(tensor_of(object))));
                }
                match exact_scalar(py, object) {
                    // The library makes a tensor of a number where it needs one.
                    Some(value) if numbers => Ok(Some(Arg::Scalar(value))),
                    Some(_) => Ok(None),
                    None if is_tensor(object) && !overrides(object) => {
                        Ok(Some(Arg::Tensor(tensor_of(object))))
                    }
                    None => Err(()),
                }
            }
            Base::Scalar => match exact_scalar(py, object) {
                Some(value) => Ok(Some(Arg::Scalar(value))),
                // A list, where another overload takes lists.
                None if items(object).is_some() => Ok(None),
                None => Err(()),
            },
            Base::Int | Base::SymInt => exact_int(py, object).map(|v| Some(Arg::Int(v))).ok_or(()),
            Base::Float => match exact_scalar(py, object) {
                Some(Scalar::Float(v)) => Ok(Some(Arg::Float(v))),
                Some(Scalar::Int(v)) => Ok(Some(Arg::Float(v as f64))),
                _ => Err(()),
            },
            Base::Bool => {
                if object == ffi::Py_True() {
                    Ok(Some(Arg::Bool(true)))
                } else if object == ffi::Py_False() {
                    Ok(Some(Arg::Bool(false)))
                } else {
                    Err(())
                }
            }
            Base::ScalarType => match as_dtype(&Bound::from_borrowed_ptr(py, object)) {
                Some(dtype) => Ok(Some(Arg::DType(dtype))),
                // A size, where another overload takes sizes.
                None if items(object).is_some() || ffi::PyLong_CheckExact(object) != 0 => Ok(None),
                None => Err(()),
            },
            Base::Str => exact_str(py, object).map(|text| Some(Arg::Str(text))).ok_or(()),
            Base::MemoryFormat => {
                let format = as_memory_format(&Bound::from_borrowed_ptr(py, object));
                format.map(|format| Some(Arg::MemoryFormat(format))).ok_or(())
            }
            _ => Err(()),
        }
    }
}

#[inline]
fn quick_list<'a>(
    py: Python<'_>,
    ty: Type,
    object: *mut PyObject,
    arena: &'a Arena<'_>,
) -> Result<Option<Arg<'a>>, ()> {
    let list = ty.list.expect("called for lists");
    match ty.base {
        Base::Int | Base::SymInt => {
            if let Some(items) = items(object) {
                let dims: Option<Dims> = items.iter().map(|&item| exact_int(py, item)).collect();
                let dims = dims.ok_or(())?;
                if list.size.is_some_and(|n| n > 1 && dims.len() == 1) {
                    return Err(());
                }
                return Ok(Some(Arg::Ints(arena.dims(dims))));
            }
            match (list.size, exact_int(py, object)) {
                (Some(count), Some(value)) => {
                    Ok(Some(Arg::Ints(arena.dims(Dims::from_elem(value, count)))))
                }
                _ => Err(()),
            }
        }
        Base::Tensor if !list.element_optional => {
            let items = items(object).ok_or(())?;
            // SAFETY: live items of a list that the caller holds.
            let is_plain = |item| unsafe { is_exact(item) || is_tensor(item) && !overrides(item) };
            let tensors = arena.tensors(items.iter().copied(), is_plain).ok_or(())?;
            Ok(Some(Arg::Tensors(tensors)))
        }
        Base::Tensor => {
            // SAFETY: live items of a list that the caller holds.
            let one = |&item: &*mut PyObject| unsafe {
                if item == ffi::Py_None() {
                    return Ok(None);
                }
                if is_exact(item) { Ok(Some(tensor_of(item).clone())) } else { Err(()) }
            };
            let list = items(object).ok_or(())?.iter().map(one).collect::<Result<_, ()>>()?;
            Ok(Some(Arg::OptTensors(arena.opt_tensors(list))))
        }
        Base::Scalar => {
            let items = items(object).ok_or(())?;
            // SAFETY: a live item of a list that the caller holds.
            if items.first().is_some_and(|&item| unsafe { is_tensor(item) }) {
                return Ok(None);
            }
            let scalars = items.iter().map(|&item| exact_scalar(py, item));
            let list: Option<Vec<Scalar>> = scalars.collect(); // bounded: by the program's list
            Ok(Some(Arg::Scalars(arena.scalars(list.ok_or(())?))))
        }
        _ => Err(()),
    }
}

/// A Python object as the binder sees it.
pub(crate) struct GivenValue<'py>(pub(crate) Bound<'py, PyAny>);

/// The name of an object's type as messages print it.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    // SAFETY: a live object's type has a name.
    let name = unsafe { CStr::from_ptr((*ffi::Py_TYPE(object.as_ptr())).tp_name) };
    name.to_string_lossy().into_owned()
}

/// Whether it is one of `NumPy`'s scalars, without importing `NumPy`.
pub(crate) fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> bool {
    type_name(object).starts_with("numpy.")
        && object.hasattr("dtype").unwrap_or(false)
        && !object.hasattr("__setitem__").unwrap_or(true)
}

pub(crate) fn has_index(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyIndex_Check(object.as_ptr()) != 0 }
}

fn is_zero_dim(object: &Bound<'_, PyAny>, want: impl Fn(&Tensor) -> bool) -> bool {
    as_tensor(object).is_some_and(|t| t.ndim() == 0 && !t.requires_grad() && want(t))
}

fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyComplex>()
        || is_numpy_scalar(object)
}

fn is_int_like(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyBool>() {
        return false;
    }
    if as_tensor(object).is_some() {
        return is_zero_dim(object, |t| t.dtype().is_integral(false));
    }
    object.is_instance_of::<PyInt>() || has_index(object)
}

fn accepts_one(ty: Type, object: &Bound<'_, PyAny>, numbers: bool) -> bool {
    match ty.base {
        Base::Tensor => as_tensor(object).is_some() || (numbers && is_number(object)),
        Base::Scalar => is_number(object) || is_zero_dim(object, |_| true),
        Base::Int | Base::SymInt => is_int_like(object),
        Base::Float => {
            object.is_instance_of::<PyFloat>()
                || object.is_instance_of::<PyInt>()
                || (is_numpy_scalar(object) && !object.is_instance_of::<PyComplex>())
                || is_zero_dim(object, |t| !t.dtype().is_complex())
        }
        Base::Bool => {
            object.is_instance_of::<PyBool>()
                || matches!(&*type_name(object), "numpy.bool" | "numpy.bool_")
        }
        Base::Str => object.is_instance_of::<PyString>(),
        Base::ScalarType => as_dtype(object).is_some(),
        Base::Layout => as_layout(object).is_some(),
        Base::Device => {
            as_device(object).is_ok_and(|d| d.is_some()) || object.is_instance_of::<PyString>()
        }
        Base::MemoryFormat => as_memory_format(object).is_some(),
        Base::Generator => as_generator(object).is_some(),
        Base::Any => true,
    }
}

impl Given for GivenValue<'_> {
    fn type_name(&self) -> Cow<'_, str> {
        Cow::Owned(type_name(&self.0))
    }
    fn is_none(&self) -> bool {
        self.0.is_none()
    }
    fn is_int(&self) -> bool {
        is_int_like(&self.0)
    }
    fn check(&self, parameter: &Parameter, numbers: bool) -> Check {
        let refused = |ok: bool| if ok { Check::Accepted } else { Check::Refused };
        let Some(list) = parameter.ty.list else {
            return refused(accepts_one(parameter.ty, &self.0, numbers));
        };
        let element = Type { list: None, optional: false, ..parameter.ty };
        let Some(items) = items(self.0.as_ptr()) else {
            return refused(
                list.size.is_some()
                    && accepts_one(element, &self.0, false)
                    && parameter.ty.base != Base::Tensor,
            );
        };
        let py = self.0.py();
        for (position, &item) in items.iter().enumerate() {
            // SAFETY: a live item.
            let item = unsafe { Bound::from_borrowed_ptr(py, item) };
            if list.element_optional && item.is_none() {
                continue;
            }
            // (A tensor of one element is a number, but no element of a list of numbers.)
            let is_tensor = parameter.ty.base == Base::Scalar && as_tensor(&item).is_some();
            let fits = !is_tensor && accepts_one(element, &item, false);
            if parameter.ty.base == Base::Tensor {
                if !fits {
                    return Check::NotTensor { position, type_name: type_name(&item) };
                }
                continue;
            }
            if !fits {
                return Check::RefusedElement { position, type_name: type_name(&item) };
            }
            // Lists of ints are judged by their first element; the rest shows at conversion.
            if parameter.is_int_list() {
                break;
            }
        }
        Check::Accepted
    }
    fn elements(&self) -> Option<Elements> {
        let items = items(self.0.as_ptr())?;
        let py = self.0.py();
        // SAFETY: live items.
        let name = |&i: &*mut PyObject| type_name(&unsafe { Bound::from_borrowed_ptr(py, i) });
        Some(Elements {
            is_tuple: self.0.is_instance_of::<PyTuple>(),
            type_names: items.iter().map(name).collect(),
        })
    }
}

/// The number that `object` stands for.
pub(crate) fn to_scalar(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Some(value) = exact_scalar(object.py(), object.as_ptr()) {
        return Ok(value);
    }
    if let Some(tensor) = as_tensor(object) {
        return tensor.item().map_err(raise);
    }
    if object.is_instance_of::<PyBool>() || type_name(object).starts_with("numpy.bool") {
        return Ok(Scalar::Bool(object.is_truthy()?));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Scalar::Float(object.extract()?));
    }
    if has_index(object) {
        return to_whole(object);
    }
    if object.is_instance_of::<PyComplex>() || type_name(object).starts_with("numpy.complex") {
        // tidy: not an op, but Python's attributes
        let [re, im] = ["real", "imag"].map(|part| object.getattr(part)?.extract::<f64>());
        return Ok(Scalar::Complex(re?, im?));
    }
    Ok(Scalar::Float(object.extract()?))
}

/// The 64-bit int that `object` stands for.
pub(crate) fn to_int(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Some(tensor) = as_tensor(object) {
        return Ok(tensor.item().map_err(raise)?.to_i64());
    }
    index_of(object)?
        .extract::<i64>()
        .map_err(|_| PyRuntimeError::new_err("Overflow when unpacking long long"))
}

/// The `int` that `object` stands for.
fn index_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object.call_method0("__index__").map_err(|error| {
        if has_index(object) {
            return error;
        }
        PyTypeError::new_err(format!(
            "'{}' object cannot be interpreted as an integer",
            type_name(object)
        ))
    })
}

/// The number of at most 64 bits, with a sign or without, that `object` stands for.
fn to_whole(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let number = index_of(object)?;
    if let Ok(value) = number.extract::<i64>() {
        return Ok(Scalar::Int(value));
    }
    let value = number.extract::<u64>();
    value.map(Scalar::from).map_err(|_| PyOverflowError::new_err("int too big to convert"))
}

fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    match as_tensor(object) {
        Some(tensor) => Ok(tensor.item().map_err(raise)?.to_f64()),
        None => object.extract(),
    }
}

/// The argument made of a value that the binder accepted for `parameter`.
pub(crate) fn convert<'a, 'py>(
    function: &str,
    parameter: &Parameter,
    plan: &CallPlan,
    wraps: bool,
    object: &'a Bound<'py, PyAny>,
    arena: &'a Arena<'py>,
) -> PyResult<Arg<'a>> {
    let ty = parameter.ty;
    if object.is_none() && (ty.optional || parameter.allows_none()) {
        return Ok(Arg::None);
    }
    if ty.list.is_some() {
        return convert_list(function, parameter, object, arena);
    }
    Ok(match ty.base {
        Base::Tensor => match as_tensor(object) {
            Some(tensor) => Arg::Tensor(tensor),
            None if plan.numbers => {
                Arg::Tensor(arena.tensor(Tensor::wrapped(to_scalar(object)?).map_err(raise)?))
            }
            None => {
                return Err(PyTypeError::new_err(format!(
                    "expected Tensor, got {}",
                    type_name(object)
                )));
            }
        },
        Base::Scalar if wraps => {
            Arg::Tensor(arena.tensor(Tensor::wrapped(to_scalar(object)?).map_err(raise)?))
        }
        Base::Scalar => Arg::Scalar(to_scalar(object)?),
        Base::Int | Base::SymInt => Arg::Int(to_int(object)?),
        Base::Float => Arg::Float(float(object)?),
        Base::Bool => Arg::Bool(object.is_truthy()?),
        Base::Str => Arg::Str(object.cast::<PyString>()?.to_str()?),
        Base::ScalarType => as_dtype(object).map_or(Arg::None, Arg::DType),
        Base::Layout => as_layout(object).map_or(Arg::None, Arg::Layout),
        Base::Device => as_device(object)?.map_or(Arg::None, Arg::Device),
        Base::MemoryFormat => as_memory_format(object).map_or(Arg::None, Arg::MemoryFormat),
        Base::Generator => match as_generator(object) {
            Some(generator) => Arg::Generator(arena.generator(generator)),
            None => Arg::None,
        },
        Base::Any => Arg::None,
    })
}

fn convert_list<'a, 'py>(
    function: &str,
    parameter: &Parameter,
    object: &'a Bound<'py, PyAny>,
    arena: &'a Arena<'py>,
) -> PyResult<Arg<'a>> {
    let list = parameter.ty.list.expect("called for lists");
    let py = object.py();
    let lone = !(object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>());
    let elements: Vec<Bound<'py, PyAny>> = if lone {
        // bounded: by the signature.
        vec![object.clone(); list.size.unwrap_or(1)]
    } else {
        let items = items(object.as_ptr()).unwrap_or_default();
        // SAFETY: live items.
        items.iter().map(|&i| unsafe { Bound::from_borrowed_ptr(py, i) }).collect()
    };
    Ok(match parameter.ty.base {
        Base::Int | Base::SymInt => {
            let mut dims = Dims::new();
            for (position, element) in elements.iter().enumerate() {
                if !is_int_like(element) {
                    let text = unpack_error(function, parameter, position, &type_name(element));
                    return Err(PyTypeError::new_err(text));
                }
                dims.push(to_int(element)?);
            }
            // One element stands for as many as the list has (but not for the sizes of blocks).
            if let (Some(size), [one]) = (list.size, dims.as_slice())
                && size > 1
                && parameter.name != "blocksize"
            {
                dims = Dims::from_elem(*one, size);
            }
            Arg::Ints(arena.dims(dims))
        }
        Base::Tensor if list.element_optional => {
            let tensors = elements.iter().map(|e| as_tensor(e).cloned()).collect();
            Arg::OptTensors(arena.opt_tensors(tensors))
        }
        Base::Tensor => {
            let tensors = elements.iter().map(Bound::as_ptr);
            // SAFETY: live elements.
            let is_wanted = |element| unsafe { is_tensor(element) };
            let tensors = arena.tensors(tensors, is_wanted);
            Arg::Tensors(tensors.expect("the binder chose by their types"))
        }
        Base::Bool => {
            let ints = elements.iter().map(|e| Ok(i64::from(e.is_truthy()?)));
            Arg::Ints(arena.dims(ints.collect::<PyResult<Dims>>()?))
        }
        Base::Scalar => {
            Arg::Scalars(arena.scalars(elements.iter().map(to_scalar).collect::<PyResult<_>>()?))
        }
        _ => Arg::Floats(arena.floats(elements.iter().map(float).collect::<PyResult<_>>()?)),
    })
}
