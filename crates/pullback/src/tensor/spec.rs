//! The spec of a tensor before it exists: shape, dtype, device, strides. A `meta` function returns
//! one; the dispatcher then makes or checks the output.

use super::shape::{broadcast_shapes, list};
use super::{
    Compressed, Coo, Device, Dims, Geometry, Layout, MemoryFormat, Sparse, Storage, Tensor,
    channels_last_strides, check_reach, checked_numel, contiguous_strides, copied, dims, extent,
    preserved_strides, promote::default_dtype, promote::result_type,
};
use crate::error::ensure;
use crate::{DType, Error, Result, Scalar};
use pullback_kernels::StridedMut;

/// The shape, dtypes, device, strides and layout of an output.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Sizes.
    pub shape: Dims,
    /// Element type of the output.
    pub dtype: DType,
    /// The dtype the inputs are brought to before a pointwise kernel runs.
    pub compute: DType,
    /// The device.
    pub device: Device,
    /// Strides if they are not to be row-major.
    pub strides: Option<Dims>,
    /// The layout. Which elements a sparse tensor specifies is not part of it.
    pub layout: Layout,
}

impl TensorSpec {
    /// A row-major tensor in main memory.
    #[inline(always)]
    pub fn of(shape: &[i64], dtype: DType) -> Self {
        Self::of_dims(dims(shape), dtype)
    }
    #[inline(always)]
    fn of_dims(shape: Dims, dtype: DType) -> Self {
        Self {
            shape,
            dtype,
            compute: dtype,
            device: Device::Cpu,
            strides: None,
            layout: Layout::Strided,
        }
    }
    /// Shape, dtype and device of `tensor`.
    #[inline]
    pub fn like(tensor: &Tensor) -> Self {
        let shape = copied(&tensor.geometry().shape);
        Self { device: tensor.device(), ..Self::of_dims(shape, tensor.dtype()) }
    }
    /// A row-major tensor with the dtype of `tensor`, on the device of that.
    #[inline]
    pub fn beside(tensor: &Tensor, shape: &[i64]) -> Self {
        Self { device: tensor.device(), ..Self::of(shape, tensor.dtype()) }
    }
    /// Shape, dtype and device of `tensor`, and its order of dimensions in memory, without gaps.
    #[inline]
    pub fn laid_as(tensor: &Tensor) -> Self {
        let is_apart = !tensor.is_contiguous();
        let strides = is_apart.then(|| preserved_strides(tensor.shape(), tensor.strides()));
        Self { strides, ..Self::like(tensor) }
    }
    /// A tensor of another `shape` with the dtype of `image`, on the device of that, whose channels
    /// lie closest together if those of `image` do.
    pub(crate) fn in_format_of(image: &Tensor, shape: &[i64]) -> Self {
        let spec = Self::beside(image, shape);
        if image.is_channels_last() { spec.channels_last() } else { spec }
    }
    /// The spec with channels closest together in memory, if it has the dimensions of images.
    pub(crate) fn channels_last(mut self) -> Self {
        self.strides = channels_last_strides(&self.shape);
        self
    }
    /// The spec with these strides.
    #[must_use]
    pub fn with_strides(mut self, strides: Dims) -> Self {
        self.strides = Some(strides);
        self
    }
    /// The spec on `device`.
    #[must_use]
    #[inline(always)]
    pub fn on(mut self, device: Device) -> Self {
        self.device = device;
        self
    }
    /// The common shape and dtype of `tensors`; strides follow them as PyTorch's do.
    ///
    /// # Errors
    /// `RuntimeError` if the shapes do not broadcast.
    #[inline]
    pub fn broadcast(tensors: &[&Tensor]) -> Result<Self> {
        let dtype = if let [one] = tensors { one.dtype() } else { result_type(tensors)? };
        Self::broadcast_in(tensors, dtype)
    }
    /// The common shape of `tensors`, with elements of `dtype`; strides follow the tensors as PyTorch's do.
    ///
    /// # Errors
    /// `RuntimeError` if the shapes do not broadcast.
    #[inline]
    pub(crate) fn broadcast_in(tensors: &[&Tensor], dtype: DType) -> Result<Self> {
        let first = tensors[0];
        let same = tensors[1..].iter().all(|t| t.shape() == first.shape());
        let shape = if same {
            dims(first.shape())
        } else {
            let shapes: smallvec::SmallVec<[&[i64]; 4]> =
                tensors.iter().map(|t| t.shape()).collect();
            broadcast_shapes(&shapes)?
        };
        let mut strides = None;
        if !tensors.iter().all(|t| t.is_contiguous()) {
            // The first operand of full shape that has an order of its own decides the output's order.
            strides = tensors
                .iter()
                .find(|t| t.shape() == shape.as_slice() && t.ndim() > 1)
                .filter(|t| !t.is_contiguous())
                .map(|t| preserved_strides(t.shape(), t.strides()));
        }
        let (device, layout) = (first.device(), Layout::Strided);
        Ok(Self { shape, dtype, compute: dtype, device, strides, layout })
    }
    /// The spec with another output dtype (the compute dtype stays).
    #[inline]
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
    /// The spec that computes in the default floating dtype, and has it, if the inputs are integers
    /// or bools.
    pub fn to_float(mut self) -> Self {
        if self.compute.is_integral(true) {
            self.compute = default_dtype();
            self.dtype = self.compute;
        }
        self
    }
    /// The spec that computes in `dtype`, and has it.
    #[inline(always)]
    pub fn computed_in(mut self, dtype: DType) -> Self {
        self.compute = dtype;
        self.dtype = dtype;
        self
    }

