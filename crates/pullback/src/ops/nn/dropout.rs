//! Dropout: elements, or whole channels, set to zero at random in training.
//!
//! One Bernoulli mask per call, drawn from the default generator in the memory order of the mask; the rest are
//! products. Not here: the random draws themselves (`random`). Invariant: outside training, with p of 0 or 1 and for
//! empty inputs nothing is drawn.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::ternary::walk_as_is;
use crate::ops::random::fill::{bernoulli_with, check_probability};
use crate::tensor::Cpu;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &DROPOUT,
    &DROPOUT_INPLACE,
    &FEATURE_DROPOUT,
    &FEATURE_DROPOUT_INPLACE,
    &ALPHA_DROPOUT,
    &ALPHA_DROPOUT_INPLACE,
    &FEATURE_ALPHA_DROPOUT,
    &FEATURE_ALPHA_DROPOUT_INPLACE,
    &NATIVE_DROPOUT,
    &NATIVE_DROPOUT_BACKWARD,
];

/// Dropout: in training each element becomes 0 with probability `p`, else `input / (1 - p)` (Srivastava et al. 2014).
/// Otherwise, and for `p` = 0, the result is the input itself. Any shape; one random draw per element.
#[op("dropout(Tensor input, float p, bool train) -> Tensor", random, function_only)]
impl Dropout {
    fn composite(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: false, alpha: false }.applied(input, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        certain_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        improbable_samples(s)
    }
}

/// Dropout in place: in training each element of `self` becomes 0 with probability `p`, else `self / (1 - p)`.
#[op("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", random, function_only, method = dropout_)]
impl DropoutInplace {
    fn composite(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: false, alpha: false }.written(self_, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        identity_samples(s)
    }
}

/// Dropout of whole channels: in training each channel `(n, c)` of an input (N, C, ...) becomes 0 with probability `p`,
/// else `input / (1 - p)` (Tompson et al. 2015).
#[op("feature_dropout(Tensor input, float p, bool train) -> Tensor", random, function_only)]
impl FeatureDropout {
    fn composite(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: true, alpha: false }.applied(input, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        certain_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let mut all = improbable_samples(s);
        let flat = Sample::of(s.normal(&[3])).with("p", 0.5).with("train", true);
        let phrase = "Feature dropout requires at least 2 dimensions in the input";
        all.push(InvalidSample::new(flat, ErrorKind::Runtime, phrase));
        all
    }
}

/// Dropout of whole channels in place: in training each channel `(n, c)` of (N, C, ...) becomes 0 with probability `p`,
/// else `self / (1 - p)`.
#[op("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", random, function_only,
     method = feature_dropout_)]
impl FeatureDropoutInplace {
    fn composite(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: true, alpha: false }.written(self_, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        identity_samples(s)
    }
}

/// Alpha dropout: in training each element becomes the lower limit of SELU with probability `p`, and all are scaled and
/// shifted so that mean 0 and variance 1 are preserved (Klambauer et al. 2017). Otherwise the result is the input
/// itself.
#[op("alpha_dropout(Tensor input, float p, bool train) -> Tensor", random, function_only)]
impl AlphaDropout {
    fn composite(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: false, alpha: true }.applied(input, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        certain_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        improbable_samples(s)
    }
}

/// Alpha dropout in place: in training each element of `self` becomes the lower limit of SELU with probability `p`, and
/// all are scaled and shifted so that mean 0 and variance 1 are preserved.
#[op("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", random, function_only,
     method = alpha_dropout_)]
impl AlphaDropoutInplace {
    fn composite(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: false, alpha: true }.written(self_, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        identity_samples(s)
    }
}

/// Alpha dropout of whole channels: one random draw for each `(n, c)` of an input (N, C, ...).
#[op("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", random, function_only)]
impl FeatureAlphaDropout {
    fn composite(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: true, alpha: true }.applied(input, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        certain_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        improbable_samples(s)
    }
}

/// Alpha dropout of whole channels in place: one random draw for each `(n, c)` of (N, C, ...).
#[op("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", random, function_only,
     method = feature_alpha_dropout_)]
impl FeatureAlphaDropoutInplace {
    fn composite(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        DropoutMask { whole_channels: true, alpha: true }.written(self_, p, train)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        identity_samples(s)
    }
}

