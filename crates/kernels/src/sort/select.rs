//! The element of a given number in the order of a line, by keys alone.
//!
//! A sample says between which two keys the wanted one very likely lies; two passes of whole registers count what is below and
//! keep what is between. Of not so many keys the sample is one pivot, and one of its sides is kept, until few are left. Whatever
//! the sample says, the result is right: a bracket that misses is replaced by the side where the wanted one is, and what does
//! not shrink is left to the standard library.

use super::key::KeyBits;
use crate::{Result, interrupt, memory};

/// The largest number of keys that is left to the standard library.
const FEW: usize = 48;
/// The largest number of keys for which one pivot is used: a better sample would take longer than the passes that it
/// saves.
pub(super) const MAX_PIVOT_LENGTH: usize = 4096;
/// Keys that are counted without carrying over, a multiple of every register's lanes.
const BLOCK: usize = 4096;

/// The keys of a line and room to select among them.
pub(super) struct SelectWorkspace<K> {
    line: Vec<K>,
    kept: Vec<K>,
    sample: Vec<K>,
}

impl<K: KeyBits> SelectWorkspace<K> {
    /// Allocates room for lines of `n` elements.
    pub(super) fn new(n: usize) -> Result<Self> {
        let zero = K::default();
        Ok(SelectWorkspace {
            line: memory::filled(zero, n)?,
            kept: memory::filled(zero, n)?,
            sample: Vec::new(),
        })
    }
    /// The line, which the caller fills.
    pub(super) fn line(&mut self) -> &mut [K] {
        &mut self.line
    }
    /// How many of the line are below the largest key, which is that of NaN.
    pub(super) fn count_non_nan(&self) -> usize {
        count_all(&self.line, K::MAX, K::MAX).0
    }
    /// The position of the element that a stable sort puts at `at`, or, if it counts, that of the first NaN, the largest key.
    pub(super) fn position(&mut self, at: usize, nan_counts: bool) -> usize {
        if nan_counts && has(&self.line, K::MAX) {
            return occurrence(&self.line, K::MAX, 0);
        }
        let (key, rank) = self.select(at);
        occurrence(&self.line, key, rank)
    }

    /// The key number `at` in order, and its number among equal ones.
    fn select(&mut self, mut at: usize) -> (K, usize) {
        let mut length = self.line.len();
        let mut is_first = true;
        while length > FEW {
            interrupt::check();
            let part = if is_first { &self.line } else { &self.kept[..length] };
            let (mut low, mut high) = bracket(part, at, &mut self.sample);
            let (below, up_to) = count_all(part, low, high);
            let (mut skipped, mut end) = (below, up_to);
            if at < below {
                (low, high) = (K::default(), low - K::from(true));
                (skipped, end) = (0, below);
            } else if at >= up_to {
                (low, high) = (high + K::from(true), K::MAX);
                (skipped, end) = (up_to, length);
            }
            at -= skipped;
            if low == high {
                return (low, at);
            }
            if end - skipped > length - length / 8 {
                break;
            }
            let to = self.kept.as_mut_ptr();
            let from = if is_first { self.line.as_ptr() } else { to.cast_const() };
            // SAFETY: `kept` has room for as many, and is where they are or apart from them.
            unsafe { compact_all(from, length, to, low, high) };
            (is_first, length) = (false, end - skipped);
        }
        if is_first {
            self.kept.copy_from_slice(&self.line);
        }
        let (before, &mut key, _) = self.kept[..length].select_nth_unstable(at);
        let mut rank = 0;
        for &other in &*before {
            rank += usize::from(other == key);
        }
        (key, rank)
    }
}

/// Two keys between which number `at` of many in order likely is, both included.
fn bracket<K: KeyBits>(keys: &[K], at: usize, sample: &mut Vec<K>) -> (K, K) {
    if keys.len() <= MAX_PIVOT_LENGTH {
        let pivot = pivot(keys);
        return (pivot, pivot);
    }
    let count = if keys.len() < 1 << 16 { 256 } else { 2048 };
    // Positions that are spread evenly and have no period.
    let position = |i: u64| {
        let product = u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        ((product * keys.len() as u128) >> 64) as usize
    };
    sample.clear();
    // bounded: 2048 keys.
    sample.extend((0..count as u64).map(|i| keys[position(i)]));
    // Five standard deviations of a rank in the middle lie between the two.
    let (middle, margin) = (at * count / keys.len(), count.isqrt() * 5 / 4);
    let (first, last) = (middle.saturating_sub(margin), middle + margin);
    let low = if middle < margin { K::default() } else { *sample.select_nth_unstable(first).1 };
    let above = &mut sample[first..];
    let high = if last >= count { K::MAX } else { *above.select_nth_unstable(last - first).1 };
    (low, high)
}

