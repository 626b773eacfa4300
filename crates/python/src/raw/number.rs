//! Operators: the number, comparison and conversion slots of `TensorBase`.
//!
//! Each operator slot holds the [`OpFunction`] found in the registry under the operator's name; a
//! `TypeError` of the binder means that the other operand may try. The table is the only place
//! where the binding spells names that ops have, because Python's operators have names of their own.

use crate::bind::OpFunction;
use crate::raw::entry::{Args, Reply, guard, guard_or};
use crate::raw::object::{is_tensor, tensor_of, wrap_bound};
use crate::tensor::numpy;
use crate::torch_function::{dispatch_operator, has_override};
use pullback::Scalar;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function by the name of its operator, found at import.
struct NamedSlot {
    name: &'static str,
    function: AtomicPtr<OpFunction>,
}

impl NamedSlot {
    const fn new(name: &'static str) -> Self {
        NamedSlot { name, function: AtomicPtr::new(std::ptr::null_mut()) }
    }
    #[inline(always)]
    fn get(&self) -> Option<&'static OpFunction> {
        // SAFETY: null or a function that lives forever.
        unsafe { self.function.load(Relaxed).as_ref() }
    }
}

macro_rules! table {
    ($($id:ident = $name:literal),* $(,)?) => {
        $(static $id: NamedSlot = NamedSlot::new($name);)*
        static ALL: &[&NamedSlot] = &[$(&$id),*];
    };
}
// tidy: not an op (the operators of Python, each line)
table! {
    ADD = "add", // tidy: not an op
    SUB = "sub", // tidy: not an op
    RSUB = "rsub", // tidy: not an op
    RECIPROCAL = "reciprocal", // tidy: not an op
    MUL = "mul", // tidy: not an op
    TRUEDIV = "div", // tidy: not an op
    FLOORDIV = "floor_divide", // tidy: not an op
    REMAINDER = "remainder", // tidy: not an op
    POW = "pow", // tidy: not an op
    MATMUL = "matmul", // tidy: not an op
    AND = "bitwise_and", // tidy: not an op
    OR = "bitwise_or", // tidy: not an op
    XOR = "bitwise_xor", // tidy: not an op
    LSHIFT = "__lshift__", // tidy: not an op
    RSHIFT = "__rshift__", // tidy: not an op
    NEG = "neg", // tidy: not an op
    POS = "positive", // tidy: not an op
    ABS = "abs", // tidy: not an op
    INVERT = "bitwise_not", // tidy: not an op
    LT = "lt", // tidy: not an op
    LE = "le", // tidy: not an op
    EQ = "eq", // tidy: not an op
    NE = "ne", // tidy: not an op
    GT = "gt", // tidy: not an op
    GE = "ge", // tidy: not an op
    IADD = "add_", // tidy: not an op
    ISUB = "sub_", // tidy: not an op
    IMUL = "mul_", // tidy: not an op
    ITRUEDIV = "div_", // tidy: not an op
    IFLOORDIV = "floor_divide_", // tidy: not an op
    IREMAINDER = "remainder_", // tidy: not an op
    IPOW = "pow_", // tidy: not an op
    IAND = "bitwise_and_", // tidy: not an op
    IOR = "bitwise_or_", // tidy: not an op
    IXOR = "bitwise_xor_", // tidy: not an op
    ILSHIFT = "__ilshift__", // tidy: not an op
    IRSHIFT = "__irshift__", // tidy: not an op
}

/// Fills the table from what the registry has.
pub(crate) fn init(find: impl Fn(&str) -> Option<&'static OpFunction>) {
    for named in ALL {
        if let Some(function) = find(named.name) {
            named.function.store(std::ptr::from_ref(function).cast_mut(), Relaxed);
        }
    }
}

fn not_implemented() -> *mut PyObject {
    // SAFETY: the singleton always lives.
    unsafe {
        let object = ffi::Py_NotImplemented();
        ffi::Py_INCREF(object);
        object
    }
}

