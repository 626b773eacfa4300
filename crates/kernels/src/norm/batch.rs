//! Batch norm over (N, C, *): statistics per channel over everything else.
//!
//! Each channel is one task; a two-dimensional input, whose channels are columns, is transposed first
//! so that every channel's elements lie in runs.

use super::{
    Runs, TOGETHER, affine, combine, group_of, load_optional, reciprocal_std, statistics,
    store_optional, sum, sum_lanes, sum_products,
};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::row::GROUP;
use crate::{Error, Result, StridedMut, StridedRef};
use std::ops::Range;

/// How to normalise.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm {
    /// Use the batch's statistics (and update the running ones) instead of the running statistics.
    pub training: bool,
    /// Share of the new statistics in the running ones.
    pub momentum: f64,
    /// Added to the variance.
    pub eps: f64,
}

/// (N, C, S) of an input.
fn runs_of(shape: &[i64]) -> Result<Runs> {
    if shape.len() < 2 {
        return Err(Error::runtime(format!(
            "Expected 2 or more dimensions for batch_norm, but got input of size {shape:?}"
        )));
    }
    let inner = shape[2..].iter().map(|&s| s as usize).product();
    Ok(Runs { batch: shape[0] as usize, channels: shape[1] as usize, inner })
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
    how: BatchNorm,
) -> Result<()> {
    let s = runs_of(x.shape())?;
    expect_shape("output", out.shape(), x.shape())?;
    if !how.training && (running_mean.is_none() || running_var.is_none()) {
        return Err(Error::runtime(
            "Expected running_mean and running_var to be defined when training=False".to_owned(),
        ));
    }
    for_compute!(x.dtype(), "batch_norm", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let b = load_optional::<T>("bias", bias, s.channels)?;
        let run_mean = load_optional::<T>("running_mean", running_mean.as_deref().map(StridedMut::as_ref), s.channels)?;
        let run_var = load_optional::<T>("running_var", running_var.as_deref().map(StridedMut::as_ref), s.channels)?;
        let (x, s_run) = by_channel::<T>(x, s);
        let (mut means, mut rstds) = (vec![T::ZERO; s.channels], vec![T::ZERO; s.channels]);
        let mut variances = vec![0.0; s.channels];
        if how.training {
            all_statistics(&x, s_run, how.eps, &mut means, &mut rstds, &mut variances);
            if let (Some(view), Some(old)) = (running_mean, run_mean) {
                let new: Vec<T> = old.iter().zip(&means).map(|(&o, &m)| moved(o, m.wide(), how.momentum)).collect();
                crate::dense::store(view, &new);
            }
            if let (Some(view), Some(old)) = (running_var, run_var) {
                let count = s.count() as f64;
                let unbiased = |v: f64| v * count / (count - 1.0);
                let new: Vec<T> = old.iter().zip(&variances).map(|(&o, &v)| moved(o, unbiased(v), how.momentum)).collect();
                crate::dense::store(view, &new);
            }
            if let Some((mean, rstd)) = saved {
                crate::dense::store(mean, &means);
                crate::dense::store(rstd, &rstds);
            }
        } else if let (Some(mean), Some(var)) = (run_mean, run_var) {
            means.copy_from_slice(&mean);
            rstds = var.iter().map(|v| reciprocal_std(v.wide(), how.eps)).collect();
        }
        let scale: Vec<T> = (0..s.channels).map(|c| w.as_ref().map_or(rstds[c], |w| rstds[c] * w[c])).collect();
        let shift: Vec<T> = (0..s.channels)
            .map(|c| b.as_ref().map_or(T::ZERO, |b| b[c]) - means[c] * scale[c])
            .collect();
        write_channels(out, s, s_run, &|out, channels| affine_runs(out, &x, s_run, channels, &scale, &shift));
        Ok(())
    })
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
    how: BatchNorm,
) -> Result<()> {
    let s = runs_of(x.shape())?;
    expect_shape("grad_output", grad.shape(), x.shape())?;
    expect_shape("mean", mean.shape(), &[s.channels as i64])?;
    expect_shape("rstd", rstd_or_var.shape(), &[s.channels as i64])?;
    for_compute!(x.dtype(), "batch_norm_backward", T => {
        let w = load_optional::<T>("weight", weight, s.channels)?;
        let (mean, mut rstd) = (load::<T>(mean), load::<T>(rstd_or_var));
        if !how.training {
            rstd = rstd.iter().map(|v| reciprocal_std(v.wide(), how.eps)).collect();
        }
        let (x, s_run) = by_channel::<T>(x, s);
        let (grad, _) = by_channel::<T>(grad, s);
        let (mut gw, mut gb) = (vec![T::ZERO; s.channels], vec![T::ZERO; s.channels]);
        channel_sums(&grad, &x, &mean, &rstd, s_run, &mut gw, &mut gb);
        if let Some(view) = grad_x {
            let m = T::of(s.count() as f64);
            let scale = |c: usize| w.as_ref().map_or(rstd[c], |w| rstd[c] * w[c]);
            let factors: Vec<[T; 3]> = (0..s.channels).map(|c| {
                let scale = scale(c);
                let along = T::ZERO - scale * gw[c] / m * rstd[c];
                [scale, along, T::ZERO - scale * gb[c] / m - along * mean[c]]
            }).collect();
            write_channels(view, s, s_run, &|out, channels| {
                if how.training {
                    combine_runs(out, &grad, &x, s_run, channels, &factors);
                } else {
                    scale_runs(out, &grad, s_run, channels, &factors);
                }
            });
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

/// The elements such that a channel lies in runs: (N, C, S) as it is, (N, C) transposed.
fn by_channel<T: Real>(x: StridedRef<'_>, s: Runs) -> (std::borrow::Cow<'_, [T]>, Runs) {
    if s.inner != 1 {
        return (load(x), s);
    }
    let mut out = vec![T::ZERO; s.batch * s.channels];
    transpose(&mut out, &load::<T>(x), s.batch, s.channels);
    (out.into(), Runs::rows(s.channels, s.batch))
}

fn transpose<T: Real>(out: &mut [T], x: &[T], rows: usize, columns: usize) {
    const TILE: usize = 16;
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for r in row..rows.min(row + TILE) {
                for c in column..columns.min(column + TILE) {
                    out[c * rows + r] = x[r * columns + c];
                }
            }
        }
    }
}

/// Writes the runs of these channels.
type Write<'w, T> = dyn Fn(SharedMut<T>, Range<usize>) + Sync + 'w;

/// Calls `write` for ranges of channels of the output in the layout `run`, each channel in one of them.
fn write_channels<T: Real>(view: &mut StridedMut<'_>, s: Runs, run: Runs, write: &Write<'_, T>) {
    with_output::<T, _>(view, |out| {
        let mut turned = vec![T::ZERO; if s.inner == 1 { out.len() } else { 0 }];
        let shared = SharedMut::new(if s.inner == 1 { &mut turned } else { &mut *out });
        run.for_channels(&|channels| write(shared, channels));
        if s.inner == 1 {
            transpose(out, &turned, s.channels, s.batch);
        }
    });
}

crate::multiversion! {
    fn affine_runs<T: Real>(out: SharedMut<T>, x: &[T], s: Runs, channels: Range<usize>, scale: &[T], shift: &[T]) {
        for c in channels {
            for n in 0..s.batch {
                let span = s.run(n, c);
                // SAFETY: runs are disjoint, and each channel is in one range.
                affine(unsafe { out.slice(span.clone()) }, &x[span], scale[c], shift[c]);
            }
        }
    }
}

crate::multiversion! {
    fn scale_runs<T: Real>(out: SharedMut<T>, x: &[T], s: Runs, channels: Range<usize>, factors: &[[T; 3]]) {
        for c in channels {
            for n in 0..s.batch {
                let span = s.run(n, c);
                // SAFETY: as above.
                affine(unsafe { out.slice(span.clone()) }, &x[span], factors[c][0], T::ZERO);
            }
        }
    }
}

crate::multiversion! {
    fn combine_runs<T: Real>(out: SharedMut<T>, grad: &[T], x: &[T], s: Runs, channels: Range<usize>, factors: &[[T; 3]]) {
        for c in channels {
            for n in 0..s.batch {
                let span = s.run(n, c);
                // SAFETY: as above.
                combine(unsafe { out.slice(span.clone()) }, &grad[span.clone()], &x[span], factors[c]);
            }
        }
    }
}

fn all_statistics<T: Real>(
    x: &[T],
    s: Runs,
    eps: f64,
    means: &mut [T],
    rstds: &mut [T],
    variances: &mut [f64],
) {
    let (means, rstds, variances) =
        (SharedMut::new(means), SharedMut::new(rstds), SharedMut::new(variances));
    s.for_channels(&|channels| {
        let of = channels.clone();
        // SAFETY: each channel is in one range.
        let (means, rstds, variances) =
            unsafe { (means.slice(of.clone()), rstds.slice(of.clone()), variances.slice(of)) };
        channel_statistics(x, s, channels, eps, means, rstds, variances);
    });
}

crate::multiversion! {
    fn channel_statistics<T: Real>(x: &[T], s: Runs, channels: Range<usize>, eps: f64, means: &mut [T], rstds: &mut [T], variances: &mut [f64]) {
        let mut first = channels.start;
        while first < channels.end {
            let now = first..channels.end.min(first + s.together());
            let found = statistics(x, s, now.clone(), true, eps);
            let at = now.start - channels.start..now.end - channels.start;
            means[at.clone()].copy_from_slice(&found.means[..now.len()]);
            rstds[at.clone()].copy_from_slice(&found.rstds[..now.len()]);
            variances[at].copy_from_slice(&found.variances[..now.len()]);
            first = now.end;
        }
    }
}

/// Per channel: the sum of `grad * (x - mean) * rstd`, and of `grad`.
fn channel_sums<T: Real>(
    grad: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    s: Runs,
    gw: &mut [T],
    gb: &mut [T],
) {
    let (gw, gb) = (SharedMut::new(gw), SharedMut::new(gb));
    s.for_channels(&|channels| {
        let of = channels.clone();
        // SAFETY: each channel is in one range.
        let (gw, gb) = unsafe { (gw.slice(of.clone()), gb.slice(of)) };
        sums_of_channels(grad, x, mean, rstd, s, channels, gw, gb);
    });
}

crate::multiversion! {
    fn sums_of_channels<T: Real>(grad: &[T], x: &[T], mean: &[T], rstd: &[T], s: Runs, channels: Range<usize>, gw: &mut [T], gb: &mut [T]) {
        if s.is_short() {
            return sums_of_short(grad, x, mean, rstd, s, channels, gw, gb);
        }
        for (i, c) in channels.enumerate() {
            let (mut along, mut total) = (0.0, 0.0);
            for n in 0..s.batch {
                let span = s.run(n, c);
                along += sum_products(&grad[span.clone()], &x[span.clone()], mean[c]);
                total += sum(&grad[span]);
            }
            gw[i] = T::of(along * rstd[c].wide());
            gb[i] = T::of(total);
        }
    }
}

/// As [`sums_of_channels`] for short ones.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "those of the function it is put into")]
fn sums_of_short<T: Real>(
    grad: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    s: Runs,
    channels: Range<usize>,
    gw: &mut [T],
    gb: &mut [T],
) {
    let mut first = channels.start;
    while first < channels.end {
        let now = first..channels.end.min(first + TOGETHER);
        let (mut totals, mut along) = ([[T::ZERO; GROUP]; TOGETHER], [[T::ZERO; GROUP]; TOGETHER]);
        for ((totals, along), c) in totals.iter_mut().zip(&mut along).zip(now.clone()) {
            let (at, mean) = (s.run(0, c).start, mean[c]);
            let (mut grad, mut x, mut left) = (&grad[at..], &x[at..], s.inner);
            let (mut total, mut product) = ([T::ZERO; GROUP], [T::ZERO; GROUP]);
            while left >= GROUP {
                let (g, v) = (group_of(grad), group_of(x));
                for l in 0..GROUP {
                    total[l] += g[l];
                    product[l] += g[l] * (v[l] - mean);
                }
                (grad, x, left) = (&grad[GROUP..], &x[GROUP..], left - GROUP);
            }
            if left > 0 {
                let (g, v) = (group_of(grad), group_of(x));
                for l in 0..GROUP {
                    let g = if l < left { g[l] } else { T::ZERO };
                    let v = if l < left { v[l] } else { mean };
                    total[l] += g;
                    product[l] += g * (v - mean);
                }
            }
            (*totals, *along) = (total, product);
        }
        let (totals, along) = (sum_lanes(&totals), sum_lanes(&along));
        for (i, c) in now.clone().enumerate() {
            gw[c - channels.start] = T::of(along[i].wide() * rstd[c].wide());
            gb[c - channels.start] = totals[i];
        }
        first = now.end;
    }
}
