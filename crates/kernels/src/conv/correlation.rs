//! The weight's gradient of convolutions of stride 1 between few channels.
//!
//! `grad_weight[o, c, k] = sum over images and positions p of grad[o, p] * x[c, p + shift(k)]`, where `x` has zeros around it:
//! lines of the gradient times shifted lines of the input, some channels and some kernel elements at a time, in partial sums as
//! many as a register has elements, which are folded in halves at the end. Neither operand is gathered. Each sum runs over
//! images and positions in order, whatever the threads.

use super::direct::{pad, shifts};
use super::geometry::ConvGeometry;
use super::microkernel::{Correlation, Lines};
use super::{ConvElement, tasks_of};
use crate::dense::SharedMut;
use crate::interrupt::WorkCounter;
use crate::{Result, memory, parallel};
use std::ops::Range;

/// Bytes of padded images that are worked on together: they and their gradients stay in the second-level cache.
const BLOCK_BYTES: usize = 128 << 10;
/// The least part of what is computed that must be used for this way to pay.
const USEFUL: f64 = 0.5;
/// Fewest elements of kernels for which this way pays.
const LEAST: usize = 8;

/// Whether the weight's gradient is computed by this module: stride 1, and tiles that are mostly used.
pub(super) fn fits<T: ConvElement>(g: &ConvGeometry) -> bool {
    let Some(loops) = T::correlation() else { return false };
    let part = |n: usize, size: usize| n as f64 / n.next_multiple_of(size) as f64;
    let elements = g.in_channels * g.kernel_size();
    g.stride == [1; 3]
        && g.batch * g.output_size() > 0
        && elements >= LEAST
        && part(g.out_channels, loops.rows)
            * part(elements, loops.shifts)
            * part(g.output[2], loops.lanes)
            >= USEFUL
}

/// Images with zeros around them, and the sizes of the tiles that their products are summed in.
struct Tiles<'g, T: 'static> {
    g: &'g ConvGeometry,
    loops: &'static Correlation<T>,
    padded: [usize; 3],
    shifts: Vec<usize>,
    /// Blocks of output channels, and of kernel elements, of a group.
    blocks: (usize, usize),
}

impl<T: ConvElement> Tiles<'_, T> {
    /// Tiles of a group.
    fn count(&self) -> usize {
        self.blocks.0 * self.blocks.1
    }
    /// Partial sums of a tile.
    fn size(&self) -> usize {
        self.loops.rows * self.loops.shifts * self.loops.lanes
    }
    /// Elements of a padded image of a group.
    fn image(&self) -> usize {
        self.padded.iter().product::<usize>() * self.g.in_channels
    }

    /// Adds an image's products to the partial sums of a tile.
    fn add(&self, tile: usize, grad: &[T], x: &[T], sums: &mut [T]) {
        let (g, outputs) = (self.g, self.g.output_size());
        let (row, column) = (tile / self.blocks.1, tile % self.blocks.1);
        let first = row * self.loops.rows;
        let shifts = &self.shifts[column * self.loops.shifts..][..self.loops.shifts];
        let [depth, height, width] = g.output;
        let lines = Lines { count: height, width, pitch: self.padded[2] };
        for d in 0..depth {
            let grad = &grad[first * outputs + d * height * width..];
            let x = &x[d * self.padded[1] * self.padded[2]..];
            // SAFETY: shifted lines lie inside the padded image, lines of as many channels as there are rows inside the gradient:
            // `rows_of` has made the lines that long.
            unsafe {
                (self.loops.run)(
                    (grad.as_ptr(), outputs),
                    x.as_ptr(),
                    shifts,
                    lines,
                    sums.as_mut_ptr(),
                );
            }
        }
    }

    /// Folds the partial sums of a tile into the weights of its group.
    ///
    /// # Safety
    /// Nobody else uses the tile's weights.
    unsafe fn store(&self, tile: usize, sums: &[T], out: SharedMut<T>) {
        let elements = self.g.in_channels * self.g.kernel_size();
        let (row, column) = (tile / self.blocks.1, tile % self.blocks.1);
        for (at, sums) in sums.chunks_exact(self.loops.lanes).enumerate() {
            let o = row * self.loops.rows + at / self.loops.shifts;
            let k = column * self.loops.shifts + at % self.loops.shifts;
            if o < self.g.out_channels && k < elements {
                let at = o * elements + k;
                // SAFETY: the caller's promise.
                unsafe { out.slice(at..at + 1)[0] = folded(sums) };
            }
        }
    }
}