#[inline(always)]
fn operate(py: Python<'_>, named: &NamedSlot, args: &[*mut PyObject]) -> Reply {
    let Some(function) = named.get() else { return Ok(not_implemented()) };
    let receiver = (function.form == pullback_schema::python::PythonForm::Method).then(|| args[0]);
    let rest = if receiver.is_some() { &args[1..] } else { args };
    // SAFETY: live operands, all by position.
    let rest = unsafe { Args::new(rest.as_ptr(), rest.len(), std::ptr::null_mut()) };
    let general = || {
        dispatch(py, named.name, args).unwrap_or_else(|| function.call_general(py, receiver, rest))
    };
    match function.call_or(py, receiver, rest, general) {
        // The binder refused the other operand: its type may know better.
        Err(error)
            if error.is_instance_of::<PyTypeError>(py)
                && !all_known(&args[..args.len().min(2)]) =>
        {
            Ok(not_implemented())
        }
        other => other,
    }
}

/// The result of the override of an operand's type, if there is one; a `TypeError` means that the other operand may try.
#[cold]
#[inline(never)]
fn dispatch(py: Python<'_>, name: &str, args: &[*mut PyObject]) -> Option<Reply> {
    // SAFETY: a live operand.
    let is_reflected = unsafe { !is_tensor(args[0]) };
    let swapped: Vec<*mut PyObject> = args.iter().rev().copied().collect();
    let given = if is_reflected { &swapped } else { args };
    let mut reply = dispatch_operator(py, shown_as(name, is_reflected), given)?;
    let is_refused =
        |reply: &Reply| reply.as_ref().is_err_and(|error| error.is_instance_of::<PyTypeError>(py));
    // (Python asks the other operand's type; where both are tensors it takes them for the same.)
    let reflected = shown_as(name, true);
    let may_reflect = !is_reflected && reflected.starts_with("__r") && is_of_other_class(args);
    if may_reflect && is_refused(&reply) {
        reply = dispatch_operator(py, reflected, &swapped)?;
    }
    // (Of one operand there is no other to try.)
    let may_other = args.len() > 1;
    Some(if may_other && is_refused(&reply) { Ok(not_implemented()) } else { reply })
}

/// Whether both operands are tensors, of different classes.
fn is_of_other_class(args: &[*mut PyObject]) -> bool {
    let [a, b] = args else { return false };
    // SAFETY: live operands.
    unsafe { is_tensor(*a) && is_tensor(*b) && ffi::Py_TYPE(*a) != ffi::Py_TYPE(*b) }
}

/// The method that an operator is to `__torch_function__`, where it is not the op's own.
fn shown_as(name: &str, is_reflected: bool) -> &str {
    const SHOWN: [(&str, &str, &str); 11] = [
        ("rsub", "__rsub__", "__rsub__"),                  // tidy: not an op
        ("sub", "sub", "__rsub__"),                        // tidy: not an op
        ("div", "div", "__rtruediv__"),                    // tidy: not an op
        ("floor_divide", "__floordiv__", "__rfloordiv__"), // tidy: not an op
        ("remainder", "remainder", "__rmod__"),            // tidy: not an op
        ("pow", "pow", "__rpow__"),                        // tidy: not an op
        ("matmul", "matmul", "__rmatmul__"),               // tidy: not an op
        ("bitwise_and", "__and__", "bitwise_and"),         // tidy: not an op
        ("bitwise_or", "__or__", "bitwise_or"),            // tidy: not an op
        ("bitwise_xor", "__xor__", "bitwise_xor"),         // tidy: not an op
        ("bitwise_not", "__invert__", "__invert__"),       // tidy: not an op
    ];
    match SHOWN.iter().find(|shown| shown.0 == name) {
        Some(shown) if is_reflected => shown.2,
        Some(shown) => shown.1,
        None if is_reflected && name == "__lshift__" => "__rlshift__", // tidy: not an op
        None if is_reflected && name == "__rshift__" => "__rrshift__", // tidy: not an op
        None => name,
    }
}

/// The result of an operator with the tensor on the left or on the right; on the right it is the op that PyTorch calls with the
/// tensor first, so that the graph has the same nodes.
#[inline(always)]
fn operate_either(
    py: Python<'_>,
    named: &NamedSlot,
    reflected: &NamedSlot,
    [a, b]: [*mut PyObject; 2],
) -> Reply {
    // SAFETY: a live operand.
    if unsafe { is_tensor(a) } {
        operate(py, named, &[a, b])
    } else {
        operate(py, reflected, &[b, a])
    }
}