/// The median of three medians of three keys from all over, of at least nine.
fn pivot<K: KeyBits>(keys: &[K]) -> K {
    // (The middles of ninths, in an order in which no three are neighbours.)
    let key = |i: usize| keys[keys.len() * (2 * i + 1) / 18];
    let middle = |a: K, b: K, c: K| a.min(b).max(a.max(b).min(c));
    let [a, b, c] = [0, 1, 2].map(|i| middle(key(i), key(i + 3), key(i + 6)));
    middle(a, b, c)
}

crate::multiversion! {
/// Whether the key is among these.
fn has<K: KeyBits>(keys: &[K], key: K) -> bool {
    let mut found = false;
    for &other in keys {
        found |= other == key;
    }
    found
}
}

/// The keys of one part of a pass: some hundred microseconds of work.
const PART: usize = 1 << 20;

/// Computes [`count`] in parts, and checks for interruptions between them.
fn count_all<K: KeyBits>(keys: &[K], low: K, high: K) -> (usize, usize) {
    keys.chunks(PART).fold((0, 0), |(below, up_to), part| {
        interrupt::check();
        let (more_below, more_up_to) = count(part, low, high);
        (below + more_below, up_to + more_up_to)
    })
}

crate::multiversion! {
/// How many keys are below `low`, and how many not above `high`.
fn count<K: KeyBits>(keys: &[K], low: K, high: K) -> (usize, usize) {
    let (mut below, mut up_to) = (0, 0);
    for block in keys.chunks(BLOCK) {
        let (mut a, mut b) = (K::default(), K::default());
        for &key in block {
            a = a + K::from(key < low);
            b = b + K::from(key <= high);
        }
        below += a.wide() as usize;
        up_to += b.wide() as usize;
    }
    (below, up_to)
}
}

crate::multiversion! {
/// The position of occurrence number `rank` of a key that occurs so often.
fn occurrence<K: KeyBits>(keys: &[K], key: K, rank: usize) -> usize {
    const GROUP: usize = 64;
    let (groups, _) = keys.as_chunks::<GROUP>();
    let (mut first, mut left) = (0, rank);
    for group in groups {
        let mut equal = K::default();
        for &other in group {
            equal = equal + K::from(other == key);
        }
        let equal = equal.wide() as usize;
        if equal > left {
            break;
        }
        (first, left) = (first + GROUP, left - equal);
    }
    for (i, &other) in keys[first..].iter().enumerate() {
        if other == key {
            if left == 0 {
                return first + i;
            }
            left -= 1;
        }
    }
    first
}
}

/// Writes those of `length` keys that lie in `low..=high`, in order.
///
/// # Safety
/// The keys are live, and `to` has room for all of them: where they are, or apart from them.
unsafe fn compact_all<K: KeyBits>(from: *const K, length: usize, to: *mut K, low: K, high: K) {
    let mut kept = 0;
    for start in (0..length).step_by(PART) {
        interrupt::check();
        // SAFETY: a part of the keys; not more were kept than were read.
        kept +=
            unsafe { compact(from.add(start), PART.min(length - start), to.add(kept), low, high) };
    }
}

