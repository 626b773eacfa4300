//! Runs a plain loop in the widest vector instructions of the machine.
//!
//! `wide!` declares a function whose body is compiled three times (baseline, AVX2 with FMA, AVX-512) and
//! chosen by one cached check per call. The body is ordinary scalar Rust: nothing here names an
//! instruction, and every version computes the same bits because Rust never contracts or reorders
//! floating-point operations on its own.

use std::sync::atomic::{AtomicU8, Ordering};

/// Baseline instructions only.
pub(crate) const BASELINE: u8 = 1;
/// AVX2, FMA, F16C, BMI.
pub(crate) const AVX2: u8 = 2;
/// AVX-512 F, BW, CD, DQ, VL.
pub(crate) const AVX512: u8 = 3;

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The widest level that this machine supports.
#[inline(always)]
pub(crate) fn level() -> u8 {
    match LEVEL.load(Ordering::Relaxed) {
        0 => detect(),
        level => level,
    }
}

#[cold]
fn detect() -> u8 {
    #[cfg(target_arch = "x86_64")]
    let level = {
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
            AVX512
        } else if avx2 {
            AVX2
        } else {
            BASELINE
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let level = BASELINE;
    LEVEL.store(level, Ordering::Relaxed);
    level
}

/// Declares a function compiled for each instruction level: `wide! { fn name<T: Bound>(x: &[T]) -> T { ... } }`.
/// Every type parameter must be inferable from the arguments.
macro_rules! wide {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($g:ident : $bound:path),+>)?
        ($($arg:ident : $t:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($g: $bound),+>)? ($($arg: $t),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($g: $bound),+>)? ($($arg: $t),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx512 $(<$($g: $bound),+>)? ($($arg: $t),*) $(-> $ret)? {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2 $(<$($g: $bound),+>)? ($($arg: $t),*) $(-> $ret)? {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            match $crate::wide::level() {
                // SAFETY: the level says that the machine has every feature named above.
                $crate::wide::AVX512 => return unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                $crate::wide::AVX2 => return unsafe { avx2($($arg),*) },
                _ => {}
            }
            body($($arg),*)
        }
    };
}
pub(crate) use wide;
