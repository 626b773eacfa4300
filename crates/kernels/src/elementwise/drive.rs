//! Feeds a dense loop with operands of any stride and with half-precision operands, real or complex.
//!
//! Operands that are already dense go to the loop as they are. Others pass through buffers of
//! `BUFFER` bytes in the first-level cache: gathered (or spread, for a broadcast element),
//! converted from half to single precision, and on the way out converted back and scattered. The
//! same holds for an input that is also the output. Rows at regular distances are handed over together: to a direct loop
//! as they are, to a dense loop as one block if they are short. Nothing here depends on the op, so this code
//! exists once.

use super::copy::copy_tile;
use super::staging::{StorageFormat, copy_rows, gather, repeat, scatter};
use crate::strided::MAX_OPERANDS;
use crate::{DType, Error, Float8, Iter, Result, parallel};
use std::mem::MaybeUninit;

/// A loop over dense memory: addresses (output first), number of elements, address of the op's parameters.
pub(crate) type DenseLoop = unsafe fn(&[*mut u8], usize, *const u8);

/// A loop over rows: like [`DenseLoop`], but an input may be the output, and one operand may be a single element for each row.
pub(crate) type RowLoop = unsafe fn(&RowBlock<'_>, *const u8);

/// Rows of elements as a direct loop takes them.
pub(crate) struct RowBlock<'r> {
    /// Addresses in the first row, output first.
    pub(crate) at: &'r [*mut u8],
    /// Bytes from a row to the next.
    pub(crate) row_strides: &'r [isize],
    /// Elements of a row, and rows.
    pub(crate) n: usize,
    pub(crate) count: usize,
    /// The number of the operand that has one element for each row (0: none); the others are dense in a row.
    pub(crate) single: usize,
}

/// The loops of an op.
#[derive(Clone, Copy)]
pub(crate) struct OpLoops {
    pub(crate) dense: DenseLoop,
    pub(crate) direct: Option<RowLoop>,
    /// The number of elements of a row from which the direct loop is the faster one.
    pub(crate) least: usize,
}

/// Bytes of a block of one operand: few enough that the library's copy of them uses plain vector moves.
const BUFFER: usize = 2048;
/// Bytes between two buffers, so that they do not begin at the same offset in a page, which makes loads wait for stores.
const SPACING: usize = 192;
/// Most elements of a block (loops work on at least four bytes, or on few bytes at a time).
pub(super) const BLOCK: usize = BUFFER / 4;
/// The elements of a tile of transposed operands along the loop.
const TILE: usize = 128;
/// The loops of a tile of transposed operands: two cache lines of four-byte elements.
const TILE_ROWS: usize = 32;
/// The fewest rows for which a row that all of them share is laid out several times.
const MIN_REPEATED_ROWS: usize = 8;
/// The most elements of rows that are staged together although they lie as a loop needs them.
const MAX_STAGED_ROW: usize = 128;
/// Most operands of a pointwise op.
const MAX_LOOP_OPERANDS: usize = 4;
/// Elements from which work is worth splitting over threads.
const GRAIN: usize = 32768;

/// Parts that a large walk is cut into: for each, reading ahead starts afresh.
const PARTS: usize = 64;

/// Bytes of output up to which an in-place call takes the short way.
const MAX_SMALL_OUTPUT: usize = 512;

#[repr(C, align(64))]
struct OutputBuffer([MaybeUninit<u8>; MAX_SMALL_OUTPUT]);

#[repr(C, align(64))]
struct StagingBuffer([MaybeUninit<u8>; BUFFER + SPACING]);

#[repr(C, align(64))]
struct TileBuffer([MaybeUninit<u8>; TILE * TILE_ROWS * 8]);

impl RowBlock<'_> {
    /// Whether an input is the output, in every row.
    #[inline(always)]
    pub(crate) fn is_output(&self, operand: usize) -> bool {
        self.at[operand] == self.at[0]
            && (self.count <= 1 || self.row_strides[operand] == self.row_strides[0])
    }
}

/// The operands that go through buffers, one bit each. (Bytes that are written one by one and read together would have to
/// wait for all stores before them to reach the cache, which takes long while a large output is written.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct StagedOperands(u8);

impl StagedOperands {
    fn has(self, operand: usize) -> bool {
        self.0 >> operand & 1 != 0
    }
}

