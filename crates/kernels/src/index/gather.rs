//! `gather` and `scatter`: an index of the output's (or source's) rank names positions along one dimension.

use super::{
    Accumulate, check_bounds, contiguous_strides, for_size, out_of_bounds, table::RegisterTable,
    with_i64,
};
use crate::dense::{Compute, load, load_owned, store};
use crate::line::{
    GRAIN, LineIter, ViewLayout, along, check_dim, check_dtype, check_shape, get, put,
};
use crate::{
    C64, DType, Element, Error, Result, Scalar, StridedMut, StridedRef, for_dtype, memory, parallel,
};
use smallvec::SmallVec;

/// Rows of a gather that are taken side by side, at most.
const MAX_SHORT_GATHERED: usize = 4;
/// Longest rows that a replacing scatter takes side by side.
const MAX_SHORT_ASSIGNED: usize = 20;
/// Longest rows that a reducing scatter takes side by side: it waits for values just written, so that longer rows gain too.
const MAX_SHORT_REDUCED: usize = 64;

/// How [`scatter`] combines a value with the element it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScatterReduction {
    /// Replace; of repeated targets the last one stays.
    Assign,
    /// Sum (`add` and `sum`).
    Sum,
    /// Product (`multiply` and `prod`).
    Prod,
    /// Mean of the values.
    Mean,
    /// Largest value; NaN if there is one.
    Amax,
    /// Smallest value; NaN if there is one.
    Amin,
}

/// The values that [`scatter`] writes.
#[derive(Clone, Copy, Debug)]
pub enum ScatterSource<'a> {
    /// Elements at the positions of the index.
    Tensor(StridedRef<'a>),
    /// One number for every index.
    Scalar(Scalar),
}

/// Strides with that of `dim` replaced by zero: the base of a line for each position.
fn base_strides(strides: &[i64], dim: usize) -> SmallVec<[i64; 6]> {
    let mut base = SmallVec::from_slice(strides);
    if let Some(stride) = base.get_mut(dim) {
        *stride = 0;
    }
    base
}

/// Refuses an index of another rank than `whole`, or larger than it in a dimension other than `dim`.
///
/// # Errors
/// A runtime error that gives both shapes.
pub fn check_index_shape(name: &str, index: &[i64], whole: &[i64], dim: usize) -> Result<()> {
    if index.len() != whole.len() && !(index.len() <= 1 && whole.len() <= 1) {
        return Err(Error::runtime(format!(
            "Index tensor must have the same number of dimensions as {name} tensor"
        )));
    }
    let fits = index.iter().zip(whole).enumerate().all(|(d, (i, w))| d == dim || i <= w);
    if fits {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected index {index:?} to be no larger than {name} {whole:?} apart from dimension {dim}"
    )))
}

/// `out[i][j] = input[index[i][j]][j]` for `dim` 0, and so on; `out` has the shape of `index`.
///
/// # Errors
/// If an index is not in `0..size`, or the index is larger than the input in another dimension.
pub fn gather(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    index: StridedRef<'_>,
) -> Result<()> {
    check_dim(dim, input.ndim())?;
    check_dtype("gather", out.dtype(), input.dtype())?;
    check_shape("gather", out.shape(), index.shape())?;
    check_index_shape("self", index.shape(), input.shape(), dim)?;
    let out = &*out;
    with_i64(index, |index| {
        let (size, _) = along(input.shape(), &input, dim);
        let size = size as i64;
        check_bounds(&index, (0, size), |i| Error::runtime(out_of_bounds(i, dim, size)))?;
        for_size!(input.dtype().size(), T => gather_elements::<T>(out, &input, dim, &index));
        Ok(())
    })
}

