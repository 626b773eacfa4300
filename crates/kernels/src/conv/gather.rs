//! Gathering the inputs of a block of output positions into the rows of a matrix (`im2col`), and
//! adding such a matrix back (`col2im`).
//!
//! Rows are (channel, kernel element) in the weight's order, columns are output positions
//! `positions`, a range of the row-major order of the output.

use super::geometry::Geometry;
use super::{Number, copy_row};
use crate::{Result, memory};
use std::ops::Range;

/// A piece of one output row: where it starts in the block, its outputs along the last dimension, and
/// the output row's other two coordinates.
struct Piece {
    at: usize,
    columns: Range<usize>,
    depth: usize,
    row: usize,
}

/// Cuts a range of positions into pieces of output rows.
fn pieces(g: &Geometry, positions: Range<usize>) -> impl Iterator<Item = Piece> {
    let (rows, width) = (g.output[1], g.output[2]);
    let mut next = positions.start;
    std::iter::from_fn(move || {
        (next < positions.end).then(|| {
            let (line, column) = (next / width, next % width);
            let length = (width - column).min(positions.end - next);
            let at = next - positions.start;
            next += length;
            Piece { at, columns: column..column + length, depth: line / rows, row: line % rows }
        })
    })
}

/// The input row that output row (`depth`, `row`) meets at kernel element (`kd`, `kh`), if inside.
fn input_row(g: &Geometry, piece: &Piece, kd: usize, kh: usize) -> Option<usize> {
    let d = (piece.depth * g.stride[0] + kd * g.dilation[0]).checked_sub(g.padding[0])?;
    let h = (piece.row * g.stride[1] + kh * g.dilation[1]).checked_sub(g.padding[1])?;
    (d < g.input[0] && h < g.input[1]).then(|| (d * g.input[1] + h) * g.input[2])
}

/// Kernel elements as (row of the matrix within a channel, depth, height, width).
fn elements(g: &Geometry) -> impl Iterator<Item = (usize, usize, usize, usize)> + use<> {
    let [_, height, width] = g.kernel;
    (0..g.kernel_size()).map(move |k| (k, k / (height * width), k / width % height, k % width))
}

/// Fills `matrix` (channels x kernel elements, positions) from the channels in `x`.
pub(super) fn gather<T: Number>(
    matrix: &mut [T],
    x: &[T],
    g: &Geometry,
    positions: Range<usize>,
) -> Result<()> {
    let width = positions.len();
    let kernel = g.kernel_size();
    if g.input_size() == 0 {
        matrix[..].fill(T::default());
        return Ok(());
    }
    let pieces = memory::collect(pieces(g, positions))?;
    for (c, x) in x.chunks_exact(g.input_size()).enumerate() {
        for (k, kd, kh, kw) in elements(g) {
            let row = &mut matrix[(c * kernel + k) * width..][..width];
            let (inside, first) = g.inside(2, kw);
            for piece in &pieces {
                let out = &mut row[piece.at..piece.at + piece.columns.len()];
                let Some(line) = input_row(g, piece, kd, kh) else {
                    out.fill(T::default());
                    continue;
                };
                let (start, end) = overlap(&piece.columns, &inside);
                out[..start].fill(T::default());
                out[end..].fill(T::default());
                let from = (line as isize + first) as usize;
                let begin = (piece.columns.start + start) * g.stride[2];
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

/// Adds `matrix` (as [`gather`] would fill it) onto the channels in `x`.
pub(super) fn scatter<T: Number>(
    x: &mut [T],
    matrix: &[T],
    g: &Geometry,
    positions: Range<usize>,
) -> Result<()> {
    let width = positions.len();
    let kernel = g.kernel_size();
    let pieces = memory::collect(pieces(g, positions))?;
    for (c, x) in x.chunks_exact_mut(g.input_size().max(1)).enumerate() {
        for (k, kd, kh, kw) in elements(g) {
            let row = &matrix[(c * kernel + k) * width..][..width];
            let (inside, first) = g.inside(2, kw);
            for piece in &pieces {
                let Some(line) = input_row(g, piece, kd, kh) else { continue };
                let (start, end) = overlap(&piece.columns, &inside);
                if start == end {
                    continue;
                }
                let values = &row[piece.at + start..piece.at + end];
                let begin = (piece.columns.start + start) * g.stride[2];
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
