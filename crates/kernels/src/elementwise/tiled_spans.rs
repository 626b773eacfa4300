//! Copies of spans at all positions of any number of dimensions, cut into tiles.
//!
//! One long dimension becomes the rows of a tile, at a constant stride; the other inner dimensions are expanded into a list of
//! byte offsets (combined with the list that the caller gives). The remaining outer dimensions are the units of work that
//! threads share. A unit copies several hundred spans, which hides its overhead. Start at [`TiledSpans::new`].

use super::spans::{MAX_OFFSETS, OffsetPair, OffsetPairs, SpanKind, SpanTile, copy_spans_of_kind};
use crate::parallel;
use smallvec::SmallVec;

/// Bytes from which work is worth splitting over threads.
pub(crate) const GRAIN: usize = 1 << 17;
/// Rows from which a loop over them is better than a list of offsets.
const ROWS: usize = 16;
/// Most spans of a tile.
const MAX_SPANS: usize = 8192;
/// Bytes of each side that rows may touch if they are walked several times: part of the first-level cache.
const NEAR: isize = 1 << 14;

/// A dimension: its size, and the bytes of a step in the output and in the input.
#[derive(Clone, Copy)]
pub(crate) struct CopyDim {
    pub(crate) size: usize,
    pub(crate) steps: [isize; 2],
}

/// `n` elements of `size` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    pub(crate) size: usize,
    pub(crate) n: usize,
}

impl Span {
    /// One element.
    pub(crate) fn element(size: usize) -> Span {
        Span { kind: SpanKind::Dense, size, n: 1 }
    }
    /// The span as a single element, if it has a power of two of at most 64 bytes.
    pub(crate) fn widened(self) -> Span {
        let bytes = self.size * self.n;
        let is_element = self.kind == SpanKind::Dense && bytes <= 64 && bytes.is_power_of_two();
        if is_element { Span::element(bytes) } else { self }
    }
}

/// What a position of an [`OuterDim`] selects: a part of a span, of the rows, or of the offsets, or a whole tile.
#[derive(Clone, Copy)]
enum Role {
    Span,
    Row,
    Offset,
    Whole,
}

/// A dimension outside of the tile, or inside of it in parts of `tile`.
struct OuterDim {
    dim: CopyDim,
    tile: usize,
    role: Role,
}

/// Spans at all positions of some dimensions.
pub(crate) struct TiledSpans {
    to: *mut u8,
    from: *const u8,
    /// The span, rows and offsets of a whole unit.
    span: Span,
    rows: usize,
    row_strides: [isize; 2],
    offsets: OffsetPairs,
    /// Offsets for each position of the tiled dimension.
    inner: usize,
    outer: SmallVec<[OuterDim; 6]>,
}

// SAFETY: threads write disjoint elements and only read the input, as the caller of `copy` promises.
unsafe impl Sync for TiledSpans {}

impl TiledSpans {
    /// The spans at each of `list` (at most `MAX_OFFSETS`) at each position of `dims`, innermost first.
    pub(crate) fn new(
        (to, from): (*mut u8, *const u8),
        span: Span,
        list: &[OffsetPair],
        dims: &[CopyDim],
    ) -> TiledSpans {
        let mut spans = TiledSpans {
            to,
            from,
            span: Span { n: span.n.min(GRAIN / span.size), ..span },
            rows: 1,
            row_strides: [0; 2],
            offsets: SmallVec::from_slice(list),
            inner: list.len(),
            outer: SmallVec::new(),
        };
        if spans.span.n < span.n {
            let size = span.size as isize;
            let step = match span.kind {
                SpanKind::Dense => size,
                SpanKind::Reversed => -size,
                SpanKind::Repeated => 0,
            };
            let dim = CopyDim { size: span.n, steps: [size, step] };
            spans.outer.push(OuterDim { dim, tile: spans.span.n, role: Role::Span });
        }
        let bytes = spans.span.n * span.size;
        let rows = spans.take_row_dim(dims, bytes);
        let bytes = spans.rows * bytes;
        let room = (MAX_SPANS / spans.rows).min(GRAIN / bytes).clamp(1, MAX_OFFSETS);
        let mut is_full = false;
        for (_, &dim) in dims.iter().enumerate().filter(|&(at, _)| Some(at) != rows) {
            let inner = spans.offsets.len();
            let tile = dim.size.min(room / inner);
            if is_full || tile <= 1 {
                is_full = true;
                spans.outer.push(OuterDim { dim, tile: 1, role: Role::Whole });
                continue;
            }
            for position in 1..tile as isize {
                for at in 0..inner {
                    let offset = spans.offsets[at];
                    spans.offsets.push([0, 1].map(|i| offset[i] + position * dim.steps[i]));
                }
            }
            if tile < dim.size {
                (is_full, spans.inner) = (true, inner);
                spans.outer.push(OuterDim { dim, tile, role: Role::Offset });
            }
        }
        spans
    }

