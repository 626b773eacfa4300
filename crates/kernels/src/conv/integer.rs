//! Convolution of integers, wrapping: one loop over the kernel for each pair of channels.
//!
//! All types compute in `i64`; what a narrower type keeps of that is what its own wrapping arithmetic gives.

use super::geometry::ConvGeometry;
use crate::dense::SharedMut;
use crate::parallel;

/// Multiply-adds worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// `out = bias + sum over channels of the cross-correlation of x with w`, for the arguments of `super::convolution`.
pub(super) fn forward(
    out: &mut [i64],
    x: &[i64],
    w: &[i64],
    bias: Option<&[i64]>,
    g: &ConvGeometry,
) {
    let (size, from, taps) = (g.output_size(), g.input_size(), g.kernel_size());
    let channels = g.groups * g.out_channels;
    let work = (size * g.in_channels).saturating_mul(taps).max(1);
    let out = SharedMut::new(out);
    parallel::for_range(g.batch * channels, (GRAIN / work).max(1), &|range| {
        for plane in range {
            let (n, o) = (plane / channels, plane % channels);
            // SAFETY: one task per plane.
            let out = unsafe { out.slice(plane * size..(plane + 1) * size) };
            out.fill(bias.map_or(0, |bias| bias[o]));
            for c in 0..g.in_channels {
                let input = (n * g.groups + o / g.out_channels) * g.in_channels + c;
                let weight = (o * g.in_channels + c) * taps;
                let x = &x[input * from..(input + 1) * from];
                add_plane(out, x, &w[weight..weight + taps], g);
            }
        }
    });
}

/// The transpose of [`forward`]: `out`, of the input's shape, is `bias` and what each value of `x`, of the output's shape, adds
/// to the window that it was the sum of.
pub(super) fn transposed(
    out: &mut [i64],
    x: &[i64],
    w: &[i64],
    bias: Option<&[i64]>,
    g: &ConvGeometry,
) {
    let (size, from, taps) = (g.input_size(), g.output_size(), g.kernel_size());
    let channels = g.groups * g.in_channels;
    let work = (from * g.out_channels).saturating_mul(taps).max(1);
    let out = SharedMut::new(out);
    parallel::for_range(g.batch * channels, (GRAIN / work).max(1), &|range| {
        for plane in range {
            let (n, c) = (plane / channels, plane % channels);
            // SAFETY: one task per plane.
            let out = unsafe { out.slice(plane * size..(plane + 1) * size) };
            out.fill(bias.map_or(0, |bias| bias[c]));
            for o in 0..g.out_channels {
                let channel = c / g.in_channels * g.out_channels + o;
                let input = n * g.groups * g.out_channels + channel;
                let weight = (channel * g.in_channels + c % g.in_channels) * taps;
                let x = &x[input * from..(input + 1) * from];
                scatter_plane(out, x, &w[weight..weight + taps], g);
            }
        }
    });
}

/// Adds the products of one input channel to one output channel.
fn add_plane(out: &mut [i64], x: &[i64], w: &[i64], g: &ConvGeometry) {
    each_product(w, g, |at_output, at_input, w| {
        out[at_output] = out[at_output].wrapping_add(x[at_input].wrapping_mul(w));
    });
}

/// Adds to one input channel the gradients that flow to it from one output channel.
fn scatter_plane(out: &mut [i64], x: &[i64], w: &[i64], g: &ConvGeometry) {
    each_product(w, g, |at_output, at_input, w| {
        out[at_input] = out[at_input].wrapping_add(x[at_output].wrapping_mul(w));
    });
}

/// Calls `product` with the index in the output plane, the index in the input plane and the weight of every product.
#[inline(always)]
fn each_product(w: &[i64], g: &ConvGeometry, mut product: impl FnMut(usize, usize, i64)) {
    let input_index =
        |first: isize, o: usize, dim: usize| (first + (o * g.stride[dim]) as isize) as usize;
    for (k, &w) in w.iter().enumerate() {
        let (kh, kw) = (k / g.kernel[2] % g.kernel[1], k % g.kernel[2]);
        let (depths, first_d) = g.inside(0, k / g.kernel[2] / g.kernel[1]);
        let (rows, first_h) = g.inside(1, kh);
        let (columns, first_w) = g.inside(2, kw);
        for d in depths {
            for h in rows.clone() {
                let line = (d * g.output[1] + h) * g.output[2];
                let from = (input_index(first_d, d, 0) * g.input[1] + input_index(first_h, h, 1))
                    * g.input[2];
                for c in columns.clone() {
                    product(line + c, from + input_index(first_w, c, 2), w);
                }
            }
        }
    }
}
