//! Loops over one contiguous row that softmax and the norms share: sums and maxima in fixed lanes,
//! and exponentials, compiled per instruction set.
//!
//! Invariant: a row's result depends on the row alone. Sums use `LANES` partial sums that are folded
//! in halves, so they are pairwise in effect and the same on every machine with the same lanes. Rows of
//! at most `GROUP` elements are taken as columns, a lane per row, and summed in order.

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
    if x.len() < LANES {
        // The same sums as below, without the groups that stay as they start.
        let (groups, rest) = x.as_chunks::<GROUP>();
        for group in groups {
            for l in 0..GROUP {
                a[l] = join(a[l], map(group[l]));
            }
        }
        for (lane, &value) in b.iter_mut().zip(rest) {
            *lane = join(*lane, map(value));
        }
        for l in 0..GROUP {
            a[l] = join(a[l], b[l]);
        }
        return fold(a, join);
    }
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

/// At most one group of elements, filled up with `fill`.
#[inline(always)]
pub(crate) fn padded<T: Copy>(x: &[T], fill: T) -> [T; GROUP] {
    let mut lanes = [fill; GROUP];
    lanes[..x.len()].copy_from_slice(x);
    lanes
}

/// `map` of each lane. (`array::map` would be a function of its own, compiled without the instruction set.)
#[inline(always)]
fn map_lanes<T: Copy>(mut lanes: [T; GROUP], map: impl Fn(T) -> T) -> [T; GROUP] {
    for lane in &mut lanes {
        *lane = map(*lane);
    }
    lanes
}

/// `out[i] = map(x[i])`, the last elements as one padded group: a scalar `map` costs as much as a group's.
#[inline(always)]
fn map_row<T: Real>(out: &mut [T], x: &[T], map: impl Fn(T) -> T) {
    let (groups, rest) = x.as_chunks::<GROUP>();
    for (out, group) in out.as_chunks_mut::<GROUP>().0.iter_mut().zip(groups) {
        *out = map_lanes(*group, &map);
    }
    if std::hint::black_box(!rest.is_empty()) {
        // (Hidden, or LLVM computes the group also where there is no rest.) Some elements once more, where there are enough: a group of known size is moved at once.
        let group = x.last_chunk::<GROUP>().map_or_else(|| padded(rest, T::ZERO), |group| *group);
        let mapped = map_lanes(group, map);
        match out.last_chunk_mut::<GROUP>() {
            Some(out) => *out = mapped,
            None => out.copy_from_slice(&mapped[..rest.len()]),
        }
    }
}

/// `out[i] = map(x[i], y[i])`, as [`map_row`].
#[inline(always)]
fn map_pairs<T: Real>(out: &mut [T], x: &[T], y: &[T], map: impl Fn(T, T) -> T) {
    let (outs, out_rest) = out.as_chunks_mut::<GROUP>();
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<GROUP>(), y.as_chunks::<GROUP>());
    for ((out, x), y) in outs.iter_mut().zip(xs).zip(ys) {
        for l in 0..GROUP {
            out[l] = map(x[l], y[l]);
        }
    }
    if !out_rest.is_empty() {
        let (mut lanes, y) = (padded(x_rest, T::ZERO), padded(y_rest, T::ZERO));
        for l in 0..GROUP {
            lanes[l] = map(lanes[l], y[l]);
        }
        out_rest.copy_from_slice(&lanes[..out_rest.len()]);
    }
}

