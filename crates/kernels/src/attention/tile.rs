//! The loops of attention: tiles of products in registers, and the weights of a block of keys.

use super::{Matrix, MulAdd};
use crate::elementwise::copy_tile;
use crate::row::GROUP;
use crate::simd::{SimdLevel, level};
use crate::softmax::Exponential;

/// Queries of a tile.
pub(super) const ROWS: usize = 6;
/// Queries whose scores with a block of keys are in memory at once.
pub(super) const QUERIES: usize = 8 * ROWS;
/// Keys of a block.
pub(super) const KEYS: usize = 256;

/// The columns of a tile: four of the widest registers, two where there are only sixteen.
pub(super) fn panel_width(size: usize) -> usize {
    if level() == SimdLevel::Avx512 { 256 / size } else { 64 / size }
}

/// A block of queries and a block of keys.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) keys: usize,
    /// How many keys from the block's first on the first query may attend to, if attention is causal; each query may attend to
    /// one more than the one before.
    pub(super) allowed: Option<isize>,
}

impl Block {
    /// How many of the keys a query may attend to.
    #[inline(always)]
    pub(super) fn keys_of(self, row: usize) -> usize {
        self.allowed
            .map_or(self.keys, |allowed| self.keys.min((allowed + row as isize).max(0) as usize))
    }
    /// The first query that may attend to a key.
    #[inline(always)]
    fn first_query(self, key: usize) -> usize {
        self.allowed.map_or(0, |allowed| (key as isize + 1 - allowed).max(0) as usize)
    }
    /// How many of the keys a query of the tile of `row` may attend to.
    #[inline(always)]
    fn keys_of_tile(self, row: usize) -> usize {
        self.keys_of(self.rows.min((row / ROWS + 1) * ROWS) - 1)
    }
}

/// Writes the `n` rows of `from`, which lie `apart` elements from each other, as the columns of `to`.
///
/// # Safety
/// `from` has `n` runs of `width` elements; `to` has `width` rows of `step` elements, at least `n`.
pub(super) unsafe fn transpose<T: Copy>(
    to: *mut T,
    step: usize,
    (from, apart): (*const T, isize),
    (n, width): (usize, usize),
) {
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        copy_tile::<T, false>(
            to.cast(),
            from.cast(),
            (step as isize * size, apart * size),
            (n, width),
        );
    }
}

/// The sums of rows of `depth` elements, `steps` of a row and of an element apart, with `W` columns of a panel whose rows are
/// `panel` apart.
///
/// # Safety
/// [`ROWS`] rows of `depth` elements at `left`, and `depth` rows of `W` elements at `right`, are live.
#[inline(always)]
unsafe fn tile<T: MulAdd, const W: usize>(
    (left, steps): (*const T, [usize; 2]),
    (right, panel): (*const T, usize),
    depth: usize,
) -> [[T; W]; ROWS] {
    let mut sums = [[T::default(); W]; ROWS];
    // SAFETY: the caller's promise.
    unsafe {
        for k in 0..depth {
            let row = *right.add(k * panel).cast::<[T; W]>();
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = *left.add(r * steps[0] + k * steps[1]);
                for w in 0..W {
                    sums[w] = x.mul_add_to(row[w], sums[w]);
                }
            }
        }
    }
    // The sums go through memory once: sums whose address is taken would be written to memory in
    // every step.
    std::hint::black_box(sums)
}

/// Calls `$call::<T, W>(..)` with the tile's width, the least that has `$columns` columns.
macro_rules! of_width {
    ($T:ident, $panel:expr, $columns:expr, $call:ident $args:tt) => {
        match ($panel, $columns.div_ceil($panel / 4)) {
            (64, 1) => $call::<$T, 16> $args,
            (64, 2) => $call::<$T, 32> $args,
            (64, 3) => $call::<$T, 48> $args,
            (64, _) => $call::<$T, 64> $args,
            (32, 1) => $call::<$T, 8> $args,
            (32, 2) => $call::<$T, 16> $args,
            (32, 3) => $call::<$T, 24> $args,
            (32, _) => $call::<$T, 32> $args,
            (16, 1 | 2) => $call::<$T, 8> $args,
            (16, _) => $call::<$T, 16> $args,
            (_, 1 | 2) => $call::<$T, 4> $args,
            _ => $call::<$T, 8> $args,
        }
    };
}

