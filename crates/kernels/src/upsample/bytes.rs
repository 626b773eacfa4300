//! Images of bytes resized in whole numbers: first the columns, then the lines, both rounded to bytes.
//!
//! Weights are multiples of a power of two that 15 bits hold ([`WholeWeights`]), sums are 32 bits wide: the results are the same on
//! all machines, and those of PyTorch and Pillow.

use super::axis::{AxisWeights, WholeWeights};
use super::{GRAIN, UpsampleOptions, spatial};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory, parallel};

/// `x` (N, C, H, W) resized to `out` (N, C, H', W').
pub(super) fn upsample(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    options: &UpsampleOptions,
) -> Result<()> {
    let (from, to) = (spatial(x.shape()), spatial(out.shape()));
    let [rows, columns] = [0, 1].map(|dim| {
        let whole =
            AxisWeights::<f64>::new(from[dim + 1], to[dim + 1], options, options.factors[dim]);
        WholeWeights::new(&whole?)
    });
    let (rows, columns) = (rows?, columns?);
    let planes = (x.shape()[0] * x.shape()[1]) as usize;
    let bytes = loaded(x)?;
    let mut wide = memory::filled(0_u8, planes.saturating_mul(from[1]).saturating_mul(to[2]))?;
    each_line(&mut wide, to[2], &|line, out| {
        let x = &bytes[line * from[2]..][..from[2]];
        for (i, out) in out.iter_mut().enumerate() {
            *out = rounded(
                columns.of(i).iter().map(|&(at, by)| by * i32::from(x[at])).sum(),
                columns.bits,
            );
        }
    })?;
    let mut result = memory::filled(0_u8, planes * to[1] * to[2])?;
    each_line(&mut result, to[2], &|line, out| {
        let plane = &wide[line / to[1] * from[1] * to[2]..][..from[1] * to[2]];
        let terms = rows.of(line % to[1]);
        for (i, out) in out.iter_mut().enumerate() {
            let term = |&(at, by): &(usize, i32)| by * i32::from(plane[at * to[2] + i]);
            *out = rounded(terms.iter().map(term).sum(), rows.bits);
        }
    })?;
    stored(out, &result)
}

/// A sum of weighted bytes as a byte.
#[inline(always)]
fn rounded(sum: i32, bits: u32) -> u8 {
    let half = (1 << bits) >> 1;
    ((sum + half) >> bits).clamp(0, 255) as u8
}

/// Calls `work` with the number of each line and its elements, on several threads.
fn each_line(out: &mut [u8], width: usize, work: &(dyn Fn(usize, &mut [u8]) + Sync)) -> Result<()> {
    let lines = out.len() / width.max(1);
    let shared = crate::dense::SharedMut::new(out);
    parallel::for_range(lines, (GRAIN / (4 * width).max(1)).max(1), &|range| {
        for line in range {
            // SAFETY: one task per line.
            work(line, unsafe { shared.slice(line * width..(line + 1) * width) });
        }
    });
    Ok(())
}

/// The elements in row-major order.
fn loaded(x: StridedRef<'_>) -> Result<Vec<u8>> {
    if x.dtype() != DType::U8 {
        return Err(Error::not_implemented("upsample", x.dtype()));
    }
    let mut all = memory::filled(0_u8, x.numel())?;
    if let Some(slice) = x.as_slice::<u8>() {
        all.copy_from_slice(slice);
        return Ok(all);
    }
    for (to, value) in all.iter_mut().zip(crate::dense::load::<i64>(x)?.iter()) {
        *to = *value as u8;
    }
    Ok(all)
}

/// Writes the elements in row-major order.
fn stored(out: &mut StridedMut<'_>, bytes: &[u8]) -> Result<()> {
    if let Some(slice) = out.as_slice_mut::<u8>() {
        slice.copy_from_slice(bytes);
        return Ok(());
    }
    let wide = memory::collect(bytes.iter().map(|&b| i64::from(b)))?;
    crate::dense::store(out, &wide);
    Ok(())
}
