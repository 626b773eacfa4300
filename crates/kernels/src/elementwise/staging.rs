//! Filling the staging buffers of dense loops from strided operands, and storing their results: gather, broadcast, conversion
//! of half precision to and from single precision, scatter.
//!
//! Nothing here depends on the op. Callers guarantee that all elements are live and that a buffer holds a block of any operand.

use super::drive::BLOCK;
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::spans::{SpanKind, SpanTile, copy_slice, copy_spans_of_kind};
use crate::Float8;
use std::mem::MaybeUninit;

/// The storage format of an operand, if it differs from the type that the loop computes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StorageFormat {
    Native,
    F16,
    Bf16,
    /// A complex number of two halves.
    C32,
    /// A complex number of two `bf16`.
    Bc32,
    /// A floating-point number of one byte.
    F8(Float8),
}

/// Repeats the first `bytes` until there are `all`, in ever longer parts.
///
/// # Safety
/// `all` bytes are writable, the first of them filled.
pub(super) unsafe fn repeat(at: *mut u8, bytes: usize, all: usize) {
    let mut done = bytes;
    while done < all {
        let more = done.min(all - done);
        // SAFETY: the caller's promise.
        unsafe { at.copy_to_nonoverlapping(at.add(done), more) };
        done += more;
    }
}

/// Copies a strided run into a dense buffer.
///
/// # Safety
/// `from` has `n <= BLOCK` elements at `stride`, `to` has room for `n`, aligned for any of them.
pub(super) unsafe fn gather(
    format: StorageFormat,
    size: usize,
    from: *const u8,
    stride: isize,
    to: *mut u8,
    n: usize,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match (format, size) {
            (StorageFormat::Native, 1) => gather_as::<u8>(from, stride, to, n),
            (StorageFormat::Native, 2) => gather_as::<u16>(from, stride, to, n),
            (StorageFormat::Native, 4) => gather_as::<u32>(from, stride, to, n),
            (StorageFormat::Native, 8) => gather_as::<u64>(from, stride, to, n),
            (StorageFormat::Native, _) => gather_as::<[u64; 2]>(from, stride, to, n),
            (StorageFormat::C32 | StorageFormat::Bc32, _) => {
                gather_pairs(format == StorageFormat::Bc32, from, stride, to, n);
            }
            (StorageFormat::F8(float8), _) => gather_float8(float8, from, stride, to, n),
            (half, _) => {
                let mut dense = [const { MaybeUninit::<u16>::uninit() }; BLOCK];
                let to = std::slice::from_raw_parts_mut(to.cast::<f32>(), n);
                let bits = if stride == 2 || n <= 1 {
                    std::slice::from_raw_parts(from.cast::<u16>(), n)
                } else {
                    gather_as::<u16>(from, stride, dense.as_mut_ptr().cast(), n);
                    std::slice::from_raw_parts(dense.as_ptr().cast(), n)
                };
                if half == StorageFormat::F16 {
                    f16_to_f32(bits, to);
                } else {
                    bf16_to_f32(bits, to);
                }
            }
        }
    }
}

/// Copies rows of `n` elements of `size` bytes, of which one side is dense; `strides` and `row_strides` are those of output and input.
///
/// # Safety
/// All elements are live, those of the output writable and apart from the input.
pub(super) unsafe fn copy_rows(
    (to, from): (*mut u8, *const u8),
    strides: [isize; 2],
    row_strides: [isize; 2],
    size: usize,
    (n, rows): (usize, usize),
) {
    if let Some(kind) = SpanKind::of(strides, size) {
        let grid = SpanTile { to, from, offsets: &[[0, 0]], rows, row_strides };
        // SAFETY: the caller's promise.
        return unsafe { copy_spans_of_kind(&grid, kind, size, n) };
    }
    for row in 0..rows as isize {
        let (to, from) =
            (to.wrapping_offset(row * row_strides[0]), from.wrapping_offset(row * row_strides[1]));
        // SAFETY: the caller's promise.
        unsafe {
            if strides[0] == size as isize {
                gather(StorageFormat::Native, size, from, strides[1], to, n);
            } else {
                scatter(StorageFormat::Native, size, from, to, strides[0], n);
            }
        }
    }
}

/// Copies a dense buffer to a strided run.
///
/// # Safety
/// `from` has `n <= BLOCK` elements, `to` has `n` writable ones at `stride`.
pub(super) unsafe fn scatter(
    format: StorageFormat,
    size: usize,
    from: *const u8,
    to: *mut u8,
    stride: isize,
    n: usize,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match (format, size) {
            (StorageFormat::Native, 1) => scatter_as::<u8>(from, to, stride, n),
            (StorageFormat::Native, 2) => scatter_as::<u16>(from, to, stride, n),
            (StorageFormat::Native, 4) => scatter_as::<u32>(from, to, stride, n),
            (StorageFormat::Native, 8) => scatter_as::<u64>(from, to, stride, n),
            (StorageFormat::Native, _) => scatter_as::<[u64; 2]>(from, to, stride, n),
            (StorageFormat::C32 | StorageFormat::Bc32, _) => {
                scatter_pairs(format == StorageFormat::Bc32, from, to, stride, n);
            }
            (StorageFormat::F8(float8), _) => scatter_float8(float8, from, to, stride, n),
            (half, _) => {
                let mut dense = [const { MaybeUninit::<u16>::uninit() }; BLOCK];
                let from = std::slice::from_raw_parts(from.cast::<f32>(), n);
                let direct = stride == 2 || n <= 1;
                let bits: *mut u16 = if direct { to.cast() } else { dense.as_mut_ptr().cast() };
                // Written before it is read.
                let bits = std::slice::from_raw_parts_mut(bits, n);
                if half == StorageFormat::F16 {
                    f32_to_f16(from, bits);
                } else {
                    f32_to_bf16(from, bits);
                }
                if !direct {
                    scatter_as::<u16>(dense.as_ptr().cast(), to, stride, n);
                }
            }
        }
    }
}

