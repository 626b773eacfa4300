//! The few ops that the engine itself needs. This is the only file outside `ops` that names ops.

use super::thread::level::{self, keys_of_word};
use super::thread::mode;
use crate::dispatch::{Arg, Call, Form, OpDef, Outputs, keys_of};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, Key, watch};
use crate::{DType, Device, Result, Tensor, TensorSpec};

/// `a + b`, recorded if grad mode is on. (Of a strided and a sparse tensor the sparse one must be the second.)
pub(in crate::autograd) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.is_sparse() && !b.is_sparse() { b.add(a) } else { a.add(b) }
}
/// The tensors one after the other along `dim`.
pub(in crate::autograd) fn cat(parts: &[Tensor], dim: i64) -> Result<Tensor> {
    crate::ops::shape::join::cat(parts, dim)
}
/// The parts of these sizes along `dim`.
pub(in crate::autograd) fn split(t: &Tensor, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    t.split_with_sizes(sizes, dim)
}
/// `t` in another shape.
pub(in crate::autograd) fn reshape(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    t.reshape(shape)
}
/// Whether an element of `t` is NaN.
pub(in crate::autograd) fn has_nan(t: &Tensor) -> Result<bool> {
    if !t.dtype().is_differentiable() {
        return Ok(false);
    }
    has_nonzero(&t.isnan()?)
}
/// Whether an element of `t` is not zero.
pub(in crate::autograd) fn has_nonzero(t: &Tensor) -> Result<bool> {
    Ok(t.any()?.item()? == crate::Scalar::Bool(true))
}
/// `a += b`.
pub(in crate::autograd) fn add_in_place(a: &Tensor, b: &Tensor) -> Result<()> {
    a.add_(b).map(|_| ())
}
/// A copy of `t` with history.
pub(in crate::autograd) fn clone(t: &Tensor) -> Result<Tensor> {
    t.clone_tensor(None)
}
/// A row-major copy of `t`.
pub(in crate::autograd) fn contiguous_clone(t: &Tensor) -> Result<Tensor> {
    t.clone_tensor(Some(crate::MemoryFormat::Contiguous))
}
/// A copy of `grad` in the layout that the layout contract demands of `leaf`'s gradient.
pub(in crate::autograd) fn clone_like(grad: &Tensor, leaf: &Tensor) -> Result<Tensor> {
    let shape = leaf.shape();
    if crate::tensor::is_non_overlapping_and_dense(shape, leaf.strides()) {
        return copy_with_strides(grad, shape, leaf.strides());
    }
    copy_with_strides(grad, shape, &crate::tensor::contiguous_strides(shape))
}
/// A copy of `t` with these strides, gaps between elements included.
pub(in crate::autograd) fn copy_with_strides(
    t: &Tensor,
    shape: &[i64],
    strides: &[i64],
) -> Result<Tensor> {
    if t.batched().is_some() || watch::is_on() {
        // (Within `vmap` each example has these strides; a recording sees ops only.)
        let out = t.new_empty_strided(shape, strides)?;
        return out.copy_(t, false);
    }
    if t.overrides_ops() || t.is_sparse() {
        // A tensor with `__torch_dispatch__` has a layout of its own.
        return t.clone_tensor(None);
    }
    let out = Tensor::empty_strided(shape, strides, t.dtype(), t.device())?;
    if t.needs_layers() || mode::is_recording() && t.requires_grad() || level::is_open() {
        out.copy_(t, false)?;
    } else {
        out.copy_data(Cpu::of(t)?, t)?;
    }
    Ok(out)
}
/// The op of [`as_strided`].
pub(in crate::autograd) static AS_STRIDED: &OpDef = &crate::ops::shape::view::AS_STRIDED;
/// The batching rules of ops that name none.
pub(in crate::autograd) static DEFAULT_RULES: &crate::dispatch::batch::DefaultRules =
    &crate::ops::batch::DEFAULT_RULES;
