//! Convolution as matrix products whose gathered matrix is never made.
//!
//! With the channels of an image side by side (and zeros around it), what output position `p` meets at kernel element `k`
//! is one run of channels, at `base(p) + shift(k)`; undilated, the runs of a row of the kernel lie side by side and are one.
//! Forward, a tile of (positions, output channels) sums over all runs against weights packed once; the weight's gradient, a
//! tile of (output channels, part of a run), sums over all positions. Any stride and dilation fit. Each sum runs in one
//! order, whatever the tiles and threads.

use super::direct::Weights;
use super::geometry::ConvGeometry;
use super::microkernel::{HasMicrokernels, Microkernel};
use super::{ConvElement, WORTH_A_TASK, cost, tasks_of};
use crate::Result;
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::interrupt::WorkCounter;
use crate::memory;
use crate::parallel;
use std::ops::Range;

/// Positions of all images of a block together that there should be at least.
const POSITIONS: usize = 192;
/// Elements of a run that are summed over at a time, so that a block of weights stays in the cache.
const DEPTH: usize = 512;
/// Fewest elements of a run, and fewest output channels, for which this way pays.
const CHANNELS: usize = 16;
/// The least part of a tile that must be filled on average for this way to pay.
const USEFUL: f64 = 0.6;
/// Most elements of a tile.
const LARGEST: usize = 512;

/// The loop that fills its tiles best with `rows` and `columns` that come in so many.
pub(super) fn best_microkernel<T: ConvElement>(
    rows: Option<usize>,
    columns: usize,
) -> Option<Microkernel<T>> {
    let part = |n: usize, size: usize| n as f64 / n.next_multiple_of(size) as f64;
    let share =
        |m: &Microkernel<T>| rows.map_or(1.0, |n| part(n, m.rows)) * part(columns, m.columns);
    let micro = *<T as HasMicrokernels>::microkernels()
        .iter()
        .max_by(|a, b| share(a).total_cmp(&share(b)))?;
    (share(&micro) >= USEFUL).then_some(micro)
}

/// Images with the channels side by side, in the middle of zeros.
struct ChannelsLastImages<T> {
    data: Vec<T>,
    /// Where the outputs' positions begin, image after image.
    bases: Vec<usize>,
    padded: [usize; 3],
}

impl<T: ConvElement> ChannelsLastImages<T> {
    /// Allocates room for up to `count` images; reads may go `slack` elements past the last.
    fn new(g: &ConvGeometry, count: usize, slack: usize) -> Result<ChannelsLastImages<T>> {
        let padded: [usize; 3] = std::array::from_fn(|d| g.input[d] + 2 * g.padding[d]);
        let size = padded.iter().product::<usize>() * g.in_channels;
        let mut bases = memory::with_capacity(count * g.output_size())?;
        for image in 0..count {
            for d in 0..g.output[0] {
                for h in 0..g.output[1] {
                    for w in 0..g.output[2] {
                        let line = d * g.stride[0] * padded[1] + h * g.stride[1];
                        let position = line * padded[2] + w * g.stride[2];
                        bases.push(image * size + position * g.in_channels);
                    }
                }
            }
        }
        Ok(ChannelsLastImages {
            data: memory::filled(T::default(), count * size + slack)?,
            bases,
            padded,
        })
    }

    /// Copies the channels of a group of some images into these.
    fn fill(&mut self, x: &[T], images: &Range<usize>, group: usize, g: &ConvGeometry) {
        let (channels, inputs, size) = (g.in_channels, g.input_size(), size_of::<T>() as isize);
        let [depth, height, width] = g.input;
        let whole = self.padded.iter().product::<usize>() * channels;
        for (image, n) in images.clone().enumerate() {
            let x = &x[(n * g.groups + group) * channels * inputs..][..channels * inputs];
            for line in 0..depth * height {
                let (d, h) = (line / height + g.padding[0], line % height + g.padding[1]);
                let position = (d * self.padded[1] + h) * self.padded[2] + g.padding[2];
                let row = &mut self.data[image * whole + position * channels..][..width * channels];
                let strides = (channels as isize * size, inputs as isize * size);
                let from = x[line * width..].as_ptr().cast();
                // SAFETY: a row has `width` runs of `channels` elements; a channel's row has `width` elements.
                unsafe {
                    copy_tile::<T, false>(
                        row.as_mut_ptr().cast(),
                        from,
                        strides,
                        (channels, width),
                    );
                }
            }
        }
    }

    /// The distances from a position's base to the runs that it meets, in the order of the kernel's
    /// elements.
    fn shifts(&self, g: &ConvGeometry) -> Result<Vec<usize>> {
        let mut shifts = memory::with_capacity(g.kernel_size())?;
        for d in 0..g.kernel[0] {
            for h in 0..g.kernel[1] {
                for w in (0..g.kernel[2]).step_by(joined(g)) {
                    let line = d * g.dilation[0] * self.padded[1] + h * g.dilation[1];
                    shifts.push((line * self.padded[2] + w * g.dilation[2]) * g.in_channels);
                }
            }
        }
        Ok(shifts)
    }
}

