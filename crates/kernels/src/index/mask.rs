//! Masks: the elements that are true, counted, named, taken and written.
//!
//! Whether elements are true is looked at in words of 64 bits; what follows from a word has no
//! branches, because masks are seldom predictable.

use super::contiguous_strides;
use super::for_size;
use crate::line::{LineIter, ViewLayout, check_dtype, check_shape, get, put};
use crate::{Bool, DType, Element, Error, Result, StridedMut, StridedRef, for_dtype};
use std::mem::MaybeUninit;

crate::multiversion! {
fn count_bytes(bytes: &[u8]) -> usize {
    let mut count = 0;
    for part in bytes.chunks(16_320) {
        let mut lanes = [0_u8; 64];
        let (groups, rest) = part.as_chunks::<64>();
        for group in groups {
            for (lane, &byte) in lanes.iter_mut().zip(group) {
                *lane += u8::from(byte != 0);
            }
        }
        count += lanes.iter().map(|&lane| lane as usize).sum::<usize>();
        count += rest.iter().filter(|&&byte| byte != 0).count();
    }
    count
}
}

/// How many elements are true (not zero): the size that `nonzero` and `masked_select` need.
pub fn count_true(input: StridedRef<'_>) -> usize {
    if let Some(bytes) = input.as_slice::<Bool>() {
        // SAFETY: a `Bool` is one byte.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
        return count_bytes(bytes);
    }
    let mut count = 0;
    for_each_nonzero(&input, |_| count += 1);
    count
}

/// Elements looked at together.
const BITS: usize = 64;

