//! A one-dimensional index along one dimension: `index_select`, `index_add`, `index_copy`, `index_fill`; and the flat forms
//! `take` and `put`.

use super::slices::SliceCopy;
use super::{
    AHEAD, Accumulate, add_row, add_scaled_row, check_bounds, columns_each, for_size,
    out_of_bounds, prefetch_row, with_i64,
};
use crate::elementwise::spans::OffsetPair;
use crate::line::{
    GRAIN, LineIter, ViewLayout, along, check_dim, check_dtype, check_shape, get,
    put as put_element,
};
use crate::{
    Error, Result, Scalar, StridedMut, StridedRef, for_dtype, interrupt, memory, parallel,
};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;

/// The index as consecutive numbers, wrapped into `0..size` where negative ones count from the end.
pub(super) fn wrapped_indices(
    index: StridedRef<'_>,
    size: i64,
    allows_negative: bool,
    refuse: impl Fn(i64) -> Error,
) -> Result<Cow<'_, [i64]>> {
    let bounds = (if allows_negative { -size } else { 0 }, size);
    if let Some(dense) = index.as_slice::<i64>() {
        check_bounds(&index, bounds, refuse)?;
        if !allows_negative {
            return Ok(dense.into());
        }
        let mut wrapped_indices = memory::copied(dense)?;
        wrap(&mut wrapped_indices, size);
        return Ok(wrapped_indices.into());
    }
    with_i64(index, |index| {
        check_bounds(&index, bounds, refuse)?;
        let lines = LineIter::new(index.shape(), None, [ViewLayout::from(&index)]);
        let mut wrapped_indices = memory::with_capacity(lines.count())?;
        // SAFETY: the walk stays inside the view, whose dtype is i64.
        lines.visit(0..lines.count(), |[at]| wrapped_indices.push(unsafe { get(index.ptr(), at) }));
        wrap(&mut wrapped_indices, size);
        Ok(wrapped_indices.into())
    })
}

crate::multiversion! {
/// Adds `size` to negative indices, which count from the end.
fn wrap(wrapped_indices: &mut [i64], size: i64) {
    for number in wrapped_indices {
        *number += size & (*number >> 63);
    }
}
}

fn check_vector(name: &str, index: &StridedRef<'_>) -> Result<()> {
    if index.ndim() <= 1 {
        return Ok(());
    }
    Err(Error::index(format!("{name}(): Index is supposed to be a vector")))
}

/// Refuses a slice tensor that is not the whole one's shape with `count` along `dim`.
fn check_slices(name: &str, found: &[i64], whole: &[i64], dim: usize, count: usize) -> Result<()> {
    if whole.is_empty() {
        let is_scalar = found.iter().product::<i64>() == count as i64 && count <= 1;
        return if is_scalar { Ok(()) } else { check_shape(name, found, whole) };
    }
    let mut expected: SmallVec<[i64; 6]> = SmallVec::from_slice(whole);
    expected[dim] = count as i64;
    check_shape(name, found, &expected)
}

/// Slices of `input` along `dim`: `out[:, j] = input[:, index[j]]`.
///
/// # Errors
/// `IndexError` if an index is not in `0..size`.
pub fn index_select(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    index: StridedRef<'_>,
) -> Result<()> {
    check_dim(dim, input.ndim())?;
    check_vector("index_select", &index)?;
    check_dtype("index_select", out.dtype(), input.dtype())?;
    check_slices("index_select", out.shape(), input.shape(), dim, index.numel())?;
    let (size, step) = along(input.shape(), &input, dim);
    let refuse = |_| Error::index("index out of range in self".into());
    let rows = wrapped_indices(index, size as i64, false, refuse)?;
    let out = &*out;
    let out_step = along(out.shape(), out, dim).1;
    if out.numel() == rows.len() {
        // SAFETY: a slice is one element, and indices were checked.
        unsafe { pick_elements(out, out_step, &input, step, &rows) };
        return Ok(());
    }
    let slices = SliceCopy {
        to: out.ptr(),
        from: input.ptr(),
        layouts: [ViewLayout::from(out), ViewLayout::from(&input)],
        shape: out.shape(),
        listed: dim..dim + 1,
        count: rows.len(),
        repeats: false,
    };
    // SAFETY: indices were checked, so slices lie inside both views.
    unsafe {
        slices.copy(&|range, offsets| {
            for (pair, j) in offsets.iter_mut().zip(range) {
                *pair = [j as isize * out_step, rows[j] as isize * step];
            }
        });
    }
    Ok(())
}

