//! Products of bytes in 32-bit integers, by instructions that multiply four pairs of bytes and add all to a sum: those of
//! tiles (AMX, [`tile_product`]) or of vectors (AVX512-VNNI); or by plain loops over the operands that are packed for the latter.
//!
//! By vectors: four neighbours along the inner dimension lie side by side in 32 bits: the left operand in blocks of `ROWS` rows, the
//! right one in blocks of `COLUMNS` columns, packed by the chunk of `DEPTH` quads. The instruction wants unsigned bytes on
//! the left: signed ones are packed with 128 added, and 128 times the sum of its column is taken from each result. All of
//! it is arithmetic modulo 2^32, so that results are exact where the product has 32 bits and wrap elsewhere, whatever the
//! order.

use super::amx::{self, TileOperands};
use super::tiles::{self, ROWS as TILE_ROWS, SIDE, Sums, TileProduct};
use super::{GemmSizes, Matrix, check_sizes};
use crate::dense::SharedMut;
use crate::{DType, Error, Result, StridedMut, StridedRef, parallel, plan, scratch};

/// The ways of multiplying bytes.
#[derive(Clone, Copy, Debug)]
enum ByteAlgorithm {
    /// By the processor's tiles.
    Tiles,
    /// In quads, by an instruction of vectors or a plain loop.
    Quads,
}

/// Fewest multiply-adds for which tiles pay.
const LEAST: usize = 16 * 16 * 16;

const ROWS: usize = 8;
const COLUMNS: usize = 48;
/// Quads per chunk: a block of the right operand stays in the second-level cache.
const DEPTH: usize = 512;

/// `sums[r * COLUMNS + j] += sum over k < n of quad(left[k * ROWS + r]) . quad(right[k * COLUMNS + j])`, with unsigned
/// bytes on the left and signed ones on the right.
type ByteTileKernel = unsafe fn(operands: (*const u32, *const u32), n: usize, sums: *mut i32);

/// `c = a @ b` for 2-d views: `a` (m, k) of `i8` or `u8`, `b` (k, n) of `i8`, `c` (m, n) of `i32`, any strides. Sums wrap;
/// with k = 0 they are zero.
///
/// # Errors
/// Sizes that do not fit or other dtypes.
pub fn int_matmul(c: &mut StridedMut<'_>, a: StridedRef<'_>, b: StridedRef<'_>) -> Result<()> {
    let dtypes = (c.dtype(), a.dtype(), b.dtype());
    if !matches!(dtypes, (DType::I32, DType::I8 | DType::U8, DType::I8)) {
        return Err(Error::runtime(format!(
            "a product of bytes is int32 of int8 or uint8 and int8, but got {} of {} and {}",
            dtypes.0.spelled(),
            dtypes.1.spelled(),
            dtypes.2.spelled()
        )));
    }
    let sizes = check_sizes(c, a, b)?;
    if sizes.m == 0 || sizes.n == 0 {
        return Ok(());
    }
    fn matrix<T>(ptr: *mut u8, strides: &[i64]) -> Matrix<T> {
        Matrix { ptr: ptr.cast(), rs: strides[0] as isize, cs: strides[1] as isize }
    }
    let to = matrix::<i32>(c.ptr(), c.strides());
    let left = matrix::<u8>(a.ptr().cast_mut(), a.strides());
    let right = matrix::<u8>(b.ptr().cast_mut(), b.strides());
    product(sizes, to, (left, a.dtype() == DType::I8), right)
}

/// The tile of the machine.
fn tile_kernel() -> ByteTileKernel {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::{SimdLevel, level};
        if level() == SimdLevel::Avx512 && is_x86_feature_detected!("avx512vnni") {
            return x86::tile;
        }
    }
    plain_tile
}

