//! Squares of elements transposed: the inner step of every copy between rows and columns.
//!
//! Elements of four and eight bytes go through 512-bit registers where there are such, those of one and two bytes through
//! the 128-bit registers of every x86-64 machine; everything else is plain Rust.

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
    match size_of::<T>() {
        4 if super::level() == super::SimdLevel::Avx512 => {
            // SAFETY: the level is present; the rest is the caller's promise.
            return unsafe { avx512::square::<STREAM>(to, to_step, from, from_step) };
        }
        8 if super::level() == super::SimdLevel::Avx512 => {
            // SAFETY: as above.
            return unsafe { avx512::square_of_eight::<STREAM>(to, to_step, from, from_step) };
        }
        // SAFETY: the caller's promise.
        1 if !STREAM => return unsafe { sse2::square_of_one(to, to_step, from, from_step) },
        // SAFETY: the caller's promise.
        2 if !STREAM => return unsafe { sse2::square_of_two(to, to_step, from, from_step) },
        _ => {}
    }
    // SAFETY: the caller's promise.
    unsafe { plain_square::<T>(to, to_step, from, from_step) }
}

/// [`square`] where nothing is known of the machine: once for each type, not in every loop that transposes one.
#[inline(never)]
unsafe fn plain_square<T: Copy>(to: *mut u8, to_step: isize, from: *const u8, from_step: isize) {
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

/// Rows and columns of a small square: eight-byte elements fill a cache line.
pub(crate) const SMALL: usize = 8;

/// As [`square`] for a small square, without streaming.
///
/// # Safety
/// As [`square`].
#[inline(always)]
pub(crate) unsafe fn small_square<T: Copy>(
    to: *mut u8,
    to_step: isize,
    from: *const u8,
    from_step: isize,
) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 8 && super::level() == super::SimdLevel::Avx512 {
        // SAFETY: the level is present; the rest is the caller's promise.
        return unsafe { avx512::small_square::<false>(to, to_step, from, from_step) };
    }
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 {
        // SAFETY: the caller's promise.
        return unsafe { sse2::small_square_of_four(to, to_step, from, from_step) };
    }
    // SAFETY: the caller's promise.
    unsafe { plain_small_square::<T>(to, to_step, from, from_step) }
}

/// [`small_square`] where nothing is known of the machine.
#[inline(never)]
unsafe fn plain_small_square<T: Copy>(
    to: *mut u8,
    to_step: isize,
    from: *const u8,
    from_step: isize,
) {
    for j in 0..SMALL as isize {
        for i in 0..SMALL as isize {
            let item = j * size_of::<T>() as isize;
            let from = from.wrapping_offset(i * from_step + item).cast::<T>();
            let item = i * size_of::<T>() as isize;
            // SAFETY: the caller's promise.
            unsafe { to.wrapping_offset(j * to_step + item).cast::<T>().write(from.read()) };
        }
    }
}

/// Whether there is a quick [`partial_square`] of this type here.
#[inline(always)]
pub(crate) fn has_partial_square<T>() -> bool {
    cfg!(target_arch = "x86_64")
        && size_of::<T>() == 4
        && super::level() == super::SimdLevel::Avx512
}

