//! Softmax of rows.
//!
//! Invariant: a row's result depends on the row alone. Rows of at most `GROUP` elements are summed in order, those of at most
//! `MAX_TRANSPOSED` in the lanes of one group that are folded in halves, whether sixteen of them are transposed together or each is
//! taken as it lies; longer ones as [`reduce`] does.

use super::{Exponential, greater, logarithms};
use crate::dense::Real;
use crate::interrupt;
use crate::row::{GROUP, padded, reduce, reduce_group, sum_pairs};
use crate::simd::transpose::{SQUARE, square};

/// Elements of a long row between two looks for an interruption; whole groups.
const PART: usize = 1 << 16;

/// Most elements of rows that are transposed to become columns.
const MAX_TRANSPOSED: usize = 128;

/// `map` of each lane. (`array::map` would be a function of its own, compiled without the instruction set.)
#[inline(always)]
fn map_lanes<T: Copy>(mut lanes: [T; GROUP], map: impl Fn(T) -> T) -> [T; GROUP] {
    for lane in &mut lanes {
        *lane = map(*lane);
    }
    lanes
}

/// `join` of two groups.
#[inline(always)]
pub(super) fn joined<T: Copy>(
    mut a: [T; GROUP],
    b: [T; GROUP],
    join: impl Fn(T, T) -> T,
) -> [T; GROUP] {
    for l in 0..GROUP {
        a[l] = join(a[l], b[l]);
    }
    a
}

/// `out[i] = map(x[i])`, the last elements as one padded group: a scalar `map` costs as much as a group's.
#[inline(always)]
fn map_row<T: Real>(out: &mut [T], x: &[T], map: impl Fn(T) -> T) {
    let (groups, rest) = x.as_chunks::<GROUP>();
    for (out, group) in out.as_chunks_mut::<GROUP>().0.iter_mut().zip(groups) {
        *out = map_lanes(*group, &map);
    }
    if std::hint::black_box(!rest.is_empty()) {
        // (Hidden, or LLVM computes the group also where there is no rest.) Some elements once more, where there are enough: a
        // group of known size is moved at once.
        let group = x.last_chunk::<GROUP>().map_or_else(|| padded(rest, T::ZERO), |group| *group);
        let mapped = map_lanes(group, map);
        match out.last_chunk_mut::<GROUP>() {
            Some(out) => *out = mapped,
            None => out.copy_from_slice(&mapped[..rest.len()]),
        }
    }
}

/// `out[i] = map(x[i], y[i])` of a row of at least a group, as [`map_row`].
#[inline(always)]
fn map_pairs<T: Real>(out: &mut [T], x: &[T], y: &[T], map: impl Fn(T, T) -> T) {
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
    let is_whole = rest.is_empty();
    for ((out, x), y) in groups.iter_mut().zip(x.as_chunks().0).zip(y.as_chunks().0) {
        *out = joined(*x, *y, &map);
    }
    let last = (out.last_chunk_mut::<GROUP>(), x.last_chunk(), y.last_chunk());
    if let (false, (Some(out), Some(x), Some(y))) = (std::hint::black_box(is_whole), last) {
        *out = joined(*x, *y, map);
    }
}

/// Up to [`GROUP`] rows of at most [`GROUP`] elements, seen as columns: one lane per row.
type RowTile<T> = [[T; GROUP]; GROUP];

/// Writes the rows `x` of `size` elements as columns. (In place, because such an array is large to move.)
#[inline(always)]
fn load_columns<T: Real>(columns: &mut RowTile<T>, x: &[T], size: usize) {
    for (row, x) in x.chunks_exact(size).enumerate() {
        for (column, &value) in columns.iter_mut().zip(x) {
            column[row % GROUP] = value;
        }
    }
}

/// Writes columns back as rows.
#[inline(always)]
fn store_columns<T: Copy>(out: &mut [T], size: usize, columns: &RowTile<T>) {
    for (row, out) in out.chunks_exact_mut(size).enumerate() {
        for (value, column) in out.iter_mut().zip(columns) {
            *value = column[row % GROUP];
        }
    }
}

/// Folds the first `size` columns, one after the other.
#[inline(always)]
fn fold_columns<T: Copy>(
    columns: &RowTile<T>,
    size: usize,
    join: impl Fn(T, T) -> T,
) -> [T; GROUP] {
    let mut lanes = columns[0];
    for column in columns.iter().take(size).skip(1) {
        for l in 0..GROUP {
            lanes[l] = join(lanes[l], column[l]);
        }
    }
    lanes
}

/// The sum of `e^x` of the first `size` columns, one after the other.
#[inline(always)]
fn sum_of_exponentials<T: Exponential>(columns: &RowTile<T>, size: usize) -> [T; GROUP] {
    let mut sum = [T::ZERO; GROUP];
    for column in columns.iter().take(size) {
        // Hidden, as in `map_columns`.
        let column = *std::hint::black_box(column);
        for l in 0..GROUP {
            sum[l] += column[l].exponential();
        }
    }
    sum
}

