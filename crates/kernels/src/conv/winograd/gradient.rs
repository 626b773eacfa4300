//! The gradient of the weight: `G^T [sum over tiles of (A y A^T) * (B^T d B)] G`, of the outputs' gradients `y` and the inputs `d`.
//!
//! Each position's sum over tiles is a matrix product (outputs, tiles) x (tiles, inputs). A task owns some positions and output
//! channels and goes through all blocks of tiles.

use super::super::ConvElement;
use super::super::geometry::ConvGeometry;
use super::super::implicit::best_microkernel;
use super::super::microkernel::Microkernel;
use super::tiles::{Images, Pixels, TileBlock, TileBlocks};
use super::{POSITIONS, SIDE, Transforms, blocks_of, pitch_of, take, with_scratch};
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::gemm::Matrix;
use crate::interrupt::WorkCounter;
use crate::{Result, memory, parallel};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements of a kernel.
const KERNEL: usize = 9;

/// The operands and sizes that all tasks of a gradient share.
struct WeightGradient<'a, T: 'static> {
    g: &'a ConvGeometry,
    /// The input channels of each group that are worked on together.
    inputs: Range<usize>,
    micro: Microkernel<T>,
    transforms: &'static Transforms<T>,
    tiles: TileBlocks,
    /// Elements from tile to tile, of inputs and of gradients.
    pitches: [usize; 2],
    /// Blocks of output channels, and of input channels.
    rows: usize,
    columns: usize,
}

/// Rows of a position's transform, of a group, and some of the blocks of output channels.
struct WeightTask {
    group: usize,
    lines: Range<usize>,
    rows: Range<usize>,
}

