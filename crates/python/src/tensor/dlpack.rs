//! DLPack: memory shared with any array library, both ways, in the plain and the versioned form.
//!
//! A capsule is consumed once; whoever holds the managed tensor calls its deleter exactly once.

use crate::error::raise;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{tensor_of, wrap};
use pullback::tensor::Keeper;
use pullback::{DType, Tensor, binding};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}
#[repr(C)]
struct DlManagedTensor {
    shared: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}
#[repr(C)]
struct DlVersion {
    major: u32,
    minor: u32,
}
#[repr(C)]
struct DlManagedTensorVersioned {
    version: DlVersion,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensorVersioned)>,
    flags: u64,
    shared: DlTensor,
}

const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
/// The flag that says that the memory is a copy.
const IS_COPIED: u64 = 2;
const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// Sizes, strides and the tensor, alive until the consumer is done.
struct DlContext {
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn type_of(dtype: DType) -> DlDataType {
    let code = match dtype {
        DType::Bool => 6,
        DType::BF16 => 4,
        DType::F8E4M3FN => 10,
        DType::F8E4M3FNUZ => 11,
        DType::F8E5M2 => 12,
        DType::F8E5M2FNUZ => 13,
        DType::F8E8M0FNU => 14,
        // Two numbers of four bits are an element.
        DType::F4E2M1FNX2 => return DlDataType { code: 17, bits: 4, lanes: 2 },
        d if d.is_complex() => 5,
        d if d.is_floating_point() => 2,
        d if d.is_signed() => 0,
        _ => 1,
    };
    DlDataType { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
}

fn dtype_of(ty: DlDataType) -> Option<DType> {
    let same = |d: &DType| {
        let own = type_of(*d);
        own.code == ty.code && own.bits == ty.bits && own.lanes == ty.lanes
    };
    DType::ALL.into_iter().find(same)
}

/// The description of a tensor's memory for a consumer, and what keeps the memory. Who only reads a lazy clone is given another
/// one, which is never written: what there is now stays there.
fn share(tensor: Tensor, is_read_only: bool) -> PyResult<(DlTensor, *mut c_void)> {
    if tensor.dtype() == DType::BC32 {
        return Err(PyBufferError::new_err("BComplex32 type is not supported by dlpack"));
    }
    let tensor = if is_read_only && tensor.is_lazy() {
        tensor.lazy_clone().map_err(raise)?
    } else {
        tensor.export_memory().map_err(raise)?;
        tensor
    };
    let data = tensor.data_ptr().cast_mut();
    let mut context = Box::new(DlContext {
        _tensor: tensor.clone(),
        shape: tensor.shape().to_vec(),
        strides: tensor.strides().to_vec(),
    });
    let shared = DlTensor {
        data: data.cast(),
        device: DlDevice { kind: CPU, id: 0 },
        ndim: tensor.ndim() as i32,
        dtype: type_of(tensor.dtype()),
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok((shared, Box::into_raw(context).cast()))
}

unsafe extern "C" fn delete_plain(managed: *mut DlManagedTensor) {
    // SAFETY: made by `export`; the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<DlContext>()));
    }
}
unsafe extern "C" fn delete_versioned(managed: *mut DlManagedTensorVersioned) {
    // SAFETY: made by `export`; the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<DlContext>()));
    }
}
unsafe extern "C" fn drop_capsule(capsule: *mut PyObject) {
    // SAFETY: a capsule made by `export`; a used one has another name and is the consumer's.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// `x._to_dlpack(versioned=False, copied=False, read_only=False)`: a capsule.
pub(crate) fn export(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["versioned", "copied", "read_only"];
    let [versioned, copied, read_only] = args.bind(py, "_to_dlpack", names, 0)?;
    let truthy = |v: Option<Bound<'_, PyAny>>| v.map_or(Ok(false), |v| v.is_truthy());
    let (is_versioned, is_read_only) = (truthy(versioned)?, truthy(read_only)?);
    if is_read_only && !is_versioned {
        // (The older format has no word for it.)
        return Err(PyBufferError::new_err(
            "read_only export requires the versioned DLPack protocol; pass max_version=(1, 0) or higher",
        ));
    }
    // SAFETY: a method of tensors.
    let tensor = unsafe { tensor_of(slf) };
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err(
            "Can't export tensors that require gradient, use tensor.detach()",
        ));
    }
    tensor.check_elements().map_err(raise)?;
    if tensor.device() != pullback::Device::Cpu {
        return Err(PyBufferError::new_err(format!(
            "Can't export tensors of {}, which main memory stands for: use tensor.cpu()",
            tensor.device()
        )));
    }
    if let Some((bit, resolve)) = tensor.unresolved_names() {
        // (The format has no word for either bit: a consumer would read other numbers.)
        return Err(PyBufferError::new_err(format!(
            "Can't export tensors with the {bit} bit set: use tensor.{resolve}"
        )));
    }
    let tensor = tensor.detached_alias().map_err(raise)?;
    let (shared, context) = share(tensor, is_read_only)?;
    // SAFETY: the capsule owns the managed tensor until somebody consumes it.
    let capsule = unsafe {
        if is_versioned {
            let flags = if truthy(copied)? { IS_COPIED } else { 0 }
                | if is_read_only { READ_ONLY } else { 0 };
            let version = DlVersion { major: 1, minor: 0 };
            let deleter =
                Some(delete_versioned as unsafe extern "C" fn(*mut DlManagedTensorVersioned));
            let managed = DlManagedTensorVersioned { version, context, deleter, flags, shared };
            let ptr = Box::into_raw(Box::new(managed));
            ffi::PyCapsule_New(ptr.cast(), VERSIONED.as_ptr(), Some(drop_capsule))
        } else {
            let deleter = Some(delete_plain as unsafe extern "C" fn(*mut DlManagedTensor));
            let ptr = Box::into_raw(Box::new(DlManagedTensor { shared, context, deleter }));
            ffi::PyCapsule_New(ptr.cast(), PLAIN.as_ptr(), Some(drop_capsule))
        }
    };
    if capsule.is_null() { Err(PyErr::fetch(py)) } else { Ok(capsule) }
}

