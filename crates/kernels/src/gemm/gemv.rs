//! Matrix times vector, vector times matrix, and dot products: bound by memory, so each element of
//! the matrix is read once, in the order it lies in memory.
//!
//! Invariant: an output's sum depends on `k` and the orientation only: rows are summed in fixed lanes
//! (`dot`), columns one after the other (`axpy`), long dot products in fixed chunks.

use super::{GemmSizes, Matrix, MulAdd, small};
use crate::Result;
use crate::dense::SharedMut;
use crate::memory;
use crate::parallel;
use crate::simd::transpose::{SQUARE, square};
use smallvec::SmallVec;

/// Partial sums of a dot product.
const LANES: usize = 32;
/// Elements of a long dot product that one task sums.
const CHUNK: usize = 1 << 16;
/// Matrix elements worth a thread of their own.
const GRAIN: usize = 1 << 17;

/// `c = beta * c + alpha * a @ b` where `c` has one row or one column.
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn product<T: MulAdd>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    if s.n != 1 {
        // A row times a matrix is the transposed matrix times a column.
        let s = GemmSizes { m: s.n, n: 1, k: s.k };
        // SAFETY: the caller's promise.
        return unsafe { product(s, c.t(), b.t(), a.t(), alpha, beta, threads) };
    }
    let mut copy = Vec::new();
    let x = vector(b.ptr, b.rs, s.k, &mut copy)?;
    let mut sums = SmallVec::<[T; 64]>::new();
    memory::extend(&mut sums, std::iter::repeat_n(T::default(), s.m))?;
    if s.m == 1 {
        let mut row = Vec::new();
        sums[0] = long_dot(vector(a.ptr, a.cs, s.k, &mut row)?, x, threads)?;
    } else if a.cs == 1 || a.rs != 1 {
        by_rows(s, a, x, &mut sums, threads);
    } else {
        by_columns(s, a, x, &mut sums, threads);
    }
    // SAFETY: `c` has one column, `sums.len()` rows.
    unsafe { small::finish(c.t(), &sums, alpha, beta) };
    Ok(())
}

/// A strided vector as a slice, copied into `copy` if it has gaps.
fn vector<T: MulAdd>(ptr: *const T, stride: isize, n: usize, copy: &mut Vec<T>) -> Result<&[T]> {
    if stride == 1 || n == 0 {
        // SAFETY: `n` live elements without gaps, as the views promised.
        return Ok(unsafe { std::slice::from_raw_parts(ptr, n) });
    }
    // SAFETY: inside the view.
    memory::extend(copy, (0..n as isize).map(|i| unsafe { *ptr.offset(i * stride) }))?;
    Ok(copy)
}

/// Whether there are so few outputs, each of so many products, that rows and columns are better multiplied one by one.
pub(super) fn has_few_outputs(s: GemmSizes) -> bool {
    s.m.max(s.n) <= MAX_FEW && s.k >= 256 && s.k * (s.m + s.n) <= CHUNK
}

/// Most rows and columns of few outputs.
const MAX_FEW: usize = 4;

/// `c = beta * c + alpha * a @ b` where [`has_few_outputs`].
///
/// # Safety
/// As [`super::product`].
pub(super) unsafe fn few_outputs<T: MulAdd>(
    s: GemmSizes,
    c: Matrix<T>,
    a: Matrix<T>,
    b: Matrix<T>,
    alpha: T,
    beta: T,
) -> Result<()> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let b = b.t();
    let is_same = (a.ptr, a.rs, a.cs, s.m) == (b.ptr, b.rs, b.cs, s.n);
    // SAFETY: the caller's promise.
    let left = unsafe { without_gaps(a, (s.m, s.k), &mut first)? };
    // SAFETY: as above.
    let right = if is_same { left } else { unsafe { without_gaps(b, (s.n, s.k), &mut second)? } };
    for (j, x) in right.chunks_exact(s.k).enumerate() {
        let mut sums = [T::default(); MAX_FEW];
        rows(Matrix::rows(left.as_ptr(), s.k), x, &mut sums[..s.m]);
        // SAFETY: `c` has `m` rows.
        unsafe { small::finish(c.at(0, j).t(), &sums[..s.m], alpha, beta) };
    }
    Ok(())
}

/// The rows of a matrix one after the other, copied if they do not lie so.
///
/// # Safety
/// All elements of the matrix are live.
unsafe fn without_gaps<T: MulAdd>(
    a: Matrix<T>,
    (m, k): (usize, usize),
    copy: &mut Vec<T>,
) -> Result<&[T]> {
    if a.cs == 1 && a.rs == k as isize {
        // SAFETY: `m` rows of `k` live elements without gaps.
        return Ok(unsafe { std::slice::from_raw_parts(a.ptr, m * k) });
    }
    memory::reserve(copy, m * k)?;
    for i in 0..m {
        // SAFETY: inside the matrix.
        memory::extend(copy, (0..k).map(|p| unsafe { *a.at(i, p).ptr }))?;
    }
    Ok(copy)
}

