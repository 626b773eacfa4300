//! Tensors from Python data: nested sequences, numbers, arrays, other tensors.
//!
//! The dtype follows the data: bool < int < float < complex; floats get the default dtype.

use crate::convert::{is_numpy_scalar, items, to_scalar, type_name};
use crate::dtype::{as_device, as_dtype};
use crate::error::{raise, refused};
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{as_tensor, wrap};
use pullback::binding::{self, memory};
use pullback::tensor::promote::{default_dtype, promote_types};
use pullback::{DType, Device, Scalar, Tensor};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::mem::Discriminant;

/// The depth from which nested lists are taken for lists that contain themselves.
const MAX_DEPTH: usize = 128;

/// Flattened data.
#[derive(Default)]
struct FlatData {
    shape: Vec<i64>,
    values: Vec<Scalar>,
    dtype: Option<DType>,
    /// Whether there are integers that do not fit 64 bits; they are kept as real numbers.
    has_huge: bool,
    /// Whether there are integers beyond the range of doubles.
    has_endless: bool,
}

/// Whether data is read as a sequence of parts.
pub(crate) fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || (object.hasattr("__len__").unwrap_or(false)
            && object.hasattr("__getitem__").unwrap_or(false)
            && !object.is_instance_of::<PyString>()
            && !object.is_instance_of::<PyBytes>()
            && !object.is_instance_of::<PyDict>())
}

/// The elements of a sequence that is no tensor.
fn elements<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Some(items) = items(object.as_ptr()) {
        // SAFETY: live items of a list that the caller holds.
        let live = items.iter().map(|&i| unsafe { Bound::from_borrowed_ptr(object.py(), i) });
        return memory::collect(live).map_err(refused);
    }
    let length = object.len()?;
    let mut elements = Vec::new();
    for index in 0..length {
        memory::push(&mut elements, object.get_item(index)?).map_err(refused)?;
    }
    Ok(elements)
}

/// A tensor, or an array as one, in the place of a sequence of its elements.
fn elements_of(object: &Bound<'_, PyAny>) -> Option<Tensor> {
    if let Some(tensor) = as_tensor(object) {
        return Some(tensor.clone());
    }
    // (An array that no tensor can show is read as any other sequence.)
    let is_array = || super::numpy::is_array(object);
    if is_array() { super::numpy::from_array(object, false).ok() } else { None }
}

/// The shape by the first element of each level. A tensor of one element in a list is a number.
fn shape_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let mut shape = Vec::new();
    let mut current = data.clone();
    while is_sequence(&current) {
        if let Some(tensor) = elements_of(&current) {
            if shape.is_empty() || tensor.numel() != 1 || as_tensor(&current).is_none() {
                shape.extend_from_slice(tensor.shape());
            }
            return Ok(shape);
        }
        let length = current.len()?;
        shape.push(length as i64);
        if shape.len() > MAX_DEPTH {
            return Err(PyValueError::new_err(format!(
                "too many dimensions '{}'",
                type_name(data)
            )));
        }
        if length == 0 {
            return Ok(shape);
        }
        current = current.get_item(0).map_err(|_| {
            let name = type_name(&current);
            let name = name.rsplit('.').next().unwrap_or_default();
            PyValueError::new_err(format!("could not determine the shape of object type '{name}'"))
        })?;
    }
    if !shape.is_empty() && current.is_instance_of::<PyString>() {
        // (The items of a text are texts again, without end.)
        return Err(PyValueError::new_err("too many dimensions 'str'"));
    }
    Ok(shape)
}

/// The number of values between two checks for signals.
const LOOK: usize = 1 << 14;

/// A list or tuple, and no subclass: their items are read where they lie.
fn is_plain_sequence(object: *mut PyObject) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyList_CheckExact(object) != 0 || ffi::PyTuple_CheckExact(object) != 0 }
}

/// Nested plain lists of plain numbers of one kind: what most data is, read in one pass.
struct Plain {
    shape: SmallVec<[i64; 4]>,
    values: SmallVec<[Scalar; 8]>,
    /// The number of values at the last check for signals.
    looked: usize,
}

impl Plain {
    /// `None` for everything else, wrong data included, which [`FlatData`] reads and words the errors for.
    fn read(data: &Bound<'_, PyAny>) -> PyResult<Option<Plain>> {
        let mut plain = Plain { shape: SmallVec::new(), values: SmallVec::new(), looked: 0 };
        let Some(first) = plain.look_down(data.as_ptr()) else { return Ok(None) };
        let is_plain = plain.fill(data.py(), data.as_ptr(), 0, std::mem::discriminant(&first))?;
        Ok(is_plain.then_some(plain))
    }

