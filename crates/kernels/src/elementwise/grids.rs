//! Runs over any number of dimensions, cut into grids.
//!
//! Of the dimensions around a run one gives rows at regular distances, the inner others a list of places (which may begin
//! with a list of the caller's), and what remains are units of work, several hundred runs each, so that what a unit costs
//! does not count.

use super::runs::{Grid, Kind, PLACES, Place, Places, copy_runs};
use crate::parallel;
use smallvec::SmallVec;

/// Bytes from which work is worth splitting over threads.
pub(crate) const GRAIN: usize = 1 << 17;
/// Rows from which a loop over them is better than a list of places.
const ROWS: usize = 16;
/// Most runs of a grid.
const RUNS: usize = 8192;
/// Bytes of each side that rows may touch if they are walked several times: part of the first-level cache.
const NEAR: isize = 1 << 14;

/// A dimension: its size, and the bytes of a step in the output and in the input.
#[derive(Clone, Copy)]
pub(crate) struct Dim {
    pub(crate) size: usize,
    pub(crate) steps: [isize; 2],
}

/// `n` elements of `size` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) kind: Kind,
    pub(crate) size: usize,
    pub(crate) n: usize,
}

impl Run {
    /// One element.
    pub(crate) fn element(size: usize) -> Run {
        Run { kind: Kind::Dense, size, n: 1 }
    }
    /// The same with few bytes as one element.
    pub(crate) fn widened(self) -> Run {
        let bytes = self.size * self.n;
        let is_element = self.kind == Kind::Dense && bytes <= 64 && bytes.is_power_of_two();
        if is_element { Run::element(bytes) } else { self }
    }
}

/// What positions of a dimension outside of the grid are.
#[derive(Clone, Copy)]
enum Role {
    Run,
    Row,
    Place,
    Whole,
}

/// A dimension outside of the grid, or inside of it in parts of `tile`.
struct Outer {
    dim: Dim,
    tile: usize,
    role: Role,
}

/// Runs at all positions of some dimensions.
pub(crate) struct Grids {
    to: *mut u8,
    from: *const u8,
    /// The run, rows and places of a whole unit.
    run: Run,
    rows: usize,
    jumps: [isize; 2],
    places: Places,
    /// Places for each position of the tiled dimension.
    inner: usize,
    outer: SmallVec<[Outer; 6]>,
}

// SAFETY: threads write disjoint elements and only read the input, as the caller of `copy` promises.
unsafe impl Sync for Grids {}

impl Grids {
    /// The runs at each of `list` (at most `PLACES`) at each position of `dims`, innermost first.
    pub(crate) fn new(
        (to, from): (*mut u8, *const u8),
        run: Run,
        list: &[Place],
        dims: &[Dim],
    ) -> Grids {
        let mut grids = Grids {
            to,
            from,
            run: Run { n: run.n.min(GRAIN / run.size), ..run },
            rows: 1,
            jumps: [0; 2],
            places: SmallVec::from_slice(list),
            inner: list.len(),
            outer: SmallVec::new(),
        };
        if grids.run.n < run.n {
            let size = run.size as isize;
            let step = match run.kind {
                Kind::Dense => size,
                Kind::Reversed => -size,
                Kind::Repeated => 0,
            };
            let dim = Dim { size: run.n, steps: [size, step] };
            grids.outer.push(Outer { dim, tile: grids.run.n, role: Role::Run });
        }
        let bytes = grids.run.n * run.size;
        let rows = grids.choose_rows(dims, bytes);
        let bytes = grids.rows * bytes;
        let room = (RUNS / grids.rows).min(GRAIN / bytes).clamp(1, PLACES);
        let mut is_full = false;
        for (_, &dim) in dims.iter().enumerate().filter(|&(at, _)| Some(at) != rows) {
            let inner = grids.places.len();
            let tile = dim.size.min(room / inner);
            if is_full || tile <= 1 {
                is_full = true;
                grids.outer.push(Outer { dim, tile: 1, role: Role::Whole });
                continue;
            }
            for position in 1..tile as isize {
                for at in 0..inner {
                    let place = grids.places[at];
                    grids.places.push([0, 1].map(|i| place[i] + position * dim.steps[i]));
                }
            }
            if tile < dim.size {
                (is_full, grids.inner) = (true, inner);
                grids.outer.push(Outer { dim, tile, role: Role::Place });
            }
        }
        grids
    }

    /// Takes one of the two innermost dimensions for rows if it is long; runs have so many bytes.
    fn choose_rows(&mut self, dims: &[Dim], bytes: usize) -> Option<usize> {
        let at = dims.iter().take(2).position(|dim| dim.size >= ROWS)?;
        let dim = dims[at];
        // How often rows are walked: if more than once, they stay near.
        let passes = self.places.len() * if at == 0 { 1 } else { dims[0].size };
        let reach = (passes * bytes.max(64)) as isize;
        let [to, from] = dim.steps.map(|step| step.abs().clamp(1, reach));
        let near = if passes == 1 { RUNS } else { (NEAR / to.max(from)) as usize };
        if near < ROWS {
            return None;
        }
        let rows = dim.size.min(near).min((GRAIN / bytes).max(1));
        (self.rows, self.jumps) = (rows, dim.steps);
        if rows < dim.size {
            self.outer.push(Outer { dim, tile: rows, role: Role::Row });
        }
        Some(at)
    }

    /// Copies all runs; on one thread in the order of the list if places of the output may repeat.
    ///
    /// # Safety
    /// Every run lies inside live memory on both sides, which do not overlap unless they are the same.
    pub(crate) unsafe fn copy(&self, repeats: bool) {
        let mut units = 1;
        for outer in &self.outer {
            units *= outer.dim.size.div_ceil(outer.tile);
        }
        let runs = self.rows * self.places.len();
        let most = (RUNS / runs).min(GRAIN / (runs * self.run.n * self.run.size)).max(1);
        parallel::for_range(units, if repeats { units } else { most }, &|range| {
            for unit in range {
                // SAFETY: the caller's promise.
                unsafe { self.copy_unit(unit) };
            }
        });
    }

    /// # Safety
    /// As [`Grids::copy`].
    unsafe fn copy_unit(&self, mut unit: usize) {
        let (mut to, mut from) = (self.to, self.from);
        let (mut n, mut rows, mut places) = (self.run.n, self.rows, &self.places[..]);
        for Outer { dim, tile, role } in &self.outer {
            let count = dim.size.div_ceil(*tile);
            let first = unit % count * tile;
            unit /= count;
            to = to.wrapping_offset(first as isize * dim.steps[0]);
            from = from.wrapping_offset(first as isize * dim.steps[1]);
            let length = (dim.size - first).min(*tile);
            match role {
                Role::Run => n = length,
                Role::Row => rows = length,
                Role::Place => places = &places[..length * self.inner],
                Role::Whole => {}
            }
        }
        let grid = Grid { to, from, places, rows, jumps: self.jumps };
        // SAFETY: the caller's promise.
        unsafe { copy_runs(&grid, self.run.kind, self.run.size, n) };
    }
}
