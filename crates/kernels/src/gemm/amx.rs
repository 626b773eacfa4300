//! Products by the processor's tiles, of numbers that are packed as words of 32 bits: pairs of `bf16`, quads of bytes.
//!
//! Both operands are packed whole. The left one lies in blocks of `SIDE` rows, each in steps of two tiles (the last block may
//! have one); the right one in blocks of `SIDE` columns, each in rows of words: what a step takes is one run on either side.
//! What lies beyond an operand's edge is zero. A task multiplies some blocks of rows by a group of columns that the second-level
//! cache holds. Invariant: each sum runs over `k` in order within one run of the microkernel, whatever the tasks and the threads.

use super::tiles::{ROWS, SIDE, Sums, TileProduct, TileRegisters, WORDS};
use super::{GemmSizes, Matrix, THREAD_GRAIN};
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::{Result, interrupt, parallel, scratch};
use std::ops::Range;

/// Words of a tile's row.
const STEP: usize = 16;
/// Words of a step of the right operand.
const RIGHT_STEP: usize = SIDE * STEP;
/// Words of the columns that a task takes together: half of the second-level cache.
const GROUP: usize = 1 << 18;

/// Packs a range of the columns of `count` rows as words, `to[k * width + r]`; see `bf16::pack` and `bytes::pack`.
type PackFn<T> = fn(&mut [u32], usize, Matrix<T>, usize, Range<usize>);

/// The operands of a product.
#[derive(Clone, Copy)]
pub(super) struct TileOperands<T> {
    pub(super) product: TileProduct,
    pub(super) left: Matrix<T>,
    pub(super) right: Matrix<T>,
    pub(super) pack: PackFn<T>,
}

/// Takes the sums of a block, which begins at this row and column and has so many: [`SIDE`] to a row.
type StoreFn<'a> = dyn Fn(&Sums, (usize, usize), (usize, usize)) + Sync + 'a;

/// Where the packed operands lie.
struct Layout {
    s: GemmSizes,
    /// Steps of the inner dimension.
    steps: usize,
    row_blocks: usize,
    column_blocks: usize,
}

impl Layout {
    fn new<T>(s: GemmSizes) -> Layout {
        let steps = s.k.div_ceil(STEP * 4 / size_of::<T>());
        Layout { s, steps, row_blocks: s.m.div_ceil(SIDE), column_blocks: s.n.div_ceil(SIDE) }
    }
    fn rows(&self, block: usize) -> usize {
        SIDE.min(self.s.m - block * SIDE)
    }
    fn columns(&self, block: usize) -> usize {
        SIDE.min(self.s.n - block * SIDE)
    }
    /// The words of a block of the left operand.
    fn left(&self, block: usize) -> Range<usize> {
        let start = block * 2 * self.steps * WORDS;
        start..start + self.rows(block).div_ceil(ROWS) * self.steps * WORDS
    }
    /// The words of a block of the right operand.
    fn right(&self, block: usize) -> Range<usize> {
        let size = self.steps * RIGHT_STEP;
        block * size..(block + 1) * size
    }
    fn left_words(&self) -> usize {
        self.s.m.div_ceil(ROWS) * self.steps * WORDS
    }
    fn right_words(&self) -> usize {
        self.column_blocks * self.steps * RIGHT_STEP
    }
}

/// Gives the sums of `left @ right`, block by block, to `store`.
pub(super) fn product<T: Copy + Send + Sync>(
    s: GemmSizes,
    operands: TileOperands<T>,
    threads: bool,
    store: &StoreFn<'_>,
) -> Result<()> {
    let layout = Layout::new::<T>(s);
    let threads = if threads && s.work() > THREAD_GRAIN { parallel::num_threads() } else { 1 };
    let (left_words, right_words) = (layout.left_words(), layout.right_words());
    scratch::with(left_words + right_words, |words| {
        let (left, right) = words.split_at_mut(left_words);
        let (left, right) = (SharedMut::new(left), SharedMut::new(right));
        let pack = |block: usize| {
            // SAFETY: each block is packed once.
            unsafe {
                if block < layout.row_blocks {
                    pack_left(left.slice(layout.left(block)), &operands, &layout, block);
                } else {
                    let block = block - layout.row_blocks;
                    pack_right(right.slice(layout.right(block)), &operands, &layout, block);
                }
            }
        };
        let blocks = layout.row_blocks + layout.column_blocks;
        run(threads, blocks, 8.min(blocks.div_ceil(threads)), &|range| range.for_each(pack));

        let grid = Grid::new(&layout, threads);
        run(threads, grid.tasks(), 1, &|range| {
            for task in range {
                let packed = (left.ptr().cast_const(), right.ptr().cast_const());
                // SAFETY: both operands are packed.
                unsafe { multiply(&layout, operands.product, packed, grid.task(task), store) };
            }
        });
    })
}

