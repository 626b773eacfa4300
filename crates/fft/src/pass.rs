//! One pass: the transform of all lines along a dimension, tile by tile.
//!
//! A tile is copied into a buffer, transformed there, and written where it belongs; lines without gaps in the target are written
//! at once. A pass is prepared first, with a work area for each thread that may take part, and then run.

use crate::algorithm::{self, FftAlgorithm};
use crate::lines::{LineLayout, Lines, Side, gather, scatter};
use crate::long::{Split, as_real};
use crate::plan::{self, FftReal, LinePlan};
use num_complex::Complex;
use pullback_kernels::{Result, memory, parallel, plan::announce};
use std::ops::Mul;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers from which work is split among threads.
const GRAIN: usize = 1 << 14;

/// What is done with each line when it was transformed: its number among its neighbours, and its numbers.
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

/// Sizes of that memory.
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
        let algorithm = algorithm::of_short_lines(&lines, (from, to), plan.takes_many());
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
    Plain(Box<Pass<Complex<T>, Complex<T>, T>>, f64),
    Long(Box<LongPass<T>>),
}

impl<T: FftReal> ComplexPass<T> {
    pub(crate) fn new(lines: Lines, n: usize, forward: bool, scale: f64) -> Result<Self> {
        let algorithm = algorithm::of_complex(&lines, n);
        announce("Fourier transform of complex numbers", &algorithm);
        if algorithm != FftAlgorithm::FourStep {
            let pass = Pass::new(lines, plan::complex(n, forward)?)?;
            return Ok(ComplexPass::Plain(Box::new(pass), scale));
        }
        let plan = plan::split::<T>(n, forward)?;
        let (a, b) = (plan.sizes.0 as i64, plan.sizes.1 as i64);
        let (from, to) = (lines.source_step as i64, lines.target_step as i64);
        // The strides of the line as a matrix, of the matrix between the steps, and of the transposed result.
        let (source, between, target) = ([b * from, from], [b, 1], [to, a * to]);
        let sides = [&source, &between, &target].map(|strides| Side { strides });
        let of_columns = Lines::new(&[a, b], 0, sides[0], sides[1], a as usize);
        let of_rows = Lines::new(&[a, b], 1, sides[1], sides[2], b as usize);
        Ok(ComplexPass::Long(Box::new(LongPass {
            lines,
            columns: Pass::new(of_columns, Arc::clone(&plan.columns))?,
            rows: Pass::new(of_rows, Arc::clone(&plan.rows))?,
            matrix: Mutex::new(plan.matrix()?),
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
                ComplexPass::Plain(pass, scale) => {
                    pass.run(source, target, &scaled::<Complex<T>, T>(*scale))
                }
                ComplexPass::Long(pass) => pass.run(source, target),
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
        self.plan.leave(std::mem::take(matrix));
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
        let (across_source, across_target) = self.lines.across();
        for tile in (0..self.lines.tiles()).map(|nr| self.lines.tile_at(nr)) {
            for line in 0..tile.lines as isize {
                let from = source.wrapping_offset(tile.source + line * across_source);
                let to = target.wrapping_offset(tile.target + line * across_target);
                // SAFETY: the line is `a` rows of `b` numbers of the caller's memory, and the matrix is as large.
                unsafe {
                    self.columns.run(from, matrix.as_mut_ptr(), &twisted)?;
                    self.rows.run(matrix.as_ptr(), to, &last)?;
                }
            }
        }
        Ok(())
    }
}

/// A pointer that threads share.
struct SharedPtr<P>(*mut P);

impl<P> SharedPtr<P> {
    fn get(&self) -> *mut P {
        self.0
    }
}

// SAFETY: threads read and write different lines of what it points to.
unsafe impl<P: Send> Sync for SharedPtr<P> {}
