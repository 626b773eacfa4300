//! Where the elements of a tensor are: storage, offset, sizes, strides, dtype.
//!
//! A geometry never changes once a tensor shows it: calls that change one (`resize_`, `t_`,
//! `set_data`) put a new one in its place. Sizes and strides are `i64` and count elements.
//!
//! Invariant: every element that a geometry reaches lies inside the block of its storage. Nobody outside of this
//! file can make one that does not: its fields can be read everywhere and written nowhere else, and what makes one
//! either asks [`Fields::checked`] or takes the memory itself ([`Geometry::write_row_major`]).

use super::{Device, Layout, Storage, Version};
use crate::error::ensure;
use crate::{DType, Error, Result};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;

/// Sizes or strides, inline up to five dimensions.
pub type Dims = SmallVec<[i64; 5]>;

/// Sizes or strides as a list: short ones are assembled in registers, because reading a list that
/// was just written to memory in other units waits for the writes.
#[inline(always)]
pub(crate) fn dims(of: &[i64]) -> Dims {
    dims_with(of, |n| n)
}

/// A list of the results of `convert` for each element, short ones assembled in registers.
#[inline(always)]
pub fn dims_with<T: Copy>(of: &[T], convert: impl Fn(T) -> i64) -> Dims {
    match *of {
        [] => Dims::new(),
        [a] => Dims::from_buf_and_len([convert(a), 0, 0, 0, 0], 1),
        [a, b] => Dims::from_buf_and_len([convert(a), convert(b), 0, 0, 0], 2),
        [a, b, c] => Dims::from_buf_and_len([convert(a), convert(b), convert(c), 0, 0], 3),
        [a, b, c, d] => {
            Dims::from_buf_and_len([convert(a), convert(b), convert(c), convert(d), 0], 4)
        }
        _ => of.iter().map(|&n| convert(n)).collect(),
    }
}

/// A copy of sizes or strides: of inline ones with a few moves of fixed size.
#[inline(always)]
pub(crate) fn copied(dims: &Dims) -> Dims {
    if dims.spilled() {
        return dims.clone();
    }
    // SAFETY: a list that has not spilled holds plain numbers only and owns nothing.
    unsafe { std::ptr::read(dims) }
}

/// Writes a copy of `dims` to `to`, number by number.
///
/// # Safety
/// `to` is good for a write of a list.
#[inline(always)]
unsafe fn write_copy(dims: &Dims, to: *mut Dims) {
    const WORDS: usize = size_of::<Dims>() / size_of::<u64>();
    const { assert!(size_of::<Dims>() == WORDS * size_of::<u64>()) };
    // SAFETY: the caller's promise; a list that has not spilled holds plain numbers only and owns nothing. (The reads are
    // volatile so that they stay as narrow as they are.)
    unsafe {
        if dims.spilled() {
            to.write(dims.clone());
            return;
        }
        let from = std::ptr::from_ref(dims).cast::<MaybeUninit<u64>>();
        for word in 0..WORDS {
            to.cast::<MaybeUninit<u64>>().add(word).write(from.add(word).read_volatile());
        }
    }
}

/// Writes the row-major strides of `shape` to `to`.
///
/// # Safety
/// `to` is good for a write of a list.
#[inline(always)]
unsafe fn write_contiguous_strides(shape: &[i64], to: *mut Dims) {
    let size = |n: i64| n.max(1);
    // SAFETY: the caller's promise. (Each list is written where it is made, not put together before.)
    let write = |strides: Dims| unsafe { to.write(strides) };
    match *shape {
        [] => write(Dims::new()),
        [_] => write(Dims::from_buf_and_len([1, 0, 0, 0, 0], 1)),
        [_, b] => write(Dims::from_buf_and_len([size(b), 1, 0, 0, 0], 2)),
        [_, b, c] => {
            let strides = [size(b).wrapping_mul(size(c)), size(c), 1, 0, 0];
            write(Dims::from_buf_and_len(strides, 3));
        }
        _ => write(long_contiguous_strides(shape)),
    }
}

