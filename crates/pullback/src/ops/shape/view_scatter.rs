//! A copy with what a view of it shows replaced: `select_scatter` is `clone`, then a write into `select`.
//!
//! They are what programs without in-place writes are written in. Of the gradient the view's part belongs to `src`, the
//! rest to `self`. `src` is converted to `self`'s dtype, but never broadcast.

use super::view::{check_strided, room_for};
use super::view_spec::{ViewSpec, diagonal_of, selected, sliced};
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::tensor::{Cpu, check_fits, extent, may_overlap_itself};
use crate::{Bool, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_kernels::strided::is_contiguous;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&AS_STRIDED_SCATTER, &DIAGONAL_SCATTER, &SELECT_SCATTER, &SLICE_SCATTER];

/// A mask of the elements of a tensor of these sizes that later ones overwrite when they are
/// written, in order and `stride` apart, to memory of `reach` elements: the overwritten ones have
/// no gradient.
fn overwritten(size: &[i64], stride: &[i64], reach: i64) -> Result<Tensor> {
    let count: i64 = size.iter().product();
    let mut offsets = memory::filled(0_i64, count as usize)?;
    for (number, offset) in offsets.iter_mut().enumerate() {
        let mut rest = number as i64;
        for (&size, &stride) in size.iter().zip(stride).rev() {
            *offset += rest % size * stride;
            rest /= size;
        }
    }
    let mut last = memory::filled(-1_i64, reach as usize)?;
    for (number, &offset) in offsets.iter().enumerate() {
        last[offset as usize] = number as i64;
    }
    let lost = |(number, &offset): (usize, &i64)| Bool::new(last[offset as usize] != number as i64);
    Tensor::from_slice(&memory::collect(offsets.iter().enumerate().map(lost))?, size)
}

/// The spec of a copy of `t` with `src` in place of the part that `part` shows.
fn scattered(t: &Tensor, part: &ViewSpec, src: &Tensor) -> Result<TensorSpec> {
    check_size(&part.shape, src)?;
    Ok(TensorSpec::laid_as(t))
}

/// Writes `src` into the part that `part` shows.
fn write(cpu: Cpu, part: &Tensor, src: &Tensor) -> Result<()> {
    check_size(part.shape(), src)?;
    part.copy_data(cpu, src)
}

fn check_size(part: &[i64], src: &Tensor) -> Result<()> {
    ensure!(
        part == src.shape(),
        runtime,
        "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
        list(src.shape()),
        list(part)
    );
    Ok(())
}

fn zeros(shape: &[i64], like: &Tensor) -> Result<Tensor> {
    TensorSpec::beside(like, shape).zeros()
}

fn sample<const N: usize>(s: &Sampler, shapes: [&[i64]; 2], numbers: [i64; N]) -> Sample {
    let tensors = shapes.map(|shape| Value::Tensor(s.normal(shape)));
    Sample::new(tensors.into_iter().chain(numbers.map(Value::Int)))
}

fn bad<const N: usize>(
    s: &Sampler,
    shapes: [&[i64]; 2],
    numbers: [i64; N],
    kind: ErrorKind,
    phrase: &'static str,
) -> InvalidSample {
    InvalidSample::new(sample(s, shapes, numbers), kind, phrase)
}

/// A copy of `self` with `src` at `index` of dimension `dim`.
#[op("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", narrow_floats, jvp = linear, batch = view_scatter)]
impl SelectScatter {
    fn meta(self_: &Tensor, src: &Tensor, dim: i64, index: i64) -> Result<TensorSpec> {
        scattered(self_, &selected(self_, dim, index)?, src)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, src: &Tensor, dim: i64, index: i64) -> Result<()> {
        write(cpu, &self_.select(dim, index)?, src)
    }
    fn vjp_self(grad: &Tensor, src_shape: &[i64], dim: i64, index: i64) -> Result<Tensor> {
        grad.select_scatter(&zeros(src_shape, grad)?, dim, index)
    }
    fn vjp_src(grad: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        grad.select(dim, index)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s, [&[2, 3], &[3]], [0, 1]),
            sample(s, [&[2, 3], &[2]], [-1, -2]),
            sample(s, [&[4], &[]], [0, 2]),
            sample(s, [&[0, 2], &[0]], [1, 0]),
            Sample::new([
                s.transposed(3, 2).into(),
                s.normal(&[2]).into(),
                0_i64.into(),
                1_i64.into(),
            ]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
        vec![
            bad(s, [&[2, 3], &[4]], [0, 1], runtime, "src size = [4], slice size = [3]"),
            bad(s, [&[2, 3], &[1]], [0, 1], runtime, "src size = [1], slice size = [3]"),
            bad(s, [&[2], &[]], [0, 2], index, "index 2 out of range for tensor of size [2]"),
            bad(s, [&[], &[]], [0, 0], index, "select() cannot be applied to a 0-dim tensor."),
        ]
    }
}

