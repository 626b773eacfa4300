//! Copies of slices between listed offsets: what `index_select`, `index_copy`, `embedding` and `x[i, :, j]` have in common.
//!
//! On both sides positions are listed along some dimensions; the dimensions before these are
//! walked, those after them make up a slice, which is copied as a span or element by element (see
//! `elementwise::tiled_spans`).

use crate::elementwise::spans::{MAX_OFFSETS, OffsetPair, OffsetPairs, SpanKind};
use crate::elementwise::tiled_spans::{CopyDim, GRAIN, Span, TiledSpans};
use crate::line::{LineIter, ViewLayout};
use crate::parallel;
use smallvec::SmallVec;
use std::ops::Range;

/// A copy of slices; addresses and layouts are those of the output and of the input.
pub(crate) struct SliceCopy<'l> {
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) layouts: [ViewLayout<'l>; 2],
    /// The shape of a slice and what is around it; of the dimensions `listed` only their number counts.
    pub(crate) shape: &'l [i64],
    pub(crate) listed: Range<usize>,
    /// How many offsets are listed.
    pub(crate) count: usize,
    /// Whether offsets of the output may repeat: the last slice stays.
    pub(crate) repeats: bool,
}

// SAFETY: threads write disjoint elements only, as offsets of the output repeat only on one thread.
unsafe impl Sync for SliceCopy<'_> {}

impl SliceCopy<'_> {
    /// Copies all slices; `list` writes the byte offsets of some of the listed positions.
    ///
    /// # Safety
    /// Each slice at each listed offset lies inside live memory on both sides, and no element is both read and written.
    pub(crate) unsafe fn copy(&self, list: &(dyn Fn(Range<usize>, &mut [OffsetPair]) + Sync)) {
        let size = self.layouts[0].size();
        let outer = LineIter::select(self.shape, |d| d < self.listed.start, self.layouts);
        let inner = LineIter::select(self.shape, |d| d >= self.listed.end, self.layouts);
        if outer.count() * inner.count() * self.count == 0 {
            return;
        }
        let mut dims: SmallVec<[CopyDim; 6]> = SmallVec::new();
        let mut span = Span::element(size);
        for (at, (n, steps)) in inner.dims().enumerate() {
            match SpanKind::of(steps, size) {
                Some(kind) if at == 0 => span = Span { kind, size, n }.widened(),
                _ => dims.push(CopyDim { size: n, steps }),
            }
        }
        dims.extend(outer.dims().map(|(size, steps)| CopyDim { size, steps }));
        let listed = self.count.min((GRAIN / (span.size * span.n)).clamp(1, MAX_OFFSETS));
        let lists = self.count.div_ceil(listed);
        // Without other dimensions the lists themselves are what threads share.
        let grain = if dims.is_empty() && !self.repeats {
            (GRAIN / (listed * span.size * span.n)).clamp(1, 32)
        } else {
            lists
        };
        parallel::for_range(lists, grain, &|range| {
            let mut offsets = OffsetPairs::new();
            for start in range.map(|at| at * listed) {
                let range = start..self.count.min(start + listed);
                // bounded: by MAX_OFFSETS.
                offsets.resize(range.len(), [0; 2]);
                list(range, &mut offsets);
                let spans = TiledSpans::new((self.to, self.from), span, &offsets, &dims);
                // SAFETY: the caller's promise.
                unsafe { spans.copy(self.repeats) };
            }
        });
    }
}

/// Writes the byte offsets of some positions of a walk for one of the two sides.
pub(super) fn list_offsets(
    lines: &LineIter<1>,
    range: Range<usize>,
    offsets: &mut [OffsetPair],
    side: usize,
) {
    let mut offsets = offsets.iter_mut();
    lines.visit_runs(range, |[mut offset], [step], length| {
        for pair in offsets.by_ref().take(length) {
            pair[side] = offset;
            offset += step;
        }
    });
}
