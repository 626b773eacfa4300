//! Max pooling: the largest element of each window and its position in the plane.
//!
//! Ties go to the first element in row-major order, a NaN wins over everything, as in PyTorch. The
//! running maxima of a row of outputs, and their positions, live in two small buffers.

use super::{PoolGeometry, PoolWindow, maximum_rows, output_shape};
use crate::dense::{Compute, Real, SharedMut, expect_shape, load, with_output};
use crate::interrupt::WorkCounter;
use crate::lanes::{Column, ROWS, buffer_width, to_columns, to_rows};
use crate::windows::{Windows, planes_of};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory};

/// What max pooling compares: floats in their compute type, integers as `i64`.
pub(super) trait MaxPoolElement: Compute {
    const LOWEST: Self;
    /// Whether `self` replaces `best`.
    fn beats(self, best: Self) -> bool;
}
macro_rules! ordered_float {
    ($($t:ident),*) => {$(
        impl MaxPoolElement for $t {
            const LOWEST: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn beats(self, best: Self) -> bool { (self > best) | Real::is_nan(self) }
        }
    )*};
}
ordered_float!(f32, f64);
impl MaxPoolElement for i64 {
    const LOWEST: Self = i64::MIN;
    #[inline(always)]
    fn beats(self, best: Self) -> bool {
        self > best
    }
}

/// `out[o] = max of x over the window of o`; `indices` (i64, the output's shape) receives each
/// maximum's position in its plane (row-major over the spatial dimensions).
///
/// # Errors
/// Shapes that do not fit, or a complex or bool dtype.
pub fn max_pool(
    out: &mut StridedMut<'_>,
    indices: Option<&mut StridedMut<'_>>,
    x: StridedRef<'_>,
    window: &PoolWindow,
) -> Result<()> {
    let shape = output_shape(x.shape(), window)?;
    expect_shape("output", out.shape(), &shape)?;
    if let Some(indices) = &indices {
        expect_shape("indices", indices.shape(), &shape)?;
    }
    let g = PoolGeometry::new(x.shape(), &shape, window);
    match x.dtype() {
        DType::F16 | DType::BF16 | DType::F32 => forward::<f32>(out, indices, x, &g)?,
        DType::F64 => forward::<f64>(out, indices, x, &g)?,
        dtype if dtype.is_integral(false) => forward::<i64>(out, indices, x, &g)?,
        dtype => return Err(Error::not_implemented("max_pool2d", dtype)),
    }
    Ok(())
}

fn forward<T: MaxPoolElement>(
    out: &mut StridedMut<'_>,
    indices: Option<&mut StridedMut<'_>>,
    x: StridedRef<'_>,
    g: &PoolGeometry,
) -> Result<()> {
    let x = load::<T>(x)?;
    with_output::<T, _>(out, |out| match indices {
        Some(indices) => with_output::<i64, _>(indices, |indices| all_planes(out, indices, &x, g)),
        None => all_planes(out, &mut [], &x, g),
    })
}

fn all_planes<T: MaxPoolElement>(
    out: &mut [T],
    indices: &mut [i64],
    x: &[T],
    g: &PoolGeometry,
) -> Result<()> {
    let (size, from) = (g.output_size(), g.input_size());
    let wanted = !indices.is_empty();
    let (out, indices) = (SharedMut::new(out), SharedMut::new(indices));
    if let Some(windows) = g.small_windows()? {
        return windows.for_planes(g.planes, &|planes| {
            // SAFETY: each task has planes of its own.
            let (out, x) = unsafe { planes_of((out, size), (x, from), &planes) };
            if wanted {
                // SAFETY: as above.
                let indices = unsafe { indices.slice(planes.start * size..planes.end * size) };
                columns_indices(out, indices, x, &windows)
            } else {
                columns_values(out, x, &windows)
            }
        });
    }
    g.for_planes(&|plane| {
        let span = plane * size..(plane + 1) * size;
        // SAFETY: one task per plane.
        let out = unsafe { out.slice(span.clone()) };
        let x = &x[plane * from..(plane + 1) * from];
        if wanted {
            // SAFETY: as above.
            let indices = unsafe { indices.slice(span) };
            if maximum_rows::fits(g) {
                maximum_rows::plane(out, indices, x, g);
            } else {
                plane_indices(out, indices, x, g);
            }
        } else {
            plane_values(out, x, g);
        }
        Ok(())
    })
}

crate::multiversion! {
    fn columns_values<T: MaxPoolElement>(out: &mut [T], x: &[T], windows: &Windows) -> Result<()> {
        let mut columns = memory::filled([T::default(); ROWS], buffer_width(windows.inputs))?;
        let mut results = memory::filled([T::default(); ROWS], buffer_width(windows.outputs))?;
        let mut x = x;
        for out in out.chunks_mut(ROWS * windows.outputs) {
            let count = out.len() / windows.outputs;
            to_columns(&mut columns, x, windows.inputs, count);
            windows.fold(
                |_, _| [T::LOWEST; ROWS],
                |mut best: Column<T>, at, _| {
                    // SAFETY: there is a column for each input.
                    let values = unsafe { *columns.get_unchecked(at) };
                    for l in 0..ROWS {
                        best[l] = if values[l].beats(best[l]) { values[l] } else { best[l] };
                    }
                    best
                },
                |o, best| results[o] = best,
            );
            to_rows(out, &results, windows.outputs);
            x = &x[count * windows.inputs..];
        }
        Ok(())
    }
}

