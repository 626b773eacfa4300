//! Functions of tensors that a language binding needs beyond the public methods: aliases with their
//! own version counter, memory that others own, tensors from numbers, and what a cycle collector
//! has to know.
//!
//! Nothing here records history. Invariant: memory taken from elsewhere is kept alive by its owner.

use crate::autograd::transform::check_change;
use crate::autograd::{Node, mode};
use crate::error::{bail, ensure};
pub use crate::tensor::uninitialized::{is_filling_uninitialized, set_fill_uninitialized};
use crate::tensor::{
    Cpu, Flag, Geometry, Keeper, Version, Writer, check_fits, check_reach, checked_numel, dims,
    extent,
};
pub use crate::tensor::{memory::FROM_KERNEL, replaced};
use crate::{DType, Error, Result, Scalar, Storage, Tensor, TensorSpec};
pub use pullback_kernels::digest::Summary;
pub use pullback_kernels::memory;
pub use pullback_kernels::random::DEFAULT_SEED;
use pullback_kernels::{digest, for_dtype, interrupt};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends a warning to the warning handler.
pub fn warn(message: String) {
    crate::warning::warn(message);
}

/// Sends a warning once: unless `given` is set, which it sets; or always, where [`crate::set_warn_always`] says so.
pub fn warn_once(given: &AtomicBool, message: &str) {
    crate::warning::warn_once(given, message);
}

/// Starts the interval until the first check for an interruption.
#[inline]
pub fn begin_watch() {
    interrupt::restart_interval();
}

/// The error of a panic that is an interruption.
///
/// # Errors
/// Any other panic.
pub fn interruption(panic: Box<dyn Any + Send>) -> std::result::Result<Error, Box<dyn Any + Send>> {
    crate::interrupt::error_of_panic(panic)
}

/// A tensor over memory that `owner` keeps alive; strides count elements and are not negative.
///
/// # Safety
/// `data` points to the memory that sizes and strides reach, readable and writable until `owner` drops.
///
/// # Errors
/// `RuntimeError` for sizes that overflow.
pub unsafe fn foreign(
    data: *mut u8,
    shape: &[i64],
    strides: &[i64],
    dtype: DType,
    owner: Keeper,
) -> Result<Tensor> {
    // (There is no size to compare with: the storage is made as large as sizes and strides reach.)
    check_fits(shape, strides, (0, dtype, usize::MAX))?;
    ensure!(
        !data.is_null() || shape.contains(&0),
        runtime,
        "no memory was given (a null pointer) for a tensor of sizes {shape:?}"
    );
    let bytes = extent(shape, strides)?.saturating_mul(dtype.size() as i64) as usize;
    // SAFETY: the caller's promise.
    let storage = unsafe { Storage::foreign(data, bytes, owner) }?;
    Tensor::from_geometry(Geometry::new(storage, 0, dims(shape), dims(strides), dtype)?)
}

/// A row-major tensor of `values`, converted to `dtype`.
///
/// # Errors
/// `RuntimeError` if the count does not fit the shape or an integer does not fit the dtype.
pub fn from_scalars(values: &[Scalar], shape: &[i64], dtype: DType) -> Result<Tensor> {
    let numel = checked_numel(shape)?;
    ensure!(numel as usize == values.len(), runtime, "shape {shape:?} needs {numel} elements");
    let out = Tensor::empty_of(shape, dtype)?;
    let ptr = out.data_ptr_mut()?;
    for_dtype!(dtype, stored, T => {
        for (index, value) in values.iter().enumerate() {
            interrupt::check_every::<16>(index);
            // SAFETY: the storage has this many elements and nobody else knows it.
            unsafe { ptr.cast::<T>().add(index).write(value.to::<T>()) }
        }
    }, else bail!(runtime, "store_scalar: invalid type"));
    Ok(out)
}

/// A tensor over part of `storage`.
///
/// # Errors
/// `RuntimeError` if the sizes and strides reach outside of it.
pub fn over_storage(
    storage: &Storage,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
    dtype: DType,
) -> Result<Tensor> {
    check_fits(shape, strides, (offset, dtype, storage.nbytes()))?;
    Tensor::from_geometry(Geometry::new(
        storage.clone(),
        offset,
        dims(shape),
        dims(strides),
        dtype,
    )?)
}

