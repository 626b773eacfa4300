//! Squares of elements turned over their diagonal: the inner step of every copy between rows and columns.
//!
//! Four-byte elements go through sixteen 512-bit registers where there are such; everything else is plain Rust.

use std::mem::MaybeUninit;

/// Rows and columns of a square: four-byte elements fill a cache line.
pub(crate) const SQUARE: usize = 16;

/// `to[j * to_step + i] = from[i * from_step + j]` for a square, steps in bytes; with `STREAM` whole cache lines are
/// written past the caches where the machine can.
///
/// # Safety
/// All elements of both squares are live, those of `to` writable and apart from `from`; with `STREAM` rows of `to` begin
/// at multiples of 64 bytes.
#[inline(always)]
pub(crate) unsafe fn square<T: Copy, const STREAM: bool>(
    to: *mut u8,
    to_step: isize,
    from: *const u8,
    from_step: isize,
) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 && super::level() == super::Level::Avx512 {
        // SAFETY: the level is present; the rest is the caller's promise.
        return unsafe { avx512::square::<STREAM>(to, to_step, from, from_step) };
    }
    let mut lines = [[MaybeUninit::<T>::uninit(); SQUARE]; SQUARE];
    for (i, line) in lines.iter_mut().enumerate() {
        let row = from.wrapping_offset(i as isize * from_step).cast::<T>();
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(row, line.as_mut_ptr().cast(), SQUARE) };
    }
    #[expect(clippy::needless_range_loop, reason = "`j` is a column of `lines`, not a row")]
    for j in 0..SQUARE {
        let column: [MaybeUninit<T>; SQUARE] = std::array::from_fn(|i| lines[i][j]);
        let row = to.wrapping_offset(j as isize * to_step).cast::<T>();
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(column.as_ptr().cast(), row, SQUARE) };
    }
}

/// Makes streamed stores visible to other threads before what follows.
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::SQUARE;
    use std::arch::x86_64::*;

    /// Interleaves halves of `a` and `b` by `SIZE` bytes within each 128 bits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zip<const SIZE: usize>(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        if SIZE == 4 {
            (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
        } else {
            (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
        }
    }

    /// The even and the odd 128-bit parts of `a`, then those of `b`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn deal(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        (_mm512_shuffle_i32x4::<0b10_00_10_00>(a, b), _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b))
    }

    /// # Safety
    /// As [`super::square`], for elements of four bytes.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn square<const STREAM: bool>(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        let mut r = [_mm512_setzero_si512(); SQUARE];
        for (i, r) in r.iter_mut().enumerate() {
            // SAFETY: a row of the square.
            *r = unsafe { _mm512_loadu_si512(from.wrapping_offset(i as isize * from_step).cast()) };
        }
        // Within 128 bits: 4 x 4 elements of four rows.
        for i in (0..SQUARE).step_by(4) {
            let (a, b) = zip::<4>(r[i], r[i + 1]);
            let (c, d) = zip::<4>(r[i + 2], r[i + 3]);
            (r[i], r[i + 1]) = zip::<8>(a, c);
            (r[i + 2], r[i + 3]) = zip::<8>(b, d);
        }
        // Between them: parts `p` of `r[i]`, `r[i + 4]`, `r[i + 8]`, `r[i + 12]` make row `4 p + i`.
        for i in 0..4 {
            let (low_even, low_odd) = deal(r[i], r[i + 4]);
            let (high_even, high_odd) = deal(r[i + 8], r[i + 12]);
            let (first, third) = deal(low_even, high_even);
            let (second, fourth) = deal(low_odd, high_odd);
            for (part, row) in [first, second, third, fourth].into_iter().enumerate() {
                let at = to.wrapping_offset((4 * part + i) as isize * to_step).cast();
                // SAFETY: a row of the square, aligned if it is streamed.
                unsafe {
                    if STREAM { _mm512_stream_si512(at, row) } else { _mm512_storeu_si512(at, row) }
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, set_level};

    #[test]
    fn a_square_is_turned_over_its_diagonal_on_every_level() {
        #[repr(align(64))]
        struct Lines([u32; SQUARE * SQUARE]);
        let from: Vec<u32> = (0..400).collect();
        for level in Level::ALL {
            set_level(level);
            let mut to = Lines([0; SQUARE * SQUARE]);
            // SAFETY: rows of 16 elements, 20 apart, inside the vector; an aligned square.
            unsafe { square::<u32, true>(to.0.as_mut_ptr().cast(), 64, from.as_ptr().cast(), 80) };
            fence();
            for (at, &value) in to.0.iter().enumerate() {
                assert_eq!(value as usize, at % SQUARE * 20 + at / SQUARE);
            }
        }
    }
}
