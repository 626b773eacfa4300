//! Softmax of columns: lines that lie across memory, neighbours touching.
//!
//! Sixteen columns at a time go through their line together. Of fewer, sixteen rows side by side are taken as one wide row,
//! whose maxima and sums are joined in the end. Invariant: a column's result depends on the column and on how many there
//! are, not on who computes it.

use super::rows::joined;
use super::{Exponential, SoftmaxShape, greater, logarithms};
use crate::dense::{Real, SharedMut};
use crate::row::GROUP;

/// Columns of one task; the last one of a line may have more, so that none has less than a group.
const COLUMNS: usize = 4 * GROUP;

/// Calls `work(offset, width)` for blocks of neighbouring columns, of at least a group each.
pub(super) fn for_blocks(s: SoftmaxShape, grain: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let blocks = (s.inner / COLUMNS).max(1);
    let grain = (grain / (s.size * s.inner.min(COLUMNS))).max(1);
    crate::parallel::for_range(s.outer * blocks, grain, &|range| {
        for task in range {
            let column = task % blocks * COLUMNS;
            let is_last = task % blocks + 1 == blocks;
            let width = if is_last { s.inner - column } else { COLUMNS };
            work(task / blocks * s.size * s.inner + column, width);
        }
    });
}

/// Where the lines of a block of columns lie: element `j` of its first column at `base + j * step`.
#[derive(Clone, Copy)]
pub(super) struct ColumnBlock {
    pub(super) base: usize,
    pub(super) width: usize,
    pub(super) size: usize,
    pub(super) step: usize,
}

/// A group of neighbouring elements.
type LaneGroup<T> = [T; GROUP];

#[inline(always)]
fn group<T: Real>(x: &[T], at: usize) -> LaneGroup<T> {
    let mut group = [T::ZERO; GROUP];
    group.copy_from_slice(&x[at..at + GROUP]);
    group
}

/// # Safety
/// The group at `at` lies inside of `out`, and no other thread touches it.
#[inline(always)]
unsafe fn put_group<T: Real>(out: SharedMut<T>, at: usize, group: LaneGroup<T>) {
    // SAFETY: the caller's promise.
    unsafe { out.slice(at..at + GROUP) }.copy_from_slice(&group);
}

/// The steps of a softmax for one group of columns. (Functions: what is used four times over as a closure would be compiled
/// without the instruction set; a loop over groups, by a lane of several groups at a time.)
#[inline(always)]
fn lane_max<T: Real>(top: LaneGroup<T>, x: LaneGroup<T>) -> LaneGroup<T> {
    joined(top, x, greater)
}

#[inline(always)]
fn exponentials<T: Exponential>(mut x: LaneGroup<T>, top: LaneGroup<T>) -> LaneGroup<T> {
    for l in 0..GROUP {
        x[l] = (x[l] - top[l]).exponential();
    }
    x
}

#[inline(always)]
fn sums<T: Real>(sum: LaneGroup<T>, part: LaneGroup<T>) -> LaneGroup<T> {
    joined(sum, part, |a, b| a + b)
}

#[inline(always)]
fn products<T: Real>(a: LaneGroup<T>, b: LaneGroup<T>) -> LaneGroup<T> {
    joined(a, b, |a, b| a * b)
}

#[inline(always)]
fn differences<T: Real>(a: LaneGroup<T>, b: LaneGroup<T>) -> LaneGroup<T> {
    joined(a, b, |a, b| a - b)
}

#[inline(always)]
fn slopes<T: Exponential>(
    grad: LaneGroup<T>,
    mut y: LaneGroup<T>,
    sum: LaneGroup<T>,
    log: bool,
) -> LaneGroup<T> {
    for l in 0..GROUP {
        y[l] = gradient(grad[l], y[l], sum[l], log);
    }
    y
}