fn by_rows<T: MulAdd>(s: GemmSizes, a: Matrix<T>, x: &[T], sums: &mut [T], threads: bool) {
    let grain = if threads { (GRAIN / s.k).max(1) } else { s.m };
    let sums = SharedMut::new(sums);
    let run = |range: std::ops::Range<usize>| {
        // SAFETY: ranges are disjoint.
        let out = unsafe { sums.slice(range.clone()) };
        rows(a.at(range.start, 0), x, out);
    };
    if grain >= s.m { run(0..s.m) } else { parallel::for_range(s.m, grain, &run) }
}

fn by_columns<T: MulAdd>(s: GemmSizes, a: Matrix<T>, x: &[T], sums: &mut [T], threads: bool) {
    // Blocks of outputs that stay in the first-level cache.
    const BLOCK: usize = 2048;
    let blocks = s.m.div_ceil(BLOCK);
    let sums = SharedMut::new(sums);
    let run = |range: std::ops::Range<usize>| {
        for block in range {
            let rows = block * BLOCK..s.m.min((block + 1) * BLOCK);
            // SAFETY: blocks are disjoint.
            columns(a.at(rows.start, 0), x, unsafe { sums.slice(rows.clone()) });
        }
    };
    if threads && blocks > 1 && s.work() > GRAIN {
        parallel::for_range(blocks, 1, &run);
    } else {
        run(0..blocks);
    }
}

crate::multiversion! {
    /// `out[i] = sum over p of a[i, p] * x[p]`, lanes along the row.
    fn rows<T: MulAdd>(a: Matrix<T>, x: &[T], out: &mut [T]) {
        let short = if a.cs == 1 && a.rs == x.len() as isize { short_rows(a, x, out) } else { 0 };
        let whole = if a.cs == 1 { short + (out.len() - short) / 4 * 4 } else { 0 };
        for i in (short..whole).step_by(4) {
            // SAFETY: four live rows of `x.len()` elements.
            let row = |r: usize| unsafe { std::slice::from_raw_parts(a.at(i + r, 0).ptr, x.len()) };
            out[i..i + 4].copy_from_slice(&four_lanes([row(0), row(1), row(2), row(3)], x));
        }
        for (i, sum) in out.iter_mut().enumerate().skip(whole) {
            let row = a.at(i, 0);
            *sum = if row.cs == 1 {
                // SAFETY: a live row of `x.len()` elements.
                lanes(unsafe { std::slice::from_raw_parts(row.ptr, x.len()) }, x)
            } else {
                let mut acc = T::default();
                for (p, &x) in x.iter().enumerate() {
                    // SAFETY: inside the row.
                    acc = unsafe { *row.at(0, p).ptr }.mul_add_to(x, acc);
                }
                acc
            };
        }
    }
}

/// The products of short rows without gaps, sixteen at a time transposed; returns how many rows are done. Each is summed
/// in order, as [`lanes`] does.
#[inline(always)]
fn short_rows<T: MulAdd>(a: Matrix<T>, x: &[T], out: &mut [T]) -> usize {
    let (k, n) = (x.len(), out.len());
    if !(2..SQUARE).contains(&k) {
        return 0;
    }
    // Where sixteen elements are whole rows, the square is of registers of them: lane `v` of part `p` is row `v * parts + p`.
    let parts = if k.is_power_of_two() { SQUARE / k } else { 1 };
    let step = (SQUARE * size_of::<T>()) as isize;
    let from_step = if parts > 1 { step } else { (k * size_of::<T>()) as isize };
    let mut columns = [[T::default(); SQUARE]; SQUARE];
    let mut done = 0;
    // (A square reads sixteen elements from the beginning of its last row on.)
    while done + SQUARE * parts <= n && (done + SQUARE * parts - parts) * k + SQUARE <= n * k {
        // SAFETY: rows without gaps, of which all that is read lies inside the matrix.
        unsafe {
            let from = a.at(done, 0).ptr.cast();
            square::<T, false>(columns.as_mut_ptr().cast(), step, from, from_step);
        }
        for part in 0..parts {
            let mut sums = [T::default(); SQUARE];
            for (column, &x) in columns[part * k..].iter().zip(x) {
                for l in 0..SQUARE {
                    sums[l] = column[l].mul_add_to(x, sums[l]);
                }
            }
            for (v, &sum) in sums.iter().enumerate() {
                out[done + v * parts + part] = sum;
            }
        }
        done += SQUARE * parts;
    }
    done
}

