//! What the transform of a length needs in tiles: the levels with their roots of unity, and the order of the results.

use super::{CacheLine, Job, lanes, run};
use crate::long::as_real;
use crate::plan::FftReal;
use pullback_kernels::{Result, memory};
use std::sync::Mutex;

/// Rows of a block up to which all its levels are done one after the other: 32 KiB.
const BLOCK: usize = 256;
/// Rows up to which a plan keeps the memory of tiles from call to call, and of how many tiles.
const KEPT_ROWS: usize = 1025;
const KEPT: usize = 8;

/// One level: blocks of `radix m` rows.
struct Level<T> {
    radix: usize,
    m: usize,
    /// `w^(p k)` of a block, for all `p` below `m` and `k` from 1 below `radix`; none for `m = 1`.
    roots: Vec<T>,
}

/// The plan of lines of `n` complex numbers, or of `2 n` real ones; one for both directions.
pub(crate) struct TilePlan<T> {
    pub(crate) n: usize,
    levels: Vec<Level<T>>,
    /// The row of each result, and `n` at the end, where half a spectrum goes on.
    pub(crate) places: Vec<u32>,
    /// `exp(-2 pi i k / 2 n)` for `k` up to `n / 2`.
    real_roots: Vec<T>,
    /// Tiles that earlier calls have left: fresh memory comes page by page.
    left: Mutex<Vec<Vec<CacheLine>>>,
}

/// `exp(-2 pi i k / n)`, computed in double precision.
pub(super) fn root<T: FftReal>(k: usize, n: usize) -> [T; 2] {
    let angle = -std::f64::consts::TAU * ((k % n) as f64 / n as f64);
    let (sin, cos) = angle.sin_cos();
    [as_real::<T>(cos), as_real::<T>(sin)]
}

/// The levels: eights and, for the remainder, fours; `n` is a power of two for which
/// [`super::is_tiled`] holds.
fn radices(n: usize) -> impl Iterator<Item = usize> {
    let exponent = n.trailing_zeros() as usize;
    let fours = (3 - exponent % 3) % 3;
    let eights = (exponent - 2 * fours) / 3;
    std::iter::repeat_n(8, eights).chain(std::iter::repeat_n(4, fours))
}

impl<T: FftReal> TilePlan<T> {
    /// The plan. The caller has made sure that there is memory for it.
    pub(crate) fn new(n: usize) -> Self {
        let (mut levels, mut block, mut places) = (Vec::new(), n, vec![0_u32]);
        for radix in radices(n) {
            let m = block / radix;
            let mut roots = Vec::new();
            if m > 1 {
                // bounded: by what `prepared` has probed.
                roots.extend(
                    (0..m).flat_map(|p| (1..radix).flat_map(move |k| root::<T>(p * k, block))),
                );
            }
            levels.push(Level { radix, m, roots });
            // Result `k + radix k'` is result `k'` of block `k`.
            places = (0..radix * places.len())
                .map(|at| places[at % places.len()] + (at / places.len() * m) as u32)
                .collect();
            block = m;
        }
        places.push(n as u32);
        TilePlan {
            n,
            levels,
            places,
            real_roots: (0..=n / 2).flat_map(|k| root::<T>(k, 2 * n)).collect(),
            left: Mutex::new(Vec::new()),
        }
    }

    /// Memory for a tile.
    pub(crate) fn tile(&self) -> Result<Vec<CacheLine>> {
        match self.left.try_lock().ok().and_then(|mut left| left.pop()) {
            Some(tile) => Ok(tile),
            None => memory::filled(CacheLine([0; 8]), 2 * (self.n + 1)),
        }
    }
    /// Leaves the memory to later calls.
    pub(crate) fn leave(&self, tiles: Vec<Vec<CacheLine>>) {
        if self.n < KEPT_ROWS
            && let Ok(mut left) = self.left.try_lock()
        {
            let room = KEPT.saturating_sub(left.len());
            // bounded: by `KEPT`.
            left.extend(tiles.into_iter().take(room));
        }
    }

    /// Transforms the first `n` rows; the results lie at [`TilePlan::places`].
    pub(crate) fn transform(&self, tile: &mut [CacheLine], forward: bool) {
        assert!(tile.len() >= 2 * self.n, "a row for each number");
        let parts = if forward { (0, lanes::<T>()) } else { (lanes::<T>(), 0) };
        // SAFETY: the tile has the rows.
        unsafe { descend(tile.as_mut_ptr().cast(), self.n, &self.levels, parts) }
    }

    /// Makes results of pairs of real numbers half their spectrum.
    pub(crate) fn split_spectrum(&self, tile: &mut [CacheLine]) {
        assert!(tile.len() >= 2 * (self.n + 1), "a row for each number, and one more");
        let x = tile.as_mut_ptr().cast();
        // SAFETY: as asserted.
        unsafe { run(Job::SplitSpectrum { x, places: &self.places, roots: &self.real_roots }) }
    }

    /// Makes half a spectrum the transform of pairs of real numbers.
    pub(crate) fn join_spectrum(&self, tile: &mut [CacheLine]) {
        assert!(tile.len() >= 2 * (self.n + 1), "a row for each number, and one more");
        // SAFETY: as asserted.
        unsafe { run(Job::JoinSpectrum { x: tile.as_mut_ptr().cast(), roots: &self.real_roots }) }
    }
}

/// All levels of the `rows` rows at `x`.
///
/// # Safety
/// They are rows of a tile, and nobody else uses them.
unsafe fn descend<T: FftReal>(x: *mut T, rows: usize, levels: &[Level<T>], parts: (usize, usize)) {
    let Some((first, rest)) = levels.split_first() else { return };
    let job = |level: &Level<T>| {
        let (m, count, block) = (level.m, rows / (level.radix * level.m), &level.roots[..]);
        // SAFETY: the blocks of a level are all the rows.
        unsafe {
            match level.radix {
                4 => run(Job::Four { x, m, count, roots: block, parts }),
                _ => run(Job::Eight { x, m, count, roots: block, parts }),
            }
        }
    };
    job(first);
    if rows <= BLOCK {
        rest.iter().for_each(job);
        return;
    }
    for block in 0..first.radix {
        // SAFETY: a block is `m` of the rows.
        unsafe { descend(x.add(block * first.m * 2 * lanes::<T>()), first.m, rest, parts) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_multiply_to_the_length_and_places_are_a_permutation() {
        for exponent in 3..=12 {
            let n = 1_usize << exponent;
            assert_eq!(radices(n).product::<usize>(), n);
            let plan = TilePlan::<f32>::new(n);
            let mut places = plan.places.clone();
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..=n as u32));
        }
    }
}
