//! Products of many left operands with one right operand of `f32` or `f64`, packed once, by tiles of sums in registers.
//!
//! Columns come in blocks as wide as a tile, the last ones narrower; the left operand is packed in blocks of as many rows as a
//! tile has. Invariant: each sum runs over `k` in order, whatever the tiles, the rows and the threads.

use super::{GemmElement, Matrix, THREAD_GRAIN, small};
use crate::conv::Microkernel;
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::{Result, memory, parallel, scratch};

/// Bytes between rows of a packed block: rows a power of two apart would meet in few places of a cache.
const PAD_BYTES: usize = 64;
/// Fewest columns, and fewest products of a sum.
const LEAST: usize = 16;
/// Most elements of a tile.
const LARGEST: usize = 512;

/// How columns are cut into blocks: as wide as the main tile, but the last one or two.
struct Columns<T: 'static> {
    n: usize,
    main: &'static Microkernel<T>,
    /// How many blocks are of the main tile's width.
    whole: usize,
    /// The tile of the blocks after these, and how many they are.
    rest: (&'static Microkernel<T>, usize),
}

/// Columns of one block.
struct RightBlock<T: 'static> {
    start: usize,
    count: usize,
    tile: &'static Microkernel<T>,
}

impl<T: GemmElement> Columns<T> {
    /// The blocks for `n` columns, if the machine has tiles.
    fn new(n: usize) -> Option<Columns<T>> {
        let all = T::microkernels();
        // As few columns as possible beyond the last one, then the widest tile; the narrower ones go with it.
        let main = all.iter().max_by_key(|tile| (tile.rows, tile.columns))?;
        let narrowest = |columns: usize| {
            let fits = |tile: &&Microkernel<T>| tile.rows == main.rows && tile.columns >= columns;
            all.iter().filter(fits).min_by_key(|tile| tile.columns).unwrap_or(main)
        };
        let (mut whole, left) = (n / main.columns, n % main.columns);
        let mut rest = (main, 0);
        if left > 0 {
            rest = (narrowest(left), 1);
            // Two tiles of medium width are faster than a wide one and a narrow one.
            let medium = narrowest((main.columns + left).div_ceil(2));
            if whole > 0 && medium.columns < main.columns && rest.0.columns < medium.columns {
                (whole, rest) = (whole - 1, (medium, 2));
            }
        }
        Some(Columns { n, main, whole, rest })
    }
    fn blocks(&self) -> usize {
        self.whole + self.rest.1
    }
    fn block(&self, index: usize) -> RightBlock<T> {
        if index < self.whole {
            let columns = self.main.columns;
            return RightBlock { start: index * columns, count: columns, tile: self.main };
        }
        let tile = self.rest.0;
        let start = self.whole * self.main.columns + (index - self.whole) * tile.columns;
        RightBlock { start, count: tile.columns.min(self.n - start), tile }
    }
}

/// A left operand in blocks of `rows` rows.
struct PackedLeft<T> {
    data: SharedMut<T>,
    rows: usize,
    /// Elements between the rows of a block.
    pitch: usize,
    /// Whether rows lie one by one, else columns.
    by_rows: bool,
}

impl<T> PackedLeft<T> {
    /// The block of rows from `row` on.
    fn block(&self, row: usize) -> Matrix<T> {
        let (rs, cs) =
            if self.by_rows { (self.pitch as isize, 1) } else { (1, self.rows as isize) };
        Matrix { ptr: self.data.ptr().wrapping_add(row * self.pitch), rs, cs }
    }
}

/// Packs `(m, k)` numbers in blocks of rows, zeros after the last one: each row a run if it is one in memory, else each column of a
/// block.
///
/// # Safety
/// All elements of the matrix are live, and there is room for them.
unsafe fn pack_left<T: GemmElement>(to: &PackedLeft<T>, a: Matrix<T>, (m, k): (usize, usize)) {
    let (rows, pitch) = (to.rows, to.pitch);
    for row in (0..m).step_by(rows) {
        let (to, a) = (to.data.ptr().wrapping_add(row * pitch), a.at(row, 0));
        let count = rows.min(m - row);
        // SAFETY: a block of rows, and room for it.
        unsafe {
            if count < rows {
                std::slice::from_raw_parts_mut(to, rows * pitch).fill(T::default());
            }
            if a.cs == 1 {
                for r in 0..count {
                    let from = a.at(r, 0).ptr.cast_const();
                    from.copy_to_nonoverlapping(to.add(r * pitch), k);
                }
            } else {
                pack_columns(to, a, rows, count, k);
            }
        }
    }
}

