//! What follows from the LU factorisation with partial pivoting of square matrices: `solve`, `inv`, `det`, `slogdet`.
//!
//! The factors are those of `elimination`, column by column, and are kept by the caller for further equations. A triangular matrix
//! without zeros on its diagonal is solved as it is, without factors: it stands in their place. A zero pivot means singular, exactly
//! as LAPACK reports it.

use super::elimination;
use super::triangular::{SquareElements, solve_one};
use super::{
    FactorFailure, FactorResult, Field, Triangle, codes_of_batch, expect_dtype, for_field,
    matrices, squares, substitution, undefined, with_batch,
};
use crate::dense::{Compute, SharedMut, expect_shape, load, store, transpose, with_output};
use crate::gemm::Matrix;
use crate::simd::math_f64;
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use std::borrow::Cow;

/// Largest order whose inverse is solved for column by column.
const SMALL: usize = 64;

/// Square matrices `a` (*, n, n) with what [`factor`] makes of them; one without batch is for all right-hand sides.
#[derive(Clone, Copy)]
pub struct LuFactors<'a> {
    /// The matrices.
    pub a: StridedRef<'a>,
    /// Their factors (*, n, n), each of whose rows is a column.
    pub lu: StridedRef<'a>,
    /// Their pivots (*, n), int32.
    pub pivots: StridedRef<'a>,
}

/// Which equations are solved: those of A, of its transpose, of its conjugate, or of its conjugate transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemForm {
    /// Whether the equations are those of the transpose.
    pub transposed: bool,
    /// Whether the equations are those of the conjugate.
    pub conjugated: bool,
}

/// `P a = L U` for `a` (*, n, n): `lu` (*, n, n), each of whose rows is a column, holds U and, below the diagonal, L without its ones;
/// `pivots` (*, n) tells from 1 with which row each row was swapped. A triangular matrix without zeros on its diagonal stands in `lu`
/// as it is. Gives for each matrix 0, or the number (from 1) of the first pivot that is exactly zero.
///
/// # Errors
/// Shapes that do not fit, or a dtype without linear algebra.
pub fn factor(
    lu: &mut StridedMut<'_>,
    pivots: &mut StridedMut<'_>,
    a: StridedRef<'_>,
) -> Result<Vec<i32>> {
    let (batch, n) = squares("linalg.lu_factor", a.shape())?;
    expect_shape("LU", lu.shape(), a.shape())?;
    expect_shape("pivots", pivots.shape(), &with_batch(a.shape(), &[n]))?;
    let mut swaps = memory::filled(0_i64, batch * n)?;
    let swaps_ = SharedMut::new(&mut swaps);
    let codes = for_field!(a.dtype(), "linalg.lu_factor", "lu_factor_cpu", T => {
        let a = load::<T>(a)?;
        with_output::<T, _>(lu, |lu| {
            let lu = SharedMut::new(lu);
            codes_of_batch(batch, n * n * n, &|i| {
                let own = i * n * n..(i + 1) * n * n;
                // SAFETY: one task per matrix.
                let (lu, swaps) =
                    unsafe { (lu.slice(own.clone()), swaps_.slice(i * n..(i + 1) * n)) };
                factor_one(&a[own], n, lu, swaps, batch == 1)
            })
        })
    })?;
    store(pivots, &swaps);
    Ok(codes)
}

/// [`factor`] of one matrix, which lies row by row.
fn factor_one<T: Field>(
    a: &[T],
    n: usize,
    lu: &mut [T],
    swaps: &mut [i64],
    threads: bool,
) -> FactorResult<usize> {
    if n == 0 {
        return Ok(());
    }
    // SAFETY: matrices of this order, apart from each other.
    unsafe { transpose(lu.as_mut_ptr(), a.as_ptr(), (n, n)) };
    if triangle(a, n).is_some() {
        swaps.iter_mut().enumerate().for_each(|(r, swap)| *swap = r as i64 + 1);
        return Ok(());
    }
    elimination::factor(lu, (n, n), swaps, threads)?;
    match (0..n).find(|&d| lu[d * n + d] == T::default()) {
        Some(d) => Err(FactorFailure::OfMatrix(d + 1)),
        None => Ok(()),
    }
}

/// The elements of [`LuFactors`] in the type that is computed in.
struct LoadedFactors<'a, T: Clone> {
    a: Cow<'a, [T]>,
    lu: Cow<'a, [T]>,
    pivots: Cow<'a, [i64]>,
    n: usize,
}