/// The loops of a call, with the storage formats and element sizes of its operands.
struct LoopPlan {
    run: OpLoops,
    params: *const u8,
    formats: [StorageFormat; MAX_LOOP_OPERANDS],
    /// Bytes of an element, in memory.
    sizes: [usize; MAX_LOOP_OPERANDS],
    operands: usize,
}

// SAFETY: the parameters are `Sync` (the maps' `P` is) and outlive the call.
unsafe impl Sync for LoopPlan {}

/// Runs `run` over all elements, if the operands have the `wanted` dtypes (`f32` accepts half types, `C64` accepts `C32` and `BC32`).
///
/// # Safety
/// `run` must be fit for operands of the `wanted` dtypes and for `params`, and usable from any thread.
#[inline]
pub(crate) unsafe fn drive(
    iter: &Iter,
    wanted: &[DType],
    run: OpLoops,
    params: *const u8,
) -> Result<()> {
    let operands = wanted.len();
    let exact = iter.operands() == operands
        && iter.outputs() == 1
        && (0..operands).all(|i| iter.dtype(i) == wanted[i]);
    if exact
        && iter.numel() <= GRAIN
        && let Some(ptrs) = iter.as_contiguous()
    {
        if !ptrs[1..].contains(&ptrs[0]) {
            // SAFETY: dense operands of the wanted dtypes; the output is no input.
            unsafe { (run.dense)(ptrs, iter.numel(), params) };
            return Ok(());
        }
        if iter.numel() * wanted[0].size() <= MAX_SMALL_OUTPUT {
            // SAFETY: as above, and the result fits the buffer.
            unsafe { run_in_place(ptrs, iter.numel(), wanted[0].size(), run.dense, params) };
            return Ok(());
        }
    }
    drive_any(iter, wanted, run, params)
}

/// Runs a small dense loop whose output is also an input, through a buffer for the output.
///
/// # Safety
/// The operands are dense and of the loop's dtypes, the output at most `MAX_SMALL_OUTPUT` bytes.
#[inline(never)]
unsafe fn run_in_place(ptrs: &[*mut u8], n: usize, size: usize, run: DenseLoop, params: *const u8) {
    let mut buffer = MaybeUninit::<OutputBuffer>::uninit();
    let mut at = [std::ptr::null_mut(); MAX_LOOP_OPERANDS];
    at[..ptrs.len()].copy_from_slice(ptrs);
    at[0] = buffer.as_mut_ptr().cast();
    // SAFETY: the loop fills `n` elements of the buffer, which are then copied to the output.
    unsafe {
        run(&at[..ptrs.len()], n, params);
        std::ptr::copy_nonoverlapping(at[0].cast_const(), ptrs[0], n * size);
    }
}

/// Runs a loop over all elements as `drive` does, for ops that move elements by their size, whatever their dtype.
///
/// # Safety
/// As for `drive`, with operands of the `sizes`.
pub(crate) unsafe fn drive_raw(
    iter: &Iter,
    sizes: &[usize],
    run: DenseLoop,
    params: *const u8,
) -> Result<()> {
    let operands = sizes.len();
    let fits = iter.operands() == operands
        && iter.outputs() == 1
        && (0..operands).all(|i| iter.dtype(i).size() == sizes[i]);
    if !fits {
        return Err(mismatch(iter));
    }
    let run = OpLoops { dense: run, direct: None, least: 0 };
    let mut plan = LoopPlan {
        run,
        params,
        formats: [StorageFormat::Native; MAX_LOOP_OPERANDS],
        sizes: [0; MAX_LOOP_OPERANDS],
        operands,
    };
    plan.sizes[..operands].copy_from_slice(sizes);
    plan.walk(iter);
    Ok(())
}

