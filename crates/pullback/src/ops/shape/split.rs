//! Splitting a tensor along a dimension: `unbind`, `split`, `chunk`, `tensor_split`. All are views of the
//! same memory, made in one call; `split_with_sizes` carries the rule of those that end in it.

use super::view_spec::ViewSpec;
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, wrap_dim, wrap_own_dim};
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &UNBIND,
    &SPLIT,
    &SPLIT_SIZES,
    &SPLIT_TENSOR,
    &SPLIT_WITH_SIZES,
    &CHUNK,
    &UNSAFE_SPLIT,
    &UNSAFE_SPLIT_WITH_SIZES,
    &UNSAFE_CHUNK,
    &TENSOR_SPLIT,
    &TENSOR_SPLIT_INDICES,
    &TENSOR_SPLIT_BY,
];

/// The given gradients, with zeros where there is none; `shapes` gives the shape of each.
fn all_defined<'a>(
    grads: &[Option<Tensor>],
    shapes: impl Iterator<Item = Dims> + 'a,
) -> Result<Vec<Tensor>> {
    let given = grads.iter().flatten().next();
    let fill = |(grad, shape): (&Option<Tensor>, Dims)| {
        if let Some(grad) = grad {
            return Ok(grad.clone());
        }
        let spec = TensorSpec::of(&shape, DType::F32);
        given.map_or(spec, |given| TensorSpec::beside(given, &shape)).zeros()
    };
    grads.iter().zip(shapes).map(fill).collect()
}

fn with_size(shape: &[i64], dim: usize, size: i64) -> Dims {
    let mut out = Dims::from_slice(shape);
    out[dim] = size;
    out
}

/// An empty list, if there is memory for `count` tensors, or for their specs.
fn room_for<T>(count: i64) -> Result<Vec<T>> {
    // A lower bound of the memory that a tensor's own record takes.
    const RECORD: usize = 512;
    if count >= 1 << 20 {
        memory::probe((count as usize).saturating_mul(RECORD))?;
    }
    Ok(memory::with_capacity(count as usize)?)
}

/// The view spec of the first slice along `dim`, the number of slices, and the distance between
/// them.
fn slices(t: &Tensor, dim: i64) -> Result<(ViewSpec, i64, i64)> {
    let at = wrap_own_dim(dim, t.ndim())?;
    let mut first = ViewSpec::of(t);
    let (count, step) = (first.shape.remove(at), first.strides.remove(at));
    Ok((first, count, step))
}

/// All slices along `dim`, without that dimension.
#[op("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", multi_view, jvp = linear, batch = pick_view, sparse = unbind(self, dim))]
impl Unbind {
    fn meta(self_: &Tensor, dim: i64) -> Result<Vec<TensorSpec>> {
        let (first, count, _) = slices(self_, dim)?;
        let (spec, mut out) = (first.spec(self_)?, room_for(count)?);
        out.extend((0..count).map(|_| spec.clone()));
        Ok(out)
    }
    fn cpu(self_: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
        let (first, count, step) = slices(self_, dim)?;
        let mut out = room_for(count)?;
        for i in 0..count {
            out.push(self_.alias_with(&first.shape, &first.strides, first.offset + i * step)?);
        }
        Ok(out)
    }
    fn vjp_self(grads: &[Option<Tensor>], self_shape: &[i64], dim: i64) -> Result<Tensor> {
        let mut shape = Dims::from_slice(self_shape);
        shape.remove(wrap_dim(dim, self_shape.len())?);
        let grads = all_defined(grads, std::iter::repeat(shape))?;
        super::join::stack(&grads, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[2, 3])).with("dim", -1_i64)]
    }
}

/// Consecutive splits of `sizes` along `dim`, as aliases.
fn split_views(
    self_: &Tensor,
    sizes: impl Iterator<Item = i64>,
    count: i64,
    dim: usize,
) -> Result<Vec<Tensor>> {
    let (mut start, step) = (self_.storage_offset(), self_.strides()[dim]);
    let mut out = room_for(count)?;
    for size in sizes {
        out.push(self_.alias_with(&with_size(self_.shape(), dim, size), self_.strides(), start)?);
        start += size * step;
    }
    Ok(out)
}