crate::multiversion! {
/// Softmax of a block of columns. No other thread touches their elements of `out`, which has as many as `x`.
pub(super) fn forward<T: Exponential>(out: SharedMut<T>, x: &[T], block: ColumnBlock, log: bool) {
    let ColumnBlock { base, width, size, step } = block;
    let mut first = 0;
    while width - first >= COLUMNS {
        let starts = (0..size).map(|j| base + first + j * step);
        let [mut a, mut b, mut c, mut d] = [[T::NEG_INFINITY; GROUP]; 4];
        for at in starts.clone() {
            a = lane_max(a, group(x, at));
            b = lane_max(b, group(x, at + GROUP));
            c = lane_max(c, group(x, at + 2 * GROUP));
            d = lane_max(d, group(x, at + 3 * GROUP));
        }
        let tops = [a, b, c, d];
        let mut totals = [[T::ZERO; GROUP]; 4];
        for at in starts.clone() {
            // SAFETY: groups of the block.
            unsafe {
                add_exponential(out, x, at, tops[0], &mut totals[0], log);
                add_exponential(out, x, at + GROUP, tops[1], &mut totals[1], log);
                add_exponential(out, x, at + 2 * GROUP, tops[2], &mut totals[2], log);
                add_exponential(out, x, at + 3 * GROUP, tops[3], &mut totals[3], log);
            }
        }
        reduce_totals(&mut totals, log);
        for at in starts {
            // SAFETY: groups of the block, of which the exponentials were written.
            unsafe {
                put_result(out, x, at, tops[0], totals[0], log);
                put_result(out, x, at + GROUP, tops[1], totals[1], log);
                put_result(out, x, at + 2 * GROUP, tops[2], totals[2], log);
                put_result(out, x, at + 3 * GROUP, tops[3], totals[3], log);
            }
        }
        first += COLUMNS;
    }
    while first < width {
        // The last group may in part be one more time what is done already.
        let start = base + first.min(width - GROUP);
        let starts = (0..size).map(|j| start + j * step);
        let mut top = [T::NEG_INFINITY; GROUP];
        for at in starts.clone() {
            top = lane_max(top, group(x, at));
        }
        let mut total = [[T::ZERO; GROUP]];
        for at in starts.clone() {
            // SAFETY: a group of the block.
            unsafe { add_exponential(out, x, at, top, &mut total[0], log) };
        }
        reduce_totals(&mut total, log);
        for at in starts {
            // SAFETY: a group of the block, of which the exponentials were written.
            unsafe { put_result(out, x, at, top, total[0], log) };
        }
        first += GROUP;
    }
}
}

/// Adds the exponentials of a group, which are also written where they are of use.
///
/// # Safety
/// The requirements of [`put_group`].
#[inline(always)]
unsafe fn add_exponential<T: Exponential>(
    out: SharedMut<T>,
    x: &[T],
    at: usize,
    top: LaneGroup<T>,
    total: &mut LaneGroup<T>,
    log: bool,
) {
    let exponential = exponentials(group(x, at), top);
    if !log {
        // SAFETY: the caller's promise.
        unsafe { put_group(out, at, exponential) };
    }
    *total = sums(*total, exponential);
}

/// What the totals of exponentials shift or scale results by.
#[inline(always)]
fn reduce_totals<T: Exponential>(totals: &mut [LaneGroup<T>], log: bool) {
    if log {
        return logarithms(totals);
    }
    for total in totals.as_flattened_mut() {
        *total = T::ONE / *total;
    }
}

/// Writes the results of a group, from its exponentials or from `x`.
///
/// # Safety
/// The requirements of [`put_group`]; if not `log`, the exponentials of the group are in `out`.
#[inline(always)]
unsafe fn put_result<T: Exponential>(
    out: SharedMut<T>,
    x: &[T],
    at: usize,
    top: LaneGroup<T>,
    total: LaneGroup<T>,
    log: bool,
) {
    let y = if log {
        differences(differences(group(x, at), top), total)
    } else {
        // SAFETY: the caller's promise.
        products(group(unsafe { out.slice(at..at + GROUP) }, 0), total)
    };
    // SAFETY: the caller's promise.
    unsafe { put_group(out, at, y) };
}

crate::multiversion! {
/// The gradient of [`forward`] from its result `y`, on the same terms.
pub(super) fn backward<T: Exponential>(
    out: SharedMut<T>,
    grad: &[T],
    y: &[T],
    block: ColumnBlock,
    log: bool,
) {
    let ColumnBlock { base, width, size, step } = block;
    let mut first = 0;
    while width - first >= COLUMNS {
        let starts = (0..size).map(|j| base + first + j * step);
        let [mut a, mut b, mut c, mut d] = [[T::ZERO; GROUP]; 4];
        for at in starts.clone() {
            a = sums(a, weighted_grad(grad, y, at, log));
            b = sums(b, weighted_grad(grad, y, at + GROUP, log));
            c = sums(c, weighted_grad(grad, y, at + 2 * GROUP, log));
            d = sums(d, weighted_grad(grad, y, at + 3 * GROUP, log));
        }
        for at in starts {
            let [at_b, at_c, at_d] = [at + GROUP, at + 2 * GROUP, at + 3 * GROUP];
            // SAFETY: groups of the block.
            unsafe {
                put_group(out, at, slopes(group(grad, at), group(y, at), a, log));
                put_group(out, at_b, slopes(group(grad, at_b), group(y, at_b), b, log));
                put_group(out, at_c, slopes(group(grad, at_c), group(y, at_c), c, log));
                put_group(out, at_d, slopes(group(grad, at_d), group(y, at_d), d, log));
            }
        }
        first += COLUMNS;
    }
    while first < width {
        let start = base + first.min(width - GROUP);
        let starts = (0..size).map(|j| start + j * step);
        let mut sum = [T::ZERO; GROUP];
        for at in starts.clone() {
            sum = sums(sum, weighted_grad(grad, y, at, log));
        }
        for at in starts {
            // SAFETY: a group of the block.
            unsafe { put_group(out, at, slopes(group(grad, at), group(y, at), sum, log)) };
        }
        first += GROUP;
    }
}
}

