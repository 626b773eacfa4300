//! Products too small for blocking and packing: a register tile of rows by lanes, straight from the
//! operands. The right operand is copied only when its rows are not contiguous.

use super::{GemmSizes, Matrix, MulAdd};
use crate::elementwise::copy_tile;
use crate::simd::{SimdLevel, level};

/// Whether a product is small enough for these loops to win.
pub(super) fn fits(s: GemmSizes) -> bool {
    s.work() <= LARGEST && s.k * s.n <= LIMIT && s.k * s.m <= LIMIT
}

/// Most multiply-adds; above, packing pays.
const LARGEST: usize = 32 * 32 * 32;
/// Fewest columns of an outer product that is worth a loop per row.
pub(super) const WIDE: usize = 8;
/// Most elements of the right operand, for the copy on the stack.
const LIMIT: usize = 2048;

/// `c = beta * c`, writing zeros without reading if `beta` is zero.
///
/// # Safety
/// All elements of `c` are live.
pub(super) unsafe fn scale<T: MulAdd>(s: GemmSizes, c: Matrix<T>, beta: T) {
    let zero = T::default();
    for i in 0..s.m {
        for j in 0..s.n {
            let at = c.at(i, j).ptr;
            // SAFETY: inside `c`.
            unsafe { *at = if beta == zero { zero } else { (*at).mul_add_to(beta, zero) } };
        }
    }
}

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
) {
    if c.cs != 1 && c.rs == 1 {
        let s = GemmSizes { m: s.n, n: s.m, k: s.k };
        // SAFETY: the transposed product, with the caller's promise. Its `c` has unit columns.
        return unsafe { product(s, c.t(), b.t(), a.t(), alpha, beta) };
    }
    if b.cs == 1 {
        return tiles(s, c, a, b, alpha, beta);
    }
    let mut copy = [std::mem::MaybeUninit::<T>::uninit(); LIMIT];
    if b.rs == 1 {
        let size = size_of::<T>() as isize;
        let strides = (s.n as isize * size, b.cs * size);
        let (to, from) = (copy.as_mut_ptr().cast(), b.ptr.cast_const().cast());
        // SAFETY: columns of `b` lie without gaps inside it; `fits` bounds the copy.
        unsafe { copy_tile::<T, false>(to, from, strides, (s.n, s.k)) };
    } else {
        for p in 0..s.k {
            for j in 0..s.n {
                // SAFETY: inside `b`; `fits` bounds the copy.
                copy[p * s.n + j].write(unsafe { *b.at(p, j).ptr });
            }
        }
    }
    tiles(s, c, a, Matrix::rows(copy.as_ptr().cast::<T>(), s.n), alpha, beta);
}

/// `c = beta * c + alpha * a @ b` of one column and one row: nothing is summed, so memory is written row by row.
///
/// # Safety
/// As [`super::product`]; rows of `b` and `c` have no gaps.
pub(super) unsafe fn outer<T: MulAdd>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) {
    // SAFETY: the caller's promise: a row of `s.n` elements.
    let row = unsafe { std::slice::from_raw_parts(b.ptr, s.n) };
    let work = |range: std::ops::Range<usize>| {
        for i in range {
            // SAFETY: the caller's promise; a row of `c` belongs to one call.
            let (x, out) =
                unsafe { (*a.at(i, 0).ptr, std::slice::from_raw_parts_mut(c.at(i, 0).ptr, s.n)) };
            outer_row(out, x, row, alpha, beta);
        }
    };
    if threads {
        crate::parallel::for_range(s.m, (super::THREAD_GRAIN / s.n).max(1), &work);
    } else {
        work(0..s.m);
    }
}

crate::multiversion! {
    /// A row of [`outer`].
    fn outer_row<T: MulAdd>(out: &mut [T], x: T, row: &[T], alpha: T, beta: T) {
        let zero = T::default();
        if beta != zero {
            for (out, &y) in out.iter_mut().zip(row) {
                let sum = x.mul_add_to(y, zero);
                let scaled = if alpha == T::one() { sum } else { sum.mul_add_to(alpha, zero) };
                *out = beta.mul_add_to(*out, scaled);
            }
        } else if alpha != T::one() {
            for (out, &y) in out.iter_mut().zip(row) {
                *out = x.mul_add_to(y, zero).mul_add_to(alpha, zero);
            }
        } else {
            for (out, &y) in out.iter_mut().zip(row) {
                *out = x.mul_add_to(y, zero);
            }
        }
    }
}

