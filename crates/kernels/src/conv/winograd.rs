//! Winograd's minimal filtering F(2x2, 3x3) for convolutions with kernels of three by three, stride 1 and no dilation.
//!
//! A tile of 2x2 outputs needs 36 products of the definition, or 16 of transformed operands: with `d` the 4x4 inputs of the
//! tile and `g` the kernel, its outputs are `A^T [(G g G^T) * (B^T d B)] A`, the star being the product element by element
//! (A. Lavin, S. Gray: "Fast algorithms for convolutional neural networks", 2016; S. Winograd, 1980). Summed over channels, each
//! of the 16 positions is a matrix product (tiles, inputs) x (inputs, outputs). The gradient of the input is such a convolution
//! with reversed weights; that of the weight is the transpose of the same formula, `G^T [(A y A^T) * (B^T d B)] G`, summed over
//! tiles (`gradient`).
//!
//! Accuracy: for random operands of 16 to 512 channels in `f32`, the error stays below 8 roundings (`2^-24`) of the sum of the
//! products' absolute values (`tests/conv_winograd.rs`); measured were up to 4.1, where the direct sums had up to 4.3, and of one
//! convolution about twice the direct sum's at most. As each pixel of a window also meets the kernel's other elements on the way, it is
//! the greatest pixel of the window times the sum of the kernel's absolute values that bounds the error for all operands: where one
//! element of a kernel is a million times the others, the small products are lost. Pixels outside of a window take no part in
//! its sum. Larger tiles, F(4x4, 3x3), would lose a decimal digit.
//! The factors are 1 and 1/2, so sums of small integers are exact as the direct ones are. Values that are not finite, and sums that
//! overflow on the way only, are found in the results (`inf - inf` stays NaN to the end): such images are computed anew as sums.
//!
//! Each sum runs in one order, whatever the blocks and threads.

mod gradient;
mod tiles;
#[cfg(target_arch = "x86_64")]
pub(super) mod transforms;
mod weights;

pub(super) use gradient::backward_weight;

use super::ConvElement;
use super::direct::Weights;
use super::geometry::ConvGeometry;
use super::implicit::best_microkernel;
use super::microkernel::{HasMicrokernels, Microkernel};
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::gemm::Matrix;
use crate::interrupt::WorkCounter;
use crate::{Result, memory, parallel, scratch};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use tiles::{Images, Pixels, TileBlock, TileBlocks};

/// Products of a tile, and rows of them.
const POSITIONS: usize = 16;
const SIDE: usize = 4;
/// Fewest channels on either side, of a group, for which tiles of registers are filled.
const CHANNELS: usize = 16;
/// Bytes of transformed kernels, or of their gradients, that are worked on together.
const RESIDENT: usize = 5 << 20;
/// What transforming a tile of one channel costs, and a kernel, in products of the matrices.
const TILE_COST: usize = 90;
const KERNEL_COST: usize = 100;

/// The transforms over registers of channels: `count` is rounded up to whole registers of `lanes`, results are `step` apart.
pub(crate) struct Transforms<T> {
    lanes: usize,
    /// Rows `rows` of `B^T d B` of the pixels `d`.
    input: unsafe fn(&[*const T; 16], count: usize, to: *mut T, step: usize, rows: Range<usize>),
    /// `A^T m A`, plus a bias, of products that are `sizes.0` apart, of `sizes.1` channels; the last argument becomes NaN where a
    /// result is not finite.
    output: unsafe fn(*const T, sizes: (usize, usize), *const T, &[*mut T; 4], *mut T),
    /// Rows `rows` of `A y A^T` of the outputs' gradients `y`.
    gradient: unsafe fn(&[*const T; 4], count: usize, to: *mut T, step: usize, rows: Range<usize>),
    /// `G g G^T` of a kernel `g`.
    weight: unsafe fn(&[*const T; 9], count: usize, to: *mut T, step: usize),
    /// `G^T m G` of sums that are `sizes.0` apart, of `sizes.1` channels; the last argument becomes
    /// NaN where a result is not finite.
    weight_gradient: unsafe fn(*const T, sizes: (usize, usize), &[*mut T; 9], *mut T),
}

