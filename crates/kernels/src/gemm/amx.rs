//! Products by the processor's tiles, of numbers that are packed as words of 32 bits: pairs of `bf16`, quads of bytes.
//!
//! A task multiplies a part of the rows by a group of columns. It takes so many rows at a time that their sums stay in the
//! second-level cache, and goes through the inner dimension a block of steps after the other: packs the block of the rows beside
//! them, and multiplies it with one block of columns after the other, which stay in the first-level cache each while all rows pass.
//! The right operand's columns are packed once a task. A step of either operand is two tiles of 1 KiB, one after the other, steps
//! that follow one another are one run: the order in which they are read. What lies beyond an operand's edge is zero. Invariant:
//! each sum runs over `k` in order, whatever the tasks and the threads: sums of 32 bits are kept between blocks of steps.

use super::tiles::{ROWS, SIDE, Sums, TileProduct, TileRegisters, WORDS};
use super::{GemmSizes, Matrix, THREAD_GRAIN};
use crate::elementwise::copy_tile;
use crate::{Result, interrupt, parallel, scratch};
use std::ops::Range;

/// Words of a tile's row.
const STEP: usize = 16;
/// Words of a step: two tiles.
const STEP_WORDS: usize = 2 * WORDS;
/// Most steps of a block: one of columns has two thirds of the first-level cache.
const DEPTH: usize = 16;
/// Words of a group of columns that stays in the second-level cache while all rows of a task pass (a quarter of it), and most of one
/// that does not.
const STAYING: usize = 1 << 17;
const GROUP: usize = 1 << 20;
/// Most and fewest blocks of columns of a group.
const COLUMN_BLOCKS: usize = 16;
const FEW_COLUMN_BLOCKS: usize = 8;
/// Blocks of rows that are multiplied at a time, where the columns stay in the cache beside them, and where they come from beyond: the
/// more rows, the seldomer they do. Sums of eight and sixteen blocks have a quarter of the cache. (All measured; pages lie
/// anywhere in the cache, so that not all of it can be used.)
const ROW_BLOCKS: [usize; 2] = [4, 8];

/// Most results that are written block by block.
const SHORT: usize = 1 << 18;

/// Numbers of which a word holds several.
pub(super) trait TileNumber: Copy + Into<u32> + Send + Sync {
    /// How many numbers a word holds.
    const IN_WORD: usize = 4 / size_of::<Self>();
    /// The bits of a number.
    const BITS: u32 = 8 * size_of::<Self>() as u32;
}
impl TileNumber for u8 {}
impl TileNumber for u16 {}

/// The operands of a product.
#[derive(Clone, Copy)]
pub(super) struct TileOperands<T> {
    pub(super) product: TileProduct,
    pub(super) left: Matrix<T>,
    pub(super) right: Matrix<T>,
}

/// Takes the sums of a row of blocks, or of a part of it, which begins at this row and column and has so many.
type StoreFn<'a> = dyn Fn(&[Sums], (usize, usize), (usize, usize)) + Sync + 'a;

/// How a product is cut into blocks and tasks.
struct Layout {
    s: GemmSizes,
    /// Steps of the inner dimension, and most of a block of them.
    steps: usize,
    depth: usize,
    row_blocks: usize,
    column_blocks: usize,
    /// Blocks of rows and of columns of a task.
    part: (usize, usize),
    /// Blocks of rows that are multiplied at a time.
    rows_together: usize,
}

