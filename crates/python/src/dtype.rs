//! `dtype`, `layout`, `memory_format`, `device` and `Generator`: the small value types.
//!
//! dtypes, layouts and memory formats are single objects, compared by identity; their printed names
//! are PyTorch's.

use crate::error::raise;
use crate::raw::object::as_tensor;
use pullback::{DType, Device, Generator, Layout, MemoryFormat, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `torch.float32` and its siblings.
#[pyclass(name = "dtype", module = "torch", frozen)]
pub(crate) struct PyDType(pub(crate) DType);

/// `torch.strided` and its siblings.
#[pyclass(name = "layout", module = "torch", frozen)]
pub(crate) struct PyLayout(pub(crate) Layout);

/// `torch.contiguous_format` and its siblings.
#[pyclass(name = "memory_format", module = "torch", frozen)]
pub(crate) struct PyMemoryFormat(pub(crate) MemoryFormat);

/// `torch.device`.
#[pyclass(name = "device", module = "torch", frozen)]
pub(crate) struct PyDevice {
    pub(crate) device: Device,
    /// Whether the index was given: `device('cpu')` and `device('cpu:0')` are printed differently.
    index: Option<u8>,
}

/// `torch.Generator`.
#[pyclass(name = "Generator", module = "torch", frozen, weakref)]
pub(crate) struct PyGenerator(pub(crate) Generator);

/// The objects of the dtypes: made at import, alive as long as the process.
static DTYPES: [AtomicPtr<PyObject>; DType::ALL.len()] =
    [const { AtomicPtr::new(null_mut()) }; DType::ALL.len()];
static LAYOUTS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
static FORMATS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
static CPU: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

const ALL_FORMATS: [MemoryFormat; 4] = [
    MemoryFormat::Contiguous,
    MemoryFormat::Preserve,
    MemoryFormat::ChannelsLast,
    MemoryFormat::ChannelsLast3d,
];

/// The second names of dtypes.
const ALIASES: [(&str, DType); 11] = [
    ("float", DType::F32),
    ("double", DType::F64),
    ("half", DType::F16),
    ("chalf", DType::C32),
    ("cfloat", DType::C64),
    ("cdouble", DType::C128),
    ("short", DType::I16),
    ("int", DType::I32),
    ("long", DType::I64),
    ("bool", DType::Bool),
    ("bfloat16", DType::BF16),
];

/// The name of a memory format.
pub(crate) fn memory_format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "contiguous_format",
        MemoryFormat::Preserve => "preserve_format",
        MemoryFormat::ChannelsLast => "channels_last",
        MemoryFormat::ChannelsLast3d => "channels_last_3d",
    }
}

pub(crate) fn memory_format_by_name(name: &str) -> Option<MemoryFormat> {
    ALL_FORMATS.into_iter().find(|&f| memory_format_name(f) == name)
}

pub(crate) fn dtype_by_name(name: &str) -> Option<DType> {
    let alias = ALIASES.iter().find(|(n, _)| *n == name).map(|(_, d)| *d);
    alias.or_else(|| DType::ALL.into_iter().find(|d| d.name() == name))
}

/// The dtype's object.
pub(crate) fn dtype_object(py: Python<'_>, dtype: DType) -> Bound<'_, PyAny> {
    // SAFETY: a live object, made at import.
    unsafe { Bound::from_borrowed_ptr(py, shared_dtype(dtype)) }
}
/// The dtype's object as a borrowed reference: it lives as long as the process.
#[inline(always)]
pub(crate) fn shared_dtype(dtype: DType) -> *mut PyObject {
    DTYPES[dtype as usize].load(Relaxed)
}
/// The layout's object.
pub(crate) fn layout_object(py: Python<'_>, layout: Layout) -> Bound<'_, PyAny> {
    LAYOUTS.get(py).expect("made at import")[layout as usize].bind(py).clone()
}
/// A device's object.
pub(crate) fn device_object(py: Python<'_>, device: Device) -> PyResult<Bound<'_, PyAny>> {
    if device == Device::Cpu {
        return Ok(CPU.get(py).expect("made at import").bind(py).clone());
    }
    Ok(Bound::new(py, PyDevice { device, index: device.index() })?.into_any())
}

/// The dtype that `object` is or names: a dtype, or one of Python's number types.
pub(crate) fn as_dtype(object: &Bound<'_, PyAny>) -> Option<DType> {
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Some(dtype.get().0);
    }
    let py = object.py();
    if object.is(py.get_type::<PyFloat>()) {
        Some(DType::F64)
    } else if object.is(py.get_type::<PyInt>()) {
        Some(DType::I64)
    } else if object.is(py.get_type::<PyBool>()) {
        Some(DType::Bool)
    } else if object.is(py.get_type::<PyComplex>()) {
        Some(DType::C128)
    } else {
        None
    }
}

pub(crate) fn as_layout(object: &Bound<'_, PyAny>) -> Option<Layout> {
    object.cast::<PyLayout>().ok().map(|l| l.get().0)
}
pub(crate) fn as_memory_format(object: &Bound<'_, PyAny>) -> Option<MemoryFormat> {
    object.cast::<PyMemoryFormat>().ok().map(|f| f.get().0)
}
pub(crate) fn as_generator(object: &Bound<'_, PyAny>) -> Option<Generator> {
    object.cast::<PyGenerator>().ok().map(|g| g.get().0.clone())
}

/// The device that `object` is or names; `None` if it is nothing of the kind.
pub(crate) fn as_device(object: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(Some(device.get().device));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Device::parse(text.to_str()?).map(Some).map_err(raise);
    }
    Ok(None)
}

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("pullback._C")?.getattr("_dtype_by_name")?, (self.0.name(),)))
    }
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_floating_point()
    }
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }
    fn to_real<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        dtype_object(py, self.0.to_real())
    }
    fn to_complex<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // (Ops compute complex numbers with `bf16` in wider ones.)
        if self.0 == DType::BF16 {
            return Ok(dtype_object(py, DType::BC32));
        }
        pullback::tensor::promote::complex_of(self.0)
            .map(|dtype| dtype_object(py, dtype))
            .map_err(raise)
    }
}

