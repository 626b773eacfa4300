//! LU factorisation with partial pivoting and what follows from it: `solve`, `inv`, `det`, `slogdet`.
//!
//! Matrices up to 64 x 64 are factorised here, row-major in place, rank-1 update by rank-1 update with
//! vector rows; larger ones by `faer`. What follows for many right-hand sides is `substitution`, for few `faer`;
//! triangular matrices are solved as they are. A zero pivot means singular, exactly as LAPACK reports it.

use super::{
    FactorFailure, FactorResult, Field, Triangle, codes_of_batch, expect_dtype, factors, for_batch,
    for_field, matrices, squares, substitution, to_columns, undefined, with_batch,
};
use crate::dense::{Compute, SharedMut, expect_shape, load, store, with_output};
use crate::gemm::{Matrix, MulAdd};
use crate::interrupt::{self, on_own_thread};
use crate::simd::math_f64;
use crate::{Error, Result, StridedMut, StridedRef, memory};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{MatMut, MatRef, Par};

/// Largest order factorised here.
const SMALL: usize = 64;

/// `x = a^-1 b` for `a` (*, n, n) and `b`, `x` (*, n, k). Gives for each matrix 0, or the number (from 1) of the first
/// pivot that is exactly zero; then it is singular and `x` becomes NaN.
///
/// # Errors
/// Shapes that do not fit, or a dtype without linear algebra.
pub fn solve(x: &mut StridedMut<'_>, a: StridedRef<'_>, b: StridedRef<'_>) -> Result<Vec<i32>> {
    let (batch, n) = squares("linalg.solve", a.shape())?;
    let (batch_b, rows, k) = matrices("linalg.solve", b.shape())?;
    expect_dtype(a, b.dtype(), "linalg.solve")?;
    if rows != n || batch != batch_b {
        return Err(Error::runtime(format!(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {rows}x{k})"
        )));
    }
    expect_shape("output", x.shape(), b.shape())?;
    for_field!(a.dtype(), "linalg.solve", "linalg_solve_cpu", T => {
        let (a, b) = (load::<T>(a)?, load::<T>(b)?);
        with_output::<T, _>(x, |x| {
            let x = SharedMut::new(x);
            codes_of_batch(batch, n * n * (n + k), &|i| {
                // SAFETY: one task per matrix.
                let x = unsafe { x.slice(i * n * k..(i + 1) * n * k) };
                let given = &b[i * n * k..(i + 1) * n * k];
                let give = |sides: &mut [T]| sides.copy_from_slice(given);
                if n > SMALL {
                    return solve_large(&a, i, n, (x, k), give, batch == 1);
                }
                solve_small(&a, i, n, (x, k), give)
            })
        })
    })
}

/// `out = a^-1` for `a` (*, n, n). Gives for each matrix 0, or the number (from 1) of the first pivot that is exactly zero; then
/// the matrix is singular and `out` becomes NaN.
///
/// # Errors
/// Shapes that do not fit, or a dtype without linear algebra.
pub fn inv(out: &mut StridedMut<'_>, a: StridedRef<'_>) -> Result<Vec<i32>> {
    let (batch, n) = squares("linalg.inv", a.shape())?;
    expect_shape("output", out.shape(), a.shape())?;
    for_field!(a.dtype(), "linalg.inv", "linalg_inv_cpu", T => {
        let a = load::<T>(a)?;
        with_output::<T, _>(out, |out| {
            let out = SharedMut::new(out);
            codes_of_batch(batch, 2 * n * n * n, &|i| {
                // SAFETY: one task per matrix.
                let x = unsafe { out.slice(i * n * n..(i + 1) * n * n) };
                // (Zeros at first.)
                let give = |sides: &mut [T]| {
                    sides.iter_mut().step_by(n + 1).for_each(|one| *one = T::one());
                };
                if n <= SMALL {
                    return solve_small(&a, i, n, (x, n), give);
                }
                let own = &a[i * n * n..(i + 1) * n * n];
                if triangle(own, n).is_some() {
                    return solve_large(&a, i, n, (x, n), give, batch == 1);
                }
                let lu = factor_large(&a, i, n, x)?;
                Ok(lu.invert(x, batch == 1)?)
            })
        })
    })
}

