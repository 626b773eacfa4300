//! The innermost loops of convolutions: tiles of sums in registers.

use super::winograd::Transforms;
use crate::gemm::Matrix;

/// The loops of one shape of tile.
#[derive(Clone, Copy)]
pub(crate) struct Microkernel<T> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// `out[r * columns + j] = sum over k of w[k * rows + r] * x[shifts[k] + j]`.
    pub(super) shifted: unsafe fn(shifts: &[usize], x: *const T, w: *const T, out: *mut T),
    /// `sums[r * columns + j] += sum over k < depth of x[bases[r] + k] * w[k * columns + j]`.
    pub(super) spans:
        unsafe fn(bases: &[usize], x: *const T, w: *const T, depth: usize, sums: *mut T),
    /// `sums[r * columns + j] = sum over k < depth of left[r, k] * right[k, j]`, added to what is there if the last argument
    /// says so. Rows of `right` have no gaps.
    pub(crate) product:
        unsafe fn(left: Matrix<T>, right: Matrix<T>, depth: usize, sums: *mut T, adds: bool),
}

/// Lines of a channel of the output's gradient and of the padded input.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    pub(super) count: usize,
    /// Elements of a line of the gradient, which has no gaps.
    pub(super) width: usize,
    /// Elements from line to line of the input.
    pub(super) pitch: usize,
}

/// The loop of the weight's gradient where channels are few.
pub(crate) struct Correlation<T> {
    /// Channels of the gradient that are taken together.
    pub(super) rows: usize,
    /// Elements of the kernel that are taken together.
    pub(super) shifts: usize,
    /// Partial sums of each pair.
    pub(super) lanes: usize,
    /// `sums[(r * shifts + j) * lanes + p % lanes] += grad[r * pitch + p] * x[shifts[j] + p]` for the positions `p` of all lines.
    pub(super) run: unsafe fn(
        grad: (*const T, usize),
        x: *const T,
        shifts: &[usize],
        lines: Lines,
        sums: *mut T,
    ),
}

/// The tile loops of this machine, none where it has no wide registers.
pub(crate) trait HasMicrokernels: Sized + 'static {
    fn microkernels() -> &'static [Microkernel<Self>] {
        &[]
    }
    /// The loop of the weight's gradient where channels are few.
    fn correlation() -> Option<&'static Correlation<Self>> {
        None
    }
    /// The transforms of Winograd's filtering, which come with the loops.
    fn winograd_transforms() -> Option<&'static Transforms<Self>> {
        None
    }
}
impl HasMicrokernels for crate::C64 {}
impl HasMicrokernels for crate::C128 {}
#[cfg(not(target_arch = "x86_64"))]
impl HasMicrokernels for f32 {}
#[cfg(not(target_arch = "x86_64"))]
impl HasMicrokernels for f64 {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::vector::Vector;
    use super::super::winograd::{Transforms, transforms};
    use super::{Correlation, HasMicrokernels, Lines, Microkernel};
    use crate::gemm::Matrix;
    use crate::simd::{SimdLevel, level};
    use std::arch::x86_64::*;

