//! `a = L D L^T` (or `L D L^H`) of symmetric or Hermitian matrices that need not be definite, by the pivoting of J. R. Bunch and
//! L. Kaufman ("Some stable methods for calculating inertia and solving symmetric linear systems", Math. Comp. 31, 1977), in the form that
//! LAPACK's `sytrf` and `hetrf` give for the lower triangle; in double precision, complex numbers for all dtypes.

use super::{FactorFailure, GRAIN, codes_of_batch, expect_dtype, matrices, squares, with_batch};
use crate::dense::{SharedMut, expect_shape, load, store, with_output};
use crate::{C128, Error, Result, StridedMut, StridedRef, interrupt, memory, parallel};

/// The threshold that minimises the growth of elements, `(1 + sqrt(17)) / 8`.
const THRESHOLD: f64 = 0.640_388_203_202_208;

/// For `a` (*, n, n), each of whose rows is a column of a matrix, of which the lower triangle is read: `out` alike holds D's
/// blocks on and below the diagonal and L without its ones, and zeros above. `pivots` (*, n): a positive one says from 1 with which
/// row a block of order 1 was swapped, two equal negative ones the same of the second row of a block of order 2. Gives for each
/// matrix 0, or the number (from 1) of the first block that is zero.
///
/// # Errors
/// Shapes that do not fit.
pub fn ldl_factor(
    out: &mut StridedMut<'_>,
    pivots: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    hermitian: bool,
) -> Result<Vec<i32>> {
    let (batch, n) = squares("linalg.ldl_factor_ex", a.shape())?;
    expect_shape("LD", out.shape(), a.shape())?;
    expect_shape("pivots", pivots.shape(), &with_batch(a.shape(), &[n]))?;
    let a = load::<C128>(a)?;
    let mut swaps = memory::filled(0_i64, batch * n)?;
    let swaps_ = SharedMut::new(&mut swaps);
    let codes = with_output::<C128, _>(out, |out| {
        let out = SharedMut::new(out);
        codes_of_batch(batch, n * n * n, &|i| {
            // SAFETY: one task per matrix.
            let (out, swaps) = unsafe {
                (out.slice(i * n * n..(i + 1) * n * n), swaps_.slice(i * n..(i + 1) * n))
            };
            out.copy_from_slice(&a[i * n * n..(i + 1) * n * n]);
            for column in 0..n {
                out[column * n..column * n + column].fill(C128::default());
            }
            match (Factor { a: out, n, hermitian }).run(swaps) {
                0 => Ok(()),
                zero => Err(FactorFailure::OfMatrix(zero)),
            }
        })
    })?;
    store(pivots, &swaps);
    Ok(codes)
}

/// A matrix on its way, column by column.
struct Factor<'a> {
    a: &'a mut [C128],
    n: usize,
    hermitian: bool,
}

fn size(v: C128) -> f64 {
    v.re.abs() + v.im.abs()
}

fn adjoint(v: C128, hermitian: bool) -> C128 {
    if hermitian { v.conj() } else { v }
}

