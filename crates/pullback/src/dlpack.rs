//! DLPack: the description of memory that array libraries share, as C has it, and tensors made of it.
//!
//! The types are those of version 1.0 of the specification. The holder of a managed tensor calls
//! its deleter exactly once, on any thread. The language bindings pass these in their own wrappers;
//! two copies of this library in one process (a program and a library that it loads) pass them as
//! they are, by [`Managed::export`] and [`Managed::import`].
//!
//! Invariant: an exported tensor's memory, sizes and strides stay as long as the deleter was not called.

use crate::error::{bail, ensure};
use crate::tensor::{Keeper, contiguous_strides};
use crate::{DType, Device, Error, Result, Tensor, binding};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// The device that memory is on.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceType {
    /// The kind of the device: see the constants.
    pub kind: i32,
    /// The number among devices of the kind.
    pub id: i32,
}

impl DeviceType {
    /// Main memory.
    pub const CPU: DeviceType = DeviceType { kind: 1, id: 0 };
    /// No memory: the meta device, by the number that the specification leaves to extensions.
    pub const META: DeviceType = DeviceType { kind: 12, id: 0 };
}

/// The type of an element.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataType {
    /// The kind of number.
    pub code: u8,
    /// The size of a number in bits.
    pub bits: u8,
    /// How many numbers an element consists of.
    pub lanes: u16,
}

impl DataType {
    /// The description of a dtype. (`bcomplex32` has none and is described as `complex32`, so that
    /// exporters have to check for it first.)
    pub fn of(dtype: DType) -> DataType {
        let code = match dtype {
            DType::Bool => 6,
            DType::BF16 => 4,
            DType::F8E4M3FN => 10,
            DType::F8E4M3FNUZ => 11,
            DType::F8E5M2 => 12,
            DType::F8E5M2FNUZ => 13,
            DType::F8E8M0FNU => 14,
            // Two numbers of four bits are one element.
            DType::F4E2M1FNX2 => return DataType { code: 17, bits: 4, lanes: 2 },
            d if d.is_complex() => 5,
            d if d.is_floating_point() => 2,
            d if d.is_signed() => 0,
            _ => 1,
        };
        DataType { code, bits: (dtype.size() * 8) as u8, lanes: 1 }
    }
    /// The dtype whose description this is.
    pub fn dtype(self) -> Option<DType> {
        DType::ALL.into_iter().find(|&dtype| DataType::of(dtype) == self)
    }
}

/// `DLTensor`: elements in memory.
#[repr(C)]
#[derive(Debug)]
pub struct RawTensor {
    /// The memory.
    pub data: *mut c_void,
    /// The device that the memory is on.
    pub device: DeviceType,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of an element.
    pub dtype: DataType,
    /// The sizes, `ndim` of them.
    pub shape: *mut i64,
    /// The strides, `ndim` of them, in elements; null if the elements lie row by row.
    pub strides: *mut i64,
    /// The offset of the first element in the memory.
    pub byte_offset: u64,
}

/// A version of the specification.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DlpackVersion {
    /// The major number: another one means another layout.
    pub major: u32,
    /// The minor number: another one means further fields.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: elements, and the function that releases them.
#[repr(C)]
#[derive(Debug)]
pub struct Managed {
    /// The version of the specification that it follows.
    pub version: DlpackVersion,
    /// Data of the producer.
    pub context: *mut c_void,
    /// The function that is called once with this tensor to release it.
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    /// [`Managed::READ_ONLY`], [`Managed::IS_COPIED`].
    pub flags: u64,
    /// The elements.
    pub tensor: RawTensor,
}

