//! Conversions between single and half precision: the processor's, or integer steps that vectorise.

use super::drive::{DenseLoop, drive_raw};
use crate::{DType, Iter, Result};

/// A whole conversion between single and half precision as one loop, without buffers, if it is one.
pub(super) fn cast_half(iter: &Iter) -> Option<Result<()>> {
    let convert: DenseLoop = match (iter.dtype(0), iter.dtype(1)) {
        (DType::F32, DType::BF16) => bf16_to_f32_loop,
        (DType::BF16, DType::F32) => f32_to_bf16_loop,
        (DType::F32, DType::F16) => f16_to_f32_loop,
        (DType::F16, DType::F32) => f32_to_f16_loop,
        _ => return None,
    };
    let sizes = [iter.dtype(0).size(), iter.dtype(1).size()];
    // SAFETY: the loop is for elements of these dtypes and has no parameters.
    Some(unsafe { drive_raw(iter, &sizes, convert, std::ptr::null()) })
}

macro_rules! conversion_loop {
    ($($name:ident, $convert:ident;)*) => {$(
        /// # Safety
        /// As for every [`DenseLoop`]: dense operands, the output apart from the input.
        unsafe fn $name(ptrs: &[*mut u8], n: usize, _: *const u8) {
            // SAFETY: the caller's promise.
            unsafe {
                let from = std::slice::from_raw_parts(ptrs[1].cast(), n);
                $convert(from, std::slice::from_raw_parts_mut(ptrs[0].cast(), n));
            }
        }
    )*};
}
conversion_loop! {
    bf16_to_f32_loop, bf16_to_f32;
    f32_to_bf16_loop, f32_to_bf16;
    f16_to_f32_loop, f16_to_f32;
    f32_to_f16_loop, f32_to_f16;
}

crate::multiversion! {
    pub(crate) fn bf16_to_f32(from: &[u16], to: &mut [f32]) {
        for (to, &bits) in to.iter_mut().zip(from) {
            *to = f32::from_bits(u32::from(bits) << 16);
        }
    }
}

crate::multiversion! {
    pub(crate) fn f32_to_bf16(from: &[f32], to: &mut [u16]) {
        for (to, &x) in to.iter_mut().zip(from) {
            let bits = x.to_bits();
            // To the nearest, ties to even: the carry goes into the exponent as it should.
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
            let nan = (bits >> 16) | 0x40;
            *to = (if x.is_nan() { nan } else { rounded }) as u16;
        }
    }
}

/// Half to single precision; a signalling NaN becomes a quiet one.
pub(crate) fn f16_to_f32(from: &[u16], to: &mut [f32]) {
    let done = instructions::widen(from, to);
    widen_half(&from[done..], &mut to[done..]);
}

/// Single to half precision, to the nearest, ties to even.
pub(crate) fn f32_to_f16(from: &[f32], to: &mut [u16]) {
    let done = instructions::narrow(from, to);
    narrow_half(&from[done..], &mut to[done..]);
}

/// The processor's own conversions, eight at a time; both say how many are done.
#[cfg(target_arch = "x86_64")]
mod instructions {
    use crate::simd::{SimdLevel, level};
    use std::arch::x86_64::*;

    pub(super) fn widen(from: &[u16], to: &mut [f32]) -> usize {
        #[target_feature(enable = "avx,f16c")]
        fn run(from: &[[u16; 8]], to: &mut [[f32; 8]]) {
            for (to, from) in to.iter_mut().zip(from) {
                // SAFETY: eight elements on both sides.
                unsafe {
                    let halves = _mm_loadu_si128(from.as_ptr().cast());
                    _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
                }
            }
        }
        if level() < SimdLevel::Avx2 {
            return 0;
        }
        let (from, to) = (from.as_chunks().0, to.as_chunks_mut().0);
        // SAFETY: the level has these instructions.
        unsafe { run(from, to) };
        8 * from.len().min(to.len())
    }

