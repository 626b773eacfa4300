//! `gather` and `scatter`: an index of the output's (or source's) rank names places along one dimension.

use super::{Accumulate, check_bounds, contiguous_strides, for_size, out_of_bounds, with_i64};
use crate::line::{GRAIN, Layout, Lines, along, check_dim, check_dtype, check_shape, get, put};
use crate::{DType, Element, Error, Result, Scalar, StridedMut, StridedRef, for_dtype, parallel};
use smallvec::SmallVec;

/// How `scatter` joins a value with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
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

/// What is scattered.
#[derive(Clone, Copy, Debug)]
pub enum ScatterSource<'a> {
    /// Elements at the places of the index.
    Tensor(StridedRef<'a>),
    /// One number for every place.
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

/// Refuses an index larger than `whole` in a dimension other than `dim`.
fn check_index_shape(name: &str, index: &[i64], whole: &[i64], dim: usize) -> Result<()> {
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
        Layout::from(out),
        Layout::of(&base[..index.ndim()], input.dtype().size()),
        Layout::from(index),
    ];
    let lines = Lines::new(index.shape(), None, views);
    parallel::for_range(lines.count(), GRAIN, &|range| {
        if lines.is_short() {
            let element = |to: isize, from: isize, at: isize| {
                // SAFETY: the walk stays inside the views and every index was checked.
                unsafe {
                    let i = get::<i64>(index.ptr(), at) as isize;
                    put(out.ptr(), to, get::<T>(input.ptr(), from + i * step));
                }
            };
            let size = size_of::<T>() as isize;
            if let Some(steps) = lines.steps_beside([size, 0, 8], 0b010) {
                return steps.visit(range, |j, [_, from, _]| element(j * size, from, j * 8));
            }
        }
        lines.visit_runs(range, |[to, from, at], [out_step, base_step, index_step], n| {
            let at = index.ptr().wrapping_offset(at);
            let to = out.ptr().wrapping_offset(to);
            let from = input.ptr().wrapping_offset(from);
            // SAFETY: the walk stays inside the views and every index was checked.
            unsafe {
                gather_run::<T>((to, out_step), (from, base_step, step), (at, index_step), n);
            }
        });
    });
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

/// Writes `source` into `out` at the places that `index` names along `dim`, joined by `reduce` with what is there (`include_self`)
/// or only with one another.
///
/// # Errors
/// If an index is not in `0..size`, the shapes do not fit, or the dtype cannot be reduced so.
pub fn scatter(
    out: &mut StridedMut<'_>,
    dim: usize,
    index: StridedRef<'_>,
    source: ScatterSource<'_>,
    (reduce, include_self): (Reduce, bool),
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
    if dtype.is_complex() && matches!(reduce, Reduce::Amax | Reduce::Amin) {
        let name = if reduce == Reduce::Amax { "amax" } else { "amin" };
        return Err(Error::not_implemented(
            &format!("scatter_gather_tensor_cpu_reduce_{name}"),
            dtype,
        ));
    }
    let out = &*out;
    with_i64(index, |index| {
        let (size, _) = along(out.shape(), out, dim);
        let size = size as i64;
        check_bounds(&index, (0, size), |i| Error::runtime(out_of_bounds(i, dim, size)))?;
        for_dtype!(dtype, all, T => {
            let value: T;
            let (ptr, strides) = match &source {
                ScatterSource::Tensor(src) => (src.ptr(), SmallVec::from_slice(&src.strides()[..index.ndim().min(src.ndim())])),
                ScatterSource::Scalar(scalar) => {
                    value = scalar.to();
                    ((&raw const value).cast::<u8>(), SmallVec::from_elem(0, index.ndim()))
                }
            };
            let mut strides: SmallVec<[i64; 6]> = strides;
            strides.resize(index.ndim(), 0);
            scatter_elements::<T>(out, dim, &index, (ptr, &strides), (reduce, include_self));
        });
        Ok(())
    })
}

/// A walk over index, source and, at their dense positions, the targets.
struct Scatter<'a> {
    lines: Lines<4>,
    out: &'a StridedMut<'a>,
    index: &'a StridedRef<'a>,
    source: *const u8,
    step: isize,
    dense_step: isize,
}

