//! Large products through the `gemm` crate, split over threads in blocks of rows or columns.
//!
//! Invariant: every block is wider than 64 in one direction, so the crate's depth blocking (and with
//! it each element's summation order) is the same for the whole product and for a block of it.

use super::{GemmSizes, Matrix, MulAdd, THREAD_GRAIN};
use crate::conv::HasMicrokernels;
use crate::elementwise::copy_tile;
use crate::simd::transpose::SQUARE;
use crate::{C64, C128, Result, interrupt, memory, parallel};

/// Types that the `gemm` crate multiplies.
pub(crate) trait GemmElement: MulAdd + HasMicrokernels {
    /// Whether the type has no imaginary part.
    const IS_REAL: bool = false;
}
impl GemmElement for f32 {
    const IS_REAL: bool = true;
}
impl GemmElement for f64 {
    const IS_REAL: bool = true;
}
impl GemmElement for C64 {}
impl GemmElement for C128 {}

/// Rows or columns of one block; a multiple of every register tile of the crate.
const BLOCK: usize = 192;

/// `c = beta * c + alpha * a @ b`.
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn product<T: GemmElement>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    let is_transposed = is_worth_transposing(s, b);
    let width = if is_transposed { strip_width(s) } else { s.n };
    let strips = s.n / width;
    let widest = s.n - (strips - 1) * width;
    // Before anything is written.
    let mut copy = Vec::new();
    if is_transposed {
        memory::reserve(&mut copy, widest * s.k)?;
    }
    let part = GemmSizes { n: widest, ..s };
    memory::probe(task_count(part, threads) * workspace::<T>(part))?;
    for strip in 0..strips {
        let start = strip * width;
        let part = GemmSizes { n: if strip + 1 == strips { widest } else { width }, ..s };
        // SAFETY: the caller's promise; a strip of columns of `b` gives these of `c`.
        unsafe {
            let mut b = b.at(0, start);
            if is_transposed {
                b = transposed(part, b, &mut copy);
            }
            on_threads(part, c.at(0, start), a, b, alpha, beta, threads);
        }
    }
    Ok(())
}

/// The number of parts that a product is split into for threads.
fn task_count(s: GemmSizes, threads: bool) -> usize {
    let long = s.m.max(s.n);
    if !threads || s.work() < 2 * THREAD_GRAIN || long < 2 * BLOCK {
        return 1;
    }
    parallel::num_threads().min(long / BLOCK)
}

/// [`product`] of operands as they lie, for which there is memory.
///
/// # Safety
/// As [`super::product`].
unsafe fn on_threads<T: GemmElement>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) {
    if task_count(s, threads) == 1 {
        // SAFETY: the caller's promise.
        return unsafe { in_blocks(s, c, a, b, alpha, beta, max_call_work::<T>()) };
    }
    let long = s.m.max(s.n);
    let by_rows = s.m >= s.n;
    let blocks = long / BLOCK;
    parallel::for_range(blocks, 1, &|range| {
        let start = range.start * BLOCK;
        let end = if range.end == blocks { long } else { range.end * BLOCK };
        // SAFETY: the blocks are disjoint parts of `c`; else the caller's promise.
        unsafe {
            if by_rows {
                let part = GemmSizes { m: end - start, ..s };
                in_blocks(
                    part,
                    c.at(start, 0),
                    a.at(start, 0),
                    b,
                    alpha,
                    beta,
                    max_call_work::<T>(),
                );
            } else {
                let part = GemmSizes { n: end - start, ..s };
                in_blocks(
                    part,
                    c.at(0, start),
                    a,
                    b.at(0, start),
                    alpha,
                    beta,
                    max_call_work::<T>(),
                );
            }
        }
    });
}

/// Bytes that the crate packs operands into, about: it goes through them in pieces that fit the processor's caches.
fn workspace<T>(s: GemmSizes) -> usize {
    const MOST: usize = 64 << 20;
    let (depth, rows) = (s.k.min(1024), s.m.min(1024));
    (depth * size_of::<T>()).saturating_mul(rows + s.n).min(MOST)
}

/// Elements of the right operand that are transposed at once: of more, whole strips of columns one after the other.
const MAX_TRANSPOSED: usize = 1 << 20;

/// Elements of a column from which those of a row lie so far apart that packing them waits for memory.
const FAR_APART: usize = 256;

/// Columns of a strip, but for the last one, which also has what is left over: enough of them for the invariant.
fn strip_width(s: GemmSizes) -> usize {
    (MAX_TRANSPOSED / s.k / BLOCK * BLOCK).max(BLOCK).min(s.n)
}

