//! Triangular systems of one matrix for many right-hand sides, and the inverse of a triangular matrix, both in place by halves:
//! what the first half solves is taken from the other sides by a product, so that all but diagonal blocks of 16 is products
//! (F. G. Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra algorithms", 1997).
//!
//! Diagonal blocks are substituted and not inverted, so that the error is bounded as that of plain substitution.
//!
//! Invariant: of a triangular matrix the other triangle is not used, nor the diagonal if it is one of ones.

use super::{Field, Triangle};
use crate::gemm::{self, GemmSizes, Matrix};
use crate::simd::transpose::{SQUARE, square};
use crate::{Result, interrupt, memory};

/// Right-hand sides that are substituted at once: enough for several registers, which do not wait for one another.
const LANES: usize = 2 * SQUARE;

/// Whether so many right-hand sides are worth products of blocks.
pub(super) fn fits(sides: usize) -> bool {
    sides >= LANES
}

/// Solves `a x = x` for the (n, k) matrix `x` in place. Memory that is refused is so before `x` changes.
///
/// # Safety
/// All elements of both matrices are live, those of `x` writable; they are apart.
pub(super) unsafe fn solve<T: Field>(
    a: Matrix<T>,
    triangle: Triangle,
    x: Matrix<T>,
    (n, k): (usize, usize),
    threads: bool,
) -> Result<()> {
    // For the products, which ask for less each.
    memory::probe(2 * n * (n + k) * size_of::<T>())?;
    // SAFETY: the caller's promise.
    unsafe { solve_half(a, triangle, x, (n, k), threads) }
}

/// [`solve`] with the memory that its products ask for.
///
/// # Safety
/// As [`solve`].
pub(super) unsafe fn solve_half<T: Field>(
    a: Matrix<T>,
    triangle: Triangle,
    x: Matrix<T>,
    (n, k): (usize, usize),
    threads: bool,
) -> Result<()> {
    interrupt::check();
    // SAFETY: parts of the matrices.
    unsafe {
        if n <= SQUARE {
            solve_block(a, triangle, x, (n, k));
            return Ok(());
        }
        let first = half(n);
        let (rest, low, corner) = (n - first, x.at(first, 0), a.at(first, first));
        let minus = T::default().minus(T::one());
        if triangle.upper {
            solve_half(corner, triangle, low, (rest, k), threads)?;
            let sizes = GemmSizes { m: first, n: k, k: rest };
            gemm::product(sizes, x, a.at(0, first), low, minus, T::one(), threads)?;
            solve_half(a, triangle, x, (first, k), threads)
        } else {
            solve_half(a, triangle, x, (first, k), threads)?;
            let sizes = GemmSizes { m: rest, n: k, k: first };
            gemm::product(sizes, low, a.at(first, 0), x, minus, T::one(), threads)?;
            solve_half(corner, triangle, low, (rest, k), threads)
        }
    }
}

/// Makes an upper triangular matrix of order `n` its inverse. With A and D on the diagonal and B beside them, `-A^-1 B D^-1`
/// stands beside their inverses.
///
/// # Safety
/// All elements are live and writable.
pub(super) unsafe fn invert_upper<T: Field>(a: Matrix<T>, n: usize, threads: bool) -> Result<()> {
    let upper = Triangle { upper: true, unit: false };
    // SAFETY: parts of the matrix, which are apart from each other.
    unsafe {
        if n <= SQUARE {
            invert_block(a, n);
            return Ok(());
        }
        let first = half(n);
        let (rest, beside, corner) = (n - first, a.at(0, first), a.at(first, first));
        for c in 0..rest {
            for r in 0..first {
                let value = beside.at(r, c).ptr;
                *value = T::default().minus(*value);
            }
        }
        solve(a, upper, beside, (first, rest), threads)?;
        let transposed = Triangle { upper: false, unit: false };
        solve(corner.t(), transposed, beside.t(), (rest, first), threads)?;
        invert_upper(a, first, threads)?;
        invert_upper(corner, rest, threads)
    }
}

/// The first part of `n`, about a half of it.
pub(super) fn half(n: usize) -> usize {
    (n / 2).next_multiple_of(SQUARE)
}

