//! Convolution as matrix products over blocks of output positions.
//!
//! Per batch element and group, with K = channels x kernel elements and P = positions:
//! forward `out (O, P) = weight (O, K) @ gathered (K, P)`, input gradient
//! `gathered (K, P) = weight^T @ grad (O, P)` added back, weight gradient
//! `weight (O, K) += grad (O, P) @ gathered^T`. Each task owns its outputs, and sums over batch and
//! blocks in order.

use super::Number;
use super::gather::{gather, scatter};
use super::geometry::Geometry;
use crate::dense::SharedMut;
use crate::gemm::{Matrix, Sizes, product};
use crate::parallel;
use std::ops::Range;

/// Bytes of a gathered block: about half of a second-level cache.
const BLOCK_BYTES: usize = 384 << 10;

/// Output positions below which several images share a product.
const FEW: usize = 96;
/// Positions of all images together that such a product should have.
const ENOUGH: usize = 256;

/// Images and positions whose products are made together.
struct Block {
    images: Range<usize>,
    positions: Range<usize>,
}

impl Block {
    /// Columns of the block's matrices.
    fn columns(&self) -> usize {
        self.images.len() * self.positions.len()
    }
    /// The images with where their columns begin.
    fn images(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let width = self.positions.len();
        self.images.clone().enumerate().map(move |(i, n)| (n, i * width))
    }
}

/// How images and positions are cut into blocks: parts of one image, or some whole images.
#[derive(Clone, Copy)]
struct Blocks {
    /// Images per block.
    images: usize,
    /// Positions per block.
    positions: usize,
    batch: usize,
    all: usize,
}

impl Blocks {
    /// For a matrix of `rows` rows, none if the input itself is the matrix.
    fn new<T>(g: &Geometry, rows: Option<usize>) -> Blocks {
        let all = g.output_size();
        let blocks = Blocks { images: 1, positions: all.max(1), batch: g.batch, all };
        if all < FEW {
            return Blocks { images: (ENOUGH / all.max(1)).clamp(1, g.batch.max(1)), ..blocks };
        }
        let Some(rows) = rows else { return blocks };
        let fit = BLOCK_BYTES / (rows.max(1) * size_of::<T>());
        let wanted = fit.clamp(FEW, 4096).min(all);
        // Blocks of even size, so that the last one is no sliver.
        Blocks { positions: all.div_ceil(all.div_ceil(wanted)), ..blocks }
    }
    /// Blocks per image, or per images.
    fn per_image(self) -> usize {
        self.all.div_ceil(self.positions)
    }
    fn count(self) -> usize {
        self.batch.div_ceil(self.images) * self.per_image()
    }
    /// Columns of the largest block.
    fn columns(self) -> usize {
        self.images * self.positions
    }
    fn get(self, index: usize) -> Block {
        let (first, start) =
            (index / self.per_image() * self.images, index % self.per_image() * self.positions);
        Block {
            images: first..self.batch.min(first + self.images),
            positions: start..self.all.min(start + self.positions),
        }
    }
}

/// The rows of the matrix if the input has to be gathered.
fn gathered_rows(g: &Geometry, rows: usize) -> Option<usize> {
    (!g.is_pointwise()).then_some(rows)
}

/// Copies a block's columns between images, `channels` rows in each from row `first` of `rows` on, and a matrix.
fn for_rows(
    block: &Block,
    (first, channels, rows): (usize, usize, usize),
    all: usize,
    mut each: impl FnMut(Range<usize>, Range<usize>, usize),
) {
    let (width, pitch) = (block.positions.len(), block.columns());
    for (n, column) in block.images() {
        for o in 0..channels {
            let at = (n * rows + first + o) * all + block.positions.start;
            each(at..at + width, o * pitch + column..o * pitch + column + width, o);
        }
    }
}

/// The input channels of one group of one batch element.
fn input_channels(g: &Geometry, n: usize, group: usize) -> Range<usize> {
    let size = g.in_channels * g.input_size();
    let start = (n * g.groups + group) * size;
    start..start + size
}

