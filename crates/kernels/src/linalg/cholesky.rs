//! The Cholesky factor of one real matrix, in place, by halves: the factor of the first half, the triangular systems below it, the
//! product that is taken from the second half, its factor. All but blocks of 16 columns is products (F. G. Gustavson, "Recursion
//! leads to automatic variable blocking for dense linear-algebra algorithms", 1997).
//!
//! Invariant: only the lower triangle is read; the upper one holds anything until the end.

use super::substitution::half;
use super::{FactorFailure, FactorResult, codes_of_batch, small};
use crate::dense::{Real, load, with_output};
use crate::elementwise::copy_tile;
use crate::gemm::{self, GemmElement, GemmSizes, Matrix};
use crate::simd::transpose::{SQUARE, square};
use crate::{Result, StridedMut, StridedRef, interrupt, memory};

/// Order up to which the product of rows with themselves is computed whole, though half of it is enough.
const WHOLE: usize = 64;

/// `linalg::cholesky` of real matrices.
pub(super) fn of_real<T: Real + GemmElement>(
    out: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    (batch, n): (usize, usize),
    upper: bool,
) -> Result<Vec<i32>> {
    if small::fits(batch, n, n) {
        let a = load::<T>(a)?;
        return with_output::<T, _>(out, |out| small::cholesky(out, &a, (batch, n), upper));
    }
    let elements;
    let a = if let Some(matrices) = in_one_piece::<T>(a.ptr(), a.shape(), a.strides()) {
        matrices
    } else {
        elements = load::<T>(a)?;
        Matrices { first: Matrix::rows(elements.as_ptr(), n), step: (n * n) as isize }
    };
    // Before anything is written: for the products, which ask for less each.
    memory::probe(2 * n * n * size_of::<T>())?;
    // The lower factor of the transposed matrix, transposed, is the upper one.
    let transposed = |matrix: Matrix<T>| if upper { matrix.t() } else { matrix };
    let factorise = |out: Matrices<T>| {
        codes_of_batch(batch, n * n * n / 2, &|i| {
            let l = out.at(i);
            // SAFETY: live matrices, one task for each.
            let done = unsafe { factorise(transposed(l), transposed(a.at(i)), n, batch == 1) };
            if done.is_err() {
                let nan = T::of(f64::NAN);
                // SAFETY: as above.
                (0..n * n).for_each(|at| unsafe { *l.at(at / n, at % n).ptr = nan });
            }
            done
        })
    };
    if let Some(matrices) = in_one_piece::<T>(out.ptr(), out.shape(), out.strides())
        && out.dtype() == T::DTYPE
    {
        return factorise(matrices);
    }
    with_output::<T, _>(out, |out| {
        factorise(Matrices { first: Matrix::rows(out.as_ptr(), n), step: (n * n) as isize })
    })
}

/// A batch of matrices in memory.
struct Matrices<T> {
    first: Matrix<T>,
    /// Elements from one to the next.
    step: isize,
}

impl<T> Matrices<T> {
    fn at(&self, i: usize) -> Matrix<T> {
        Matrix { ptr: self.first.ptr.wrapping_offset(i as isize * self.step), ..self.first }
    }
}

/// The matrices of a view with at most one dimension beside them, if their rows or their columns are in one piece each.
fn in_one_piece<T>(ptr: *const u8, shape: &[i64], strides: &[i64]) -> Option<Matrices<T>> {
    let (step, rs, cs) = match *strides {
        [rs, cs] => (0, rs, cs),
        [step, rs, cs] => (step, rs, cs),
        _ => return None,
    };
    let n = shape[shape.len() - 1];
    let is_plain = cs == 1 && rs >= n || rs == 1 && cs >= n;
    let first = Matrix { ptr: ptr.cast_mut().cast(), rs: rs as isize, cs: cs as isize };
    is_plain.then_some(Matrices { first, step: step as isize })
}