/// Sizes, strides and the tensor, alive until the consumer is done.
struct ExportContext {
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The description of a tensor's memory for a consumer, and what keeps the memory, for [`forget`].
/// A consumer that only reads a lazy clone is given another one, which is never written to, so that
/// its elements stay as they are now.
///
/// # Errors
/// Out of memory.
pub fn describe(tensor: &Tensor, is_read_only: bool) -> Result<(RawTensor, *mut c_void)> {
    let tensor = if is_read_only && tensor.is_lazy() {
        tensor.lazy_clone()?
    } else {
        tensor.export_memory()?;
        tensor.clone()
    };
    let is_meta = tensor.device() == Device::Meta;
    let data = if is_meta { null_mut() } else { tensor.data_ptr().cast_mut() };
    let mut context = Box::new(ExportContext {
        shape: tensor.shape().to_vec(),
        strides: tensor.strides().to_vec(),
        tensor,
    });
    let described = RawTensor {
        data: data.cast(),
        device: if is_meta { DeviceType::META } else { DeviceType::CPU },
        ndim: context.tensor.ndim() as i32,
        dtype: DataType::of(context.tensor.dtype()),
        shape: context.shape.as_mut_ptr(),
        strides: context.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok((described, Box::into_raw(context).cast()))
}

/// Gives back what [`describe`] keeps.
///
/// # Safety
/// It was made by [`describe`], and is given back once.
pub unsafe fn forget(context: *mut c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(context.cast::<ExportContext>()) });
}

/// The sizes, strides and dtype of a description.
///
/// # Errors
/// `ValueError` for values that no tensor can have.
///
/// # Safety
/// Sizes and strides are null or have as many numbers as there are dimensions.
pub unsafe fn geometry(raw: &RawTensor) -> Result<(Vec<i64>, Vec<i64>, DType)> {
    let Some(dtype) = raw.dtype.dtype() else {
        bail!(
            value,
            "Unsupported DLPack type: code {} with {} bits and {} lanes",
            raw.dtype.code,
            raw.dtype.bits,
            raw.dtype.lanes
        );
    };
    let rank = usize::try_from(raw.ndim)
        .map_err(|_| Error::value(format!("a DLPack tensor with {} dimensions", raw.ndim)))?;
    ensure!(
        rank == 0 || !raw.shape.is_null(),
        value,
        "a DLPack tensor with {rank} dimensions, but without sizes"
    );
    let list = |p: *mut i64| -> Vec<i64> {
        // SAFETY: the producer's arrays have `ndim` entries.
        // bounded: by the rank.
        if rank == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(p, rank) }.to_vec() }
    };
    let shape = list(raw.shape);
    let strides =
        if raw.strides.is_null() { contiguous_strides(&shape).to_vec() } else { list(raw.strides) };
    ensure!(
        strides.iter().all(|&stride| stride >= 0),
        value,
        "arrays with negative strides cannot be imported"
    );
    ensure!(
        !raw.data.is_null() || shape.contains(&0) || raw.device == DeviceType::META,
        value,
        "a DLPack tensor of shape {shape:?}, but without memory"
    );
    Ok((shape, strides, dtype))
}

/// Calls a producer's deleter when the memory is not needed any more.
struct ImportedMemory(NonNull<Managed>);
// SAFETY: DLPack's deleters may be called from any thread; this one is called once.
unsafe impl Send for ImportedMemory {}

impl Drop for ImportedMemory {
    fn drop(&mut self) {
        // SAFETY: `Managed::import` was given it, and nobody else calls the deleter.
        unsafe {
            if let Some(delete) = self.0.as_ref().deleter {
                delete(self.0.as_ptr());
            }
        }
    }
}

impl Managed {
    /// The memory must not be written.
    pub const READ_ONLY: u64 = 1;
    /// The memory is a copy.
    pub const IS_COPIED: u64 = 2;

    /// A tensor for a consumer that only reads it, and calls the deleter. Bits for conjugate and negative are resolved before;
    /// histories stay behind.
    ///
    /// # Errors
    /// `RuntimeError` for tensors without dense memory (batched ones, for example), and for devices that main memory stands
    /// for; `TypeError` for sparse tensors and `bcomplex32`; out of memory.
    pub fn export(tensor: &Tensor) -> Result<NonNull<Managed>> {
        ensure!(
            tensor.dtype() != DType::BC32,
            type_error,
            "BComplex32 type is not supported by dlpack"
        );
        let resolved = tensor.resolve_conj()?.resolve_neg()?.detached_alias()?;
        if resolved.device() != Device::Meta {
            resolved.check_elements()?;
            ensure!(
                resolved.device() == Device::Cpu,
                runtime,
                "Can't export tensors of {}, which main memory stands for: use tensor.cpu()",
                resolved.device()
            );
        }
        unsafe extern "C" fn delete(managed: *mut Managed) {
            // SAFETY: made below; the consumer calls this once.
            unsafe {
                let managed = Box::from_raw(managed);
                forget(managed.context);
            }
        }
        let (tensor, context) = describe(&resolved, true)?;
        let version = DlpackVersion { major: 1, minor: 0 };
        let flags = Managed::READ_ONLY;
        let managed = Box::new(Managed { version, context, deleter: Some(delete), flags, tensor });
        Ok(NonNull::from(Box::leak(managed)))
    }

