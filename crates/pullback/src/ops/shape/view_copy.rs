//! What the views show, in memory of its own: `view_copy` is `view`, then a copy row by row.
//!
//! The word `copy_of` takes arguments, rules and samples from the view; a node of these ops is the view's, with
//! `_copy` behind its name. They are what programs without views are written in, and functions only.

use super::view_spec::check_narrow;
use super::{reinterpret, split, view, view_shape};
use crate::dispatch::{OpDef, Value};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::contiguous_strides;
use crate::tensor::shape::{infer_shape, wrap_dim};
use crate::{ErrorKind, Result, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &ALIAS_COPY,
    &AS_STRIDED_COPY,
    &DETACH_COPY,
    &DIAGONAL_COPY,
    &EXPAND_COPY,
    &NARROW_COPY,
    &PERMUTE_COPY,
    &SELECT_COPY,
    &SLICE_COPY,
    &SPLIT_COPY,
    &SPLIT_WITH_SIZES_COPY,
    &SQUEEZE_COPY,
    &SQUEEZE_COPY_DIM,
    &SQUEEZE_COPY_DIMS,
    &T_COPY,
    &TRANSPOSE_COPY,
    &UNBIND_COPY,
    &UNFOLD_COPY,
    &UNSQUEEZE_COPY,
    &VIEW_AS_COMPLEX_COPY,
    &VIEW_AS_REAL_COPY,
    &VIEW_COPY,
    &VIEW_COPY_DTYPE,
];

/// A copy of everything.
#[op("alias_copy(Tensor self) -> Tensor", exact_out, function_only, copy_of = view::ALIAS, node = "AliasBackward0_copy")]
impl AliasCopy {}

/// A copy of the view by explicit sizes, strides and offset into the storage (in elements).
#[op("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
     exact_out, function_only, copy_of = view::AS_STRIDED, node = "AsStridedBackward0_copy")]
impl AsStridedCopy {}

/// A copy without history.
#[op("detach_copy(Tensor self) -> Tensor", exact_out, function_only, not_differentiable, copy_of = view::DETACH)]
impl DetachCopy {}

/// A copy of the diagonals of the planes of `dim1` and `dim2`, as the last dimension.
#[op("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     exact_out, function_only, copy_of = view_shape::DIAGONAL, node = "DiagonalBackward0_copy")]
impl DiagonalCopy {}

/// A copy with dimensions of size 1 repeated; -1 keeps a size.
#[op("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
     exact_out, function_only, copy_of = view::EXPAND, node = "ExpandBackward0_copy")]
impl ExpandCopy {}

/// A copy with the dimensions in another order.
#[op("permute_copy(Tensor self, int[] dims) -> Tensor",
     exact_out, function_only, copy_of = view::PERMUTE, node = "PermuteBackward0_copy")]
impl PermuteCopy {}

/// A copy of the slice at `index` of dimension `dim`, without that dimension.
#[op("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
     exact_out, function_only, copy_of = view::SELECT, node = "SelectBackward0_copy")]
impl SelectCopy {}

/// A copy of every `step`-th index of dimension `dim` from `start` up to `end`; both may count from the end.
#[op("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
     exact_out, function_only, copy_of = view::SLICE, node = "SliceBackward0_copy")]
impl SliceCopy {}

/// Copies of the splits of size `split_size` along `dim`; the last one is smaller if it does not divide.
#[op("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     exact_out, function_only, copy_of = split::SPLIT, node = "SplitBackward0_copy")]
impl SplitCopy {}

/// Copies of the splits of the given sizes along `dim`, which must add up to its size.
#[op("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     exact_out, function_only, copy_of = split::SPLIT_WITH_SIZES, node = "SplitWithSizesBackward0_copy")]
impl SplitWithSizesCopy {}

/// A copy without the dimensions of size 1.
#[op("squeeze_copy(Tensor self) -> Tensor",
     exact_out, function_only, copy_of = view_shape::SQUEEZE, node = "SqueezeBackward0_copy")]
impl SqueezeCopy {}

/// A copy without dimension `dim`, if its size is 1.
#[op("squeeze_copy.dim(Tensor self, int dim) -> Tensor",
     exact_out, function_only, copy_of = view_shape::SQUEEZE_DIM, node = "SqueezeBackward1_copy")]
impl SqueezeCopyDim {}

/// A copy without those of the dimensions `dim` whose size is 1.
#[op("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
     exact_out, function_only, copy_of = view_shape::SQUEEZE_DIMS, node = "SqueezeBackward2_copy")]
impl SqueezeCopyDims {}

/// A copy of a matrix, transposed; of vectors and numbers as they are.
#[op("t_copy(Tensor self) -> Tensor",
     exact_out, function_only, copy_of = view_shape::TRANSPOSED, node = "TBackward0_copy")]