impl Scatter<'_> {
    /// Calls `visit` with the address of the target, that of the source and the target's dense number.
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(*mut u8, *const u8, usize)) {
        let size = self.out.dtype().size() as isize;
        let mut visit = |[to, from, at, dense]: [isize; 4]| {
            // SAFETY: the walk stays inside the index view.
            let i = unsafe { get::<i64>(self.index.ptr(), at) } as isize;
            visit(
                self.out.ptr().wrapping_offset(to + i * self.step),
                self.source.wrapping_offset(from),
                (dense + i * self.dense_step) as usize,
            );
        };
        let all = 0..self.lines.count();
        if let Some(steps) = self.lines.steps_beside([0, size, 8, 0], 0b1001) {
            return steps.visit(all, |j, [to, _, _, dense]| visit([to, j * size, j * 8, dense]));
        }
        self.lines.visit(all, visit);
    }
}

fn scatter_elements<T: Accumulate>(
    out: &StridedMut<'_>,
    dim: usize,
    index: &StridedRef<'_>,
    (source, source_strides): (*const u8, &[i64]),
    (reduce, include_self): (Reduce, bool),
) {
    let (_, step) = along(out.shape(), out, dim);
    let dense = contiguous_strides(out.shape());
    let rank = index.ndim();
    let of = |strides: &[i64]| {
        let mut base = base_strides(strides, dim);
        base.resize(rank, 0);
        base
    };
    let (base, dense_base) = (of(out.strides()), of(&dense));
    let views = [
        Layout::of(&base, out.dtype().size()),
        Layout::of(source_strides, out.dtype().size()),
        Layout::from(index),
        Layout::of(&dense_base, 1),
    ];
    let walk = Scatter {
        lines: Lines::new(index.shape(), None, views),
        out,
        index,
        source,
        step,
        dense_step: dense.get(dim).map_or(1, |&s| s as isize),
    };
    if reduce != Reduce::Assign && !include_self {
        let identity = identity_of::<T>(reduce);
        // SAFETY: targets are elements of `out`, as every index was checked.
        walk.each(|to, _, _| unsafe { put(to, 0, identity) });
    }
    macro_rules! join {
        (|$old:ident, $new:ident| $value:expr) => {
            // SAFETY: as above; sources are elements of the source's dtype, which is that of `out`.
            walk.each(|to, from, _| unsafe {
                let ($old, $new) = (get::<T>(to, 0), get::<T>(from, 0));
                put(to, 0, $value);
            })
        };
    }
    match reduce {
        Reduce::Assign => join!(|_old, new| new),
        Reduce::Sum | Reduce::Mean => join!(|old, new| old.add(new)),
        Reduce::Prod => join!(|old, new| old.mul(new)),
        Reduce::Amax => join!(|old, new| old.larger(new)),
        Reduce::Amin => join!(|old, new| old.smaller(new)),
    }
    if reduce == Reduce::Mean {
        divide_by_counts::<T>(&walk, include_self);
    }
}

fn divide_by_counts<T: Accumulate>(walk: &Scatter<'_>, include_self: bool) {
    let mut counts = vec![0_i64; walk.out.numel()];
    walk.each(|_, _, at| counts[at] += 1);
    walk.each(|to, _, at| {
        let count = std::mem::take(&mut counts[at]);
        if count != 0 {
            // SAFETY: the target is an element of `out`.
            unsafe {
                put(to, 0, get::<T>(to, 0).div_count(count + i64::from(include_self)));
            }
        }
    });
}

/// What joins with anything to that thing.
fn identity_of<T: Element>(reduce: Reduce) -> T {
    match reduce {
        Reduce::Prod => T::from_i64(1),
        Reduce::Amax => lowest::<T>(),
        Reduce::Amin => highest::<T>(),
        Reduce::Assign | Reduce::Sum | Reduce::Mean => T::from_i64(0),
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
        // All ones for the unsigned types; bool makes it true.
        _ => T::from_i64(-1),
    }
}