/// Writes the lower factor of the lower triangle of `a` to `l`, both (n, n) with a stride of one, and zeros above it. The code of
/// a failure is the order of the first minor that is not positive definite.
///
/// # Safety
/// All elements of both matrices are live, those of `l` writable; they are the same matrix, or apart.
pub(super) unsafe fn factorise<T: Real + GemmElement>(
    l: Matrix<T>,
    a: Matrix<T>,
    n: usize,
    threads: bool,
) -> FactorResult<usize> {
    // SAFETY: the caller's promise.
    unsafe {
        copy(l, a, n);
        factor(l, n, threads)?;
        for r in 0..n {
            for c in r + 1..n {
                *l.at(r, c).ptr = T::ZERO;
            }
        }
    }
    Ok(())
}

/// # Safety
/// As [`factorise`].
unsafe fn copy<T: Real>(l: Matrix<T>, a: Matrix<T>, n: usize) {
    let size = size_of::<T>() as isize;
    let (to, from) = if l.cs == 1 { (l, a) } else { (l.t(), a.t()) };
    // SAFETY: rows of `to` are in one piece; so are those of `from`, or its columns.
    unsafe {
        if from.cs == 1 {
            for r in 0..n {
                std::ptr::copy(from.at(r, 0).ptr, to.at(r, 0).ptr, n);
            }
        } else {
            let strides = (to.rs * size, from.cs * size);
            copy_tile::<T, false>(to.ptr.cast(), from.ptr.cast_const().cast(), strides, (n, n));
        }
    }
}

/// # Safety
/// As [`factorise`].
unsafe fn factor<T: Real + GemmElement>(
    a: Matrix<T>,
    n: usize,
    threads: bool,
) -> FactorResult<usize> {
    interrupt::check();
    // SAFETY: parts of the matrix.
    unsafe {
        if n <= SQUARE {
            let mut tile = CholeskyTile::load(a, n, n);
            let done = factor_tile(&mut tile.columns, n);
            tile.store(a);
            return done.map_err(FactorFailure::OfMatrix);
        }
        let first = half(n);
        let (below, rest) = (a.at(first, 0), n - first);
        factor(a, first, threads)?;
        solve(a, below, first, rest, threads)?;
        subtract_square(a.at(first, first), below, rest, first, threads)?;
        factor(a.at(first, first), rest, threads).map_err(|failure| match failure {
            FactorFailure::OfMatrix(order) => FactorFailure::OfMatrix(order + first),
            FactorFailure::Other(error) => FactorFailure::Other(error),
        })
    }
}

/// Solves `x l^T = x` for the `m` rows of `x`, of `k` elements each.
///
/// # Safety
/// As [`factorise`].
unsafe fn solve<T: Real + GemmElement>(
    l: Matrix<T>,
    x: Matrix<T>,
    k: usize,
    m: usize,
    threads: bool,
) -> Result<()> {
    // SAFETY: parts of the matrices.
    unsafe {
        if k <= SQUARE {
            let factor = CholeskyTile::load(l, k, k);
            for start in (0..m).step_by(SQUARE) {
                let x = x.at(start, 0);
                let mut tile = CholeskyTile::load(x, SQUARE.min(m - start), k);
                solve_tile(&mut tile.columns, &factor.columns, k);
                tile.store(x);
            }
            return Ok(());
        }
        let first = half(k);
        let (rest, right) = (k - first, x.at(0, first));
        solve(l, x, first, m, threads)?;
        let sizes = GemmSizes { m, n: rest, k: first };
        gemm::product(sizes, right, x, l.at(first, 0).t(), -T::ONE, T::ONE, threads)?;
        solve(l.at(first, first), right, rest, m, threads)
    }
}

