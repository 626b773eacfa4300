//! `softmax` and `log_softmax` along a dimension.
//!
//! The public ops convert and call `_softmax` and `_log_softmax`, whose derivatives are kernels of their own.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::min_max::lifted;
use crate::tensor::Cpu;
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::{StridedMut, StridedRef, softmax};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SOFTMAX_INT,
    &LOG_SOFTMAX_INT,
    &SOFTMAX,
    &SAFE_SOFTMAX_DATA,
    &MASKED_SOFTMAX,
    &LOG_SOFTMAX,
    &SOFTMAX_BACKWARD_DATA,
    &LOG_SOFTMAX_BACKWARD_DATA,
];

/// `e^self / sum(e^self)` along `dim`, computed in `dtype` if one is given. It is shifted by the maximum, so that it
/// does not overflow; a row of only -inf gives NaN.
#[op("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", exact_out, method = softmax)]
impl SoftmaxInt {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        self_.to_dtype(dtype.unwrap_or(self_.dtype()))?.softmax_data(dim, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        line_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (far, integers) = (
            Sample::of(s.normal(&[2])).with("dim", 5),
            Sample::of(s.integers(&[2], 0, 3)).with("dim", 0),
        );
        vec![
            InvalidSample::new(
                far,
                ErrorKind::Index,
                "expected to be in range of [-1, 0], but got 5",
            ),
            InvalidSample::new(integers, ErrorKind::NotImplemented, "not implemented for 'Long'"),
        ]
    }
}

/// `ln(softmax(self, dim))`, computed in `dtype` if one is given, without underflow.
#[op("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", exact_out, method = log_softmax)]
impl LogSoftmaxInt {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        self_.to_dtype(dtype.unwrap_or(self_.dtype()))?.log_softmax_data(dim, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        line_samples(s)
    }
}