/// Everything a kernel needs to know of a tensor.
pub struct Geometry(Fields);

/// The readable fields of a geometry.
pub struct Fields {
    /// The memory; `None` only for devices without any, and for geometries that were replaced.
    pub(crate) storage: Option<Storage>,
    /// Elements before the first one.
    pub(crate) offset: i64,
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
    pub(crate) numel: i64,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) layout: Layout,
    pub(crate) is_contiguous: bool,
    /// A counter of its own, for `.data` aliases; otherwise the storage's counter is used.
    pub(crate) version: Option<Arc<Version>>,
}

impl Deref for Geometry {
    type Target = Fields;
    #[inline(always)]
    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl Clone for Geometry {
    #[inline(always)]
    fn clone(&self) -> Self {
        Geometry(Fields {
            storage: self.storage.clone(),
            shape: copied(&self.shape),
            strides: copied(&self.strides),
            version: self.version.clone(),
            ..self.0
        })
    }
}

impl Fields {
    /// The fields with `numel` and `is_contiguous` set, if every element that they reach lies inside the storage.
    ///
    /// # Errors
    /// `RuntimeError` for other numbers of sizes and strides, negative ones, those that overflow, and elements outside.
    #[inline(always)]
    fn checked(mut self) -> Result<Geometry> {
        let (mut numel, mut product, mut least) = (1_i64, 1_i64, self.offset);
        let (mut furthest, mut last) = (0_i64, self.offset);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            numel = numel.wrapping_mul(size);
            product = product.saturating_mul(size.max(1));
            least = least.min(size).min(stride);
            let reach = (size.max(2) - 1).saturating_mul(stride);
            furthest = furthest.max(reach);
            last = last.saturating_add(if size > 1 { reach } else { 0 });
        }
        let is_bounded = self.shape.len() == self.strides.len()
            && least >= 0
            && product.max(furthest).max(last) <= MOST;
        let size = self.dtype.size();
        let holds = |bytes: fn(&Storage) -> usize| {
            self.storage.as_ref().is_some_and(|s| (last as usize + 1) * size <= bytes(s))
        };
        // (Tensors over a storage that was made smaller may show what it held before.)
        if !is_bounded || numel != 0 && !holds(Storage::nbytes) && !holds(Storage::room) {
            return Err(self.refused());
        }
        self.numel = numel;
        self.is_contiguous = pullback_kernels::strided::is_contiguous(&self.shape, &self.strides);
        Ok(Geometry(self))
    }

    #[cold]
    #[inline(never)]
    fn refused(&self) -> Error {
        let have = self.storage.as_ref().map_or(0, Storage::room);
        let extent = (self.offset, self.dtype, have);
        check_fits(&self.shape, &self.strides, extent).err().unwrap_or_else(|| {
            Error::runtime(format!(
                "sizes {:?}, strides {:?} and storage offset {} do not fit a storage of size {have}",
                self.shape, self.strides, self.offset
            ))
        })
    }
}

impl Geometry {
    /// A strided geometry over `storage`.
    ///
    /// # Errors
    /// `RuntimeError` if it reaches elements outside of the storage.
    #[inline(always)]
    pub(crate) fn new(
        storage: Storage,
        offset: i64,
        shape: Dims,
        strides: Dims,
        dtype: DType,
    ) -> Result<Self> {
        let device = storage.device();
        Fields {
            storage: Some(storage),
            offset,
            shape,
            strides,
            numel: 0,
            dtype,
            device,
            layout: Layout::Strided,
            is_contiguous: false,
            version: None,
        }
        .checked()
    }

