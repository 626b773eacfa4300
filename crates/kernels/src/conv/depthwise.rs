//! Depthwise convolution: one input and one output channel per group, so there is nothing to
//! multiply as matrices; each kernel element scales a shifted row. Small channels are taken sixteen side by side.

use super::ConvElement;
use super::geometry::ConvGeometry;
use crate::Result;
use crate::dense::SharedMut;
use crate::lanes::{Column, ROWS, buffer_width, to_columns, to_rows};
use crate::memory;
use crate::parallel;
use crate::windows::{WindowGeometry, Windows, planes_of};

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 13;

/// For every kernel element and output row inside the input: `work(k, output row start, input row
/// start, length)`; the starts are of the first valid output and its input.
#[inline(always)]
fn for_rows(g: &ConvGeometry, mut work: impl FnMut(usize, usize, usize, usize)) {
    let mut k = 0;
    for kd in 0..g.kernel[0] {
        let (depths, first_d) = g.inside(0, kd);
        for kh in 0..g.kernel[1] {
            let (rows, first_h) = g.inside(1, kh);
            for kw in 0..g.kernel[2] {
                let (columns, first_w) = g.inside(2, kw);
                for d in depths.clone() {
                    let id = ((d * g.stride[0]) as isize + first_d) as usize;
                    for h in rows.clone() {
                        let ih = ((h * g.stride[1]) as isize + first_h) as usize;
                        if columns.is_empty() {
                            continue;
                        }
                        let iw = ((columns.start * g.stride[2]) as isize + first_w) as usize;
                        let out = (d * g.output[1] + h) * g.output[2] + columns.start;
                        let input = (id * g.input[1] + ih) * g.input[2] + iw;
                        work(k, out, input, columns.len());
                    }
                }
                k += 1;
            }
        }
    }
}

fn for_channels(g: &ConvGeometry, channels: usize, work: &(dyn Fn(usize) + Sync)) {
    let size = (g.output_size() * g.kernel_size()).max(1);
    parallel::for_range(channels, (GRAIN / size).max(1), &|range| range.for_each(work));
}

/// The windows of the convolution, if its channels are better processed side by side.
fn small_windows(g: &ConvGeometry) -> Result<Option<Windows>> {
    let ConvGeometry { input, output, kernel, stride, padding, dilation, .. } = *g;
    let moves = WindowGeometry { input, output, kernel, stride, padding, dilation };
    Windows::of_kernel(g.batch * g.groups, &moves)
}

/// Elements of each channel, `size` for each, repeated cyclically for as many more channels as a
/// column may begin before the last channel: after the last channel of an image comes the first one
/// of the next.
fn cyclic<T: ConvElement>(values: &[T], size: usize) -> Result<Vec<T>> {
    let more = values.iter().cycle().take((ROWS - 1) * size);
    memory::collect(values.iter().chain(more).copied())
}

crate::multiversion! {
    /// `bias` and `w` are cyclic; the first channel of `x` is channel `first` of the `groups`
    /// channels of its image.
    fn columns_forward<T: ConvElement>(
        out: &mut [T],
        x: &[T],
        w: &[T],
        bias: Option<&[T]>,
        first: usize,
        groups: usize,
        windows: &Windows,
    ) -> Result<()> {
        let kernel = w.len() / (groups + ROWS - 1);
        let mut columns = memory::filled([T::default(); ROWS], buffer_width(windows.inputs))?;
        let mut weights = memory::filled([T::default(); ROWS], buffer_width(kernel))?;
        let mut results = memory::filled([T::default(); ROWS], buffer_width(windows.outputs))?;
        let (mut x, mut channel) = (x, first);
        for out in out.chunks_mut((ROWS * windows.outputs).max(1)) {
            let count = out.len() / windows.outputs;
            to_columns(&mut columns, x, windows.inputs, count);
            to_columns(&mut weights, &w[channel * kernel..], kernel, ROWS);
            let mut start = [T::default(); ROWS];
            if let Some(bias) = bias {
                start.copy_from_slice(&bias[channel..channel + ROWS]);
            }
            windows.fold(
                |_, _| start,
                |mut sum: Column<T>, at, k| {
                    // SAFETY: there is a column for each input and for each kernel element.
                    let (x, w) = unsafe { (*columns.get_unchecked(at), *weights.get_unchecked(k)) };
                    for l in 0..ROWS {
                        sum[l] = x[l].mul_add_to(w[l], sum[l]);
                    }
                    sum
                },
                |o, sum| results[o] = sum,
            );
            to_rows(out, &results, windows.outputs);
            x = &x[count * windows.inputs..];
            channel = (channel + count) % groups;
        }
        Ok(())
    }
}

