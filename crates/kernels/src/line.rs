//! Lines of a tensor: the walk over all positions of the dimensions that a kernel does not work
//! along, for several views at once, and the typed reads and writes at byte offsets it hands out.
//!
//! Positions come in row-major order of the shape, so that a kernel with order (random draws,
//! accumulation) sees a fixed one. Byte offsets are relative to each view's first element.

use crate::{DType, Element, Error, Result, StridedMut, StridedRef};
use smallvec::SmallVec;
use std::ops::Range;

/// Strides and element size of a view, all that the walk needs of it.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a> {
    strides: &'a [i64],
    size: usize,
}

impl<'a> Layout<'a> {
    /// Strides in elements of `size` bytes.
    pub(crate) fn of(strides: &'a [i64], size: usize) -> Self {
        Layout { strides, size }
    }
    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
    /// The strides, in elements.
    pub(crate) fn strides(&self) -> &'a [i64] {
        self.strides
    }
}

impl<'a> From<&StridedRef<'a>> for Layout<'a> {
    fn from(view: &StridedRef<'a>) -> Self {
        Layout { strides: view.strides(), size: view.dtype().size() }
    }
}

impl<'a> From<&StridedMut<'a>> for Layout<'a> {
    fn from(view: &StridedMut<'a>) -> Self {
        Layout { strides: view.strides(), size: view.dtype().size() }
    }
}

/// Length of a view along a dimension and the byte stride there; a 0-dim view is one line of one element.
#[inline]
pub(crate) fn along<'a>(shape: &[i64], view: impl Into<Layout<'a>>, dim: usize) -> (usize, isize) {
    let view = view.into();
    if shape.is_empty() {
        return (1, view.size as isize);
    }
    (shape[dim] as usize, view.strides[dim] as isize * view.size as isize)
}

/// Below this size a row is better unrolled than looped over.
const SHORT: usize = 5;

/// The walk over the positions of some dimensions.
pub(crate) struct Lines<const N: usize> {
    /// Size and byte strides of each walked dimension, outermost first; neighbours merged where possible.
    dims: SmallVec<[(usize, [isize; N]); 5]>,
    count: usize,
}