/// Writes a tile of scores.
///
/// # Safety
/// As [`tile`], and `to` has [`ROWS`] rows of [`KEYS`] elements.
#[inline(always)]
unsafe fn score_tile<T: Exponential + MulAdd, const W: usize>(
    to: *mut T,
    left: (*const T, usize),
    right: (*const T, usize),
    (depth, scale): (usize, T),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = tile::<T, W>((left.0, [left.1, 1]), right, depth);
        for (r, sums) in sums.iter().enumerate() {
            let mut row = *sums;
            for x in &mut row {
                *x *= scale;
            }
            *to.add(r * KEYS).cast::<[T; W]>() = row;
        }
    }
}

/// Adds a tile of weighted values to sums of rows of a panel, which grow by a factor before.
///
/// # Safety
/// As [`tile`], and `to` has [`ROWS`] rows of `W` elements.
#[inline(always)]
unsafe fn value_tile<T: Exponential + MulAdd, const W: usize>(
    to: *mut T,
    left: (*const T, usize),
    right: (*const T, usize),
    (depth, growth): (usize, &[T]),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = tile::<T, W>((left.0, [left.1, 1]), right, depth);
        for (r, (sums, &growth)) in sums.iter().zip(growth).enumerate() {
            let to = to.add(r * right.1).cast::<[T; W]>();
            let mut row = *to;
            for w in 0..W {
                row[w] = row[w].mul_add_to(growth, sums[w]);
            }
            *to = row;
        }
    }
}

/// Adds a tile of products to the first rows and columns of a matrix whose rows lie `to.1` apart.
///
/// # Safety
/// As [`tile`], and `to` has `rows` rows of `columns` elements.
#[inline(always)]
unsafe fn sum_tile<T: Exponential + MulAdd, const W: usize>(
    to: (*mut T, isize),
    left: (*const T, [usize; 2]),
    right: (*const T, usize),
    (depth, rows, columns): (usize, usize, usize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = tile::<T, W>(left, right, depth);
        for (r, sums) in sums.iter().enumerate().take(rows) {
            let to = to.0.offset(r as isize * to.1);
            if columns == W {
                let to = to.cast::<[T; W]>();
                let mut row = *to;
                for w in 0..W {
                    row[w] += sums[w];
                }
                *to = row;
            } else {
                for (w, &sum) in sums.iter().enumerate().take(columns) {
                    *to.add(w) += sum;
                }
            }
        }
    }
}

crate::multiversion! {
    /// `scores[row, key] = scale * (query[row] . key)`, where a query of the row's tile may attend to the key.
    pub(super) fn score<T: ScoreNumber>(scores: &mut [T], query: &[T], key: &[T], depth: usize, how: (T, Block)) {
        let ((scale, block), panel) = (how, panel_width(size_of::<T>()));
        assert!(scores.len() >= QUERIES * KEYS && query.len() >= block.rows.next_multiple_of(ROWS) * depth);
        assert!(block.rows <= QUERIES && key.len() >= block.keys.next_multiple_of(panel) * depth);
        for first in (0..block.keys).step_by(panel) {
            for row in (0..block.rows).step_by(ROWS) {
                let columns = block.keys_of_tile(row).saturating_sub(first).min(panel);
                if columns == 0 {
                    continue;
                }
                // SAFETY: whole tiles of scores, and rows and panels of `depth` elements, by the assertions.
                unsafe {
                    let to = scores.as_mut_ptr().add(row * KEYS + first);
                    let left = (query.as_ptr().add(row * depth), depth);
                    let right = (key.as_ptr().add(first * depth), panel);
                    of_width!(T, panel, columns, score_tile(to, left, right, (depth, scale)));
                }
            }
        }
    }
}

