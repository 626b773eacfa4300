//! Half-precision products: operands are widened to `f32`, the right one whole, the left one in
//! blocks of rows; sums are `f32` and each output is rounded once.

use super::{GemmSizes, Matrix};
use crate::{Element, Result, elementwise, memory, parallel, plan};
use half::slice::HalfFloatSliceExt;

/// The ways of multiplying halves.
#[derive(Clone, Copy, Debug)]
enum HalfAlgorithm {
    /// `bfloat16` by the processor's tiles.
    Tiles,
    /// `bfloat16` in pairs, by instructions of the machine.
    Pairs,
    /// As products of single precision.
    Widened,
}

/// Rows widened at a time.
const ROWS: usize = 128;

/// `c = beta * c + alpha * a @ b`.
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn product<T: HalfFloat>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: f32,
    beta: f32,
    threads: bool,
) -> Result<()> {
    if s.m == 0 || s.n == 0 {
        return Ok(());
    }
    if T::IS_BF16 && super::bf16::is_worth_tiles(s) {
        plan::announce("product of halves", &HalfAlgorithm::Tiles);
        return super::bf16::tile_product(s, (c, a, b), (alpha, beta), threads);
    }
    if let Some(loops) = T::bf16_microkernels(s) {
        plan::announce("product of halves", &HalfAlgorithm::Pairs);
        return super::bf16::product(s, (c, a, b), (alpha, beta), threads, loops);
    }
    plan::announce("product of halves", &HalfAlgorithm::Widened);
    let columns_first = b.rs == 1 && b.cs != 1;
    let wide = if columns_first { widen(b.t(), s.n, s.k)? } else { widen(b, s.k, s.n)? };
    let right = if columns_first {
        Matrix::rows(wide.as_ptr(), s.k).t()
    } else {
        Matrix::rows(wide.as_ptr(), s.n)
    };
    let blocks = s.m.div_ceil(ROWS);
    let one = |block: usize| {
        let start = block * ROWS;
        let part = GemmSizes { m: ROWS.min(s.m - start), ..s };
        let left = widen(a.at(start, 0), part.m, s.k)?;
        let mut sums = memory::filled(0.0_f32, part.m * s.n)?;
        let (sum, left) = (Matrix::rows(sums.as_mut_ptr(), s.n), Matrix::rows(left.as_ptr(), s.k));
        // SAFETY: three fresh buffers of these sizes.
        unsafe { super::product(part, sum, left, right, 1.0, 0.0, false)? };
        narrow(c.at(start, 0), part, &sums, s.n, alpha, beta);
        Ok(())
    };
    if threads && s.work() > super::THREAD_GRAIN {
        return parallel::try_for_restartable_range(blocks, 1, &|mut blocks| {
            blocks.try_for_each(one)
        });
    }
    let products = parallel::RestartableBlocks::default();
    (0..blocks).try_for_each(|block| products.run(|| one(block)))
}

/// `f16` and `bf16`.
pub(crate) trait HalfFloat: Element {
    /// Whether this is `bf16`.
    const IS_BF16: bool;
    fn widen(self) -> f32;
    fn round(value: f32) -> Self;
    fn widen_row(from: &[Self], to: &mut [f32]);
    fn round_row(from: &[f32], to: &mut [Self]);
    /// The loop that multiplies pairs of numbers as they are, if the machine has one and the product is worth it.
    fn bf16_microkernels(_: GemmSizes) -> Option<super::bf16::Microkernels> {
        None
    }
}

macro_rules! narrow {
    ($t:ty, $widen_row:ident, $round_row:ident, $is_bf16:literal, $($pairs:item)?) => {
        impl HalfFloat for $t {
            const IS_BF16: bool = $is_bf16;
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn round(value: f32) -> Self {
                Self::from_f32(value)
            }
            fn widen_row(from: &[Self], to: &mut [f32]) {
                elementwise::$widen_row(from.reinterpret_cast(), to);
            }
            fn round_row(from: &[f32], to: &mut [Self]) {
                elementwise::$round_row(from, to.reinterpret_cast_mut());
            }
            $($pairs)?
        }
    };
}
narrow!(crate::f16, f16_to_f32, f32_to_f16, false,);
narrow!(
    crate::bf16,
    bf16_to_f32,
    f32_to_bf16,
    true,
    fn bf16_microkernels(s: GemmSizes) -> Option<super::bf16::Microkernels> {
        super::bf16::microkernels(s)
    }
);

fn widen<T: HalfFloat>(from: Matrix<T>, rows: usize, columns: usize) -> Result<Vec<f32>> {
    let mut out = memory::filled(0.0, rows * columns)?;
    for (i, to) in out.chunks_exact_mut(columns.max(1)).enumerate() {
        let row = from.at(i, 0);
        if row.cs == 1 {
            // SAFETY: a row of the matrix.
            T::widen_row(unsafe { std::slice::from_raw_parts(row.ptr, columns) }, to);
            continue;
        }
        for (j, to) in to.iter_mut().enumerate() {
            // SAFETY: inside the matrix.
            *to = unsafe { *row.at(0, j).ptr }.widen();
        }
    }
    Ok(out)
}

/// Rounds `alpha * sums + beta * c` into `c`.
pub(super) fn narrow<T: HalfFloat>(
    c: Matrix<T>,
    s: GemmSizes,
    sums: &[f32],
    leading_dim: usize,
    alpha: f32,
    beta: f32,
) {
    /// Elements that are mixed at a time.
    const CHUNK: usize = 256;
    let mut buffer = [0.0; CHUNK];
    for (i, row) in sums.chunks_exact(leading_dim).take(s.m).enumerate() {
        let row = &row[..s.n];
        if c.cs == 1 {
            // SAFETY: a row of `c`.
            let to = unsafe { std::slice::from_raw_parts_mut(c.at(i, 0).ptr, s.n) };
            if alpha == 1.0 && beta == 0.0 {
                T::round_row(row, to);
                continue;
            }
            for (row, to) in row.chunks(CHUNK).zip(to.chunks_mut(CHUNK)) {
                let mixed = &mut buffer[..row.len()];
                if beta != 0.0 {
                    T::widen_row(to, mixed);
                }
                mix(mixed, row, alpha, beta);
                T::round_row(mixed, to);
            }
            continue;
        }
        for (j, &sum) in row.iter().enumerate() {
            let at = c.at(i, j).ptr;
            // SAFETY: inside `c`.
            unsafe {
                let old = if beta == 0.0 { 0.0 } else { beta * (*at).widen() };
                *at = T::round(alpha.mul_add(sum, old));
            }
        }
    }
}

crate::multiversion! {
    /// `c[j] = alpha * sums[j] + beta * c[j]`, where `c` is not read if `beta` is zero.
    fn mix(c: &mut [f32], sums: &[f32], alpha: f32, beta: f32) {
        if beta == 0.0 {
            for (c, &sum) in c.iter_mut().zip(sums) {
                *c = alpha.mul_add(sum, 0.0);
            }
        } else {
            for (c, &sum) in c.iter_mut().zip(sums) {
                *c = alpha.mul_add(sum, beta * *c);
            }
        }
    }
}
