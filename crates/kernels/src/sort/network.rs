//! Short lines, and the first few of any neighbouring lines, sixteen lines side by side in columns. The work on a
//! column is done on whole registers, whatever the elements are, so nothing is guessed and nothing has to be set up per
//! line. Only the steps from elements to keys and back know the elements' type (here); the work on keys is compiled for
//! the two types of keys (`pick`), that on pairs once for each of their two forms (`pairs`).

mod pairs;
mod pick;

use super::key::{KeyBits, SortKey, nan_key};
use crate::lanes::{Column, ColumnBuffer, ROWS, buffer_width, to_columns};
use crate::line::{LineIter, ViewLayout, along, get, put};
use crate::{StridedMut, StridedRef};
use pairs::KeyPositionPairs;
use pick::{TopKeys, positions_of};
use std::ops::Range;

/// Longest line that is sorted, and columns that are looked at together.
pub(super) const MAX_LINE: usize = 128;
/// Most elements of the beginning that are kept at hand instead of sorting, also of longer lines.
const MAX_TOP_K: usize = 4;

/// What is selected from a line in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    /// The first `k` pairs.
    FirstK(usize),
    /// The pair at this position of the order.
    Kth(usize),
    /// The lower of the two in the middle, or the first NaN.
    Median,
    /// The last of the first longest run of equal elements; each NaN is a run of its own.
    Mode,
}

impl Selection {
    /// The number of pairs from the beginning that have to be in order.
    pub(super) fn length(self, n: usize) -> usize {
        match self {
            Selection::FirstK(k) => k,
            Selection::Kth(at) => at + 1,
            Selection::Median | Selection::Mode => n,
        }
    }
    /// Whether only the first few pairs have to be in order.
    pub(super) fn is_top_k(self) -> bool {
        match self {
            Selection::FirstK(k) => k <= MAX_TOP_K,
            Selection::Kth(at) => at < MAX_TOP_K,
            Selection::Median | Selection::Mode => false,
        }
    }
    /// The network for lines of `n` elements, if they go through one.
    fn network(self, n: usize) -> Vec<(u8, u8)> {
        if self.is_top_k() {
            return Vec::new();
        }
        let all = network(n, self.length(n));
        match self {
            Selection::Kth(at) => pruned_to(at..at + 1, &all),
            Selection::Median => pruned_to(middle(n)..middle(n) + 1, &all),
            _ => pruned_to(0..self.length(n), &all),
        }
    }
}

/// The position of the lower median in order.
pub(super) fn middle(n: usize) -> usize {
    (n - 1) / 2
}

/// The comparators on which the final contents of `positions` depend: the network without the others.
fn pruned_to(positions: Range<usize>, comparators: &[(u8, u8)]) -> Vec<(u8, u8)> {
    let mut matters = [false; MAX_LINE];
    matters[positions].fill(true);
    // bounded: lines are short.
    let mut leading = Vec::with_capacity(comparators.len());
    for &(i, j) in comparators.iter().rev() {
        if matters[usize::from(i)] | matters[usize::from(j)] {
            (matters[usize::from(i)], matters[usize::from(j)]) = (true, true);
            leading.push((i, j));
        }
    }
    leading.reverse();
    leading
}

/// The comparators that bring the first `k` of `n` pairs in order.
fn network(n: usize, k: usize) -> Vec<(u8, u8)> {
    let levels = n.next_power_of_two().trailing_zeros() as usize;
    // bounded: lines are short.
    let mut comparators = Vec::with_capacity(n * levels * (levels + 1) / 4);
    let mut add = |i: usize, j: usize| comparators.push((i as u8, j as u8));
    // The top one first, then the top of the others, or all by merging (Batcher's sort for any number).
    if k * 4 < levels * (levels + 1) {
        for i in 0..k.min(n) {
            (i + 1..n).for_each(|j| add(i, j));
        }
        return comparators;
    }
    let mut p = 1_usize;
    while p < n {
        // (Numbers divided by `2 * p`; real divisions would take longer than a sort.)
        let shift = p.trailing_zeros() + 1;
        let mut step = p;
        while step > 0 {
            for first in (step % p..n.saturating_sub(step)).step_by(2 * step) {
                for i in first..(first + step).min(n - step) {
                    if i >> shift == (i + step) >> shift {
                        add(i, i + step);
                    }
                }
            }
            step /= 2;
        }
        p *= 2;
    }
    comparators
}