crate::multiversion! {
    /// `sums[row] = growth[row] * sums[row] + weights[row] @ value`.
    pub(super) fn add_values<T: ScoreNumber>(sums: &mut [T], operands: (&[T], &[T]), growth: &[T; QUERIES], size: (Block, usize, usize)) {
        let ((weights, value), (block, rows, width)) = (operands, size);
        let panel = panel_width(size_of::<T>());
        assert!(weights.len() >= QUERIES * KEYS && block.keys <= KEYS && block.rows <= QUERIES);
        for (index, first) in (0..width).step_by(panel).enumerate() {
            let columns = panel.min(width - first);
            let value = &value[index * block.keys * panel..][..block.keys * panel];
            let sums = &mut sums[index * rows * panel..][..block.rows.next_multiple_of(ROWS) * panel];
            for row in (0..block.rows).step_by(ROWS) {
                let depth = block.keys_of_tile(row);
                // SAFETY: weights of `KEYS` keys, `block.keys` rows of a panel, and sums for whole tiles.
                unsafe {
                    let to = sums.as_mut_ptr().add(row * panel);
                    let left = (weights.as_ptr().add(row * KEYS), KEYS);
                    let growth = &growth[row..row + ROWS];
                    of_width!(T, panel, columns, value_tile(to, left, (value.as_ptr(), panel), (depth, growth)));
                }
            }
        }
    }
}

/// A number that attention computes with.
pub(super) trait ScoreNumber: Exponential + MulAdd {}
impl<T: Exponential + MulAdd> ScoreNumber for T {}

/// The larger of two numbers, the second if they are equal or not comparable (NaN).
#[inline(always)]
fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

crate::multiversion! {
    /// Makes weights of scores, relative to the greatest score so far: `state` has that and the sum of weights, `growth` gets the
    /// factor by which what was relative to the one before has to be multiplied.
    pub(super) fn weigh<T: ScoreNumber>(scores: &mut [T], state: &mut [[T; 2]], growth: &mut [T; QUERIES], block: Block) {
        let rows = scores.as_chunks_mut::<KEYS>().0.iter_mut().zip(state).zip(growth);
        for (row, ((scores, [top, sum]), growth)) in rows.take(block.rows).enumerate() {
            let end = block.keys_of_tile(row).next_multiple_of(GROUP);
            scores[block.keys_of(row)..end].fill(T::NEG_INFINITY);
            let groups = scores[..end].as_chunks_mut::<GROUP>().0;
            let mut tops = [T::NEG_INFINITY; GROUP];
            for group in &*groups {
                for l in 0..GROUP {
                    tops[l] = larger(group[l], tops[l]);
                }
            }
            let before = *top;
            *top = larger(crate::row::fold(tops, larger), before);
            // (Where all keys so far are forbidden, weights are zero, whatever they are relative
            // to.)
            let base = if *top == T::NEG_INFINITY { T::ZERO } else { *top };
            let mut sums = [T::ZERO; GROUP];
            for group in groups {
                let mut weights = *group;
                for l in 0..GROUP {
                    weights[l] = (weights[l] - base).exponential();
                    sums[l] += weights[l];
                }
                *group = weights;
            }
            *growth = (before - base).exponential();
            *sum = sum.mul_add_to(*growth, crate::row::fold(sums, |a, b| a + b));
        }
    }
}

