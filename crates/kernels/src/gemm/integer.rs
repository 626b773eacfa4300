//! Integer products, wrapping. Wrapping arithmetic is a ring, so every type sums in itself and any
//! order gives the same result.

use super::{GemmSizes, Matrix, MulAdd, gemv, small};
use crate::Result;
use crate::memory;
use crate::parallel;

/// Rows of the left operand that one task multiplies.
const ROWS: usize = 32;

/// `c = beta * c + alpha * a @ b`.
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
    if s.m == 0 || s.n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if s.k == 0 || alpha == T::default() {
            small::scale(s, c, beta);
            return Ok(());
        }
        if s.n == 1 || s.m == 1 {
            return gemv::product(s, c, a, b, alpha, beta, threads);
        }
    }
    let copy = if b.cs == 1 { Vec::new() } else { packed(b, s)? };
    let b = if b.cs == 1 { b } else { Matrix::rows(copy.as_ptr(), s.n) };
    let run = |range: std::ops::Range<usize>| {
        let start = range.start * ROWS;
        let part = GemmSizes { m: (range.end * ROWS).min(s.m) - start, ..s };
        if size_of::<T>() == 8 {
            strips(part, c.at(start, 0), a.at(start, 0), b, alpha, beta)?;
        } else {
            panel(part, c.at(start, 0), a.at(start, 0), b, alpha, beta);
        }
        Ok(())
    };
    let blocks = s.m.div_ceil(ROWS);
    if threads && s.work() > super::THREAD_GRAIN {
        parallel::try_for_restartable_range(blocks, 1, &run)
    } else {
        run(0..blocks)
    }
}

/// A row-major copy of the right operand.
fn packed<T: MulAdd>(b: Matrix<T>, s: GemmSizes) -> Result<Vec<T>> {
    let at = |i: usize| b.at(i / s.n, i % s.n).ptr;
    // SAFETY: inside `b`.
    memory::collect((0..s.k * s.n).map(|i| unsafe { *at(i) }))
}

/// Strips of columns, each packed, with the sums of a tile in registers.
fn strips<T: MulAdd>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    const COLUMNS: usize = 16;
    let mut strip = memory::filled(T::default(), s.k * COLUMNS)?;
    for j in (0..s.n).step_by(COLUMNS) {
        let width = COLUMNS.min(s.n - j);
        for (p, to) in strip.chunks_exact_mut(width).take(s.k).enumerate() {
            // SAFETY: `width` columns of row `p` lie inside `b`.
            to.copy_from_slice(unsafe { std::slice::from_raw_parts(b.at(p, j).ptr, width) });
        }
        let part = GemmSizes { n: width, ..s };
        small::tiles(part, c.at(0, j), a, Matrix::rows(strip.as_ptr(), width), alpha, beta);
    }
    Ok(())
}

crate::multiversion! {
    /// Four rows at a time over blocks of columns, the sums of a block in the first-level cache.
    fn panel<T: MulAdd>(s: GemmSizes, c: Matrix<T>, a: Matrix<T>, b: Matrix<T>, alpha: T, beta: T) {
        const COLUMNS: usize = 256;
        let mut sums = [[T::default(); COLUMNS]; 4];
        let mut j = 0;
        while j < s.n {
            let width = COLUMNS.min(s.n - j);
            let mut i = 0;
            while i < s.m {
                let rows = 4.min(s.m - i);
                for sum in &mut sums {
                    sum.fill(T::default());
                }
                for p in 0..s.k {
                    // SAFETY: `width` columns of row `p` lie inside `b`.
                    let right = unsafe { std::slice::from_raw_parts(b.at(p, j).ptr, width) };
                    for (r, sum) in sums[..rows].iter_mut().enumerate() {
                        // SAFETY: inside `a`.
                        let left = unsafe { *a.at(i + r, p).ptr };
                        for (sum, &right) in sum.iter_mut().zip(right) {
                            *sum = left.mul_add_to(right, *sum);
                        }
                    }
                }
                for (r, sum) in sums[..rows].iter().enumerate() {
                    // SAFETY: inside `c`.
                    unsafe { small::finish(c.at(i + r, j), &sum[..width], alpha, beta) };
                }
                i += rows;
            }
            j += width;
        }
    }
}
