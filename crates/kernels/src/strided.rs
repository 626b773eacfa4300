//! Strided views of memory, the only form in which kernels receive tensors, and `Iter`, the
//! element-by-element walk over several of them at once.
//!
//! Invariant: a view's constructor is `unsafe` and promises that every element it can reach is live
//! memory of its dtype; everything after that is checked. Sizes and strides count elements and are
//! `i64` as in the tensor library; inside `Iter` strides count bytes. A stride may be zero
//! (broadcasting) or negative.

use crate::{DType, Element, Error, Result, parallel};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// A readable view: pointer, dtype, sizes and strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct StridedRef<'a> {
    ptr: *const u8,
    dtype: DType,
    shape: &'a [i64],
    strides: &'a [i64],
    memory: PhantomData<&'a [u8]>,
}

/// A writable view. Several of them may overlap only as far as the kernel says it allows it.
#[derive(Debug)]
pub struct StridedMut<'a> {
    ptr: *mut u8,
    dtype: DType,
    shape: &'a [i64],
    strides: &'a [i64],
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a view is a pointer into memory that its lifetime keeps alive; elements are plain numbers.
unsafe impl Send for StridedRef<'_> {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for StridedRef<'_> {}
// SAFETY: as above.
unsafe impl Send for StridedMut<'_> {}
// SAFETY: a shared `StridedMut` hands out only its pointer; kernels write disjoint parts.
unsafe impl Sync for StridedMut<'_> {}

macro_rules! view_methods {
    () => {
        /// The element type.
        #[inline(always)]
        pub fn dtype(&self) -> DType {
            self.dtype
        }
        /// The sizes.
        #[inline(always)]
        pub fn shape(&self) -> &'a [i64] {
            self.shape
        }
        /// The strides, in elements.
        #[inline(always)]
        pub fn strides(&self) -> &'a [i64] {
            self.strides
        }
        /// How many dimensions.
        #[inline(always)]
        pub fn ndim(&self) -> usize {
            self.shape.len()
        }
        /// How many elements.
        pub fn numel(&self) -> usize {
            self.shape.iter().map(|&s| s as usize).product()
        }
        /// Whether the elements lie row by row without gaps.
        pub fn is_contiguous(&self) -> bool {
            is_contiguous(self.shape, self.strides)
        }
    };
}

impl<'a> StridedRef<'a> {
    /// Makes a view.
    ///
    /// # Safety
    /// Every element that `shape` and `strides` reach from `ptr` must be initialised live memory of
    /// `dtype`, aligned for it, for all of `'a`; `shape` and `strides` have equal lengths, sizes are not negative.
    pub unsafe fn new(
        ptr: *const u8,
        dtype: DType,
        shape: &'a [i64],
        strides: &'a [i64],
    ) -> StridedRef<'a> {
        debug_assert_eq!(shape.len(), strides.len());
        StridedRef { ptr, dtype, shape, strides, memory: PhantomData }
    }
    view_methods!();
    /// The first element's address.
    #[inline(always)]
    pub fn ptr(&self) -> *const u8 {
        self.ptr
    }
    /// The elements as a slice, if contiguous and of type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&'a [T]> {
        let n = self.numel();
        if self.dtype != T::DTYPE || !self.is_contiguous() {
            return None;
        }
        if n == 0 {
            return Some(&[]);
        }
        // SAFETY: the constructor promised `n` live elements of this dtype, without gaps as checked.
        Some(unsafe { std::slice::from_raw_parts(self.ptr.cast::<T>(), n) })
    }
}

impl<'a> StridedMut<'a> {
    /// Makes a writable view.
    ///
    /// # Safety
    /// As [`StridedRef::new`], and nothing else reads or writes the memory during `'a` except as the
    /// kernel allows (pointwise kernels allow an input that is the very same view).
    pub unsafe fn new(
        ptr: *mut u8,
        dtype: DType,
        shape: &'a [i64],
        strides: &'a [i64],
    ) -> StridedMut<'a> {
        debug_assert_eq!(shape.len(), strides.len());
        StridedMut { ptr, dtype, shape, strides, memory: PhantomData }
    }
    view_methods!();
    /// The first element's address.
    #[inline(always)]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }
    /// The elements as a mutable slice, if contiguous and of type `T`.
    pub fn as_slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let n = self.numel();
        if self.dtype != T::DTYPE || !self.is_contiguous() {
            return None;
        }
        if n == 0 {
            return Some(&mut []);
        }
        // SAFETY: the constructor promised `n` live elements, exclusive to this view.
        Some(unsafe { std::slice::from_raw_parts_mut(self.ptr.cast::<T>(), n) })
    }
    /// The same memory for reading.
    pub fn as_ref(&self) -> StridedRef<'a> {
        StridedRef {
            ptr: self.ptr,
            dtype: self.dtype,
            shape: self.shape,
            strides: self.strides,
            memory: PhantomData,
        }
    }
}