/// Whether the right operand, which lies column by column, is better transposed first: the crate packs columns element
/// by element, which takes four times as long as squares that go through registers.
fn is_worth_transposing<T>(s: GemmSizes, b: Matrix<T>) -> bool {
    let is_square = s.k >= SQUARE && s.n >= SQUARE;
    b.rs == 1
        && b.cs != 1
        && is_square
        && (s.k * s.n <= MAX_TRANSPOSED / 4 || s.k >= FAR_APART)
        && s.k * s.n.min(BLOCK) <= 4 * MAX_TRANSPOSED
        && matches!(size_of::<T>(), 4 | 8)
}

/// The matrix row by row, in `copy`.
///
/// # Safety
/// All elements of the matrix are live, and `copy` has room for them.
unsafe fn transposed<T: GemmElement>(s: GemmSizes, b: Matrix<T>, copy: &mut Vec<T>) -> Matrix<T> {
    let size = size_of::<T>() as isize;
    copy.clear();
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
    Matrix::rows(copy.as_ptr(), s.n)
}

/// Most multiply-adds of one call of the crate, which nothing can interrupt: some 50 milliseconds.
fn max_call_work<T>() -> usize {
    (1 << 31) / size_of::<T>()
}

/// Rows and columns of the parts in which a product is computed so that none has more than `most` multiply-adds, where that
/// is possible: one of the two is more than 64, as the invariant wants it, unless the whole product has none.
fn block_sizes(s: GemmSizes, most: usize) -> (usize, usize) {
    let GemmSizes { m, n, k } = s;
    let most = (most / k.max(1)).max(1);
    if m * n <= most {
        return (m, n);
    }
    let rows = if m < 2 * BLOCK { m } else { (most / n / BLOCK * BLOCK).clamp(BLOCK, m) };
    if rows * n <= most {
        return (rows, n);
    }
    let least = match (rows > 64, n <= 64) {
        (true, _) => 16,
        // (A long sum for few results: 16 columns of it take a third of a second on a processor without AVX-512.)
        (false, true) => 8,
        (false, false) => 80,
    };
    (rows, (most / rows / 16 * 16).clamp(least.min(n), n))
}

/// The product part by part, with looks for an interruption in between. What is left over after equal parts belongs to the
/// last of them.
///
/// # Safety
/// As [`super::product`].
unsafe fn in_blocks<T: GemmElement>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    most: usize,
) {
    let (rows, columns) = block_sizes(s, most);
    let (down, across) = (s.m / rows, s.n / columns);
    for at in 0..down * across {
        if at > 0 {
            interrupt::check();
        }
        let (i, j) = (at / across, at % across);
        let size = GemmSizes {
            m: if i + 1 == down { s.m - i * rows } else { rows },
            n: if j + 1 == across { s.n - j * columns } else { columns },
            k: s.k,
        };
        let (row, column) = (i * rows, j * columns);
        // SAFETY: a part of `c`, and the rows and columns that it is made of.
        unsafe { block(size, c.at(row, column), a.at(row, 0), b.at(0, column), alpha, beta) };
    }
}

/// One call of the crate.
unsafe fn block<T: GemmElement>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) {
    let read = beta != T::default();
    // SAFETY: the caller's promise; the crate takes pointers and strides as they are.
    memory::after_probe(|| unsafe {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of fixed pseudo-random matrices in parts of at most `most` multiply-adds.
    fn product_in(s: GemmSizes, most: usize) -> Vec<f64> {
        let number = |i: usize| ((i * 7919 + 13) % 1009) as f64 / 512.0 - 1.0;
        let a: Vec<f64> = (0..s.m * s.k).map(number).collect();
        let b: Vec<f64> = (0..s.k * s.n).map(|i| number(i + 5)).collect();
        let mut c = vec![0.5; s.m * s.n];
        let to = Matrix { ptr: c.as_mut_ptr(), rs: s.n as isize, cs: 1 };
        // SAFETY: three row-major matrices of these sizes.
        unsafe {
            let (a, b) = (Matrix::rows(a.as_ptr(), s.k), Matrix::rows(b.as_ptr(), s.n));
            in_blocks(s, to, a, b, 0.75, 0.25, most);
        }
        c
    }

    #[test]
    fn parts_of_a_product_have_the_bits_of_the_whole() {
        let sizes = [
            (100, 90, 3000),
            (500, 70, 900),
            (70, 500, 900),
            (20, 1000, 800),
            (400, 450, 700),
            (64, 64, 5000),
            (33, 48, 3000),
            (60, 500, 900),
        ];
        for (m, n, k) in sizes {
            let s = GemmSizes { m, n, k };
            let whole = product_in(s, usize::MAX);
            for most in [1, 1 << 20, 1 << 24] {
                assert!(block_sizes(s, most) != (m, n) || most > 1, "{m} {n} {k} is cut");
                assert!(product_in(s, most) == whole, "{m} {n} {k} in parts of {most}");
            }
        }
    }
}
