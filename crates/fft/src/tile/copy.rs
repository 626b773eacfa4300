//! Between tiles and arrays: rows of neighbours as they are, lines of adjacent numbers transposed
//! square by square, and anything else number by number.

use super::{CacheLine, Job, Twist, lanes, run};
use crate::plan::FftReal;

/// The layout of an array, in numbers of its real type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileLayout {
    /// The distance from one row of the tile to the next.
    pub(crate) step: isize,
    /// The distance from the real part to the imaginary part, or from the first number of a pair to
    /// the second.
    pub(crate) imag: isize,
    /// The distance from line to line.
    pub(crate) across: isize,
}

impl TileLayout {
    pub(crate) fn complex(step: isize, across: isize) -> Self {
        TileLayout { step: 2 * step, imag: 1, across: 2 * across }
    }
    /// The layout of real numbers, two of which are a row.
    pub(crate) fn pairs(step: isize, across: isize) -> Self {
        TileLayout { step: 2 * step, imag: step, across }
    }
    /// Whether complex numbers of all lines lie side by side.
    fn is_beside(self) -> bool {
        self.imag == 1 && self.across == 2
    }
    /// Whether the numbers of a line lie side by side.
    fn is_along(self) -> bool {
        self.imag == 1 && self.step == 2
    }
    fn at(self, row: usize, part: usize, line: usize) -> isize {
        row as isize * self.step + part as isize * self.imag + line as isize * self.across
    }
}

/// The rows of a tile that are copied, the lines that it holds, and where these lie.
#[derive(Clone, Copy)]
pub(crate) struct TileRange {
    pub(crate) rows: usize,
    pub(crate) lines: usize,
    pub(crate) layout: TileLayout,
}

/// The factors that results are multiplied by as they are copied back.
#[derive(Clone, Copy)]
pub(crate) struct TileFinish<'a, T> {
    pub(crate) scale: T,
    /// Factors of rows and lanes, for tiles whose lines are all there, side by side.
    pub(crate) twist: Option<Twist<'a, T>>,
    /// Where real and imaginary parts lie in a row, as the factors see them: exchanged, they are those of the inverse transform.
    pub(crate) parts: (usize, usize),
}

/// Rows of a square: each is a row of real parts and one of imaginary parts.
fn square_rows<T>() -> usize {
    lanes::<T>() / 2
}

/// Transposes a square of as many numbers each way as there are lanes; steps in numbers.
///
/// # Safety
/// All numbers of both squares are live, and those of `to` nobody else's.
unsafe fn turn<T: FftReal>(to: *mut T, to_step: isize, from: *const T, from_step: isize) {
    // SAFETY: the caller's promise.
    unsafe { run(Job::Turn { to, to_step, from, from_step }) };
}

/// Copies lines into the first rows of a tile; lanes without a line are zero.
///
/// # Safety
/// Each number that `range` reaches from `source` is live memory.
pub(crate) unsafe fn gather<T: FftReal>(
    tile: &mut [CacheLine],
    source: *const T,
    range: TileRange,
) {
    let (TileRange { rows, lines, layout }, lanes) = (range, lanes::<T>());
    assert!(tile.len() >= 2 * rows && lines <= lanes, "the tile holds the rows");
    let x = tile.as_mut_ptr().cast::<T>();
    let mut done = 0;
    // SAFETY: the caller's promise, and the rows are the tile's.
    unsafe {
        if lines == lanes && layout.is_beside() {
            run(Job::Gather { x, source, step: layout.step, rows });
            return;
        }
        if lines == lanes && layout.is_along() {
            for row in (0..rows / square_rows::<T>()).map(|at| at * square_rows::<T>()) {
                let from = source.wrapping_offset(layout.at(row, 0, 0));
                turn(x.add(2 * row * lanes), lanes as isize, from, layout.across);
            }
            done = rows / square_rows::<T>() * square_rows::<T>();
        }
        for (row, part) in (done..rows).flat_map(|row| [(row, 0), (row, 1)]) {
            let to = std::slice::from_raw_parts_mut(x.add((2 * row + part) * lanes), lanes);
            let from = source.wrapping_offset(layout.at(row, part, 0));
            if layout.across == 1 && lines == lanes {
                from.copy_to_nonoverlapping(to.as_mut_ptr(), lanes);
                continue;
            }
            let (used, free) = to.split_at_mut(lines);
            for (line, number) in used.iter_mut().enumerate() {
                *number = *from.wrapping_offset(line as isize * layout.across);
            }
            free.fill(T::zero());
        }
    }
}

/// Copies rows of a tile back, times what `finish` says: row `places[k]` as number `k` of the lines.
///
/// # Safety
/// Each number that `range` reaches from `target` is live memory that nobody else uses; places are below the rows of the tile.
pub(crate) unsafe fn scatter<T: FftReal>(
    tile: &mut [CacheLine],
    places: &[u32],
    target: *mut T,
    range: TileRange,
    finish: TileFinish<'_, T>,
) {
    let (TileRange { rows, lines, layout }, lanes) = (range, lanes::<T>());
    assert!(tile.len() >= 2 * rows && lines <= lanes, "the tile holds the rows");
    let (x, places) = (tile.as_mut_ptr().cast::<T>(), &places[..rows]);
    let mut done = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if lines == lanes && layout.is_beside() {
            run(Job::Scatter { x, places, target, step: layout.step, finish });
            return;
        }
        assert!(finish.twist.is_none(), "columns of a long line are neighbours");
        let scale = finish.scale;
        if lines == lanes && layout.is_along() {
            let mut block = [CacheLine([0; 8]); 16];
            for places in places.chunks_exact(square_rows::<T>()) {
                let ordered = block.as_mut_ptr().cast::<T>();
                for (k, &place) in places.iter().enumerate() {
                    let row =
                        std::slice::from_raw_parts(x.add(2 * place as usize * lanes), 2 * lanes);
                    let to = std::slice::from_raw_parts_mut(ordered.add(2 * k * lanes), 2 * lanes);
                    to.iter_mut().zip(row).for_each(|(to, &from)| *to = from * scale);
                }
                let to = target.wrapping_offset(layout.at(done, 0, 0));
                turn(to, layout.across, ordered, lanes as isize);
                done += square_rows::<T>();
            }
        }
        for (row, part) in (done..rows).flat_map(|row| [(row, 0), (row, 1)]) {
            let from = x.add((2 * places[row] as usize + part) * lanes);
            let from = std::slice::from_raw_parts(from, lines);
            let to = target.wrapping_offset(layout.at(row, part, 0));
            for (line, &number) in from.iter().enumerate() {
                *to.wrapping_offset(line as isize * layout.across) = number * scale;
            }
        }
    }
}