#[inline(never)]
fn drive_any(iter: &Iter, wanted: &[DType], run: OpLoops, params: *const u8) -> Result<()> {
    let operands = wanted.len();
    if iter.operands() != operands || iter.outputs() != 1 {
        return Err(mismatch(iter));
    }
    let mut plan = LoopPlan {
        run,
        params,
        formats: [StorageFormat::Native; MAX_LOOP_OPERANDS],
        sizes: [0; MAX_LOOP_OPERANDS],
        operands,
    };
    for (i, &want) in wanted.iter().enumerate() {
        let dtype = iter.dtype(i);
        plan.sizes[i] = dtype.size();
        plan.formats[i] = match (want, dtype) {
            (DType::F32, DType::F16) => StorageFormat::F16,
            (DType::F32, DType::BF16) => StorageFormat::Bf16,
            (DType::C64, DType::C32) => StorageFormat::C32,
            (DType::C64, DType::BC32) => StorageFormat::Bc32,
            _ if want == dtype => StorageFormat::Native,
            (DType::F32, dtype) => match Float8::of(dtype) {
                Some(float8) => StorageFormat::F8(float8),
                None => return Err(mismatch(iter)),
            },
            _ => return Err(mismatch(iter)),
        };
    }
    plan.walk(iter);
    Ok(())
}

#[cold]
fn mismatch(iter: &Iter) -> Error {
    // bounded: by the number of operands.
    let found: Vec<_> = (0..iter.operands()).map(|i| iter.dtype(i)).collect();
    Error::runtime(format!(
        "Found dtypes {found:?} ({} of them outputs), which this kernel does not combine",
        iter.outputs()
    ))
}

impl LoopPlan {
    fn walk(&self, iter: &Iter) {
        if let Some(across) = self.transposed_dim(iter) {
            return self.walk_tiles(iter, across);
        }
        // Whole pages, whatever the size of an element: no part starts inside of a vector.
        let part = (iter.numel() / PARTS).next_multiple_of(4096).max(GRAIN);
        iter.for_each_rows(part, &|ptrs, strides, row_strides, size| {
            self.run_rows(ptrs, strides, row_strides, size);
        });
    }

    /// The dimension along which some input is dense while the output is dense along dimension 0, if tiles pay.
    fn transposed_dim(&self, iter: &Iter) -> Option<usize> {
        let is_worth = iter.dims() >= 2 && iter.size(0) >= 16 && iter.numel() >= 4096;
        if !is_worth || iter.stride(0, 0) != self.sizes[0] as isize {
            return None;
        }
        (1..iter.dims()).find(|&dim| {
            let transposed = |i: usize| self.is_transposed(iter, dim, i);
            iter.size(dim) >= 16 && (1..self.operands).any(transposed)
        })
    }

    fn is_transposed(&self, iter: &Iter, across: usize, operand: usize) -> bool {
        let size = self.sizes[operand] as isize;
        let step = iter.stride(0, operand);
        iter.stride(across, operand) == size && step != size && step != 0 && size <= 8
    }

    /// The walk in tiles of dimensions 0 and `across`, for which transposed operands are transposed.
    fn walk_tiles(&self, iter: &Iter, across: usize) {
        let (n, m) = (iter.size(0), iter.size(across));
        let strips = m.div_ceil(TILE_ROWS);
        let planes = iter.numel() / (n * m);
        parallel::for_range(planes * strips, (GRAIN / (n * TILE_ROWS)).max(1), &|tasks| {
            for task in tasks {
                let (mut plane, first) = (task / strips, task % strips * TILE_ROWS);
                let mut ptrs = [std::ptr::null_mut(); MAX_LOOP_OPERANDS];
                for (i, ptr) in ptrs[..self.operands].iter_mut().enumerate() {
                    *ptr = iter.ptr(i).wrapping_offset(first as isize * iter.stride(across, i));
                }
                for dim in (1..iter.dims()).filter(|&dim| dim != across) {
                    let position = (plane % iter.size(dim)) as isize;
                    plane /= iter.size(dim);
                    for (i, ptr) in ptrs[..self.operands].iter_mut().enumerate() {
                        *ptr = ptr.wrapping_offset(position * iter.stride(dim, i));
                    }
                }
                let rows = TILE_ROWS.min(m - first);
                for start in (0..n).step_by(TILE) {
                    let at: [_; MAX_LOOP_OPERANDS] = std::array::from_fn(|i| {
                        let step = if i < self.operands { iter.stride(0, i) } else { 0 };
                        ptrs[i].wrapping_offset(start as isize * step)
                    });
                    self.run_tile(iter, across, at, (TILE.min(n - start), rows));
                }
            }
        });
    }