impl Layout {
    fn new<T: TileNumber>(s: GemmSizes, left: Matrix<T>, threads: usize) -> Layout {
        let steps = s.k.div_ceil(STEP * T::IN_WORD);
        let depth = steps.div_ceil(steps.div_ceil(DEPTH).max(1));
        let (row_blocks, column_blocks) = (s.m.div_ceil(SIDE), s.n.div_ceil(SIDE));
        let of_words = |words: usize| words / (steps * STEP_WORDS).max(1);
        // (The narrower the groups, the more often rows are packed, which is dear if they do not lie in rows.)
        let stay = left.cs == 1 && of_words(STAYING) >= FEW_COLUMN_BLOCKS;
        let (words, rows_together) =
            if stay { (STAYING, ROW_BLOCKS[0]) } else { (GROUP, ROW_BLOCKS[1]) };
        let most = of_words(words).clamp(FEW_COLUMN_BLOCKS, COLUMN_BLOCKS);
        let (mut groups, mut parts) = (column_blocks.div_ceil(most), 1);
        if groups >= threads {
            groups = groups.next_multiple_of(threads);
        } else if column_blocks >= row_blocks {
            groups = threads;
        } else {
            parts = threads.div_ceil(groups);
        }
        let part = (row_blocks.div_ceil(parts), column_blocks.div_ceil(groups));
        let rows_together = rows_together.min(part.0);
        Layout { s, steps, depth, row_blocks, column_blocks, part, rows_together }
    }
    fn rows(&self, block: usize) -> usize {
        SIDE.min(self.s.m - block * SIDE)
    }
    fn columns(&self, block: usize) -> usize {
        SIDE.min(self.s.n - block * SIDE)
    }
    /// Whether sums are final after one block of steps, and so few that they can be stored block by block: results that lie beyond
    /// the cache are better written in long rows.
    fn is_short(&self) -> bool {
        self.steps <= DEPTH && self.s.m * self.s.n <= SHORT
    }
    fn parts(&self) -> usize {
        self.row_blocks.div_ceil(self.part.0)
    }
    fn tasks(&self) -> usize {
        self.parts() * self.column_blocks.div_ceil(self.part.1)
    }
    /// The blocks of rows and of columns of a task.
    fn task(&self, index: usize) -> (Range<usize>, Range<usize>) {
        let (row, column) =
            (index % self.parts() * self.part.0, index / self.parts() * self.part.1);
        (
            row..self.row_blocks.min(row + self.part.0),
            column..self.column_blocks.min(column + self.part.1),
        )
    }
    /// The blocks of steps.
    fn depths(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (steps, depth) = (self.steps, self.depth);
        (0..steps).step_by(depth.max(1)).map(move |first| first..steps.min(first + depth))
    }
    /// The words of a task's packed left and right operand and of its sums.
    fn words(&self) -> [usize; 3] {
        let (rows, columns) = (self.rows_together, self.part.1);
        [
            rows * self.depth * STEP_WORDS,
            columns * self.steps * STEP_WORDS,
            (rows * columns).max(2) * SIDE * SIDE,
        ]
    }
}

/// Gives the sums of `left @ right`, row by row of blocks, to `store`.
pub(super) fn product<T: TileNumber>(
    s: GemmSizes,
    operands: TileOperands<T>,
    threads: bool,
    store: &StoreFn<'_>,
) -> Result<()> {
    let threads = if threads && s.work() > THREAD_GRAIN { parallel::num_threads() } else { 1 };
    let layout = Layout::new(s, operands.left, threads);
    let run = |tasks: Range<usize>| {
        scratch::with(layout.words().iter().sum(), |words| {
            for task in tasks {
                multiply(&layout, &operands, layout.task(task), words, store);
            }
        })
    };
    if threads > 1 {
        parallel::try_for_restartable_range(layout.tasks(), 1, &run)
    } else {
        run(0..layout.tasks())
    }
}

/// One task.
fn multiply<T: TileNumber>(
    layout: &Layout,
    operands: &TileOperands<T>,
    (rows, columns): (Range<usize>, Range<usize>),
    words: &mut [u32],
    store: &StoreFn<'_>,
) {
    let [left_words, right_words, _] = layout.words();
    let (left, rest) = words.split_at_mut(left_words);
    let (right, sums) = rest.split_at_mut(right_words);
    // SAFETY: all bits are sums; the words begin at a cache line, and the operands before are whole ones.
    let (head, sums, _) = unsafe { sums.align_to_mut::<Sums>() };
    assert!(head.is_empty(), "scratch memory begins at a cache line");
    let tiles = TileRegisters::new();
    for first in rows.clone().step_by(layout.rows_together) {
        let some = first..rows.end.min(first + layout.rows_together);
        if first > rows.start {
            interrupt::check();
        }
        for steps in layout.depths() {
            let start = steps.start * columns.len() * STEP_WORDS;
            let right = &mut right[start..][..steps.len() * columns.len() * STEP_WORDS];
            if first == rows.start {
                pack_right(right, operands.right, layout, &columns, &steps);
            }
            if layout.is_short() {
                let blocks = (some.clone(), columns.clone(), steps);
                multiply_short(&tiles, (layout, operands), blocks, (left, right), (sums, store));
            } else {
                let blocks = (some.clone(), columns.len(), steps);
                multiply_steps(&tiles, (layout, operands), blocks, (left, right), sums);
            }
        }
        if layout.is_short() {
            continue;
        }
        let start = columns.start * SIDE;
        let count = layout.s.n.min(columns.end * SIDE) - start;
        for (row, sums) in some.zip(sums.chunks(columns.len())) {
            store(sums, (row * SIDE, start), (layout.rows(row), count));
        }
    }
}

