//! Sums, and what every reduction is made with.
//!
//! [`reduced_spec`] gives the spec of a result; a kernel writes it with size 1 at the reduced
//! dimensions ([`reduce_into`]). Means are in `mean`, `amin` and its kin in `min_max`, `any` and
//! `all` in `any_all`, variances in `variance`, norms in `linalg/vector_norm`.

use crate::dispatch::{OpDef, Value};
use crate::error::bail;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::min_max::lifted;
use crate::tensor::shape::{list, wrap_dim, wrap_dims};
use crate::tensor::{Cpu, TensorSpec, contiguous_strides};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::{StridedMut, StridedRef, reduce};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SUM, &SUM_DIM, &SUM_TO_SIZE];

/// Sums all elements. Integer and bool inputs sum in int64 unless `dtype` is given.
#[op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", jvp = linear, batch = reduction_by(&SUM_DIM), samples = unary, sparse = sum(self, dtype))]
impl Sum {
    fn meta(self_: &Tensor, dtype: Option<DType>) -> Result<TensorSpec> {
        Ok(TensorSpec::beside(self_, &[]).computed_in(sum_dtype(self_, dtype)))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        sum_into(cpu, result, self_, None)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.expand(self_shape, false)
    }
}

/// Sums over `dim`, or over every dimension if `dim` is `None` or empty.
/// Integer and bool inputs sum in int64 unless `dtype` is given.
#[op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     out, out_dtype, node = "SumBackward1", jvp = linear, batch = reduction, sparse = sum_dim(self, dim, keepdim, dtype))]
impl SumDim {
    fn meta(
        self_: &Tensor,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<TensorSpec> {
        reduced_spec(self_, dim, keepdim, sum_dtype(self_, dtype))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
        sum_into(cpu, result, self_, dim)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: Option<&[i64]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        unreduce(grad, self_shape, dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// Sums over the dimensions that broadcasting from shape `size` to the tensor's has added or repeated: the tensor itself if
/// there are none.
#[op("sum_to_size(Tensor self, SymInt[] size) -> Tensor", method_only)]
impl SumToSize {
    fn composite(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
        let shape = self_.shape();
        let added = shape.len().checked_sub(size.len());
        let fits = |skip: usize| size.iter().zip(&shape[skip..]).all(|(&n, &m)| n == m || n == 1);
        let Some(added) = added.filter(|&skip| fits(skip)) else {
            bail!(runtime, "size {{{}}} is not expandable to size {{{}}}.", list(size), list(shape))
        };
        if size.is_empty() {
            return self_.sum();
        }
        if size == shape {
            return Ok(self_.clone());
        }
        let is_summed = |&d: &usize| d < added || size[d - added] == 1 && shape[d] != 1;
        let dims: Vec<i64> = (0..shape.len()).filter(is_summed).map(|d| d as i64).collect();
        self_.sum_dim(Some(&dims), true)?.reshape(size)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], size: &[i64]| Sample::of(s.normal(shape)).with("size", size);
        vec![
            sample(&[4, 2, 3], &[2, 1]),
            sample(&[2, 3], &[2, 3]),
            sample(&[2, 3], &[]),
            sample(&[0, 2], &[1, 2]),
            sample(&[2, 1, 3], &[1, 3]),
            sample(&[], &[]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], size: &[i64], phrase| {
            let sample = Sample::of(s.normal(shape)).with("size", size);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[4, 2, 3], &[4, 2], "size {[4, 2]} is not expandable to size {[4, 2, 3]}."),
            bad(&[3], &[3, 3], "size {[3, 3]} is not expandable to size {[3]}."),
            bad(&[2, 2], &[-1], "size {[-1]} is not expandable"),
        ]
    }
}

/// The dtype of a sum: integers and bools are added up in int64 unless another is asked for.
fn sum_dtype(self_: &Tensor, dtype: Option<DType>) -> DType {
    let own = self_.dtype();
    dtype.unwrap_or(if own.is_integral(true) { DType::I64 } else { own })
}

fn sum_into(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
    let dims = wrap_dims(dim, self_.ndim())?;
    let (from, to) = (self_.dtype(), result.dtype());
    if from == to || from.is_integral(true) && to == DType::I64 {
        return reduce_into(cpu, result, self_, &dims, reduce::sum);
    }
    reduce_into(cpu, result, &self_.converted(cpu, to)?, &dims, reduce::sum)
}

/// The spec of a reduction of `x` over `dim` (over every dimension if it is `None` or empty), in
/// `dtype`.
///
/// # Errors
/// `IndexError` for a dimension that `x` has not, `RuntimeError` for one that is named twice.
pub(crate) fn reduced_spec(
    x: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: DType,
) -> Result<TensorSpec> {
    Ok(spec_over(x, &wrap_dims(dim, x.ndim())?, keepdim, dtype))
}

/// As [`reduced_spec`], for dimensions that were wrapped already.
pub(crate) fn spec_over(x: &Tensor, dims: &[usize], keepdim: bool, dtype: DType) -> TensorSpec {
    let shape = if keepdim { kept_shape(x.shape(), dims) } else { without(x.shape(), dims) };
    TensorSpec::beside(x, &shape).computed_in(dtype)
}

/// As [`reduce_into`], of `x` in the dtype of `result`.
pub(crate) fn reduce_in_dtype(
    cpu: Cpu,
    result: &Tensor,
    x: &Tensor,
    dim: Option<&[i64]>,
    kernel: impl FnOnce(&mut StridedMut<'_>, StridedRef<'_>, &[usize]) -> pullback_kernels::Result<()>,
) -> Result<()> {
    let dims = wrap_dims(dim, x.ndim())?;
    reduce_into(cpu, result, &x.in_dtype(cpu, result.dtype())?, &dims, kernel)
}

/// Reduces `dims` of `x` with `kernel` into `result`, which is row-major with or without these dimensions.
pub(crate) fn reduce_into(
    cpu: Cpu,
    result: &Tensor,
    x: &Tensor,
    dims: &[usize],
    kernel: impl FnOnce(&mut StridedMut<'_>, StridedRef<'_>, &[usize]) -> pullback_kernels::Result<()>,
) -> Result<()> {
    let kept = kept_shape(x.shape(), dims);
    let strides = contiguous_strides(&kept);
    let mut view = result.view_mut_as(cpu, &kept, &strides);
    Ok(kernel(&mut view, x.view_ref(cpu), dims)?)
}

/// The spec of a selection along `dim` of `x`: elements, and the int64 indices that they had.
///
/// # Errors
/// As [`reduced_spec`].
pub(crate) fn picked_spec(x: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
    let values = reduced_spec(x, Some(&[dim]), keepdim, x.dtype())?;
    let indices = values.clone().computed_in(DType::I64);
    Ok([values, indices])
}

/// Selects one element of each line along `dim` of `x` with `kernel`, which knows no tensors
/// without dimensions, into row-major `values` and `indices` with or without this dimension.
pub(crate) fn pick_into(
    cpu: Cpu,
    [values, indices]: [&Tensor; 2],
    x: &Tensor,
    dim: i64,
    kernel: impl FnOnce(
        &mut StridedMut<'_>,
        &mut StridedMut<'_>,
        StridedRef<'_>,
        usize,
    ) -> pullback_kernels::Result<()>,
) -> Result<()> {
    let at = wrap_dim(dim, x.ndim())?;
    let input = lifted(x)?;
    let kept = kept_shape(input.shape(), &[at]);
    let strides = contiguous_strides(&kept);
    Ok(kernel(
        &mut values.view_mut_as(cpu, &kept, &strides),
        &mut indices.view_mut_as(cpu, &kept, &strides),
        input.view_ref(cpu),
        at,
    )?)
}

/// `sizes` (or strides) without those of `dims`.
pub(crate) fn without(sizes: &[i64], dims: &[usize]) -> Dims {
    let mut left = Dims::new();
    for (dim, &size) in sizes.iter().enumerate() {
        if !dims.contains(&dim) {
            left.push(size);
        }
    }
    left
}

/// `shape` with size 1 at `dims`.
#[inline]
pub(crate) fn kept_shape(shape: &[i64], dims: &[usize]) -> Dims {
    let mut kept = crate::tensor::dims(shape);
    for &dim in dims {
        if dim < kept.len() {
            kept[dim] = 1;
        }
    }
    kept
}

/// A reduction's result, or its gradient, with the reduced dimensions in it as size 1.
pub(crate) fn restore(
    t: &Tensor,
    shape: &[i64],
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<Tensor> {
    if keepdim || t.ndim() == shape.len() {
        return Ok(t.clone());
    }
    t.reshape(&kept_shape(shape, &wrap_dims(dim, shape.len())?))
}

/// Calls of a reduction over a list of dimensions.
pub(crate) fn dim_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[2, 3, 2])).with("dim", [1]),
        Sample::of(s.normal(&[2, 3])).with("dim", [-1]).with("keepdim", true),
        Sample::of(s.normal(&[2, 3])).with("dim", [0, 1]),
        Sample::of(s.normal(&[2, 3])).with("dim", Value::None),
        Sample::of(s.normal(&[])).with("dim", [0]),
        Sample::of(s.normal(&[2, 0])).with("dim", [0]),
    ]
}

/// Spreads a reduction's gradient over the reduced dimensions again.
pub(crate) fn unreduce(
    grad: &Tensor,
    shape: &[i64],
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<Tensor> {
    let dims = wrap_dims(dim, shape.len())?;
    let grad = if keepdim { grad.clone() } else { grad.reshape(&kept_shape(shape, &dims))? };
    grad.expand(shape, false)
}
