//! Triangular systems of equations: small ones by substitution here, larger ones by `substitution`
//! for many right-hand sides and by `faer` for few.
//!
//! Right-hand sides are the rows of what is given, so that a batch of matrices that lie column by column is given as it lies.
//! Nothing is refused for its values: zeros on the diagonal give infinities and NaN, as divisions do.

use super::{Field, GRAIN, expect_dtype, for_field, matrices, squares, substitution};
use crate::dense::{SharedMut, expect_shape, load, transpose, with_output};
use crate::gemm::Matrix;
use crate::interrupt::{self, on_own_thread};
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{MatMut, MatRef, Par};

/// Largest order that is solved here.
const SMALL: usize = 16;
/// Largest order that is solved here for few right-hand sides, if the matrix lies column by column.
const FEW: usize = 64;

/// Which elements of a matrix count; the others are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// Whether the matrix is upper triangular; else it is lower triangular.
    pub upper: bool,
    /// The diagonal is taken to be ones.
    pub unit: bool,
}

/// Solves `a x = b` for each row `x`, `b` of `x` and `b` (*, k, n); `a` is (*, n, n), or (n, n) for the whole batch.
///
/// # Errors
/// Shapes or dtypes that do not fit, or a dtype without linear algebra.
pub fn solve_triangular(
    x: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    b: StridedRef<'_>,
    triangle: Triangle,
) -> Result<()> {
    let name = "linalg.solve_triangular";
    let (batch, k, n) = matrices(name, b.shape())?;
    let (matrices_of_a, order) = squares(name, a.shape())?;
    expect_dtype(a, b.dtype(), name)?;
    if order != n || (a.ndim() > 2 && matrices_of_a != batch) {
        return Err(Error::runtime(format!(
            "{name}: Incompatible shapes of A and B for the equation AX = B ({order}x{order} and {n}x{k})"
        )));
    }
    expect_shape("output", x.shape(), b.shape())?;
    let per_a = if a.ndim() > 2 { n * n } else { 0 };
    for_field!(a.dtype(), name, "triangular_solve_cpu", T => {
        let (a, b) = (load::<T>(a)?, load::<T>(b)?);
        with_output::<T, _>(x, |x| {
            let x = SharedMut::new(x);
            parallel::try_for_range(batch, (GRAIN / (n * n * k).max(1)).max(1), &|range| {
                for i in range {
                    // SAFETY: one task per matrix.
                    let x = unsafe { x.slice(i * k * n..(i + 1) * k * n) };
                    x.copy_from_slice(&b[i * k * n..(i + 1) * k * n]);
                    let elements = &a[i * per_a..i * per_a + n * n];
                    let a = SquareElements { elements, n, by_columns: false };
                    solve_one(a, x, triangle, batch == 1)?;
                }
                Ok(())
            })
        })
    })
}

/// The elements of a square matrix, row by row or column by column.
#[derive(Clone, Copy)]
pub(super) struct SquareElements<'a, T> {
    pub(super) elements: &'a [T],
    pub(super) n: usize,
    pub(super) by_columns: bool,
}

/// Solves `a x = x` for the rows of `x` in place. Memory that is refused is so before `x` changes.
pub(super) fn solve_one<T: Field>(
    a: SquareElements<'_, T>,
    x: &mut [T],
    triangle: Triangle,
    threads: bool,
) -> Result<()> {
    let SquareElements { elements, n, by_columns } = a;
    if n == 0 || x.is_empty() {
        return Ok(());
    }
    let k = x.len() / n;
    if by_columns && (n <= SMALL || n <= FEW && !substitution::fits(k)) {
        substitute_columns(elements, n, x, triangle);
        return Ok(());
    }
    if n <= SMALL {
        substitute(elements, n, x, triangle);
        return Ok(());
    }
    if substitution::fits(k) {
        let rows = Matrix::rows(elements.as_ptr(), n);
        let a = if by_columns { rows.t() } else { rows };
        // (As a matrix that lies row by row: products into one that does not take nearly twice the time.)
        let mut sides = memory::filled(T::default(), n * k)?;
        // SAFETY: live matrices of these sizes, apart from each other.
        return unsafe {
            transpose(sides.as_mut_ptr(), x.as_ptr(), (k, n));
            let own = Matrix::rows(sides.as_mut_ptr(), k);
            substitution::solve(a, triangle, own, (n, k), threads)?;
            transpose(x.as_mut_ptr(), sides.as_ptr(), (n, k));
            Ok(())
        };
    }
    let cost = n * x.len() / 2;
    if !interrupt::needs_own_thread(cost) {
        solve_large(a, x, triangle);
        return Ok(());
    }
    let (elements, mut own) = (memory::copied(elements)?, memory::copied(x)?);
    let solved = on_own_thread(cost, move || {
        solve_large(SquareElements { elements: &elements, n, by_columns }, &mut own, triangle);
        own
    });
    x.copy_from_slice(&solved);
    Ok(())
}

fn solve_large<T: Field>(a: SquareElements<'_, T>, x: &mut [T], triangle: Triangle) {
    let SquareElements { elements, n, by_columns } = a;
    let k = x.len() / n;
    let a = MatRef::from_row_major_slice(elements, n, n);
    let a = if by_columns { a.transpose() } else { a };
    let x = MatMut::from_column_major_slice_mut(x, n, k);
    match (triangle.upper, triangle.unit) {
        (false, false) => solve_lower_triangular_in_place(a, x, Par::Seq),
        (false, true) => solve_unit_lower_triangular_in_place(a, x, Par::Seq),
        (true, false) => solve_upper_triangular_in_place(a, x, Par::Seq),
        (true, true) => solve_unit_upper_triangular_in_place(a, x, Par::Seq),
    }
}

crate::multiversion! {
    /// Solves for the rows of `x` with the columns of `a`: multiples of each are taken from what is left.
    fn substitute_columns<T: Field>(a: &[T], n: usize, x: &mut [T], triangle: Triangle) {
        for (nr, x) in x.chunks_exact_mut(n).enumerate() {
            interrupt::check_every::<6>(nr);
            for step in 0..n {
                let at = if triangle.upper { n - 1 - step } else { step };
                let column = &a[at * n..(at + 1) * n];
                if !triangle.unit {
                    x[at] = x[at].divided_by(column[at]);
                }
                let minus = T::default().minus(x[at]);
                let rest = if triangle.upper { 0..at } else { at + 1..n };
                for (value, &factor) in x[rest.clone()].iter_mut().zip(&column[rest]) {
                    *value = minus.mul_add_to(factor, *value);
                }
            }
        }
    }
}

crate::multiversion! {
    /// Solves for the rows of `x` by dot products with the rows of `a`.
    fn substitute<T: Field>(a: &[T], n: usize, x: &mut [T], triangle: Triangle) {
        for (nr, x) in x.chunks_exact_mut(n).enumerate() {
            interrupt::check_every::<8>(nr);
            for step in 0..n {
                let row = if triangle.upper { n - 1 - step } else { step };
                let line = &a[row * n..(row + 1) * n];
                let known = if triangle.upper { row + 1..n } else { 0..row };
                let mut sum = x[row];
                for (&factor, &value) in line[known.clone()].iter().zip(&x[known]) {
                    sum = T::default().minus(factor).mul_add_to(value, sum);
                }
                x[row] = if triangle.unit { sum } else { sum.divided_by(line[row]) };
            }
        }
    }
}
