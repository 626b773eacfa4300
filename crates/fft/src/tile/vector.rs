//! The vectors of tiles: of 64 bytes with AVX-512, of 32 with AVX2, in both precisions.

use super::lanes;
use crate::plan::FftReal;
use std::arch::x86_64::*;

/// A register of numbers.
///
/// Its functions are compiled into callers that enable the instruction set of the type.
///
/// # Safety
/// Of every function: the processor has that instruction set. Of those with a pointer, moreover: [`Vector::LANES`] numbers
/// there are live memory, which nobody else uses if it is written.
pub(crate) trait Vector: Copy {
    type Real: FftReal;
    const LANES: usize;
    unsafe fn load(at: *const Self::Real) -> Self;
    unsafe fn store(self, at: *mut Self::Real);
    unsafe fn splat(number: Self::Real) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + sum`, rounded once.
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self;
    /// `self * factor - less`, rounded once.
    unsafe fn mul_sub(self, factor: Self, less: Self) -> Self;
    /// `sum - self * factor`, rounded once.
    unsafe fn neg_mul_add(self, factor: Self, sum: Self) -> Self;
    /// The numbers at even and at odd places of two vectors.
    unsafe fn unzip(first: Self, second: Self) -> (Self, Self);
    /// The inverse of [`Vector::unzip`].
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self);
    /// Transposes a square of as many numbers each way as a tile has lines; steps in numbers.
    unsafe fn turn(to: *mut Self::Real, to_step: isize, from: *const Self::Real, from_step: isize) {
        let n = lanes::<Self::Real>() as isize;
        for j in 0..n {
            for i in 0..n {
                // SAFETY: the caller's promise, of both squares.
                unsafe {
                    let number = *from.wrapping_offset(i * from_step + j);
                    *to.wrapping_offset(j * to_step + i) = number;
                };
            }
        }
    }
}

/// Writes quarters of registers: register `N L + j` of the square is made of the quarters `L` of `u[j]`, `u[N + j]`, `u[2 N + j]` and
/// `u[3 N + j]`.
macro_rules! deal_quarters {
    ($u:ident, $n:literal, $shuffle:ident, $store:ident, $to:ident, $step:ident) => {
        for j in 0..$n {
            let (first, second) = ($u[j], $u[$n + j]);
            let (third, fourth) = ($u[2 * $n + j], $u[3 * $n + j]);
            let (even, odd) = ($shuffle::<0x88>(first, second), $shuffle::<0xDD>(first, second));
            let (even_2, odd_2) =
                ($shuffle::<0x88>(third, fourth), $shuffle::<0xDD>(third, fourth));
            let quarters = [
                $shuffle::<0x88>(even, even_2),
                $shuffle::<0x88>(odd, odd_2),
                $shuffle::<0xDD>(even, even_2),
                $shuffle::<0xDD>(odd, odd_2),
            ];
            for (quarter, register) in quarters.into_iter().enumerate() {
                $store($to.wrapping_offset(($n * quarter + j) as isize * $step), register);
            }
        }
    };
}

macro_rules! vector {
    ($vector:ident, $real:ident, $lanes:literal, $load:ident, $store:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident,
     $fmadd:ident, $fmsub:ident, $fnmadd:ident, $unzip:item, $zip:item $(, $turn:item)?) => {
        impl Vector for $vector {
            type Real = $real;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(at: *const $real) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load(at) }
            }
            #[inline(always)]
            unsafe fn store(self, at: *mut $real) {
                // SAFETY: the caller's promise.
                unsafe { $store(at, self) }
            }
            #[inline(always)]
            unsafe fn splat(number: $real) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $splat(number) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $fmadd(self, factor, sum) }
            }
            #[inline(always)]
            unsafe fn mul_sub(self, factor: Self, less: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $fmsub(self, factor, less) }
            }
            #[inline(always)]
            unsafe fn neg_mul_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $fnmadd(self, factor, sum) }
            }
            #[inline(always)]
            $unzip
            #[inline(always)]
            $zip
            $(
                #[inline(always)]
                $turn
            )?
        }
    };
}

vector!(
    __m512,
    f32,
    16,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_fmsub_ps,
    _mm512_fnmadd_ps,
    unsafe fn unzip(first: Self, second: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (
                _mm512_permutex2var_ps(first, even, second),
                _mm512_permutex2var_ps(first, odd, second),
            )
        }
    },
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let second =
                _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (_mm512_permutex2var_ps(even, first, odd), _mm512_permutex2var_ps(even, second, odd))
        }
    },
    unsafe fn turn(to: *mut f32, to_step: isize, from: *const f32, from_step: isize) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut r = [_mm512_setzero_ps(); 16];
            for (i, row) in r.iter_mut().enumerate() {
                *row = _mm512_loadu_ps(from.wrapping_offset(i as isize * from_step));
            }
            // Pairs of rows, then fours: quarter `L` of `u[4 k + j]` has number `4 L + j` of rows `4 k` to `4 k + 3`.
            let mut u = r;
            for k in (0..16).step_by(4) {
                let low = _mm512_castps_pd(_mm512_unpacklo_ps(r[k], r[k + 1]));
                let high = _mm512_castps_pd(_mm512_unpackhi_ps(r[k], r[k + 1]));
                let low_2 = _mm512_castps_pd(_mm512_unpacklo_ps(r[k + 2], r[k + 3]));
                let high_2 = _mm512_castps_pd(_mm512_unpackhi_ps(r[k + 2], r[k + 3]));
                u[k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low_2));
                u[k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low_2));
                u[k + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high_2));
                u[k + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high_2));
            }
            deal_quarters!(u, 4, _mm512_shuffle_f32x4, _mm512_storeu_ps, to, to_step);
        }
    }
);

vector!(
    __m512d,
    f64,
    8,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_set1_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_fmadd_pd,
    _mm512_fmsub_pd,
    _mm512_fnmadd_pd,
    unsafe fn unzip(first: Self, second: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (
                _mm512_permutex2var_pd(first, even, second),
                _mm512_permutex2var_pd(first, odd, second),
            )
        }
    },
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_pd(even, first, odd), _mm512_permutex2var_pd(even, second, odd))
        }
    },
    unsafe fn turn(to: *mut f64, to_step: isize, from: *const f64, from_step: isize) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut r = [_mm512_setzero_pd(); 8];
            for (i, row) in r.iter_mut().enumerate() {
                *row = _mm512_loadu_pd(from.wrapping_offset(i as isize * from_step));
            }
            // Pairs of rows: quarter `L` of `u[2 k + j]` has number `2 L + j` of rows `2 k` and `2 k + 1`.
            let mut u = r;
            for k in (0..8).step_by(2) {
                u[k] = _mm512_unpacklo_pd(r[k], r[k + 1]);
                u[k + 1] = _mm512_unpackhi_pd(r[k], r[k + 1]);
            }
            deal_quarters!(u, 2, _mm512_shuffle_f64x2, _mm512_storeu_pd, to, to_step);
        }
    }
);

vector!(
    __m256,
    f32,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_fmsub_ps,
    _mm256_fnmadd_ps,
    unsafe fn unzip(first: Self, second: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let even = _mm256_castps_pd(_mm256_shuffle_ps::<0x88>(first, second));
            let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0xDD>(first, second));
            (
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0xD8>(even)),
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0xD8>(odd)),
            )
        }
    },
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let (low, high) = (_mm256_unpacklo_ps(even, odd), _mm256_unpackhi_ps(even, odd));
            (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
        }
    }
);

vector!(
    __m256d,
    f64,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_fmadd_pd,
    _mm256_fmsub_pd,
    _mm256_fnmadd_pd,
    unsafe fn unzip(first: Self, second: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let (even, odd) =
                (_mm256_unpacklo_pd(first, second), _mm256_unpackhi_pd(first, second));
            (_mm256_permute4x64_pd::<0xD8>(even), _mm256_permute4x64_pd::<0xD8>(odd))
        }
    },
    unsafe fn zip(even: Self, odd: Self) -> (Self, Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let (low, high) = (_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd));
            (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
        }
    }
);
