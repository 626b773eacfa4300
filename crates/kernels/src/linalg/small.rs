//! Factorisations of small real matrices, sixteen of a batch side by side: every step is one of whole registers, a lane
//! per matrix. Each matrix's factors are what they would be alone.

use crate::Result;
use crate::dense::{Real, SharedMut};
use crate::lanes::{Column, ROWS, buffer_width, to_columns, to_rows};
use crate::memory;
use crate::parallel;

/// Largest order that is factorised here: sixteen matrices stay in the second-level cache.
const LARGEST: usize = 32;
/// Fewest matrices for which lanes pay.
const FEWEST: usize = 4;

/// Whether matrices are better factorised side by side.
pub(super) fn fits(batch: usize, m: usize, n: usize) -> bool {
    batch >= FEWEST && m.max(n) <= LARGEST && m.min(n) > 0
}

/// Elements of `T` in lanes.
type BatchLanes<T> = Vec<Column<T>>;

#[inline(always)]
fn zeros<T: Real>(n: usize) -> Result<BatchLanes<T>> {
    memory::filled([T::ZERO; ROWS], buffer_width(n))
}

/// `a - b * c` of each lane.
#[inline(always)]
fn minus_product<T: Real>(mut a: Column<T>, b: Column<T>, c: Column<T>) -> Column<T> {
    for l in 0..ROWS {
        a[l] = (-b[l]).mul_add(c[l], a[l]);
    }
    a
}

/// Runs `work` on (first matrix, matrices) for groups of sixteen, on several threads.
fn for_groups(
    batch: usize,
    cost: usize,
    work: &(dyn Fn(usize, usize) -> Result<()> + Sync),
) -> Result<()> {
    let grain = (8 * super::GRAIN / cost.max(1)).next_multiple_of(ROWS).max(ROWS);
    let groups = parallel::RestartableBlocks::default();
    parallel::try_for_range(batch, grain, &|range| {
        let mut starts = range.clone().step_by(ROWS);
        starts.try_for_each(|first| groups.run(|| work(first, ROWS.min(range.end - first))))
    })
}

/// `a = q r` of a batch of (m, n): `r` (k, n) and, if it is not empty, `q` (m, k). R's diagonal has the signs that LAPACK
/// gives: opposite to what stood there, or the same where there was nothing to eliminate.
pub(super) fn qr<T: Real>(
    q: &mut [T],
    r: &mut [T],
    a: &[T],
    (batch, m, n, k): (usize, usize, usize, usize),
) -> Result<()> {
    let per_q = if q.is_empty() { 0 } else { m * k };
    let (q, r) = (SharedMut::new(q), SharedMut::new(r));
    for_groups(batch, 4 * m * n * n, &|first, count| {
        // SAFETY: one task per matrix.
        let (q, r) = unsafe {
            let q = q.slice(first * per_q..(first + count) * per_q);
            (q, r.slice(first * k * n..(first + count) * k * n))
        };
        qr_group(q, r, &a[first * m * n..], m, n, k)
    })
}

/// Makes column `k` of `a` (m, n), from row `k` on, its norm and zeros; the reflection that does so becomes `v`, whose
/// element `k` is left out for it is 1, and the returned tau.
#[inline(always)]
fn reflect<T: Real>(
    a: &mut [Column<T>],
    v: &mut [Column<T>],
    (m, n, k): (usize, usize, usize),
) -> Column<T> {
    let alpha = a[k * n + k];
    let (mut rest, mut largest) = ([T::ZERO; ROWS], [T::ZERO; ROWS]);
    for i in k..m {
        let x = a[i * n + k];
        for l in 0..ROWS {
            let size = x[l].abs();
            largest[l] = if size > largest[l] { size } else { largest[l] };
            rest[l] = if i > k { rest[l] + size } else { rest[l] };
        }
    }
    for scale in &mut largest {
        *scale = if *scale == T::ZERO { T::ONE } else { *scale };
    }
    // Of largest size 1 from here on: squares of others may overflow or get lost, and of tiny ones quotients do too.
    let (mut squares, mut first) = ([T::ZERO; ROWS], alpha);
    for i in k..m {
        let mut x = a[i * n + k];
        for l in 0..ROWS {
            x[l] /= largest[l];
            squares[l] = x[l].mul_add(x[l], squares[l]);
        }
        *(if i == k { &mut first } else { &mut v[i] }) = x;
    }
    let (mut beta, mut tau, mut factor) = (alpha, [T::ZERO; ROWS], [T::ZERO; ROWS]);
    for l in 0..ROWS {
        let norm = squares[l].sqrt();
        let reflected = if alpha[l] >= T::ZERO { -norm } else { norm };
        let is_done = rest[l] == T::ZERO;
        beta[l] = if is_done { alpha[l] } else { reflected * largest[l] };
        tau[l] = if is_done { T::ZERO } else { (reflected - first[l]) / reflected };
        factor[l] = if is_done { T::ZERO } else { T::ONE / (first[l] - reflected) };
    }
    a[k * n + k] = beta;
    for x in &mut v[k + 1..m] {
        for l in 0..ROWS {
            x[l] *= factor[l];
        }
    }
    tau
}

