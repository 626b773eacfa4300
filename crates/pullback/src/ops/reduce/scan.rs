//! Running sums, products, maxima and minima along a dimension, and products of whole dimensions.
//!
//! Products are here because the gradient of one at zeros is made of running products.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::index::scatter::vector_shape;
use crate::ops::reduce::min_max::lifted;
use crate::ops::reduce::sum::{reduce_in_dtype, reduced_spec, restore};
use crate::tensor::shape::wrap_dim;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{StridedMut, StridedRef, reduce, scan};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CUMSUM,
    &CUMSUM_BACKWARD,
    &CUMPROD,
    &LINEAR_RECURRENCE,
    &LOGCUMSUMEXP,
    &CUMMAX,
    &CUMMIN,
    &PICK_BACKWARD,
    &PICK,
    &PROD,
    &PROD_DIM,
];

/// The running sum along `dim`: `out[i] = self[0] + ... + self[i]`. Integers and bools sum in int64 unless
/// `dtype` is given.
#[op("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", inplace = method, out, out_dtype, apart, jvp = linear, batch = along)]
impl Cumsum {
    fn meta(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<TensorSpec> {
        running("cumsum", self_, dim, dtype)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        along(cpu, result, &self_.in_dtype(cpu, result.dtype())?, dim, scan::cumsum)
    }
    fn vjp_self(grad: &Tensor, dim: i64) -> Result<Tensor> {
        grad.sum_from(dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let far = Sample::of(s.normal(&[2])).with("dim", 3);
        let bools = Sample::of(s.bools(&[2])).with("dim", 0).with("dtype", DType::Bool);
        vec![
            InvalidSample::new(
                far,
                ErrorKind::Index,
                "expected to be in range of [-1, 0], but got 3",
            ),
            InvalidSample::new(
                bools,
                ErrorKind::NotImplemented,
                "\"cumsum_out_cpu\" not implemented for 'Bool'",
            ),
        ]
    }
}

/// The sum from each position to the end of the line along `dim`: the gradient of [`Cumsum`].
#[op("_cumsum_backward(Tensor grad_output, int dim) -> Tensor", internal, method = sum_from, jvp = linear, batch = along)]
impl CumsumBackward {
    fn meta(grad_output: &Tensor, dim: i64) -> Result<TensorSpec> {
        scanned(grad_output, dim, grad_output.dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, grad_output: &Tensor, dim: i64) -> Result<()> {
        along(cpu, result, grad_output, dim, scan::cumsum_backward)
    }
    fn vjp_grad_output(grad: &Tensor, dim: i64) -> Result<Tensor> {
        grad.cumsum(dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// The running product along `dim`. Integers and bools multiply in int64 unless `dtype` is given.
#[op("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", inplace = method, out, out_dtype, apart, batch = along)]
impl Cumprod {
    fn meta(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<TensorSpec> {
        running("cumprod", self_, dim, dtype)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        along(cpu, result, &self_.in_dtype(cpu, result.dtype())?, dim, scan::cumprod)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
        cumprod_grad(grad, &self_.to_dtype(result.dtype())?, result, dim)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
        let (x, tangent) = factors(self_p, self_t, result)?;
        cumprod_tangent(&tangent, &x, result, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = dim_samples(s);
        out.push(Sample::of(s.away_from_zero(&[3])).with("dim", 0).with("dtype", DType::F64));
        let zeros =
            |shape: &[i64]| s.normal(shape).mul(&s.bools(shape)).expect("samples are small");
        out.push(Sample::of(zeros(&[3, 4])).with("dim", 1));
        out.push(Sample::of(s.away_from_zero(&[2, 3])).with("dim", 0));
        out
    }
}

/// `out[i] = self[i] + factor[i] * out[i - 1]` along `dim`, from nothing before the first; in reverse, `out[i] = self[i] +
/// factor[i] * out[i + 1]`. The first factor (in its direction) has no effect.
///
/// With `out = (I - F)^-1 self`, where `F` holds the factors beside the diagonal, the gradient of `self` is `u = (I - F)^-H
/// grad`, which is the same recurrence in the other direction with the conjugate factors moved by one position; that of
/// `factor[i]` is `u[i] * conj(out[i - 1])`, for `factor[i]` stands in `F` where row `i` meets `out[i - 1]`.
#[op("_linear_recurrence(Tensor self, Tensor factor, int dim, bool reverse=False) -> Tensor", internal,
     method = linear_recurrence, batch = along)]
impl LinearRecurrence {
    fn meta(self_: &Tensor, factor: &Tensor, dim: i64) -> Result<TensorSpec> {
        let spec = scanned(self_, dim, self_.dtype())?;
        pullback_kernels::check_dtype("linear_recurrence", factor.dtype(), self_.dtype())?;
        pullback_kernels::check_shape(
            "linear_recurrence",
            vector_shape(factor),
            vector_shape(self_),
        )?;
        Ok(spec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        factor: &Tensor,
        dim: i64,
        reverse: bool,
    ) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        let (input, factor) = (lifted(self_)?, lifted(factor)?);
        let inputs = (input.view_ref(cpu), factor.view_ref(cpu));
        Ok(scan::linear_recurrence(&mut lifted(result)?.view_mut(cpu), inputs, dim, reverse)?)
    }
    fn vjp_self(grad: &Tensor, factor: &Tensor, dim: i64, reverse: bool) -> Result<Tensor> {
        recurrence_grad(grad, factor, dim, reverse)
    }
    fn vjp_factor(
        grad: &Tensor,
        factor: &Tensor,
        result: &Tensor,
        dim: i64,
        reverse: bool,
    ) -> Result<Tensor> {
        let before = moved(result, dim, !reverse, 0)?;
        recurrence_grad(grad, factor, dim, reverse)?.mul(&before.conj()?)
    }
    fn jvp(
        self_t: &Tensor,
        factor_p: &Tensor,
        factor_t: &Tensor,
        result: &Tensor,
        dim: i64,
        reverse: bool,
    ) -> Result<Tensor> {
        let by_factor = factor_t.mul(&moved(result, dim, !reverse, 0)?)?;
        self_t.add(&by_factor)?.linear_recurrence(factor_p, dim, reverse)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], dim: i64, reverse: bool| {
            let both = [s.normal(shape).into(), s.normal(shape).into()];
            Sample::new(both).with("dim", dim).with("reverse", reverse)
        };
        vec![
            sample(&[2, 4, 2], 1, false),
            sample(&[2, 4], -1, true),
            sample(&[4, 2], 0, true),
            sample(&[3, 1], 1, false),
            sample(&[], 0, false),
            sample(&[0, 3], 0, true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let both = [s.normal(&[3]).into(), s.normal(&[4]).into()];
        let sample = Sample::new(both).with("dim", 0);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "expected shape [3] but got [4]")]
    }
}

/// `ln` of the running sum of `e^self` along `dim`, without overflow.
#[op("logcumsumexp(Tensor self, int dim) -> Tensor", exact_out, apart, batch = along)]
impl Logcumsumexp {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        scanned(self_, dim, self_.dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        along(cpu, result, self_, dim, scan::logcumsumexp)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
        log_sum_grad(grad, self_, result, dim)
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
        if self_p.numel() == 0 {
            return Ok(self_t.clone());
        }
        // The values are shifted by the line's maximum, which cancels in the quotient.
        let top = self_p.real()?.detach()?.amax(&[dim], true)?;
        self_t.mul(&self_p.sub(&top)?.exp()?)?.cumsum(dim)?.div(&result.sub(&top)?.exp()?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3, 2])).with("dim", 1),
            Sample::of(s.normal(&[2, 3])).with("dim", -1),
            Sample::of(s.normal(&[])).with("dim", 0),
            Sample::of(s.normal(&[0, 3])).with("dim", 1),
            Sample::of(s.normal(&[2, 0])).with("dim", 1),
        ]
    }
}

/// The running maximum along `dim` and where it was last reached; NaN stays.
#[op("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", exact_out, batch = along)]
impl Cummax {
    fn meta(self_: &Tensor, dim: i64) -> Result<[TensorSpec; 2]> {
        let values = scanned(self_, dim, self_.dtype())?;
        let indices = values.clone().computed_in(DType::I64);
        Ok([values, indices])
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        cummax_cummin(cpu, [values, indices], self_, dim, scan::cummax)
    }
    fn vjp_self(grad_values: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        grad_values.pick_backward(indices, dim)
    }
    fn jvp(self_t: &Tensor, indices: &Tensor, dim: i64) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(self_t.pick(indices, dim)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        distinct_samples(s)
    }
}

/// The running minimum along `dim` and where it was last reached; NaN stays.
#[op("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", exact_out, batch = along)]
impl Cummin {
    fn meta(self_: &Tensor, dim: i64) -> Result<[TensorSpec; 2]> {
        let values = scanned(self_, dim, self_.dtype())?;
        let indices = values.clone().computed_in(DType::I64);
        Ok([values, indices])
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        cummax_cummin(cpu, [values, indices], self_, dim, scan::cummin)
    }
    fn vjp_self(grad_values: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        grad_values.pick_backward(indices, dim)
    }
    fn jvp(self_t: &Tensor, indices: &Tensor, dim: i64) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(self_t.pick(indices, dim)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        distinct_samples(s)
    }
}

/// Refuses complex numbers, which have no order.
fn cummax_samples(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    vec![Sample::new([s.normal(&[2, 3]).into(), reached().into(), 1_i64.into()])]
}

/// Adds each gradient at the index that `indices`, those of `cummax` or `cummin`, name along `dim`.
#[op("_cummaxmin_backward(Tensor grad_output, Tensor indices, int dim) -> Tensor", internal,
     method = pick_backward, jvp = linear, batch = along)]