    /// A tensor over what `managed` describes, whose deleter is called when nothing shows the memory any more, or at once where
    /// this fails.
    ///
    /// # Errors
    /// `ValueError` and `RuntimeError` for geometries that no tensor can have.
    ///
    /// # Safety
    /// It is a managed tensor of this version by the specification, which the caller holds and gives away.
    pub unsafe fn import(managed: NonNull<Managed>) -> Result<Tensor> {
        let owner = ImportedMemory(managed);
        // SAFETY: the caller's promise, here and below.
        let raw = unsafe { &managed.as_ref().tensor };
        // SAFETY: as above.
        let (shape, strides, dtype) = unsafe { geometry(raw) }?;
        if raw.device == DeviceType::META {
            return Tensor::empty_strided(&shape, &strides, dtype, Device::Meta);
        }
        let device = raw.device;
        ensure!(device == DeviceType::CPU, runtime, "Unsupported device_type: only main memory");
        let data = raw.data.cast::<u8>().wrapping_add(raw.byte_offset as usize);
        // SAFETY: the producer's description of its memory, alive until `owner` drops.
        unsafe { binding::foreign(data, &shape, &strides, dtype, Keeper::new(owner)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_that_was_passed_on_is_the_same_memory_until_the_last_one_goes() -> Result<()> {
        let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.t()?;
        // SAFETY: exported above, taken once.
        let y = unsafe { Managed::import(Managed::export(&x)?) }?;
        assert_eq!((y.shape(), y.strides(), y.data_ptr()), (x.shape(), x.strides(), x.data_ptr()));
        drop(x);
        assert_eq!(y.to_vec::<f64>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        Ok(())
    }

    #[test]
    fn meta_tensors_bits_and_empty_ones_go_over_too() -> Result<()> {
        // SAFETY: exported here, taken once.
        let passed = |x: &Tensor| unsafe { Managed::import(Managed::export(x)?) };
        let nowhere = Tensor::options().device(Device::Meta).zeros([2, 3])?;
        assert_eq!(
            (passed(&nowhere)?.shape(), passed(&nowhere)?.device()),
            (&[2, 3][..], Device::Meta)
        );
        assert_eq!(passed(&Tensor::zeros([0, 2])?)?.shape(), [0, 2]);
        assert_eq!(passed(&Tensor::from(7.0)?)?.item()?.to_f64(), 7.0);
        let z = Tensor::from([1.0])?.to_dtype(DType::C128)?.conj()?;
        assert!(!passed(&z)?.is_conj());
        Ok(())
    }

    #[test]
    fn descriptions_that_no_tensor_fits_are_refused() -> Result<()> {
        let (mut shape, mut strides) = ([2_i64], [-1_i64]);
        let raw = |ndim, code, shape, strides| RawTensor {
            data: null_mut(),
            device: DeviceType::CPU,
            ndim,
            dtype: DataType { code, bits: 64, lanes: 1 },
            shape,
            strides,
            byte_offset: 0,
        };
        let (sizes, steps) = (shape.as_mut_ptr(), strides.as_mut_ptr());
        let cases = [
            (raw(1, 9, sizes, null_mut()), "Unsupported DLPack type: code 9"),
            (raw(-1, 2, sizes, null_mut()), "-1 dimensions"),
            (raw(1, 2, null_mut(), null_mut()), "without sizes"),
            (raw(1, 2, sizes, steps), "negative strides"),
            (raw(1, 2, sizes, null_mut()), "without memory"),
        ];
        for (raw, phrase) in cases {
            // SAFETY: one size and one stride.
            let error = unsafe { geometry(&raw) }.expect_err(phrase);
            assert!(error.message().contains(phrase), "{error}");
        }
        Ok(())
    }
}
