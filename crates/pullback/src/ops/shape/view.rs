//! Views: other sizes, strides and offsets over the same memory.

use super::view_spec::{ViewSpec, expanded, permuted, selected, sliced, swapped, viewed};
use crate::dispatch::OpDef;
use crate::dispatch::Value;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::sparse;
use crate::tensor::Flag;
use crate::tensor::shape::{infer_shape, view_strides, wrap_dim};
use crate::{ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &VIEW,
    &RESHAPE,
    &EXPAND,
    &AS_STRIDED,
    &AS_STRIDED_IN_PLACE,
    &DETACH,
    &ALIAS,
    &PERMUTE,
    &TRANSPOSE,
    &SELECT,
    &SLICE,
    &SLICE_INVERSE,
];

/// The same elements with another shape of equal element count; one size may be -1. Never copies.
#[op("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view, bijective, method_only, jvp = linear, batch = view(self, size))]
impl View {
    fn meta(self_: &Tensor, size: &[i64]) -> Result<TensorSpec> {
        viewed(self_, size)?.spec(self_)
    }
    fn cpu(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
        viewed(self_, size)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64]) -> Result<Tensor> {
        grad.reshape(self_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("size", [3, -1]),
            Sample::of(s.normal(&[])).with("size", [1, 1]),
            Sample::of(s.normal(&[0, 2])).with("size", [2, 0, 3]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |t: Tensor, size: &[i64], phrase| {
            InvalidSample::new(Sample::of(t).with("size", size), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.normal(&[2, 3]), &[4, -1], "shape '[4, -1]' is invalid for input of size 6"),
            bad(s.normal(&[2, 3]), &[-1, -1], "only one dimension can be inferred"),
            bad(s.normal(&[2, 3]), &[-2, 3], "invalid shape dimension -2"),
            bad(s.transposed(2, 3), &[6], "view size is not compatible"),
        ]
    }
}

/// The same elements with another shape; copies only if the memory's order asks for it.
#[op("reshape(Tensor(a) self, int[] shape) -> Tensor(a)")]
impl Reshape {
    fn composite(self_: &Tensor, shape: &[i64]) -> Result<Tensor> {
        if self_.is_contiguous() {
            return self_.view(shape);
        }
        let shape = infer_shape(shape, self_.numel())?;
        if view_strides(self_.shape(), self_.strides(), &shape).is_some() {
            return self_.view(&shape);
        }
        // (Nothing else holds the copy, so that its view need not be one to autograd.)
        self_.contiguous()?.unsafe_view(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.transposed(3, 2)).with("shape", [6]),
            Sample::of(s.normal(&[2, 3])).with("shape", [3, -1]),
            Sample::of(s.normal(&[1])).with("shape", Value::Ints(Box::default())),
        ]
    }
}

/// Dimensions of size 1 repeated without copying; -1 keeps a size.
#[op("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", view, method_only, jvp = linear, method = expand_view, batch = expand(self, size), sparse = expand(self, size))]
impl Expand {
    fn meta(self_: &Tensor, size: &[i64]) -> Result<TensorSpec> {
        expanded(self_, size)?.spec(self_)
    }
    fn cpu(self_: &Tensor, size: &[i64]) -> Result<Tensor> {
        expanded(self_, size)?.shown(self_)
    }
    // The engine sums the gradient down to the input's shape.
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 1])).with("size", [3, 2, 4]),
            Sample::of(s.normal(&[1, 3])).with("size", [2, -1]),
            Sample::of(s.normal(&[])).with("size", [2]),
            Sample::of(s.normal(&[1])).with("size", [0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |size: &[i64], phrase| {
            InvalidSample::new(
                Sample::of(s.normal(&[2, 3])).with("size", size),
                ErrorKind::Runtime,
                phrase,
            )
        };
        vec![
            bad(&[3], "must be greater or equal to the number of dimensions"),
            bad(&[4, 3], "The expanded size of the tensor (4) must match the existing size (2)"),
            bad(&[-1, 2, 3], "isn't allowed in a leading, non-existing dimension 0"),
        ]
    }
}

