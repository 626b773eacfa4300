//! Plans: the data that transforms of a length need (factors, tables of roots of unity), kept from
//! call to call.
//!
//! A plan costs about as much as a transform, or several of them for short lengths. The cache is
//! one for all threads and bounded, by number and by the lengths together. No thread waits for it:
//! one that finds it in use, which lasts for a search of a short list, makes a plan of its own
//! after a few tries. So a child process that was forked at such a moment does not hang.

use crate::line::{Full, Half, Line, ToReal};
use crate::long::Split;
use crate::tile::{LongTilePlan, TilePlan, Tiled};
use pullback_kernels::{Result, memory};
use realfft::RealFftPlanner;
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, Mutex, TryLockError};

/// The kind of transform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransformKind {
    /// Complex to complex, with `exp(-2 pi i j k / n)`.
    Forward,
    /// Complex to complex, with `exp(2 pi i j k / n)`.
    Inverse,
    /// Real to the first half of its spectrum, forward.
    Half,
    /// Real to its whole spectrum, forward.
    Whole,
    /// From the first half of a spectrum to real numbers, inverse.
    ToReal,
    /// As `Forward`, split in two steps.
    SplitForward,
    /// As `Inverse`, split in two steps.
    SplitInverse,
    /// Many lines at once, of complex numbers or of twice as many real ones, both ways.
    Tile,
    /// As `Tile`, in two steps.
    LongTile,
}

/// A prepared transform of one kind.
pub(crate) type LinePlan<S, D, T> = Arc<dyn Line<S, D, T>>;

/// A number type that transforms compute in.
pub(crate) trait FftReal: FftNum + Default + Tiled {
    /// The plans that are kept.
    fn cache() -> &'static Mutex<Cache<Self>>;
}

/// Plans, the last used ones at the end.
pub(crate) struct Cache<T>(Vec<KeptPlan<T>>);

struct KeptPlan<T> {
    kind: TransformKind,
    n: usize,
    plan: PreparedPlan<T>,
}

/// A plan, by the types of its input and output.
#[derive(Clone)]
enum PreparedPlan<T> {
    Complex(LinePlan<num_complex::Complex<T>, num_complex::Complex<T>, T>),
    FromReal(LinePlan<T, num_complex::Complex<T>, T>),
    ToReal(LinePlan<num_complex::Complex<T>, T, T>),
    Split(Arc<Split<T>>),
    Tile(Arc<TilePlan<T>>),
    LongTile(Arc<LongTilePlan<T>>),
}

/// Plans that are kept at most.
const MOST: usize = 48;
/// The largest sum of the lengths of all plans, unless a single one is longer: some 64 MiB of
/// tables in single precision.
const MOST_POINTS: usize = 1 << 22;

static SINGLE: Mutex<Cache<f32>> = Mutex::new(Cache(Vec::new()));
static DOUBLE: Mutex<Cache<f64>> = Mutex::new(Cache(Vec::new()));

impl FftReal for f32 {
    fn cache() -> &'static Mutex<Cache<f32>> {
        &SINGLE
    }
}
impl FftReal for f64 {
    fn cache() -> &'static Mutex<Cache<f64>> {
        &DOUBLE
    }
}

/// How many plans are kept now, in single and in double precision.
pub fn cached_plans() -> (usize, usize) {
    let of_single = with_cache::<f32, _>(|cache| cache.0.len()).unwrap_or(0);
    (of_single, with_cache::<f64, _>(|cache| cache.0.len()).unwrap_or(0))
}

