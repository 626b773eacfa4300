//! Loops over one contiguous row that softmax and the norms share: sums and maxima in fixed lanes,
//! and exponentials, compiled per instruction set.
//!
//! Invariant: a row's result depends on the row alone. Sums use `LANES` partial sums that are folded
//! in halves, so they are pairwise in effect and the same on every machine with the same lanes.

use crate::dense::{Real, vectorised};

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

vectorised! {
    /// `top[i] = max(top[i], x[i])`.
    pub(crate) fn maximum_into<T: Real>(top: &mut [T], x: &[T]) {
        for (top, &x) in top.iter_mut().zip(x) {
            *top = maximum(*top, x);
        }
    }
}

vectorised! {
    /// `sum[i] += x[i]`.
    pub(crate) fn add_into<T: Real>(sum: &mut [T], x: &[T]) {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += x;
        }
    }
}

vectorised! {
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
                vectorised! {
                    fn run(x: &mut [$t]) {
                        for value in x {
                            *value = $exp(*value);
                        }
                    }
                }
                run(x);
            }
            fn softmax_row(out: &mut [Self], x: &[Self], log: bool) {
                vectorised! {
                    fn run(out: &mut [$t], x: &[$t], log: bool) {
                        let top = reduce(x, $t::NEG_INFINITY, maximum, |v| v);
                        if log {
                            let sum = reduce(x, 0.0, |a, b| a + b, |v| $exp(v - top));
                            let shift = sum.ln();
                            for (out, &x) in out.iter_mut().zip(x) {
                                *out = x - top - shift;
                            }
                        } else {
                            for (out, &x) in out.iter_mut().zip(x) {
                                *out = $exp(x - top);
                            }
                            let scale = 1.0 / reduce(out, 0.0, |a, b| a + b, |v| v);
                            for out in out {
                                *out *= scale;
                            }
                        }
                    }
                }
                run(out, x, log);
            }
            fn softmax_backward_row(out: &mut [Self], grad: &[Self], y: &[Self], log: bool) {
                vectorised! {
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
rows!(f32, exp_f32);
rows!(f64, exp_f64);

/// `exp(x)` for `f32` without branches, within 1 ULP: `x = n ln 2 + r`, a polynomial in `r`, and `2^n`
/// in two factors so that subnormal results round once.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    let clamped = x.clamp(-104.0, 89.0);
    let n = (clamped * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-0.693_145_75, clamped);
    let r = n.mul_add(-1.428_606_8e-6, r);
    let mut p = 1.388_888_9e-3_f32.mul_add(r, 8.333_333e-3);
    p = 1.984_127e-4_f32.mul_add(r * r, p);
    p = p.mul_add(r, 4.166_666_6e-2);
    p = p.mul_add(r, 0.166_666_67);
    p = p.mul_add(r, 0.5);
    p = p.mul_add(r * r, r) + 1.0;
    let n = n as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
    let value = p * power(half) * power(n - half);
    if x.is_nan() { x } else { value }
}

/// `exp(x)` for `f64`, as [`exp_f32`].
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    let clamped = x.clamp(-746.0, 710.0);
    let n = (clamped * std::f64::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-6.931_471_803_691_238e-1, clamped);
    let r = n.mul_add(-1.908_214_929_270_588e-10, r);
    // Taylor coefficients 1/k!; |r| <= 0.3466, so the term after 1/13! is below 2^-60.
    let mut p = 1.605_904_383_682_161_5e-10_f64;
    for c in [
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
    ] {
        p = p.mul_add(r, c);
    }
    p = p.mul_add(r * r, r) + 1.0;
    let n = n as i64;
    let half = n >> 1;
    let power = |n: i64| f64::from_bits(((n + 1023) << 52) as u64);
    let value = p * power(half) * power(n - half);
    if x.is_nan() { x } else { value }
}

#[cfg(test)]
mod test {
    #[test]
    fn exponentials_are_accurate_over_their_whole_range() {
        for i in -110_000..95_000 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp();
            let got = f64::from(super::exp_f32(x));
            let ulp = f64::from(f32::EPSILON) * exact.max(f64::from(f32::MIN_POSITIVE));
            assert!(
                (got - exact).abs() <= ulp || (exact > f64::from(f32::MAX) && got.is_infinite()),
                "{x}: {got} {exact}"
            );
            let x = i as f64 * 7.3e-3;
            let (exact, got) = (x.exp(), super::exp_f64(x));
            let ulp = f64::EPSILON * exact.max(f64::MIN_POSITIVE);
            assert!((got - exact).abs() <= ulp || got == exact, "{x}: {got} {exact}");
        }
        assert!(super::exp_f32(f32::NAN).is_nan() && super::exp_f64(f64::NAN).is_nan());
        assert_eq!(super::exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(super::exp_f64(f64::INFINITY), f64::INFINITY);
        assert_eq!(
            (super::exp_f32(f32::NEG_INFINITY), super::exp_f64(f64::NEG_INFINITY)),
            (0.0, 0.0)
        );
    }
}
