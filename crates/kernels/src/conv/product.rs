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

/// Positions per block for a matrix of `rows` rows.
fn block_positions<T>(g: &Geometry, rows: usize) -> usize {
    let fit = BLOCK_BYTES / (rows.max(1) * size_of::<T>());
    let all = g.output_size().max(1);
    let wanted = fit.clamp(96, 4096).min(all);
    // Blocks of even size, so that the last one is no sliver.
    all.div_ceil(all.div_ceil(wanted))
}

fn blocks(g: &Geometry, each: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let all = g.output_size();
    (0..all.div_ceil(each)).map(move |b| b * each..all.min((b + 1) * each))
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
    let each = if g.is_pointwise() { positions } else { block_positions::<T>(g, k) };
    let per_group = positions.div_ceil(each);
    let shared = SharedMut::new(out);
    parallel::for_range(g.batch * g.groups * per_group, 1, &|tasks| {
        let mut matrix = vec![T::default(); if g.is_pointwise() { 0 } else { k * each }];
        for task in tasks {
            let (n, group) = (task / per_group / g.groups, task / per_group % g.groups);
            let start = task % per_group * each;
            let span = start..positions.min(start + each);
            let x = &x[input_channels(g, n, group)];
            let right = if g.is_pointwise() {
                Matrix::rows(x[span.start..].as_ptr(), positions)
            } else {
                gather(&mut matrix, x, g, span.clone());
                Matrix::rows(matrix.as_ptr(), span.len())
            };
            let sizes = Sizes { m: g.out_channels, n: span.len(), k };
            let first = group * g.out_channels;
            let at = (n * g.groups * g.out_channels + first) * positions + span.start;
            let target =
                Matrix { ptr: shared.ptr().wrapping_add(at), rs: positions as isize, cs: 1 };
            let beta = start_with_bias(target, sizes, bias, first);
            let left = Matrix::rows(w[first * k..].as_ptr(), k);
            // SAFETY: the task owns these channels and positions of the output.
            unsafe { product(sizes, target, left, right, T::one(), beta, false) };
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
    parallel::for_range(g.batch * parts, 1, &|tasks| {
        let mut matrix = Vec::new();
        for task in tasks {
            let n = task / parts;
            let Part { group, channels } = part(g, task % parts, each);
            let k = channels.len() * kernel;
            let start = input_channels(g, n, group).start + channels.start * g.input_size();
            // SAFETY: the task owns these input channels.
            let x = unsafe { shared.slice(start..start + channels.len() * g.input_size()) };
            let step = block_positions::<T>(g, k);
            matrix.resize(k * step, T::default());
            let first = group * g.out_channels;
            let stride = (g.in_channels * kernel) as isize;
            let from = w[first * g.in_channels * kernel + channels.start * kernel..].as_ptr();
            let left = Matrix { ptr: from.cast_mut(), rs: 1, cs: stride };
            for span in blocks(g, step) {
                let at = (n * g.groups * g.out_channels + first) * positions + span.start;
                let right = Matrix::rows(grad[at..].as_ptr(), positions);
                let sizes = Sizes { m: k, n: span.len(), k: g.out_channels };
                let target = if g.is_pointwise() {
                    Matrix::rows(x[span.start..].as_ptr(), positions)
                } else {
                    Matrix::rows(matrix.as_ptr(), span.len())
                };
                // SAFETY: the target is this task's matrix or input channels.
                unsafe { product(sizes, target, left, right, T::one(), T::default(), false) };
                if !g.is_pointwise() {
                    scatter(x, &matrix, g, span);
                }
            }
        }
    });
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
        let mut matrix = Vec::new();
        for task in tasks {
            let Part { group, channels } = part(g, task, each);
            let k = channels.len() * kernel;
            let step = block_positions::<T>(g, k);
            matrix.resize(k * step, T::default());
            let first = group * g.out_channels;
            let row = g.in_channels * kernel;
            let at = shared.ptr().wrapping_add(first * row + channels.start * kernel);
            let target = Matrix { ptr: at, rs: row as isize, cs: 1 };
            for n in 0..g.batch {
                let start = input_channels(g, n, group).start + channels.start * g.input_size();
                let x = &x[start..start + channels.len() * g.input_size()];
                for span in blocks(g, step) {
                    let at = (n * g.groups * g.out_channels + first) * positions + span.start;
                    let left = Matrix::rows(grad[at..].as_ptr(), positions);
                    let right = if g.is_pointwise() {
                        Matrix::rows(x[span.start..].as_ptr(), positions)
                    } else {
                        gather(&mut matrix, x, g, span.clone());
                        Matrix::rows(matrix.as_ptr(), span.len())
                    };
                    let sizes = Sizes { m: g.out_channels, n: k, k: span.len() };
                    // SAFETY: the task owns these columns of the weight's gradient.
                    unsafe { product(sizes, target, left, right.t(), T::one(), T::one(), false) };
                }
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
