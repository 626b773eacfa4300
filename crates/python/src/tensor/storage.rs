//! `UntypedStorage`: the bytes behind tensors. One object per storage, which lives as long as the storage if it has
//! attributes, a class of its own or weak references (see `raw::storage`).
//!
//! Members that need no memory address (conversions, buffers, printing) are written in Python, in
//! the module `storage`, which is loaded on first use.

use crate::convert::{exact_int, has_index, to_int, type_name};
use crate::dtype::device_object;
use crate::error::{raise, refused};
use crate::raw::entry::Reply;
use crate::raw::object::tensor_of;
use crate::raw::storage::take_back;
use crate::result::{new_list, scalar};
use pullback::binding::{self, memory};
use pullback::tensor::promote::default_dtype;
use pullback::{DType, Device, Scalar, Storage, Tensor};
use pyo3::exceptions::{PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PySlice, PyTuple, PyType};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// `torch.UntypedStorage`.
#[pyclass(name = "UntypedStorage", module = "torch.storage", frozen, weakref, dict, subclass)]
#[repr(transparent)]
pub(crate) struct PyStorage(Storage);

impl Drop for PyStorage {
    fn drop(&mut self) {
        self.0.python_slot().store(null_mut(), Relaxed);
    }
}

/// `x.untyped_storage()`.
pub(crate) fn untyped_storage(py: Python<'_>, slf: *mut PyObject) -> Reply {
    // SAFETY: a method of tensors.
    let tensor = unsafe { tensor_of(slf) };
    if tensor.is_sparse() {
        return Err(PyNotImplementedError::new_err(format!(
            "Cannot access storage of {}TensorImpl",
            if tensor.layout().is_compressed() { "SparseCsr" } else { "Sparse" }
        )));
    }
    let Some(storage) = tensor.storage() else {
        return Err(PyTypeError::new_err("this tensor has no storage"));
    };
    object(py, storage)
}

fn object(py: Python<'_>, storage: Storage) -> Reply {
    let existing = storage.python_slot().load(Relaxed).cast::<PyObject>();
    if !existing.is_null() {
        // SAFETY: the slot is emptied when the object goes.
        unsafe {
            ffi::Py_INCREF(existing);
            take_back(existing);
        }
        return Ok(existing);
    }
    let object = Bound::new(py, PyStorage(storage))?;
    note(&object);
    Ok(object.into_any().into_ptr())
}

/// The Python object of a storage.
pub(crate) fn storage_object(py: Python<'_>, storage: Storage) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, object(py, storage)?) })
}

/// The storage of an `UntypedStorage`.
pub(crate) fn storage_bytes(object: &Bound<'_, PyAny>) -> Option<Storage> {
    object.cast::<PyStorage>().ok().map(|storage| note(storage).clone())
}

/// Makes the object findable for tensors that show the storage; it may have been made by its class.
fn note<'a>(object: &'a Bound<'_, PyStorage>) -> &'a Storage {
    let storage = object.get().own();
    storage.python_slot().store(object.as_ptr().cast(), Relaxed);
    storage
}