/// `work` for blocks of `0..total`, on this thread alone if there is one.
fn run(threads: usize, total: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    if threads > 1 {
        return parallel::for_range(total, grain, work);
    }
    for start in (0..total).step_by(grain) {
        if start > 0 {
            interrupt::check();
        }
        work(start..total.min(start + grain));
    }
}

/// The tasks of a product: parts of the blocks of rows times groups of the blocks of columns.
struct Grid {
    row_blocks: usize,
    column_blocks: usize,
    /// Blocks of rows and of columns of a task.
    part: (usize, usize),
}

impl Grid {
    fn new(layout: &Layout, threads: usize) -> Grid {
        /// Tasks for each thread, so that one that is late has not much left to do.
        const EACH: usize = 2;
        let (row_blocks, column_blocks) = (layout.row_blocks, layout.column_blocks);
        let most = (GROUP / (layout.steps * RIGHT_STEP).max(1)).max(1);
        let columns = most.min(column_blocks.div_ceil(threads));
        let groups = column_blocks.div_ceil(columns);
        let parts = if threads == 1 { 1 } else { (EACH * threads).div_ceil(groups) };
        Grid { row_blocks, column_blocks, part: (row_blocks.div_ceil(parts), columns) }
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
}

/// The blocks of a task.
///
/// # Safety
/// The operands are packed as the layout says.
unsafe fn multiply(
    layout: &Layout,
    product: TileProduct,
    (left, right): (*const u32, *const u32),
    (rows, columns): (Range<usize>, Range<usize>),
    store: &StoreFn<'_>,
) {
    let tiles = TileRegisters::new();
    let mut sums = Sums([0; SIDE * SIDE]);
    for row in rows {
        let count = layout.rows(row);
        for column in columns.clone() {
            // SAFETY: packed blocks of as many steps.
            unsafe {
                let left = left.add(layout.left(row).start);
                let right = right.add(layout.right(column).start);
                let left = (left, count.div_ceil(ROWS));
                tiles.multiply(product, left, right, layout.steps, &mut sums);
            }
            store(&sums, (row * SIDE, column * SIDE), (count, layout.columns(column)));
        }
    }
}

/// Packs a block of columns of the right operand.
fn pack_right<T: Copy>(to: &mut [u32], operands: &TileOperands<T>, layout: &Layout, block: usize) {
    let used = layout.s.k.div_ceil(4 / size_of::<T>());
    let (to, beyond) = to.split_at_mut(used * SIDE);
    beyond.fill(0);
    let from = operands.right.at(0, block * SIDE).t();
    (operands.pack)(to, SIDE, from, layout.columns(block), 0..layout.s.k);
}

/// Packs a block of rows of the left operand.
fn pack_left<T: Copy>(to: &mut [u32], operands: &TileOperands<T>, layout: &Layout, block: usize) {
    let (from, count) = (operands.left.at(block * SIDE, 0), layout.rows(block));
    let tiles = count.div_ceil(ROWS);
    let is_ragged = !count.is_multiple_of(ROWS);
    let depth = STEP * 4 / size_of::<T>();
    let whole = if from.cs == 1 { layout.s.k / depth } else { 0 };
    for tile in 0..tiles {
        let from = from.at(tile * ROWS, 0);
        let rows = ROWS.min(count - tile * ROWS);
        for step in 0..layout.steps {
            let to = &mut to[(step * tiles + tile) * WORDS..][..WORDS];
            let depth = step * depth..layout.s.k.min((step + 1) * depth);
            if step < whole {
                if is_ragged {
                    to.fill(0);
                }
                for (r, to) in to.as_chunks_mut::<STEP>().0[..rows].iter_mut().enumerate() {
                    let from = from.at(r, depth.start).ptr.cast::<[u32; STEP]>();
                    // SAFETY: as many bytes of a row, whose numbers lie side by side.
                    *to = unsafe { from.read_unaligned() };
                }
            } else {
                pack_transposed(to, operands.pack, from, rows, depth);
            }
        }
    }
}

/// Packs a tile of the left operand by way of one of the right: a row's words come to lie side by side.
fn pack_transposed<T: Copy>(
    to: &mut [u32],
    pack: PackFn<T>,
    from: Matrix<T>,
    rows: usize,
    depth: Range<usize>,
) {
    let mut columns = [0; WORDS];
    pack(&mut columns, ROWS, from, rows, depth);
    let strides = (STEP as isize * 4, ROWS as isize * 4);
    // SAFETY: two squares of as many rows as columns.
    unsafe {
        let columns = columns.as_ptr().cast();
        copy_tile::<u32, false>(to.as_mut_ptr().cast(), columns, strides, (STEP, ROWS));
    }
}