/// The gradient of the weight. Returned is false if it has values that are not finite, so that it is to be computed anew by the
/// definition's sums.
pub(in super::super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<bool> {
    let (Some(micro), Some(transforms)) =
        (best_microkernel::<T>(Some(g.out_channels), g.in_channels), T::winograd_transforms())
    else {
        return Ok(false);
    };
    let (rows, columns) =
        (g.out_channels.div_ceil(micro.rows), g.in_channels.div_ceil(micro.columns));
    let bytes = g.groups * rows * micro.rows * micro.columns * size_of::<T>();
    let each = blocks_of(bytes, columns) * micro.columns;
    let (mut sums, mut is_finite) = (Vec::new(), true);
    for first in (0..g.in_channels).step_by(each) {
        let inputs = first..g.in_channels.min(first + each);
        let columns = inputs.len().div_ceil(micro.columns);
        let pitches = [pitch_of(inputs.len()), pitch_of(g.out_channels)];
        let tiles = TileBlocks::new(g);
        let part = WeightGradient { g, inputs, micro, transforms, tiles, pitches, rows, columns };
        part.sum(&mut sums, grad, x)?;
        is_finite &= part.transform_sums(out, &sums)?;
    }
    Ok(is_finite)
}

impl<T: ConvElement> WeightGradient<'_, T> {
    /// Computes the sums over tiles, by group, position, blocks of output and of input channels.
    fn sum(&self, sums: &mut Vec<T>, grad: &[T], x: &[T]) -> Result<()> {
        let (groups, rows) = (self.g.groups, self.rows);
        let size = groups * POSITIONS * self.position();
        sums.clear();
        memory::reserve(sums, size)?;
        let shared = SharedMut::from_ptr(sums.as_mut_ptr());
        // Rows of the transforms for up to four threads, then blocks of output channels.
        let wanted = parallel::num_threads().div_ceil(groups);
        let parts = wanted.min(SIDE).next_power_of_two();
        let each = rows.div_ceil(wanted.div_ceil(parts).min(rows));
        let shares = rows.div_ceil(each);
        let images = self.images(x, grad);
        parallel::try_for_range(groups * parts * shares, 1, &|tasks| {
            with_scratch(self.scratch(SIDE / parts), |scratch| {
                for index in tasks {
                    let (group, part, share) =
                        (index / (parts * shares), index / shares % parts, index % shares);
                    let lines = part * SIDE / parts..(part + 1) * SIDE / parts;
                    let rows = share * each..rows.min((share + 1) * each);
                    self.run(scratch, shared, images, &WeightTask { group, lines, rows });
                }
            })
        })?;
        // SAFETY: the tasks wrote all positions and blocks of channels of all groups.
        unsafe { sums.set_len(size) };
        Ok(())
    }

    /// The number of sums that a position has.
    fn position(&self) -> usize {
        self.rows * self.columns * self.micro.rows * self.micro.columns
    }

    /// The inputs, and the outputs' gradients.
    fn images<'x>(&self, x: &'x [T], grad: &'x [T]) -> [Images<'x, T>; 2] {
        let g = self.g;
        let x = Images {
            data: x,
            groups: g.groups,
            all: g.in_channels,
            first: self.inputs.start,
            channels: self.inputs.len(),
            height: g.input[1],
            width: g.input[2],
            padding: [g.padding[1], g.padding[2]],
            reach: SIDE,
        };
        let grad = Images {
            data: grad,
            all: g.out_channels,
            first: 0,
            channels: g.out_channels,
            height: g.output[1],
            width: g.output[2],
            padding: [0; 2],
            reach: 2,
            ..x
        };
        [x, grad]
    }

    /// The elements of each buffer of a task of so many rows of a position's transform.
    fn sizes(&self, lines: usize) -> [usize; 4] {
        let (g, tiles) = (self.g, &self.tiles);
        let [x, grad] = self.pitches;
        let runs = [
            tiles.read_rows(g.input[1], SIDE) * g.input[2] * x,
            tiles.read_rows(g.output[1], 2) * g.output[2] * grad,
        ];
        // The last tile's registers reach past its channels.
        [
            runs[0].max(runs[1]),
            lines * SIDE * tiles.largest() * x + self.micro.columns,
            lines * SIDE * tiles.largest() * grad + self.micro.rows,
            x.max(grad),
        ]
    }

    fn scratch(&self, lines: usize) -> usize {
        self.sizes(lines).iter().map(|n| n.next_multiple_of(16)).sum()
    }

    /// Sums a task's products over all tiles.
    fn run(
        &self,
        scratch: &mut [T],
        sums: SharedMut<T>,
        images: [Images<'_, T>; 2],
        task: &WeightTask,
    ) {
        let mut rest = scratch;
        let sizes = self.sizes(task.lines.len());
        let [runs, inputs, gradients, zeros] = sizes.map(|n| take(&mut rest, n));
        zeros.fill(T::default());
        let mut pace = WorkCounter::new();
        for index in 0..self.tiles.count() {
            let block = self.tiles.get(index);
            pace.spend(block.count() * self.inputs.len() * task.rows.len() * task.lines.len());
            let [x, grad] = images;
            let [pitch, grad_pitch] = self.pitches;
            let pixels = Pixels::load((&mut *runs, &*zeros), x, &block, (task.group, pitch));
            self.transform_inputs(inputs, &pixels, &block, task);
            let pixels =
                Pixels::load((&mut *runs, &*zeros), grad, &block, (task.group, grad_pitch));
            self.transform_gradients(gradients, &pixels, &block, task);
            self.add_products(sums, (inputs, gradients), block.count(), (task, index > 0));
        }
    }

    fn transform_inputs(
        &self,
        to: &mut [T],
        pixels: &Pixels<'_, T>,
        block: &TileBlock,
        task: &WeightTask,
    ) {
        let pitch = self.pitches[0];
        let step = block.count() * pitch;
        let count = self.inputs.len().next_multiple_of(self.transforms.lanes);
        assert!(to.len() >= task.lines.len() * SIDE * step && count <= pitch);
        for (at, tile) in block.tiles().enumerate() {
            let pixels = pixels.of_tile::<SIDE, POSITIONS>(tile);
            // SAFETY: each pixel is a run of `pitch` elements; there is one for each tile at each position.
            unsafe {
                let to = to.as_mut_ptr().add(at * pitch);
                (self.transforms.input)(&pixels, count, to, step, task.lines.clone());
            }
        }
    }

    fn transform_gradients(
        &self,
        to: &mut [T],
        pixels: &Pixels<'_, T>,
        block: &TileBlock,
        task: &WeightTask,
    ) {
        let pitch = self.pitches[1];
        let step = block.count() * pitch;
        let count = self.g.out_channels.next_multiple_of(self.transforms.lanes);
        assert!(to.len() >= task.lines.len() * SIDE * step && count <= pitch);
        for (at, tile) in block.tiles().enumerate() {
            let pixels = pixels.of_tile::<2, 4>(tile);
            // SAFETY: as for the inputs.
            unsafe {
                let to = to.as_mut_ptr().add(at * pitch);
                (self.transforms.gradient)(&pixels, count, to, step, task.lines.clone());
            }
        }
    }

    /// Adds the products of a block of tiles onto the sums, or writes them there.
    fn add_products(
        &self,
        sums: SharedMut<T>,
        (inputs, gradients): (&[T], &[T]),
        tiles: usize,
        (task, adds): (&WeightTask, bool),
    ) {
        let (micro, [pitch, grad_pitch]) = (&self.micro, self.pitches);
        let size = micro.rows * micro.columns;
        for (at, position) in (task.lines.start * SIDE..task.lines.end * SIDE).enumerate() {
            let first = (task.group * POSITIONS + position) * self.rows;
            for column in 0..self.columns {
                let right = &inputs[at * tiles * pitch + column * micro.columns..];
                let right = Matrix::rows(right.as_ptr(), pitch);
                for row in task.rows.clone() {
                    let left = &gradients[at * tiles * grad_pitch + row * micro.rows..];
                    let left = Matrix::rows(left.as_ptr(), grad_pitch).t();
                    let to = ((first + row) * self.columns + column) * size;
                    // SAFETY: rows of inputs and gradients, of which the last has as much behind it as registers hold; the sums
                    // are this task's.
                    unsafe {
                        let to = sums.ptr().add(to);
                        (micro.product)(left, right, tiles, to, adds);
                    }
                }
            }
        }
    }

    /// Transforms the sums into the gradient; says whether it is finite.
    fn transform_sums(&self, out: &mut [T], sums: &[T]) -> Result<bool> {
        let (g, micro) = (self.g, &self.micro);
        let (width, size) = (self.columns * micro.columns, size_of::<T>());
        let whole = self.inputs.len().next_multiple_of(self.transforms.lanes);
        let are_finite = AtomicBool::new(true);
        let shared = SharedMut::new(out);
        let grain = super::super::tasks_of(micro.rows * width, 2 * POSITIONS);
        parallel::try_for_range(g.groups * self.rows, grain, &|tasks| {
            let mut lines = memory::filled(T::default(), KERNEL * width)?;
            let mut finite = [T::default(); 16];
            for task in tasks {
                let (group, row) = (task / self.rows, task % self.rows);
                let first = row * micro.rows;
                for r in 0..micro.rows.min(g.out_channels - first) {
                    for column in 0..self.columns {
                        let at = group * POSITIONS * self.position()
                            + ((row * self.columns + column) * micro.rows + r) * micro.columns;
                        let to = std::array::from_fn(|k| {
                            lines[k * width + column * micro.columns..].as_mut_ptr()
                        });
                        // (What lies past the last channel's register may be anything.)
                        let left = whole - column * micro.columns;
                        let sizes = (self.position(), micro.columns.min(left));
                        // SAFETY: each position has such sums; each line has a place for them.
                        unsafe {
                            let sums = sums[at..].as_ptr();
                            (self.transforms.weight_gradient)(
                                sums,
                                sizes,
                                &to,
                                finite.as_mut_ptr(),
                            );
                        }
                    }
                    let start = (group * g.out_channels + first + r) * g.in_channels;
                    let start = (start + self.inputs.start) * KERNEL;
                    let strides = ((KERNEL * size) as isize, (width * size) as isize);
                    let sizes = (KERNEL, self.inputs.len());
                    // SAFETY: the task owns these kernels, nine elements for each input channel.
                    unsafe {
                        let out = shared.slice(start..start + self.inputs.len() * KERNEL);
                        let (to, from) = (out.as_mut_ptr().cast(), lines.as_ptr().cast());
                        copy_tile::<T, false>(to, from, strides, sizes);
                    }
                }
            }
            if finite.iter().any(|&sum| sum != T::default()) {
                are_finite.store(false, Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(are_finite.into_inner())
    }
}
