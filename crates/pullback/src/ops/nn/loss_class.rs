//! Losses for target classes: negative log likelihood and cross entropy.
//!
//! Inputs are (C), (N, C) or (N, C, d1, ...) with log-probabilities (or scores) per class; targets are class indices
//! without the class dimension, or for `cross_entropy_loss` probabilities of the input's shape. `reduction` is 0
//! (none), 1 (mean, weighted by the classes' weights) or 2 (sum).

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::nn::loss::reduced;
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, Error, ErrorKind, Result, Tensor};
use pullback_kernels::check_shape;
use pullback_kernels::loss::{self, Reduction};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &NLL_LOSS,
    &NLL_LOSS2D,
    &NLL_LOSS_ND,
    &NLL_LOSS_FORWARD,
    &NLL_LOSS2D_FORWARD,
    &NLL_LOSS_BACKWARD,
    &CROSS_ENTROPY_LOSS,
];

/// The negative log likelihood loss `-weight[t] * self[t]` for each target class `t` of log-probabilities (C) or (N,
/// C), reduced: 0 (none), 1 (mean, weighted by the classes' weights) or 2 (sum). Targets equal to `ignore_index` do not
/// count. The mean over no targets is NaN.
#[op(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    exact_out,
    module = "nn",
    not_differentiable(weight),
    autocast = fp32
)]
impl NllLoss {
    fn composite(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<Tensor> {
        let [output, _] = self_.nll_loss_forward(target, weight, reduction, ignore_index)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        class_samples(s).into_iter().take(4).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |x: &[i64], target: Tensor| Sample::new([s.normal(x).into(), target.into()]);
        let floats = call(&[2, 3], s.normal(&[2]));
        let far = call(&[2, 3], s.integers(&[2], 3, 4));
        let sizes = call(&[3, 3], s.integers(&[2], 0, 3));
        vec![
            InvalidSample::new(
                floats,
                ErrorKind::Runtime,
                "expected target dtype to be Long or Byte, but got Double",
            ),
            InvalidSample::new(far, ErrorKind::Index, "Target 3 is out of bounds."),
            InvalidSample::new(
                sizes,
                ErrorKind::Value,
                "Expected input batch_size (3) to match target batch_size (2).",
            ),
        ]
    }
}

/// The negative log likelihood loss of images: log-probabilities (N, C, H, W) and target classes (N, H, W), reduced: 0
/// (none), 1 (mean, weighted by the classes' weights) or 2 (sum).
#[op(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    out,
    module = "nn",
    not_differentiable(weight),
    autocast = fp32
)]
impl NllLoss2d {
    fn composite(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<Tensor> {
        ensure!(
            self_.ndim() == 4,
            runtime,
            "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
            self_.ndim()
        );
        ensure!(
            target.ndim() == 3,
            runtime,
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
            target.ndim()
        );
        let [output, _] = self_.nll_loss2d_forward(target, weight, reduction, ignore_index)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3, 2, 2]).into(), s.integers(&[2, 2, 2], 0, 3).into()])]
    }
}

