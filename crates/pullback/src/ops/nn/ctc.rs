//! Connectionist temporal classification: the loss of sequences whose alignment with their input is unknown.
//!
//! `_ctc_loss` and its gradient are one kernel each. As in PyTorch, the gradient is that for normalised
//! log-probabilities (its step through `log_softmax` is exact); what PyTorch lacks, its derivative, is in `ctc_curvature`.

use super::ctc_curvature::{LabelStates, curvature};
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::loss::{self as kernel, CtcOptions};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&CTC_LOSS, &CTC_LOSS_TENSOR, &CTC_LOSS_FORWARD, &CTC_LOSS_BACKWARD];

/// The connectionist temporal classification loss (Graves et al. 2006), `-ln P(targets)` of each example by
/// log-probabilities (T, N, C) or (T, C), reduced: 0 (none), 1 (the mean of the losses, each divided by its number of
/// labels) or 2 (the sum).
///
/// `targets` are (N, S), or all labels concatenated; `blank` is the class that separates labels. The loss of a target
/// that no alignment fits is infinite, or 0 without a gradient with `zero_infinity`.
#[op("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     function_only, method = ctc_loss, not_differentiable(targets), autocast = fp32)]
impl CtcLoss {
    fn composite(
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        blank: i64,
        reduction: i64,
        zero_infinity: bool,
    ) -> Result<Tensor> {
        let is_batched = log_probs.ndim() == 3;
        let steps = if is_batched { log_probs.clone() } else { log_probs.unsqueeze(1)? };
        let labels = if is_batched { targets.clone() } else { targets.unsqueeze(0)? };
        let [mut loss, _] =
            steps.ctc_loss_forward(&labels, input_lengths, target_lengths, blank, zero_infinity)?;
        if zero_infinity {
            let is_infinite = loss.eq(&Tensor::wrapped(f64::INFINITY)?)?;
            loss = loss.masked_fill(&is_infinite, Scalar::Int(0))?;
        }
        match reduction {
            1 => {
                let counts: Vec<i64> = target_lengths.iter().map(|&n| n.max(1)).collect(); // bounded: by an argument.
                let counts = Tensor::from_slice(&counts, &[counts.len() as i64])?;
                loss.div(&counts.to_dtype(loss.dtype())?.brought_to(&loss)?)?.mean()
            }
            2 => loss.sum(),
            _ if is_batched => Ok(loss),
            _ => loss.squeeze_dim(0),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call =
            |reduction: i64| calls(s)[0].clone().without_gradient().with("reduction", reduction);
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let single = Sample::new([s.normal(&[4, 3]).into(), s.integers(&[2], 1, 3).into()]);
        let single = single.with("input_lengths", [4]).with("target_lengths", [2]);
        vec![call(0), call(1), call(2).with("zero_infinity", true), single.without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid_calls(s)
    }
}

/// The connectionist temporal classification loss, `-ln P(targets)` of each example by log-probabilities (T, N, C) or
/// (T, C), reduced, with the lengths of inputs and targets in tensors of integers.
#[op("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     function_only, method = ctc_loss_tensor, not_differentiable(targets, input_lengths, target_lengths), autocast = fp32)]
impl CtcLossTensor {
    fn composite(
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &Tensor,
        target_lengths: &Tensor,
        blank: i64,
        reduction: i64,
        zero_infinity: bool,
    ) -> Result<Tensor> {
        let lengths = |name: &str, t: &Tensor| {
            ensure!(t.dtype().is_integral(false), runtime, "{name} must be integral");
            t.reshape(&[-1])?.to_dtype(DType::I64)?.to_vec::<i64>()
        };
        let inputs = lengths("input_lengths", input_lengths)?;
        let labels = lengths("target_lengths", target_lengths)?;
        log_probs.ctc_loss(targets, &inputs, &labels, blank, reduction, zero_infinity)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let lengths =
            |values: [i64; 2]| Tensor::from_slice(&values, &[2]).expect("samples are small");
        let start = [s.normal(&[5, 2, 3]).into(), s.integers(&[2, 2], 1, 3).into()];
        let sample = Sample::new(start).with("input_lengths", lengths([5, 4]));
        vec![sample.with("target_lengths", lengths([2, 1])).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[5, 2, 3]).into(), s.integers(&[2, 2], 1, 3).into()];
        let sample = Sample::new(start).with("input_lengths", s.normal(&[2]));
        let sample = sample.with("target_lengths", s.integers(&[2], 1, 2));
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "input_lengths must be integral")]
    }
}

fn at_most(name: &str, lengths: &[i64], most: i64) -> Result<()> {
    const WHERE: &str = "(while checking arguments for ctc_loss_allocate_outputs)";
    if let Some(bad) = lengths.iter().find(|&&n| n < 0) {
        bail!(runtime, "Expected {name} to have value at least 0, but got value {bad} {WHERE}");
    }
    if let Some(bad) = lengths.iter().find(|&&n| n > most) {
        bail!(runtime, "Expected {name} to have value at most {most}, but got value {bad} {WHERE}");
    }
    Ok(())
}