/// Gathers elements of one byte and converts them to single precision.
unsafe fn gather_float8(format: Float8, from: *const u8, stride: isize, to: *mut u8, n: usize) {
    let mut dense = [const { MaybeUninit::<u8>::uninit() }; BLOCK];
    // SAFETY: `n` elements of one byte on one side, and of four on the other, as promised by `gather`'s caller.
    unsafe {
        let is_dense = stride == 1 || n <= 1;
        if !is_dense {
            gather_as::<u8>(from, stride, dense.as_mut_ptr().cast(), n);
        }
        let from = if is_dense { from } else { dense.as_ptr().cast() };
        let to = std::slice::from_raw_parts_mut(to.cast::<f32>(), n);
        format.decode(std::slice::from_raw_parts(from, n), to);
    }
}

/// Converts elements of single precision to one byte and scatters them.
unsafe fn scatter_float8(format: Float8, from: *const u8, to: *mut u8, stride: isize, n: usize) {
    let mut dense = [const { MaybeUninit::<u8>::uninit() }; BLOCK];
    // SAFETY: `n` elements of four bytes on one side, and of one on the other, as promised by `scatter`'s caller; the
    // buffer is written before it is read.
    unsafe {
        let is_dense = stride == 1 || n <= 1;
        let codes: *mut u8 = if is_dense { to } else { dense.as_mut_ptr().cast() };
        let from = std::slice::from_raw_parts(from.cast::<f32>(), n);
        format.encode(from, std::slice::from_raw_parts_mut(codes, n));
        if !is_dense {
            scatter_as::<u8>(dense.as_ptr().cast(), to, stride, n);
        }
    }
}

/// Gathers pairs of halves (or of `bf16`) and converts them to `complex64`.
unsafe fn gather_pairs(is_bf16: bool, from: *const u8, stride: isize, to: *mut u8, n: usize) {
    let mut dense = [const { MaybeUninit::<u32>::uninit() }; BLOCK];
    // SAFETY: `n` elements of four bytes on one side, and of eight on the other, as promised by `gather`'s caller.
    unsafe {
        let is_dense = stride == 4 || n <= 1;
        if !is_dense {
            gather_as::<u32>(from, stride, dense.as_mut_ptr().cast(), n);
        }
        let from = if is_dense { from } else { dense.as_ptr().cast() };
        let parts = std::slice::from_raw_parts(from.cast::<u16>(), 2 * n);
        let to = std::slice::from_raw_parts_mut(to.cast::<f32>(), 2 * n);
        if is_bf16 {
            bf16_to_f32(parts, to);
        } else {
            f16_to_f32(parts, to);
        }
    }
}

/// Converts `complex64` elements to pairs of halves (or of `bf16`) and scatters them.
unsafe fn scatter_pairs(is_bf16: bool, from: *const u8, to: *mut u8, stride: isize, n: usize) {
    let mut dense = [const { MaybeUninit::<u32>::uninit() }; BLOCK];
    // SAFETY: `n` elements of eight bytes on one side, and of four on the other, as promised by `scatter`'s caller; the
    // buffer is written before it is read.
    unsafe {
        let is_dense = stride == 4 || n <= 1;
        let parts: *mut u16 = if is_dense { to.cast() } else { dense.as_mut_ptr().cast() };
        let from = std::slice::from_raw_parts(from.cast::<f32>(), 2 * n);
        let parts = std::slice::from_raw_parts_mut(parts, 2 * n);
        if is_bf16 {
            f32_to_bf16(from, parts);
        } else {
            f32_to_f16(from, parts);
        }
        if !is_dense {
            scatter_as::<u32>(dense.as_ptr().cast(), to, stride, n);
        }
    }
}

crate::multiversion! {
    fn spread<T: Copy>(to: &mut [T], value: T) {
        to.fill(value);
    }
}

unsafe fn gather_as<T: Copy>(from: *const u8, stride: isize, to: *mut u8, n: usize) {
    let to = to.cast::<T>();
    // SAFETY: `n` elements on both sides, as promised by `gather`'s caller.
    unsafe {
        if stride == size_of::<T>() as isize {
            let from = std::slice::from_raw_parts(from.cast::<T>(), n);
            copy_slice(std::slice::from_raw_parts_mut(to, n), from);
        } else if stride == 0 {
            spread(std::slice::from_raw_parts_mut(to, n), *from.cast::<T>());
        } else {
            for i in 0..n {
                *to.add(i) = *from.offset(i as isize * stride).cast::<T>();
            }
        }
    }
}

unsafe fn scatter_as<T: Copy>(from: *const u8, to: *mut u8, stride: isize, n: usize) {
    let from = from.cast::<T>();
    for i in 0..n {
        // SAFETY: `n` elements on both sides, as promised by `scatter`'s caller.
        unsafe { *to.offset(i as isize * stride).cast::<T>() = *from.add(i) };
    }
}
