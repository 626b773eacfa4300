//! Batch norm over (N, C, *): statistics per channel over everything else.
//!
//! Ranges of channels are the tasks. A two-dimensional input, whose channels are columns, is gone through row by row; of many
//! samples with few elements each, several make a row (`narrow`).

use super::{
    CHANNELS_AT_ONCE, ChannelSpans, affine_each, combine_each, load_optional, narrow,
    reciprocal_std, short_products, statistics, store_optional, sum, sum_products,
};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::{Error, Result, StridedMut, StridedRef, memory};
use std::ops::Range;

/// The options of [`batch_norm`].
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// Whether to use the batch's statistics (and update the running ones) instead of the running
    /// statistics.
    pub training: bool,
    /// The share of the new statistics in the running ones.
    pub momentum: f64,
    /// The number that is added to the variance, `eps`.
    pub eps: f64,
}

/// (N, C, S) of an input.
fn spans_of(shape: &[i64]) -> Result<ChannelSpans> {
    if shape.len() < 2 {
        return Err(Error::runtime(format!(
            "Expected 2 or more dimensions for batch_norm, but got input of size {shape:?}"
        )));
    }
    let inner = shape[2..].iter().map(|&s| s as usize).product();
    Ok(ChannelSpans { batch: shape[0] as usize, channels: shape[1] as usize, inner })
}

/// `out = (x - mean) * rstd * weight + bias` per channel of `x` (N, C, *).
///
/// In training, mean and (biased) variance are the batch's, `saved` receives mean and `rstd`, and the
/// running statistics move by `momentum` towards the batch's mean and unbiased variance. Otherwise the
/// running statistics are used, which must then be given, and `saved` is not written.
///
/// # Errors
/// Sizes that do not fit, missing running statistics, or a dtype that is not floating.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn batch_norm(
    out: &mut StridedMut<'_>,
    saved: Option<(&mut StridedMut<'_>, &mut StridedMut<'_>)>,
    x: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    bias: Option<StridedRef<'_>>,
    running_mean: Option<&mut StridedMut<'_>>,
    running_var: Option<&mut StridedMut<'_>>,
    how: BatchNormOptions,
) -> Result<()> {
    let s = spans_of(x.shape())?;
    expect_shape("output", out.shape(), x.shape())?;
    if !how.training && (running_mean.is_none() || running_var.is_none()) {
        return Err(Error::runtime(
            "Expected running_mean and running_var to be defined when training=False".to_owned(),
        ));
    }
    for_compute!(x.dtype(), "batch_norm", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let b = load_optional::<T>("bias", bias, s.channels)?;
        let run_mean = running_statistic::<T>("running_mean", running_mean.as_deref(), s.channels)?;
        let run_var = running_statistic::<T>("running_var", running_var.as_deref(), s.channels)?;
        let x = load::<T>(x)?;
        let (mut means, mut rstds) = (memory::filled(T::ZERO, s.channels)?, memory::filled(T::ZERO, s.channels)?);
        let mut variances = memory::filled(0.0, s.channels)?;
        if how.training {
            all_statistics(&x, s, how.eps, &mut means, &mut rstds, &mut variances)?;
        } else if let (Some(mean), Some(var)) = (&run_mean, &run_var) {
            means.copy_from_slice(mean);
            rstds = memory::collect(var.iter().map(|v| reciprocal_std(v.wide(), how.eps)))?;
        }
        let scale = memory::collect((0..s.channels).map(|c| w.as_ref().map_or(rstds[c], |w| rstds[c] * w[c])))?;
        let shift = (0..s.channels).map(|c| b.as_ref().map_or(T::ZERO, |b| b[c]) - means[c] * scale[c]);
        let shift = memory::collect(shift)?;
        write_affine(out, &x, s, [&scale, &shift])?;
        if how.training {
            // Nothing can fail any more: the running statistics move once, when the step is
            // certain.
            if let (Some(view), Some(mut run)) = (running_mean, run_mean) {
                run.iter_mut().zip(&means).for_each(|(o, &m)| *o = moved(*o, m.wide(), how.momentum));
                crate::dense::store(view, &run);
            }
            if let (Some(view), Some(mut run)) = (running_var, run_var) {
                let count = s.count() as f64;
                let unbiased = |v: f64| v * count / (count - 1.0);
                run.iter_mut().zip(&variances).for_each(|(o, &v)| *o = moved(*o, unbiased(v), how.momentum));
                crate::dense::store(view, &run);
            }
            if let Some((mean, rstd)) = saved {
                crate::dense::store(mean, &means);
                crate::dense::store(rstd, &rstds);
            }
        }
        Ok(())
    })
}