impl Tensor {
    /// As [`Tensor::expand_view`]; `implicit` has no effect.
    #[track_caller]
    pub fn expand(&self, size: &[i64], implicit: bool) -> Result<Tensor> {
        self.expand_view_with(size, implicit)
    }
}

/// A view by explicit sizes, strides and offset into the storage (in elements).
#[op(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    view, batch = as_strided(self, size, stride, storage_offset)
)]
impl AsStrided {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<TensorSpec> {
        strided(self_, size, stride, storage_offset)?.spec(self_)
    }
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<Tensor> {
        strided(self_, size, stride, storage_offset)?.shown(self_)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        self_strides: &[i64],
        self_storage_offset: i64,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<Tensor> {
        // The input itself is not saved: histories of views are made again after writes to their base.
        let offset = storage_offset.unwrap_or(self_storage_offset);
        as_strided_backward(
            grad,
            (self_shape, self_strides),
            (size, stride, offset - self_storage_offset),
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, size: &[i64], stride: &[i64], offset: i64| {
            Sample::of(t).with("size", size).with("stride", stride).with("storage_offset", offset)
        };
        vec![
            sample(s.normal(&[6]), &[2, 2], &[3, 1], 1),
            sample(s.normal(&[2, 3]), &[3], &[2], 0),
            sample(s.normal(&[5]), &[3, 3], &[1, 1], 0),
            sample(s.normal(&[2]), &[0], &[1], 0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |size: &[i64], stride: &[i64], phrase| {
            let sample = Sample::of(s.normal(&[4])).with("size", size).with("stride", stride);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[5], &[1], "out of bounds for storage"),
            bad(&[2], &[-1], "Negative strides"),
            bad(&[2], &[1, 1], "mismatch in length of strides and shape"),
            bad(&[i64::MAX, 2], &[1, 1], "overflow"),
        ]
    }
}

/// Lets this tensor itself see its storage by explicit sizes, strides and offset (in elements).
#[op(
    "as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
    view,
    method = as_strided_,
    node = "AsStridedBackward1", batch = in_place(&AS_STRIDED)
)]
impl AsStridedInPlace {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<TensorSpec> {
        strided(self_, size, stride, storage_offset)?.spec(self_)
    }
    fn cpu_(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<()> {
        strided(self_, size, stride, storage_offset)?.set(self_)?;
        self_.set_flag(Flag::RESTRIDED, true);
        Ok(())
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        self_strides: &[i64],
        self_storage_offset: i64,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<Tensor> {
        let offset = storage_offset.unwrap_or(self_storage_offset);
        as_strided_backward(
            grad,
            (self_shape, self_strides),
            (size, stride, offset - self_storage_offset),
        )
    }
}

/// The view spec by strides of the memory of `t`.
fn strided(
    t: &Tensor,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
) -> Result<ViewSpec> {
    let offset = check_strided(t, size, stride, storage_offset)?;
    Ok(ViewSpec { offset, ..ViewSpec::seen(t, size.into(), stride.into()) })
}

/// The offset of a view by strides, refused if the view does not lie in the storage.
pub(in crate::ops) fn check_strided(
    self_: &Tensor,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
) -> Result<i64> {
    ensure!(
        size.len() == stride.len(),
        runtime,
        "mismatch in length of strides and shape: {} sizes, {} strides",
        size.len(),
        stride.len()
    );
    let offset = storage_offset.unwrap_or(self_.storage_offset());
    self_.geometry().check_bounds(size, stride, offset)?;
    Ok(offset)
}

/// Zeros of `shape` for a rule to write `grad` into: batched, if `grad` is.
pub(in crate::ops) fn room_for(grad: &Tensor, shape: &[i64]) -> Result<Tensor> {
    if grad.batched().is_some() {
        return grad.new_zeros(shape);
    }
    crate::TensorSpec::beside(grad, shape).zeros()
}

/// The gradient of a view by strides: what arrives is added up in the memory that input and view share, which
/// is then seen as the input. Where several indices of the input mean one element, each gets an equal part.
fn as_strided_backward(
    grad: &Tensor,
    (in_shape, in_strides): (&[i64], &[i64]),
    (shape, strides, offset): (&[i64], &[i64], i64),
) -> Result<Tensor> {
    use crate::tensor::{extent, may_overlap_itself};
    // The view may begin before the input does.
    let shift = (-offset).max(0);
    let reach =
        (extent(in_shape, in_strides)? + shift).max(extent(shape, strides)? + offset + shift);
    let sums = |values: &Tensor, shape: &[i64], strides: &[i64], offset: i64| -> Result<Tensor> {
        let extent = extent(shape, strides)?;
        let positions = memory::collect(offset..offset + extent)?;
        let positions = Tensor::from_slice(&positions, &[extent])?.brought_to(grad)?;
        let at = positions.as_strided(shape, strides, None)?.reshape(&[-1])?;
        let memory = room_for(values, &[reach])?;
        memory.index_add_(0, &at, &values.reshape(&[-1])?)?;
        Ok(memory)
    };
    let memory = if may_overlap_itself(shape, strides) {
        sums(grad, shape, strides, offset + shift)?
    } else {
        let memory = room_for(grad, &[reach])?;
        memory.as_strided(shape, strides, Some(offset + shift))?.copy_(grad, false)?;
        memory
    };
    let memory = if may_overlap_itself(in_shape, in_strides) {
        let ones =
            crate::TensorSpec::beside(grad, in_shape).zeros()?.add(&Tensor::wrapped(1.0)?)?;
        memory.div(&sums(&ones, in_shape, in_strides, shift)?)?
    } else {
        memory
    };
    memory.as_strided(in_shape, in_strides, Some(shift))
}

/// The same memory without history; in-place writes to either are seen by both.
#[op("detach(Tensor(a) self) -> Tensor(a)", not_differentiable, batch = pass, sparse = alias(self), unresolved)]
impl Detach {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        ViewSpec::of(self_).spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        self_.detached()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        crate::ops::classes::samples::unary(s)
    }
}

/// A view of everything.
#[op("alias(Tensor(a) self) -> Tensor(a)", function_only, view, bijective, internal, jvp = linear, samples = unary, batch = pass, sparse = alias(self))]
impl Alias {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        ViewSpec::of(self_).spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        ViewSpec::of(self_).shown(self_)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// The dimensions in another order.
#[op("permute(Tensor(a) self, int[] dims) -> Tensor(a)", view, bijective, jvp = linear, batch = permute(self, dims), sparse = permute(self, dims))]
impl Permute {
    fn meta(self_: &Tensor, dims: &[i64]) -> Result<TensorSpec> {
        permuted(self_, dims)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
        permuted(self_, dims)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, dims: &[i64]) -> Result<Tensor> {
        let n = dims.len();
        // bounded: by the rank.
        let mut inverse = vec![0; n];
        for (to, &from) in dims.iter().enumerate() {
            inverse[wrap_dim(from, n)?] = to as i64;
        }
        grad.permute(&inverse)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3, 4])).with("dims", [2, 0, -2]),
            Sample::of(s.normal(&[])).with("dims", Value::Ints(Box::default())),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = |dims: &[i64]| Sample::of(s.normal(&[2, 3])).with("dims", dims);
        vec![
            InvalidSample::new(
                sample(&[0, 0]),
                ErrorKind::Runtime,
                "duplicate dims are not allowed",
            ),
            InvalidSample::new(sample(&[0, 2]), ErrorKind::Index, "Dimension out of range"),
        ]
    }
}

