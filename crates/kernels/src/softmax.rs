//! Softmax and log-softmax along one dimension, and their gradients.
//!
//! A view is seen as (outer, size, inner): `rows` when `inner` is 1, else `columns` that are processed
//! together. Half precision computes in `f32`. A row or column is computed by one task in one way, so results do not depend
//! on threads.

mod columns;
mod rows;

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::row::GROUP;
use crate::simd::{math_f32, math_f64};
use crate::{Error, Result, StridedMut, StridedRef};
use columns::ColumnBlock;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 14;

/// `out[i] = exp(x[i]) / sum_j exp(x[j])` along `dim`, shifted by the maximum so that it cannot
/// overflow. A row that is all `-inf` gives NaN. `out` has the shape of `x`; its dtype may differ.
pub fn softmax(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize) -> Result<()> {
    forward(out, x, dim, false)
}

/// Softmax along `dim` like [`softmax`], except that a row that is all `-inf` gives zeros.
pub fn safe_softmax(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize) -> Result<()> {
    let shape = softmax_shape(x.shape(), dim)?;
    expect_shape("output", out.shape(), x.shape())?;
    for_compute!(x.dtype(), "softmax_lastdim_kernel_impl", T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| {
            forward_all(out, &x, shape, false);
            clear_blocked(out, &x, shape);
        })?;
        Ok(())
    })
}

/// Puts zeros where a row of `x` holds nothing but `-inf`, of which softmax makes NaN.
fn clear_blocked<T: Real>(out: &mut [T], x: &[T], shape: SoftmaxShape) {
    let SoftmaxShape { size, inner, .. } = shape;
    let all = (size * inner).max(1);
    for (out, x) in out.chunks_exact_mut(all).zip(x.chunks_exact(all)) {
        for i in 0..inner {
            let row = || x[i..].iter().step_by(inner);
            if out[i].is_nan() && row().all(|&x| x == T::NEG_INFINITY) {
                out[i..].iter_mut().step_by(inner).for_each(|out| *out = T::ZERO);
            }
        }
    }
}

/// `out[r] = log(sum_j exp(x[r, j]))` for each row of `x`, computed from `y = safe_softmax(x)`; 0 for rows where `y` is 0. All
/// views are row-major and of one dtype.
///
/// # Errors
/// Sizes that do not fit, or a dtype that is not floating.
pub fn logsumexp_from_softmax(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    y: StridedRef<'_>,
) -> Result<()> {
    expect_shape("softmax", y.shape(), x.shape())?;
    expect_shape("output", out.shape(), &x.shape()[..x.ndim().saturating_sub(1)])?;
    let size = x.shape().last().map_or(1, |&size| size as usize);
    for_compute!(x.dtype(), "logsumexp", T => {
        let (x, y) = (load::<T>(x)?, load::<T>(y)?);
        with_output::<T, _>(out, |out| {
            for (row, out) in out.iter_mut().enumerate() {
                let row = row * size..(row + 1) * size;
                *out = row_logsumexp(&x[row.clone()], &y[row]);
            }
        })?;
        Ok(())
    })
}

/// The greatest element's exponential is one, so that its softmax is one by the sum of the shifted exponentials.
fn row_logsumexp<T: Exponential>(x: &[T], y: &[T]) -> T {
    let top = |row: &[T], start| row.iter().copied().fold(start, greater);
    match y.first() {
        Some(first) if first.is_nan() => *first,
        Some(_) => {
            let share = top(y, T::ZERO);
            if share == T::ZERO { share } else { top(x, T::NEG_INFINITY) - share.logarithm() }
        }
        None => T::ZERO,
    }
}

/// `out[i] = x[i] - log(sum_j exp(x[j]))` along `dim`, shifted by the maximum so that it cannot overflow. A row that is all
/// `-inf` gives NaN. `out` has the shape of `x`; its dtype may differ.
pub fn log_softmax(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize) -> Result<()> {
    forward(out, x, dim, true)
}

/// `grad_x = y * (grad - sum_j grad[j] * y[j])` for `y = softmax(x)`.
pub fn softmax_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    y: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    backward(grad_x, grad, y, dim, false)
}

/// `grad_x = grad - exp(y) * sum_j grad[j]` for `y = log_softmax(x)`.
pub fn log_softmax_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    y: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    backward(grad_x, grad, y, dim, true)
}

/// The numbers that there is a softmax of.
pub(crate) trait Exponential: Real {
    /// `e^self`.
    fn exponential(self) -> Self;
    /// `ln self`.
    fn logarithm(self) -> Self;
}

