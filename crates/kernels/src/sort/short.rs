//! Short lines, sixteen side by side: their pairs in columns, sorted by a fixed network of exchanges.
//!
//! An exchange works on whole registers, whatever the elements are, so nothing is guessed and nothing
//! has to be set up per line. Pairs are all different, so that the order of any network is that of a stable sort.

use super::SortKey;
use crate::lanes::{Column, ROWS, room, to_columns};
use crate::line::{Layout, Lines, along, get, put};
use crate::{StridedMut, StridedRef};
use std::ops::Range;

/// Longest line that is sorted, and columns that are looked at together.
const LONGEST: usize = 128;
/// Fewest lines for which columns pay.
const FEWEST: usize = 4;
/// The same for longer lines.
const FEWEST_LONG: usize = 8;
/// Most elements that are wanted of the beginning of longer lines.
const BEST: usize = 4;
/// A pair behind all others.
const LAST: u64 = u64::MAX;

/// What is wanted of a line in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The first so many pairs.
    First(usize),
    /// The pair of this number.
    At(usize),
    /// The lower of the two in the middle, or the first NaN.
    Median,
    /// The last of the first longest run of equal elements; each NaN is a run of its own.
    Mode,
}

impl Wanted {
    /// How many pairs of the beginning have to be in order.
    fn length(self, n: usize) -> usize {
        match self {
            Wanted::First(k) => k,
            Wanted::At(at) => at + 1,
            Wanted::Median | Wanted::Mode => n,
        }
    }
    /// The network for lines of `n` elements.
    fn network(self, n: usize) -> Vec<(u8, u8)> {
        let all = network(n.min(LONGEST), self.length(n));
        match self {
            // Of longer lines the first ones stay for the next block.
            Wanted::At(at) if n <= LONGEST => leading_to(at..at + 1, &all),
            Wanted::Median => leading_to(middle(n)..middle(n) + 1, &all),
            _ => leading_to(0..self.length(n), &all),
        }
    }
}

/// The place of the lower median in order.
pub(super) fn middle(n: usize) -> usize {
    (n - 1) / 2
}

/// Those exchanges that what is in some places in the end depends on.
fn leading_to(places: Range<usize>, exchanges: &[(u8, u8)]) -> Vec<(u8, u8)> {
    let mut matters = [false; LONGEST];
    matters[places].fill(true);
    let mut leading = Vec::with_capacity(exchanges.len());
    for &(i, j) in exchanges.iter().rev() {
        if matters[usize::from(i)] | matters[usize::from(j)] {
            (matters[usize::from(i)], matters[usize::from(j)]) = (true, true);
            leading.push((i, j));
        }
    }
    leading.reverse();
    leading
}

/// The exchanges that bring the first `k` of `n` pairs in order.
fn network(n: usize, k: usize) -> Vec<(u8, u8)> {
    let mut exchanges = Vec::new();
    let mut add = |i: usize, j: usize| exchanges.push((i as u8, j as u8));
    // The best one first, then the best of the others, or all by merging (Batcher's sort for any number).
    let levels = n.next_power_of_two().trailing_zeros() as usize;
    if k * 4 < levels * (levels + 1) {
        for i in 0..k.min(n) {
            (i + 1..n).for_each(|j| add(i, j));
        }
        return exchanges;
    }
    let mut p = 1;
    while p < n {
        let mut step = p;
        while step > 0 {
            for first in (step % p..n.saturating_sub(step)).step_by(2 * step) {
                for i in first..(first + step).min(n - step) {
                    if i / (2 * p) == (i + step) / (2 * p) {
                        add(i, i + step);
                    }
                }
            }
            step /= 2;
        }
        p *= 2;
    }
    exchanges
}

/// Lines and where what is wanted of them goes.
struct Job<'a> {
    input: &'a StridedRef<'a>,
    values: Option<&'a StridedMut<'a>>,
    indices: &'a StridedMut<'a>,
    /// Byte steps along the lines of input, values and indices.
    steps: [isize; 3],
    n: usize,
    flip: u64,
    wanted: Wanted,
    network: Vec<(u8, u8)>,
}

