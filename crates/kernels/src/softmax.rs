//! Softmax and log-softmax along one dimension, and their gradients.
//!
//! A view is seen as (outer, size, inner): rows when `inner` is 1, else columns that are processed
//! together, a block of neighbouring columns at a time. Half precision computes in `f32`. Each row is
//! one task, so results do not depend on threads.

use crate::dense::{SharedMut, expect_shape, for_compute, load, with_output};
use crate::row::{self, Rows};
use crate::{Error, Result, StridedMut, StridedRef};

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 14;

/// `out[i] = exp(x[i]) / sum_j exp(x[j])` along `dim`, shifted by the maximum so that it cannot
/// overflow. A row that is all `-inf` gives NaN. `out` has the shape of `x`; its dtype may differ.
pub fn softmax(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize) -> Result<()> {
    forward(out, x, dim, false)
}

/// `out[i] = x[i] - log(sum_j exp(x[j]))` along `dim`, as [`softmax`].
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

/// A shape seen around one dimension.
#[derive(Clone, Copy)]
struct Around {
    outer: usize,
    size: usize,
    inner: usize,
}

fn around(shape: &[i64], dim: usize) -> Result<Around> {
    let product = |s: &[i64]| s.iter().map(|&s| s as usize).product();
    if shape.is_empty() && dim == 0 {
        return Ok(Around { outer: 1, size: 1, inner: 1 });
    }
    if dim >= shape.len() {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [-{0}, {1}], but got {dim})",
            shape.len().max(1),
            shape.len().max(1) - 1
        )));
    }
    Ok(Around {
        outer: product(&shape[..dim]),
        size: shape[dim] as usize,
        inner: product(&shape[dim + 1..]),
    })
}

fn forward(out: &mut StridedMut<'_>, x: StridedRef<'_>, dim: usize, log: bool) -> Result<()> {
    let shape = around(x.shape(), dim)?;
    expect_shape("output", out.shape(), x.shape())?;
    let op = if log { "log_softmax_lastdim_kernel_impl" } else { "softmax_lastdim_kernel_impl" };
    for_compute!(x.dtype(), op, T => {
        let x = load::<T>(x);
        with_output::<T, _>(out, |out| forward_all(out, &x, shape, log));
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
    let shape = around(y.shape(), dim)?;
    expect_shape("grad", grad.shape(), y.shape())?;
    expect_shape("grad_input", grad_x.shape(), y.shape())?;
    for_compute!(y.dtype(), "softmax_backward", T => {
        let (grad, y) = (load::<T>(grad), load::<T>(y));
        with_output::<T, _>(grad_x, |out| backward_all(out, &grad, &y, shape, log));
        Ok(())
    })
}

fn forward_all<T: Rows>(out: &mut [T], x: &[T], s: Around, log: bool) {
    if x.is_empty() {
        return;
    }
    let out = SharedMut::new(out);
    if s.inner == 1 {
        crate::parallel::for_range(s.outer, (GRAIN / s.size).max(1), &|rows| {
            let span = rows.start * s.size..rows.end * s.size;
            // SAFETY: rows are disjoint.
            let out = unsafe { out.slice(span.clone()) };
            T::softmax_rows(out, &x[span], s.size, log);
        });
    } else {
        for_column_blocks(s, &|base, width| {
            // SAFETY: blocks of columns are disjoint.
            unsafe { columns_forward(out, x, base, width, s, log) };
        });
    }
}

/// Calls `work(offset, width)` for blocks of neighbouring columns.
fn for_column_blocks(s: Around, work: &(dyn Fn(usize, usize) + Sync)) {
    let blocks = s.inner.div_ceil(COLUMNS);
    let grain = (GRAIN / (s.size * COLUMNS.min(s.inner))).max(1);
    crate::parallel::for_range(s.outer * blocks, grain, &|range| {
        for task in range {
            let column = task % blocks * COLUMNS;
            let width = COLUMNS.min(s.inner - column);
            work(task / blocks * s.size * s.inner + column, width);
        }
    });
}

/// Columns that are processed together.
const COLUMNS: usize = 64;

/// # Safety
/// No other thread touches these columns.
unsafe fn columns_forward<T: Rows>(
    out: SharedMut<T>,
    x: &[T],
    base: usize,
    width: usize,
    s: Around,
    log: bool,
) {
    let at = |j: usize| base + j * s.inner..base + j * s.inner + width;
    let mut top = [T::NEG_INFINITY; COLUMNS];
    let mut sum = [T::ZERO; COLUMNS];
    for j in 0..s.size {
        row::maximum_into(&mut top[..width], &x[at(j)]);
    }
    for j in 0..s.size {
        // SAFETY: the caller's promise.
        let out = unsafe { out.slice(at(j)) };
        row::subtract(out, &x[at(j)], &top[..width]);
        if log {
            let mut power = [T::ZERO; COLUMNS];
            power[..width].copy_from_slice(out);
            T::exp_row(&mut power[..width]);
            row::add_into(&mut sum[..width], &power[..width]);
        } else {
            T::exp_row(out);
            row::add_into(&mut sum[..width], out);
        }
    }
    for value in &mut sum[..width] {
        *value = if log { value.ln() } else { T::ONE / *value };
    }
    for j in 0..s.size {
        // SAFETY: the caller's promise.
        let out = unsafe { out.slice(at(j)) };
        for (value, &sum) in out.iter_mut().zip(&sum[..width]) {
            *value = if log { *value - sum } else { *value * sum };
        }
    }
}

fn backward_all<T: Rows>(out: &mut [T], grad: &[T], y: &[T], s: Around, log: bool) {
    if y.is_empty() {
        return;
    }
    let out = SharedMut::new(out);
    if s.inner == 1 {
        crate::parallel::for_range(s.outer, (GRAIN / s.size).max(1), &|rows| {
            let span = rows.start * s.size..rows.end * s.size;
            // SAFETY: rows are disjoint.
            let out = unsafe { out.slice(span.clone()) };
            T::softmax_backward_rows(out, &grad[span.clone()], &y[span], s.size, log);
        });
    } else {
        for_column_blocks(s, &|base, width| {
            // SAFETY: blocks of columns are disjoint.
            unsafe { columns_backward(out, grad, y, base, width, s, log) };
        });
    }
}

/// # Safety
/// No other thread touches these columns.
unsafe fn columns_backward<T: Rows>(
    out: SharedMut<T>,
    grad: &[T],
    y: &[T],
    base: usize,
    width: usize,
    s: Around,
    log: bool,
) {
    let at = |j: usize| base + j * s.inner..base + j * s.inner + width;
    let mut sum = [T::ZERO; COLUMNS];
    for j in 0..s.size {
        for ((sum, &g), &y) in sum.iter_mut().zip(&grad[at(j)]).zip(&y[at(j)]) {
            *sum += if log { g } else { g * y };
        }
    }
    for j in 0..s.size {
        // SAFETY: the caller's promise.
        let out = unsafe { out.slice(at(j)) };
        let (grad, y) = (&grad[at(j)], &y[at(j)]);
        if log {
            out.copy_from_slice(y);
            T::exp_row(out);
            for ((out, &g), &sum) in out.iter_mut().zip(grad).zip(&sum) {
                *out = g - *out * sum;
            }
        } else {
            for (((out, &g), &y), &sum) in out.iter_mut().zip(grad).zip(y).zip(&sum) {
                *out = y * (g - sum);
            }
        }
    }
}