/// The storage of an `UntypedStorage`, or of a `TypedStorage` of this dtype.
fn storage_of(object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<Storage>> {
    if let Ok(storage) = object.cast::<PyStorage>() {
        return Ok(Some(note(storage).clone()));
    }
    let py = object.py();
    // A storage with a dtype exists only if its module was loaded.
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(module) = modules.get_item("pullback.storage") else { return Ok(None) };
    if !object.is_instance(&module.getattr("TypedStorage")?)? {
        return Ok(None);
    }
    let own = object.getattr("dtype")?;
    if crate::dtype::as_dtype(&own) != Some(dtype) {
        let own = crate::dtype::as_dtype(&own)
            .map_or("unknown", |dtype: DType| dtype.scalar_name().pytorch());
        return Err(PyRuntimeError::new_err(format!(
            "Expected a Storage of type {} or an UntypedStorage, but got type {own} for argument 1 'storage'",
            dtype.scalar_name().pytorch()
        )));
    }
    let untyped = object.getattr("_untyped_storage")?;
    Ok(Some(note(untyped.cast::<PyStorage>()?).clone()))
}

/// All elements of a storage object as a tensor; `None` for what is no storage.
pub(crate) fn tensor_of_storage(
    object: &Bound<'_, PyAny>,
    dtype: DType,
) -> PyResult<Option<Tensor>> {
    let Some(storage) = storage_of(object, dtype)? else { return Ok(None) };
    let size = [storage.nbytes() as i64 / dtype.size() as i64];
    binding::over_storage(&storage, &size, &[1], 0, dtype).map(Some).map_err(raise)
}

/// A storage as the data of a constructor: all its elements, shown in place; `None` for any other
/// object. Bytes without a dtype are whole numbers; a `TypedStorage` has to have the requested
/// dtype, or the default one.
pub(crate) fn shown(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Tensor>> {
    let natural = if object.is_instance_of::<PyStorage>() { DType::I64 } else { default_dtype() };
    tensor_of_storage(object, dtype.unwrap_or(natural))
}

/// A tensor over a storage object, which grows if need be.
pub(crate) fn tensor_over(
    object: &Bound<'_, PyAny>,
    dtype: DType,
    offset: i64,
    size: Option<Vec<i64>>,
    stride: Option<Vec<i64>>,
) -> PyResult<Tensor> {
    let Some(storage) = storage_of(object, dtype)? else {
        return Err(PyTypeError::new_err(format!(
            "set_() received an invalid combination of arguments - source must be a Tensor or a torch.Storage, not {}",
            type_name(object)
        )));
    };
    let size = size.unwrap_or_else(|| vec![storage.nbytes() as i64 / dtype.size() as i64 - offset]);
    let stride = stride.unwrap_or_else(|| pullback::tensor::contiguous_strides(&size).to_vec());
    binding::grow_to_hold(&storage, &size, &stride, offset, dtype).map_err(raise)?;
    crate::lock::give_back();
    binding::over_storage(&storage, &size, &stride, offset, dtype).map_err(raise)
}

/// Calls a function of the module `storage`.
fn call_package<'py, A>(py: Python<'py>, name: &str, args: A) -> PyResult<Bound<'py, PyAny>>
where
    A: pyo3::call::PyCallArgs<'py>,
{
    py.import("pullback.storage")?.getattr(name)?.call1(args)
}

/// A number as a byte; the higher bits are dropped, as in C.
fn byte_of(value: &Bound<'_, PyAny>, refuse: impl Fn(&str) -> String) -> PyResult<u8> {
    exact_int(value.py(), value.as_ptr())
        .map(|number| number as u8)
        .ok_or_else(|| PyRuntimeError::new_err(refuse(&type_name(value))))
}

/// The bytes that a sequence lists.
fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let name = type_name(data);
    let length = data.len().map_err(|_| {
        PyRuntimeError::new_err(format!(
            "torch.UntypedStorage(): Expected a sequence type, but got {name}"
        ))
    })?;
    let byte = |at: usize| {
        byte_of(&data.get_item(at)?, |item| {
            format!(
                "torch.UntypedStorage(): tried to construct a storage from a sequence ({name}), but one of the items was of type {item} instead of int"
            )
        })
    };
    let mut bytes = Vec::new();
    for at in 0..length {
        memory::push(&mut bytes, byte(at)?).map_err(refused)?;
    }
    Ok(bytes)
}

/// A size in bytes.
fn size_of_storage(size: i64) -> PyResult<usize> {
    usize::try_from(size).map_err(|_| {
        PyRuntimeError::new_err(format!(
            "the size of a storage cannot be a negative number: {size}"
        ))
    })
}

fn from_bytes(data: &[u8]) -> PyResult<Storage> {
    let storage = Storage::uninitialized(data.len()).map_err(raise)?;
    // SAFETY: a fresh storage of this size.
    unsafe {
        let to = storage.data_ptr_mut().map_err(raise)?;
        std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
    }
    Ok(storage)
}