/// Packs `n` columns of `count` rows, `rows` apart.
///
/// # Safety
/// As [`pack_left`].
unsafe fn pack_columns<T: GemmElement>(
    to: *mut T,
    a: Matrix<T>,
    rows: usize,
    count: usize,
    n: usize,
) {
    /// Rows of the usual tile.
    const USUAL: usize = 8;
    let is_whole = a.rs == 1 && (rows, count) == (USUAL, USUAL);
    for p in 0..n {
        let (to, from) = (to.wrapping_add(p * rows), a.at(0, p));
        // SAFETY: the caller's promise.
        unsafe {
            if is_whole {
                to.cast::<[T; USUAL]>().write(from.ptr.cast::<[T; USUAL]>().read());
                continue;
            }
            for r in 0..count {
                *to.add(r) = *from.at(r, 0).ptr;
            }
        }
    }
}

/// Packs `depth` rows of a block of columns of the right operand, zeros after the last column.
///
/// # Safety
/// All elements of the matrix are live, and `to` has room for them.
unsafe fn pack_right<T: GemmElement>(
    to: *mut T,
    b: Matrix<T>,
    block: &RightBlock<T>,
    depth: usize,
) {
    let (width, count) = (block.tile.columns, block.count);
    // SAFETY: the caller's promise.
    unsafe {
        if count < width {
            std::slice::from_raw_parts_mut(to, depth * width).fill(T::default());
        }
        if b.rs == 1 && b.cs != 1 {
            let size = size_of::<T>() as isize;
            let strides = (width as isize * size, b.cs * size);
            copy_tile::<T, false>(to.cast(), b.ptr.cast_const().cast(), strides, (count, depth));
        } else if b.cs == 1 && count == width {
            match width {
                64 => pack_rows::<T, 64>(to, b, depth),
                48 => pack_rows::<T, 48>(to, b, depth),
                32 => pack_rows::<T, 32>(to, b, depth),
                24 => pack_rows::<T, 24>(to, b, depth),
                16 => pack_rows::<T, 16>(to, b, depth),
                12 => pack_rows::<T, 12>(to, b, depth),
                _ => pack_elements(to, b, (width, count), depth),
            }
        } else {
            pack_elements(to, b, (width, count), depth);
        }
    }
}

/// Rows of `W` elements one after the other.
///
/// # Safety
/// As [`pack_right`].
unsafe fn pack_rows<T: Copy, const W: usize>(to: *mut T, b: Matrix<T>, depth: usize) {
    for p in 0..depth {
        // SAFETY: the caller's promise.
        unsafe { to.add(p * W).cast::<[T; W]>().write(b.at(p, 0).ptr.cast::<[T; W]>().read()) };
    }
}

/// [`pack_right`] element by element.
///
/// # Safety
/// As [`pack_right`].
unsafe fn pack_elements<T: Copy>(
    to: *mut T,
    b: Matrix<T>,
    (width, count): (usize, usize),
    depth: usize,
) {
    for p in 0..depth {
        for j in 0..count {
            // SAFETY: the caller's promise.
            unsafe { *to.add(p * width + j) = *b.at(p, j).ptr };
        }
    }
}