    /// Notes the size of each level; gives the first number.
    fn look_down(&mut self, mut first: *mut PyObject) -> Option<Scalar> {
        while is_plain_sequence(first) {
            let items = items(first)?;
            self.shape.push(items.len() as i64);
            first = *items.first()?;
            if self.shape.len() > MAX_DEPTH {
                return None;
            }
        }
        if self.shape.is_empty() { None } else { plain_number(first) }
    }

    /// Reads a level; `false` if it is not plain. A signal's handler may change the lists in between, so each is held and its
    /// items are read anew.
    fn fill(
        &mut self,
        py: Python<'_>,
        object: *mut PyObject,
        depth: usize,
        kind: Discriminant<Scalar>,
    ) -> PyResult<bool> {
        let size = self.shape[depth] as usize;
        let is_innermost = depth + 1 == self.shape.len();
        let step = if is_innermost { LOOK } else { 1 };
        if is_innermost {
            memory::grow(&mut self.values, size).map_err(refused)?;
        }
        for at in (0..size.max(1)).step_by(step) {
            if self.values.len() - self.looked >= LOOK {
                self.looked = self.values.len();
                py.check_signals()?;
            }
            let is_plain = is_plain_sequence(object);
            let Some(items) = items(object).filter(|items| is_plain && items.len() == size) else {
                return Ok(false);
            };
            if !is_innermost {
                let Some(&item) = items.get(at) else { return Ok(true) };
                // SAFETY: an item of the list as it is now.
                let item = unsafe { Bound::from_borrowed_ptr(py, item) };
                if !self.fill(py, item.as_ptr(), depth + 1, kind)? {
                    return Ok(false);
                }
                continue;
            }
            for &item in &items[at..size.min(at + LOOK)] {
                match plain_number(item).filter(|v| std::mem::discriminant(v) == kind) {
                    // bounded: there is room.
                    Some(value) => self.values.push(value),
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    fn tensor(self, dtype: Option<DType>) -> PyResult<Tensor> {
        let own = match self.values[0] {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            _ => default_dtype(),
        };
        let dtype = dtype.unwrap_or(own);
        if !dtype.is_floating_point() {
            self.values.iter().try_for_each(|&value| check_fits(value, dtype))?;
        }
        binding::from_scalars(&self.values, &self.shape, dtype).map_err(raise)
    }
}

/// A float, an integer that fits, or a bool; no subclass.
fn plain_number(object: *mut PyObject) -> Option<Scalar> {
    // SAFETY: a live item of a list that the caller holds; no Python code runs.
    unsafe {
        if ffi::PyFloat_CheckExact(object) != 0 {
            Some(Scalar::Float(ffi::PyFloat_AS_DOUBLE(object)))
        } else if ffi::PyLong_CheckExact(object) != 0 {
            let mut overflow = 0;
            let value = ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow);
            (overflow == 0).then_some(Scalar::Int(value))
        } else if ffi::PyBool_Check(object) != 0 {
            Some(Scalar::Bool(object == ffi::Py_True()))
        } else {
            None
        }
    }
}

impl FlatData {
    fn read(data: &Bound<'_, PyAny>) -> PyResult<FlatData> {
        let mut flat = FlatData { shape: shape_of(data)?, ..FlatData::default() };
        flat.fill(data, 0)?;
        Ok(flat)
    }

    fn note(&mut self, dtype: DType) -> PyResult<()> {
        let joined = self.dtype.map_or(Ok(dtype), |d| promote_types(d, dtype));
        self.dtype = Some(joined.map_err(raise)?);
        Ok(())
    }

    fn fill(&mut self, data: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let is_number = plain_number(data.as_ptr()).is_some();
        if let Some(tensor) = (!is_number).then(|| elements_of(data)).flatten() {
            return self.extend(&tensor, depth, as_tensor(data).is_some());
        }
        if depth == self.shape.len() {
            return self.number(data);
        }
        if !is_sequence(data) {
            return Err(PyTypeError::new_err(format!(
                "not a sequence: expected length {} at dim {depth}, got {}",
                self.shape[depth],
                type_name(data)
            )));
        }
        let elements = elements(data)?;
        if elements.len() as i64 != self.shape[depth] {
            return Err(length_mismatch(self.shape.get(depth), elements.len(), depth));
        }
        elements.iter().try_for_each(|element| self.fill(element, depth + 1))
    }

    /// The elements of what stands at this depth: a tensor, or an array shown as one.
    fn extend(&mut self, tensor: &Tensor, depth: usize, is_tensor: bool) -> PyResult<()> {
        let is_number = is_tensor && tensor.numel() == 1 && depth == self.shape.len();
        if tensor.shape() != &self.shape[depth..] && !is_number {
            return Err(length_mismatch(self.shape.get(depth), tensor.numel() as usize, depth));
        }
        self.note(tensor.dtype())?;
        tensor.check_elements().map_err(raise)?;
        let elements = tensor.elements().map_err(raise)?;
        memory::extend(&mut self.values, elements).map_err(refused)
    }

    fn number(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        if data.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
        }
        if is_sequence(data) {
            return Err(PyValueError::new_err(format!(
                "only one element tensors can be converted to Python scalars (at dim {})",
                self.shape.len()
            )));
        }
        if self.values.len() & (LOOK - 1) == LOOK - 1 {
            data.py().check_signals()?;
        }
        let value = match to_scalar(data) {
            Ok(value) => value,
            Err(_) if data.is_instance_of::<PyInt>() => self.huge(data),
            Err(_) if data.is_none() => {
                return Err(PyRuntimeError::new_err("Could not infer dtype of NoneType"));
            }
            Err(_) => {
                let name = type_name(data);
                return Err(PyRuntimeError::new_err(format!("Could not infer dtype of {name}")));
            }
        };
        let natural = match value {
            Scalar::Bool(_) => DType::Bool,
            _ if data.is_instance_of::<PyInt>() => DType::I64,
            Scalar::Int(_) | Scalar::UInt(_) => DType::I64,
            Scalar::Float(_) => default_dtype(),
            Scalar::Complex(..) => default_dtype().to_complex(),
        };
        self.note(super::numpy::dtype_of_scalar(data).unwrap_or(natural))?;
        memory::push(&mut self.values, value).map_err(refused)
    }

    /// A whole number of more than 64 bits: only floating dtypes and bool take it.
    fn huge(&mut self, data: &Bound<'_, PyAny>) -> Scalar {
        self.has_huge = true;
        let value = data.extract::<f64>();
        self.has_endless |= value.is_err();
        Scalar::Float(value.unwrap_or(f64::INFINITY))
    }

    fn tensor(self, dtype: Option<DType>) -> PyResult<Tensor> {
        let dtype = dtype.or(self.dtype).unwrap_or_else(default_dtype);
        if self.has_huge && dtype.is_integral(false) {
            return Err(overflow());
        }
        if self.has_endless && dtype != DType::Bool {
            return Err(PyOverflowError::new_err("int too large to convert to float"));
        }
        for value in &self.values {
            check_fits(*value, dtype)?;
        }
        binding::from_scalars(&self.values, &self.shape, dtype).map_err(raise)
    }
}

/// A whole number is beyond its dtype's 64 bits.
fn overflow() -> PyErr {
    PyValueError::new_err("Overflow when unpacking long long")
}

fn length_mismatch(expected: Option<&i64>, got: usize, dim: usize) -> PyErr {
    PyValueError::new_err(format!(
        "expected sequence of length {} at dim {dim} (got {got})",
        expected.copied().unwrap_or(1)
    ))
}

/// Refuses numbers that the dtype cannot hold.
fn check_fits(value: Scalar, dtype: DType) -> PyResult<()> {
    let is_real = dtype.is_floating_point();
    let fits = match value {
        Scalar::Int(number) if number < 0 && dtype == DType::U64 => {
            return Err(PyOverflowError::new_err("can't convert negative int to unsigned"));
        }
        Scalar::Int(number) => holds(dtype, number),
        Scalar::UInt(_) if dtype.is_integral(false) && dtype != DType::U64 => {
            return Err(overflow());
        }
        Scalar::UInt(_) => true,
        Scalar::Float(_) if !is_real => value.check_fits(dtype).is_ok(),
        Scalar::Complex(re, im) if !is_real && im == 0.0 => {
            Scalar::Float(re).check_fits(dtype).is_ok()
        }
        Scalar::Complex(_, im) => im == 0.0 || dtype.is_complex() || dtype == DType::Bool,
        Scalar::Bool(_) | Scalar::Float(_) => true,
    };
    if fits {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "value cannot be converted to type {} without overflow",
        cpp_name(dtype)
    )))
}