/// # Safety
/// As [`invert_upper`].
unsafe fn invert_block<T: Field>(a: Matrix<T>, n: usize) {
    let mut inverse = [[T::default(); LANES]; SQUARE];
    (0..n).for_each(|d| inverse[d][d] = T::one());
    // SAFETY: the caller's promise.
    unsafe {
        substitute(&mut inverse, &diagonal_block(a, n), n, Triangle { upper: true, unit: false });
        for (r, row) in inverse[..n].iter().enumerate() {
            for (c, &value) in row[..n].iter().enumerate().skip(r) {
                *a.at(r, c).ptr = value;
            }
        }
    }
}

/// # Safety
/// All elements are live.
unsafe fn diagonal_block<T: Field>(a: Matrix<T>, n: usize) -> [[T; SQUARE]; SQUARE] {
    let mut block = [[T::default(); SQUARE]; SQUARE];
    for (r, row) in block[..n].iter_mut().enumerate() {
        for (c, to) in row[..n].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *to = unsafe { *a.at(r, c).ptr };
        }
    }
    block
}

/// # Safety
/// As [`solve`].
unsafe fn solve_block<T: Field>(
    a: Matrix<T>,
    triangle: Triangle,
    x: Matrix<T>,
    (n, k): (usize, usize),
) {
    // SAFETY: parts of the matrices.
    unsafe {
        let block = diagonal_block(a, n);
        for start in (0..k).step_by(LANES) {
            let x = x.at(0, start);
            let sizes = (n, LANES.min(k - start));
            let mut rows = load(x, sizes);
            substitute(&mut rows, &block, n, triangle);
            store(&mut rows, x, sizes);
        }
    }
}

/// Rows of right-hand sides.
type SideRows<T> = [[T; LANES]; SQUARE];

/// Rows of right-hand sides; what is not there is zero.
///
/// # Safety
/// The elements are live.
unsafe fn load<T: Field>(x: Matrix<T>, sizes: (usize, usize)) -> SideRows<T> {
    let mut rows = [[T::default(); LANES]; SQUARE];
    // SAFETY: the caller's promise.
    unsafe { copy::<T, false>(&mut rows, x, sizes) };
    rows
}

/// Writes what [`load`] reads.
///
/// # Safety
/// The elements are live, and may be written.
unsafe fn store<T: Field>(rows: &mut SideRows<T>, x: Matrix<T>, sizes: (usize, usize)) {
    // SAFETY: the caller's promise.
    unsafe { copy::<T, true>(rows, x, sizes) };
}

/// Copies (n, k) elements from rows to the matrix if `BACK`, else from the matrix to rows: whole rows as they are, columns of a full
/// block square by square.
///
/// # Safety
/// As [`load`] or [`store`].
unsafe fn copy<T: Field, const BACK: bool>(
    rows: &mut SideRows<T>,
    x: Matrix<T>,
    (n, k): (usize, usize),
) {
    let size = size_of::<T>() as isize;
    let (own, pitch) = (rows.as_mut_ptr().cast::<T>(), LANES as isize * size);
    let give = |own: *mut T, theirs: *mut T, count: usize| {
        let (to, from) = if BACK { (theirs, own) } else { (own, theirs) };
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(from, count) };
    };
    // SAFETY: the caller's promise.
    unsafe {
        if x.cs == 1 && k == LANES {
            (0..n).for_each(|r| give(own.add(r * LANES), x.at(r, 0).ptr, LANES));
        } else if x.rs == 1 && (n, k) == (SQUARE, LANES) {
            for start in [0, SQUARE] {
                let (own, theirs) = (own.add(start).cast::<u8>(), x.at(0, start).ptr.cast::<u8>());
                if BACK {
                    square::<T, false>(theirs, x.cs * size, own, pitch);
                } else {
                    square::<T, false>(own, pitch, theirs, x.cs * size);
                }
            }
        } else {
            for r in 0..n {
                (0..k).for_each(|c| give(own.add(r * LANES + c), x.at(r, c).ptr, 1));
            }
        }
    }
}