crate::multiversion! {
    /// `out[i] = sum over p of a[i, p] * x[p]`, lanes along the column; `out` starts as zeros.
    fn columns<T: MulAdd>(a: Matrix<T>, x: &[T], out: &mut [T]) {
        let n = out.len();
        // SAFETY: live columns of `n` elements.
        let column = |p: usize| unsafe { std::slice::from_raw_parts(a.at(0, p).ptr, n) };
        let mut p = 0;
        while p + 4 <= x.len() {
            let (a0, a1, a2, a3) = (column(p), column(p + 1), column(p + 2), column(p + 3));
            for i in 0..n {
                let sum = a0[i].mul_add_to(x[p], out[i]);
                let sum = a1[i].mul_add_to(x[p + 1], sum);
                let sum = a2[i].mul_add_to(x[p + 2], sum);
                out[i] = a3[i].mul_add_to(x[p + 3], sum);
            }
            p += 4;
        }
        while p < x.len() {
            let a0 = column(p);
            for i in 0..n {
                out[i] = a0[i].mul_add_to(x[p], out[i]);
            }
            p += 1;
        }
    }
}

/// A dot product in chunks, added up in order.
fn long_dot<T: MulAdd>(a: &[T], b: &[T], threads: bool) -> Result<T> {
    if a.len() <= CHUNK {
        return Ok(short_dot(a, b));
    }
    let chunks = a.len().div_ceil(CHUNK);
    let mut parts = memory::filled(T::default(), chunks)?;
    let shared = SharedMut::new(&mut parts);
    let run = |range: std::ops::Range<usize>| {
        for chunk in range {
            let span = chunk * CHUNK..a.len().min((chunk + 1) * CHUNK);
            // SAFETY: one chunk, one element.
            let part = unsafe { shared.slice(chunk..chunk + 1) };
            part[0] = short_dot(&a[span.clone()], &b[span]);
        }
    };
    if threads {
        parallel::for_range(chunks, 4, &run);
    } else {
        run(0..chunks);
    }
    Ok(parts.into_iter().fold(T::default(), T::plus))
}

crate::multiversion! {
    fn short_dot<T: MulAdd>(a: &[T], b: &[T]) -> T {
        lanes(a, b)
    }
}

/// Four dot products with one vector, each exactly as [`lanes`] sums it: four rows are read at once
/// because one stream does not fill the memory's bandwidth.
#[inline(always)]
fn four_lanes<T: MulAdd>(rows: [&[T]; 4], x: &[T]) -> [T; 4] {
    let [mut acc0, mut acc1, mut acc2, mut acc3] = [[T::default(); LANES]; 4];
    let whole = x.len() / LANES * LANES;
    let [r0, r1, r2, r3] = rows;
    let mut i = 0;
    while i < whole {
        let x = &x[i..i + LANES];
        let (r0, r1) = (&r0[i..i + LANES], &r1[i..i + LANES]);
        let (r2, r3) = (&r2[i..i + LANES], &r3[i..i + LANES]);
        for l in 0..LANES {
            acc0[l] = r0[l].mul_add_to(x[l], acc0[l]);
            acc1[l] = r1[l].mul_add_to(x[l], acc1[l]);
            acc2[l] = r2[l].mul_add_to(x[l], acc2[l]);
            acc3[l] = r3[l].mul_add_to(x[l], acc3[l]);
        }
        i += LANES;
    }
    let rest = &x[whole..];
    [
        fold(acc0, &r0[whole..], rest),
        fold(acc1, &r1[whole..], rest),
        fold(acc2, &r2[whole..], rest),
        fold(acc3, &r3[whole..], rest),
    ]
}

/// Adds the partial sums in halves, then the products of what is left over.
#[inline(always)]
fn fold<T: MulAdd>(mut acc: [T; LANES], a: &[T], b: &[T]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            acc[l] = acc[l].plus(acc[l + width]);
        }
        width /= 2;
    }
    let mut sum = acc[0];
    for (a, b) in a.iter().zip(b) {
        sum = a.mul_add_to(*b, sum);
    }
    sum
}

/// The dot product in `LANES` partial sums, folded in halves.
#[inline(always)]
fn lanes<T: MulAdd>(a: &[T], b: &[T]) -> T {
    let mut acc = [T::default(); LANES];
    let (a_blocks, b_blocks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_blocks.remainder(), b_blocks.remainder());
    for (a, b) in a_blocks.zip(b_blocks) {
        for l in 0..LANES {
            acc[l] = a[l].mul_add_to(b[l], acc[l]);
        }
    }
    fold(acc, a_rest, b_rest)
}