/// Refuses arguments that the losses do not take; returns T, N and the number of states of the longest sequence.
fn check(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
) -> Result<[i64; 3]> {
    const WHERE: &str = "(while checking arguments for ctc_loss_allocate_outputs)";
    ensure!(
        log_probs.ndim() == 3,
        runtime,
        "Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 'log_probs' {WHERE}",
        log_probs.ndim()
    );
    ensure!(log_probs.numel() > 0, runtime, "log_probs tensor must not be empty");
    ensure!(
        matches!(targets.ndim(), 1 | 2),
        runtime,
        "Expected 1 to 2 dimensions, but got {}-dimensional tensor for argument #2 'targets' {WHERE}",
        targets.ndim()
    );
    let [steps, count, classes] =
        [log_probs.shape()[0], log_probs.shape()[1], log_probs.shape()[2]];
    ensure!((0..classes).contains(&blank), runtime, "blank must be in label range");
    for (name, lengths) in [("input_lengths", input_lengths), ("target_lengths", target_lengths)] {
        ensure!(
            lengths.len() as i64 == count,
            runtime,
            "{name} must be of size batch_size: {count}, but got {}",
            lengths.len()
        );
    }
    at_most("input_lengths", input_lengths, steps)?;
    at_most("target_lengths", target_lengths, i64::MAX / 4)?;
    let longest = target_lengths.iter().copied().max().unwrap_or(0);
    let size = |dim: usize, is_exact: bool, wanted: i64| {
        let size = targets.shape()[dim];
        let holds = if is_exact { size == wanted } else { size >= wanted };
        let least = if is_exact { "" } else { "at least " };
        ensure!(
            holds,
            runtime,
            "Expected tensor to have size {least}{wanted} at dimension {dim}, but got size {size} for argument #2 'targets' {WHERE}"
        );
        Ok(())
    };
    if targets.ndim() == 2 {
        size(0, true, count)?;
        size(1, false, longest)?;
    } else {
        size(0, true, target_lengths.iter().fold(0_i64, |sum, &n| sum.saturating_add(n)))?;
    }
    ensure!(
        matches!(log_probs.dtype(), DType::F32 | DType::F64),
        not_implemented,
        "\"ctc_loss_cpu\" not implemented for '{}'",
        log_probs.dtype().scalar_name()
    );
    Ok([steps, count, 2 * longest + 1])
}

/// The connectionist temporal classification losses (N) of log-probabilities (T, N, C), and, for the gradient, the
/// logarithms of the forward variables (N, T, 2 S + 1).
#[op("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
     function_only, node = "CtcLoss", method = ctc_loss_forward, not_differentiable(targets), batch = ctc_loss(log_probs, targets))]