/// Single elements: `out[j] = input[rows[j]]`, so many bytes apart on either side.
///
/// # Safety
/// Both views are lines of elements of one size; each row is one of the input's, and there are as many as the output has.
unsafe fn pick_elements(
    out: &StridedMut<'_>,
    out_step: isize,
    input: &StridedRef<'_>,
    step: isize,
    rows: &[i64],
) {
    for_size!(input.dtype().size(), T => {
        let size = size_of::<T>() as isize;
        parallel::for_range(rows.len(), GRAIN, &|range| {
            let to = out.ptr().wrapping_offset(range.start as isize * out_step);
            let rows = &rows[range];
            // SAFETY: promised by the caller; threads write disjoint elements.
            unsafe {
                if (out_step, step) == (size, size) {
                    let (to, from) = (to.cast::<T>(), input.ptr().cast::<T>());
                    for (j, &row) in rows.iter().enumerate() {
                        to.add(j).write(from.add(row as usize).read());
                    }
                } else {
                    for (j, &row) in rows.iter().enumerate() {
                        let value: T = get(input.ptr(), row as isize * step);
                        put_element(to, j as isize * out_step, value);
                    }
                }
            }
        });
    });
}

/// Copies slices: `out[:, index[j]] = source[:, j]`; of repeated indices the last one stays.
///
/// # Errors
/// `IndexError` if an index is not in `0..size`.
pub fn index_copy(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    source: StridedRef<'_>,
) -> Result<()> {
    check_dim(dim, out.ndim())?;
    check_vector("index_copy_", &index)?;
    check_dtype("index_copy_", source.dtype(), out.dtype())?;
    check_slices("index_copy_", source.shape(), out.shape(), dim, index.numel())?;
    let (size, step) = along(out.shape(), &*out, dim);
    let size = size as i64;
    let refuse = |i| Error::index(format!("index_copy_(): {}", out_of_bounds(i, dim, size)));
    let rows = wrapped_indices(index, size, false, refuse)?;
    let (_, source_step) = along(source.shape(), &source, dim.min(source.ndim().saturating_sub(1)));
    if source.numel() == rows.len() {
        for_size!(source.dtype().size(), T => {
            for (j, &row) in rows.iter().enumerate() {
                // SAFETY: a slice is one element, and indices were checked.
                unsafe {
                    let value: T = get(source.ptr(), j as isize * source_step);
                    put_element(out.ptr(), row as isize * step, value);
                }
            }
        });
        return Ok(());
    }
    let mut slices = SliceCopy {
        to: out.ptr(),
        from: source.ptr(),
        layouts: [ViewLayout::from(&*out), ViewLayout::from(&source)],
        shape: source.shape(),
        listed: dim..dim + 1,
        count: rows.len(),
        repeats: true,
    };
    let offsets_of = |(j, &row): (usize, &i64)| [row as isize * step, j as isize * source_step];
    let bytes = source.numel() * source.dtype().size();
    if source.numel() <= GRAIN || parallel::num_threads() == 1 || bytes < LEAST_SLICE * rows.len() {
        let list = |range: Range<usize>, offsets: &mut [OffsetPair]| {
            for (to, j) in offsets.iter_mut().zip(range) {
                *to = offsets_of((j, &rows[j]));
            }
        };
        // SAFETY: indices were checked, so slices lie inside both views.
        unsafe { slices.copy(&list) };
        return Ok(());
    }
    // Earlier writes that a later one replaces are left out, so that no two threads write to one
    // element.
    let mut last = memory::filled(usize::MAX, size as usize)?;
    rows.iter().enumerate().for_each(|(j, &row)| last[row as usize] = j);
    let is_last = |&(j, &row): &(usize, &i64)| last[row as usize] == j;
    let last_writes: Vec<OffsetPair> =
        memory::collect(rows.iter().enumerate().filter(is_last).map(offsets_of))?;
    (slices.count, slices.repeats) = (last_writes.len(), false);
    // SAFETY: as above.
    unsafe { slices.copy(&|range, offsets| offsets.copy_from_slice(&last_writes[range])) };
    Ok(())
}

/// Bytes of a slice from which finding out which slices repeat takes less time than threads save.
const LEAST_SLICE: usize = 64;

