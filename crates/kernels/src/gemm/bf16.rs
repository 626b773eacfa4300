//! Products of `bfloat16` numbers by instructions that multiply pairs of them and add both to a `f32`: those of tiles (AMX,
//! [`tile_product`]) or of vectors (AVX512-BF16).
//!
//! By vectors: neighbours along the inner dimension lie side by side in 32 bits: the left operand in blocks of `ROWS` rows, the right
//! one in blocks of `COLUMNS` columns, packed by the chunk of `DEPTH` pairs. Each sum runs over the pairs in order. Both
//! kinds of instruction take denormal numbers as zero.

use super::amx::{self, TileOperands};
use super::half::{HalfFloat, narrow};
use super::tiles::{self, ROWS as TILE_ROWS, SIDE, Sums, TileProduct};
use super::{GemmSizes, Matrix};
use crate::elementwise::copy_tile;
use crate::{Result, dense::SharedMut, parallel, scratch};

/// `sums[r * COLUMNS + j] += sum over k < n of pair(left[k * ROWS + r]) . pair(right[k * COLUMNS + j])` for `j < columns`
/// (or more), or `=` if `is_first`.
type Bf16TileKernel = unsafe fn(
    operands: (*const u32, *const u32),
    n: usize,
    columns: usize,
    is_first: bool,
    sums: *mut f32,
);

/// Rounds `(rows, columns)` sums, so many to a row, to where a matrix begins, whose rows are so many elements apart. Sums
/// are never denormal: the instruction that makes them sees to that.
type RoundKernel =
    unsafe fn(sums: (*const f32, usize), to: (*mut u16, isize), size: (usize, usize));

/// [`RoundKernel`] of a row of blocks of sums.
type RoundBlocksKernel = unsafe fn(sums: &[Sums], to: (*mut u16, isize), size: (usize, usize));

/// The microkernels of a machine that has the instruction.
#[derive(Clone, Copy)]
pub(super) struct Microkernels {
    tile: Bf16TileKernel,
    round: RoundKernel,
}

const ROWS: usize = 8;
const COLUMNS: usize = 48;
/// Pairs per chunk: a block of the right operand stays in the second-level cache.
const DEPTH: usize = 512;
/// Fewest multiply-adds for which packing pays.
const LEAST: usize = 16 * 16 * 16;

/// The microkernels, if the machine has the instruction and the product is worth it.
pub(super) fn microkernels(s: GemmSizes) -> Option<Microkernels> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::{SimdLevel, level};
        let is_worth = s.work() >= LEAST && s.m >= ROWS / 2 && s.n >= 16;
        let is_there = || level() == SimdLevel::Avx512 && is_x86_feature_detected!("avx512bf16");
        (is_worth && is_there()).then_some(Microkernels { tile: x86::tile, round: x86::round })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = s;
        None
    }
}