impl PyStorage {
    /// A storage of no bytes.
    pub(crate) fn empty() -> pullback::Result<Self> {
        Storage::uninitialized(0).map(PyStorage)
    }
    /// The handle to the memory, as it is.
    pub(crate) fn handle(&self) -> &Storage {
        &self.0
    }
    /// The handle to the memory, marked as used from Python.
    fn own(&self) -> &Storage {
        if self.0.owns_python() {
            // SAFETY: the object of this storage, to which the caller has a reference.
            unsafe { take_back(self.0.python_slot().load(Relaxed).cast()) };
        }
        &self.0
    }
    fn bytes(&self) -> PyResult<&[u8]> {
        if self.own().nbytes() == 0 {
            return Ok(&[]);
        }
        self.own().check_memory().map_err(raise)?;
        // SAFETY: the storage holds this many bytes; the GIL keeps other Python writers away.
        Ok(unsafe { std::slice::from_raw_parts(self.own().data_ptr(), self.own().nbytes()) })
    }
    /// Refuses to show single elements of a storage without memory.
    fn check_elements(&self) -> PyResult<()> {
        if self.own().device() == Device::Meta {
            return Err(PyNotImplementedError::new_err(
                "Not available for 'meta' device type: its storages have sizes, but no elements",
            ));
        }
        Ok(())
    }
    /// The address of one byte, if the storage has memory.
    fn at(&self, index: i64) -> Option<usize> {
        let count = self.own().nbytes() as i64;
        let at = if index < 0 { index.saturating_add(count) } else { index };
        (0..count).contains(&at).then_some(at as usize)
    }
    /// The bytes that a slice selects: the first one, and their number.
    fn range(&self, slice: &Bound<'_, PySlice>) -> PyResult<(usize, usize)> {
        let indices = slice.indices(self.own().nbytes() as isize)?;
        if indices.step != 1 {
            return Err(PyRuntimeError::new_err(format!(
                "Trying to slice with a step of {}, but only a step of 1 is supported",
                indices.step
            )));
        }
        Ok((indices.start as usize, indices.slicelength))
    }
}

fn cannot_index(index: &Bound<'_, PyAny>) -> String {
    format!("can't index a torch.UntypedStorage with {}", type_name(index))
}

/// An index that is a whole number; tensors, arrays and bools are refused.
fn whole(index: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let is_whole = has_index(index)
        && crate::raw::object::as_tensor(index).is_none()
        && !index.is_instance_of::<PyBool>()
        && !super::numpy::is_array(index);
    if is_whole { to_int(index).map(Some) } else { Ok(None) }
}

