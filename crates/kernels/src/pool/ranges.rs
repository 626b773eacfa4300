//! Maxima over windows that are lists of ranges: adaptive pooling, whose windows divide the input into (nearly) equal
//! parts, and fractional pooling, whose windows of one size lie at random distances (Graham 2014, arXiv:1412.6071); and
//! max unpooling, which puts elements back to their indices. Like in `maximum`, ties go to the first element in
//! row-major order, and a NaN wins over everything. A plane is written by one thread.

use super::average::{adaptive, part};
use super::maximum::MaxPoolElement;
use super::{GRAIN, sizes};
use crate::dense::{Compute, Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::interrupt::WorkCounter;
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use std::ops::Range;

/// The windows along three dimensions.
type Ranges = [Vec<Range<usize>>; 3];

/// The largest element of each part of the last `spatial` dimensions, and its position in its plane; output `o` of `n` covers the inputs
/// `floor(o * L / n) .. ceil((o + 1) * L / n)`.
///
/// # Errors
/// An empty spatial dimension, shapes that do not fit, or a dtype that is not real floating.
pub fn adaptive_max_pool(
    out: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    spatial: usize,
) -> Result<()> {
    expect_shape("indices", indices.shape(), out.shape())?;
    let (planes, input, output) = adaptive(x.shape(), out.shape(), spatial)?;
    let parts = |d: usize| memory::collect((0..output[d]).map(|o| part(o, output[d], input[d])));
    let ranges = [parts(0)?, parts(1)?, parts(2)?];
    for_compute!(x.dtype(), "adaptive_max_pool2d", T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| with_output::<i64, _>(indices, |indices| {
            for_planes(out, indices, &x, (planes, input), output.iter().product(), &|_, work| work(&ranges))
        }))
    })
}

/// The largest element of each window of size `kernel`, and its position in its plane. `samples` (planes.., channels, spatial) are numbers
/// in [0, 1) that say where the windows of a plane lie, the innermost dimension's first if there are two.
///
/// # Errors
/// Windows that do not fit into the input, shapes that do not fit, or a dtype that is not real floating.
pub fn fractional_max_pool(
    out: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    samples: StridedRef<'_>,
    kernel: &[usize],
) -> Result<()> {
    let spatial = kernel.len();
    expect_shape("indices", indices.shape(), out.shape())?;
    let (planes, input, output) = adaptive(x.shape(), out.shape(), spatial)?;
    let mut window = [1; 3];
    window[3 - spatial..].copy_from_slice(kernel);
    let fits = (0..3).all(|d| {
        window[d] > 0 && output[d].checked_add(window[d]).is_some_and(|end| end <= input[d] + 1)
    });
    if !fits || samples.numel() < planes * spatial {
        return Err(Error::runtime(format!(
            "fractional_max_pool{spatial}d(): windows of {kernel:?} do not fit input of size {:?} and output of size {:?} with samples of size {:?}",
            x.shape(),
            out.shape(),
            samples.shape()
        )));
    }
    for_compute!(x.dtype(), "fractional_max_pool", T => {
        let (x, samples) = (load::<T>(x)?, load::<T>(samples)?);
        with_output::<T, _>(out, |out| with_output::<i64, _>(indices, |indices| {
            let each = output.iter().product();
            for_planes(out, indices, &x, (planes, input), each, &|plane, work| {
                let own = &samples[plane * spatial..(plane + 1) * spatial];
                let windows = |d: usize| {
                    let number = |at: usize| if spatial == 2 { own[1 - at] } else { own[at] };
                    let sample = if d + spatial < 3 { T::ZERO } else { number(d + spatial - 3) };
                    random_windows(sample, (input[d], output[d], window[d]))
                };
                work(&[windows(0)?, windows(1)?, windows(2)?])
            })
        }))
    })
}

/// `output` windows of size `window` whose distances are around `(input - window) / (output - 1)`, the last one at the end.
fn random_windows<T: Real>(
    sample: T,
    (input, output, window): (usize, usize, usize),
) -> Result<Vec<Range<usize>>> {
    let last = input - window;
    let alpha = T::of(last as f64) / T::of(output.saturating_sub(1) as f64);
    let whole = |x: T| x.wide() as i64;
    memory::collect((0..output).map(|o| {
        let start = if o + 1 == output {
            last
        } else {
            let start =
                whole((T::of(o as f64) + sample) * alpha).saturating_sub(whole(sample * alpha));
            // (Numbers that are not in [0, 1) must not leave the input.)
            start.clamp(0, last as i64) as usize
        };
        start..start + window
    }))
}

