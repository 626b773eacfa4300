//! Loops over one contiguous row that softmax and the norms share: sums and maxima in fixed lanes, compiled per
//! instruction set.
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

/// `map` of each element, reduced with `join` in the lanes of one group.
#[inline(always)]
pub(crate) fn reduce_group<T: Copy>(
    x: &[T],
    start: T,
    join: impl Fn(T, T) -> T,
    map: impl Fn(T) -> T,
) -> T {
    let (mut a, mut b) = ([start; GROUP], [start; GROUP]);
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
    if x.len() < LANES {
        // The same sums as below, without the groups that stay as they start.
        return reduce_group(x, start, join, map);
    }
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

/// At most one group of elements, filled up with `fill`.
#[inline(always)]
pub(crate) fn padded<T: Copy>(x: &[T], fill: T) -> [T; GROUP] {
    let mut lanes = [fill; GROUP];
    lanes[..x.len()].copy_from_slice(x);
    lanes
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

crate::multiversion! {
    /// `sum[i] += x[i]`.
    pub(crate) fn add_into<T: Real>(sum: &mut [T], x: &[T]) {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += x;
        }
    }
}