/// A view by sizes, strides and offset.
pub(in crate::autograd) fn as_strided(
    t: &Tensor,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
) -> Result<Tensor> {
    t.as_strided(shape, strides, Some(offset))
}
/// Complex numbers as pairs of real ones.
pub(in crate::autograd) fn view_as_real(t: &Tensor) -> Result<Tensor> {
    t.view_as_real()
}
/// The real part of a complex gradient, for a real tensor.
pub(in crate::autograd) fn real_part(t: &Tensor) -> Result<Tensor> {
    t.real_view()
}
/// `t` without history, by the op `detach`.
pub(in crate::autograd) fn detach(t: &Tensor) -> Result<Tensor> {
    let _below = mode::exclude_recording();
    t.detach()
}
/// A view of all of `t`.
pub(in crate::autograd) fn alias(t: &Tensor) -> Result<Tensor> {
    t.alias()
}
/// The complex conjugate.
pub(in crate::autograd) fn conj(t: &Tensor) -> Result<Tensor> {
    t.conj()
}
/// A view of the conjugates.
pub(in crate::autograd) fn conj_view(t: &Tensor) -> Result<Tensor> {
    t.conj_view()
}
/// `t` with its conjugates computed in memory.
pub(in crate::autograd) fn resolve_conj(t: &Tensor) -> Result<Tensor> {
    t.resolve_conj()
}
/// A view of the negatives.
pub(in crate::autograd) fn neg_view(t: &Tensor) -> Result<Tensor> {
    t.neg_view()
}
/// `t` repeated to a larger shape without copying.
pub(in crate::autograd) fn expand(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    t.expand(shape, false)
}
/// A view whose dimension `to` is dimension `from` of `t`.
pub(in crate::autograd) fn movedim(t: &Tensor, from: i64, to: i64) -> Result<Tensor> {
    t.movedim_int(from, to)
}
/// A view with one more dimension, of size one.
pub(in crate::autograd) fn unsqueeze(t: &Tensor, dim: i64) -> Result<Tensor> {
    t.unsqueeze(dim)
}
/// A view of `length` indices of dimension `dim`, from `start` on.
pub(in crate::autograd) fn narrow(t: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    t.narrow(dim, start, length)
}
/// A view of a matrix's diagonal.
pub(in crate::autograd) fn diagonal(t: &Tensor) -> Result<Tensor> {
    t.diagonal(0, 0, 1)
}
/// A view of pairs of real numbers as complex ones.
pub(in crate::autograd) fn view_as_complex(t: &Tensor) -> Result<Tensor> {
    t.view_as_complex()
}
/// Writes `source` into `target`.
pub(in crate::autograd) fn copy_in_place(target: &Tensor, source: &Tensor) -> Result<()> {
    target.copy_(source, false).map(|_| ())
}
/// Writes zeros into `target`.
pub(in crate::autograd) fn zero_in_place(target: &Tensor) -> Result<()> {
    target.zero_().map(|_| ())
}
/// `t` converted to `dtype`, recorded if grad mode is on.
pub(in crate::autograd) fn to_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    t.to_dtype(dtype)
}
/// `t` copied to another device, recorded if grad mode is on.
pub(in crate::autograd) fn to_device(t: &Tensor, device: Device) -> Result<Tensor> {
    t.to(None, Some(device), false, None)
}
/// Ones of this shape and dtype.
pub(in crate::autograd) fn ones(shape: &[i64], dtype: DType) -> Result<Tensor> {
    TensorSpec::of(shape, dtype).full(crate::Scalar::Int(1))
}

/// Ones of the shape, dtype and device of `t`.
pub(in crate::autograd) fn ones_like(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    t.ones_like()
}

/// Zeros of the shape, dtype and device of `t`.
pub(in crate::autograd) fn zeros_like(t: &Tensor) -> Result<Tensor> {
    t.zeros_like()
}

/// A mask of the elements of `t` that are zero.
pub(in crate::autograd) fn is_zero(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    t.eq(&Tensor::wrapped(0)?)
}
/// Whether all elements of `t` are zero, as a 0-dim tensor.
pub(in crate::autograd) fn is_all_zero(t: &Tensor) -> Result<Tensor> {
    let _unrecorded = mode::set_grad(false);
    is_zero(t)?.all()
}
/// The logical and of two masks.
pub(in crate::autograd) fn both(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.logical_and(b)
}
/// `t` with zero instead of NaN where `mask` is true.
pub(in crate::autograd) fn without_nan(t: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let at = {
        let _unrecorded = mode::set_grad(false);
        t.isnan()?.logical_and(mask)?
    };
    t.masked_fill(&at, crate::Scalar::Int(0))
}

/// Sums `grad` down to `shape`, which broadcasts to the gradient's shape.
pub(in crate::autograd) fn sum_to(grad: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let skip = grad.ndim() - shape.len();
    if skip > 0 && grad.is_sparse() {
        // (No view of a sparse tensor leaves dimensions out: they are summed away.)
        let leading: crate::Dims = (0..skip as i64).collect();
        return sum_to(&grad.sum_dim(Some(&leading), false)?, shape);
    }
    let mut dims: crate::Dims = (0..skip as i64).collect();
    for (index, &size) in shape.iter().enumerate() {
        if size == 1 && grad.shape()[skip + index] != 1 {
            dims.push((skip + index) as i64);
        }
    }
    let summed = if dims.is_empty() { grad.clone() } else { grad.sum_dim(Some(&dims), true)? };
    if skip == 0 { Ok(summed) } else { summed.reshape(shape) }
}

/// The sum of `t` over its first dimension.
pub(in crate::autograd) fn sum_first(t: &Tensor) -> Result<Tensor> {
    t.sum_dim(Some(&[0]), false)
}

/// Whether `shape` broadcasts to `larger`.
pub(in crate::autograd) fn is_expandable(shape: &[i64], larger: &[i64]) -> bool {
    shape.len() <= larger.len()
        && shape.iter().rev().zip(larger.iter().rev()).all(|(&a, &b)| a == b || a == 1)
}

/// A shape as messages print it: `[2, 3]`.
pub(in crate::autograd) fn shape_text(shape: &[i64]) -> String {
    list(shape)
}

/// Runs an op with other arguments than the program gave it, as a call of its own.
#[track_caller]
pub(in crate::autograd) fn run(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let keys = keys_of_word(keys_of(args)) | Key::Autograd;
    Call::new(def, Form::Functional, args, keys, std::panic::Location::caller()).next()
}