    /// The kernel for `shifted` of [`Microkernel`], with `M` rows and `N` registers of columns.
    #[inline(always)]
    unsafe fn tile<V: Vector, const M: usize, const N: usize>(
        shifts: &[usize],
        x: *const V::T,
        w: *const V::T,
        out: *mut V::T,
        zero: V::T,
    ) {
        let mut sums = [[V::splat(zero); N]; M];
        for (k, &shift) in shifts.iter().enumerate() {
            let mut right = [V::splat(zero); N];
            for (j, right) in right.iter_mut().enumerate() {
                // SAFETY: the caller's promise, here and below.
                *right = unsafe { V::load(x.add(shift + j * V::LANES)) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let left = V::splat(unsafe { *w.add(k * M + r) });
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.mul_add(right, *sum);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { sum.store(out.add((r * N + j) * V::LANES)) };
            }
        }
    }

    /// The kernel for `spans` of [`Microkernel`], with `M` rows and `N` registers of columns.
    #[inline(always)]
    unsafe fn tile_of_spans<V: Vector, const M: usize, const N: usize>(
        bases: &[usize],
        x: *const V::T,
        w: *const V::T,
        depth: usize,
        out: *mut V::T,
        zero: V::T,
    ) {
        let mut sums = [[V::splat(zero); N]; M];
        let mut rows = [x; M];
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's promise, here and below.
            rows[r] = unsafe { x.add(bases[r]) };
            for (j, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                *sum = unsafe { V::load(out.add((r * N + j) * V::LANES)) };
            }
        }
        for k in 0..depth {
            let mut right = [V::splat(zero); N];
            for (j, right) in right.iter_mut().enumerate() {
                // SAFETY: as above.
                *right = unsafe { V::load(w.add((k * N + j) * V::LANES)) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: as above.
                let left = V::splat(unsafe { *row.add(k) });
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.mul_add(right, *sum);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { sum.store(out.add((r * N + j) * V::LANES)) };
            }
        }
    }

    /// The kernel for `product` of [`Microkernel`], with `M` rows and `N` registers of columns.
    #[inline(always)]
    unsafe fn tile_of_product<V: Vector, const M: usize, const N: usize>(
        left: Matrix<V::T>,
        right: Matrix<V::T>,
        depth: usize,
        out: *mut V::T,
        (adds, zero): (bool, V::T),
    ) {
        let mut sums = [[V::splat(zero); N]; M];
        if adds {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's promise, here and below.
                    *sum = unsafe { V::load(out.add((r * N + j) * V::LANES)) };
                }
            }
        }
        let mut rows = [left.ptr.cast_const(); M];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = row.wrapping_offset(r as isize * left.rs);
        }
        let (mut at, mut w) = (0, right.ptr.cast_const());
        for _ in 0..depth {
            let mut right_row = [V::splat(zero); N];
            for (j, right) in right_row.iter_mut().enumerate() {
                // SAFETY: as above.
                *right = unsafe { V::load(w.add(j * V::LANES)) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: as above.
                let left = V::splat(unsafe { *row.offset(at) });
                for (sum, right) in sums.iter_mut().zip(right_row) {
                    *sum = left.mul_add(right, *sum);
                }
            }
            at += left.cs;
            w = w.wrapping_offset(right.rs);
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { sum.store(out.add((r * N + j) * V::LANES)) };
            }
        }
    }

    /// The kernel for `run` of [`Correlation`], with `M` channels and `N` shifts.
    #[inline(always)]
    unsafe fn correlate<V: Vector, const M: usize, const N: usize>(
        (grad, pitch): (*const V::T, usize),
        x: *const V::T,
        shifts: &[usize],
        lines: Lines,
        (out, zero): (*mut V::T, V::T),
    ) {
        let mut sums = [[V::splat(zero); N]; M];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (j, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise, here and below.
                *sum = unsafe { V::load(out.add((r * N + j) * V::LANES)) };
            }
        }
        let mut starts = [x; N];
        for (start, &shift) in starts.iter_mut().zip(shifts) {
            *start = x.wrapping_add(shift);
        }
        let (whole, rest) = (lines.width / V::LANES * V::LANES, lines.width % V::LANES);
        for line in 0..lines.count {
            let (at, grad) = (line * lines.pitch, grad.wrapping_add(line * lines.width));
            for p in (0..whole).step_by(V::LANES) {
                let mut right = [V::splat(zero); N];
                for (right, start) in right.iter_mut().zip(starts) {
                    // SAFETY: as above.
                    *right = unsafe { V::load(start.wrapping_add(at + p)) };
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: as above.
                    let left = unsafe { V::load(grad.wrapping_add(r * pitch + p)) };
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = left.mul_add(right, *sum);
                    }
                }
            }
            if rest == 0 {
                continue;
            }
            // What lies after the line is not read: it may be infinite, and zero times that is no zero.
            let mut right = [V::splat(zero); N];
            for (right, start) in right.iter_mut().zip(starts) {
                // SAFETY: as above.
                *right = unsafe { V::load_first(start.wrapping_add(at + whole), rest) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let left = unsafe { V::load_first(grad.wrapping_add(r * pitch + whole), rest) };
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.mul_add(right, *sum);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { sum.store(out.add((r * N + j) * V::LANES)) };
            }
        }
    }

    macro_rules! correlations {
        ($($name:ident, $table:ident, $v:ident, $t:ty, $rows:literal x $shifts:literal, $features:literal;)*) => {$(
            /// Computes what [`correlate`] computes, compiled for an instruction set that is present.
            #[target_feature(enable = $features)]
            unsafe fn $name(grad: (*const $t, usize), x: *const $t, shifts: &[usize], lines: Lines, sums: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { correlate::<$v, $rows, $shifts>(grad, x, shifts, lines, (sums, 0.0)) };
            }
            static $table: Correlation<$t> =
                Correlation { rows: $rows, shifts: $shifts, lanes: <$v as Vector>::LANES, run: $name };
        )*};
    }
    correlations! {
        f32_correlate512, F32_CORRELATE512, __m512, f32, 6 x 4, "avx512f";
        f64_correlate512, F64_CORRELATE512, __m512d, f64, 6 x 4, "avx512f";
        f32_correlate256, F32_CORRELATE256, __m256, f32, 3 x 3, "avx2,fma";
        f64_correlate256, F64_CORRELATE256, __m256d, f64, 3 x 3, "avx2,fma";
    }

    macro_rules! microkernels {
        ($($name:ident, $spans:ident, $product:ident, $micro:ident, $v:ident, $t:ty, $rows:literal x $registers:literal, $features:literal;)*) => {$(
            /// Computes what [`tile`] computes, compiled for an instruction set that is present.
            #[target_feature(enable = $features)]
            unsafe fn $name(shifts: &[usize], x: *const $t, w: *const $t, out: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { tile::<$v, $rows, $registers>(shifts, x, w, out, 0.0) };
            }
            /// Computes what [`tile_of_spans`] computes, compiled for an instruction set that is present.
            #[target_feature(enable = $features)]
            unsafe fn $spans(bases: &[usize], x: *const $t, w: *const $t, depth: usize, sums: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { tile_of_spans::<$v, $rows, $registers>(bases, x, w, depth, sums, 0.0) };
            }
            /// Computes what [`tile_of_product`] computes, compiled for an instruction set that is present.
            #[target_feature(enable = $features)]
            unsafe fn $product(left: Matrix<$t>, right: Matrix<$t>, depth: usize, sums: *mut $t, adds: bool) {
                // SAFETY: the caller's promise.
                unsafe { tile_of_product::<$v, $rows, $registers>(left, right, depth, sums, (adds, 0.0)) };
            }
            const $micro: Microkernel<$t> = Microkernel {
                rows: $rows,
                columns: $registers * <$v as Vector>::LANES,
                shifted: $name,
                spans: $spans,
                product: $product,
            };
        )*};
    }
    microkernels! {
        f32_8x3, f32_8x3_of_spans, f32_8x3_of_product, F32_8X3, __m512, f32, 8 x 3, "avx512f";
        f32_6x4, f32_6x4_of_spans, f32_6x4_of_product, F32_6X4, __m512, f32, 6 x 4, "avx512f";
        f64_8x3, f64_8x3_of_spans, f64_8x3_of_product, F64_8X3, __m512d, f64, 8 x 3, "avx512f";
        f64_6x4, f64_6x4_of_spans, f64_6x4_of_product, F64_6X4, __m512d, f64, 6 x 4, "avx512f";
        f32_8x2, f32_8x2_of_spans, f32_8x2_of_product, F32_8X2, __m512, f32, 8 x 2, "avx512f";
        f32_8x1, f32_8x1_of_spans, f32_8x1_of_product, F32_8X1, __m512, f32, 8 x 1, "avx512f";
        f64_8x2, f64_8x2_of_spans, f64_8x2_of_product, F64_8X2, __m512d, f64, 8 x 2, "avx512f";
        f64_8x1, f64_8x1_of_spans, f64_8x1_of_product, F64_8X1, __m512d, f64, 8 x 1, "avx512f";
        f32_6x2, f32_6x2_of_spans, f32_6x2_of_product, F32_6X2, __m256, f32, 6 x 2, "avx2,fma";
        f64_6x2, f64_6x2_of_spans, f64_6x2_of_product, F64_6X2, __m256d, f64, 6 x 2, "avx2,fma";
        f32_4x3, f32_4x3_of_spans, f32_4x3_of_product, F32_4X3, __m256, f32, 4 x 3, "avx2,fma";
        f64_4x3, f64_4x3_of_spans, f64_4x3_of_product, F64_4X3, __m256d, f64, 4 x 3, "avx2,fma";
    }

    impl HasMicrokernels for f32 {
        fn microkernels() -> &'static [Microkernel<f32>] {
            match level() {
                SimdLevel::Avx512 => &[F32_8X1, F32_8X2, F32_6X4, F32_8X3],
                SimdLevel::Avx2 => &[F32_6X2, F32_4X3],
                SimdLevel::Baseline => &[],
            }
        }
        fn correlation() -> Option<&'static Correlation<f32>> {
            match level() {
                SimdLevel::Avx512 => Some(&F32_CORRELATE512),
                SimdLevel::Avx2 => Some(&F32_CORRELATE256),
                SimdLevel::Baseline => None,
            }
        }
        fn winograd_transforms() -> Option<&'static Transforms<f32>> {
            match level() {
                SimdLevel::Avx512 => Some(&transforms::F32_AVX512),
                SimdLevel::Avx2 => Some(&transforms::F32_AVX2),
                SimdLevel::Baseline => None,
            }
        }
    }
    impl HasMicrokernels for f64 {
        fn microkernels() -> &'static [Microkernel<f64>] {
            match level() {
                SimdLevel::Avx512 => &[F64_8X1, F64_8X2, F64_6X4, F64_8X3],
                SimdLevel::Avx2 => &[F64_6X2, F64_4X3],
                SimdLevel::Baseline => &[],
            }
        }
        fn correlation() -> Option<&'static Correlation<f64>> {
            match level() {
                SimdLevel::Avx512 => Some(&F64_CORRELATE512),
                SimdLevel::Avx2 => Some(&F64_CORRELATE256),
                SimdLevel::Baseline => None,
            }
        }
        fn winograd_transforms() -> Option<&'static Transforms<f64>> {
            match level() {
                SimdLevel::Avx512 => Some(&transforms::F64_AVX512),
                SimdLevel::Avx2 => Some(&transforms::F64_AVX2),
                SimdLevel::Baseline => None,
            }
        }
    }
}