/// `map` of each pair of elements, summed in lanes.
#[inline(always)]
pub(crate) fn sum_pairs<T: Real>(x: &[T], y: &[T], map: impl Fn(T, T) -> T) -> T {
    let mut a = [T::ZERO; GROUP];
    let (mut b, mut c, mut d) = (a, a, a);
    let n = x.len().min(y.len());
    if n < LANES {
        // As in `reduce`.
        let ((x_groups, x_rest), (y_groups, y_rest)) =
            (x[..n].as_chunks::<GROUP>(), y[..n].as_chunks::<GROUP>());
        for (x, y) in x_groups.iter().zip(y_groups) {
            for l in 0..GROUP {
                a[l] += map(x[l], y[l]);
            }
        }
        for ((lane, &x), &y) in b.iter_mut().zip(x_rest).zip(y_rest) {
            *lane += map(x, y);
        }
        for l in 0..GROUP {
            a[l] += b[l];
        }
        return fold(a, |a, b| a + b);
    }
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

/// Up to [`GROUP`] rows of at most [`GROUP`] elements, seen as columns: one lane per row.
type Short<T> = [[T; GROUP]; GROUP];

/// The rows `x` of `size` elements as columns; the rest is zero.
#[inline(always)]
fn columns<T: Real>(x: &[T], size: usize) -> Short<T> {
    let mut columns = [[T::ZERO; GROUP]; GROUP];
    for (row, x) in x.chunks_exact(size).enumerate() {
        for (column, &value) in columns.iter_mut().zip(x) {
            column[row % GROUP] = value;
        }
    }
    columns
}

/// Writes columns back as rows.
#[inline(always)]
fn store_columns<T: Copy>(out: &mut [T], size: usize, columns: &Short<T>) {
    for (row, out) in out.chunks_exact_mut(size).enumerate() {
        for (value, column) in out.iter_mut().zip(columns) {
            *value = column[row % GROUP];
        }
    }
}

/// Folds the first `size` columns, one after the other.
#[inline(always)]
fn fold_columns<T: Copy>(columns: &Short<T>, size: usize, join: impl Fn(T, T) -> T) -> [T; GROUP] {
    let mut lanes = columns[0];
    for column in columns.iter().take(size).skip(1) {
        for l in 0..GROUP {
            lanes[l] = join(lanes[l], column[l]);
        }
    }
    lanes
}

/// `map(column element, the lane's value)` of the first `size` columns.
#[inline(always)]
fn map_columns<T: Copy>(
    columns: &mut Short<T>,
    size: usize,
    lanes: &[T; GROUP],
    map: impl Fn(T, T) -> T,
) {
    for column in columns.iter_mut().take(size) {
        // Hidden, or LLVM takes a lane of several columns at a time, gathered from memory.
        let column = std::hint::black_box(column);
        for l in 0..GROUP {
            column[l] = map(column[l], lanes[l]);
        }
    }
}

/// The rows of softmax, per type because the exponential differs.
pub(crate) trait Rows: Real {
    /// `x[i] = exp(x[i])`.
    fn exp_row(x: &mut [Self]);
    /// Softmax or log-softmax of each row of `size` elements.
    fn softmax_rows(out: &mut [Self], x: &[Self], size: usize, log: bool);
    /// Its gradient.
    fn softmax_backward_rows(out: &mut [Self], grad: &[Self], y: &[Self], size: usize, log: bool);
}

macro_rules! rows {
    ($t:ident, $exp:path) => {
        impl Rows for $t {
            fn exp_row(x: &mut [Self]) {
                crate::multiversion! {
                    fn run(x: &mut [$t]) {
                        let (groups, rest) = x.as_chunks_mut::<GROUP>();
                        for group in groups {
                            *group = map_lanes(*group, $exp);
                        }
                        if !rest.is_empty() {
                            let mapped = map_lanes(padded(rest, 0.0), $exp);
                            rest.copy_from_slice(&mapped[..rest.len()]);
                        }
                    }
                }
                run(x);
            }
            fn softmax_rows(out: &mut [Self], x: &[Self], size: usize, log: bool) {
                crate::multiversion! {
                    fn short(out: &mut [$t], x: &[$t], size: usize, log: bool) {
                        let blocks = x.chunks(GROUP * size);
                        for (out, x) in out.chunks_mut(GROUP * size).zip(blocks) {
                            let x = columns(x, size);
                            let top = fold_columns(&x, size, maximum);
                            let mut y = x;
                            map_columns(&mut y, size, &top, |x, top| $exp(x - top));
                            let sum = fold_columns(&y, size, |a, b| a + b);
                            if log {
                                let mut shift = sum;
                                for lane in &mut shift {
                                    *lane = lane.ln();
                                }
                                y = x;
                                map_columns(&mut y, size, &top, |x, top| x - top);
                                map_columns(&mut y, size, &shift, |x, shift| x - shift);
                            } else {
                                let scale = map_lanes(sum, |sum| 1.0 / sum);
                                map_columns(&mut y, size, &scale, |y, scale| y * scale);
                            }
                            store_columns(out, size, &y);
                        }
                    }
                }
                crate::multiversion! {
                    fn long(out: &mut [$t], x: &[$t], size: usize, log: bool) {
                        for (out, x) in out.chunks_exact_mut(size).zip(x.chunks_exact(size)) {
                            let top = reduce(x, $t::NEG_INFINITY, maximum, |v| v);
                            map_row(out, x, |x| $exp(x - top));
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
                }
                if size <= GROUP { short(out, x, size, log) } else { long(out, x, size, log) }
            }
            fn softmax_backward_rows(
                out: &mut [Self],
                grad: &[Self],
                y: &[Self],
                size: usize,
                log: bool,
            ) {
                crate::multiversion! {
                    fn short(out: &mut [$t], grad: &[$t], y: &[$t], size: usize, log: bool) {
                        let blocks = grad.chunks(GROUP * size).zip(y.chunks(GROUP * size));
                        for (out, (grad, y)) in out.chunks_mut(GROUP * size).zip(blocks) {
                            let (mut grad, mut y) = (columns(grad, size), columns(y, size));
                            if log {
                                let sum = fold_columns(&grad, size, |a, b| a + b);
                                map_columns(&mut y, size, &sum, |y, sum| $exp(y) * sum);
                                for j in 0..size {
                                    for l in 0..GROUP {
                                        grad[j][l] -= y[j][l];
                                    }
                                }
                            } else {
                                let mut products = grad;
                                for j in 0..size {
                                    for l in 0..GROUP {
                                        products[j][l] *= y[j][l];
                                    }
                                }
                                let sum = fold_columns(&products, size, |a, b| a + b);
                                map_columns(&mut grad, size, &sum, |g, sum| g - sum);
                                for j in 0..size {
                                    for l in 0..GROUP {
                                        grad[j][l] *= y[j][l];
                                    }
                                }
                            }
                            store_columns(out, size, &grad);
                        }
                    }
                }
                crate::multiversion! {
                    fn long(out: &mut [$t], grad: &[$t], y: &[$t], size: usize, log: bool) {
                        let rows = grad.chunks_exact(size).zip(y.chunks_exact(size));
                        for (out, (grad, y)) in out.chunks_exact_mut(size).zip(rows) {
                            if log {
                                let sum = reduce(grad, 0.0, |a, b| a + b, |v| v);
                                map_pairs(out, grad, y, |g, y| g - $exp(y) * sum);
                            } else {
                                let sum = sum_pairs(grad, y, |g, y| g * y);
                                for ((out, &g), &y) in out.iter_mut().zip(grad).zip(y) {
                                    *out = y * (g - sum);
                                }
                            }
                        }
                    }
                }
                if size < GROUP {
                    short(out, grad, y, size, log);
                } else {
                    long(out, grad, y, size, log);
                }
            }
        }
    };
}
rows!(f32, crate::simd::math_f32::exp_single);
rows!(f64, crate::simd::math_f64::exp);
