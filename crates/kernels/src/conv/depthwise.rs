//! Depthwise convolution: one input and one output channel per group, so there is nothing to
//! multiply as matrices; each kernel element scales a shifted row.

use super::Number;
use super::geometry::Geometry;
use crate::dense::{SharedMut, vectorised};
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

vectorised! {
    fn channel_forward<T: Number>(out: &mut [T], x: &[T], w: &[T], g: &Geometry) {
        let stride = g.stride[2];
        for_rows(g, |k, o, i, n| {
            let (out, w) = (&mut out[o..o + n], w[k]);
            if stride == 1 {
                for (out, &x) in out.iter_mut().zip(&x[i..i + n]) {
                    *out = x.mul_add_to(w, *out);
                }
            } else {
                for (out, &x) in out.iter_mut().zip(x[i..].iter().step_by(stride)) {
                    *out = x.mul_add_to(w, *out);
                }
            }
        });
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

vectorised! {
    fn channel_input<T: Number>(out: &mut [T], grad: &[T], w: &[T], g: &Geometry) {
        let stride = g.stride[2];
        for_rows(g, |k, o, i, n| {
            let (grad, w) = (&grad[o..o + n], w[k]);
            if stride == 1 {
                for (out, &grad) in out[i..i + n].iter_mut().zip(grad) {
                    *out = grad.mul_add_to(w, *out);
                }
            } else {
                for (out, &grad) in out[i..].iter_mut().step_by(stride).zip(grad) {
                    *out = grad.mul_add_to(w, *out);
                }
            }
        });
    }
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

vectorised! {
    fn channel_weight<T: Number>(out: &mut [T], grad: &[T], x: &[T], g: &Geometry) {
        const LANES: usize = 16;
        let stride = g.stride[2];
        for_rows(g, |k, o, i, n| {
            let (grad, x) = (&grad[o..o + n], &x[i..]);
            let mut lanes = [T::default(); LANES];
            if stride == 1 {
                for (grad, x) in grad.chunks(LANES).zip(x[..n].chunks(LANES)) {
                    for ((lane, &grad), &x) in lanes.iter_mut().zip(grad).zip(x) {
                        *lane = grad.mul_add_to(x, *lane);
                    }
                }
            } else {
                for (&grad, &x) in grad.iter().zip(x.iter().step_by(stride)) {
                    lanes[0] = grad.mul_add_to(x, lanes[0]);
                }
            }
            out[k] = lanes.iter().fold(out[k], |sum, &lane| sum.plus(lane));
        });
    }
}
