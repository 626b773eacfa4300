//! Losses against classes: the negative log likelihood and its gradient, for class indices over (C), (N, C) or
//! (N, C, d1, ...), with class weights, an ignored index and the three reductions; the hinge loss in `margin`.
//!
//! Sums run over fixed blocks of samples in `f64`, so results do not depend on threads.

mod ctc;
mod margin;

pub use ctc::{CtcOptions, ctc_loss, ctc_loss_backward};
pub use margin::{MarginLossOptions, multi_margin_loss, multi_margin_loss_backward};

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, store, with_output};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory, parallel};
use std::borrow::Cow;
use std::ops::Range;

/// The reduction of the losses of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Keep them all.
    None,
    /// Their weighted mean: the sum divided by the sum of the weights used.
    Mean,
    /// Their sum.
    Sum,
}

/// Samples of one block of a sum.
const BLOCK: usize = 4096;

/// The shapes of a loss: samples (N, S) and classes C of a (N, C, S) input.
#[derive(Clone, Copy)]
struct LossShape {
    batch: usize,
    classes: usize,
    inner: usize,
}

impl LossShape {
    fn of(x: &[i64], target: &[i64]) -> Result<LossShape> {
        let product = |s: &[i64]| s.iter().map(|&s| s as usize).product();
        match (x, target) {
            (&[c], [] | [1]) => Ok(LossShape { batch: 1, classes: c as usize, inner: 1 }),
            (&[n, c, ref inner @ ..], &[tn, ref rest @ ..]) if tn == n && rest == inner => {
                Ok(LossShape { batch: n as usize, classes: c as usize, inner: product(inner) })
            }
            (&[n, _, ..], &[tn, ..]) if tn != n => Err(Error::value(format!(
                "Expected input batch_size ({n}) to match target batch_size ({tn})."
            ))),
            _ => {
                Err(Error::runtime(format!("size mismatch (got input: {x:?}, target: {target:?})")))
            }
        }
    }
    fn samples(self) -> usize {
        self.batch * self.inner
    }
    /// Calls `each(sample, offset)` for a range of samples, with the offset of each one's first class.
    #[inline(always)]
    fn visit(self, samples: Range<usize>, mut each: impl FnMut(usize, usize)) {
        if self.inner == 1 {
            for i in samples {
                each(i, i * self.classes);
            }
            return;
        }
        let mut at = samples.start;
        while at < samples.end {
            let (n, first) = (at / self.inner, at % self.inner);
            let end = samples.end.min((n + 1) * self.inner);
            let start = n * self.classes * self.inner + first;
            for (offset, i) in (start..).zip(at..end) {
                each(i, offset);
            }
            at = end;
        }
    }
}

/// The targets, each one a class or `ignore_index`.
fn targets(target: StridedRef<'_>, classes: usize, ignore_index: i64) -> Result<Cow<'_, [i64]>> {
    if !matches!(target.dtype(), DType::I64 | DType::U8 | DType::I32) {
        return Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            DType::I64.scalar_name(),
            target.dtype().scalar_name()
        )));
    }
    let targets = load::<i64>(target)?;
    if all_fit(&targets, classes, ignore_index) {
        return Ok(targets);
    }
    let is_class = |t: i64| t == ignore_index || (t >= 0 && (t as usize) < classes);
    let wrong = targets.iter().find(|&&t| !is_class(t)).copied().unwrap_or_default();
    Err(Error::index(format!("Target {wrong} is out of bounds.")))
}

crate::multiversion! {
/// Whether all targets are classes or ignored.
fn all_fit(targets: &[i64], classes: usize, ignore_index: i64) -> bool {
    let mut wrong = false;
    for &t in targets {
        wrong |= (t as u64 >= classes as u64) & (t != ignore_index);
    }
    !wrong
}
}

/// The weights of the classes, if there are any.
fn load_weight<T: Real>(
    weight: Option<StridedRef<'_>>,
    classes: usize,
) -> Result<Option<Cow<'_, [T]>>> {
    let Some(weight) = weight else { return Ok(None) };
    if weight.numel() != classes || weight.ndim() != 1 {
        return Err(Error::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
            weight.shape()
        )));
    }
    load::<T>(weight).map(Some)
}

