//! Average pooling with fixed windows, and adaptive average pooling, whose windows divide the input
//! into a given number of (nearly) equal parts.

use super::maximum::for_taps;
use super::{PoolGeometry, PoolWindow, output_shape, sizes};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, owned, with_output};
use crate::lanes::{Column, ROWS, buffer_width, to_columns, to_rows};
use crate::windows::{Windows, planes_of};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory};
use std::ops::Range;

/// What an average is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvgPoolOptions {
    /// Count the padding as elements (of value zero).
    pub count_include_pad: bool,
    /// Divide by this instead of the number of elements.
    pub divisor_override: Option<i64>,
}

/// `out[o] = sum of x over the window of o / divisor`; the divisor is the window's size, clipped to
/// the padded input, or to the input if padding does not count.
///
/// # Errors
/// Shapes that do not fit, a divisor of zero, or a dtype that is neither real floating nor int64 (whose means lose their
/// fraction).
pub fn avg_pool(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    window: &PoolWindow,
    how: AvgPoolOptions,
) -> Result<()> {
    let shape = output_shape(x.shape(), window)?;
    expect_shape("output", out.shape(), &shape)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let scales = Scales::new(PoolGeometry::new(x.shape(), &shape, window), how)?;
    if x.dtype() == DType::I64 {
        let x = load::<i64>(x)?;
        return with_output::<i64, _>(out, |out| average_integers(out, &x, &scales));
    }
    for_compute!(x.dtype(), "avg_pool2d", T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| {
            if let Some(windows) = scales.g.small_windows()? {
                return side_by_side(out, &x, scales.g.planes, &windows, &scales.all()?);
            }
            let (size, from) = (scales.g.output_size(), scales.g.input_size());
            let out = SharedMut::new(out);
            scales.g.for_planes(&|plane| {
                // SAFETY: one task per plane.
                let out = unsafe { out.slice(plane * size..(plane + 1) * size) };
                plane_forward(out, &x[plane * from..(plane + 1) * from], &scales.g);
                scales.apply(out);
                Ok(())
            })
        })
    })
}

/// The gradient of [`avg_pool`]: each element of `grad`, divided as in the forward pass, is added to
/// every input element of its window.
pub fn avg_pool_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    window: &PoolWindow,
    how: AvgPoolOptions,
) -> Result<()> {
    let shape = output_shape(grad_x.shape(), window)?;
    expect_shape("grad_output", grad.shape(), &shape)?;
    let scales = Scales::new(PoolGeometry::new(grad_x.shape(), &shape, window), how)?;
    for_compute!(grad.dtype(), "avg_pool2d_backward", T => {
        let grad = load::<T>(grad)?;
        with_output::<T, _>(grad_x, |out| {
            if let Some(windows) = scales.g.small_windows()? {
                return side_by_side_backward(out, &grad, scales.g.planes, &windows, &scales.all()?);
            }
            let (size, to) = (scales.g.output_size(), scales.g.input_size());
            let out = SharedMut::new(out);
            scales.g.for_planes(&|plane| {
                // SAFETY: one task per plane.
                let out = unsafe { out.slice(plane * to..(plane + 1) * to) };
                out.fill(T::ZERO);
                let mut scaled = memory::copied(&grad[plane * size..(plane + 1) * size])?;
                scales.apply(&mut scaled);
                plane_backward(out, &scaled, &scales.g);
                Ok(())
            })
        })
    })
}

/// The divisors of every output: a product of per-dimension counts, or one number.
struct Scales {
    g: PoolGeometry,
    counts: [Vec<f64>; 3],
    fixed: Option<f64>,
}

impl Scales {
    fn new(g: PoolGeometry, how: AvgPoolOptions) -> Result<Scales> {
        if how.divisor_override == Some(0) {
            return Err(Error::runtime("divisor must be not zero".to_owned()));
        }
        let counts = |dim: usize| {
            memory::collect((0..g.output[dim]).map(|o| {
                let start = (o * g.stride[dim]) as isize - g.padding[dim] as isize;
                let padded = (g.input[dim] + g.padding[dim]) as isize;
                let end = (start + g.kernel[dim] as isize).min(padded);
                let inside = end.min(g.input[dim] as isize) - start.max(0);
                (if how.count_include_pad { end - start } else { inside }) as f64
            }))
        };
        let counts = [counts(0)?, counts(1)?, counts(2)?];
        Ok(Scales { g, counts, fixed: how.divisor_override.map(|d| d as f64) })
    }
    /// The divisors of a plane's outputs.
    fn all(&self) -> Result<Vec<f64>> {
        if let Some(fixed) = self.fixed {
            return memory::filled(fixed, self.g.output_size());
        }
        let mut all = memory::with_capacity(self.g.output_size())?;
        for d in &self.counts[0] {
            for h in &self.counts[1] {
                memory::extend(&mut all, self.counts[2].iter().map(|w| d * h * w))?;
            }
        }
        Ok(all)
    }
    fn apply<T: Real>(&self, out: &mut [T]) {
        if let Some(fixed) = self.fixed {
            return divide(out, T::of(fixed));
        }
        let [rows, width] = [self.g.output[1], self.g.output[2]];
        let columns = &self.counts[2];
        for (line, out) in out.chunks_exact_mut(width).enumerate() {
            let outer = T::of(self.counts[0][line / rows] * self.counts[1][line % rows]);
            divide_each(out, columns, outer);
        }
    }
}