crate::multiversion! {
    /// `c = beta * c + sums` of some rows and columns of a tile, whose rows have no gaps.
    fn store<T: GemmElement>(c: Matrix<T>, sums: (*const T, usize), size: (usize, usize), beta: T) {
        let ((sums, pitch), (rows, columns)) = (sums, size);
        for r in 0..rows {
            // SAFETY: the caller of `product` promised live matrices; the tile is part of them.
            unsafe {
                let sums = std::slice::from_raw_parts(sums.add(r * pitch), columns);
                let c = c.at(r, 0);
                if c.cs != 1 || beta == T::default() {
                    small::finish(c, sums, T::one(), beta);
                    continue;
                }
                let to = std::slice::from_raw_parts_mut(c.ptr, columns);
                for (c, &sum) in to.iter_mut().zip(sums) {
                    *c = beta.mul_add_to(*c, sum);
                }
            }
        }
    }
}

/// A right operand of many products, packed once.
pub(crate) struct PackedRight<T: 'static> {
    columns: Columns<T>,
    k: usize,
    packed: Vec<T>,
}

impl<T: GemmElement> PackedRight<T> {
    /// Packs `k` rows of `n` columns, if products with `rows` rows are worth it.
    ///
    /// # Safety
    /// All elements of the matrix are live.
    pub(crate) unsafe fn new(
        b: Matrix<T>,
        (k, n): (usize, usize),
        rows: usize,
    ) -> Result<Option<Self>> {
        const LEAST_ROWS: usize = 6;
        let Some(columns) = Columns::new(n) else { return Ok(None) };
        if rows < LEAST_ROWS || k.min(n) < LEAST {
            return Ok(None);
        }
        let width = columns.main.columns;
        let mut packed = memory::filled(T::default(), columns.blocks() * k * width)?;
        for (index, to) in packed.chunks_exact_mut(k * width).enumerate() {
            let block = columns.block(index);
            // SAFETY: the caller's promise, and room for a block.
            unsafe { pack_right(to.as_mut_ptr(), b.at(0, block.start), &block, k) };
        }
        Ok(Some(PackedRight { columns, k, packed }))
    }

    /// The rows and columns of the operand.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.k, self.columns.n)
    }

    /// `c = beta * c + a @ b` for `m` rows.
    ///
    /// # Safety
    /// All elements of the matrices are live; `c` overlaps neither operand.
    pub(crate) unsafe fn product(
        &self,
        m: usize,
        c: Matrix<T>,
        a: Matrix<T>,
        beta: T,
    ) -> Result<()> {
        let (k, columns) = (self.k, &self.columns);
        let (rows, pitch) = (columns.main.rows, k + PAD_BYTES / size_of::<T>());
        let words = m.next_multiple_of(rows) * pitch * size_of::<T>() / 4;
        scratch::with(words, |words| {
            let data = SharedMut::from_ptr(words.as_mut_ptr().cast::<T>());
            let left = PackedLeft { data, rows, pitch, by_rows: a.cs == 1 };
            // SAFETY: the caller's promise, and room for all rows.
            unsafe { pack_left(&left, a, (m, k)) };
            let is_shared = m * k * columns.n > THREAD_GRAIN;
            let tasks = if is_shared { parallel::num_threads() } else { 1 };
            parallel::for_range(columns.blocks(), columns.blocks().div_ceil(tasks), &|range| {
                for index in range {
                    // SAFETY: each block has columns of its own.
                    unsafe { self.block(index, m, c, &left, beta) };
                }
            });
        })
    }

    /// The columns of one block.
    ///
    /// # Safety
    /// As [`PackedRight::product`].
    unsafe fn block(&self, index: usize, m: usize, c: Matrix<T>, left: &PackedLeft<T>, beta: T) {
        let block = self.columns.block(index);
        let (rows, width) = (block.tile.rows, block.tile.columns);
        let mut sums = [T::default(); LARGEST];
        let right = &self.packed[index * self.k * self.columns.main.columns..];
        let right = Matrix::rows(right.as_ptr(), width);
        for row in (0..m).step_by(rows) {
            // SAFETY: packed blocks, a tile, and rows of `c` that are there.
            unsafe {
                (block.tile.product)(left.block(row), right, self.k, sums.as_mut_ptr(), false);
                let size = (rows.min(m - row), block.count);
                store(c.at(row, block.start), (sums.as_ptr(), width), size, beta);
            }
        }
    }
}
