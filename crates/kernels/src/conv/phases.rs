//! The gradient of the input of a convolution with steps, which is the transposed convolution, as convolutions of stride 1.
//!
//! The inputs at one remainder of division by the stride, a phase, meet the elements of the kernel
//! at one other remainder only: `x[s i + a] = sum over k = k0 + s m of w[k] grad[i + q - m]` with
//! `k0 = (a + padding) mod s` and `q = (a + padding) div s`. So each phase is the input's gradient
//! of a convolution of stride 1 with a part of the kernel, without a matrix whose columns would
//! have to be added up (W. Shi et al.: "Is the deconvolution layer the same as a convolutional
//! layer?", 2016).

use super::geometry::ConvGeometry;
use super::{ConvElement, backward_input_by_sums};
use crate::dense::SharedMut;
use crate::{Result, memory, parallel};

/// The most phases for which this way pays: with more, each has too little to do.
const MOST: usize = 16;
/// Fewest channels of a group on either side, for which convolutions of stride 1 have a way of their own.
const CHANNELS: usize = 16;
/// Elements of the result that are worth a thread of their own.
const GRAIN: usize = 1 << 14;

/// Whether this way pays.
pub(super) fn fits(g: &ConvGeometry) -> bool {
    let phases = g.stride.iter().fold(1_usize, |n, &s| n.saturating_mul(s));
    (2..=MOST).contains(&phases)
        && g.dilation == [1; 3]
        && g.in_channels.min(g.out_channels) >= CHANNELS
        && g.output_size() > 0
        && g.input_size() > 0
        && g.batch > 0
}

/// One phase of one dimension.
#[derive(Clone, Copy)]
struct Phase {
    /// The first input of the phase, and how many there are.
    first: usize,
    count: usize,
    /// The first element of the kernel that the phase meets, and how many there are.
    element: usize,
    elements: usize,
    /// Where the first input stands in the whole gradient of the phase.
    offset: usize,
}

impl Phase {
    fn new(g: &ConvGeometry, dim: usize, first: usize) -> Phase {
        let (stride, kernel) = (g.stride[dim], g.kernel[dim]);
        let element = (first + g.padding[dim]) % stride;
        Phase {
            first,
            count: g.input[dim].saturating_sub(first).div_ceil(stride),
            element,
            elements: kernel.saturating_sub(element).div_ceil(stride),
            offset: (first + g.padding[dim]) / stride,
        }
    }
}

/// The gradient of the input.
pub(super) fn backward_input<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    let (mut part, mut weights) = (Vec::new(), Vec::new());
    let [_, height, width] = g.stride;
    for phase in 0..g.stride.iter().product::<usize>() {
        let first = [phase / (height * width), phase / width % height, phase % width];
        let phase: [Phase; 3] = std::array::from_fn(|d| Phase::new(g, d, first[d]));
        if phase.iter().any(|p| p.count == 0) {
            continue;
        }
        let of_phase = ConvGeometry {
            input: std::array::from_fn(|d| (g.output[d] + phase[d].elements).saturating_sub(1)),
            kernel: phase.map(|p| p.elements),
            stride: [1; 3],
            padding: [0; 3],
            ..g.clone()
        };
        if of_phase.kernel_size() > 0 {
            let planes = g.batch * g.groups * g.in_channels;
            memory::resize(&mut part, planes * of_phase.input_size(), T::default())?;
            take_elements(&mut weights, w, g, &phase)?;
            backward_input_by_sums(&mut part, grad, &weights, &of_phase)?;
        }
        spread(out, &part, (g, &of_phase), &phase);
    }
    Ok(())
}

/// The elements of each kernel that a phase meets.
fn take_elements<T: ConvElement>(
    to: &mut Vec<T>,
    w: &[T],
    g: &ConvGeometry,
    phase: &[Phase; 3],
) -> Result<()> {
    to.clear();
    let elements: usize = phase.iter().map(|p| p.elements).product();
    memory::reserve(to, w.len() / g.kernel_size() * elements)?;
    let at = |d: usize, k: usize| phase[d].element + k * g.stride[d];
    for kernel in w.chunks_exact(g.kernel_size()) {
        for kd in 0..phase[0].elements {
            for kh in 0..phase[1].elements {
                let row = (at(0, kd) * g.kernel[1] + at(1, kh)) * g.kernel[2];
                to.extend((0..phase[2].elements).map(|kw| kernel[row + at(2, kw)])); // bounded: as reserved
            }
        }
    }
    Ok(())
}

/// Writes a phase's inputs to their positions; those that no gradient reaches are zero.
fn spread<T: ConvElement>(
    out: &mut [T],
    part: &[T],
    (g, of_phase): (&ConvGeometry, &ConvGeometry),
    phase: &[Phase; 3],
) {
    let (size, from) = (g.input_size(), of_phase.input_size());
    let is_reached = of_phase.kernel_size() > 0;
    let [depths, rows, columns] = of_phase.input;
    let shared = SharedMut::new(out);
    let planes = g.batch * g.groups * g.in_channels;
    parallel::for_range(planes, (GRAIN / size).max(1), &|range| {
        for plane in range {
            // SAFETY: one task for each plane.
            let out = unsafe { shared.slice(plane * size..(plane + 1) * size) };
            for d in 0..phase[0].count {
                for h in 0..phase[1].count {
                    let line = (phase[0].first + d * g.stride[0]) * g.input[1];
                    let line = (line + phase[1].first + h * g.stride[1]) * g.input[2];
                    let to = &mut out[line + phase[2].first..line + g.input[2]];
                    let (d, h) = (d + phase[0].offset, h + phase[1].offset);
                    let row = if is_reached && d < depths && h < rows {
                        let row = plane * from + (d * rows + h) * columns;
                        part[row..row + columns].get(phase[2].offset..).unwrap_or(&[])
                    } else {
                        &[]
                    };
                    match g.stride[2] {
                        1 => spread_row::<T, 1>(to, row, 1),
                        2 => spread_row::<T, 2>(to, row, 2),
                        stride => spread_row::<T, 0>(to, row, stride),
                    }
                }
            }
        }
    });
}

/// `to[j * stride] = row[j]`, or zero past its end; `S` is the stride, or 0 if it is not a constant.
#[inline(always)]
fn spread_row<T: ConvElement, const S: usize>(to: &mut [T], row: &[T], stride: usize) {
    let mut places = to.iter_mut().step_by(if S == 0 { stride } else { S });
    // (In this order the end of the row needs no case of its own.)
    for (&value, to) in row.iter().zip(places.by_ref()) {
        *to = value;
    }
    places.for_each(|to| *to = T::default());
}
