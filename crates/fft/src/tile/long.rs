//! Long lines in two steps, as [`crate::long`] explains, of lengths both of whose factors are transformed in tiles.
//!
//! A tile of the first step holds neighbouring columns of the matrix; its results are multiplied by the factors `w_n^(j2 k1)` on
//! their way back. With `j2 = l t + j`, where `l` is the number of lanes, these are the products of `w_n^(j k1)`, which all tiles
//! share, and of `w_n^(l t k1)`, one for each row of tile `t`. So the tables are much smaller than the line.

use super::plan::root;
use super::{TileKind, TilePass, Twist, lanes};
use crate::lines::Lines;
use crate::long::{self, KeptMatrix};
use crate::plan::{self, FftReal};
use num_complex::Complex;
use pullback_kernels::Result;
use std::sync::{Arc, Mutex, PoisonError};

/// The tables of a line of a length that [`long::tiled_factors`] splits, for both directions.
pub(crate) struct LongTilePlan<T> {
    /// The factors of lane `j` in row `k1`, as a tile holds them.
    fine: Vec<T>,
    /// The factors of row `k1` in tile `t`, one tile after the other.
    coarse: Vec<T>,
    matrix: KeptMatrix<T>,
}

impl<T: FftReal> LongTilePlan<T> {
    /// The plan. The caller has made sure that there is memory for it.
    pub(crate) fn new(n: usize) -> Self {
        let (a, b) = long::tiled_factors(n).unwrap_or((1, n));
        let lanes = lanes::<T>();
        // bounded: by what `prepared` has probed.
        let mut fine = Vec::with_capacity(2 * a * lanes);
        for k in 0..a {
            for part in 0..2 {
                fine.extend((0..lanes).map(|lane| root::<T>(lane * k, n)[part]));
            }
        }
        let tiles = 0..b.div_ceil(lanes);
        let coarse =
            tiles.flat_map(|tile| (0..a).flat_map(move |k| root::<T>(tile * lanes * k, n)));
        LongTilePlan { fine, coarse: coarse.collect(), matrix: KeptMatrix::new() }
    }

    /// The factors of tile `nr` of columns of `a` numbers.
    pub(super) fn twist(&self, nr: usize, a: usize) -> Twist<'_, T> {
        Twist { fine: &self.fine, coarse: &self.coarse[2 * a * nr..][..2 * a] }
    }
}

/// A pass over long lines, one after the other: the tiles of each are what threads share.
pub(crate) struct LongTilePass<T: FftReal> {
    lines: Lines,
    columns: TilePass<T>,
    rows: TilePass<T>,
    matrix: Mutex<Vec<Complex<T>>>,
    plan: Arc<LongTilePlan<T>>,
    scale: f64,
}

impl<T: FftReal> Drop for LongTilePass<T> {
    fn drop(&mut self) {
        let matrix = self.matrix.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.plan.matrix.leave(std::mem::take(matrix));
    }
}

impl<T: FftReal> LongTilePass<T> {
    /// The pass over lines of `a b` numbers.
    pub(crate) fn new(
        lines: Lines,
        (a, b): (usize, usize),
        forward: bool,
        scale: f64,
    ) -> Result<Self> {
        let plan = plan::long_tile::<T>(a * b)?;
        let kind = if forward { TileKind::Forward } else { TileKind::Inverse };
        let [of_columns, of_rows] = lines.as_matrix((a, b));
        Ok(LongTilePass {
            lines,
            columns: TilePass::new(of_columns, a, kind)?.twisted(Arc::clone(&plan)),
            rows: TilePass::new(of_rows, b, kind)?,
            matrix: Mutex::new(plan.matrix.take(a * b)?),
            plan,
            scale,
        })
    }

    /// Transforms all lines, whose numbers are two of type `T` each.
    ///
    /// # Safety
    /// As [`crate::pass::Pass::run`].
    pub(crate) unsafe fn run(&self, source: *const T, target: *mut T) -> Result<()> {
        let mut matrix = self.matrix.lock().unwrap_or_else(PoisonError::into_inner);
        self.lines.starts().try_for_each(|(from, to)| {
            let (from, to) = (source.wrapping_offset(2 * from), target.wrapping_offset(2 * to));
            // SAFETY: the line is `a` rows of `b` numbers of the caller's memory, and the matrix is as large.
            unsafe {
                self.columns.run(from, matrix.as_mut_ptr().cast(), 1.0)?;
                self.rows.run(matrix.as_ptr().cast(), to, self.scale)
            }
        })
    }
}
