//! The transforms of F(2x2, 3x3), each over as many channels as a register holds.
//!
//! A row of each transform is a sum or difference of two or three of its elements, scaled by one half where it is the
//! weights': the matrices stand beside the functions. Both dimensions of a tile get the same one.

use super::super::vector::Vector;
use super::Transforms;
use std::arch::x86_64::*;
use std::ops::Range;

/// `B^T d`: `[d0 - d2, d1 + d2, d2 - d1, d1 - d3]`.
#[inline(always)]
fn input_line<V: Vector>(d: [V; 4]) -> [V; 4] {
    [d[0].minus(d[2]), d[1].plus(d[2]), d[2].minus(d[1]), d[1].minus(d[3])]
}

/// `A^T m`: `[m0 + m1 + m2, m1 - m2 - m3]`.
#[inline(always)]
fn output_line<V: Vector>(m: [V; 4]) -> [V; 2] {
    [m[0].plus(m[1].plus(m[2])), m[1].minus(m[2]).minus(m[3])]
}

/// `A y`: `[y0, y0 + y1, y0 - y1, -y1]`.
#[inline(always)]
fn gradient_line<V: Vector>(y: [V; 2], zero: V) -> [V; 4] {
    [y[0], y[0].plus(y[1]), y[0].minus(y[1]), zero.minus(y[1])]
}

/// `G g`: `[g0, (g0 + g2 + g1) / 2, (g0 + g2 - g1) / 2, g2]`.
#[inline(always)]
fn weight_line<V: Vector>(g: [V; 3], half: V) -> [V; 4] {
    let outer = g[0].plus(g[2]);
    [g[0], outer.plus(g[1]).times(half), outer.minus(g[1]).times(half), g[2]]
}

/// `G^T m`: `[m0 + (m1 + m2) / 2, (m1 - m2) / 2, (m1 + m2) / 2 + m3]`.
#[inline(always)]
fn weight_gradient_line<V: Vector>(m: [V; 4], half: V) -> [V; 3] {
    let both = m[1].plus(m[2]).times(half);
    [m[0].plus(both), m[1].minus(m[2]).times(half), both.plus(m[3])]
}

#[inline(always)]
fn transposed<V: Copy, const R: usize, const C: usize>(lines: [[V; C]; R]) -> [[V; R]; C] {
    std::array::from_fn(|i| std::array::from_fn(|j| lines[j][i]))
}

/// The kernel for `input` of [`Transforms`].
#[inline(always)]
unsafe fn input<V: Vector>(
    pixels: &[*const V::T; 16],
    count: usize,
    to: *mut V::T,
    step: usize,
    rows: Range<usize>,
) {
    for c in (0..count).step_by(V::LANES) {
        // SAFETY: the caller's promise.
        let load = |i: usize| unsafe { V::load(pixels[i].add(c)) };
        // SAFETY: as above.
        let store = |at: usize, value: V| unsafe { value.store(to.add(at * step + c)) };
        if rows.len() == 4 {
            let d: [V; 16] = std::array::from_fn(load);
            let columns: [[V; 4]; 4] =
                std::array::from_fn(|j| input_line([d[j], d[4 + j], d[8 + j], d[12 + j]]));
            for (i, line) in transposed(columns).into_iter().enumerate() {
                for (j, value) in input_line(line).into_iter().enumerate() {
                    store(i * 4 + j, value);
                }
            }
            continue;
        }
        for (at, row) in rows.clone().enumerate() {
            let line = input_line(std::array::from_fn(|j| match row {
                0 => load(j).minus(load(8 + j)),
                1 => load(4 + j).plus(load(8 + j)),
                2 => load(8 + j).minus(load(4 + j)),
                _ => load(4 + j).minus(load(12 + j)),
            }));
            for (j, value) in line.into_iter().enumerate() {
                store(at * 4 + j, value);
            }
        }
    }
}

/// The kernel for `output` of [`Transforms`].
#[inline(always)]
unsafe fn output<V: Vector>(
    products: *const V::T,
    (step, count): (usize, usize),
    bias: *const V::T,
    to: &[*mut V::T; 4],
    (finite, zero): (*mut V::T, V::T),
) {
    let zero = V::splat(zero);
    // SAFETY: the caller's promise, here and below.
    let mut check = unsafe { V::load(finite) };
    for c in (0..count).step_by(V::LANES) {
        // SAFETY: as above.
        let load = |i: usize| unsafe { V::load(products.add(i * step + c)) };
        let columns: [[V; 2]; 4] =
            std::array::from_fn(|j| output_line([load(j), load(4 + j), load(8 + j), load(12 + j)]));
        // SAFETY: as above.
        let bias = unsafe { V::load(bias.add(c)) };
        for i in 0..2 {
            let line = output_line(std::array::from_fn(|j| columns[j][i]));
            for (j, value) in line.into_iter().enumerate() {
                let value = value.plus(bias);
                check = value.mul_add(zero, check);
                // SAFETY: as above.
                unsafe { value.store(to[i * 2 + j].add(c)) };
            }
        }
    }
    // SAFETY: as above.
    unsafe { check.store(finite) };
}