/// A copy of a running statistic, if there is one.
fn running_statistic<T: Real>(
    name: &str,
    view: Option<&StridedMut<'_>>,
    channels: usize,
) -> Result<Option<Vec<T>>> {
    load_optional(name, view.map(StridedMut::as_ref), channels)?
        .map(crate::dense::owned)
        .transpose()
}

/// The gradients of [`batch_norm`]; each output may be left out.
///
/// `mean` and `rstd` are the saved ones in training; else they are the running mean and running
/// variance. In training, with `h = (x - mean) * rstd` over the `m` elements of a channel:
/// `grad_x = weight * rstd * (grad - sum(grad) / m - h * sum(grad * h) / m)`; else `weight * rstd * grad`.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn batch_norm_backward(
    grad_x: Option<&mut StridedMut<'_>>,
    grad_weight: Option<&mut StridedMut<'_>>,
    grad_bias: Option<&mut StridedMut<'_>>,
    grad: StridedRef<'_>,
    x: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    mean: StridedRef<'_>,
    rstd_or_var: StridedRef<'_>,
    how: BatchNormOptions,
) -> Result<()> {
    let s = spans_of(x.shape())?;
    expect_shape("grad_output", grad.shape(), x.shape())?;
    expect_shape("mean", mean.shape(), &[s.channels as i64])?;
    expect_shape("rstd", rstd_or_var.shape(), &[s.channels as i64])?;
    for_compute!(x.dtype(), "batch_norm_backward", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let (mean, mut rstd) = (load::<T>(mean)?, load::<T>(rstd_or_var)?);
        if !how.training {
            rstd = memory::collect(rstd.iter().map(|v| reciprocal_std(v.wide(), how.eps)))?.into();
        }
        let (x, grad) = (load::<T>(x)?, load::<T>(grad)?);
        let (mut gw, mut gb) = (memory::filled(T::ZERO, s.channels)?, memory::filled(T::ZERO, s.channels)?);
        channel_sums(&grad, &x, &mean, &rstd, s, &mut gw, &mut gb)?;
        if let Some(view) = grad_x {
            let m = T::of(s.count() as f64);
            let all = 0..s.channels;
            let scale = memory::collect(all.clone().map(|c| w.as_ref().map_or(rstd[c], |w| rstd[c] * w[c])))?;
            let along = memory::collect(all.clone().map(|c| T::ZERO - scale[c] * gw[c] / m * rstd[c]))?;
            let shift = memory::collect(all.map(|c| T::ZERO - scale[c] * gb[c] / m - along[c] * mean[c]))?;
            let none = memory::filled(T::ZERO, if how.training { 0 } else { s.channels })?;
            if how.training {
                write_combined(view, (&grad, &x), s, [&scale, &along, &shift])?;
            } else {
                write_affine(view, &grad, s, [&scale, &none])?;
            }
        }
        store_optional(grad_weight, &gw);
        store_optional(grad_bias, &gb);
        Ok(())
    })
}

/// The running statistic `old` after a step towards `new`.
fn moved<T: Real>(old: T, new: f64, momentum: f64) -> T {
    T::of(old.wide() * (1.0 - momentum) + new * momentum)
}

/// A function that writes the elements of a range of channels into the output.
type WriteChannels<'w, T> = dyn Fn(SharedMut<T>, Range<usize>) + Sync + 'w;

/// Calls `write` for ranges of channels of the output, each channel in one of them.
fn write_channels<T: Real>(
    view: &mut StridedMut<'_>,
    s: ChannelSpans,
    write: &WriteChannels<'_, T>,
) -> Result<()> {
    with_output::<T, _>(view, |out| {
        let shared = SharedMut::new(out);
        s.for_channels(&|channels| {
            write(shared, channels);
            Ok(())
        })
    })
}

/// Writes `x * scale + shift` with the channels' factors.
fn write_affine<T: Real>(
    view: &mut StridedMut<'_>,
    x: &[T],
    s: ChannelSpans,
    factors: [&[T]; 2],
) -> Result<()> {
    if narrow::is_narrow(s) {
        return with_output::<T, _>(view, |out| narrow::affine(out, x, s, factors));
    }
    let [scale, shift] = factors;
    write_channels(view, s, &|out, channels| affine_runs(out, x, s, channels, scale, shift))
}

/// Writes `grad * a + x * b + c` with the channels' factors.
fn write_combined<T: Real>(
    view: &mut StridedMut<'_>,
    operands: (&[T], &[T]),
    s: ChannelSpans,
    factors: [&[T]; 3],
) -> Result<()> {
    if narrow::is_narrow(s) {
        return with_output::<T, _>(view, |out| narrow::combine(out, operands, s, factors));
    }
    write_channels(view, s, &|out, channels| combine_runs(out, operands, s, channels, factors))
}

