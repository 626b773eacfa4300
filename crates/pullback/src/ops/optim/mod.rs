//! Optimiser steps over whole lists of parameters, one pass over each parameter's memory.
//!
//! These ops write into their lists and return nothing. They are steps, not functions of a graph: nothing is recorded,
//! and parameters that require grad are refused while recording is enabled. The formulas are in
//! `pullback_kernels::optim`, what all steps share is in `step`; a new optimiser is a further entry below.

mod sample;
mod step;

use crate::dispatch::{OpDef, Value};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::{Result, Tensor, TensorSpec};
use pullback_kernels::optim as kernel;
use pullback_macros::op;
use step::Rate;

/// Families of this folder.
pub(super) static FAMILIES: &[&[&OpDef]] = &[
    FUSED_SGD_ANY,
    FUSED_ADAMS,
    FUSED_ADAGRADS,
    FUSED_ADADELTA_ANY,
    FUSED_ADAMAX_ANY,
    FUSED_ASGD_ANY,
    FUSED_NADAM_ANY,
    FUSED_RADAM_ANY,
    FUSED_RMSPROP_ANY,
    OPS,
];

/// The op that is in no family.
static OPS: &[&OpDef] = &[&FUSED_RPROP];

/// Declares the ops of one optimiser, one for each row of `each`, which says how the learning rate is given.
///
/// `Rule { option: type, .. ; fixed: value, .. }`, then in square brackets the buffers that the rule names, in that
/// order, and the per-parameter scalars; `samples` are values of the options.
macro_rules! fused {
    ($(#[doc = $doc:tt])* $op:ident($schema:tt $(, $rate:ident: $rate_type:ty)?) $(each $rows:tt)* {
        $rule:ident { $($option:ident: $type:ty),* $(; $fixed:ident: $value:expr)? }
        [$($buffer:ident),*] [$($number:ident),*] by $run:path,
        $(refuses nothing as $name:expr, if $is_refused:expr,)?
        samples $([$($given:expr),*])+
    }) => {
        $(#[doc = $doc])*
        #[op($schema, function_only, not_differentiable $(, each $rows)*)]
        impl $op {
            fn meta(
                self_: &[Tensor],
                grads: &[Tensor],
                $($buffer: &[Tensor],)*
                $($number: &[Tensor],)*
                $($rate: $rate_type,)?
                $($option: $type,)*
                grad_scale: Option<&Tensor>,
                found_inf: Option<&Tensor>,
            ) -> Result<[TensorSpec; 0]> {
                let rule = kernel::$rule {
                    $($rate: Rate::stand_in($rate)?,)?
                    $($option,)*
                    $($fixed: $value,)?
                };
                let lists = step::Lists {
                    params: self_,
                    grads,
                    buffers: &[$((stringify!($buffer), $buffer)),*],
                    numbers: &[$((stringify!($number), $number)),*],
                };
                let name = None::<&str> $(.or($is_refused.then_some($name)))?;
                let has_rate = false $(|| Rate::is_tensor(&$rate))?;
                let has_tensor = has_rate || grad_scale.is_some() || found_inf.is_some();
                step::check_given(name, &lists, has_tensor)?;
                step::check(rule.into(), &lists, grad_scale, found_inf)?;
                Ok([])
            }
            fn cpu(
                cpu: Cpu,
                self_: &[Tensor],
                grads: &[Tensor],
                $($buffer: &[Tensor],)*
                $($number: &[Tensor],)*
                $($rate: $rate_type,)?
                $($option: $type,)*
                grad_scale: Option<&Tensor>,
                found_inf: Option<&Tensor>,
            ) -> Result<()> {
                let rule = kernel::$rule {
                    $($rate: $rate.get()?,)?
                    $($option,)*
                    $($fixed: $value,)?
                };
                let lists = step::Lists {
                    params: self_,
                    grads,
                    buffers: &[$((stringify!($buffer), $buffer)),*],
                    numbers: &[$((stringify!($number), $number)),*],
                };
                // (On the CPU no shapes are worked out before.)
                let name = None::<&str> $(.or($is_refused.then_some($name)))?;
                let has_rate = false $(|| Rate::is_tensor(&$rate))?;
                let has_tensor = has_rate || grad_scale.is_some() || found_inf.is_some();
                step::check_given(name, &lists, has_tensor)?;
                $run(cpu, rule, &lists, grad_scale, found_inf)
            }
            fn samples(s: &Sampler) -> Vec<Sample> {
                let options = [$(stringify!($option)),*];
                let lists: [&[&str]; 2] = [&[$(stringify!($buffer)),*], &[$(stringify!($number)),*]];
                let start = || {
                    sample::lists(s, lists.map(<[_]>::len))
                        $(.with(stringify!($rate), <$rate_type as Rate>::sample()))?
                };
                sample::scaled([$(sample::named(start(), options, [$(Value::from($given)),*])),+])
            }
            fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
                let buffers: &[&str] = &[$(stringify!($buffer)),*];
                sample::refused(s, &Self::samples(s), buffers.len())
            }
        }
    };
}