/// Makes `storage` large enough for a tensor of this geometry.
///
/// # Errors
/// `RuntimeError` for negative sizes, strides or offsets, another number of strides than sizes, sizes that
/// overflow, and memory of somebody else that is too small; out of memory.
pub fn grow_to_hold(
    storage: &Storage,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
    dtype: DType,
) -> Result<()> {
    ensure!(
        shape.len() == strides.len(),
        runtime,
        "unequal size length ({}) and stride length ({})",
        shape.len(),
        strides.len()
    );
    ensure!(offset >= 0, runtime, "Tensor: invalid storage offset {offset}");
    ensure!(
        shape.iter().chain(strides).all(|&n| n >= 0),
        runtime,
        "sizes and strides of a tensor over a storage must not be negative: sizes={shape:?} and strides={strides:?}"
    );
    check_reach(shape, strides, offset)?;
    let reach = extent(shape, strides)?;
    let bytes = if reach == 0 { 0 } else { (offset + reach) as usize * dtype.size() };
    if bytes > storage.nbytes() { storage.resize(bytes) } else { Ok(()) }
}

/// A tensor of zeros with these sizes, strides (row-major ones if they are left out) and offset.
///
/// # Errors
/// `RuntimeError` for negative sizes, strides or offsets, and for another number of strides than sizes; out of memory.
pub fn zeroed(shape: &[i64], strides: Option<&[i64]>, offset: i64, dtype: DType) -> Result<Tensor> {
    let Some(strides) = strides else {
        ensure!(offset == 0, runtime, "a storage_offset needs strides beside it");
        return TensorSpec::of(shape, dtype).zeros();
    };
    ensure!(
        shape.len() == strides.len(),
        runtime,
        "mismatch in length of strides and shape: {} and {}",
        strides.len(),
        shape.len()
    );
    let is_negative = |numbers: &[i64]| numbers.iter().any(|&n| n < 0);
    ensure!(
        !is_negative(shape) && !is_negative(strides) && offset >= 0,
        runtime,
        "sizes, strides and storage_offset must not be negative: {shape:?}, {strides:?}, {offset}"
    );
    check_reach(shape, strides, offset)?;
    let whole = TensorSpec::of(&[offset + extent(shape, strides)?], dtype).zeros()?;
    match whole.storage() {
        Some(storage) => over_storage(&storage, shape, strides, offset, dtype),
        None => Ok(whole),
    }
}

