//! Batch norm of many samples with few elements each, as (100000, 2, 5).
//!
//! Several samples are taken as one wide row, over which the channels' values repeat: every loop is over neighbouring
//! elements, however few a channel has in a sample. Fixed blocks of wide rows are the tasks; what they sum is added up in
//! their order, so that results do not depend on threads.

use super::{ChannelSpans, GRAIN};
use crate::Result;
use crate::dense::{Real, SharedMut};
use crate::memory;
use crate::parallel;

/// Samples in a wide row: its length is a multiple of every register's lanes.
const SAMPLES: usize = 16;
/// Most elements of a narrow sample.
const NARROW: usize = 64;
/// Fewest samples for which patterns pay.
const FEWEST: usize = 4 * SAMPLES;
/// Wide rows that are summed before `f64` takes over.
const ROWS: usize = 64;

/// Whether there are many samples of few elements.
pub(super) fn is_narrow(s: ChannelSpans) -> bool {
    (1..=NARROW).contains(&(s.channels * s.inner)) && s.batch >= FEWEST
}

/// The channels' values along a wide row.
fn pattern<T: Real>(values: &[T], s: ChannelSpans) -> Result<Vec<T>> {
    let width = s.channels * s.inner;
    memory::collect((0..SAMPLES * width).map(|i| values[i % width / s.inner]))
}

/// Adds the results of a block, of two operands and a pattern, to the totals of the channels, which
/// have equal numbers of elements.
type BlockSum<T> = fn((&[T], &[T]), &[T], usize, &mut [f64]);

/// The sum over each channel of what `block` makes of two operands and the channel's value.
fn sums<T: Real>(
    operands: (&[T], &[T]),
    s: ChannelSpans,
    values: &[T],
    block: BlockSum<T>,
) -> Result<Vec<f64>> {
    let (a, b) = operands;
    let pattern = pattern(values, s)?;
    let length = ROWS * pattern.len();
    let blocks = a.len().div_ceil(length);
    let mut parts = memory::filled(0.0, blocks * s.channels)?;
    let shared = SharedMut::new(&mut parts);
    parallel::for_range(blocks, (GRAIN / length).max(1), &|range| {
        for i in range {
            let span = i * length..a.len().min((i + 1) * length);
            // SAFETY: each block is in one range.
            let totals = unsafe { shared.slice(i * s.channels..(i + 1) * s.channels) };
            block((&a[span.clone()], &b[span]), &pattern, s.inner, totals);
        }
    });
    let mut totals = memory::filled(0.0, s.channels)?;
    for part in parts.chunks_exact(s.channels) {
        for (total, part) in totals.iter_mut().zip(part) {
            *total += part;
        }
    }
    Ok(totals)
}

#[inline(always)]
fn block_sums<T: Real>(
    (a, b): (&[T], &[T]),
    pattern: &[T],
    inner: usize,
    totals: &mut [f64],
    map: impl Fn(T, T, T) -> T,
) {
    let width = pattern.len();
    let mut sums = [T::ZERO; SAMPLES * NARROW];
    let sums = &mut sums[..width];
    for (a, b) in a.chunks(width).zip(b.chunks(width)) {
        for (((sum, &a), &b), &value) in sums.iter_mut().zip(a).zip(b).zip(pattern) {
            *sum += map(a, b, value);
        }
    }
    let mut channels = sums.chunks_exact(inner);
    while channels.len() > 0 {
        for (total, sums) in totals.iter_mut().zip(&mut channels) {
            for sum in sums {
                *total += sum.wide();
            }
        }
    }
}

crate::multiversion! {
fn plain<T: Real>(operands: (&[T], &[T]), pattern: &[T], inner: usize, totals: &mut [f64]) {
    block_sums(operands, pattern, inner, totals, |x, _, _| x);
}
}

crate::multiversion! {
fn squares<T: Real>(operands: (&[T], &[T]), pattern: &[T], inner: usize, totals: &mut [f64]) {
    block_sums(operands, pattern, inner, totals, |x, _, mean| (x - mean) * (x - mean));
}
}

