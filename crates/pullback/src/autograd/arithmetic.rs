//! The few ops that the engine itself needs. The only file outside `ops` that names one.

use super::{mode, tangent};
use crate::dispatch::{Arg, OpDef};
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{DType, Device, Result, Tensor, TensorSpec};

/// `a + b`, recorded if grad mode is on. (The op takes sparse tensors second.)
pub(super) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.is_sparse() && !b.is_sparse() { b.add(a) } else { a.add(b) }
}
/// The tensors one after the other along `dim`.
pub(super) fn cat(parts: &[Tensor], dim: i64) -> Result<Tensor> {
    crate::ops::shape::join::cat(parts, dim)
}
/// The parts of these sizes along `dim`.
pub(super) fn split(t: &Tensor, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    t.split_with_sizes(sizes, dim)
}
/// A 0-dim tensor as one with an element, or back.
pub(super) fn reshape(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    t.reshape(shape)
}
/// Whether an element is NaN.
pub(super) fn has_nan(t: &Tensor) -> Result<bool> {
    if !t.dtype().is_differentiable() {
        return Ok(false);
    }
    has_nonzero(&t.isnan()?)
}
/// Whether an element is not zero.
pub(super) fn has_nonzero(t: &Tensor) -> Result<bool> {
    Ok(t.any()?.item()? == crate::Scalar::Bool(true))
}
/// `a += b`.
pub(super) fn add_in_place(a: &Tensor, b: &Tensor) -> Result<()> {
    a.add_(b).map(|_| ())
}
/// A copy of `t` with history.
pub(super) fn clone(t: &Tensor) -> Result<Tensor> {
    t.clone_tensor(None)
}
/// A row-major copy.
pub(super) fn contiguous_clone(t: &Tensor) -> Result<Tensor> {
    t.clone_tensor(Some(crate::MemoryFormat::Contiguous))
}
/// A copy of `grad` in the layout that the contract asks of `leaf`'s gradient.
pub(super) fn clone_like(grad: &Tensor, leaf: &Tensor) -> Result<Tensor> {
    let shape = leaf.shape();
    if crate::tensor::is_non_overlapping_and_dense(shape, leaf.strides()) {
        return copy_with_strides(grad, shape, leaf.strides());
    }
    copy_with_strides(grad, shape, &crate::tensor::contiguous_strides(shape))
}
/// A copy of `t` with these strides, gaps between elements included.
pub(super) fn copy_with_strides(t: &Tensor, shape: &[i64], strides: &[i64]) -> Result<Tensor> {
    if t.batched().is_some() {
        // Each example lies so.
        let out = t.new_empty_strided(shape, strides)?;
        return out.copy_(t, false);
    }
    if t.overrides_ops() || t.is_sparse() {
        // What answers ops itself lays out its own.
        return t.clone_tensor(None);
    }
    let out = Tensor::empty_strided(shape, strides, t.dtype(), t.device())?;
    if t.needs_layers()
        || mode::is_recording() && t.requires_grad()
        || tangent::concerns(&[Arg::Tensor(t)])
    {
        out.copy_(t, false)?;
    } else {
        out.copy_data(Cpu::of(t)?, t)?;
    }
    Ok(out)
}
/// The op of [`as_strided`].
pub(super) static AS_STRIDED: &OpDef = &crate::ops::shape::view::AS_STRIDED;
/// The batching rules of ops that name none.
pub(super) static DEFAULT_RULES: &crate::dispatch::batch::DefaultRules =
    &crate::ops::batch::DEFAULT_RULES;
