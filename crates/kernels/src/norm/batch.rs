//! Batch norm over (N, C, *): statistics per channel over everything else.
//!
//! Each channel is one task; a two-dimensional input, whose channels are columns, is transposed first
//! so that every channel's elements lie in runs.

use super::{
    GRAIN, affine, combine, load_optional, reciprocal_std, store_optional, sum, sum_products,
    sum_squares,
};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, with_output};
use crate::{Error, Result, StridedMut, StridedRef, parallel};

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
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    inner: usize,
}

impl Shape {
    fn of(shape: &[i64]) -> Result<Self> {
        if shape.len() < 2 {
            return Err(Error::runtime(format!(
                "Expected 2 or more dimensions for batch_norm, but got input of size {shape:?}"
            )));
        }
        let inner = shape[2..].iter().map(|&s| s as usize).product();
        Ok(Shape { batch: shape[0] as usize, channels: shape[1] as usize, inner })
    }
    /// The run of batch element `n` of channel `c`.
    fn run(self, n: usize, c: usize) -> std::ops::Range<usize> {
        let start = (n * self.channels + c) * self.inner;
        start..start + self.inner
    }
    /// Elements per channel.
    fn count(self) -> usize {
        self.batch * self.inner
    }
    fn for_channels(self, work: &(dyn Fn(usize) + Sync)) {
        let grain = (GRAIN / self.count().max(1)).max(1);
        parallel::for_range(self.channels, grain, &|range| range.for_each(work));
    }
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
    let s = Shape::of(x.shape())?;
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
            statistics(&x, s_run, how.eps, &mut means, &mut rstds, &mut variances);
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
        write_channels(out, s, s_run, &|c, out, span| affine(out, &x[span], scale[c], shift[c]));
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
    let s = Shape::of(x.shape())?;
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
            write_channels(view, s, s_run, &|c, out, span| {
                let scale = w.as_ref().map_or(rstd[c], |w| rstd[c] * w[c]);
                if how.training {
                    let along = T::ZERO - scale * gw[c] / m * rstd[c];
                    let shift = T::ZERO - scale * gb[c] / m - along * mean[c];
                    combine(out, &grad[span.clone()], &x[span], scale, along, shift);
                } else {
                    affine(out, &grad[span], scale, T::ZERO);
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
fn by_channel<T: Real>(x: StridedRef<'_>, s: Shape) -> (std::borrow::Cow<'_, [T]>, Shape) {
    if s.inner != 1 {
        return (load(x), s);
    }
    let mut out = vec![T::ZERO; s.batch * s.channels];
    transpose(&mut out, &load::<T>(x), s.batch, s.channels);
    (out.into(), Shape { batch: 1, channels: s.channels, inner: s.batch })
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

/// Writes one run of a channel: channel, output, where the run lies.
type Write<'w, T> = dyn Fn(usize, &mut [T], std::ops::Range<usize>) + Sync + 'w;

/// Calls `write(channel, out, span)` for every run of the output in the layout `run`.
fn write_channels<T: Real>(view: &mut StridedMut<'_>, s: Shape, run: Shape, write: &Write<'_, T>) {
    with_output::<T, _>(view, |out| {
        let mut turned = vec![T::ZERO; if s.inner == 1 { out.len() } else { 0 }];
        let shared = SharedMut::new(if s.inner == 1 { &mut turned } else { &mut *out });
        run.for_channels(&|c| {
            for n in 0..run.batch {
                let span = run.run(n, c);
                // SAFETY: runs are disjoint.
                write(c, unsafe { shared.slice(span.clone()) }, span);
            }
        });
        if s.inner == 1 {
            transpose(out, &turned, s.channels, s.batch);
        }
    });
}

fn statistics<T: Real>(
    x: &[T],
    s: Shape,
    eps: f64,
    means: &mut [T],
    rstds: &mut [T],
    variances: &mut [f64],
) {
    let (means, rstds, variances) =
        (SharedMut::new(means), SharedMut::new(rstds), SharedMut::new(variances));
    let count = s.count() as f64;
    s.for_channels(&|c| {
        let mean = T::of((0..s.batch).map(|n| sum(&x[s.run(n, c)])).sum::<f64>() / count);
        let variance =
            (0..s.batch).map(|n| sum_squares(&x[s.run(n, c)], mean)).sum::<f64>() / count;
        // SAFETY: one task per channel.
        unsafe {
            means.slice(c..c + 1)[0] = mean;
            rstds.slice(c..c + 1)[0] = reciprocal_std(variance, eps);
            variances.slice(c..c + 1)[0] = variance;
        }
    });
}

/// Per channel: the sum of `grad * (x - mean) * rstd`, and of `grad`.
fn channel_sums<T: Real>(
    grad: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    s: Shape,
    gw: &mut [T],
    gb: &mut [T],
) {
    let (gw, gb) = (SharedMut::new(gw), SharedMut::new(gb));
    s.for_channels(&|c| {
        let product = |n| sum_products(&grad[s.run(n, c)], &x[s.run(n, c)], mean[c]);
        let along: f64 = (0..s.batch).map(product).sum();
        let total: f64 = (0..s.batch).map(|n| sum(&grad[s.run(n, c)])).sum();
        // SAFETY: one task per channel.
        unsafe {
            gw.slice(c..c + 1)[0] = T::of(along * rstd[c].wide());
            gb.slice(c..c + 1)[0] = T::of(total);
        }
    });
}
