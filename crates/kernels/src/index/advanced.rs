//! Indexing by several tensors at once (`x[i, :, j]`).
//!
//! The index tensors are broadcast by the caller; their common dimensions replace the indexed ones: in
//! place if the indexed dimensions are neighbours, in front of all others if not.

use super::slices::{SliceCopy, list_offsets};
use super::{Accumulate, check_bounds, out_of_bounds};
use crate::line::{LineIter, ViewLayout, check_dtype, check_shape, get, put};
use crate::{DType, Error, Result, StridedMut, StridedRef, for_dtype, memory};
use smallvec::SmallVec;

/// An indexed view: where its parts lie.
struct IndexedView {
    /// Byte offset of each position of the broadcast index.
    offsets: SmallVec<[isize; 16]>,
    /// Shape of the result.
    shape: SmallVec<[i64; 6]>,
    /// Byte-stride source of the result's dimensions in the indexed view; zero at the index dimensions.
    strides: SmallVec<[i64; 6]>,
    /// Where the index dimensions begin and end in the result.
    index_dims: std::ops::Range<usize>,
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

impl IndexedView {
    fn new(
        view: ViewLayout<'_>,
        shape: &[i64],
        dims: &[usize],
        indices: &[StridedRef<'_>],
    ) -> Result<IndexedView> {
        check_indices(indices, dims, shape.len())?;
        let (first, last) = (dims[0], dims[dims.len() - 1]);
        let are_neighbours = last - first + 1 == dims.len();
        let rest = (0..shape.len()).filter(|d| !dims.contains(d));
        let start = if are_neighbours { first } else { 0 };
        let index_shape = indices[0].shape();
        let mut result = IndexedView {
            offsets: SmallVec::new(),
            shape: rest.clone().map(|d| shape[d]).collect(),
            strides: rest.map(|d| view.strides()[d]).collect(),
            index_dims: start..start + index_shape.len(),
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

    /// Extends the offsets with zeros to the number of positions of the index.
    fn make_room(&mut self, positions: usize) -> Result<()> {
        let missing = positions.saturating_sub(self.offsets.len());
        memory::extend(&mut self.offsets, std::iter::repeat_n(0, missing))
    }

    /// Adds one index tensor's part to the offsets.
    fn add(&mut self, index: &StridedRef<'_>, dim: usize, size: i64, step: isize) -> Result<()> {
        check_bounds(index, (-size, size), |i| refused(i, dim, size))?;
        if let Some(dense) = index.as_slice::<i64>() {
            self.make_room(dense.len())?;
            add_steps(&mut self.offsets, dense, size, step);
            return Ok(());
        }
        let lines = LineIter::new(index.shape(), None, [ViewLayout::from(index)]);
        self.make_room(lines.count())?;
        let mut at = 0;
        lines.visit(0..lines.count(), |[from]| {
            // SAFETY: the walk stays inside the view, whose dtype is i64.
            let i = unsafe { get::<i64>(index.ptr(), from) };
            self.offsets[at] += (if i < 0 { i + size } else { i }) as isize * step;
            at += 1;
        });
        Ok(())
    }

    /// The layout of the indexed view along the result's dimensions.
    fn layout(&self, dtype: DType) -> ViewLayout<'_> {
        ViewLayout::of(&self.strides, dtype.size())
    }

    /// The copy between the indexed view and its result.
    fn slices<'l>(
        &'l self,
        (to, from): (*mut u8, *const u8),
        layouts: [ViewLayout<'l>; 2],
        repeats: bool,
    ) -> SliceCopy<'l> {
        let (shape, listed, count) = (&self.shape[..], self.index_dims.clone(), self.offsets.len());
        SliceCopy { to, from, layouts, shape, listed, count, repeats }
    }

    /// Walks of the dimensions before, and after, those of the index, over `other` and the indexed view.
    fn lines(&self, other: ViewLayout<'_>) -> (LineIter<2>, LineIter<2>) {
        let views = [other, ViewLayout::of(&self.strides, other.size())];
        let before = LineIter::select(&self.shape, |d| d < self.index_dims.start, views);
        let after = LineIter::select(&self.shape, |d| d >= self.index_dims.end, views);
        (before, after)
    }

    /// Byte offsets of the index dimensions' positions in `other`.
    fn positions(&self, other: ViewLayout<'_>) -> LineIter<1> {
        LineIter::select(&self.shape, |d| self.index_dims.contains(&d), [other])
    }
}

crate::multiversion! {
/// Adds `step` for each position; negative ones count from the end.
fn add_steps(offsets: &mut [isize], positions: &[i64], size: i64, step: isize) {
    for (offset, &position) in offsets.iter_mut().zip(positions) {
        *offset += (position + (size & (position >> 63))) as isize * step;
    }
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
    if let ([0], [index]) = (dims, indices)
        && let Some(done) = few_rows(out, &input, index)
    {
        return done;
    }
    let indexed = IndexedView::new(ViewLayout::from(&input), input.shape(), dims, indices)?;
    check_shape("index", out.shape(), &indexed.shape)?;
    let out = &*out;
    let layouts = [ViewLayout::from(out), indexed.layout(out.dtype())];
    let positions = indexed.positions(ViewLayout::from(out));
    let slices = indexed.slices((out.ptr(), input.ptr()), layouts, false);
    // SAFETY: indices were checked, so slices lie inside both views.
    unsafe {
        slices.copy(&|range, offsets| {
            list_offsets(&positions, range.clone(), offsets, 0);
            for (pair, &offset) in offsets.iter_mut().zip(&indexed.offsets[range]) {
                pair[1] = offset;
            }
        });
    }
    Ok(())
}

/// The largest number of positions that counts as few.
const FEW: usize = 32;

/// The error for an index that its dimension does not have.
fn refused(index: i64, dim: usize, size: i64) -> Error {
    Error::index(if size == 0 {
        format!(
            "index is out of bounds for dimension with size 0: it is {index}, for dimension {dim}"
        )
    } else {
        out_of_bounds(index, dim, size)
    })
}

/// `out = input[index]` for few positions and dense rows, for which preparing more would take longer; `None` for all others.
fn few_rows(
    out: &StridedMut<'_>,
    input: &StridedRef<'_>,
    index: &StridedRef<'_>,
) -> Option<Result<()>> {
    let (&size, row) = input.shape().split_first()?;
    let positions = index.as_slice::<i64>().filter(|positions| positions.len() <= FEW)?;
    let (listed, rest) = out.shape().split_at_checked(index.ndim())?;
    if listed != index.shape() || rest != row || !out.is_contiguous() || !input.is_contiguous() {
        return None;
    }
    if let Some(&at) = positions.iter().find(|&&at| at < -size || at >= size) {
        return Some(Err(refused(at, 0, size)));
    }
    let bytes = row.iter().product::<i64>() as usize * input.dtype().size();
    for (i, &at) in positions.iter().enumerate() {
        let at = if at < 0 { at + size } else { at } as usize;
        // SAFETY: rows inside of both views, which are dense; the caller keeps what is written apart.
        unsafe {
            let from = input.ptr().add(at * bytes);
            from.copy_to_nonoverlapping(out.ptr().add(i * bytes), bytes);
        }
    }
    Some(Ok(()))
}

/// `out[.., indices, ..] = values` (or `+=` if `accumulate`), as [`index`] reads; `values` has the shape that `index` would give
/// (broadcast by the caller). Repeated indices are written in row-major order.
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
    let indexed = IndexedView::new(ViewLayout::from(&*out), out.shape(), dims, indices)?;
    check_shape("index_put", values.shape(), &indexed.shape)?;
    let out = &*out;
    if accumulate {
        for_dtype!(out.dtype(), stored, T => add_elements::<T>(out, &indexed, &values), else {
            return Err(Error::not_implemented("index_put", out.dtype()));
        });
        return Ok(());
    }
    let layouts = [indexed.layout(out.dtype()), ViewLayout::from(&values)];
    let positions = indexed.positions(ViewLayout::from(&values));
    let slices = indexed.slices((out.ptr(), values.ptr()), layouts, true);
    // SAFETY: indices were checked, so slices lie inside both views.
    unsafe {
        slices.copy(&|range, offsets| {
            list_offsets(&positions, range.clone(), offsets, 1);
            for (pair, &offset) in offsets.iter_mut().zip(&indexed.offsets[range]) {
                pair[0] = offset;
            }
        });
    }
    Ok(())
}

fn add_elements<T: Accumulate>(
    out: &StridedMut<'_>,
    indexed: &IndexedView,
    values: &StridedRef<'_>,
) {
    let (before, after) = indexed.lines(ViewLayout::from(values));
    let positions = indexed.positions(ViewLayout::from(values));
    // A slice is mostly one run, which is often short.
    let run = match after.dims().len() {
        0 => Some((1, [0; 2])),
        1 => after.dims().next(),
        _ => None,
    };
    before.visit(0..before.count(), |[from, to]| {
        let mut offsets = indexed.offsets.iter();
        positions.visit(0..indexed.offsets.len(), |[position]| {
            let Some(&offset) = offsets.next() else { return };
            let to = out.ptr().wrapping_offset(to + offset);
            let from = values.ptr().wrapping_offset(from + position);
            // SAFETY: indices were checked, so both elements lie inside their views.
            let add = |a: isize, b: isize| unsafe {
                put(to, b, get::<T>(to, b).add(get::<T>(from, a)));
            };
            match run {
                Some((n, [a, b])) => (0..n as isize).for_each(|j| add(j * a, j * b)),
                None => after.visit(0..after.count(), |[a, b]| add(a, b)),
            }
        });
    });
}