impl Factor<'_> {
    fn at(&self, row: usize, column: usize) -> C128 {
        self.a[column * self.n + row]
    }
    fn at_mut(&mut self, row: usize, column: usize) -> &mut C128 {
        &mut self.a[column * self.n + row]
    }
    fn adjoint(&self, v: C128) -> C128 {
        adjoint(v, self.hermitian)
    }
    fn make_real(&mut self, d: usize) {
        if self.hermitian {
            self.at_mut(d, d).im = 0.0;
        }
    }

    /// Factorises the matrix; returns the number (from 1) of the first block that is zero, or 0.
    fn run(mut self, swaps: &mut [i64]) -> usize {
        let (mut k, mut zero) = (0, 0);
        while k < self.n {
            interrupt::check();
            self.make_real(k);
            let Some((row, width)) = self.choose(k) else {
                zero = if zero == 0 { k + 1 } else { zero };
                swaps[k] = k as i64 + 1;
                k += 1;
                continue;
            };
            let last = k + width - 1;
            self.swap(k, last, row);
            if width == 1 {
                self.eliminate_one(k);
                swaps[k] = row as i64 + 1;
            } else {
                self.eliminate_two(k);
                swaps[k..k + 2].fill(-(row as i64) - 1);
            }
            k += width;
        }
        zero
    }

    /// Which row becomes the last of the next block, and the block's order; nothing for a column of zeros.
    fn choose(&self, k: usize) -> Option<(usize, usize)> {
        let n = self.n;
        let own = size(self.at(k, k));
        let (mut row, mut most) = (k, 0.0);
        for r in k + 1..n {
            if size(self.at(r, k)) > most {
                (row, most) = (r, size(self.at(r, k)));
            }
        }
        if own.max(most) == 0.0 || own.is_nan() {
            return None;
        }
        if own >= THRESHOLD * most {
            return Some((k, 1));
        }
        let left = (k..row).map(|c| size(self.at(row, c))).fold(0.0, f64::max);
        let below = (row + 1..n).map(|r| size(self.at(r, row))).fold(left, f64::max);
        if own >= THRESHOLD * most * (most / below) {
            return Some((k, 1));
        }
        let diagonal = self.at(row, row);
        let diagonal = if self.hermitian { diagonal.re.abs() } else { size(diagonal) };
        Some((row, if diagonal >= THRESHOLD * below { 1 } else { 2 }))
    }

    /// Swaps rows and columns `p` and `q >= p` of what is left.
    fn swap(&mut self, k: usize, p: usize, q: usize) {
        let n = self.n;
        if p != q {
            for r in q + 1..n {
                self.a.swap(p * n + r, q * n + r);
            }
            for j in p + 1..q {
                let (x, y) = (self.adjoint(self.at(j, p)), self.adjoint(self.at(q, j)));
                *self.at_mut(j, p) = y;
                *self.at_mut(q, j) = x;
            }
            *self.at_mut(q, p) = self.adjoint(self.at(q, p));
            self.a.swap(p * n + p, q * n + q);
            if p > k {
                self.a.swap(k * n + p, k * n + q);
            }
        }
        self.make_real(p);
        self.make_real(q);
    }

    fn eliminate_one(&mut self, k: usize) {
        let n = self.n;
        let inverse = C128::new(1.0, 0.0) / self.at(k, k);
        for j in k + 1..n {
            let factor = inverse * self.adjoint(self.at(j, k));
            for r in j..n {
                let product = factor * self.at(r, k);
                *self.at_mut(r, j) -= product;
            }
            self.make_real(j);
        }
        for r in k + 1..n {
            *self.at_mut(r, k) *= inverse;
        }
    }

    fn eliminate_two(&mut self, k: usize) {
        let n = self.n;
        // The inverse of [[d11, d21'], [d21, d22]].
        let (d11, d21, d22) = (self.at(k, k), self.at(k + 1, k), self.at(k + 1, k + 1));
        let d12 = self.adjoint(d21);
        // Divided by an element that pivoting has made large, so that nothing overflows.
        let (x, y) = (d11 / d21, d22 / d12);
        let scale = C128::new(1.0, 0.0) / (x * y - 1.0);
        for j in k + 2..n {
            let (p, q) = (self.at(j, k), self.at(j, k + 1));
            let first = scale * (y * p - q * d21 / d12) / d21;
            let second = scale * (x * q - p * d12 / d21) / d12;
            let (a, b) = (self.adjoint(first), self.adjoint(second));
            for r in j..n {
                let sum = self.at(r, k) * a + self.at(r, k + 1) * b;
                *self.at_mut(r, j) -= sum;
            }
            *self.at_mut(j, k) = first;
            *self.at_mut(j, k + 1) = second;
            self.make_real(j);
        }
    }
}

