//! Pairs of a key and a position, sixteen lines side by side, sorted by a network of exchanges.
//!
//! Pairs are all different, so that the order of any network is that of a stable sort.

use super::super::key::KeyBits;
use crate::lanes::{Column, ColumnBuffer, ROWS};

/// The pairs of sixteen lines: keys above their positions in one word, or (of wide keys) apart.
pub(super) struct KeyPositionPairs {
    keys: ColumnBuffer<u64>,
    positions: ColumnBuffer<u64>,
    is_narrow: bool,
}

impl KeyPositionPairs {
    /// Room for the pairs of sixteen lines of `n` elements.
    pub(super) fn new<K: KeyBits>(n: usize) -> KeyPositionPairs {
        let positions = ColumnBuffer::new(if K::IS_NARROW { 0 } else { n });
        KeyPositionPairs { keys: ColumnBuffer::new(n), positions, is_narrow: K::IS_NARROW }
    }
    /// Brings pairs of these keys in the order of the network.
    pub(super) fn sort<K: KeyBits>(&mut self, keys: &[Column<K>], network: &[(u8, u8)]) {
        if K::IS_NARROW {
            fill_narrow(self.keys.all(), keys);
            sort_narrow(self.keys.all(), network);
        } else {
            fill_wide(self.keys.all(), self.positions.all(), keys);
            sort_wide(self.keys.all(), self.positions.all(), network);
        }
    }
    pub(super) fn positions(&mut self, i: usize) -> Column<u64> {
        if !self.is_narrow {
            return self.positions.all()[i];
        }
        let mut positions = self.keys.all()[i];
        for position in &mut positions {
            *position &= u64::from(u32::MAX);
        }
        positions
    }
}

crate::multiversion! {
fn fill_narrow<K: KeyBits>(pairs: &mut [Column<u64>], keys: &[Column<K>]) {
    for (i, (pairs, keys)) in pairs.iter_mut().zip(keys).enumerate() {
        // Hidden, or LLVM takes the same lane of several columns together.
        let (keys, position) = (*keys, std::hint::black_box(i as u64));
        let mut column = [0; ROWS];
        for l in 0..ROWS {
            column[l] = keys[l].wide() << 32 | position;
        }
        *pairs = column;
    }
}
}

crate::multiversion! {
fn fill_wide<K: KeyBits>(to: &mut [Column<u64>], positions: &mut [Column<u64>], keys: &[Column<K>]) {
    for (i, ((to, positions), keys)) in to.iter_mut().zip(positions).zip(keys).enumerate() {
        let mut column = [0; ROWS];
        for l in 0..ROWS {
            column[l] = keys[l].wide();
        }
        (*to, *positions) = (column, [i as u64; ROWS]);
    }
}
}

crate::multiversion! {
fn sort_narrow(pairs: &mut [Column<u64>], network: &[(u8, u8)]) {
    compare_exchange(pairs, network);
}
}

/// Brings columns in the order of the network.
#[inline(always)]
pub(super) fn compare_exchange<K: KeyBits>(columns: &mut [Column<K>], network: &[(u8, u8)]) {
    for &(i, j) in network {
        let (i, j) = (usize::from(i), usize::from(j));
        let (mut a, mut b) = (columns[i], columns[j]);
        // The bits by which both are changed. (For a minimum and a maximum LLVM makes scalar code.)
        let mut change = [K::default(); ROWS];
        for l in 0..ROWS {
            change[l] = if a[l] > b[l] { a[l] ^ b[l] } else { K::default() };
        }
        for l in 0..ROWS {
            a[l] = a[l] ^ change[l];
            b[l] = b[l] ^ change[l];
        }
        (columns[i], columns[j]) = (a, b);
    }
}

crate::multiversion! {
fn sort_wide(keys: &mut [Column<u64>], positions: &mut [Column<u64>], network: &[(u8, u8)]) {
    for &(i, j) in network {
        let (i, j) = (usize::from(i), usize::from(j));
        let (mut a, mut b) = (keys[i], keys[j]);
        let (mut at_a, mut at_b) = (positions[i], positions[j]);
        let (mut change, mut moved) = ([0; ROWS], [0; ROWS]);
        for l in 0..ROWS {
            let swap = (a[l] > b[l]) | ((a[l] == b[l]) & (at_a[l] > at_b[l]));
            change[l] = if swap { a[l] ^ b[l] } else { 0 };
            moved[l] = if swap { at_a[l] ^ at_b[l] } else { 0 };
        }
        for l in 0..ROWS {
            at_a[l] ^= moved[l];
            at_b[l] ^= moved[l];
        }
        for l in 0..ROWS {
            a[l] ^= change[l];
            b[l] ^= change[l];
        }
        (positions[i], positions[j]) = (at_a, at_b);
        (keys[i], keys[j]) = (a, b);
    }
}
}