/// A copy of `self` with `src` at every `step`-th index of dimension `dim` from `start` up to `end`.
#[op("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", narrow_floats,
     exact_out, jvp = linear, batch = view_scatter)]
impl SliceScatter {
    fn meta(
        self_: &Tensor,
        src: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<TensorSpec> {
        scattered(self_, &sliced(self_, dim, (start, end), step)?, src)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        src: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<()> {
        write(cpu, &self_.slice(dim, start, end, step)?, src)
    }
    fn vjp_self(
        grad: &Tensor,
        src_shape: &[i64],
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        grad.slice_scatter(&zeros(src_shape, grad)?, dim, start, end, step)
    }
    fn vjp_src(
        grad: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        grad.slice(dim, start, end, step)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s, [&[5, 2], &[2, 2]], [0, 1, 5, 2]),
            sample(s, [&[2, 4], &[2, 2]], [-1, -3, -1, 1]),
            sample(s, [&[3], &[0]], [0, 2, 1, 1]),
            sample(s, [&[2, 3], &[2, 3]], []),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let runtime = ErrorKind::Runtime;
        vec![
            bad(s, [&[2, 3], &[3]], [0, 1], runtime, "src size = [3], slice size = [1, 3]"),
            bad(s, [&[2], &[2]], [0, 0, 2, 0], runtime, "slice step must be positive"),
            bad(
                s,
                [&[], &[]],
                [0],
                ErrorKind::Index,
                "slice() cannot be applied to a 0-dim tensor.",
            ),
            bad(s, [&[2], &[2]], [1], ErrorKind::Index, "Dimension out of range"),
        ]
    }
}

/// A copy of `self` with `src` on the diagonals of the planes of `dim1` and `dim2`, `offset` steps above the main one;
/// the last dimension of `src` goes along them.
#[op("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", narrow_floats,
     jvp = linear, batch = view_scatter)]
impl DiagonalScatter {
    fn meta(self_: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<TensorSpec> {
        scattered(self_, &diagonal_of(self_, offset, dim1, dim2)?, src)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        src: &Tensor,
        offset: i64,
        dim1: i64,
        dim2: i64,
    ) -> Result<()> {
        write(cpu, &self_.diagonal(offset, dim1, dim2)?, src)
    }
    fn vjp_self(
        grad: &Tensor,
        src_shape: &[i64],
        offset: i64,
        dim1: i64,
        dim2: i64,
    ) -> Result<Tensor> {
        grad.diagonal_scatter(&zeros(src_shape, grad)?, offset, dim1, dim2)
    }
    fn vjp_src(grad: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        grad.diagonal(offset, dim1, dim2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s, [&[3, 3], &[3]], []),
            sample(s, [&[2, 3, 4], &[3, 2]], [0, 2, 0]),
            sample(s, [&[2, 3], &[1]], [-1]),
            sample(s, [&[2, 2], &[0]], [5]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let runtime = ErrorKind::Runtime;
        vec![
            bad(s, [&[2, 3], &[3]], [], runtime, "src size = [3], slice size = [2]"),
            bad(s, [&[2, 2], &[2]], [0, 1, 1], runtime, "diagonal dimensions cannot be identical"),
            bad(s, [&[2], &[2]], [], ErrorKind::Index, "Dimension out of range"),
        ]
    }
}

/// Sizes and strides of a tensor, and its offset in its memory.
type StridedGeometry<'a> = (&'a [i64], &'a [i64], i64);

/// The two geometries with offsets from the beginning of the one that starts first, and the number of elements that both reach.
fn together<'a>(
    one: StridedGeometry<'a>,
    other: StridedGeometry<'a>,
) -> Result<(StridedGeometry<'a>, StridedGeometry<'a>, i64)> {
    let first = one.2.min(other.2);
    let from_first = |p: StridedGeometry<'a>| (p.0, p.1, p.2 - first);
    let (one, other) = (from_first(one), from_first(other));
    let reach = (one.2 + extent(one.0, one.1)?).max(other.2 + extent(other.0, other.1)?);
    Ok((one, other, reach))
}

/// Whether `own`, the geometry of all elements, is the whole memory in row-major order, as that of a contiguous gradient is.
fn is_all_within(grad: &Tensor, own: StridedGeometry<'_>, reach: i64) -> bool {
    own.2 == 0 && reach == grad.numel() && is_contiguous(own.0, own.1) && !grad.overrides_ops()
}

fn seen(memory: &Tensor, (shape, strides, offset): StridedGeometry<'_>) -> Result<Tensor> {
    memory.as_strided(shape, strides, Some(offset))
}

/// A copy of `self`, in the same order of memory, with `src` where a view by explicit sizes, strides and offset into the
/// storage (in elements) shows it. Where several indices of the view mean one element, the last of them counts.
#[op("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", narrow_floats,
     jvp = linear, batch = as_strided_scatter(self, src, size, stride, storage_offset))]