crate::multiversion! {
    /// Computes what [`columns_values`] computes, and the position of each maximum.
    fn columns_indices<T: MaxPoolElement>(out: &mut [T], indices: &mut [i64], x: &[T], windows: &Windows) -> Result<()> {
        let mut columns = memory::filled([T::default(); ROWS], buffer_width(windows.inputs))?;
        let mut results = memory::filled([T::default(); ROWS], buffer_width(windows.outputs))?;
        let mut positions = memory::filled([0_u32; ROWS], buffer_width(windows.outputs))?;
        let mut position_rows = memory::filled(0_u32, ROWS * windows.outputs)?;
        let mut x = x;
        let groups = out.chunks_mut(ROWS * windows.outputs);
        for (out, indices) in groups.zip(indices.chunks_mut(ROWS * windows.outputs)) {
            let count = out.len() / windows.outputs;
            to_columns(&mut columns, x, windows.inputs, count);
            windows.fold(
                |_, first| ([T::LOWEST; ROWS], [first as u32; ROWS]),
                |(mut best, mut positions): (Column<T>, Column<u32>), at, _| {
                    // SAFETY: there is a column for each input.
                    let values = unsafe { *columns.get_unchecked(at) };
                    for l in 0..ROWS {
                        let wins = values[l].beats(best[l]);
                        best[l] = if wins { values[l] } else { best[l] };
                        positions[l] = if wins { at as u32 } else { positions[l] };
                    }
                    (best, positions)
                },
                |o, result| (results[o], positions[o]) = result,
            );
            to_rows(out, &results, windows.outputs);
            let position_rows = &mut position_rows[..indices.len()];
            to_rows(position_rows, &positions, windows.outputs);
            for (index, &position) in indices.iter_mut().zip(&*position_rows) {
                *index = i64::from(position);
            }
            x = &x[count * windows.inputs..];
        }
        Ok(())
    }
}

crate::multiversion! {
    fn plane_values<T: MaxPoolElement>(out: &mut [T], x: &[T], g: &PoolGeometry) {
        out.fill(T::LOWEST);
        for_taps(g, |o, i, n| {
            let (best, x) = (&mut out[o..o + n], &x[i..]);
            match g.stride[2] {
                1 => keep_larger_at::<T, 1>(best, x, 1),
                2 => keep_larger_at::<T, 2>(best, x, 2),
                stride => keep_larger_at::<T, 0>(best, x, stride),
            }
        });
    }
}

/// `best[j] = max(best[j], x[j * stride])`; `S` is the stride, or 0 if it is not a constant.
#[inline(always)]
fn keep_larger_at<T: MaxPoolElement, const S: usize>(best: &mut [T], x: &[T], stride: usize) {
    let step = if S == 0 { stride } else { S };
    assert!(best.is_empty() || (best.len() - 1) * step < x.len());
    for (j, best) in best.iter_mut().enumerate() {
        // SAFETY: the assertion covers the last and so every element.
        let value = unsafe { *x.get_unchecked(j * step) };
        *best = if value.beats(*best) { value } else { *best };
    }
}

crate::multiversion! {
    fn plane_indices<T: MaxPoolElement>(out: &mut [T], indices: &mut [i64], x: &[T], g: &PoolGeometry) {
        out.fill(T::LOWEST);
        start_indices(indices, g);
        for_taps(g, |o, i, n| {
            let (best, at, x) = (&mut out[o..o + n], &mut indices[o..o + n], &x[i..]);
            match g.stride[2] {
                1 => keep_larger_index_at::<T, 1>(best, at, x, i as i64, 1),
                2 => keep_larger_index_at::<T, 2>(best, at, x, i as i64, 2),
                stride => keep_larger_index_at::<T, 0>(best, at, x, i as i64, stride),
            }
        });
    }
}

/// Computes what [`keep_larger_at`] computes, and the position of each maximum, which is `first + j * stride`.
#[inline(always)]
fn keep_larger_index_at<T: MaxPoolElement, const S: usize>(
    best: &mut [T],
    at: &mut [i64],
    x: &[T],
    first: i64,
    stride: usize,
) {
    let step = if S == 0 { stride } else { S };
    assert!(best.is_empty() || (best.len() - 1) * step < x.len());
    for (j, (best, at)) in best.iter_mut().zip(at).enumerate() {
        // SAFETY: the assertion covers the last and so every element.
        let value = unsafe { *x.get_unchecked(j * step) };
        let wins = value.beats(*best);
        *best = if wins { value } else { *best };
        *at = if wins { first + (j * step) as i64 } else { *at };
    }
}