/// `c = beta * c + alpha * a @ b`, each output rounded once.
pub(super) fn product<T: HalfFloat>(
    s: GemmSizes,
    (c, a, b): (Matrix<T>, Matrix<T>, Matrix<T>),
    (alpha, beta): (f32, f32),
    threads: bool,
    microkernels: Microkernels,
) -> Result<()> {
    debug_assert_eq!(size_of::<T>(), 2);
    let pairs = s.k.div_ceil(2);
    let (row_blocks, column_blocks) = (s.m.div_ceil(ROWS), s.n.div_ceil(COLUMNS));
    // Words of the packed left operand, and of what a thread needs: the packed right one and the sums.
    let all_left = (row_blocks * pairs * ROWS).next_multiple_of(16);
    let all_right = DEPTH.min(pairs) * COLUMNS;
    let own = all_right + row_blocks * ROWS * COLUMNS;
    scratch::with(all_left + own, |words| -> Result<()> {
        let (left, mine) = words.split_at_mut(all_left);
        let left = SharedMut::new(left);
        let pack_left = |range: std::ops::Range<usize>| {
            for block in range.clone().step_by(2) {
                let rows = (2 * ROWS).min(s.m - block * ROWS);
                let blocks = if block + 1 < range.end { rows.div_ceil(ROWS) } else { 1 };
                let at = block * pairs * ROWS;
                // SAFETY: two blocks each, or the last one.
                let to = unsafe { left.slice(at..at + blocks * pairs * ROWS) };
                pack_rows(to, a.at(block * ROWS, 0), (rows, blocks), s.k);
            }
        };
        let multiply = |range: std::ops::Range<usize>, words: &mut [u32]| {
            let (right, sums) = words.split_at_mut(all_right);
            // SAFETY: all bits are numbers of either type, which are of one size.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(sums.as_mut_ptr().cast::<f32>(), sums.len())
            };
            for block in range {
                let columns = COLUMNS.min(s.n - block * COLUMNS);
                let right_block = b.at(0, block * COLUMNS).t();
                // SAFETY: `left` is packed, and there are sums for each of its blocks.
                unsafe {
                    sum_block(microkernels, left.ptr(), (right_block, right), (s, columns), sums);
                };
                let (c, part) = (c.at(0, block * COLUMNS), GemmSizes { n: columns, ..s });
                if alpha == 1.0 && beta == 0.0 && c.cs == 1 {
                    // SAFETY: these rows and columns of `c` are this block's.
                    unsafe {
                        (microkernels.round)(
                            (sums.as_ptr(), COLUMNS),
                            (c.ptr.cast(), c.rs),
                            (s.m, columns),
                        );
                    };
                } else {
                    narrow(c, part, sums, COLUMNS, alpha, beta);
                }
            }
        };
        if threads && s.work() > super::THREAD_GRAIN && parallel::num_threads() > 1 {
            parallel::for_range(row_blocks, 8, &pack_left);
            parallel::try_for_restartable_range(column_blocks, 1, &|range| {
                scratch::with(own, |words| multiply(range, words))
            })
        } else {
            pack_left(0..row_blocks);
            multiply(0..column_blocks, mine);
            Ok(())
        }
    })?
}

/// Whether the machine has tiles and the product is worth them: fewer rows than a tile has go through vectors.
pub(super) fn is_worth_tiles(s: GemmSizes) -> bool {
    s.m >= TILE_ROWS && s.n >= TILE_ROWS && s.work() >= LEAST && tiles::are_available()
}

/// `c = beta * c + alpha * a @ b` by tiles, each output rounded once. `T` is `bf16`.
pub(super) fn tile_product<T: HalfFloat>(
    s: GemmSizes,
    (c, a, b): (Matrix<T>, Matrix<T>, Matrix<T>),
    (alpha, beta): (f32, f32),
    threads: bool,
) -> Result<()> {
    debug_assert!(T::IS_BF16);
    // The right operand is the dearer one to pack if it lies in columns: better the smaller one. Else results are written as they
    // lie, row by row.
    let lie_in_depth = a.cs == 1 && b.rs == 1 && b.cs != 1;
    let lies_in_columns = c.rs == 1 && c.cs != 1;
    let is_transposed = if lie_in_depth { s.m < s.n } else { lies_in_columns };
    if is_transposed {
        return tile_product(s.t(), (c.t(), b.t(), a.t()), (alpha, beta), threads);
    }
    let words = |m: Matrix<T>| Matrix { ptr: m.ptr.cast::<u16>(), rs: m.rs, cs: m.cs };
    let operands = TileOperands { product: TileProduct::Bf16, left: words(a), right: words(b) };
    let round = round_kernel().filter(|_| alpha == 1.0 && beta == 0.0);
    let write = |sums: &[Sums], c: Matrix<T>, (rows, columns): (usize, usize)| match round {
        // SAFETY: these rows and columns of `c` are these blocks'.
        Some(round) if c.cs == 1 => unsafe { round(sums, (c.ptr.cast(), c.rs), (rows, columns)) },
        _ => {
            for (sums, first) in sums.iter().zip((0..columns).step_by(SIDE)) {
                let part = GemmSizes { m: rows, n: SIDE.min(columns - first), ..s };
                narrow(c.at(0, first), part, sums.as_f32(), SIDE, alpha, beta);
            }
        }
    };
    let store = |sums: &[Sums], (row, column): (usize, usize), (rows, columns): (usize, usize)| {
        let c = c.at(row, column);
        if !lies_in_columns {
            return write(sums, c, (rows, columns));
        }
        for (sums, first) in sums.iter().zip((0..columns).step_by(SIDE)) {
            let columns = SIDE.min(columns - first);
            write(std::slice::from_ref(&sums.t()), c.at(0, first).t(), (columns, rows));
        }
    };
    amx::product(s, operands, threads, &store)
}