crate::multiversion! {
    /// The counterpart of [`columns_forward`] for the gradient `out` of the input.
    fn columns_input<T: ConvElement>(
        out: &mut [T],
        grad: &[T],
        w: &[T],
        first: usize,
        groups: usize,
        windows: &Windows,
    ) -> Result<()> {
        let kernel = w.len() / (groups + ROWS - 1);
        let mut columns = memory::filled([T::default(); ROWS], buffer_width(windows.inputs))?;
        let mut weights = memory::filled([T::default(); ROWS], buffer_width(kernel))?;
        let mut grads = memory::filled([T::default(); ROWS], buffer_width(windows.outputs))?;
        let (mut grad, mut channel) = (grad, first);
        for out in out.chunks_mut((ROWS * windows.inputs).max(1)) {
            let count = out.len() / windows.inputs;
            to_columns(&mut grads, grad, windows.outputs, count);
            to_columns(&mut weights, &w[channel * kernel..], kernel, ROWS);
            columns.fill([T::default(); ROWS]);
            windows.fold(
                |o, _| grads[o],
                |grad: Column<T>, at, k| {
                    // SAFETY: there is a column for each input and for each kernel element.
                    let (to, w) =
                        unsafe { (columns.get_unchecked_mut(at), *weights.get_unchecked(k)) };
                    let mut sum = *to;
                    for l in 0..ROWS {
                        sum[l] = grad[l].mul_add_to(w[l], sum[l]);
                    }
                    *to = sum;
                    grad
                },
                |_, _| {},
            );
            to_rows(out, &columns, windows.inputs);
            grad = &grad[count * windows.outputs..];
            channel = (channel + count) % groups;
        }
        Ok(())
    }
}

crate::multiversion! {
    /// The gradient of the weights of at most sixteen channels, of which the first in memory is that of `grad` and `x`;
    /// images have `groups` channels. Each image's sums are added to those before.
    fn columns_weight<T: ConvElement>(
        out: &mut [T],
        grad: &[T],
        x: &[T],
        kernel: usize,
        groups: usize,
        windows: &Windows,
    ) -> Result<()> {
        let count = out.len() / kernel;
        let mut columns = memory::filled([T::default(); ROWS], buffer_width(windows.inputs))?;
        let mut grads = memory::filled([T::default(); ROWS], buffer_width(windows.outputs))?;
        let mut sums = memory::filled([T::default(); ROWS], kernel)?;
        let mut totals = memory::filled([T::default(); ROWS], buffer_width(kernel))?;
        let images = grad
            .chunks((groups * windows.outputs).max(1))
            .zip(x.chunks((groups * windows.inputs).max(1)));
        for (grad, x) in images {
            to_columns(&mut columns, x, windows.inputs, count);
            to_columns(&mut grads, grad, windows.outputs, count);
            sums.fill([T::default(); ROWS]);
            windows.fold(
                |o, _| grads[o],
                |grad: Column<T>, at, k| {
                    // SAFETY: there is a column for each input and for each kernel element.
                    let (to, x) =
                        unsafe { (sums.get_unchecked_mut(k), *columns.get_unchecked(at)) };
                    let mut sum = *to;
                    for l in 0..ROWS {
                        sum[l] = grad[l].mul_add_to(x[l], sum[l]);
                    }
                    *to = sum;
                    grad
                },
                |_, _| {},
            );
            for (total, sum) in totals.iter_mut().zip(&sums) {
                let (mut both, sum) = (*total, *sum);
                for l in 0..ROWS {
                    both[l] = both[l].plus(sum[l]);
                }
                *total = both;
            }
        }
        to_rows(out, &totals, kernel);
        Ok(())
    }
}

pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<()> {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    if let Some(windows) = small_windows(g)? {
        let (w, bias) = (cyclic(w, kernel)?, bias.map(|bias| cyclic(bias, 1)).transpose()?);
        return windows.for_planes(g.batch * g.groups, &|channels| {
            let first = channels.start % g.groups;
            // SAFETY: each task has channels of its own.
            let (out, x) = unsafe { planes_of((out, size), (x, from), &channels) };
            columns_forward(out, x, &w, bias.as_deref(), first, g.groups, &windows)
        });
    }
    for_channels(g, g.batch * g.groups, &|i| {
        let c = i % g.groups;
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(i * size..(i + 1) * size) };
        out.fill(bias.map_or(T::default(), |b| b[c]));
        channel_forward(out, &x[i * from..(i + 1) * from], &w[c * kernel..(c + 1) * kernel], g);
    });
    Ok(())
}