/// Adds slices: `out[:, index[j]] += alpha * source[:, j]`, in the order of `j`.
///
/// # Errors
/// If an index is not in `0..size`.
pub fn index_add(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    source: StridedRef<'_>,
    alpha: Scalar,
) -> Result<()> {
    check_dim(dim, out.ndim())?;
    check_vector("index_add", &index)?;
    check_dtype("index_add_", source.dtype(), out.dtype())?;
    check_slices("index_add_", source.shape(), out.shape(), dim, index.numel())?;
    let size = along(out.shape(), &*out, dim).0 as i64;
    let refuse = |i| Error::index(out_of_bounds(i, dim, size));
    let rows = wrapped_indices(index, size, false, refuse)?;
    let out = &*out;
    for_dtype!(out.dtype(), all, T => add_slices::<T>(out, dim, &rows, &source, alpha));
    Ok(())
}

fn add_slices<T: Accumulate>(
    out: &StridedMut<'_>,
    dim: usize,
    rows: &[i64],
    source: &StridedRef<'_>,
    alpha: Scalar,
) {
    let (_, step) = along(out.shape(), out, dim);
    let (_, source_step) = along(source.shape(), source, dim.min(source.ndim().saturating_sub(1)));
    let views = [ViewLayout::from(out), ViewLayout::from(source)];
    let rank = out.ndim().min(source.ndim());
    let lines = LineIter::new(&source.shape()[..rank], Some(dim), views);
    let factor: T = alpha.to();
    let is_one = alpha.is(1.0);
    // Threads own disjoint positions of the other dimensions, so each target is added to by one thread in order.
    let size = size_of::<T>() as isize;
    let is_dense = lines.is_dense([size; 2]);
    let at = |row: i64, column: usize| {
        out.ptr().wrapping_offset(row as isize * step + column as isize * size)
    };
    // SAFETY: the offsets are those of a position of both views; rows were checked.
    let add = |[to, from]: [isize; 2], j: usize, row: i64| unsafe {
        let to = out.ptr().offset(to + row as isize * step);
        let new = get::<T>(source.ptr(), from + j as isize * source_step);
        let new = if is_one { new } else { new.mul(factor) };
        put_element(to, 0, get::<T>(to, 0).add(new));
    };
    if lines.count() == 1 {
        return interrupt::chunks(rows.len()).flatten().for_each(|j| add([0; 2], j, rows[j]));
    }
    // Along the dimension elements may lie nearer than along the others.
    let is_inner = lines.inner().is_some_and(|[_, from]| from.abs() > source_step.abs());
    parallel::for_range(lines.count(), columns_each(lines.count(), rows.len()), &|range| {
        if is_inner {
            return lines.visit(range, |offsets| {
                interrupt::chunks(rows.len()).flatten().for_each(|j| add(offsets, j, rows[j]));
            });
        }
        for (j, &row) in rows.iter().enumerate() {
            interrupt::check_every::<8>(j);
            if !is_dense {
                lines.visit(range.clone(), |offsets| add(offsets, j, row));
                continue;
            }
            if let Some(&next) = rows.get(j + AHEAD) {
                prefetch_row(at(next, range.start), range.len() * size as usize);
            }
            let from = j as isize * source_step + range.start as isize * size;
            let from = source.ptr().wrapping_offset(from).cast::<T>();
            // SAFETY: both rows lie inside their views without gaps; rows were checked. The views do not overlap.
            let (sum, x) = unsafe {
                let sum = at(row, range.start).cast::<T>();
                (
                    std::slice::from_raw_parts_mut(sum, range.len()),
                    std::slice::from_raw_parts(from, range.len()),
                )
            };
            if is_one {
                add_row(sum, x);
            } else {
                add_scaled_row(sum, x, factor);
            }
        }
    });
}

