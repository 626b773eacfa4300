//! A one-dimensional index along one dimension: `index_select`, `index_add`, `index_copy`, `index_fill`; and the flat forms
//! `take` and `put`.

use super::{
    AHEAD, Accumulate, add_row, add_scaled_row, check_bounds, columns_each, for_size,
    out_of_bounds, prefetch_row, with_i64,
};
use crate::line::{
    GRAIN, Layout, Lines, along, check_dim, check_dtype, check_shape, get, put as put_element,
};
use crate::{Error, Result, Scalar, StridedMut, StridedRef, for_dtype, parallel};
use smallvec::SmallVec;

/// The index as consecutive numbers, wrapped into `0..size` where negative ones count from the end.
fn numbers(
    index: StridedRef<'_>,
    size: i64,
    allows_negative: bool,
    refuse: impl Fn(i64) -> Error,
) -> Result<SmallVec<[i64; 16]>> {
    with_i64(index, |index| {
        check_bounds(&index, (if allows_negative { -size } else { 0 }, size), refuse)?;
        let lines = Lines::new(index.shape(), None, [Layout::from(&index)]);
        let mut numbers = SmallVec::with_capacity(lines.count());
        lines.visit(0..lines.count(), |[at]| {
            // SAFETY: the walk stays inside the view, whose dtype is i64.
            let i = unsafe { get::<i64>(index.ptr(), at) };
            numbers.push(if i < 0 { i + size } else { i });
        });
        Ok(numbers)
    })
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
    let rows = numbers(index, size as i64, false, refuse)?;
    let out = &*out;
    copy_slices(
        (out.ptr(), &Layout::from(out), along(out.shape(), out, dim).1),
        (input.ptr(), &Layout::from(&input), step),
        out.shape(),
        dim,
        &|j| (j as i64, rows[j]),
        rows.len(),
    );
    Ok(())
}