/// Whether Winograd's algorithm computes this convolution, and with less work than the definition's sums.
pub(super) fn pays<T: ConvElement>(g: &ConvGeometry) -> bool {
    let is_possible = g.kernel == [1, 3, 3]
        && g.stride == [1; 3]
        && g.dilation == [1; 3]
        && g.input[0] == 1
        && g.padding[0] == 0
        && g.in_channels.min(g.out_channels) >= CHANNELS
        && g.output_size() > 0
        && g.batch > 0
        && best_microkernel::<T>(None, g.out_channels).is_some()
        && <T as HasMicrokernels>::winograd_transforms().is_some();
    if !is_possible {
        return false;
    }
    let (pairs, channels) = (g.in_channels * g.out_channels, g.in_channels + g.out_channels);
    let tiles = g.batch * g.output[1].div_ceil(2) * g.output[2].div_ceil(2);
    let transformed = tiles
        .saturating_mul(POSITIONS * pairs + TILE_COST * channels)
        .saturating_add(KERNEL_COST * pairs);
    transformed < (g.batch * g.output_size()).saturating_mul(9 * pairs)
}

/// Whether Winograd's algorithm computes the gradient of the weight with less work than the definition's sums.
pub(super) fn pays_weight<T: ConvElement>(g: &ConvGeometry) -> bool {
    pays::<T>(g) && best_microkernel::<T>(Some(g.out_channels), g.in_channels).is_some()
}

/// Elements from one pixel's or tile's channels to the next: whole registers, and for many channels a cache line more, so that
/// the same channel of many does not share a set of the cache.
fn pitch_of(channels: usize) -> usize {
    let whole = channels.next_multiple_of(16);
    if whole >= 128 { whole + 16 } else { whole }
}

/// Calls `work` with scratch memory of `n` numbers, whose content is arbitrary.
fn with_scratch<T: ConvElement, R>(n: usize, work: impl FnOnce(&mut [T]) -> R) -> Result<R> {
    scratch::with(n * size_of::<T>().div_ceil(4), |words| {
        // SAFETY: as many numbers as words, or half as many of twice the size, aligned to cache lines; every pattern of bits is one.
        work(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<T>(), n) })
    })
}

/// Takes `n` elements, rounded up to whole cache lines, from the front of `rest`.
#[allow(clippy::mut_mut, reason = "what is taken is gone from the slice that the caller has")]
fn take<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (first, others) = std::mem::take(rest).split_at_mut(n.next_multiple_of(16));
    *rest = others;
    first
}

/// What all tasks of a convolution share.
struct ForwardTiles<'a, T: 'static> {
    g: &'a ConvGeometry,
    micro: Microkernel<T>,
    transforms: &'static Transforms<T>,
    /// Transformed weights of these blocks of output channels: by group, position, block, input channel.
    weights: &'a [T],
    columns: Range<usize>,
    tiles: &'a TileBlocks,
    pitch: usize,
}

/// A part of a convolution: a block of tiles, a group, and some of its blocks of output channels.
struct TileTask {
    block: TileBlock,
    group: usize,
    columns: Range<usize>,
}

/// The convolution. Returned is, for each image, whether its result has values that are not finite, so that it is to be computed
/// anew by the definition's sums.
pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<Vec<usize>> {
    let (Some(micro), Some(transforms)) =
        (best_microkernel::<T>(None, g.out_channels), T::winograd_transforms())
    else {
        // (`pays` holds only where there are both.)
        return memory::collect(0..g.batch);
    };
    let are_finite = memory::collect((0..g.batch).map(|_| AtomicBool::new(true)))?;
    let (tiles, blocks) = (TileBlocks::new(g), g.out_channels.div_ceil(micro.columns));
    let images = Images {
        data: x,
        groups: g.groups,
        all: g.in_channels,
        first: 0,
        channels: g.in_channels,
        height: g.input[1],
        width: g.input[2],
        padding: [g.padding[1], g.padding[2]],
        reach: SIDE,
    };
    let out = SharedMut::new(out);
    let each = blocks_of(g.groups * g.in_channels * micro.columns * size_of::<T>(), blocks);
    let (mut transformed, pitch) = (Vec::new(), pitch_of(g.in_channels));
    for first in (0..blocks).step_by(each) {
        let columns = first..blocks.min(first + each);
        weights::transform(&mut transformed, weights, g, (&columns, micro.columns), transforms)?;
        let tiles = &tiles;
        let part =
            ForwardTiles { g, micro, transforms, weights: &transformed, columns, tiles, pitch };
        part.run(out, images, bias, &are_finite)?;
    }
    let left = are_finite.iter().enumerate();
    memory::collect(left.filter(|(_, is)| !is.load(Ordering::Relaxed)).map(|(image, _)| image))
}