impl AsStridedScatter {
    fn meta(
        self_: &Tensor,
        src: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<TensorSpec> {
        let offset = check_strided(self_, size, stride, storage_offset)?;
        check_size(size, src)?;
        if may_overlap_itself(self_.shape(), self_.strides()) {
            let bytes = self_.numel() as usize * self_.dtype().size();
            check_fits(size, stride, (offset, self_.dtype(), bytes))?;
            return Ok(TensorSpec::like(self_));
        }
        Ok(TensorSpec::like(self_).with_strides(self_.strides().into()))
    }
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        src: &Tensor,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<Tensor> {
        let offset = check_strided(self_, size, stride, storage_offset)?;
        check_size(size, src)?;
        // Elements that share memory get memory of their own, of which the first counts as theirs.
        let dense;
        let self_ = if may_overlap_itself(self_.shape(), self_.strides()) {
            dense = crate::ops::classes::copy(cpu, self_)?;
            check_strided(&dense, size, stride, Some(offset))?;
            &dense
        } else {
            self_
        };
        let own = (self_.shape(), self_.strides(), self_.storage_offset());
        let (own, part, reach) = together(own, (size, stride, offset))?;
        let memory = Tensor::empty_of(&[reach], self_.dtype())?;
        let out = memory.alias_with(own.0, own.1, own.2)?;
        out.copy_data(cpu, self_)?;
        memory.alias_with(part.0, part.1, part.2)?.copy_data(cpu, src)?;
        Ok(out)
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
        let own = source_geometry(self_shape, self_strides, self_storage_offset);
        let offset = storage_offset.unwrap_or(self_storage_offset);
        let (own, part, reach) = together((&own.0, &own.1, own.2), (size, stride, offset))?;
        if is_all_within(grad, own, reach) {
            let (grad, none) = (grad.contiguous()?, zeros(size, grad)?);
            let offset = grad.storage_offset() + part.2;
            return grad.as_strided_scatter(&none, size, stride, Some(offset));
        }
        let written = TensorSpec::of(&[reach], crate::DType::Bool).on(grad.device()).zeros()?;
        seen(&written, part)?.fill_(crate::Scalar::Bool(true))?;
        grad.masked_fill(&seen(&written, own)?, crate::Scalar::Int(0))
    }
    fn vjp_src(
        grad: &Tensor,
        self_shape: &[i64],
        self_strides: &[i64],
        self_storage_offset: i64,
        size: &[i64],
        stride: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<Tensor> {
        let own = source_geometry(self_shape, self_strides, self_storage_offset);
        let offset = storage_offset.unwrap_or(self_storage_offset);
        let (own, part, reach) = together((&own.0, &own.1, own.2), (size, stride, offset))?;
        let of_part = if is_all_within(grad, own, reach) {
            let grad = grad.contiguous()?;
            seen(&grad, (size, stride, grad.storage_offset() + part.2))?
        } else {
            let memory = room_for(grad, &[reach])?;
            seen(&memory, own)?.copy_(grad, false)?;
            seen(&memory, part)?
        };
        if !may_overlap_itself(size, stride) {
            return Ok(of_part);
        }
        let lost = overwritten(size, stride, reach)?.brought_to(grad)?;
        of_part.masked_fill(&lost, crate::Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, size: &[i64], stride: &[i64], offset: i64| {
            let src = s.normal(size);
            let sample = Sample::new([t.into(), src.into(), size.into(), stride.into()]);
            sample.with("storage_offset", offset)
        };
        vec![
            sample(s.normal(&[6]), &[2, 2], &[3, 1], 1),
            sample(s.normal(&[2, 3]), &[3], &[2], 0),
            sample(s.normal(&[2]), &[0], &[1], 0),
            sample(s.normal(&[5]), &[2, 2], &[1, 1], 1),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |src: &[i64], size: &[i64], stride: &[i64], phrase| {
            let tensors: [Value; 2] = [s.normal(&[4]).into(), s.normal(src).into()];
            let sample = Sample::new(tensors).with("size", size).with("stride", stride);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[3], &[2], &[1], "src size = [3], slice size = [2]"),
            bad(&[5], &[5], &[1], "out of bounds for storage"),
            bad(&[2], &[2], &[1, 1], "mismatch in length of strides and shape"),
        ]
    }
}

/// Shape, strides and offset of `self` in the memory that the result starts as: contiguous where elements of `self` share memory.
fn source_geometry(shape: &[i64], strides: &[i64], offset: i64) -> (Dims, Dims, i64) {
    let strides = Dims::from_slice(strides);
    if may_overlap_itself(shape, &strides) {
        return (Dims::from_slice(shape), crate::tensor::contiguous_strides(shape), 0);
    }
    (Dims::from_slice(shape), strides, offset)
}
