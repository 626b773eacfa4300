//! Loops over one contiguous row that softmax and the norms share: sums and maxima in fixed lanes,
//! and exponentials, compiled per instruction set.
//!
//! Invariant: a row's result depends on the row alone. Sums use `LANES` partial sums that are folded
//! in halves, so they are pairwise in effect and the same on every machine with the same lanes.

use crate::dense::Real;

/// Lanes of one group; a power of two that fills the widest register with `f32`.
pub(crate) const GROUP: usize = 16;
/// Partial results of a row: four groups, which hide the latency of an addition.
pub(crate) const LANES: usize = 4 * GROUP;

/// Folds partial results in halves.
#[inline(always)]
pub(crate) fn fold<T: Copy, const N: usize>(lanes: [T; N], join: impl Fn(T, T) -> T) -> T {
    // By way of memory: left to itself, LLVM sees the pairs below and keeps pairs, not whole
    // registers, in the loop that made the lanes.
    let mut lanes = std::hint::black_box(lanes);
    let mut width = N / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = join(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Joins four groups of lanes, then folds them.
#[inline(always)]
fn fold_groups<T: Copy>(groups: [[T; GROUP]; 4], join: impl Fn(T, T) -> T) -> T {
    let [mut a, b, c, d] = std::hint::black_box(groups);
    for l in 0..GROUP {
        a[l] = join(join(a[l], b[l]), join(c[l], d[l]));
    }
    fold(a, join)
}

/// `map` of each element, reduced with `join` in lanes.
#[inline(always)]
pub(crate) fn reduce<T: Copy>(
    x: &[T],
    start: T,
    join: impl Fn(T, T) -> T,
    map: impl Fn(T) -> T,
) -> T {
    let mut a = [start; GROUP];
    let (mut b, mut c, mut d) = (a, a, a);
    let (quads, rest) = x.as_chunks::<LANES>();
    for quad in quads {
        for l in 0..GROUP {
            a[l] = join(a[l], map(quad[l]));
        }
        for l in 0..GROUP {
            b[l] = join(b[l], map(quad[GROUP + l]));
        }
        for l in 0..GROUP {
            c[l] = join(c[l], map(quad[2 * GROUP + l]));
        }
        for l in 0..GROUP {
            d[l] = join(d[l], map(quad[3 * GROUP + l]));
        }
    }
    let (groups, rest) = rest.as_chunks::<GROUP>();
    for group in groups {
        for l in 0..GROUP {
            a[l] = join(a[l], map(group[l]));
        }
    }
    for (lane, &value) in b.iter_mut().zip(rest) {
        *lane = join(*lane, map(value));
    }
    fold_groups([a, b, c, d], join)
}

/// `map` of each pair of elements, summed in lanes.
#[inline(always)]
pub(crate) fn sum_pairs<T: Real>(x: &[T], y: &[T], map: impl Fn(T, T) -> T) -> T {
    let mut a = [T::ZERO; GROUP];
    let (mut b, mut c, mut d) = (a, a, a);
    let n = x.len().min(y.len());
    let ((x_quads, x_rest), (y_quads, y_rest)) =
        (x[..n].as_chunks::<LANES>(), y[..n].as_chunks::<LANES>());
    for (x, y) in x_quads.iter().zip(y_quads) {
        for l in 0..GROUP {
            a[l] += map(x[l], y[l]);
        }
        for l in 0..GROUP {
            b[l] += map(x[GROUP + l], y[GROUP + l]);
        }
        for l in 0..GROUP {
            c[l] += map(x[2 * GROUP + l], y[2 * GROUP + l]);
        }
        for l in 0..GROUP {
            d[l] += map(x[3 * GROUP + l], y[3 * GROUP + l]);
        }
    }
    let ((x_groups, x_rest), (y_groups, y_rest)) =
        (x_rest.as_chunks::<GROUP>(), y_rest.as_chunks::<GROUP>());
    for (x, y) in x_groups.iter().zip(y_groups) {
        for l in 0..GROUP {
            a[l] += map(x[l], y[l]);
        }
    }
    for ((lane, &x), &y) in b.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += map(x, y);
    }
    fold_groups([a, b, c, d], |a, b| a + b)
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
rows!(f32, crate::simd::math_f32::exp_single);
rows!(f64, crate::simd::math_f64::exp);
