//! Convolution as matrix products over blocks of output positions.
//!
//! Per batch element and group, with K = channels x kernel elements and P = positions:
//! forward `out (O, P) = weight (O, K) @ gathered (K, P)`, input gradient
//! `gathered (K, P) = weight^T @ grad (O, P)` added back, weight gradient
//! `weight (O, K) += grad (O, P) @ gathered^T`. Each task owns its outputs, and sums over batch and
//! blocks in order. Many images with few positions each are taken together (`batched`).

use super::geometry::ConvGeometry;
use super::im2col::{gather, scatter};
use super::{ConvElement, batched, tasks_of};
use crate::Result;
use crate::dense::SharedMut;
use crate::gemm::{GemmSizes, Matrix, product};
use crate::memory;
use crate::parallel;
use std::ops::Range;

/// Bytes of a gathered block: about half of a second-level cache.
pub(super) const BLOCK_BYTES: usize = 384 << 10;
/// Fewest output positions of a block of an image that has more.
const LEAST: usize = 96;

/// How the positions of an image are cut into blocks.
#[derive(Clone, Copy)]
struct PositionBlocks {
    /// Positions per block.
    positions: usize,
    all: usize,
}

impl PositionBlocks {
    /// The blocks for a matrix of `rows` rows, or `None` if the input itself is the matrix.
    fn new<T>(g: &ConvGeometry, rows: Option<usize>) -> PositionBlocks {
        let all = g.output_size();
        let Some(rows) = rows else { return PositionBlocks { positions: all.max(1), all } };
        let fit = BLOCK_BYTES / (rows.max(1) * size_of::<T>());
        let wanted = fit.clamp(LEAST, 4096).min(all).max(1);
        // Blocks of even size, so that the last one is no sliver.
        PositionBlocks { positions: all.div_ceil(all.div_ceil(wanted).max(1)).max(1), all }
    }
    /// Blocks per image.
    fn count(self) -> usize {
        self.all.div_ceil(self.positions)
    }
    fn get(self, index: usize) -> Range<usize> {
        let start = index * self.positions;
        start..self.all.min(start + self.positions)
    }
}

/// The rows of the matrix if the input has to be gathered.
fn gathered_rows(g: &ConvGeometry, rows: usize) -> Option<usize> {
    (!g.is_pointwise()).then_some(rows)
}

/// The input channels of one group of one batch element.
fn input_channels(g: &ConvGeometry, n: usize, group: usize) -> Range<usize> {
    let size = g.in_channels * g.input_size();
    let start = (n * g.groups + group) * size;
    start..start + size
}

pub(super) fn forward<T: ConvElement>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &ConvGeometry,
) -> Result<()> {
    let positions = g.output_size();
    if out.is_empty() {
        return Ok(());
    }
    if batched::fits(g) {
        return batched::forward(out, x, w, bias, g);
    }
    let k = g.in_channels * g.kernel_size();
    let blocks = PositionBlocks::new::<T>(g, gathered_rows(g, k));
    let is_gathered = !g.is_pointwise();
    let channels = g.groups * g.out_channels;
    let shared = SharedMut::new(out);
    let grain = tasks_of(g.out_channels * blocks.positions, k);
    parallel::try_for_range(g.batch * blocks.count() * g.groups, grain, &|tasks| {
        let mut matrix =
            memory::filled(T::default(), if is_gathered { k * blocks.positions } else { 0 })?;
        for task in tasks {
            let (block, group) = (task / g.groups, task % g.groups);
            let (image, block) = (block / blocks.count(), blocks.get(block % blocks.count()));
            let columns = block.len();
            let x = &x[input_channels(g, image, group)];
            let right = if is_gathered {
                gather(&mut matrix, x, g, block.clone())?;
                Matrix::rows(matrix.as_ptr(), columns)
            } else {
                Matrix::rows(x[block.start..].as_ptr(), positions)
            };
            let sizes = GemmSizes { m: g.out_channels, n: columns, k };
            let first = group * g.out_channels;
            let left = Matrix::rows(w[first * k..].as_ptr(), k);
            let at = (image * channels + first) * positions + block.start;
            let target =
                Matrix { ptr: shared.ptr().wrapping_add(at), rs: positions as isize, cs: 1 };
            let beta = start_with_bias(target, sizes, bias, first);
            // SAFETY: the task owns these channels and positions of the output.
            unsafe { product(sizes, target, left, right, T::one(), beta, false)? };
        }
        Ok(())
    })?;
    Ok(())
}

/// Fills the output with the bias; returns the factor for what is there.
fn start_with_bias<T: ConvElement>(
    c: Matrix<T>,
    s: GemmSizes,
    bias: Option<&[T]>,
    first: usize,
) -> T {
    let Some(bias) = bias else { return T::default() };
    for o in 0..s.m {
        // SAFETY: `s.n` elements of a row the caller owns.
        unsafe { std::slice::from_raw_parts_mut(c.at(o, 0).ptr, s.n) }.fill(bias[first + o]);
    }
    T::one()
}

pub(super) fn add_bias<T: ConvElement>(out: &mut [T], bias: &[T], size: usize) {
    for (channel, bias) in out.chunks_exact_mut(size.max(1)).zip(bias.iter().cycle()) {
        for value in channel {
            *value = value.plus(*bias);
        }
    }
}

/// Input channels per task of the gradients: as many as keep a block of the matrix in cache.
pub(super) fn channels_per_task<T>(g: &ConvGeometry) -> usize {
    let fit = BLOCK_BYTES / (g.kernel_size() * size_of::<T>() * 256.min(g.output_size().max(1)));
    fit.clamp(1, g.in_channels.max(1))
}

/// A task of the gradients: batch element or none, group, input channels.
pub(super) struct GradientTask {
    pub(super) group: usize,
    pub(super) channels: Range<usize>,
}