/// The specs of consecutive splits of `sizes` along `dim`.
fn split_specs(
    self_: &Tensor,
    sizes: impl Iterator<Item = i64>,
    count: i64,
    dim: usize,
) -> Result<Vec<TensorSpec>> {
    let mut out = room_for(count)?;
    for size in sizes {
        let split = TensorSpec::beside(self_, &with_size(self_.shape(), dim, size));
        out.push(split.with_strides(self_.strides().into()));
    }
    Ok(out)
}

/// How many splits of `each` elements `size` elements make, the last one smaller if need be.
fn chunk_count(size: i64, each: i64) -> i64 {
    size / each + i64::from(size % each != 0)
}

fn split_count(size: i64, split_size: i64) -> i64 {
    if split_size == 0 { 1 } else { chunk_count(size, split_size).max(1) }
}

/// The sizes of splits of `split_size` out of `size`, the last one smaller if need be.
fn split_sizes(size: i64, split_size: i64) -> impl Iterator<Item = i64> + Clone {
    (0..split_count(size, split_size))
        .map(move |i| if split_size == 0 { 0 } else { split_size.min(size - i * split_size) })
}

/// The size of what is split into splits of `split_size`, and its dimension.
fn check_split(t: &Tensor, split_size: i64, dim: i64) -> Result<(i64, usize)> {
    ensure!(t.ndim() != 0, runtime, "split expects at least a 1-dimensional tensor");
    ensure!(
        split_size >= 0,
        runtime,
        "split expects split_size be non-negative, but got split_size={split_size}"
    );
    let dim = wrap_dim(dim, t.ndim())?;
    let size = t.shape()[dim];
    ensure!(
        split_size > 0 || size == 0,
        runtime,
        "split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
    );
    Ok((size, dim))
}

/// The dimension that is split into splits of `sizes`.
fn check_split_sizes(t: &Tensor, sizes: &[i64], dim: i64) -> Result<usize> {
    ensure!(t.ndim() != 0, runtime, "split expects at least a 1-dimensional tensor");
    let dim = wrap_dim(dim, t.ndim())?;
    let size = t.shape()[dim];
    ensure!(
        sizes.iter().all(|&n| n >= 0),
        runtime,
        "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}",
        list(sizes)
    );
    ensure!(
        sizes.iter().try_fold(0_i64, |sum, &n| sum.checked_add(n)) == Some(size),
        runtime,
        "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got split_sizes={}",
        list(sizes)
    );
    Ok(dim)
}

/// Splits of size `split_size` along `dim`; the last one is smaller if it does not divide.
#[op("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", multi_view, jvp = linear, batch = pick_view,
     call_as("torch.split(input = tensor, split_size = split_size_or_sections)"))]
impl Split {
    fn meta(self_: &Tensor, split_size: i64, dim: i64) -> Result<Vec<TensorSpec>> {
        let (size, dim) = check_split(self_, split_size, dim)?;
        let count = split_count(size, split_size);
        split_specs(self_, split_sizes(size, split_size), count, dim)
    }
    fn cpu(self_: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        let (size, dim) = check_split(self_, split_size, dim)?;
        split_views(self_, split_sizes(size, split_size), split_count(size, split_size), dim)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_size: i64,
        dim: i64,
    ) -> Result<Tensor> {
        let at = wrap_dim(dim, self_shape.len())?;
        let sizes = split_sizes(self_shape[at], split_size);
        super::join::cat(&all_defined(grads, sizes.map(|n| with_size(self_shape, at, n)))?, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[5, 2])).with("split_size", 2_i64),
            Sample::of(s.normal(&[2, 3])).with("split_size", 1_i64).with("dim", -1_i64),
        ]
    }
}

