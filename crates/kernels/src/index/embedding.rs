//! Rows of a table: `embedding`, its gradient, and `one_hot`.

use super::select::wrapped_indices;
use super::slices::{SliceCopy, list_offsets};
use super::{
    AHEAD, Accumulate, add_row, add_scaled_row, check_bounds, columns_each, prefetch_row, with_i64,
};
use crate::line::{LineIter, ViewLayout, check_dtype, check_shape, get, put};
use crate::{
    DType, Error, Iter, Result, Scalar, StridedMut, StridedRef, elementwise, for_dtype, interrupt,
    memory, parallel,
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The indices in row-major order, checked to lie in `0..rows`.
fn rows_of(indices: StridedRef<'_>, rows: i64) -> Result<Cow<'_, [i64]>> {
    wrapped_indices(indices, rows, false, |_| Error::index("index out of range in self".into()))
}

fn check_rows(name: &str, shape: &[i64], indices: &[i64], table: &[i64]) -> Result<()> {
    if table.len() != 2 {
        return Err(Error::runtime("'weight' must be 2-D".into()));
    }
    let mut expected: SmallVec<[i64; 6]> = SmallVec::from_slice(indices);
    expected.push(table[1]);
    check_shape(name, shape, &expected)
}

/// Rows of `weight` (`(rows, width)`): `out[..., :] = weight[indices[...], :]`.
///
/// # Errors
/// `IndexError` if an index is not in `0..rows`.
pub fn embedding(
    out: &mut StridedMut<'_>,
    weight: StridedRef<'_>,
    indices: StridedRef<'_>,
) -> Result<()> {
    check_dtype("embedding", out.dtype(), weight.dtype())?;
    check_rows("embedding", out.shape(), indices.shape(), weight.shape())?;
    let rows = rows_of(indices, weight.shape()[0])?;
    let size = weight.dtype().size();
    let out = &*out;
    let last = out.ndim() - 1;
    let row_step = weight.strides()[0] as isize * size as isize;
    let targets = LineIter::new(out.shape(), Some(last), [ViewLayout::from(out)]);
    let slices = SliceCopy {
        to: out.ptr(),
        from: weight.ptr(),
        layouts: [
            ViewLayout::of(&out.strides()[last..], size),
            ViewLayout::of(&weight.strides()[1..], size),
        ],
        shape: &out.shape()[last..],
        listed: 0..0,
        count: rows.len(),
        repeats: false,
    };
    // SAFETY: indices were checked, so rows lie inside both views.
    unsafe {
        slices.copy(&|range, offsets| {
            list_offsets(&targets, range.clone(), offsets, 0);
            for (pair, &row) in offsets.iter_mut().zip(&rows[range]) {
                pair[1] = row as isize * row_step;
            }
        });
    }
    Ok(())
}

/// The gradient of [`embedding`] for its table: `out[r] = sum of grad rows whose index is r`, in order; rows with index
/// `padding_idx` are left out, and with `scale_grad_by_freq` each row is divided by how often its index occurs.
///
/// # Errors
/// `IndexError` if an index is not in `0..rows`.
pub fn embedding_backward(
    out: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    indices: StridedRef<'_>,
    padding_idx: Option<i64>,
    scale_grad_by_freq: bool,
) -> Result<()> {
    check_dtype("embedding_backward", grad.dtype(), out.dtype())?;
    check_rows("embedding_backward", grad.shape(), indices.shape(), out.shape())?;
    let rows = rows_of(indices, out.shape()[0])?;
    let mut counts = Vec::new();
    if out.numel() == 0 {
        // (However many rows without elements there are.)
        return Ok(());
    }
    if scale_grad_by_freq {
        memory::resize(&mut counts, out.shape()[0] as usize, 0_i64)?;
        rows.iter().for_each(|&row| counts[row as usize] += 1);
    }
    let out = &*out;
    for_dtype!(out.dtype(), all, T => {
        sum_rows::<T>(out, &grad, &rows, padding_idx, &counts);
    });
    Ok(())
}

fn sum_rows<T: Accumulate>(
    out: &StridedMut<'_>,
    grad: &StridedRef<'_>,
    rows: &[i64],
    padding_idx: Option<i64>,
    counts: &[i64],
) {
    let size = size_of::<T>() as isize;
    let last = grad.ndim() - 1;
    let (row_step, step) = (out.strides()[0] as isize * size, out.strides()[1] as isize * size);
    let grad_step = grad.strides()[last] as isize * size;
    let width = out.shape()[1] as usize;
    let lines = LineIter::new(grad.shape(), Some(last), [ViewLayout::from(grad)]);
    // Threads own disjoint columns, so each sum is made by one thread in order.
    let is_dense = step == size && grad_step == size;
    let at = |row: i64, column: usize| {
        out.ptr().wrapping_offset(row as isize * row_step + column as isize * step)
    };
    parallel::for_range(width, columns_each(width, rows.len()), &|columns| {
        // SAFETY: the columns of one row lie inside `out`, where no other thread works on them.
        let sums = |row: i64| unsafe {
            let first = at(row, columns.start).cast::<T>();
            std::slice::from_raw_parts_mut(first, columns.len())
        };
        for row in 0..out.shape()[0] {
            if is_dense {
                sums(row).fill(T::default());
            } else {
                // SAFETY: row and columns lie inside `out`.
                columns.clone().for_each(|column| unsafe { put(at(row, column), 0, T::default()) });
            }
        }
        let mut number = 0;
        lines.visit(0..lines.count(), |[from]| {
            let row = rows[number];
            interrupt::check_every::<8>(number);
            number += 1;
            if Some(row) == padding_idx {
                return;
            }
            let scale: Option<T> =
                counts.get(row as usize).map(|&count| Scalar::Float(1.0 / count as f64).to());
            if is_dense {
                if let Some(&next) = rows.get(number + AHEAD) {
                    prefetch_row(at(next, columns.start), columns.len() * size as usize);
                }
                let from = from + columns.start as isize * size;
                // SAFETY: a row of `grad` without gaps.
                let x = unsafe {
                    let first = grad.ptr().wrapping_offset(from).cast::<T>();
                    std::slice::from_raw_parts(first, columns.len())
                };
                match scale {
                    None => add_row(sums(row), x),
                    Some(scale) => add_scaled_row(sums(row), x, scale),
                }
                return;
            }
            for column in columns.clone() {
                let column = column as isize;
                // SAFETY: rows were checked; the column lies inside both views.
                unsafe {
                    let to = at(row, column as usize);
                    let new = get::<T>(grad.ptr(), from + column * grad_step);
                    let new = scale.map_or(new, |scale| new.mul(scale));
                    put(to, 0, get::<T>(to, 0).add(new));
                }
            }
        });
    });
}

/// One-hot rows: `out[..., c] = 1` where `c` is the index, else 0; `out` (`i64`) has one more dimension, of size `num_classes`.
///
/// # Errors
/// If an index is negative or not below `num_classes`.
pub fn one_hot(out: &mut StridedMut<'_>, indices: StridedRef<'_>) -> Result<()> {
    check_dtype("one_hot", out.dtype(), DType::I64)?;
    let Some((&classes, leading)) = out.shape().split_last() else {
        return Err(Error::runtime("one_hot: output has no class dimension".into()));
    };
    check_shape("one_hot", leading, indices.shape())?;
    let out = &*out;
    with_i64(indices, |indices| {
        check_bounds(&indices, (0, i64::MAX), |_| {
            Error::runtime("Class values must be non-negative.".into())
        })?;
        check_bounds(&indices, (0, classes), |_| {
            Error::runtime("Class values must be smaller than num_classes.".into())
        })?;
        let last = out.ndim() - 1;
        let step = out.strides()[last] as isize * 8;
        let views = [ViewLayout::of(&out.strides()[..last], 8), ViewLayout::from(&indices)];
        let lines = LineIter::new(indices.shape(), None, views);
        elementwise::fill(&mut Iter::new(std::slice::from_ref(out), &[])?, Scalar::Int(0))?;
        lines.visit(0..lines.count(), |[to, from]| {
            // SAFETY: the walk stays inside both views, indices were checked.
            unsafe {
                let index = get::<i64>(indices.ptr(), from);
                put(out.ptr(), to + index as isize * step, 1_i64);
            }
        });
        Ok(())
    })
}