/// The windows' sums, wrapping, over their divisors.
fn average_integers(out: &mut [i64], x: &[i64], scales: &Scales) -> Result<()> {
    let g = &scales.g;
    let (size, from) = (g.output_size(), g.input_size());
    let out = SharedMut::new(out);
    let divisors = scales.all()?;
    g.for_planes(&|plane| {
        // SAFETY: one task per plane.
        let out = unsafe { out.slice(plane * size..(plane + 1) * size) };
        let x = &x[plane * from..(plane + 1) * from];
        out.fill(0);
        for_taps(g, |o, i, n| {
            for (j, out) in out[o..o + n].iter_mut().enumerate() {
                *out = out.wrapping_add(x[i + j * g.stride[2]]);
            }
        });
        for (out, &by) in out.iter_mut().zip(&divisors) {
            let by = by as i64;
            *out = if by == 0 { 0 } else { out.wrapping_div(by) };
        }
        Ok(())
    })?;
    Ok(())
}

crate::multiversion! {
    fn divide<T: Real>(out: &mut [T], by: T) {
        for out in out {
            *out /= by;
        }
    }
}

crate::multiversion! {
    fn divide_each<T: Real>(out: &mut [T], columns: &[f64], outer: T) {
        for (out, &column) in out.iter_mut().zip(columns) {
            *out /= T::of(column) * outer;
        }
    }
}

/// Averages of small planes; `divisors` are those of a plane's outputs.
fn side_by_side<T: Real>(
    out: &mut [T],
    x: &[T],
    planes: usize,
    windows: &Windows,
    divisors: &[f64],
) -> Result<()> {
    let divisors = memory::collect(divisors.iter().map(|&d| T::of(d)))?;
    let out = SharedMut::new(out);
    windows.for_planes(planes, &|planes| {
        // SAFETY: each task has planes of its own.
        let (out, x) = unsafe { planes_of((out, windows.outputs), (x, windows.inputs), &planes) };
        columns_forward(out, x, windows, &divisors)
    })
}

/// The gradient of [`side_by_side`].
fn side_by_side_backward<T: Real>(
    out: &mut [T],
    grad: &[T],
    planes: usize,
    windows: &Windows,
    divisors: &[f64],
) -> Result<()> {
    let divisors = memory::collect(divisors.iter().map(|&d| T::of(d)))?;
    let out = SharedMut::new(out);
    windows.for_planes(planes, &|planes| {
        // SAFETY: each task has planes of its own.
        let (out, grad) =
            unsafe { planes_of((out, windows.inputs), (grad, windows.outputs), &planes) };
        columns_backward(out, grad, windows, &divisors)
    })
}

crate::multiversion! {
    fn columns_forward<T: Real>(out: &mut [T], x: &[T], windows: &Windows, divisors: &[T]) -> Result<()> {
        let mut columns = memory::filled([T::ZERO; ROWS], buffer_width(windows.inputs))?;
        let mut results = memory::filled([T::ZERO; ROWS], buffer_width(windows.outputs))?;
        let mut x = x;
        for out in out.chunks_mut((ROWS * windows.outputs).max(1)) {
            let count = out.len() / windows.outputs;
            to_columns(&mut columns, x, windows.inputs, count);
            windows.fold(
                |_, _| [T::ZERO; ROWS],
                |mut sum: Column<T>, at, _| {
                    // SAFETY: there is a column for each input.
                    let values = unsafe { *columns.get_unchecked(at) };
                    for l in 0..ROWS {
                        sum[l] += values[l];
                    }
                    sum
                },
                |o, mut sum| {
                    let by = divisors[o];
                    for value in &mut sum {
                        *value /= by;
                    }
                    results[o] = sum;
                },
            );
            to_rows(out, &results, windows.outputs);
            x = &x[count * windows.inputs..];
        }
        Ok(())
    }
}