/// Two dimensions swapped.
#[op("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", view, bijective, jvp = linear, alias("swapaxes", "swapdims"),
     call_as("swapaxes(dim0 = axis0, dim1 = axis1)"), batch = swapped(self, dim0, dim1), sparse = swapped(self, dim0, dim1))]
impl Transpose {
    fn meta(self_: &Tensor, dim0: i64, dim1: i64) -> Result<TensorSpec> {
        swapped(self_, dim0, dim1)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        swapped(self_, dim0, dim1)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        grad.transpose(dim0, dim1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3, 4]).into(), Value::Int(0), Value::Int(-1)]),
            Sample::new([s.normal(&[]).into(), Value::Int(0), Value::Int(-1)]),
        ]
    }
}

/// The slice at `index` of dimension `dim`, without that dimension.
#[op("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", view, jvp = linear, batch = pick_view, sparse = select(self, dim, index))]
impl Select {
    fn meta(self_: &Tensor, dim: i64, index: i64) -> Result<TensorSpec> {
        selected(self_, dim, index)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        selected(self_, dim, index)?.shown(self_)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64, index: i64) -> Result<Tensor> {
        grad.select_backward(self_shape, dim, index)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), Value::Int(1), Value::Int(-1)]),
            Sample::new([s.normal(&[4]).into(), Value::Int(0), Value::Int(2)]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |t: Tensor, phrase| {
            let sample = Sample::new([t.into(), Value::Int(0), Value::Int(2)]);
            InvalidSample::new(sample, ErrorKind::Index, phrase)
        };
        vec![
            bad(s.normal(&[2, 3]), "index 2 out of range for tensor of size [2, 3] at dimension 0"),
            bad(s.normal(&[]), "select() cannot be applied to a 0-dim tensor."),
        ]
    }
}