    /// Writes a row-major geometry of these sizes over `storage`, which is in main memory, to
    /// `ptr`: field by field and number by number, because reading a list that was just written in
    /// larger units waits for the writes.
    ///
    /// # Safety
    /// `ptr` is good for a write of a geometry, `numel` is the product of the sizes, and the storage holds as many elements.
    #[inline(always)]
    pub(super) unsafe fn write_row_major(
        ptr: *mut Geometry,
        storage: Storage,
        shape: &Dims,
        numel: i64,
        dtype: DType,
    ) {
        // SAFETY: the caller's promise; every field is written.
        unsafe {
            (&raw mut (*ptr).0.storage).write(Some(storage));
            (&raw mut (*ptr).0.offset).write(0);
            write_copy(shape, &raw mut (*ptr).0.shape);
            write_contiguous_strides(shape, &raw mut (*ptr).0.strides);
            (&raw mut (*ptr).0.numel).write(numel);
            (&raw mut (*ptr).0.dtype).write(dtype);
            (&raw mut (*ptr).0.device).write(Device::Cpu);
            (&raw mut (*ptr).0.layout).write(Layout::Strided);
            (&raw mut (*ptr).0.is_contiguous).write(true);
            (&raw mut (*ptr).0.version).write(None);
        }
    }

    /// A row-major geometry of the sizes of `like` over memory of its own, elements not set.
    ///
    /// # Errors
    /// Out of memory.
    #[inline(always)]
    pub(crate) fn fresh_like(like: &Geometry, dtype: DType) -> Result<Self> {
        let storage = Storage::uninitialized(like.numel as usize * dtype.size())?;
        let strides = if like.is_contiguous {
            copied(&like.strides)
        } else {
            contiguous_strides(&like.shape)
        };
        Ok(Geometry(Fields {
            storage: Some(storage),
            offset: 0,
            shape: copied(&like.shape),
            strides,
            numel: like.numel,
            dtype,
            device: like.device,
            layout: Layout::Strided,
            is_contiguous: true,
            version: None,
        }))
    }

    /// The geometry over the same memory with other sizes, strides and offset.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    #[inline(always)]
    pub(crate) fn with_view(&self, shape: &[i64], strides: &[i64], offset: i64) -> Result<Self> {
        self.retyped(self.dtype, (dims(shape), dims(strides)), offset)
    }

    /// The geometry over the same memory with elements of another dtype.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    #[inline(always)]
    pub(crate) fn retyped(
        &self,
        dtype: DType,
        (shape, strides): (Dims, Dims),
        offset: i64,
    ) -> Result<Self> {
        Fields {
            storage: self.storage.clone(),
            offset,
            shape,
            strides,
            dtype,
            version: self.version.clone(),
            ..self.0
        }
        .checked()
    }

    /// The fields that a tensor of this geometry will have once it has these sizes, row-major, in
    /// memory that may have to grow for them. They serve for comparison: nothing can be read
    /// through them.
    ///
    /// # Errors
    /// As [`checked_numel`].
    pub(super) fn if_resized(&self, shape: &[i64]) -> Result<Fields> {
        let (numel, is_contiguous) = (checked_numel(shape)?, true);
        let (storage, version) = (self.storage.clone(), self.version.clone());
        let (shape, strides) = (dims(shape), contiguous_strides(shape));
        Ok(Fields { storage, shape, strides, numel, is_contiguous, version, ..self.0 })
    }

    /// The geometry with `version` as its counter.
    #[must_use]
    pub(crate) fn with_version(mut self, version: Option<Arc<Version>>) -> Self {
        self.0.version = version;
        self
    }
    /// The geometry on `device`.
    #[must_use]
    pub(crate) fn on(mut self, device: Device) -> Self {
        self.0.device = device;
        self
    }
    /// The geometry of a sparse tensor, whose memory is no part of it.
    #[must_use]
    pub(super) fn of_sparse_layout(mut self, layout: Layout) -> Self {
        (self.0.layout, self.0.is_contiguous) = (layout, false);
        self
    }