fn channel_forward<T: ConvElement>(out: &mut [T], x: &[T], w: &[T], g: &ConvGeometry) {
    let stride = g.stride[2];
    for_rows(g, |k, o, i, n| {
        if stride == 1 {
            add_scaled(&mut out[o..o + n], &x[i..i + n], w[k]);
        } else {
            add_sampled(&mut out[o..o + n], &x[i..], stride, w[k]);
        }
    });
}

crate::multiversion! {
    /// `out += w * x`.
    fn add_scaled<T: ConvElement>(out: &mut [T], x: &[T], w: T) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

crate::multiversion! {
    /// `out += w * x`, with every `stride`-th element of `x`.
    fn add_sampled<T: ConvElement>(out: &mut [T], x: &[T], stride: usize, w: T) {
        for (out, &x) in out.iter_mut().zip(x.iter().step_by(stride)) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

crate::multiversion! {
    /// Every `stride`-th element of `out += w * x`.
    fn add_spread<T: ConvElement>(out: &mut [T], x: &[T], stride: usize, w: T) {
        for (out, &x) in out.iter_mut().step_by(stride).zip(x) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

pub(super) fn backward_input<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    if let Some(windows) = small_windows(g)? {
        let w = cyclic(w, kernel)?;
        return windows.for_planes(g.batch * g.groups, &|channels| {
            let first = channels.start % g.groups;
            // SAFETY: each task has channels of its own.
            let (out, grad) = unsafe { planes_of((out, from), (grad, size), &channels) };
            columns_input(out, grad, &w, first, g.groups, &windows)
        });
    }
    for_channels(g, g.batch * g.groups, &|i| {
        let c = i % g.groups;
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(i * from..(i + 1) * from) };
        out.fill(T::default());
        channel_input(out, &grad[i * size..(i + 1) * size], &w[c * kernel..(c + 1) * kernel], g);
    });
    Ok(())
}

fn channel_input<T: ConvElement>(out: &mut [T], grad: &[T], w: &[T], g: &ConvGeometry) {
    let stride = g.stride[2];
    for_rows(g, |k, o, i, n| {
        if stride == 1 {
            add_scaled(&mut out[i..i + n], &grad[o..o + n], w[k]);
        } else {
            add_spread(&mut out[i..], &grad[o..o + n], stride, w[k]);
        }
    });
}

pub(super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    if let Some(windows) = small_windows(g)? {
        return parallel::try_for_range(g.groups, ROWS, &|channels| {
            let (at, end) = (channels.start, channels.end);
            // SAFETY: each task has channels of its own.
            let out = unsafe { out.slice(at * kernel..end * kernel) };
            let (grad, x) = (&grad[at * size..], &x[at * from..]);
            columns_weight(out, grad, x, kernel, g.groups, &windows)
        });
    }
    for_channels(g, g.groups, &|c| {
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(c * kernel..(c + 1) * kernel) };
        out.fill(T::default());
        for n in 0..g.batch {
            let i = n * g.groups + c;
            channel_weight(out, &grad[i * size..(i + 1) * size], &x[i * from..(i + 1) * from], g);
        }
    });
    Ok(())
}

fn channel_weight<T: ConvElement>(out: &mut [T], grad: &[T], x: &[T], g: &ConvGeometry) {
    let stride = g.stride[2];
    for_rows(g, |k, o, i, n| {
        let grad = &grad[o..o + n];
        let sum = if stride == 1 {
            dot_row(grad, &x[i..i + n])
        } else {
            dot_sampled(grad, &x[i..], stride)
        };
        out[k] = out[k].plus(sum);
    });
}

crate::multiversion! {
    fn dot_row<T: ConvElement>(a: &[T], b: &[T]) -> T {
        const LANES: usize = 16;
        let mut lanes = [T::default(); LANES];
        let (a_blocks, b_blocks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let (a_rest, b_rest) = (a_blocks.remainder(), b_blocks.remainder());
        for (a, b) in a_blocks.zip(b_blocks) {
            for l in 0..LANES {
                lanes[l] = a[l].mul_add_to(b[l], lanes[l]);
            }
        }
        for ((lane, &a), &b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
            *lane = a.mul_add_to(b, *lane);
        }
        let mut sum = T::default();
        for lane in lanes {
            sum = sum.plus(lane);
        }
        sum
    }
}

crate::multiversion! {
    fn dot_sampled<T: ConvElement>(a: &[T], b: &[T], stride: usize) -> T {
        let mut sum = T::default();
        for (&a, &b) in a.iter().zip(b.iter().step_by(stride)) {
            sum = a.mul_add_to(b, sum);
        }
        sum
    }
}