/// Every `step`-th index of dimension `dim` from `start` up to `end`; both may count from the end.
#[op("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", function_only, view, internal, jvp = linear, batch = pick_view, sparse = slice(self, dim, start, end, step))]
impl Slice {
    fn meta(
        self_: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<TensorSpec> {
        sliced(self_, dim, (start, end), step)?.spec(self_)
    }
    fn cpu(
        self_: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        sliced(self_, dim, (start, end), step)?.shown(self_)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        grad.slice_backward(self_shape, dim, start, end, step)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, dim: i64, start: i64, end: i64, step: i64| {
            Sample::new([
                t.into(),
                Value::Int(dim),
                Value::Int(start),
                Value::Int(end),
                Value::Int(step),
            ])
        };
        vec![
            sample(s.normal(&[5, 2]), 0, 1, 5, 2),
            sample(s.normal(&[2, 4]), -1, -3, -1, 1),
            sample(s.normal(&[3]), 0, 2, 1, 1),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "slice() cannot be applied to a 0-dim tensor.";
        vec![InvalidSample::new(Sample::of(s.normal(&[])), ErrorKind::Index, phrase)]
    }
}

/// What `self` is the slice of, seen in the memory around it as `src` is seen in its own.
#[op("slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
     view, not_differentiable(src), jvp = linear)]
impl SliceInverse {
    fn meta(self_: &Tensor, src: &Tensor) -> Result<TensorSpec> {
        strided(self_, src.shape(), src.strides(), Some(src.storage_offset()))?.spec(self_)
    }
    fn cpu(self_: &Tensor, src: &Tensor) -> Result<Tensor> {
        strided(self_, src.shape(), src.strides(), Some(src.storage_offset()))?.shown(self_)
    }
    fn vjp_self(
        grad: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        grad.slice(dim, start, end, step)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, src: Tensor| Sample::new([t.into(), src.into()]);
        vec![sample(s.normal(&[3, 2]), s.normal(&[3, 2])), sample(s.normal(&[0]), s.normal(&[0]))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[2]).into(), s.normal(&[3]).into()]);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "out of bounds for storage")]
    }
}

impl Tensor {
    /// Zeros of `shape` with `self` at `index` of `dim`.
    pub(crate) fn select_backward(&self, shape: &[i64], dim: i64, index: i64) -> Result<Tensor> {
        if self.is_sparse() {
            return sparse::select_backward(self, shape, dim, index);
        }
        let out = room_for(self, shape)?;
        out.select(dim, index)?.copy_(self, false)?;
        Ok(out)
    }
    /// Zeros of `shape` with `self` at a slice.
    pub(crate) fn slice_backward(
        &self,
        shape: &[i64],
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        if self.is_sparse() {
            return sparse::slice_backward(self, shape, dim, start, step);
        }
        let out = room_for(self, shape)?;
        out.slice(dim, start, end, step)?.copy_(self, false)?;
        Ok(out)
    }
}