/// The negative log likelihood loss for log-probabilities (C), (N, C) or (N, C, d1, ...) and target classes of the same
/// shape without C, reduced: 0 (none), 1 (mean, weighted by the classes' weights) or 2 (sum).
#[op(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    module = "nn",
    not_differentiable(weight),
    autocast = fp32
)]
impl NllLossNd {
    fn composite(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<Tensor> {
        ensure!(self_.ndim() > 0, value, "Expected 1 or more dimensions (got {})", self_.ndim());
        if self_.ndim() <= 2 {
            return self_.nll_loss(target, weight, reduction, ignore_index);
        }
        if self_.ndim() == 4 {
            return self_.nll_loss2d(target, weight, reduction, ignore_index);
        }
        check_target_shape(self_, target)?;
        let [output, _] = self_.nll_loss2d_forward(target, weight, reduction, ignore_index)?;
        if reduction == 0 { output.view(target.shape()) } else { Ok(output) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        class_samples(s)
    }
}

/// The negative log likelihood loss of (C) or (N, C), and the sum of the weights of the targets.
#[op(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)",
    function_only,
    exact_out,
    internal,
    node = "NllLoss",
    not_differentiable(weight), batch = nll_loss(self, target, weight, reduction, ignore_index)
)]
impl NllLossForward {
    fn meta(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<[TensorSpec; 2]> {
        forward_spec(self_, target, weight, reduction)
    }
    fn cpu(
        cpu: Cpu,
        output: &Tensor,
        total_weight: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<()> {
        forward(cpu, [output, total_weight], (self_, target, weight), reduction, ignore_index)
    }
    fn vjp_self(
        grad_output: &Tensor,
        self_shape: &[i64],
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
        total_weight: &Tensor,
    ) -> Result<Tensor> {
        grad_output.nll_loss_backward(
            self_shape,
            target,
            weight,
            reduction,
            ignore_index,
            &total_weight.detach()?,
        )
    }
    fn jvp(
        self_t: &Tensor,
        target_p: &Tensor,
        weight_p: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<[Tensor; 2]> {
        let [output, total] =
            self_t.nll_loss_forward(target_p, weight_p, reduction, ignore_index)?;
        Ok([output, total.zeros_like()?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        core_samples(s)
    }
}

/// The negative log likelihood loss of (N, C, d1, ...), and the sum of the weights of the targets.
#[op(
    "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)",
    function_only,
    out,
    internal,
    node = "NllLoss2D",
    not_differentiable(weight), batch = nll_loss(self, target, weight, reduction, ignore_index)
)]
impl NllLoss2dForward {
    fn meta(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<[TensorSpec; 2]> {
        forward_spec(self_, target, weight, reduction)
    }
    fn cpu(
        cpu: Cpu,
        output: &Tensor,
        total_weight: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<()> {
        forward(cpu, [output, total_weight], (self_, target, weight), reduction, ignore_index)
    }
    fn vjp_self(
        grad_output: &Tensor,
        self_shape: &[i64],
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
        total_weight: &Tensor,
    ) -> Result<Tensor> {
        grad_output.nll_loss_backward(
            self_shape,
            target,
            weight,
            reduction,
            ignore_index,
            &total_weight.detach()?,
        )
    }
    fn jvp(
        self_t: &Tensor,
        target_p: &Tensor,
        weight_p: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<[Tensor; 2]> {
        let [output, total] =
            self_t.nll_loss2d_forward(target_p, weight_p, reduction, ignore_index)?;
        Ok([output, total.zeros_like()?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        core_samples(s)
    }
}

/// The gradient of `nll_loss` with respect to an input of shape `sizes`.
#[op("_nll_loss_backward(Tensor grad_output, int[] sizes, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor",
     internal, method = nll_loss_backward, not_differentiable(weight, total_weight), batch = nll_loss_backward(grad_output, sizes, target, weight, reduction, total_weight))]
impl NllLossBackward {
    fn meta(
        grad_output: &Tensor,
        sizes: &[i64],
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        total_weight: &Tensor,
    ) -> Result<TensorSpec> {
        check_samples(sizes, target)?;
        check_weight("", weight, sizes[usize::from(sizes.len() > 1)])?;
        let is_each = kind(reduction)? == Reduction::None;
        check_shape(
            "grad_output",
            grad_output.shape(),
            if is_each { target.shape() } else { &[] },
        )?;
        check_shape("total_weight", &[total_weight.numel()], &[1])?;
        Ok(TensorSpec::beside(grad_output, sizes))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
        total_weight: &Tensor,
    ) -> Result<()> {
        let weight = weight.map(|w| w.in_dtype(cpu, grad_output.dtype())).transpose()?;
        loss::nll_loss_backward(
            &mut result.view_mut(cpu),
            grad_output.view_ref(cpu),
            target.view_ref(cpu),
            weight.as_ref().map(|t| t.view_ref(cpu)),
            kind(reduction)?,
            ignore_index,
            total_weight.view_ref(cpu),
        )?;
        Ok(())
    }
    fn vjp_grad_output(
        grad: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
    ) -> Result<Tensor> {
        let [output, _] = grad.nll_loss_forward(target, weight, reduction, ignore_index)?;
        Ok(output)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduction: i64, grad: &[i64], total: f64| {
            let total = Tensor::scalar_of(total, s.dtype).expect("a small tensor");
            Sample::new([
                s.normal(grad).into(),
                [2, 3].as_slice().into(),
                s.integers(&[2], 0, 3).into(),
                Value::None,
            ])
            .with("reduction", reduction)
            .with("ignore_index", -100)
            .with("total_weight", total)
        };
        vec![sample(1, &[], 2.0), sample(0, &[2], 0.0), sample(2, &[], 2.0)]
    }
}

/// The cross entropy loss: `nll_loss` of `log_softmax(self)` for scores (C), (N, C) or (N, C, d1, ...), reduced: 0
/// (none), 1 (mean) or 2 (sum). Targets are class indices or, in the input's dtype and shape, probabilities;
/// `label_smoothing` mixes the target with the uniform distribution (Szegedy et al. 2016).
#[op(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    module = "nn",
    not_differentiable(weight),
    autocast = fp32
)]
impl CrossEntropyLoss {
    fn composite(
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore_index: i64,
        label_smoothing: f64,
    ) -> Result<Tensor> {
        let class_dim = i64::from(self_.ndim() > 1);
        let input = self_.log_softmax(class_dim, None)?;
        if self_.shape() == target.shape() {
            ensure!(
                target.dtype().is_floating_point(),
                runtime,
                "Expected floating point type for target with class probabilities, got {}",
                target.dtype().scalar_name()
            );
            ensure!(
                ignore_index < 0,
                runtime,
                "ignore_index is not supported for floating point target"
            );
            return soft(&input, target, weight, reduction, label_smoothing, class_dim);
        }
        ensure!(
            (0.0..=1.0).contains(&label_smoothing),
            runtime,
            "label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        );
        let loss = input.nll_loss_nd(target, weight, reduction, ignore_index)?;
        if label_smoothing == 0.0 {
            return Ok(loss);
        }
        let even = spread_evenly(&input, target, weight, reduction, ignore_index, class_dim)?;
        let classes = input.shape()[class_dim as usize] as f64;
        loss.times(1.0 - label_smoothing)?.add(&even.times(label_smoothing / classes)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = class_samples(s);
        out.extend(
            class_samples(s).into_iter().take(7).map(|sample| sample.with("label_smoothing", 0.1)),
        );
        let soft = || Sample::new([s.normal(&[2, 3]).into(), s.uniform(&[2, 3], 0.1, 0.9).into()]);
        out.push(soft());
        out.push(soft().with("label_smoothing", 0.2).with("reduction", 2));
        out.push(soft().with("weight", s.positive(&[3])).with("reduction", 0));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |target: Tensor| Sample::new([s.normal(&[2, 3]).into(), target.into()]);
        let hard = || call(s.integers(&[2], 0, 3));
        vec![
            InvalidSample::new(
                hard().with("label_smoothing", 2.0),
                ErrorKind::Runtime,
                "label_smoothing must be between 0.0 and 1.0",
            ),
            InvalidSample::new(
                hard().with("weight", s.positive(&[2])),
                ErrorKind::Runtime,
                "for all 3 classes or no classes",
            ),
            InvalidSample::new(
                call(s.normal(&[2, 3])).with("ignore_index", 1),
                ErrorKind::Runtime,
                "ignore_index is not supported",
            ),
            InvalidSample::new(
                call(s.normal(&[2, 5])),
                ErrorKind::Runtime,
                "multi-target not supported",
            ),
        ]
    }
}

/// Cross entropy with target probabilities.
fn soft(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    label_smoothing: f64,
    class_dim: i64,
) -> Result<Tensor> {
    ensure!(
        (0.0..=1.0).contains(&label_smoothing),
        runtime,
        "label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
    );
    let classes = input.shape().get(class_dim as usize).copied();
    // (Only 0-dimensional tensors lack the dimension.)
    let none = || Error::index("Dimension specified as 1 but tensor has no dimensions");
    let classes = classes.ok_or_else(none)?;
    check_weight("cross_entropy: ", weight, classes)?;
    let mut terms = if label_smoothing > 0.0 {
        target.times(1.0 - label_smoothing)?.plus(label_smoothing / classes as f64)?.mul(input)?
    } else {
        input.mul(target)?
    };
    if let Some(weight) = weight {
        terms = terms.mul(&along_classes(weight, input.ndim())?)?;
    }
    match reduction {
        0 => terms.sum_dim(Some(&[class_dim]), false)?.neg(),
        1 => terms.sum()?.neg()?.over(input.numel() as f64 / classes as f64),
        2 => terms.sum()?.neg(),
        other => bail!(value, "{other} is not a valid value for reduction"),
    }
}

/// The loss for the uniform distribution times the number of classes, reduced like the main term: the label smoothing
/// term.
fn spread_evenly(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: i64,
    class_dim: i64,
) -> Result<Tensor> {
    let weighted = match weight {
        Some(weight) => input.mul(&along_classes(weight, input.ndim())?)?,
        None => input.clone(),
    };
    let ignored = target.eq(&Tensor::wrapped(ignore_index)?)?;
    let even =
        weighted.sum_dim(Some(&[class_dim]), false)?.neg()?.masked_fill(&ignored, 0.into())?;
    if reduction != 1 {
        return reduced(even, reduction);
    }
    let total = match weight {
        Some(weight) => {
            let classes =
                target.masked_fill(&ignored, 0.into())?.to_dtype(DType::I64)?.reshape(&[-1])?;
            let used = weight.select_along(0, &classes, true)?;
            used.masked_fill(&ignored.reshape(&[-1])?, 0.into())?.sum()?
        }
        None => ignored.logical_not()?.sum()?,
    };
    even.sum()?.div(&total)
}

/// Weights per class, shaped so that they broadcast against (N, C, ...).
fn along_classes(weight: &Tensor, ndim: usize) -> Result<Tensor> {
    if ndim <= 1 {
        return Ok(weight.clone());
    }
    let mut shape = Dims::from_elem(1, ndim);
    shape[1] = weight.numel();
    weight.reshape(&shape)
}

/// The reduction that a code stands for.
pub(crate) fn kind(reduction: i64) -> Result<Reduction> {
    Ok(match reduction {
        0 => Reduction::None,
        1 => Reduction::Mean,
        2 => Reduction::Sum,
        other => bail!(value, "{other} is not a valid value for reduction"),
    })
}

fn check_weight(caller: &str, weight: Option<&Tensor>, classes: i64) -> Result<()> {
    let Some(weight) = weight else { return Ok(()) };
    ensure!(
        weight.ndim() == 1 && weight.numel() == classes,
        runtime,
        "{caller}weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {}",
        list(weight.shape())
    );
    Ok(())
}

/// Refuses targets of (N, C, d1, ...) that are not (N, d1, ...).
fn check_target_shape(x: &Tensor, target: &Tensor) -> Result<()> {
    let batch = target.shape().first().copied().unwrap_or(1);
    let n = x.shape()[0];
    ensure!(
        n == batch,
        value,
        "Expected input batch_size ({n}) to match target batch_size ({batch})."
    );
    let mut expected = Dims::from_slice(x.shape());
    expected.remove(1);
    ensure!(
        expected.as_slice() == target.shape(),
        runtime,
        "Expected target size {}, got {}",
        list(&expected),
        list(target.shape())
    );
    Ok(())
}

fn check(x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    ensure!(x.ndim() > 0, runtime, "input tensor should be 1D or 2D");
    if x.ndim() <= 2 {
        ensure!(
            target.ndim() <= 1,
            runtime,
            "0D or 1D target tensor expected, multi-target not supported"
        );
        ensure!(
            x.ndim() == 2 || target.ndim() == 0 || target.numel() == 1,
            value,
            "For 1D input, 1D target must have size 1, but got target size: {}",
            target.numel()
        );
        ensure!(
            x.ndim() == 2 || target.ndim() == 0 || target.numel() == x.numel(),
            runtime,
            "size mismatch (got input: {}, target: {})",
            list(x.shape()),
            list(target.shape())
        );
    }
    ensure!(
        matches!(target.dtype(), DType::I64 | DType::U8),
        runtime,
        "expected target dtype to be {} or {}, but got {}",
        DType::I64.scalar_name(),
        DType::U8.scalar_name(),
        target.dtype().scalar_name()
    );
    check_weight("", weight, x.shape()[usize::from(x.ndim() > 1)])?;
    check_samples(x.shape(), target)
}

/// Refuses targets that are not one for each sample of an input of `sizes`: (C), (N, C) or (N, C, d1, ...).
fn check_samples(sizes: &[i64], target: &Tensor) -> Result<()> {
    let is_for_all = match (sizes, target.shape()) {
        ([_], [] | [1]) => true,
        ([n, _, spatial @ ..], [batch, rest @ ..]) => {
            ensure!(
                n == batch,
                value,
                "Expected input batch_size ({n}) to match target batch_size ({batch})."
            );
            spatial == rest
        }
        _ => false,
    };
    ensure!(
        is_for_all,
        runtime,
        "size mismatch (got input: {}, target: {})",
        list(sizes),
        list(target.shape())
    );
    Ok(())
}

/// The specs of the loss and of the sum of the weights.
fn forward_spec(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<[TensorSpec; 2]> {
    check(x, target, weight)?;
    let is_each = kind(reduction)? == Reduction::None;
    let output = TensorSpec::beside(x, if is_each { target.shape() } else { &[] });
    Ok([output, TensorSpec::beside(x, &[])])
}

fn forward(
    cpu: Cpu,
    [output, total_weight]: [&Tensor; 2],
    (x, target, weight): (&Tensor, &Tensor, Option<&Tensor>),
    reduction: i64,
    ignore_index: i64,
) -> Result<()> {
    let weight = weight.map(|w| w.in_dtype(cpu, x.dtype())).transpose()?;
    loss::nll_loss(
        &mut output.view_mut(cpu),
        &mut total_weight.view_mut(cpu),
        x.view_ref(cpu),
        target.view_ref(cpu),
        weight.as_ref().map(|t| t.view_ref(cpu)),
        kind(reduction)?,
        ignore_index,
    )?;
    Ok(())
}

fn class_samples(s: &Sampler) -> Vec<Sample> {
    let sample =
        |x: &[i64], t: &[i64]| Sample::new([s.normal(x).into(), s.integers(t, 0, 3).into()]);
    vec![
        sample(&[4, 3], &[4]),
        sample(&[4, 3], &[4]).with("reduction", 0).with("ignore_index", 1),
        sample(&[4, 3], &[4]).with("reduction", 2).with("weight", s.positive(&[3])),
        sample(&[3], &[]),
        sample(&[4, 3], &[4]).with("weight", s.positive(&[3])),
        sample(&[2, 3, 2], &[2, 2]).with("weight", s.positive(&[3])),
        sample(&[2, 3, 2, 1, 2], &[2, 2, 1, 2]).with("reduction", 0),
        sample(&[0, 3], &[0]).with("reduction", 2),
    ]
}

fn core_samples(s: &Sampler) -> Vec<Sample> {
    let sample = |x: &[i64], t: &[i64], weight: Value, reduction: i64| {
        let call = Sample::new([s.normal(x).into(), s.integers(t, 0, 3).into(), weight]);
        call.with("reduction", reduction).with("ignore_index", -100)
    };
    let weight = || Value::Tensor(s.positive(&[3]).copied(DType::F32).expect("a small tensor"));
    vec![
        sample(&[4, 3], &[4], Value::None, 1),
        sample(&[4, 3], &[4], weight(), 1),
        sample(&[2, 3, 2], &[2, 2], weight(), 0),
        sample(&[4, 3], &[4], Value::None, 2),
    ]
}