/// The determinants of (*, n, n), into `out` (*); 1 for n = 0, 0 for a singular matrix.
///
/// # Errors
/// Shapes that do not fit or a dtype without linear algebra.
pub fn det(out: &mut StridedMut<'_>, a: StridedRef<'_>) -> Result<()> {
    let (batch, n) = squares("linalg.det", a.shape())?;
    expect_shape("output", out.shape(), &with_batch(a.shape(), &[]))?;
    for_field!(a.dtype(), "linalg.det", "linalg_det_cpu", T => {
        let a = load::<T>(a)?;
        with_output::<T, _>(out, |out| {
            let out = SharedMut::new(out);
            for_batch(batch, n * n * n, "linalg.det", true, &|i| {
                // SAFETY: one task per matrix.
                unsafe { out.slice(i..i + 1)[0] = det_one(&a, i, n)? };
                Ok(())
            })
        })
    })
}

/// The determinants of (*, n, n) as `sign` (*), of magnitude 1, and the logarithm of the magnitude, `log` (*) of the real
/// dtype; 0 and -inf for a singular matrix.
///
/// # Errors
/// Shapes that do not fit or a dtype without linear algebra.
pub fn slogdet(
    sign: &mut StridedMut<'_>,
    log: &mut StridedMut<'_>,
    a: StridedRef<'_>,
) -> Result<()> {
    let (batch, n) = squares("linalg.slogdet", a.shape())?;
    expect_shape("sign", sign.shape(), &with_batch(a.shape(), &[]))?;
    expect_shape("logabsdet", log.shape(), &with_batch(a.shape(), &[]))?;
    for_field!(a.dtype(), "linalg.slogdet", "linalg_slogdet_cpu", T => {
        let a = load::<T>(a)?;
        let mut logs = memory::filled(<T as Field>::RealPart::default(), batch)?;
        let logs_ = SharedMut::new(&mut logs);
        with_output::<T, _>(sign, |sign| {
            let sign = SharedMut::new(sign);
            for_batch(batch, n * n * n, "linalg.slogdet", true, &|i| {
                let (unit, sum) = slogdet_one(&a, i, n)?;
                // SAFETY: one task per matrix.
                unsafe {
                    sign.slice(i..i + 1)[0] = unit;
                    logs_.slice(i..i + 1)[0] = Compute::convert(sum);
                }
                Ok(())
            })
        })?;
        store(log, &logs);
        Ok(())
    })
}

fn slogdet_one<T: Field>(a: &[T], i: usize, n: usize) -> Result<(T, f64)> {
    let (is_negative, diagonal) = pivots(a, i, n)?;
    let mut sign = if is_negative { T::default().minus(T::one()) } else { T::one() };
    let mut log = 0.0;
    for d in diagonal {
        let size = d.magnitude();
        if size == 0.0 {
            return Ok((T::default(), f64::NEG_INFINITY));
        }
        sign = sign.mul_add_to(d.divided_by(T::convert(size)), T::default());
        log += math_f64::log(size);
    }
    Ok((sign, log))
}

fn det_one<T: Field>(a: &[T], i: usize, n: usize) -> Result<T> {
    let (is_negative, diagonal) = pivots(a, i, n)?;
    let start = if is_negative { T::default().minus(T::one()) } else { T::one() };
    Ok(diagonal.into_iter().fold(start, |p, d| p.mul_add_to(d, T::default())))
}

/// Whether the permutation of matrix `i` is odd, and the diagonal of its U.
fn pivots<T: Field>(a: &[T], i: usize, n: usize) -> Result<(bool, Vec<T>)> {
    if n > SMALL {
        let matrix = to_columns(a, i, n, n)?;
        let lu = on_own_thread(n * n * n / 3, move || factors::Lu::of(matrix))?;
        return Ok((is_odd(lu.rows())?, memory::collect((0..n).map(|d| lu.pivot(d)))?));
    }
    let mut lu = memory::copied(&a[i * n * n..(i + 1) * n * n])?;
    let mut rows = [0; SMALL];
    factor(&mut lu, n, &mut rows[..n]);
    Ok((is_odd(&rows[..n])?, memory::collect((0..n).map(|d| lu[d * n + d]))?))
}