/// The first element of each window that is inside of the input: the result if no element exceeds the lowest value.
#[inline(always)]
fn start_indices(indices: &mut [i64], g: &PoolGeometry) {
    let first = |dim: usize, o: usize| {
        let (taps, first) = g.taps(dim, o);
        (first + (taps.start * g.dilation[dim]) as isize) as usize
    };
    let (mut at, mut pace) = (0, WorkCounter::new());
    for d in 0..g.output[0] {
        for h in 0..g.output[1] {
            pace.spend(g.output[2]);
            let row = (first(0, d) * g.input[1] + first(1, h)) * g.input[2];
            for w in 0..g.output[2] {
                indices[at] = (row + first(2, w)) as i64;
                at += 1;
            }
        }
    }
}

/// Outputs of a row that are worked on together.
const MAX_ROW_OUTPUTS: usize = 1 << 16;

/// For every output row, or a part of a long one, and kernel element inside: `work(first output, its input, outputs)`. Kernel
/// elements come in row-major order for each output.
#[inline(always)]
pub(super) fn for_taps(g: &PoolGeometry, mut work: impl FnMut(usize, usize, usize)) {
    // Kernel elements further on are outside for every output, however large the kernel.
    let within = g.kernel[2].min((g.input[2] + g.padding[2]).div_ceil(g.dilation[2]));
    let mut pace = WorkCounter::new();
    for d in 0..g.output[0] {
        let (depths, first_d) = g.taps(0, d);
        for h in 0..g.output[1] {
            let (rows, first_h) = g.taps(1, h);
            let out = (d * g.output[1] + h) * g.output[2];
            for start in (0..g.output[2]).step_by(MAX_ROW_OUTPUTS) {
                let part = start..g.output[2].min(start + MAX_ROW_OUTPUTS);
                for kd in depths.clone() {
                    let id = (first_d + (kd * g.dilation[0]) as isize) as usize;
                    for kh in rows.clone() {
                        let ih = (first_h + (kh * g.dilation[1]) as isize) as usize;
                        let line = (id * g.input[1] + ih) * g.input[2];
                        for kw in 0..within {
                            let (columns, first) = g.columns(kw);
                            let columns = columns.start.max(part.start)..columns.end.min(part.end);
                            if !columns.is_empty() {
                                pace.spend(columns.len());
                                let iw = (columns.start * g.stride[2]) as isize + first;
                                work(out + columns.start, line + iw as usize, columns.len());
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The gradient of [`max_pool`]: adds each element of `grad` to the input element its index names.
/// `grad_x` is (*, spatial...) with `spatial` pooled dimensions.
///
/// # Errors
/// Shapes that do not fit, an index outside its plane, or a dtype that is not real floating.
pub fn max_pool_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    indices: StridedRef<'_>,
    spatial: usize,
) -> Result<()> {
    expect_shape("indices", indices.shape(), grad.shape())?;
    let planes = grad.ndim().saturating_sub(spatial);
    if grad_x.ndim() != grad.ndim() || grad_x.shape()[..planes] != grad.shape()[..planes] {
        return Err(Error::runtime(format!(
            "Expected grad_output with the planes of the input {:?}, but got {:?}",
            grad_x.shape(),
            grad.shape()
        )));
    }
    let size = |shape: &[i64]| shape.iter().map(|&s| s as usize).product::<usize>();
    let (from, to) = (size(&grad.shape()[planes..]), size(&grad_x.shape()[planes..]));
    let indices = load::<i64>(indices)?;
    if let Some(bad) = indices.iter().find(|&&i| i < 0 || i as usize >= to) {
        return Err(Error::runtime(format!(
            "found an invalid max index: {bad} (output volumes are of size {to})"
        )));
    }
    let count = size(&grad.shape()[..planes]);
    crate::dense::for_compute!(grad.dtype(), "max_pool2d_backward", T => {
        let grad = load::<T>(grad)?;
        with_output::<T, _>(grad_x, |out| scatter(out, &grad, &indices, count, from, to))?;
        Ok(())
    })
}

fn scatter<T: Real>(
    out: &mut [T],
    grad: &[T],
    indices: &[i64],
    planes: usize,
    from: usize,
    to: usize,
) {
    let out = SharedMut::new(out);
    crate::parallel::for_range(planes, (super::GRAIN / (from + to).max(1)).max(1), &|range| {
        // SAFETY: each task has planes of its own.
        let out = unsafe { out.slice(range.start * to..range.end * to) };
        out.fill(T::ZERO);
        let mut base = 0;
        let span = range.start * from..range.end * from;
        let (grad, indices) = (&grad[span.clone()], &indices[span]);
        for (grad, indices) in grad.chunks_exact(from.max(1)).zip(indices.chunks_exact(from.max(1)))
        {
            for (&g, &i) in grad.iter().zip(indices) {
                out[base + i as usize] += g;
            }
            base += to;
        }
    });
}
