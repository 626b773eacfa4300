//! One pass: the transform of all lines along a dimension, tile by tile.
//!
//! A tile is copied into a buffer, transformed there, and written where it belongs; lines without gaps in the target are written
//! at once. A pass is prepared first, with a work area for each thread that may take part, and then run.

use crate::algorithm::{self, FftAlgorithm};
use crate::lines::{LineLayout, Lines, gather, scatter};
use crate::long::{self, Split, as_real};
use crate::plan::{self, FftReal, LinePlan};
use crate::tile::{LongTilePass, TileKind, TilePass};
use num_complex::Complex;
use pullback_kernels::{Result, memory, parallel, plan::announce};
use std::ops::Mul;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers from which work is split among threads.
pub(crate) const GRAIN: usize = 1 << 14;

/// The function applied to each transformed line: it gets the line's number among its neighbours,
/// and its numbers.
pub(crate) type Finish<'a, D> = dyn Fn(usize, &mut [D]) + Sync + 'a;

/// Multiplies lines.
pub(crate) fn scaled<D: Copy + Mul<T, Output = D>, T: FftReal>(
    scale: f64,
) -> impl Fn(usize, &mut [D]) + Sync {
    let factor = as_real::<T>(scale);
    move |_, line| {
        if scale != 1.0 {
            for number in line {
                *number = *number * factor;
            }
        }
    }
}

/// The memory that one thread needs.
struct PassWork<S, D, T> {
    input: Vec<S>,
    output: Vec<D>,
    scratch: Vec<Complex<T>>,
}

/// The sizes of that memory.
#[derive(Clone, Copy)]
struct PassSizes {
    /// Lines of a tile.
    lines: usize,
    /// Numbers from line to line of a tile that was copied.
    input_pitch: usize,
    /// Numbers from line to line of a tile of results; 0 where results are written to the target at once.
    output_pitch: usize,
    scratch: usize,
    /// Whether all lines of a tile are transformed by one call.
    joined: bool,
}

impl PassSizes {
    fn allocate<S: Copy + Default, D: Copy + Default, T: FftReal>(
        self,
    ) -> Result<PassWork<S, D, T>> {
        Ok(PassWork {
            input: memory::filled(S::default(), self.lines * self.input_pitch)?,
            output: memory::filled(D::default(), self.lines * self.output_pitch)?,
            scratch: memory::filled(Complex::new(T::zero(), T::zero()), self.scratch)?,
        })
    }
}

/// Numbers between the beginnings of two lines in a buffer. Powers of two, which would meet in few places of a cache, are made
/// longer.
fn pitch(n: usize, lines: usize) -> usize {
    if lines > 1 && n.is_multiple_of(64) { n + 8 } else { n }
}

/// A prepared pass.
pub(crate) struct Pass<S, D, T> {
    lines: Lines,
    plan: LinePlan<S, D, T>,
    sizes: PassSizes,
    /// Tiles that are one thread's at once.
    grain: usize,
    free: Mutex<Vec<PassWork<S, D, T>>>,
}

