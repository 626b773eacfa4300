//! Optimiser steps over whole lists of parameters, one pass over each parameter's memory.
//!
//! These write into their lists and return nothing. They are steps, not functions of a graph: nothing is
//! recorded, and parameters that require grad are refused while recording is on.

use crate::dispatch::{OpDef, Value, check_separate, check_writable};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::check_real;
use crate::ops::linalg::vector_norm::norm_grad;
use crate::tensor::Writer;
use crate::tensor::shares_elements;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, autograd};
use pullback_kernels::optim::{self as kernel, AdamOptions, ParamTensors, SgdOptions};
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
            param.shape() == other.shape()
                && param.dtype() == other.dtype()
                && param.device() == other.device(),
            runtime,
            "params and {what} must have same dtype, device and shape, but tensor {index} is {} {:?} on {} and {} {:?} on {}",
            param.dtype().name(),
            param.shape(),
            param.device(),
            other.dtype().name(),
            other.shape(),
            other.device()
        );
    }
    Ok(())
}

fn number(tensor: Option<&Tensor>) -> Result<Option<f64>> {
    tensor.map(|t| Ok(t.item()?.to_f64())).transpose()
}

/// What a step does to its lists.
struct Written<'a> {
    params: &'a [Tensor],
    grads: &'a [Tensor],
    buffers: &'a [&'a [Tensor]],
    /// The gradients are divided by a scale and stored so.
    is_scaled: bool,
    /// The name of the kernel.
    kernel: &'static str,
}

impl Written<'_> {
    /// The tensors that are written for one parameter.
    fn of(&self, index: usize) -> Vec<&Tensor> {
        let mut written: Vec<_> = self.buffers.iter().map(|list| &list[index]).collect();
        written.push(&self.params[index]);
        written.extend(self.is_scaled.then(|| &self.grads[index]));
        written
    }

    /// Refuses, before anything is written, what could not be written.
    fn check(&self) -> Result<()> {
        for (index, param) in self.params.iter().enumerate() {
            ensure!(
                param.dtype().is_floating_point(),
                not_implemented,
                "\"{}\" not implemented for '{}'",
                self.kernel,
                param.dtype().scalar_name()
            );
            let written = self.of(index);
            for (place, target) in written.iter().enumerate() {
                autograd::check_inplace(target, false)?;
                check_writable(target)?;
                written[..place].iter().try_for_each(|other| check_separate(target, other))?;
            }
        }
        Ok(())
    }

    /// Runs `step` on each parameter with its gradient and buffers, and counts the writes.
    fn each(&self, step: impl Fn(usize, &mut ParamTensors<'_, '_>) -> Result<()>) -> Result<()> {
        for (index, (param, grad)) in self.params.iter().zip(self.grads).enumerate() {
            // A parameter may be its own gradient, but the kernel reads and writes apart.
            let apart = if !self.is_scaled && shares_elements(param, grad) {
                grad.dense_copy()?
            } else {
                grad.clone()
            };
            let mut views: Vec<_> =
                self.buffers.iter().map(|list| list[index].view_mut()).collect();
            let mut state = ParamTensors {
                param: &mut param.view_mut(),
                grad: &mut apart.view_mut(),
                buffers: &mut views,
            };
            step(index, &mut state)?;
            for written in self.of(index) {
                written.bump_version(Writer::Inplace(&"optimizer.step()"));
            }
        }
        Ok(())
    }
}

fn sgd(
    params: &[Tensor],
    grads: &[Tensor],
    buffers: &[Tensor],
    options: SgdOptions,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    check_list(params, grads, "grads")?;
    let lists: &[&[Tensor]] = if options.momentum == 0.0 { &[] } else { &[buffers] };
    for list in lists {
        check_list(params, list, "momentum_buffer_list")?;
    }
    let is_scaled = options.grad_scale.is_some();
    let written = Written { params, grads, buffers: lists, is_scaled, kernel: "fused_sgd_kernel" };
    written.check()?;
    if number(found_inf)? == Some(1.0) {
        return Ok(());
    }
    written.each(|_, state| Ok(kernel::sgd(state, &options)?))
}

/// One step of stochastic gradient descent for every parameter:
/// `g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g; p -= lr * b`.
#[op("_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_sgd_)]
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
        let options = SgdOptions {
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        sgd_samples(s, &LR.into())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_sgd(s, &LR.into())
    }
}