/// Does what is wanted of the lines along `dim` if they are better taken side by side; says whether it did. `flip` is what
/// keys are inverted with.
pub(super) fn lines<'a, T: SortKey>(
    values: Option<&'a StridedMut<'a>>,
    indices: &'a StridedMut<'a>,
    input: &'a StridedRef<'a>,
    dim: usize,
    flip: u64,
    wanted: Wanted,
) -> bool {
    let (n, step) = along(input.shape(), input, dim);
    let value_view = values.map_or(Layout::from(indices), Layout::from);
    let views = [Layout::from(input), value_view, Layout::from(indices)];
    let lines = Lines::new(input.shape(), Some(dim), views);
    let (k, size) = (wanted.length(n), size_of::<T>() as isize);
    let are_adjacent = lines.inner().is_some_and(|strides| strides[0] == size);
    let is_selected = k <= BEST && are_adjacent && u32::try_from(n).is_ok();
    let fewest = if n <= LONGEST { FEWEST } else { FEWEST_LONG };
    if lines.count() < fewest || n == 0 || k == 0 || !(n <= LONGEST || is_selected) {
        return false;
    }
    let steps =
        [step, along(input.shape(), value_view, dim).1, along(input.shape(), indices, dim).1];
    let network = wanted.network(n);
    let job = Job { input, values, indices, steps, n, flip, wanted, network };
    let grain = (16_384 / n).next_multiple_of(ROWS).max(ROWS);
    crate::parallel::for_range(lines.count(), grain, &|range| {
        lines.visit_runs(range, |offsets, strides, length| {
            run::<T>(&job, offsets, strides, length);
        });
    });
    true
}

/// The pairs of sixteen lines: keys above their places in one word, or apart.
struct Pairs {
    keys: Vec<Column<u64>>,
    places: Vec<Column<u64>>,
}