impl PickBackward {
    fn meta(grad_output: &Tensor, indices: &Tensor, dim: i64) -> Result<TensorSpec> {
        let spec = scanned(grad_output, dim, grad_output.dtype())?;
        check_places("cummax_backward", indices, grad_output)?;
        Ok(spec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        indices: &Tensor,
        dim: i64,
    ) -> Result<()> {
        let dim = wrap_dim(dim, grad_output.ndim())?;
        Ok(scan::cummax_cummin_backward(
            &mut lifted(result)?.view_mut(cpu),
            lifted(grad_output)?.view_ref(cpu),
            lifted(indices)?.view_ref(cpu),
            dim,
        )?)
    }
    fn vjp_grad_output(grad: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        grad.pick(indices, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        cummax_samples(s)
    }
}

/// The elements that `indices` (of the input's shape) names along `dim`.
#[op("_cummaxmin_pick(Tensor self, Tensor indices, int dim) -> Tensor", internal, method = pick, jvp = linear, batch = along)]
impl Pick {
    fn meta(self_: &Tensor, indices: &Tensor, dim: i64) -> Result<TensorSpec> {
        let spec = scanned(self_, dim, self_.dtype())?;
        check_places("gather", indices, self_)?;
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, indices: &Tensor, dim: i64) -> Result<()> {
        let (target, input, indices) = (lifted(result)?, lifted(self_)?, lifted(indices)?);
        let dim = wrap_dim(dim, self_.ndim())?;
        Ok(pullback_kernels::index::gather(
            &mut target.view_mut(cpu),
            input.view_ref(cpu),
            dim,
            indices.view_ref(cpu),
        )?)
    }
    fn vjp_self(grad: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        grad.pick_backward(indices, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        cummax_samples(s)
    }
}

/// The product of all elements; 1 of none. Integers and bools multiply in int64 unless `dtype` is given. The
/// gradient is exact at zeros too.
#[op("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", batch = reduction_by(&PROD_DIM), autocast = fp32)]
impl Prod {
    fn meta(self_: &Tensor, dtype: Option<DType>) -> Result<TensorSpec> {
        reduced_spec(self_, None, false, running_dtype(self_, dtype))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_in_dtype(cpu, result, self_, None, reduce::prod)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let flat = self_.to_dtype(result.dtype())?.reshape(&[-1])?;
        product_grad(grad, &flat, result, 0)?.reshape(self_.shape())
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        let (x, tangent) = factors(self_p, self_t, result)?;
        let slope = product_grad(&one_of(result)?, &x.reshape(&[-1])?, result, 0)?;
        slope.conj()?.mul(&tangent.reshape(&[-1])?)?.sum()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let zero = s
            .normal(&[2, 2])
            .masked_fill(&first(&[2, 2]), Scalar::Int(0))
            .expect("samples are small");
        vec![
            Sample::of(s.normal(&[2, 3])),
            Sample::of(zero),
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[0])),
            Sample::of(s.normal(&[3]).times(0).expect("samples are small")),
            Sample::of(s.normal(&[2])).with("dtype", DType::F64),
        ]
    }
}

/// The product along `dim`; 1 of no elements.
#[op("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", out, out_dtype,
     node = "ProdBackward1", batch = reduction, autocast = fp32)]