/// Whether `dtype` has a place for a whole number.
fn holds(dtype: DType, number: i64) -> bool {
    let (least, most) = match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::U16 => (0, i64::from(u16::MAX)),
        DType::U32 => (0, i64::from(u32::MAX)),
        _ => return true,
    };
    // PyTorch lets -1 stand for 255 and the like.
    if least == 0 { number.unsigned_abs() <= most as u64 } else { (least..=most).contains(&number) }
}

fn cpp_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::F64 => "double",
        DType::F32 => "float",
        _ => dtype.name(),
    }
}

/// A tensor of `data`; arrays share memory where `copy` is not set.
pub(crate) fn from_data(
    data: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: Option<Device>,
    copy: bool,
) -> PyResult<Tensor> {
    if let Some(device) = device {
        device.check_available().map_err(raise)?;
        let made = from_data(data, dtype, None, copy)?;
        return on(made, Some(device));
    }
    if let Some(plain) = Plain::read(data)? {
        return plain.tensor(dtype);
    }
    if let Some(tensor) = as_tensor(data) {
        let tensor = if copy { tensor.detached_alias().map_err(raise)? } else { tensor.clone() };
        let dtype = dtype.unwrap_or(tensor.dtype());
        return if copy { tensor.copied(dtype) } else { tensor.to_dtype(dtype) }.map_err(raise);
    }
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    let shared = if super::numpy::is_array(data) {
        Some(super::numpy::from_array(data, false)?)
    } else if data.hasattr("__dlpack__")? && !is_sequence(data) {
        Some(super::dlpack::import(data)?)
    } else if is_plain_sequence(data.as_ptr()) || plain_number(data.as_ptr()).is_some() {
        None
    } else {
        super::storage::shown(data, dtype)?
    };
    if let Some(tensor) = shared {
        let dtype = dtype.unwrap_or(tensor.dtype());
        return if copy { tensor.copied(dtype) } else { tensor.to_dtype(dtype) }.map_err(raise);
    }
    FlatData::read(data)?.tensor(dtype)
}