impl CtcLossForward {
    fn meta(
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        blank: i64,
    ) -> Result<[TensorSpec; 2]> {
        let [steps, count, states] =
            check(log_probs, targets, input_lengths, target_lengths, blank)?;
        Ok([
            TensorSpec::beside(log_probs, &[count]),
            TensorSpec::beside(log_probs, &[count, steps, states]),
        ])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        blank: i64,
    ) -> Result<()> {
        let options = CtcOptions { input_lengths, target_lengths, blank: blank as usize };
        let (mut loss, mut alpha) = (result0.view_mut(cpu), result1.view_mut(cpu));
        let given = (log_probs.view_ref(cpu), targets.view_ref(cpu));
        Ok(kernel::ctc_loss(&mut loss, &mut alpha, given.0, given.1, options)?)
    }
    fn vjp_log_probs(
        grad: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        args: &CtcLossForwardArgs<'_>,
        result0: &Tensor,
        result1: &Tensor,
    ) -> Result<Tensor> {
        // (How the losses follow the log-probabilities is part of that op's own derivative.)
        grad.ctc_loss_backward(
            log_probs,
            targets,
            args.input_lengths,
            args.target_lengths,
            &result0.detach()?,
            &result1.detach()?,
            args.blank,
            args.zero_infinity,
        )
    }
    fn jvp(
        log_probs_p: &Tensor,
        log_probs_t: &Tensor,
        targets_p: &Tensor,
        args: &CtcLossForwardArgs<'_>,
        result0: &Tensor,
        result1: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let slope = result0.ones_like()?.ctc_loss_backward(
            log_probs_p,
            targets_p,
            args.input_lengths,
            args.target_lengths,
            &result0.detach()?,
            &result1.detach()?,
            args.blank,
            args.zero_infinity,
        )?;
        Ok([Some(slope.mul(log_probs_t)?.sum_dim(Some(&[0, 2]), false)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        // (The gradient holds for normalised log-probabilities only, which numerical differences leave: the tests of
        // the kernel check it.)
        calls(s).into_iter().map(Sample::without_gradient).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        invalid_calls(s)
    }
}

/// The gradient of `_ctc_loss` with respect to the log-probabilities `p`: `(e^p - q) grad` with the probabilities `q` to be in a
/// class at a step. Its derivatives are those with respect to `grad` and `p`; what was computed from `p`, the losses
/// `neg_log_likelihood` and `log_alpha`, follows it.
#[op("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
     internal, function_only, method = ctc_loss_backward, not_differentiable(targets, neg_log_likelihood, log_alpha), batch = ctc_loss_backward(log_probs, targets))]
impl CtcLossBackward {
    fn meta(
        grad: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        neg_log_likelihood: &Tensor,
        log_alpha: &Tensor,
        blank: i64,
    ) -> Result<TensorSpec> {
        let [steps, count, states] =
            check(log_probs, targets, input_lengths, target_lengths, blank)?;
        let fits = grad.shape() == [count]
            && neg_log_likelihood.shape() == [count]
            && log_alpha.shape() == [count, steps, states];
        ensure!(
            fits,
            runtime,
            "_ctc_loss_backward: expected the losses of {count} examples and their {states} states, but got {}, {} and {}",
            list(grad.shape()),
            list(neg_log_likelihood.shape()),
            list(log_alpha.shape())
        );
        Ok(TensorSpec::like(log_probs))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        neg_log_likelihood: &Tensor,
        log_alpha: &Tensor,
        blank: i64,
        zero_infinity: bool,
    ) -> Result<()> {
        let options = CtcOptions { input_lengths, target_lengths, blank: blank as usize };
        let given = (log_probs.view_ref(cpu), targets.view_ref(cpu), options);
        let computed = (neg_log_likelihood.view_ref(cpu), log_alpha.view_ref(cpu));
        let (mut out, grad) = (result.view_mut(cpu), grad.view_ref(cpu));
        Ok(kernel::ctc_loss_backward(&mut out, grad, given, computed, zero_infinity)?)
    }
    fn vjp_grad(
        grad_result: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        neg_log_likelihood: &Tensor,
        log_alpha: &Tensor,
        args: &CtcLossBackwardArgs<'_>,
    ) -> Result<Tensor> {
        let one = neg_log_likelihood.ones_like()?;
        let slope = one.ctc_loss_backward(
            log_probs,
            targets,
            args.input_lengths,
            args.target_lengths,
            neg_log_likelihood,
            log_alpha,
            args.blank,
            args.zero_infinity,
        )?;
        slope.mul(grad_result)?.sum_dim(Some(&[0, 2]), false)
    }
    fn vjp_log_probs(
        grad_result: &Tensor,
        grad_p: &Tensor,
        log_probs: &Tensor,
        targets: &Tensor,
        neg_log_likelihood: &Tensor,
        args: &CtcLossBackwardArgs<'_>,
    ) -> Result<Tensor> {
        bent(grad_result, grad_p, log_probs, targets, neg_log_likelihood, args)
    }
    fn jvp(
        grad_p: &Tensor,
        grad_t: Option<&Tensor>,
        log_probs_p: &Tensor,
        log_probs_t: Option<&Tensor>,
        targets_p: &Tensor,
        neg_log_likelihood_p: &Tensor,
        log_alpha_p: &Tensor,
        args: &CtcLossBackwardArgs<'_>,
    ) -> Result<Option<Tensor>> {
        let of_grad = grad_t.map(|grad| {
            grad.ctc_loss_backward(
                log_probs_p,
                targets_p,
                args.input_lengths,
                args.target_lengths,
                neg_log_likelihood_p,
                log_alpha_p,
                args.blank,
                args.zero_infinity,
            )
        });
        let of_probs = log_probs_t.map(|direction| {
            bent(direction, grad_p, log_probs_p, targets_p, neg_log_likelihood_p, args)
        });
        Ok(match (of_grad.transpose()?, of_probs.transpose()?) {
            (Some(a), Some(b)) => Some(a.add(&b)?),
            (a, b) => a.or(b),
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let start =
            [s.normal(&[2]).into(), s.normal(&[3, 2, 3]).into(), s.integers(&[2, 1], 1, 3).into()];
        let sample =
            Sample::new(start).with("input_lengths", [3, 2]).with("target_lengths", [1, 0]);
        let sample = sample.with("neg_log_likelihood", s.positive(&[2])).with("blank", 0);
        vec![sample.with("log_alpha", s.normal(&[2, 3, 3])).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start =
            [s.normal(&[3]).into(), s.normal(&[3, 2, 3]).into(), s.integers(&[2, 1], 1, 3).into()];
        let sample =
            Sample::new(start).with("input_lengths", [3, 2]).with("target_lengths", [1, 0]);
        let sample = sample.with("neg_log_likelihood", s.positive(&[2])).with("blank", 0);
        let sample = sample.with("log_alpha", s.normal(&[2, 3, 3]));
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "expected the losses of 2 examples")]
    }
}

/// The product of the symmetric derivative of `(e^p - q) grad` with respect to `p` and `direction` (T, N, C).
fn bent(
    direction: &Tensor,
    grad: &Tensor,
    log_probs: &Tensor,
    targets: &Tensor,
    losses: &Tensor,
    args: &CtcLossBackwardArgs<'_>,
) -> Result<Tensor> {
    let steps = log_probs.shape()[0];
    let lengths = Tensor::from_slice(args.input_lengths, &[1, losses.shape()[0], 1])?;
    let places = Tensor::options().device(log_probs.device()).arange(0_i64, steps)?;
    let is_past = places.view(&[-1, 1, 1])?.ge(&lengths.brought_to(log_probs)?)?;
    let direction = direction.masked_fill(&is_past, Scalar::Int(0))?;
    let states = LabelStates::new(targets, args.input_lengths, args.target_lengths, args.blank)?;
    let change =
        log_probs.exp()?.mul(&direction)?.sub(&curvature(log_probs, &direction, &states)?)?;
    // Where no alignment fits there is no derivative, unless it was to be left out.
    let is_infinite = losses.eq(&Tensor::wrapped(f64::INFINITY)?)?.unsqueeze(0)?.unsqueeze(-1)?;
    let beyond = if args.zero_infinity { 0.0 } else { f64::NAN };
    let change = change.mul(&grad.unsqueeze(0)?.unsqueeze(-1)?)?;
    let change = change.masked_fill(&is_infinite, Scalar::Float(beyond))?;
    change.masked_fill(&is_past, Scalar::Int(0))
}

fn calls(s: &Sampler) -> Vec<Sample> {
    let call = |shape: [i64; 3], targets: Tensor, inputs: &[i64], labels: &[i64]| {
        Sample::new([s.normal(&shape).into(), targets.into()])
            .with("input_lengths", inputs)
            .with("target_lengths", labels)
    };
    vec![
        call([5, 2, 4], s.integers(&[2, 3], 1, 4), &[5, 4], &[2, 1]),
        call([4, 1, 3], s.integers(&[1, 2], 0, 2), &[4], &[2]).with("blank", 2),
        call([3, 2, 3], s.integers(&[2, 2], 1, 3), &[3, 0], &[0, 0]),
        call([2, 2, 3], s.integers(&[2, 3], 1, 3), &[2, 1], &[3, 1]).with("zero_infinity", true),
    ]
}

fn invalid_calls(s: &Sampler) -> Vec<InvalidSample> {
    let call = |shape: &[i64], targets: &[i64], inputs: &[i64], labels: &[i64]| {
        Sample::new([s.normal(shape).into(), s.integers(targets, 1, 3).into()])
            .with("input_lengths", inputs)
            .with("target_lengths", labels)
    };
    let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
    let plain = || call(&[5, 2, 4], &[2, 3], &[5, 4], &[2, 1]);
    let far = Sample::new([s.normal(&[5, 2, 4]).into(), s.integers(&[2, 3], 4, 5).into()]);
    let far = far.with("input_lengths", [5, 4]).with("target_lengths", [2, 1]);
    vec![
        bad(plain().with("blank", 4), "blank must be in label range"),
        bad(plain().with("blank", -1), "blank must be in label range"),
        bad(
            call(&[5, 2, 4], &[2, 3], &[6, 4], &[2, 1]),
            "to have value at most 5, but got value 6",
        ),
        bad(
            call(&[5, 2, 4], &[2, 3], &[-1, 4], &[2, 1]),
            "to have value at least 0, but got value -1",
        ),
        bad(
            call(&[5, 2, 4], &[2, 3], &[5, 4], &[-2, 1]),
            "to have value at least 0, but got value -2",
        ),
        bad(call(&[5, 2, 4], &[2, 3], &[5, 4], &[4, 1]), "to have size at least 4 at dimension 1"),
        bad(call(&[5, 2, 4], &[2, 3], &[5], &[2, 1]), "input_lengths must be of size batch_size"),
        bad(call(&[5, 2, 4], &[1, 3], &[5, 4], &[2, 1]), "to have size 2 at dimension 0"),
        bad(
            call(&[5, 2, 4], &[4], &[5, 4], &[2, 1]),
            "to have size 3 at dimension 0, but got size 4",
        ),
        bad(call(&[5, 2, 0], &[2, 3], &[5, 4], &[2, 1]), "log_probs tensor must not be empty"),
        InvalidSample::new(far, ErrorKind::Index, "target 4 is out of bounds for 4 classes"),
    ]
}
