//! The negative log likelihood loss and its gradient, for class indices over (C), (N, C) or
//! (N, C, d1, ...), with class weights, an ignored index and the three reductions.
//!
//! Sums run over fixed blocks of samples in `f64`, so results do not depend on threads.

use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, store, with_output};
use crate::{DType, Error, Result, StridedMut, StridedRef, parallel};

/// What becomes of the loss of each sample.
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
struct Shape {
    batch: usize,
    classes: usize,
    inner: usize,
}

impl Shape {
    fn of(x: &[i64], target: &[i64]) -> Result<Shape> {
        let product = |s: &[i64]| s.iter().map(|&s| s as usize).product();
        match (x, target) {
            (&[c], [] | [1]) => Ok(Shape { batch: 1, classes: c as usize, inner: 1 }),
            (&[n, c, ref inner @ ..], &[tn, ref rest @ ..]) if tn == n && rest == inner => {
                Ok(Shape { batch: n as usize, classes: c as usize, inner: product(inner) })
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
    /// Where class `class` of `sample` lies.
    fn at(self, sample: usize, class: usize) -> usize {
        (sample / self.inner * self.classes + class) * self.inner + sample % self.inner
    }
}

/// The targets as class numbers, `None` for the ignored ones.
fn targets(
    target: StridedRef<'_>,
    classes: usize,
    ignore_index: i64,
) -> Result<Vec<Option<usize>>> {
    if !matches!(target.dtype(), DType::I64 | DType::U8 | DType::I32) {
        return Err(Error::runtime(format!(
            "expected scalar type Long but found {}",
            target.dtype().scalar_name()
        )));
    }
    let one = |&t: &i64| match t {
        t if t == ignore_index => Ok(None),
        t if t < 0 || t as usize >= classes => {
            Err(Error::index(format!("Target {t} is out of bounds.")))
        }
        t => Ok(Some(t as usize)),
    };
    load::<i64>(target).iter().map(one).collect()
}

fn load_weight<T: Real>(weight: Option<StridedRef<'_>>, classes: usize) -> Result<Vec<T>> {
    let Some(weight) = weight else { return Ok(vec![T::ONE; classes]) };
    if weight.numel() != classes || weight.ndim() != 1 {
        return Err(Error::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
            weight.shape()
        )));
    }
    Ok(load::<T>(weight).into_owned())
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
    let s = Shape::of(x.shape(), target.shape())?;
    let shape: &[i64] = if reduction == Reduction::None { target.shape() } else { &[] };
    expect_shape("output", out.shape(), shape)?;
    let targets = targets(target, s.classes, ignore_index)?;
    for_compute!(x.dtype(), "nll_loss_out_frame", T => {
        let w = load_weight::<T>(weight, s.classes)?;
        let x = load::<T>(x);
        let loss = |i: usize| targets[i].map_or(T::ZERO, |c| T::ZERO - w[c] * x[s.at(i, c)]);
        if reduction == Reduction::None {
            with_output::<T, _>(out, |out| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = loss(i);
                }
            });
            store(total_weight, &[T::ZERO]);
            return Ok(());
        }
        let used = |i: usize| targets[i].map_or(0.0, |c| w[c].wide());
        let (sum, total) = block_sums(s.samples(), &|i| (loss(i).wide(), used(i)));
        let value = if reduction == Reduction::Mean { sum / total } else { sum };
        store(out, &[T::of(value)]);
        store(total_weight, &[T::of(total)]);
        Ok(())
    })
}

/// The sums of both parts over all samples, block by block.
fn block_sums(samples: usize, each: &(dyn Fn(usize) -> (f64, f64) + Sync)) -> (f64, f64) {
    let blocks = samples.div_ceil(BLOCK);
    let mut parts = vec![(0.0, 0.0); blocks];
    let shared = SharedMut::new(&mut parts);
    parallel::for_range(blocks, 4, &|range| {
        for block in range {
            let mut sum = (0.0, 0.0);
            for i in block * BLOCK..samples.min((block + 1) * BLOCK) {
                let (loss, weight) = each(i);
                sum = (sum.0 + loss, sum.1 + weight);
            }
            // SAFETY: one element per block.
            unsafe { shared.slice(block..block + 1)[0] = sum };
        }
    });
    parts.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
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
    let s = Shape::of(grad_x.shape(), target.shape())?;
    let shape: &[i64] = if reduction == Reduction::None { target.shape() } else { &[] };
    expect_shape("grad_output", grad.shape(), shape)?;
    let targets = targets(target, s.classes, ignore_index)?;
    for_compute!(grad.dtype(), "nll_loss_backward_out_frame", T => {
        let w = load_weight::<T>(weight, s.classes)?;
        let grad = load::<T>(grad);
        let total = load::<T>(total_weight);
        let scale = match reduction {
            Reduction::Mean => grad[0] / total[0],
            _ => grad.first().copied().unwrap_or(T::ZERO),
        };
        with_output::<T, _>(grad_x, |out| {
            out.fill(T::ZERO);
            for (i, class) in targets.iter().enumerate() {
                if let Some(c) = *class {
                    let g = if reduction == Reduction::None { grad[i] } else { scale };
                    out[s.at(i, c)] = T::ZERO - w[c] * g;
                }
            }
        });
        Ok(())
    })
}