impl Exponential for f32 {
    #[inline(always)]
    fn exponential(self) -> f32 {
        math_f32::exp_single(self)
    }
    #[inline(always)]
    fn logarithm(self) -> f32 {
        math_f32::log(self)
    }
}

impl Exponential for f64 {
    #[inline(always)]
    fn exponential(self) -> f64 {
        math_f64::exp(self)
    }
    #[inline(always)]
    fn logarithm(self) -> f64 {
        math_f64::log(self)
    }
}

crate::multiversion! {
/// The logarithms of some groups. (A function of its own: inside of a loop of exponentials it would take their registers.)
fn logarithms<T: Exponential>(groups: &mut [[T; GROUP]]) {
    for group in groups {
        for lane in group {
            *lane = lane.logarithm();
        }
    }
}
}

/// The greater of a maximum so far and an element. NaN may get lost: where there is one, the sum of exponentials is NaN too.
#[inline(always)]
fn greater<T: Real>(top: T, x: T) -> T {
    if x > top { x } else { top }
}

/// A shape seen around one dimension.
#[derive(Clone, Copy)]
struct SoftmaxShape {
    outer: usize,
    size: usize,
    inner: usize,
}

fn softmax_shape(shape: &[i64], dim: usize) -> Result<SoftmaxShape> {
    let product = |s: &[i64]| s.iter().map(|&s| s as usize).product();
    if shape.is_empty() && dim == 0 {
        return Ok(SoftmaxShape { outer: 1, size: 1, inner: 1 });
    }
    if dim >= shape.len() {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [-{0}, {1}], but got {dim})",
            shape.len().max(1),
            shape.len().max(1) - 1
        )));
    }
    Ok(SoftmaxShape {
        outer: product(&shape[..dim]),
        size: shape[dim] as usize,
        inner: product(&shape[dim + 1..]),
    })
}

fn forward(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize, log: bool) -> Result<()> {
    let shape = softmax_shape(x.shape(), dim)?;
    expect_shape("output", out.shape(), x.shape())?;
    let op = if log { "log_softmax_lastdim_kernel_impl" } else { "softmax_lastdim_kernel_impl" };
    for_compute!(x.dtype(), op, T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| forward_all(out, &x, shape, log))?;
        Ok(())
    })
}

fn backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    y: StridedRef<'_>,
    dim: usize,
    log: bool,
) -> Result<()> {
    let shape = softmax_shape(y.shape(), dim)?;
    expect_shape("grad", grad.shape(), y.shape())?;
    expect_shape("grad_input", grad_x.shape(), y.shape())?;
    for_compute!(y.dtype(), "softmax_backward", T => {
        let (grad, y) = (load::<T>(grad)?, load::<T>(y)?);
        with_output::<T, _>(grad_x, |out| backward_all(out, &grad, &y, shape, log))?;
        Ok(())
    })
}

fn forward_all<T: Exponential>(out: &mut [T], x: &[T], s: SoftmaxShape, log: bool) {
    if x.is_empty() {
        return;
    }
    let out = SharedMut::new(out);
    if s.inner >= GROUP {
        return columns::for_blocks(s, GRAIN, &|base, width| {
            let block = ColumnBlock { base, width, size: s.size, step: s.inner };
            columns::forward(out, x, block, log);
        });
    }
    let line = s.size * s.inner;
    crate::parallel::for_range(s.outer, (GRAIN / line).max(1), &|lines| {
        let span = lines.start * line..lines.end * line;
        // SAFETY: lines are disjoint.
        let out = unsafe { out.slice(span.clone()) };
        if s.inner == 1 {
            rows::forward(out, &x[span], s.size, log);
        } else {
            columns::narrow_forward(out, &x[span], s, log);
        }
    });
}

fn backward_all<T: Exponential>(out: &mut [T], grad: &[T], y: &[T], s: SoftmaxShape, log: bool) {
    if y.is_empty() {
        return;
    }
    let out = SharedMut::new(out);
    if s.inner >= GROUP {
        return columns::for_blocks(s, GRAIN, &|base, width| {
            let block = ColumnBlock { base, width, size: s.size, step: s.inner };
            columns::backward(out, grad, y, block, log);
        });
    }
    let line = s.size * s.inner;
    crate::parallel::for_range(s.outer, (GRAIN / line).max(1), &|lines| {
        let span = lines.start * line..lines.end * line;
        // SAFETY: lines are disjoint.
        let out = unsafe { out.slice(span.clone()) };
        let (grad, y) = (&grad[span.clone()], &y[span]);
        if s.inner == 1 {
            rows::backward(out, grad, y, s.size, log);
        } else {
            columns::narrow_backward(out, grad, y, s, log);
        }
    });
}
