//! Depthwise convolution: one input and one output channel per group, so there is nothing to
//! multiply as matrices; each kernel element scales a shifted row.

use super::Number;
use super::geometry::Geometry;
use crate::dense::SharedMut;
use crate::parallel;

/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 13;

/// For every kernel element and output row inside the input: `work(k, output row start, input row
/// start, length)`; the starts are of the first valid output and its input.
#[inline(always)]
fn for_rows(g: &Geometry, mut work: impl FnMut(usize, usize, usize, usize)) {
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

fn for_channels(g: &Geometry, channels: usize, work: &(dyn Fn(usize) + Sync)) {
    let size = (g.output_size() * g.kernel_size()).max(1);
    parallel::for_range(channels, (GRAIN / size).max(1), &|range| range.for_each(work));
}

pub(super) fn forward<T: Number>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &Geometry,
) {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    for_channels(g, g.batch * g.groups, &|i| {
        let c = i % g.groups;
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(i * size..(i + 1) * size) };
        out.fill(bias.map_or(T::default(), |b| b[c]));
        channel_forward(out, &x[i * from..(i + 1) * from], &w[c * kernel..(c + 1) * kernel], g);
    });
}

fn channel_forward<T: Number>(out: &mut [T], x: &[T], w: &[T], g: &Geometry) {
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
    fn add_scaled<T: Number>(out: &mut [T], x: &[T], w: T) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

crate::multiversion! {
    /// `out += w * x`, with every `stride`-th element of `x`.
    fn add_sampled<T: Number>(out: &mut [T], x: &[T], stride: usize, w: T) {
        for (out, &x) in out.iter_mut().zip(x.iter().step_by(stride)) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

crate::multiversion! {
    /// Every `stride`-th element of `out += w * x`.
    fn add_spread<T: Number>(out: &mut [T], x: &[T], stride: usize, w: T) {
        for (out, &x) in out.iter_mut().step_by(stride).zip(x) {
            *out = x.mul_add_to(w, *out);
        }
    }
}

pub(super) fn backward_input<T: Number>(out: &mut [T], grad: &[T], w: &[T], g: &Geometry) {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    for_channels(g, g.batch * g.groups, &|i| {
        let c = i % g.groups;
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(i * from..(i + 1) * from) };
        out.fill(T::default());
        channel_input(out, &grad[i * size..(i + 1) * size], &w[c * kernel..(c + 1) * kernel], g);
    });
}

fn channel_input<T: Number>(out: &mut [T], grad: &[T], w: &[T], g: &Geometry) {
    let stride = g.stride[2];
    for_rows(g, |k, o, i, n| {
        if stride == 1 {
            add_scaled(&mut out[i..i + n], &grad[o..o + n], w[k]);
        } else {
            add_spread(&mut out[i..], &grad[o..o + n], stride, w[k]);
        }
    });
}

pub(super) fn backward_weight<T: Number>(out: &mut [T], grad: &[T], x: &[T], g: &Geometry) {
    let (size, from, kernel) = (g.output_size(), g.input_size(), g.kernel_size());
    let out = SharedMut::new(out);
    for_channels(g, g.groups, &|c| {
        // SAFETY: one task per channel.
        let out = unsafe { out.slice(c * kernel..(c + 1) * kernel) };
        out.fill(T::default());
        for n in 0..g.batch {
            let i = n * g.groups + c;
            channel_weight(out, &grad[i * size..(i + 1) * size], &x[i * from..(i + 1) * from], g);
        }
    });
}

fn channel_weight<T: Number>(out: &mut [T], grad: &[T], x: &[T], g: &Geometry) {
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
    fn dot_row<T: Number>(a: &[T], b: &[T]) -> T {
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
    fn dot_sampled<T: Number>(a: &[T], b: &[T], stride: usize) -> T {
        let mut sum = T::default();
        for (&a, &b) in a.iter().zip(b.iter().step_by(stride)) {
            sum = a.mul_add_to(b, sum);
        }
        sum
    }
}