/// A view by sizes, strides and offset.
pub(super) fn as_strided(
    t: &Tensor,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
) -> Result<Tensor> {
    t.as_strided(shape, strides, Some(offset))
}
/// Complex numbers as pairs of real ones.
pub(super) fn view_as_real(t: &Tensor) -> Result<Tensor> {
    t.view_as_real()
}
/// What a real tensor has of a complex gradient.
pub(super) fn real_part(t: &Tensor) -> Result<Tensor> {
    t.real_view()
}
/// The same without history, made by the op.
pub(super) fn detach(t: &Tensor) -> Result<Tensor> {
    let _below = mode::exclude_recording();
    t.detach()
}
/// A view of everything.
pub(super) fn alias(t: &Tensor) -> Result<Tensor> {
    t.alias()
}
/// The complex conjugate.
pub(super) fn conj(t: &Tensor) -> Result<Tensor> {
    t.conj()
}
/// A view of the conjugates.
pub(super) fn conj_view(t: &Tensor) -> Result<Tensor> {
    t.conj_view()
}
/// Conjugates in memory.
pub(super) fn resolve_conj(t: &Tensor) -> Result<Tensor> {
    t.resolve_conj()
}
/// A view of the negatives.
pub(super) fn neg_view(t: &Tensor) -> Result<Tensor> {
    t.neg_view()
}
/// Repeated to a larger shape without copying.
pub(super) fn expand(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    t.expand(shape, false)
}
/// Pairs of real numbers as complex ones.
pub(super) fn view_as_complex(t: &Tensor) -> Result<Tensor> {
    t.view_as_complex()
}
/// Writes `source` into `target`.
pub(super) fn copy_in_place(target: &Tensor, source: &Tensor) -> Result<()> {
    target.copy_(source, false).map(|_| ())
}
/// Writes zeros.
pub(super) fn zero_in_place(target: &Tensor) -> Result<()> {
    target.zero_().map(|_| ())
}
/// Converts, recorded if grad mode is on.
pub(super) fn to_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    t.to_dtype(dtype)
}
/// Copies to another device, recorded if grad mode is on.
pub(super) fn to_device(t: &Tensor, device: Device) -> Result<Tensor> {
    t.to(None, Some(device), false, None)
}
/// Ones.
pub(super) fn ones(shape: &[i64], dtype: DType) -> Result<Tensor> {
    TensorSpec::of(shape, dtype).full(crate::Scalar::Int(1))
}

/// Ones of the same shape, dtype and device.
pub(super) fn ones_like(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    t.ones_like()
}

/// Zeros of the same shape, dtype and device.
pub(super) fn zeros_like(t: &Tensor) -> Result<Tensor> {
    t.zeros_like()
}

/// Which elements are zero.
pub(super) fn is_zero(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    t.eq(&Tensor::wrapped(0)?)
}
/// Whether all are, as a tensor.
pub(super) fn is_all_zero(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    is_zero(t)?.all()
}
/// Whether both are.
pub(super) fn both(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.logical_and(b)
}
/// Zeros in the places of NaN where `mask` says so.
pub(super) fn without_nan(t: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let at = {
        let _unrecorded = mode::set_grad(false);
        t.isnan()?.logical_and(mask)?
    };
    t.masked_fill(&at, crate::Scalar::Int(0))
}

/// Sums `grad` down to `shape`, which broadcasts to the gradient's shape.
pub(super) fn sum_to(grad: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let skip = grad.ndim() - shape.len();
    let mut dims: crate::Dims = (0..skip as i64).collect();
    for (index, &size) in shape.iter().enumerate() {
        if size == 1 && grad.shape()[skip + index] != 1 {
            dims.push((skip + index) as i64);
        }
    }
    let summed = if dims.is_empty() { grad.clone() } else { grad.sum_dim(Some(&dims), true)? };
    if skip == 0 { Ok(summed) } else { summed.reshape(shape) }
}

/// Whether `shape` broadcasts to `larger`.
pub(super) fn is_expandable(shape: &[i64], larger: &[i64]) -> bool {
    shape.len() <= larger.len()
        && shape.iter().rev().zip(larger.iter().rev()).all(|(&a, &b)| a == b || a == 1)
}

/// Messages print shapes as `[2, 3]`.
pub(super) fn shape_text(shape: &[i64]) -> String {
    list(shape)
}