    /// Takes one of the two innermost dimensions for rows if it is long; spans have so many bytes.
    fn take_row_dim(&mut self, dims: &[CopyDim], bytes: usize) -> Option<usize> {
        let at = dims.iter().take(2).position(|dim| dim.size >= ROWS)?;
        let dim = dims[at];
        // How often the rows are walked: if more than once, the rows have to stay near in memory.
        let passes = self.offsets.len() * if at == 0 { 1 } else { dims[0].size };
        let reach = (passes * bytes.max(64)) as isize;
        let [to, from] = dim.steps.map(|step| step.abs().clamp(1, reach));
        let near = if passes == 1 { MAX_SPANS } else { (NEAR / to.max(from)) as usize };
        if near < ROWS {
            return None;
        }
        let rows = dim.size.min(near).min((GRAIN / bytes).max(1));
        (self.rows, self.row_strides) = (rows, dim.steps);
        if rows < dim.size {
            self.outer.push(OuterDim { dim, tile: rows, role: Role::Row });
        }
        Some(at)
    }

    /// Copies all spans; on one thread in the order of the list if offsets of the output may repeat.
    ///
    /// # Safety
    /// Every span lies inside live memory on both sides, which do not overlap unless they are the same.
    pub(crate) unsafe fn copy(&self, repeats: bool) {
        let mut units = 1;
        for outer in &self.outer {
            units *= outer.dim.size.div_ceil(outer.tile);
        }
        let spans = self.rows * self.offsets.len();
        let most = (MAX_SPANS / spans).min(GRAIN / (spans * self.span.n * self.span.size)).max(1);
        parallel::for_range(units, if repeats { units } else { most }, &|range| {
            for unit in range {
                // SAFETY: the caller's promise.
                unsafe { self.copy_unit(unit) };
            }
        });
    }

    /// # Safety
    /// As [`TiledSpans::copy`].
    unsafe fn copy_unit(&self, mut unit: usize) {
        let (mut to, mut from) = (self.to, self.from);
        let (mut n, mut rows, mut offsets) = (self.span.n, self.rows, &self.offsets[..]);
        for OuterDim { dim, tile, role } in &self.outer {
            let count = dim.size.div_ceil(*tile);
            let first = unit % count * tile;
            unit /= count;
            to = to.wrapping_offset(first as isize * dim.steps[0]);
            from = from.wrapping_offset(first as isize * dim.steps[1]);
            let length = (dim.size - first).min(*tile);
            match role {
                Role::Span => n = length,
                Role::Row => rows = length,
                Role::Offset => offsets = &offsets[..length * self.inner],
                Role::Whole => {}
            }
        }
        let tile = SpanTile { to, from, offsets, rows, row_strides: self.row_strides };
        // SAFETY: the caller's promise.
        unsafe { copy_spans_of_kind(&tile, self.span.kind, self.span.size, n) };
    }
}
