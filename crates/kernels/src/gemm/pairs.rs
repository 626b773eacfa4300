//! Products of `bfloat16` numbers by the instruction that multiplies pairs of them and adds both to a `f32` (AVX512-BF16).
//!
//! Neighbours along the inner dimension lie side by side in 32 bits: the left operand in blocks of `ROWS` rows, the right
//! one in blocks of `COLUMNS` columns, packed by the chunk of `DEPTH` pairs. Each sum runs over the pairs in order. The
//! instruction takes denormal numbers as zero.

use super::half::{Narrow, narrow};
use super::{Matrix, Sizes};
use crate::elementwise::copy_tile;
use crate::{dense::SharedMut, parallel};

/// `sums[r * COLUMNS + j] += sum over k < n of pair(left[k * ROWS + r]) . pair(right[k * COLUMNS + j])` for `j < columns`
/// (or more), or `=` if `is_first`.
pub(super) type Tile = unsafe fn(
    operands: (*const u32, *const u32),
    n: usize,
    columns: usize,
    is_first: bool,
    sums: *mut f32,
);

const ROWS: usize = 8;
const COLUMNS: usize = 48;
/// Pairs per chunk: a block of the right operand stays in the second-level cache.
const DEPTH: usize = 512;
/// Fewest multiply-adds for which packing pays.
const LEAST: usize = 16 * 16 * 16;

/// The loop, if the machine has the instruction and the product is worth it.
pub(super) fn tile(s: Sizes) -> Option<Tile> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::{Level, level};
        let is_worth = s.work() >= LEAST && s.m >= ROWS / 2 && s.n >= 16;
        let is_there = || level() == Level::Avx512 && is_x86_feature_detected!("avx512bf16");
        (is_worth && is_there()).then_some(x86::tile as Tile)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = s;
        None
    }
}

/// `c = beta * c + alpha * a @ b`, each output rounded once.
pub(super) fn product<T: Narrow>(
    s: Sizes,
    (c, a, b): (Matrix<T>, Matrix<T>, Matrix<T>),
    (alpha, beta): (f32, f32),
    threads: bool,
    tile: Tile,
) {
    debug_assert_eq!(size_of::<T>(), 2);
    let pairs = s.k.div_ceil(2);
    let (row_blocks, column_blocks) = (s.m.div_ceil(ROWS), s.n.div_ceil(COLUMNS));
    let mut left = vec![0_u32; row_blocks * pairs * ROWS];
    let shared = SharedMut::new(&mut left);
    let pack_left = |range: std::ops::Range<usize>| {
        for block in range {
            let rows = ROWS.min(s.m - block * ROWS);
            let at = block * pairs * ROWS;
            // SAFETY: one block each.
            let to = unsafe { shared.slice(at..at + pairs * ROWS) };
            pack(to, ROWS, a.at(block * ROWS, 0), rows, 0..s.k);
        }
    };
    let multiply = |range: std::ops::Range<usize>| {
        let mut right = vec![0_u32; DEPTH.min(pairs) * COLUMNS];
        let mut sums = vec![0.0_f32; row_blocks * ROWS * COLUMNS];
        for block in range {
            let columns = COLUMNS.min(s.n - block * COLUMNS);
            for first in (0..pairs).step_by(DEPTH) {
                let n = DEPTH.min(pairs - first);
                let depth = 2 * first..s.k.min(2 * (first + n));
                pack(&mut right, COLUMNS, b.at(0, block * COLUMNS).t(), columns, depth);
                for row in 0..row_blocks {
                    // SAFETY: a block of rows from pair `first` on, `n` rows of the packed right operand, and a tile.
                    unsafe {
                        let left = shared.ptr().add((row * pairs + first) * ROWS);
                        let sums = sums.as_mut_ptr().add(row * ROWS * COLUMNS);
                        tile((left, right.as_ptr()), n, columns, first == 0, sums);
                    }
                }
            }
            let part = Sizes { n: columns, ..s };
            narrow(c.at(0, block * COLUMNS), part, &sums, COLUMNS, alpha, beta);
        }
    };
    if threads && s.work() > super::THREAD_GRAIN {
        parallel::for_range(row_blocks, 8, &pack_left);
        parallel::for_range(column_blocks, 1, &multiply);
    } else {
        pack_left(0..row_blocks);
        multiply(0..column_blocks);
    }
}

/// Packs the columns `depth` of `count` rows of `from` as pairs: `to[k * width + r]`; what lies beyond is zero.
fn pack<T: Narrow>(
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
    if from.cs == 1 && from.rs % 2 == 0 && start.addr().is_multiple_of(4) {
        let (strides, start) = ((width as isize * 4, from.rs * 2), start.cast());
        // SAFETY: `count` rows of as many pairs, and as many runs of `width`.
        unsafe { copy_tile::<u32, false>(to.as_mut_ptr().cast(), start, strides, (count, pairs)) };
    } else {
        for k in 0..pairs {
            let row = &mut to[k * width..][..count];
            let at = depth.start + 2 * k;
            if from.rs == 1 {
                // SAFETY: `count` neighbours in two columns of the matrix.
                let [low, high] = [at, at + 1].map(|k| unsafe {
                    std::slice::from_raw_parts(from.at(0, k).ptr.cast_const().cast::<u16>(), count)
                });
                interleave(row, low, high);
            } else {
                for (r, pair) in row.iter_mut().enumerate() {
                    *pair = bits(r, at) | bits(r, at + 1) << 16;
                }
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

crate::multiversion! {
    fn interleave(to: &mut [u32], low: &[u16], high: &[u16]) {
        for ((to, &low), &high) in to.iter_mut().zip(low).zip(high) {
            *to = u32::from(low) | u32::from(high) << 16;
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
    /// As for [`super::Tile`]: `n` blocks of both operands and a tile of sums are live; the machine has the features.
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
