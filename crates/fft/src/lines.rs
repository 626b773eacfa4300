//! The lines of two arrays along one dimension, side by side: where each begins, and how tiles of neighbours are copied.
//!
//! A line whose numbers lie apart is not read by itself, which would touch a cache line for each number: neighbours are
//! copied together, number by number, into lines of a buffer.

use smallvec::SmallVec;

/// Lines that are copied together at most.
const TILE: usize = 16;
/// Numbers of a tile above which it is made of fewer lines, down to [`LEAST`].
const TILE_POINTS: usize = 1 << 17;
/// Numbers of short lines that are transformed at once, and how many lines at most.
const JOINED_POINTS: usize = 1 << 11;
const MOST_JOINED: usize = 256;
/// Lines that a tile has at least, where there are as many.
const LEAST: usize = 4;

/// An array as the walk sees it: strides in numbers.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) strides: &'a [i64],
}

/// The lines of a source and a target, whose sizes are the same in all dimensions but one.
pub(crate) struct Lines {
    /// Sizes of the other dimensions, the one with the target's smallest strides first.
    shape: SmallVec<[usize; 6]>,
    source: SmallVec<[isize; 6]>,
    target: SmallVec<[isize; 6]>,
    /// The distance between the numbers of a line in the source.
    pub(crate) source_step: isize,
    /// The distance between the numbers of a line in the target.
    pub(crate) target_step: isize,
    /// Lines of a tile.
    tile: usize,
}

/// Neighbouring lines: the beginning of the first in both arrays, and their number.
pub(crate) struct LineTile {
    /// The number of the first line among those along the innermost of the other dimensions.
    pub(crate) first: usize,
    pub(crate) source: isize,
    pub(crate) target: isize,
    pub(crate) lines: usize,
}

impl Lines {
    /// The lines along `dim`; `n` is the larger length of a line on the two sides.
    pub(crate) fn new(
        shape: &[i64],
        dim: usize,
        source: Side<'_>,
        target: Side<'_>,
        n: usize,
    ) -> Self {
        let mut order: SmallVec<[usize; 6]> =
            (0..shape.len()).rev().filter(|&d| d != dim && shape[d] != 1).collect();
        order.sort_by_key(|&d| target.strides[d].unsigned_abs());
        let mut lines = Lines {
            shape: SmallVec::new(),
            source: SmallVec::new(),
            target: SmallVec::new(),
            source_step: source.strides[dim] as isize,
            target_step: target.strides[dim] as isize,
            tile: 1,
        };
        for d in order {
            lines.push(shape[d] as usize, source.strides[d] as isize, target.strides[d] as isize);
        }
        if n > 1 && (lines.source_step != 1 || lines.target_step != 1) {
            lines.tile = (TILE_POINTS / n).clamp(LEAST, TILE);
        }
        lines
    }

    /// Adds a dimension, which may go on where the last one ends.
    fn push(&mut self, size: usize, source: isize, target: isize) {
        if let Some(last) = self.shape.len().checked_sub(1) {
            let reach = self.shape[last] as isize;
            if self.source[last] * reach == source && self.target[last] * reach == target {
                self.shape[last] *= size;
                return;
            }
        }
        self.shape.push(size);
        self.source.push(source);
        self.target.push(target);
    }

    /// Lines of `a b` numbers as matrices of `a` rows of `b`: the columns of one, which are copied into a matrix without gaps, and the
    /// rows of that, which are copied to the line as columns of a matrix of `b` rows.
    pub(crate) fn as_matrix(&self, (a, b): (usize, usize)) -> [Lines; 2] {
        let (a, b) = (a as i64, b as i64);
        let (from, to) = (self.source_step as i64, self.target_step as i64);
        let (source, between, target) = ([b * from, from], [b, 1], [to, a * to]);
        let [source, between, target] =
            [&source, &between, &target].map(|strides| Side { strides });
        [
            Lines::new(&[a, b], 0, source, between, a as usize),
            Lines::new(&[a, b], 1, between, target, b as usize),
        ]
    }