pub(super) fn gradient_task(g: &ConvGeometry, index: usize, each: usize) -> GradientTask {
    let per_group = g.in_channels.div_ceil(each);
    let start = index % per_group * each;
    GradientTask { group: index / per_group, channels: start..g.in_channels.min(start + each) }
}

pub(super) fn backward_input<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    w: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    if batched::fits(g) {
        return batched::backward_input(out, grad, w, g);
    }
    out.fill(T::default());
    let (positions, kernel) = (g.output_size(), g.kernel_size());
    if out.is_empty() || positions == 0 || kernel == 0 {
        return Ok(());
    }
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let shared = SharedMut::new(out);
    let grain = tasks_of(each * kernel * positions, g.out_channels);
    parallel::try_for_range(g.batch * parts, grain, &|tasks| {
        let mut matrix = Vec::new();
        for task in tasks {
            let (image, GradientTask { group, channels }) =
                (task / parts, gradient_task(g, task % parts, each));
            let k = channels.len() * kernel;
            let blocks = PositionBlocks::new::<T>(g, gathered_rows(g, k));
            let first = group * g.out_channels;
            let stride = (g.in_channels * kernel) as isize;
            let from = w[first * g.in_channels * kernel + channels.start * kernel..].as_ptr();
            let left = Matrix { ptr: from.cast_mut(), rs: 1, cs: stride };
            let start = input_channels(g, image, group).start + channels.start * g.input_size();
            for block in (0..blocks.count()).map(|index| blocks.get(index)) {
                let columns = block.len();
                let right = gradient(grad, image, group, &block, g);
                let sizes = GemmSizes { m: k, n: columns, k: g.out_channels };
                if g.is_pointwise() {
                    let target =
                        Matrix::rows(shared.ptr().wrapping_add(start + block.start), positions);
                    // SAFETY: the task owns these input channels of the image.
                    unsafe { product(sizes, target, left, right, T::one(), T::default(), false)? };
                    continue;
                }
                memory::resize(&mut matrix, k * columns, T::default())?;
                let target = Matrix::rows(matrix.as_mut_ptr(), columns);
                // SAFETY: the matrix is this task's.
                unsafe { product(sizes, target, left, right, T::one(), T::default(), false)? };
                // SAFETY: as above.
                let x = unsafe { shared.slice(start..start + channels.len() * g.input_size()) };
                scatter(x, &matrix, g, block)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The positions of a block of the output's gradient as a matrix.
fn gradient<T: ConvElement>(
    grad: &[T],
    image: usize,
    group: usize,
    block: &Range<usize>,
    g: &ConvGeometry,
) -> Matrix<T> {
    let all = g.output_size();
    let at = (image * g.groups + group) * g.out_channels * all + block.start;
    Matrix::rows(grad[at..].as_ptr(), all)
}

pub(super) fn backward_weight<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    x: &[T],
    g: &ConvGeometry,
) -> Result<()> {
    if batched::fits(g) {
        return batched::backward_weight(out, grad, x, g);
    }
    out.fill(T::default());
    let (positions, kernel) = (g.output_size(), g.kernel_size());
    if out.is_empty() || positions == 0 {
        return Ok(());
    }
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let shared = SharedMut::new(out);
    let grain = tasks_of(g.out_channels * each * kernel, positions * g.batch);
    parallel::try_for_range(parts, grain, &|tasks| {
        let mut matrix = Vec::new();
        for task in tasks {
            let GradientTask { group, channels } = gradient_task(g, task, each);
            let k = channels.len() * kernel;
            let blocks = PositionBlocks::new::<T>(g, gathered_rows(g, k));
            let first = group * g.out_channels;
            let row = g.in_channels * kernel;
            let at = shared.ptr().wrapping_add(first * row + channels.start * kernel);
            let target = Matrix { ptr: at, rs: row as isize, cs: 1 };
            for index in 0..g.batch * blocks.count() {
                let (image, block) = (index / blocks.count(), blocks.get(index % blocks.count()));
                let columns = block.len();
                let left = gradient(grad, image, group, &block, g);
                let start = input_channels(g, image, group).start + channels.start * g.input_size();
                let right = if g.is_pointwise() {
                    Matrix::rows(x[start + block.start..].as_ptr(), positions)
                } else {
                    memory::resize(&mut matrix, k * columns, T::default())?;
                    let x = &x[start..start + channels.len() * g.input_size()];
                    gather(&mut matrix, x, g, block)?;
                    Matrix::rows(matrix.as_ptr(), columns)
                };
                let sizes = GemmSizes { m: g.out_channels, n: k, k: columns };
                // SAFETY: the task owns these columns of the weight's gradient.
                unsafe { product(sizes, target, left, right.t(), T::one(), T::one(), false)? };
            }
        }
        Ok(())
    })?;
    Ok(())
}

pub(super) fn backward_bias<T: ConvElement>(
    out: &mut [T],
    grad: &[T],
    batch: usize,
    channels: usize,
) {
    let size = if out.is_empty() || batch == 0 { 0 } else { grad.len() / (batch * channels) };
    let shared = SharedMut::new(out);
    parallel::for_range(channels, ((1 << 14) / (batch * size).max(1)).max(1), &|range| {
        for c in range {
            let mut sum = T::default();
            for n in 0..batch {
                let start = (n * channels + c) * size;
                sum = sum.plus(channel_sum(&grad[start..start + size]));
            }
            // SAFETY: one element per channel.
            unsafe { shared.slice(c..c + 1)[0] = sum };
        }
    });
}

crate::multiversion! {
    fn channel_sum<T: ConvElement>(x: &[T]) -> T {
        crate::row::reduce(x, T::default(), T::plus, |v| v)
    }
}
