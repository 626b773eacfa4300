//! The operands and results of attention as they are in memory: packed as the numbers that are computed with, and rounded
//! back once. Masks are added to the scores of a block.

use super::tile::{self, Block, KEYS, ROWS, ScoreNumber, panel_width};
use crate::dense::Real;
use crate::gemm::Matrix;
use crate::{Bool, DType, Element, StridedRef, bf16, elementwise, f16};
use half::slice::HalfFloatSliceExt;

/// A number in memory: halves are computed with as `f32`.
pub(super) trait Stored: Element {
    /// The type that is computed in.
    type Wide: ScoreNumber;
    /// Whether `Wide` is the type itself, so that nothing is converted.
    const IS_WIDE: bool;
    fn widen(self) -> Self::Wide;
    fn rounded(value: Self::Wide) -> Self;
    fn widen_row(from: &[Self], to: &mut [Self::Wide]);
    fn round_row(from: &[Self::Wide], to: &mut [Self]);
    /// Writes `n` runs of `width` elements, `apart` from one another, as the columns of `width` rows of `step` numbers; `spare`
    /// holds as many numbers if these are not the elements.
    ///
    /// # Safety
    /// There are as many elements, and rows.
    unsafe fn transpose(
        to: (*mut Self::Wide, usize),
        from: (*const Self, isize),
        size: (usize, usize),
        spare: &mut [Self::Wide],
    );
}

macro_rules! wide {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            type Wide = $t;
            const IS_WIDE: bool = true;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn rounded(value: $t) -> $t {
                value
            }
            #[inline(always)]
            fn widen_row(from: &[$t], to: &mut [$t]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn round_row(from: &[$t], to: &mut [$t]) {
                to.copy_from_slice(from);
            }
            unsafe fn transpose(to: (*mut $t, usize), from: (*const $t, isize), size: (usize, usize), _: &mut [$t]) {
                // SAFETY: the caller's promise.
                unsafe { tile::transpose(to.0, to.1, from, size) }
            }
        }
    )*};
}
wide!(f32, f64);

macro_rules! half {
    ($t:ty, $widen_row:ident, $round_row:ident) => {
        impl Stored for $t {
            type Wide = f32;
            const IS_WIDE: bool = false;
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn rounded(value: f32) -> $t {
                Self::from_f32(value)
            }
            fn widen_row(from: &[$t], to: &mut [f32]) {
                elementwise::$widen_row(from.reinterpret_cast(), to);
            }
            fn round_row(from: &[f32], to: &mut [$t]) {
                elementwise::$round_row(from, to.reinterpret_cast_mut());
            }
            unsafe fn transpose(
                to: (*mut f32, usize),
                (from, apart): (*const $t, isize),
                (n, width): (usize, usize),
                spare: &mut [f32],
            ) {
                for (i, row) in spare.chunks_exact_mut(width.max(1)).take(n).enumerate() {
                    // SAFETY: the caller's promise.
                    let run = unsafe {
                        std::slice::from_raw_parts(from.offset(i as isize * apart), width)
                    };
                    Self::widen_row(run, row);
                }
                assert!(spare.len() >= n * width);
                // SAFETY: as above; the runs lie one after the other now.
                unsafe { tile::transpose(to.0, to.1, (spare.as_ptr(), width as isize), (n, width)) }
            }
        }
    };
}
half!(f16, f16_to_f32, f32_to_f16);
half!(bf16, bf16_to_f32, f32_to_bf16);

/// Copies the elements of a matrix from the first on along its row.
///
/// # Safety
/// The row has as many elements as are copied.
pub(super) unsafe fn copy_row<N: Stored>(to: &mut [N::Wide], from: Matrix<N>) {
    if from.cs == 1 && !to.is_empty() {
        // SAFETY: the caller's promise, here and below.
        N::widen_row(unsafe { std::slice::from_raw_parts(from.ptr, to.len()) }, to);
        return;
    }
    for (j, to) in to.iter_mut().enumerate() {
        // SAFETY: as above.
        *to = unsafe { *from.at(0, j).ptr }.widen();
    }
}

/// Writes numbers from the first element of a matrix along its row.
///
/// # Safety
/// The row has as many elements as are written, which nobody else uses.
pub(super) unsafe fn store_row<N: Stored>(to: Matrix<N>, from: &[N::Wide]) {
    if to.cs == 1 && !from.is_empty() {
        // SAFETY: the caller's promise, here and below.
        N::round_row(from, unsafe { std::slice::from_raw_parts_mut(to.ptr, from.len()) });
        return;
    }
    for (j, &from) in from.iter().enumerate() {
        // SAFETY: as above.
        unsafe { *to.at(0, j).ptr = N::rounded(from) };
    }
}