/// `c = a @ b`, with `a` and whether its bytes are signed.
fn product(
    s: GemmSizes,
    c: Matrix<i32>,
    (a, is_signed): (Matrix<u8>, bool),
    b: Matrix<u8>,
) -> Result<()> {
    if is_worth_tiles(s) {
        plan::announce("product of bytes", &ByteAlgorithm::Tiles);
        return tile_product(s, c, (a, is_signed), b);
    }
    plan::announce("product of bytes", &ByteAlgorithm::Quads);
    let tile = tile_kernel();
    let quads = s.k.div_ceil(4);
    let (row_blocks, column_blocks) = (s.m.div_ceil(ROWS), s.n.div_ceil(COLUMNS));
    // Words of the packed left operand, and of what a thread needs: the packed right one and the sums.
    let all_left = (row_blocks * quads * ROWS).next_multiple_of(16);
    let all_right = DEPTH.min(quads) * COLUMNS;
    let own = all_right + row_blocks * ROWS * COLUMNS;
    let flip = if is_signed { 0x8080_8080 } else { 0 };
    scratch::with(all_left + own, |words| -> Result<()> {
        let (left, mine) = words.split_at_mut(all_left);
        let left = SharedMut::new(left);
        let pack_left = |range: std::ops::Range<usize>| {
            for block in range {
                // SAFETY: each block is packed once.
                let to = unsafe { left.slice(block * quads * ROWS..(block + 1) * quads * ROWS) };
                let rows = ROWS.min(s.m - block * ROWS);
                pack(to, ROWS, a.at(block * ROWS, 0), rows, 0..s.k);
                for quad in to.iter_mut() {
                    *quad ^= flip;
                }
            }
        };
        let multiply = |range: std::ops::Range<usize>, words: &mut [u32]| {
            let (right, sums) = words.split_at_mut(all_right);
            // SAFETY: all bits are numbers of either type, which are of one size.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(sums.as_mut_ptr().cast::<i32>(), sums.len())
            };
            for block in range {
                let columns = COLUMNS.min(s.n - block * COLUMNS);
                let from = (b.at(0, block * COLUMNS), columns);
                // SAFETY: `left` is packed, and there are sums for each of its blocks.
                let totals = unsafe { sum_block(tile, left.ptr(), (from, right), s, sums) };
                let shift = totals.map(|total| if is_signed { total.wrapping_mul(128) } else { 0 });
                store(c.at(0, block * COLUMNS), (s.m, columns), sums, &shift);
            }
        };
        if s.work() > super::THREAD_GRAIN && parallel::num_threads() > 1 {
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

/// Whether the machine has tiles and the product is worth them.
fn is_worth_tiles(s: GemmSizes) -> bool {
    s.m >= TILE_ROWS && s.n >= TILE_ROWS && s.work() >= LEAST && tiles::are_available()
}

/// `c = a @ b` by tiles, with `a` and whether its bytes are signed.
fn tile_product(
    s: GemmSizes,
    c: Matrix<i32>,
    (a, is_signed): (Matrix<u8>, bool),
    b: Matrix<u8>,
) -> Result<()> {
    let product = if is_signed { TileProduct::Signed } else { TileProduct::Unsigned };
    let operands = TileOperands { product, left: a, right: b };
    let store = |sums: &[Sums], (row, column): (usize, usize), (rows, columns): (usize, usize)| {
        for i in 0..rows {
            for (sums, first) in sums.iter().zip((0..columns).step_by(SIDE)) {
                let row_sums = &sums.0[i * SIDE..][..SIDE.min(columns - first)];
                let c = c.at(row + i, column + first);
                // SAFETY: inside `c`, and these blocks'.
                unsafe {
                    if c.cs == 1 {
                        c.ptr
                            .cast::<u32>()
                            .copy_from_nonoverlapping(row_sums.as_ptr(), row_sums.len());
                        continue;
                    }
                    for (j, sum) in row_sums.iter().enumerate() {
                        *c.at(0, j).ptr = sum.cast_signed();
                    }
                }
            }
        }
    };
    amx::product(s, operands, true, &store)
}

/// The sums of all rows with a block of columns of the right operand, which it packs part by part into `packed`; returns
/// the sum of each of those columns.
///
/// # Safety
/// `left` is the packed left operand of the product, and `sums` has a tile for each block of its rows.
unsafe fn sum_block(
    tile: ByteTileKernel,
    left: *const u32,
    ((right, columns), packed): ((Matrix<u8>, usize), &mut [u32]),
    s: GemmSizes,
    sums: &mut [i32],
) -> [i32; COLUMNS] {
    let quads = s.k.div_ceil(4);
    let mut totals = [0; COLUMNS];
    sums.fill(0);
    for first in (0..quads).step_by(DEPTH) {
        let n = DEPTH.min(quads - first);
        let depth = 4 * first..s.k.min(4 * (first + n));
        let packed = &mut packed[..n * COLUMNS];
        pack(packed, COLUMNS, right.t(), columns, depth);
        add_columns(&mut totals, packed);
        for row in 0..s.m.div_ceil(ROWS) {
            // SAFETY: a block of rows from quad `first` on, `n` rows of the packed right operand, and a tile.
            unsafe {
                let left = left.add((row * quads + first) * ROWS);
                tile((left, packed.as_ptr()), n, sums.as_mut_ptr().add(row * ROWS * COLUMNS));
            }
        }
    }
    totals
}

/// Packs the columns `depth` of `count` rows of `from` as quads: `to[k * width + r]`; what lies beyond is zero.
fn pack(
    to: &mut [u32],
    width: usize,
    from: Matrix<u8>,
    count: usize,
    depth: std::ops::Range<usize>,
) {
    let whole = depth.len() / 4;
    if count < width {
        to.fill(0);
    }
    let byte = |r: usize, k: usize| {
        // SAFETY: inside the matrix.
        u32::from(unsafe { *from.at(r, k).ptr })
    };
    let start = from.at(0, depth.start).ptr.cast_const();
    if from.cs == 1 {
        for (k, to) in to.chunks_exact_mut(width).take(whole).enumerate() {
            for (r, quad) in to[..count].iter_mut().enumerate() {
                let at = start.wrapping_offset(r as isize * from.rs).wrapping_add(4 * k);
                // SAFETY: four bytes of a row, aligned or not.
                *quad = u32::from_le_bytes(unsafe { at.cast::<[u8; 4]>().read_unaligned() });
            }
        }
    } else if from.rs == 1 {
        interleave(to, width, (start, from.cs), (count, whole));
    } else {
        for (k, to) in to.chunks_exact_mut(width).take(whole).enumerate() {
            let at = depth.start + 4 * k;
            for (r, quad) in to[..count].iter_mut().enumerate() {
                *quad = (0..4).fold(0, |quad, i| quad | byte(r, at + i) << (8 * i));
            }
        }
    }
    let rest = depth.start + 4 * whole..depth.end;
    if !rest.is_empty() {
        for (r, quad) in to[whole * width..][..count].iter_mut().enumerate() {
            let bytes = rest.clone().zip(0_u32..);
            *quad = bytes.fold(0, |quad, (k, i)| quad | byte(r, k) << (8 * i));
        }
    }
}

crate::multiversion! {
    /// Puts `4 * quads` runs of `count` bytes, which begin so many bytes apart and must be live, together by four: `quads`
    /// runs, `width` apart.
    fn interleave(to: &mut [u32], width: usize, from: (*const u8, isize), size: (usize, usize)) {
        let (count, quads) = size;
        for (k, to) in to.chunks_exact_mut(width).take(quads).enumerate() {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| {
                let start = from.0.wrapping_offset((4 * k + i) as isize * from.1);
                // SAFETY: the runs are live, as the caller promises.
                unsafe { std::slice::from_raw_parts(start, count) }
            });
            for (j, to) in to[..count].iter_mut().enumerate() {
                *to = u32::from_le_bytes([a[j], b[j], c[j], d[j]]);
            }
        }
    }
}

/// Byte `i` of a quad as a signed number.
#[inline(always)]
fn signed(quad: u32, i: u32) -> i32 {
    (quad << (24 - 8 * i)).cast_signed() >> 24
}

crate::multiversion! {
    /// Adds the bytes of each column of the packed right operand to its total.
    fn add_columns(totals: &mut [i32; COLUMNS], packed: &[u32]) {
        for row in packed.as_chunks::<COLUMNS>().0 {
            for (total, &quad) in totals.iter_mut().zip(row) {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| signed(quad, i));
                *total = total.wrapping_add(a + b + c + d);
            }
        }
    }
}

/// [`ByteTileKernel`] without the instruction.
///
/// # Safety
/// `n` blocks of both operands and a tile of sums are live.
unsafe fn plain_tile(operands: (*const u32, *const u32), n: usize, sums: *mut i32) {
    // SAFETY: the caller's promise.
    let (left, right, sums) = unsafe {
        (
            std::slice::from_raw_parts(operands.0.cast::<[u32; ROWS]>(), n),
            std::slice::from_raw_parts(operands.1.cast::<[u32; COLUMNS]>(), n),
            std::slice::from_raw_parts_mut(sums.cast::<[i32; COLUMNS]>(), ROWS),
        )
    };
    plain(left, right, sums);
}

crate::multiversion! {
    /// [`plain_tile`], over arrays.
    fn plain(left: &[[u32; ROWS]], right: &[[u32; COLUMNS]], sums: &mut [[i32; COLUMNS]]) {
        for (left, right) in left.iter().zip(right) {
            for (&x, sums) in left.iter().zip(sums.iter_mut()) {
                let [a, b, c, d] = x.to_le_bytes().map(i32::from);
                for (sum, &y) in sums.iter_mut().zip(right) {
                    // Four products of eight by eight bits: no sum of them leaves 32 bits.
                    let first = a * signed(y, 0) + b * signed(y, 1);
                    let second = c * signed(y, 2) + d * signed(y, 3);
                    *sum = sum.wrapping_add(first + second);
                }
            }
        }
    }
}

/// Writes `(rows, columns)` sums, `COLUMNS` to a row, less the shift of each column.
fn store(c: Matrix<i32>, size: (usize, usize), sums: &[i32], shift: &[i32; COLUMNS]) {
    for (i, row) in sums.as_chunks::<COLUMNS>().0[..size.0].iter().enumerate() {
        for (j, (sum, shift)) in row[..size.1].iter().zip(shift).enumerate() {
            // SAFETY: inside `c`, whose columns are this block's.
            unsafe { *c.at(i, j).ptr = sum.wrapping_sub(*shift) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{COLUMNS, ROWS};
    use std::arch::x86_64::*;

    const LANES: usize = 16;
    const VECTORS: usize = COLUMNS / LANES;

    /// # Safety
    /// As for [`super::TileKernel`]: `n` blocks of both operands and a tile of sums are live; the machine has the features.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn tile((left, right): (*const u32, *const u32), n: usize, out: *mut i32) {
        let mut sums = [[_mm512_setzero_si512(); VECTORS]; ROWS];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (j, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise, here and below.
                *sum = unsafe { _mm512_loadu_si512(out.add(r * COLUMNS + j * LANES).cast()) };
            }
        }
        for k in 0..n {
            let mut columns = [_mm512_setzero_si512(); VECTORS];
            for (j, column) in columns.iter_mut().enumerate() {
                // SAFETY: as above.
                *column = unsafe { _mm512_loadu_si512(right.add(k * COLUMNS + j * LANES).cast()) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let row = _mm512_set1_epi32(unsafe { *left.add(k * ROWS + r) }.cast_signed());
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = _mm512_dpbusd_epi32(*sum, row, column);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(out.add(r * COLUMNS + j * LANES).cast(), sum) };
            }
        }
    }
}