#[pymethods]
impl PyStorage {
    #[new]
    #[pyo3(signature = (*args, device=None))]
    fn new(args: &Bound<'_, PyTuple>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = super::construct::device_option(device, "torch.UntypedStorage")?;
        let device = device.unwrap_or_default();
        device.check_available().map_err(raise)?;
        if args.len() > 1 {
            let given: Vec<String> = args.iter().map(|a| type_name(&a)).collect();
            return Err(PyTypeError::new_err(format!(
                "torch.UntypedStorage() received an invalid combination of arguments - got ({}), but expected one of:\n * (*, torch.device device = None)\n * (int size, *, torch.device device = None)\n * (object sequence, *, torch.device device = None)\n",
                given.join(", ")
            )));
        }
        let storage = match args.iter().next() {
            None => Storage::uninitialized_on(0, device).map_err(raise)?,
            Some(only) => match whole(&only)? {
                Some(size) => {
                    Storage::uninitialized_on(size_of_storage(size)?, device).map_err(raise)?
                }
                None => holding(&bytes_of(&only)?, device)?,
            },
        };
        Ok(PyStorage(storage))
    }
    /// Gives objects of subclasses the life cycle of the class's own.
    #[classmethod]
    #[pyo3(signature = (**kwargs))]
    fn __init_subclass__(
        cls: &Bound<'_, PyType>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = cls.py();
        // SAFETY: a class that was made just now.
        unsafe { crate::raw::storage::adopt(cls.as_ptr().cast()) };
        let above = py.import("builtins")?.getattr("super")?;
        let above = above.call1((py.get_type::<PyStorage>(), cls))?;
        above.getattr("__init_subclass__")?.call((), kwargs).map(drop)
    }
    fn __traverse__(&self, _visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        Ok(())
    }
    fn __clear__(&self) {}
    /// A storage that holds a copy of `data`, on a device.
    #[staticmethod]
    #[pyo3(signature = (data, device=None))]
    fn _from_bytes<'py>(
        py: Python<'py>,
        data: &[u8],
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let device = super::construct::device_option(device, "torch.UntypedStorage")?;
        copy_on(py, data, device.unwrap_or_default())
    }
    /// A storage that holds a copy of an object's buffer.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn from_buffer<'py>(
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        py.import("pullback.storage")?.getattr("_from_buffer")?.call(args, kwargs)
    }
    /// (Holders of the address may write, so that memory that is shared with a lazy clone is copied
    /// first.)
    fn data_ptr(&self) -> PyResult<usize> {
        let address = self.own().data_ptr_mut().map_err(raise)?;
        Ok(if self.own().nbytes() == 0 { 0 } else { address.addr() })
    }
    /// The address, to be read only.
    fn _const_data_ptr(&self) -> usize {
        if self.own().nbytes() == 0 { 0 } else { self.own().data_ptr().addr() }
    }
    fn nbytes(&self) -> usize {
        self.own().nbytes()
    }
    fn size(&self) -> usize {
        self.own().nbytes()
    }
    fn __len__(&self) -> usize {
        self.own().nbytes()
    }
    fn element_size(&self) -> usize {
        1
    }
    fn resizable(&self) -> bool {
        self.own().is_resizable()
    }
    fn resize_<'py>(
        slf: &Bound<'py, Self>,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let Some(size) = whole(size)? else {
            return Err(PyRuntimeError::new_err(format!(
                "resize_ expects an int, but got {}",
                type_name(size)
            )));
        };
        slf.get().own().resize(size_of_storage(size)?).map_err(raise)?;
        crate::lock::give_back();
        Ok(slf.clone())
    }
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Ok(slice) = index.cast::<PySlice>() {
            let (start, count) = this.range(slice)?;
            let part = this.own().part(start, count).map_err(raise)?;
            // SAFETY: a new reference.
            return Ok(unsafe { Bound::from_owned_ptr(py, object(py, part)?) });
        }
        let Some(wanted) = whole(index)? else {
            return Err(PyTypeError::new_err(cannot_index(index)));
        };
        this.check_elements()?;
        let Some(at) = this.at(wanted) else {
            let size = this.own().nbytes();
            return Err(PyIndexError::new_err(format!(
                "index {wanted} out of range for storage of size {size}"
            )));
        };
        Ok(this.bytes()?[at].into_pyobject(py)?.into_any())
    }
    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let byte = byte_of(value, |name| {
            format!("can only set storage content with a int types, but got {name} instead")
        })?;
        let (start, count) = if let Ok(slice) = index.cast::<PySlice>() {
            self.range(slice)?
        } else if let Some(wanted) = whole(index)? {
            let out = || {
                let size = self.own().nbytes();
                format!("index {wanted} is out of bounds for a storage of size {size}")
            };
            (self.at(wanted).ok_or_else(|| PyRuntimeError::new_err(out()))?, 1)
        } else {
            return Err(PyRuntimeError::new_err(cannot_index(index)));
        };
        self.check_elements()?;
        // SAFETY: inside the storage.
        unsafe { self.own().data_ptr_mut().map_err(raise)?.add(start).write_bytes(byte, count) };
        Ok(())
    }
    fn fill_<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let byte = byte_of(value, |name| format!("fill_ expects int, but got {name}"))?;
        let storage = slf.get().own();
        if storage.device() != Device::Meta {
            // SAFETY: the whole storage.
            unsafe { storage.data_ptr_mut().map_err(raise)?.write_bytes(byte, storage.nbytes()) };
        }
        Ok(slf.clone())
    }
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Ok(slf.get().tolist(slf.py())?.try_iter()?.into_any())
    }
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_elements()?;
        let bytes = self.bytes()?;
        new_list(py, bytes.len(), |at| scalar(py, Scalar::Int(i64::from(bytes[at]))))
    }
    fn _bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.bytes()?;
        PyBytes::new_with(py, bytes.len(), |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })
    }
    fn clone<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let this = self.own();
        if this.device() == Device::Meta {
            return sized_on(py, this.nbytes(), Device::Meta);
        }
        copy_on(py, self.bytes()?, this.device())
    }
    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.clone(py)
    }
    #[pyo3(signature = (source, non_blocking=false))]
    fn copy_<'py>(
        slf: &Bound<'py, Self>,
        source: &Bound<'py, PyAny>,
        non_blocking: Option<bool>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let Ok(source) = source.cast::<PyStorage>() else {
            return Err(PyTypeError::new_err(format!(
                "copy_(): argument 'src' (position 1) must be torch.Storage, not {}",
                type_name(source)
            )));
        };
        let (to, from) = (slf.get().own(), source.get().own());
        if to.nbytes() != from.nbytes() {
            return Err(PyRuntimeError::new_err(format!(
                "size does not match, self was {} bytes but src was {} bytes",
                to.nbytes(),
                from.nbytes()
            )));
        }
        if to.device() == Device::Meta {
            return Ok(slf.clone());
        }
        from.check_memory().map_err(raise)?;
        let target = to.data_ptr_mut().map_err(raise)?;
        // SAFETY: both have this many bytes; they may be the same.
        unsafe { std::ptr::copy(from.data_ptr(), target, to.nbytes()) };
        Ok(slf.clone())
    }
    /// Reverses the bytes of each element of this dtype.
    fn byteswap<'py>(slf: &Bound<'py, Self>, dtype: &Bound<'py, PyAny>) -> PyResult<()> {
        call_package(slf.py(), "_byteswap", (slf, dtype)).map(|_| ())
    }
    /// The elements, read as bytes, in a storage of another dtype.
    fn _to<'py>(slf: &Bound<'py, Self>, dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call_package(slf.py(), "_converted", (slf, dtype))
    }
    fn float<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::F32))
    }
    fn double<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::F64))
    }
    fn half<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::F16))
    }
    fn bfloat16<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::BF16))
    }
    fn long<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::I64))
    }
    fn int<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::I32))
    }
    fn short<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::I16))
    }
    fn char<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::I8))
    }
    fn byte<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::U8))
    }
    fn bool<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::Bool))
    }
    fn complex_float<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::C64))
    }
    fn complex_double<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::_to(slf, &crate::dtype::dtype_object(slf.py(), DType::C128))
    }
    #[pyo3(signature = (*, device, non_blocking=false))]
    fn to<'py>(
        slf: &Bound<'py, Self>,
        device: &Bound<'py, PyAny>,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = non_blocking;
        let device = super::construct::device_option(Some(device), "to")?;
        on(slf, device.unwrap_or_default())
    }
    fn cpu<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        on(slf, Device::Cpu)
    }
    #[pyo3(signature = (device=None, non_blocking=false))]
    fn cuda<'py>(
        slf: &Bound<'py, Self>,
        device: Option<&Bound<'py, PyAny>>,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = non_blocking;
        on(slf, super::conversion::cuda_device(device)?)
    }
    #[pyo3(signature = (dtype=None, non_blocking=false), name = "type")]
    fn kind<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = non_blocking;
        call_package(slf.py(), "_type", (slf, dtype))
    }
    fn untyped<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    #[pyo3(name = "new")]
    fn another<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        copy_on(py, &[], Device::Cpu)
    }
    /// Whether processes forked from this one share its writes: it shows a file, or `share_memory_`
    /// moved it. Memory of a device counts as shared.
    fn is_shared(&self) -> bool {
        matches!(self.own().device(), Device::Cuda(_)) || super::mapped::shows_file(self.own())
    }
    /// Moves the content to memory that processes which are forked later share with this one.
    fn share_memory_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        if slf.get().own().device() == Device::Meta {
            return Err(PyRuntimeError::new_err(
                "share_memory_(): only available on CPU, and this storage is on 'meta'",
            ));
        }
        if !slf.get().is_shared() {
            let map = call_package(slf.py(), "_map_shared", (slf.get().nbytes(),))?;
            super::mapped::move_to(slf.get().own(), &map)?;
            crate::lock::give_back();
        }
        Ok(slf.clone())
    }
    /// The file whose bytes these are, if others see them too.
    #[getter]
    fn filename(&self) -> Option<String> {
        super::mapped::filename(self.own())
    }
    /// A storage over a file, through a map of the module `mmap`.
    #[staticmethod]
    fn _over_map<'py>(
        map: &Bound<'py, PyAny>,
        filename: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let storage = super::mapped::over(map, filename)?;
        // SAFETY: a new reference.
        Ok(unsafe { Bound::from_owned_ptr(map.py(), object(map.py(), storage)?) })
    }
    /// A storage over the first bytes of a file.
    #[staticmethod]
    #[pyo3(signature = (filename, shared=false, nbytes=0))]
    fn from_file<'py>(
        py: Python<'py>,
        filename: &Bound<'py, PyAny>,
        shared: bool,
        nbytes: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_package(py, "_map_file", (filename, shared, nbytes))
    }
    fn __sizeof__(&self) -> usize {
        size_of::<Self>() + self.own().nbytes()
    }
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        device_object(py, self.own().device())
    }
    #[getter]
    fn _cdata(&self) -> usize {
        self.own().id()
    }
    #[pyo3(signature = (device=None))]
    fn is_pinned(&self, device: Option<&Bound<'_, PyAny>>) -> bool {
        let _ = device;
        false
    }
    #[pyo3(signature = (device=None))]
    fn pin_memory(&self, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = device;
        Err(super::construct::no_accelerator())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        matches!(self.own().device(), Device::Cuda(_))
    }
    #[getter]
    fn is_hpu(&self) -> bool {
        false
    }
    #[classattr]
    fn is_sparse() -> bool {
        false
    }
    #[classattr]
    fn is_sparse_csr() -> bool {
        false
    }
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = ("storage", slf.get().own().id());
        if let Ok(done) = memo.get_item(key) {
            return Ok(done);
        }
        let copy = slf.get().clone(slf.py())?;
        memo.set_item(key, &copy)?;
        Ok(copy)
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let make = py.import("pullback._C")?.getattr("_storage_from_bytes")?;
        let bytes = slf.get()._bytes(py)?;
        let arguments = match slf.get().own().device() {
            Device::Cpu => (bytes,).into_pyobject(py)?,
            device => {
                (bytes, device_object(py, device)?).into_pyobject(py)?.into_any().cast_into()?
            }
        };
        Ok((make, arguments))
    }
    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_package(slf.py(), "_shown", (slf,))
    }
}