/// As `_fused_sgd_` with the learning rate in a tensor.
#[op("_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_sgd_tensor_lr_)]
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        sgd_samples(s, &lr_tensor())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_sgd(s, &lr_tensor())
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
    options: AdamOptions,
    decoupled: bool,
    (grad_scale, found_inf): (Option<&Tensor>, Option<&Tensor>),
) -> Result<()> {
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
    let options = AdamOptions { grad_scale: number(grad_scale)?, ..options };
    let steps: Vec<f64> =
        lists.steps.iter().map(|count| Ok(count.item()?.to_f64())).collect::<Result<_>>()?;
    let written = Written {
        params: lists.params,
        grads: lists.grads,
        buffers,
        is_scaled: options.grad_scale.is_some(),
        kernel: "fused_adam_kernel",
    };
    written.check()?;
    if number(found_inf)? == Some(1.0) {
        return Ok(());
    }
    written.each(|index, state| {
        let options = AdamOptions { step: steps[index], ..options };
        let step = if decoupled { kernel::adamw } else { kernel::adam };
        Ok(step(state, &options)?)
    })
}

/// One step of Adam for every parameter, the penalty added to the gradient:
/// `m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; p -= lr * m_hat / (sqrt(v_hat) + eps)`.
#[op("_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_adam_)]
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
        let options = AdamOptions {
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        adam_samples(s, &LR.into())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_adam(s, &LR.into())
    }
}

/// As `_fused_adam_` with the learning rate in a tensor.
#[op("_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_adam_tensor_lr_)]
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        adam_samples(s, &lr_tensor())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_adam(s, &lr_tensor())
    }
}

/// One step of AdamW for every parameter: as `_fused_adam_`, but the penalty scales the parameter itself.
#[op("_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_adamw_)]
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
        let options = AdamOptions {
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        adam_samples(s, &LR.into())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_adam(s, &LR.into())
    }
}

/// As `_fused_adamw_` with the learning rate in a tensor.
#[op("_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     function_only, whole, method = fused_adamw_tensor_lr_)]
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
    fn samples(s: &Sampler) -> Vec<Sample> {
        adam_samples(s, &lr_tensor())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_adam(s, &lr_tensor())
    }
}

/// The `ord`-norm of every tensor of a list, each as a 0-dim tensor; differentiable as `linalg_vector_norm`.
#[op("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", method = foreach_norm)]
impl ForeachNorm {
    fn cpu(self_: &[Tensor], ord: Scalar, dtype: Option<DType>) -> Result<Vec<Tensor>> {
        ensure!(!self_.is_empty(), runtime, "Tensor list must have at least one tensor.");
        check_real(&[ord])?;
        let norm = |t: &Tensor| {
            let has_no_norm = t.numel() == 0 && ord.is(f64::INFINITY);
            ensure!(
                !has_no_norm,
                runtime,
                "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
            );
            ensure!(
                t.dtype().is_floating_point() || t.dtype().is_complex(),
                not_implemented,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                t.dtype().scalar_name()
            );
            let input = match dtype.filter(|d| *d != t.dtype()) {
                Some(dtype) => t.converted(dtype)?,
                None => t.clone(),
            };
            let out = Tensor::empty_of(&Dims::from_elem(1, t.ndim()), input.dtype().to_real())?;
            let dims: Vec<usize> = (0..t.ndim()).collect();
            reduce::norm(&mut out.view_mut(), input.view_ref(), &dims, ord.to_f64())?;
            out.alias_with(&[], &[], 0)
        };
        self_.iter().map(norm).collect()
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_: &[Tensor],
        ord: Scalar,
        dtype: Option<DType>,
    ) -> Result<Vec<Option<Tensor>>> {
        // The norms themselves are cheap beside what keeping them as a list would ask for.
        let one = |(grad, x): (&Option<Tensor>, &Tensor)| {
            let back = |grad: &Tensor| {
                let norm = x.linalg_vector_norm_with(ord, None, false, dtype)?;
                norm_grad(grad, x, &norm, ord.to_f64(), None)
            };
            grad.as_ref().map(back).transpose()
        };
        grads.iter().zip(self_).map(one).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let list =
            || vec![s.away_from_zero(&[2, 3]), s.away_from_zero(&[]), s.away_from_zero(&[1])];
        let orders = [2.0, 1.0, 0.0, 3.0, -1.5, f64::INFINITY, f64::NEG_INFINITY];
        let sample = |&ord: &f64| Sample::new([list().into(), Scalar::Float(ord).into()]);
        let mut all: Vec<_> = orders.iter().map(sample).collect();
        all.push(Sample::new([vec![s.normal(&[0, 2]), s.normal(&[2])].into()]));
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let empty = vec![s.normal(&[0])];
        vec![
            InvalidSample::new(
                Sample::new([Value::Tensors(Vec::new())]),
                ErrorKind::Runtime,
                "Tensor list must have at least one tensor.",
            ),
            InvalidSample::new(
                Sample::new([empty.into(), Scalar::Float(f64::INFINITY).into()]),
                ErrorKind::Runtime,
                "infinity norm on an empty tensor",
            ),
            InvalidSample::new(
                Sample::new([vec![s.integers(&[2], 0, 3)].into()]),
                ErrorKind::NotImplemented,
                "Expected a floating point or complex tensor as input. Got Long",
            ),
        ]
    }
}

/// The learning rate of the samples.
const LR: f64 = 0.1;

