//! The one place that picks the instruction set.
//!
//! A loop is written once, as plain Rust, and compiled once per `SimdLevel`; LLVM turns it into vector
//! code for the registers that level has. `level()` is asked once per kernel call. Invariant: all
//! levels give the same bits, because the code is the same and Rust never contracts or reorders
//! floating-point arithmetic (fused multiply-adds are written as `mul_add`); where an instruction rounds
//! differently, as that for pairs of `bfloat16`, the kernel's page says so. On machines other than x86-64 there is one
//! level, which on aarch64 already means NEON. `PULLBACK_CPU` lowers it for a whole process (`setting`).

pub mod math_f32;
pub mod math_f64;
pub mod quick_f32;
mod setting;
pub(crate) mod transpose;

pub(crate) use setting::allows_tiles;
pub use setting::{capability, ceiling};

use std::sync::atomic::{AtomicU8, Ordering};

/// Prefetches the cache line at `at`; any address is allowed.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which every x86-64 machine has and which never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The instruction set that kernels are compiled for and run with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum SimdLevel {
    /// What every machine of the target has (SSE2 on x86-64, NEON on aarch64).
    Baseline = 1,
    /// AVX2, FMA, BMI and F16C: 256-bit registers.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ and VL: 512-bit registers.
    Avx512 = 3,
}

impl SimdLevel {
    /// Every level, lowest first.
    pub const ALL: [SimdLevel; 3] = [SimdLevel::Baseline, SimdLevel::Avx2, SimdLevel::Avx512];

    /// PyTorch's word for it: `DEFAULT`, `AVX2` or `AVX512`.
    pub const fn torch_name(self) -> &'static str {
        match self {
            SimdLevel::Baseline => "DEFAULT",
            SimdLevel::Avx2 => "AVX2",
            SimdLevel::Avx512 => "AVX512",
        }
    }
}

/// The level in use; 0 until it is first requested.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that kernels use: [`ceiling`], unless [`set_level`] lowered it.
#[inline(always)]
pub fn level() -> SimdLevel {
    match LEVEL.load(Ordering::Relaxed) {
        1 => SimdLevel::Baseline,
        2 => SimdLevel::Avx2,
        3 => SimdLevel::Avx512,
        _ => first_level(),
    }
}

/// Finds the level that the processor supports and the environment allows, and stores it.
#[cold]
#[inline(never)]
fn first_level() -> SimdLevel {
    setting::report();
    set_level(SimdLevel::Avx512)
}

/// Restricts kernels to `wanted` or to [`ceiling`], whichever is lower; returns the level now in use. For tests:
/// programs have no reason to call it.
pub fn set_level(wanted: SimdLevel) -> SimdLevel {
    let level = wanted.min(ceiling());
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// The highest level of this machine, whatever the environment says.
#[cfg(target_arch = "x86_64")]
pub fn highest_level() -> SimdLevel {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if avx512 {
        SimdLevel::Avx512
    } else if avx2 {
        SimdLevel::Avx2
    } else {
        SimdLevel::Baseline
    }
}

/// The highest level of this machine, whatever the environment says.
#[cfg(not(target_arch = "x86_64"))]
pub fn highest_level() -> SimdLevel {
    SimdLevel::Baseline
}

/// Compiles a function once per [`SimdLevel`] and calls the version of the level in use.
///
/// `multiversion! { pub fn sum<T: Number>(a: &[T]) -> T { ... } }`. What the body calls must be
/// `#[inline(always)]` to be compiled with it; closures passed to other functions are not.
#[macro_export]
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($g:ident : $bound:path),+>)?
        ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($g: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($g: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2 $(<$($g: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? {
                body $(::<$($g),+>)? ($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx512 $(<$($g: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? {
                body $(::<$($g),+>)? ($($arg),*)
            }
            #[inline(never)]
            fn baseline $(<$($g: $bound),+>)? ($($arg: $ty),*) $(-> $ret)? {
                body $(::<$($g),+>)? ($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            match $crate::simd::level() {
                // SAFETY: `level` returns only what the processor was found to have.
                $crate::simd::SimdLevel::Avx512 => return unsafe { avx512 $(::<$($g),+>)? ($($arg),*) },
                // SAFETY: as above.
                $crate::simd::SimdLevel::Avx2 => return unsafe { avx2 $(::<$($g),+>)? ($($arg),*) },
                $crate::simd::SimdLevel::Baseline => {}
            }
            baseline $(::<$($g),+>)? ($($arg),*)
        }
    };
}
