//! Losses between tensors of numbers: squared, absolute, smooth, binary cross entropy, divergence.
//!
//! `reduction` is 0 (none), 1 (mean over all elements) or 2 (sum). The losses of elements are computed in one pass,
//! into the result itself where nothing is reduced ([`write_loss`]). Losses for target classes are in `loss_class`.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::ternary::walk_as_is;
use crate::ops::reduce::sum::reduce_in_dtype;
use crate::tensor::shape::broadcast_shapes;
use crate::tensor::{Cpu, TensorSpec};
use crate::{ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{Iter, elementwise, reduce};
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &MSE_LOSS,
    &L1_LOSS,
    &SMOOTH_L1_LOSS,
    &HUBER_LOSS,
    &BINARY_CROSS_ENTROPY,
    &BINARY_CROSS_ENTROPY_WITH_LOGITS,
    &KL_DIV,
];

/// The mean squared error `(self - target)^2`, element by element, reduced: 0 (none), 1 (mean) or 2 (sum).
#[op("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", out, apart, module = "nn", autocast = fp32, batch = elementwise_loss)]
impl MseLoss {
    fn meta(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<TensorSpec> {
        check_floating("mse_cpu", self_, target)?;
        loss_spec(&[self_, target], reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
    ) -> Result<()> {
        write_loss(cpu, result, &[self_, target], reduction, elementwise::squared_difference)
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let grad = each(grad, &[self_.shape(), target.shape()], reduction)?.times(2)?;
        opposite(grad.mul(&self_.sub(target)?)?, needs)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        target_p: &Tensor,
        target_t: &Tensor,
        reduction: i64,
    ) -> Result<Tensor> {
        reduced(self_p.sub(target_p)?.mul(&self_t.sub(target_t)?)?.times(2)?, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pair_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sizes = Sample::new([s.normal(&[2]).into(), s.normal(&[3]).into()]);
        let kind = Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into()]).with("reduction", 7);
        vec![
            InvalidSample::new(sizes, ErrorKind::Runtime, "must match the size of tensor b (3)"),
            InvalidSample::new(kind, ErrorKind::Value, "7 is not a valid value for reduction"),
        ]
    }
}

/// The absolute error `|self - target|`, element by element, reduced: 0 (none), 1 (mean) or 2 (sum). The gradient at 0
/// is 0.
#[op("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", module = "nn", autocast = fp32)]
impl L1Loss {
    fn composite(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
        reduced(self_.sub(target)?.abs()?, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pair_samples(s)
    }
}

/// The smooth L1 loss: `z^2 / (2 beta)` where `z = |self - target|` is below `beta`, else `z - beta/2`, reduced: 0
/// (none), 1 (mean) or 2 (sum).
#[op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    out,
    apart,
    module = "nn", autocast = fp32, batch = elementwise_loss
)]
impl SmoothL1Loss {
    fn meta(self_: &Tensor, target: &Tensor, reduction: i64, beta: f64) -> Result<TensorSpec> {
        check_floating("smooth_l1_cpu", self_, target)?;
        ensure!(beta >= 0.0, runtime, "smooth_l1_loss does not support negative values for beta.");
        loss_spec(&[self_, target], reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        beta: f64,
    ) -> Result<()> {
        let kernel = |iter: &mut Iter| elementwise::smooth_l1(iter, beta);
        write_loss(cpu, result, &[self_, target], reduction, kernel)
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        beta: f64,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let grad = each(grad, &[self_.shape(), target.shape()], reduction)?;
        opposite(grad.mul(&smooth_slope(&self_.sub(target)?, beta)?)?, needs)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        target_p: &Tensor,
        target_t: &Tensor,
        reduction: i64,
        beta: f64,
    ) -> Result<Tensor> {
        reduced(smooth_slope(&self_p.sub(target_p)?, beta)?.mul(&self_t.sub(target_t)?)?, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = pair_samples(s);
        let pair = || Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]);
        out.push(pair().with("beta", 0.3));
        out.push(pair().with("beta", 0.0).with("reduction", 2));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into()]).with("beta", -1.0);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "does not support negative values for beta",
        )]
    }
}