/// Splits of the given sizes along `dim`, which must add up to its size.
#[op(
    "split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]",
    call_as("torch.split(input = tensor, split_size = split_size_or_sections)")
)]
impl SplitSizes {
    fn composite(self_: &Tensor, split_size: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        self_.split_with_sizes(split_size, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("split_size", [2, 3])]
    }
}

/// As `split` with the size of a split in a tensor of one element.
#[op("split.Tensor_size(Tensor(a -> *) self, Tensor split_size, int dim=0) -> Tensor(a)[]", not_differentiable(split_size),
     method = split_by, call_as("torch.split(input = tensor, split_size = split_size_or_sections)"))]
impl SplitTensor {
    fn composite(self_: &Tensor, split_size: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            split_size.numel() == 1,
            type_error,
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not Tensor"
        );
        self_.split(split_size.item()?.to_i64(), dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let size = Tensor::from_slice(&[2_i64], &[1]).expect("samples are small");
        vec![Sample::new([s.normal(&[5, 2]).into(), size.into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::new([s.normal(&[5, 2]).into(), s.integers(&[2], 1, 3).into()]);
        vec![InvalidSample::new(sample, ErrorKind::Type, "must be tuple of ints, not Tensor")]
    }
}

/// Splits of the given sizes along `dim`, which must add up to its size.
#[op("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", multi_view, jvp = linear, batch = pick_view)]
impl SplitWithSizes {
    fn meta(self_: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<TensorSpec>> {
        let dim = check_split_sizes(self_, split_sizes, dim)?;
        split_specs(self_, split_sizes.iter().copied(), split_sizes.len() as i64, dim)
    }
    fn cpu(self_: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let dim = check_split_sizes(self_, split_sizes, dim)?;
        split_views(self_, split_sizes.iter().copied(), split_sizes.len() as i64, dim)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_sizes: &[i64],
        dim: i64,
    ) -> Result<Tensor> {
        let at = wrap_dim(dim, self_shape.len())?;
        let shapes = split_sizes.iter().map(|&n| with_size(self_shape, at, n));
        super::join::cat(&all_defined(grads, shapes)?, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("split_sizes", [2, 0, 3])]
    }
}

fn check_chunks(self_: &Tensor, chunks: i64) -> Result<()> {
    ensure!(self_.ndim() > 0, runtime, "chunk expects at least a 1-dimensional tensor");
    ensure!(chunks > 0, runtime, "chunk expects `chunks` to be greater than 0, got: {chunks}");
    Ok(())
}

/// At most `chunks` splits of equal size along `dim`, the last one smaller if it does not divide.
#[op("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")]
impl Chunk {
    fn composite(self_: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        check_chunks(self_, chunks)?;
        let size = self_.shape()[wrap_dim(dim, self_.ndim())?];
        let each = chunk_count(size, chunks);
        if each == 0 && size == 0 {
            room_for::<Tensor>(chunks)?;
            return self_.split_with_sizes(&memory::filled(0, chunks as usize)?, dim);
        }
        self_.split(each, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("chunks", 2_i64)]
    }
}

/// The splits with version counters of their own, which are no views to autograd.
fn on_their_own(splits: Vec<Tensor>) -> Result<Vec<Tensor>> {
    splits.iter().map(Tensor::with_own_version).collect()
}

/// As `split`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards.
#[op("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", jvp = linear, batch = pick_view)]
impl UnsafeSplit {
    fn meta(self_: &Tensor, split_size: i64, dim: i64) -> Result<Vec<TensorSpec>> {
        Split::meta(self_, split_size, dim)
    }
    fn cpu(self_: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        on_their_own(Split::cpu(self_, split_size, dim)?)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_size: i64,
        dim: i64,
    ) -> Result<Tensor> {
        Split::vjp_self(grads, self_shape, split_size, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        Split::samples(s)
    }
}

/// As `split_with_sizes`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards.
#[op(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    jvp = linear, batch = pick_view
)]
impl UnsafeSplitWithSizes {
    fn meta(self_: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<TensorSpec>> {
        SplitWithSizes::meta(self_, split_sizes, dim)
    }
    fn cpu(self_: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        on_their_own(SplitWithSizes::cpu(self_, split_sizes, dim)?)
    }
    fn vjp_self(
        grads: &[Option<Tensor>],
        self_shape: &[i64],
        split_sizes: &[i64],
        dim: i64,
    ) -> Result<Tensor> {
        SplitWithSizes::vjp_self(grads, self_shape, split_sizes, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        SplitWithSizes::samples(s)
    }
}

/// As `chunk`, but to autograd the splits share no memory: they may be written to, if nobody uses `self` afterwards.
#[op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")]
impl UnsafeChunk {
    fn composite(self_: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        check_chunks(self_, chunks)?;
        let size = self_.shape()[wrap_dim(dim, self_.ndim())?];
        let each = chunk_count(size, chunks);
        if each == 0 && size == 0 {
            room_for::<Tensor>(chunks)?;
            return self_.unsafe_split_with_sizes(&memory::filled(0, chunks as usize)?, dim);
        }
        self_.unsafe_split(each, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        Chunk::samples(s)
    }
}

/// The splits between `count - 1` points.
fn split_at(
    self_: &Tensor,
    dim: i64,
    points: impl Iterator<Item = i64>,
    count: i64,
) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let mut out = room_for(count)?;
    for point in points {
        out.push(self_.slice(dim, Some(start), Some(point), 1)?);
        start = point;
    }
    out.push(self_.slice(dim, Some(start), None, 1)?);
    Ok(out)
}

/// `sections` splits along `dim`; the first ones are larger by one if it does not divide.
#[op("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]")]
impl TensorSplit {
    fn composite(self_: &Tensor, sections: i64, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self_.ndim() > 0,
            runtime,
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        );
        ensure!(sections > 0, runtime, "number of sections must be larger than 0, got {sections}");
        let size = self_.shape()[wrap_dim(dim, self_.ndim())?];
        let (each, larger) = (size / sections, size % sections);
        split_at(self_, dim, (1..sections).map(|i| i * each + i.min(larger)), sections)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("sections", 3_i64)]
    }
}

/// The splits between the given positions along `dim`.
#[op("tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0) -> Tensor(a)[]")]
impl TensorSplitIndices {
    fn composite(self_: &Tensor, indices: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self_.ndim() > 0,
            runtime,
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        );
        split_at(self_, dim, indices.iter().copied(), indices.len() as i64 + 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[5, 2])).with("indices", [1, 4])]
    }
}

