//! Means, and sums and means that skip NaN.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::sum::{dim_samples, reduce_in_dtype, reduced_spec, unreduce};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dims;
use crate::{DType, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&MEAN, &MEAN_DIM, &NANSUM, &NANMEAN];

/// The mean of all elements; NaN of none. Integers need `dtype`.
#[op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", out, out_precision, jvp = linear, batch = reduction_by(&MEAN_DIM))]
impl Mean {
    fn meta(self_: &Tensor, dtype: Option<DType>) -> Result<TensorSpec> {
        reduced_spec(self_, None, false, mean_dtype(self_, dtype)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_in_dtype(cpu, result, self_, None, reduce::mean)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        // (The mean of no elements has no gradient that could be divided.)
        grad.over(self_shape.iter().product::<i64>().max(1))?.expand(self_shape, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let none = Sample::of(s.normal(&[2, 0])).without_gradient();
        vec![
            Sample::of(s.normal(&[2, 3])),
            Sample::of(s.normal(&[])),
            Sample::of(s.transposed(3, 2)),
            none,
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.integers(&[2], 0, 3));
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, "could not infer output dtype")]
    }
}

/// The mean over `dim`, or over every dimension if `dim` is `None` or empty. Integers need `dtype`.
#[op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", out, out_precision,
     node = "MeanBackward1", jvp = linear, batch = reduction)]
impl MeanDim {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<TensorSpec> {
        reduced_spec(self_, dim, keepdim, mean_dtype(self_, dtype)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
        reduce_in_dtype(cpu, result, self_, dim, reduce::mean)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        let dims = wrap_dims(dim, self_shape.len())?;
        let count: i64 = dims.iter().map(|&d| self_shape[d]).product();
        unreduce(&grad.over(count.max(1))?, self_shape, dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// The sum over `dim` (all dimensions if `None`) with NaN taken as zero. Complex numbers are refused.
#[op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", out, out_precision, batch = reduction)]
impl Nansum {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<TensorSpec> {
        ensure!(
            !self_.dtype().is_complex(),
            not_implemented,
            "nansum does not support complex inputs"
        );
        let natural = if self_.dtype().is_integral(true) { DType::I64 } else { self_.dtype() };
        let dtype = dtype.unwrap_or(natural);
        ensure!(
            !dtype.is_complex(),
            not_implemented,
            "nansum on CPU does not support complex inputs"
        );
        reduced_spec(self_, dim, keepdim, dtype)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
        if result.dtype().is_integral(true) && self_.dtype().is_floating_point() {
            // (A NaN is none of the whole numbers, so that it must be gone before the conversion.)
            let zeroed =
                self_.nan_to_num(Some(0.0), Some(f64::INFINITY), Some(f64::NEG_INFINITY))?;
            return reduce_in_dtype(cpu, result, &zeroed, dim, reduce::sum);
        }
        reduce_in_dtype(cpu, result, self_, dim, reduce::nansum)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        unreduce(grad, self_.shape(), dim, keepdim)?.mul(&self_.isnan()?.logical_not()?)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, dim: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self_t.mul(&self_p.isnan()?.logical_not()?)?.sum_dim(dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let x = s.normal(&[2, 3]);
        let gaps = x.masked_fill(&s.bools(&[2, 3]), f64::NAN.into()).expect("samples are small");
        let mut out = dim_samples(s);
        out.push(Sample::of(gaps.clone()).with("dim", [1]).without_gradient());
        out.push(Sample::of(gaps).without_gradient());
        out
    }
}

/// The mean over `dim` (all dimensions if `None`) of what is not NaN.
#[op(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out,
    out_precision
)]
impl Nanmean {
    fn composite(
        self_: &Tensor,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        ensure!(
            self_.dtype().is_differentiable(),
            not_implemented,
            "nanmean(): expected input to have floating point or complex dtype but got {}",
            self_.dtype().scalar_name()
        );
        ensure!(
            dtype.is_none_or(DType::is_differentiable),
            runtime,
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: {}",
            dtype.unwrap_or(self_.dtype()).scalar_name()
        );
        let count = self_.isnan()?.logical_not()?.sum_dim(dim, keepdim)?;
        self_.nansum_with(dim, keepdim, dtype)?.div(&count)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// The dtype of a mean, which integers and bools do not have.
fn mean_dtype(x: &Tensor, dtype: Option<DType>) -> Result<DType> {
    if let Some(dtype) = dtype {
        ensure!(
            dtype.is_differentiable(),
            not_implemented,
            "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: {}",
            dtype.scalar_name()
        );
    }
    let dtype = dtype.unwrap_or(x.dtype());
    ensure!(
        dtype.is_differentiable(),
        not_implemented,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
        dtype.scalar_name()
    );
    Ok(dtype)
}