/// Lines and where what is selected from them goes.
struct SelectionLines<'a> {
    input: &'a StridedRef<'a>,
    values: Option<&'a StridedMut<'a>>,
    indices: &'a StridedMut<'a>,
    /// Byte steps along the lines of input, values and indices.
    steps: [isize; 3],
    n: usize,
    flip: u64,
    selection: Selection,
    network: Vec<(u8, u8)>,
}

/// Selects from the lines along `dim`, of which no more than [`Selection::is_top_k`] allows is selected where they are longer than
/// [`MAX_LINE`]. `flip` is what keys are inverted with.
pub(super) fn lines<'a, T: SortKey>(
    values: Option<&'a StridedMut<'a>>,
    indices: &'a StridedMut<'a>,
    input: &'a StridedRef<'a>,
    dim: usize,
    flip: u64,
    selection: Selection,
) {
    let (n, step) = along(input.shape(), input, dim);
    let value_view = values.map_or(ViewLayout::from(indices), ViewLayout::from);
    let views = [ViewLayout::from(input), value_view, ViewLayout::from(indices)];
    let lines = LineIter::new(input.shape(), Some(dim), views);
    let steps =
        [step, along(input.shape(), value_view, dim).1, along(input.shape(), indices, dim).1];
    let network = selection.network(n);
    let batch = SelectionLines { input, values, indices, steps, n, flip, selection, network };
    let grain = (16_384 / n).next_multiple_of(ROWS).max(ROWS);
    crate::parallel::for_range(lines.count(), grain, &|range| {
        lines.visit_runs(range, |offsets, strides, length| {
            run::<T>(&batch, offsets, strides, length);
        });
    });
}

/// A line of each lane, as many as there are, from which items are taken.
struct LaneSource<'a, T> {
    /// The columns, if the lines lie one after the other.
    transposed: Option<&'a [Column<T>]>,
    from: *const u8,
    /// Bytes from an item to the next, and from a line to the next.
    steps: [isize; 2],
    count: usize,
    /// Elements from the first on that are there without gaps, if columns follow one another so.
    ahead: usize,
}

impl<T: SortKey> LaneSource<'_, T> {
    #[inline(always)]
    fn column(&self, i: usize) -> Column<T> {
        if let Some(transposed) = self.transposed {
            return transposed[i];
        }
        let [step, stride] = self.steps;
        let from = self.from.wrapping_offset(i as isize * step);
        let done = (i as isize * step / size_of::<T>() as isize) as usize;
        let there = self.count.max(self.ahead.saturating_sub(done));
        // SAFETY: these lines have an element of this number, and so many follow one another.
        unsafe { column::<T>(from, stride, self.count, there) }
    }
    /// The keys of items from `first` on.
    #[inline(always)]
    fn keys(&self, keys: &mut [Column<T::Key>], first: usize, flip: u64) {
        for (i, keys) in keys.iter_mut().enumerate() {
            // Hidden, or LLVM takes the same lane of several columns together.
            let items = self.column(std::hint::black_box(first + i));
            let mut column = [T::Key::default(); ROWS];
            for l in 0..ROWS {
                column[l] = T::Key::of(items[l].key() ^ flip);
            }
            *keys = column;
        }
    }
}

crate::multiversion! {
    /// Works on `length` lines from `offsets` on, `strides` apart.
    fn run<T: SortKey>(batch: &SelectionLines<'_>, offsets: [isize; 3], strides: [isize; 3], length: usize) {
        let (n, size) = (batch.n, size_of::<T>() as isize);
        let is_dense = batch.steps[0] == size && strides[0] == n as isize * size && n <= MAX_LINE;
        let mut transposed = ColumnBuffer::<T>::new(if is_dense { buffer_width(n) } else { 0 });
        let transposed = transposed.all();
        let width = n.min(MAX_LINE);
        let mut keys = ColumnBuffer::<T::Key>::new(width);
        let keys = keys.all();
        let k = batch.selection.length(n);
        let (is_first, is_top_k) = (matches!(batch.selection, Selection::FirstK(_)), batch.selection.is_top_k());
        let mut sorted = ColumnBuffer::<T::Key>::new(if is_first || is_top_k { 0 } else { n });
        let sorted = sorted.all();
        let mut pairs = KeyPositionPairs::new::<T::Key>(if is_first && !is_top_k { n } else { 0 });
        // Where the columns follow one another without gaps, lanes without a line may be read from the next.
        let follow = strides[0] == size && batch.steps[0] == length as isize * size;
        for first in (0..length).step_by(ROWS) {
            let count = ROWS.min(length - first);
            let mut at = offsets;
            for i in 0..3 {
                at[i] += first as isize * strides[i];
            }
            let from = batch.input.ptr().wrapping_offset(at[0]);
            if is_dense {
                // SAFETY: the lines of the run lie one after the other.
                let rows =
                    unsafe { std::slice::from_raw_parts(from.cast::<T>(), (length - first) * n) };
                to_columns(transposed, rows, n, count);
            }
            let source = LaneSource {
                transposed: is_dense.then_some(&*transposed),
                from,
                steps: [batch.steps[0], strides[0]],
                count,
                ahead: if follow { n * length - first } else { 0 },
            };
            let lines = (from, at, strides, count);
            if is_top_k {
                let mut top = TopKeys::new();
                for done in (0..n).step_by(MAX_LINE) {
                    let keys = &mut keys[..MAX_LINE.min(n - done)];
                    source.keys(keys, done, batch.flip);
                    top.advance(keys, done, k);
                }
                for i in if is_first { 0 } else { k - 1 }..k {
                    write::<T>(batch, top.positions(i), lines, if is_first { i } else { 0 });
                }
                continue;
            }
            source.keys(keys, 0, batch.flip);
            if is_first {
                pairs.sort(keys, &batch.network);
                for i in 0..k {
                    write::<T>(batch, pairs.positions(i), lines, i);
                }
            } else {
                let has_nan = nan_key::<T>().is_some();
                let positions = positions_of(keys, sorted, &batch.network, batch.selection, has_nan);
                write::<T>(batch, positions, lines, 0);
            }
        }
    }
}