impl<S, D, T> Pass<S, D, T>
where
    S: Copy + Default + Send,
    D: Copy + Default + Send,
    T: FftReal,
{
    pub(crate) fn new(mut lines: Lines, plan: LinePlan<S, D, T>) -> Result<Self> {
        let (from, to) = plan.lengths();
        let algorithm = algorithm::of_single_lines(&lines, (from, to), plan.takes_many());
        let joined = algorithm == FftAlgorithm::Joined;
        if joined {
            lines.join(from);
        }
        let at_once = lines.tile_lines();
        let sizes = PassSizes {
            lines: at_once,
            input_pitch: if joined { from } else { pitch(from, at_once) },
            output_pitch: if lines.target_step == 1 { 0 } else { pitch(to, at_once) },
            scratch: plan.scratch(),
            joined,
        };
        let grain = (GRAIN / (from.max(to) * at_once).max(1)).max(1);
        let threads = parallel::num_threads().min(lines.tiles().div_ceil(grain));
        // bounded: by the threads.
        let free = (0..threads).map(|_| sizes.allocate()).collect::<Result<_>>()?;
        Ok(Pass { lines, plan, sizes, grain, free: Mutex::new(free) })
    }

    /// Transforms all lines.
    ///
    /// # Safety
    /// What the lines reach from `source` and `target` is live memory, and nobody else uses that of the target. The two are apart,
    /// or each line is read from where it is written to.
    pub(crate) unsafe fn run(
        &self,
        source: *const S,
        target: *mut D,
        finish: &Finish<'_, D>,
    ) -> Result<()> {
        let (source, target) = (SharedPtr(source.cast_mut()), SharedPtr(target));
        parallel::try_for_range(self.lines.tiles(), self.grain, &|range| {
            let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // (There is none left only where the number of threads was raised meanwhile.)
            let mut work = kept.map_or_else(|| self.sizes.allocate(), Ok)?;
            for nr in range {
                // SAFETY: as the caller promised; tiles are apart.
                unsafe {
                    self.tile(nr, source.get().cast_const(), target.get(), finish, &mut work);
                };
            }
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(work);
            Ok(())
        })
    }

    /// Transforms one tile.
    ///
    /// # Safety
    /// As [`Pass::run`].
    unsafe fn tile(
        &self,
        nr: usize,
        source: *const S,
        target: *mut D,
        finish: &Finish<'_, D>,
        work: &mut PassWork<S, D, T>,
    ) {
        let (tile, (from, to)) = (self.lines.tile_at(nr), self.plan.lengths());
        let (across_source, across_target) = self.lines.across();
        let (source, target) =
            (source.wrapping_offset(tile.source), target.wrapping_offset(tile.target));
        let (input_pitch, output_pitch) = (self.sizes.input_pitch, self.sizes.output_pitch);
        let layout = LineLayout { step: self.lines.source_step, across: across_source };
        // SAFETY: as the caller promised.
        unsafe { gather(source, layout, (tile.lines, from, input_pitch), &mut work.input) };
        if self.sizes.joined {
            // SAFETY: as above, the lines follow each other.
            let output = unsafe { std::slice::from_raw_parts_mut(target, tile.lines * to) };
            self.plan.run(&mut work.input[..tile.lines * from], output, &mut work.scratch);
            let lines = output.chunks_exact_mut(to).enumerate();
            lines.for_each(|(line, output)| finish(tile.first + line, output));
            return;
        }
        for line in 0..tile.lines {
            let input = &mut work.input[line * input_pitch..][..from];
            let output = if output_pitch == 0 {
                let ptr = target.wrapping_offset(line as isize * across_target);
                // SAFETY: as above, `to` numbers one after the other.
                unsafe { std::slice::from_raw_parts_mut(ptr, to) }
            } else {
                &mut work.output[line * output_pitch..][..to]
            };
            self.plan.run(input, output, &mut work.scratch);
            finish(tile.first + line, output);
        }
        if output_pitch > 0 {
            let layout = LineLayout { step: self.lines.target_step, across: across_target };
            // SAFETY: as above.
            unsafe { scatter(target, layout, (tile.lines, to, output_pitch), &work.output) };
        }
    }
}

/// A pass of a complex transform, whose lines may be split.
pub(crate) enum ComplexPass<T: FftReal> {
    Lanes(Box<TilePass<T>>, f64),
    Plain(Box<Pass<Complex<T>, Complex<T>, T>>, f64),
    Long(Box<LongPass<T>>),
    LongLanes(Box<LongTilePass<T>>),
}

impl<T: FftReal> ComplexPass<T> {
    pub(crate) fn new(lines: Lines, n: usize, forward: bool, scale: f64) -> Result<Self> {
        let algorithm = algorithm::of_complex::<T>(&lines, n);
        announce("Fourier transform of complex numbers", &algorithm);
        match algorithm {
            FftAlgorithm::Lanes => {
                let kind = if forward { TileKind::Forward } else { TileKind::Inverse };
                Ok(ComplexPass::Lanes(Box::new(TilePass::new(lines, n, kind)?), scale))
            }
            FftAlgorithm::FourStep => Self::of_long_lines(lines, n, forward, scale),
            FftAlgorithm::Joined | FftAlgorithm::Tiled => {
                let pass = Pass::new(lines, plan::complex(n, forward)?)?;
                Ok(ComplexPass::Plain(Box::new(pass), scale))
            }
        }
    }

    fn of_long_lines(lines: Lines, n: usize, forward: bool, scale: f64) -> Result<Self> {
        if let Some(sizes) = long::tiled_factors(n) {
            let pass = LongTilePass::new(lines, sizes, forward, scale)?;
            return Ok(ComplexPass::LongLanes(Box::new(pass)));
        }
        let plan = plan::split::<T>(n, forward)?;
        let [of_columns, of_rows] = lines.as_matrix(plan.sizes);
        Ok(ComplexPass::Long(Box::new(LongPass {
            lines,
            columns: Pass::new(of_columns, Arc::clone(&plan.columns))?,
            rows: Pass::new(of_rows, Arc::clone(&plan.rows))?,
            matrix: Mutex::new(plan.matrix.take(n)?),
            plan,
            scale,
        })))
    }

    /// Transforms all lines.
    ///
    /// # Safety
    /// As [`Pass::run`].
    pub(crate) unsafe fn run(
        &self,
        source: *const Complex<T>,
        target: *mut Complex<T>,
    ) -> Result<()> {
        // SAFETY: as the caller promised.
        unsafe {
            match self {
                ComplexPass::Lanes(pass, scale) => pass.run(source.cast(), target.cast(), *scale),
                ComplexPass::Plain(pass, scale) => {
                    pass.run(source, target, &scaled::<Complex<T>, T>(*scale))
                }
                ComplexPass::Long(pass) => pass.run(source, target),
                ComplexPass::LongLanes(pass) => pass.run(source.cast(), target.cast()),
            }
        }
    }
}

