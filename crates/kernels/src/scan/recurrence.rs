//! First-order linear recurrences along a dimension: `out[i] = input[i] + factor[i] * out[i - 1]`.
//!
//! Lines are taken a few side by side, so that those which run across memory are read in its order. What is carried along a
//! line is in double precision. Each line is computed in its own order, whatever lines are beside it.

use crate::line::{
    GRAIN, LineIter, ViewLayout, along, check_dim, check_dtype, check_shape, get, put,
};
use crate::{C128, DType, Element, Error, Result, StridedMut, StridedRef, for_dtype, parallel};
use std::ops::{Add, Mul};

/// Lines taken side by side.
const TOGETHER: usize = 32;

/// What is carried along a line of elements of type `T`.
trait Carry<T>: Copy + Default + Add<Output = Self> + Mul<Output = Self> {
    fn widen(item: T) -> Self;
    fn round(self) -> T;
}
impl<T: Element> Carry<T> for f64 {
    #[inline(always)]
    fn widen(item: T) -> f64 {
        item.to_f64()
    }
    #[inline(always)]
    fn round(self) -> T {
        T::from_f64(self)
    }
}
impl<T: Element> Carry<T> for C128 {
    #[inline(always)]
    fn widen(item: T) -> C128 {
        item.to_c128()
    }
    #[inline(always)]
    fn round(self) -> T {
        T::from_c128(self)
    }
}

/// `out[i] = input[i] + factor[i] * out[i - 1]` along `dim`; in reverse, `out[i] = input[i] + factor[i] * out[i + 1]`. The
/// first item of each line (in its direction) is that of `input`, and its factor is not read.
///
/// # Errors
/// Views of several shapes or dtypes, and dtypes that are neither floating nor complex.
pub fn linear_recurrence(
    out: &mut StridedMut<'_>,
    (input, factor): (StridedRef<'_>, StridedRef<'_>),
    dim: usize,
    reverse: bool,
) -> Result<()> {
    check_dim(dim, out.ndim())?;
    for view in [&input, &factor] {
        check_dtype("linear_recurrence", view.dtype(), out.dtype())?;
        check_shape("linear_recurrence", view.shape(), out.shape())?;
    }
    let (out, inputs) = (&*out, [&input, &factor]);
    if out.dtype() == DType::C32 {
        run::<crate::C32, C128>(out, inputs, dim, reverse);
        return Ok(());
    }
    for_dtype!(out.dtype(), complex, T => run::<T, C128>(out, inputs, dim, reverse), else {
        for_dtype!(out.dtype(), float, T => run::<T, f64>(out, inputs, dim, reverse), else {
            return Err(Error::not_implemented("linear_recurrence", out.dtype()));
        });
    });
    Ok(())
}

fn run<T: Element, S: Carry<T>>(
    out: &StridedMut<'_>,
    [input, factor]: [&StridedRef<'_>; 2],
    dim: usize,
    reverse: bool,
) {
    let views = [ViewLayout::from(out), ViewLayout::from(input), ViewLayout::from(factor)];
    let lines = LineIter::new(out.shape(), Some(dim), views);
    let steps = views.map(|view| along(out.shape(), view, dim).1);
    let n = along(out.shape(), views[0], dim).0;
    if n == 0 {
        return;
    }
    parallel::for_range(lines.count(), (GRAIN / n).max(1), &|range| {
        lines.visit_runs(range, |mut offsets, line_strides, mut length| {
            while length > 0 {
                let count = length.min(TOGETHER);
                let mut at = [
                    out.ptr().wrapping_offset(offsets[0]),
                    input.ptr().cast_mut().wrapping_offset(offsets[1]),
                    factor.ptr().cast_mut().wrapping_offset(offsets[2]),
                ];
                let mut steps = steps;
                if reverse {
                    for (at, step) in at.iter_mut().zip(&mut steps) {
                        *at = at.wrapping_offset((n - 1) as isize * *step);
                        *step = -*step;
                    }
                }
                // SAFETY: `count` lines of `n` items of each view; those of the output are this thread's.
                unsafe { scan::<T, S>(at, (steps, n), (line_strides, count)) };
                for (offset, jump) in offsets.iter_mut().zip(line_strides) {
                    *offset += jump * count as isize;
                }
                length -= count;
            }
        });
    });
}

/// Scans `count` lines, [`TOGETHER`] at most, of `n` items; `steps` are the byte strides along a line,
/// `line_strides` those from a line to the next.
///
/// # Safety
/// All are live elements of type `T`, those of the first operand writable and apart from the others.
#[inline(always)]
unsafe fn scan<T: Element, S: Carry<T>>(
    mut at: [*mut u8; 3],
    (steps, n): ([isize; 3], usize),
    (line_strides, count): ([isize; 3], usize),
) {
    let mut states = [S::default(); TOGETHER];
    for i in 0..n {
        for (line, state) in states.iter_mut().enumerate().take(count) {
            let line = line as isize;
            // SAFETY: the caller's promise.
            unsafe {
                let item = S::widen(get::<T>(at[1], line * line_strides[1]));
                *state = if i == 0 {
                    item
                } else {
                    item + S::widen(get::<T>(at[2], line * line_strides[2])) * *state
                };
                put(at[0], line * line_strides[0], state.round());
            }
        }
        for (at, step) in at.iter_mut().zip(steps) {
            *at = at.wrapping_offset(step);
        }
    }
}