fn gather_elements<T: Copy>(
    out: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dim: usize,
    index: &StridedRef<'_>,
) {
    let (_, step) = along(input.shape(), input, dim);
    let base = base_strides(if index.ndim() == input.ndim() { input.strides() } else { &[0] }, dim);
    let views = [
        ViewLayout::from(out),
        ViewLayout::of(&base[..index.ndim()], input.dtype().size()),
        ViewLayout::from(index),
    ];
    let lines = LineIter::new(index.shape(), None, views);
    let width = along(input.shape(), input, dim).0;
    if let Some(rows) = short_rows(&lines, size_of::<T>(), (width, step)) {
        let grain = GRAIN / rows.count();
        return parallel::for_range(lines.count() / rows.count(), grain, &|range| {
            // SAFETY: rows of the views, whose indices were checked.
            unsafe { rows.lookup(out.ptr(), input.ptr(), index.ptr().cast(), range) };
        });
    }
    parallel::for_range(lines.count(), GRAIN, &|range| {
        lines.visit_across(
            range,
            MAX_SHORT_GATHERED,
            |[to, from, at], [out_step, base_step, index_step], n| {
                let at = index.ptr().wrapping_offset(at);
                let to = out.ptr().wrapping_offset(to);
                let from = input.ptr().wrapping_offset(from);
                // SAFETY: the walk stays inside the views and every index was checked.
                unsafe {
                    gather_run::<T>((to, out_step), (from, base_step, step), (at, index_step), n);
                }
            },
        );
    });
}

/// A walk over output, input and index as one over short rows, in which outputs and indices have no gaps, if it is one.
fn short_rows(
    lines: &LineIter<3>,
    size: usize,
    (width, step): (usize, isize),
) -> Option<RegisterTable> {
    let (count, strides, row_strides) = lines.rows()?;
    let item = size as isize;
    let is_dense = strides == [item, 0, 8]
        && (row_strides[0], row_strides[2]) == (count as isize * item, count as isize * 8)
        && (step == item || width == 1);
    if is_dense { RegisterTable::new(size, width, count, row_strides[1]) } else { None }
}

/// One run of a gather.
///
/// # Safety
/// Each pointer has `n` elements at its step; every index is in range.
#[inline(always)]
unsafe fn gather_run<T: Copy>(
    (to, out_step): (*mut u8, isize),
    (from, base_step, step): (*const u8, isize, isize),
    (at, index_step): (*const u8, isize),
    n: usize,
) {
    let size = size_of::<T>() as isize;
    // SAFETY: promised by the caller. The first form has constant steps so that it becomes quick code.
    unsafe {
        if out_step == size && index_step == 8 && base_step == 0 && step == size {
            let (to, from, at) = (to.cast::<T>(), from.cast::<T>(), at.cast::<i64>());
            for j in 0..n {
                to.add(j).write(from.offset(at.add(j).read() as isize).read());
            }
            return;
        }
        for j in 0..n as isize {
            let i = get::<i64>(at, j * index_step) as isize;
            put(to, j * out_step, get::<T>(from, j * base_step + i * step));
        }
    }
}

/// Writes `source` into `out` at the positions that `index` names along `dim`, joined by `reduce` with what is there (`include_self`)
/// or only with one another.
///
/// # Errors
/// If an index is not in `0..size`, the shapes do not fit, or the dtype cannot be reduced so.
pub fn scatter(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    source: ScatterSource<'_>,
    (reduce, include_self): (ScatterReduction, bool),
) -> Result<()> {
    check_dim(dim, out.ndim())?;
    let dtype = out.dtype();
    if let ScatterSource::Tensor(src) = &source {
        if src.dtype() != dtype {
            return Err(Error::runtime(
                "scatter(): Expected self.dtype to be equal to src.dtype".into(),
            ));
        }
        check_index_shape("src", index.shape(), src.shape(), usize::MAX)?;
    }
    check_index_shape("self", index.shape(), out.shape(), dim)?;
    if dtype.is_complex() && matches!(reduce, ScatterReduction::Amax | ScatterReduction::Amin) {
        let name = if reduce == ScatterReduction::Amax { "amax" } else { "amin" };
        return Err(Error::not_implemented(
            &format!("scatter_gather_tensor_cpu_reduce_{name}"),
            dtype,
        ));
    }
    with_i64(index, |index| {
        let (size, _) = along(out.shape(), &*out, dim);
        let size = size as i64;
        check_bounds(&index, (0, size), |i| Error::runtime(out_of_bounds(i, dim, size)))?;
        if reduce != ScatterReduction::Assign {
            let how = (reduce, include_self);
            match dtype {
                DType::F16 | DType::BF16 => {
                    return scatter_halves::<f32>(out, dim, index, source, how);
                }
                DType::C32 => return scatter_halves::<C64>(out, dim, index, source, how),
                _ => {}
            }
        }
        let out = &*out;
        let (value, strides);
        let (source, source_strides) = match &source {
            ScatterSource::Tensor(src) => (src.ptr(), src.strides()),
            ScatterSource::Scalar(scalar) => {
                value = bytes_of(*scalar, dtype);
                (value.as_ptr().cast(), &[][..])
            }
        };
        strides = fitted(source_strides, index.ndim());
        let walk = ScatterWalk::new(out, dim, &index, (source, &strides));
        if reduce == ScatterReduction::Assign {
            // SAFETY: every index was checked; sources are of the dtype of `out`.
            for_size!(dtype.size(), T => unsafe { walk.assign::<T>() });
        } else {
            for_dtype!(dtype, all, T => scatter_reduced::<T>(&walk, reduce, include_self)?);
        }
        Ok(())
    })
}