    pub(super) fn narrow(from: &[f32], to: &mut [u16]) -> usize {
        #[target_feature(enable = "avx,f16c")]
        fn run(from: &[[f32; 8]], to: &mut [[u16; 8]]) {
            for (to, from) in to.iter_mut().zip(from) {
                // SAFETY: eight elements on both sides.
                unsafe {
                    let singles = _mm256_loadu_ps(from.as_ptr());
                    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(singles);
                    _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
                }
            }
        }
        if level() < SimdLevel::Avx2 {
            return 0;
        }
        let (from, to) = (from.as_chunks().0, to.as_chunks_mut().0);
        // SAFETY: the level has these instructions.
        unsafe { run(from, to) };
        8 * from.len().min(to.len())
    }
}

/// Loops over the processor's own conversions: machines other than x86 have none that this crate
/// knows.
#[cfg(not(target_arch = "x86_64"))]
mod instructions {
    pub(super) fn widen(_: &[u16], _: &mut [f32]) -> usize {
        0
    }
    pub(super) fn narrow(_: &[f32], _: &mut [u16]) -> usize {
        0
    }
}

crate::multiversion! {
    fn widen_half(from: &[u16], to: &mut [f32]) {
        for (to, &bits) in to.iter_mut().zip(from) {
            let size = u32::from(bits & 0x7fff) << 13;
            // Read as a single the exponent is too low by 112; the product is exact, also for denormals.
            let finite = (f32::from_bits(size) * f32::from_bits(239 << 23)).to_bits();
            let magnitude = if size >= 0x7c00 << 13 { size | 0x7f80_0000 } else { finite };
            // A signalling NaN becomes a quiet one, as the processor's conversion does.
            let quiet = if size > 0x7c00 << 13 { magnitude | 0x40_0000 } else { magnitude };
            *to = f32::from_bits(quiet | (u32::from(bits & 0x8000) << 16));
        }
    }
}

crate::multiversion! {
    fn narrow_half(from: &[f32], to: &mut [u16]) {
        for (to, &x) in to.iter_mut().zip(from) {
            let size = x.to_bits() & 0x7fff_ffff;
            // Rebias the exponent by -112 and round to the nearest, ties to even.
            let normal = size.wrapping_add(0xc800_0fff + ((size >> 13) & 1)) >> 13;
            // Below 2^-14 adding 1/2 lines the mantissa up with the denormals, and rounds it.
            let denormal = (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
            let finite = if size < 113 << 23 { denormal } else { normal };
            let limited = if size >= 0x477f_f000 { 0x7c00 } else { finite };
            let nan = 0x7e00 | ((size >> 13) & 0x1ff);
            let magnitude = if size > 0x7f80_0000 { nan } else { limited };
            *to = (magnitude | (x.to_bits() >> 16) & 0x8000) as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bf16, f16};

    #[test]
    fn half_conversions_agree_with_the_half_crate_bit_for_bit() {
        for level in crate::simd::SimdLevel::ALL {
            crate::simd::set_level(level);
            check_conversions();
        }
    }

    fn check_conversions() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let mut wide = vec![0f32; all.len()];
        f16_to_f32(&all, &mut wide);
        for (&bits, x) in all.iter().zip(&wide) {
            assert_eq!(x.to_bits(), f16::from_bits(bits).to_f32().to_bits(), "{bits:#x}");
        }
        bf16_to_f32(&all, &mut wide);
        for (&bits, x) in all.iter().zip(&wide) {
            let want = bf16::from_bits(bits).to_f32();
            assert!(x.to_bits() == want.to_bits() || (x.is_nan() && want.is_nan()), "{bits:#x}");
        }
        let singles: Vec<f32> = (0..=u32::MAX).step_by(4093).map(f32::from_bits).collect();
        let mut narrow = vec![0u16; singles.len()];
        f32_to_f16(&singles, &mut narrow);
        for (x, &bits) in singles.iter().zip(&narrow) {
            let want = f16::from_f32(*x);
            assert!(
                bits == want.to_bits() || (x.is_nan() && f16::from_bits(bits).is_nan()),
                "{x:e}"
            );
        }
        f32_to_bf16(&singles, &mut narrow);
        for (x, &bits) in singles.iter().zip(&narrow) {
            let want = bf16::from_f32(*x);
            assert!(
                bits == want.to_bits() || (x.is_nan() && bf16::from_bits(bits).is_nan()),
                "{x:e}"
            );
        }
    }
}