impl<const N: usize> Lines<N> {
    /// The walk over every dimension of `shape` except `skip` (`None`: all of them).
    pub(crate) fn new(shape: &[i64], skip: Option<usize>, views: [Layout<'_>; N]) -> Self {
        Self::select(shape, |dim| Some(dim) != skip, views)
    }

    /// The walk over the dimensions that `keep` accepts.
    pub(crate) fn select(
        shape: &[i64],
        keep: impl Fn(usize) -> bool,
        views: [Layout<'_>; N],
    ) -> Self {
        let mut dims: SmallVec<[(usize, [isize; N]); 5]> = SmallVec::new();
        let mut count = 1;
        for (dim, &size) in shape.iter().enumerate().filter(|&(dim, _)| keep(dim)) {
            count *= size as usize;
            if size == 1 {
                continue;
            }
            let strides = views.map(|v| v.strides[dim] as isize * v.size as isize);
            match dims.last_mut() {
                Some((last, outer)) if (0..N).all(|i| outer[i] == strides[i] * size as isize) => {
                    *last *= size as usize;
                    *outer = strides;
                }
                _ => dims.push((size as usize, strides)),
            }
        }
        Lines { dims, count }
    }

    /// How many positions there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Size and byte strides of each walked dimension, innermost first.
    pub(crate) fn dims(&self) -> impl ExactSizeIterator<Item = (usize, [isize; N])> {
        self.dims.iter().rev().copied()
    }

    /// Byte strides of the innermost walked dimension.
    #[inline]
    pub(crate) fn inner(&self) -> Option<[isize; N]> {
        self.dims.last().map(|dim| dim.1)
    }

    /// Whether the walk is one run with these byte strides (or at most one position).
    #[inline]
    pub(crate) fn is_dense(&self, steps: [isize; N]) -> bool {
        match self.dims.len() {
            0 => true,
            1 => self.dims[0].1 == steps,
            _ => false,
        }
    }

    /// The byte offsets of position `at`.
    pub(crate) fn offsets(&self, mut at: usize) -> [isize; N] {
        let mut offsets = [0; N];
        for (size, strides) in self.dims.iter().rev() {
            let index = (at % size) as isize;
            at /= size;
            for i in 0..N {
                offsets[i] += index * strides[i];
            }
        }
        offsets
    }

    /// The walk of those views that `stepped` has a bit for, if the walk is one of short rows in which the others have no gaps
    /// (their elements are `sizes` apart).
    pub(crate) fn steps_beside(&self, sizes: [isize; N], stepped: u8) -> Option<Steps<N>> {
        let [(_, jumps), (inner, strides)] = self.dims[..] else { return None };
        let is_dense = |i: usize| strides[i] == sizes[i] && jumps[i] == inner as isize * sizes[i];
        let fits = (0..N).all(|i| stepped >> i & 1 != 0 || is_dense(i));
        (self.is_short() && fits).then_some(Steps { inner, strides, jumps })
    }

    /// Whether the innermost walked dimension is too short for a loop of its own.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        matches!(self.dims[..], [.., (inner, _)] if inner < SHORT) && self.dims.len() > 1
    }

    /// Calls `visit` with the byte offsets of each position in `range`, in order.
    #[inline]
    pub(crate) fn visit(&self, range: Range<usize>, mut visit: impl FnMut([isize; N])) {
        self.visit_runs(range, |mut offsets, strides, length| {
            for _ in 0..length {
                visit(offsets);
                for i in 0..N {
                    offsets[i] += strides[i];
                }
            }
        });
    }

    /// Calls `visit` with runs (offsets, byte strides, length) that cover `range` in order.
    #[inline]
    pub(crate) fn visit_runs(
        &self,
        range: Range<usize>,
        mut visit: impl FnMut([isize; N], [isize; N], usize),
    ) {
        let Some(&(inner, strides)) = self.dims.last() else {
            if !range.is_empty() {
                visit([0; N], [0; N], 1);
            }
            return;
        };
        // Runs that follow one another along the next dimension are stepped through without division.
        let (outer, jumps) = match self.dims[..] {
            [.., dim, _] => dim,
            _ => (1, [0; N]),
        };
        let mut at = range.start;
        while at < range.end {
            let mut offsets = self.offsets(at);
            let mut runs = outer - at / inner % outer;
            let mut column = at % inner;
            while runs > 0 && at < range.end {
                let length = (inner - column).min(range.end - at);
                visit(offsets, strides, length);
                for i in 0..N {
                    offsets[i] += jumps[i] - column as isize * strides[i];
                }
                at += length;
                (column, runs) = (0, runs - 1);
            }
        }
    }
}

/// A walk over rows of `inner` elements.
pub(crate) struct Steps<const N: usize> {
    inner: usize,
    strides: [isize; N],
    jumps: [isize; N],
}

impl<const N: usize> Steps<N> {
    /// Calls `visit` with the number and the byte offsets of each position in `range`; what is not used of them costs nothing.
    #[inline(always)]
    pub(crate) fn visit(&self, range: Range<usize>, mut visit: impl FnMut(isize, [isize; N])) {
        if range.start.is_multiple_of(self.inner) && range.end.is_multiple_of(self.inner) {
            let rows = range.start / self.inner..range.end / self.inner;
            match self.inner {
                2 => return self.visit_rows::<2>(rows, visit),
                4 => return self.visit_rows::<4>(rows, visit),
                _ => {}
            }
        }
        let (row, mut column) = (range.start / self.inner, range.start % self.inner);
        let mut first = self.jumps.map(|jump| row as isize * jump);
        let mut j = range.start;
        while j < range.end {
            let end = range.end.min(j + self.inner - column);
            let mut offsets = first;
            for i in 0..N {
                offsets[i] += column as isize * self.strides[i];
                first[i] += self.jumps[i];
            }
            column = 0;
            while j < end {
                visit(j as isize, offsets);
                for (offset, stride) in offsets.iter_mut().zip(self.strides) {
                    *offset += stride;
                }
                j += 1;
            }
        }
    }