/// Gives `work` the windows of a plane.
type Windowed<'a> = dyn Fn(usize, &mut dyn FnMut(&Ranges) -> Result<()>) -> Result<()> + Sync + 'a;

/// The maxima of all planes, whose windows `windows` gives, `size` of each.
fn for_planes<T: MaxPoolElement>(
    out: &mut [T],
    indices: &mut [i64],
    x: &[T],
    (planes, input): (usize, [usize; 3]),
    size: usize,
    windows: &Windowed<'_>,
) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let from: usize = input.iter().product();
    let (out, indices) = (SharedMut::new(out), SharedMut::new(indices));
    parallel::try_for_restartable_range(planes, (GRAIN / (size + from).max(1)).max(1), &|range| {
        for plane in range {
            let span = plane * size..(plane + 1) * size;
            // SAFETY: one task per plane.
            let (out, indices) = unsafe { (out.slice(span.clone()), indices.slice(span)) };
            let x = &x[plane * from..(plane + 1) * from];
            windows(plane, &mut |ranges| {
                plane_maxima(out, indices, x, ranges, input);
                Ok(())
            })?;
        }
        Ok(())
    })
}

fn plane_maxima<T: MaxPoolElement>(
    out: &mut [T],
    indices: &mut [i64],
    x: &[T],
    [depths, rows, columns]: &Ranges,
    input: [usize; 3],
) {
    let (mut at, mut pace) = (0, WorkCounter::new());
    for depth in depths {
        for row in rows {
            for column in columns {
                pace.spend(depth.len() * row.len() * column.len());
                let first = (depth.start * input[1] + row.start) * input[2] + column.start;
                let (mut best, mut index) = (T::LOWEST, first);
                for d in depth.clone() {
                    for h in row.clone() {
                        let line = (d * input[1] + h) * input[2];
                        let start = line + column.start;
                        for (i, &value) in x[start..line + column.end].iter().enumerate() {
                            if value.beats(best) {
                                (best, index) = (value, start + i);
                            }
                        }
                    }
                }
                (out[at], indices[at]) = (best, index as i64);
                at += 1;
            }
        }
    }
}

/// Zeros, and in each plane the elements of `x` at the indices that `indices` gives; of several with one index the last one. The last
/// `spatial` dimensions of `x` (*, sizes) and `out` (*, new sizes) are planes.
///
/// # Errors
/// Shapes that do not fit, or an index outside of its plane.
pub fn max_unpool(
    out: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    indices: StridedRef<'_>,
    spatial: usize,
) -> Result<()> {
    expect_shape("indices", indices.shape(), x.shape())?;
    let outer = x.ndim().saturating_sub(spatial);
    if out.ndim() != x.ndim() || out.shape()[..outer] != x.shape()[..outer] {
        return Err(Error::runtime(format!(
            "max_unpool{spatial}d(): output of size {:?} does not fit input of size {:?}",
            out.shape(),
            x.shape()
        )));
    }
    let planes = x.shape()[..outer].iter().map(|&n| n as usize).product();
    let volume = sizes(&out.shape()[outer..]);
    let (from, to) =
        (sizes(&x.shape()[outer..]).iter().product(), volume.iter().product::<usize>());
    let indices = load::<i64>(indices)?;
    if let Some(bad) = indices.iter().find(|&&i| i < 0 || i as usize >= to) {
        let by: Vec<String> = volume[3 - spatial..].iter().map(usize::to_string).collect(); // bounded: by the rank.
        return Err(Error::runtime(format!(
            "Found an invalid max index: {bad} (output volumes are of size {})",
            by.join("x")
        )));
    }
    for_compute!(x.dtype(), "max_unpool", T => {
        let x = load::<T>(x)?;
        with_output::<T, _>(out, |out| unpool(out, &x, &indices, (planes, from, to)))
    })
}

fn unpool<T: Compute>(
    out: &mut [T],
    x: &[T],
    indices: &[i64],
    (planes, from, to): (usize, usize, usize),
) {
    let out = SharedMut::new(out);
    parallel::for_range(planes, (GRAIN / (from + to).max(1)).max(1), &|range| {
        for plane in range {
            // SAFETY: one task per plane.
            let out = unsafe { out.slice(plane * to..(plane + 1) * to) };
            out.fill(T::default());
            let span = plane * from..(plane + 1) * from;
            for (&value, &at) in x[span.clone()].iter().zip(&indices[span]) {
                out[at as usize] = value;
            }
        }
    });
}
