//! Gathers along short rows: a row that fits two registers is looked up there, sixteen or eight positions at once.
//!
//! Only for elements of four and eight bytes and AVX-512; elsewhere there is no [`RegisterTable`], and positions are looked up one by one.

use crate::simd::{SimdLevel, level};
use std::ops::Range;

/// Rows of few elements, each with as many positions to look up; positions and what is found there lie without gaps.
pub(super) struct RegisterTable {
    /// Bytes of an element.
    size: usize,
    /// Elements of a row.
    width: usize,
    /// The number of positions to look up in each row.
    count: usize,
    /// The bytes from one row to the next.
    row_stride: isize,
    /// Rows that are looked up at once: several if they and their positions fit registers and they have no gaps between them.
    together: usize,
}

impl RegisterTable {
    /// Rows of `width` elements of `size` bytes, if they can be looked up so.
    pub(super) fn new(size: usize, width: usize, count: usize, row_stride: isize) -> Option<Self> {
        let lanes = if matches!(size, 4 | 8) { 64 / size } else { 0 };
        let is_possible = cfg!(target_arch = "x86_64")
            && (1..=2 * lanes).contains(&width)
            && count > 0
            && level() == SimdLevel::Avx512;
        if !is_possible {
            return None;
        }
        let is_dense = row_stride == (width * size) as isize;
        let together = if is_dense { (lanes / count).min(2 * lanes / width).max(1) } else { 1 };
        Some(RegisterTable { size, width, count, row_stride, together })
    }

    /// Positions for each row.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Writes the elements of `rows` at their positions. (All three addresses are those of row 0.)
    ///
    /// # Safety
    /// Rows, positions and outputs are live, outputs writable and apart from the others; positions are inside of rows.
    pub(super) unsafe fn lookup(
        &self,
        to: *mut u8,
        from: *const u8,
        at: *const i64,
        rows: Range<usize>,
    ) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: there are such rows only where the level is present; the rest is the caller's promise.
        unsafe {
            if self.size == 4 {
                self.lookup_four(to.cast(), from, at, rows);
            } else {
                self.lookup_eight(to.cast(), from, at, rows);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (to, from, at, rows, self);
    }

    /// For each lane of positions, how many elements lie before its row in the registers.
    #[cfg(target_arch = "x86_64")]
    fn bases<const LANES: usize>(&self) -> [u64; LANES] {
        std::array::from_fn(|lane| ((lane / self.count).min(self.together - 1) * self.width) as u64)
    }

    /// [`RegisterTable::lookup`] for elements of four bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn lookup_four(
        &self,
        to: *mut i32,
        from: *const u8,
        at: *const i64,
        rows: Range<usize>,
    ) {
        use std::arch::x86_64::*;
        let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        let bases = self.bases::<16>().map(|base| base as u32);
        // SAFETY: sixteen numbers.
        let bases = unsafe { _mm512_loadu_si512(bases.as_ptr().cast()) };
        for row in rows.clone().step_by(self.together) {
            let together = self.together.min(rows.end - row);
            let (held, count) = (lanes(self.width * together), self.count * together);
            let line = from.wrapping_offset(row as isize * self.row_stride).cast::<i32>();
            // SAFETY: elements of the rows.
            let (low, high) = unsafe {
                let high = _mm512_maskz_loadu_epi32((held >> 16) as u16, line.wrapping_add(16));
                (_mm512_maskz_loadu_epi32(held as u16, line), high)
            };
            for j in (0..count).step_by(16) {
                let (wanted, first) = (lanes(count - j) as u16, row * self.count + j);
                // SAFETY: positions of the rows, and as many outputs.
                unsafe {
                    let at = at.add(first);
                    let near = _mm512_maskz_loadu_epi64(wanted as u8, at);
                    let far = _mm512_maskz_loadu_epi64((wanted >> 8) as u8, at.wrapping_add(8));
                    let positions = _mm512_permutex2var_epi32(near, even, far);
                    let positions = _mm512_add_epi32(positions, bases);
                    let found = _mm512_permutex2var_epi32(low, positions, high);
                    _mm512_mask_storeu_epi32(to.add(first), wanted, found);
                }
            }
        }
    }

    /// [`RegisterTable::lookup`] for elements of eight bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn lookup_eight(
        &self,
        to: *mut i64,
        from: *const u8,
        at: *const i64,
        rows: Range<usize>,
    ) {
        use std::arch::x86_64::*;
        // SAFETY: eight numbers.
        let bases = unsafe { _mm512_loadu_si512(self.bases::<8>().as_ptr().cast()) };
        for row in rows.clone().step_by(self.together) {
            let together = self.together.min(rows.end - row);
            let (held, count) = (lanes(self.width * together), self.count * together);
            let line = from.wrapping_offset(row as isize * self.row_stride).cast::<i64>();
            // SAFETY: elements of the rows.
            let (low, high) = unsafe {
                let high = _mm512_maskz_loadu_epi64((held >> 8) as u8, line.wrapping_add(8));
                (_mm512_maskz_loadu_epi64(held as u8, line), high)
            };
            for j in (0..count).step_by(8) {
                let (wanted, first) = (lanes(count - j) as u8, row * self.count + j);
                // SAFETY: positions of the rows, and as many outputs.
                unsafe {
                    let positions = _mm512_maskz_loadu_epi64(wanted, at.add(first));
                    let positions = _mm512_add_epi64(positions, bases);
                    let found = _mm512_permutex2var_epi64(low, positions, high);
                    _mm512_mask_storeu_epi64(to.add(first), wanted, found);
                }
            }
        }
    }
}

/// A mask with a bit for each of `n` lanes, of which there are at least one and at most 32.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn lanes(count: usize) -> u32 {
    u32::MAX >> (32 - count.min(32))
}