/// Adds the products of a block of steps to the sums of some blocks of rows, which it packs, and all columns of a task.
fn multiply_steps<T: TileNumber>(
    tiles: &TileRegisters,
    (layout, operands): (&Layout, &TileOperands<T>),
    (rows, columns, steps): (Range<usize>, usize, Range<usize>),
    (left, right): (&mut [u32], &[u32]),
    sums: &mut [Sums],
) {
    let size = steps.len() * STEP_WORDS;
    let (is_first, sums) = (steps.start == 0, sums[..rows.len() * columns].as_mut_ptr());
    for (column, right) in right.chunks_exact(size).enumerate() {
        for (index, left) in left.chunks_exact_mut(size).take(rows.len()).enumerate() {
            let row = rows.start + index;
            if column == 0 {
                pack_left(left, operands.left, layout, row, &steps);
            }
            let left = (left.as_ptr(), layout.rows(row).div_ceil(ROWS));
            // SAFETY: packed blocks of so many steps; the sums of this block, and an address beside them.
            unsafe {
                let sums = sums.add(index * columns + column);
                let next = sums.wrapping_add(columns);
                let right = right.as_ptr();
                tiles.multiply(operands.product, left, right, steps.len(), (sums, is_first), next);
            }
        }
    }
}

/// The products of some blocks of rows, which it packs, and all columns of a task, where that [`Layout::is_short`]. (Two squares of sums
/// in turns: what was stored last is read, while the next one is computed.)
fn multiply_short<T: TileNumber>(
    tiles: &TileRegisters,
    (layout, operands): (&Layout, &TileOperands<T>),
    (rows, columns, steps): (Range<usize>, Range<usize>, Range<usize>),
    (left, right): (&mut [u32], &[u32]),
    (sums, store): (&mut [Sums], &StoreFn<'_>),
) {
    let size = steps.len() * STEP_WORDS;
    for (column, right) in columns.clone().zip(right.chunks_exact(size)) {
        for (row, left) in rows.clone().zip(left.chunks_exact_mut(size)) {
            if column == columns.start {
                pack_left(left, operands.left, layout, row, &steps);
            }
            let left = (left.as_ptr(), layout.rows(row).div_ceil(ROWS));
            let sums = &mut sums[(row + column) % 2..][..1];
            // SAFETY: packed blocks of so many steps.
            unsafe {
                let to = (sums.as_mut_ptr(), true);
                tiles.multiply(operands.product, left, right.as_ptr(), steps.len(), to, to.0);
            }
            let place = (row * SIDE, column * SIDE);
            store(sums, place, (layout.rows(row), layout.columns(column)));
        }
    }
}

/// The part of the inner dimension of a step.
fn depth_of<T: TileNumber>(k: usize, step: usize) -> Range<usize> {
    let depth = STEP * T::IN_WORD;
    step * depth..k.min((step + 1) * depth)
}

/// Packs some steps of a group of columns of the right operand, block by block. What lies in rows is read step by step, as
/// rows of all blocks; what lies in columns block by block, as long runs of each column.
fn pack_right<T: TileNumber>(
    to: &mut [u32],
    right: Matrix<T>,
    layout: &Layout,
    columns: &Range<usize>,
    steps: &Range<usize>,
) {
    let lies_in_columns = right.rs == 1 && right.cs != 1;
    for at in 0..columns.len() * steps.len() {
        let (place, index) = if lies_in_columns {
            (at / steps.len(), at % steps.len())
        } else {
            (at % columns.len(), at / columns.len())
        };
        let to = &mut to[(place * steps.len() + index) * STEP_WORDS..][..STEP_WORDS];
        let depth = depth_of::<T>(layout.s.k, steps.start + index);
        let column = columns.start + place;
        let from = right.at(depth.start, column * SIDE).t();
        pack_step(to, from, (layout.columns(column), depth.len()));
    }
}

/// Packs some steps of a block of rows of the left operand.
fn pack_left<T: TileNumber>(
    to: &mut [u32],
    left: Matrix<T>,
    layout: &Layout,
    row: usize,
    steps: &Range<usize>,
) {
    let (from, count) = (left.at(row * SIDE, 0), layout.rows(row));
    let whole = if from.cs == 1 { layout.s.k / (STEP * T::IN_WORD) } else { 0 };
    let whole = steps.start..whole.clamp(steps.start, steps.end);
    let tiles = count.div_ceil(ROWS);
    let (lines, others) = to.split_at_mut(whole.len() * tiles * WORDS);
    let start = from.at(0, depth_of::<T>(layout.s.k, whole.start).start).ptr;
    let from_lines = (start.cast_const().cast::<u8>(), from.rs * size_of::<T>() as isize);
    for tile in 0..tiles {
        let rows = ROWS.min(count - tile * ROWS);
        let start = from_lines.0.wrapping_offset((tile * ROWS) as isize * from_lines.1);
        pack_lines(lines, (tile, tiles), (start, from_lines.1), rows);
    }
    for (step, to) in (whole.end..steps.end).zip(others.chunks_exact_mut(tiles * WORDS)) {
        let depth = depth_of::<T>(layout.s.k, step);
        let mut packed = [0; STEP_WORDS];
        pack_step(&mut packed, from.at(0, depth.start), (count, depth.len()));
        for (to, packed) in to.as_chunks_mut::<WORDS>().0.iter_mut().zip(packed.as_chunks().0) {
            transpose(to, packed);
        }
    }
}

/// A tile with rows for columns.
fn transpose(to: &mut [u32; WORDS], from: &[u32; WORDS]) {
    let strides = (STEP as isize * 4, ROWS as isize * 4);
    // SAFETY: two squares of as many rows as columns.
    unsafe {
        let to = to.as_mut_ptr().cast();
        copy_tile::<u32, false>(to, from.as_ptr().cast(), strides, (STEP, ROWS));
    }
}

crate::multiversion! {
    /// Packs a tile of each step from rows that begin so many bytes apart; `rows` of them must be live.
    fn pack_lines(to: &mut [u32], tile: (usize, usize), from: (*const u8, isize), rows: usize) {
        for (step, to) in to.chunks_exact_mut(tile.1 * WORDS).enumerate() {
            let to = &mut to[tile.0 * WORDS..][..WORDS];
            let at = from.0.wrapping_add(step * STEP * 4);
            if rows < ROWS {
                to.fill(0);
            }
            for (r, to) in to.as_chunks_mut::<STEP>().0[..rows].iter_mut().enumerate() {
                let at = at.wrapping_offset(r as isize * from.1).cast::<[u32; STEP]>();
                // SAFETY: as many bytes of a row that is live, as the caller promises.
                *to = unsafe { at.read_unaligned() };
            }
        }
    }
}

/// Packs `depth` columns of `count` rows of a matrix as the two tiles of a step: word `k` of row `r` is `to[k * ROWS + r]` of the
/// tile of that row. What lies beyond is zero.
fn pack_step<T: TileNumber>(to: &mut [u32], from: Matrix<T>, (count, depth): (usize, usize)) {
    let (words, rest) = (depth / T::IN_WORD, depth % T::IN_WORD);
    if count < SIDE || words < STEP {
        to.fill(0);
    }
    let row_bytes = from.rs * size_of::<T>() as isize;
    let is_aligned = row_bytes % 4 == 0 && from.ptr.addr().is_multiple_of(4);
    if from.cs == 1 && is_aligned {
        for (to, first) in to.as_chunks_mut::<WORDS>().0.iter_mut().zip((0..count).step_by(ROWS)) {
            let (at, rows) = (from.at(first, 0).ptr.cast_const().cast(), ROWS.min(count - first));
            let strides = (ROWS as isize * 4, row_bytes);
            // SAFETY: rows of so many words, and as many runs of `ROWS`.
            unsafe {
                copy_tile::<u32, false>(to.as_mut_ptr().cast(), at, strides, (rows, words));
            }
        }
    } else if from.rs == 1 && count == SIDE {
        interleave(to, (from.ptr, from.cs), words);
    } else {
        for k in 0..words {
            pack_word(to, from, (count, k), T::IN_WORD);
        }
    }
    if rest > 0 {
        pack_word(to, from, (count, words), rest);
    }
}

/// Word `k` of `count` rows, of which `n` numbers are there.
#[inline(always)]
fn pack_word<T: TileNumber>(to: &mut [u32], from: Matrix<T>, (count, k): (usize, usize), n: usize) {
    for r in 0..count {
        let word = (0..n).fold(0, |word, i| {
            // SAFETY: inside the matrix.
            let number = unsafe { *from.at(r, k * T::IN_WORD + i).ptr };
            word | number.into() << (i as u32 * T::BITS)
        });
        to[r / ROWS * WORDS + k * ROWS + r % ROWS] = word;
    }
}

crate::multiversion! {
    /// Packs runs of [`SIDE`] numbers, which begin so many apart and must be live: as many together as a word has.
    fn interleave<T: TileNumber>(to: &mut [u32], from: (*mut T, isize), words: usize) {
        for k in 0..words {
            for tile in 0..2 {
                let mut row = [0; ROWS];
                for i in 0..T::IN_WORD {
                    let at = from.0.wrapping_offset((k * T::IN_WORD + i) as isize * from.1);
                    // SAFETY: the runs are live, as the caller promises.
                    let run = unsafe { at.wrapping_add(tile * ROWS).cast::<[T; ROWS]>().read() };
                    for (word, number) in row.iter_mut().zip(run) {
                        *word |= number.into() << (i as u32 * T::BITS);
                    }
                }
                to[tile * WORDS + k * ROWS..][..ROWS].copy_from_slice(&row);
            }
        }
    }
}