impl Pairs {
    #[inline(always)]
    fn new<T: SortKey>() -> Pairs {
        let places = vec![[LAST; ROWS]; if T::IS_NARROW { 0 } else { LONGEST }];
        Pairs { keys: vec![[LAST; ROWS]; LONGEST], places }
    }
    #[inline(always)]
    fn set<T: SortKey>(&mut self, i: usize, items: &Column<T>, flip: u64, place: usize) {
        // Hidden, or LLVM takes the same lane of several columns together.
        let (items, place) = (*items, std::hint::black_box(place as u64));
        let mut keys = [0; ROWS];
        for l in 0..ROWS {
            keys[l] = items[l].key() ^ flip;
        }
        if T::IS_NARROW {
            for key in &mut keys {
                *key = *key << 32 | place;
            }
        } else {
            self.places[i] = [place; ROWS];
        }
        self.keys[i] = keys;
    }
    /// Columns from `from` on that hold no pairs.
    #[inline(always)]
    fn clear<T: SortKey>(&mut self, from: usize) {
        self.keys[from..].fill([LAST; ROWS]);
        if !T::IS_NARROW {
            self.places[from..].fill([LAST; ROWS]);
        }
    }
    /// Brings the pairs in the order of the network.
    #[inline(always)]
    fn sort<T: SortKey>(&mut self, network: &[(u8, u8)]) {
        let keys = &mut self.keys[..LONGEST];
        let places = &mut self.places[..if T::IS_NARROW { 0 } else { LONGEST }];
        for &(i, j) in network {
            let (i, j) = (usize::from(i), usize::from(j));
            let (mut a, mut b) = (keys[i], keys[j]);
            // What both are changed by. (Of a minimum and a maximum LLVM makes scalar code.)
            let mut change = [0; ROWS];
            if T::IS_NARROW {
                for l in 0..ROWS {
                    change[l] = if a[l] > b[l] { a[l] ^ b[l] } else { 0 };
                }
            } else {
                let (mut at_a, mut at_b) = (places[i], places[j]);
                let mut moved = [0; ROWS];
                for l in 0..ROWS {
                    let swap = (a[l] > b[l]) | ((a[l] == b[l]) & (at_a[l] > at_b[l]));
                    change[l] = if swap { a[l] ^ b[l] } else { 0 };
                    moved[l] = if swap { at_a[l] ^ at_b[l] } else { 0 };
                }
                for l in 0..ROWS {
                    at_a[l] ^= moved[l];
                    at_b[l] ^= moved[l];
                }
                (places[i], places[j]) = (at_a, at_b);
            }
            for l in 0..ROWS {
                a[l] ^= change[l];
                b[l] ^= change[l];
            }
            (keys[i], keys[j]) = (a, b);
        }
    }
    #[inline(always)]
    fn key<T: SortKey>(&self, i: usize) -> Column<u64> {
        let mut keys = self.keys[i];
        if T::IS_NARROW {
            for key in &mut keys {
                *key >>= 32;
            }
        }
        keys
    }
    #[inline(always)]
    fn place<T: SortKey>(&self, i: usize) -> Column<u64> {
        if !T::IS_NARROW {
            return self.places[i];
        }
        let mut places = self.keys[i];
        for place in &mut places {
            *place &= u64::from(u32::MAX);
        }
        places
    }
    /// The places of the medians of lines of `n` elements, of which only the middle one is in order.
    #[inline(always)]
    fn median<T: SortKey>(&self, n: usize) -> Column<u64> {
        let mut median = self.place::<T>(middle(n));
        let Some(nan) = nan_key::<T>() else { return median };
        let mut nans = [0_u64; ROWS];
        for i in 0..n {
            let keys = self.key::<T>(i);
            for l in 0..ROWS {
                nans[l] |= u64::from(keys[l] == nan);
            }
        }
        for l in 0..ROWS {
            if nans[l] != 0 {
                // The first one.
                let places = (0..n).filter(|&i| self.key::<T>(i)[l] == nan);
                median[l] = places.map(|i| self.place::<T>(i)[l]).min().unwrap_or(median[l]);
            }
        }
        median
    }
    /// The places of the modes of lines of `n` elements.
    #[inline(always)]
    fn mode<T: SortKey>(&self, n: usize) -> Column<u64> {
        let nan = nan_key::<T>();
        let (mut longest, mut mode) = ([0_u64; ROWS], [0_u64; ROWS]);
        let (mut length, mut last) = ([0_u64; ROWS], [LAST; ROWS]);
        for i in 0..n {
            let (keys, places) = (self.key::<T>(i), self.place::<T>(i));
            for l in 0..ROWS {
                let goes_on = (i > 0) & (keys[l] == last[l]) & (Some(keys[l]) != nan);
                length[l] = if goes_on { length[l] + 1 } else { 1 };
                let is_longer = length[l] > longest[l];
                longest[l] = if is_longer { length[l] } else { longest[l] };
                mode[l] = if is_longer { places[l] } else { mode[l] };
            }
            last = keys;
        }
        mode
    }
}

/// The key of every NaN, of types that have one.
pub(super) fn nan_key<T: SortKey>() -> Option<u64> {
    let key = if T::IS_NARROW { u64::from(u32::MAX) } else { u64::MAX };
    T::DTYPE.is_floating_point().then_some(key)
}