/// The instruction that rounds, if the machine has it.
fn round_kernel() -> Option<RoundBlocksKernel> {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512bf16").then_some(x86::round_blocks as RoundBlocksKernel)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}

/// Packs one or two blocks of rows of the left operand, `rows` of them together.
fn pack_rows<T: HalfFloat>(
    to: &mut [u32],
    from: Matrix<T>,
    (rows, blocks): (usize, usize),
    k: usize,
) {
    let pairs = k.div_ceil(2);
    if blocks == 2 && rows == 2 * ROWS && k.is_multiple_of(2) && lies_in_pairs(from) {
        return pack_two(to, from, pairs);
    }
    for (half, to) in to.chunks_exact_mut(pairs * ROWS).enumerate() {
        let rows = ROWS.min(rows.saturating_sub(half * ROWS));
        pack(to, ROWS, from.at(half * ROWS, 0), rows, 0..k);
    }
}

/// The sums of all rows with a block of `columns` columns of the right operand, which it packs part by part into `packed`.
///
/// # Safety
/// `left` is the packed left operand of the product, and `sums` has a tile for each block of its rows.
unsafe fn sum_block<T: HalfFloat>(
    microkernels: Microkernels,
    left: *const u32,
    (right, packed): (Matrix<T>, &mut [u32]),
    (s, columns): (GemmSizes, usize),
    sums: &mut [f32],
) {
    let pairs = s.k.div_ceil(2);
    for first in (0..pairs).step_by(DEPTH) {
        let n = DEPTH.min(pairs - first);
        let depth = 2 * first..s.k.min(2 * (first + n));
        pack(packed, COLUMNS, right, columns, depth);
        for row in 0..s.m.div_ceil(ROWS) {
            // SAFETY: a block of rows from pair `first` on, `n` rows of the packed right operand, and a tile.
            unsafe {
                let left = left.add((row * pairs + first) * ROWS);
                let sums = sums.as_mut_ptr().add(row * ROWS * COLUMNS);
                (microkernels.tile)((left, packed.as_ptr()), n, columns, first == 0, sums);
            }
        }
    }
}

/// Whether a row's pairs lie in memory as the instruction takes them.
fn lies_in_pairs<T>(from: Matrix<T>) -> bool {
    from.cs == 1 && from.rs % 2 == 0 && from.ptr.addr().is_multiple_of(4)
}

/// Packs two whole blocks of rows, by squares of as many pairs as rows.
fn pack_two<T: HalfFloat>(to: &mut [u32], from: Matrix<T>, pairs: usize) {
    const WIDTH: usize = 2 * ROWS;
    /// Pairs transposed at a time.
    const RUN: usize = 64;
    let mut transposed = [0_u32; WIDTH * RUN];
    let (first, second) = to.split_at_mut(pairs * ROWS);
    for start in (0..pairs).step_by(RUN) {
        let n = RUN.min(pairs - start);
        let at = from.at(0, 2 * start).ptr.cast_const().cast();
        // SAFETY: `WIDTH` rows of `n` pairs, and as many runs of `WIDTH`.
        unsafe {
            let strides = (WIDTH as isize * 4, from.rs * 2);
            copy_tile::<u32, false>(transposed.as_mut_ptr().cast(), at, strides, (WIDTH, n));
        }
        let targets = first[start * ROWS..].as_chunks_mut::<ROWS>().0.iter_mut();
        let targets = targets.zip(second[start * ROWS..].as_chunks_mut::<ROWS>().0);
        for (row, (first, second)) in
            transposed.as_chunks::<ROWS>().0.as_chunks::<2>().0[..n].iter().zip(targets)
        {
            (*first, *second) = (row[0], row[1]);
        }
    }
}

/// Packs the columns `depth` of `count` rows of `from` as pairs: `to[k * width + r]`; what lies beyond is zero.
fn pack<T: HalfFloat>(
    to: &mut [u32],
    width: usize,
    from: Matrix<T>,
    count: usize,
    depth: std::ops::Range<usize>,
) {
    let pairs = depth.len() / 2;
    let bits = |r: usize, k: usize| {
        // SAFETY: inside the matrix, whose elements have two bytes.
        u32::from(unsafe { *from.at(r, k).ptr.cast::<u16>() })
    };
    if count < width {
        to.fill(0);
    }
    let start = from.at(0, depth.start).ptr.cast_const();
    if lies_in_pairs(from.at(0, depth.start)) {
        let (strides, start) = ((width as isize * 4, from.rs * 2), start.cast());
        // SAFETY: `count` rows of as many pairs, and as many runs of `width`.
        unsafe { copy_tile::<u32, false>(to.as_mut_ptr().cast(), start, strides, (count, pairs)) };
    } else if from.rs == 1 {
        interleave(to, width, (start.cast(), from.cs), (count, pairs));
    } else {
        for k in 0..pairs {
            let row = &mut to[k * width..][..count];
            let at = depth.start + 2 * k;
            for (r, pair) in row.iter_mut().enumerate() {
                *pair = bits(r, at) | bits(r, at + 1) << 16;
            }
        }
    }
    if depth.len() % 2 == 1 {
        let row = &mut to[pairs * width..][..count];
        for (r, pair) in row.iter_mut().enumerate() {
            *pair = bits(r, depth.end - 1);
        }
    }
}

/// Puts the first `N` numbers of two runs together.
#[inline(always)]
fn interleave_run<const N: usize>(to: &mut [u32], low: &[u16], high: &[u16]) {
    let (to, low, high) = (&mut to[..N], &low[..N], &high[..N]);
    for j in 0..N {
        to[j] = u32::from(low[j]) | u32::from(high[j]) << 16;
    }
}

crate::multiversion! {
    /// Puts `2 * pairs` runs of `count` numbers, which begin so many elements apart and must be live, together by two:
    /// `pairs` runs of pairs, `width` apart.
    fn interleave(to: &mut [u32], width: usize, from: (*const u16, isize), size: (usize, usize)) {
        let (count, pairs) = size;
        for (k, to) in to.chunks_exact_mut(width).take(pairs).enumerate() {
            let [low, high] = [2 * k, 2 * k + 1].map(|k| {
                // SAFETY: the runs are live, as the caller promises.
                unsafe { std::slice::from_raw_parts(from.0.offset(k as isize * from.1), count) }
            });
            if count == COLUMNS {
                // A number of turns that is known, as most blocks have it.
                interleave_run::<COLUMNS>(to, low, high);
                continue;
            }
            for ((to, &low), &high) in to.iter_mut().zip(low).zip(high) {
                *to = u32::from(low) | u32::from(high) << 16;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{COLUMNS, ROWS, SIDE, Sums};
    use std::arch::x86_64::*;

    const LANES: usize = 16;
    const VECTORS: usize = COLUMNS / LANES;

    /// # Safety
    /// As for [`super::TileKernel`]: `n` blocks of both operands and a tile of sums are live; the machine has the features.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn tile(
        operands: (*const u32, *const u32),
        n: usize,
        columns: usize,
        is_first: bool,
        sums: *mut f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match columns.div_ceil(LANES) {
                1 => vectors::<1>(operands, n, is_first, sums),
                2 => vectors::<2>(operands, n, is_first, sums),
                _ => vectors::<VECTORS>(operands, n, is_first, sums),
            }
        }
    }

    /// # Safety
    /// As for [`super::RoundKernel`]: the sums are live, the target's rows writable; the machine has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub(super) unsafe fn round(
        (sums, pitch): (*const f32, usize),
        (to, leading_dim): (*mut u16, isize),
        (rows, columns): (usize, usize),
    ) {
        for r in 0..rows {
            for j in (0..columns).step_by(LANES) {
                let mask = u16::MAX >> (LANES - LANES.min(columns - j));
                // SAFETY: the caller's promise; a row of sums has whole vectors, of the target only what the mask says
                // is written. Vectors of 256 bits, whatever they are taken to hold.
                unsafe {
                    let rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(sums.add(r * pitch + j)));
                    let rounded = std::mem::transmute::<__m256bh, __m256i>(rounded);
                    let to = to.offset(r as isize * leading_dim).add(j);
                    _mm256_mask_storeu_epi16(to.cast(), mask, rounded);
                }
            }
        }
    }

    /// Row by row: the blocks' rows are one run of the target.
    ///
    /// # Safety
    /// As for [`super::RoundBlocksKernel`]: the target's rows are writable; the machine has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub(super) unsafe fn round_blocks(
        sums: &[Sums],
        (to, leading_dim): (*mut u16, isize),
        (rows, columns): (usize, usize),
    ) {
        for r in 0..rows {
            for (sums, j) in sums.iter().zip((0..columns).step_by(SIDE)) {
                let mask = u32::MAX >> (SIDE - SIDE.min(columns - j));
                // SAFETY: the caller's promise; a row of a block has two vectors, of the target only what the mask says is
                // written. Vectors of 512 bits, whatever they are taken to hold.
                unsafe {
                    let row = sums.0.as_ptr().cast::<f32>().add(r * SIDE);
                    let (low, high) = (_mm512_loadu_ps(row), _mm512_loadu_ps(row.add(LANES)));
                    let rounded = _mm512_cvtne2ps_pbh(high, low);
                    let rounded = std::mem::transmute::<__m512bh, __m512i>(rounded);
                    let to = to.offset(r as isize * leading_dim).add(j);
                    _mm512_mask_storeu_epi16(to.cast(), mask, rounded);
                }
            }
        }
    }

    /// The first `V` vectors of columns.
    ///
    /// # Safety
    /// As for [`tile`].
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn vectors<const V: usize>(
        (left, right): (*const u32, *const u32),
        n: usize,
        is_first: bool,
        out: *mut f32,
    ) {
        let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
        if !is_first {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's promise, here and below.
                    *sum = unsafe { _mm512_loadu_ps(out.add(r * COLUMNS + j * LANES)) };
                }
            }
        }
        for k in 0..n {
            let mut columns = [_mm512_setzero_si512(); V];
            for (j, column) in columns.iter_mut().enumerate() {
                // SAFETY: as above.
                *column = unsafe { _mm512_loadu_si512(right.add(k * COLUMNS + j * LANES).cast()) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let row = _mm512_set1_epi32(unsafe { *left.add(k * ROWS + r) }.cast_signed());
                for (sum, column) in sums.iter_mut().zip(columns) {
                    // SAFETY: vectors of 512 bits, whatever they are taken to hold.
                    let (row, column) = unsafe {
                        (
                            std::mem::transmute::<__m512i, __m512bh>(row),
                            std::mem::transmute::<__m512i, __m512bh>(column),
                        )
                    };
                    *sum = _mm512_dpbf16_ps(*sum, row, column);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(out.add(r * COLUMNS + j * LANES), sum) };
            }
        }
    }
}
