//! One element, or the top few, of each of sixteen lines side by side, by keys alone.
//!
//! An element is found as its key and how many equal ones come before it: no position has to be moved along with a key.

use super::super::key::KeyBits;
use super::pairs::compare_exchange;
use super::{MAX_TOP_K, Selection, middle};
use crate::lanes::{Column, ROWS};

crate::multiversion! {
/// The positions of what is selected from lines with these keys. `sorted` is room for them in the order of the network; `has_nan` says
/// that the largest key is that of NaN.
pub(super) fn positions_of<K: KeyBits>(
    keys: &[Column<K>],
    sorted: &mut [Column<K>],
    network: &[(u8, u8)],
    selection: Selection,
    has_nan: bool,
) -> Column<u64> {
    sorted.copy_from_slice(keys);
    compare_exchange(sorted, network);
    let (targets, ranks) = match selection {
        Selection::Mode => mode(sorted, has_nan),
        Selection::Median => ranked(keys, sorted, middle(keys.len()), has_nan),
        Selection::FirstK(at) | Selection::Kth(at) => ranked(keys, sorted, at, false),
    };
    let (mut seen, mut positions) = ([K::default(); ROWS], [K::default(); ROWS]);
    for (i, keys) in keys.iter().enumerate() {
        // Hidden, or LLVM takes the same lane of several columns together.
        let (keys, i) = (*keys, std::hint::black_box(K::of(i as u64)));
        for l in 0..ROWS {
            let is_equal = keys[l] == targets[l];
            positions[l] = if is_equal & (seen[l] == ranks[l]) { i } else { positions[l] };
            seen[l] = seen[l] + K::from(is_equal);
        }
    }
    let mut wide = [0; ROWS];
    for l in 0..ROWS {
        wide[l] = positions[l].wide();
    }
    wide
}
}

/// The key number `at` of each line and its number among equal ones; the first NaN of a line that has one, if that counts.
#[inline(always)]
fn ranked<K: KeyBits>(
    keys: &[Column<K>],
    sorted: &[Column<K>],
    at: usize,
    nan_counts: bool,
) -> (Column<K>, Column<K>) {
    let mut targets = sorted[at];
    let (mut below, mut nans) = ([K::default(); ROWS], [K::default(); ROWS]);
    for keys in keys {
        let keys = std::hint::black_box(keys);
        for l in 0..ROWS {
            below[l] = below[l] + K::from(keys[l] < targets[l]);
            nans[l] = nans[l] + K::from(keys[l] == K::MAX);
        }
    }
    let mut ranks = [K::of(at as u64); ROWS];
    for l in 0..ROWS {
        let is_nan = nan_counts & (nans[l] != K::default());
        targets[l] = if is_nan { K::MAX } else { targets[l] };
        ranks[l] = if is_nan { K::default() } else { ranks[l] - below[l] };
    }
    (targets, ranks)
}

/// The key of the first longest run of equal ones, and the number of its last element among them; each NaN is a run of its own.
#[inline(always)]
fn mode<K: KeyBits>(sorted: &[Column<K>], has_nan: bool) -> (Column<K>, Column<K>) {
    let (mut targets, mut last) = (sorted[0], sorted[0]);
    let (mut ranks, mut length) = ([K::default(); ROWS], [K::default(); ROWS]);
    for keys in &sorted[1..] {
        let keys = *std::hint::black_box(keys);
        for l in 0..ROWS {
            let goes_on = (keys[l] == last[l]) & !(has_nan & (keys[l] == K::MAX));
            length[l] = if goes_on { length[l] + K::from(true) } else { K::default() };
            let is_longer = length[l] > ranks[l];
            ranks[l] = if is_longer { length[l] } else { ranks[l] };
            targets[l] = if is_longer { keys[l] } else { targets[l] };
        }
        last = keys;
    }
    (targets, ranks)
}

/// The first few of each line in order, as far as it was looked at.
pub(super) struct TopKeys<K> {
    keys: [Column<K>; MAX_TOP_K],
    positions: [Column<K>; MAX_TOP_K],
}

impl<K: KeyBits> TopKeys<K> {
    pub(super) fn new() -> Self {
        TopKeys { keys: [[K::MAX; ROWS]; MAX_TOP_K], positions: [[K::default(); ROWS]; MAX_TOP_K] }
    }
    /// Goes on with the keys from position `first` on, as far as the first `k` are concerned. (Three columns of each make poor code.)
    pub(super) fn advance(&mut self, keys: &[Column<K>], first: usize, k: usize) {
        match k {
            1 => advance_one(self, keys, first),
            2 => advance_two(self, keys, first),
            _ => advance_four(self, keys, first),
        }
    }
    pub(super) fn positions(&self, i: usize) -> Column<u64> {
        let mut wide = [0; ROWS];
        for (wide, position) in wide.iter_mut().zip(self.positions[i]) {
            *wide = position.wide();
        }
        wide
    }
}

macro_rules! advance {
    ($($name:ident $n:literal),*) => {$(
        crate::multiversion! {
            fn $name<K: KeyBits>(top: &mut TopKeys<K>, keys: &[Column<K>], first: usize) {
                advance::<K, $n>(top, keys, first);
            }
        }
    )*};
}
advance!(advance_one 1, advance_two 2, advance_four 4);

#[inline(always)]
fn advance<K: KeyBits, const N: usize>(top: &mut TopKeys<K>, keys: &[Column<K>], first: usize) {
    let (mut sorted, mut positions) = ([[K::MAX; ROWS]; N], [[K::default(); ROWS]; N]);
    for j in 0..N {
        (sorted[j], positions[j]) = (top.keys[j], top.positions[j]);
    }
    for (i, keys) in keys.iter().enumerate() {
        insert(&mut sorted, &mut positions, *keys, first + i);
    }
    for j in 0..N {
        (top.keys[j], top.positions[j]) = (sorted[j], positions[j]);
    }
}

/// Inserts the keys of a position behind all that are not larger; of positions before `N` all are taken.
#[inline(always)]
fn insert<K: KeyBits, const N: usize>(
    sorted: &mut [Column<K>; N],
    positions: &mut [Column<K>; N],
    keys: Column<K>,
    position: usize,
) {
    // Hidden, or LLVM takes the same lane of several columns together.
    let (held, position) = std::hint::black_box((position, K::of(position as u64)));
    // What is passed moves down, the last one first.
    for j in (0..N).rev() {
        let (mut here, mut at) = (sorted[j], positions[j]);
        for l in 0..ROWS {
            let passes = (keys[l] < here[l]) | (j >= held);
            here[l] = if passes { keys[l] } else { here[l] };
            at[l] = if passes { position } else { at[l] };
        }
        if j > 0 {
            let (above, position_above) = (sorted[j - 1], positions[j - 1]);
            for l in 0..ROWS {
                let passes = (keys[l] < above[l]) | (j > held);
                here[l] = if passes { above[l] } else { here[l] };
                at[l] = if passes { position_above[l] } else { at[l] };
            }
        }
        (sorted[j], positions[j]) = (here, at);
    }
}