    /// The spec of `tensor` itself, which an op writes to and returns.
    pub(crate) fn target(tensor: &Tensor) -> Self {
        let strides = Some(dims(tensor.strides()));
        Self { strides, layout: tensor.layout(), ..Self::like(tensor) }
    }
    /// The spec in a sparse layout.
    pub(crate) fn in_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }
    /// The spec in the order that `format` has for its shape.
    ///
    /// # Errors
    /// `RuntimeError` for channels-last with another rank than it needs.
    pub(crate) fn in_format(mut self, format: MemoryFormat) -> Result<Self> {
        self.strides = Some(strides_in(&self.shape, &contiguous_strides(&self.shape), format)?);
        Ok(self)
    }
    /// The spec itself, if there can be a tensor of it where memory is left.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes or strides, overflow, a device without backend.
    #[inline]
    pub(crate) fn checked(self) -> Result<Self> {
        self.check()?;
        Ok(self)
    }
    fn check(&self) -> Result<()> {
        let Some(strides) = &self.strides else {
            return Self::check_row_major(&self.shape, self.device);
        };
        self.device.check_available()?;
        checked_bytes(&self.shape, strides, self.dtype).map(drop)
    }
    /// Refuses sizes of which there can be no row-major tensor, whatever memory there is.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes, overflow, a device without backend.
    #[inline]
    pub(crate) fn check_row_major(shape: &[i64], device: Device) -> Result<()> {
        device.check_available()?;
        checked_numel(shape).map(drop)
    }
    /// The spec itself, if its dtype can hold `value`.
    ///
    /// # Errors
    /// `RuntimeError` if it cannot.
    #[inline]
    pub(crate) fn holding(self, value: Scalar) -> Result<Self> {
        // (PyTorch writes into a single element of these dtypes without a check.)
        let is_one = self.dtype.is_narrow_float() && self.shape.iter().all(|&n| n == 1);
        if !(is_one && value.is_real()) {
            value.check_fits(self.dtype)?;
        }
        Ok(self)
    }

    /// A tensor of this spec with elements not set.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes, overflow, a device without backend, a sparse layout; out of memory.
    #[inline]
    pub fn empty(&self) -> Result<Tensor> {
        if self.layout != Layout::Strided {
            return self.empty_sparse();
        }
        if self.strides.is_none() && self.device == Device::Cpu {
            return Tensor::row_major(&self.shape, self.dtype);
        }
        let strides = self.strides.clone().unwrap_or_else(|| contiguous_strides(&self.shape));
        Tensor::empty_strided(&self.shape, &strides, self.dtype, self.device)
    }
    /// A sparse tensor of this spec that specifies nothing: all dimensions are sparse, those before the two of compressed rows or
    /// columns count batches.
    ///
    /// # Errors
    /// `RuntimeError` for the layouts of blocks, whose sizes a spec does not say, and on other devices; out of memory.
    #[cold]
    fn empty_sparse(&self) -> Result<Tensor> {
        let (shape, rank) = (&self.shape, self.shape.len());
        ensure!(
            !self.layout.is_blocked() && self.device == Device::Cpu,
            runtime,
            "a tensor of layout {} is made of its parts",
            self.layout.spelled()
        );
        let Some(by_rows) = self.layout.compresses_rows() else {
            let parts = Coo {
                indices: Tensor::empty_of(&[rank as i64, 0], DType::I64)?,
                values: Tensor::empty_of(&[0], self.dtype)?,
                is_coalesced: true,
            };
            return Tensor::from_sparse(Sparse::Coo(parts), self.layout, shape);
        };
        ensure!(
            rank >= 2,
            runtime,
            "Only batched sparse compressed (non-block) tensors are supported, but got size {}",
            list(shape)
        );
        let with = |size: i64| {
            let mut sizes = dims(&shape[..rank - 2]);
            sizes.push(size);
            sizes
        };
        let lines = shape[if by_rows { rank - 2 } else { rank - 1 }];
        let parts = Compressed {
            compressed: TensorSpec::of(&with(lines + 1), DType::I64).full(Scalar::Int(0))?,
            plain: Tensor::empty_of(&with(0), DType::I64)?,
            values: Tensor::empty_of(&with(0), self.dtype)?,
        };
        Tensor::from_sparse(Sparse::Compressed(parts), self.layout, shape)
    }
    /// A tensor of this spec with every element `value`.
    ///
    /// # Errors
    /// As [`TensorSpec::empty`].
    pub(crate) fn full(&self, value: Scalar) -> Result<Tensor> {
        let tensor = self.empty()?;
        if self.device != Device::Meta {
            tensor.fill_new(value)?;
        }
        Ok(tensor)
    }
    /// A tensor of this spec whose elements `write` sets.
    ///
    /// # Errors
    /// As [`TensorSpec::empty`].
    pub(crate) fn written(&self, write: impl FnOnce(&mut StridedMut<'_>)) -> Result<Tensor> {
        let tensor = self.empty()?;
        if self.device != Device::Meta {
            write(&mut tensor.stored_mut());
        }
        Ok(tensor)
    }
    /// A tensor of zeros.
    ///
    /// # Errors
    /// As [`TensorSpec::empty`].
    pub fn zeros(&self) -> Result<Tensor> {
        let tensor = self.empty()?;
        tensor.zero_bytes();
        Ok(tensor)
    }
}