/// As [`square`] for the first `rows` rows and `columns` columns of one of four-byte elements, neither more than
/// [`SQUARE`].
///
/// # Safety
/// As [`square`] for these elements; [`has_partial_square`] is true.
#[inline(always)]
pub(crate) unsafe fn partial_square(
    to: *mut u8,
    to_step: isize,
    from: *const u8,
    from_step: isize,
    (rows, columns): (usize, usize),
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the level is present; the rest is the caller's promise.
    unsafe {
        avx512::partial_square(to, to_step, from, from_step, (rows, columns));
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!(
        "no machine but x86-64 has parts: {to:p} {to_step} {from:p} {from_step} {rows} {columns}"
    );
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

    /// The columns of sixteen rows of four-byte elements.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed(mut r: [__m512i; SQUARE]) -> [__m512i; SQUARE] {
        // Within 128 bits: 4 x 4 elements of four rows.
        for i in (0..SQUARE).step_by(4) {
            let (a, b) = zip::<4>(r[i], r[i + 1]);
            let (c, d) = zip::<4>(r[i + 2], r[i + 3]);
            (r[i], r[i + 1]) = zip::<8>(a, c);
            (r[i + 2], r[i + 3]) = zip::<8>(b, d);
        }
        // Between them: parts `p` of `r[i]`, `r[i + 4]`, `r[i + 8]`, `r[i + 12]` make column `4 p + i`.
        let mut columns = r;
        for i in 0..4 {
            let (low_even, low_odd) = deal(r[i], r[i + 4]);
            let (high_even, high_odd) = deal(r[i + 8], r[i + 12]);
            (columns[i], columns[8 + i]) = deal(low_even, high_even);
            (columns[4 + i], columns[12 + i]) = deal(low_odd, high_odd);
        }
        columns
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
        for (j, column) in transposed(r).into_iter().enumerate() {
            let at = to.wrapping_offset(j as isize * to_step).cast();
            // SAFETY: a row of the square, aligned if it is streamed.
            unsafe {
                if STREAM {
                    _mm512_stream_si512(at, column);
                } else {
                    _mm512_storeu_si512(at, column);
                }
            };
        }
    }

    /// # Safety
    /// As [`super::partial_square`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn partial_square(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
        (rows, columns): (usize, usize),
    ) {
        let first = |n: usize| (1_u32 << n).wrapping_sub(1) as __mmask16;
        let mut r = [_mm512_setzero_si512(); SQUARE];
        for (i, r) in r.iter_mut().enumerate() {
            if i < rows {
                let at = from.wrapping_offset(i as isize * from_step).cast();
                // SAFETY: a row, of which only the first `columns` elements are read.
                *r = unsafe { _mm512_maskz_loadu_epi32(first(columns), at) };
            }
        }
        for (j, column) in transposed(r).into_iter().enumerate() {
            if j < columns {
                let at = to.wrapping_offset(j as isize * to_step).cast();
                // SAFETY: a column, of which only the first `rows` elements are written.
                unsafe { _mm512_mask_storeu_epi32(at, first(rows), column) };
            }
        }
    }

    /// # Safety
    /// As [`super::square`], for elements of eight bytes.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn square_of_eight<const STREAM: bool>(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        for (down, right) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
            let to = to.wrapping_offset(right * to_step + down * 8);
            let from = from.wrapping_offset(down * from_step + right * 8);
            // SAFETY: a quarter of the square, aligned as the whole is.
            unsafe { small_square::<STREAM>(to, to_step, from, from_step) };
        }
    }

    /// # Safety
    /// As [`super::square`], for eight rows and columns of eight bytes.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn small_square<const STREAM: bool>(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        let mut r = [_mm512_setzero_si512(); 8];
        for (i, r) in r.iter_mut().enumerate() {
            // SAFETY: a row of the square.
            *r = unsafe { _mm512_loadu_si512(from.wrapping_offset(i as isize * from_step).cast()) };
        }
        // Within 128 bits: 2 x 2 elements; the even columns, then the odd ones.
        for i in (0..8).step_by(2) {
            (r[i], r[i + 1]) = zip::<8>(r[i], r[i + 1]);
        }
        for odd in 0..2 {
            let (low_even, low_odd) = deal(r[odd], r[odd + 2]);
            let (high_even, high_odd) = deal(r[odd + 4], r[odd + 6]);
            let (first, third) = deal(low_even, high_even);
            let (second, fourth) = deal(low_odd, high_odd);
            for (partial_square, row) in [first, second, third, fourth].into_iter().enumerate() {
                let at = to.wrapping_offset((2 * partial_square + odd) as isize * to_step).cast();
                // SAFETY: a row of the square, aligned if it is streamed.
                unsafe {
                    if STREAM { _mm512_stream_si512(at, row) } else { _mm512_storeu_si512(at, row) }
                };
            }
        }
    }
}