/// A pass from real numbers to their spectrum or half of it.
pub(crate) enum FromRealPass<T: FftReal> {
    Lanes(Box<TilePass<T>>),
    Plain(Box<Pass<T, Complex<T>, T>>),
}

impl<T: FftReal> FromRealPass<T> {
    pub(crate) fn new(lines: Lines, n: usize, is_whole: bool) -> Result<Self> {
        let lengths = (n, if is_whole { n } else { n / 2 + 1 });
        let algorithm = algorithm::of_real::<T>(&lines, n, lengths);
        announce("Fourier transform of real numbers", &algorithm);
        Ok(if algorithm == FftAlgorithm::Lanes {
            FromRealPass::Lanes(Box::new(TilePass::new(lines, n, TileKind::FromReal)?))
        } else {
            FromRealPass::Plain(Box::new(Pass::new(lines, plan::from_real(n, is_whole)?)?))
        })
    }

    /// # Safety
    /// As [`Pass::run`].
    pub(crate) unsafe fn run(
        &self,
        source: *const T,
        target: *mut Complex<T>,
        scale: f64,
    ) -> Result<()> {
        // SAFETY: as the caller promised.
        unsafe {
            match self {
                FromRealPass::Lanes(pass) => pass.run(source, target.cast(), scale),
                FromRealPass::Plain(pass) => {
                    pass.run(source, target, &scaled::<Complex<T>, T>(scale))
                }
            }
        }
    }
}

/// A pass from half a spectrum to real numbers.
pub(crate) enum ToRealPass<T: FftReal> {
    Lanes(Box<TilePass<T>>),
    Plain(Box<Pass<Complex<T>, T, T>>),
}

impl<T: FftReal> ToRealPass<T> {
    pub(crate) fn new(lines: Lines, n: usize) -> Result<Self> {
        let algorithm = algorithm::of_real::<T>(&lines, n, (n / 2 + 1, n));
        announce("Fourier transform to real numbers", &algorithm);
        Ok(if algorithm == FftAlgorithm::Lanes {
            ToRealPass::Lanes(Box::new(TilePass::new(lines, n, TileKind::ToReal)?))
        } else {
            ToRealPass::Plain(Box::new(Pass::new(lines, plan::to_real(n)?)?))
        })
    }

    /// # Safety
    /// As [`Pass::run`].
    pub(crate) unsafe fn run(
        &self,
        source: *const Complex<T>,
        target: *mut T,
        scale: f64,
    ) -> Result<()> {
        // SAFETY: as the caller promised.
        unsafe {
            match self {
                ToRealPass::Lanes(pass) => pass.run(source.cast(), target, scale),
                ToRealPass::Plain(pass) => pass.run(source, target, &scaled::<T, T>(scale)),
            }
        }
    }
}

/// A pass whose lines are split. They come one after the other: their short lines are what threads share.
pub(crate) struct LongPass<T: FftReal> {
    lines: Lines,
    columns: Pass<Complex<T>, Complex<T>, T>,
    rows: Pass<Complex<T>, Complex<T>, T>,
    matrix: Mutex<Vec<Complex<T>>>,
    plan: Arc<Split<T>>,
    scale: f64,
}

impl<T: FftReal> Drop for LongPass<T> {
    fn drop(&mut self) {
        let matrix = self.matrix.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.plan.matrix.leave(std::mem::take(matrix));
    }
}

impl<T: FftReal> LongPass<T> {
    /// # Safety
    /// As [`Pass::run`].
    unsafe fn run(&self, source: *const Complex<T>, target: *mut Complex<T>) -> Result<()> {
        let a = self.plan.sizes.0;
        let twisted = |column: usize, line: &mut [Complex<T>]| {
            let factors = &self.plan.twiddles[column * a..][..a];
            line.iter_mut().zip(factors).for_each(|(x, &w)| *x = *x * w);
        };
        let last = scaled::<Complex<T>, T>(self.scale);
        let mut matrix = self.matrix.lock().unwrap_or_else(PoisonError::into_inner);
        self.lines.starts().try_for_each(|(from, to)| {
            let (from, to) = (source.wrapping_offset(from), target.wrapping_offset(to));
            // SAFETY: the line is `a` rows of `b` numbers of the caller's memory, and the matrix is as large.
            unsafe {
                self.columns.run(from, matrix.as_mut_ptr(), &twisted)?;
                self.rows.run(matrix.as_ptr(), to, &last)
            }
        })
    }
}

/// A pointer that threads share.
pub(crate) struct SharedPtr<P>(pub(crate) *mut P);

impl<P> SharedPtr<P> {
    pub(crate) fn get(&self) -> *mut P {
        self.0
    }
}

// SAFETY: threads read and write different lines of what it points to.
unsafe impl<P: Send> Sync for SharedPtr<P> {}