/// Whether `strides` are those of a row-major array of `shape` (dimensions of size 1 do not count).
pub fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 {
            if stride != expected {
                return false;
            }
            expected *= size;
        }
    }
    true
}

/// Most operands one `Iter` walks over.
pub const MAX_OPERANDS: usize = 8;

/// A one-dimensional loop: addresses of the first elements and byte strides, outputs first, then
/// inputs, and the number of elements.
pub type InnerLoop<'r> = dyn Fn(&[*mut u8], &[isize], usize) + Sync + 'r;

/// A two-dimensional loop: addresses of the first elements, byte strides along a row, byte strides from row to row, and the
/// number of elements in a row and of rows.
pub(crate) type InnerLoop2d<'r> =
    dyn Fn(&[*mut u8], &[isize], &[isize], (usize, usize)) + Sync + 'r;

/// Walks several views of one shape together, in an order that is good for memory: dimensions are
/// sorted by the strides of the first operand and merged where all operands allow it.
pub struct Iter {
    shape: SmallVec<[usize; 4]>,
    /// Byte strides: `strides[dim * operands + operand]`, innermost dimension first.
    strides: SmallVec<[isize; 16]>,
    ptrs: [*mut u8; MAX_OPERANDS],
    dtypes: [DType; MAX_OPERANDS],
    operands: usize,
    outputs: usize,
    numel: usize,
}

// SAFETY: as for the views it was made from.
unsafe impl Send for Iter {}
// SAFETY: as for the views it was made from.
unsafe impl Sync for Iter {}

impl Iter {
    /// Makes the walk over `outputs` then `inputs`, which all have the same shape (broadcast inputs have zero strides).
    pub fn new(outputs: &[StridedMut<'_>], inputs: &[StridedRef<'_>]) -> Result<Iter> {
        let operands = outputs.len() + inputs.len();
        if operands == 0 || operands > MAX_OPERANDS {
            return Err(Error::runtime(format!(
                "an element loop has 1 to {MAX_OPERANDS} operands, got {operands}"
            )));
        }
        let shape = outputs.first().map_or_else(|| inputs[0].shape, |o| o.shape);
        let mut iter = Iter {
            shape: shape.iter().rev().map(|&s| s as usize).collect(),
            strides: SmallVec::from_elem(0, shape.len() * operands),
            ptrs: [std::ptr::null_mut(); MAX_OPERANDS],
            dtypes: [DType::U8; MAX_OPERANDS],
            operands,
            outputs: outputs.len(),
            numel: shape.iter().map(|&s| s as usize).product(),
        };
        let views = outputs
            .iter()
            .map(|o| (o.ptr, o.dtype, o.shape, o.strides))
            .chain(inputs.iter().map(|i| (i.ptr.cast_mut(), i.dtype, i.shape, i.strides)));
        for (index, (ptr, dtype, its_shape, strides)) in views.enumerate() {
            if its_shape != shape {
                return Err(Error::runtime(format!(
                    "operand {index} has shape {its_shape:?}, expected {shape:?}"
                )));
            }
            iter.ptrs[index] = ptr;
            iter.dtypes[index] = dtype;
            for (dim, &stride) in strides.iter().rev().enumerate() {
                iter.strides[dim * operands + index] = stride as isize * dtype.size() as isize;
            }
        }
        iter.sort_dims();
        iter.merge_dims();
        Ok(iter)
    }

    /// The walk over contiguous memory, without any of the general case's work.
    ///
    /// # Safety
    /// Each pointer has `numel` live elements of its dtype, the first `outputs` of them writable.
    #[inline]
    pub unsafe fn contiguous(operands: &[(*mut u8, DType)], outputs: usize, numel: usize) -> Iter {
        let mut iter = Iter {
            shape: SmallVec::from_slice(&[numel]),
            strides: SmallVec::new(),
            ptrs: [std::ptr::null_mut(); MAX_OPERANDS],
            dtypes: [DType::U8; MAX_OPERANDS],
            operands: operands.len(),
            outputs,
            numel,
        };
        for (index, &(ptr, dtype)) in operands.iter().enumerate() {
            iter.ptrs[index] = ptr;
            iter.dtypes[index] = dtype;
            iter.strides.push(dtype.size() as isize);
        }
        iter
    }

