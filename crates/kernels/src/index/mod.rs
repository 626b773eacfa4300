//! Reading and writing elements at positions given by index tensors.
//!
//! Invariants: every index is checked before the first write; index tensors are `i64` or `i32`; repeated targets are
//! accumulated in row-major order of the index, so results are deterministic. Elements are moved by their
//! size, not their dtype, wherever no arithmetic is done. `gather` has the forms whose index has the
//! output's rank, `select` those with a one-dimensional index, `advanced` the `x[i, :, j]` form, `mask` masks,
//! `search` searchsorted and bincount, `embedding` table look-ups, `bag` sums of them, `sparse` products with sparse matrices.

mod advanced;
mod bag;
mod embedding;
mod gather;
mod mask;
mod search;
mod select;
mod slices;
mod sparse;
mod table;

pub use advanced::{index, index_put};
pub use bag::{
    BagGradient, BagInput, BagMode, BagOptions, BagOutput, embedding_bag, embedding_bag_backward,
};
pub use embedding::{embedding, embedding_backward, one_hot};
pub use gather::{ScatterReduction, ScatterSource, check_index_shape, gather, scatter};
pub use mask::{count_true, masked_scatter, masked_select, nonzero};
pub use search::{bincount, bincount_size, bucketize, searchsorted};
pub use select::{index_add, index_copy, index_fill, index_select, put, take};
pub(crate) use slices::SliceCopy;
pub use sparse::{CsrIndices, sparse_matmul};

use crate::float8::{F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU};
use crate::line::{LineIter, ViewLayout, get};
use crate::{
    BC32, Bool, C32, C64, C128, DType, Element, Error, Result, StridedRef, bf16, f16, memory,
};

/// Runs `$body` with `$T` bound to a type of `$size` bytes that copies as elements of that size do.
macro_rules! for_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = [u64; 2];
                $body
            }
        }
    };
}
pub(crate) use for_size;

/// Calls `body` with the index as `i64`; an `i32` index is converted first.
fn with_i64<R>(index: StridedRef<'_>, body: impl FnOnce(StridedRef<'_>) -> Result<R>) -> Result<R> {
    match index.dtype() {
        DType::I64 => body(index),
        DType::I32 => {
            let mut wide = memory::with_capacity(index.numel())?;
            let lines = LineIter::new(index.shape(), None, [ViewLayout::from(&index)]);
            lines.visit(0..lines.count(), |[at]| {
                // SAFETY: the walk stays inside the view, whose dtype is i32.
                wide.push(i64::from(unsafe { get::<i32>(index.ptr(), at) }));
            });
            let strides = contiguous_strides(index.shape());
            // SAFETY: `wide` holds as many elements as the shape has, without gaps, and outlives the view.
            body(unsafe {
                StridedRef::new(wide.as_ptr().cast(), DType::I64, index.shape(), &strides)
            })
        }
        other => Err(Error::index(format!(
            "tensors used as indices must be long, int, byte or bool tensors, got {}",
            other.scalar_name()
        ))),
    }
}

/// Strides of a row-major array.
pub(crate) fn contiguous_strides(shape: &[i64]) -> smallvec::SmallVec<[i64; 6]> {
    let mut strides: smallvec::SmallVec<[i64; 6]> = smallvec::SmallVec::from_elem(1, shape.len());
    for dim in (0..shape.len().saturating_sub(1)).rev() {
        strides[dim] = strides[dim + 1] * shape[dim + 1].max(1);
    }
    strides
}

crate::multiversion! {
/// Whether every index lies in `low..high`.
fn all_within(indices: &[i64], low: i64, high: i64) -> bool {
    let mut outside = false;
    for &i in indices {
        outside |= (i < low) | (i >= high);
    }
    !outside
}
}

/// Refuses an index outside `low..high` with the error that `refuse` makes of the first such index.
fn check_bounds(
    index: &StridedRef<'_>,
    (low, high): (i64, i64),
    refuse: impl Fn(i64) -> Error,
) -> Result<()> {
    if index.as_slice::<i64>().is_some_and(|s| all_within(s, low, high)) {
        return Ok(());
    }
    let lines = LineIter::new(index.shape(), None, [ViewLayout::from(index)]);
    let mut outside = None;
    lines.visit(0..lines.count(), |[at]| {
        // SAFETY: the walk stays inside the view, whose dtype is i64.
        let i = unsafe { get::<i64>(index.ptr(), at) };
        if outside.is_none() && !(low..high).contains(&i) {
            outside = Some(i);
        }
    });
    outside.map_or(Ok(()), |i| Err(refuse(i)))
}

/// `index 5 is out of bounds for dimension 0 with size 3`.
fn out_of_bounds(index: i64, dim: usize, size: i64) -> String {
    format!("index {index} is out of bounds for dimension {dim} with size {size}")
}

/// Elements that can be accumulated: what `scatter`, `index_add` and `index_put` need of arithmetic.
pub(crate) trait Accumulate: Element {
    /// The sum, as the dtype adds (bool: or).
    fn add(self, other: Self) -> Self;
    /// The product, as the dtype multiplies (bool: and).
    fn mul(self, other: Self) -> Self;
    /// The quotient by a count; integers round down.
    fn div_count(self, count: i64) -> Self;
    /// The larger one; NaN wins. Complex numbers have no order: the first.
    fn larger(self, other: Self) -> Self;
    /// The smaller one; NaN wins. Complex numbers have no order: the first.
    fn smaller(self, other: Self) -> Self;
}