/// A group of gradients, times their results if not `log`.
#[inline(always)]
fn weighted_grad<T: Real>(grad: &[T], y: &[T], at: usize, log: bool) -> LaneGroup<T> {
    let grad = group(grad, at);
    if log { grad } else { products(grad, group(y, at)) }
}

/// The gradient of one element.
#[inline(always)]
fn gradient<T: Exponential>(grad: T, y: T, sum: T, log: bool) -> T {
    if log { grad - y.exponential() * sum } else { y * (grad - sum) }
}

/// Sixteen rows of fewer than sixteen columns, as they lie.
type WideRow<T> = [[T; GROUP]; GROUP];

/// Makes a wide row of at most sixteen rows, filled up with `fill`; returns how many groups they are in.
#[inline(always)]
fn fill_wide<T: Real>(wide: &mut WideRow<T>, x: &[T], fill: T) -> usize {
    let used = x.len().div_ceil(GROUP);
    if used > 0 {
        wide[..used].fill([fill; GROUP]);
        wide.as_flattened_mut()[..x.len()].copy_from_slice(x);
    }
    used
}

/// Joins the rows of a wide one, so that each has the same.
#[inline(always)]
fn join_rows<T: Real>(wide: &mut [[T; GROUP]], join: impl Fn(T, T) -> T) {
    let inner = wide.len();
    let mut width = GROUP / 2 * inner;
    let rows = wide.as_flattened_mut();
    while width >= inner {
        let (low, high) = rows.split_at_mut(width);
        for (low, &high) in low.iter_mut().zip(&*high) {
            *low = join(*low, high);
        }
        width /= 2;
    }
    let mut width = inner;
    while width < GROUP * inner {
        rows.copy_within(..width, width);
        width *= 2;
    }
}

/// The greater of `top` and of rows side by side.
#[inline(always)]
fn update_max<T: Real>(top: &mut [[T; GROUP]], x: &[[T; GROUP]]) {
    for (top, x) in top.iter_mut().zip(x) {
        let x = std::hint::black_box(x);
        *top = joined(*top, *x, greater);
    }
}

/// Adds the exponentials of rows side by side, which go to `out` if they are of use there.
#[inline(always)]
fn add_exponentials<T: Exponential>(
    sum: &mut [[T; GROUP]],
    top: &[[T; GROUP]],
    (out, x): (&mut [[T; GROUP]], &[[T; GROUP]]),
    log: bool,
) {
    for ((sum, top), (out, x)) in sum.iter_mut().zip(top).zip(out.iter_mut().zip(x)) {
        // Hidden, here and below, or LLVM takes a lane of several groups at a time, gathered from memory.
        let x = std::hint::black_box(x);
        let exponential = joined(*x, *top, |x, top| (x - top).exponential());
        if !log {
            *out = exponential;
        }
        *sum = joined(*sum, exponential, |a, b| a + b);
    }
}

/// The results of rows side by side, from their exponentials in `out` or, if `log`, from `x`.
#[inline(always)]
fn finish<T: Real>(
    sum: &[[T; GROUP]],
    top: &[[T; GROUP]],
    (out, x): (&mut [[T; GROUP]], &[[T; GROUP]]),
    log: bool,
) {
    for ((sum, top), (out, x)) in sum.iter().zip(top).zip(out.iter_mut().zip(x)) {
        let (out, x) = std::hint::black_box((out, x));
        *out = if log {
            joined(joined(*x, *top, |x, top| x - top), *sum, |x, shift| x - shift)
        } else {
            joined(*out, *sum, |exponential, scale| exponential * scale)
        };
    }
}