crate::multiversion! {
    fn affine_runs<T: Real>(out: SharedMut<T>, x: &[T], s: ChannelSpans, channels: Range<usize>, scale: &[T], shift: &[T]) {
        if s.inner == 1 {
            for n in 0..s.batch {
                let span = s.line(n, &channels);
                let factors = scale[channels.clone()].iter().zip(&shift[channels.clone()]);
                // SAFETY: each channel is in one range.
                let out = unsafe { out.slice(span.clone()) };
                for ((out, &x), (&scale, &shift)) in out.iter_mut().zip(&x[span]).zip(factors) {
                    *out = x.mul_add(scale, shift);
                }
            }
            return;
        }
        let factors = [&scale[channels.clone()], &shift[channels.clone()]];
        for n in 0..s.batch {
            let span = s.spans(n, &channels);
            // SAFETY: each channel is in one range.
            affine_each(unsafe { out.slice(span.clone()) }, &x[span], s.inner, factors);
        }
    }
}

crate::multiversion! {
    fn combine_runs<T: Real>(out: SharedMut<T>, operands: (&[T], &[T]), s: ChannelSpans, channels: Range<usize>, factors: [&[T]; 3]) {
        let ((grad, x), [scale, along, shift]) = (operands, factors);
        if s.inner == 1 {
            for n in 0..s.batch {
                let span = s.line(n, &channels);
                // SAFETY: each channel is in one range.
                let out = unsafe { out.slice(span.clone()) };
                let (grad, x) = (&grad[span.clone()], &x[span]);
                let (a, b, c) = (&scale[channels.clone()], &along[channels.clone()], &shift[channels.clone()]);
                for i in 0..out.len() {
                    out[i] = grad[i].mul_add(a[i], x[i].mul_add(b[i], c[i]));
                }
            }
            return;
        }
        let factors = [scale, along, shift].map(|values| &values[channels.clone()]);
        for n in 0..s.batch {
            let span = s.spans(n, &channels);
            // SAFETY: as above.
            let out = unsafe { out.slice(span.clone()) };
            combine_each(out, (&grad[span.clone()], &x[span]), s.inner, factors);
        }
    }
}

fn all_statistics<T: Real>(
    x: &[T],
    s: ChannelSpans,
    eps: f64,
    means: &mut [T],
    rstds: &mut [T],
    variances: &mut [f64],
) -> Result<()> {
    if narrow::is_narrow(s) {
        narrow::statistics(x, s, means, variances)?;
        for (rstd, &variance) in rstds.iter_mut().zip(&*variances) {
            *rstd = reciprocal_std(variance, eps);
        }
        return Ok(());
    }
    let (means, rstds, variances) =
        (SharedMut::new(means), SharedMut::new(rstds), SharedMut::new(variances));
    s.for_channels(&|channels| {
        let of = channels.clone();
        // SAFETY: each channel is in one range.
        let (means, rstds, variances) =
            unsafe { (means.slice(of.clone()), rstds.slice(of.clone()), variances.slice(of)) };
        channel_statistics(x, s, channels, eps, means, rstds, variances)
    })
}

crate::multiversion! {
    fn channel_statistics<T: Real>(x: &[T], s: ChannelSpans, channels: Range<usize>, eps: f64, means: &mut [T], rstds: &mut [T], variances: &mut [f64]) -> Result<()> {
        if s.inner == 1 {
            let zeros = memory::filled(T::ZERO, channels.len())?;
            column_sums(x, s, &channels, &zeros, variances, |x, _| x)?;
            for (mean, total) in means.iter_mut().zip(&*variances) {
                *mean = T::of(total / s.batch as f64);
            }
            column_sums(x, s, &channels, means, variances, |x, mean| (x - mean) * (x - mean))?;
            for (variance, rstd) in variances.iter_mut().zip(rstds) {
                *variance /= s.batch as f64;
                *rstd = reciprocal_std(*variance, eps);
            }
            return Ok(());
        }
        let mut first = channels.start;
        while first < channels.end {
            let now = first..channels.end.min(first + s.channels_at_once());
            let found = statistics(x, s, now.clone(), true, eps);
            let at = now.start - channels.start..now.end - channels.start;
            means[at.clone()].copy_from_slice(&found.means[..now.len()]);
            rstds[at.clone()].copy_from_slice(&found.rstds[..now.len()]);
            variances[at].copy_from_slice(&found.variances[..now.len()]);
            first = now.end;
        }
        Ok(())
    }
}

/// Rows of columns that are summed before `f64` takes over.
const ROWS: usize = 64;