    /// The walk over one run with a byte stride per operand: the element size, or 0 for a repeated number.
    ///
    /// # Safety
    /// From each pointer `numel` steps of its stride stay in live elements of its dtype; the first `outputs`
    /// operands are writable and have strides of their element size.
    #[inline]
    pub unsafe fn flat(operands: &[(*mut u8, DType, isize)], outputs: usize, numel: usize) -> Iter {
        let mut iter = Iter {
            shape: SmallVec::from_slice(&[numel]),
            strides: SmallVec::new(),
            ptrs: [std::ptr::null_mut(); MAX_OPERANDS],
            dtypes: [DType::U8; MAX_OPERANDS],
            operands: operands.len(),
            outputs,
            numel,
        };
        for (index, &(ptr, dtype, stride)) in operands.iter().enumerate() {
            iter.ptrs[index] = ptr;
            iter.dtypes[index] = dtype;
            iter.strides.push(stride);
        }
        iter
    }

    /// Elements in all.
    #[inline(always)]
    pub fn numel(&self) -> usize {
        self.numel
    }
    /// How many operands are outputs (they come first).
    #[inline(always)]
    pub fn outputs(&self) -> usize {
        self.outputs
    }
    /// How many operands there are.
    #[inline(always)]
    pub fn operands(&self) -> usize {
        self.operands
    }
    /// The dtype of operand `index`.
    #[inline(always)]
    pub fn dtype(&self, index: usize) -> DType {
        self.dtypes[index]
    }
    /// The dtype of input `index` (operands after the outputs), or of the first output if there is none.
    #[inline(always)]
    pub fn input_dtype(&self, index: usize) -> DType {
        self.dtypes[if self.operands > self.outputs { self.outputs + index } else { 0 }]
    }
    /// Whether input `index`, which holds integers or bools, has a zero. An operation in place asks before it
    /// writes over what it reads.
    pub fn has_zero(&self, index: usize) -> bool {
        let (at, size) = (self.outputs + index, self.dtypes[self.outputs + index].size());
        let seen = std::sync::atomic::AtomicBool::new(false);
        self.for_each(1 << 15, &|pointers, strides, n| {
            // A number that is broadcast is read once.
            let count = if strides[at] == 0 { 1 } else { n };
            let is_zero = |i: usize| {
                let ptr = pointers[at].wrapping_offset(i as isize * strides[at]);
                // SAFETY: the element lies inside the view; an integer is zero if all its bytes are.
                unsafe { std::slice::from_raw_parts(ptr, size) }.iter().all(|&byte| byte == 0)
            };
            if (0..count).any(is_zero) {
                seen.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        });
        seen.into_inner()
    }
    /// If every operand is contiguous in one run: the addresses (the walk is then just `numel` elements).
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[*mut u8]> {
        let dense = self.shape.len() <= 1
            && (0..self.operands)
                .all(|i| self.numel <= 1 || self.strides[i] == self.dtypes[i].size() as isize);
        dense.then(|| &self.ptrs[..self.operands])
    }

    /// How many dimensions are left after merging; dimension 0 is innermost.
    #[inline(always)]
    pub(crate) fn dims(&self) -> usize {
        self.shape.len()
    }
    /// The size of dimension `dim`.
    #[inline(always)]
    pub(crate) fn size(&self, dim: usize) -> usize {
        self.shape[dim]
    }
    /// The byte stride of an operand along dimension `dim`.
    #[inline(always)]
    pub(crate) fn stride(&self, dim: usize, operand: usize) -> isize {
        self.strides[dim * self.operands + operand]
    }
    /// The address of an operand's first element.
    #[inline(always)]
    pub(crate) fn ptr(&self, operand: usize) -> *mut u8 {
        self.ptrs[operand]
    }

    /// Sorts dimensions so that the first operand's smallest stride is innermost.
    fn sort_dims(&mut self) {
        let n = self.operands;
        let key = |it: &Iter, dim: usize| {
            // Zero strides (broadcasting) say nothing about order: ask the next operand.
            (0..n).map(|i| it.strides[dim * n + i].unsigned_abs()).find(|&s| s != 0).unwrap_or(0)
        };
        for end in 1..self.shape.len() {
            let mut dim = end;
            while dim > 0
                && self.shape[dim] != 1
                && (self.shape[dim - 1] == 1 || key(self, dim) < key(self, dim - 1))
            {
                self.shape.swap(dim, dim - 1);
                for i in 0..n {
                    self.strides.swap(dim * n + i, (dim - 1) * n + i);
                }
                dim -= 1;
            }
        }
    }

    /// Merges neighbouring dimensions that every operand walks as one.
    fn merge_dims(&mut self) {
        let n = self.operands;
        let mut kept = 0;
        for dim in 1..self.shape.len() {
            let (inner, size) = (self.shape[kept], self.shape[dim]);
            let can_merge = inner == 1
                || size == 1
                || (0..n).all(|i| {
                    self.strides[kept * n + i] * inner as isize == self.strides[dim * n + i]
                });
            if can_merge {
                if inner == 1 {
                    for i in 0..n {
                        self.strides[kept * n + i] = self.strides[dim * n + i];
                    }
                }
                self.shape[kept] = inner * size;
            } else {
                kept += 1;
                self.shape[kept] = size;
                for i in 0..n {
                    self.strides[kept * n + i] = self.strides[dim * n + i];
                }
            }
        }
        if !self.shape.is_empty() {
            self.shape.truncate(kept + 1);
            self.strides.truncate((kept + 1) * n);
        }
    }

    /// Calls `run` for one-dimensional runs that together cover every element once, on several
    /// threads if there are more than `grain` elements. `run` must not assume an order between runs.
    #[inline]
    pub fn for_each(&self, grain: usize, run: &InnerLoop<'_>) {
        if self.numel == 0 {
            return;
        }
        let n = self.operands;
        if self.shape.len() <= 1 && self.numel <= grain {
            return run(&self.ptrs[..n], self.steps(0), self.numel);
        }
        self.for_each_rows(grain, &|ptrs, strides, row_strides, (length, rows)| {
            let mut at = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            at[..n].copy_from_slice(&ptrs[..n]);
            for _ in 0..rows {
                run(&at[..n], strides, length);
                for (at, &row_stride) in at[..n].iter_mut().zip(row_strides) {
                    *at = at.wrapping_offset(row_stride);
                }
            }
        });
    }

    /// Calls `run` for blocks of rows that together cover every element once, as [`Iter::for_each`] does for single rows.
    pub(crate) fn for_each_rows(&self, grain: usize, run: &InnerLoop2d<'_>) {
        if self.numel == 0 {
            return;
        }
        if self.shape.len() <= 2 && self.numel <= grain {
            let [inner, outer] = [0, 1].map(|dim| self.shape.get(dim).copied().unwrap_or(1));
            let ptrs = &self.ptrs[..self.operands];
            return run(ptrs, self.steps(0), self.steps(1), (inner, outer));
        }
        parallel::for_range(self.numel, grain, &|range| self.walk(range, run));
    }

    /// The byte strides along dimension `dim`, zero if there is none.
    #[inline]
    fn steps(&self, dim: usize) -> &[isize] {
        let n = self.operands;
        self.strides.get(dim * n..(dim + 1) * n).unwrap_or(&[0; MAX_OPERANDS][..n])
    }

    /// The part of the walk that covers elements `range` of the linear order.
    fn walk(&self, range: std::ops::Range<usize>, run: &InnerLoop2d<'_>) {
        let n = self.operands;
        let inner = self.shape.first().copied().unwrap_or(1);
        let outer = self.shape.get(1).copied().unwrap_or(1);
        let mut at = range.start;
        let (strides, row_strides) = (self.steps(0), self.steps(1));
        while at < range.end {
            let mut ptrs = [std::ptr::null_mut::<u8>(); MAX_OPERANDS];
            for (i, ptr) in ptrs[..n].iter_mut().enumerate() {
                let (mut rest, mut offset) = (at, 0);
                for (dim, &size) in self.shape.iter().enumerate() {
                    offset += (rest % size) as isize * self.strides[dim * n + i];
                    rest /= size;
                }
                *ptr = self.ptrs[i].wrapping_offset(offset);
            }
            let (row, column, left) = (at / inner % outer, at % inner, range.end - at);
            let (length, rows) = if column == 0 && left >= inner {
                (inner, (left / inner).min(outer - row))
            } else {
                (left.min(inner - column), 1)
            };
            run(&ptrs[..n], strides, row_strides, (length, rows));
            at += length * rows;
        }
    }
}
