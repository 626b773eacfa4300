//! Optimiser steps over whole lists of parameters, one pass over each parameter's memory.
//!
//! These write into their lists and return nothing. They are steps, not functions of a graph: nothing is
//! recorded, and parameters that require grad are refused while recording is on.

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::{DType, Dims, Result, Scalar, Tensor, autograd};
use pullback_kernels::optim::{self as kernel, Adam, Sgd, State};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &FUSED_SGD,
    &FUSED_SGD_TENSOR_LR,
    &FUSED_ADAM,
    &FUSED_ADAM_TENSOR_LR,
    &FUSED_ADAMW,
    &FUSED_ADAMW_TENSOR_LR,
    &FOREACH_NORM,
];

/// Checks that a list goes with the parameters: same length, shapes and dtypes.
fn check_list(params: &[Tensor], list: &[Tensor], what: &str) -> Result<()> {
    ensure!(
        params.len() == list.len(),
        runtime,
        "Tensor lists must have the same number of tensors, got {} parameters and {} {what}",
        params.len(),
        list.len()
    );
    for (index, (param, other)) in params.iter().zip(list).enumerate() {
        ensure!(
            param.shape() == other.shape() && param.dtype() == other.dtype(),
            runtime,
            "params and {what} must have same dtype and shape, but tensor {index} is {} {:?} and {} {:?}",
            param.dtype().name(),
            param.shape(),
            other.dtype().name(),
            other.shape()
        );
    }
    Ok(())
}

fn number(tensor: Option<&Tensor>) -> Result<Option<f64>> {
    tensor.map(|t| Ok(t.item()?.to_f64())).transpose()
}

/// Runs `step` on each parameter with its gradient and buffers, and counts the writes.
fn each_param(
    params: &[Tensor],
    grads: &[Tensor],
    buffers: &[&[Tensor]],
    is_scaled: bool,
    step: impl Fn(usize, &mut State<'_, '_>) -> Result<()>,
) -> Result<()> {
    for (index, (param, grad)) in params.iter().zip(grads).enumerate() {
        let own: Vec<&Tensor> = buffers.iter().map(|list| &list[index]).collect();
        for written in own.iter().copied().chain([param]) {
            autograd::check_inplace(written, false)?;
        }
        let mut views: Vec<_> = own.iter().map(|t| t.view_mut()).collect();
        let mut state =
            State { param: &mut param.view_mut(), grad: &mut grad.view_mut(), buffers: &mut views };
        step(index, &mut state)?;
        own.iter().copied().chain([param]).for_each(Tensor::bump_version);
        if is_scaled {
            grad.bump_version();
        }
    }
    Ok(())
}

fn sgd(
    params: &[Tensor],
    grads: &[Tensor],
    buffers: &[Tensor],
    options: Sgd,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    if number(found_inf)? == Some(1.0) {
        return Ok(());
    }
    check_list(params, grads, "grads")?;
    let lists: &[&[Tensor]] = if options.momentum == 0.0 { &[] } else { &[buffers] };
    for list in lists {
        check_list(params, list, "momentum_buffer_list")?;
    }
    each_param(params, grads, lists, options.grad_scale.is_some(), |_, state| {
        Ok(kernel::sgd(state, &options)?)
    })
}

/// One step of stochastic gradient descent for every parameter:
/// `g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g; p -= lr * b`.
#[op("_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_sgd_)]
impl FusedSgd {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        momentum_buffer_list: &[Tensor],
        weight_decay: f64,
        momentum: f64,
        lr: f64,
        dampening: f64,
        nesterov: bool,
        maximize: bool,
        is_first_step: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let grad_scale = number(grad_scale)?;
        let options = Sgd {
            lr,
            momentum,
            dampening,
            weight_decay,
            nesterov,
            maximize,
            is_first_step,
            grad_scale,
        };
        sgd(self_, grads, momentum_buffer_list, options, found_inf)
    }
}

/// As `_fused_sgd_` with the learning rate in a tensor.
#[op("_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_sgd_tensor_lr_)]
impl FusedSgdTensorLr {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        momentum_buffer_list: &[Tensor],
        weight_decay: f64,
        momentum: f64,
        lr: &Tensor,
        dampening: f64,
        nesterov: bool,
        maximize: bool,
        is_first_step: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let lr = lr.item()?.to_f64();
        FusedSgd::composite(
            self_,
            grads,
            momentum_buffer_list,
            weight_decay,
            momentum,
            lr,
            dampening,
            nesterov,
            maximize,
            is_first_step,
            grad_scale,
            found_inf,
        )
    }
}

/// The lists of one Adam step.
struct Lists<'a> {
    params: &'a [Tensor],
    grads: &'a [Tensor],
    buffers: [&'a [Tensor]; 3],
    steps: &'a [Tensor],
}