/// Calls the producer's deleter when the memory is not needed any more.
enum DlOwner {
    Plain(*mut DlManagedTensor),
    Versioned(*mut DlManagedTensorVersioned),
}
// SAFETY: DLPack's deleters may be called from any thread; ours is called once.
unsafe impl Send for DlOwner {}
// SAFETY: the pointers are only used for the deleter.
unsafe impl Sync for DlOwner {}

impl Drop for DlOwner {
    fn drop(&mut self) {
        let run = || {
            // SAFETY: taken from a capsule that was marked as used.
            unsafe {
                match *self {
                    DlOwner::Plain(m) => (*m).deleter.map(|d| d(m)),
                    DlOwner::Versioned(m) => (*m).deleter.map(|d| d(m)),
                };
            }
        };
        // Producers written in Python expect the interpreter.
        let _ = Python::try_attach(|_| run());
    }
}

/// A tensor over the memory of any object with `__dlpack__`, or of a capsule.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = object.py();
    let capsule = if object.is_instance_of::<pyo3::types::PyCapsule>() {
        object.clone()
    } else {
        if let Ok(device) = object.call_method0("__dlpack_device__") {
            let (kind, _): (i32, i32) = device.extract()?;
            if kind != CPU {
                return Err(PyRuntimeError::new_err(format!(
                    "the array lives on DLPack device type {kind}; only main memory is supported by this build"
                )));
            }
        }
        let kwargs = pyo3::types::PyDict::new(py);
        kwargs.set_item("max_version", (1, 0))?;
        match object.call_method("__dlpack__", (), Some(&kwargs)) {
            Ok(capsule) => capsule,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            Err(error) => return Err(error),
        }
    };
    let pointer = capsule.as_ptr();
    // SAFETY: the capsule's name says what it points to; renaming it makes its content ours.
    unsafe {
        if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) != 0 {
            let managed: *mut DlManagedTensorVersioned =
                ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()).cast();
            if (*managed).version.major > 1 {
                return Err(PyBufferError::new_err(format!(
                    "Unsupported major DLPack version {}",
                    (*managed).version.major
                )));
            }
            ffi::PyCapsule_SetName(pointer, VERSIONED_USED.as_ptr());
            if (*managed).flags & READ_ONLY != 0 {
                binding::warn(
                    "The given array is read-only; writing to this tensor is undefined behavior."
                        .into(),
                );
            }
            return adopt(&(*managed).shared, DlOwner::Versioned(managed));
        }
        if ffi::PyCapsule_IsValid(pointer, PLAIN.as_ptr()) == 0 {
            return Err(PyRuntimeError::new_err(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once.",
            ));
        }
        let managed: *mut DlManagedTensor =
            ffi::PyCapsule_GetPointer(pointer, PLAIN.as_ptr()).cast();
        ffi::PyCapsule_SetName(pointer, PLAIN_USED.as_ptr());
        adopt(&(*managed).shared, DlOwner::Plain(managed))
    }
}

/// # Safety
/// `shared` is what `owner` manages.
unsafe fn adopt(shared: &DlTensor, owner: DlOwner) -> PyResult<Tensor> {
    if shared.device.kind != CPU {
        return Err(PyRuntimeError::new_err("Unsupported device_type: only main memory"));
    }
    let Some(dtype) = dtype_of(shared.dtype) else {
        return Err(PyBufferError::new_err(format!(
            "Unsupported DLPack type: code {} with {} bits and {} lanes",
            shared.dtype.code, shared.dtype.bits, shared.dtype.lanes
        )));
    };
    let rank = usize::try_from(shared.ndim).map_err(|_| {
        PyBufferError::new_err(format!("a DLPack tensor with {} dimensions", shared.ndim))
    })?;
    if rank > 0 && shared.shape.is_null() {
        return Err(PyBufferError::new_err(format!(
            "a DLPack tensor with {rank} dimensions, but without sizes"
        )));
    }
    let list = |p: *mut i64| -> Vec<i64> {
        // SAFETY: the producer's arrays have `ndim` entries.
        // bounded: by the rank.
        if rank == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(p, rank) }.to_vec() }
    };
    let shape = list(shared.shape);
    let strides = if shared.strides.is_null() {
        pullback::tensor::contiguous_strides(&shape).to_vec()
    } else {
        list(shared.strides)
    };
    if strides.iter().any(|&s| s < 0) {
        return Err(PyBufferError::new_err("arrays with negative strides cannot be imported"));
    }
    if shared.data.is_null() && !shape.contains(&0) {
        return Err(PyBufferError::new_err(format!(
            "a DLPack tensor of shape {shape:?}, but without memory"
        )));
    }
    let data = shared.data.cast::<u8>().wrapping_add(shared.byte_offset as usize);
    // SAFETY: the producer's description of its memory, alive until `owner` drops.
    unsafe { binding::foreign(data, &shape, &strides, dtype, Keeper::new(owner)) }.map_err(raise)
}

/// `torch.from_dlpack(ext_tensor)`.
pub(crate) fn from_dlpack(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [object] = args.bind(py, "from_dlpack", ["ext_tensor"], 1)?;
    wrap(import(&object.expect("required"))?)
}