fused! {
    /// One step of stochastic gradient descent for every parameter:
    /// `g = grad + weight_decay * p; b = momentum * b + (1 - dampening) * g; p -= lr * b`.{NOTE}
    FusedSgdAny("_fused_sgd_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, {LR} lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedSgd { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedSgdTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Sgd { weight_decay: f64, momentum: f64, dampening: f64, nesterov: bool, maximize: bool, is_first_step: bool }
        [momentum_buffer_list] [] by step::run,
        refuses nothing as "_fused_sgd_", if true,
        samples [0.01, 0.0, 0.0, false, false, false]
            [0.01, 0.9, 0.5, false, true, false]
            [0.01, 0.9, 0.0, true, false, true]
    }
}

fused! {
    /// One step of Adam for every parameter, {PENALTY}:
    /// `m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; p -= lr * m_hat / (sqrt(v_hat) + eps)`.{STEPS}{NOTE}
    FusedAdams("_fused_adam{W}_{COUNT}{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor{SET}[] state_steps, *, {LR} lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedAdam { W: "", NAME: "_fused_adam_", DECOUPLED: false, PENALTY: "the penalty added to the gradient" },
         FusedAdamw { W: "w", NAME: "_fused_adamw_", DECOUPLED: true, PENALTY: "the penalty scales the parameter itself" })
    each(_ { COUNT: "", SET: "", IS_PYTORCHS: true, RUN: step::run, STEPS: "" },
         Counted { COUNT: "counted_", SET: "(f!)", IS_PYTORCHS: false, RUN: step::run_counted, STEPS: " The steps are counted in `state_steps`." })
    each(_ { FORM: "", LR: float, RATE: f64, NOTE: "" },
         TensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Adam { beta1: f64, beta2: f64, weight_decay: f64, eps: f64, amsgrad: bool, maximize: bool; decoupled_weight_decay: DECOUPLED }
        [exp_avgs, exp_avg_sqs, max_exp_avg_sqs] [state_steps] by RUN,
        refuses nothing as NAME, if IS_PYTORCHS,
        samples [0.9, 0.99, 0.0, 1e-8, false, false]
            [0.9, 0.99, 0.1, 1e-8, true, true]
    }
}

fused! {
    /// One step of Adagrad for every parameter:
    /// `s += g^2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)`.{STEPS}{NOTE}
    FusedAdagrads("_fused_adagrad_{COUNT}{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor{SET}[] state_steps, *, {LR} lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedAdagrad { COUNT: "", SET: "", IS_PYTORCHS: true, RUN: step::run, STEPS: "" },
         FusedAdagradCounted { COUNT: "counted_", SET: "(d!)", IS_PYTORCHS: false, RUN: step::run_counted, STEPS: " The steps are counted in `state_steps`." })
    each(_ { FORM: "", LR: float, RATE: f64, NOTE: "" },
         TensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Adagrad { lr_decay: f64, weight_decay: f64, eps: f64, maximize: bool }
        [state_sums] [state_steps] by RUN,
        refuses nothing as "_fused_adagrad_", if IS_PYTORCHS,
        samples [0.0, 0.0, 1e-10, false]
            [0.1, 0.01, 1e-3, true]
    }
}

fused! {
    /// One step of Adadelta for every parameter, which is counted in `state_steps`:
    /// `v = rho * v + (1 - rho) * g^2; d = sqrt(u + eps) / sqrt(v + eps) * g; u = rho * u + (1 - rho) * d^2; p -= lr * d`.{NOTE}
    FusedAdadeltaAny("_fused_adadelta_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] square_avgs, Tensor(d!)[] acc_deltas, Tensor(e!)[] state_steps, *, {LR} lr, float rho, float eps, float weight_decay, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedAdadelta { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedAdadeltaTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Adadelta { rho: f64, eps: f64, weight_decay: f64, maximize: bool }
        [square_avgs, acc_deltas] [state_steps] by step::run,
        samples [0.9, 1e-6, 0.0, false]
            [0.8, 1e-3, 0.1, true]
    }
}

fused! {
    /// One step of Adamax for every parameter, which is counted in `state_steps`:
    /// `m += (1 - beta1) * (g - m); u = max(beta2 * u, |g| + eps); p -= lr / (1 - beta1^t) * m / u`.{NOTE}
    FusedAdamaxAny("_fused_adamax_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_infs, Tensor(e!)[] state_steps, *, {LR} lr, float beta1, float beta2, float eps, float weight_decay, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedAdamax { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedAdamaxTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Adamax { beta1: f64, beta2: f64, eps: f64, weight_decay: f64, maximize: bool }
        [exp_avgs, exp_infs] [state_steps] by step::run,
        samples [0.9, 0.99, 1e-8, 0.0, false]
            [0.9, 0.99, 1e-3, 0.1, true]
    }
}

