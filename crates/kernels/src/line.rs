//! Lines of a tensor: the walk over all positions of the dimensions that a kernel does not work
//! along, for several views at once, and the typed reads and writes at byte offsets it hands out.
//!
//! Positions come in row-major order of the shape, so that a kernel with order (random draws,
//! accumulation) sees a fixed one. Byte offsets are relative to each view's first element.

use crate::{DType, Element, Error, Result, StridedMut, StridedRef, interrupt};
use smallvec::SmallVec;
use std::ops::Range;

/// Strides and element size of a view, all that the walk needs of it.
#[derive(Clone, Copy)]
pub(crate) struct ViewLayout<'a> {
    strides: &'a [i64],
    size: usize,
}

impl<'a> ViewLayout<'a> {
    /// Strides in elements of `size` bytes.
    pub(crate) fn of(strides: &'a [i64], size: usize) -> Self {
        ViewLayout { strides, size }
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

impl<'a> From<&StridedRef<'a>> for ViewLayout<'a> {
    fn from(view: &StridedRef<'a>) -> Self {
        ViewLayout { strides: view.strides(), size: view.dtype().size() }
    }
}

impl<'a> From<&StridedMut<'a>> for ViewLayout<'a> {
    fn from(view: &StridedMut<'a>) -> Self {
        ViewLayout { strides: view.strides(), size: view.dtype().size() }
    }
}

/// Length of a view along a dimension and the byte stride there; a 0-dim view is one line of one element.
#[inline]
pub(crate) fn along<'a>(
    shape: &[i64],
    view: impl Into<ViewLayout<'a>>,
    dim: usize,
) -> (usize, isize) {
    let view = view.into();
    if shape.is_empty() {
        return (1, view.size as isize);
    }
    (shape[dim] as usize, view.strides[dim] as isize * view.size as isize)
}

/// The walk over the positions of some dimensions.
pub(crate) struct LineIter<const N: usize> {
    /// Size and byte strides of each walked dimension, outermost first; neighbours merged where possible.
    dims: SmallVec<[(usize, [isize; N]); 5]>,
    count: usize,
}

impl<const N: usize> LineIter<N> {
    /// The walk over every dimension of `shape` except `skip` (`None`: all of them).
    pub(crate) fn new(shape: &[i64], skip: Option<usize>, views: [ViewLayout<'_>; N]) -> Self {
        Self::select(shape, |dim| Some(dim) != skip, views)
    }

    /// The walk over the dimensions that `keep` accepts.
    pub(crate) fn select(
        shape: &[i64],
        keep: impl Fn(usize) -> bool,
        views: [ViewLayout<'_>; N],
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
        LineIter { dims, count }
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

    /// Size and byte strides of the rows of the walk, and byte strides from one to the next, if it is one over rows of one size.
    pub(crate) fn rows(&self) -> Option<(usize, [isize; N], [isize; N])> {
        match self.dims[..] {
            [(_, row_strides), (inner, strides)] => Some((inner, strides, row_strides)),
            _ => None,
        }
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
        visit: impl FnMut([isize; N], [isize; N], usize),
    ) {
        self.visit_across(range, 0, visit);
    }

    /// As [`LineIter::visit_runs`], but where the innermost rows are not longer than `shortest`, runs go across a block of them:
    /// positions still come in the order of each dimension, if the others are held.
    // (A function of its own, because in a caller that has something to drop, LLVM 22 moves a register copy of this loop from
    // before the call of `check` into the landing pad behind it, over the pointer to the exception: an interruption would then
    // unwind with whatever that register held. `visit` becomes part of the loop all the same.)
    #[inline(never)]
    pub(crate) fn visit_across(
        &self,
        range: Range<usize>,
        shortest: usize,
        mut visit: impl FnMut([isize; N], [isize; N], usize),
    ) {
        let mut at = range.start;
        // Positions since the last look for an interruption: runs are cut so that there is one in good time.
        let mut unchecked = 0;
        while at < range.end {
            let Runs { mut offsets, steps, length, mut times, between } =
                self.runs_at(at..range.end, shortest);
            at += length * times;
            while times > 0 {
                if unchecked >= UNCHECKED {
                    interrupt::check();
                    unchecked = 0;
                }
                unchecked += length;
                visit(offsets, steps, length);
                for i in 0..N {
                    offsets[i] += between[i];
                }
                times -= 1;
            }
        }
    }

    /// The runs of one length that a range of positions begins with.
    // (Not a part of its callers, of which there are about a thousand.)
    #[inline(never)]
    fn runs_at(&self, range: Range<usize>, shortest: usize) -> Runs<N> {
        let (outer, row_strides, inner, strides) = match self.dims[..] {
            [] => (1, [0; N], 1, [0; N]),
            [(inner, strides)] => (1, [0; N], inner, strides),
            [.., (outer, row_strides), (inner, strides)] => (outer, row_strides, inner, strides),
        };
        let at = range.start;
        let (row, column) = (at / inner % outer, at % inner);
        let rows = (outer - row).min(range.len() / inner);
        let (length, steps, times, between) = if column > 0 || rows == 0 {
            ((inner - column).min(range.len()).min(UNCHECKED), strides, 1, [0; N])
        } else if inner > UNCHECKED {
            (UNCHECKED, strides, 1, [0; N])
        } else if inner <= shortest && rows >= ACROSS {
            (rows.min((BLOCK / inner).max(ACROSS)), row_strides, inner, strides)
        } else {
            (inner, strides, rows, row_strides)
        };
        Runs { offsets: self.offsets(at), steps, length, times, between }
    }
}

/// Runs of positions of one length, so that one call of a visitor for all of them becomes part of the loop.
struct Runs<const N: usize> {
    /// The byte offsets of the first position.
    offsets: [isize; N],
    /// The bytes from one position of a run to the next.
    steps: [isize; N],
    /// The number of positions of a run, and of runs.
    length: usize,
    times: usize,
    /// The bytes from the first position of one run to that of the next.
    between: [isize; N],
}

/// Most positions between two looks for an interruption, a multiple of what kernels do at once.
const UNCHECKED: usize = 1 << 15;
/// Fewest rows that a run goes across.
const ACROSS: usize = 16;
/// The walked positions, over all rows together, of a block that runs go across; their elements
/// stay in the nearest cache.
const BLOCK: usize = 1024;

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
///
/// # Errors
/// A runtime error that gives both.
pub fn check_dtype(what: &str, found: DType, dtype: DType) -> Result<()> {
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
///
/// # Errors
/// A runtime error that gives both.
pub fn check_shape(what: &str, found: &[i64], shape: &[i64]) -> Result<()> {
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
