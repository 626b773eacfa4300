//! `P a = L U` of rectangular matrices as LAPACK's `getrf` gives it: factors in place of the matrix, the swaps of rows as pivots.
//!
//! Matrices lie column by column. Up to 64 rows and columns they are eliminated column by column; larger ones by halves of their
//! columns: the factors of the left half, the triangular system to the right of its diagonal block, the product that is taken
//! from the rest, the factors of that. All but panels of 16 columns is products (S. Toledo, "Locality of reference in LU
//! decomposition with partial pivoting", 1997).

use super::{
    FactorFailure, Field, Triangle, codes_of_batch, for_field, matrices, substitution, with_batch,
};
use crate::dense::{SharedMut, expect_shape, load, store, with_output};
use crate::gemm::{self, GemmSizes, Matrix};
use crate::interrupt;
use crate::{Result, StridedMut, StridedRef, memory};

/// Most rows or columns that are eliminated column by column.
const SMALL: usize = 64;
/// Columns of a panel.
const PANEL: usize = 16;
/// Numbers whose sizes are compared side by side.
const LANES: usize = 8;
/// The triangle of `L`, whose diagonal is not stored.
const LOWER: Triangle = Triangle { upper: false, unit: true };

/// `P a = L U` for `a` (*, n, m), each of whose rows is a column of an m x n matrix: `lu` alike holds U and, below the
/// diagonal, L without its ones; `pivots` (*, k), k = min(m, n), tells from 1 with which row each row was swapped. Gives for each
/// matrix 0, or the number (from 1) of the first element on U's diagonal that is zero.
///
/// # Errors
/// Shapes that do not fit, or a dtype without linear algebra.
pub fn lu_factor(
    lu: &mut StridedMut<'_>,
    pivots: &mut StridedMut<'_>,
    a: StridedRef<'_>,
) -> Result<Vec<i32>> {
    let (batch, n, m) = matrices("linalg.lu_factor_ex", a.shape())?;
    let k = m.min(n);
    expect_shape("LU", lu.shape(), a.shape())?;
    expect_shape("pivots", pivots.shape(), &with_batch(a.shape(), &[k]))?;
    let mut swaps = memory::filled(0_i64, batch * k)?;
    let swaps_ = SharedMut::new(&mut swaps);
    let codes = for_field!(a.dtype(), "linalg.lu_factor_ex", "lu_factor_cpu", T => {
        let a = load::<T>(a)?;
        with_output::<T, _>(lu, |lu| {
            let lu = SharedMut::new(lu);
            codes_of_batch(batch, m * n * k, &|i| {
                // SAFETY: one task per matrix.
                let (lu, swaps) =
                    unsafe { (lu.slice(i * m * n..(i + 1) * m * n), swaps_.slice(i * k..(i + 1) * k)) };
                lu.copy_from_slice(&a[i * m * n..(i + 1) * m * n]);
                factor(lu, (m, n), swaps, batch == 1)?;
                match (0..k).find(|&d| lu[d * m + d] == T::default()) {
                    Some(zero) => Err(FactorFailure::OfMatrix(zero + 1)),
                    None => Ok(()),
                }
            })
        })
    })?;
    store(pivots, &swaps);
    Ok(codes)
}

/// Factorises an (m, n) matrix in place. Memory that is refused is so before it changes.
pub(super) fn factor<T: Field>(
    lu: &mut [T],
    (m, n): (usize, usize),
    swaps: &mut [i64],
    threads: bool,
) -> Result<()> {
    let k = swaps.len();
    if k == 0 {
        return Ok(());
    }
    if m.max(n) <= SMALL {
        eliminate(lu, (m, m), swaps);
        return Ok(());
    }
    // For the products, which ask for less each.
    memory::probe(2 * m * n * size_of::<T>())?;
    let columns = Matrix::rows(lu.as_mut_ptr(), m).t();
    // SAFETY: the matrix, whose columns beyond its rows have no part in the pivots.
    unsafe {
        factor_half(columns, (m, k), swaps, threads)?;
        if n > k {
            let right = columns.at(0, k);
            exchange_rows(right, (m, n - k), swaps);
            substitution::solve(columns, LOWER, right, (k, n - k), threads)?;
        }
    }
    Ok(())
}