crate::multiversion! {
/// Softmax of fewer than sixteen columns, one block of `size` rows after the other.
pub(super) fn narrow_forward<T: Exponential>(out: &mut [T], x: &[T], s: SoftmaxShape, log: bool) {
    let (line, period) = (s.size * s.inner, GROUP * s.inner);
    let whole = line / period * period;
    let [mut top, mut sum, mut rest, mut last] = [[[T::ZERO; GROUP]; GROUP]; 4];
    let (top, sum) = (&mut top[..s.inner], &mut sum[..s.inner]);
    for (out, x) in out.chunks_exact_mut(line).zip(x.chunks_exact(line)) {
        let ((x, x_rest), (out, out_rest)) = (x.split_at(whole), out.split_at_mut(whole));
        let used = fill_wide(&mut rest, x_rest, T::NEG_INFINITY);
        let (rest, last) = (&rest[..used], &mut last[..used]);
        top.fill([T::NEG_INFINITY; GROUP]);
        sum.fill([T::ZERO; GROUP]);
        for x in x.chunks_exact(period) {
            update_max(top, x.as_chunks().0);
        }
        update_max(top, rest);
        join_rows(top, greater);
        for (out, x) in out.chunks_exact_mut(period).zip(x.chunks_exact(period)) {
            add_exponentials(sum, top, (out.as_chunks_mut().0, x.as_chunks().0), log);
        }
        add_exponentials(sum, top, (last, rest), log);
        join_rows(sum, |a, b| a + b);
        if log {
            logarithms(sum);
        } else {
            for sum in sum.as_flattened_mut() {
                *sum = T::ONE / *sum;
            }
        }
        for (out, x) in out.chunks_exact_mut(period).zip(x.chunks_exact(period)) {
            finish(sum, top, (out.as_chunks_mut().0, x.as_chunks().0), log);
        }
        finish(sum, top, (last, rest), log);
        out_rest.copy_from_slice(&last.as_flattened()[..out_rest.len()]);
    }
}
}

/// Adds the gradients of rows side by side, times their results if not `log`.
#[inline(always)]
fn add_gradients<T: Real>(
    sum: &mut [[T; GROUP]],
    (grad, y): (&[[T; GROUP]], &[[T; GROUP]]),
    log: bool,
) {
    for (sum, (grad, y)) in sum.iter_mut().zip(grad.iter().zip(y)) {
        let (grad, y) = std::hint::black_box((grad, y));
        let part = if log { *grad } else { joined(*grad, *y, |grad, y| grad * y) };
        *sum = joined(*sum, part, |a, b| a + b);
    }
}

/// The input's gradients of rows side by side.
#[inline(always)]
fn gradients<T: Exponential>(
    out: &mut [[T; GROUP]],
    sum: &[[T; GROUP]],
    (grad, y): (&[[T; GROUP]], &[[T; GROUP]]),
    log: bool,
) {
    for ((out, sum), (grad, y)) in out.iter_mut().zip(sum).zip(grad.iter().zip(y)) {
        let (grad, y) = std::hint::black_box((grad, y));
        let (grad, mut y) = (*grad, *y);
        for l in 0..GROUP {
            y[l] = gradient(grad[l], y[l], sum[l], log);
        }
        *out = y;
    }
}

crate::multiversion! {
/// The gradient of [`narrow_forward`] from its result `y`.
pub(super) fn narrow_backward<T: Exponential>(
    out: &mut [T],
    grad: &[T],
    y: &[T],
    s: SoftmaxShape,
    log: bool,
) {
    let (line, period) = (s.size * s.inner, GROUP * s.inner);
    let whole = line / period * period;
    let [mut sum, mut grad_last, mut y_last, mut last] = [[[T::ZERO; GROUP]; GROUP]; 4];
    let sum = &mut sum[..s.inner];
    let lines = grad.chunks_exact(line).zip(y.chunks_exact(line));
    for (out, (grad, y)) in out.chunks_exact_mut(line).zip(lines) {
        let ((grad, grad_rest), (y, y_rest)) = (grad.split_at(whole), y.split_at(whole));
        let (out, out_rest) = out.split_at_mut(whole);
        let used = fill_wide(&mut grad_last, grad_rest, T::ZERO);
        fill_wide(&mut y_last, y_rest, T::ZERO);
        let (rest, last) = ((&grad_last[..used], &y_last[..used]), &mut last[..used]);
        sum.fill([T::ZERO; GROUP]);
        for (grad, y) in grad.chunks_exact(period).zip(y.chunks_exact(period)) {
            add_gradients(sum, (grad.as_chunks().0, y.as_chunks().0), log);
        }
        add_gradients(sum, rest, log);
        join_rows(sum, |a, b| a + b);
        let lines = grad.chunks_exact(period).zip(y.chunks_exact(period));
        for (out, (grad, y)) in out.chunks_exact_mut(period).zip(lines) {
            gradients(out.as_chunks_mut().0, sum, (grad.as_chunks().0, y.as_chunks().0), log);
        }
        gradients(last, sum, rest, log);
        out_rest.copy_from_slice(&last.as_flattened()[..out_rest.len()]);
    }
}
}