impl<'a, T: Field> LoadedFactors<'a, T> {
    fn of(from: LuFactors<'a>, n: usize) -> Result<Self> {
        let (a, lu, pivots) = (load::<T>(from.a)?, load::<T>(from.lu)?, load::<i64>(from.pivots)?);
        if let Some(pivot) = pivots.iter().find(|&&pivot| pivot < 1 || pivot > n as i64) {
            return Err(Error::runtime(format!("a pivot of a matrix of order {n} is {pivot}")));
        }
        Ok(LoadedFactors { a, lu, pivots, n })
    }
    fn at(&self, i: usize) -> OneMatrix<'_, T> {
        let (n, own) = (self.n, i * self.n * self.n..(i + 1) * self.n * self.n);
        OneMatrix {
            a: &self.a[own.clone()],
            lu: &self.lu[own],
            swaps: &self.pivots[i * n..(i + 1) * n],
            n,
        }
    }
}

/// A matrix with its factors.
#[derive(Clone, Copy)]
struct OneMatrix<'a, T> {
    /// The matrix, row by row.
    a: &'a [T],
    /// The factors, column by column.
    lu: &'a [T],
    swaps: &'a [i64],
    n: usize,
}

const LOWER: Triangle = Triangle { upper: false, unit: true };
const UPPER: Triangle = Triangle { upper: true, unit: false };

impl<T: Field> OneMatrix<'_, T> {
    /// Solves for the rows of `x` in place; they become NaN if the matrix is singular.
    fn solve(self, x: &mut [T], transposed: bool, threads: bool) -> Result<()> {
        let n = self.n;
        let factors = SquareElements { elements: self.lu, n, by_columns: !transposed };
        let turned = |of: Triangle| Triangle { upper: of.upper != transposed, ..of };
        if let Some(triangle) = triangle(self.a, n) {
            return solve_one(factors, x, turned(triangle), threads);
        }
        if (0..n).any(|d| self.lu[d * n + d] == T::default()) {
            x.fill(undefined());
            return Ok(());
        }
        if transposed {
            solve_one(factors, x, turned(UPPER), threads)?;
            solve_one(factors, x, turned(LOWER), threads)?;
        }
        for row in x.chunks_exact_mut(n.max(1)) {
            let swaps = self.swaps.iter().enumerate().map(|(r, &swap)| (r, swap as usize - 1));
            if transposed {
                swaps.rev().for_each(|(r, swap)| row.swap(r, swap));
            } else {
                swaps.for_each(|(r, swap)| row.swap(r, swap));
            }
        }
        if !transposed {
            solve_one(factors, x, LOWER, threads)?;
            solve_one(factors, x, UPPER, threads)?;
        }
        Ok(())
    }

    /// Writes the inverse column by column.
    ///
    /// It is `U^-1 L^-1 P`: U is inverted in place of a copy, and L solved for from the right. This
    /// takes two thirds of the products that solving for the columns of the identity would need.
    fn invert(self, out: &mut [T], threads: bool) -> Result<()> {
        let n = self.n;
        if n <= SMALL || triangle(self.a, n).is_some() {
            out.fill(T::default());
            out.iter_mut().step_by(n + 1).for_each(|one| *one = T::one());
            return self.solve(out, false, threads);
        }
        if (0..n).any(|d| self.lu[d * n + d] == T::default()) {
            out.fill(undefined());
            return Ok(());
        }
        let mut inverse = memory::filled(T::default(), n * n)?;
        for (c, column) in inverse.chunks_exact_mut(n).enumerate() {
            column[..=c].copy_from_slice(&self.lu[c * n..=c * n + c]);
        }
        let mut rows = memory::collect(0..n)?;
        for (r, &swap) in self.swaps.iter().enumerate() {
            rows.swap(r, swap as usize - 1);
        }
        // (As the rows of the transposed matrix, which lie column by column.)
        let columns = Matrix::rows(inverse.as_mut_ptr(), n);
        let factors = Matrix::rows(self.lu.as_ptr(), n);
        let transposed_l = Triangle { upper: true, unit: true };
        // SAFETY: live matrices of this order, apart from each other.
        unsafe {
            substitution::invert_upper(columns.t(), n, threads)?;
            substitution::solve(factors, transposed_l, columns, (n, n), threads)?;
        }
        for (column, row) in inverse.chunks_exact(n).zip(rows) {
            out[row * n..(row + 1) * n].copy_from_slice(column);
        }
        Ok(())
    }
}