/// As `tensor_split` with the number of splits in a 0-dim int64 tensor, or with the positions in a vector.
#[op("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
     method = tensor_split_by)]
impl TensorSplitBy {
    fn composite(
        self_: &Tensor,
        tensor_indices_or_sections: &Tensor,
        dim: i64,
    ) -> Result<Vec<Tensor>> {
        let points = tensor_indices_or_sections;
        ensure!(
            points.dtype() == DType::I64,
            runtime,
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
            points.dtype().scalar_name()
        );
        ensure!(
            points.ndim() <= 1,
            runtime,
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {} dims",
            points.ndim()
        );
        let numbers = points.to_vec::<i64>()?;
        if points.ndim() == 0 {
            return self_.tensor_split(numbers[0], dim);
        }
        self_.tensor_split_indices(&numbers, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |points: &[i64], shape: &[i64]| {
            let points = Tensor::from_slice(points, shape).expect("samples are small");
            Sample::new([s.normal(&[5, 2]).into(), points.into()])
        };
        vec![sample(&[3], &[]), sample(&[1, 4], &[2])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |points: Tensor, phrase| {
            let sample = Sample::new([s.normal(&[5, 2]).into(), points.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.normal(&[2]), "to have dtype of long, but got Double"),
            bad(s.integers(&[1, 2], 0, 3), "but got a tensor with 2 dims"),
            bad(s.integers(&[], 0, 1), "number of sections must be larger than 0, got 0"),
        ]
    }
}