/// One element of each of `count` lines, `stride` bytes apart; if they are neighbours, `there` elements or more are.
///
/// # Safety
/// These elements are live.
#[inline(always)]
unsafe fn column<T: SortKey>(
    from: *const u8,
    stride: isize,
    count: usize,
    there: usize,
) -> Column<T> {
    if stride == size_of::<T>() as isize && there >= ROWS {
        // SAFETY: the elements are neighbours.
        return unsafe { from.cast::<Column<T>>().read_unaligned() };
    }
    let mut column = [T::default(); ROWS];
    for (i, item) in column.iter_mut().enumerate().take(count) {
        // SAFETY: the caller's promise.
        *item = unsafe { get(from, i as isize * stride) };
    }
    column
}

/// Writes the positions, and the elements there, as elements `i` of the outputs' lines. Given are where the first line's elements
/// are, the offsets of the first lines, the strides between lines and their number.
#[inline(always)]
fn write<T: SortKey>(
    batch: &SelectionLines<'_>,
    positions: Column<u64>,
    (from, offsets, strides, count): (*const u8, [isize; 3], [isize; 3], usize),
    i: usize,
) {
    let [step, value_step, index_step] = batch.steps;
    let to = batch.indices.ptr().wrapping_offset(offsets[2] + i as isize * index_step);
    for (l, &position) in positions.iter().enumerate().take(count) {
        // SAFETY: every position is below `n`, and the lines lie inside the views, whose dtypes were checked.
        unsafe { put(to, l as isize * strides[2], position as i64) };
    }
    let Some(values) = batch.values else { return };
    let to = values.ptr().wrapping_offset(offsets[1] + i as isize * value_step);
    for (l, &position) in positions.iter().enumerate().take(count) {
        // SAFETY: as above.
        unsafe {
            let value: T = get(from, l as isize * strides[0] + position as isize * step);
            put(to, l as isize * strides[1], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_order_what_is_selected() {
        let mut state = 1_u32;
        for n in (0..=40_usize).chain([63, 64, 65, 100, 127, 128]) {
            for k in [0, 1, 2, 3, 7, n / 2, n] {
                let k: usize = k.min(n);
                let last = pruned_to(k.saturating_sub(1)..k, &network(n, k));
                for range in [2, 7, 1000] {
                    let mut numbers: Vec<u32> = (0..n)
                        .map(|_| {
                            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            (state >> 16) % range
                        })
                        .collect();
                    let mut expected = numbers.clone();
                    expected.sort_unstable();
                    let sort = |numbers: &mut Vec<u32>, comparators: &[(u8, u8)]| {
                        for &(i, j) in comparators {
                            let (i, j) = (usize::from(i), usize::from(j));
                            if numbers[i] > numbers[j] {
                                numbers.swap(i, j);
                            }
                        }
                    };
                    let mut one = numbers.clone();
                    sort(&mut one, &last);
                    assert_eq!(one[..k].last(), expected[..k].last(), "{n} {k}");
                    sort(&mut numbers, &pruned_to(0..k, &network(n, k)));
                    assert_eq!(numbers[..k], expected[..k], "{n} {k}");
                }
            }
        }
    }
}