/// How many kernel elements share a run.
fn joined(g: &ConvGeometry) -> usize {
    if g.dilation[2] == 1 { g.kernel[2].max(1) } else { 1 }
}

/// How many images are worked on together.
fn together(g: &ConvGeometry) -> usize {
    POSITIONS.div_ceil(g.output_size().max(1)).clamp(1, g.batch.max(1))
}

/// Whether a convolution is computed by this module.
pub(super) fn fits<T: ConvElement>(g: &ConvGeometry) -> bool {
    // Few channels are better read in shifted rows, where there are such rows.
    let run = joined(g) * g.in_channels;
    let least = if g.stride == [1; 3] { g.in_channels } else { run };
    least.min(g.out_channels) >= CHANNELS
        && g.batch * g.output_size() > 0
        && best_microkernel::<T>(None, g.out_channels).is_some()
}

/// Convolves if this way [`fits`]; says whether it did.
pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<bool> {
    let (outputs, run) = (g.output_size(), joined(g) * g.in_channels);
    let images = together(g);
    let Some(micro) = best_microkernel::<T>(None, g.out_channels) else { return Ok(false) };
    let packed = pack(weights, g, micro.columns)?;
    let blocks = g.out_channels.div_ceil(micro.columns);
    let depth = g.in_channels * g.kernel_size();
    let channels = g.groups * g.out_channels;
    let shared = SharedMut::new(out);
    let grain = tasks_of(images * outputs * g.out_channels, depth);
    parallel::try_for_range(g.batch.div_ceil(images) * g.groups, grain, &|tasks| {
        let mut input = ChannelsLastImages::new(g, images, 0)?;
        let shifts = input.shifts(g)?;
        // Positions that fill the last tile are computed and dropped.
        let whole = input.bases.len().next_multiple_of(micro.rows);
        let filler = std::iter::repeat_n(0, whole - input.bases.len());
        let bases = memory::collect(input.bases.iter().copied().chain(filler))?;
        let mut sums = memory::filled(T::default(), bases.len() * micro.columns)?;
        let mut pace = WorkCounter::new();
        for task in tasks {
            let (first, group) = (task / g.groups * images, task % g.groups);
            let own = first..g.batch.min(first + images);
            input.fill(x, &own, group, g);
            let positions = own.len() * outputs;
            for block in 0..blocks {
                sums.fill(T::default());
                let weights = &packed[(group * blocks + block) * depth * micro.columns..];
                for (k, shift) in shifts.iter().enumerate() {
                    for c in (0..run).step_by(DEPTH) {
                        let depth = DEPTH.min(run - c);
                        pace.spend(positions * depth);
                        let weights = weights[(k * run + c) * micro.columns..].as_ptr();
                        for tile in 0..positions.div_ceil(micro.rows) {
                            let at = tile * micro.rows;
                            // SAFETY: bases and shifts lead to runs inside the images; weights are packed in such
                            // blocks; the sums have whole tiles.
                            unsafe {
                                let x = input.data.as_ptr().add(shift + c);
                                let sums = sums.as_mut_ptr().add(at * micro.columns);
                                (micro.spans)(&bases[at..at + micro.rows], x, weights, depth, sums);
                            }
                        }
                    }
                }
                let start = group * g.out_channels + block * micro.columns;
                let count = micro.columns.min(g.out_channels - block * micro.columns);
                for (image, n) in own.clone().enumerate() {
                    let at = (n * channels + start) * outputs;
                    // SAFETY: each task owns these channels of its images.
                    let out = unsafe { shared.slice(at..at + count * outputs) };
                    let sums = &sums[image * outputs * micro.columns..];
                    store(out, sums, micro.columns, (outputs, count));
                    if let Some(bias) = bias {
                        super::im2col_gemm::add_bias(out, &bias[start..][..count], outputs);
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(true)
}

/// Transposes (positions, columns) sums into (channels, positions) outputs.
fn store<T: ConvElement>(
    out: &mut [T],
    sums: &[T],
    columns: usize,
    (positions, channels): (usize, usize),
) {
    let size = size_of::<T>() as isize;
    let strides = (positions as isize * size, columns as isize * size);
    let (to, from) = (out.as_mut_ptr().cast(), sums.as_ptr().cast());
    // SAFETY: `channels` rows of `positions` outputs; as many rows of `columns` sums as positions.
    unsafe { copy_tile::<T, false>(to, from, strides, (positions, channels)) };
}

/// Input channels of the weights that are transposed at a time.
const CHANNELS_TRANSPOSED: usize = 16;

/// The weights in blocks of `columns` output channels side by side, zeros after the last channel; within a block by kernel
/// element, then channel.
fn pack<T: ConvElement>(
    weights: Weights<'_, T>,
    g: &ConvGeometry,
    columns: usize,
) -> Result<Vec<T>> {
    let (kernel, blocks) = (g.kernel_size(), g.out_channels.div_ceil(columns));
    let (inputs, size) = (g.in_channels, size_of::<T>() as isize);
    let depth = inputs * kernel;
    let mut packed = memory::filled(T::default(), g.groups * blocks * depth * columns)?;
    let shared = SharedMut::new(&mut packed);
    parallel::try_for_range(g.groups * blocks, tasks_of(depth * columns, 0), &|tasks| {
        let mut rows = memory::filled(
            T::default(),
            if weights.is_reversed { 0 } else { CHANNELS_TRANSPOSED * kernel * columns },
        )?;
        for task in tasks {
            let (group, first) = (task / blocks, task % blocks * columns);
            let count = columns.min(g.out_channels - first);
            // SAFETY: one block each.
            let to = unsafe { shared.slice(task * depth * columns..(task + 1) * depth * columns) };
            if weights.is_reversed {
                // Memory holds the kernels of one input channel side by side; their elements come in reverse.
                let strides = (-((inputs * columns) as isize * size), kernel as isize * size);
                for c in 0..inputs {
                    let from = weights.kernels(g, group, first, c, count * kernel).as_ptr().cast();
                    let to = to[((kernel - 1) * inputs + c) * columns..].as_mut_ptr().cast();
                    // SAFETY: `count` kernels; for each of their elements a run of `columns`.
                    unsafe { copy_tile::<T, false>(to, from, strides, (count, kernel)) };
                }
                continue;
            }
            // Memory holds the kernels of one output channel side by side.
            for c in (0..inputs).step_by(CHANNELS_TRANSPOSED) {
                let run = CHANNELS_TRANSPOSED.min(inputs - c) * kernel;
                let strides = (columns as isize * size, depth as isize * size);
                let last = (count - 1) * depth + run;
                let from = weights.kernels(g, group, first, c, last).as_ptr().cast();
                // SAFETY: `count` runs of so many elements; as many rows of `columns`.
                unsafe {
                    copy_tile::<T, false>(rows.as_mut_ptr().cast(), from, strides, (count, run));
                };
                for (at, row) in rows.chunks_exact(columns).take(run).enumerate() {
                    let start = ((at % kernel) * inputs + c + at / kernel) * columns;
                    to[start..start + count].copy_from_slice(&row[..count]);
                }
            }
        }
        Ok(())
    })?;
    Ok(packed)
}

/// Whether the weight's gradient is computed by this module.
pub(super) fn fits_weight<T: ConvElement>(g: &ConvGeometry) -> bool {
    let run = joined(g) * g.in_channels;
    run.min(g.out_channels) >= CHANNELS
        && g.output_size() > 0
        && best_microkernel::<T>(Some(g.out_channels), run).is_some()
}

/// The weight's gradient if this way fits ([`fits_weight`]); says whether it did.
pub(super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<bool> {
    let (outputs, run) = (g.output_size(), joined(g) * g.in_channels);
    let Some(micro) = best_microkernel::<T>(Some(g.out_channels), run) else { return Ok(false) };
    let (rows, columns, images) = (micro.rows, micro.columns, together(g));
    let (row_blocks, column_blocks) = (g.out_channels.div_ceil(rows), run.div_ceil(columns));
    let shared = SharedMut::new(out);
    let each = row_blocks_each(row_blocks, g);
    let parts = row_blocks.div_ceil(each);
    let (sums, products) = weight_work(each * rows, g);
    parallel::try_for_range(g.groups * parts, tasks_of(sums, products), &|tasks| {
        let mut input = ChannelsLastImages::new(g, images, columns)?;
        let shifts = input.shifts(g)?;
        let mut packed = memory::filled(T::default(), images * outputs * rows)?;
        let (size, tiles) = (rows * columns, shifts.len() * column_blocks);
        let mut sums = memory::filled(T::default(), each * tiles * size)?;
        let mut lines = memory::filled(T::default(), shifts.len() * run)?;
        let mut pace = WorkCounter::new();
        for task in tasks {
            let (group, first) = (task / parts, task % parts * each);
            let own = first..row_blocks.min(first + each);
            let mut tile = [T::default(); LARGEST];
            for first in (0..g.batch).step_by(images) {
                let these = first..g.batch.min(first + images);
                input.fill(x, &these, group, g);
                let positions = these.len() * outputs;
                let mut target = sums.chunks_exact_mut(size);
                for block in own.clone() {
                    pack_gradients(&mut packed, grad, (group, block), &these, (rows, g));
                    for shift in &shifts {
                        for column in 0..column_blocks {
                            pace.spend(positions * rows);
                            let Some(target) = target.next() else { return Ok(()) };
                            let to = if first == 0 { &mut *target } else { &mut tile[..size] };
                            // SAFETY: bases and shifts lead to runs inside the images, of which the last may be
                            // exceeded by a tile's columns; the gradients are packed for as many positions.
                            unsafe {
                                let x = input.data.as_ptr().add(shift + column * columns);
                                let (bases, grads) = (&input.bases[..positions], packed.as_ptr());
                                (micro.shifted)(bases, x, grads, to.as_mut_ptr());
                            }
                            if first > 0 {
                                let values = target.iter_mut().zip(&tile);
                                values.for_each(|(sum, value)| *sum = sum.plus(*value));
                            }
                        }
                    }
                }
            }
            for (block, sums) in own.zip(sums.chunks_exact(tiles * size)) {
                for o in block * rows..g.out_channels.min((block + 1) * rows) {
                    gather_row(&mut lines, sums, (o - block * rows, run), (rows, columns));
                    let start = (group * g.out_channels + o) * lines.len();
                    // SAFETY: the task owns these rows.
                    let out = unsafe { shared.slice(start..start + lines.len()) };
                    transpose_kernels(out, &lines, g);
                }
            }
        }
        Ok(())
    })?;
    Ok(true)
}

/// The sums of `rows` rows of the weight's gradient, and the products in each.
fn weight_work(rows: usize, g: &ConvGeometry) -> (usize, usize) {
    (rows * g.in_channels * g.kernel_size(), g.batch * g.output_size())
}

/// The blocks of rows of the weight's gradient that a task owns. Tasks own whole rows, so that the sums do not depend on how
/// many there are.
fn row_blocks_each(row_blocks: usize, g: &ConvGeometry) -> usize {
    let (sums, products) = weight_work(g.out_channels, g);
    let wanted = g.groups * cost(sums, products) / WORTH_A_TASK;
    let wanted = wanted.clamp(1, parallel::num_threads());
    row_blocks.div_ceil(wanted.div_ceil(g.groups))
}

/// Gathers row `row` of the tiles `sums`, each (rows, columns), into lines of `run` elements.
fn gather_row<T: ConvElement>(
    lines: &mut [T],
    sums: &[T],
    (row, run): (usize, usize),
    (rows, columns): (usize, usize),
) {
    let (size, column_blocks) = (rows * columns, run.div_ceil(columns));
    for (line, sums) in lines.chunks_exact_mut(run).zip(sums.chunks_exact(column_blocks * size)) {
        for (to, tile) in line.chunks_mut(columns).zip(sums.chunks_exact(size)) {
            to.copy_from_slice(&tile[row * columns..][..to.len()]);
        }
    }
}

/// Packs the gradients of a block of output channels of a group, for some images, by positions.
fn pack_gradients<T: ConvElement>(
    packed: &mut [T],
    grad: &[T],
    (group, block): (usize, usize),
    images: &std::ops::Range<usize>,
    (rows, g): (usize, &ConvGeometry),
) {
    let (outputs, start) = (g.output_size(), block * rows);
    let count = rows.min(g.out_channels - start);
    for (image, n) in images.clone().enumerate() {
        let at = ((n * g.groups + group) * g.out_channels + start) * outputs;
        let to = &mut packed[image * outputs * rows..][..outputs * rows];
        store_rows(to, &grad[at..at + count * outputs], rows, (outputs, count));
    }
}

/// Transposes (kernel elements, channels) into (channels, kernel elements).
fn transpose_kernels<T: ConvElement>(to: &mut [T], from: &[T], g: &ConvGeometry) {
    let (kernel, channels, size) = (g.kernel_size(), g.in_channels, size_of::<T>() as isize);
    assert!(to.len() == kernel * channels && from.len() == to.len());
    let strides = (kernel as isize * size, channels as isize * size);
    let (to, from) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    // SAFETY: so many runs of `channels` elements as kernel elements, and the other way about.
    unsafe { copy_tile::<T, false>(to, from, strides, (kernel, channels)) };
}

/// Transposes (channels, positions) gradients into positions of `rows` channels, of which those past `channels` stay.
fn store_rows<T: ConvElement>(
    to: &mut [T],
    from: &[T],
    rows: usize,
    (positions, channels): (usize, usize),
) {
    let size = size_of::<T>() as isize;
    let strides = (rows as isize * size, positions as isize * size);
    let (to, from) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    // SAFETY: as many runs of `rows` as positions; `channels` rows of `positions`.
    unsafe { copy_tile::<T, false>(to, from, strides, (channels, positions)) };
}
