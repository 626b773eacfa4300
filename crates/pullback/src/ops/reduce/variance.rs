//! Variances and standard deviations.
//!
//! `var = sum(|x - mean|^2) / (n - correction)`; complex input gives a real result. `correction` is 1 unless
//! given, `unbiased` is the older way to say 1 or 0. With no degrees of freedom left the result is NaN or
//! infinite and a warning is given.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{Sample, Sampler};
use crate::ops::creation::factory::check_real;
use crate::ops::reduce::sum::{kept_shape, reduce_into, restore, spec_over};
use crate::tensor::shape::wrap_dims;
use crate::tensor::{Cpu, TensorSpec, contiguous_strides};
use crate::{Result, Scalar, Tensor};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &VAR,
    &VAR_DIM,
    &VAR_CORRECTION,
    &STD,
    &STD_DIM,
    &STD_CORRECTION,
    &VAR_MEAN,
    &VAR_MEAN_DIM,
    &VAR_MEAN_CORRECTION,
    &STD_MEAN,
    &STD_MEAN_DIM,
    &STD_MEAN_CORRECTION,
];

/// The variance of all elements.
#[op("var(Tensor self, bool unbiased=True) -> Tensor")]
impl Var {
    fn composite(self_: &Tensor, unbiased: bool) -> Result<Tensor> {
        self_.var_correction_with(None, Some(correction_of(unbiased)), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
}

/// The variance over `dim` (all dimensions if `None`).
#[op("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", out)]
impl VarDim {
    fn composite(
        self_: &Tensor,
        dim: Option<&[i64]>,
        unbiased: bool,
        keepdim: bool,
    ) -> Result<Tensor> {
        self_.var_correction_with(dim, Some(correction_of(unbiased)), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        unbiased_samples(s)
    }
}

/// The variance over `dim` (all dimensions if `None`), divided by `n - correction`.
#[op("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", out,
     batch = reduction)]
impl VarCorrection {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<TensorSpec> {
        spread_spec(self_, dim, correction, keepdim)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
    ) -> Result<()> {
        let (dims, c) = prepared("var", self_, dim, correction)?;
        reduce_into(cpu, result, self_, &dims, |o, x, d| reduce::var(o, x, d, c))
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        var_grad(&restore(grad, self_.shape(), dim, keepdim)?, self_, dim, correction)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        var_tangent(self_t, self_p, dim, correction, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        correction_samples(s)
    }
}

/// The standard deviation of all elements.
#[op("std(Tensor self, bool unbiased=True) -> Tensor")]
impl Std {
    fn composite(self_: &Tensor, unbiased: bool) -> Result<Tensor> {
        self_.std_correction_with(None, Some(correction_of(unbiased)), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
}

/// The standard deviation over `dim` (all dimensions if `None`).
#[op("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", out)]
impl StdDim {
    fn composite(
        self_: &Tensor,
        dim: Option<&[i64]>,
        unbiased: bool,
        keepdim: bool,
    ) -> Result<Tensor> {
        self_.std_correction_with(dim, Some(correction_of(unbiased)), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        unbiased_samples(s)
    }
}

/// The root of `var` over `dim`. The gradient is 0 where the result is 0.
#[op("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", out,
     batch = reduction)]
impl StdCorrection {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<TensorSpec> {
        spread_spec(self_, dim, correction, keepdim)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
    ) -> Result<()> {
        let (dims, c) = prepared("std", self_, dim, correction)?;
        reduce_into(cpu, result, self_, &dims, |o, x, d| reduce::std(o, x, d, c))
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        let grad = restore(&of_root(grad, result)?, self_.shape(), dim, keepdim)?;
        var_grad(&grad, self_, dim, correction)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        of_root(&var_tangent(self_t, self_p, dim, correction, keepdim)?, result)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        correction_samples(s)
    }
}

/// Variance and mean of all elements.
#[op("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", function_only)]
impl VarMean {
    fn composite(self_: &Tensor, unbiased: bool) -> Result<[Tensor; 2]> {
        self_.var_mean_correction_with(None, Some(correction_of(unbiased)), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
}

/// Variance and mean over `dim` (all dimensions if `None`).
#[op(
    "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    function_only
)]
impl VarMeanDim {
    fn composite(
        self_: &Tensor,
        dim: Option<&[i64]>,
        unbiased: bool,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        self_.var_mean_correction_with(dim, Some(correction_of(unbiased)), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        unbiased_samples(s)
    }
}

/// Variance and mean over `dim`, in one pass.
#[op("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", function_only,
     batch = reduction)]
impl VarMeanCorrection {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[TensorSpec; 2]> {
        let spread = spread_spec(self_, dim, correction, keepdim)?;
        let mean = spread.clone().computed_in(self_.dtype());
        Ok([spread, mean])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
    ) -> Result<()> {
        let call = prepared("var_mean", self_, dim, correction)?;
        with_mean(cpu, [result0, result1], self_, call, reduce::var_mean)
    }
    fn vjp_self(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Option<Tensor>> {
        let by_var = grad_result0
            .map(|g| var_grad(&restore(g, self_.shape(), dim, keepdim)?, self_, dim, correction))
            .transpose()?;
        joined(by_var, mean_grad(grad_result1, self_, dim, keepdim)?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        Ok([var_tangent(self_t, self_p, dim, correction, keepdim)?, self_t.mean_dim(dim, keepdim)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        correction_samples(s)
    }
}

/// Standard deviation and mean of all elements.
#[op("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", function_only)]
impl StdMean {
    fn composite(self_: &Tensor, unbiased: bool) -> Result<[Tensor; 2]> {
        self_.std_mean_correction_with(None, Some(correction_of(unbiased)), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
}

/// Standard deviation and mean over `dim` (all dimensions if `None`).
#[op(
    "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    function_only
)]
impl StdMeanDim {
    fn composite(
        self_: &Tensor,
        dim: Option<&[i64]>,
        unbiased: bool,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        self_.std_mean_correction_with(dim, Some(correction_of(unbiased)), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        unbiased_samples(s)
    }
}

/// Standard deviation and mean over `dim`, in one pass.
#[op("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", function_only,
     batch = reduction)]
impl StdMeanCorrection {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[TensorSpec; 2]> {
        let spread = spread_spec(self_, dim, correction, keepdim)?;
        let mean = spread.clone().computed_in(self_.dtype());
        Ok([spread, mean])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        self_: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
    ) -> Result<()> {
        let call = prepared("std_mean", self_, dim, correction)?;
        with_mean(cpu, [result0, result1], self_, call, reduce::std_mean)
    }
    fn vjp_self(
        grad_result0: Option<&Tensor>,
        grad_result1: Option<&Tensor>,
        self_: &Tensor,
        result0: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Option<Tensor>> {
        let by_std = grad_result0
            .map(|g| {
                var_grad(
                    &restore(&of_root(g, result0)?, self_.shape(), dim, keepdim)?,
                    self_,
                    dim,
                    correction,
                )
            })
            .transpose()?;
        joined(by_std, mean_grad(grad_result1, self_, dim, keepdim)?)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result0: &Tensor,
        dim: Option<&[i64]>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        let by_var = var_tangent(self_t, self_p, dim, correction, keepdim)?;
        Ok([of_root(&by_var, result0)?, self_t.mean_dim(dim, keepdim)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        correction_samples(s)
    }
}

type VarPairKernel = fn(
    &mut pullback_kernels::StridedMut<'_>,
    &mut pullback_kernels::StridedMut<'_>,
    pullback_kernels::StridedRef<'_>,
    &[usize],
    f64,
) -> pullback_kernels::Result<()>;
type WrappedDims = smallvec::SmallVec<[usize; 5]>;

fn correction_of(unbiased: bool) -> Scalar {
    Scalar::Int(i64::from(unbiased))
}

fn number(correction: Option<Scalar>) -> f64 {
    correction.map_or(1.0, Scalar::to_f64)
}

/// The spec of a variance or a standard deviation.
fn spread_spec(
    x: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
) -> Result<TensorSpec> {
    let dims = wrap_dims(dim, x.ndim())?;
    check_real(correction.as_slice())?;
    ensure!(
        x.dtype().is_differentiable(),
        not_implemented,
        "std and var only support floating point and complex dtypes"
    );
    Ok(spec_over(x, &dims, keepdim, x.dtype().to_real()))
}

/// The dimensions and the correction as the kernel takes them; warns where no degrees of freedom are left.
fn prepared(
    name: &str,
    x: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
) -> Result<(WrappedDims, f64)> {
    let dims = wrap_dims(dim, x.ndim())?;
    let correction = number(correction);
    let kept: i64 = kept_shape(x.shape(), &dims).iter().product();
    if kept > 0 && count(x.shape(), &dims) - correction <= 0.0 {
        crate::warn(format!(
            "{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel)."
        ));
    }
    Ok((dims, correction))
}

fn count(shape: &[i64], dims: &[usize]) -> f64 {
    dims.iter().map(|&d| shape[d]).product::<i64>() as f64
}

fn with_mean(
    cpu: Cpu,
    [spread, mean]: [&Tensor; 2],
    x: &Tensor,
    (dims, correction): (WrappedDims, f64),
    kernel: VarPairKernel,
) -> Result<()> {
    let kept = kept_shape(x.shape(), &dims);
    let strides = contiguous_strides(&kept);
    Ok(kernel(
        &mut spread.view_mut_as(cpu, &kept, &strides),
        &mut mean.view_mut_as(cpu, &kept, &strides),
        x.view_ref(cpu),
        &dims,
        correction,
    )?)
}

/// `grad * 2 (x - mean) / (n - correction)`; `grad` has the reduced dimensions in it.
fn var_grad(
    grad: &Tensor,
    x: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
) -> Result<Tensor> {
    let freedom = count(x.shape(), &wrap_dims(dim, x.ndim())?) - number(correction);
    if freedom <= 0.0 && (dim.is_none() || x.ndim() == 0) {
        // The result is NaN or infinite whatever `x` is, so that it has no derivative by `x`.
        let x = x.detach()?;
        let [none, all] = [f64::NAN, f64::INFINITY].map(|v| Tensor::scalar_of(v, x.dtype()));
        return grad.mul(&x.eq(&x.mean()?)?.where_self(&none?, &all?)?);
    }
    grad.times(2.0 / freedom)?.mul(&x.sub(&x.mean_dim(dim, true)?)?)
}

fn var_tangent(
    tangent: &Tensor,
    x: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    var_grad(&tangent.conj()?, x, dim, correction)?.sum_dim(dim, keepdim)?.real()
}

fn mean_grad(
    grad: Option<&Tensor>,
    x: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<Option<Tensor>> {
    let Some(grad) = grad else { return Ok(None) };
    // (The mean of no elements has no gradient that could be divided.)
    let n = count(x.shape(), &wrap_dims(dim, x.ndim())?).max(1.0);
    restore(&grad.over(n)?, x.shape(), dim, keepdim)?.expand(x.shape(), false).map(Some)
}

/// `grad / (2 root)`, 0 where the root is 0.
fn of_root(grad: &Tensor, root: &Tensor) -> Result<Tensor> {
    grad.div(&root.times(2)?)?.masked_fill(&root.eq(&Tensor::wrapped(0)?)?, Scalar::Int(0))
}

fn joined(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(a.add(&b)?),
        (a, b) => a.or(b),
    })
}

fn full_samples(s: &Sampler) -> Vec<Sample> {
    vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[4])).with("unbiased", false)]
}

fn unbiased_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3])).with("dim", [1]),
        Sample::of(s.normal(&[2, 3]))
            .with("dim", [0])
            .with("unbiased", false)
            .with("keepdim", true),
        Sample::of(s.normal(&[2, 3])).with("dim", [0, -1]),
    ]
}

fn correction_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3, 2])).with("dim", [1]),
        Sample::of(s.normal(&[2, 3]))
            .with("dim", [0, 1])
            .with("correction", Scalar::Float(0.5))
            .with("keepdim", true),
        Sample::of(s.normal(&[5])).with("correction", Scalar::Int(0)),
        Sample::of(s.normal(&[0, 3])).with("dim", [1]),
        Sample::of(s.normal(&[])).with("correction", Scalar::Int(0)).without_gradient(),
    ]
}