crate::multiversion! {
    fn columns_backward<T: Real>(out: &mut [T], grad: &[T], windows: &Windows, divisors: &[T]) -> Result<()> {
        let mut columns = memory::filled([T::ZERO; ROWS], buffer_width(windows.inputs))?;
        let mut shares = memory::filled([T::ZERO; ROWS], buffer_width(windows.outputs))?;
        let mut grad = grad;
        for out in out.chunks_mut((ROWS * windows.inputs).max(1)) {
            let count = out.len() / windows.inputs;
            to_columns(&mut shares, grad, windows.outputs, count);
            columns.fill([T::ZERO; ROWS]);
            windows.fold(
                |o, _| {
                    let (mut share, by) = (shares[o], divisors[o]);
                    for value in &mut share {
                        *value /= by;
                    }
                    share
                },
                |share: Column<T>, at, _| {
                    // SAFETY: there is a column for each input.
                    let to = unsafe { columns.get_unchecked_mut(at) };
                    let mut sum = *to;
                    for l in 0..ROWS {
                        sum[l] += share[l];
                    }
                    *to = sum;
                    share
                },
                |_, _| {},
            );
            to_rows(out, &columns, windows.inputs);
            grad = &grad[count * windows.outputs..];
        }
        Ok(())
    }
}

crate::multiversion! {
    fn plane_forward<T: Real>(out: &mut [T], x: &[T], g: &PoolGeometry) {
        out.fill(T::ZERO);
        for_taps(g, |o, i, n| {
            let (out, x) = (&mut out[o..o + n], &x[i..]);
            match g.stride[2] {
                1 => add_sampled::<T, 1>(out, x, 1),
                2 => add_sampled::<T, 2>(out, x, 2),
                stride => add_sampled::<T, 0>(out, x, stride),
            }
        });
    }
}

crate::multiversion! {
    fn plane_backward<T: Real>(out: &mut [T], grad: &[T], g: &PoolGeometry) {
        for_taps(g, |o, i, n| {
            let (out, grad) = (&mut out[i..], &grad[o..o + n]);
            match g.stride[2] {
                1 => add_spread::<T, 1>(out, grad, 1),
                2 => add_spread::<T, 2>(out, grad, 2),
                stride => add_spread::<T, 0>(out, grad, stride),
            }
        });
    }
}

/// `out[j] += x[j * stride]`; `S` is the stride, or 0 if it is not a constant.
#[inline(always)]
fn add_sampled<T: Real, const S: usize>(out: &mut [T], x: &[T], stride: usize) {
    let step = if S == 0 { stride } else { S };
    assert!(out.is_empty() || (out.len() - 1) * step < x.len());
    for (j, out) in out.iter_mut().enumerate() {
        // SAFETY: the assertion covers the last and so every element.
        *out += unsafe { *x.get_unchecked(j * step) };
    }
}

/// `out[j * stride] += x[j]`; `S` as in [`add_sampled`].
#[inline(always)]
fn add_spread<T: Real, const S: usize>(out: &mut [T], x: &[T], stride: usize) {
    let step = if S == 0 { stride } else { S };
    assert!(x.is_empty() || (x.len() - 1) * step < out.len());
    for (j, &x) in x.iter().enumerate() {
        // SAFETY: the assertion covers the last and so every element.
        unsafe { *out.get_unchecked_mut(j * step) += x };
    }
}

/// The input positions of adaptive output `o` of `outputs`.
pub(super) fn part(o: usize, outputs: usize, inputs: usize) -> Range<usize> {
    o * inputs / outputs..((o + 1) * inputs).div_ceil(outputs)
}

/// The planes and sizes of an adaptive pooling, checked.
pub(super) fn adaptive(
    x: &[i64],
    out: &[i64],
    spatial: usize,
) -> Result<(usize, [usize; 3], [usize; 3])> {
    if !(1..=3).contains(&spatial) || x.len() < spatial + 1 {
        return Err(Error::runtime(format!(
            "adaptive_avg_pool{spatial}d(): Expected {}D or {}D tensor, but got {x:?}",
            spatial + 1,
            spatial + 2
        )));
    }
    let planes = x.len() - spatial;
    if let Some(d) = (planes..x.len()).find(|&d| x[d] == 0) {
        return Err(Error::runtime(format!(
            "adaptive_avg_pool{spatial}d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {x:?} with dimension {d} being empty"
        )));
    }
    if out.len() != x.len() || out[..planes] != x[..planes] {
        return Err(Error::runtime(format!(
            "adaptive_avg_pool{spatial}d(): output of size {out:?} does not fit input of size {x:?}"
        )));
    }
    let count = x[..planes].iter().map(|&s| s as usize).product();
    Ok((count, sizes(&x[planes..]), sizes(&out[planes..])))
}