/// Something divided by the tensor `by`: its reciprocal, multiplied, which is how PyTorch rounds it.
#[cold]
#[inline(never)]
fn divide_by(py: Python<'_>, dividend: *mut PyObject, by: *mut PyObject) -> Reply {
    if let Some(reply) = dispatch(py, TRUEDIV.name, &[dividend, by]) {
        return reply;
    }
    let reciprocal = operate(py, &RECIPROCAL, &[by])?;
    // SAFETY: an object that this function owns; live operands, and a new reference or an error.
    unsafe {
        let reciprocal = Bound::from_owned_ptr(py, reciprocal);
        let reply = operate(py, &MUL, &[reciprocal.as_ptr(), dividend])?;
        if reply != ffi::Py_NotImplemented() {
            return Ok(reply);
        }
        // (An array multiplies by tensors, though it leaves the division to them.)
        let product = ffi::PyNumber_Multiply(reciprocal.as_ptr(), dividend);
        if !product.is_null() {
            ffi::Py_DECREF(reply);
            return Ok(product);
        }
        let error = PyErr::fetch(py);
        if error.is_instance_of::<PyTypeError>(py) {
            return Ok(reply);
        }
        ffi::Py_DECREF(reply);
        Err(error)
    }
}

/// Whether nobody but us can know what these operands mean together.
fn all_known(args: &[*mut PyObject]) -> bool {
    // SAFETY: live operands.
    args.iter().all(|&a| unsafe {
        is_tensor(a) || ffi::PyFloat_CheckExact(a) != 0 || ffi::PyLong_Check(a) != 0
    })
}

macro_rules! binary {
    ($($slot:ident => $named:ident),* $(,)?) => {$(
        unsafe extern "C" fn $slot(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
            // SAFETY: a slot, called with the GIL.
            unsafe { guard(|py| operate(py, &$named, &[a, b])) }
        }
    )*};
}
unsafe extern "C" fn true_divide(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot, called with the GIL, with a tensor on one side.
    unsafe {
        guard(|py| if is_tensor(a) { operate(py, &TRUEDIV, &[a, b]) } else { divide_by(py, a, b) })
    }
}

macro_rules! either {
    ($($slot:ident => $named:ident, $reflected:ident);* $(;)?) => {$(
        unsafe extern "C" fn $slot(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
            // SAFETY: a slot, called with the GIL, with a tensor on one side.
            unsafe { guard(|py| operate_either(py, &$named, &$reflected, [a, b])) }
        }
    )*};
}
either! { add => ADD, ADD; subtract => SUB, RSUB; multiply => MUL, MUL }

binary! {
    floor_divide => FLOORDIV,
    remainder => REMAINDER, matrix_multiply => MATMUL, and => AND, or => OR, xor => XOR,
    lshift => LSHIFT, rshift => RSHIFT,
    inplace_subtract => ISUB, inplace_multiply => IMUL,
    inplace_true_divide => ITRUEDIV, inplace_floor_divide => IFLOORDIV,
    inplace_remainder => IREMAINDER, inplace_and => IAND, inplace_or => IOR, inplace_xor => IXOR,
    inplace_lshift => ILSHIFT, inplace_rshift => IRSHIFT,
}

/// `a += b`; `a + b` where neither operand implements it. (Python would fall back by itself, but would call the slot that
/// concatenates sequences where a subclass has one, and take its `NotImplemented` for the result.)
unsafe extern "C" fn inplace_add(a: *mut PyObject, b: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot, called with the GIL; what it returns is a new reference.
    unsafe {
        guard(|py| {
            let reply = Bound::from_owned_ptr(py, operate(py, &IADD, &[a, b])?);
            if !reply.is(py.NotImplemented()) {
                return Ok(reply.into_ptr());
            }
            let sum = ffi::PyNumber_Add(a, b);
            if sum.is_null() { Err(PyErr::fetch(py)) } else { Ok(sum) }
        })
    }
}

macro_rules! unary {
    ($($slot:ident => $named:ident),* $(,)?) => {$(
        unsafe extern "C" fn $slot(a: *mut PyObject) -> *mut PyObject {
            // SAFETY: a slot, called with the GIL.
            unsafe { guard(|py| operate(py, &$named, &[a])) }
        }
    )*};
}
unary! { negative => NEG, positive => POS, absolute => ABS }