/// Copies, for each `j` below `count`, the slice `places(j).1` of the input to the slice `places(j).0` of the output;
/// the slices have the shape without `dim`.
pub(super) fn copy_slices(
    (to, out, out_step): (*mut u8, &Layout<'_>, isize),
    (from, input, step): (*const u8, &Layout<'_>, isize),
    shape: &[i64],
    dim: usize,
    places: &(dyn Fn(usize) -> (i64, i64) + Sync),
    count: usize,
) {
    let outer = Lines::select(shape, |d| d < dim, [*out, *input]);
    let inner = Lines::select(shape, |d| d > dim, [*out, *input]);
    let size = out.size();
    let dense = inner.is_dense([size as isize; 2]);
    let work = inner.count() * count;
    let (to, from) = (Address(to), Address(from.cast_mut()));
    let grain = (GRAIN / inner.count().max(1)).max(1);
    let row_size = inner.count() * size;
    let fetches = dense && row_size >= 64;
    let run = |range: std::ops::Range<usize>| {
        let (to, from) = (to.get(), from.get().cast_const());
        for at in range {
            let [out_base, base] = outer.offsets(at / count);
            let (target, source) = places(at % count);
            if fetches && at % count + AHEAD < count {
                let (_, next) = places(at % count + AHEAD);
                prefetch_row(from.wrapping_offset(base + next as isize * step), row_size);
            }
            let to = to.wrapping_offset(out_base + target as isize * out_step);
            let from = from.wrapping_offset(base + source as isize * step);
            // SAFETY: both slices lie inside their views and have the same shape; sizes are the dtype's.
            unsafe { copy_slice((to, from), &inner, size, dense) };
        }
    };
    if work == 0 {
        return;
    }
    parallel::for_range(outer.count() * count, grain, &run);
}

/// A pointer that may be handed to other threads.
#[derive(Clone, Copy)]
pub(super) struct Address(pub(super) *mut u8);
// SAFETY: users read and write disjoint elements only.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}
impl Address {
    pub(super) fn get(self) -> *mut u8 {
        self.0
    }
}

/// Copies one slice.
///
/// # Safety
/// `inner` reaches elements of `size` bytes from both addresses.
#[inline(always)]
unsafe fn copy_slice((to, from): (*mut u8, *const u8), inner: &Lines<2>, size: usize, dense: bool) {
    // SAFETY: promised by the caller.
    unsafe {
        if dense {
            match inner.count() {
                1 => for_size!(size, T => put_element(to, 0, get::<T>(from, 0))),
                n => to.copy_from_nonoverlapping(from, n * size),
            }
        } else {
            for_size!(size, T => inner.visit(0..inner.count(), |[a, b]| put_element(to, a, get::<T>(from, b))));
        }
    }
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
    let rows = numbers(index, size, false, refuse)?;
    // Earlier writes that a later one replaces are left out, so that threads never write one place twice.
    let mut last = vec![usize::MAX; size as usize];
    rows.iter().enumerate().for_each(|(j, &row)| last[row as usize] = j);
    let kept: Vec<(i64, i64)> = rows
        .iter()
        .enumerate()
        .filter(|&(j, &row)| last[row as usize] == j)
        .map(|(j, &row)| (row, j as i64))
        .collect();
    let (_, source_step) = along(source.shape(), &source, dim.min(source.ndim().saturating_sub(1)));
    copy_slices(
        (out.ptr(), &Layout::from(&*out), step),
        (source.ptr(), &Layout::from(&source), source_step),
        source.shape(),
        dim,
        &|j| kept[j],
        kept.len(),
    );
    Ok(())
}

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
    let refuse = |i| Error::runtime(out_of_bounds(i, dim, size));
    let rows = numbers(index, size, false, refuse)?;
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
    let views = [Layout::from(out), Layout::from(source)];
    let rank = out.ndim().min(source.ndim());
    let lines = Lines::new(&source.shape()[..rank], Some(dim), views);
    let factor: T = alpha.to();
    let is_one = alpha.is(1.0);
    // Threads own disjoint positions of the other dimensions, so each target is added to by one thread in order.
    let size = size_of::<T>() as isize;
    let is_dense = lines.is_dense([size; 2]);
    let at = |row: i64, column: usize| {
        out.ptr().wrapping_offset(row as isize * step + column as isize * size)
    };
    parallel::for_range(lines.count(), columns_each(lines.count(), rows.len()), &|range| {
        for (j, &row) in rows.iter().enumerate() {
            if is_dense {
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
                continue;
            }
            lines.visit(range.clone(), |[to, from]| {
                // SAFETY: the walk stays inside the views; rows were checked.
                unsafe {
                    let to = out.ptr().offset(to + row as isize * step);
                    let new = get::<T>(source.ptr(), from + j as isize * source_step);
                    let new = if is_one { new } else { new.mul(factor) };
                    put_element(to, 0, get::<T>(to, 0).add(new));
                }
            });
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
    let rows = numbers(index, size, true, refuse)?;
    let out = &*out;
    let lines = Lines::new(out.shape(), Some(dim), [Layout::from(out)]);
    for_dtype!(out.dtype(), all, T => {
        let value: T = value.to();
        for &row in &rows {
            lines.visit(0..lines.count(), |[to]| {
                // SAFETY: the walk stays inside the view; rows were checked.
                unsafe { put_element(out.ptr(), to + row as isize * step, value) }
            });
        }
    });
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
    let places = numbers(index, n as i64, true, |i| flat_error(i, n))?;
    let lines = Lines::new(input.shape(), None, [Layout::from(&input)]);
    let out = &*out;
    let targets = Lines::new(out.shape(), None, [Layout::from(out)]);
    for_size!(input.dtype().size(), T => {
        let mut at = 0;
        targets.visit(0..targets.count(), |[to]| {
            let [from] = lines.offsets(places[at] as usize);
            at += 1;
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
    let places = numbers(index, n as i64, true, |i| flat_error(i, n))?;
    let out = &*out;
    let targets = Lines::new(out.shape(), None, [Layout::from(out)]);
    let sources = Lines::new(source.shape(), None, [Layout::from(&source)]);
    for_dtype!(out.dtype(), all, T => {
        let mut at = 0;
        sources.visit(0..sources.count(), |[from]| {
            let [to] = targets.offsets(places[at] as usize);
            at += 1;
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