/// `out[o] = mean of x over part o`, where output `o` of `n` covers the inputs
/// `floor(o * L / n) .. ceil((o + 1) * L / n)` of each of the last `spatial` dimensions.
///
/// # Errors
/// An empty spatial dimension, shapes that do not fit, or a dtype that is not real floating.
pub fn adaptive_avg_pool(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    spatial: usize,
) -> Result<()> {
    let (planes, input, output) = adaptive(x.shape(), out.shape(), spatial)?;
    for_compute!(x.dtype(), "adaptive_avg_pool2d", T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| {
            if let Some(windows) = Windows::of_parts(planes, input, output, part)? {
                return side_by_side(out, &x, planes, &windows, &windows.counts()?);
            }
            for_parts(out, planes, input, output, &|out, plane, parts, count| {
                let mut sum = 0.0;
                for_lines(parts, input, |line| {
                    sum += lane_sum(&x[plane * input.iter().product::<usize>()..][line]);
                });
                *out = T::of(sum / count);
            });
            Ok(())
        })
    })
}

/// Works on one output: itself, its plane, its parts, how many elements they have.
type Each<'e, T> = dyn Fn(&mut T, usize, &[Range<usize>; 3], f64) + Sync + 'e;

/// Calls `each(output, plane, its parts, elements)` for every output, planes on several threads.
fn for_parts<T: Real>(
    out: &mut [T],
    planes: usize,
    input: [usize; 3],
    output: [usize; 3],
    each: &Each<'_, T>,
) {
    let size: usize = output.iter().product();
    let work = (size + input.iter().product::<usize>()).max(1);
    let shared = SharedMut::new(out);
    crate::parallel::for_range(planes, (super::GRAIN / work).max(1), &|range| {
        for plane in range {
            // SAFETY: one task per plane.
            let out = unsafe { shared.slice(plane * size..(plane + 1) * size) };
            for (i, out) in out.iter_mut().enumerate() {
                let at = [i / output[2] / output[1], i / output[2] % output[1], i % output[2]];
                let parts = [0, 1, 2].map(|d| part(at[d], output[d], input[d]));
                let count: usize = parts.iter().map(Range::len).product();
                each(out, plane, &parts, count as f64);
            }
        }
    });
}

/// Calls `each` with the range of every line of a box.
fn for_lines(parts: &[Range<usize>; 3], input: [usize; 3], mut each: impl FnMut(Range<usize>)) {
    for d in parts[0].clone() {
        for h in parts[1].clone() {
            let line = (d * input[1] + h) * input[2];
            each(line + parts[2].start..line + parts[2].end);
        }
    }
}

crate::multiversion! {
    fn lane_sum<T: Real>(x: &[T]) -> f64 {
        if x.len() < crate::row::LANES {
            return x.iter().map(|v| v.wide()).sum();
        }
        crate::row::reduce(x, T::ZERO, |a, b| a + b, |v| v).wide()
    }
}

/// The gradient of [`adaptive_avg_pool`]: each element of `grad`, divided by the size of its part, is
/// added to the inputs of the part.
pub fn adaptive_avg_pool_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    spatial: usize,
) -> Result<()> {
    let (planes, input, output) = adaptive(grad_x.shape(), grad.shape(), spatial)?;
    for_compute!(grad.dtype(), "adaptive_avg_pool2d_backward", T => {
        let grad = load::<T>(grad)?;
        with_output::<T, _>(grad_x, |out| {
            if let Some(windows) = Windows::of_parts(planes, input, output, part)? {
                return side_by_side_backward(out, &grad, planes, &windows, &windows.counts()?);
            }
            // The parts write into the input's plane, so the gradient is the buffer that is walked.
            let mut grad = owned(grad)?;
            out.fill(T::ZERO);
            let shared = SharedMut::new(out);
            let size: usize = input.iter().product();
            for_parts(&mut grad, planes, input, output, &|grad, plane, parts, count| {
                // SAFETY: one task per plane.
                let out = unsafe { shared.slice(plane * size..(plane + 1) * size) };
                let share = *grad / T::of(count);
                for_lines(parts, input, |line| out[line].iter_mut().for_each(|o| *o += share));
            });
            Ok(())
        })
    })
}
