//! Group norm over (N, C, *): statistics per batch element and group of channels.

use super::{
    GRAIN, affine, combine, load_optional, reciprocal_std, store_optional, sum, sum_products,
    sum_squares,
};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, store, with_output};
use crate::{Error, Result, StridedMut, StridedRef, parallel};

#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    inner: usize,
    groups: usize,
}

impl Shape {
    fn of(shape: &[i64], groups: usize) -> Result<Self> {
        if shape.len() < 2 {
            return Err(Error::runtime(format!(
                "Expected at least 2 dimensions for input tensor but received {}",
                shape.len()
            )));
        }
        let channels = shape[1] as usize;
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(Error::runtime(format!(
                "Expected number of channels in input to be divisible by num_groups, but got input of shape {shape:?} and num_groups={groups}"
            )));
        }
        let inner = shape[2..].iter().map(|&s| s as usize).product();
        Ok(Shape { batch: shape[0] as usize, channels, inner, groups })
    }
    fn per_group(self) -> usize {
        self.channels / self.groups
    }
    /// The elements of channel `c` of a group's row.
    fn channel(self, row: usize, c: usize) -> std::ops::Range<usize> {
        let start = (row * self.per_group() + c) * self.inner;
        start..start + self.inner
    }
    /// Calls `work` for each (batch element, group).
    fn for_rows(self, work: &(dyn Fn(usize) + Sync)) {
        let size = (self.per_group() * self.inner).max(1);
        parallel::for_range(self.batch * self.groups, (GRAIN / size).max(1), &|range| {
            range.for_each(work);
        });
    }
}

/// `out = (x - mean) * rstd * weight[c] + bias[c]`, mean and biased variance over the elements of each
/// of `groups` groups of channels of `x` (N, C, *). `mean` and `rstd` receive N * groups values.
///
/// # Errors
/// Channels that `groups` does not divide, sizes that do not fit, or a dtype that is not floating.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn group_norm(
    out: &mut StridedMut<'_>,
    mean: &mut StridedMut<'_>,
    rstd: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    bias: Option<StridedRef<'_>>,
    groups: usize,
    eps: f64,
) -> Result<()> {
    let s = Shape::of(x.shape(), groups)?;
    expect_shape("output", out.shape(), x.shape())?;
    for_compute!(x.dtype(), "GroupNormKernelImpl", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let b = load_optional::<T>("bias", bias, s.channels)?;
        let x = load::<T>(x);
        let rows = s.batch * s.groups;
        let (mut means, mut rstds) = (vec![T::ZERO; rows], vec![T::ZERO; rows]);
        with_output::<T, _>(out, |out| {
            let (out, means, rstds) = (SharedMut::new(out), SharedMut::new(&mut means), SharedMut::new(&mut rstds));
            s.for_rows(&|row| {
                let size = s.per_group() * s.inner;
                let all = &x[row * size..(row + 1) * size];
                let mean = T::of(sum(all) / size as f64);
                let rstd = reciprocal_std::<T>(sum_squares(all, mean) / size as f64, eps);
                // SAFETY: one task per row.
                unsafe {
                    means.slice(row..row + 1)[0] = mean;
                    rstds.slice(row..row + 1)[0] = rstd;
                }
                for i in 0..s.per_group() {
                    let c = row % s.groups * s.per_group() + i;
                    let scale = w.as_ref().map_or(rstd, |w| rstd * w[c]);
                    let shift = b.as_ref().map_or(T::ZERO, |b| b[c]) - mean * scale;
                    let span = s.channel(row, i);
                    // SAFETY: as above.
                    affine(unsafe { out.slice(span.clone()) }, &x[span], scale, shift);
                }
            });
        });
        store(mean, &means);
        store(rstd, &rstds);
        Ok(())
    })
}

/// The gradients of [`group_norm`]; each output may be left out. With `h = (x - mean) * rstd` and
/// `g = grad * weight[c]` over the `m` elements of a group:
/// `grad_x = rstd * (g - sum(g) / m - h * sum(g * h) / m)`; the parameters' gradients are the sums of
/// `grad * h` and of `grad` over everything but the channel.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn group_norm_backward(
    grad_x: Option<&mut StridedMut<'_>>,
    grad_weight: Option<&mut StridedMut<'_>>,
    grad_bias: Option<&mut StridedMut<'_>>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    mean: StridedRef<'_>,
    rstd: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    groups: usize,
) -> Result<()> {
    let s = Shape::of(x.shape(), groups)?;
    expect_shape("grad_output", grad.shape(), x.shape())?;
    for_compute!(x.dtype(), "GroupNormBackwardKernelImpl", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let (grad, x, mean, rstd) = (load::<T>(grad), load::<T>(x), load::<T>(mean), load::<T>(rstd));
        let input = Input { s, grad: &grad, x: &x, mean: &mean, rstd: &rstd, weight: w.as_deref() };
        // Per batch element and channel: sum of grad * h, sum of grad.
        let mut sums = vec![(0.0, 0.0); s.batch * s.channels];
        channel_sums(&input, &mut sums);
        if let Some(view) = grad_x {
            with_output::<T, _>(view, |out| input_gradient(out, &input, &sums));
        }
        let over_batch = |part: fn(&(f64, f64)) -> f64| -> Vec<T> {
            (0..s.channels)
                .map(|c| T::of((0..s.batch).map(|n| part(&sums[n * s.channels + c])).sum()))
                .collect()
        };
        store_optional(grad_weight, &over_batch(|s| s.0));
        store_optional(grad_bias, &over_batch(|s| s.1));
        Ok(())
    })
}

struct Input<'a, T> {
    s: Shape,
    grad: &'a [T],
    x: &'a [T],
    mean: &'a [T],
    rstd: &'a [T],
    weight: Option<&'a [T]>,
}

fn channel_sums<T: Real>(input: &Input<'_, T>, sums: &mut [(f64, f64)]) {
    let s = input.s;
    let sums = SharedMut::new(sums);
    s.for_rows(&|row| {
        for i in 0..s.per_group() {
            let span = s.channel(row, i);
            let grad = &input.grad[span.clone()];
            let along =
                sum_products(grad, &input.x[span], input.mean[row]) * input.rstd[row].wide();
            let at = row * s.per_group() + i;
            // SAFETY: one element per channel of a row.
            unsafe { sums.slice(at..at + 1)[0] = (along, sum(grad)) };
        }
    });
}

fn input_gradient<T: Real>(out: &mut [T], input: &Input<'_, T>, sums: &[(f64, f64)]) {
    let s = input.s;
    let out = SharedMut::new(out);
    let m = (s.per_group() * s.inner) as f64;
    s.for_rows(&|row| {
        let weight =
            |i: usize| input.weight.map_or(T::ONE, |w| w[row % s.groups * s.per_group() + i]);
        let (mut along, mut total) = (0.0, 0.0);
        for i in 0..s.per_group() {
            let (a, t) = sums[row * s.per_group() + i];
            along += a * weight(i).wide();
            total += t * weight(i).wide();
        }
        let (mean, rstd) = (input.mean[row], input.rstd[row]);
        let along = T::ZERO - T::of(along / m) * rstd * rstd;
        let shift = T::ZERO - T::of(total / m) * rstd - along * mean;
        for i in 0..s.per_group() {
            let span = s.channel(row, i);
            // SAFETY: rows are disjoint.
            let out = unsafe { out.slice(span.clone()) };
            combine(out, &input.grad[span.clone()], &input.x[span], weight(i) * rstd, along, shift);
        }
    });
}