/// Joins halves in single precision, `T`, so that a sum of many is rounded once.
fn scatter_halves<T: Compute>(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    source: ScatterSource<'_>,
    how: (ScatterReduction, bool),
) -> Result<()> {
    let (shape, strides) = (out.shape(), contiguous_strides(out.shape()));
    let mut wide = load_owned::<T>(out.as_ref())?;
    // SAFETY: as many elements as the shape has, which nobody else knows.
    let mut joined =
        unsafe { StridedMut::new(wide.as_mut_ptr().cast(), T::DTYPE, shape, &strides) };
    match source {
        ScatterSource::Scalar(_) => scatter(&mut joined, dim, index, source, how)?,
        ScatterSource::Tensor(source) => {
            let source_strides = fitted(source.strides(), index.ndim());
            // SAFETY: a part of the source, as the shapes were compared.
            let part = unsafe {
                StridedRef::new(source.ptr(), source.dtype(), index.shape(), &source_strides)
            };
            let (values, strides) = (load::<T>(part)?, contiguous_strides(index.shape()));
            // SAFETY: as many elements as the shape has.
            let values = unsafe {
                StridedRef::new(values.as_ptr().cast(), T::DTYPE, index.shape(), &strides)
            };
            scatter(&mut joined, dim, index, ScatterSource::Tensor(values), how)?;
        }
    }
    store(out, &wide);
    Ok(())
}

/// The bytes of a number as an element of `dtype`.
fn bytes_of(scalar: Scalar, dtype: DType) -> [u64; 2] {
    let mut bytes = [0; 2];
    // SAFETY: no element is larger or needs more alignment.
    for_dtype!(dtype, all, T => unsafe { put(bytes.as_mut_ptr().cast(), 0, scalar.to::<T>()) });
    bytes
}

/// The strides extended to `rank` dimensions with zeros.
fn fitted(strides: &[i64], rank: usize) -> SmallVec<[i64; 6]> {
    let mut fitted = SmallVec::from_slice(&strides[..rank.min(strides.len())]);
    fitted.resize(rank, 0);
    fitted
}

/// A walk over index and source.
struct ScatterWalk<'a> {
    lines: LineIter<3>,
    out: &'a StridedMut<'a>,
    index: &'a StridedRef<'a>,
    source: *const u8,
    dim: usize,
    step: isize,
}

impl<'a> ScatterWalk<'a> {
    fn new(
        out: &'a StridedMut<'a>,
        dim: usize,
        index: &'a StridedRef<'a>,
        (source, source_strides): (*const u8, &[i64]),
    ) -> Self {
        let (_, step) = along(out.shape(), out, dim);
        let base = fitted(&base_strides(out.strides(), dim), index.ndim());
        let size = out.dtype().size();
        let views = [
            ViewLayout::of(&base, size),
            ViewLayout::of(source_strides, size),
            ViewLayout::from(index),
        ];
        let lines = LineIter::new(index.shape(), None, views);
        ScatterWalk { lines, out, index, source, dim, step }
    }

