//! DLPack: memory shared with any array library, both ways, in the plain and the versioned form.
//!
//! A capsule is consumed once; whoever holds the managed tensor calls its deleter exactly once.

use crate::error::raise;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{tensor_of, wrap};
use pullback::dlpack::{self, DeviceType, DlpackVersion, Managed, RawTensor};
use pullback::tensor::Keeper;
use pullback::{DType, Tensor, binding};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

/// `DLManagedTensor`, the plain form.
#[repr(C)]
struct DlManagedTensor {
    shared: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The description of a tensor's memory for a consumer, and what keeps the memory.
fn share(tensor: &Tensor, is_read_only: bool) -> PyResult<(RawTensor, *mut c_void)> {
    if tensor.dtype() == DType::BC32 {
        return Err(PyBufferError::new_err("BComplex32 type is not supported by dlpack"));
    }
    dlpack::describe(tensor, is_read_only).map_err(raise)
}

unsafe extern "C" fn delete_plain(managed: *mut DlManagedTensor) {
    // SAFETY: made by `export`; the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        dlpack::forget(managed.context);
    }
}
unsafe extern "C" fn delete_versioned(managed: *mut Managed) {
    // SAFETY: made by `export`; the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        dlpack::forget(managed.context);
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
    let (shared, context) = share(&tensor, is_read_only)?;
    // SAFETY: the capsule owns the managed tensor until somebody consumes it.
    let capsule = unsafe {
        if is_versioned {
            let flags = if truthy(copied)? { Managed::IS_COPIED } else { 0 }
                | if is_read_only { Managed::READ_ONLY } else { 0 };
            let version = DlpackVersion { major: 1, minor: 0 };
            let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut Managed));
            let managed = Managed { version, context, deleter, flags, tensor: shared };
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
    Versioned(*mut Managed),
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
            if kind != DeviceType::CPU.kind {
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
            let managed: *mut Managed =
                ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()).cast();
            if (*managed).version.major > 1 {
                return Err(PyBufferError::new_err(format!(
                    "Unsupported major DLPack version {}",
                    (*managed).version.major
                )));
            }
            ffi::PyCapsule_SetName(pointer, VERSIONED_USED.as_ptr());
            if (*managed).flags & Managed::READ_ONLY != 0 {
                binding::warn(
                    "The given array is read-only; writing to this tensor is undefined behavior."
                        .into(),
                );
            }
            return adopt(&(*managed).tensor, DlOwner::Versioned(managed));
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
unsafe fn adopt(shared: &RawTensor, owner: DlOwner) -> PyResult<Tensor> {
    if shared.device.kind != DeviceType::CPU.kind {
        return Err(PyRuntimeError::new_err("Unsupported device_type: only main memory"));
    }
    // SAFETY: the producer's arrays have `ndim` entries.
    let (shape, strides, dtype) = unsafe { dlpack::geometry(shared) }
        .map_err(|error| PyBufferError::new_err(error.message().to_owned()))?;
    let data = shared.data.cast::<u8>().wrapping_add(shared.byte_offset as usize);
    // SAFETY: the producer's description of its memory, alive until `owner` drops.
    unsafe { binding::foreign(data, &shape, &strides, dtype, Keeper::new(owner)) }.map_err(raise)
}

/// `torch.from_dlpack(ext_tensor)`.
pub(crate) fn from_dlpack(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [object] = args.bind(py, "from_dlpack", ["ext_tensor"], 1)?;
    wrap(import(&object.expect("required"))?)
}