/// Whether a permutation is odd.
fn is_odd(permutation: &[usize]) -> Result<bool> {
    let mut seen = memory::filled(false, permutation.len())?;
    let mut odd = false;
    for start in 0..permutation.len() {
        let mut at = start;
        while !std::mem::replace(&mut seen[at], true) {
            at = permutation[at];
            odd ^= at != start;
        }
    }
    Ok(odd)
}

/// The triangle of a triangular matrix without zeros on its diagonal: such a matrix needs no factorisation. (With a zero
/// there, pivoting decides which pivot is named.)
fn triangle<T: Field>(a: &[T], n: usize) -> Option<Triangle> {
    let is_zero = |elements: &[T]| elements.iter().all(|&value| value == T::default());
    let rows = || a.chunks_exact(n).enumerate();
    if rows().any(|(r, row)| row[r] == T::default()) {
        return None;
    }
    let is_lower = rows().all(|(r, row)| is_zero(&row[r + 1..]));
    let is_upper = || rows().all(|(r, row)| is_zero(&row[..r]));
    (is_lower || is_upper()).then_some(Triangle { upper: !is_lower, unit: false })
}

/// Solves a triangular system of `n` equations in place, aside from copies if it is long.
fn solve_triangular<T: Field>(
    a: &[T],
    n: usize,
    triangle: Triangle,
    x: &mut [T],
    k: usize,
    threads: bool,
) -> Result<()> {
    if substitution::fits(k) {
        let (a, x) = (Matrix::rows(a.as_ptr(), n), Matrix::rows(x.as_mut_ptr(), k));
        // SAFETY: live matrices of these sizes, apart from each other.
        return unsafe { substitution::solve(a, triangle, x, (n, k), threads) };
    }
    let solve = move |a: &[T], x: &mut [T]| {
        let a = MatRef::from_row_major_slice(a, n, n);
        let x = MatMut::from_row_major_slice_mut(x, n, k);
        if triangle.upper {
            solve_upper_triangular_in_place(a, x, Par::Seq);
        } else {
            solve_lower_triangular_in_place(a, x, Par::Seq);
        }
    };
    let cost = n * n * k / 2;
    if !interrupt::needs_own_thread(cost) {
        solve(a, x);
        return Ok(());
    }
    let (a, mut right) = (memory::copied(a)?, memory::copied(x)?);
    let solved = on_own_thread(cost, move || {
        solve(&a, &mut right);
        right
    });
    x.copy_from_slice(&solved);
    Ok(())
}

/// The factors of matrix `i`; else the number (from 1) of the first zero pivot, and `x` becomes NaN.
fn factor_large<T: Field>(
    a: &[T],
    i: usize,
    n: usize,
    x: &mut [T],
) -> std::result::Result<factors::Lu<T>, FactorFailure<usize>> {
    let matrix = to_columns(a, i, n, n)?;
    let lu = on_own_thread(n * n * n / 3, move || factors::Lu::of(matrix))?;
    if let Some(d) = (0..n).find(|&d| lu.pivot(d) == T::default()) {
        x.fill(undefined());
        return Err(FactorFailure::OfMatrix(d + 1));
    }
    Ok(lu)
}

/// [`solve_small`] of larger matrices.
fn solve_large<T: Field>(
    a: &[T],
    i: usize,
    n: usize,
    (x, k): (&mut [T], usize),
    right: impl FnOnce(&mut [T]),
    threads: bool,
) -> FactorResult<usize> {
    let own = &a[i * n * n..(i + 1) * n * n];
    let sides = || {
        let mut sides = memory::filled(T::default(), n * k)?;
        right(&mut sides);
        Ok::<_, Error>(sides)
    };
    let solved = if let Some(triangle) = triangle(own, n) {
        let mut sides = sides()?;
        solve_triangular(own, n, triangle, &mut sides, k, threads)?;
        sides
    } else {
        let lu = factor_large(a, i, n, x)?;
        let mut sides = sides()?;
        if substitution::fits(k) {
            lu.solve_many(&mut sides, k, threads)?;
            sides
        } else {
            on_own_thread(n * n * k, move || {
                lu.solve(MatMut::from_row_major_slice_mut(&mut sides, n, k)).map(|()| sides)
            })?
        }
    };
    x.copy_from_slice(&solved);
    Ok(())
}

