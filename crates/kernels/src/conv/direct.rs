//! Convolution of stride 1 without a gathered matrix.
//!
//! In an input padded with zeros, the elements that meet kernel element `k` of channel `c` lie, for consecutive output
//! positions, at consecutive addresses: they are a row of the gathered matrix by shifting a pointer. So output positions
//! are counted along the padded input's rows, those that are no outputs are computed and dropped, and each tile of
//! (channels, positions) is summed in registers over all `(c, k)` in order. Each output is one such sum, whatever the
//! tiles and threads. (J. Zhang, F. Franchetti, T. M. Low: "High performance zero-memory overhead direct convolutions",
//! 2018, have the idea of the loops.)

use super::geometry::ConvGeometry;
use super::microkernel::Microkernel;
use super::{ConvElement, copy_row, tasks_of};
use crate::Result;
use crate::dense::SharedMut;
use crate::memory;
use crate::parallel;

/// Tiles of positions that share a block of weights while it is in the cache.
const TOGETHER: usize = 4;
/// Most elements of a tile.
const LARGEST: usize = 512;
/// The least part of computed positions that must be outputs for this way to pay.
const USEFUL: f64 = 0.5;

/// The weights of a convolution: as they are, or as the input's gradient sees them, channels exchanged and the kernel
/// reversed.
#[derive(Clone, Copy)]
pub(super) struct Weights<'w, T> {
    pub(super) data: &'w [T],
    pub(super) is_reversed: bool,
}

impl<'w, T> Weights<'w, T> {
    /// The kernel, in memory's order, between input channel `c` and output channel `o` of a group of `g`.
    pub(super) fn of(self, g: &ConvGeometry, group: usize, o: usize, c: usize) -> &'w [T] {
        self.kernels(g, group, o, c, g.kernel_size())
    }
    /// The `count` elements of the weights from the kernel between `c` and `o` on.
    pub(super) fn kernels(
        self,
        g: &ConvGeometry,
        group: usize,
        o: usize,
        c: usize,
        count: usize,
    ) -> &'w [T] {
        let pair = if self.is_reversed {
            (group * g.in_channels + c) * g.out_channels + o
        } else {
            (group * g.out_channels + o) * g.in_channels + c
        };
        &self.data[pair * g.kernel_size()..][..count]
    }
}

/// The convolution that makes the gradient of `g`'s input from that of its output, if one of stride 1 does.
pub(super) fn backward_input_geometry(g: &ConvGeometry) -> Option<ConvGeometry> {
    if g.stride != [1; 3] {
        return None;
    }
    let mut padding = [0; 3];
    for (d, padding) in padding.iter_mut().enumerate() {
        *padding = (g.dilation[d] * (g.kernel[d] - 1)).checked_sub(g.padding[d])?;
    }
    Some(ConvGeometry {
        in_channels: g.out_channels,
        out_channels: g.in_channels,
        input: g.output,
        output: g.input,
        padding,
        ..g.clone()
    })
}

/// The blocking of a direct convolution.
struct DirectLayout<T: 'static> {
    micro: &'static Microkernel<T>,
    /// Sizes of the padded input.
    padded: [usize; 3],
    /// Positions from the first output to the last, along the padded rows.
    positions: usize,
}

/// The best layout, if one computes enough outputs to pay.
fn layout<T: ConvElement>(g: &ConvGeometry) -> Option<DirectLayout<T>> {
    let outputs = g.output_size();
    if g.stride != [1; 3] || outputs == 0 || g.kernel_size() * g.in_channels < 8 {
        return None;
    }
    let padded: [usize; 3] = std::array::from_fn(|d| g.input[d] + 2 * g.padding[d]);
    let line = |d: usize, h: usize| (d * padded[1] + h) * padded[2];
    let positions = line(g.output[0] - 1, g.output[1] - 1) + g.output[2];
    let share = |micro: &Microkernel<T>| {
        let rows = g.out_channels as f64 / g.out_channels.next_multiple_of(micro.rows) as f64;
        rows * outputs as f64 / positions.next_multiple_of(micro.columns) as f64
    };
    let micro = T::microkernels().iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    (share(micro) >= USEFUL).then_some(DirectLayout { micro, padded, positions })
}

/// Whether a convolution is computed by this module.
pub(super) fn fits<T: ConvElement>(g: &ConvGeometry) -> bool {
    layout::<T>(g).is_some()
}