impl TCopy {}

/// A copy with two dimensions swapped.
#[op("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
     exact_out, function_only, copy_of = view::TRANSPOSE, node = "TransposeBackward0_copy")]
impl TransposeCopy {}

/// Copies of all slices along `dim`, without that dimension.
#[op("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
     exact_out, function_only, copy_of = split::UNBIND, node = "UnbindBackward0_copy")]
impl UnbindCopy {}

/// A copy of the windows of `size` along `dimension`, every `step`, as the last dimension.
#[op("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
     exact_out, function_only, copy_of = view_shape::UNFOLD, node = "UnfoldBackward0_copy")]
impl UnfoldCopy {}

/// A copy with a new dimension of size 1 at `dim`.
#[op("unsqueeze_copy(Tensor self, int dim) -> Tensor",
     exact_out, function_only, copy_of = view_shape::UNSQUEEZE, node = "UnsqueezeBackward0_copy")]
impl UnsqueezeCopy {}

/// A copy of pairs of real numbers as complex ones.
#[op("view_as_complex_copy(Tensor self) -> Tensor",
     exact_out, function_only, copy_of = reinterpret::VIEW_AS_COMPLEX, node = "ViewAsComplexBackward0_copy")]
impl ViewAsComplexCopy {}

/// A copy of complex numbers as pairs of real ones.
#[op("view_as_real_copy(Tensor self) -> Tensor",
     exact_out, function_only, copy_of = reinterpret::VIEW_AS_REAL, node = "ViewAsRealBackward0_copy")]
impl ViewAsRealCopy {}

/// A copy with another shape of equal element count; one size may be -1. Other than `view` it takes any strides.
#[op("view_copy(Tensor self, SymInt[] size) -> Tensor",
     exact_out, function_only, copy_of = view::VIEW, batch = view(self, size), node = "ViewBackward0_copy")]
impl ViewCopy {
    fn meta(self_: &Tensor, size: &[i64]) -> Result<TensorSpec> {
        Ok(TensorSpec::beside(self_, &infer_shape(size, self_.numel())?))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        let strides = contiguous_strides(self_.shape());
        let rows = result.alias_with(self_.shape(), &strides, result.storage_offset())?;
        rows.copy_data(cpu, self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut all = view::VIEW.samples.map_or_else(Vec::new, |samples| samples(s));
        all.push(Sample::of(s.transposed(2, 3)).with("size", [6]));
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[2, 3])).with("size", [4, -1]);
        let phrase = "shape '[4, -1]' is invalid for input of size 6";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// A copy of the same bytes read as another dtype.
#[op("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
     exact_out, function_only, not_differentiable, copy_of = reinterpret::VIEW_DTYPE)]
impl ViewCopyDtype {}

/// A copy of the `length` indices of dimension `dim` from `start` on.
#[op("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", exact_out, jvp = linear, batch = pick_view,
     sparse = narrow_copy(self, dim, start, length))]
impl NarrowCopy {
    fn meta(self_: &Tensor, dim: i64, start: i64, length: i64) -> Result<TensorSpec> {
        let (dim, _) = check_narrow(self_, dim, start, length)?;
        let mut spec = TensorSpec::like(self_);
        spec.shape[dim] = length;
        Ok(spec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        dim: i64,
        start: i64,
        length: i64,
    ) -> Result<()> {
        result.copy_data(cpu, &self_.narrow(dim, start, length)?)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: i64,
        start: i64,
        length: i64,
    ) -> Result<Tensor> {
        let size = self_shape[wrap_dim(dim, self_shape.len())?];
        let from = if start < 0 { start + size } else { start };
        grad.slice_backward(self_shape, dim, Some(from), Some(from + length), 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |dim: i64, start: i64, length: i64| {
            let numbers = [Value::Int(dim), Value::Int(start), Value::Int(length)];
            Sample::new([s.normal(&[4, 2]).into()].into_iter().chain(numbers))
        };
        vec![sample(0, -3, 2), sample(-1, 0, 2), sample(0, 4, 0)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], start: i64, length: i64, kind, phrase| {
            let numbers = [Value::Int(0), Value::Int(start), Value::Int(length)];
            let sample = Sample::new([s.normal(shape).into()].into_iter().chain(numbers));
            InvalidSample::new(sample, kind, phrase)
        };
        vec![
            bad(&[], 0, 1, ErrorKind::Runtime, "narrow() cannot be applied to a 0-dim tensor."),
            bad(
                &[3],
                1,
                3,
                ErrorKind::Runtime,
                "start (1) + length (3) exceeds dimension size (3)",
            ),
            bad(&[3], 4, 0, ErrorKind::Index, "start out of range"),
            bad(&[3], 0, -1, ErrorKind::Runtime, "length must be non-negative"),
        ]
    }
}