crate::multiversion! {
    /// Solves `a x = x` for the first `n` rows of a block.
    fn substitute<T: Field>(
        x: &mut SideRows<T>,
        a: &[[T; SQUARE]; SQUARE],
        n: usize,
        triangle: Triangle,
    ) {
        for step in 0..n {
            let r = if triangle.upper { n - 1 - step } else { step };
            let known = if triangle.upper { r + 1..n } else { 0..r };
            let mut row = x[r];
            for c in known {
                let minus = T::default().minus(a[r][c]);
                for l in 0..LANES {
                    row[l] = minus.mul_add_to(x[c][l], row[l]);
                }
            }
            if !triangle.unit {
                let pivot = a[r][r];
                for value in &mut row {
                    *value = value.divided_by(pivot);
                }
            }
            x[r] = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Matrix, Triangle, invert_upper, solve};
    use crate::C128;

    /// Numbers of a full matrix whose triangles are well conditioned.
    fn matrix(n: usize, seed: usize) -> Vec<C128> {
        let number = |at: usize| ((at * 7919 + seed * 104_729) % 1009) as f64 / 1009.0 - 0.5;
        let diagonal = |at: usize| if at / n == at % n { 2.0 } else { 0.0 };
        (0..n * n)
            .map(|at| C128::new(number(at) / n as f64 + diagonal(at), number(at + n) / n as f64))
            .collect()
    }

    /// An element of the triangle; else 0, or the 1 of its diagonal.
    fn element(a: &[C128], n: usize, triangle: Triangle, (r, c): (usize, usize)) -> C128 {
        match (r == c, triangle.unit, if triangle.upper { r <= c } else { r >= c }) {
            (true, true, _) => C128::new(1.0, 0.0),
            (_, _, true) => a[r * n + c],
            _ => C128::default(),
        }
    }

    #[test]
    fn solutions_times_the_triangle_are_the_right_hand_sides_in_either_layout() {
        for (n, k) in [(1, 1), (16, 32), (17, 40), (64, 33), (100, 64), (33, 7)] {
            for at in 0..8 {
                let triangle = Triangle { upper: at & 1 == 1, unit: at & 2 == 2 };
                let a = matrix(n, 1);
                let b: Vec<C128> = matrix(n.max(k), 2)[..n * k].to_vec();
                let mut x = b.clone();
                let view = match at & 4 {
                    0 => Matrix::rows(x.as_mut_ptr(), k),
                    _ => Matrix::rows(x.as_mut_ptr(), n).t(),
                };
                // SAFETY: live matrices of these sizes.
                unsafe {
                    solve(Matrix::rows(a.as_ptr(), n), triangle, view, (n, k), true).unwrap();
                };
                let place = |r: usize, c: usize| if at & 4 == 0 { r * k + c } else { c * n + r };
                for r in 0..n {
                    for c in 0..k {
                        let got = (0..n).fold(C128::default(), |sum, j| {
                            sum + element(&a, n, triangle, (r, j)) * x[place(j, c)]
                        });
                        let gap = got - b[place(r, c)];
                        assert!(gap.re.hypot(gap.im) < 1e-12, "{n} {k} {triangle:?} {r} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn inverses_of_upper_triangles_leave_what_is_below_as_it_is() {
        for n in [1, 16, 17, 50, 130] {
            let a = matrix(n, 3);
            let mut inverse = a.clone();
            // SAFETY: a live matrix of this order.
            unsafe { invert_upper(Matrix::rows(inverse.as_mut_ptr(), n), n, true).unwrap() };
            for r in 0..n {
                for c in 0..n {
                    if c < r {
                        assert_eq!(inverse[r * n + c], a[r * n + c], "{n} {r} {c}");
                        continue;
                    }
                    let got = (r..=c)
                        .fold(C128::default(), |sum, j| sum + a[r * n + j] * inverse[j * n + c]);
                    let expected = if r == c { 1.0 } else { 0.0 };
                    let gap = got - C128::new(expected, 0.0);
                    assert!(gap.re.hypot(gap.im) < 1e-12, "{n} {r} {c}");
                }
            }
        }
    }
}
