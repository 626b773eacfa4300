//! Large products through the `gemm` crate, split over threads in blocks of rows or columns.
//!
//! Invariant: every block is wider than 64 in one direction, so the crate's depth blocking (and with
//! it each element's summation order) is the same for the whole product and for a block of it.

use super::{Matrix, MulAdd, Sizes, THREAD_GRAIN};
use crate::{C64, C128, parallel};

/// Types that the `gemm` crate multiplies.
pub(crate) trait Blocked: MulAdd {}
impl Blocked for f32 {}
impl Blocked for f64 {}
impl Blocked for C64 {}
impl Blocked for C128 {}

/// Rows or columns of one block; a multiple of every register tile of the crate.
const BLOCK: usize = 192;

/// `c = beta * c + alpha * a @ b`.
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn product<T: Blocked>(
    s: Sizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) {
    let long = s.m.max(s.n);
    if !threads || s.work() < 2 * THREAD_GRAIN || long < 2 * BLOCK || parallel::num_threads() == 1 {
        // SAFETY: the caller's promise.
        return unsafe { block(s, c, a, b, alpha, beta) };
    }
    let by_rows = s.m >= s.n;
    let blocks = long / BLOCK;
    parallel::for_range(blocks, 1, &|range| {
        let start = range.start * BLOCK;
        let end = if range.end == blocks { long } else { range.end * BLOCK };
        // SAFETY: the blocks are disjoint parts of `c`; else the caller's promise.
        unsafe {
            if by_rows {
                let part = Sizes { m: end - start, ..s };
                block(part, c.at(start, 0), a.at(start, 0), b, alpha, beta);
            } else {
                let part = Sizes { n: end - start, ..s };
                block(part, c.at(0, start), a, b.at(0, start), alpha, beta);
            }
        }
    });
}

/// One call of the crate.
unsafe fn block<T: Blocked>(s: Sizes, c: Matrix<T>, a: Matrix<T>, b: Matrix<T>, alpha: T, beta: T) {
    let read = beta != T::default();
    // SAFETY: the caller's promise; the crate takes pointers and strides as they are.
    unsafe {
        gemm::gemm(
            s.m,
            s.n,
            s.k,
            c.ptr,
            c.cs,
            c.rs,
            read,
            a.ptr.cast_const(),
            a.cs,
            a.rs,
            b.ptr.cast_const(),
            b.cs,
            b.rs,
            beta,
            alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