/// The kernel for `gradient` of [`Transforms`].
#[inline(always)]
unsafe fn gradient<V: Vector>(
    pixels: &[*const V::T; 4],
    count: usize,
    to: *mut V::T,
    step: usize,
    (rows, zero): (Range<usize>, V::T),
) {
    let zero = V::splat(zero);
    for c in (0..count).step_by(V::LANES) {
        // SAFETY: the caller's promise, here and below.
        let y: [V; 4] = std::array::from_fn(|i| unsafe { V::load(pixels[i].add(c)) });
        let columns: [[V; 4]; 2] = std::array::from_fn(|j| gradient_line([y[j], y[2 + j]], zero));
        for (at, row) in rows.clone().enumerate() {
            let line = gradient_line([columns[0][row], columns[1][row]], zero);
            for (j, value) in line.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { value.store(to.add((at * 4 + j) * step + c)) };
            }
        }
    }
}

/// The kernel for `weight` of [`Transforms`].
#[inline(always)]
unsafe fn weight<V: Vector>(
    kernel: &[*const V::T; 9],
    count: usize,
    to: *mut V::T,
    step: usize,
    half: V::T,
) {
    let half = V::splat(half);
    for c in (0..count).step_by(V::LANES) {
        // SAFETY: the caller's promise.
        let g: [V; 9] = std::array::from_fn(|i| unsafe { V::load(kernel[i].add(c)) });
        let columns: [[V; 4]; 3] =
            std::array::from_fn(|j| weight_line([g[j], g[3 + j], g[6 + j]], half));
        for (i, line) in transposed(columns).into_iter().enumerate() {
            for (j, value) in weight_line(line, half).into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { value.store(to.add((i * 4 + j) * step + c)) };
            }
        }
    }
}

/// The kernel for `weight_gradient` of [`Transforms`].
#[inline(always)]
unsafe fn weight_gradient<V: Vector>(
    products: *const V::T,
    (step, count): (usize, usize),
    to: &[*mut V::T; 9],
    finite: *mut V::T,
    (half, zero): (V::T, V::T),
) {
    let (half, zero) = (V::splat(half), V::splat(zero));
    // SAFETY: the caller's promise, here and below.
    let mut check = unsafe { V::load(finite) };
    for c in (0..count).step_by(V::LANES) {
        // SAFETY: as above.
        let load = |i: usize| unsafe { V::load(products.add(i * step + c)) };
        let columns: [[V; 3]; 4] = std::array::from_fn(|j| {
            weight_gradient_line([load(j), load(4 + j), load(8 + j), load(12 + j)], half)
        });
        for i in 0..3 {
            let line = weight_gradient_line(std::array::from_fn(|j| columns[j][i]), half);
            for (j, value) in line.into_iter().enumerate() {
                check = value.mul_add(zero, check);
                // SAFETY: as above.
                unsafe { value.store(to[i * 3 + j].add(c)) };
            }
        }
    }
    // SAFETY: as above.
    unsafe { check.store(finite) };
}

macro_rules! transforms {
    ($($module:ident, $name:ident, $v:ident, $t:ty, $features:literal;)*) => {$(
        /// The transforms compiled for one instruction set.
        mod $module {
            use super::*;
            #[target_feature(enable = $features)]
            pub(super) unsafe fn input(pixels: &[*const $t; 16], count: usize, to: *mut $t, step: usize, rows: Range<usize>) {
                // SAFETY: the caller's promise.
                unsafe { super::input::<$v>(pixels, count, to, step, rows) };
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn output(products: *const $t, sizes: (usize, usize), bias: *const $t, to: &[*mut $t; 4], finite: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { super::output::<$v>(products, sizes, bias, to, (finite, 0.0)) };
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn gradient(pixels: &[*const $t; 4], count: usize, to: *mut $t, step: usize, rows: Range<usize>) {
                // SAFETY: the caller's promise.
                unsafe { super::gradient::<$v>(pixels, count, to, step, (rows, 0.0)) };
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn weight(kernel: &[*const $t; 9], count: usize, to: *mut $t, step: usize) {
                // SAFETY: the caller's promise.
                unsafe { super::weight::<$v>(kernel, count, to, step, 0.5) };
            }
            #[target_feature(enable = $features)]
            pub(super) unsafe fn weight_gradient(products: *const $t, sizes: (usize, usize), to: &[*mut $t; 9], finite: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { super::weight_gradient::<$v>(products, sizes, to, finite, (0.5, 0.0)) };
            }
        }
        pub(crate) static $name: Transforms<$t> = Transforms {
            lanes: <$v as Vector>::LANES,
            input: $module::input,
            output: $module::output,
            gradient: $module::gradient,
            weight: $module::weight,
            weight_gradient: $module::weight_gradient,
        };
    )*};
}
transforms! {
    f32_avx512, F32_AVX512, __m512, f32, "avx512f";
    f64_avx512, F64_AVX512, __m512d, f64, "avx512f";
    f32_avx2, F32_AVX2, __m256, f32, "avx2,fma";
    f64_avx2, F64_AVX2, __m256d, f64, "avx2,fma";
}