/// The sum of the products of the first `size` columns of both, one after the other.
#[inline(always)]
fn sum_of_products<T: Real>(a: &RowTile<T>, b: &RowTile<T>, size: usize) -> [T; GROUP] {
    let mut sum = [T::ZERO; GROUP];
    for (at, pair) in a.iter().zip(b).take(size).enumerate() {
        // Hidden, as in `map_columns`.
        let (a, b) = std::hint::black_box(pair);
        for l in 0..GROUP {
            let product = a[l] * b[l];
            sum[l] = if at == 0 { product } else { sum[l] + product };
        }
    }
    sum
}

/// `map(column element, the lane's value)` of the first `size` columns.
#[inline(always)]
fn map_columns<T: Copy>(
    columns: &mut RowTile<T>,
    size: usize,
    lanes: &[T; GROUP],
    map: impl Fn(T, T) -> T,
) {
    for column in columns.iter_mut().take(size) {
        // Hidden, or LLVM takes a lane of several columns at a time, gathered from memory.
        let column = std::hint::black_box(column);
        for l in 0..GROUP {
            column[l] = map(column[l], lanes[l]);
        }
    }
}

/// Softmax or log-softmax of each row of `size` elements.
pub(super) fn forward<T: Exponential>(out: &mut [T], x: &[T], size: usize, log: bool) {
    let (mut out, mut x) = (out, x);
    if (GROUP..=MAX_TRANSPOSED).contains(&size) && x.len() >= GROUP * size {
        let whole = x.len() / (GROUP * size) * (GROUP * size);
        let (blocks, rest) = out.split_at_mut(whole);
        transposed(blocks, &x[..whole], size, log);
        (out, x) = (rest, &x[whole..]);
    }
    if size <= GROUP { short(out, x, size, log) } else { long(out, x, size, log) }
}

/// The gradient of [`forward`] from its result `y`.
pub(super) fn backward<T: Exponential>(out: &mut [T], grad: &[T], y: &[T], size: usize, log: bool) {
    if size < GROUP {
        short_backward(out, grad, y, size, log);
    } else {
        long_backward(out, grad, y, size, log);
    }
}

crate::multiversion! {
fn short<T: Exponential>(out: &mut [T], x: &[T], size: usize, log: bool) {
    let blocks = x.chunks(GROUP * size);
    let mut y = [[T::ZERO; GROUP]; GROUP];
    for (out, x) in out.chunks_mut(GROUP * size).zip(blocks) {
        load_columns(&mut y, x, size);
        let top = fold_columns(&y, size, greater);
        if log {
            map_columns(&mut y, size, &top, |x, top| x - top);
            let mut shift = [sum_of_exponentials(&y, size)];
            logarithms(&mut shift);
            let [shift] = shift;
            map_columns(&mut y, size, &shift, |x, shift| x - shift);
        } else {
            map_columns(&mut y, size, &top, |x, top| (x - top).exponential());
            let sum = fold_columns(&y, size, |a, b| a + b);
            let scale = map_lanes(sum, |sum| T::ONE / sum);
            map_columns(&mut y, size, &scale, |y, scale| y * scale);
        }
        store_columns(out, size, &y);
    }
}
}

/// Where squares of sixteen columns begin that cover `size` of them, the last two overlapping.
#[inline(always)]
fn squares(size: usize) -> impl Iterator<Item = usize> {
    (0..size.div_ceil(SQUARE)).map(move |i| (i * SQUARE).min(size - SQUARE))
}