/// How many of `all` blocks of channels to take at a time, each of which has `bytes` at a position: their transformed kernels are
/// to stay in the cache until they were used.
fn blocks_of(bytes: usize, all: usize) -> usize {
    let fit = (RESIDENT / (POSITIONS * bytes)).clamp(1, all);
    all.div_ceil(all.div_ceil(fit))
}

impl<T: ConvElement> ForwardTiles<'_, T> {
    /// Convolves to these output channels.
    fn run(
        &self,
        out: SharedMut<T>,
        images: Images<'_, T>,
        bias: Option<&[T]>,
        are_finite: &[AtomicBool],
    ) -> Result<()> {
        // Blocks of tiles for every thread; where there are fewer, parts of the output channels.
        let (groups, columns) = (self.g.groups, &self.columns);
        let (whole, threads) = (self.tiles.count() * groups, parallel::num_threads());
        let each = columns.len().div_ceil(threads.div_ceil(whole).min(columns.len()));
        let parts = columns.len().div_ceil(each);
        let grain = (whole * parts).div_ceil(4 * threads);
        parallel::try_for_range(whole * parts, grain, &|tasks| {
            with_scratch(self.scratch(each), |scratch| {
                let mut pace = WorkCounter::new();
                for index in tasks {
                    let (part, rest) = (index % parts, index / parts);
                    let first = columns.start + part * each;
                    let task = TileTask {
                        block: self.tiles.get(rest / groups),
                        group: rest % groups,
                        columns: first..columns.end.min(first + each),
                    };
                    pace.spend(task.block.count() * self.pitch * task.columns.len());
                    if !self.run_task(scratch, out, images, bias, &task) {
                        for image in task.block.images {
                            are_finite[image].store(false, Ordering::Relaxed);
                        }
                    }
                }
            })
        })
    }

    /// The tiles of the largest block, in whole tiles of registers.
    fn rows(&self) -> usize {
        self.tiles.largest().next_multiple_of(self.micro.rows)
    }

    /// The elements of each of a task's buffers.
    fn sizes(&self, columns: usize) -> [usize; 6] {
        let (g, micro) = (self.g, &self.micro);
        [
            self.tiles.read_rows(g.input[1], SIDE) * g.input[2] * self.pitch,
            POSITIONS * self.rows() * self.pitch,
            POSITIONS * self.rows() * columns * micro.columns,
            self.tiles.output_rows() * g.output[2] * micro.columns,
            self.pitch,
            3 * micro.columns,
        ]
    }

    fn scratch(&self, columns: usize) -> usize {
        self.sizes(columns).iter().map(|n| n.next_multiple_of(16)).sum()
    }

    /// Computes a task's outputs; says whether they are finite.
    fn run_task(
        &self,
        scratch: &mut [T],
        out: SharedMut<T>,
        images: Images<'_, T>,
        bias: Option<&[T]>,
        task: &TileTask,
    ) -> bool {
        let mut rest = scratch;
        let [runs, inputs, products, outputs, zeros, small] =
            self.sizes(task.columns.len()).map(|n| take(&mut rest, n));
        zeros.fill(T::default());
        let pixels = Pixels::load((runs, zeros), images, &task.block, (task.group, self.pitch));
        self.transform_inputs(inputs, &pixels, &task.block);
        self.multiply(products, inputs, task);
        let mut is_finite = true;
        for (at, column) in task.columns.clone().enumerate() {
            let (unused, rest) = small.split_at_mut(self.micro.columns);
            let (biases, finite) = rest.split_at_mut(self.micro.columns);
            let first = task.group * self.g.out_channels + column * self.micro.columns;
            let count = self.micro.columns.min(self.g.out_channels - column * self.micro.columns);
            biases.fill(T::default());
            if let Some(bias) = bias {
                biases[..count].copy_from_slice(&bias[first..first + count]);
            }
            finite.fill(T::default());
            let products = (&*products, task.columns.len(), at);
            self.transform_outputs(outputs, products, (biases, unused, finite), &task.block);
            is_finite &= finite.iter().all(|&sum| sum == T::default());
            self.store(out, outputs, (first, count), &task.block);
        }
        is_finite
    }

    fn transform_inputs(&self, inputs: &mut [T], pixels: &Pixels<'_, T>, block: &TileBlock) {
        let step = self.rows() * self.pitch;
        let count = self.g.in_channels.next_multiple_of(self.transforms.lanes);
        assert!(inputs.len() >= POSITIONS * step && count <= self.pitch);
        for (at, tile) in block.tiles().enumerate() {
            let pixels = pixels.of_tile::<SIDE, POSITIONS>(tile);
            // SAFETY: each pixel is a run of `pitch` elements; there is one for each tile at each position.
            unsafe {
                let to = inputs.as_mut_ptr().add(at * self.pitch);
                (self.transforms.input)(&pixels, count, to, step, 0..SIDE);
            }
        }
    }

    /// Multiplies each position's inputs with its weights.
    fn multiply(&self, products: &mut [T], inputs: &[T], task: &TileTask) {
        let (rows, depth, width) = (self.rows(), self.g.in_channels, self.micro.columns);
        let tiles = task.block.count();
        assert!(products.len() >= POSITIONS * task.columns.len() * rows * width);
        for position in 0..POSITIONS {
            let first = (task.group * POSITIONS + position) * self.columns.len();
            for (at, column) in task.columns.clone().enumerate() {
                let block = first + column - self.columns.start;
                let weights = &self.weights[block * depth * width..][..depth * width];
                let products = &mut products[(position * task.columns.len() + at) * rows * width..];
                for tile in (0..tiles).step_by(self.micro.rows) {
                    let left = &inputs[(position * rows + tile) * self.pitch..];
                    let left = Matrix::rows(left.as_ptr(), self.pitch);
                    let right = Matrix::rows(weights.as_ptr(), width);
                    let sums = products[tile * width..].as_mut_ptr();
                    // SAFETY: `rows` has whole tiles of registers, of inputs and of products; weights are packed so.
                    unsafe { (self.micro.product)(left, right, depth, sums, false) };
                }
            }
        }
    }

    /// Transforms the products of one of several blocks of output channels into outputs, position by position.
    fn transform_outputs(
        &self,
        outputs: &mut [T],
        (products, blocks, at): (&[T], usize, usize),
        (biases, unused, finite): (&[T], &mut [T], &mut [T]),
        block: &TileBlock,
    ) {
        let (width, size) = (self.micro.columns, [self.g.output[1], self.g.output[2]]);
        let step = blocks * self.rows() * width;
        let height = size[0].min(2 * block.rows.end) - 2 * block.rows.start;
        for (number, tile) in block.tiles().enumerate() {
            let mut to = [unused.as_mut_ptr(); 4];
            for (k, to) in to.iter_mut().enumerate() {
                let (y, x) = (2 * tile.row + k / 2, 2 * tile.column + k % 2);
                if y < size[0] && x < size[1] {
                    let line = tile.image * height + y - 2 * block.rows.start;
                    *to = outputs[(line * size[1] + x) * width..][..width].as_mut_ptr();
                }
            }
            let products = &products[(at * self.rows() + number) * width..];
            let (bias, finite) = (biases.as_ptr(), finite.as_mut_ptr());
            // SAFETY: each position has products of `width` channels there; so has each output, and the bias.
            unsafe {
                (self.transforms.output)(products.as_ptr(), (step, width), bias, &to, finite);
            }
        }
    }

    /// Transposes outputs into `count` channels from the `first` of all groups on.
    fn store(
        &self,
        out: SharedMut<T>,
        outputs: &[T],
        (first, count): (usize, usize),
        block: &TileBlock,
    ) {
        let (g, width, size) = (self.g, self.micro.columns, size_of::<T>());
        let start = 2 * block.rows.start * g.output[2];
        let positions = g.output_size().min(2 * block.rows.end * g.output[2]) - start;
        let strides = ((g.output_size() * size) as isize, (width * size) as isize);
        let images = outputs.chunks_exact(positions * width);
        for (from, n) in images.zip(block.images.clone()) {
            let at = (n * g.groups * g.out_channels + first) * g.output_size() + start;
            let to = out.ptr().wrapping_add(at).cast();
            // SAFETY: the task owns these positions of these channels; there is a row of `width` for each position.
            unsafe {
                copy_tile::<T, false>(to, from.as_ptr().cast(), strides, (positions, count));
            }
        }
    }
}