pub(super) fn forward<T: Number>(
    out: &mut [T],
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &Geometry,
) {
    let positions = g.output_size();
    if out.is_empty() {
        return;
    }
    let k = g.in_channels * g.kernel_size();
    let blocks = Blocks::new::<T>(g, gathered_rows(g, k));
    let is_single = blocks.images == 1;
    let is_gathered = !(g.is_pointwise() && is_single);
    let channels = g.groups * g.out_channels;
    let shared = SharedMut::new(out);
    parallel::for_range(blocks.count() * g.groups, 1, &|tasks| {
        let mut matrix = vec![T::default(); if is_gathered { k * blocks.columns() } else { 0 }];
        let mut sums =
            vec![T::default(); if is_single { 0 } else { g.out_channels * blocks.columns() }];
        for task in tasks {
            let (block, group) = (blocks.get(task / g.groups), task % g.groups);
            let columns = block.columns();
            let right = if is_gathered {
                for (n, column) in block.images() {
                    let x = &x[input_channels(g, n, group)];
                    gather(&mut matrix[column..], columns, x, g, block.positions.clone());
                }
                Matrix::rows(matrix.as_ptr(), columns)
            } else {
                let x = &x[input_channels(g, block.images.start, group)];
                Matrix::rows(x[block.positions.start..].as_ptr(), positions)
            };
            let sizes = Sizes { m: g.out_channels, n: columns, k };
            let first = group * g.out_channels;
            let left = Matrix::rows(w[first * k..].as_ptr(), k);
            if is_single {
                let at =
                    (block.images.start * channels + first) * positions + block.positions.start;
                let target =
                    Matrix { ptr: shared.ptr().wrapping_add(at), rs: positions as isize, cs: 1 };
                let beta = start_with_bias(target, sizes, bias, first);
                // SAFETY: the task owns these channels and positions of the output.
                unsafe { product(sizes, target, left, right, T::one(), beta, false) };
                continue;
            }
            let target = Matrix::rows(sums.as_mut_ptr(), columns);
            // SAFETY: the sums are this task's.
            unsafe { product(sizes, target, left, right, T::one(), T::default(), false) };
            for_rows(&block, (first, g.out_channels, channels), positions, |at, from, o| {
                // SAFETY: as above.
                let out = unsafe { shared.slice(at) };
                let bias = bias.map_or(T::default(), |bias| bias[first + o]);
                for (out, sum) in out.iter_mut().zip(&sums[from]) {
                    *out = sum.plus(bias);
                }
            });
        }
    });
}

/// Fills the output with the bias; returns the factor for what is there.
fn start_with_bias<T: Number>(c: Matrix<T>, s: Sizes, bias: Option<&[T]>, first: usize) -> T {
    let Some(bias) = bias else { return T::default() };
    for o in 0..s.m {
        // SAFETY: `s.n` elements of a row the caller owns.
        unsafe { std::slice::from_raw_parts_mut(c.at(o, 0).ptr, s.n) }.fill(bias[first + o]);
    }
    T::one()
}

pub(super) fn add_bias<T: Number>(out: &mut [T], bias: &[T], size: usize) {
    for (channel, bias) in out.chunks_exact_mut(size.max(1)).zip(bias.iter().cycle()) {
        for value in channel {
            *value = value.plus(*bias);
        }
    }
}

/// Input channels per task of the gradients: as many as keep a block of the matrix in cache.
fn channels_per_task<T>(g: &Geometry) -> usize {
    let fit = BLOCK_BYTES / (g.kernel_size() * size_of::<T>() * 256.min(g.output_size().max(1)));
    fit.clamp(1, g.in_channels.max(1))
}

/// A task of the gradients: batch element or none, group, input channels.
struct Part {
    group: usize,
    channels: Range<usize>,
}

fn part(g: &Geometry, index: usize, each: usize) -> Part {
    let per_group = g.in_channels.div_ceil(each);
    let start = index % per_group * each;
    Part { group: index / per_group, channels: start..g.in_channels.min(start + each) }
}

