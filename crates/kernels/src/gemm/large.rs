//! Large products through the `gemm` crate, split over threads in blocks of rows or columns.
//!
//! Invariant: every block is wider than 64 in one direction, so the crate's depth blocking (and with
//! it each element's summation order) is the same for the whole product and for a block of it.

use super::{Matrix, MulAdd, Sizes, THREAD_GRAIN};
use crate::elementwise::copy_tile;
use crate::simd::transpose::SQUARE;
use crate::{C64, C128, Result, memory, parallel};

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
) -> Result<()> {
    let mut copy = Vec::new();
    let b = if is_worth_turning(s, b) {
        // SAFETY: the caller's promise.
        unsafe { turned(s, b, &mut copy)? }
    } else {
        b
    };
    let long = s.m.max(s.n);
    let is_alone =
        !threads || s.work() < 2 * THREAD_GRAIN || long < 2 * BLOCK || parallel::num_threads() == 1;
    // Before anything is written.
    let tasks = if is_alone { 1 } else { parallel::num_threads().min(long / BLOCK) };
    memory::check_room(tasks * workspace::<T>(s))?;
    if is_alone {
        // SAFETY: the caller's promise.
        unsafe { block(s, c, a, b, alpha, beta) };
        return Ok(());
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
    Ok(())
}

/// Bytes that the crate packs operands into, about: it goes through them in pieces that fit the processor's caches.
fn workspace<T>(s: Sizes) -> usize {
    const MOST: usize = 64 << 20;
    let (depth, rows) = (s.k.min(1024), s.m.min(1024));
    (depth * size_of::<T>()).saturating_mul(rows + s.n).min(MOST)
}

/// Most elements of a right operand that is turned over.
const TURNED: usize = 1 << 18;

/// Whether the right operand, which lies column by column, is better turned over first: the crate packs columns element
/// by element, which takes four times as long as squares that go through registers.
fn is_worth_turning<T>(s: Sizes, b: Matrix<T>) -> bool {
    let is_square = s.k >= SQUARE && s.n >= SQUARE;
    b.rs == 1 && b.cs != 1 && is_square && s.k * s.n <= TURNED && matches!(size_of::<T>(), 4 | 8)
}

/// The matrix row by row, in `copy`.
///
/// # Safety
/// All elements of the matrix are live.
unsafe fn turned<T: Blocked>(s: Sizes, b: Matrix<T>, copy: &mut Vec<T>) -> Result<Matrix<T>> {
    let size = size_of::<T>() as isize;
    memory::reserve(copy, s.k * s.n)?;
    // SAFETY: room for all elements; `s.n` columns of `s.k` elements, as the caller says.
    unsafe {
        let strides = (s.n as isize * size, b.cs * size);
        copy_tile::<T, false>(
            copy.as_mut_ptr().cast(),
            b.ptr.cast_const().cast(),
            strides,
            (s.n, s.k),
        );
        copy.set_len(s.k * s.n);
    }
    Ok(Matrix::rows(copy.as_ptr(), s.n))
}

/// One call of the crate.
unsafe fn block<T: Blocked>(s: Sizes, c: Matrix<T>, a: Matrix<T>, b: Matrix<T>, alpha: T, beta: T) {
    let read = beta != T::default();
    // SAFETY: the caller's promise; the crate takes pointers and strides as they are.
    memory::as_asked(|| unsafe {
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
    });
}