crate::multiversion! {
/// Blocks of sixteen rows, transposed.
fn transposed<T: Exponential>(out: &mut [T], x: &[T], size: usize, log: bool) {
    const { assert!(GROUP == SQUARE) };
    let (row, inner) = ((size * size_of::<T>()) as isize, (GROUP * size_of::<T>()) as isize);
    let mut columns = [[T::ZERO; GROUP]; MAX_TRANSPOSED];
    let columns = &mut columns[..size];
    for (out, x) in out.chunks_exact_mut(GROUP * size).zip(x.chunks_exact(GROUP * size)) {
        for first in squares(size) {
            let to = columns[first..first + SQUARE].as_mut_ptr().cast();
            // SAFETY: sixteen elements of the sixteen rows of a block, and as many columns.
            unsafe { square::<T, false>(to, inner, x[first..].as_ptr().cast(), row) };
        }
        let mut top = columns[0];
        for column in &columns[1..] {
            top = joined(top, *column, greater);
        }
        // Rows of one group are summed in order, the others as the lanes of one.
        let chains = if size <= GROUP { 1 } else { GROUP };
        let mut sums = [[T::ZERO; GROUP]; GROUP];
        for (j, column) in columns.iter_mut().enumerate() {
            let mut exponential = *column;
            for l in 0..GROUP {
                exponential[l] = (exponential[l] - top[l]).exponential();
            }
            if !log {
                *column = exponential;
            }
            let sum = &mut sums[j % chains];
            *sum = joined(*sum, exponential, |a, b| a + b);
        }
        let mut width = chains / 2;
        while width > 0 {
            for j in 0..width {
                sums[j] = joined(sums[j], sums[j + width], |a, b| a + b);
            }
            width /= 2;
        }
        if log {
            logarithms(&mut sums[..1]);
            // The rows themselves are used, which saves transposing the columns back.
            let (rows, shifts) = (out.chunks_exact_mut(size).zip(x.chunks_exact(size)), sums[0]);
            for ((out, x), (top, shift)) in rows.zip(top.into_iter().zip(shifts)) {
                for first in squares(size) {
                    // Hidden, or LLVM takes an element of several groups at a time, gathered from memory.
                    let from = std::hint::black_box(&x[first..first + GROUP]);
                    let mut group = [T::ZERO; GROUP];
                    group.copy_from_slice(from);
                    for x in &mut group {
                        *x = *x - top - shift;
                    }
                    out[first..first + GROUP].copy_from_slice(&group);
                }
            }
            continue;
        }
        let scale = map_lanes(sums[0], |sum| T::ONE / sum);
        for column in columns.iter_mut() {
            // Hidden, as in `map_columns`.
            let column = std::hint::black_box(column);
            *column = joined(*column, scale, |y, scale| y * scale);
        }
        for first in squares(size) {
            let from = columns[first..first + SQUARE].as_ptr().cast();
            // SAFETY: as above.
            unsafe { square::<T, false>(out[first..].as_mut_ptr().cast(), row, from, inner) };
        }
    }
}
}

crate::multiversion! {
fn long<T: Exponential>(out: &mut [T], x: &[T], size: usize, log: bool) {
    for (out, x) in out.chunks_exact_mut(size).zip(x.chunks_exact(size)) {
        let top = reduce(x, T::NEG_INFINITY, greater, |v| v);
        for (out, x) in out.chunks_mut(PART).zip(x.chunks(PART)) {
            if size > PART {
                interrupt::check();
            }
            map_row(out, x, |x| (x - top).exponential());
        }
        let sum = if size <= MAX_TRANSPOSED {
            reduce_group(out, T::ZERO, |a, b| a + b, |v| v)
        } else {
            reduce(out, T::ZERO, |a, b| a + b, |v| v)
        };
        if log {
            let shift = sum.logarithm();
            for (out, &x) in out.iter_mut().zip(x) {
                *out = x - top - shift;
            }
        } else {
            let scale = T::ONE / sum;
            for out in out {
                *out *= scale;
            }
        }
    }
}
}

crate::multiversion! {
fn short_backward<T: Exponential>(out: &mut [T], grad: &[T], y: &[T], size: usize, log: bool) {
    let blocks = grad.chunks(GROUP * size).zip(y.chunks(GROUP * size));
    let (mut grad, mut y) = ([[T::ZERO; GROUP]; GROUP], [[T::ZERO; GROUP]; GROUP]);
    for (out, (given, result)) in out.chunks_mut(GROUP * size).zip(blocks) {
        load_columns(&mut grad, given, size);
        load_columns(&mut y, result, size);
        if log {
            let sum = fold_columns(&grad, size, |a, b| a + b);
            map_columns(&mut y, size, &sum, |y, sum| y.exponential() * sum);
            for j in 0..size {
                for l in 0..GROUP {
                    grad[j][l] -= y[j][l];
                }
            }
        } else {
            let sum = sum_of_products(&grad, &y, size);
            map_columns(&mut grad, size, &sum, |g, sum| g - sum);
            for j in 0..size {
                for l in 0..GROUP {
                    grad[j][l] *= y[j][l];
                }
            }
        }
        store_columns(out, size, &grad);
    }
}
}

crate::multiversion! {
fn long_backward<T: Exponential>(out: &mut [T], grad: &[T], y: &[T], size: usize, log: bool) {
    let rows = grad.chunks_exact(size).zip(y.chunks_exact(size));
    for (out, (grad, y)) in out.chunks_exact_mut(size).zip(rows) {
        if log {
            let sum = reduce(grad, T::ZERO, |a, b| a + b, |v| v);
            map_pairs(out, grad, y, |g, y| g - y.exponential() * sum);
        } else {
            let sum = sum_pairs(grad, y, |g, y| g * y);
            for ((out, &g), &y) in out.iter_mut().zip(grad).zip(y) {
                *out = y * (g - sum);
            }
        }
    }
}
}