pub(super) fn backward_input<T: Number>(out: &mut [T], grad: &[T], w: &[T], g: &Geometry) {
    out.fill(T::default());
    let (positions, kernel) = (g.output_size(), g.kernel_size());
    if out.is_empty() || positions == 0 || kernel == 0 {
        return;
    }
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let shared = SharedMut::new(out);
    // A block of images at a time, so that each task owns its images.
    let images = Blocks::new::<T>(g, None).images;
    parallel::for_range(g.batch.div_ceil(images) * parts, 1, &|tasks| {
        let (mut matrix, mut grads) = (Vec::new(), Vec::new());
        for task in tasks {
            let Part { group, channels } = part(g, task % parts, each);
            let k = channels.len() * kernel;
            let blocks = Blocks::new::<T>(g, gathered_rows(g, k));
            let first = group * g.out_channels;
            let stride = (g.in_channels * kernel) as isize;
            let from = w[first * g.in_channels * kernel + channels.start * kernel..].as_ptr();
            let left = Matrix { ptr: from.cast_mut(), rs: 1, cs: stride };
            let per_images = blocks.per_image();
            for index in task / parts * per_images..(task / parts + 1) * per_images {
                let block = blocks.get(index);
                let columns = block.columns();
                let right = columns_of(&mut grads, grad, &block, group, g);
                let sizes = Sizes { m: k, n: columns, k: g.out_channels };
                let start_of =
                    |n: usize| input_channels(g, n, group).start + channels.start * g.input_size();
                if g.is_pointwise() && block.images.len() == 1 {
                    let at = start_of(block.images.start) + block.positions.start;
                    let target = Matrix::rows(shared.ptr().wrapping_add(at), positions);
                    // SAFETY: the task owns these images and input channels.
                    unsafe { product(sizes, target, left, right, T::one(), T::default(), false) };
                    continue;
                }
                matrix.resize(k * columns, T::default());
                let target = Matrix::rows(matrix.as_mut_ptr(), columns);
                // SAFETY: the matrix is this task's.
                unsafe { product(sizes, target, left, right, T::one(), T::default(), false) };
                for (n, column) in block.images() {
                    let start = start_of(n);
                    // SAFETY: as above.
                    let x = unsafe { shared.slice(start..start + channels.len() * g.input_size()) };
                    scatter(x, &matrix[column..], columns, g, block.positions.clone());
                }
            }
        }
    });
}

/// A block's columns of the output's gradient as a matrix, copied to `copy` if they belong to several images.
fn columns_of<T: Number>(
    copy: &mut Vec<T>,
    grad: &[T],
    block: &Block,
    group: usize,
    g: &Geometry,
) -> Matrix<T> {
    let (all, channels) = (g.output_size(), g.groups * g.out_channels);
    let first = group * g.out_channels;
    if block.images.len() == 1 {
        let at = (block.images.start * channels + first) * all + block.positions.start;
        return Matrix::rows(grad[at..].as_ptr(), all);
    }
    copy.resize(g.out_channels * block.columns(), T::default());
    for_rows(block, (first, g.out_channels, channels), all, |from, to, _| {
        copy[to].copy_from_slice(&grad[from]);
    });
    Matrix::rows(copy.as_ptr(), block.columns())
}

pub(super) fn backward_weight<T: Number>(out: &mut [T], grad: &[T], x: &[T], g: &Geometry) {
    out.fill(T::default());
    let (positions, kernel) = (g.output_size(), g.kernel_size());
    if out.is_empty() || positions == 0 {
        return;
    }
    let each = channels_per_task::<T>(g);
    let parts = g.groups * g.in_channels.div_ceil(each);
    let shared = SharedMut::new(out);
    parallel::for_range(parts, 1, &|tasks| {
        let (mut matrix, mut grads) = (Vec::new(), Vec::new());
        for task in tasks {
            let Part { group, channels } = part(g, task, each);
            let k = channels.len() * kernel;
            let blocks = Blocks::new::<T>(g, gathered_rows(g, k));
            let first = group * g.out_channels;
            let row = g.in_channels * kernel;
            let at = shared.ptr().wrapping_add(first * row + channels.start * kernel);
            let target = Matrix { ptr: at, rs: row as isize, cs: 1 };
            let start_of =
                |n: usize| input_channels(g, n, group).start + channels.start * g.input_size();
            for index in 0..blocks.count() {
                let block = blocks.get(index);
                let columns = block.columns();
                let left = columns_of(&mut grads, grad, &block, group, g);
                let right = if g.is_pointwise() && block.images.len() == 1 {
                    let at = start_of(block.images.start) + block.positions.start;
                    Matrix::rows(x[at..].as_ptr(), positions)
                } else {
                    matrix.resize(k * columns, T::default());
                    for (n, column) in block.images() {
                        let x = &x[start_of(n)..start_of(n) + channels.len() * g.input_size()];
                        gather(&mut matrix[column..], columns, x, g, block.positions.clone());
                    }
                    Matrix::rows(matrix.as_ptr(), columns)
                };
                let sizes = Sizes { m: g.out_channels, n: k, k: columns };
                // SAFETY: the task owns these columns of the weight's gradient.
                unsafe { product(sizes, target, left, right.t(), T::one(), T::one(), false) };
            }
        }
    });
}

pub(super) fn backward_bias<T: Number>(out: &mut [T], grad: &[T], batch: usize, channels: usize) {
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
    fn channel_sum<T: Number>(x: &[T]) -> T {
        crate::row::reduce(x, T::default(), T::plus, |v| v)
    }
}
