//! A sparse matrix times a dense one, row by row.
//!
//! Each row of the result is made by one thread, in the order in which its values are stored: the result does not depend on
//! the number of threads.

use super::{AHEAD, Accumulate, add_scaled_row, prefetch_row};
use crate::line::{check_dtype, check_shape};
use crate::{Error, Result, StridedMut, StridedRef, for_dtype, parallel};

/// Products a thread should have to do at least.
const GRAIN: usize = 1 << 14;

/// Where the values of each row are, and their columns.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Row `i` has the values `starts[i]..starts[i + 1]`.
    pub starts: &'a [i64],
    /// The column of each value.
    pub columns: &'a [i64],
}

impl Rows<'_> {
    fn check(self, rows: i64, columns: i64, count: i64) -> Result<()> {
        let is_right = self.starts.len() as i64 == rows + 1
            && self.starts.first() == Some(&0)
            && self.starts.last() == Some(&count)
            && self.starts.is_sorted()
            && self.columns.len() as i64 == count
            && self.columns.iter().all(|&column| (0..columns).contains(&column));
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
    rows: Rows<'_>,
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
    rows.check(m, k, values.shape().iter().product())?;
    for_dtype!(out.dtype(), all, T => {
        let (Some(values), Some(dense)) = (values.as_slice::<T>(), dense.as_slice::<T>()) else {
            return Err(not_dense());
        };
        let Some(out) = out.as_slice_mut::<T>() else { return Err(not_dense()) };
        multiply(out, rows, values, dense, n as usize);
    });
    Ok(())
}

fn not_dense() -> Error {
    Error::runtime("sparse_matmul: values and matrices must be row-major".into())
}

fn multiply<T: Accumulate>(out: &mut [T], rows: Rows<'_>, values: &[T], dense: &[T], n: usize) {
    let count = rows.starts.len() - 1;
    let each = (values.len() / count.max(1)).max(1) * n.max(1);
    let place = OffsetPair(out.as_mut_ptr());
    parallel::for_range(count, (GRAIN / each).max(1), &|range| {
        for row in range {
            // SAFETY: rows of `out` lie one behind the other; each is one block's only.
            let sum = unsafe { std::slice::from_raw_parts_mut(place.at(row * n), n) };
            sum.fill(T::default());
            let places = rows.starts[row] as usize..rows.starts[row + 1] as usize;
            for (&value, at) in values[places.clone()].iter().zip(places) {
                if let Some(&next) = rows.columns.get(at + AHEAD) {
                    prefetch_row(dense[next as usize * n..].as_ptr().cast(), n * size_of::<T>());
                }
                let from = rows.columns[at] as usize * n;
                add_scaled_row(sum, &dense[from..from + n], value);
            }
        }
    });
}

struct OffsetPair<T>(*mut T);
impl<T> OffsetPair<T> {
    fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}
// SAFETY: only handed to blocks that write to rows of their own.
unsafe impl<T> Sync for OffsetPair<T> {}