/// The result of `work` on the cache; `None` if another thread holds it.
fn with_cache<T: FftReal, R>(work: impl FnOnce(&mut Cache<T>) -> R) -> Option<R> {
    for _ in 0..50 {
        match T::cache().try_lock() {
            Ok(mut cache) => return Some(work(&mut cache)),
            Err(TryLockError::Poisoned(cache)) => return Some(work(&mut cache.into_inner())),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

impl<T: FftReal> Cache<T> {
    fn find(&mut self, kind: TransformKind, n: usize) -> Option<PreparedPlan<T>> {
        let at = self.0.iter().position(|kept| kept.kind == kind && kept.n == n)?;
        let kept = self.0.remove(at);
        let plan = kept.plan.clone();
        self.0.push(kept);
        Some(plan)
    }
    fn keep(&mut self, kind: TransformKind, n: usize, plan: PreparedPlan<T>) {
        if self.find(kind, n).is_some() {
            return;
        }
        self.0.push(KeptPlan { kind, n, plan });
        let points = |all: &[KeptPlan<T>]| all.iter().map(|kept| kept.n).sum::<usize>();
        while self.0.len() > MOST || (self.0.len() > 1 && points(&self.0) > MOST_POINTS) {
            self.0.remove(0);
        }
    }
}

fn prepared<T: FftReal>(kind: TransformKind, n: usize) -> Result<PreparedPlan<T>> {
    if let Some(Some(plan)) = with_cache(|cache: &mut Cache<T>| cache.find(kind, n)) {
        return Ok(plan);
    }
    // Tables of small factors have as many numbers as the length at each of a few levels. Bluestein's algorithm, for large prime
    // factors, has tables of up to four times the length, and those of the length inside.
    let tables = if crate::long::is_smooth(n) { 3 } else { 12 };
    let bytes = n.saturating_mul(tables * 2 * size_of::<T>()).saturating_add(1 << 16);
    memory::probe(bytes)?;
    let plan = memory::after_probe(|| made(kind, n));
    with_cache(|cache: &mut Cache<T>| cache.keep(kind, n, plan.clone()));
    Ok(plan)
}

/// A new plan. Planners are not kept: they hold on to all that they ever planned.
fn made<T: FftReal>(kind: TransformKind, n: usize) -> PreparedPlan<T> {
    let complex = |direction: FftDirection| -> PreparedPlan<T> {
        PreparedPlan::Complex(Arc::new(Full(FftPlanner::new().plan_fft(n, direction))))
    };
    match kind {
        TransformKind::Forward => complex(FftDirection::Forward),
        TransformKind::Inverse => complex(FftDirection::Inverse),
        TransformKind::Half | TransformKind::Whole => {
            let plan = RealFftPlanner::new().plan_fft_forward(n);
            PreparedPlan::FromReal(Arc::new(Half { plan, is_whole: kind == TransformKind::Whole }))
        }
        TransformKind::ToReal => {
            PreparedPlan::ToReal(Arc::new(ToReal(RealFftPlanner::new().plan_fft_inverse(n))))
        }
        TransformKind::Tile => PreparedPlan::Tile(Arc::new(TilePlan::new(n))),
        TransformKind::LongTile => PreparedPlan::LongTile(Arc::new(LongTilePlan::new(n))),
        TransformKind::SplitForward => {
            PreparedPlan::Split(Arc::new(Split::new(n, FftDirection::Forward)))
        }
        TransformKind::SplitInverse => {
            PreparedPlan::Split(Arc::new(Split::new(n, FftDirection::Inverse)))
        }
    }
}

type C<T> = num_complex::Complex<T>;

/// The plan of a complex transform.
pub(crate) fn complex<T: FftReal>(n: usize, forward: bool) -> Result<LinePlan<C<T>, C<T>, T>> {
    match prepared(if forward { TransformKind::Forward } else { TransformKind::Inverse }, n)? {
        PreparedPlan::Complex(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

/// The plan of a complex transform in two steps, of a length that [`crate::long::factors`] splits.
pub(crate) fn split<T: FftReal>(n: usize, forward: bool) -> Result<Arc<Split<T>>> {
    match prepared(
        if forward { TransformKind::SplitForward } else { TransformKind::SplitInverse },
        n,
    )? {
        PreparedPlan::Split(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

/// The plan of transforms in tiles, of a length of which [`crate::tile::is_tiled`] approves.
pub(crate) fn tile<T: FftReal>(n: usize) -> Result<Arc<TilePlan<T>>> {
    match prepared(TransformKind::Tile, n)? {
        PreparedPlan::Tile(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

/// The plan of a complex transform in two steps in tiles, of a length that [`crate::long::tiled_factors`] splits.
pub(crate) fn long_tile<T: FftReal>(n: usize) -> Result<Arc<LongTilePlan<T>>> {
    match prepared(TransformKind::LongTile, n)? {
        PreparedPlan::LongTile(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

/// The plan of the transform of real numbers.
pub(crate) fn from_real<T: FftReal>(n: usize, is_whole: bool) -> Result<LinePlan<T, C<T>, T>> {
    match prepared(if is_whole { TransformKind::Whole } else { TransformKind::Half }, n)? {
        PreparedPlan::FromReal(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

/// The plan of the transform to real numbers.
pub(crate) fn to_real<T: FftReal>(n: usize) -> Result<LinePlan<C<T>, T, T>> {
    match prepared(TransformKind::ToReal, n)? {
        PreparedPlan::ToReal(plan) => Ok(plan),
        _ => unreachable!("a plan is of the requested kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_the_last_used_stays() {
        let mut cache = Cache::<f32>(Vec::new());
        for n in 1..=2 * MOST {
            cache.keep(TransformKind::Forward, n, made(TransformKind::Forward, n));
            assert!(cache.find(TransformKind::Forward, 1).is_some() || n >= MOST);
        }
        assert_eq!(cache.0.len(), MOST);
        assert!(cache.find(TransformKind::Forward, 2 * MOST).is_some());
        assert!(cache.find(TransformKind::Inverse, 2 * MOST).is_none());
        assert!(cache.find(TransformKind::Forward, 2).is_none());
        // A plan that exceeds the limit by itself is kept alone.
        let small = made(TransformKind::Forward, 4);
        cache.keep(TransformKind::Forward, MOST_POINTS + 1, small);
        assert_eq!(cache.0.len(), 1);
    }

    #[test]
    fn a_plan_is_made_once() {
        // (In single precision, because another test uses the cache of double precision.)
        let first = complex::<f32>(31, true).unwrap();
        let second = complex::<f32>(31, true).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &complex::<f32>(31, false).unwrap()));
        assert!(cached_plans().0 >= 2);
    }

    #[test]
    fn a_cache_in_use_is_not_waited_for() {
        let _held = DOUBLE.lock();
        let plan = std::thread::spawn(|| complex::<f64>(37, true).map(|plan| plan.lengths()));
        assert_eq!(plan.join().unwrap().unwrap(), (37, 37));
    }
}