    /// All of `rows`, which have `INNER` elements.
    #[inline(always)]
    fn visit_rows<const INNER: usize>(
        &self,
        rows: Range<usize>,
        mut visit: impl FnMut(isize, [isize; N]),
    ) {
        let Steps { strides, jumps, .. } = *self;
        let mut first = jumps.map(|jump| rows.start as isize * jump);
        for row in rows {
            let mut offsets = first;
            for column in 0..INNER {
                visit((row * INNER + column) as isize, offsets);
                for i in 0..N {
                    offsets[i] += strides[i];
                }
            }
            for i in 0..N {
                first[i] += jumps[i];
            }
        }
    }
}

/// Element steps that are worth a thread of their own.
pub(crate) const GRAIN: usize = 32_768;

/// Reads the element at a byte offset.
///
/// # Safety
/// The offset is one of the view that `ptr` belongs to, and `T` is its element type.
#[inline(always)]
pub(crate) unsafe fn get<T: Copy>(ptr: *const u8, offset: isize) -> T {
    // SAFETY: promised by the caller.
    unsafe { ptr.offset(offset).cast::<T>().read() }
}

/// Writes the element at a byte offset.
///
/// # Safety
/// As [`get`], and nothing else accesses the element now.
#[inline(always)]
pub(crate) unsafe fn put<T: Copy>(ptr: *mut u8, offset: isize, value: T) {
    // SAFETY: promised by the caller.
    unsafe { ptr.offset(offset).cast::<T>().write(value) }
}

/// Refuses a view whose dtype is not `dtype`.
pub(crate) fn check_dtype(what: &str, found: DType, dtype: DType) -> Result<()> {
    if found == dtype {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{what}: expected dtype {} but got {}",
        dtype.scalar_name(),
        found.scalar_name()
    )))
}

/// Refuses a view whose shape is not `shape`.
pub(crate) fn check_shape(what: &str, found: &[i64], shape: &[i64]) -> Result<()> {
    if found == shape {
        return Ok(());
    }
    Err(Error::runtime(format!("{what}: expected shape {shape:?} but got {found:?}")))
}

/// Refuses a dimension that does not exist (0-dim views have a dimension 0).
pub(crate) fn check_dim(dim: usize, ndim: usize) -> Result<()> {
    if dim < ndim.max(1) {
        return Ok(());
    }
    let last = ndim.max(1) as i64 - 1;
    Err(Error::index(format!(
        "Dimension out of range (expected to be in range of [{}, {last}], but got {dim})",
        -last - 1
    )))
}

/// Copies a strided line into a slice.
///
/// # Safety
/// `ptr` has `buffer.len()` elements of `T` at byte distance `stride`.
#[inline]
pub(crate) unsafe fn read_line<T: Element>(ptr: *const u8, stride: isize, buffer: &mut [T]) {
    if stride == size_of::<T>() as isize {
        // SAFETY: the line has no gaps, so it is a slice; the caller promised the elements.
        unsafe { ptr.cast::<T>().copy_to_nonoverlapping(buffer.as_mut_ptr(), buffer.len()) };
        return;
    }
    for (i, slot) in buffer.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        *slot = unsafe { get(ptr, i as isize * stride) };
    }
}

/// Copies a slice into a strided line.
///
/// # Safety
/// As [`read_line`], writable, and not overlapping `buffer`.
#[inline]
pub(crate) unsafe fn write_line<T: Copy>(ptr: *mut u8, stride: isize, buffer: &[T]) {
    if stride == size_of::<T>() as isize {
        // SAFETY: the line has no gaps; the caller promised the elements.
        unsafe { ptr.cast::<T>().copy_from_nonoverlapping(buffer.as_ptr(), buffer.len()) };
        return;
    }
    for (i, &value) in buffer.iter().enumerate() {
        // SAFETY: promised by the caller.
        unsafe { put(ptr, i as isize * stride, value) };
    }
}