/// Fills slices: `out[:, index[j]] = value`; negative indices count from the end.
///
/// # Errors
/// `IndexError` if an index is not in `-size..size`.
pub fn index_fill(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    value: Scalar,
) -> Result<()> {
    check_dim(dim, out.ndim())?;
    check_vector("index_fill_", &index)?;
    let (size, step) = along(out.shape(), &*out, dim);
    let size = size as i64;
    let refuse = |i| Error::index(out_of_bounds(i, dim, size));
    let rows = wrapped_indices(index, size, true, refuse)?;
    let out = &*out;
    let zeros: SmallVec<[i64; 6]> = SmallVec::from_elem(0, out.ndim());
    for_dtype!(out.dtype(), stored, T => {
        let value: T = value.to();
        if out.numel() == size as usize {
            for &row in rows.iter() {
                // SAFETY: a slice is one element, and indices were checked.
                unsafe { put_element(out.ptr(), row as isize * step, value) };
            }
            return Ok(());
        }
        let slices = SliceCopy {
            to: out.ptr(),
            from: (&raw const value).cast(),
            layouts: [ViewLayout::from(out), ViewLayout::of(&zeros, size_of::<T>())],
            shape: out.shape(),
            listed: dim..dim + 1,
            count: rows.len(),
            repeats: true,
        };
        // SAFETY: indices were checked, so slices lie inside the view; on the other side there is one element.
        unsafe {
            slices.copy(&|range, offsets| {
                for (pair, &row) in offsets.iter_mut().zip(&rows[range]) {
                    *pair = [row as isize * step, 0];
                }
            });
        }
    }, else unreachable!("two numbers in a byte are refused before"));
    Ok(())
}

fn flat_error(index: i64, count: usize) -> Error {
    Error::index(format!(
        "out of range: tried to access index {index} on a tensor of {count} elements."
    ))
}

/// Elements at flat row-major positions: `out[j] = input.flatten()[index[j]]`; negative ones count from the end.
///
/// # Errors
/// `IndexError` if a position is out of range.
pub fn take(out: &mut StridedMut<'_>, input: StridedRef<'_>, index: StridedRef<'_>) -> Result<()> {
    check_dtype("take", out.dtype(), input.dtype())?;
    check_shape("take", out.shape(), index.shape())?;
    let n = input.numel();
    let offsets = wrapped_indices(index, n as i64, true, |i| flat_error(i, n))?;
    let lines = LineIter::new(input.shape(), None, [ViewLayout::from(&input)]);
    let out = &*out;
    let targets = LineIter::new(out.shape(), None, [ViewLayout::from(out)]);
    let size = input.dtype().size() as isize;
    if lines.is_dense([size]) && targets.is_dense([size]) {
        // SAFETY: positions were checked; both sides have no gaps.
        unsafe { pick_elements(out, size, &input, size, &offsets) };
        return Ok(());
    }
    for_size!(input.dtype().size(), T => {
        let mut wrapped_indices = offsets.iter();
        targets.visit(0..targets.count(), |[to]| {
            let Some(&at) = wrapped_indices.next() else { return };
            let [from] = lines.offsets(at as usize);
            // SAFETY: positions were checked; the walk stays inside `out`.
            unsafe { put_element(out.ptr(), to, get::<T>(input.ptr(), from)) }
        });
    });
    Ok(())
}

/// Writes (or adds, if `accumulate`) elements at flat row-major positions: `out.flatten()[index[j]] = source[j]`.
///
/// # Errors
/// `IndexError` if a position is out of range.
pub fn put(
    out: &mut StridedMut<'_>,
    index: StridedRef<'_>,
    source: StridedRef<'_>,
    accumulate: bool,
) -> Result<()> {
    check_dtype("put_", source.dtype(), out.dtype())?;
    if index.numel() != source.numel() {
        return Err(Error::runtime(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
            source.numel(),
            index.numel()
        )));
    }
    let n = out.numel();
    let offsets = wrapped_indices(index, n as i64, true, |i| flat_error(i, n))?;
    let out = &*out;
    let targets = LineIter::new(out.shape(), None, [ViewLayout::from(out)]);
    let sources = LineIter::new(source.shape(), None, [ViewLayout::from(&source)]);
    for_dtype!(out.dtype(), all, T => {
        let size = size_of::<T>() as isize;
        let is_dense = targets.is_dense([size]);
        let mut wrapped_indices = offsets.iter();
        sources.visit(0..sources.count(), |[from]| {
            let Some(&index) = wrapped_indices.next() else { return };
            let to = if is_dense { index as isize * size } else { targets.offsets(index as usize)[0] };
            // SAFETY: positions were checked; the walk stays inside `source`.
            unsafe {
                let new = get::<T>(source.ptr(), from);
                let value = if accumulate { get::<T>(out.ptr(), to).add(new) } else { new };
                put_element(out.ptr(), to, value);
            }
        });
    });
    Ok(())
}