/// `softmax` along `dim` in the dtype of the input. `half_to_float` is for devices that convert at the same time.
#[op("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", exact_out, internal, method = softmax_data, batch = along)]
impl Softmax {
    fn meta(self_: &Tensor, dim: i64, half_to_float: bool) -> Result<TensorSpec> {
        ensure!(
            !half_to_float,
            runtime,
            "softmax with half to float conversion is not supported on CPU"
        );
        line_spec(self_, dim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        line(cpu, result, self_, dim, softmax::softmax)
    }
    fn vjp_self(grad: &Tensor, result: &Tensor, dim: i64, self_dtype: DType) -> Result<Tensor> {
        grad.softmax_backward_data(result, dim, self_dtype)
    }
    fn jvp(self_t: &Tensor, result: &Tensor, dim: i64, self_dtype: DType) -> Result<Tensor> {
        // The Jacobian is symmetric.
        self_t.softmax_backward_data(result, dim, self_dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        line_samples(s).into_iter().map(|sample| sample.with("half_to_float", false)).collect()
    }
}

/// `_safe_softmax` along `dim` in the dtype of the input: zeros for rows of only -inf, whose gradients are zeros too.
#[op("_safe_softmax_data(Tensor self, int dim) -> Tensor", internal, method = safe_softmax_data, node = "SafeSoftmax", batch = along)]
impl SafeSoftmaxData {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        line_spec(self_, dim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        line(cpu, result, self_, dim, softmax::safe_softmax)
    }
    fn vjp_self(grad: &Tensor, result: &Tensor, dim: i64, self_dtype: DType) -> Result<Tensor> {
        grad.softmax_backward_data(result, dim, self_dtype)
    }
    fn jvp(self_t: &Tensor, result: &Tensor, dim: i64, self_dtype: DType) -> Result<Tensor> {
        self_t.softmax_backward_data(result, dim, self_dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        line_samples(s)
    }
}

/// `softmax` along `dim` over the elements where `mask` is false, and 0 where it is true; rows that are masked entirely
/// give NaN.
///
/// For an input (B, H, L, L), `mask_type` says what the mask is: 0, (L, L) for all heads and examples; 1, the keys of
/// each example, (B, L); 2, of the input's shape, which is the only type for inputs of other ranks.
#[op("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor", function_only, method = masked_softmax)]
impl MaskedSoftmax {
    fn composite(
        self_: &Tensor,
        mask: &Tensor,
        dim: Option<i64>,
        mask_type: Option<i64>,
    ) -> Result<Tensor> {
        let mask = spread_mask(self_, mask, mask_type)?;
        let dim = wrap_dim(dim.unwrap_or(-1), self_.ndim())? as i64;
        let left = self_.masked_fill(&mask, f64::NEG_INFINITY.into())?;
        left.softmax_data(dim, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let x = s.normal(&[2, 2, 3, 3]);
        let of = |shape: &[i64], kind: i64| {
            let mask = [false, true, false].map(crate::Bool::new);
            let mask = Tensor::from_slice(&mask, &[1, 3]).expect("small");
            let mask = mask.expand(shape, false).expect("one row for all");
            Sample::new([x.clone().into(), mask.into()]).with("dim", -1).with("mask_type", kind)
        };
        vec![of(&[3, 3], 0), of(&[2, 3], 1), of(&[2, 2, 3, 3], 2)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |mask: Tensor, kind: i64, phrase| {
            let sample = Sample::new([s.normal(&[2, 1, 3, 3]).into(), mask.into()]);
            InvalidSample::new(sample.with("mask_type", kind), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.normal(&[3, 3]), 0, "Mask should be a boolean tensor"),
            bad(s.bools(&[2, 3]), 0, "mask shape should be (L, L)"),
            bad(s.bools(&[3, 3]), 1, "mask shape should be (B, L)"),
            bad(s.bools(&[3, 3]), 2, "mask shape should match input shape"),
            bad(s.bools(&[3, 3]), 3, "Mask Type should be 0 (src_mask), 1"),
        ]
    }
}

/// The mask of `_masked_softmax` in a shape that broadcasts to that of the input.
fn spread_mask(input: &Tensor, mask: &Tensor, kind: Option<i64>) -> Result<Tensor> {
    ensure!(mask.dtype() == DType::Bool, runtime, "Mask should be a boolean tensor");
    let (own, given) = (input.shape(), mask.shape());
    // (Inputs of other ranks have no heads and examples to broadcast it over.)
    let kind = kind.filter(|_| own.len() == 4).unwrap_or(2);
    ensure!(
        (0..=2).contains(&kind),
        runtime,
        "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask), got {kind}"
    );
    let (expected, what) = match kind {
        0 => (Dims::from_slice(&[own[2], own[2]]), "be (L, L)"),
        1 => (Dims::from_slice(&[own[0], own[2]]), "be (B, L)"),
        _ => (own.into(), "match input shape"),
    };
    ensure!(
        *given == *expected,
        runtime,
        "For mask_type == {kind} mask shape should {what}: {} for an input of shape {}, but got {}",
        list(&expected),
        list(own),
        list(given)
    );
    if kind == 1 { mask.unsqueeze(1)?.unsqueeze(1) } else { Ok(mask.clone()) }
}

/// `log_softmax` along `dim` in the dtype of the input. `half_to_float` is for devices that convert at the same time.
#[op("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", exact_out, internal, method = log_softmax_data, batch = along)]
impl LogSoftmax {
    fn meta(self_: &Tensor, dim: i64, half_to_float: bool) -> Result<TensorSpec> {
        ensure!(
            !half_to_float,
            runtime,
            "softmax with half to float conversion is not supported on CPU"
        );
        line_spec(self_, dim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        line(cpu, result, self_, dim, softmax::log_softmax)
    }
    fn vjp_self(grad: &Tensor, result: &Tensor, dim: i64, self_dtype: DType) -> Result<Tensor> {
        grad.log_softmax_backward_data(result, dim, self_dtype)
    }
    fn jvp(self_t: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
        self_t.sub(&result.exp()?.mul(self_t)?.sum_dim(Some(&[dim]), true)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        line_samples(s).into_iter().map(|sample| sample.with("half_to_float", false)).collect()
    }
}

/// The derivative of `softmax` from its result `y`: `y (g - sum(g y))`.
#[op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", internal,
     method = softmax_backward_data, batch = along)]
impl SoftmaxBackwardData {
    fn meta(
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
        input_dtype: DType,
    ) -> Result<TensorSpec> {
        line_backward_spec(grad_output, output, dim, input_dtype)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
    ) -> Result<()> {
        line_backward(cpu, result, (grad_output, output), dim, softmax::softmax_backward)
    }
    fn vjp_grad_output(
        grad: &Tensor,
        output: &Tensor,
        dim: i64,
        input_dtype: DType,
    ) -> Result<Tensor> {
        grad.softmax_backward_data(output, dim, input_dtype)
    }
    fn vjp_output(
        grad: &Tensor,
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
    ) -> Result<Tensor> {
        let total = |a: &Tensor| a.mul(output)?.sum_dim(Some(&[dim]), true);
        let centred = grad_output.sub(&total(grad_output)?)?;
        grad.mul(&centred)?.sub(&grad_output.mul(&total(grad)?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        backward_samples(s)
    }
}

/// The derivative of `log_softmax` from its result `y`: `g - e^y sum(g)`.
#[op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", internal,
     method = log_softmax_backward_data, batch = along)]
impl LogSoftmaxBackwardData {
    fn meta(
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
        input_dtype: DType,
    ) -> Result<TensorSpec> {
        line_backward_spec(grad_output, output, dim, input_dtype)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
    ) -> Result<()> {
        line_backward(cpu, result, (grad_output, output), dim, softmax::log_softmax_backward)
    }
    fn vjp_grad_output(grad: &Tensor, output: &Tensor, dim: i64) -> Result<Tensor> {
        grad.sub(&grad.mul(&output.exp()?)?.sum_dim(Some(&[dim]), true)?)
    }
    fn vjp_output(
        grad: &Tensor,
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
    ) -> Result<Tensor> {
        grad.mul(&output.exp()?)?.mul(&grad_output.sum_dim(Some(&[dim]), true)?)?.neg()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        backward_samples(s)
    }
}

type ForwardKernel = fn(&mut StridedMut<'_>, StridedRef<'_>, usize) -> pullback_kernels::Result<()>;
type SoftmaxBackwardKernel =
    fn(&mut StridedMut<'_>, StridedRef<'_>, StridedRef<'_>, usize) -> pullback_kernels::Result<()>;

/// The spec of `x` with its rows along `dim` replaced.
fn line_spec(x: &Tensor, dim: i64) -> Result<TensorSpec> {
    wrap_dim(dim, x.ndim())?;
    Ok(TensorSpec::like(x))
}

/// The spec of a gradient of `dtype` for rows along `dim` whose results are `y`.
fn line_backward_spec(grad: &Tensor, y: &Tensor, dim: i64, dtype: DType) -> Result<TensorSpec> {
    wrap_dim(dim, y.ndim())?;
    ensure!(
        grad.shape() == y.shape(),
        runtime,
        "softmax_backward: expected grad_output of size {}, but got {}",
        list(y.shape()),
        list(grad.shape())
    );
    Ok(TensorSpec::beside(y, y.shape()).computed_in(dtype))
}

fn line(cpu: Cpu, result: &Tensor, x: &Tensor, dim: i64, kernel: ForwardKernel) -> Result<()> {
    let dim = wrap_dim(dim, x.ndim())?;
    Ok(kernel(&mut lifted(result)?.view_mut(cpu), lifted(x)?.view_ref(cpu), dim)?)
}

fn line_backward(
    cpu: Cpu,
    result: &Tensor,
    (grad, y): (&Tensor, &Tensor),
    dim: i64,
    kernel: SoftmaxBackwardKernel,
) -> Result<()> {
    let dim = wrap_dim(dim, y.ndim())?;
    let grad = grad.in_dtype(cpu, y.dtype())?;
    let (grad, y, result) = (lifted(&grad)?, lifted(y)?, lifted(result)?);
    Ok(kernel(&mut result.view_mut(cpu), grad.view_ref(cpu), y.view_ref(cpu), dim)?)
}

fn line_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3, 2])).with("dim", 1),
        Sample::of(s.normal(&[2, 3])).with("dim", -1),
        Sample::of(s.transposed(3, 2)).with("dim", 0),
        Sample::of(s.normal(&[])).with("dim", 0),
        Sample::of(s.normal(&[0, 3])).with("dim", 1),
        Sample::of(s.normal(&[2, 0])).with("dim", 1),
    ]
}

fn backward_samples(s: &Sampler) -> Vec<Sample> {
    let sample = |shape: &[i64], dim: i64| {
        Sample::new([s.normal(shape).into(), s.normal(shape).into(), dim.into(), s.dtype.into()])
    };
    vec![sample(&[2, 3], 1), sample(&[3, 2], 0), sample(&[], 0), sample(&[0, 3], -1)]
}