/// Convolves if this way [`fits`]; says whether it did.
pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<bool> {
    let Some(layout) = layout::<T>(g) else { return Ok(false) };
    let Microkernel { rows, columns, shifted, .. } = *layout.micro;
    let shifts = shifts(g, layout.padded)?;
    let packed = pack(weights, g, rows)?;
    let plane: usize = layout.padded.iter().product();
    let tiles = layout.positions.div_ceil(columns);
    let images = g.batch * g.groups;
    let strips = if images >= 2 * parallel::num_threads() { 1 } else { tiles.div_ceil(TOGETHER) };
    let each = tiles.div_ceil(strips);
    let outputs = g.output_size();
    let mut all_segments = memory::with_capacity(tiles)?;
    for tile in 0..tiles {
        all_segments.push(output_segments(tile * columns, columns, g, layout.padded)?);
    }
    let shared = SharedMut::new(out);
    let grain = tasks_of(each * columns * g.out_channels, shifts.len());
    parallel::try_for_range(images * strips, grain, &|tasks| {
        // The last tile reads past the last position.
        let mut padded = memory::filled(T::default(), g.in_channels * plane + columns)?;
        let (mut tile, mut filled) = ([T::default(); LARGEST], usize::MAX);
        for task in tasks {
            let (image, strip) = (task / strips, task % strips);
            if filled != image {
                let size = g.in_channels * g.input_size();
                pad(&mut padded, &x[image * size..(image + 1) * size], g, layout.padded);
                filled = image;
            }
            let last = tiles.min((strip + 1) * each);
            for first in (strip * each..last).step_by(TOGETHER) {
                for block in 0..g.out_channels.div_ceil(rows) {
                    let count = rows.min(g.out_channels - block * rows);
                    let channel = image % g.groups * g.out_channels + block * rows;
                    let weights = &packed[(image % g.groups * g.out_channels.div_ceil(rows)
                        + block)
                        * shifts.len()
                        * rows..];
                    let these = first..last.min(first + TOGETHER);
                    for (number, segments) in these.clone().zip(&all_segments[these]) {
                        let start = number * columns;
                        // SAFETY: every shift stays a tile short of the end of `padded`; weights are packed in such
                        // blocks; a tile has `rows * columns` elements.
                        unsafe {
                            let x = padded.as_ptr().add(start);
                            shifted(&shifts, x, weights.as_ptr(), tile.as_mut_ptr());
                        }
                        for r in 0..count {
                            let at = (image * g.out_channels + block * rows + r) * outputs;
                            // SAFETY: tiles own disjoint positions of a channel.
                            let out = unsafe { shared.slice(at..at + outputs) };
                            let values = &tile[r * columns..(r + 1) * columns];
                            let bias = bias.map(|bias| bias[channel + r]);
                            store(out, values, segments, bias);
                        }
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(true)
}

/// The distances from an output's position to the elements that it sums, in the weights' order.
pub(super) fn shifts(g: &ConvGeometry, padded: [usize; 3]) -> Result<Vec<usize>> {
    let plane: usize = padded.iter().product();
    let mut shifts = memory::with_capacity(g.in_channels * g.kernel_size())?;
    for c in 0..g.in_channels {
        for d in 0..g.kernel[0] {
            for h in 0..g.kernel[1] {
                for w in 0..g.kernel[2] {
                    let line = d * g.dilation[0] * padded[1] + h * g.dilation[1];
                    shifts.push(c * plane + line * padded[2] + w * g.dilation[2]);
                }
            }
        }
    }
    Ok(shifts)
}

/// The weights in blocks of `rows` output channels, those of a block side by side, zeros after the last channel.
fn pack<T: ConvElement>(weights: Weights<'_, T>, g: &ConvGeometry, rows: usize) -> Result<Vec<T>> {
    let (kernel, blocks) = (g.kernel_size(), g.out_channels.div_ceil(rows));
    let depth = g.in_channels * kernel;
    let mut packed = memory::filled(T::default(), g.groups * blocks * depth * rows)?;
    for group in 0..g.groups {
        for o in 0..g.out_channels {
            let start = (group * blocks + o / rows) * depth * rows + o % rows;
            for c in 0..g.in_channels {
                for (k, &weight) in weights.of(g, group, o, c).iter().enumerate() {
                    let k = if weights.is_reversed { kernel - 1 - k } else { k };
                    packed[start + (c * kernel + k) * rows] = weight;
                }
            }
        }
    }
    Ok(packed)
}

/// Copies an image into the middle of the padded one, whose border is zero and stays so.
pub(super) fn pad<T: ConvElement>(padded: &mut [T], x: &[T], g: &ConvGeometry, sizes: [usize; 3]) {
    let [_, height, width] = g.input;
    let plane: usize = sizes.iter().product();
    for (line, row) in x.chunks_exact(width.max(1)).enumerate() {
        let (channel, line) = (line / (g.input[0] * height), line % (g.input[0] * height));
        let (d, h) = (line / height + g.padding[0], line % height + g.padding[1]);
        let at = channel * plane + (d * sizes[1] + h) * sizes[2] + g.padding[2];
        copy_row(&mut padded[at..at + width], row);
    }
}

/// A segment of a tile's row whose values are outputs that lie side by side in the result.
struct OutputSegment {
    /// Where the segment begins in the row.
    from: usize,
    /// Where the segment begins in the channel's outputs.
    to: usize,
    count: usize,
}

/// The outputs in the tile whose first value belongs to position `start`.
fn output_segments(
    start: usize,
    columns: usize,
    g: &ConvGeometry,
    padded: [usize; 3],
) -> Result<Vec<OutputSegment>> {
    let [depth, height, width] = g.output;
    let mut segments = Vec::new();
    let mut from = 0;
    while from < columns {
        let position = start + from;
        let (line, w) = (position / padded[2], position % padded[2]);
        let (d, h) = (line / padded[1], line % padded[1]);
        if d >= depth {
            break;
        }
        if h < height && w < width {
            let count = (width - w).min(columns - from);
            memory::push(
                &mut segments,
                OutputSegment { from, to: (d * height + h) * width + w, count },
            )?;
        }
        from += padded[2] - w;
    }
    Ok(segments)
}

/// Writes the outputs of a row of a tile.
fn store<T: ConvElement>(out: &mut [T], values: &[T], segments: &[OutputSegment], bias: Option<T>) {
    for segment in segments {
        let out = &mut out[segment.to..segment.to + segment.count];
        let values = &values[segment.from..segment.from + segment.count];
        match bias {
            None => copy_row(out, values),
            Some(bias) => {
                for (out, value) in out.iter_mut().zip(values) {
                    *out = value.plus(bias);
                }
            }
        }
    }
}
