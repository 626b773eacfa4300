//! Reductions.

use crate::dispatch::OpDef;
use crate::tensor::shape::wrap_dims;
use crate::{DType, Dims, Result, Tensor};
use pullback_kernels::{StridedMut, StridedRef, reduce};
use pullback_macros::op;

/// The ops of this family.
pub static OPS: &[&OpDef] = &[&SUM, &SUM_DIM];

/// Sums all elements. Integer and bool inputs sum in int64 unless `dtype` is given.
#[op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", jvp = linear, batch = reduction, samples = unary)]
impl Sum {
    fn cpu(self_: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        sum(self_, None, false, dtype)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.expand(self_shape, false)
    }
}

/// Sums over `dim`, or over every dimension if `dim` is `None` or empty.
/// Integer and bool inputs sum in int64 unless `dtype` is given.
#[op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     out, jvp = linear, batch = reduction)]
impl SumDim {
    fn cpu(self_: &Tensor, dim: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        sum(self_, dim, keepdim, dtype)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        unreduce(grad, self_shape, dim, keepdim)
    }
    fn samples(s: &crate::gradcheck::Sampler) -> Vec<crate::gradcheck::Sample> {
        use crate::gradcheck::Sample;
        vec![
            Sample::of(s.normal(&[2, 3, 2])).with("dim", [1]),
            Sample::of(s.normal(&[2, 3])).with("dim", [-1]).with("keepdim", true),
            Sample::of(s.normal(&[2, 3])).with("dim", [0, 1]),
            Sample::of(s.normal(&[])).with("dim", [0]),
            Sample::of(s.normal(&[0, 3])).with("dim", [0]),
        ]
    }
}

fn sum(self_: &Tensor, dim: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let natural = if self_.dtype().is_integral(true) { DType::I64 } else { self_.dtype() };
    let dtype = dtype.unwrap_or(natural);
    let dims = wrap_dims(dim, self_.ndim())?;
    let input = if self_.dtype() == dtype || self_.dtype().is_integral(true) && dtype == DType::I64 {
        self_.clone()
    } else {
        self_.converted(dtype)?
    };
    let out = Tensor::empty_of(&kept_shape(self_.shape(), &dims), dtype)?;
    reduce::sum(&mut out.view_mut(), input.view_ref(), &dims)?;
    squeeze_dims(out, &dims, keepdim)
}

/// Reduces `dims` of `x` into a new tensor of `dtype` with `kernel`.
pub(crate) fn reduced(
    x: &Tensor,
    dims: &[usize],
    keepdim: bool,
    dtype: DType,
    kernel: impl FnOnce(&mut StridedMut<'_>, StridedRef<'_>, &[usize]) -> pullback_kernels::Result<()>,
) -> Result<Tensor> {
    let out = Tensor::empty_of(&kept_shape(x.shape(), dims), dtype)?;
    kernel(&mut out.view_mut(), x.view_ref(), dims)?;
    squeeze_dims(out, dims, keepdim)
}

/// `shape` with size 1 at `dims`.
pub(crate) fn kept_shape(shape: &[i64], dims: &[usize]) -> Dims {
    let mut kept = Dims::from_slice(shape);
    for &dim in dims {
        if dim < kept.len() {
            kept[dim] = 1;
        }
    }
    kept
}

/// Drops the reduced dimensions of a fresh result unless they are to be kept.
pub(crate) fn squeeze_dims(out: Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    if keepdim || out.ndim() == 0 {
        return Ok(out);
    }
    let kept = |i: &usize| !dims.contains(i);
    let shape: Dims = (0..out.ndim()).filter(kept).map(|i| out.shape()[i]).collect();
    let strides: Dims = (0..out.ndim()).filter(kept).map(|i| out.strides()[i]).collect();
    out.alias_with(shape, strides, 0)
}

/// Spreads a reduction's gradient over the reduced dimensions again.
pub(crate) fn unreduce(grad: &Tensor, shape: &[i64], dim: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let dims = wrap_dims(dim, shape.len())?;
    let grad = if keepdim { grad.clone() } else { grad.reshape(&kept_shape(shape, &dims))? };
    grad.expand(shape, false)
}