    /// Removes the memory from the geometry at `ptr` and returns it.
    ///
    /// # Safety
    /// `ptr` is a geometry whose storage and version nobody reads.
    pub(super) unsafe fn empty(ptr: *mut Geometry) -> (Option<Storage>, Option<Arc<Version>>) {
        // SAFETY: the caller's promise. (Only these fields are touched: sizes and strides may be borrowed.)
        unsafe {
            ((&raw mut (*ptr).0.storage).replace(None), (&raw mut (*ptr).0.version).replace(None))
        }
    }
    /// Gives the emptied geometry at `ptr` the memory of `from`, which is equal in all other
    /// fields.
    ///
    /// # Safety
    /// `ptr` is a geometry that [`Geometry::empty`] emptied, nobody reads its storage and version, and all else is the
    /// same as in `from`.
    pub(super) unsafe fn refill(ptr: *mut Geometry, from: Geometry) {
        let Fields { storage, version, .. } = from.0;
        // SAFETY: the caller's promise. (Only these fields are touched: sizes and strides may be borrowed.)
        unsafe {
            (&raw mut (*ptr).0.storage).write(storage);
            (&raw mut (*ptr).0.version).write(version);
        }
    }

    /// Whether all fields but the memory and its version counter are equal.
    pub(super) fn is_alike(&self, other: &Geometry) -> bool {
        self.offset == other.offset
            && self.shape == other.shape
            && self.strides == other.strides
            && self.dtype == other.dtype
            && self.device == other.device
            && self.layout == other.layout
    }

    /// Writes a copy to `ptr`.
    ///
    /// # Safety
    /// `ptr` is good for a write of a geometry.
    #[inline(always)]
    pub(super) unsafe fn copy_to(&self, ptr: *mut Geometry) {
        // SAFETY: the caller's promise. Lists that have not spilled own nothing, and the new handles to what is
        // counted are those in the copied bytes.
        unsafe {
            if self.shape.spilled() || self.strides.spilled() {
                ptr.write(self.clone());
                return;
            }
            std::mem::forget((self.storage.clone(), self.version.clone()));
            // (Two halves, which are moved in registers: the whole would be a call of `memcpy`.)
            const HALF: usize = size_of::<Geometry>() / 2;
            let (from, to) = (std::ptr::from_ref(self).cast::<u8>(), ptr.cast::<u8>());
            std::ptr::copy_nonoverlapping(from, to, HALF);
            let rest = size_of::<Geometry>() - HALF;
            std::ptr::copy_nonoverlapping(from.add(HALF), to.add(HALF), rest);
        }
    }

    /// Moves the geometry to `ptr` field by field: as a whole it would be assembled first and then
    /// copied, by reads that wait for the preceding writes.
    ///
    /// # Safety
    /// `ptr` is good for a write of a geometry.
    #[inline(always)]
    pub(super) unsafe fn move_to(self, ptr: *mut Geometry) {
        let Fields {
            storage,
            offset,
            shape,
            strides,
            numel,
            dtype,
            device,
            layout,
            is_contiguous,
            version,
        } = self.0;
        // SAFETY: the caller's promise; every field is written.
        unsafe {
            (&raw mut (*ptr).0.storage).write(storage);
            (&raw mut (*ptr).0.offset).write(offset);
            (&raw mut (*ptr).0.shape).write(shape);
            (&raw mut (*ptr).0.strides).write(strides);
            (&raw mut (*ptr).0.numel).write(numel);
            (&raw mut (*ptr).0.dtype).write(dtype);
            (&raw mut (*ptr).0.device).write(device);
            (&raw mut (*ptr).0.layout).write(layout);
            (&raw mut (*ptr).0.is_contiguous).write(is_contiguous);
            (&raw mut (*ptr).0.version).write(version);
        }
    }

    /// The first element's address, to be read.
    #[inline(always)]
    pub(crate) fn data_ptr(&self) -> *const u8 {
        self.first_element(Storage::data_ptr)
    }
    /// The first element's address, to be written, of fresh memory or once [`Tensor::materialize`](crate::Tensor) was called.
    #[inline(always)]
    pub(crate) fn written_ptr(&self) -> *mut u8 {
        self.first_element(|storage| storage.written_ptr().cast_const()).cast_mut()
    }
    #[inline(always)]
    fn first_element(&self, address: impl Fn(&Storage) -> *const u8) -> *const u8 {
        match &self.storage {
            Some(storage) => {
                address(storage).wrapping_offset(self.offset as isize * self.dtype.size() as isize)
            }
            None => std::ptr::null(),
        }
    }
}