/// Writes into `x` (n, k) what solves matrix `i`, of order up to [`SMALL`], for the right-hand sides `right`, after all requests for memory; else gives the
/// number (from 1) of the first zero pivot, and `x` becomes NaN.
fn solve_small<T: Field>(
    a: &[T],
    i: usize,
    n: usize,
    (x, k): (&mut [T], usize),
    right: impl FnOnce(&mut [T]),
) -> FactorResult<usize> {
    if n == 0 {
        return Ok(());
    }
    let zero = T::default();
    let mut lu = [zero; 16 * 16];
    let mut large;
    let source = &a[i * n * n..(i + 1) * n * n];
    let lu = if n <= 16 {
        lu[..n * n].copy_from_slice(source);
        &mut lu[..n * n]
    } else {
        large = memory::copied(source)?;
        &mut large[..]
    };
    let mut rows = [0; SMALL];
    factor(lu, n, &mut rows[..n]);
    if let Some(d) = (0..n).find(|&d| lu[d * n + d] == zero) {
        x.fill(undefined());
        return Err(FactorFailure::OfMatrix(d + 1));
    }
    let mut from = memory::filled(zero, n * k)?;
    right(&mut from);
    for (r, &row) in rows[..n].iter().enumerate() {
        x[r * k..(r + 1) * k].copy_from_slice(&from[row * k..(row + 1) * k]);
    }
    substitute(lu, n, x, k);
    Ok(())
}

crate::multiversion! {
    /// `a = P^T L U` in place; `rows[r]` is the row of `a` that became row `r`.
    fn factor<T: Field>(a: &mut [T], n: usize, rows: &mut [usize]) {
        rows.iter_mut().enumerate().for_each(|(r, row)| *row = r);
        for p in 0..n {
            let mut best = p;
            for r in p + 1..n {
                if a[r * n + p].cabs1() > a[best * n + p].cabs1() {
                    best = r;
                }
            }
            if best != p {
                rows.swap(p, best);
                let (upper, lower) = a.split_at_mut(best * n);
                upper[p * n..(p + 1) * n].swap_with_slice(&mut lower[..n]);
            }
            let (upper, lower) = a.split_at_mut((p + 1) * n);
            let pivot = &upper[p * n..];
            if pivot[p] == T::default() {
                continue;
            }
            let inverse = T::one().divided_by(pivot[p]);
            for row in lower.chunks_exact_mut(n) {
                let factor = row[p].mul_add_to(inverse, T::default());
                row[p] = factor;
                let minus = T::default().minus(factor);
                for (value, &pivot) in row[p + 1..].iter_mut().zip(&pivot[p + 1..]) {
                    *value = minus.mul_add_to(pivot, *value);
                }
            }
        }
    }
}

crate::multiversion! {
    /// Forward and backward substitution on the rows of `x` (n, k).
    fn substitute<T: Field>(lu: &[T], n: usize, x: &mut [T], k: usize) {
        if k == 0 {
            return;
        }
        for p in 0..n {
            interrupt::check();
            let (upper, lower) = x.split_at_mut((p + 1) * k);
            let from = &upper[p * k..];
            for (r, row) in lower.chunks_exact_mut(k).enumerate() {
                let minus = T::default().minus(lu[(p + 1 + r) * n + p]);
                for (value, &from) in row.iter_mut().zip(from) {
                    *value = minus.mul_add_to(from, *value);
                }
            }
        }
        for p in (0..n).rev() {
            interrupt::check();
            let (upper, lower) = x.split_at_mut(p * k);
            let from = &mut lower[..k];
            let pivot = lu[p * n + p];
            for v in from.iter_mut() {
                *v = v.divided_by(pivot);
            }
            for (r, row) in upper.chunks_exact_mut(k).enumerate() {
                let minus = T::default().minus(lu[r * n + p]);
                for (value, &from) in row.iter_mut().zip(&*from) {
                    *value = minus.mul_add_to(from, *value);
                }
            }
        }
    }
}
