//! Loops over one contiguous row that softmax and the norms share: sums and maxima in fixed lanes,
//! and exponentials, compiled per instruction set.
//!
//! Invariant: a row's result depends on the row alone. Sums use `LANES` partial sums that are folded
//! in halves, so they are pairwise in effect and the same on every machine with the same lanes.

use crate::dense::Real;

/// Partial sums of a row.
pub(crate) const LANES: usize = 32;

/// Folds partial results in halves.
#[inline(always)]
pub(crate) fn fold<T: Copy>(mut lanes: [T; LANES], join: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = join(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// `map` of each element, reduced with `join` in lanes.
#[inline(always)]
pub(crate) fn reduce<T: Copy>(
    x: &[T],
    start: T,
    join: impl Fn(T, T) -> T,
    map: impl Fn(T) -> T,
) -> T {
    let mut lanes = [start; LANES];
    let blocks = x.chunks_exact(LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for l in 0..LANES {
            lanes[l] = join(lanes[l], map(block[l]));
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = join(*lane, map(value));
    }
    fold(lanes, join)
}

/// `map` of each pair of elements, summed in lanes.
#[inline(always)]
pub(crate) fn sum_pairs<T: Real>(a: &[T], b: &[T], map: impl Fn(T, T) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (a_blocks, b_blocks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_blocks.remainder(), b_blocks.remainder());
    for (a, b) in a_blocks.zip(b_blocks) {
        for l in 0..LANES {
            lanes[l] += map(a[l], b[l]);
        }
    }
    for ((lane, &a), &b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += map(a, b);
    }
    fold(lanes, |a, b| a + b)
}

/// The larger of two, NaN if either is.
#[inline(always)]
pub(crate) fn maximum<T: Real>(a: T, b: T) -> T {
    if a > b || a.is_nan() { a } else { b }
}

crate::multiversion! {
    /// `top[i] = max(top[i], x[i])`.
    pub(crate) fn maximum_into<T: Real>(top: &mut [T], x: &[T]) {
        for (top, &x) in top.iter_mut().zip(x) {
            *top = maximum(*top, x);
        }
    }
}

crate::multiversion! {
    /// `sum[i] += x[i]`.
    pub(crate) fn add_into<T: Real>(sum: &mut [T], x: &[T]) {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += x;
        }
    }
}

crate::multiversion! {
    /// `out[i] = x[i] - y[i]`.
    pub(crate) fn subtract<T: Real>(out: &mut [T], x: &[T], y: &[T]) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *out = x - y;
        }
    }
}

/// The rows of softmax, per type because the exponential differs.
pub(crate) trait Rows: Real {
    /// `x[i] = exp(x[i])`.
    fn exp_row(x: &mut [Self]);
    /// Softmax or log-softmax of one row.
    fn softmax_row(out: &mut [Self], x: &[Self], log: bool);
    /// Its gradient.
    fn softmax_backward_row(out: &mut [Self], grad: &[Self], y: &[Self], log: bool);
}

macro_rules! rows {
    ($t:ident, $exp:path) => {
        impl Rows for $t {
            fn exp_row(x: &mut [Self]) {
                crate::multiversion! {
                    fn run(x: &mut [$t]) {
                        for value in x {
                            *value = $exp(*value);
                        }
                    }
                }
                run(x);
            }
            fn softmax_row(out: &mut [Self], x: &[Self], log: bool) {
                crate::multiversion! {
                    fn run(out: &mut [$t], x: &[$t], log: bool) {
                        let top = reduce(x, $t::NEG_INFINITY, maximum, |v| v);
                        for (out, &x) in out.iter_mut().zip(x) {
                            *out = $exp(x - top);
                        }
                        let sum = reduce(out, 0.0, |a, b| a + b, |v| v);
                        if log {
                            let shift = sum.ln();
                            for (out, &x) in out.iter_mut().zip(x) {
                                *out = x - top - shift;
                            }
                        } else {
                            let scale = 1.0 / sum;
                            for out in out {
                                *out *= scale;
                            }
                        }
                    }
                }
                run(out, x, log);
            }
            fn softmax_backward_row(out: &mut [Self], grad: &[Self], y: &[Self], log: bool) {
                crate::multiversion! {
                    fn run(out: &mut [$t], grad: &[$t], y: &[$t], log: bool) {
                        if log {
                            let sum = reduce(grad, 0.0, |a, b| a + b, |v| v);
                            for ((out, &g), &y) in out.iter_mut().zip(grad).zip(y) {
                                *out = g - $exp(y) * sum;
                            }
                        } else {
                            let sum = sum_pairs(grad, y, |g, y| g * y);
                            for ((out, &g), &y) in out.iter_mut().zip(grad).zip(y) {
                                *out = y * (g - sum);
                            }
                        }
                    }
                }
                run(out, grad, y, log);
            }
        }
    };
}
rows!(f32, crate::simd::math_f32::exp);
rows!(f64, crate::simd::math_f64::exp);
