//! Group norm over (N, C, *): statistics per batch element and group of channels.

use super::{
    CHANNELS_AT_ONCE, ChannelSpans, GRAIN, affine, buffer, combine, load_optional, short_products,
    statistics, store_optional, sum, sum_products,
};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, store, with_output};
use crate::{Error, Result, StridedMut, StridedRef, memory, parallel};
use std::ops::Range;

#[derive(Clone, Copy)]
struct GroupNormShape {
    batch: usize,
    channels: usize,
    inner: usize,
    groups: usize,
}

impl GroupNormShape {
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
        if (shape[0] as usize).checked_mul(groups).is_none() {
            return Err(Error::runtime(format!(
                "{groups} groups are too many for an input of shape {shape:?}"
            )));
        }
        let inner = shape[2..].iter().map(|&s| s as usize).product();
        Ok(GroupNormShape { batch: shape[0] as usize, channels, inner, groups })
    }
    fn per_group(self) -> usize {
        self.channels / self.groups
    }
    /// The elements of channel `c` of a group's row.
    fn channel(self, row: usize, c: usize) -> std::ops::Range<usize> {
        let start = (row * self.per_group() + c) * self.inner;
        start..start + self.inner
    }
    /// Each (batch element, group) as a row.
    fn rows(self) -> ChannelSpans {
        ChannelSpans::rows(self.batch * self.groups, self.per_group() * self.inner)
    }
    /// Calls `work` for ranges of rows, each in one of them.
    fn for_rows(self, work: &(dyn Fn(Range<usize>) + Sync)) {
        let rows = self.rows();
        let grain = (GRAIN / rows.count().max(1)).max(1);
        parallel::for_range(rows.channels, grain, work);
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
    let s = GroupNormShape::of(x.shape(), groups)?;
    expect_shape("output", out.shape(), x.shape())?;
    for_compute!(x.dtype(), "GroupNormKernelImpl", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let b = load_optional::<T>("bias", bias, s.channels)?;
        let x = load::<T>(x)?;
        let rows = s.batch * s.groups;
        let (mut means, mut rstds) = (memory::filled(T::ZERO, rows)?, memory::filled(T::ZERO, rows)?);
        with_output::<T, _>(out, |out| {
            let (out, means, rstds) = (SharedMut::new(out), SharedMut::new(&mut means), SharedMut::new(&mut rstds));
            s.for_rows(&|rows| {
                let of = rows.clone();
                // SAFETY: each row is in one range.
                let (means, rstds) = unsafe { (means.slice(of.clone()), rstds.slice(of)) };
                normalise_rows(out, (means, rstds), &x, s, rows, (w.as_deref(), b.as_deref()), eps);
            });
        })?;
        store(mean, &means);
        store(rstd, &rstds);
        Ok(())
    })
}

crate::multiversion! {
    fn normalise_rows<T: Real>(out: SharedMut<T>, found: (&mut [T], &mut [T]), x: &[T], s: GroupNormShape, rows: Range<usize>, parameters: (Option<&[T]>, Option<&[T]>), eps: f64) {
        let ((means, rstds), (w, b)) = (found, parameters);
        let all = s.rows();
        let (start, mut first) = (rows.start, rows.start);
        while first < rows.end {
            let now = first..rows.end.min(first + all.channels_at_once());
            let found = statistics(x, all, now.clone(), true, eps);
            for (at, row) in now.clone().enumerate() {
                let (mean, rstd) = (found.means[at], found.rstds[at]);
                means[row - start] = mean;
                rstds[row - start] = rstd;
                if s.inner == 1 {
                    // SAFETY: as below.
                    let out = unsafe { out.slice(all.span(0, row)) };
                    for (i, (out, &x)) in out.iter_mut().zip(&x[all.span(0, row)]).enumerate() {
                        let c = row % s.groups * s.per_group() + i;
                        let scale = w.map_or(rstd, |w| rstd * w[c]);
                        *out = x.mul_add(scale, b.map_or(T::ZERO, |b| b[c]) - mean * scale);
                    }
                    continue;
                }
                for i in 0..s.per_group() {
                    let c = row % s.groups * s.per_group() + i;
                    let scale = w.map_or(rstd, |w| rstd * w[c]);
                    let shift = b.map_or(T::ZERO, |b| b[c]) - mean * scale;
                    let span = s.channel(row, i);
                    // SAFETY: rows are disjoint, and each is in one range.
                    affine(unsafe { out.slice(span.clone()) }, &x[span], scale, shift);
                }
            }
            first = now.end;
        }
    }
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
    let s = GroupNormShape::of(x.shape(), groups)?;
    expect_shape("grad_output", grad.shape(), x.shape())?;
    for (name, view) in [("mean", &mean), ("rstd", &rstd)] {
        if view.numel() != s.batch * groups {
            return Err(Error::runtime(format!(
                "Expected {name} to have one number for each of {groups} groups of {} examples, but got shape {:?}",
                s.batch,
                view.shape()
            )));
        }
    }
    for_compute!(x.dtype(), "GroupNormBackwardKernelImpl", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let (grad, x, mean, rstd) = (load::<T>(grad)?, load::<T>(x)?, load::<T>(mean)?, load::<T>(rstd)?);
        if x.is_empty() {
            // (However many channels there are.)
            let zeros = buffer::<T>(grad_weight.as_deref().or(grad_bias.as_deref()), s.channels)?;
            store_optional(grad_weight, &zeros);
            store_optional(grad_bias, &zeros);
            return Ok(());
        }
        let input = GroupNormInput { s, grad: &grad, x: &x, mean: &mean, rstd: &rstd, weight: w.as_deref() };
        // Per batch element and channel: sum of grad * h, sum of grad.
        let mut sums = memory::filled((0.0, 0.0), s.batch * s.channels)?;
        channel_sums(&input, &mut sums);
        if let Some(view) = grad_x {
            with_output::<T, _>(view, |out| input_gradient(out, &input, &sums))?;
        }
        let mut parts = [memory::filled(0.0, s.channels)?, memory::filled(0.0, s.channels)?];
        let [along, total] = &mut parts;
        for sums in sums.chunks_exact(s.channels.max(1)) {
            for ((along, total), sum) in along.iter_mut().zip(&mut *total).zip(sums) {
                *along += sum.0;
                *total += sum.1;
            }
        }
        let [along, total] = parts;
        let [along, total] = [memory::collect(along.into_iter().map(T::of))?, memory::collect(total.into_iter().map(T::of))?];
        store_optional(grad_weight, &along);
        store_optional(grad_bias, &total);
        Ok(())
    })
}