/// `totals` becomes the sum of `map(element, the channel's value)` over each column.
#[inline(always)]
fn column_sums<T: Real>(
    x: &[T],
    s: ChannelSpans,
    channels: &Range<usize>,
    values: &[T],
    totals: &mut [f64],
    map: impl Fn(T, T) -> T,
) -> Result<()> {
    totals.fill(0.0);
    let mut sums = memory::filled(T::ZERO, channels.len())?;
    let mut first = 0;
    while first < s.batch {
        let last = s.batch.min(first + ROWS);
        sums.fill(T::ZERO);
        for n in first..last {
            let row = &x[s.line(n, channels)];
            for ((sum, &x), &value) in sums.iter_mut().zip(row).zip(values) {
                *sum += map(x, value);
            }
        }
        for (total, sum) in totals.iter_mut().zip(&sums) {
            *total += sum.wide();
        }
        first = last;
    }
    Ok(())
}

/// Per column: the sums of `grad`, and of `grad * (x - mean)`.
#[inline(always)]
fn column_products<T: Real>(
    (grad, x): (&[T], &[T]),
    s: ChannelSpans,
    channels: &Range<usize>,
    means: &[T],
) -> Result<[Vec<f64>; 2]> {
    let width = channels.len();
    let (mut totals, mut alongs) = (memory::filled(0_f64, width)?, memory::filled(0_f64, width)?);
    let (mut total, mut along) = (memory::filled(T::ZERO, width)?, memory::filled(T::ZERO, width)?);
    let mut first = 0;
    while first < s.batch {
        let last = s.batch.min(first + ROWS);
        total.fill(T::ZERO);
        along.fill(T::ZERO);
        for n in first..last {
            let (g, x) = (&grad[s.line(n, channels)], &x[s.line(n, channels)]);
            let sums = total.iter_mut().zip(along.iter_mut());
            for (((total, along), (&g, &x)), &mean) in sums.zip(g.iter().zip(x)).zip(means) {
                *total += g;
                *along += g * (x - mean);
            }
        }
        for i in 0..width {
            totals[i] += total[i].wide();
            alongs[i] += along[i].wide();
        }
        first = last;
    }
    Ok([totals, alongs])
}

/// Per channel: the sum of `grad * (x - mean) * rstd`, and of `grad`.
fn channel_sums<T: Real>(
    grad: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    s: ChannelSpans,
    gw: &mut [T],
    gb: &mut [T],
) -> Result<()> {
    if narrow::is_narrow(s) {
        let [totals, along] = narrow::gradient_sums(grad, x, s, mean)?;
        for c in 0..s.channels {
            gw[c] = T::of(along[c] * rstd[c].wide());
            gb[c] = T::of(totals[c]);
        }
        return Ok(());
    }
    let (gw, gb) = (SharedMut::new(gw), SharedMut::new(gb));
    s.for_channels(&|channels| {
        let of = channels.clone();
        // SAFETY: each channel is in one range.
        let (gw, gb) = unsafe { (gw.slice(of.clone()), gb.slice(of)) };
        sums_of_channels((grad, x), mean, rstd, s, channels, gw, gb)
    })
}

crate::multiversion! {
    fn sums_of_channels<T: Real>(operands: (&[T], &[T]), mean: &[T], rstd: &[T], s: ChannelSpans, channels: Range<usize>, gw: &mut [T], gb: &mut [T]) -> Result<()> {
        let (grad, x) = operands;
        if s.inner == 1 {
            let [totals, along] = column_products((grad, x), s, &channels, &mean[channels.clone()])?;
            for (i, c) in channels.enumerate() {
                gw[i] = T::of(along[i] * rstd[c].wide());
                gb[i] = T::of(totals[i]);
            }
            return Ok(());
        }
        if s.is_short() {
            let mut first = channels.start;
            while first < channels.end {
                let now = first..channels.end.min(first + s.channels_at_once());
                let mut means = [T::ZERO; CHANNELS_AT_ONCE];
                means[..now.len()].copy_from_slice(&mean[now.clone()]);
                let [totals, along] = short_products((grad, x), s, now.clone(), &means);
                for (i, c) in now.clone().enumerate() {
                    gw[c - channels.start] = T::of(along[i] * rstd[c].wide());
                    gb[c - channels.start] = T::of(totals[i]);
                }
                first = now.end;
            }
            return Ok(());
        }
        for (i, c) in channels.enumerate() {
            let (mut along, mut total) = (0.0, 0.0);
            for n in 0..s.batch {
                let span = s.span(n, c);
                along += sum_products(&grad[span.clone()], &x[span.clone()], mean[c]);
                total += sum(&grad[span]);
            }
            gw[i] = T::of(along * rstd[c].wide());
            gb[i] = T::of(total);
        }
        Ok(())
    }
}