/// Row-major strides of `shape`.
#[inline(always)]
pub fn contiguous_strides(shape: &[i64]) -> Dims {
    let size = |n: i64| n.max(1);
    match *shape {
        [] => Dims::new(),
        [_] => Dims::from_buf_and_len([1, 0, 0, 0, 0], 1),
        [_, b] => Dims::from_buf_and_len([size(b), 1, 0, 0, 0], 2),
        [_, b, c] => Dims::from_buf_and_len([size(b).wrapping_mul(size(c)), size(c), 1, 0, 0], 3),
        _ => long_contiguous_strides(shape),
    }
}

fn long_contiguous_strides(shape: &[i64]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    let mut stride = 1_i64;
    for (index, &size) in shape.iter().enumerate().rev() {
        strides[index] = stride;
        stride = stride.wrapping_mul(size.max(1));
    }
    strides
}

/// The largest number of elements from the first position of a tensor to its last, dimensions
/// without elements counted as one: times the largest element's 16 bytes, every size, stride and
/// offset in bytes fits an `i64`, so that neither views nor kernels have to ask. PyTorch allows
/// shapes such as `(0, 2**62)`; they are refused here.
pub(crate) const MOST: i64 = i64::MAX / 16;

/// Number of elements of `shape`.
///
/// # Errors
/// `RuntimeError` for negative sizes or sizes whose product, zeros counted as one, is beyond [`MOST`].
#[inline]
pub(crate) fn checked_numel(shape: &[i64]) -> Result<i64> {
    let (mut numel, mut reach, mut least) = (1_i64, 1_i64, 0_i64);
    for &size in shape {
        numel = numel.wrapping_mul(size);
        reach = reach.saturating_mul(size.max(1));
        least = least.min(size);
    }
    if least < 0 || reach > MOST {
        return Err(bad_shape(shape));
    }
    Ok(numel)
}

#[cold]
fn bad_shape(shape: &[i64]) -> Error {
    Error::runtime(match shape.iter().find(|&&size| size < 0) {
        Some(size) => {
            format!("Trying to create tensor with negative dimension {size}: {shape:?}")
        }
        None if shape.contains(&0) => format!("Stride calculation overflowed with sizes={shape:?}"),
        None => format!(
            "Storage size calculation overflowed with sizes={shape:?} (numel: integer multiplication overflow)"
        ),
    })
}

/// Checks that `shape` seen with `strides` from `offset` reaches no further than [`MOST`], dimensions without
/// elements counted as one. Strides and offset are not negative.
///
/// # Errors
/// `RuntimeError` that names them.
pub(crate) fn check_reach(shape: &[i64], strides: &[i64], offset: i64) -> Result<()> {
    let mut reach = offset;
    for (&size, &stride) in shape.iter().zip(strides) {
        reach = reach.saturating_add((size.max(2) - 1).saturating_mul(stride));
    }
    if reach > MOST {
        return Err(Error::runtime(format!(
            "Storage size calculation overflowed with sizes={shape:?} and strides={strides:?} (from element {offset} on)"
        )));
    }
    Ok(())
}