/// Solves `a x = b`, or equations with another form of `a`, for each row `x`, `b` of `x` and `b` (*, k, n). Those of a singular matrix
/// become NaN.
///
/// # Errors
/// Shapes that do not fit, pivots that are none, or a dtype without linear algebra.
pub fn solve(
    x: &mut StridedMut<'_>,
    factors: LuFactors<'_>,
    b: StridedRef<'_>,
    form: SystemForm,
) -> Result<()> {
    let (count, n) = squares("linalg.solve", factors.a.shape())?;
    let (batch, k, columns) = matrices("linalg.solve", b.shape())?;
    expect_dtype(factors.a, b.dtype(), "linalg.solve")?;
    let is_single = factors.a.ndim() == 2;
    if columns != n || (!is_single && count != batch) {
        return Err(Error::runtime(format!(
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {columns}x{k})"
        )));
    }
    expect_factors(factors, n)?;
    expect_shape("output", x.shape(), b.shape())?;
    for_field!(b.dtype(), "linalg.solve", "linalg_solve_cpu", T => {
        let (factors, b) = (LoadedFactors::<T>::of(factors, n)?, load::<T>(b)?);
        with_output::<T, _>(x, |x| {
            let x = SharedMut::new(x);
            parallel::try_for_range(batch, (super::GRAIN / (n * n * k).max(1)).max(1), &|range| {
                for i in range {
                    let own = i * k * n..(i + 1) * k * n;
                    // SAFETY: one task per matrix.
                    let x = unsafe { x.slice(own.clone()) };
                    x.copy_from_slice(&b[own]);
                    // (`conj(A) x = b` is `A conj(x) = conj(b)`.)
                    conjugate_if(form.conjugated, x);
                    let matrix = factors.at(if is_single { 0 } else { i });
                    matrix.solve(x, form.transposed, batch == 1)?;
                    conjugate_if(form.conjugated, x);
                }
                Ok(())
            })
        })
    })
}

fn conjugate_if<T: Field>(conjugated: bool, x: &mut [T]) {
    if conjugated && T::DTYPE.is_complex() {
        for value in x.iter_mut() {
            *value = value.conjugate();
        }
    }
}

/// Refuses factors that do not go with their matrices.
fn expect_factors(factors: LuFactors<'_>, n: usize) -> Result<()> {
    let LuFactors { a, lu, pivots } = factors;
    expect_dtype(a, lu.dtype(), "linalg.lu_solve")?;
    expect_shape("LU", lu.shape(), a.shape())?;
    expect_shape("pivots", pivots.shape(), &with_batch(a.shape(), &[n]))
}

/// The inverses, each row of `out` (*, n, n) a column; those of singular matrices become NaN.
///
/// # Errors
/// As [`solve`].
pub fn invert(out: &mut StridedMut<'_>, factors: LuFactors<'_>) -> Result<()> {
    let (batch, n) = squares("linalg.inv", factors.a.shape())?;
    expect_factors(factors, n)?;
    expect_shape("output", out.shape(), factors.a.shape())?;
    for_field!(factors.a.dtype(), "linalg.inv", "linalg_inv_cpu", T => {
        let factors = LoadedFactors::<T>::of(factors, n)?;
        with_output::<T, _>(out, |out| {
            let out = SharedMut::new(out);
            parallel::try_for_range(batch, (super::GRAIN / (n * n * n).max(1)).max(1), &|mut range| {
                range.try_for_each(|i| {
                    // SAFETY: one task per matrix.
                    let out = unsafe { out.slice(i * n * n..(i + 1) * n * n) };
                    factors.at(i).invert(out, batch == 1)
                })
            })
        })
    })
}

/// The inverses of `a` (*, n, n), each row of `out` (*, n, n) a column. Gives for each matrix 0, or the number (from 1) of the first
/// pivot that is exactly zero; then the matrix is singular and its part of `out` becomes NaN.
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
                let own = i * n * n..(i + 1) * n * n;
                // SAFETY: one task per matrix.
                let x = unsafe { out.slice(own.clone()) };
                let mut lu = memory::filled(T::default(), n * n)?;
                let mut swaps = memory::filled(0_i64, n)?;
                let a = &a[own];
                let made = factor_one(a, n, &mut lu, &mut swaps, batch == 1);
                if let Err(FactorFailure::OfMatrix(_)) = made {
                    x.fill(undefined());
                }
                made?;
                Ok(OneMatrix { a, lu: &lu, swaps: &swaps, n }.invert(x, batch == 1)?)
            })
        })
    })
}

