//! A sparse matrix times a dense one, row by row.
//!
//! Each row of the result is made by one thread, in the order in which its values are stored: the result does not depend on
//! the number of threads.

use super::{AHEAD, Accumulate, add_scaled_row, prefetch_row};
use crate::dense::SharedMut;
use crate::line::{check_dtype, check_shape};
use crate::{Error, Result, StridedMut, StridedRef, for_dtype, parallel};

/// Products a thread should have to do at least.
const GRAIN: usize = 1 << 14;

/// The row pointers and column indices of a sparse matrix in compressed sparse row (CSR) format.
#[derive(Clone, Copy)]
pub struct CsrIndices<'a> {
    /// Row `i` has the values `crow_indices[i]..crow_indices[i + 1]`.
    pub crow_indices: &'a [i64],
    /// The column of each value.
    pub col_indices: &'a [i64],
}

impl CsrIndices<'_> {
    /// Refuses indices that are not those of such a matrix.
    pub(crate) fn check(self, rows: i64, columns: i64, count: i64) -> Result<()> {
        let is_right = self.crow_indices.len() as i64 == rows + 1
            && self.crow_indices.first() == Some(&0)
            && self.crow_indices.last() == Some(&count)
            && self.crow_indices.is_sorted()
            && self.col_indices.len() as i64 == count
            && self.col_indices.iter().all(|&column| (0..columns).contains(&column));
        if is_right {
            return Ok(());
        }
        Err(Error::runtime(format!(
            "the indices of a sparse matrix of {rows} x {columns} with {count} values are not valid"
        )))
    }
}

/// `out[i, :] = sum over the values v of row i, in column j, of v * dense[j, :]`; (m, k) times (k, n). All row-major.
///
/// # Errors
/// For other shapes, dtypes or orders, and for indices that are not valid.
pub fn sparse_matmul(
    out: &mut StridedMut<'_>,
    indices: CsrIndices<'_>,
    values: StridedRef<'_>,
    dense: StridedRef<'_>,
) -> Result<()> {
    check_dtype("sparse_matmul", out.dtype(), dense.dtype())?;
    check_dtype("sparse_matmul", out.dtype(), values.dtype())?;
    let &[m, n] = out.shape() else {
        return Err(Error::runtime("sparse_matmul: the result must be a matrix".into()));
    };
    let k = dense.shape().first().copied().unwrap_or(0);
    check_shape("sparse_matmul", dense.shape(), &[k, n])?;
    indices.check(m, k, values.shape().iter().product())?;
    for_dtype!(out.dtype(), all, T => {
        let (Some(values), Some(dense)) = (values.as_slice::<T>(), dense.as_slice::<T>()) else {
            return Err(not_dense());
        };
        let Some(out) = out.as_slice_mut::<T>() else { return Err(not_dense()) };
        multiply(out, indices, values, dense, n as usize);
    });
    Ok(())
}

fn not_dense() -> Error {
    Error::runtime("sparse_matmul: values and matrices must be row-major".into())
}

fn multiply<T: Accumulate>(
    out: &mut [T],
    indices: CsrIndices<'_>,
    values: &[T],
    dense: &[T],
    n: usize,
) {
    let count = indices.crow_indices.len() - 1;
    let each = (values.len() / count.max(1)).max(1) * n.max(1);
    let shared = SharedMut::new(out);
    parallel::for_range(count, (GRAIN / each).max(1), &|range| {
        for row in range {
            // SAFETY: rows of `out` lie one behind the other; each is one block's only.
            let sum = unsafe { shared.slice(row * n..(row + 1) * n) };
            sum.fill(T::default());
            let entries =
                indices.crow_indices[row] as usize..indices.crow_indices[row + 1] as usize;
            for (&value, at) in values[entries.clone()].iter().zip(entries) {
                if let Some(&next) = indices.col_indices.get(at + AHEAD) {
                    prefetch_row(dense[next as usize * n..].as_ptr().cast(), n * size_of::<T>());
                }
                let from = indices.col_indices[at] as usize * n;
                add_scaled_row(sum, &dense[from..from + n], value);
            }
        }
    });
}
