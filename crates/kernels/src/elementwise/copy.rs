//! Copies elements without looking at them: dense memory at once, transposed views tile by tile so
//! that both sides use whole cache lines, everything else run by run.

use crate::simd::transpose::{self, SQUARE};
use crate::{Error, Iter, Result, parallel};

/// Elements from which work is worth splitting over threads.
const GRAIN: usize = 32768;
/// A tile of a transposed copy: elements along the output's rows.
const TILE: usize = 32;
/// And along the input's rows: many, so that each page of the input is visited seldom. Both sides'
/// lines together still fit the first-level cache.
const STRIP: usize = 128;
/// Bytes from which a copy is written past the caches, which it would only empty.
const STREAMED: usize = 1 << 22;

/// Copies the input to the output (1 output, 1 input of one dtype).
pub fn copy(iter: &mut Iter) -> Result<()> {
    if iter.outputs() != 1 || iter.operands() != 2 || iter.dtype(0) != iter.dtype(1) {
        return Err(Error::runtime("copy: expected an output and an input of one dtype".into()));
    }
    match iter.dtype(0).size() {
        1 => copy_as::<u8>(iter),
        2 => copy_as::<u16>(iter),
        4 => copy_as::<u32>(iter),
        8 => copy_as::<u64>(iter),
        _ => copy_as::<[u64; 2]>(iter),
    }
    Ok(())
}

fn copy_as<T: Copy>(iter: &Iter) {
    let size = size_of::<T>() as isize;
    if let Some(across) = transposed_dim::<T>(iter) {
        return copy_transposed::<T>(iter, across);
    }
    iter.for_each(GRAIN, &|ptrs, strides, n| {
        let (to, from) = (ptrs[0], ptrs[1].cast_const());
        if n == 1 || (strides[0] == size && strides[1] == size) {
            // SAFETY: `n` dense elements on both sides; `copy` allows the very same view.
            unsafe { std::ptr::copy(from.cast::<T>(), to.cast::<T>(), n) };
            return;
        }
        for i in 0..n as isize {
            // SAFETY: `n` elements at these distances.
            unsafe {
                *to.wrapping_offset(i * strides[0]).cast::<T>() =
                    *from.wrapping_offset(i * strides[1]).cast::<T>();
            }
        }
    });
}

/// The dimension along which the input is dense, if the output is dense along another, and both are
/// long enough for tiles to pay.
fn transposed_dim<T>(iter: &Iter) -> Option<usize> {
    let size = size_of::<T>() as isize;
    if iter.dims() < 2 || iter.size(0) < 8 || iter.stride(0, 0) != size || iter.stride(0, 1) == size
    {
        return None;
    }
    (1..iter.dims()).find(|&dim| iter.stride(dim, 1) == size && iter.size(dim) >= 8)
}

/// Copies tile by tile: dimension 0 is dense in the output, dimension `across` in the input.
fn copy_transposed<T: Copy>(iter: &Iter, across: usize) {
    let (n, m) = (iter.size(0), iter.size(across));
    let strips = m.div_ceil(STRIP);
    let planes = iter.numel() / (n * m);
    let is_aligned = iter.ptr(0).addr().is_multiple_of(64)
        && (1..iter.dims()).all(|dim| iter.stride(dim, 0) % 64 == 0);
    let is_streamed = is_aligned && iter.numel() * size_of::<T>() >= STREAMED;
    parallel::for_range(planes * strips, (GRAIN / (n * STRIP)).max(1), &|tasks| {
        for task in tasks {
            let (mut plane, first) = (task / strips, task % strips * STRIP);
            let (mut to, mut from) = (iter.ptr(0), iter.ptr(1));
            for dim in (1..iter.dims()).filter(|&dim| dim != across) {
                let position = (plane % iter.size(dim)) as isize;
                plane /= iter.size(dim);
                to = to.wrapping_offset(position * iter.stride(dim, 0));
                from = from.wrapping_offset(position * iter.stride(dim, 1));
            }
            to = to.wrapping_offset(first as isize * iter.stride(across, 0));
            from = from.wrapping_offset(first as isize * iter.stride(across, 1));
            let width = STRIP.min(m - first);
            for start in (0..n).step_by(TILE) {
                let (to, from) = (
                    to.wrapping_offset(start as isize * iter.stride(0, 0)),
                    from.wrapping_offset(start as isize * iter.stride(0, 1)),
                );
                let strides = (iter.stride(across, 0), iter.stride(0, 1));
                let size = (TILE.min(n - start), width);
                // SAFETY: the tile lies inside both views; rows of the output are aligned as streaming wants them.
                unsafe {
                    if is_streamed {
                        copy_tile::<T, true>(to, from, strides, size);
                    } else {
                        copy_tile::<T, false>(to, from, strides, size);
                    }
                }
            }
            if is_streamed {
                transpose::fence();
            }
        }
    });
}

/// Copies `from[i * strides.1 + j * size]` to `to[j * strides.0 + i * size]` for `i < n`, `j < width`; `STREAM` as in
/// [`transpose::square`].
///
/// # Safety
/// All these elements are live, those of `to` writable; with `STREAM` rows of `to` are aligned to 64 bytes.
#[inline(always)]
pub(crate) unsafe fn copy_tile<T: Copy, const STREAM: bool>(
    to: *mut u8,
    from: *const u8,
    strides: (isize, isize),
    (n, width): (usize, usize),
) {
    // Squares of one cache line go through registers: whole lines are read and written.
    let (whole_n, whole_width) = (n - n % SQUARE, width - width % SQUARE);
    let size = size_of::<T>() as isize;
    for i in (0..whole_n as isize).step_by(SQUARE) {
        for j in (0..whole_width as isize).step_by(SQUARE) {
            let to = to.wrapping_offset(j * strides.0 + i * size);
            let from = from.wrapping_offset(i * strides.1 + j * size);
            // SAFETY: the square lies inside the tile.
            unsafe { transpose::square::<T, STREAM>(to, strides.0, from, strides.1) };
        }
    }
    for j in 0..width {
        let first = if j < whole_width { whole_n } else { 0 };
        let row = to.wrapping_offset(j as isize * strides.0).cast::<T>();
        let column = from.cast::<T>().wrapping_add(j).cast::<u8>();
        for i in first..n {
            // SAFETY: as promised by the caller.
            unsafe { *row.add(i) = *column.wrapping_offset(i as isize * strides.1).cast::<T>() };
        }
    }
}
