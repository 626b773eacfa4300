//! Lines whose length is a power of two, as many at once as a vector has lanes.
//!
//! A tile holds a row for each number of a line: its real parts in all lines and then its imaginary
//! parts, two vectors of 64 bytes. So no step of the transform moves numbers between lanes:
//! splitting and transposing are done while lines are copied into a tile and back. The steps are
//! decimations in frequency by eight and four, done in place: results lie in the order of reversed
//! digits, by which rows are read when they are copied back. Blocks that the first steps leave are
//! finished one after the other, in the first cache.
//!
//! (C. Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, chapters 1 and 2; half spectra of real numbers in
//! 4.3.)

#[cfg(target_arch = "x86_64")]
mod butterfly;
mod copy;
mod long;
mod pass;
mod plan;
#[cfg(target_arch = "x86_64")]
mod vector;

pub(crate) use long::{LongTilePass, LongTilePlan};
pub(crate) use pass::{TileKind, TilePass};
pub(crate) use plan::TilePlan;

use crate::plan::FftReal;
use pullback_kernels::simd::{SimdLevel, level};

/// Lengths of lines in tiles: a tile of the longest fills a quarter of a usual second cache.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=4096;

/// What tiles need of a number type.
pub(crate) trait Tiled: Sized {
    const SQRT_HALF: Self;
    const HALF: Self;
    const NONE: Self;
    /// Its vectors with AVX-512 and with AVX2.
    #[cfg(target_arch = "x86_64")]
    type Wide: vector::Vector<Real = Self>;
    #[cfg(target_arch = "x86_64")]
    type Narrow: vector::Vector<Real = Self>;
}

impl Tiled for f32 {
    const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
    const HALF: f32 = 0.5;
    const NONE: f32 = 0.0;
    #[cfg(target_arch = "x86_64")]
    type Wide = std::arch::x86_64::__m512;
    #[cfg(target_arch = "x86_64")]
    type Narrow = std::arch::x86_64::__m256;
}

impl Tiled for f64 {
    const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const HALF: f64 = 0.5;
    const NONE: f64 = 0.0;
    #[cfg(target_arch = "x86_64")]
    type Wide = std::arch::x86_64::__m512d;
    #[cfg(target_arch = "x86_64")]
    type Narrow = std::arch::x86_64::__m256d;
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct CacheLine([u64; 8]);

/// Lines of a tile.
pub(crate) const fn lanes<T>() -> usize {
    size_of::<CacheLine>() / size_of::<T>()
}

/// Whether lines of `n` complex numbers, or of `2 n` real ones, are transformed in tiles where there are enough of them.
pub(crate) fn is_tiled(n: usize) -> bool {
    cfg!(target_arch = "x86_64")
        && level() >= SimdLevel::Avx2
        && n.is_power_of_two()
        && LENGTHS.contains(&n)
}

/// Factors for row `k` and each lane: the products of `fine[k][lane]`, which lies as a tile does, and of `coarse[k]`.
#[derive(Clone, Copy)]
pub(crate) struct Twist<'a, T> {
    pub(crate) fine: &'a [T],
    pub(crate) coarse: &'a [T],
}

impl<T> Twist<'_, T> {
    const fn none() -> Self {
        Twist { fine: &[], coarse: &[] }
    }
}

/// A step on the tile at `x`.
#[derive(Clone, Copy)]
enum Job<'a, T> {
    /// A level by four or eight: `count` blocks of as many times `m` rows.
    Four {
        x: *mut T,
        m: usize,
        count: usize,
        roots: &'a [T],
        parts: (usize, usize),
    },
    Eight {
        x: *mut T,
        m: usize,
        count: usize,
        roots: &'a [T],
        parts: (usize, usize),
    },
    /// From the transform of pairs to the spectrum of real numbers.
    SplitSpectrum {
        x: *mut T,
        places: &'a [u32],
        roots: &'a [T],
    },
    /// The inverse of `SplitSpectrum`, before the transform.
    JoinSpectrum {
        x: *mut T,
        roots: &'a [T],
    },
    /// Transposes a square of as many numbers each way as there are lanes; steps in numbers.
    Turn {
        to: *mut T,
        to_step: isize,
        from: *const T,
        from_step: isize,
    },
    /// Copies complex numbers whose lines are neighbours into the tile, `step` numbers from row to row.
    Gather {
        x: *mut T,
        source: *const T,
        step: isize,
        rows: usize,
    },
    /// Copies complex numbers of the tile back to neighbouring lines, row `places[k]` as number
    /// `k`.
    Scatter {
        x: *mut T,
        places: &'a [u32],
        target: *mut T,
        step: isize,
        finish: copy::TileFinish<'a, T>,
    },
}

/// Does `job` with the vectors that the processor has.
///
/// # Safety
/// `x` points to a tile of as many rows as the job names, and nobody else uses it; what the other pointers reach is live, and in a
/// target nobody else's. [`is_tiled`] has said yes to some length.
unsafe fn run<T: FftReal>(job: Job<'_, T>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the level is present, and so is the one below it.
    unsafe {
        if level() == SimdLevel::Avx512 { wide(job) } else { narrow(job) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("nothing is tiled on this architecture, {}", size_of_val(&job));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
unsafe fn wide<T: FftReal>(job: Job<'_, T>) {
    // SAFETY: as `run`.
    unsafe { butterfly::work::<T::Wide>(job) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn narrow<T: FftReal>(job: Job<'_, T>) {
    // SAFETY: as `run`.
    unsafe { butterfly::work::<T::Narrow>(job) }
}
