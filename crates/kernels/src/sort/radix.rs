//! Keys packed with the indices of their elements, and how such pairs are sorted: by comparison while there are few, else by
//! radix, digit by digit from the lowest in which keys differ.

use super::algorithm::{self, SortAlgorithm};
use super::key::{self, SortKey};
use crate::line::get;
use crate::{Result, interrupt, memory};

/// A key together with the index of its element, ordered by key, then index.
pub(super) trait Pair: Copy + Ord + Default + Send + Sync {
    /// Bits of the key.
    const BITS: u32;
    fn new(key: u64, index: usize) -> Self;
    fn key(self) -> u64;
    fn index(self) -> usize;
}

/// 32-bit key above, 32-bit index below.
impl Pair for u64 {
    const BITS: u32 = 32;
    #[inline(always)]
    fn new(key: u64, index: usize) -> Self {
        key << 32 | index as u64
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self >> 32
    }
    #[inline(always)]
    fn index(self) -> usize {
        self as u32 as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct WidePair {
    key: u64,
    index: u64,
}
impl Pair for WidePair {
    const BITS: u32 = 64;
    #[inline(always)]
    fn new(key: u64, index: usize) -> Self {
        WidePair { key, index: index as u64 }
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn index(self) -> usize {
        self.index as usize
    }
}

/// Lines up to this length are sorted by comparison.
pub(super) const MAX_COMPARISON_SORT: usize = 768;
/// Bits of a radix digit.
const DIGIT: u32 = 11;
const BUCKETS: usize = 1 << DIGIT;

/// Longest lines whose digits have eight bits: larger tables would take longer than the passes that they save.
pub(super) const MAX_CACHED: usize = 4096;
/// Buckets of such a digit.
const FEW_BUCKETS: usize = 256;

/// Pairs of a line, and scratch space for as many.
pub(super) struct SortWorkspace<P> {
    pub(super) pairs: Vec<P>,
    spare: Vec<P>,
}

impl<P: Pair> SortWorkspace<P> {
    /// Allocates a workspace for lines of `n` elements.
    pub(super) fn new(n: usize) -> Result<Self> {
        let spare = memory::filled(P::default(), if n > MAX_COMPARISON_SORT { n } else { 0 })?;
        Ok(SortWorkspace { pairs: memory::with_capacity(n)?, spare })
    }
}

/// Sorts pairs, whose indices ascend on entry.
pub(super) fn sort_pairs<P: Pair>(SortWorkspace { pairs, spare }: &mut SortWorkspace<P>) {
    match algorithm::of_pairs(pairs.len()) {
        SortAlgorithm::Comparison => pairs.sort_unstable(),
        SortAlgorithm::CachedRadix => sort_cached(pairs, spare),
        _ => sort_long(pairs, spare),
    }
}

/// [`sort_pairs`] for a line of any length, by a pass for each digit in which keys differ.
fn sort_long<P: Pair>(pairs: &mut Vec<P>, spare: &mut Vec<P>) {
    debug_assert_eq!(spare.len(), pairs.len());
    let (mut all, mut any) = (u64::MAX, 0);
    for part in interrupt::chunks(pairs.len()) {
        for p in &pairs[part] {
            (all, any) = (all & p.key(), any | p.key());
        }
    }
    // Bits in which keys differ; digits without such a bit need no pass.
    let differing = all ^ any;
    let mut shift = 0;
    while shift < P::BITS {
        let rest = differing >> shift;
        if rest == 0 {
            break;
        }
        // Start each digit at the lowest bit that matters.
        shift += rest.trailing_zeros();
        let mut counts = [0_usize; BUCKETS];
        for part in interrupt::chunks(pairs.len()) {
            for &p in &pairs[part] {
                counts[(p.key() >> shift) as usize & (BUCKETS - 1)] += 1;
            }
        }
        // SAFETY: they were counted just now; `spare` has their length.
        unsafe { distribute(pairs, spare, shift, &mut counts) };
        std::mem::swap(pairs, spare);
        shift += DIGIT;
    }
}

/// [`sort_pairs`] for a line that fits the nearest cache: all digits are counted in one pass.
fn sort_cached<P: Pair>(pairs: &mut Vec<P>, spare: &mut Vec<P>) {
    const DIGITS: usize = 8;
    debug_assert_eq!(spare.len(), pairs.len());
    let mut counts = [[0_usize; FEW_BUCKETS]; DIGITS];
    let counts = &mut counts[..P::BITS as usize / 8];
    for p in &*pairs {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[(p.key() >> (8 * digit)) as usize & (FEW_BUCKETS - 1)] += 1;
        }
    }
    for (digit, counts) in counts.iter_mut().enumerate() {
        let shift = 8 * digit as u32;
        let first = pairs.first().map_or(0, |p| (p.key() >> shift) as usize & (FEW_BUCKETS - 1));
        // A digit in which keys do not differ needs no pass.
        if counts[first] < pairs.len() {
            // SAFETY: they were counted above, and passes only change their order; `spare` has their length.
            unsafe { distribute(pairs, spare, shift, counts) };
            std::mem::swap(pairs, spare);
        }
    }
}

/// Distributes pairs by one digit, keeping their order within a bucket.
///
/// # Safety
/// The counts are those of that digit among the pairs, for which `to` has workspace.
unsafe fn distribute<P: Pair, const N: usize>(
    from: &[P],
    to: &mut [P],
    shift: u32,
    counts: &mut [usize; N],
) {
    let starts = counts;
    let mut sum = 0;
    for start in &mut *starts {
        sum += std::mem::replace(start, sum);
    }
    for part in interrupt::chunks(from.len()) {
        for &p in &from[part] {
            let slot = &mut starts[(p.key() >> shift) as usize & (N - 1)];
            // SAFETY: the starts are prefix sums of the counts, so slots stay below the number of pairs.
            unsafe { *to.get_unchecked_mut(*slot) = p };
            *slot += 1;
        }
    }
}

/// Reads a line as pairs, for which there is room; `flip` is all ones for descending order.
pub(super) fn read_pairs<T: SortKey, P: Pair>(
    ptr: *const u8,
    step: isize,
    n: usize,
    flip: u64,
    pairs: &mut Vec<P>,
) {
    pairs.clear();
    debug_assert!(pairs.capacity() >= n);
    // SAFETY: the caller gives a line of `n` elements of `T`.
    let pair = |i: usize| P::new(unsafe { get::<T>(ptr, i as isize * step) }.key() ^ flip, i);
    if step == size_of::<T>() as isize {
        let dense = size_of::<T>() as isize;
        // SAFETY: as above; the constant step lets the loop vectorise.
        let pair = |i: usize| P::new(unsafe { get::<T>(ptr, i as isize * dense) }.key() ^ flip, i);
        // bounded: there is room.
        interrupt::chunks(n).for_each(|part| pairs.extend(part.map(pair)));
    } else {
        // bounded: there is room.
        interrupt::chunks(n).for_each(|part| pairs.extend(part.map(pair)));
    }
}

/// Descending order flips the bits that the key type has.
pub(super) fn flip_of<T: SortKey>(descending: bool) -> u64 {
    match (descending, key::is_narrow::<T>()) {
        (false, _) => 0,
        (true, true) => u64::from(u32::MAX),
        (true, false) => u64::MAX,
    }
}