/// Applies reflection `k` to a column that `x` begins with, `width` between its `m` rows.
#[inline(always)]
fn apply<T: Real>(
    tau: Column<T>,
    v: &[Column<T>],
    (m, k): (usize, usize),
    x: &mut [Column<T>],
    width: usize,
) {
    let mut first = x[k * width];
    let mut product = first;
    for i in k + 1..m {
        let (v, x) = (v[i], x[i * width]);
        for l in 0..ROWS {
            product[l] = v[l].mul_add(x[l], product[l]);
        }
    }
    for l in 0..ROWS {
        product[l] *= tau[l];
        first[l] -= product[l];
    }
    x[k * width] = first;
    for i in k + 1..m {
        x[i * width] = minus_product(x[i * width], product, v[i]);
    }
}

crate::multiversion! {
    fn qr_group<T: Real>(q: &mut [T], r: &mut [T], a: &[T], m: usize, n: usize, k: usize) -> Result<()> {
        let count = r.len() / (k * n);
        let mut lanes = zeros::<T>(m * n)?;
        to_columns(&mut lanes, a, m * n, count);
        let steps = m.min(n);
        let (mut taus, mut vectors) = (zeros::<T>(steps)?, zeros::<T>(steps * m)?);
        for step in 0..steps {
            let v = &mut vectors[step * m..(step + 1) * m];
            taus[step] = reflect(&mut lanes, v, (m, n, step));
            for c in step + 1..n {
                apply(taus[step], v, (m, step), &mut lanes[c..], n);
            }
        }
        if !q.is_empty() {
            let mut columns = zeros::<T>(m * k)?;
            for c in 0..k {
                columns[c * k + c] = [T::ONE; ROWS];
                // Reflections that come after `c` leave the unit vector as it is.
                for step in (0..steps.min(c + 1)).rev() {
                    apply(taus[step], &vectors[step * m..], (m, step), &mut columns[c..], k);
                }
            }
            to_rows(q, &columns, m * k);
        }
        let mut upper = zeros::<T>(k * n)?;
        for row in 0..k {
            for c in row..n {
                upper[row * n + c] = lanes[row * n + c];
            }
        }
        to_rows(r, &upper, k * n);
        Ok(())
    }
}

/// The lower factors of a batch of (n, n), of which one triangle is read, or with `upper` their transposes. The codes
/// become 0, or the order of the first minor that is not positive definite; then the factor becomes NaN.
pub(super) fn cholesky<T: Real>(
    out: &mut [T],
    a: &[T],
    (batch, n): (usize, usize),
    upper: bool,
) -> Result<Vec<i32>> {
    let mut codes = memory::filled(0, batch)?;
    let (out, codes_) = (SharedMut::new(out), SharedMut::new(&mut codes));
    for_groups(batch, n * n * n / 2, &|first, count| {
        // SAFETY: one task per matrix.
        let (out, codes) = unsafe {
            let out = out.slice(first * n * n..(first + count) * n * n);
            (out, codes_.slice(first..first + count))
        };
        cholesky_group(out, codes, &a[first * n * n..], n, upper)
    })?;
    Ok(codes)
}

crate::multiversion! {
    fn cholesky_group<T: Real>(out: &mut [T], codes: &mut [i32], a: &[T], n: usize, upper: bool) -> Result<()> {
        let mut lanes = zeros::<T>(n * n)?;
        to_columns(&mut lanes, a, n * n, codes.len());
        let mut factor = zeros::<T>(n * n)?;
        let at = |row: usize, c: usize| if upper { c * n + row } else { row * n + c };
        let mut failed = [0_i32; ROWS];
        for j in 0..n {
            let mut pivot = lanes[j * n + j];
            for k in 0..j {
                pivot = minus_product(pivot, factor[at(j, k)], factor[at(j, k)]);
            }
            for l in 0..ROWS {
                let fails = ((pivot[l] <= T::ZERO) | pivot[l].is_nan()) & (failed[l] == 0);
                failed[l] = if fails { j as i32 + 1 } else { failed[l] };
                pivot[l] = pivot[l].sqrt();
            }
            factor[at(j, j)] = pivot;
            for i in j + 1..n {
                let mut x = lanes[at(i, j)];
                for k in 0..j {
                    x = minus_product(x, factor[at(i, k)], factor[at(j, k)]);
                }
                for l in 0..ROWS {
                    x[l] /= pivot[l];
                }
                factor[at(i, j)] = x;
            }
        }
        to_rows(out, &factor, n * n);
        codes.copy_from_slice(&failed[..codes.len()]);
        for (out, _) in out.chunks_exact_mut(n * n).zip(codes).filter(|(_, code)| **code != 0) {
            out.fill(T::of(f64::NAN));
        }
        Ok(())
    }
}