/// Dropout together with the bool mask of the elements that were kept. `train` of `None` means training; outside
/// training the first result is a copy and the mask is all true. With `p` = 1 everything is 0.
#[op(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    random,
    function_only, batch = dropout
)]
impl NativeDropout {
    fn meta(input: &Tensor, p: f64, train: Option<bool>) -> Result<[TensorSpec; 2]> {
        if train != Some(false) {
            check_probability(1.0 - p)?;
        }
        let (spec, mask) = (TensorSpec::laid_as(input), TensorSpec::laid_as(input));
        let is_scaled = train != Some(false) && scale(p, train) != 1.0;
        Ok([if is_scaled { spec.to_float() } else { spec }, mask.with_dtype(DType::Bool)])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        input: &Tensor,
        p: f64,
        train: Option<bool>,
    ) -> Result<()> {
        if train == Some(false) {
            result0.copy_data(cpu, input)?;
            return walk_as_is(cpu, result1, &[], |iter| {
                elementwise::fill(iter, Scalar::Bool(true))
            });
        }
        bernoulli_with(cpu, result1, 1.0 - p, None)?;
        let dtype = result0.dtype();
        let inputs = [input.in_dtype(cpu, dtype)?, result1.in_dtype(cpu, dtype)?];
        let factor = scale(p, train);
        if factor == 1.0 {
            return walk_as_is(cpu, result0, &inputs, elementwise::mul);
        }
        walk_as_is(cpu, result0, &inputs, |iter| elementwise::scaled_product(iter, factor))
    }
    fn vjp_input(grad: &Tensor, result1: &Tensor, p: f64, train: Option<bool>) -> Result<Tensor> {
        grad.native_dropout_backward(result1, scale(p, train))
    }
    fn jvp(
        input_t: &Tensor,
        result1: &Tensor,
        p: f64,
        train: Option<bool>,
    ) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(input_t.native_dropout_backward(result1, scale(p, train))?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call =
            |p: f64, train: Value| Sample::of(s.normal(&[2, 3])).with("p", p).with("train", train);
        vec![call(0.4, Value::Bool(false)), call(1.0, Value::Bool(true)), call(0.0, Value::None)]
    }
}

/// The derivative of `native_dropout`: `grad_output * mask * scale`.
#[op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    internal,
    out,
    function_only,
    not_differentiable(mask), batch = pointwise
)]
impl NativeDropoutBackward {
    fn meta(grad_output: &Tensor, mask: &Tensor) -> Result<TensorSpec> {
        ensure!(
            mask.dtype() == DType::Bool,
            runtime,
            "Mask should be Bool Scalar Type{}",
            mask.dtype().scalar_name()
        );
        Ok(TensorSpec::broadcast(&[grad_output, mask])?.to_float())
    }
    fn cpu(iter: &mut Iter, scale: f64) -> pullback_kernels::Result<()> {
        elementwise::scaled_product(iter, scale)
    }
    fn vjp_grad_output(grad: &Tensor, mask: &Tensor, scale: f64) -> Result<Tensor> {
        grad.native_dropout_backward(mask, scale)
    }
    fn jvp(grad_output_t: &Tensor, mask_p: &Tensor, scale: f64) -> Result<Tensor> {
        grad_output_t.native_dropout_backward(mask_p, scale)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let start = [s.normal(&[2, 3]).into(), s.bools(&[2, 3]).into()];
        vec![Sample::new(start).with("scale", 1.5)]
    }
}

/// The factor of the elements that `native_dropout` keeps.
fn scale(p: f64, train: Option<bool>) -> f64 {
    match train {
        Some(false) => 1.0,
        // With p = 1 everything is dropped, and 1 / (1 - p) is not needed.
        _ if p == 1.0 => 0.0,
        _ => 1.0 / (1.0 - p),
    }
}

/// The limit of SELU towards minus infinity, `scale * alpha`, negated.
const SATURATION: f64 = 1.758_099_340_847_376_6;

/// How a mask is drawn: one value per element or per channel; dropped elements become zero or the lower limit of SELU.
struct DropoutMask {
    whole_channels: bool,
    alpha: bool,
}