/// The determinants of matrices of these factors, into `out` (*); 1 for n = 0, 0 for a singular matrix.
///
/// # Errors
/// As [`solve`].
pub fn det(out: &mut StridedMut<'_>, lu: StridedRef<'_>, pivots: StridedRef<'_>) -> Result<()> {
    let (batch, n) = squares("linalg.det", lu.shape())?;
    expect_shape("output", out.shape(), &with_batch(lu.shape(), &[]))?;
    expect_shape("pivots", pivots.shape(), &with_batch(lu.shape(), &[n]))?;
    for_field!(lu.dtype(), "linalg.det", "linalg_det_cpu", T => {
        let (lu, pivots) = (load::<T>(lu)?, load::<i64>(pivots)?);
        with_output::<T, _>(out, |out| {
            for (i, out) in out[..batch].iter_mut().enumerate() {
                *out = det_one(is_odd(&pivots[i * n..(i + 1) * n]), diagonal(&lu, i, n));
            }
        })
    })
}

/// The determinants of matrices of these factors as `sign` (*), of magnitude 1, and the logarithm of the magnitude, `log` (*) of the
/// real dtype; 0 and -inf for a singular matrix.
///
/// # Errors
/// As [`solve`].
pub fn slogdet(
    sign: &mut StridedMut<'_>,
    log: &mut StridedMut<'_>,
    lu: StridedRef<'_>,
    pivots: StridedRef<'_>,
) -> Result<()> {
    let (batch, n) = squares("linalg.slogdet", lu.shape())?;
    expect_shape("sign", sign.shape(), &with_batch(lu.shape(), &[]))?;
    expect_shape("logabsdet", log.shape(), &with_batch(lu.shape(), &[]))?;
    expect_shape("pivots", pivots.shape(), &with_batch(lu.shape(), &[n]))?;
    for_field!(lu.dtype(), "linalg.slogdet", "linalg_slogdet_cpu", T => {
        let (lu, pivots) = (load::<T>(lu)?, load::<i64>(pivots)?);
        let mut logs = memory::filled(<T as Field>::RealPart::default(), batch)?;
        with_output::<T, _>(sign, |sign| {
            for (i, (sign, log)) in sign.iter_mut().zip(&mut logs).enumerate() {
                let (unit, sum) = slogdet_one(is_odd(&pivots[i * n..(i + 1) * n]), diagonal(&lu, i, n));
                (*sign, *log) = (unit, Compute::convert(sum));
            }
        })?;
        store(log, &logs);
        Ok(())
    })
}

/// The diagonal of matrix `i`.
fn diagonal<T: Field>(lu: &[T], i: usize, n: usize) -> impl Iterator<Item = T> {
    lu[i * n * n..(i + 1) * n * n].iter().step_by(n + 1).copied()
}

fn det_one<T: Field>(is_negative: bool, diagonal: impl Iterator<Item = T>) -> T {
    let start = if is_negative { T::default().minus(T::one()) } else { T::one() };
    diagonal.fold(start, |p, d| p.mul_add_to(d, T::default()))
}

fn slogdet_one<T: Field>(is_negative: bool, diagonal: impl Iterator<Item = T>) -> (T, f64) {
    let mut sign = if is_negative { T::default().minus(T::one()) } else { T::one() };
    let mut log = 0.0;
    for d in diagonal {
        let size = d.magnitude();
        if size == 0.0 {
            return (T::default(), f64::NEG_INFINITY);
        }
        sign = sign.mul_add_to(d.divided_by(T::convert(size)), T::default());
        log += math_f64::log(size);
    }
    (sign, log)
}

/// Whether the permutation that pivots make is odd.
fn is_odd(swaps: &[i64]) -> bool {
    swaps.iter().enumerate().filter(|&(r, &swap)| swap != r as i64 + 1).count() % 2 == 1
}

/// The triangle of a triangular matrix without zeros on its diagonal: such a matrix needs no factorisation. (With a zero
/// there, pivoting decides which pivot is named.)
fn triangle<T: Field>(a: &[T], n: usize) -> Option<Triangle> {
    if n == 0 {
        return None;
    }
    let is_zero = |elements: &[T]| elements.iter().all(|&value| value == T::default());
    let rows = || a.chunks_exact(n).enumerate();
    if rows().any(|(r, row)| row[r] == T::default()) {
        return None;
    }
    let is_lower = rows().all(|(r, row)| is_zero(&row[r + 1..]));
    let is_upper = || rows().all(|(r, row)| is_zero(&row[..r]));
    (is_lower || is_upper()).then_some(Triangle { upper: !is_lower, unit: false })
}
