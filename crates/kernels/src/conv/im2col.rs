//! Gathering the inputs of a block of output positions into the rows of a matrix (`im2col`), and
//! adding such a matrix back (`col2im`).
//!
//! Rows are (channel, kernel element) in the weight's order, columns are output positions
//! `positions`, a range of the row-major order of the output.

use super::geometry::ConvGeometry;
use super::{ConvElement, copy_row};
use crate::{Result, memory};
use std::ops::Range;

/// A segment of one output row: where it starts in the block, its outputs along the last dimension, and
/// the output row's other two coordinates.
struct RowSegment {
    at: usize,
    columns: Range<usize>,
    depth: usize,
    row: usize,
}

/// Cuts a range of positions into segments of output rows.
fn row_segments(g: &ConvGeometry, positions: Range<usize>) -> impl Iterator<Item = RowSegment> {
    let (rows, width) = (g.output[1], g.output[2]);
    let mut next = positions.start;
    std::iter::from_fn(move || {
        (next < positions.end).then(|| {
            let (line, column) = (next / width, next % width);
            let length = (width - column).min(positions.end - next);
            let at = next - positions.start;
            next += length;
            RowSegment {
                at,
                columns: column..column + length,
                depth: line / rows,
                row: line % rows,
            }
        })
    })
}

/// The input row that output row (`depth`, `row`) meets at kernel element (`kd`, `kh`), if inside.
fn input_row(g: &ConvGeometry, segment: &RowSegment, kd: usize, kh: usize) -> Option<usize> {
    let d = (segment.depth * g.stride[0] + kd * g.dilation[0]).checked_sub(g.padding[0])?;
    let h = (segment.row * g.stride[1] + kh * g.dilation[1]).checked_sub(g.padding[1])?;
    (d < g.input[0] && h < g.input[1]).then(|| (d * g.input[1] + h) * g.input[2])
}

/// Kernel elements as (row of the matrix within a channel, depth, height, width).
fn elements(g: &ConvGeometry) -> impl Iterator<Item = (usize, usize, usize, usize)> + use<> {
    let [_, height, width] = g.kernel;
    (0..g.kernel_size()).map(move |k| (k, k / (height * width), k / width % height, k % width))
}

/// Fills `matrix` (channels x kernel elements, positions) from the channels in `x`.
pub(super) fn gather<T: ConvElement>(
    matrix: &mut [T],
    x: &[T],
    g: &ConvGeometry,
    positions: Range<usize>,
) -> Result<()> {
    let width = positions.len();
    let kernel = g.kernel_size();
    if g.input_size() == 0 {
        matrix[..].fill(T::default());
        return Ok(());
    }
    let row_segments = memory::collect(row_segments(g, positions))?;
    for (c, x) in x.chunks_exact(g.input_size()).enumerate() {
        for (k, kd, kh, kw) in elements(g) {
            let row = &mut matrix[(c * kernel + k) * width..][..width];
            let (inside, first) = g.inside(2, kw);
            for segment in &row_segments {
                let out = &mut row[segment.at..segment.at + segment.columns.len()];
                let Some(line) = input_row(g, segment, kd, kh) else {
                    out.fill(T::default());
                    continue;
                };
                let (start, end) = overlap(&segment.columns, &inside);
                out[..start].fill(T::default());
                out[end..].fill(T::default());
                let from = (line as isize + first) as usize;
                let begin = (segment.columns.start + start) * g.stride[2];
                let source = |i: usize| from.wrapping_add(begin + i * g.stride[2]);
                if start == end {
                } else if g.stride[2] == 1 {
                    copy_row(&mut out[start..end], &x[source(0)..source(0) + end - start]);
                } else {
                    let x = &x[source(0)..];
                    for (out, x) in out[start..end].iter_mut().zip(x.iter().step_by(g.stride[2])) {
                        *out = *x;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The part of `columns` inside `inside`, relative to the start of `columns`.
fn overlap(columns: &Range<usize>, inside: &Range<usize>) -> (usize, usize) {
    let start = inside.start.clamp(columns.start, columns.end);
    let end = inside.end.clamp(start, columns.end);
    (start - columns.start, end - columns.start)
}

/// Adds `matrix` (as [`im2col`] would fill it) onto the channels in `x`.
pub(super) fn scatter<T: ConvElement>(
    x: &mut [T],
    matrix: &[T],
    g: &ConvGeometry,
    positions: Range<usize>,
) -> Result<()> {
    let width = positions.len();
    let kernel = g.kernel_size();
    let row_segments = memory::collect(row_segments(g, positions))?;
    for (c, x) in x.chunks_exact_mut(g.input_size().max(1)).enumerate() {
        for (k, kd, kh, kw) in elements(g) {
            let row = &matrix[(c * kernel + k) * width..][..width];
            let (inside, first) = g.inside(2, kw);
            for segment in &row_segments {
                let Some(line) = input_row(g, segment, kd, kh) else { continue };
                let (start, end) = overlap(&segment.columns, &inside);
                if start == end {
                    continue;
                }
                let values = &row[segment.at + start..segment.at + end];
                let begin = (segment.columns.start + start) * g.stride[2];
                let x = &mut x[((line + begin) as isize + first) as usize..];
                if g.stride[2] == 1 {
                    for (x, &v) in x.iter_mut().zip(values) {
                        *x = x.plus(v);
                    }
                } else {
                    for (x, &v) in x.iter_mut().step_by(g.stride[2]).zip(values) {
                        *x = x.plus(v);
                    }
                }
            }
        }
    }
    Ok(())
}
