//! `P a = L U` of rectangular matrices as LAPACK's `getrf` gives it: factors in place of the matrix, the swaps of rows as pivots.
//!
//! Matrices lie column by column. Up to 64 rows and columns they are eliminated here, column by column; larger ones by `faer`.

use super::factors::{ColMajor, Lu};
use super::{FactorFailure, Field, codes_of_batch, for_field, matrices, with_batch};
use crate::dense::{SharedMut, expect_shape, load, store, with_output};
use crate::interrupt::{self, on_own_thread};
use crate::{Result, StridedMut, StridedRef, memory};

/// Most rows or columns that are eliminated here.
const SMALL: usize = 64;

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
                factor(lu, m, n, swaps)?;
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

/// Factorises in place.
fn factor<T: Field>(lu: &mut [T], m: usize, n: usize, swaps: &mut [i64]) -> Result<()> {
    if m.max(n) <= SMALL {
        eliminate(lu, m, n, swaps);
        return Ok(());
    }
    if swaps.is_empty() {
        return Ok(());
    }
    let matrix = ColMajor::new(memory::copied(lu)?, m, n);
    let done = on_own_thread(m * n * m.min(n) / 3, move || Lu::of(matrix))?;
    lu.copy_from_slice(done.elements());
    swaps_of(done.rows(), swaps)
}

/// The swaps that make a permutation: `rows[r]` is where row `r` came from.
fn swaps_of(rows: &[usize], swaps: &mut [i64]) -> Result<()> {
    let mut at = memory::collect(0..rows.len())?;
    let mut of = memory::collect(0..rows.len())?;
    for (r, swap) in swaps.iter_mut().enumerate() {
        let from = at[rows[r]];
        *swap = from as i64 + 1;
        of.swap(r, from);
        (at[of[r]], at[of[from]]) = (r, from);
    }
    Ok(())
}

/// Into `rows`, which row of the product comes from which of the factors': the permutation that pivots make of so many rows.
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
    /// Eliminates column by column.
    fn eliminate<T: Field>(lu: &mut [T], m: usize, n: usize, swaps: &mut [i64]) {
        for p in 0..m.min(n) {
            interrupt::check_every::<6>(p);
            let column = &lu[p * m..(p + 1) * m];
            let mut best = p;
            for r in p + 1..m {
                if column[r].cabs1() > column[best].cabs1() {
                    best = r;
                }
            }
            swaps[p] = best as i64 + 1;
            if best != p {
                for column in lu.chunks_exact_mut(m) {
                    column.swap(p, best);
                }
            }
            let (done, rest) = lu.split_at_mut((p + 1) * m);
            let pivot = &mut done[p * m..];
            if pivot[p] == T::default() {
                continue;
            }
            let (top, factors) = pivot.split_at_mut(p + 1);
            let inverse = T::one().divided_by(top[p]);
            for factor in factors.iter_mut() {
                *factor = factor.mul_add_to(inverse, T::default());
            }
            for column in rest.chunks_exact_mut(m) {
                let minus = T::default().minus(column[p]);
                for (value, &factor) in column[p + 1..].iter_mut().zip(&*factors) {
                    *value = minus.mul_add_to(factor, *value);
                }
            }
        }
    }
}