/// A storage that holds a copy of `data`, on a device.
#[pyfunction]
#[pyo3(signature = (data, device=None))]
fn _storage_from_bytes<'py>(
    py: Python<'py>,
    data: &[u8],
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    PyStorage::_from_bytes(py, data, device)
}

/// The object of a storage on `device` that holds a copy of `data`.
fn copy_on<'py>(py: Python<'py>, data: &[u8], device: Device) -> PyResult<Bound<'py, PyAny>> {
    let storage = holding(data, device)?;
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, object(py, storage)?) })
}

/// The object of a storage of so many bytes on `device`, not initialised.
fn sized_on(py: Python<'_>, bytes: usize, device: Device) -> PyResult<Bound<'_, PyAny>> {
    let storage = Storage::uninitialized_on(bytes, device).map_err(raise)?;
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, object(py, storage)?) })
}

/// A storage on `device` that holds a copy of `data`; on the meta device it has their number and no
/// memory.
fn holding(data: &[u8], device: Device) -> PyResult<Storage> {
    if device == Device::Meta {
        return Storage::without_memory(data.len()).map_err(raise);
    }
    from_bytes(data)?.placed_on(device).map_err(raise)
}

/// The storage on `device`: itself if it is there.
fn on<'py>(storage: &Bound<'py, PyStorage>, device: Device) -> PyResult<Bound<'py, PyAny>> {
    let own = storage.get().own();
    if own.device() == device {
        return Ok(storage.clone().into_any());
    }
    if device == Device::Meta {
        return sized_on(storage.py(), own.nbytes(), device);
    }
    copy_on(storage.py(), storage.get().bytes()?, device)
}

/// A tensor over a storage: `_tensor_over(storage, dtype, offset, size, stride)`.
#[pyfunction]
fn _tensor_over<'py>(
    py: Python<'py>,
    storage: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    offset: i64,
    size: Vec<i64>,
    stride: Vec<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype =
        crate::dtype::as_dtype(dtype).ok_or_else(|| PyTypeError::new_err("expected a dtype"))?;
    let Ok(storage) = storage.cast::<PyStorage>() else {
        return Err(PyTypeError::new_err(format!(
            "expected an UntypedStorage, not {}",
            type_name(storage)
        )));
    };
    let tensor =
        binding::over_storage(note(storage), &size, &stride, offset, dtype).map_err(raise)?;
    super::method::wrapped(py, tensor)
}

/// Adds the class and its function.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    crate::raw::storage::init(module.py())?;
    module.add_function(wrap_pyfunction!(_storage_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(_tensor_over, module)?)
}