crate::multiversion! {
fn products<T: Real>(operands: (&[T], &[T]), pattern: &[T], inner: usize, totals: &mut [f64]) {
    block_sums(operands, pattern, inner, totals, |g, x, mean| g * (x - mean));
}
}

/// The mean of each channel, and the biased variance about it.
pub(super) fn statistics<T: Real>(
    x: &[T],
    s: ChannelSpans,
    means: &mut [T],
    variances: &mut [f64],
) -> Result<()> {
    let count = s.count() as f64;
    let zeros = memory::filled(T::ZERO, s.channels)?;
    for (mean, total) in means.iter_mut().zip(sums((x, x), s, &zeros, plain)?) {
        *mean = T::of(total / count);
    }
    for (variance, total) in variances.iter_mut().zip(sums((x, x), s, means, squares)?) {
        *variance = total / count;
    }
    Ok(())
}

/// Per channel: the sums of `grad`, and of `grad * (x - mean)`.
pub(super) fn gradient_sums<T: Real>(
    grad: &[T],
    x: &[T],
    s: ChannelSpans,
    means: &[T],
) -> Result<[Vec<f64>; 2]> {
    Ok([sums((grad, x), s, means, plain)?, sums((grad, x), s, means, products)?])
}

/// Calls `work` with spans of whole wide rows (the last one may be short), on several threads.
fn for_rows(length: usize, width: usize, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    let rows = length.div_ceil(width);
    parallel::for_range(rows, (GRAIN / width).max(1), &|range| {
        work(range.start * width..length.min(range.end * width));
    });
}

/// `out = x * scale + shift`, with the channels' factors.
pub(super) fn affine<T: Real>(
    out: &mut [T],
    x: &[T],
    s: ChannelSpans,
    factors: [&[T]; 2],
) -> Result<()> {
    crate::multiversion! {
    fn rows<T: Real>(out: &mut [T], x: &[T], scale: &[T], shift: &[T]) {
        let width = scale.len();
        for (out, x) in out.chunks_mut(width).zip(x.chunks(width)) {
            for (((out, &x), &scale), &shift) in out.iter_mut().zip(x).zip(scale).zip(shift) {
                *out = x.mul_add(scale, shift);
            }
        }
    }
    }
    let [scale, shift] = [pattern(factors[0], s)?, pattern(factors[1], s)?];
    let shared = SharedMut::new(out);
    for_rows(x.len(), scale.len(), &|span| {
        // SAFETY: each row is in one range.
        rows(unsafe { shared.slice(span.clone()) }, &x[span], &scale, &shift);
    });
    Ok(())
}

/// `out = grad * a + x * b + c`, with the channels' factors.
pub(super) fn combine<T: Real>(
    out: &mut [T],
    (grad, x): (&[T], &[T]),
    s: ChannelSpans,
    factors: [&[T]; 3],
) -> Result<()> {
    crate::multiversion! {
    fn rows<T: Real>(out: &mut [T], grad: &[T], x: &[T], factors: [&[T]; 3]) {
        let [a, b, c] = factors;
        let width = a.len();
        let operands = grad.chunks(width).zip(x.chunks(width));
        for (out, (grad, x)) in out.chunks_mut(width).zip(operands) {
            let values = a.iter().zip(b).zip(c);
            for ((out, (&g, &x)), ((&a, &b), &c)) in out.iter_mut().zip(grad.iter().zip(x)).zip(values) {
                *out = g.mul_add(a, x.mul_add(b, c));
            }
        }
    }
    }
    let [a, b, c] = factors;
    let [a, b, c] = [pattern(a, s)?, pattern(b, s)?, pattern(c, s)?];
    let shared = SharedMut::new(out);
    for_rows(x.len(), a.len(), &|span| {
        // SAFETY: each row is in one range.
        let out = unsafe { shared.slice(span.clone()) };
        rows(out, &grad[span.clone()], &x[span], [&a, &b, &c]);
    });
    Ok(())
}