/// The tensor on a device: itself if it is there already.
fn on(tensor: Tensor, device: Option<Device>) -> PyResult<Tensor> {
    match device {
        Some(device) if device != tensor.device() => {
            tensor.to(None, Some(device), false, None).map_err(raise)
        }
        _ => Ok(tensor),
    }
}

fn option<T>(
    value: Option<&Bound<'_, PyAny>>,
    function: &str,
    name: &str,
    expected: &str,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    let Some(value) = value.filter(|v| !v.is_none()) else { return Ok(None) };
    match read(value)? {
        Some(read) => Ok(Some(read)),
        None => Err(PyTypeError::new_err(format!(
            "{function}(): argument '{name}' must be {expected}, not {}",
            type_name(value)
        ))),
    }
}

pub(crate) fn dtype_option(
    value: Option<&Bound<'_, PyAny>>,
    function: &str,
) -> PyResult<Option<DType>> {
    option(value, function, "dtype", "torch.dtype", |v| Ok(as_dtype(v)))
}
pub(crate) fn device_option(
    value: Option<&Bound<'_, PyAny>>,
    function: &str,
) -> PyResult<Option<Device>> {
    option(value, function, "device", "torch.device", as_device)
}

fn flag(value: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    value.map_or(Ok(false), PyAnyMethods::is_truthy)
}

/// The error for pinned memory, which needs an accelerator.
pub(crate) fn no_accelerator() -> PyErr {
    PyRuntimeError::new_err("Cannot access accelerator device when none is available.")
}

fn finish(py: Python<'_>, tensor: Tensor, requires_grad: bool) -> Reply {
    let _ = py;
    tensor.mark_inference_if_due();
    if requires_grad {
        crate::result::require_grad(&tensor)?;
    }
    wrap(tensor)
}

/// `torch.tensor(data, *, dtype, device, requires_grad, pin_memory)`: always a copy.
pub(crate) fn tensor(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["data", "dtype", "device", "requires_grad", "pin_memory"];
    let [data, dtype, device, requires_grad, pin_memory] = args.bind(py, "tensor", names, 1)?;
    if flag(pin_memory.as_ref())? {
        return Err(no_accelerator());
    }
    let data = data.expect("required");
    if as_tensor(&data).is_some() {
        binding::warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).".into());
    }
    let dtype = dtype_option(dtype.as_ref(), "tensor")?;
    let device = device_option(device.as_ref(), "tensor")?;
    let made = from_data(&data, dtype, device, true)?;
    finish(py, made, flag(requires_grad.as_ref())?)
}

/// `torch.as_tensor(data, dtype, device)`: shares memory where it can.
pub(crate) fn as_tensor_function(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [data, dtype, device] = args.bind(py, "as_tensor", ["data", "dtype", "device"], 1)?;
    let dtype = dtype_option(dtype.as_ref(), "as_tensor")?;
    let device = device_option(device.as_ref(), "as_tensor")?;
    let made = from_data(&data.expect("required"), dtype, device, false)?;
    wrap(made)
}