crate::multiversion! {
    /// [`product`] with rows of `b` that have no gaps.
    pub(super) fn tiles<T: MulAdd>(s: GemmSizes, c: Matrix<T>, a: Matrix<T>, b: Matrix<T>, alpha: T, beta: T) {
        let mut j = 0;
        // Too few rows to hide the latency of a multiply-add: two registers of columns do, where registers abound.
        let wide = s.m < 8 && level() == SimdLevel::Avx512 && size_of::<T>() <= 4;
        while j < s.n {
            let left = s.n - j;
            let part = GemmSizes { n: left, ..s };
            let (c, b) = (c.at(0, j), b.at(0, j));
            // SAFETY: `product`'s caller promised live matrices; the tiles stay inside the sizes.
            unsafe {
                j += match left {
                    64.. if wide && s.m >= 4 => column::<T, 64>(part, c, a, b, alpha, beta),
                    32.. if wide => column::<T, 32>(part, c, a, b, alpha, beta),
                    16.. => column::<T, 16>(part, c, a, b, alpha, beta),
                    8.. => column::<T, 8>(part, c, a, b, alpha, beta),
                    4.. => column::<T, 4>(part, c, a, b, alpha, beta),
                    _ => column::<T, 1>(part, c, a, b, alpha, beta),
                };
            }
        }
    }
}

/// All rows of `W` columns; returns `W`.
#[inline(always)]
unsafe fn column<T: MulAdd, const W: usize>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) -> usize {
    let mut i = 0;
    // Eight rows hide the latency of a multiply-add, but only 32 registers hold them. How rows are grouped
    // does not show in the results.
    let eight = level() == SimdLevel::Avx512 && size_of::<T>() <= 8;
    // SAFETY: the caller's promise.
    unsafe {
        while eight && i + 8 <= s.m {
            tile::<T, 8, W>(s.k, c.at(i, 0), a.at(i, 0), b, alpha, beta);
            i += 8;
        }
        while i + 4 <= s.m {
            tile::<T, 4, W>(s.k, c.at(i, 0), a.at(i, 0), b, alpha, beta);
            i += 4;
        }
        while i < s.m {
            tile::<T, 1, W>(s.k, c.at(i, 0), a.at(i, 0), b, alpha, beta);
            i += 1;
        }
    }
    W
}

#[inline(always)]
unsafe fn tile<T: MulAdd, const R: usize, const W: usize>(
    k: usize,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) {
    let mut acc = [[T::default(); W]; R];
    // SAFETY: the caller's promise: R rows, W columns and k steps lie inside the matrices.
    unsafe {
        for p in 0..k {
            let row = *b.ptr.offset(p as isize * b.rs).cast::<[T; W]>();
            for (r, acc) in acc.iter_mut().enumerate() {
                let x = *a.ptr.offset(r as isize * a.rs + p as isize * a.cs);
                for w in 0..W {
                    acc[w] = x.mul_add_to(row[w], acc[w]);
                }
            }
        }
        // By way of memory once: sums whose address is taken would be written there in every step.
        let acc = std::hint::black_box(acc);
        for (r, sums) in acc.iter().enumerate() {
            let row = c.at(r, 0);
            if c.cs == 1 {
                finish_row(row.ptr.cast(), *sums, alpha, beta);
            } else {
                finish(row, sums, alpha, beta);
            }
        }
    }
}

/// `c[w] = beta * c[w] + alpha * sums[w]` of as many elements in a row.
#[inline(always)]
unsafe fn finish_row<T: MulAdd, const W: usize>(row: *mut [T; W], sums: [T; W], alpha: T, beta: T) {
    let zero = T::default();
    let mut out = if alpha == T::one() { sums } else { sums.map(|s| s.mul_add_to(alpha, zero)) };
    // SAFETY: the caller's promise. All are read before the first is written, so that it need not be asked whether
    // one is another.
    unsafe {
        if beta != zero {
            let old = *row;
            for w in 0..W {
                out[w] = beta.mul_add_to(old[w], out[w]);
            }
        }
        *row = out;
    }
}

/// `c[w] = beta * c[w] + alpha * sums[w]`.
#[inline(always)]
pub(super) unsafe fn finish<T: MulAdd>(c: Matrix<T>, sums: &[T], alpha: T, beta: T) {
    let zero = T::default();
    let (scales, reads) = (alpha != T::one(), beta != zero);
    if c.cs == 1 && !scales && !reads {
        // SAFETY: the caller's promise: `sums.len()` elements in a row.
        return unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), c.ptr, sums.len()) };
    }
    for (w, &sum) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let at = c.ptr.offset(w as isize * c.cs);
            let scaled = if scales { sum.mul_add_to(alpha, zero) } else { sum };
            *at = if reads { beta.mul_add_to(*at, scaled) } else { scaled };
        }
    }
}