/// The Huber loss: `z^2 / 2` where `z = |self - target|` is at most `delta`, else `delta (z - delta/2)`, reduced: 0
/// (none), 1 (mean) or 2 (sum) (Huber 1964).
#[op(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    out,
    apart,
    module = "nn", autocast = fp32, batch = elementwise_loss
)]
impl HuberLoss {
    fn meta(self_: &Tensor, target: &Tensor, reduction: i64, delta: f64) -> Result<TensorSpec> {
        check_floating("huber_cpu", self_, target)?;
        ensure!(delta > 0.0, runtime, "huber_loss does not support non-positive values for delta.");
        loss_spec(&[self_, target], reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        delta: f64,
    ) -> Result<()> {
        let kernel = |iter: &mut Iter| elementwise::huber(iter, delta);
        write_loss(cpu, result, &[self_, target], reduction, kernel)
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        delta: f64,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let grad = each(grad, &[self_.shape(), target.shape()], reduction)?;
        opposite(grad.mul(&limited(&self_.sub(target)?, delta)?)?, needs)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        target_p: &Tensor,
        target_t: &Tensor,
        reduction: i64,
        delta: f64,
    ) -> Result<Tensor> {
        reduced(limited(&self_p.sub(target_p)?, delta)?.mul(&self_t.sub(target_t)?)?, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = pair_samples(s);
        out.push(
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2, 3]).into()]).with("delta", 0.3),
        );
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[2]).into(), s.normal(&[2]).into()]).with("delta", 0.0);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "does not support non-positive values for delta",
        )]
    }
}