crate::multiversion! {
    /// `to[query] += slopes[query] @ key`: the part of a block of keys in the gradient of queries.
    ///
    /// # Safety
    /// (Not unsafe to call:) the matrix has `block.rows` rows of `width` elements without gaps, which nobody else uses.
    pub(super) fn add_to_queries<T: ScoreNumber>(to: Matrix<T>, slopes: &[T], key: &[T], size: (Block, usize)) {
        let ((block, width), panel) = (size, panel_width(size_of::<T>()));
        assert!(slopes.len() >= QUERIES * KEYS && block.keys <= KEYS && block.rows <= QUERIES && to.cs == 1);
        for (index, first) in (0..width).step_by(panel).enumerate() {
            let columns = panel.min(width - first);
            let right = &key[index * block.keys * panel..][..block.keys * panel];
            for row in (0..block.rows).step_by(ROWS) {
                let depth = block.keys_of_tile(row);
                let size = (depth, ROWS.min(block.rows - row), columns);
                // SAFETY: slopes of `KEYS` keys, `block.keys` rows of a panel, and the caller's rows.
                unsafe {
                    let to = (to.at(row, first).ptr, to.rs);
                    let left = (slopes.as_ptr().add(row * KEYS), [KEYS, 1]);
                    of_width!(T, panel, columns, sum_tile(to, left, (right.as_ptr(), panel), size));
                }
            }
        }
    }
}

crate::multiversion! {
    /// `to[key] += weights[.., key] @ query`: the part of a block of queries in the gradient of keys or values, whose rows have
    /// whole panels of columns and end with a tile.
    pub(super) fn add_to_keys<T: ScoreNumber>(to: &mut [T], weights: &[T], query: &[T], size: (Block, usize)) {
        let ((block, width), panel) = (size, panel_width(size_of::<T>()));
        let step = width.next_multiple_of(panel);
        // (The last tile may look at weights of up to `ROWS` keys after the last.)
        assert!(weights.len() >= QUERIES * KEYS + ROWS && block.keys <= KEYS && block.rows <= QUERIES);
        assert!(to.len() >= block.keys.next_multiple_of(ROWS) * step);
        for (index, first) in (0..width).step_by(panel).enumerate() {
            let columns = panel.min(width - first);
            let right = &query[index * block.rows * panel..][..block.rows * panel];
            for key in (0..block.keys).step_by(ROWS) {
                let start = block.first_query(key);
                if start >= block.rows {
                    break;
                }
                let size = (block.rows - start, ROWS, columns);
                // SAFETY: weights of `KEYS` keys, `block.rows` rows of a panel, and whole tiles of `to`.
                unsafe {
                    let to = (to.as_mut_ptr().add(key * step + first), step as isize);
                    let left = (weights.as_ptr().add(start * KEYS + key), [1, KEYS]);
                    let right = (right.as_ptr().add(start * panel), panel);
                    of_width!(T, panel, columns, sum_tile(to, left, right, size));
                }
            }
        }
    }
}

crate::multiversion! {
    /// Makes weights of scores, given the logarithms of their sums, and makes the gradients of the
    /// scores, times the scale, of the gradients of the weights: `state` has for each query the
    /// logarithm and the sum of the products of weights with their gradients.
    pub(super) fn weigh_back<T: ScoreNumber>(scores: &mut [T], slopes: &mut [T], state: &[[T; 2]], how: (T, Block)) {
        let (scale, block) = how;
        let rows = scores.as_chunks_mut::<KEYS>().0.iter_mut().zip(slopes.as_chunks_mut::<KEYS>().0).zip(state);
        for (row, ((scores, slopes), &[base, mean])) in rows.take(block.rows).enumerate() {
            let count = block.keys_of(row);
            let end = count.next_multiple_of(GROUP);
            scores[count..end].fill(T::NEG_INFINITY);
            let pairs = scores[..end].as_chunks_mut::<GROUP>().0.iter_mut();
            for (weights, slopes) in pairs.zip(slopes[..end].as_chunks_mut::<GROUP>().0) {
                for l in 0..GROUP {
                    weights[l] = (weights[l] - base).exponential();
                    slopes[l] = weights[l] * (slopes[l] - mean) * scale;
                }
            }
            // (Tiles read the weights of forbidden keys, too.)
            scores[count..].fill(T::ZERO);
            slopes[count..].fill(T::ZERO);
        }
    }
}