crate::multiversion! {
    /// Works on `length` lines from `offsets` on, `strides` apart.
    fn run<T: SortKey>(job: &Job<'_>, offsets: [isize; 3], strides: [isize; 3], length: usize) {
        let (n, size) = (job.n, size_of::<T>() as isize);
        let mut pairs = Pairs::new::<T>();
        let is_dense = job.steps[0] == size && strides[0] == n as isize * size;
        let mut turned = vec![[T::default(); ROWS]; if is_dense { room(n) } else { 0 }];
        let k = job.wanted.length(n);
        for first in (0..length).step_by(ROWS) {
            let count = ROWS.min(length - first);
            let mut at = offsets;
            for i in 0..3 {
                at[i] += first as isize * strides[i];
            }
            let from = job.input.ptr().wrapping_offset(at[0]);
            if is_dense {
                // SAFETY: the lines of the run lie one after the other.
                let rows =
                    unsafe { std::slice::from_raw_parts(from.cast::<T>(), (length - first) * n) };
                to_columns(&mut turned, rows, n, count);
                for (i, items) in turned.iter().enumerate().take(n) {
                    pairs.set(i, items, job.flip, i);
                }
                pairs.sort::<T>(&job.network);
            } else {
                // What is wanted stays in front; the other columns come block after block. Where they follow one another
                // without gaps, lanes without a line may be read from the next.
                let follow = strides[0] == size && job.steps[0] == length as isize * size;
                let (mut filled, mut next) = (0, 0);
                while next < n {
                    while filled < LONGEST && next < n {
                        let line = from.wrapping_offset(next as isize * job.steps[0]);
                        let there = if follow { (n - next) * length - first } else { count };
                        // SAFETY: these lines have an element of this number, and so many follow one another.
                        let items = unsafe { column::<T>(line, strides[0], count, there) };
                        pairs.set(filled, &items, job.flip, next);
                        (filled, next) = (filled + 1, next + 1);
                    }
                    if n > LONGEST {
                        pairs.clear::<T>(filled);
                    }
                    pairs.sort::<T>(&job.network);
                    filled = k;
                }
            }
            let source = (from, strides[0]);
            match job.wanted {
                Wanted::First(k) => {
                    for i in 0..k {
                        write::<T>(job, pairs.place::<T>(i), source, at, strides, count, i);
                    }
                }
                wanted => {
                    let places = match wanted {
                        Wanted::First(at) | Wanted::At(at) => pairs.place::<T>(at),
                        Wanted::Median => pairs.median::<T>(n),
                        Wanted::Mode => pairs.mode::<T>(n),
                    };
                    write::<T>(job, places, source, at, strides, count, 0);
                }
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

/// Writes the places, and the elements there, as elements `i` of `count` lines of the outputs.
#[inline(always)]
fn write<T: SortKey>(
    job: &Job<'_>,
    places: Column<u64>,
    (from, stride): (*const u8, isize),
    offsets: [isize; 3],
    strides: [isize; 3],
    count: usize,
    i: usize,
) {
    let [step, value_step, index_step] = job.steps;
    let to = job.indices.ptr().wrapping_offset(offsets[2] + i as isize * index_step);
    for (l, &place) in places.iter().enumerate().take(count) {
        // SAFETY: every place is below `n`, and the lines lie inside the views, whose dtypes were checked.
        unsafe { put(to, l as isize * strides[2], place as i64) };
    }
    let Some(values) = job.values else { return };
    let to = values.ptr().wrapping_offset(offsets[1] + i as isize * value_step);
    for (l, &place) in places.iter().enumerate().take(count) {
        // SAFETY: as above.
        unsafe {
            let value: T = get(from, l as isize * stride + place as isize * step);
            put(to, l as isize * strides[1], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_order_what_is_wanted() {
        let mut state = 1_u32;
        for n in (0..=40_usize).chain([63, 64, 65, 100, 127, 128]) {
            for k in [0, 1, 2, 3, 7, n / 2, n] {
                let k: usize = k.min(n);
                let last = leading_to(k.saturating_sub(1)..k, &network(n, k));
                for range in [2, 7, 1000] {
                    let mut numbers: Vec<u32> = (0..n)
                        .map(|_| {
                            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            (state >> 16) % range
                        })
                        .collect();
                    let mut expected = numbers.clone();
                    expected.sort_unstable();
                    let sort = |numbers: &mut Vec<u32>, exchanges: &[(u8, u8)]| {
                        for &(i, j) in exchanges {
                            let (i, j) = (usize::from(i), usize::from(j));
                            if numbers[i] > numbers[j] {
                                numbers.swap(i, j);
                            }
                        }
                    };
                    let mut one = numbers.clone();
                    sort(&mut one, &last);
                    assert_eq!(one[..k].last(), expected[..k].last(), "{n} {k}");
                    sort(&mut numbers, &leading_to(0..k, &network(n, k)));
                    assert_eq!(numbers[..k], expected[..k], "{n} {k}");
                }
            }
        }
    }
}