impl ProdDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool, dtype: Option<DType>) -> Result<TensorSpec> {
        reduced_spec(self_, Some(&[dim]), keepdim, running_dtype(self_, dtype))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        reduce_in_dtype(cpu, result, self_, Some(&[dim]), reduce::prod)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        dim: i64,
        keepdim: bool,
    ) -> Result<Tensor> {
        let whole = |t: &Tensor| restore(t, self_.shape(), Some(&[dim]), keepdim);
        product_grad(&whole(grad)?, &self_.to_dtype(result.dtype())?, &whole(result)?, dim)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        dim: i64,
        keepdim: bool,
    ) -> Result<Tensor> {
        let (x, tangent) = factors(self_p, self_t, result)?;
        let result = restore(result, x.shape(), Some(&[dim]), keepdim)?;
        product_grad(&one_of(&result)?, &x, &result, dim)?
            .conj()?
            .mul(&tangent)?
            .sum_dim(Some(&[dim]), keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let zero = s
            .normal(&[2, 3])
            .masked_fill(&first(&[2, 3]), Scalar::Int(0))
            .expect("samples are small");
        vec![
            Sample::of(s.normal(&[2, 3, 2])).with("dim", 1),
            Sample::of(zero).with("dim", -1).with("keepdim", true),
            Sample::of(s.normal(&[])).with("dim", 0),
            Sample::of(s.normal(&[2, 0])).with("dim", 1),
            Sample::of(s.normal(&[2, 2])).with("dim", 0).with("dtype", DType::F64),
        ]
    }
}