impl Tensor {
    /// A tensor over the same memory, without history and with a version counter of its own that starts at 0.
    ///
    /// # Errors
    /// Out of memory.
    pub fn data(&self) -> Result<Tensor> {
        self.with_own_version()
    }
    /// A tensor over the same memory and version counter, without history.
    ///
    /// # Errors
    /// Out of memory.
    pub fn detached_alias(&self) -> Result<Tensor> {
        self.detached()
    }
    /// Marks the memory's address as known elsewhere: the block stays as long as anything shows the memory, even if it is
    /// outgrown. It is not shared with a lazy clone any more.
    ///
    /// # Errors
    /// Out of memory.
    pub fn export_memory(&self) -> Result<()> {
        self.geometry().storage.as_ref().map_or(Ok(()), Storage::export)
    }
    /// As [`Tensor::export_memory`] for an array, which shows the memory for as long as it lives: the memory cannot grow any
    /// more.
    ///
    /// # Errors
    /// As [`Tensor::export_memory`].
    pub fn export_as_array(&self) -> Result<()> {
        if let Some(storage) = &self.geometry().storage {
            storage.export()?;
            storage.fix_size();
        }
        Ok(())
    }
    /// Makes the tensor show the memory of `other`; it keeps its own identity, version counter, hooks and grad. The previous
    /// memory is kept while another thread may read it (see [`replaced`]).
    ///
    /// # Errors
    /// `RuntimeError` if it requires grad and the new dtype cannot.
    pub fn set_data(&self, other: &Tensor) -> Result<()> {
        ensure!(
            !self.requires_grad() || other.dtype().is_differentiable(),
            runtime,
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        );
        ensure!(
            self.layout() == other.layout(),
            runtime,
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        );
        let changed = self.dtype() != other.dtype() || self.device() != other.device();
        let version = self.version();
        let version = Some(Arc::new(Version::new(version)));
        self.set_geometry(other.geometry().clone().with_version(version));
        self.set_sign_bits(other.sign_bits());
        if changed {
            self.forget_accumulator();
        }
        Ok(())
    }
    /// Removes the history in place.
    ///
    /// # Errors
    /// `RuntimeError` for views.
    pub fn detach_(&self) -> Result<()> {
        check_change("detach_", self)?;
        ensure!(
            !self.is_view() || !self.requires_grad() && self.base().is_none(),
            runtime,
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution."
        );
        self.detach_in_place()
    }
    /// The version counter as Python shows it.
    ///
    /// # Errors
    /// `RuntimeError` for inference tensors.
    pub fn tracked_version(&self) -> Result<u32> {
        ensure!(
            !self.has_flag(Flag::INFERENCE),
            runtime,
            "Inference tensors do not track version counter."
        );
        Ok(self.version())
    }
    /// A copy of the elements in `dtype`, without history.
    ///
    /// # Errors
    /// Out of memory.
    pub fn copied(&self, dtype: DType) -> Result<Tensor> {
        self.converted(Cpu::of(self)?, dtype)
    }
    /// A digest of the elements in row-major order, and their range.
    ///
    /// # Errors
    /// For tensors whose memory does not hold their elements; out of memory.
    pub fn summary(&self) -> Result<Summary> {
        let cpu = Cpu::of(self)?;
        let dense = self.dense(cpu)?;
        let found = digest::summary(&dense.view_ref(cpu));
        found.ok_or_else(|| Error::runtime("the elements of this tensor do not lie in a row"))
    }
    /// The memory format that the strides of an image suggest; row-major for other tensors.
    pub fn suggested_format(&self) -> crate::MemoryFormat {
        match self.ndim() {
            4 if self.is_channels_last() => crate::MemoryFormat::ChannelsLast,
            5 if self.is_channels_last() => crate::MemoryFormat::ChannelsLast3d,
            _ => crate::MemoryFormat::Contiguous,
        }
    }
    /// The tensor in another dtype, device or order of dimensions: itself if it has all of these and no copy is requested. An
    /// order counts as had where the strides speak for it, with or without gaps, as in PyTorch.
    /// Recorded.
    ///
    /// # Errors
    /// `RuntimeError` for devices without backend and formats of another rank.
    pub fn to(
        &self,
        dtype: Option<DType>,
        device: Option<crate::Device>,
        copy: bool,
        format: Option<crate::MemoryFormat>,
    ) -> Result<Tensor> {
        let in_format = format
            .is_none_or(|f| f == crate::MemoryFormat::Preserve || f == self.suggested_format());
        let same =
            dtype.is_none_or(|d| d == self.dtype()) && device.is_none_or(|d| d == self.device());
        if same && in_format && !copy {
            return Ok(self.clone());
        }
        self.convert_with(dtype, None, device, None, false, format)
    }
    /// Counts one in-place write that `name` made without the library.
    pub fn count_write(&self, name: &'static &'static str) {
        self.bump_version(Writer::Inplace(name));
    }
    /// Sets the version counter.
    ///
    /// # Errors
    /// `RuntimeError` for inference tensors and negative versions.
    pub fn overwrite_version(&self, version: i64) -> Result<()> {
        ensure!(
            !self.has_flag(Flag::INFERENCE),
            runtime,
            "Cannot set version_counter for inference tensor"
        );
        ensure!(
            version >= 0,
            runtime,
            "Cannot set a version_counter to a value below 0: {version}"
        );
        self.set_version(version as u32);
        Ok(())
    }
    /// Refuses writes to inference tensors outside of inference mode.
    ///
    /// # Errors
    /// `RuntimeError` that says so.
    pub fn check_writable_now(&self) -> Result<()> {
        self.check_version_writable()
    }
    /// Changes the sizes in place as `resize_` does; the storage grows if it must.
    ///
    /// # Errors
    /// `RuntimeError` for tensors that require grad, outside of inference mode, and memory that cannot grow.
    pub fn resize(&self, shape: &[i64]) -> Result<()> {
        self.resize_in(shape, None)
    }