/// Computes [`compact_all`] in one part; returns how many keys were kept.
///
/// # Safety
/// The requirements of [`compact_all`]; `to` may also lie before the keys.
unsafe fn compact<K: KeyBits>(from: *const K, length: usize, to: *mut K, low: K, high: K) -> usize {
    let (mut done, mut kept) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if crate::simd::level() == crate::simd::SimdLevel::Avx512 {
        // SAFETY: the level is present; the rest is the caller's promise.
        (done, kept) = unsafe {
            if K::IS_NARROW {
                let (low, high) = (low.wide() as u32, high.wide() as u32);
                avx512::compact_narrow(from.cast(), length, to.cast(), low, high)
            } else {
                avx512::compact_wide(from.cast(), length, to.cast(), low.wide(), high.wide())
            }
        };
    }
    while done < length {
        // SAFETY: not more are kept than were read.
        unsafe {
            let key = from.add(done).read();
            to.add(kept).write(key);
            kept += usize::from((key >= low) & (key <= high));
        }
        done += 1;
    }
    kept
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    /// Computes [`super::compact`] for whole registers only: returns how many keys were read and how many kept.
    ///
    /// # Safety
    /// The requirements of [`super::compact`].
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn compact_narrow(
        from: *const u32,
        length: usize,
        to: *mut u32,
        low: u32,
        high: u32,
    ) -> (usize, usize) {
        let (least, span) = (_mm512_set1_epi32(low as i32), _mm512_set1_epi32((high - low) as i32));
        let (mut done, mut kept) = (0, 0);
        while length - done >= 16 {
            // SAFETY: sixteen keys; what is written over was read.
            unsafe {
                let keys = _mm512_loadu_si512(from.add(done).cast());
                let inside = _mm512_cmple_epu32_mask(_mm512_sub_epi32(keys, least), span);
                let keys = _mm512_maskz_compress_epi32(inside, keys);
                _mm512_storeu_si512(to.add(kept).cast(), keys);
                kept += inside.count_ones() as usize;
            }
            done += 16;
        }
        (done, kept)
    }

    /// Computes [`compact_narrow`] for keys of 64 bits.
    ///
    /// # Safety
    /// The requirements of [`super::compact`].
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn compact_wide(
        from: *const u64,
        length: usize,
        to: *mut u64,
        low: u64,
        high: u64,
    ) -> (usize, usize) {
        let (least, span) = (_mm512_set1_epi64(low as i64), _mm512_set1_epi64((high - low) as i64));
        let (mut done, mut kept) = (0, 0);
        while length - done >= 8 {
            // SAFETY: eight keys; what is written over was read.
            unsafe {
                let keys = _mm512_loadu_si512(from.add(done).cast());
                let inside = _mm512_cmple_epu64_mask(_mm512_sub_epi64(keys, least), span);
                let keys = _mm512_maskz_compress_epi64(inside, keys);
                _mm512_storeu_si512(to.add(kept).cast(), keys);
                kept += inside.count_ones() as usize;
            }
            done += 8;
        }
        (done, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{SimdLevel, set_level};

    /// Checks selection among the keys that `key` makes of numbers and random bits.
    fn check<K: KeyBits + std::fmt::Debug>(n: usize, key: impl Fn(u64, u64) -> u64) {
        let mut bits = n as u64;
        let keys: Vec<K> = (0..n as u64)
            .map(|i| {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                K::of(key(i, bits >> 32))
            })
            .collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| keys[i]);
        let mut workspace = SelectWorkspace::new(n).unwrap();
        for level in SimdLevel::ALL {
            set_level(level);
            for at in [0, 1, n / 3, n / 2, n - 1] {
                let at = at.min(n - 1);
                workspace.line().copy_from_slice(&keys);
                assert_eq!(workspace.position(at, false), order[at], "{n} {at} {level:?}");
                let nan = keys.iter().position(|&key| key == K::MAX);
                assert_eq!(workspace.position(at, true), nan.unwrap_or(order[at]));
            }
        }
    }

    #[test]
    fn the_element_of_any_number_is_found_whatever_the_line_holds() {
        for n in [1, 2, 63, 64, 65, 1024, 1025, 1041, 3000, 70_000] {
            let patterns: [fn(u64, u64) -> u64; 9] = [
                |_, bits| bits,
                |_, bits| bits % 3,
                |_, bits| bits % 50,
                |_, _| 7,
                |_, _| u64::MAX,
                |i, _| i,
                |i, _| u64::MAX - i,
                |i, _| i % 16,
                |i, bits| if i % 2 == 0 { bits % 8 } else { u64::MAX - bits % 8 },
            ];
            for pattern in patterns {
                check::<u32>(n, pattern);
                check::<u64>(n, pattern);
            }
        }
    }
}
