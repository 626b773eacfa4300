//! Copies of slices between listed places: what `index_select`, `index_copy`, `embedding` and `x[i, :, j]` have in common.
//!
//! Along some dimensions positions are listed, on both sides; those before them are walked, those behind them make up a
//! slice, which is copied as a run or element by element (see `elementwise::grids`).

use crate::elementwise::grids::{Dim, GRAIN, Grids, Run};
use crate::elementwise::runs::{Kind, PLACES, Place, Places};
use crate::line::{Layout, Lines};
use crate::parallel;
use smallvec::SmallVec;
use std::ops::Range;

/// A copy of slices; addresses and layouts are those of the output and of the input.
pub(crate) struct Slices<'l> {
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) layouts: [Layout<'l>; 2],
    /// The shape of a slice and what is around it; of the dimensions `listed` only their number counts.
    pub(crate) shape: &'l [i64],
    pub(crate) listed: Range<usize>,
    /// How many places are listed.
    pub(crate) count: usize,
    /// Whether places of the output may repeat: the last slice stays.
    pub(crate) repeats: bool,
}

// SAFETY: threads write disjoint elements only, as places of the output repeat only on one thread.
unsafe impl Sync for Slices<'_> {}

impl Slices<'_> {
    /// Copies all slices; `list` writes down the byte offsets of some places.
    ///
    /// # Safety
    /// Each slice at each listed place lies inside live memory on both sides, and no element is both read and written.
    pub(crate) unsafe fn copy(&self, list: &(dyn Fn(Range<usize>, &mut [Place]) + Sync)) {
        let size = self.layouts[0].size();
        let outer = Lines::select(self.shape, |d| d < self.listed.start, self.layouts);
        let inner = Lines::select(self.shape, |d| d >= self.listed.end, self.layouts);
        if outer.count() * inner.count() * self.count == 0 {
            return;
        }
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::new();
        let mut run = Run::element(size);
        for (at, (n, steps)) in inner.dims().enumerate() {
            match Kind::of(steps, size) {
                Some(kind) if at == 0 => run = Run { kind, size, n }.widened(),
                _ => dims.push(Dim { size: n, steps }),
            }
        }
        dims.extend(outer.dims().map(|(size, steps)| Dim { size, steps }));
        let listed = self.count.min((GRAIN / (run.size * run.n)).clamp(1, PLACES));
        let lists = self.count.div_ceil(listed);
        // Without other dimensions the lists themselves are what threads share.
        let grain = if dims.is_empty() && !self.repeats {
            (GRAIN / (listed * run.size * run.n)).clamp(1, 32)
        } else {
            lists
        };
        parallel::for_range(lists, grain, &|range| {
            let mut places = Places::new();
            for start in range.map(|at| at * listed) {
                let range = start..self.count.min(start + listed);
                // bounded: by PLACES.
                places.resize(range.len(), [0; 2]);
                list(range, &mut places);
                let grids = Grids::new((self.to, self.from), run, &places, &dims);
                // SAFETY: the caller's promise.
                unsafe { grids.copy(self.repeats) };
            }
        });
    }
}

/// Writes down the byte offsets of some positions of a walk as those of one side.
pub(super) fn list_places(
    lines: &Lines<1>,
    range: Range<usize>,
    places: &mut [Place],
    side: usize,
) {
    let mut places = places.iter_mut();
    lines.visit_runs(range, |[mut offset], [step], length| {
        for place in places.by_ref().take(length) {
            place[side] = offset;
            offset += step;
        }
    });
}