/// `torch.asarray(obj, *, dtype, device, copy, requires_grad)`.
pub(crate) fn asarray(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["obj", "dtype", "device", "copy", "requires_grad"];
    let [data, dtype, device, copy, requires_grad] = args.bind(py, "asarray", names, 1)?;
    let dtype = dtype_option(dtype.as_ref(), "asarray")?;
    let device = device_option(device.as_ref(), "asarray")?;
    let given = |flag: Option<Bound<'_, PyAny>>| {
        flag.filter(|f| !f.is_none()).map(|f| f.is_truthy()).transpose()
    };
    let (copy, requires_grad) = (given(copy)?, given(requires_grad)?);
    let data = data.expect("required");
    let shown = shown_memory(&data, dtype)?;
    if copy == Some(false) {
        check_shows(&data, shown.as_ref(), dtype)?;
    }
    let copy = copy == Some(true);
    let made = match (shown, as_tensor(&data)) {
        (Some(tensor), _) if copy => tensor.copied(dtype.unwrap_or(tensor.dtype())),
        (Some(tensor), _) => tensor.to_dtype(dtype.unwrap_or(tensor.dtype())),
        // (With history, also of the copy.)
        (None, Some(tensor)) => tensor.to(dtype, device, copy, None),
        (None, None) => {
            return finish(py, from_data(&data, dtype, device, copy)?, requires_grad == Some(true));
        }
    };
    let made = on(made.map_err(raise)?, device)?;
    match requires_grad {
        Some(false) if made.requires_grad() => wrap(made.detached_alias().map_err(raise)?),
        Some(true) if !made.requires_grad() => finish(py, made, true),
        _ => wrap(made),
    }
}

/// Refuses what can be shown as a tensor of this dtype only by a copy.
fn check_shows(
    data: &Bound<'_, PyAny>,
    shown: Option<&Tensor>,
    dtype: Option<DType>,
) -> PyResult<()> {
    let own = match shown {
        Some(tensor) => tensor.dtype(),
        None => match elements_of(data) {
            Some(tensor) => tensor.dtype(),
            None if is_numpy_scalar(data) => {
                return Err(PyRuntimeError::new_err(
                    "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.",
                ));
            }
            None => {
                return Err(PyValueError::new_err("can't alias arbitrary sequence into a tensor."));
            }
        },
    };
    let wanted = dtype.unwrap_or(own);
    if wanted == own {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "can't alias tensor with dtype '{}' into dtype '{}'.",
        own.scalar_name().pytorch(),
        wanted.scalar_name().pytorch()
    )))
}

/// A tensor over memory that `data` exports by DLPack (capsules included) or by the buffer protocol; the bytes of a buffer
/// become a vector of `dtype`. `None` if `data` exports none.
fn shown_memory(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Tensor>> {
    if data.is_instance_of::<pyo3::types::PyCapsule>() {
        return super::dlpack::import(data).map(Some);
    }
    // SAFETY: a live object; the result is a flag.
    let has_buffer = unsafe { pyo3::ffi::PyObject_CheckBuffer(data.as_ptr()) } != 0;
    let is_known = as_tensor(data).is_some()
        || Plain::read(data)?.is_some()
        || super::numpy::is_array(data)
        || data.hasattr("__array_interface__")?;
    if is_known {
        return Ok(None);
    }
    if data.hasattr("__dlpack__")? {
        return if is_sequence(data) { Ok(None) } else { super::dlpack::import(data).map(Some) };
    }
    if !has_buffer {
        return Ok(None);
    }
    super::numpy::over_buffer(data, dtype.unwrap_or_else(default_dtype), -1, 0).map(Some)
}

/// `x.new_tensor(data, *, dtype, device, requires_grad)`.
pub(crate) fn new_tensor(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["data", "dtype", "device", "requires_grad"];
    let [data, dtype, device, requires_grad] = args.bind(py, "new_tensor", names, 1)?;
    let dtype = dtype_option(dtype.as_ref(), "new_tensor")?;
    // SAFETY: a method of tensors.
    let like = unsafe { crate::raw::object::tensor_of(slf) };
    let device = device_option(device.as_ref(), "new_tensor")?.unwrap_or(like.device());
    let dtype = dtype.unwrap_or(like.dtype());
    let made = from_data(&data.expect("required"), Some(dtype), Some(device), true)?;
    finish(py, made, flag(requires_grad.as_ref())?)
}
