//! Registers of numbers: the innermost loops of convolutions are written once over these, and compiled for each instruction
//! set that has them.

use std::arch::x86_64::*;

/// A register of numbers.
pub(super) trait Vector: Copy {
    type T: Copy;
    const LANES: usize;
    fn splat(value: Self::T) -> Self;
    /// # Safety
    /// `LANES` elements are live at `from`.
    unsafe fn load(from: *const Self::T) -> Self;
    /// The first `n` elements, zeros after them.
    ///
    /// # Safety
    /// `n` elements, at most `LANES`, are live at `from`.
    unsafe fn load_first(from: *const Self::T, n: usize) -> Self;
    /// # Safety
    /// `LANES` elements are writable at `to`.
    unsafe fn store(self, to: *mut Self::T);
    /// `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `self + b`.
    fn plus(self, b: Self) -> Self;
    /// `self - b`.
    fn minus(self, b: Self) -> Self;
    /// `self * b`.
    fn times(self, b: Self) -> Self;
}

/// # Safety
/// As [`Vector::load_first`]; the level has the instruction. So for the others.
#[inline(always)]
unsafe fn first_of_16(from: *const f32, n: usize) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe { _mm512_maskz_loadu_ps(u16::MAX >> (16 - n), from) }
}
#[inline(always)]
unsafe fn first_of_8(from: *const f64, n: usize) -> __m512d {
    // SAFETY: the caller's promise.
    unsafe { _mm512_maskz_loadu_pd(u8::MAX >> (8 - n), from) }
}
/// Ones in front of zeros: a mask of `n` lanes begins `n` elements before the middle.
static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
#[inline(always)]
unsafe fn first_of_8_in_256(from: *const f32, n: usize) -> __m256 {
    // SAFETY: the caller's promise; eight masks from there on.
    unsafe { _mm256_maskload_ps(from, _mm256_loadu_si256(MASKS[8 - n..].as_ptr().cast())) }
}
#[inline(always)]
unsafe fn first_of_4(from: *const f64, n: usize) -> __m256d {
    // SAFETY: as above, two of them for each element.
    unsafe { _mm256_maskload_pd(from, _mm256_loadu_si256(MASKS[8 - 2 * n..].as_ptr().cast())) }
}

macro_rules! vector {
    ($($v:ident, $t:ty, $lanes:literal, $splat:ident, $load:ident, $first:ident, $store:ident, $fma:ident, $add:ident, $sub:ident, $mul:ident;)*) => {$(
        impl Vector for $v {
            type T = $t;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(value: $t) -> Self {
                // SAFETY: only loops of a level that has the instruction are made of this type.
                unsafe { $splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: as above; the elements are live.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn load_first(from: *const $t, n: usize) -> Self {
                // SAFETY: as above; what the mask leaves out is not read.
                unsafe { $first(from, n) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: as above; the elements are writable.
                unsafe { $store(to, self) };
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: as above.
                unsafe { $fma(self, b, c) }
            }
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, b) }
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $sub(self, b) }
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                // SAFETY: as above.
                unsafe { $mul(self, b) }
            }
        }
    )*};
}
vector! {
    __m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, first_of_16, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps;
    __m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, first_of_8, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd;
    __m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, first_of_8_in_256, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps;
    __m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, first_of_4, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd;
}