/// The lower triangle of `c -= x x^T` for (n, k) `x`.
///
/// # Safety
/// As [`factorise`].
unsafe fn subtract_square<T: Real + GemmElement>(
    c: Matrix<T>,
    x: Matrix<T>,
    n: usize,
    k: usize,
    threads: bool,
) -> Result<()> {
    // SAFETY: parts of the matrices.
    unsafe {
        if n <= WHOLE {
            return gemm::product(GemmSizes { m: n, n, k }, c, x, x.t(), -T::ONE, T::ONE, threads);
        }
        let first = half(n);
        let (below, rest) = (x.at(first, 0), n - first);
        subtract_square(c, x, first, k, threads)?;
        let sizes = GemmSizes { m: rest, n: first, k };
        gemm::product(sizes, c.at(first, 0), below, x.t(), -T::ONE, T::ONE, threads)?;
        subtract_square(c.at(first, first), below, rest, k, threads)
    }
}

/// Up to 16 rows and columns of a matrix, column by column; what is not there is zero.
struct CholeskyTile<T> {
    columns: [[T; SQUARE]; SQUARE],
    rows: usize,
    count: usize,
}

impl<T: Real> CholeskyTile<T> {
    /// # Safety
    /// The elements are live.
    unsafe fn load(a: Matrix<T>, rows: usize, count: usize) -> CholeskyTile<T> {
        let mut columns = [[T::ZERO; SQUARE]; SQUARE];
        let size = size_of::<T>() as isize;
        // SAFETY: the caller's promise.
        unsafe {
            if a.cs == 1 && rows == SQUARE && count == SQUARE {
                let (to, from) = (columns.as_mut_ptr().cast(), a.ptr.cast_const().cast());
                square::<T, false>(to, SQUARE as isize * size, from, a.rs * size);
            } else {
                for (c, column) in columns[..count].iter_mut().enumerate() {
                    for (r, to) in column[..rows].iter_mut().enumerate() {
                        *to = *a.at(r, c).ptr;
                    }
                }
            }
        }
        CholeskyTile { columns, rows, count }
    }

    /// # Safety
    /// The elements are live, and may be written.
    unsafe fn store(&self, a: Matrix<T>) {
        let size = size_of::<T>() as isize;
        // SAFETY: the caller's promise.
        unsafe {
            if a.cs == 1 && self.rows == SQUARE && self.count == SQUARE {
                let from = self.columns.as_ptr().cast();
                square::<T, false>(a.ptr.cast(), a.rs * size, from, SQUARE as isize * size);
            } else {
                for (c, column) in self.columns[..self.count].iter().enumerate() {
                    for (r, from) in column[..self.rows].iter().enumerate() {
                        *a.at(r, c).ptr = *from;
                    }
                }
            }
        }
    }
}

crate::multiversion! {
    /// The factor of a tile of order `n`; else the order of the first minor that is not positive definite.
    fn factor_tile<T: Real>(a: &mut [[T; SQUARE]; SQUARE], n: usize) -> std::result::Result<(), usize> {
        for j in 0..n {
            let mut column = a[j];
            for known in &a[..j] {
                let factor = -known[j];
                for l in 0..SQUARE {
                    column[l] = known[l].mul_add(factor, column[l]);
                }
            }
            let pivot = column[j];
            if pivot <= T::ZERO || pivot.is_nan() {
                return Err(j + 1);
            }
            let root = pivot.sqrt();
            for value in &mut column {
                *value /= root;
            }
            a[j] = column;
        }
        Ok(())
    }
}

crate::multiversion! {
    /// Solves `x l^T = x` for the rows of `x`, which has `k` columns.
    fn solve_tile<T: Real>(x: &mut [[T; SQUARE]; SQUARE], l: &[[T; SQUARE]; SQUARE], k: usize) {
        for j in 0..k {
            let mut column = x[j];
            for (known, factors) in x[..j].iter().zip(l) {
                let factor = -factors[j];
                for l in 0..SQUARE {
                    column[l] = known[l].mul_add(factor, column[l]);
                }
            }
            let pivot = l[j][j];
            for value in &mut column {
                *value /= pivot;
            }
            x[j] = column;
        }
    }
}