fn lr_tensor() -> Value {
    number_tensor(LR)
}

fn number_tensor(value: f64) -> Value {
    Value::Tensor(Tensor::scalar_of(value, DType::F64).expect("samples are small"))
}

/// Parameters, or what goes with them: a matrix, a number, nothing.
fn sample_list(s: &Sampler) -> Value {
    vec![s.positive(&[2, 3]), s.positive(&[]), s.positive(&[0])].into()
}

fn sgd_samples(s: &Sampler, lr: &Value) -> Vec<Sample> {
    let step = |momentum: f64, buffers: Value, dampening: f64, flags: [bool; 3]| {
        Sample::new([sample_list(s), sample_list(s), buffers])
            .with("weight_decay", 0.01)
            .with("momentum", momentum)
            .with("lr", lr.clone())
            .with("dampening", dampening)
            .with("nesterov", flags[0])
            .with("maximize", flags[1])
            .with("is_first_step", flags[2])
            .without_gradient()
    };
    let plain = || step(0.0, Value::Tensors(Vec::new()), 0.0, [false, false, false]);
    vec![
        plain(),
        plain().with("grad_scale", number_tensor(4.0)).with("found_inf", number_tensor(0.0)),
        plain().with("grad_scale", number_tensor(4.0)).with("found_inf", number_tensor(1.0)),
        step(0.9, sample_list(s), 0.5, [false, true, false]),
        step(0.9, sample_list(s), 0.0, [true, false, true]),
    ]
}

fn adam_samples(s: &Sampler, lr: &Value) -> Vec<Sample> {
    let step = |largest: Value, amsgrad: bool, maximize: bool, weight_decay: f64| {
        let steps = Value::Tensors([1.0_f32, 2.0, 7.0].map(sample_step).into());
        let [params, grads, avgs, squares] = [(); 4].map(|()| sample_list(s));
        Sample::new([params, grads, avgs, squares, largest, steps])
            .with("lr", lr.clone())
            .with("beta1", 0.9)
            .with("beta2", 0.99)
            .with("weight_decay", weight_decay)
            .with("eps", 1e-8)
            .with("amsgrad", amsgrad)
            .with("maximize", maximize)
            .without_gradient()
    };
    let plain = || step(Value::Tensors(Vec::new()), false, false, 0.0);
    vec![
        plain(),
        plain().with("grad_scale", number_tensor(4.0)).with("found_inf", number_tensor(0.0)),
        plain().with("grad_scale", number_tensor(4.0)).with("found_inf", number_tensor(1.0)),
        step(sample_list(s), true, true, 0.1),
    ]
}

fn sample_step(count: f32) -> Tensor {
    Tensor::scalar_of(f64::from(count), DType::F32).expect("samples are small")
}

/// The last sample with `lists` in place of its own must fail.
fn refused(
    samples: &[Sample],
    lists: &[(usize, Vec<Tensor>)],
    kind: ErrorKind,
    phrase: &'static str,
) -> InvalidSample {
    let mut sample = samples[samples.len() - 1].clone();
    for (index, list) in lists {
        sample.args[*index] = Value::Tensors(list.clone());
    }
    InvalidSample::new(sample, kind, phrase)
}

fn refused_sgd(s: &Sampler, lr: &Value) -> Vec<InvalidSample> {
    let samples = sgd_samples(s, lr);
    let whole = |index: usize| (index, vec![s.integers(&[2], 0, 3)]);
    vec![
        refused(&samples, &[(2, Vec::new())], ErrorKind::Runtime, "same number of tensors"),
        refused(&samples, &[(1, vec![s.normal(&[2])])], ErrorKind::Runtime, "same number"),
        refused(
            &samples,
            &[(0, vec![s.normal(&[2])]), (1, vec![s.normal(&[3])])],
            ErrorKind::Runtime,
            "must have same dtype, device and shape",
        ),
        refused(
            &samples,
            &[whole(0), whole(1), whole(2)],
            ErrorKind::NotImplemented,
            "\"fused_sgd_kernel\" not implemented for 'Long'",
        ),
    ]
}

fn refused_adam(s: &Sampler, lr: &Value) -> Vec<InvalidSample> {
    let samples = adam_samples(s, lr);
    let whole = |index: usize| (index, vec![s.integers(&[2], 0, 3)]);
    vec![
        refused(&samples, &[(5, Vec::new())], ErrorKind::Runtime, "and 0 state_steps"),
        refused(&samples, &[(4, Vec::new())], ErrorKind::Runtime, "and 0 max_exp_avg_sqs"),
        refused(&samples, &[(2, Vec::new())], ErrorKind::Runtime, "and 0 exp_avgs"),
        refused(
            &samples,
            &[whole(0), whole(1), whole(2), whole(3), whole(4), (5, vec![sample_step(1.0)])],
            ErrorKind::NotImplemented,
            "\"fused_adam_kernel\" not implemented for 'Long'",
        ),
    ]
}