/// Copies rows to where they lie without gaps, and zeros after the last to whole tiles.
pub(super) fn pack_rows<N: Stored>(
    to: &mut [N::Wide],
    from: Matrix<N>,
    (rows, width): (usize, usize),
) {
    for (row, to) in to.chunks_exact_mut(width.max(1)).take(rows).enumerate() {
        // SAFETY: inside the matrix, as the views promised.
        unsafe { copy_row(to, from.at(row, 0)) };
    }
    let end = rows.next_multiple_of(ROWS) * width;
    to[rows * width..end].fill(N::Wide::ZERO);
}

/// How many numbers [`pack_panels`] needs beside, for runs of `width` elements.
pub(super) fn spare_of<N: Stored>(width: usize) -> usize {
    if N::IS_WIDE { 0 } else { panel_width(size_of::<N::Wide>()) * width }
}

/// Packs a matrix by panels of columns, with zeros for the columns that the last panel lacks.
pub(super) fn pack_panels<N: Stored>(
    to: &mut [N::Wide],
    from: Matrix<N>,
    (rows, columns): (usize, usize),
    spare: &mut [N::Wide],
) {
    let panel = panel_width(size_of::<N::Wide>());
    for (to, first) in to.chunks_exact_mut((rows * panel).max(1)).zip((0..columns).step_by(panel)) {
        let count = panel.min(columns - first);
        if count < panel {
            to.fill(N::Wide::ZERO);
        }
        let from = from.at(0, first);
        if from.rs == 1 && rows > 1 {
            // SAFETY: `count` columns of `rows` elements without gaps; as many rows of a panel.
            unsafe {
                N::transpose((to.as_mut_ptr(), panel), (from.ptr, from.cs), (count, rows), spare);
            }
            continue;
        }
        for (row, to) in to.chunks_exact_mut(panel).enumerate() {
            // SAFETY: inside the matrix, as the views promised.
            unsafe { copy_row(&mut to[..count], from.at(row, 0)) };
        }
    }
}

/// What is added to the scores of a head: truth values that say which keys may be attended to, or numbers.
#[derive(Clone, Copy)]
pub(super) enum Mask {
    Bool(Matrix<Bool>),
    F16(Matrix<f16>),
    BF16(Matrix<bf16>),
    F32(Matrix<f32>),
    F64(Matrix<f64>),
}

impl Mask {
    /// The mask of one head of one example; `None` of another dtype.
    pub(super) fn of(view: StridedRef<'_>, example: usize, head: usize) -> Option<Mask> {
        let (ptr, strides) = (view.ptr(), view.strides());
        Some(match view.dtype() {
            DType::Bool => Mask::Bool(super::head(ptr, strides, example, head)),
            DType::F16 => Mask::F16(super::head(ptr, strides, example, head)),
            DType::BF16 => Mask::BF16(super::head(ptr, strides, example, head)),
            DType::F32 => Mask::F32(super::head(ptr, strides, example, head)),
            DType::F64 => Mask::F64(super::head(ptr, strides, example, head)),
            _ => return None,
        })
    }

    /// Adds the mask, from a query and a key on, to the scores of a block.
    pub(super) fn add_to<T: ScoreNumber>(
        self,
        scores: &mut [T],
        (row, key): (usize, usize),
        block: Block,
    ) {
        match self {
            Mask::Bool(mask) => each_score(scores, mask.at(row, key), block, |score, seen| {
                if seen.get() { score } else { T::NEG_INFINITY }
            }),
            Mask::F16(mask) => {
                each_score(scores, mask.at(row, key), block, |s, x| s + T::convert(x.to_f32()));
            }
            Mask::BF16(mask) => {
                each_score(scores, mask.at(row, key), block, |s, x| s + T::convert(x.to_f32()));
            }
            Mask::F32(mask) => {
                each_score(scores, mask.at(row, key), block, |s, x| s + T::convert(x));
            }
            Mask::F64(mask) => {
                each_score(scores, mask.at(row, key), block, |s, x| s + T::convert(x));
            }
        }
    }
}

/// Replaces each score of a block by a function of the score and the element of the mask.
#[inline(always)]
fn each_score<T: ScoreNumber, M: Copy>(
    scores: &mut [T],
    mask: Matrix<M>,
    block: Block,
    with: impl Fn(T, M) -> T,
) {
    for (row, scores) in scores.chunks_exact_mut(KEYS).take(block.rows).enumerate() {
        let (scores, mask) = (&mut scores[..block.keys_of(row)], mask.at(row, 0));
        if mask.cs == 1 && !scores.is_empty() {
            // SAFETY: inside the mask, as the views promised; here and below.
            let mask = unsafe { std::slice::from_raw_parts(mask.ptr, scores.len()) };
            scores.iter_mut().zip(mask).for_each(|(score, &mask)| *score = with(*score, mask));
            continue;
        }
        for (j, score) in scores.iter_mut().enumerate() {
            // SAFETY: as above.
            *score = with(*score, unsafe { *mask.at(0, j).ptr });
        }
    }
}