unsafe extern "C" fn invert(a: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            let dtype = tensor_of(a).dtype();
            if !dtype.is_integral(true) && !has_override(a) {
                return Err(PyTypeError::new_err(format!(
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on torch.{}",
                    dtype.spelled()
                )));
            }
            operate(py, &INVERT, &[a])
        })
    }
}

unsafe extern "C" fn power(a: *mut PyObject, b: *mut PyObject, m: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot, called with the GIL.
    unsafe {
        guard(
            |py| {
                if m != ffi::Py_None() { Ok(not_implemented()) } else { operate(py, &POW, &[a, b]) }
            },
        )
    }
}

unsafe extern "C" fn inplace_power(
    a: *mut PyObject,
    b: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: a slot, called with the GIL.
    unsafe { guard(|py| operate(py, &IPOW, &[a, b])) }
}

pub(crate) unsafe extern "C" fn compare(
    a: *mut PyObject,
    b: *mut PyObject,
    op: c_int,
) -> *mut PyObject {
    let named = match op {
        ffi::Py_LT => &LT,
        ffi::Py_LE => &LE,
        ffi::Py_EQ => &EQ,
        ffi::Py_NE => &NE,
        ffi::Py_GT => &GT,
        _ => &GE,
    };
    // SAFETY: a slot, called with the GIL.
    unsafe {
        guard(|py| {
            let reply = operate(py, named, &[a, b])?;
            let is_left_to_other = reply == ffi::Py_NotImplemented();
            if is_left_to_other && matches!(op, ffi::Py_EQ | ffi::Py_NE) {
                return compare_with_array(py, named, [a, b], reply);
            }
            Ok(reply)
        })
    }
}

/// Whether a tensor and an array are equal, element by element. (Both types leave comparisons to the other, and Python then
/// compares their addresses.) Arrays that no tensor can hold are not equal.
///
/// # Safety
/// Live operands, and a reference to `NotImplemented` that this function may return or drop.
#[cold]
unsafe fn compare_with_array(
    py: Python<'_>,
    named: &NamedSlot,
    [a, b]: [*mut PyObject; 2],
    reply: *mut PyObject,
) -> Reply {
    // SAFETY: the caller's promise.
    unsafe {
        let other = Bound::from_borrowed_ptr(py, b);
        if !is_tensor(a) || is_tensor(b) || !numpy::is_array(&other) {
            return Ok(reply);
        }
        let Ok(array) = numpy::from_array(&other, false) else { return Ok(reply) };
        ffi::Py_DECREF(reply);
        let array = wrap_bound(py, array)?;
        operate(py, named, &[a, array.as_ptr()])
    }
}

/// The result of an override of the method `name` of a tensor, called without arguments.
///
/// # Safety
/// A live tensor.
#[inline(always)]
pub(super) unsafe fn dispatch_unary<'py>(
    py: Python<'py>,
    name: &str,
    a: *mut PyObject,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    // SAFETY: the caller's promise; a reply is a new reference.
    unsafe {
        if !has_override(a) {
            return None;
        }
        let reply = dispatch_operator(py, name, &[a])?;
        Some(reply.map(|reply| Bound::from_owned_ptr(py, reply)))
    }
}

unsafe extern "C" fn bool_slot(a: *mut PyObject) -> c_int {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard_or(-1, |py| {
            if let Some(reply) = dispatch_unary(py, "__bool__", a) {
                return reply?.is_truthy().map(c_int::from);
            }
            let tensor = tensor_of(a);
            match tensor.numel() {
                1 => Ok(c_int::from(!is_zero(tensor.item().map_err(crate::error::raise)?))),
                0 => Err(PyRuntimeError::new_err(
                    "Boolean value of Tensor with no values is ambiguous",
                )),
                _ => Err(PyRuntimeError::new_err(
                    "Boolean value of Tensor with more than one value is ambiguous",
                )),
            }
        })
    }
}

fn is_zero(value: Scalar) -> bool {
    match value {
        Scalar::Bool(b) => !b,
        Scalar::Int(i) => i == 0,
        Scalar::UInt(u) => u == 0,
        Scalar::Float(f) => f == 0.0,
        Scalar::Complex(re, im) => re == 0.0 && im == 0.0,
    }
}