crate::multiversion! {
/// `sum[i] += x[i]`.
fn add_row<T: Accumulate>(sum: &mut [T], x: &[T]) {
    for (sum, &x) in sum.iter_mut().zip(x) {
        *sum = sum.add(x);
    }
}
}

crate::multiversion! {
/// `sum[i] += factor * x[i]`.
fn add_scaled_row<T: Accumulate>(sum: &mut [T], x: &[T], factor: T) {
    for (sum, &x) in sum.iter_mut().zip(x) {
        *sum = sum.add(x.mul(factor));
    }
}
}

/// The number of rows that an accumulation prefetches.
const AHEAD: usize = 8;

/// Prefetches a row of some bytes, or as much of a long one as is worth it.
#[inline(always)]
fn prefetch_row(row: *const u8, bytes: usize) {
    for line in (0..bytes.min(1024)).step_by(64) {
        crate::simd::prefetch(row.wrapping_add(line));
    }
}

/// How many columns of `width` a thread gets where threads own columns. It may depend on the number of threads: each sum is
/// made by one thread in order, however the columns are shared out.
fn columns_each(width: usize, rows: usize) -> usize {
    let least = (crate::line::GRAIN / rows.max(1)).max(64);
    width.div_ceil(crate::parallel::num_threads()).max(least)
}

macro_rules! accumulate_integer {
    ($($t:ty),*) => {$(
        impl Accumulate for $t {
            #[inline(always)] fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)] fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)] fn div_count(self, count: i64) -> Self {
                (i128::from(self).div_euclid(i128::from(count))) as $t
            }
            #[inline(always)] fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)] fn smaller(self, other: Self) -> Self { self.min(other) }
        }
    )*};
}
accumulate_integer!(u8, i8, i16, i32, i64, u16, u32, u64);

/// The nearest `bf16`, of two the even one, without a branch that nobody could foresee.
#[inline(always)]
fn round_to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    bf16::from_bits(if value.is_nan() { bits >> 16 | 0x40 } else { nearest } as u16)
}

macro_rules! accumulate_float {
    ($($t:ty, $compute:ty, $to:expr, $from:expr);*) => {$(
        impl Accumulate for $t {
            #[inline(always)] fn add(self, other: Self) -> Self { $from($to(self) + $to(other)) }
            #[inline(always)] fn mul(self, other: Self) -> Self { $from($to(self) * $to(other)) }
            #[inline(always)] fn div_count(self, count: i64) -> Self { $from($to(self) / count as $compute) }
            // (In this form processors have an instruction for it, and no branch that nobody could foresee.)
            #[inline(always)] fn larger(self, other: Self) -> Self {
                let larger = if other > self { other } else { self };
                if other != other { other } else { larger }
            }
            #[inline(always)] fn smaller(self, other: Self) -> Self {
                let smaller = if other < self { other } else { self };
                if other != other { other } else { smaller }
            }
        }
    )*};
}
accumulate_float!(
    f32, f32, |v: f32| v, |v: f32| v;
    f64, f64, |v: f64| v, |v: f64| v;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, round_to_bf16
);

macro_rules! accumulate_complex {
    ($($t:ty, $part:ty);*) => {$(
        impl Accumulate for $t {
            #[inline(always)] fn add(self, other: Self) -> Self { self + other }
            #[inline(always)] fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)] fn div_count(self, count: i64) -> Self { self / count as $part }
            #[inline(always)] fn larger(self, _: Self) -> Self { self }
            #[inline(always)] fn smaller(self, _: Self) -> Self { self }
        }
    )*};
}
accumulate_complex!(C64, f32; C128, f64);

accumulate_float!(
    F8E4M3FN, f32, F8E4M3FN::to_f32, F8E4M3FN::from_f32;
    F8E5M2, f32, F8E5M2::to_f32, F8E5M2::from_f32;
    F8E4M3FNUZ, f32, F8E4M3FNUZ::to_f32, F8E4M3FNUZ::from_f32;
    F8E5M2FNUZ, f32, F8E5M2FNUZ::to_f32, F8E5M2FNUZ::from_f32;
    F8E8M0FNU, f32, F8E8M0FNU::to_f32, F8E8M0FNU::from_f32
);

// Each step in double precision, rounded.
macro_rules! accumulate_half_complex {
    ($($t:ty),*) => {$(
        impl Accumulate for $t {
            #[inline(always)] fn add(self, other: Self) -> Self {
                Self::from_c128(self.to_c128() + other.to_c128())
            }
            #[inline(always)] fn mul(self, other: Self) -> Self {
                Self::from_c128(self.to_c128() * other.to_c128())
            }
            #[inline(always)] fn div_count(self, count: i64) -> Self {
                Self::from_c128(self.to_c128() / count as f64)
            }
            #[inline(always)] fn larger(self, _: Self) -> Self { self }
            #[inline(always)] fn smaller(self, _: Self) -> Self { self }
        }
    )*};
}
accumulate_half_complex!(C32, BC32);

impl Accumulate for Bool {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Bool::new(self.get() | other.get())
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Bool::new(self.get() & other.get())
    }
    #[inline(always)]
    fn div_count(self, _: i64) -> Self {
        self
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.add(other)
    }
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        self.mul(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_values_are_rounded_as_by_the_half_crate() {
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(high) << 16 | low);
                assert_eq!(
                    round_to_bf16(value).to_bits(),
                    bf16::from_f32(value).to_bits(),
                    "{value:?}"
                );
            }
        }
    }
}
