//! The transform of the weights.

use super::super::direct::Weights;
use super::super::geometry::ConvGeometry;
use super::super::{ConvElement, tasks_of};
use super::{POSITIONS, Transforms};
use crate::dense::SharedMut;
use crate::elementwise::copy_tile;
use crate::{Result, memory, parallel};
use std::ops::Range;

/// Input channels that are transposed at a time.
const TOGETHER: usize = 16;
/// Elements of a kernel.
const KERNEL: usize = 9;

/// Writes `G g G^T` of the kernels of some blocks of `columns` output channels, by group, position, block and input channel; the
/// output channels of a block side by side, zeros after the last.
pub(super) fn transform<T: ConvElement>(
    transformed: &mut Vec<T>,
    weights: Weights<'_, T>,
    g: &ConvGeometry,
    (these, columns): (&Range<usize>, usize),
    transforms: &Transforms<T>,
) -> Result<()> {
    let (blocks, inputs) = (these.len(), g.in_channels);
    let step = blocks * inputs * columns;
    let size = g.groups * POSITIONS * step;
    transformed.clear();
    memory::reserve(transformed, size)?;
    let shared = SharedMut::from_ptr(transformed.as_mut_ptr());
    let grain = tasks_of(inputs * columns, 2 * POSITIONS);
    parallel::try_for_range(g.groups * blocks, grain, &|tasks| {
        // Lanes past the last channel are never written.
        let mut rows = memory::filled(T::default(), TOGETHER * KERNEL * columns)?;
        for task in tasks {
            let (group, block) = (task / blocks, task % blocks);
            let first = (these.start + block) * columns;
            let count = columns.min(g.out_channels - first);
            if count < columns {
                rows.fill(T::default());
            }
            for c in (0..inputs).step_by(TOGETHER) {
                let channels = c..inputs.min(c + TOGETHER);
                load(&mut rows, weights, g, (group, first, count), (&channels, columns));
                for (rows, c) in rows.chunks_exact(KERNEL * columns).zip(channels) {
                    let element = |k| if weights.is_reversed { KERNEL - 1 - k } else { k };
                    let kernel = std::array::from_fn(|k| rows[element(k) * columns..].as_ptr());
                    let at = group * POSITIONS * step + (block * inputs + c) * columns;
                    // SAFETY: nine rows of `columns`; as many at each position, which are this task's.
                    unsafe {
                        let to = shared.ptr().add(at);
                        (transforms.weight)(&kernel, columns, to, step);
                    }
                }
            }
        }
        Ok(())
    })?;
    // SAFETY: each group and block wrote a row of `columns` for each position and input channel: all of them.
    unsafe { transformed.set_len(size) };
    Ok(())
}

/// The kernels of some input channels in memory's order, (channel, element), as rows of output channels.
fn load<T: ConvElement>(
    rows: &mut [T],
    weights: Weights<'_, T>,
    g: &ConvGeometry,
    (group, first, count): (usize, usize, usize),
    (channels, columns): (&Range<usize>, usize),
) {
    let size = size_of::<T>();
    let to_step = (columns * size) as isize;
    if weights.is_reversed {
        // Memory holds the kernels of one input channel side by side.
        for (rows, c) in rows.chunks_exact_mut(KERNEL * columns).zip(channels.clone()) {
            let from = weights.kernels(g, group, first, c, count * KERNEL).as_ptr().cast();
            let strides = (to_step, (KERNEL * size) as isize);
            // SAFETY: `count` kernels of nine elements; nine rows of `columns`.
            unsafe {
                copy_tile::<T, false>(rows.as_mut_ptr().cast(), from, strides, (count, KERNEL));
            }
        }
        return;
    }
    // Memory holds the kernels of one output channel side by side.
    let (depth, run) = (g.in_channels * KERNEL, channels.len() * KERNEL);
    let last = (count - 1) * depth + run;
    let from = weights.kernels(g, group, first, channels.start, last).as_ptr().cast();
    let strides = (to_step, (depth * size) as isize);
    // SAFETY: `count` runs of so many elements; as many rows of `columns`.
    unsafe { copy_tile::<T, false>(rows.as_mut_ptr().cast(), from, strides, (count, run)) };
}