/// The sum of partial sums, by adding the upper half to the lower until one is left.
fn folded<T: ConvElement>(sums: &[T]) -> T {
    if let [sum] = sums {
        return *sum;
    }
    let (low, high) = sums.split_at(sums.len() / 2);
    folded(low).plus(folded(high))
}

/// The weight's gradient where it [`fits`]; says whether it did.
pub(super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<bool> {
    let Some(loops) = T::correlation() else { return Ok(false) };
    let padded: [usize; 3] = std::array::from_fn(|d| g.input[d] + 2 * g.padding[d]);
    let elements = g.in_channels * g.kernel_size();
    let mut shifts = shifts(g, padded)?;
    // What fills the last tile is computed and dropped.
    memory::resize(&mut shifts, elements.next_multiple_of(loops.shifts), 0)?;
    let blocks = (g.out_channels.div_ceil(loops.rows), elements.div_ceil(loops.shifts));
    let tiles = Tiles { g, loops, padded, shifts, blocks };
    let all = g.groups * tiles.count();
    let products = g.batch * g.output_size();
    let sums = loops.rows * loops.shifts;
    let grain = all.div_ceil(parallel::num_threads()).max(tasks_of(sums, products));
    let out = SharedMut::new(out);
    parallel::try_for_range(all, grain, &|range| on_one_thread(&tiles, range, (grad, x), out))?;
    Ok(true)
}

/// The partial sums of some of the tiles, over all images.
fn on_one_thread<T: ConvElement>(
    tiles: &Tiles<'_, T>,
    range: Range<usize>,
    (grad, x): (&[T], &[T]),
    out: SharedMut<T>,
) -> Result<()> {
    let (g, image) = (tiles.g, tiles.image());
    let images = (BLOCK_BYTES / (image * size_of::<T>())).clamp(1, g.batch);
    let (inputs, outputs) = (g.in_channels * g.input_size(), g.out_channels * g.output_size());
    let filled_rows = tiles.blocks.0 * tiles.loops.rows;
    let mut padded = memory::filled(T::default(), images * image)?;
    // Channels that fill the last tile are zero; where there are none, the gradient is read as it lies.
    let copied = if filled_rows == g.out_channels { 0 } else { filled_rows * g.output_size() };
    let mut rows = memory::filled(T::default(), images * copied)?;
    let mut sums = memory::filled(T::default(), range.len() * tiles.size())?;
    let mut pace = WorkCounter::new();
    let groups = range.start / tiles.count()..range.end.div_ceil(tiles.count());
    for group in groups {
        let own =
            range.start.max(group * tiles.count())..range.end.min((group + 1) * tiles.count());
        for first in (0..g.batch).step_by(images) {
            let block = first..g.batch.min(first + images);
            for (at, n) in block.clone().enumerate() {
                let of = n * g.groups + group;
                pad(
                    &mut padded[at * image..][..image],
                    &x[of * inputs..][..inputs],
                    g,
                    tiles.padded,
                );
                if copied > 0 {
                    rows[at * copied..][..outputs]
                        .copy_from_slice(&grad[of * outputs..][..outputs]);
                }
            }
            for tile in own.clone() {
                let sums = &mut sums[(tile - range.start) * tiles.size()..][..tiles.size()];
                pace.spend(block.len() * g.output_size() * tiles.size() / 256);
                for (at, n) in block.clone().enumerate() {
                    let x = &padded[at * image..][..image];
                    let whole = &grad[(n * g.groups + group) * outputs..];
                    let grad = if copied > 0 { &rows[at * copied..][..copied] } else { whole };
                    tiles.add(tile % tiles.count(), grad, x, sums);
                }
            }
        }
        let elements = g.in_channels * g.kernel_size();
        let start = group * g.out_channels * elements;
        for tile in own {
            let sums = &sums[(tile - range.start) * tiles.size()..][..tiles.size()];
            let out = SharedMut::from_ptr(out.ptr().wrapping_add(start));
            // SAFETY: each task owns its tiles' weights.
            unsafe { tiles.store(tile % tiles.count(), sums, out) };
        }
    }
    Ok(())
}