fn adam(
    lists: &Lists<'_>,
    options: Adam,
    decoupled: bool,
    (grad_scale, found_inf): (Option<&Tensor>, Option<&Tensor>),
) -> Result<()> {
    if number(found_inf)? == Some(1.0) {
        return Ok(());
    }
    let buffers = &lists.buffers[..if options.amsgrad { 3 } else { 2 }];
    check_list(lists.params, lists.grads, "grads")?;
    for (list, name) in buffers.iter().zip(["exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"]) {
        check_list(lists.params, list, name)?;
    }
    if lists.steps.len() != lists.params.len() {
        bail!(
            runtime,
            "Tensor lists must have the same number of tensors, got {} parameters and {} state_steps",
            lists.params.len(),
            lists.steps.len()
        );
    }
    let options = Adam { grad_scale: number(grad_scale)?, ..options };
    each_param(lists.params, lists.grads, buffers, options.grad_scale.is_some(), |index, state| {
        let options = Adam { step: lists.steps[index].item()?.to_f64(), ..options };
        let step = if decoupled { kernel::adamw } else { kernel::adam };
        Ok(step(state, &options)?)
    })
}

/// One step of Adam for every parameter, the penalty added to the gradient:
/// `m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; p -= lr * m_hat / (sqrt(v_hat) + eps)`.
#[op("_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_adam_)]
impl FusedAdam {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        exp_avgs: &[Tensor],
        exp_avg_sqs: &[Tensor],
        max_exp_avg_sqs: &[Tensor],
        state_steps: &[Tensor],
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let lists = Lists {
            params: self_,
            grads,
            buffers: [exp_avgs, exp_avg_sqs, max_exp_avg_sqs],
            steps: state_steps,
        };
        let options = Adam {
            lr,
            beta1,
            beta2,
            weight_decay,
            eps,
            amsgrad,
            maximize,
            step: 0.0,
            grad_scale: None,
        };
        adam(&lists, options, false, (grad_scale, found_inf))
    }
}

/// As `_fused_adam_` with the learning rate in a tensor.
#[op("_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_adam_tensor_lr_)]
impl FusedAdamTensorLr {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        exp_avgs: &[Tensor],
        exp_avg_sqs: &[Tensor],
        max_exp_avg_sqs: &[Tensor],
        state_steps: &[Tensor],
        lr: &Tensor,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let lr = lr.item()?.to_f64();
        FusedAdam::composite(
            self_,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs,
            state_steps,
            lr,
            beta1,
            beta2,
            weight_decay,
            eps,
            amsgrad,
            maximize,
            grad_scale,
            found_inf,
        )
    }
}

/// One step of AdamW for every parameter: as `_fused_adam_`, but the penalty scales the parameter itself.
#[op("_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_adamw_)]
impl FusedAdamw {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        exp_avgs: &[Tensor],
        exp_avg_sqs: &[Tensor],
        max_exp_avg_sqs: &[Tensor],
        state_steps: &[Tensor],
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let lists = Lists {
            params: self_,
            grads,
            buffers: [exp_avgs, exp_avg_sqs, max_exp_avg_sqs],
            steps: state_steps,
        };
        let options = Adam {
            lr,
            beta1,
            beta2,
            weight_decay,
            eps,
            amsgrad,
            maximize,
            step: 0.0,
            grad_scale: None,
        };
        adam(&lists, options, true, (grad_scale, found_inf))
    }
}

/// As `_fused_adamw_` with the learning rate in a tensor.
#[op("_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, method = fused_adamw_tensor_lr_)]
impl FusedAdamwTensorLr {
    fn composite(
        self_: &[Tensor],
        grads: &[Tensor],
        exp_avgs: &[Tensor],
        exp_avg_sqs: &[Tensor],
        max_exp_avg_sqs: &[Tensor],
        state_steps: &[Tensor],
        lr: &Tensor,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Option<&Tensor>,
        found_inf: Option<&Tensor>,
    ) -> Result<()> {
        let lr = lr.item()?.to_f64();
        FusedAdamw::composite(
            self_,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs,
            state_steps,
            lr,
            beta1,
            beta2,
            weight_decay,
            eps,
            amsgrad,
            maximize,
            grad_scale,
            found_inf,
        )
    }
}

/// The `ord`-norm of every tensor of a list, each as a 0-dim tensor. Has no derivative.
#[op("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", method = foreach_norm)]
impl ForeachNorm {
    fn cpu(self_: &[Tensor], ord: Scalar, dtype: Option<DType>) -> Result<Vec<Tensor>> {
        let norm = |t: &Tensor| {
            let input = match dtype.filter(|d| *d != t.dtype()) {
                Some(dtype) => t.converted(dtype)?,
                None => t.clone(),
            };
            let out = Tensor::empty_of(&Dims::from_elem(1, t.ndim()), input.dtype().to_real())?;
            let dims: Vec<usize> = (0..t.ndim()).collect();
            reduce::norm(&mut out.view_mut(), input.view_ref(), &dims, ord.to_f64())?;
            out.alias_with(Dims::new(), Dims::new(), 0)
        };
        self_.iter().map(norm).collect()
    }
}