    /// Calls `visit` with addresses of target base, source and index, their strides and a length; those of one target come in
    /// order. Rows up to `shortest` that have targets of their own are taken side by side.
    #[inline(always)]
    fn runs(&self, shortest: usize, mut visit: impl FnMut([*mut u8; 3], [isize; 3], usize)) {
        let is_along = self.lines.inner().is_some_and(|strides| strides[0] == 0);
        let shortest = if is_along { shortest } else { MAX_SHORT_GATHERED };
        let (source, index) = (self.source.cast_mut(), self.index.ptr().cast_mut());
        self.lines.visit_across(0..self.lines.count(), shortest, |offsets, strides, n| {
            let [to, from, at] = offsets;
            let to = self.out.ptr().wrapping_offset(to);
            visit([to, source.wrapping_offset(from), index.wrapping_offset(at)], strides, n);
        });
    }

    /// Calls `visit` with the addresses of target and source, elements of the size of `T`; those of one target come in order.
    #[inline(always)]
    fn each<T>(&self, mut visit: impl FnMut(*mut u8, *const u8)) {
        let size = size_of::<T>() as isize;
        self.runs(MAX_SHORT_REDUCED, |[to, from, at], strides, n| {
            // SAFETY: the walk stays inside the index view.
            let index_at = |j: isize, step: isize| unsafe { get::<i64>(at, j * step) } as isize;
            // (Constant steps make quicker code.)
            if strides == [0, size, 8] && self.step == size {
                for j in 0..n as isize {
                    visit(
                        to.wrapping_offset(index_at(j, 8) * size),
                        from.wrapping_offset(j * size),
                    );
                }
                return;
            }
            for j in 0..n as isize {
                let to = to.wrapping_offset(j * strides[0] + index_at(j, strides[2]) * self.step);
                visit(to, from.wrapping_offset(j * strides[1]));
            }
        });
    }

    /// Replaces targets by their sources, elements of the size of `T`.
    ///
    /// # Safety
    /// Every index is in range, and the source's elements are of that size.
    unsafe fn assign<T: Copy>(&self) {
        let size = size_of::<T>() as isize;
        self.runs(MAX_SHORT_ASSIGNED, |[to, from, at], strides, n| {
            // SAFETY: the walk stays inside the views. The first form has constant steps so that it becomes quick code.
            unsafe {
                if strides == [0, size, 8] && self.step == size {
                    let (to, from, at) = (to.cast::<T>(), from.cast::<T>(), at.cast::<i64>());
                    for j in 0..n {
                        to.offset(at.add(j).read() as isize).write(from.add(j).read());
                    }
                    return;
                }
                for j in 0..n as isize {
                    let i = get::<i64>(at, j * strides[2]) as isize;
                    put(to, j * strides[0] + i * self.step, get::<T>(from, j * strides[1]));
                }
            }
        });
    }
}

fn scatter_reduced<T: Accumulate>(
    walk: &ScatterWalk<'_>,
    reduce: ScatterReduction,
    include_self: bool,
) -> Result<()> {
    // (Before anything is written.)
    let counts = if reduce == ScatterReduction::Mean { walk.out.numel() } else { 0 };
    let counts = memory::filled(0_i64, counts)?;
    if !include_self {
        let identity = identity_of::<T>(reduce);
        // SAFETY: targets are elements of `out`, as every index was checked.
        walk.each::<T>(|to, _| unsafe { put(to, 0, identity) });
    }
    macro_rules! join {
        (|$old:ident, $new:ident| $value:expr) => {
            // SAFETY: as above; sources are elements of the source's dtype, which is that of `out`.
            walk.each::<T>(|to, from| unsafe {
                let ($old, $new) = (get::<T>(to, 0), get::<T>(from, 0));
                put(to, 0, $value);
            })
        };
    }
    match reduce {
        ScatterReduction::Assign => {}
        ScatterReduction::Sum | ScatterReduction::Mean => join!(|old, new| old.add(new)),
        ScatterReduction::Prod => join!(|old, new| old.mul(new)),
        ScatterReduction::Amax => join!(|old, new| old.larger(new)),
        ScatterReduction::Amin => join!(|old, new| old.smaller(new)),
    }
    if reduce == ScatterReduction::Mean {
        divide_by_counts::<T>(walk, counts, include_self);
    }
    Ok(())
}