unsafe fn number(a: *mut PyObject) -> PyResult<Scalar> {
    // SAFETY: called for tensors.
    let tensor = unsafe { tensor_of(a) };
    if tensor.numel() != 1 {
        return Err(PyValueError::new_err(format!(
            "only one element tensors can be converted to Python scalars, not one of {}",
            tensor.numel()
        )));
    }
    tensor.item().map_err(crate::error::raise)
}

unsafe extern "C" fn to_float(a: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            if let Some(reply) = dispatch_unary(py, "__float__", a) {
                return reply.map(Bound::into_ptr);
            }
            match number(a)? {
                Scalar::Complex(_, im) if im != 0.0 => Err(PyRuntimeError::new_err(
                    "value cannot be converted to type double without overflow",
                )),
                other => Ok(ffi::PyFloat_FromDouble(other.to_f64())),
            }
        })
    }
}

unsafe extern "C" fn to_int(a: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            if let Some(reply) = dispatch_unary(py, "__int__", a) {
                return reply.map(Bound::into_ptr);
            }
            let object = match number(a)? {
                // Python's own words for nan and infinity.
                Scalar::Float(f) => ffi::PyLong_FromDouble(f),
                Scalar::Complex(_, im) if im != 0.0 => {
                    return Err(PyRuntimeError::new_err(
                        "value cannot be converted to type int64_t without overflow",
                    ));
                }
                Scalar::UInt(u) => ffi::PyLong_FromUnsignedLongLong(u),
                other => ffi::PyLong_FromLongLong(other.to_i64()),
            };
            if object.is_null() { Err(PyErr::fetch(py)) } else { Ok(object) }
        })
    }
}

unsafe extern "C" fn to_index(a: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of tensors, called with the GIL.
    unsafe {
        guard(|py| {
            if let Some(reply) = dispatch_unary(py, "__index__", a) {
                return reply.map(Bound::into_ptr);
            }
            let tensor = tensor_of(a);
            if tensor.numel() != 1 || !tensor.dtype().is_integral(true) {
                return Err(PyTypeError::new_err(
                    "only integer tensors of a single element can be converted to an index",
                ));
            }
            crate::result::scalar(
                py,
                match number(a)? {
                    Scalar::Bool(b) => Scalar::Int(b.into()),
                    whole => whole,
                },
            )
        })
    }
}

/// The number slots.
pub(crate) fn slots() -> ffi::PyNumberMethods {
    // SAFETY: every slot may be null.
    let mut slots: ffi::PyNumberMethods = unsafe { std::mem::zeroed() };
    slots.nb_add = Some(add);
    slots.nb_subtract = Some(subtract);
    slots.nb_multiply = Some(multiply);
    slots.nb_true_divide = Some(true_divide);
    slots.nb_floor_divide = Some(floor_divide);
    slots.nb_remainder = Some(remainder);
    slots.nb_power = Some(power);
    slots.nb_matrix_multiply = Some(matrix_multiply);
    slots.nb_and = Some(and);
    slots.nb_or = Some(or);
    slots.nb_xor = Some(xor);
    slots.nb_lshift = Some(lshift);
    slots.nb_rshift = Some(rshift);
    slots.nb_inplace_add = Some(inplace_add);
    slots.nb_inplace_subtract = Some(inplace_subtract);
    slots.nb_inplace_multiply = Some(inplace_multiply);
    slots.nb_inplace_true_divide = Some(inplace_true_divide);
    slots.nb_inplace_floor_divide = Some(inplace_floor_divide);
    slots.nb_inplace_remainder = Some(inplace_remainder);
    slots.nb_inplace_power = Some(inplace_power);
    slots.nb_inplace_and = Some(inplace_and);
    slots.nb_inplace_or = Some(inplace_or);
    slots.nb_inplace_xor = Some(inplace_xor);
    slots.nb_inplace_lshift = Some(inplace_lshift);
    slots.nb_inplace_rshift = Some(inplace_rshift);
    slots.nb_negative = Some(negative);
    slots.nb_positive = Some(positive);
    slots.nb_absolute = Some(absolute);
    slots.nb_invert = Some(invert);
    slots.nb_bool = Some(bool_slot);
    slots.nb_int = Some(to_int);
    slots.nb_float = Some(to_float);
    slots.nb_index = Some(to_index);
    slots
}