/// Factorises an (m, n) matrix that has at least as many rows as columns, of which there are some.
///
/// # Safety
/// All elements are live and writable; those of a column are adjacent.
unsafe fn factor_half<T: Field>(
    a: Matrix<T>,
    (m, n): (usize, usize),
    swaps: &mut [i64],
    threads: bool,
) -> Result<()> {
    interrupt::check();
    let pitch = a.cs as usize;
    // SAFETY: parts of the matrix, which are apart from each other.
    unsafe {
        if n <= PANEL {
            let columns = std::slice::from_raw_parts_mut(a.ptr, (n - 1) * pitch + m);
            eliminate(columns, (m, pitch), swaps);
            return Ok(());
        }
        let first = substitution::half(n);
        let (left, rest) = (first, n - first);
        let (top, below, corner) = (a.at(0, first), a.at(first, 0), a.at(first, first));
        let (of_left, of_rest) = swaps.split_at_mut(first);
        factor_half(a, (m, left), of_left, threads)?;
        exchange_rows(top, (m, rest), of_left);
        substitution::solve_half(a, LOWER, top, (left, rest), threads)?;
        let minus = T::default().minus(T::one());
        let sizes = GemmSizes { m: m - first, n: rest, k: left };
        gemm::product(sizes, corner, below, top, minus, T::one(), threads)?;
        factor_half(corner, (m - first, rest), of_rest, threads)?;
        exchange_rows(below, (m - first, left), of_rest);
        for swap in of_rest.iter_mut() {
            *swap += first as i64;
        }
    }
    Ok(())
}

/// Exchanges rows of an (m, n) matrix as pivots say.
///
/// # Safety
/// As [`factor_half`].
unsafe fn exchange_rows<T: Field>(a: Matrix<T>, (m, n): (usize, usize), swaps: &[i64]) {
    for c in 0..n {
        // SAFETY: a column of the matrix.
        let column = unsafe { std::slice::from_raw_parts_mut(a.at(0, c).ptr, m) };
        for (row, &swap) in swaps.iter().enumerate() {
            column.swap(row, swap as usize - 1);
        }
    }
}

/// Writes into `rows` which row of the product comes from which row of the factors: the permutation
/// that pivots make of as many rows.
///
/// # Errors
/// The first pivot that is no row's number.
pub fn permutation_of(pivots: &[i32], rows: &mut [i64]) -> std::result::Result<(), i32> {
    rows.iter_mut().enumerate().for_each(|(r, row)| *row = r as i64);
    for (r, &pivot) in pivots.iter().enumerate() {
        if pivot < 1 || pivot as usize > rows.len() || r >= rows.len() {
            return Err(pivot);
        }
        rows.swap(r, pivot as usize - 1);
    }
    Ok(())
}

crate::multiversion! {
    /// Eliminates column by column; `sizes` are the elements of each, and how many later the next begins.
    fn eliminate<T: Field>(lu: &mut [T], sizes: (usize, usize), swaps: &mut [i64]) {
        let (m, pitch) = sizes;
        for p in 0..swaps.len() {
            interrupt::check_every::<6>(p);
            let best = p + largest_of(&lu[p * pitch + p..p * pitch + m]);
            swaps[p] = best as i64 + 1;
            if best != p {
                for column in lu.chunks_mut(pitch) {
                    column.swap(p, best);
                }
            }
            let (done, rest) = lu.split_at_mut(((p + 1) * pitch).min(lu.len()));
            let pivot = &mut done[p * pitch..p * pitch + m];
            if pivot[p] == T::default() {
                continue;
            }
            let (top, factors) = pivot.split_at_mut(p + 1);
            let inverse = T::one().divided_by(top[p]);
            for factor in factors.iter_mut() {
                *factor = factor.mul_add_to(inverse, T::default());
            }
            for column in rest.chunks_mut(pitch) {
                let minus = T::default().minus(column[p]);
                for (value, &factor) in column[p + 1..m].iter_mut().zip(&*factors) {
                    *value = minus.mul_add_to(factor, *value);
                }
            }
        }
    }
}

/// Where the first of the largest elements is; NaN is not larger than anything.
#[inline(always)]
fn largest_of<T: Field>(x: &[T]) -> usize {
    let first = x[0].cabs1();
    if first.is_nan() {
        return 0;
    }
    let mut sizes = [first; LANES];
    let (groups, rest) = x.as_chunks::<LANES>();
    for group in groups {
        for l in 0..LANES {
            let size = group[l].cabs1();
            sizes[l] = if size > sizes[l] { size } else { sizes[l] };
        }
    }
    for value in rest {
        let size = value.cabs1();
        sizes[0] = if size > sizes[0] { size } else { sizes[0] };
    }
    let largest = sizes.into_iter().fold(first, f64::max);
    x.iter().position(|value| value.cabs1() == largest).unwrap_or(0)
}