#[pymethods]
impl PyLayout {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("pullback._C")?.getattr("_constant_by_name")?, (self.0.name(),)))
    }
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

#[pymethods]
impl PyMemoryFormat {
    fn __repr__(&self) -> String {
        format!("torch.{}", memory_format_name(self.0))
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        let name = memory_format_name(self.0);
        Ok((py.import("pullback._C")?.getattr("_constant_by_name")?, (name,)))
    }
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<Self> {
        if let Ok(device) = r#type.cast::<PyDevice>() {
            let device = device.get();
            return Ok(PyDevice { device: device.device, index: device.index });
        }
        let text: String = if let Ok(text) = r#type.extract::<String>() {
            text
        } else if let Ok(index) = r#type.extract::<i64>() {
            format!("cuda:{index}")
        } else {
            return Err(PyTypeError::new_err(format!(
                "device(): argument 'type' must be torch.device, not {}",
                crate::convert::type_name(r#type)
            )));
        };
        if index.is_some() && text.contains(':') {
            return Err(PyRuntimeError::new_err(format!(
                "type (string) must not include an index because index was passed explicitly: {text}"
            )));
        }
        if index.is_some_and(|i| i < 0) {
            return Err(PyRuntimeError::new_err("Device index must not be negative"));
        }
        let text = index.map_or(text.clone(), |i| format!("{text}:{i}"));
        let device = Device::parse(&text).map_err(raise)?;
        let index = text.split_once(':').and_then(|(_, i)| i.parse().ok());
        Ok(PyDevice { device, index })
    }
    /// New tensors are made on this device until `__exit__`.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pullback.utils._device")?.call_method1("_enter", (slf,))
    }
    #[pyo3(signature = (*_error))]
    fn __exit__(slf: &Bound<'_, Self>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        slf.py().import("pullback.utils._device")?.call_method0("_leave").map(drop)
    }
    #[getter]
    fn r#type(&self) -> &'static str {
        self.device.kind()
    }
    #[getter]
    fn index(&self) -> Option<u8> {
        self.index
    }
    fn __repr__(&self) -> String {
        let kind = self.device.kind();
        self.index.map_or_else(
            || format!("device(type='{kind}')"),
            |i| format!("device(type='{kind}', index={i})"),
        )
    }
    fn __str__(&self) -> String {
        let kind = self.device.kind();
        self.index.map_or_else(|| kind.to_owned(), |i| format!("{kind}:{i}"))
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |o: &Bound<'_, PyDevice>| {
            (o.get().device.kind(), o.get().index) == (self.device.kind(), self.index)
        };
        other.cast::<PyDevice>().is_ok_and(same)
    }
    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.device.kind(), self.index).hash(&mut hasher);
        hasher.finish()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.import("pullback._C")?.getattr("_make_device")?, (self.__str__(),)))
    }
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        if let Some(device) = device
            && let Some(device) = as_device(device)?
        {
            device.check_memory("generators").map_err(raise)?;
        }
        Ok(PyGenerator(Generator::new(pullback::binding::DEFAULT_SEED)))
    }
    #[getter]
    fn device(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Ok(device_object(slf.py(), Device::Cpu)?.unbind())
    }
    fn manual_seed<'py>(slf: &Bound<'py, Self>, seed: i128) -> PyResult<Bound<'py, Self>> {
        slf.get().0.set_seed(check_seed(seed)?);
        Ok(slf.clone())
    }
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }
    fn seed(&self) -> u64 {
        self.0.reseed()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Py<PyAny>,))> {
        let make = py.import("pullback._C")?.getattr("_generator_of")?;
        Ok((make, (self.get_state(py)?,)))
    }
    fn get_state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = self.0.state();
        let tensor = Tensor::from_slice(&bytes, &[bytes.len() as i64]).map_err(raise)?;
        Ok(crate::raw::object::wrap_bound(py, tensor)?.unbind())
    }
    fn set_state<'py>(
        slf: &Bound<'py, Self>,
        new_state: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let Some(tensor) = as_tensor(new_state) else {
            return Err(PyTypeError::new_err(format!(
                "expected a torch.ByteTensor, but got {}",
                crate::convert::type_name(new_state)
            )));
        };
        if tensor.dtype() != DType::U8 {
            return Err(PyTypeError::new_err("RNG state must be a torch.ByteTensor"));
        }
        slf.get().0.set_state(&tensor.to_vec::<u8>().map_err(raise)?).map_err(raise)?;
        Ok(slf.clone())
    }
    fn clone_state(&self) -> PyGenerator {
        PyGenerator(self.0.clone_state())
    }
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("<torch._C.Generator object at {:#x}>", slf.as_ptr() as usize)
    }
}

