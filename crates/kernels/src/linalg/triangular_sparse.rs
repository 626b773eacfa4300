//! Triangular systems of equations whose matrix is sparse, by substitution row by row.
//!
//! Each column of the solution is made by one thread in the order of the rows: the result does not depend on the number of
//! threads. (T. A. Davis, Direct Methods for Sparse Linear Systems, 2006, chapter 3.)

use super::{Field, GRAIN, Triangle, expect_dtype, for_field};
use crate::dense::SharedMut;
use crate::index::CsrIndices;
use crate::{Error, Result, StridedMut, StridedRef, interrupt, parallel};
use std::ops::Range;

/// Solves `a x = b` in place: `x` (n, k), row-major, holds `b` before. Of `a`, whose columns are in order in each row, only the
/// triangle is read. The solution is NaN where a row has no element on the diagonal; a zero there divides.
///
/// # Errors
/// Shapes, dtypes or orders that do not fit, indices that are not valid, and dtypes without linear algebra.
pub fn solve_triangular_sparse(
    x: &mut StridedMut<'_>,
    indices: CsrIndices<'_>,
    values: StridedRef<'_>,
    triangle: Triangle,
) -> Result<()> {
    let name = "triangular_solve";
    let &[n, k] = x.shape() else {
        return Err(Error::runtime(format!("{name}: the right-hand sides must be a matrix")));
    };
    expect_dtype(values, x.dtype(), name)?;
    indices.check(n, n, values.shape().iter().product())?;
    let is_in_order = |row| indices.col_indices[entries(indices, row)].is_sorted_by(|a, b| a < b);
    if !(0..n as usize).all(is_in_order) {
        return Err(Error::runtime(format!("{name}: the columns of each row must be in order")));
    }
    for_field!(x.dtype(), name, "triangular_solve_cpu", T => {
        let (Some(values), Some(x)) = (values.as_slice::<T>(), x.as_slice_mut::<T>()) else {
            return Err(Error::runtime(format!("{name}: values and matrices must be row-major")));
        };
        solve(x, k as usize, indices, values, triangle);
        Ok(())
    })
}

fn solve<T: Field>(
    x: &mut [T],
    k: usize,
    indices: CsrIndices<'_>,
    values: &[T],
    triangle: Triangle,
) {
    let n = indices.crow_indices.len() - 1;
    if !triangle.unit && (0..n).any(|row| diagonal(indices, row).is_none()) {
        x.fill(T::default().divided_by(T::default()));
        return;
    }
    let shared = SharedMut::new(x);
    parallel::for_range(k, (GRAIN / (values.len() + n).max(1)).max(1), &|columns| {
        for step in 0..n {
            interrupt::check_every::<8>(step);
            let row = if triangle.upper { n - 1 - step } else { step };
            // SAFETY: each column is one block's only; the rows that `eliminate` reads are others than this one.
            let solution = unsafe { shared.slice(row * k + columns.start..row * k + columns.end) };
            for at in beside_diagonal(indices, row, triangle.upper) {
                let from = indices.col_indices[at] as usize * k;
                // SAFETY: as above: columns in order, each once, are not the row itself on either side of it.
                let known = unsafe { shared.slice(from + columns.start..from + columns.end) };
                eliminate(solution, known, T::default().minus(values[at]));
            }
            if let Some(at) = diagonal(indices, row).filter(|_| !triangle.unit) {
                for x in solution {
                    *x = x.divided_by(values[at]);
                }
            }
        }
    });
}

/// The values of a row.
fn entries(indices: CsrIndices<'_>, row: usize) -> Range<usize> {
    indices.crow_indices[row] as usize..indices.crow_indices[row + 1] as usize
}

/// The value of a row that is on the diagonal.
fn diagonal(indices: CsrIndices<'_>, row: usize) -> Option<usize> {
    let own = entries(indices, row);
    let at = indices.col_indices[own.clone()].binary_search(&(row as i64)).ok()?;
    Some(own.start + at)
}

/// The values of a row behind the diagonal, or before it.
fn beside_diagonal(indices: CsrIndices<'_>, row: usize, behind: bool) -> Range<usize> {
    let own = entries(indices, row);
    let columns = &indices.col_indices[own.clone()];
    let before = columns.partition_point(|&column| column < row as i64);
    let after = columns.partition_point(|&column| column <= row as i64);
    if behind { own.start + after..own.end } else { own.start..own.start + before }
}

crate::multiversion! {
    /// `x += factor * known`.
    fn eliminate<T: Field>(x: &mut [T], known: &[T], factor: T) {
        for (x, &known) in x.iter_mut().zip(known) {
            *x = factor.mul_add_to(known, *x);
        }
    }
}
