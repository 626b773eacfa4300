//! Products of few rows with columns that lie in one piece each, as a linear layer with a small batch has them (and the
//! transposed case): the large operand is read once, as it lies in memory, and nothing is packed.
//!
//! Invariant: the order of a sum depends on `k` only: [`LANES`] partial sums, folded in halves, then what is left over.

use super::{GemmElement, GemmSizes, Matrix, MulAdd, THREAD_GRAIN, small};
use crate::simd::{SimdLevel, level};
use crate::{Result, memory, parallel};
use std::ops::Range;

/// Partial sums of one output.
const LANES: usize = 8;
/// Columns of a tile.
pub(super) const COLUMNS: usize = 4;
/// Most rows: of more, packing costs less than it saves.
const MOST_ROWS: usize = 48;
/// Fewest columns, and fewest products of a sum.
const LEAST: usize = 16;

/// Whether the rows are few, and what they are multiplied by lies column by column.
pub(super) fn fits<T: GemmElement>(s: GemmSizes, b: Matrix<T>) -> bool {
    T::IS_REAL && s.m <= MOST_ROWS && s.m < s.n && s.n.min(s.k) >= LEAST && b.rs == 1
}

/// `c = beta * c + alpha * a @ b` where it [`fits`].
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn product<T: MulAdd>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    let mut copy = Vec::new();
    let a = if a.cs == 1 {
        a
    } else {
        memory::reserve(&mut copy, s.m * s.k)?;
        // SAFETY: inside the matrix.
        let elements = (0..s.m * s.k).map(|i| unsafe { *a.at(i / s.k, i % s.k).ptr });
        memory::extend(&mut copy, elements)?;
        Matrix::rows(copy.as_ptr(), s.k)
    };
    let blocks = s.n.div_ceil(COLUMNS);
    let run = |range: Range<usize>| {
        let (start, end) = (range.start * COLUMNS, s.n.min(range.end * COLUMNS));
        let part = GemmSizes { n: end - start, ..s };
        columns(part, c.at(0, start), a, b.at(0, start), alpha, beta);
    };
    let grain = (THREAD_GRAIN / (COLUMNS * s.m * s.k)).max(1);
    if threads && blocks > grain {
        parallel::for_range(blocks, grain, &run);
    } else {
        run(0..blocks);
    }
    Ok(())
}

crate::multiversion! {
    /// [`product`] of rows without gaps.
    fn columns<T: MulAdd>(s: GemmSizes, c: Matrix<T>, a: Matrix<T>, b: Matrix<T>, alpha: T, beta: T) {
        // As many as there are registers for. How rows and columns are grouped does not show in the results.
        let rows = match (level(), size_of::<T>()) {
            (SimdLevel::Avx512, _) => 4,
            (_, ..=4) => 2,
            _ => 1,
        };
        let mut j = 0;
        while j < s.n {
            let wide = s.n - j >= COLUMNS;
            let mut i = 0;
            while i < s.m {
                let (c, a, b) = (c.at(i, j), a.at(i, 0), b.at(0, j));
                // SAFETY: `product`'s caller promised live matrices; the tiles stay inside the sizes.
                i += unsafe {
                    match s.m - i {
                        4.. if rows >= 4 && wide => tile::<T, 4, COLUMNS>(s.k, c, a, b, alpha, beta),
                        2.. if rows >= 2 && wide => tile::<T, 2, COLUMNS>(s.k, c, a, b, alpha, beta),
                        _ if wide => tile::<T, 1, COLUMNS>(s.k, c, a, b, alpha, beta),
                        _ => tile::<T, 1, 1>(s.k, c, a, b, alpha, beta),
                    }
                };
            }
            j += if wide { COLUMNS } else { 1 };
        }
    }
}

/// The outputs of `R` rows and `W` columns; returns `R`.
///
/// # Safety
/// As [`super::product`]; `a.cs` and `b.rs` are one.
#[inline(always)]
unsafe fn tile<T: MulAdd, const R: usize, const W: usize>(
    k: usize,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) -> usize {
    let whole = k / LANES * LANES;
    let mut acc = [[[T::default(); LANES]; W]; R];
    // SAFETY: the caller's promise: R rows, W columns and k steps lie inside the matrices.
    unsafe {
        for p in (0..whole).step_by(LANES) {
            for w in 0..W {
                let y = *b.at(p, w).ptr.cast::<[T; LANES]>();
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = *a.at(r, p).ptr.cast::<[T; LANES]>();
                    for l in 0..LANES {
                        acc[w][l] = x[l].mul_add_to(y[l], acc[w][l]);
                    }
                }
            }
        }
        // By way of memory once: sums whose address is taken would be written there in every step.
        let acc = std::hint::black_box(acc);
        for (r, acc) in acc.iter().enumerate() {
            let mut sums = [T::default(); W];
            for (w, sum) in sums.iter_mut().enumerate() {
                *sum = folded(acc[w]);
                for p in whole..k {
                    *sum = (*a.at(r, p).ptr).mul_add_to(*b.at(p, w).ptr, *sum);
                }
            }
            small::finish(c.at(r, 0), &sums, alpha, beta);
        }
    }
    R
}

/// The partial sums added up in halves.
#[inline(always)]
fn folded<T: MulAdd>(mut sums: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            sums[l] = sums[l].plus(sums[l + width]);
        }
        width /= 2;
    }
    sums[0]
}