/// Checks that a tensor seen so stays inside `have` bytes: `extent` is its offset, its dtype, and these.
///
/// # Errors
/// `RuntimeError` that says what does not fit.
pub(crate) fn check_fits(
    shape: &[i64],
    strides: &[i64],
    (offset, dtype, have): (i64, DType, usize),
) -> Result<()> {
    ensure!(
        shape.len() == strides.len(),
        runtime,
        "unequal size length ({}) and stride length ({})",
        shape.len(),
        strides.len()
    );
    checked_numel(shape)?;
    ensure!(offset >= 0, runtime, "Tensor: invalid storage offset {offset}");
    ensure!(
        strides.iter().all(|&s| s >= 0),
        runtime,
        "as_strided: Negative strides are not supported at the moment, got strides: {strides:?}"
    );
    check_reach(shape, strides, offset)?;
    let reach = extent(shape, strides)?;
    let need = (offset.saturating_add(reach)).saturating_mul(dtype.size() as i64);
    ensure!(
        reach == 0 || need as usize <= have,
        runtime,
        "setStorage: sizes {shape:?}, strides {strides:?}, storage offset {offset}, and itemsize {} requiring a storage size of {need} are out of bounds for storage of size {have}",
        dtype.size()
    );
    Ok(())
}

/// Elements from the first to one past the last that `shape` and `strides` (not negative) reach.
pub(crate) fn extent(shape: &[i64], strides: &[i64]) -> Result<i64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut end = Some(1_i64);
    for (&size, &stride) in shape.iter().zip(strides) {
        end = (size - 1).checked_mul(stride).and_then(|step| end?.checked_add(step));
    }
    end.ok_or_else(|| Error::runtime(format!("strides {strides:?} overflow for shape {shape:?}")))
}

/// Whether the elements fill their memory exactly, in some order of the dimensions.
pub(crate) fn is_non_overlapping_and_dense(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut dims: SmallVec<[(i64, i64); 5]> =
        strides.iter().zip(shape).filter(|&(_, &size)| size != 1).map(|(&s, &n)| (s, n)).collect();
    dims.sort_unstable();
    let mut expected = 1;
    dims.iter().all(|&(stride, size)| {
        let fits = stride == expected;
        expected *= size;
        fits
    })
}

/// Whether two different indices may mean the same element. Exact for what views can make;
/// errs on the side of `true`... never for dense layouts.
pub(crate) fn may_overlap_itself(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return false;
    }
    let mut dims: SmallVec<[(i64, i64); 5]> =
        strides.iter().zip(shape).filter(|&(_, &size)| size > 1).map(|(&s, &n)| (s, n)).collect();
    dims.sort_unstable();
    let mut reach = 0;
    for (stride, size) in dims {
        if stride <= reach {
            return true;
        }
        reach += stride * (size - 1);
    }
    false
}

/// Strides for a new tensor like `shape`/`strides`: the same if dense, else row-major over the
/// dimensions sorted by their old strides.
pub(crate) fn preserved_strides(shape: &[i64], strides: &[i64]) -> Dims {
    // (A dimension of one element may have any stride, also one that would be invalid for a larger
    // dimension.)
    if is_non_overlapping_and_dense(shape, strides) && check_reach(shape, strides, 0).is_ok() {
        return Dims::from_slice(strides);
    }
    let mut order: SmallVec<[usize; 5]> = (0..shape.len()).collect();
    // Stable insertion: dimensions of stride 0 (broadcast) keep their place, as PyTorch has it.
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 {
            let (outer, inner) = (order[at - 1], order[at]);
            let swap =
                strides[outer] != 0 && strides[inner] != 0 && strides[outer] < strides[inner];
            if !swap {
                break;
            }
            order.swap(at - 1, at);
            at -= 1;
        }
    }
    let mut new = Dims::from_elem(1, shape.len());
    let mut stride = 1;
    for &dim in order.iter().rev() {
        new[dim] = stride;
        stride *= shape[dim].max(1);
    }
    new
}

/// Strides of the channels-last order for 4-d and 5-d shapes.
pub(crate) fn channels_last_strides(shape: &[i64]) -> Option<Dims> {
    let rank = shape.len();
    if rank != 4 && rank != 5 {
        return None;
    }
    let mut strides = Dims::from_elem(1, rank);
    let mut stride = shape[1].max(1);
    for dim in (2..rank).rev() {
        strides[dim] = stride;
        stride = stride.wrapping_mul(shape[dim].max(1));
    }
    strides[0] = stride;
    Some(strides)
}
