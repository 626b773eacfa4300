//! Batch norm under the names whose signatures say which arguments are written: with running statistics, or without.
//!
//! All are `_native_batch_norm` (`norm`); the statistics of the batch are detached, and in the input's dtype unless a
//! parameter has another.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::nn::norm::with_returned_statistics;
use crate::tensor::TensorSpec;
use crate::{DType, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&NATIVE_BATCH_NORM_LEGIT, &NATIVE_BATCH_NORM_LEGIT_NO_STATS, &BATCH_NORM_WITH_UPDATE];

/// `native_batch_norm` that updates `running_mean` and `running_var` in training.
#[op("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     function_only, out, not_differentiable(running_mean, running_var), method = native_batch_norm_legit)]
impl NativeBatchNormLegit {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: &Tensor,
        running_var: &Tensor,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        let running = [Some(running_mean), Some(running_var)];
        kernel(input, [weight, bias], running, training, momentum, eps)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, true).with("training", true), call(s, true).with("training", false)]
    }
}

/// `native_batch_norm` without running statistics, which therefore normalises by the statistics of the batch.
///
/// # Errors
/// `ValueError` outside training.
#[op("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     function_only, out, method = native_batch_norm_legit_no_stats)]
impl NativeBatchNormLegitNoStats {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        ensure!(training, value, "running_mean must be defined in evaluation mode");
        kernel(input, [weight, bias], [None, None], training, momentum, eps)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, false).with("training", true)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = call(s, false).with("training", false);
        let phrase = "running_mean must be defined in evaluation mode";
        vec![InvalidSample::new(sample, ErrorKind::Value, phrase)]
    }
}

/// Batch normalisation in training: the output, the mean and `1 / sqrt(var + eps)` of the batch, and a reserve that is
/// empty here. `running_mean` and `running_var` move by `momentum`.
#[op("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     function_only, internal, out, not_differentiable(running_mean, running_var), method = batch_norm_with_update)]
impl BatchNormWithUpdate {
    fn composite(
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: &Tensor,
        running_var: &Tensor,
        momentum: f64,
        eps: f64,
    ) -> Result<[Tensor; 4]> {
        // (This is allocated first, so that nothing fails after the statistics were updated.)
        let reserve = TensorSpec::of(&[0], DType::U8).on(input.device()).zeros()?;
        let running = [Some(running_mean), Some(running_var)];
        let [out, mean, rstd] = kernel(input, [weight, bias], running, true, momentum, eps)?;
        Ok([out, mean, rstd, reserve])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![call(s, true)]
    }
}

fn kernel(
    input: &Tensor,
    [weight, bias]: [Option<&Tensor>; 2],
    [running_mean, running_var]: [Option<&Tensor>; 2],
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let results = input.batch_norm_kernel(
        weight,
        bias,
        running_mean,
        running_var,
        training,
        momentum,
        eps,
    )?;
    with_returned_statistics(input, results, &[weight, bias, running_mean, running_var])
}

/// A call with three channels, with running statistics or without.
fn call(s: &Sampler, has_stats: bool) -> Sample {
    let start: [Value; 3] =
        [s.normal(&[3, 2, 2]).into(), s.normal(&[2]).into(), s.normal(&[2]).into()];
    let call = Sample::new(start).with("momentum", 0.1).with("eps", 1e-3);
    // (The returned statistics have no gradient, but numerical differences would give one.)
    let call = call.without_gradient();
    if !has_stats {
        return call;
    }
    call.with("running_mean", s.normal(&[2])).with("running_var", s.positive(&[2]))
}
