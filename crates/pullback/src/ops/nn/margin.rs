//! Margin losses: logistic for labels of 1 and -1, hinge for classes.
//!
//! `reduction` is 0 (none), 1 (mean) or 2 (sum), as in `loss`. The hinge losses of pairs and triplets are composed in
//! Python.

use super::loss::{each, loss_spec, reduced, write_loss};
use super::loss_class::kind;
use crate::dispatch::{OpDef, check_cast};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::min_max::lifted;
use crate::tensor::Cpu;
use crate::tensor::promote::default_dtype;
use crate::tensor::shape::{infer_shape, list};
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::elementwise;
use pullback_kernels::loss::{self, MarginLossOptions, Reduction};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&MULTI_MARGIN_LOSS_BACKWARD, &SOFT_MARGIN_LOSS, &MULTI_MARGIN_LOSS];

/// The logistic loss `ln(1 + e^(-target * self))` for a `target` of 1 and -1, reduced: 0 (none), 1 (mean) or 2 (sum).
#[op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    module = "nn",
    not_differentiable(target), autocast = fp32, batch = elementwise_loss
)]
impl SoftMarginLoss {
    fn meta(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<TensorSpec> {
        check_cast(default_dtype(), self_.dtype())?;
        loss_spec(&[self_, target], reduction)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        reduction: i64,
    ) -> Result<()> {
        write_loss(cpu, result, &[self_, target], reduction, elementwise::soft_margin)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
        // The derivative of ln(1 + e^z) is the sigmoid of z.
        let away = target.neg()?;
        each(grad, &[self_.shape(), target.shape()], reduction)?
            .mul(&away.mul(self_)?.sigmoid()?.mul(&away)?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        target_p: &Tensor,
        target_t: &Tensor,
        reduction: i64,
    ) -> Result<Tensor> {
        let away = target_p.mul(self_p)?.neg()?;
        let change = target_p.mul(self_t)?.add(&target_t.mul(self_p)?)?.neg()?;
        reduced(away.sigmoid()?.mul(&change)?, reduction)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let signs = |shape: &[i64]| s.away_from_zero(shape).sign().and_then(|t| t.detach());
        let sample = |x: &[i64], y: &[i64]| {
            let target = signs(y).expect("samples are small");
            Sample::new([s.normal(x).into(), target.into()])
        };
        vec![
            sample(&[2, 3], &[2, 3]),
            sample(&[2, 3], &[3]).with("reduction", 2),
            sample(&[2], &[2]).with("reduction", 0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sizes = Sample::new([s.normal(&[2]).into(), s.normal(&[3]).into()]);
        vec![InvalidSample::new(sizes, ErrorKind::Runtime, "must match the size of tensor b (3)")]
    }
}

/// A single row as a matrix.
fn as_rows(x: &Tensor) -> Result<Tensor> {
    x.reshape(&[-1, x.shape().last().copied().unwrap_or(1)])
}

/// The options of the kernel of `multi_margin_loss`.
fn parts(
    cpu: Cpu,
    p: Scalar,
    margin: Scalar,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> MarginLossOptions<'_> {
    let (margin, weight) = (margin.to_f64(), weight.map(|t| t.view_ref(cpu)));
    MarginLossOptions { margin, square: p.is(2.0), weight, reduction }
}

/// The classes as a column, and by how much each other class violates the margin: `max(0, margin - x[y] + x[j])`.
fn lacking(x: &Tensor, target: &Tensor, margin: Scalar) -> Result<(Tensor, Tensor)> {
    let (rows, index) = (as_rows(x)?, target.reshape(&[-1, 1])?);
    let lacking = rows.sub(&rows.gather(1, &index)?)?.plus(margin)?.clamp_min(Scalar::Int(0))?;
    let lacking = lacking.scatter_value(1, &index, Scalar::Int(0))?;
    Ok((index, lacking))
}

/// The weight of each row's class divided by the number of classes, as a column.
fn share(index: &Tensor, weight: Option<&Tensor>, columns: i64) -> Result<Option<Tensor>> {
    let Some(weight) = weight else { return Ok(None) };
    weight.index_select(0, &index.reshape(&[-1])?)?.over(columns)?.unsqueeze(1).map(Some)
}

/// The gradient of `multi_margin_loss` with respect to `self`.
#[op(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor",
    module = "nn",
    internal,
    function_only,
    not_differentiable
)]
impl MultiMarginLossBackward {
    fn meta(
        grad_output: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<TensorSpec> {
        let columns = self_.shape().last().copied().unwrap_or(1);
        check_weight(weight, columns)?;
        let rows = infer_shape(&[-1, columns], self_.numel())?[0];
        let losses = if kind(reduction)? == Reduction::None { rows } else { 1 };
        ensure!(
            grad_output.numel() == losses && target.numel() == rows,
            runtime,
            "multi_margin_loss_backward: expected {losses} gradients and {rows} classes, got {} and {}",
            grad_output.numel(),
            target.numel()
        );
        Ok(TensorSpec::like(self_))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        p: Scalar,
        margin: Scalar,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<()> {
        let (out, rows, classes) = (as_rows(result)?, as_rows(self_)?, target.reshape(&[-1])?);
        let weight = weight.map(|w| w.in_dtype(cpu, self_.dtype())).transpose()?;
        let weight = weight.as_ref().map(|w| w.reshape(&[-1])).transpose()?;
        loss::multi_margin_loss_backward(
            &mut out.view_mut(cpu),
            grad_output.view_ref(cpu),
            rows.view_ref(cpu),
            classes.view_ref(cpu),
            parts(cpu, p, margin, weight.as_ref(), kind(reduction)?),
        )?;
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduction: i64, grad: Tensor| {
            let classes = Tensor::from_slice(&[0_i64, 2], &[2]).expect("two numbers");
            let start = [grad.into(), s.distinct(&[2, 3]).into(), classes.into()];
            let sample = Sample::new(start).with("p", 1_i64).with("margin", 1.0);
            sample.with("weight", s.positive(&[3])).with("reduction", reduction).without_gradient()
        };
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![sample(0, s.normal(&[2])), sample(1, s.normal(&[])), sample(2, s.normal(&[]))]
    }
}

/// The multi-class hinge loss `sum_(j != y) weight[y] max(0, margin - self[y] + self[j])^p / C` for target class `y` of
/// `C` classes, reduced: 0 (none), 1 (mean) or 2 (sum). `p` is 1 or 2; for `p` = 1 the gradient at a kink is 0.
#[op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    module = "nn",
    not_differentiable(target, weight), autocast = fp32,
    batch = multi_margin_loss(self, target, weight, reduction)
)]
impl MultiMarginLoss {
    fn meta(
        self_: &Tensor,
        target: &Tensor,
        p: Scalar,
        margin: Scalar,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<TensorSpec> {
        check_rows(self_, target, weight)?;
        ensure!(p.is(1.0) || p.is(2.0), value, "only p == 1 and p == 2 supported");
        margin.check_fits(self_.dtype())?;
        let is_each = kind(reduction)? == Reduction::None;
        Ok(TensorSpec::beside(self_, if is_each { target.shape() } else { &[] }))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        p: Scalar,
        margin: Scalar,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<()> {
        let (rows, classes) = (as_rows(self_)?, target.reshape(&[-1])?);
        let weight = weight.map(|w| w.in_dtype(cpu, self_.dtype())).transpose()?;
        let weight = weight.as_ref().map(|w| w.reshape(&[-1])).transpose()?;
        loss::multi_margin_loss(
            &mut lifted(result)?.view_mut(cpu),
            rows.view_ref(cpu),
            classes.view_ref(cpu),
            parts(cpu, p, margin, weight.as_ref(), kind(reduction)?),
        )?;
        Ok(())
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        target: &Tensor,
        p: Scalar,
        margin: Scalar,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        if !crate::autograd::needs_ops_to_read([Some(grad), Some(self_), Some(target), weight]) {
            return grad.multi_margin_loss_backward(self_, target, p, margin, weight, reduction);
        }
        let (index, lacking) = lacking(self_, target, margin)?;
        let slope = if p.is(2.0) { lacking.times(2)? } else { lacking.sign()? };
        let (count, columns) = (slope.shape()[0], slope.shape()[1]);
        let grad = if reduction == 1 { grad.over(count)? } else { grad.clone() };
        let slope = slope.mul(&grad.reshape(&[-1, 1])?)?;
        let slope = match share(&index, weight, columns)? {
            Some(share) => slope.mul(&share)?,
            None => slope.over(columns)?,
        };
        // The gradient of the target class is minus the sum of those of the other classes.
        let pull = slope.sum_dim(Some(&[1]), true)?.neg()?;
        slope.scatter_add(1, &index, &pull)?.reshape(self_.shape())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let sample = |shape: &[i64], rows: &[i64]| {
            let classes = s.integers(rows, 0, shape[shape.len() - 1]);
            Sample::new([s.distinct(shape).into(), classes.into()])
        };
        let weight = s.positive(&[4]).detach().expect("samples are small");
        vec![
            sample(&[3, 4], &[3]).with("margin", Scalar::Float(0.37)),
            sample(&[3, 4], &[3]).with("p", Scalar::Int(2)).with("reduction", 2),
            sample(&[3, 4], &[3]).with("weight", weight).with("reduction", 0),
            sample(&[4], &[]).with("p", Scalar::Int(2)),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call =
            |rows: &[i64]| Sample::new([s.normal(&[3, 4]).into(), s.integers(rows, 0, 4).into()]);
        vec![
            InvalidSample::new(
                call(&[3]).with("p", Scalar::Int(3)),
                ErrorKind::Value,
                "only p == 1 and p == 2 supported",
            ),
            InvalidSample::new(
                call(&[2]),
                ErrorKind::Runtime,
                "target tensor should be 1-D with size equal to the number of input samples",
            ),
            InvalidSample::new(
                call(&[3]).with("weight", s.normal(&[3])),
                ErrorKind::Runtime,
                "inconsistent weight size, expected 4 but got [3]",
            ),
            InvalidSample::new(
                Sample::new([s.normal(&[2, 0]).into(), s.integers(&[2], 0, 4).into()]),
                ErrorKind::Runtime,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [2, 0]",
            ),
            InvalidSample::new(
                Sample::new([s.normal(&[2, 3]).into(), s.integers(&[2], 3, 4).into()]),
                ErrorKind::Runtime,
                "target out of range",
            ),
            InvalidSample::new(
                Sample::new([s.normal(&[2, 3]).into(), s.normal(&[2]).into()]),
                ErrorKind::Runtime,
                "expected scalar type Long but found Double",
            ),
        ]
    }
}

/// Refuses weights that are not one for each class.
fn check_weight(weight: Option<&Tensor>, classes: i64) -> Result<()> {
    let Some(weight) = weight else { return Ok(()) };
    ensure!(
        weight.ndim() <= 1 && weight.numel() == classes,
        runtime,
        "inconsistent weight size, expected {classes} but got {}",
        list(weight.shape())
    );
    Ok(())
}

fn check_rows(x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    ensure!(
        x.ndim() <= 2 && x.shape().last() != Some(&0),
        runtime,
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
        list(x.shape())
    );
    let rows = if x.ndim() == 2 { x.shape()[0] } else { 1 };
    ensure!(
        target.ndim() <= 1 && target.numel() == rows,
        runtime,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [{rows}], but got {}. Input has shape {}.",
        list(target.shape()),
        list(x.shape())
    );
    check_weight(weight, x.shape().last().copied().unwrap_or(1))?;
    if !x.dtype().is_floating_point() {
        let name = x.dtype().scalar_name();
        bail!(not_implemented, "\"multi_margin_loss_cpu_kernel\" not implemented for '{name}'");
    }
    ensure!(
        target.dtype() == DType::I64,
        runtime,
        "expected scalar type {} but found {}",
        DType::I64.scalar_name(),
        target.dtype().scalar_name()
    );
    Ok(())
}