crate::multiversion! {
/// Bit `i` says whether `elements[i]` (of at most `BITS`) is true.
fn nonzero_bits<T: Element>(elements: &[T]) -> u64 {
    let mut bytes = [0_u8; BITS];
    for (byte, &element) in bytes.iter_mut().zip(elements) {
        *byte = u8::from(element.is_true());
    }
    let (words, _) = bytes.as_chunks::<8>();
    let mut bits = 0;
    for (i, &word) in words.iter().enumerate() {
        // The product gathers the lowest bits of eight bytes in its highest byte.
        let gathered = u64::from_le_bytes(word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= gathered << (8 * i);
    }
    bits
}
}

/// Calls `visit` with the row-major number of every true element, in order.
fn for_each_nonzero(input: &StridedRef<'_>, mut visit: impl FnMut(usize)) {
    let lines = LineIter::new(input.shape(), None, [ViewLayout::from(input)]);
    for_dtype!(input.dtype(), stored, T => {
        let mut done = 0;
        lines.visit_runs(0..lines.count(), |[from], [step], length| {
            let mut elements = [T::default(); BITS];
            for first in (0..length).step_by(BITS) {
                let part = &mut elements[..BITS.min(length - first)];
                // SAFETY: the run lies inside the view, which has this dtype.
                unsafe {
                    let ptr = input.ptr().offset(from + first as isize * step);
                    crate::line::read_line(ptr, step, part);
                }
                let mut bits = nonzero_bits(part);
                while bits != 0 {
                    visit(done + first + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
            done += length;
        });
    }, else unreachable!("two numbers in a byte are refused before"));
}

/// Coordinates of the elements that are not zero: `out` is `i64` of shape (`count_true`, `ndim`), rows in row-major order.
///
/// # Errors
/// If `out` has another shape or dtype.
pub fn nonzero(out: &mut StridedMut<'_>, input: StridedRef<'_>) -> Result<()> {
    check_dtype("nonzero", out.dtype(), DType::I64)?;
    let expected = [count_true(input) as i64, input.ndim() as i64];
    check_shape("nonzero", out.shape(), &expected)?;
    let out = &*out;
    let (row_step, column_step) = (out.strides()[0] as isize * 8, out.strides()[1] as isize * 8);
    let dense = contiguous_strides(input.shape());
    let Some((_, outer)) = dense.split_last() else {
        // A number has no coordinates to write.
        return Ok(());
    };
    let mut row = out.ptr();
    let mut left = expected[0];
    for_each_nonzero(&input, |at| {
        // (No more than there is room for, should another thread write the input meanwhile.)
        if left == 0 {
            return;
        }
        left -= 1;
        let mut rest = at as i64;
        let mut to = row;
        for &stride in outer {
            // SAFETY: there are as many rows as true elements and a column per dimension.
            unsafe { put(to, 0, rest / stride) };
            rest %= stride;
            to = to.wrapping_offset(column_step);
        }
        // SAFETY: as above.
        unsafe { put(to, 0, rest) };
        row = row.wrapping_offset(row_step);
    });
    Ok(())
}

fn check_mask(name: &str, mask: &StridedRef<'_>, shape: &[i64]) -> Result<()> {
    if !matches!(mask.dtype(), DType::Bool | DType::U8) {
        return Err(Error::runtime(format!(
            "{name}: expected BoolTensor for mask, got {}",
            mask.dtype().scalar_name()
        )));
    }
    check_shape(name, mask.shape(), shape)
}

/// The bits of `n <= BITS` elements of a mask.
///
/// # Safety
/// The elements are live, at byte distance `step`.
#[inline(always)]
unsafe fn mask_bits(mask: *const u8, step: isize, n: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        if n == BITS && step == 1 {
            return byte_bits(&*mask.cast::<[u8; BITS]>());
        }
        let mut bytes = [0; BITS];
        crate::line::read_line(mask, step, &mut bytes[..n]);
        byte_bits(&bytes)
    }
}

/// Which bytes are not zero.
#[inline]
fn byte_bits(bytes: &[u8; BITS]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::level() == crate::simd::SimdLevel::Avx512 {
        #[target_feature(enable = "avx512f,avx512bw")]
        fn test(bytes: &[u8; BITS]) -> u64 {
            use std::arch::x86_64::{_mm512_loadu_si512, _mm512_test_epi8_mask};
            // SAFETY: as many bytes as are read.
            let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            _mm512_test_epi8_mask(bytes, bytes)
        }
        // SAFETY: the level is present.
        return unsafe { test(bytes) };
    }
    nonzero_bits(bytes)
}

crate::multiversion! {
/// Stores the elements whose bit is set one behind the other; what lies behind them may be written too. Returns how many.
fn compress<T: Copy>(from: &[T], bits: u64, to: &mut [MaybeUninit<T>; BITS]) -> usize {
    let mut kept = 0;
    for (i, &element) in from.iter().enumerate().take(BITS) {
        to[kept % BITS].write(element);
        kept += (bits >> i & 1) as usize;
    }
    kept
}
}

/// The elements of `input` where `mask` is true (equal shapes), in row-major order; `out` has `count_true(mask)` elements.
///
/// # Errors
/// If `out` has another size, or `mask` is not bool.
pub fn masked_select(
    out: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    mask: StridedRef<'_>,
) -> Result<()> {
    check_dtype("masked_select", out.dtype(), input.dtype())?;
    check_mask("masked_select", &mask, input.shape())?;
    let count = count_true(mask);
    check_shape("masked_select", out.shape(), &[count as i64])?;
    let out = &*out;
    let step = out.strides()[0] as isize * out.dtype().size() as isize;
    let lines =
        LineIter::new(input.shape(), None, [ViewLayout::from(&input), ViewLayout::from(&mask)]);
    for_size!(input.dtype().size(), T => {
        let mut done = 0;
        let mut kept = [MaybeUninit::<T>::uninit(); BITS];
        let mut read = [T::default(); BITS];
        lines.visit_runs(0..lines.count(), |[from, at], [from_step, mask_step], length| {
            for first in (0..length).step_by(BITS) {
                let n = BITS.min(length - first);
                let from = input.ptr().wrapping_offset(from + first as isize * from_step);
                let mask = mask.ptr().wrapping_offset(at + first as isize * mask_step);
                // SAFETY: the run lies inside the views; `out` has a place for each true element, and a whole block is
                // written to it only where it has as many places.
                unsafe {
                    let elements = if from_step == size_of::<T>() as isize {
                        std::slice::from_raw_parts(from.cast::<T>(), n)
                    } else {
                        for (i, element) in read[..n].iter_mut().enumerate() {
                            *element = get::<T>(from, i as isize * from_step);
                        }
                        &read[..n]
                    };
                    let bits = mask_bits(mask, mask_step, n);
                    let to = out.ptr().wrapping_offset(done as isize * step);
                    if step == size_of::<T>() as isize && count - done >= BITS {
                        done += compress(elements, bits, &mut *to.cast::<[MaybeUninit<T>; BITS]>());
                        continue;
                    }
                    // (No more than there is room for, should another thread write the mask meanwhile.)
                    let found = compress(elements, bits, &mut kept).min(count - done);
                    for (i, element) in kept[..found].iter().enumerate() {
                        put(to, i as isize * step, element.assume_init());
                    }
                    done += found;
                }
            }
        });
    });
    Ok(())
}

crate::multiversion! {
/// Replaces the elements whose bit is set by those of `source` in turn, of which there are enough. Returns how many.
fn expand<T: Copy>(to: &mut [T], bits: u64, source: &[T]) -> usize {
    if source.len() >= BITS {
        // Every element has a candidate, and a choice between two addresses needs no branch.
        let mut taken = 0;
        for (i, element) in to.iter_mut().enumerate().take(BITS) {
            let next = &source[taken % BITS];
            let is_set = bits >> i & 1 != 0;
            *element = *std::hint::select_unpredictable(is_set, next, &*element);
            taken += usize::from(is_set);
        }
        return taken;
    }
    let mut left = bits;
    let mut source = source.iter();
    while left != 0 && let Some(&next) = source.next() {
        to[left.trailing_zeros() as usize] = next;
        left &= left - 1;
    }
    bits.count_ones() as usize
}
}

/// Computes [`expand`] for a block, with whole registers where the instruction set has them.
fn expand_block<T: Copy>(to: &mut [T], bits: u64, source: &[T]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if matches!(size_of::<T>(), 4 | 8)
        && to.len() == BITS
        && source.len() >= BITS
        && crate::simd::level() == crate::simd::SimdLevel::Avx512
    {
        // SAFETY: the level is present; both sides have a whole block.
        unsafe {
            if size_of::<T>() == 4 {
                registers::expand_4(to.as_mut_ptr().cast(), bits, source.as_ptr().cast());
            } else {
                registers::expand_8(to.as_mut_ptr().cast(), bits, source.as_ptr().cast());
            }
        }
        return bits.count_ones() as usize;
    }
    expand(to, bits, source)
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::BITS;
    use std::arch::x86_64::*;

    macro_rules! expand {
        ($name:ident, $element:ty, $mask:ty, $lanes:literal, $expand:ident) => {
            /// # Safety
            /// A block of elements at `to`, and as many at `source`.
            #[target_feature(enable = "avx512f,popcnt")]
            pub(super) unsafe fn $name(to: *mut $element, bits: u64, source: *const $element) {
                let mut taken = 0;
                for first in (0..BITS).step_by($lanes) {
                    let mask = (bits >> first) as $mask;
                    // SAFETY: the caller's promise; no more elements are taken than have been looked at.
                    unsafe {
                        let to = to.add(first).cast();
                        let next = _mm512_loadu_si512(source.add(taken).cast());
                        _mm512_storeu_si512(to, $expand(_mm512_loadu_si512(to), mask, next));
                    }
                    taken += mask.count_ones() as usize;
                }
            }
        };
    }
    expand!(expand_4, u32, u16, 16, _mm512_mask_expand_epi32);
    expand!(expand_8, u64, u8, 8, _mm512_mask_expand_epi64);
}

/// Fills the elements of `out` where `mask` is true (equal shapes) with the elements of `source` in row-major order.
///
/// # Errors
/// If `source` has fewer elements than `mask` has true ones.
pub fn masked_scatter(
    out: &mut StridedMut<'_>,
    mask: StridedRef<'_>,
    source: StridedRef<'_>,
) -> Result<()> {
    check_dtype("masked_scatter_", source.dtype(), out.dtype())?;
    check_mask("masked_scatter_", &mask, out.shape())?;
    let (needed, given) = (count_true(mask), source.numel());
    if given < needed {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same number of true elements, but got {needed} for the mask and {given} for the source"
        )));
    }
    if needed == 0 {
        return Ok(());
    }
    let out = &*out;
    let sources = LineIter::new(source.shape(), None, [ViewLayout::from(&source)]);
    let lines = LineIter::new(out.shape(), None, [ViewLayout::from(out), ViewLayout::from(&mask)]);
    for_size!(out.dtype().size(), T => {
        let size = size_of::<T>() as isize;
        let is_dense = sources.is_dense([size]);
        let mut number = 0;
        lines.visit_runs(0..lines.count(), |[to, at], [step, mask_step], length| {
            for first in (0..length).step_by(BITS) {
                let n = BITS.min(length - first);
                let to = out.ptr().wrapping_offset(to + first as isize * step);
                let mask = mask.ptr().wrapping_offset(at + first as isize * mask_step);
                // SAFETY: the run lies inside the views; the source has an element for each true one.
                unsafe {
                    let mut bits = mask_bits(mask, mask_step, n);
                    if is_dense && step == size && number < given {
                        let rest = source.ptr().cast::<T>().add(number);
                        let rest = std::slice::from_raw_parts(rest, given - number);
                        let to = std::slice::from_raw_parts_mut(to.cast::<T>(), n);
                        number += expand_block(to, bits, rest).min(given - number);
                        continue;
                    }
                    // (No more than there are, should another thread write the mask meanwhile.)
                    while bits != 0 && number < given {
                        let [from] = sources.offsets(number);
                        let at = bits.trailing_zeros() as isize;
                        put(to, at * step, get::<T>(source.ptr(), from));
                        number += 1;
                        bits &= bits - 1;
                    }
                }
            }
        });
    });
    Ok(())
}