impl DropoutMask {
    fn applied(&self, input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        if is_identity(input, p, train)? {
            return Ok(input.clone());
        }
        if p == 1.0 {
            return input.mul(&Tensor::scalar_of(0.0, input.dtype())?);
        }
        let (factor, shift) = self.draw(input, p)?;
        let product = input.mul(&factor)?;
        shift.map_or_else(|| Ok(product.clone()), |shift| product.add_(&shift))
    }

    fn written(&self, input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
        if is_identity(input, p, train)? {
            return Ok(input.clone());
        }
        if p == 1.0 {
            return input.mul_(&Tensor::scalar_of(0.0, input.dtype())?);
        }
        let (factor, shift) = self.draw(input, p)?;
        input.mul_(&factor)?;
        shift.map_or_else(|| Ok(input.clone()), |shift| input.add_(&shift))
    }

    /// Draws the mask: the factor of the input, and the term that is added to it.
    fn draw(&self, input: &Tensor, p: f64) -> Result<(Tensor, Option<Tensor>)> {
        // The mask of a complex input is real.
        let like = if self.whole_channels {
            channels_of(input)?
        } else {
            input.empty_like_with(Some(input.dtype().to_real()), None, None, None, None)?
        };
        let kept = drawn_like(&like, 1.0 - p)?;
        drop(like);
        if !self.alpha {
            return Ok((kept.div_(&Tensor::wrapped(1.0 - p)?)?, None));
        }
        // Dropped elements become -SATURATION; with a and this shift the mean stays 0 and the variance 1.
        let a = 1.0 / ((SATURATION * SATURATION * p + 1.0) * (1.0 - p)).sqrt();
        let shift = kept.plus(-1)?.mul_(&Tensor::wrapped(SATURATION * a)?)?;
        let shift = shift.add_(&Tensor::wrapped(SATURATION * a * p)?)?;
        Ok((kept.mul_(&Tensor::wrapped(a)?)?, Some(shift)))
    }
}

/// A tensor with the shape and strides of `like` that is 1 with probability `p`, else 0. Drawn in the order of its memory, as
/// PyTorch draws masks in place. (Not in place: under `vmap` each example may have a mask of its own, also of a `like` that is
/// not batched.)
fn drawn_like(like: &Tensor, p: f64) -> Result<Tensor> {
    if like.is_contiguous() {
        return like.bernoulli_p(p);
    }
    let mut order: Dims = (0..like.ndim() as i64).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(like.strides()[dim as usize]));
    let mut places: Dims = order.clone();
    for (place, &dim) in order.iter().enumerate() {
        places[dim as usize] = place as i64;
    }
    like.permute(&order)?.bernoulli_p(p)?.permute(&places)
}

/// Whether the result is the input: nothing is dropped, or there are no elements.
fn is_identity(input: &Tensor, p: f64, train: bool) -> Result<bool> {
    ensure!(
        (0.0..=1.0).contains(&p),
        runtime,
        "dropout probability has to be between 0 and 1, but got {p}"
    );
    Ok(p == 0.0 || !train || input.numel() == 0)
}

/// An empty tensor (N, C, 1, ...) for an input (N, C, ...).
fn channels_of(input: &Tensor) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 2,
        runtime,
        "Feature dropout requires at least 2 dimensions in the input"
    );
    let mut shape = Dims::from_elem(1, input.ndim());
    shape[..2].copy_from_slice(&input.shape()[..2]);
    Tensor::empty_strided(
        &shape,
        &crate::tensor::contiguous_strides(&shape),
        input.dtype().to_real(),
        input.device(),
    )
}

/// Calls whose result does not depend on random numbers.
fn certain_samples(s: &Sampler) -> Vec<Sample> {
    let mut all = identity_samples(s);
    all.push(Sample::of(s.normal(&[2, 3])).with("p", 1.0).with("train", true));
    all
}

fn identity_samples(s: &Sampler) -> Vec<Sample> {
    let call = |shape: &[i64]| Sample::of(s.normal(shape));
    vec![
        call(&[2, 3, 2]).with("p", 0.4).with("train", false),
        call(&[2, 3]).with("p", 0.0).with("train", true),
        call(&[2, 0]).with("p", 0.4).with("train", true),
    ]
}

fn improbable_samples(s: &Sampler) -> Vec<InvalidSample> {
    let sample = Sample::of(s.normal(&[2, 3])).with("p", 1.5).with("train", true);
    let phrase = "dropout probability has to be between 0 and 1, but got 1.5";
    vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
}