    /// Where each line begins in the source and in the target.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (isize, isize)> {
        let (source, target) = self.across();
        (0..self.tiles()).map(|nr| self.tile_at(nr)).flat_map(move |tile| {
            (0..tile.lines as isize)
                .map(move |line| (tile.source + line * source, tile.target + line * target))
        })
    }

    /// Whether lines of these lengths follow each other without gaps on both sides.
    pub(crate) fn are_dense(&self, (from, to): (usize, usize)) -> bool {
        (self.source_step, self.target_step) == (1, 1)
            && self.across() == (from as isize, to as isize)
    }

    /// Makes tiles of many lines, which have `n` numbers in the source.
    pub(crate) fn join(&mut self, n: usize) {
        self.tile = (JOINED_POINTS / n.max(1)).clamp(1, MOST_JOINED);
    }

    /// Makes tiles of `lines` lines.
    pub(crate) fn take_tiles_of(&mut self, lines: usize) {
        self.tile = lines;
    }

    /// The distances between lines of a tile, in the source and in the target.
    pub(crate) fn across(&self) -> (isize, isize) {
        (self.source.first().copied().unwrap_or(0), self.target.first().copied().unwrap_or(0))
    }
    /// Lines of a tile at most.
    pub(crate) fn tile_lines(&self) -> usize {
        self.tile.min(self.inner())
    }
    /// Lines along the innermost of the other dimensions.
    pub(crate) fn inner(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }
    fn tiles_of_inner(&self) -> usize {
        self.inner().div_ceil(self.tile)
    }
    /// How many tiles there are.
    pub(crate) fn tiles(&self) -> usize {
        self.tiles_of_inner() * self.shape.iter().skip(1).product::<usize>()
    }
    /// The tile with this number.
    pub(crate) fn tile_at(&self, index: usize) -> LineTile {
        let first = index % self.tiles_of_inner() * self.tile;
        let (across_source, across_target) = self.across();
        let (mut source, mut target) =
            (first as isize * across_source, first as isize * across_target);
        let mut rest = index / self.tiles_of_inner();
        for d in 1..self.shape.len() {
            let at = (rest % self.shape[d]) as isize;
            rest /= self.shape[d];
            source += at * self.source[d];
            target += at * self.target[d];
        }
        LineTile { first, source, target, lines: self.tile.min(self.inner() - first) }
    }
}

/// The layout of numbers: the distances between the numbers of a line, and between lines.
#[derive(Clone, Copy)]
pub(crate) struct LineLayout {
    pub(crate) step: isize,
    pub(crate) across: isize,
}

/// Copies `lines` lines of `n` numbers into `buffer`, where they begin `pitch` apart.
///
/// # Safety
/// Each number that `layout` reaches from `source` is live memory.
pub(crate) unsafe fn gather<S: Copy>(
    source: *const S,
    layout: LineLayout,
    (lines, n, pitch): (usize, usize, usize),
    buffer: &mut [S],
) {
    assert!(lines == 0 || (lines - 1) * pitch + n <= buffer.len(), "the buffer holds the tile");
    if layout.step == 1 && layout.across == n as isize && pitch == n {
        // SAFETY: the caller promised it: the lines follow each other.
        unsafe { source.copy_to_nonoverlapping(buffer.as_mut_ptr(), lines * n) };
        return;
    }
    if layout.step == 1 || lines == 1 {
        for line in 0..lines {
            let from = source.wrapping_offset(line as isize * layout.across);
            for (k, number) in buffer[line * pitch..][..n].iter_mut().enumerate() {
                // SAFETY: the caller promised it.
                *number = unsafe { *from.wrapping_offset(k as isize * layout.step) };
            }
        }
        return;
    }
    for k in 0..n {
        let from = source.wrapping_offset(k as isize * layout.step);
        for line in 0..lines {
            // SAFETY: the caller promised it.
            buffer[line * pitch + k] =
                unsafe { *from.wrapping_offset(line as isize * layout.across) };
        }
    }
}

/// Copies lines of a buffer back, as [`gather`] brought them.
///
/// # Safety
/// Each number that `layout` reaches from `target` is live memory that nobody else reads or writes now.
pub(crate) unsafe fn scatter<D: Copy>(
    target: *mut D,
    layout: LineLayout,
    (lines, n, pitch): (usize, usize, usize),
    buffer: &[D],
) {
    assert!(lines == 0 || (lines - 1) * pitch + n <= buffer.len(), "the buffer holds the tile");
    for k in 0..n {
        let to = target.wrapping_offset(k as isize * layout.step);
        for line in 0..lines {
            // SAFETY: the caller promised it.
            unsafe {
                *to.wrapping_offset(line as isize * layout.across) = buffer[line * pitch + k];
            };
        }
    }
}
