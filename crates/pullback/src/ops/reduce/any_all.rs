//! Logical reductions and counts: `any`, `all`, `count_nonzero`.
//!
//! NaN counts as true. Results are bool, but uint8 for uint8 input.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{Sample, Sampler};
use crate::ops::reduce::sum::{reduce_into, reduced_spec, spec_over};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dims;
use crate::{DType, Device, Result, Tensor, TensorSpec};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&ANY, &ANY_DIM, &ANY_DIMS, &ALL, &ALL_DIM, &ALL_DIMS, &COUNT_NONZERO, &COUNT_NONZERO_DIMS];

/// Whether any element is not zero; false for no elements.
#[op("any(Tensor self) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction_by(&ANY_DIM), samples = unary, sparse = any(self))]
impl Any {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        reduced_spec(self_, None, false, any_all_dtype(self_)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(None, self_.ndim())?, reduce::any)
    }
}

/// Whether any element along `dim` is not zero.
#[op("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction)]
impl AnyDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<TensorSpec> {
        reduced_spec(self_, Some(&[dim]), keepdim, any_all_dtype(self_)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(Some(&[dim]), self_.ndim())?, reduce::any)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// Whether any element over the dimensions `dim` (all if `None`) is not zero.
#[op("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction_of_listed)]
impl AnyDims {
    fn meta(self_: &Tensor, dim: Option<&[i64]>, keepdim: bool) -> Result<TensorSpec> {
        Ok(spec_over(self_, &listed(dim, self_.ndim())?, keepdim, any_all_dtype(self_)?))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
        reduce_into(cpu, result, self_, &listed(dim, self_.ndim())?, reduce::any)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dims_samples(s)
    }
}

/// Whether every element is not zero; true for no elements.
#[op("all(Tensor self) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction_by(&ALL_DIM), samples = unary)]
impl All {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        reduced_spec(self_, None, false, any_all_dtype(self_)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(None, self_.ndim())?, reduce::all)
    }
}

/// Whether every element along `dim` is not zero.
#[op("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction)]
impl AllDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<TensorSpec> {
        reduced_spec(self_, Some(&[dim]), keepdim, any_all_dtype(self_)?)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(Some(&[dim]), self_.ndim())?, reduce::all)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dim_samples(s)
    }
}

/// Whether every element over the dimensions `dim` (all if `None`) is not zero.
#[op("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", narrow_floats, any_out, not_differentiable, batch = reduction_of_listed)]
impl AllDims {
    fn meta(self_: &Tensor, dim: Option<&[i64]>, keepdim: bool) -> Result<TensorSpec> {
        Ok(spec_over(self_, &listed(dim, self_.ndim())?, keepdim, any_all_dtype(self_)?))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<&[i64]>) -> Result<()> {
        reduce_into(cpu, result, self_, &listed(dim, self_.ndim())?, reduce::all)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dims_samples(s)
    }
}

/// How many elements are not zero, over `dim` or all dimensions, as int64.
#[op("count_nonzero(Tensor self, int? dim=None) -> Tensor", not_differentiable, batch = reduction)]
impl CountNonzero {
    fn meta(self_: &Tensor, dim: Option<i64>) -> Result<TensorSpec> {
        reduced_spec(self_, dim.as_ref().map(std::slice::from_ref), false, DType::I64)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<i64>) -> Result<()> {
        let dims = wrap_dims(dim.as_ref().map(std::slice::from_ref), self_.ndim())?;
        reduce_into(cpu, result, self_, &dims, reduce::count_nonzero)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.bools(&[2, 3])),
            Sample::of(s.normal(&[2, 3])).with("dim", 1),
            Sample::of(s.normal(&[0])),
        ]
    }
}

/// How many elements are not zero over the dimensions `dim` (all if empty), as int64.
#[op("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", not_differentiable, batch = reduction)]
impl CountNonzeroDims {
    fn meta(self_: &Tensor, dim: &[i64]) -> Result<TensorSpec> {
        reduced_spec(self_, Some(dim), false, DType::I64)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<()> {
        let dims = wrap_dims(Some(dim), self_.ndim())?;
        reduce_into(cpu, result, self_, &dims, reduce::count_nonzero)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.bools(&[2, 3])).with("dim", [0, 1]),
            Sample::of(s.bools(&[2, 3])).with("dim", [-1]),
        ]
    }
}

fn any_all_dtype(x: &Tensor) -> Result<DType> {
    ensure!(
        x.dtype() != DType::F4E2M1FNX2,
        not_implemented,
        "\"copy_\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool })
}

/// As `wrap_dims`, but an empty list means no dimension at all.
fn listed(dim: Option<&[i64]>, ndim: usize) -> Result<smallvec::SmallVec<[usize; 5]>> {
    if dim.is_some_and(<[i64]>::is_empty) {
        Ok(smallvec::SmallVec::new())
    } else {
        wrap_dims(dim, ndim)
    }
}

fn dim_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.bools(&[2, 3, 2])).with("dim", 1),
        Sample::of(s.normal(&[2, 3])).with("dim", -1).with("keepdim", true),
        Sample::of(s.integers(&[], 0, 2)).with("dim", 0),
        Sample::of(s.normal(&[0, 3])).with("dim", 0),
    ]
}

fn dims_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.bools(&[2, 3, 2])).with("dim", [0, 2]),
        Sample::of(s.normal(&[2, 3])).with("keepdim", true),
        Sample::of(s.bools(&[2, 3])).with("dim", []),
    ]
}

/// The tensor with the batch dimensions of all levels, where it is batched.
pub(in crate::ops) fn all_examples(t: &Tensor) -> Tensor {
    let mut all = t.clone();
    while let Some((_, physical)) = all.batched() {
        all = physical;
    }
    all
}

/// Whether any element of `mask`, of any example where it is batched, is true: by this a rule
/// chooses one of two formulas for all examples. It is computed by ops, so that it is right for
/// classes and modes that override the ops on `mask`. For a mask without memory it is false: the
/// usual formula gives a result of the same spec as the other, and refuses nothing for its
/// elements.
pub(in crate::ops) fn is_any_true(mask: &Tensor) -> Result<bool> {
    if mask.device() == Device::Meta {
        return Ok(false);
    }
    Ok(!all_examples(&mask.detach()?).any()?.item()?.is(0.0))
}