/// Divides sums by how many elements they have; `counts` are zeros, one for each element.
fn divide_by_counts<T: Accumulate>(
    walk: &ScatterWalk<'_>,
    mut counts: Vec<i64>,
    include_self: bool,
) {
    let (shape, strides) = (walk.out.shape(), contiguous_strides(walk.out.shape()));
    // SAFETY: as many elements as the shape has, which nobody else knows.
    let view = unsafe { StridedMut::new(counts.as_mut_ptr().cast(), DType::I64, shape, &strides) };
    let none = fitted(&[], walk.index.ndim());
    ScatterWalk::new(&view, walk.dim, walk.index, (std::ptr::null(), &none)).each::<i64>(
        |to, _| {
            // SAFETY: targets are counts, as every index was checked.
            unsafe { put(to, 0, get::<i64>(to, 0) + 1) };
        },
    );
    let more = i64::from(include_self);
    let lines = LineIter::new(walk.out.shape(), None, [ViewLayout::from(walk.out)]);
    let mut done = 0;
    lines.visit_runs(0..lines.count(), |[to], [step], length| {
        let counts = &counts[done..][..length];
        done += length;
        let to = walk.out.ptr().wrapping_offset(to);
        if step == size_of::<T>() as isize {
            // SAFETY: a run of `out` without gaps.
            let items = unsafe { std::slice::from_raw_parts_mut(to.cast::<T>(), length) };
            return divide_each(items, counts, more);
        }
        for (i, count) in counts.iter().enumerate() {
            let at = i as isize * step;
            // SAFETY: an element of the run.
            unsafe { put(to, at, divided(get::<T>(to, at), *count, more)) };
        }
    });
}

crate::multiversion! {
fn divide_each<T: Accumulate>(items: &mut [T], counts: &[i64], more: i64) {
    for (item, &count) in items.iter_mut().zip(counts) {
        *item = divided(*item, count, more);
    }
}
}

/// A sum of `count` elements and `more`, divided by their number; an element with nothing to add
/// keeps its value.
#[inline(always)]
fn divided<T: Accumulate>(sum: T, count: i64, more: i64) -> T {
    if count == 0 { sum } else { sum.div_count(count + more) }
}

/// The identity of a reduction: joined with any element, it gives that element.
fn identity_of<T: Element>(reduce: ScatterReduction) -> T {
    match reduce {
        ScatterReduction::Prod => T::from_i64(1),
        ScatterReduction::Amax => lowest::<T>(),
        ScatterReduction::Amin => highest::<T>(),
        ScatterReduction::Assign | ScatterReduction::Sum | ScatterReduction::Mean => T::from_i64(0),
    }
}

fn lowest<T: Element>() -> T {
    match T::DTYPE {
        DType::I8 => T::from_i64(i64::from(i8::MIN)),
        DType::I16 => T::from_i64(i64::from(i16::MIN)),
        DType::I32 => T::from_i64(i64::from(i32::MIN)),
        DType::I64 => T::from_i64(i64::MIN),
        dtype if dtype.is_floating_point() => T::from_f64(f64::NEG_INFINITY),
        _ => T::from_i64(0),
    }
}

fn highest<T: Element>() -> T {
    match T::DTYPE {
        DType::I8 => T::from_i64(i64::from(i8::MAX)),
        DType::I16 => T::from_i64(i64::from(i16::MAX)),
        DType::I32 => T::from_i64(i64::from(i32::MAX)),
        DType::I64 => T::from_i64(i64::MAX),
        dtype if dtype.is_floating_point() => T::from_f64(f64::INFINITY),
        // All ones are the identity of the unsigned types; for bool they are true.
        _ => T::from_i64(-1),
    }
}