struct GroupNormInput<'a, T> {
    s: GroupNormShape,
    grad: &'a [T],
    x: &'a [T],
    mean: &'a [T],
    rstd: &'a [T],
    weight: Option<&'a [T]>,
}

fn channel_sums<T: Real>(input: &GroupNormInput<'_, T>, sums: &mut [(f64, f64)]) {
    let (s, sums) = (input.s, SharedMut::new(sums));
    s.for_rows(&|rows| {
        let channels = rows.start * s.per_group()..rows.end * s.per_group();
        // SAFETY: each row is in one range.
        sums_of_rows(input, rows, unsafe { sums.slice(channels) });
    });
}

crate::multiversion! {
    fn sums_of_rows<T: Real>(input: &GroupNormInput<'_, T>, rows: Range<usize>, sums: &mut [(f64, f64)]) {
        let s = input.s;
        let first = rows.start;
        let channels = ChannelSpans::rows(s.batch * s.channels, s.inner);
        if s.inner == 1 {
            let width = s.per_group();
            for (row, sums) in rows.zip(sums.chunks_exact_mut(width.max(1))) {
                let (mean, rstd) = (input.mean[row], input.rstd[row].wide());
                let span = row * width..(row + 1) * width;
                let operands = input.grad[span.clone()].iter().zip(&input.x[span]);
                for (sum, (&g, &x)) in sums.iter_mut().zip(operands) {
                    *sum = ((g * (x - mean)).wide() * rstd, g.wide());
                }
            }
            return;
        }
        if channels.is_short() {
            let (start, end) = (first * s.per_group(), rows.end * s.per_group());
            let mut at = start;
            while at < end {
                let now = at..end.min(at + CHANNELS_AT_ONCE);
                let mut means = [T::ZERO; CHANNELS_AT_ONCE];
                for (mean, channel) in means.iter_mut().zip(now.clone()) {
                    *mean = input.mean[channel / s.per_group()];
                }
                let [totals, along] = short_products((input.grad, input.x), channels, now.clone(), &means);
                for (i, channel) in now.clone().enumerate() {
                    let rstd = input.rstd[channel / s.per_group()].wide();
                    sums[channel - start] = (along[i] * rstd, totals[i]);
                }
                at = now.end;
            }
            return;
        }
        for row in rows {
            for i in 0..s.per_group() {
                let span = s.channel(row, i);
                let grad = &input.grad[span.clone()];
                let along = sum_products(grad, &input.x[span], input.mean[row]) * input.rstd[row].wide();
                sums[(row - first) * s.per_group() + i] = (along, sum(grad));
            }
        }
    }
}

fn input_gradient<T: Real>(out: &mut [T], input: &GroupNormInput<'_, T>, sums: &[(f64, f64)]) {
    let out = SharedMut::new(out);
    input.s.for_rows(&|rows| gradient_of_rows(out, input, sums, rows));
}

crate::multiversion! {
    fn gradient_of_rows<T: Real>(out: SharedMut<T>, input: &GroupNormInput<'_, T>, sums: &[(f64, f64)], rows: Range<usize>) {
        let s = input.s;
        let m = (s.per_group() * s.inner) as f64;
        for row in rows {
            let weight = |i: usize| input.weight.map_or(T::ONE, |w| w[row % s.groups * s.per_group() + i]);
            let (mut along, mut total) = (0.0, 0.0);
            for i in 0..s.per_group() {
                let (a, t) = sums[row * s.per_group() + i];
                along += a * weight(i).wide();
                total += t * weight(i).wide();
            }
            let (mean, rstd) = (input.mean[row], input.rstd[row]);
            let along = T::ZERO - T::of(along / m) * rstd * rstd;
            let shift = T::ZERO - T::of(total / m) * rstd - along * mean;
            if s.inner == 1 {
                let span = s.rows().span(0, row);
                // SAFETY: rows are disjoint, and each is in one range.
                let out = unsafe { out.slice(span.clone()) };
                let operands = input.grad[span.clone()].iter().zip(&input.x[span]);
                for (i, (out, (&g, &x))) in out.iter_mut().zip(operands).enumerate() {
                    *out = g.mul_add(weight(i) * rstd, x.mul_add(along, shift));
                }
                continue;
            }
            for i in 0..s.per_group() {
                let span = s.channel(row, i);
                // SAFETY: as above.
                let out = unsafe { out.slice(span.clone()) };
                combine(out, &input.grad[span.clone()], &input.x[span], [weight(i) * rstd, along, shift]);
            }
        }
    }
}