fused! {
    /// One step of averaged stochastic gradient descent for every parameter, which is counted in `state_steps`:
    /// `p = p * (1 - lambd * eta) - eta * g; a += mu * (p - a)`, then the next `eta` and `mu`.{NOTE}
    FusedAsgdAny("_fused_asgd_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] axs, Tensor(d!)[] state_steps, Tensor(e!)[] etas, Tensor(f!)[] mus, *, {LR} lr, float lambd, float alpha, float t0, float weight_decay, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedAsgd { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedAsgdTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        Asgd { lambd: f64, alpha: f64, t0: f64, weight_decay: f64, maximize: bool }
        [axs] [state_steps, etas, mus] by step::run,
        samples [1e-4, 0.75, 1e6, 0.0, false]
            [0.1, 0.75, 1.0, 0.1, true]
    }
}

fused! {
    /// One step of NAdam for every parameter, which is counted in `state_steps` and multiplies `mu_products` by its momentum:
    /// Adam with `mu_next * m / (1 - product of all mu, the next included) + (1 - mu) * g / (1 - product of all mu)` for `m_hat`.{NOTE}
    FusedNadamAny("_fused_nadam_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] state_steps, Tensor(f!)[] mu_products, *, {LR} lr, float beta1, float beta2, float eps, float weight_decay, float momentum_decay, bool decoupled_weight_decay, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedNadam { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedNadamTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        NAdam { beta1: f64, beta2: f64, eps: f64, weight_decay: f64, momentum_decay: f64, decoupled_weight_decay: bool, maximize: bool }
        [exp_avgs, exp_avg_sqs] [state_steps, mu_products] by step::run,
        samples [0.9, 0.99, 1e-8, 0.0, 0.004, false, false]
            [0.9, 0.99, 1e-3, 0.1, 0.01, true, true]
    }
}

fused! {
    /// One step of rectified Adam for every parameter, which is counted in `state_steps`: Adam's step, whose adaptive
    /// learning rate is rectified once its variance is tractable, and not used before.{NOTE}
    FusedRadamAny("_fused_radam_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] state_steps, *, {LR} lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled_weight_decay, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedRadam { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedRadamTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        RAdam { beta1: f64, beta2: f64, eps: f64, weight_decay: f64, decoupled_weight_decay: bool, maximize: bool }
        [exp_avgs, exp_avg_sqs] [state_steps] by step::run,
        samples [0.9, 0.99, 1e-8, 0.0, false, false]
            [0.9, 0.99, 1e-3, 0.1, true, true]
    }
}

fused! {
    /// One step of RMSprop for every parameter, which is counted in `state_steps`: `v = alpha * v + (1 - alpha) * g^2;
    /// b = momentum * b + g / (sqrt(v) + eps); p -= lr * b`; with `centered`, `v - mean(g)^2` takes the place of `v`.{NOTE}
    FusedRmspropAny("_fused_rmsprop_{FORM}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] square_avgs, Tensor(d!)[] grad_avgs, Tensor(e!)[] momentum_buffer_list, Tensor(f!)[] state_steps, *, {LR} lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()", lr: RATE)
    each(FusedRmsprop { FORM: "", LR: float, RATE: f64, NOTE: "" },
         FusedRmspropTensorLr { FORM: ".tensor_lr", LR: Tensor, RATE: &Tensor, NOTE: " The learning rate is in a tensor." }) {
        RmsProp { alpha: f64, eps: f64, weight_decay: f64, momentum: f64, centered: bool, maximize: bool }
        [square_avgs, grad_avgs, momentum_buffer_list] [state_steps] by step::run,
        samples [0.99, 1e-8, 0.0, 0.0, false, false]
            [0.9, 1e-3, 0.1, 0.9, false, true]
            [0.2, 1e-3, 0.1, 0.9, true, true]
    }
}

fused! {
    /// One step of resilient backpropagation for every parameter, which is counted in `state_steps`: step sizes grow where the
    /// gradient keeps its sign and shrink where it changes; `p -= size * sign(g)`.
    FusedRprop("_fused_rprop_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] prevs, Tensor(d!)[] step_sizes, Tensor(e!)[] state_steps, *, float step_size_min, float step_size_max, float etaminus, float etaplus, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()") {
        Rprop { step_size_min: f64, step_size_max: f64, etaminus: f64, etaplus: f64, maximize: bool }
        [prevs, step_sizes] [state_steps] by step::run,
        samples [1e-6, 50.0, 0.5, 1.2, false]
            [0.1, 0.2, 0.5, 1.2, true]
    }
}
