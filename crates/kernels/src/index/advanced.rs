//! Indexing by several tensors at once (`x[i, :, j]`), and by masks.
//!
//! The index tensors are broadcast by the caller; their common dimensions replace the indexed ones: in
//! place if the indexed dimensions are neighbours, in front of all others if not.

use super::{Accumulate, check_bounds, contiguous_strides, for_size, out_of_bounds};
use crate::line::{GRAIN, Layout, Lines, check_dtype, check_shape, get, put};
use crate::{Bool, DType, Element, Error, Result, StridedMut, StridedRef, for_dtype, parallel};
use smallvec::SmallVec;

/// An indexed view: where its parts lie.
struct Indexed {
    /// Byte offset of each position of the broadcast index.
    offsets: SmallVec<[isize; 16]>,
    /// Shape of the result.
    shape: SmallVec<[i64; 6]>,
    /// Byte-stride source of the result's dimensions in the indexed view; zero at the index dimensions.
    strides: SmallVec<[i64; 6]>,
    /// Where the index dimensions begin and end in the result.
    place: std::ops::Range<usize>,
}

fn check_indices(indices: &[StridedRef<'_>], dims: &[usize], ndim: usize) -> Result<()> {
    let is_sorted = dims.windows(2).all(|pair| pair[0] < pair[1]);
    if indices.is_empty()
        || indices.len() != dims.len()
        || !is_sorted
        || dims[dims.len() - 1] >= ndim
    {
        return Err(Error::index(format!(
            "too many indices for tensor of dimension {ndim} (got {} at dimensions {dims:?})",
            indices.len()
        )));
    }
    for index in indices {
        check_dtype("index", index.dtype(), DType::I64)?;
        check_shape("index", index.shape(), indices[0].shape())?;
    }
    Ok(())
}

impl Indexed {
    fn new(
        view: Layout<'_>,
        shape: &[i64],
        dims: &[usize],
        indices: &[StridedRef<'_>],
    ) -> Result<Indexed> {
        check_indices(indices, dims, shape.len())?;
        let (first, last) = (dims[0], dims[dims.len() - 1]);
        let are_neighbours = last - first + 1 == dims.len();
        let rest = (0..shape.len()).filter(|d| !dims.contains(d));
        let start = if are_neighbours { first } else { 0 };
        let index_shape = indices[0].shape();
        let mut result = Indexed {
            offsets: SmallVec::new(),
            shape: rest.clone().map(|d| shape[d]).collect(),
            strides: rest.map(|d| view.strides()[d]).collect(),
            place: start..start + index_shape.len(),
        };
        result.shape.insert_many(start, index_shape.iter().copied());
        result.strides.insert_many(start, index_shape.iter().map(|_| 0));
        // An empty result reads nothing, so PyTorch checks nothing either unless the index has elements.
        for (index, &dim) in indices.iter().zip(dims) {
            result.add(
                index,
                dim,
                shape[dim],
                view.strides()[dim] as isize * view.size() as isize,
            )?;
        }
        Ok(result)
    }

    /// Adds one index tensor's part to the offsets.
    fn add(&mut self, index: &StridedRef<'_>, dim: usize, size: i64, step: isize) -> Result<()> {
        check_bounds(index, (-size, size), |i| Error::index(out_of_bounds(i, dim, size)))?;
        let lines = Lines::new(index.shape(), None, [Layout::from(index)]);
        self.offsets.resize(lines.count(), 0);
        let mut at = 0;
        lines.visit(0..lines.count(), |[from]| {
            // SAFETY: the walk stays inside the view, whose dtype is i64.
            let i = unsafe { get::<i64>(index.ptr(), from) };
            self.offsets[at] += (if i < 0 { i + size } else { i }) as isize * step;
            at += 1;
        });
        Ok(())
    }

    /// Walks of the dimensions before, and after, those of the index, over `other` and the indexed view.
    fn lines(&self, other: Layout<'_>) -> (Lines<2>, Lines<2>) {
        let views = [other, Layout::of(&self.strides, other.size())];
        let before = Lines::select(&self.shape, |d| d < self.place.start, views);
        let after = Lines::select(&self.shape, |d| d >= self.place.end, views);
        (before, after)
    }

    /// Byte offsets of the index dimensions' positions in `other`.
    fn positions(&self, other: Layout<'_>) -> Lines<1> {
        Lines::select(&self.shape, |d| self.place.contains(&d), [other])
    }
}

/// `out = input[.., indices, ..]`: `indices[k]` (broadcast to one shape, `i64`) indexes dimension `dims[k]` (ascending); negative
/// ones count from the end.
///
/// # Errors
/// `IndexError` if an index is out of bounds.
pub fn index(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dims: &[usize],
    indices: &[StridedRef<'_>],
) -> Result<()> {
    check_dtype("index", out.dtype(), input.dtype())?;
    let indexed = Indexed::new(Layout::from(&input), input.shape(), dims, indices)?;
    check_shape("index", out.shape(), &indexed.shape)?;
    let out = &*out;
    let (before, after) = indexed.lines(Layout::from(out));
    let positions = indexed.positions(Layout::from(out));
    let size = input.dtype().size();
    let count = indexed.offsets.len();
    if count == 0 || after.count() == 0 {
        return Ok(());
    }
    let dense = after.is_dense([size as isize; 2]);
    let grain = (GRAIN / after.count()).max(1);
    parallel::for_range(before.count() * count, grain, &|range| {
        for_size!(size, T => for at in range {
            let [to, from] = before.offsets(at / count);
            let [position] = positions.offsets(at % count);
            let to = out.ptr().wrapping_offset(to + position);
            let from = input.ptr().wrapping_offset(from + indexed.offsets[at % count]);
            // SAFETY: indices were checked, so both slices lie inside their views.
            unsafe {
                if dense && after.count() > 1 {
                    to.copy_from_nonoverlapping(from, after.count() * size);
                } else {
                    after.visit(0..after.count(), |[a, b]| put(to, a, get::<T>(from, b)));
                }
            }
        });
    });
    Ok(())
}

/// `out[.., indices, ..] = values` (or `+=` if `accumulate`), as [`index`] reads; `values` has the shape that `index` would give
/// (broadcast by the caller). Repeated places are written in row-major order.
///
/// # Errors
/// `IndexError` if an index is out of bounds.
pub fn index_put(
    out: &mut StridedMut<'_>,
    dims: &[usize],
    indices: &[StridedRef<'_>],
    values: StridedRef<'_>,
    accumulate: bool,
) -> Result<()> {
    if values.dtype() != out.dtype() {
        return Err(Error::runtime(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            out.dtype().scalar_name(),
            values.dtype().scalar_name()
        )));
    }
    let indexed = Indexed::new(Layout::from(&*out), out.shape(), dims, indices)?;
    check_shape("index_put", values.shape(), &indexed.shape)?;
    let out = &*out;
    for_dtype!(out.dtype(), all, T => put_elements::<T>(out, &indexed, &values, accumulate));
    Ok(())
}

fn put_elements<T: Accumulate>(
    out: &StridedMut<'_>,
    indexed: &Indexed,
    values: &StridedRef<'_>,
    accumulate: bool,
) {
    let (before, after) = indexed.lines(Layout::from(values));
    let positions = indexed.positions(Layout::from(values));
    let count = indexed.offsets.len();
    before.visit(0..before.count(), |[from, to]| {
        let mut at = 0;
        positions.visit(0..count, |[position]| {
            let to = out.ptr().wrapping_offset(to + indexed.offsets[at]);
            let from = values.ptr().wrapping_offset(from + position);
            at += 1;
            after.visit(0..after.count(), |[a, b]| {
                // SAFETY: indices were checked, so both elements lie inside their views.
                unsafe {
                    let new = get::<T>(from, a);
                    put(to, b, if accumulate { get::<T>(to, b).add(new) } else { new });
                }
            });
        });
    });
}

crate::multiversion! {
fn count_bytes(bytes: &[u8]) -> usize {
    let mut count = 0;
    for part in bytes.chunks(16_320) {
        let mut lanes = [0_u8; 64];
        let (groups, rest) = part.as_chunks::<64>();
        for group in groups {
            for (lane, &byte) in lanes.iter_mut().zip(group) {
                *lane += u8::from(byte != 0);
            }
        }
        count += lanes.iter().map(|&lane| lane as usize).sum::<usize>();
        count += rest.iter().filter(|&&byte| byte != 0).count();
    }
    count
}
}

/// How many elements are true (not zero): the size that `nonzero` and `masked_select` need.
pub fn count_true(input: StridedRef<'_>) -> usize {
    if let Some(bytes) = input.as_slice::<Bool>() {
        // SAFETY: a `Bool` is one byte.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
        return count_bytes(bytes);
    }
    let mut count = 0;
    each_true(&input, |_| count += 1);
    count
}

/// Elements looked at together.
const BITS: usize = 64;

crate::multiversion! {
/// Bit `i` says whether `elements[i]` (of at most `BITS`) is true.
fn truth_bits<T: Element>(elements: &[T]) -> u64 {
    let mut bytes = [0_u8; BITS];
    for (byte, &element) in bytes.iter_mut().zip(elements) {
        *byte = u8::from(element.is_true());
    }
    let (words, _) = bytes.as_chunks::<8>();
    let mut bits = 0;
    for (i, &word) in words.iter().enumerate() {
        // The product gathers the lowest bits of eight bytes in its highest byte.
        let gathered = u64::from_le_bytes(word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= gathered << (8 * i);
    }
    bits
}
}

/// Calls `visit` with the row-major number of every true element, in order.
fn each_true(input: &StridedRef<'_>, mut visit: impl FnMut(usize)) {
    let lines = Lines::new(input.shape(), None, [Layout::from(input)]);
    for_dtype!(input.dtype(), all, T => {
        let mut done = 0;
        lines.visit_runs(0..lines.count(), |[from], [step], length| {
            let mut elements = [T::default(); BITS];
            for first in (0..length).step_by(BITS) {
                let part = &mut elements[..BITS.min(length - first)];
                // SAFETY: the run lies inside the view, which has this dtype.
                unsafe {
                    let ptr = input.ptr().offset(from + first as isize * step);
                    crate::line::read_line(ptr, step, part);
                }
                let mut bits = truth_bits(part);
                while bits != 0 {
                    visit(done + first + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
            done += length;
        });
    });
}

/// Coordinates of the elements that are not zero: `out` is `i64` of shape (`count_true`, `ndim`), rows in row-major order.
///
/// # Errors
/// If `out` has another shape or dtype.
pub fn nonzero(out: &mut StridedMut<'_>, input: StridedRef<'_>) -> Result<()> {
    check_dtype("nonzero", out.dtype(), DType::I64)?;
    let expected = [count_true(input) as i64, input.ndim() as i64];
    check_shape("nonzero", out.shape(), &expected)?;
    let out = &*out;
    let (row_step, column_step) = (out.strides()[0] as isize * 8, out.strides()[1] as isize * 8);
    let dense = contiguous_strides(input.shape());
    let Some((_, outer)) = dense.split_last() else {
        // A number has no coordinates to write.
        return Ok(());
    };
    let mut row = out.ptr();
    each_true(&input, |at| {
        let mut rest = at as i64;
        let mut to = row;
        for &stride in outer {
            // SAFETY: there are as many rows as true elements and a column per dimension.
            unsafe { put(to, 0, rest / stride) };
            rest %= stride;
            to = to.wrapping_offset(column_step);
        }
        // SAFETY: as above.
        unsafe { put(to, 0, rest) };
        row = row.wrapping_offset(row_step);
    });
    Ok(())
}

fn check_mask(name: &str, mask: &StridedRef<'_>, shape: &[i64]) -> Result<()> {
    if !matches!(mask.dtype(), DType::Bool | DType::U8) {
        return Err(Error::runtime(format!(
            "{name}: expected BoolTensor for mask, got {}",
            mask.dtype().scalar_name()
        )));
    }
    check_shape(name, mask.shape(), shape)
}

/// The elements of `input` where `mask` is true (equal shapes), in row-major order; `out` has `count_true(mask)` elements.
///
/// # Errors
/// If `out` has another size, or `mask` is not bool.
pub fn masked_select(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    mask: StridedRef<'_>,
) -> Result<()> {
    check_dtype("masked_select", out.dtype(), input.dtype())?;
    check_mask("masked_select", &mask, input.shape())?;
    check_shape("masked_select", out.shape(), &[count_true(mask) as i64])?;
    let out = &*out;
    let step = out.strides()[0] as isize * out.dtype().size() as isize;
    let lines = Lines::new(input.shape(), None, [Layout::from(&input), Layout::from(&mask)]);
    for_size!(input.dtype().size(), T => {
        let mut to = 0;
        lines.visit(0..lines.count(), |[from, at]| {
            // SAFETY: the walk stays inside the views; `out` has a place for each true element.
            unsafe {
                if get::<u8>(mask.ptr(), at) != 0 {
                    put(out.ptr(), to, get::<T>(input.ptr(), from));
                    to += step;
                }
            }
        });
    });
    Ok(())
}

/// Fills the places of `out` where `mask` is true (equal shapes) with the elements of `source` in row-major order.
///
/// # Errors
/// If `source` has fewer elements than `mask` has true ones.
pub fn masked_scatter(
    out: &mut StridedMut<'_>,
    mask: StridedRef<'_>,
    source: StridedRef<'_>,
) -> Result<()> {
    check_dtype("masked_scatter_", source.dtype(), out.dtype())?;
    check_mask("masked_scatter_", &mask, out.shape())?;
    let (needed, given) = (count_true(mask), source.numel());
    if given < needed {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same number of true elements, but got {needed} for the mask and {given} for the source"
        )));
    }
    let out = &*out;
    let sources = Lines::new(source.shape(), None, [Layout::from(&source)]);
    let lines = Lines::new(out.shape(), None, [Layout::from(out), Layout::from(&mask)]);
    for_size!(out.dtype().size(), T => {
        let mut number = 0;
        lines.visit(0..lines.count(), |[to, at]| {
            // SAFETY: the walk stays inside the views; the source has enough elements.
            unsafe {
                if get::<u8>(mask.ptr(), at) != 0 {
                    let [from] = sources.offsets(number);
                    put(out.ptr(), to, get::<T>(source.ptr(), from));
                    number += 1;
                }
            }
        });
    });
    Ok(())
}