impl Tensor {
    /// A tensor with these sizes and strides, elements not set.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes or strides, overflow, a device without backend; out of memory.
    #[inline]
    pub fn empty_strided(
        shape: &[i64],
        strides: &[i64],
        dtype: DType,
        device: Device,
    ) -> Result<Tensor> {
        device.check_available()?;
        let bytes = checked_bytes(shape, strides, dtype)?;
        let storage = Storage::uninitialized_on(bytes as usize, device)?;
        Tensor::constructed(|| Geometry::new(storage, 0, dims(shape), dims(strides), dtype))
    }

    /// A row-major tensor with elements not set.
    ///
    /// # Errors
    /// As [`Tensor::empty_strided`].
    #[inline]
    pub fn empty_of(shape: &[i64], dtype: DType) -> Result<Tensor> {
        Tensor::row_major(&dims(shape), dtype)
    }

    /// Whether the strides of images say that channels, dimension 1, lie closest together, then the last dimension and so
    /// on up to the first. Where no size is above 1 in between, they say nothing, and rows come first as usual.
    pub(crate) fn is_channels_last(&self) -> bool {
        let (shape, strides) = (self.shape(), self.strides());
        if !matches!(shape.len(), 4 | 5) || strides[1] == 0 || shape.contains(&0) {
            return false;
        }
        let mut reach = 0;
        for dim in std::iter::once(1).chain((2..shape.len()).rev()) {
            if strides[dim] < reach {
                return false;
            }
            reach = strides[dim] * shape[dim];
        }
        strides[0] >= reach && reach > strides[1]
    }

    /// Strides that a new tensor of this one's shape has in `format`.
    ///
    /// # Errors
    /// `RuntimeError` for channels-last with another rank than it needs.
    pub(crate) fn strides_in(&self, format: MemoryFormat) -> Result<Dims> {
        strides_in(self.shape(), self.strides(), format)
    }

    /// Whether the elements lie in the order of `format` without gaps.
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        self.strides_in(format).is_ok_and(|strides| {
            let same = |((&size, &a), &b): ((&i64, &i64), &i64)| size == 1 || a == b;
            self.shape().iter().zip(self.strides()).zip(&strides).all(same)
        })
    }

    /// Sets every byte of the elements' extent to zero. Only for fresh, dense tensors.
    pub(crate) fn zero_bytes(&self) {
        let geometry = self.geometry();
        if geometry.device == Device::Meta {
            return;
        }
        let elements = extent(&geometry.shape, &geometry.strides).unwrap_or(0);
        let bytes = elements as usize * geometry.dtype.size();
        if bytes > 0 {
            // SAFETY: the extent was checked against the storage when the geometry was made.
            unsafe { std::ptr::write_bytes(geometry.written_ptr(), 0, bytes) };
        }
    }
}

/// Strides that a new tensor of this shape has in `format`; `strides` are what is to be preserved.
pub(crate) fn strides_in(shape: &[i64], strides: &[i64], format: MemoryFormat) -> Result<Dims> {
    match format {
        MemoryFormat::Contiguous => Ok(contiguous_strides(shape)),
        MemoryFormat::Preserve => Ok(preserved_strides(shape, strides)),
        MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => {
            let rank = if format == MemoryFormat::ChannelsLast { 4 } else { 5 };
            channels_last_strides(shape).filter(|_| shape.len() == rank).ok_or_else(|| {
                Error::runtime(format!(
                    "required rank {rank} tensor to use channels_last{} format",
                    if rank == 5 { "_3d" } else { "" }
                ))
            })
        }
    }
}

/// The bytes from the first element to the last of a tensor seen so.
///
/// # Errors
/// `RuntimeError` for negative sizes or strides, and overflow.
fn checked_bytes(shape: &[i64], strides: &[i64], dtype: DType) -> Result<i64> {
    checked_numel(shape)?;
    if let Some(&stride) = strides.iter().find(|&&s| s < 0) {
        return Err(Error::runtime(format!("Tensor strides must be non-negative, got {stride}")));
    }
    check_reach(shape, strides, 0)?;
    extent(shape, strides)?
        .checked_mul(dtype.size() as i64)
        .ok_or_else(|| Error::runtime(format!("size in bytes overflows for shape {shape:?}")))
}