/// The binary cross entropy `-weight (target ln(self) + (1 - target) ln(1 - self))`, reduced: 0 (none), 1 (mean) or 2
/// (sum). Logarithms are at least -100, so that the loss is finite.
///
/// # Errors
/// `RuntimeError` for elements of `self` that are not between 0 and 1.
#[op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    out,
    apart,
    module = "nn",
    not_differentiable(weight), autocast = fp32, batch = elementwise_loss
)]
impl BinaryCrossEntropy {
    fn meta(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<TensorSpec> {
        let inputs = [Some(self_), Some(target), weight];
        ensure!(
            inputs.iter().flatten().all(|input| !input.dtype().is_complex()),
            not_implemented,
            "\"binary_cross_entropy\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        loss_spec(&inputs.into_iter().flatten().collect::<SmallVec<[_; 3]>>(), reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<()> {
        let (zero, one) = (Tensor::wrapped(0)?, Tensor::wrapped(1)?);
        // NaN is refused, too.
        let between = self_.ge(&zero)?.logical_and(&self_.le(&one)?)?.all()?;
        ensure!(
            between.item()?.is(1.0),
            runtime,
            "all elements of input should be between 0 and 1"
        );
        let inputs = [Some(self_), Some(target), weight];
        let inputs: SmallVec<[_; 3]> = inputs.into_iter().flatten().collect();
        let kernel = |iter: &mut Iter| elementwise::binary_cross_entropy(iter, weight.is_some());
        write_loss(cpu, result, &inputs, reduction, kernel)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        let grad = weighted(each(grad, &shapes(self_, target, weight), reduction)?, weight)?;
        let width = self_.minus_from(1)?.mul(self_)?.clamp_min(Scalar::Float(1e-12))?;
        grad.mul(&self_.sub(target)?)?.div(&width)
    }
    fn vjp_target(
        grad: &Tensor,
        self_: &Tensor,
        target_shape: &[i64],
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        let mut all = vec![self_.shape(), target_shape];
        all.extend(weight.map(Tensor::shape));
        weighted(each(grad, &all, reduction)?, weight)?
            .mul(&log_of_rest(self_)?.sub(&log_of(self_)?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair = |shape: &[i64]| {
            Sample::new([s.uniform(shape, 0.1, 0.9).into(), s.uniform(shape, 0.1, 0.9).into()])
        };
        vec![
            pair(&[2, 3]),
            pair(&[2, 3])
                .with("weight", s.positive(&[3]).detach().expect("a small tensor"))
                .with("reduction", 2),
            pair(&[3]).with("reduction", 0),
            pair(&[]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample =
            Sample::new([s.uniform(&[2], 1.5, 2.0).into(), s.uniform(&[2], 0.0, 1.0).into()]);
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "all elements of input should be between 0 and 1",
        )]
    }
}

/// The binary cross entropy of `s = sigmoid(self)`, `-weight (pos_weight target ln s + (1 - target) ln(1 - s))`,
/// without underflow, reduced: 0 (none), 1 (mean) or 2 (sum).
#[op(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
    function_only,
    not_differentiable(weight, pos_weight), autocast = fp32, batch = elementwise_loss
)]
impl BinaryCrossEntropyWithLogits {
    fn meta(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<TensorSpec> {
        let inputs = [Some(target), Some(self_), pos_weight, weight];
        loss_spec(&inputs.into_iter().flatten().collect::<SmallVec<[_; 4]>>(), reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<()> {
        let inputs = [Some(self_), Some(target), pos_weight];
        let inputs: SmallVec<[_; 3]> = inputs.into_iter().flatten().collect();
        let kernel = |iter: &mut Iter| {
            elementwise::binary_cross_entropy_with_logits(iter, pos_weight.is_some())
        };
        write_weighted_loss(cpu, result, (&inputs, weight), reduction, kernel)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        let mut all = shapes(self_, target, weight);
        all.extend(pos_weight.map(Tensor::shape));
        let grad = weighted(each(grad, &all, reduction)?, weight)?;
        let s = self_.sigmoid()?;
        let Some(pos_weight) = pos_weight else { return grad.mul(&s.sub(target)?) };
        let positive = pos_weight.mul(target)?;
        grad.mul(&positive.plus(1)?.sub(target)?.mul(&s)?.sub(&positive)?)
    }
    fn vjp_target(
        grad: &Tensor,
        self_: &Tensor,
        target_shape: &[i64],
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        let mut all = vec![self_.shape(), target_shape];
        all.extend(weight.iter().chain(pos_weight.iter()).map(|t| t.shape()));
        let grad = weighted(each(grad, &all, reduction)?, weight)?;
        let Some(pos_weight) = pos_weight else { return grad.mul(self_)?.neg() };
        grad.mul(&self_.neg()?.log_sigmoid()?.sub(&pos_weight.mul(&self_.log_sigmoid()?)?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair = |shape: &[i64]| {
            Sample::new([s.normal(shape).into(), s.uniform(shape, 0.1, 0.9).into()])
        };
        vec![
            pair(&[2, 3]),
            pair(&[2, 3]).with("weight", s.positive(&[3])).with("reduction", 2),
            pair(&[2, 3]).with("weight", s.positive(&[2, 3])).with("pos_weight", s.positive(&[3])),
            pair(&[3]).with("reduction", 0),
            pair(&[]),
        ]
    }
}

/// The Kullback-Leibler divergence `target (ln(target) - self)`, where `self` holds logarithms, element by element,
/// reduced: 0 (none), 1 (the mean over all elements) or 2 (sum). With `log_target` the target is given as its
/// logarithm. `0 ln 0` counts as 0.
#[op(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    function_only, autocast = fp32
)]
impl KlDiv {
    fn composite(
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
        log_target: bool,
    ) -> Result<Tensor> {
        ensure!(
            !self_.dtype().is_complex() && !target.dtype().is_complex(),
            runtime,
            "kl_div: Complex inputs not supported."
        );
        ensure!(
            self_.dtype().is_floating_point() && target.dtype().is_floating_point(),
            runtime,
            "kl_div: Integral inputs not supported."
        );
        let loss = if log_target {
            target.exp()?.mul(&target.sub(self_)?)?
        } else {
            target.xlogy(target)?.sub(&target.mul(self_)?)?
        };
        reduced(loss, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let pair = || Sample::new([s.normal(&[2, 3]).into(), s.uniform(&[2, 3], 0.1, 0.9).into()]);
        vec![
            pair(),
            pair().with("reduction", 2),
            pair().with("log_target", true),
            pair().with("reduction", 0),
        ]
    }
}

/// Refuses pairs whose common dtype is not floating.
fn check_floating(name: &str, x: &Tensor, target: &Tensor) -> Result<()> {
    let dtype = TensorSpec::broadcast(&[x, target])?.dtype;
    if dtype.is_floating_point() {
        return Ok(());
    }
    bail!(not_implemented, "\"{name}\" not implemented for '{}'", dtype.scalar_name())
}

/// The spec of an elementwise loss of `inputs` after its reduction.
pub(in crate::ops) fn loss_spec(inputs: &[&Tensor], reduction: i64) -> Result<TensorSpec> {
    let spec = TensorSpec::broadcast(inputs)?.to_float();
    match reduction {
        0 => Ok(spec),
        1 | 2 => Ok(TensorSpec::of(&[], spec.dtype).on(spec.device)),
        other => bail!(value, "{other} is not a valid value for reduction"),
    }
}

/// The reduced loss.
pub(crate) fn reduced(loss: Tensor, reduction: i64) -> Result<Tensor> {
    match reduction {
        0 => Ok(loss),
        1 => loss.mean(),
        2 => loss.sum(),
        other => bail!(value, "{other} is not a valid value for reduction"),
    }
}

/// Writes the reduced loss that `kernel` computes element by element from `inputs`, which are broadcast and converted
/// to the dtype of the result.
pub(super) fn write_loss(
    cpu: Cpu,
    result: &Tensor,
    inputs: &[&Tensor],
    reduction: i64,
    kernel: impl FnOnce(&mut Iter) -> pullback_kernels::Result<()>,
) -> Result<()> {
    write_weighted_loss(cpu, result, (inputs, None), reduction, kernel)
}

/// Writes the reduced loss like [`write_loss`], with each element multiplied by its weight.
fn write_weighted_loss(
    cpu: Cpu,
    result: &Tensor,
    (inputs, weight): (&[&Tensor], Option<&Tensor>),
    reduction: i64,
    kernel: impl FnOnce(&mut Iter) -> pullback_kernels::Result<()>,
) -> Result<()> {
    // (All memory is allocated before the first write.)
    let in_dtype = |t: &&Tensor| t.in_dtype(cpu, result.dtype());
    let weight = weight.as_ref().map(in_dtype).transpose()?;
    let each = if reduction == 0 {
        result.clone()
    } else {
        let all: SmallVec<[_; 4]> = inputs.iter().copied().chain(weight.as_ref()).collect();
        TensorSpec::broadcast(&all)?.computed_in(result.dtype()).empty()?
    };
    let inputs = inputs.iter().map(in_dtype).collect::<Result<Vec<_>>>()?;
    walk_as_is(cpu, &each, &inputs, kernel)?;
    if let Some(weight) = weight {
        walk_as_is(cpu, &each, &[each.clone(), weight], elementwise::mul)?;
    }
    match reduction {
        0 => Ok(()),
        1 => reduce_in_dtype(cpu, result, &each, None, reduce::mean),
        _ => reduce_in_dtype(cpu, result, &each, None, reduce::sum),
    }
}

/// The gradient of each element of a loss whose inputs have `shapes`, from that of the reduced loss.
pub(in crate::ops) fn each(grad: &Tensor, shapes: &[&[i64]], reduction: i64) -> Result<Tensor> {
    if reduction != 1 {
        return Ok(grad.clone());
    }
    grad.over(broadcast_shapes(shapes)?.iter().product::<i64>())
}

fn shapes<'a>(x: &'a Tensor, target: &'a Tensor, weight: Option<&'a Tensor>) -> Vec<&'a [i64]> {
    let mut all = vec![x.shape(), target.shape()];
    all.extend(weight.map(Tensor::shape));
    all
}

fn weighted(loss: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    weight.map_or_else(|| Ok(loss.clone()), |w| loss.mul(w))
}

/// The gradients of both operands of a difference: `grad` and its negative.
fn opposite(grad: Tensor, needs: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
    let negative = needs[1].then(|| grad.neg()).transpose()?;
    Ok([needs[0].then_some(grad), negative])
}

fn limited(z: &Tensor, limit: f64) -> Result<Tensor> {
    z.clamp(Some(Scalar::Float(-limit)), Some(Scalar::Float(limit)))
}

fn smooth_slope(z: &Tensor, beta: f64) -> Result<Tensor> {
    if beta == 0.0 { z.sign() } else { limited(&z.over(beta)?, 1.0) }
}

fn log_of(x: &Tensor) -> Result<Tensor> {
    x.log()?.clamp_min(Scalar::Int(-100))
}

fn log_of_rest(x: &Tensor) -> Result<Tensor> {
    x.neg()?.log1p()?.clamp_min(Scalar::Int(-100))
}

fn pair_samples(s: &Sampler) -> Vec<Sample> {
    let pair = |a: &[i64], b: &[i64]| Sample::new([s.normal(a).into(), s.normal(b).into()]);
    vec![
        pair(&[2, 3], &[2, 3]),
        pair(&[2, 3], &[3]).with("reduction", 2),
        pair(&[2], &[2]).with("reduction", 0),
        pair(&[], &[]),
        pair(&[0], &[0]).with("reduction", 2),
    ]
}