    /// As [`Tensor::resize`]; afterwards the elements, in the order in which they are in memory, lie in `format`.
    ///
    /// # Errors
    /// As [`Tensor::resize`]; `RuntimeError` for a format that the shape cannot have.
    pub fn resize_in(&self, shape: &[i64], format: Option<crate::MemoryFormat>) -> Result<()> {
        check_change("resize_", self)?;
        ensure!(
            self.layout() != crate::Layout::SparseCoo,
            runtime,
            "resize_() to {shape:?} is not for tensors of layout torch.{}: use sparse_resize_()",
            self.layout().spelled_name()
        );
        self.check_version_writable()?;
        if !mode::is_inference_mode() {
            if self.requires_grad() {
                return Err(crate::autograd::refused_resize());
            }
            crate::autograd::forward::check_resize(self)?;
        }
        let strides = match format {
            None => None,
            Some(format) => {
                ensure!(
                    !self.is_sparse() && format != crate::MemoryFormat::Preserve,
                    runtime,
                    "Unsupported memory format {format:?} for resize_() of a tensor of layout torch.{}",
                    self.layout().spelled_name()
                );
                Some(crate::tensor::strides_in(shape, &[], format)?)
            }
        };
        if self.shape() != shape {
            if self.is_sparse() {
                self.resize_compressed(shape)?;
            } else {
                self.resize_to(shape)?;
            }
        } else if strides.is_none() {
            return Ok(());
        }
        if let Some(strides) = strides {
            let geometry = self.geometry();
            self.set_geometry(geometry.with_view(shape, &strides, geometry.offset)?);
        }
        self.bump_version(Writer::Inplace(&"resize_"));
        Ok(())
    }
    /// Makes the tensor show the memory of `source` with the sizes of `source`. Its own conj and neg bits stay.
    ///
    /// # Errors
    /// `RuntimeError` if they reach outside of it.
    pub fn set_storage(&self, source: &Tensor) -> Result<()> {
        check_change("set_.source_Tensor", self)?;
        ensure!(
            source.dtype() == self.dtype(),
            runtime,
            "Could not set tensor of type {} to a tensor of type {}",
            source.dtype().scalar_name(),
            self.dtype().scalar_name()
        );
        ensure!(
            !self.is_sparse() && !source.is_sparse(),
            runtime,
            "set_() is not for sparse tensors, whose elements are not in one storage: got layouts torch.{} and torch.{}",
            self.layout().spelled_name(),
            source.layout().spelled_name()
        );
        self.check_version_writable()?;
        crate::autograd::check_inplace(self, source.requires_grad())?;
        crate::autograd::forward::check_unsupported("set_", &[self, source])?;
        let refusal = crate::autograd::RefusedEdges::before(self, source)?;
        // Views that share the counter must see the change; the writes to `source` so far are not the tensor's own.
        self.bump_version(Writer::Inplace(&"set_"));
        let version = self.version_counter().map(|counter| Arc::new(counter.fork()));
        self.set_geometry(source.geometry().clone().with_version(version));
        self.forget_accumulator();
        refusal.record("set_", self)
    }
    /// Whether the tensor is made of a Python number, which has low rank in type promotion.
    pub fn is_wrapped_number(&self) -> bool {
        self.has_flag(Flag::WRAPPED_NUMBER)
    }
    /// Marks this new tensor as an inference tensor if the thread is in inference mode.
    pub fn mark_inference_if_due(&self) {
        if mode::is_inference_mode() && !self.is_view() {
            self.set_flag(Flag::INFERENCE, true);
        }
    }
    /// Calls `f` with the tensor's node as it is now, for the cycle collector: a history is not refreshed, no handle is taken.
    pub fn peek_grad_fn<R>(&self, f: impl FnOnce(Option<&Node>) -> R) -> R {
        if self.has_flag(Flag::HAS_GRAD_FN) {
            self.grad_fn_slot().with(|node| f(node.as_ref()))
        } else {
            f(None)
        }
    }
}

/// An `IndexError`, for checks of a binding.
pub fn index_error(message: impl Into<String>) -> Error {
    Error::index(message)
}