/// `loss[i] = -weight[t[i]] * x[i, t[i]]`, reduced; samples whose target is `ignore_index` give 0.
///
/// `x` holds log-probabilities (C), (N, C) or (N, C, *); `target` (), (N) or (N, *) of i64 (or u8, i32);
/// `out` has the target's shape for [`Reduction::None`], else no dimensions. `total_weight` (0-dim)
/// receives the sum of the weights used (0 for `None`); the mean of no samples is NaN.
///
/// # Errors
/// Shapes that do not fit, a target outside the classes (`IndexError`), or a dtype that is not floating.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn nll_loss(
    out: &mut StridedMut<'_>,
    total_weight: &mut StridedMut<'_>,
    x: StridedRef<'_>,
    target: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    reduction: Reduction,
    ignore_index: i64,
) -> Result<()> {
    let s = LossShape::of(x.shape(), target.shape())?;
    let shape: &[i64] = if reduction == Reduction::None { target.shape() } else { &[] };
    expect_shape("output", out.shape(), shape)?;
    let targets = targets(target, s.classes, ignore_index)?;
    for_compute!(x.dtype(), "nll_loss_out_frame", T => {
        let w = load_weight::<T>(weight, s.classes)?;
        let x = load::<T>(x)?;
        // The loss of a sample and the weight it counts with.
        let each = |i: usize, at: usize| {
            let class = targets[i];
            if class == ignore_index {
                return (T::ZERO, T::ZERO);
            }
            let (class, x) = (class as usize, &x[at..]);
            let weight = w.as_ref().map_or(T::ONE, |w| w[class]);
            (T::ZERO - weight * x[class * s.inner], weight)
        };
        if reduction == Reduction::None {
            with_output::<T, _>(out, |out| {
                s.visit(0..s.samples(), |i, at| out[i] = each(i, at).0);
            })?;
            store(total_weight, &[T::ZERO]);
            return Ok(());
        }
        let (sum, total) = block_sums(s.samples(), BLOCK, &|samples| {
            let mut sums = (0.0, 0.0);
            s.visit(samples, |i, at| {
                let (loss, weight) = each(i, at);
                sums = (sums.0 + loss.wide(), sums.1 + weight.wide());
            });
            sums
        })?;
        let value = if reduction == Reduction::Mean { sum / total } else { sum };
        store(out, &[T::of(value)]);
        store(total_weight, &[T::of(total)]);
        Ok(())
    })
}

/// The sums of both parts over all samples, in blocks of `size`.
fn block_sums(
    samples: usize,
    size: usize,
    each: &(dyn Fn(Range<usize>) -> (f64, f64) + Sync),
) -> Result<(f64, f64)> {
    if samples <= size {
        return Ok(each(0..samples));
    }
    let blocks = samples.div_ceil(size);
    let mut parts = memory::filled((0.0, 0.0), blocks)?;
    let shared = SharedMut::new(&mut parts);
    parallel::for_range(blocks, 4, &|range| {
        for block in range {
            let sum = each(block * size..samples.min((block + 1) * size));
            // SAFETY: one element per block.
            unsafe { shared.slice(block..block + 1)[0] = sum };
        }
    });
    Ok(parts.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1)))
}

/// The gradient of [`nll_loss`]: `-weight[t] * grad` at each sample's target class (divided by
/// `total_weight` for the mean), zero elsewhere. `grad` has the loss's shape.
#[allow(clippy::too_many_arguments, reason = "PyTorch's own list")]
pub fn nll_loss_backward(
    grad_x: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    target: StridedRef<'_>,
    weight: Option<StridedRef<'_>>,
    reduction: Reduction,
    ignore_index: i64,
    total_weight: StridedRef<'_>,
) -> Result<()> {
    let s = LossShape::of(grad_x.shape(), target.shape())?;
    let shape: &[i64] = if reduction == Reduction::None { target.shape() } else { &[] };
    expect_shape("grad_output", grad.shape(), shape)?;
    if total_weight.numel() != 1 {
        return Err(Error::runtime(format!(
            "Expected total_weight to be a single element tensor, got: {:?}",
            total_weight.shape()
        )));
    }
    let targets = targets(target, s.classes, ignore_index)?;
    for_compute!(grad.dtype(), "nll_loss_backward_out_frame", T => {
        let w = load_weight::<T>(weight, s.classes)?;
        let grad = load::<T>(grad)?;
        let total = load::<T>(total_weight)?;
        let scale = match reduction {
            Reduction::Mean => grad[0] / total[0],
            _ => grad.first().copied().unwrap_or(T::ZERO),
        };
        with_output::<T, _>(grad_x, |out| {
            out.fill(T::ZERO);
            s.visit(0..s.samples(), |i, at| {
                let class = targets[i];
                if class != ignore_index {
                    let class = class as usize;
                    let weight = w.as_ref().map_or(T::ONE, |w| w[class]);
                    let grad = if reduction == Reduction::None { grad[i] } else { scale };
                    out[at + class * s.inner] = T::ZERO - weight * grad;
                }
            });
        })?;
        Ok(())
    })
}