/// Loops for what every x86-64 machine has.
#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::SQUARE;
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::small_square`], for elements of four bytes.
    #[target_feature(enable = "sse2")]
    pub(super) unsafe fn small_square_of_four(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        // Four squares of 4 x 4, sixteen bytes wide.
        for (down, along) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
            let mut rows = [_mm_setzero_si128(); 4];
            for (i, row) in rows.iter_mut().enumerate() {
                let at = from.wrapping_offset((down + i as isize) * from_step + 4 * along);
                // SAFETY: half a row of the square.
                *row = unsafe { _mm_loadu_si128(at.cast()) };
            }
            let [a, b, c, d] = rows;
            let (low, high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let (low_, high_) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            let columns = [
                _mm_unpacklo_epi64(low, low_),
                _mm_unpackhi_epi64(low, low_),
                _mm_unpacklo_epi64(high, high_),
                _mm_unpackhi_epi64(high, high_),
            ];
            for (j, column) in columns.into_iter().enumerate() {
                let at = to.wrapping_offset((along + j as isize) * to_step + 4 * down);
                // SAFETY: half a row of the square.
                unsafe { _mm_storeu_si128(at.cast(), column) };
            }
        }
    }

    /// # Safety
    /// As [`super::square`], for elements of one byte.
    #[inline(always)]
    pub(super) unsafe fn square_of_one(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        // SAFETY: rows of the square.
        unsafe {
            let mut r = [_mm_setzero_si128(); SQUARE];
            for (i, r) in r.iter_mut().enumerate() {
                *r = _mm_loadu_si128(from.wrapping_offset(i as isize * from_step).cast());
            }
            // A perfect shuffle of all elements moves the lowest bit of the column to the row: four make a transpose.
            for _ in 0..4 {
                let x = r;
                for i in 0..SQUARE / 2 {
                    r[2 * i] = _mm_unpacklo_epi8(x[i], x[i + SQUARE / 2]);
                    r[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + SQUARE / 2]);
                }
            }
            for (j, &r) in r.iter().enumerate() {
                _mm_storeu_si128(to.wrapping_offset(j as isize * to_step).cast(), r);
            }
        }
    }

    /// # Safety
    /// As [`super::square`], for elements of two bytes.
    #[inline(always)]
    pub(super) unsafe fn square_of_two(
        to: *mut u8,
        to_step: isize,
        from: *const u8,
        from_step: isize,
    ) {
        // Four parts of 8 x 8, each by three perfect shuffles.
        for (down, right) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
            // SAFETY: halves of rows of the square.
            unsafe {
                let mut r = [_mm_setzero_si128(); 8];
                for (i, r) in r.iter_mut().enumerate() {
                    let at = from.wrapping_offset((down + i as isize) * from_step + right * 2);
                    *r = _mm_loadu_si128(at.cast());
                }
                for _ in 0..3 {
                    let x = r;
                    for i in 0..4 {
                        r[2 * i] = _mm_unpacklo_epi16(x[i], x[i + 4]);
                        r[2 * i + 1] = _mm_unpackhi_epi16(x[i], x[i + 4]);
                    }
                }
                for (j, &r) in r.iter().enumerate() {
                    let at = to.wrapping_offset((right + j as isize) * to_step + down * 2);
                    _mm_storeu_si128(at.cast(), r);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{SimdLevel, set_level};

    fn check<T: Copy + PartialEq + std::fmt::Debug, const STREAM: bool>(of: impl Fn(usize) -> T) {
        #[repr(align(64))]
        struct Lines<T>([T; SQUARE * SQUARE]);
        let from: Vec<T> = (0..400).map(&of).collect();
        let item = size_of::<T>() as isize;
        for level in SimdLevel::ALL {
            set_level(level);
            let mut to = Lines([of(0); SQUARE * SQUARE]);
            let step = SQUARE as isize * item;
            // SAFETY: rows of 16 elements, 20 apart, inside the vector; an aligned square.
            unsafe {
                let (to, from) = (to.0.as_mut_ptr().cast(), from.as_ptr().cast());
                square::<T, STREAM>(to, step, from, 20 * item);
            }
            fence();
            for (at, &value) in to.0.iter().enumerate() {
                assert_eq!(value, of(at % SQUARE * 20 + at / SQUARE));
            }
        }
    }

    #[test]
    fn partial_squares_are_transposed_and_nothing_else_is_touched() {
        let from: Vec<u32> = (0..400).collect();
        for level in SimdLevel::ALL {
            set_level(level);
            for (rows, columns) in (1..=16).flat_map(|rows| (1..=16).map(move |c| (rows, c))) {
                if !has_partial_square::<u32>() {
                    continue;
                }
                let mut to = [u32::MAX; SQUARE * SQUARE];
                // SAFETY: rows of 16 elements, 20 apart, inside the vector; a square.
                unsafe {
                    let (to, from) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
                    partial_square(to, 64, from, 80, (rows, columns));
                }
                for (at, &value) in to.iter().enumerate() {
                    let (i, j) = (at % SQUARE, at / SQUARE);
                    let is_part = i < rows && j < columns;
                    assert_eq!(value, if is_part { (i * 20 + j) as u32 } else { u32::MAX });
                }
            }
        }
    }

    #[test]
    fn a_small_square_is_transposed_as_well() {
        let from: Vec<u64> = (0..100).collect();
        for level in SimdLevel::ALL {
            set_level(level);
            let mut to = [0_u64; SMALL * SMALL];
            // SAFETY: eight rows of eight elements, ten apart, inside the vector; a square.
            unsafe { small_square::<u64>(to.as_mut_ptr().cast(), 64, from.as_ptr().cast(), 80) };
            for (at, &value) in to.iter().enumerate() {
                assert_eq!(value as usize, at % SMALL * 10 + at / SMALL);
            }
        }
    }

    #[test]
    fn a_square_is_transposed_on_every_level() {
        check::<u8, false>(|i| (i % 251) as u8);
        check::<u16, false>(|i| i as u16);
        check::<u32, false>(|i| i as u32);
        check::<u32, true>(|i| i as u32);
        check::<u64, false>(|i| i as u64);
        check::<u64, true>(|i| i as u64);
        check::<[u64; 2], false>(|i| [i as u64, 7]);
    }
}