    /// Runs the loop over one tile of `n` elements by `rows` from the addresses `at`.
    fn run_tile(
        &self,
        iter: &Iter,
        across: usize,
        mut at: [*mut u8; MAX_LOOP_OPERANDS],
        (n, rows): (usize, usize),
    ) {
        #[expect(
            clippy::large_stack_arrays,
            reason = "96 KiB, made only for large transposed operands"
        )]
        let mut tiles = [const { MaybeUninit::<TileBuffer>::uninit() }; MAX_LOOP_OPERANDS - 1];
        let (mut steps, mut row_strides) = ([0; MAX_LOOP_OPERANDS], [0; MAX_LOOP_OPERANDS]);
        for i in 0..self.operands {
            let size = self.sizes[i];
            (steps[i], row_strides[i]) = (iter.stride(0, i), iter.stride(across, i));
            if i == 0 || !self.is_transposed(iter, across, i) {
                continue;
            }
            let to: *mut u8 = tiles[i - 1].as_mut_ptr().cast();
            let (from, strides) = (at[i].cast_const(), ((TILE * size) as isize, steps[i]));
            // SAFETY: the tile lies inside the operand; the buffer has room for one.
            unsafe {
                match size {
                    1 => copy_tile::<u8, false>(to, from, strides, (n, rows)),
                    2 => copy_tile::<u16, false>(to, from, strides, (n, rows)),
                    4 => copy_tile::<u32, false>(to, from, strides, (n, rows)),
                    _ => copy_tile::<u64, false>(to, from, strides, (n, rows)),
                }
            }
            (at[i], steps[i], row_strides[i]) = (to, size as isize, strides.0);
        }
        let operands = self.operands;
        self.run_rows(&at[..operands], &steps[..operands], &row_strides[..operands], (n, rows));
    }

    /// Runs the loop over `rows` rows of `n` elements at regular distances.
    fn run_rows(
        &self,
        ptrs: &[*mut u8],
        strides: &[isize],
        row_strides: &[isize],
        (n, rows): (usize, usize),
    ) {
        if rows >= MIN_REPEATED_ROWS && n > 1 && self.repeats(strides, row_strides, n) {
            self.run_repeated(ptrs, strides, row_strides, (n, rows));
        } else {
            self.run_row_by_row(ptrs, strides, row_strides, (n, rows));
        }
    }

    /// Whether short rows follow one another in every operand, except in some whose one row or
    /// element is shared by all rows.
    fn repeats(&self, strides: &[isize], row_strides: &[isize], n: usize) -> bool {
        let mut repeats = false;
        for i in 0..self.operands {
            let size = self.sizes[i] as isize;
            let (is_dense, is_same) = (strides[i] == size, row_strides[i] == 0 && i > 0);
            let fits = if is_dense {
                is_same || row_strides[i] == n as isize * size
            } else {
                is_same && strides[i] == 0
            };
            if !fits || 4 * n * self.sizes[i] > BUFFER {
                return false;
            }
            repeats |= is_dense && is_same;
        }
        repeats
    }

    /// Runs the loop as [`LoopPlan::run_row_by_row`] does, where [`LoopPlan::repeats`]: a row that
    /// all share is laid out several times, so that the others are taken as few long rows.
    #[inline(never)]
    fn run_repeated(
        &self,
        ptrs: &[*mut u8],
        strides: &[isize],
        row_strides: &[isize],
        (n, rows): (usize, usize),
    ) {
        let mut buffers = [const { MaybeUninit::<StagingBuffer>::uninit() }; MAX_LOOP_OPERANDS - 1];
        let many = (self.block() / n).min(rows);
        let (mut at, mut wide) =
            ([std::ptr::null_mut(); MAX_LOOP_OPERANDS], [0; MAX_LOOP_OPERANDS]);
        for i in 0..self.operands {
            (at[i], wide[i]) = (ptrs[i], many as isize * row_strides[i]);
            if i > 0 && row_strides[i] == 0 && strides[i] != 0 {
                at[i] = buffers[i - 1].as_mut_ptr().cast();
                let bytes = n * self.sizes[i];
                // SAFETY: the row lies inside the operand, `many` of them in a buffer.
                unsafe {
                    at[i].copy_from_nonoverlapping(ptrs[i], bytes);
                    repeat(at[i], bytes, many * bytes);
                }
            }
        }
        let (all, rest) = (rows / many, rows % many);
        self.run_row_by_row(&at[..self.operands], strides, &wide[..self.operands], (many * n, all));
        if rest > 0 {
            for (at, wide) in at.iter_mut().zip(wide) {
                *at = at.wrapping_offset(all as isize * wide);
            }
            self.run_row_by_row(&at[..self.operands], strides, row_strides, (rest * n, 1));
        }
    }

    /// Elements of each operand that a buffer holds.
    fn block(&self) -> usize {
        let bytes = |operand: usize| match self.formats[operand] {
            StorageFormat::Native => self.sizes[operand],
            StorageFormat::F16 | StorageFormat::Bf16 | StorageFormat::F8(_) => 4,
            StorageFormat::C32 | StorageFormat::Bc32 => 8,
        };
        BUFFER / (0..self.operands).map(bytes).fold(4, usize::max)
    }

    /// Runs the loop as [`LoopPlan::run_rows`] does, row by row or in blocks of rows.
    fn run_row_by_row(
        &self,
        ptrs: &[*mut u8],
        strides: &[isize],
        row_strides: &[isize],
        (n, rows): (usize, usize),
    ) {
        let mut staged = StagedOperands(0);
        for i in 0..self.operands {
            let is_staged = self.formats[i] != StorageFormat::Native
                || (n > 1 && strides[i] != self.sizes[i] as isize)
                || (i > 0 && ptrs[i] == ptrs[0]);
            staged.0 |= u8::from(is_staged) << i;
        }
        let is_staged = staged != StagedOperands(0);
        if (is_staged || rows > 1)
            && n >= self.run.least
            && let Some(direct) = self.run.direct
            && let Some(single) = self.single(ptrs, strides)
        {
            let (at, row_strides) = (&ptrs[..self.operands], &row_strides[..self.operands]);
            let run = RowBlock { at, row_strides, n, count: rows, single };
            // SAFETY: operands are dense or single as the loop is told, and of the right dtypes.
            return unsafe { direct(&run, self.params) };
        }
        let block = self.block();
        // Short rows are staged together; so are those that lie as needed but would leave registers half empty, if the output
        // is one run.
        let is_dense = row_strides[0] == n as isize * strides[0];
        let is_short = n <= MAX_STAGED_ROW && rows > 1 && is_dense;
        let together = if is_staged || is_short { (block / n.max(1)).clamp(1, rows) } else { 1 };
        let mut at = [std::ptr::null_mut(); MAX_LOOP_OPERANDS];
        for first in (0..rows).step_by(together) {
            for i in 0..self.operands {
                at[i] = ptrs[i].wrapping_offset(first as isize * row_strides[i]);
            }
            if together > 1 {
                let size = (n, together.min(rows - first));
                self.run_staged_rows(at, strides, row_strides, size, staged);
            } else if is_staged {
                self.run_staged(&at, strides, (n, block), staged);
            } else {
                // SAFETY: every operand is dense, of the right dtype, and no input is the output.
                unsafe { (self.run.dense)(&at[..self.operands], n, self.params) };
            }
        }
    }

    /// The number of the one operand that a direct loop gets as a single element (0: none), if such a loop takes the run.
    fn single(&self, ptrs: &[*mut u8], strides: &[isize]) -> Option<usize> {
        let mut single = 0;
        for i in 0..self.operands {
            let is_dense = strides[i] == self.sizes[i] as isize;
            let is_output = ptrs[i] == ptrs[0];
            let may_be_single = i > 0 && strides[i] == 0 && single == 0 && !is_output;
            if self.formats[i] != StorageFormat::Native || !(is_dense || may_be_single) {
                return None;
            }
            if !is_dense {
                single = i;
            } else if is_output && self.sizes[i] != self.sizes[0] {
                return None;
            }
        }
        Some(single)
    }

    /// Runs the loop over one row, in blocks of at most `block` elements.
    #[inline(never)]
    fn run_staged(
        &self,
        ptrs: &[*mut u8; MAX_LOOP_OPERANDS],
        strides: &[isize],
        (n, block): (usize, usize),
        staged: StagedOperands,
    ) {
        let mut buffers = [const { MaybeUninit::<StagingBuffer>::uninit() }; MAX_LOOP_OPERANDS];
        let mut at: [*mut u8; MAX_LOOP_OPERANDS] = [std::ptr::null_mut(); MAX_LOOP_OPERANDS];
        for start in (0..n).step_by(block) {
            let length = block.min(n - start);
            for i in 0..self.operands {
                let from = ptrs[i].wrapping_offset(start as isize * strides[i]);
                if !staged.has(i) {
                    at[i] = from;
                    continue;
                }
                at[i] = buffers[i].as_mut_ptr().cast();
                // A broadcast element fills the buffer once, in the first (longest) block.
                if i > 0 && (start == 0 || strides[i] != 0) {
                    // SAFETY: the run has `length` elements from `from`; the buffer has room for a block.
                    unsafe {
                        gather(self.formats[i], self.sizes[i], from, strides[i], at[i], length);
                    };
                }
            }
            // SAFETY: every address is now dense and of the loop's dtype; buffers are nobody else's.
            unsafe { (self.run.dense)(&at[..self.operands], length, self.params) };
            if staged.has(0) {
                let to = ptrs[0].wrapping_offset(start as isize * strides[0]);
                // SAFETY: the output run has `length` elements from `to`; the loop has filled the buffer.
                unsafe { scatter(self.formats[0], self.sizes[0], at[0], to, strides[0], length) };
            }
        }
    }

    /// Runs the loop over all rows at once, which are short and fit one block together.
    #[inline(never)]
    fn run_staged_rows(
        &self,
        ptrs: [*mut u8; MAX_LOOP_OPERANDS],
        strides: &[isize],
        row_strides: &[isize],
        (n, rows): (usize, usize),
        staged: StagedOperands,
    ) {
        let mut buffers = [const { MaybeUninit::<StagingBuffer>::uninit() }; MAX_LOOP_OPERANDS];
        let mut rows_buffer = MaybeUninit::<StagingBuffer>::uninit();
        let between: *mut u8 = rows_buffer.as_mut_ptr().cast();
        let mut at = ptrs;
        // Rows that follow one another at the elements' distance are one run.
        let is_run = |i: usize| row_strides[i] == n as isize * strides[i];
        for i in 0..self.operands {
            if !staged.has(i) && is_run(i) {
                continue;
            }
            at[i] = buffers[i].as_mut_ptr().cast();
            if i == 0 {
                continue;
            }
            let (format, size) = (self.formats[i], self.sizes[i]);
            // SAFETY: the rows lie inside the operand; the buffers have room for a block, and `between` is filled
            // before it is read.
            unsafe {
                if is_run(i) {
                    gather(format, size, ptrs[i], strides[i], at[i], n * rows);
                    continue;
                }
                let to = if format == StorageFormat::Native { at[i] } else { between };
                if row_strides[i] == 0 {
                    gather(StorageFormat::Native, size, ptrs[i], strides[i], to, n);
                    repeat(to, n * size, rows * n * size);
                } else {
                    let row_strides = [(n * size) as isize, row_strides[i]];
                    copy_rows(
                        (to, ptrs[i]),
                        [size as isize, strides[i]],
                        row_strides,
                        size,
                        (n, rows),
                    );
                }
                if format != StorageFormat::Native {
                    gather(format, size, between, size as isize, at[i], n * rows);
                }
            }
        }
        // SAFETY: every address is now dense and of the loop's dtype; buffers are nobody else's.
        unsafe { (self.run.dense)(&at[..self.operands], n * rows, self.params) };
        if at[0] == ptrs[0] {
            return;
        }
        let (format, size) = (self.formats[0], self.sizes[0]);
        // SAFETY: the rows lie inside the output; the loop has filled the buffer, and `between` is filled before it is read.
        unsafe {
            if is_run(0) {
                return scatter(format, size, at[0], ptrs[0], strides[0], n * rows);
            }
            let mut from = at[0];
            if format != StorageFormat::Native {
                scatter(format, size, at[0], between, size as isize, n * rows);
                from = between;
            }
            let row_strides = [row_strides[0], (n * size) as isize];
            copy_rows((ptrs[0], from), [strides[0], size as isize], row_strides, size, (n, rows));
        }
    }
}

const _: () = assert!(MAX_LOOP_OPERANDS <= MAX_OPERANDS);
