//! Long lines in two steps, each of many short lines, which several threads share and caches hold.
//!
//! With `n = a b`, `j = j1 b + j2` and `k = k1 + a k2`:
//! `X[k1 + a k2] = sum_j2 w_b^(j2 k2) w_n^(j2 k1) sum_j1 w_a^(j1 k1) x[j1 b + j2]`.
//! So the line is a matrix of `a` rows: its columns are transformed, multiplied by `w_n^(j2 k1)`, then its rows are, and the result
//! is the transposed matrix. (D. H. Bailey, "FFTs in external or hierarchical memory", 1990.) Whether a line is split
//! depends on its length alone.

use crate::line::Full;
use crate::plan::{FftReal, LinePlan};
use crate::tile::is_tiled;
use num_complex::Complex;
use pullback_kernels::{Result, memory};
use rustfft::{FftDirection, FftPlanner};
use std::sync::{Arc, Mutex};

/// Lengths from which lines are split.
const FROM: usize = 1 << 16;
/// Lengths up to which a plan keeps the memory of a call.
const LEFT: usize = 1 << 21;
/// The largest prime factor of a length that is split.
const LARGEST_FACTOR: usize = 13;

/// Whether all prime factors are small.
pub(crate) fn is_smooth(n: usize) -> bool {
    let mut rest = n.max(1);
    for prime in 2..=LARGEST_FACTOR {
        while rest.is_multiple_of(prime) {
            rest /= prime;
        }
    }
    rest == 1
}

/// The two factors of a length that is split, as near to each other as there are.
pub(crate) fn factors(n: usize) -> Option<(usize, usize)> {
    if n < FROM || !is_smooth(n) {
        return None;
    }
    let a = (1..=n.isqrt()).rev().find(|&a| n.is_multiple_of(a))?;
    Some((a, n / a))
}

/// The two factors of a length that is split, if lines of both are transformed in full tiles.
pub(crate) fn tiled_factors(n: usize) -> Option<(usize, usize)> {
    factors(n).filter(|&(a, b)| is_tiled(a) && is_tiled(b))
}

/// The plan of a line that is split.
pub(crate) struct Split<T> {
    /// The rows and columns of the matrix.
    pub(crate) sizes: (usize, usize),
    /// The plan of the columns.
    pub(crate) columns: LinePlan<Complex<T>, Complex<T>, T>,
    /// The plan of the rows.
    pub(crate) rows: LinePlan<Complex<T>, Complex<T>, T>,
    /// For each column `j2` the factors `w_n^(j2 k1)` of its numbers.
    pub(crate) twiddles: Vec<Complex<T>>,
    /// Memory for the matrix.
    pub(crate) matrix: KeptMatrix<T>,
}

/// Memory for the matrix of a plan that an earlier call has left: fresh memory, which comes page by page, takes as long as a step.
pub(crate) struct KeptMatrix<T>(Mutex<Vec<Complex<T>>>);

impl<T: FftReal> KeptMatrix<T> {
    pub(crate) const fn new() -> Self {
        KeptMatrix(Mutex::new(Vec::new()))
    }
    /// Memory for `n` numbers.
    pub(crate) fn take(&self, n: usize) -> Result<Vec<Complex<T>>> {
        let left = self.0.try_lock().map(|mut left| std::mem::take(&mut *left));
        match left {
            Ok(left) if left.len() == n => Ok(left),
            _ => memory::filled(Complex::new(T::zero(), T::zero()), n),
        }
    }
    /// Leaves the memory to later calls.
    pub(crate) fn leave(&self, matrix: Vec<Complex<T>>) {
        if matrix.len() <= LEFT
            && let Ok(mut left) = self.0.try_lock()
        {
            *left = matrix;
        }
    }
}

impl<T: FftReal> Split<T> {
    /// The plan for a length that [`factors`] splits. The caller has made sure that there is memory
    /// for it.
    pub(crate) fn new(n: usize, direction: FftDirection) -> Self {
        let (a, b) = factors(n).unwrap_or((1, n));
        let step = match direction {
            FftDirection::Forward => -std::f64::consts::TAU,
            FftDirection::Inverse => std::f64::consts::TAU,
        };
        // bounded: by what `prepared` has probed.
        let mut twiddles = Vec::with_capacity(n);
        for column in 0..b {
            twiddles.extend((0..a).map(|k| {
                let angle = step * ((column * k) as f64 / n as f64);
                let (sin, cos) = angle.sin_cos();
                Complex::new(as_real::<T>(cos), as_real::<T>(sin))
            }));
        }
        let mut planner = FftPlanner::new();
        Split {
            sizes: (a, b),
            columns: Arc::new(Full(planner.plan_fft(a, direction))),
            rows: Arc::new(Full(planner.plan_fft(b, direction))),
            twiddles,
            matrix: KeptMatrix::new(),
        }
    }
}

/// The nearest number.
pub(crate) fn as_real<T: FftReal>(number: f64) -> T {
    T::from_f64(number).unwrap_or_else(T::zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_near_each_other() {
        assert_eq!(factors(1 << 20), Some((1 << 10, 1 << 10)));
        assert_eq!(factors(1 << 17), Some((1 << 8, 1 << 9)));
        assert_eq!(factors(100_000), Some((250, 400)));
        assert_eq!(factors(1000), None);
        assert_eq!(factors(65_537), None);
        assert_eq!(factors(17 << 16), None);
    }
}
