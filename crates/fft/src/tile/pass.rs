//! One pass over the lines along a dimension, tile by tile.

use super::copy::{TileFinish, TileLayout, TileRange, gather, scatter};
use super::{CacheLine, LongTilePlan, TilePlan, lanes};
use crate::lines::Lines;
use crate::long::as_real;
use crate::pass::{GRAIN, SharedPtr};
use crate::plan::{self, FftReal};
use pullback_kernels::{Result, parallel};
use std::sync::{Arc, Mutex, PoisonError};

/// The kinds of transform.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TileKind {
    Forward,
    Inverse,
    /// Real numbers to the first half of their spectrum, forward.
    FromReal,
    /// The first half of a spectrum to real numbers, inverse.
    ToReal,
}

/// A prepared pass.
pub(crate) struct TilePass<T: FftReal> {
    lines: Lines,
    plan: Arc<TilePlan<T>>,
    kind: TileKind,
    /// The factors of columns of a long line.
    twist: Option<Arc<LongTilePlan<T>>>,
    free: Mutex<Vec<Vec<CacheLine>>>,
}

impl<T: FftReal> Drop for TilePass<T> {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.plan.leave(std::mem::take(free));
    }
}

impl<T: FftReal> TilePass<T> {
    /// The pass over lines of `n` numbers, complex or real, of which [`super::is_tiled`] approves.
    pub(crate) fn new(mut lines: Lines, n: usize, kind: TileKind) -> Result<Self> {
        let is_real = matches!(kind, TileKind::FromReal | TileKind::ToReal);
        let n = if is_real { n / 2 } else { n };
        lines.take_tiles_of(lanes::<T>());
        let plan = plan::tile::<T>(n)?;
        let threads = parallel::num_threads().min(lines.tiles().div_ceil(Self::grain(n)));
        // bounded: by the threads.
        let free = (0..threads).map(|_| plan.tile()).collect::<Result<_>>()?;
        Ok(TilePass { lines, plan, kind, twist: None, free: Mutex::new(free) })
    }

    /// The pass over the columns of a long line, whose results are multiplied by factors.
    pub(crate) fn twisted(mut self, factors: Arc<LongTilePlan<T>>) -> Self {
        self.twist = Some(factors);
        self
    }

    /// Tiles that are one thread's at once.
    fn grain(n: usize) -> usize {
        (GRAIN / (n * lanes::<T>())).max(1)
    }

    /// Transforms all lines, from and to numbers of type `T`: two of them are a complex one.
    ///
    /// # Safety
    /// As [`crate::pass::Pass::run`].
    pub(crate) unsafe fn run(&self, source: *const T, target: *mut T, scale: f64) -> Result<()> {
        let (source, target) = (SharedPtr(source.cast_mut()), SharedPtr(target));
        let scale = as_real::<T>(scale);
        parallel::try_for_range(self.lines.tiles(), Self::grain(self.plan.n), &|range| {
            let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // (There is none left only where the number of threads was raised meanwhile.)
            let mut tile = kept.map_or_else(|| self.plan.tile(), Ok)?;
            for nr in range {
                // SAFETY: as the caller promised; tiles are apart.
                unsafe {
                    self.tile(nr, source.get().cast_const(), target.get(), scale, &mut tile);
                };
            }
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(tile);
            Ok(())
        })
    }

    /// Transforms one tile.
    ///
    /// # Safety
    /// As [`TilePass::run`].
    unsafe fn tile(
        &self,
        nr: usize,
        source: *const T,
        target: *mut T,
        scale: T,
        tile: &mut [CacheLine],
    ) {
        let (at, plan, n) = (self.lines.tile_at(nr), &*self.plan, self.plan.n);
        let (steps, across) =
            ((self.lines.source_step, self.lines.target_step), self.lines.across());
        let (from_real, to_real) = (self.kind == TileKind::FromReal, self.kind == TileKind::ToReal);
        let side = |is_real: bool, step: isize, across: isize, start: isize| {
            if is_real {
                (TileLayout::pairs(step, across), start)
            } else {
                (TileLayout::complex(step, across), 2 * start)
            }
        };
        let (layout, start) = side(from_real, steps.0, across.0, at.source);
        let rows = n + usize::from(to_real);
        let range = TileRange { rows, lines: at.lines, layout };
        // SAFETY: as the caller promised.
        unsafe { gather(tile, source.wrapping_offset(start), range) };
        if to_real {
            plan.join_spectrum(tile);
        }
        let forward = matches!(self.kind, TileKind::Forward | TileKind::FromReal);
        plan.transform(tile, forward);
        if from_real {
            plan.split_spectrum(tile);
        }
        let (layout, start) = side(to_real, steps.1, across.1, at.target);
        let rows = n + usize::from(from_real);
        let range = TileRange { rows, lines: at.lines, layout };
        let twist = self.twist.as_ref().map(|factors| factors.twist(nr, n));
        let parts = if forward || twist.is_none() { (0, lanes::<T>()) } else { (lanes::<T>(), 0) };
        let finish = TileFinish { scale, twist, parts };
        // SAFETY: as the caller promised.
        unsafe { scatter(tile, &plan.places, target.wrapping_offset(start), range, finish) };
    }
}