type ScanKernel = fn(&mut StridedMut<'_>, StridedRef<'_>, usize) -> pullback_kernels::Result<()>;
type ScanPairKernel = fn(
    &mut StridedMut<'_>,
    &mut StridedMut<'_>,
    StridedRef<'_>,
    usize,
) -> pullback_kernels::Result<()>;

/// The spec of a scan along `dim` of `x`.
fn scanned(x: &Tensor, dim: i64, dtype: DType) -> Result<TensorSpec> {
    wrap_dim(dim, x.ndim())?;
    Ok(TensorSpec::like(x).computed_in(dtype))
}

fn along(cpu: Cpu, result: &Tensor, x: &Tensor, dim: i64, kernel: ScanKernel) -> Result<()> {
    let dim = wrap_dim(dim, x.ndim())?;
    Ok(kernel(&mut lifted(result)?.view_mut(cpu), lifted(x)?.view_ref(cpu), dim)?)
}

/// The dtype of sums and products: int64 of integers and bools, unless another is asked for.
fn running_dtype(x: &Tensor, dtype: Option<DType>) -> DType {
    let natural = if x.dtype().is_integral(true) { DType::I64 } else { x.dtype() };
    dtype.unwrap_or(natural)
}

fn running(name: &str, x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<TensorSpec> {
    let dtype = running_dtype(x, dtype);
    ensure!(
        dtype != DType::Bool || x.ndim() == 0 || x.numel() == 0,
        not_implemented,
        "\"{name}_out_cpu\" not implemented for 'Bool'"
    );
    scanned(x, dim, dtype)
}

fn cummax_cummin(
    cpu: Cpu,
    [values, indices]: [&Tensor; 2],
    x: &Tensor,
    dim: i64,
    kernel: ScanPairKernel,
) -> Result<()> {
    let dim = wrap_dim(dim, x.ndim())?;
    Ok(kernel(
        &mut lifted(values)?.view_mut(cpu),
        &mut lifted(indices)?.view_mut(cpu),
        lifted(x)?.view_ref(cpu),
        dim,
    )?)
}

/// Refuses indices of another shape than what they are for.
fn check_places(name: &str, indices: &Tensor, x: &Tensor) -> Result<()> {
    Ok(pullback_kernels::check_shape(name, vector_shape(indices), vector_shape(x))?)
}

/// The product of everything before each item of the line.
fn product_before(x: &Tensor, dim: i64) -> Result<Tensor> {
    let size = x.shape()[wrap_dim(dim, x.ndim())?];
    let mut one = Dims::from_slice(x.shape());
    one[wrap_dim(dim, x.ndim())?] = 1;
    let ones = TensorSpec::beside(x, &one).zeros()?.plus(1)?;
    crate::ops::shape::join::cat(&[ones, x.slice(dim, Some(0), Some(size - 1), 1)?], dim)?
        .cumprod(dim)
}

/// Whether no element is zero, as far as that can be known: for batched tensors it cannot.
fn has_no_zero(x: &Tensor) -> Result<bool> {
    Ok(x.batched().is_none() && x.detach()?.all()?.item()?.is(1.0))
}

/// The gradient of a product: `grad * conj(result / x)`, at zeros the product of all the others. `grad` and
/// `result` have the reduced dimension in them.
fn product_grad(grad: &Tensor, x: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if x.ndim() == 0 || x.numel() == 0 {
        return grad.expand(x.shape(), false);
    }
    if has_no_zero(x)? {
        return grad.mul(&result.div(x)?.conj()?);
    }
    let after = product_before(&x.flip(&[dim])?, dim)?.flip(&[dim])?;
    grad.mul(&product_before(x, dim)?.mul(&after)?.conj()?)
}

/// The factors of a product and their tangents as they were multiplied: in the result's dtype.
fn factors(x: &Tensor, tangent: &Tensor, result: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((x.to_dtype(result.dtype())?, tangent.to_dtype(result.dtype())?))
}

/// Whether lines along `dim` have one element: their running products are the element itself, infinite ones too.
fn has_one(x: &Tensor, dim: i64) -> Result<bool> {
    let at = wrap_dim(dim, x.ndim())?;
    Ok(x.shape().get(at).is_none_or(|&size| size == 1))
}

/// The items along `dim` moved by one position, `forth` or back; the position that becomes free is
/// `fill`.
fn moved(x: &Tensor, dim: i64, forth: bool, fill: i64) -> Result<Tensor> {
    if x.ndim() == 0 || x.numel() == 0 {
        return x.zeros_like()?.plus(fill);
    }
    let size = x.shape()[wrap_dim(dim, x.ndim())?];
    let first = x.slice(dim, Some(0), Some(1), 1)?.zeros_like()?.plus(fill)?;
    if forth {
        crate::ops::shape::join::cat(&[first, x.slice(dim, Some(0), Some(size - 1), 1)?], dim)
    } else {
        crate::ops::shape::join::cat(&[x.slice(dim, Some(1), None, 1)?, first], dim)
    }
}

/// The gradient of the first argument of a recurrence: see [`LinearRecurrence`].
fn recurrence_grad(grad: &Tensor, factor: &Tensor, dim: i64, reverse: bool) -> Result<Tensor> {
    // (What `moved` fills in is the factor of the first item, which has no effect.)
    grad.linear_recurrence(&moved(&factor.conj()?, dim, reverse, 0)?, dim, !reverse)
}

/// The gradient of a running product `y`: item `k` reaches `y[i]`, `i >= k`, with the product of the others up to `i`, so that
///
/// `sum over i >= k of grad[i] * conj(y[k - 1] * x[k + 1] * ... * x[i]) = conj(y[k - 1]) * s[k]`
///
/// where `s[k] = grad[k] + conj(x[k + 1]) * s[k + 1]`: a linear recurrence from the end, without a division, so that zeros
/// are factors like any others, and derivatives of any order follow from those of its parts.
fn cumprod_grad(grad: &Tensor, x: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if x.numel() == 0 || has_one(x, dim)? {
        return Ok(grad.clone());
    }
    let needs_ops = crate::autograd::needs_ops([Some(grad), Some(x)]);
    if !needs_ops && has_no_zero(x)? {
        return grad.mul(&result.conj()?)?.sum_from(dim)?.div(&x.conj()?);
    }
    let before = moved(result, dim, true, 1)?.conj()?;
    let reach =
        grad.linear_recurrence(&moved(&x.conj()?, dim, false, 0)?, dim, true)?.mul(&before)?;
    if needs_ops {
        return Ok(reach);
    }
    // Behind a zero the product is 0, so that even an infinite sum contributes nothing.
    let zero = Tensor::wrapped(0)?;
    reach.masked_fill(&before.eq(&zero)?, Scalar::Int(0))
}

/// The tangent of a running product `y`: `t[i] = tangent[i] * y[i - 1] + x[i] * t[i - 1]`, by the product rule.
fn cumprod_tangent(tangent: &Tensor, x: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if x.numel() == 0 || has_one(x, dim)? {
        return Ok(tangent.clone());
    }
    tangent.mul(&moved(result, dim, true, 1)?)?.linear_recurrence(x, dim, false)
}

/// The gradient of `logcumsumexp`: the sum over later outputs of `grad * e^(x - out)`, for each sign of the
/// gradient in logarithms, so that nothing overflows.
fn log_sum_grad(grad: &Tensor, x: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if x.ndim() == 0 || x.numel() == 0 {
        return Ok(grad.clone());
    }
    let needs = |t: &Tensor| t.requires_grad() || crate::autograd::needs_derivative_of(t);
    if x.dtype().is_complex() || needs(grad) || needs(x) {
        // Relative to the line's maximum; differentiable, and exact while the line spans fewer than 700 units.
        let top = x.real()?.detach()?.amax(&[dim], true)?;
        let scaled = grad.mul(&top.sub(result)?.exp()?.conj()?)?;
        return scaled.sum_from(dim)?.mul(&x.sub(&top)?.exp()?.conj()?);
    }
    let part = |grad: &Tensor| {
        let log = grad
            .log()?
            .masked_fill(&grad.le(&Tensor::wrapped(0)?)?, Scalar::Float(f64::NEG_INFINITY))?;
        log.sub(result)?.flip(&[dim])?.logcumsumexp(dim)?.flip(&[dim])?.add(x)?.exp()
    };
    part(grad)?.sub(&part(&grad.neg()?)?)
}

fn one_of(like: &Tensor) -> Result<Tensor> {
    like.zeros_like()?.plus(1)
}

/// A mask of the first element.
fn first(shape: &[i64]) -> Tensor {
    // bounded: samples are small.
    let mut data = vec![crate::Bool::new(false); shape.iter().product::<i64>() as usize];
    data[0] = crate::Bool::new(true);
    Tensor::from_slice(&data, shape).expect("samples are small")
}

/// The indices at which running maxima along the rows of a (2, 3) matrix were last reached.
fn reached() -> Tensor {
    Tensor::from_slice(&[0_i64, 0, 2, 0, 1, 1], &[2, 3]).expect("samples are small")
}

fn dim_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3, 2])).with("dim", 1),
        Sample::of(s.normal(&[2, 3])).with("dim", -1),
        Sample::of(s.normal(&[])).with("dim", 0),
        Sample::of(s.normal(&[0, 3])).with("dim", 1),
        Sample::of(s.normal(&[2, 0])).with("dim", 1),
    ]
}

fn distinct_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.distinct(&[2, 3, 2])).with("dim", 1),
        Sample::of(s.distinct(&[2, 3])).with("dim", -1),
        Sample::of(s.distinct(&[])).with("dim", 0),
        Sample::of(s.distinct(&[0, 3])).with("dim", 1),
    ]
}