/// A seed as PyTorch takes it: 64 bits, signed or not.
pub(crate) fn check_seed(seed: i128) -> PyResult<u64> {
    if seed < i128::from(i64::MIN) || seed > i128::from(u64::MAX) {
        return Err(PyRuntimeError::new_err("Overflow when unpacking long"));
    }
    Ok(seed as u64)
}

/// The device called `name`, for pickle.
#[pyfunction]
fn _make_device(name: &Bound<'_, PyAny>) -> PyResult<PyDevice> {
    PyDevice::new(name, None)
}

/// The dtype called `name`.
#[pyfunction]
fn _dtype_by_name<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    dtype_by_name(name)
        .map(|d| dtype_object(py, d))
        .ok_or_else(|| PyTypeError::new_err(format!("there is no dtype {name}")))
}

/// The layout or memory format called `name`.
#[pyfunction]
fn _constant_by_name<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pullback._C")?.getattr(name)
}

/// A generator in this state.
#[pyfunction]
fn _generator_of<'py>(
    py: Python<'py>,
    state: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyGenerator>> {
    let made = Bound::new(py, PyGenerator(Generator::new(pullback::binding::DEFAULT_SEED)))?;
    PyGenerator::set_state(&made, state)
}

/// Adds the types and their constants to the module.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_function(wrap_pyfunction!(_generator_of, module)?)?;
    module.add_class::<PyDType>()?;
    module.add_class::<PyLayout>()?;
    module.add_class::<PyMemoryFormat>()?;
    module.add_class::<PyDevice>()?;
    module.add_class::<PyGenerator>()?;
    // dtypes are compared by identity, which is what the interpreter does by itself where a type does not say how:
    // without the call of `object`'s own function a comparison takes a tenth less.
    // SAFETY: a type of our own that nobody has used yet; its slot may be empty.
    unsafe { (*py.get_type::<PyDType>().as_type_ptr()).tp_richcompare = None };
    for dtype in DType::ALL {
        let object = Py::new(py, PyDType(dtype))?.into_any();
        module.add(dtype.name(), &object)?;
        DTYPES[dtype as usize].store(object.into_ptr(), Relaxed);
    }
    for (alias, dtype) in ALIASES {
        module.add(alias, dtype_object(py, dtype))?;
    }
    let layouts = Layout::ALL.map(|l| Py::new(py, PyLayout(l)).map(Py::into_any));
    let layouts = layouts.into_iter().collect::<PyResult<Vec<_>>>()?;
    for (layout, object) in Layout::ALL.iter().zip(&layouts) {
        module.add(layout.name(), object)?;
    }
    let _ = LAYOUTS.set(py, layouts);
    let formats = ALL_FORMATS.map(|f| Py::new(py, PyMemoryFormat(f)).map(Py::into_any));
    let formats = formats.into_iter().collect::<PyResult<Vec<_>>>()?;
    for (format, object) in ALL_FORMATS.iter().zip(&formats) {
        module.add(memory_format_name(*format), object)?;
    }
    let _ = FORMATS.set(py, formats);
    let cpu = Py::new(py, PyDevice { device: Device::Cpu, index: None })?;
    let _ = CPU.set(py, cpu.into_any());
    let generator = PyGenerator(pullback::default_generator().clone());
    module.add("default_generator", Py::new(py, generator)?)?;
    module.add_function(wrap_pyfunction!(_make_device, module)?)?;
    module.add_function(wrap_pyfunction!(_dtype_by_name, module)?)?;
    module.add_function(wrap_pyfunction!(_constant_by_name, module)?)?;
    Ok(())
}