/// Solves `a x = b` with the factors of `ld` (*, n, n) and `pivots` (*, n); the right-hand sides are the rows of `b` and `x` (*, k, n).
///
/// # Errors
/// Shapes or dtypes that do not fit; pivots that are no row's number.
pub fn ldl_solve(
    x: &mut StridedMut<'_>,
    (ld, pivots): (StridedRef<'_>, StridedRef<'_>),
    b: StridedRef<'_>,
    hermitian: bool,
) -> Result<()> {
    let (batch, k, n) = matrices("linalg.ldl_solve", b.shape())?;
    let (of, order) = squares("linalg.ldl_solve", ld.shape())?;
    expect_dtype(ld, b.dtype(), "linalg.ldl_solve")?;
    if of != batch || order != n {
        return Err(Error::runtime("linalg.ldl_solve: Incompatible shapes of LD and B".to_owned()));
    }
    expect_shape("pivots", pivots.shape(), &with_batch(ld.shape(), &[n]))?;
    expect_shape("output", x.shape(), b.shape())?;
    let (ld, b, pivots) = (load::<C128>(ld)?, load::<C128>(b)?, load::<i64>(pivots)?);
    for pivots in pivots.chunks_exact(n.max(1)) {
        check_pivots(pivots)?;
    }
    with_output::<C128, _>(x, |x| {
        x.copy_from_slice(&b);
        let x = SharedMut::new(x);
        parallel::try_for_range(batch, (GRAIN / (2 * n * n * k).max(1)).max(1), &|range| {
            for i in range {
                // SAFETY: one task per matrix.
                let x = unsafe { x.slice(i * k * n..(i + 1) * k * n) };
                let factors = &ld[i * n * n..(i + 1) * n * n];
                for x in x.chunks_exact_mut(n.max(1)) {
                    interrupt::check();
                    solve_one(x, factors, &pivots[i * n..(i + 1) * n], hermitian);
                }
            }
            Ok(())
        })
    })
}

/// Refuses pivots that name rows which are not there, or half a block.
fn check_pivots(pivots: &[i64]) -> Result<()> {
    let mut k = 0;
    while k < pivots.len() {
        let is_row = (1..=pivots.len() as i64).contains(&pivots[k].abs());
        let is_pair = pivots[k] < 0;
        if !is_row || is_pair && pivots.get(k + 1) != Some(&pivots[k]) {
            return Err(Error::runtime(
                "torch.linalg.ldl_solve: pivots must be those that torch.linalg.ldl_factor gives"
                    .to_owned(),
            ));
        }
        k += if is_pair { 2 } else { 1 };
    }
    Ok(())
}

fn solve_one(x: &mut [C128], ld: &[C128], pivots: &[i64], hermitian: bool) {
    let n = x.len();
    let at = |row: usize, column: usize| ld[column * n + row];
    let mut k = 0;
    while k < n {
        let row = pivots[k].unsigned_abs() as usize - 1;
        if pivots[k] > 0 {
            x.swap(k, row);
            for r in k + 1..n {
                x[r] -= at(r, k) * x[k];
            }
            x[k] /= at(k, k);
            k += 1;
            continue;
        }
        x.swap(k + 1, row);
        for r in k + 2..n {
            x[r] = x[r] - at(r, k) * x[k] - at(r, k + 1) * x[k + 1];
        }
        let (d21, d12) = (at(k + 1, k), adjoint(at(k + 1, k), hermitian));
        let (first, second) = (at(k, k) / d12, at(k + 1, k + 1) / d21);
        let (p, q) = (x[k] / d12, x[k + 1] / d21);
        let determinant = first * second - 1.0;
        x[k] = (second * p - q) / determinant;
        x[k + 1] = (first * q - p) / determinant;
        k += 2;
    }
    while k > 0 {
        let last = k - 1;
        let width = if pivots[last] > 0 { 1 } else { 2 };
        for c in k - width..k {
            for r in k..n {
                x[c] -= adjoint(at(r, c), hermitian) * x[r];
            }
        }
        x.swap(last, pivots[last].unsigned_abs() as usize - 1);
        k -= width;
    }
}
