//! Joining, repeating and rearranging: `cat`, `stack`, `repeat`, `flip`, `roll`, `tril`.
//!
//! Elements are moved, never changed. What only stacks or flips along named dimensions is made of the
//! general op.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::interrupt::{self, WorkCounter};
use crate::tensor::promote::result_type;
use crate::tensor::shape::{list, wrap_dim, wrap_dims, wrap_own_dim};
use crate::tensor::{Cpu, channels_last_strides, contiguous_strides};
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::layout;
use pullback_macros::op;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CAT,
    &STACK,
    &HSTACK,
    &VSTACK,
    &DSTACK,
    &ATLEAST1D,
    &ATLEAST1D_EACH,
    &ATLEAST2D,
    &ATLEAST2D_EACH,
    &ATLEAST3D,
    &ATLEAST3D_EACH,
    &REPEAT,
    &TILE,
    &FLIP,
    &FLIPLR,
    &FLIPUD,
    &ROLL,
    &ROT90,
    &TRIL,
    &TRIU,
    &REPEAT_INTERLEAVE,
    &REPEAT_INTERLEAVE_TENSOR,
    &REPEAT_INTERLEAVE_INT,
];

/// Whether a tensor is one-dimensional and without elements: for compatibility such tensors are
/// joined with tensors of any shape.
fn is_skipped(shape: &[i64]) -> bool {
    shape == [0]
}

/// The dtype that those of all tensors, of which there is one at least, promote to.
fn common_dtype(tensors: &[Tensor]) -> Result<DType> {
    if tensors.iter().all(|t| t.dtype() == tensors[0].dtype()) {
        return Ok(tensors[0].dtype());
    }
    result_type(&tensors.iter().collect::<SmallVec<[&Tensor; 4]>>())
}

/// The tensors in `dtype`.
fn promoted(cpu: Cpu, tensors: &[Tensor], dtype: DType) -> Result<Cow<'_, [Tensor]>> {
    if tensors.iter().all(|t| t.dtype() == dtype) {
        return Ok(tensors.into());
    }
    tensors
        .iter()
        .map(|t| if t.dtype() == dtype { Ok(t.clone()) } else { t.converted(cpu, dtype) })
        .collect()
}

/// The output shape of `cat` and the wrapped dimension.
fn cat_shape(tensors: &[Tensor], dim: i64) -> Result<(Dims, usize)> {
    for (position, tensor) in tensors.iter().enumerate() {
        ensure!(
            tensor.ndim() > 0,
            runtime,
            "zero-dimensional tensor (at position {position}) cannot be concatenated"
        );
    }
    let Some(model) = tensors.iter().find(|t| !is_skipped(t.shape())) else {
        // (Where all tensors are such empty ones, `dim` is not checked: old programs name dimensions that do not exist.)
        return Ok((Dims::from_slice(&[0]), 0));
    };
    let at = wrap_dim(dim, model.ndim())?;
    let mut shape = Dims::from_slice(model.shape());
    shape[at] = 0;
    for (position, tensor) in tensors.iter().enumerate().filter(|(_, t)| !is_skipped(t.shape())) {
        ensure!(
            tensor.ndim() == shape.len(),
            runtime,
            "Tensors must have same number of dimensions: got {} and {}",
            shape.len(),
            tensor.ndim()
        );
        for (d, (&have, &want)) in tensor.shape().iter().zip(model.shape()).enumerate() {
            ensure!(
                d == at || have == want,
                runtime,
                "Sizes of tensors must match except in dimension {at}. Expected size {want} but got size {have} for tensor number {position} in the list."
            );
        }
        shape[at] = shape[at].saturating_add(tensor.shape()[at]);
    }
    Ok((shape, at))
}

/// `cat` of tensors whose channels lie closest together, as they do in the result.
fn cat_channels_last(cpu: Cpu, result: &Tensor, tensors: &[Tensor], at: usize) -> Result<()> {
    let last = result.ndim() as i64 - 1;
    let order: SmallVec<[i64; 5]> = [0].into_iter().chain(2..=last).chain([1]).collect();
    let back: SmallVec<[i64; 5]> = [0, last].into_iter().chain(1..last).collect();
    let permuted =
        tensors.iter().map(|t| t.permute(&order)).collect::<Result<SmallVec<[_; 8]>>>()?;
    let refs: SmallVec<[_; 8]> = permuted.iter().map(|t| t.view_ref(cpu)).collect();
    let result = result.permute(&order)?;
    Ok(layout::cat(&mut result.view_mut(cpu), &refs, back[at] as usize)?)
}

/// Joins tensors of equal size in all dimensions but `dim`; their dtypes promote. One-dimensional tensors
/// without elements are skipped. The channels of images lie together in memory if they do in all tensors.
#[op("cat(Tensor[] tensors, int dim=0) -> Tensor", narrow_floats, out, separate, alias("concat", "concatenate"), autocast = promote, jvp = linear, batch = joined(tensors, dim), sparse = cat(cpu, tensors, dim))]
impl Cat {
    fn meta(tensors: &[Tensor], dim: i64) -> Result<TensorSpec> {
        ensure!(!tensors.is_empty(), value, "torch.cat(): expected a non-empty list of Tensors");
        let (shape, _) = cat_shape(tensors, dim)?;
        let spec = TensorSpec::beside(&tensors[0], &shape).computed_in(common_dtype(tensors)?);
        if tensors.iter().all(Tensor::is_channels_last) {
            return Ok(TensorSpec { strides: channels_last_strides(&shape), ..spec });
        }
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, tensors: &[Tensor], dim: i64) -> Result<()> {
        let at = if is_skipped(result.shape()) { 0 } else { wrap_dim(dim, result.ndim())? };
        let inputs = promoted(cpu, tensors, result.dtype())?;
        if tensors.iter().all(Tensor::is_channels_last) {
            return cat_channels_last(cpu, result, &inputs, at);
        }
        let refs: SmallVec<[_; 8]> =
            inputs.iter().filter(|t| !is_skipped(t.shape())).map(|t| t.view_ref(cpu)).collect();
        if !refs.is_empty() {
            layout::cat(&mut result.view_mut(cpu), &refs, at)?;
        }
        Ok(())
    }
    fn vjp_tensors(grad: &Tensor, tensors_shapes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let at = if is_skipped(grad.shape()) { 0 } else { wrap_dim(dim, grad.ndim())? };
        let (mut out, mut start, mut rest) = (Vec::new(), 0, tensors_shapes);
        while let Some((&rank, after)) = rest.split_first() {
            let (shape, after) = after.split_at(rank as usize);
            rest = after;
            if is_skipped(shape) {
                out.push(TensorSpec::beside(grad, shape).zeros()?);
                continue;
            }
            out.push(grad.narrow(at as i64, start, shape[at])?);
            start += shape[at];
        }
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([Value::Tensors(vec![s.normal(&[2, 3]), s.normal(&[1, 3])])]),
            Sample::new([
                Value::Tensors(vec![s.transposed(2, 3), s.normal(&[2, 1])]),
                Value::Int(-1),
            ]),
            Sample::new([Value::Tensors(vec![
                s.normal(&[0]),
                s.normal(&[2, 2]),
                s.normal(&[0, 2]),
            ])]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |tensors: Vec<Tensor>, kind, phrase| {
            InvalidSample::new(Sample::new([Value::Tensors(tensors)]), kind, phrase)
        };
        vec![
            bad(vec![], ErrorKind::Value, "expected a non-empty list of Tensors"),
            bad(
                vec![s.normal(&[])],
                ErrorKind::Runtime,
                "zero-dimensional tensor (at position 0) cannot be concatenated",
            ),
            bad(
                vec![s.normal(&[2, 3]), s.normal(&[2, 4])],
                ErrorKind::Runtime,
                "Expected size 3 but got size 4 for tensor number 1",
            ),
            bad(
                vec![s.normal(&[2, 3]), s.normal(&[3])],
                ErrorKind::Runtime,
                "Tensors must have same number of dimensions",
            ),
        ]
    }
}

/// The strides of images with channels closest together that are stacked along dimension `at` of `shape`: those of images joined
/// along the dimension that follows it.
fn stacked_strides(shape: &[i64], at: usize) -> Option<Dims> {
    let mut joined = Dims::from_slice(shape);
    let count = joined.remove(at);
    let size = joined[at];
    joined[at] = size.saturating_mul(count);
    let mut strides = channels_last_strides(&joined)?;
    strides.insert(at, strides[at].wrapping_mul(size));
    Some(strides)
}

/// Joins tensors of equal shape along a new dimension. Where channels of images lie together in all tensors, they do in the
/// result, unless the new dimension is the last.
#[op("stack(Tensor[] tensors, int dim=0) -> Tensor", narrow_floats, out, separate, autocast = promote, jvp = linear, batch = stacked(tensors, dim), sparse = stack(tensors, dim))]
impl Stack {
    fn meta(tensors: &[Tensor], dim: i64) -> Result<TensorSpec> {
        let Some(first) = tensors.first() else {
            bail!(runtime, "stack expects a non-empty TensorList")
        };
        let at = wrap_dim(dim, first.ndim() + 1)?;
        for (index, tensor) in tensors.iter().enumerate() {
            ensure!(
                tensor.shape() == first.shape(),
                runtime,
                "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {index}",
                list(first.shape()),
                list(tensor.shape())
            );
        }
        let mut shape = Dims::from_slice(first.shape());
        shape.insert(at, tensors.len() as i64);
        let spec = TensorSpec::beside(first, &shape).computed_in(common_dtype(tensors)?);
        if at < first.ndim() && tensors.iter().all(Tensor::is_channels_last) {
            return Ok(TensorSpec { strides: stacked_strides(&shape, at), ..spec });
        }
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, tensors: &[Tensor], dim: i64) -> Result<()> {
        let at = wrap_dim(dim, result.ndim())?;
        let columns = promoted(cpu, tensors, result.dtype())?
            .iter()
            .map(|t| t.unsqueeze(at as i64))
            .collect::<Result<SmallVec<[Tensor; 4]>>>()?;
        let refs: SmallVec<[_; 8]> = columns.iter().map(|t| t.view_ref(cpu)).collect();
        Ok(layout::cat(&mut result.view_mut(cpu), &refs, at)?)
    }
    fn vjp_tensors(grad: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
        grad.unbind(dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([Value::Tensors(vec![s.normal(&[2, 3]), s.normal(&[2, 3])])]),
            Sample::new([Value::Tensors(vec![s.normal(&[2]), s.normal(&[2])]), Value::Int(-1)]),
            Sample::new([Value::Tensors(vec![s.normal(&[]), s.normal(&[])])]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |tensors: Vec<Tensor>, phrase| {
            InvalidSample::new(Sample::new([Value::Tensors(tensors)]), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(vec![], "stack expects a non-empty TensorList"),
            bad(
                vec![s.normal(&[2]), s.normal(&[3])],
                "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
            ),
        ]
    }
}

/// The tensor with at least one dimension.
#[op("atleast_1d(Tensor self) -> Tensor", function_only, method = atleast_1d)]
impl Atleast1d {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.ndim() == 0 { self_.reshape(&[1]) } else { Ok(self_.clone()) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[]))]
    }
}

/// Each of the tensors as `atleast_1d`.
#[op("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", method = atleast_1d_each)]
impl Atleast1dEach {
    fn composite(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        tensors.iter().map(Tensor::atleast_1d).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lists(s)
    }
}

/// The tensor with at least two dimensions; a vector becomes a row.
#[op("atleast_2d(Tensor self) -> Tensor", function_only, method = atleast_2d)]
impl Atleast2d {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        match self_.ndim() {
            0 => self_.reshape(&[1, 1]),
            1 => self_.unsqueeze(0),
            _ => Ok(self_.clone()),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2]))]
    }
}

/// Each of the tensors as `atleast_2d`.
#[op("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", method = atleast_2d_each)]
impl Atleast2dEach {
    fn composite(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        tensors.iter().map(Tensor::atleast_2d).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lists(s)
    }
}

/// The tensor with at least three dimensions: (n) becomes (1, n, 1), (m, n) becomes (m, n, 1).
#[op("atleast_3d(Tensor self) -> Tensor", function_only, method = atleast_3d)]
impl Atleast3d {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        match self_.ndim() {
            0 => self_.reshape(&[1, 1, 1]),
            1 => self_.unsqueeze(0)?.unsqueeze(-1),
            2 => self_.unsqueeze(-1),
            _ => Ok(self_.clone()),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// Each of the tensors as `atleast_3d`.
#[op("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", method = atleast_3d_each)]
impl Atleast3dEach {
    fn composite(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        tensors.iter().map(Tensor::atleast_3d).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lists(s)
    }
}

fn lists(s: &Sampler) -> Vec<Sample> {
    let list = |shapes: &[&[i64]]| {
        Sample::new([Value::Tensors(shapes.iter().map(|shape| s.normal(shape)).collect())])
    };
    vec![list(&[&[], &[2], &[2, 3], &[1, 2, 3]]), list(&[&[3]])]
}

fn each(
    tensors: &[Tensor],
    name: &str,
    f: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    ensure!(!tensors.is_empty(), runtime, "{name} expects a non-empty TensorList");
    tensors.iter().map(f).collect()
}

/// Joins vectors end to end and other tensors along dimension 1.
#[op("hstack(Tensor[] tensors) -> Tensor", out, separate)]
impl Hstack {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        let tensors = each(tensors, "hstack", Tensor::atleast_1d)?;
        let dim = i64::from(tensors[0].ndim() > 1);
        cat(&tensors, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Tensors(vec![s.normal(&[2, 1]), s.normal(&[2, 2])])])]
    }
}

/// Joins tensors along dimension 0; vectors are rows.
#[op("vstack(Tensor[] tensors) -> Tensor", out, separate, alias("row_stack"))]
impl Vstack {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        cat(&each(tensors, "vstack", Tensor::atleast_2d)?, 0)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Tensors(vec![s.normal(&[3]), s.normal(&[2, 3])])])]
    }
}

/// Joins tensors along dimension 2.
#[op("dstack(Tensor[] tensors) -> Tensor", out, separate)]
impl Dstack {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        cat(&each(tensors, "dstack", Tensor::atleast_3d)?, 2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Tensors(vec![s.normal(&[3]), s.normal(&[3])])])]
    }
}

/// The tensor repeated `repeats[d]` times along each dimension; more repeats than dimensions add leading ones.
#[op("repeat(Tensor self, int[] repeats) -> Tensor", narrow_floats, method_only, jvp = linear, batch = repeat(self, repeats))]
impl Repeat {
    fn meta(self_: &Tensor, repeats: &[i64]) -> Result<TensorSpec> {
        ensure!(
            repeats.len() >= self_.ndim(),
            runtime,
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        );
        if let Some(n) = repeats.iter().find(|&&n| n < 0) {
            bail!(
                runtime,
                "Trying to create tensor with negative dimension {n}: {}",
                list(repeats)
            );
        }
        let skip = repeats.len() - self_.ndim();
        let size = |i: usize| if i < skip { 1 } else { self_.shape()[i - skip] };
        let shape: Dims =
            repeats.iter().enumerate().map(|(i, &n)| n.saturating_mul(size(i))).collect();
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, repeats: &[i64]) -> Result<()> {
        Ok(layout::repeat(&mut result.view_mut(cpu), self_.view_ref(cpu), repeats)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], repeats: &[i64]) -> Result<Tensor> {
        if repeats.contains(&0) {
            return TensorSpec::beside(grad, self_shape).zeros();
        }
        let skip = repeats.len() - self_shape.len();
        let (mut shape, mut dims) = (Dims::new(), Dims::new());
        for (index, &n) in repeats.iter().enumerate() {
            dims.push(shape.len() as i64);
            shape.push(n);
            if index >= skip {
                shape.push(self_shape[index - skip]);
            }
        }
        if dims.is_empty() {
            return Ok(grad.clone());
        }
        grad.reshape(&shape)?.sum_dim(Some(&dims), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |shape: &[i64], repeats: &[i64]| Sample::of(s.normal(shape)).with("repeats", repeats);
        vec![
            sample(&[2, 3], &[2, 1]),
            sample(&[2], &[3, 2]),
            sample(&[], &[2]),
            sample(&[2], &[0]),
            sample(&[], &[]),
        ]
    }
}

/// As `repeat`; fewer repeats than dimensions mean the last ones.
#[op("tile(Tensor self, int[] dims) -> Tensor")]
impl Tile {
    fn composite(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
        let missing = self_.ndim().saturating_sub(dims.len());
        let repeats: Dims = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
        self_.repeat(&repeats)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).with("dims", [2])]
    }
}

/// The dimensions of `t` that `dims` names: none if it is empty.
fn named_dims(t: &Tensor, dims: &[i64]) -> Result<SmallVec<[usize; 5]>> {
    if dims.is_empty() { Ok(SmallVec::new()) } else { wrap_dims(Some(dims), t.ndim()) }
}

/// The order of elements reversed along `dims`.
#[op("flip(Tensor self, int[] dims) -> Tensor", narrow_floats, jvp = linear, batch = along)]
impl Flip {
    fn meta(self_: &Tensor, dims: &[i64]) -> Result<TensorSpec> {
        named_dims(self_, dims)?;
        Ok(TensorSpec::laid_as(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dims: &[i64]) -> Result<()> {
        let dims = named_dims(self_, dims)?;
        Ok(layout::flip(&mut result.view_mut(cpu), self_.view_ref(cpu), &dims)?)
    }
    fn vjp_self(grad: &Tensor, dims: &[i64]) -> Result<Tensor> {
        grad.flip(dims)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("dims", [0, -1]),
            Sample::of(s.transposed(3, 2)).with("dims", [1]),
            Sample::of(s.normal(&[])).with("dims", [0]),
        ]
    }
}

/// Columns in reverse order.
#[op("fliplr(Tensor self) -> Tensor")]
impl Fliplr {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        ensure!(self_.ndim() >= 2, runtime, "Input must be >= 2-d.");
        self_.flip(&[1])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// Rows in reverse order.
#[op("flipud(Tensor self) -> Tensor")]
impl Flipud {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        ensure!(self_.ndim() >= 1, runtime, "Input must be >= 1-d.");
        self_.flip(&[0])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3]))]
    }
}

/// Elements moved by `shifts` along `dims`, those that leave at the end come in at the start; without `dims` the
/// tensor is rolled as if it were flat.
#[op("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", narrow_floats, jvp = linear, batch = roll(self, shifts, dims))]
impl Roll {
    fn meta(self_: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<TensorSpec> {
        ensure!(!shifts.is_empty(), runtime, "`shifts` required");
        let is_flat = dims.is_empty() && shifts.len() == 1;
        ensure!(
            is_flat || shifts.len() == dims.len(),
            runtime,
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            dims.len()
        );
        dims.iter().try_for_each(|&d| wrap_own_dim(d, self_.ndim()).map(drop))?;
        Ok(if dims.is_empty() {
            TensorSpec::like(self_)
        } else {
            TensorSpec::in_format_of(self_, self_.shape())
        })
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<()> {
        if dims.is_empty() {
            let (out, flat) = (result.view(&[-1])?, self_.dense(cpu)?.view(&[-1])?);
            return Ok(layout::roll(&mut out.view_mut(cpu), flat.view_ref(cpu), shifts, &[0])?);
        }
        let dims = dims
            .iter()
            .map(|&d| wrap_own_dim(d, self_.ndim()))
            .collect::<Result<SmallVec<[usize; 5]>>>()?;
        Ok(layout::roll(&mut result.view_mut(cpu), self_.view_ref(cpu), shifts, &dims)?)
    }
    fn vjp_self(grad: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
        // (Reduced to the size first, because the least 64-bit number has no opposite.)
        let back = |(at, shift): (usize, &i64)| -> Result<i64> {
            let size = match dims.get(at) {
                Some(&dim) => grad.shape()[wrap_own_dim(dim, grad.ndim())?],
                None => grad.numel(),
            };
            Ok(-shift.checked_rem(size).unwrap_or(0))
        };
        let back = shifts.iter().enumerate().map(back).collect::<Result<Dims>>()?;
        grad.roll(&back, dims)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("shifts", [1]),
            Sample::of(s.normal(&[2, 3])).with("shifts", [-1, 2]).with("dims", [0, 1]),
        ]
    }
}

/// The two dimensions of the plane that is rotated.
fn plane(t: &Tensor, dims: &[i64]) -> Result<(usize, usize)> {
    ensure!(
        dims.len() == 2,
        runtime,
        "expected total rotation dims == 2, but got dims = {}",
        dims.len()
    );
    ensure!(t.ndim() >= 2, runtime, "expected total dims >= 2, but got total dims = {}", t.ndim());
    let (a, b) = (wrap_dim(dims[0], t.ndim())?, wrap_dim(dims[1], t.ndim())?);
    ensure!(
        a != b,
        runtime,
        "expected rotation dims to be different, but got dim0 = {} and dim1 = {}",
        dims[0],
        dims[1]
    );
    Ok((a, b))
}

/// The plane of `dims` rotated by `k` quarter turns from the first of them towards the second.
#[op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", jvp = linear, batch = along)]
impl Rot90 {
    fn meta(self_: &Tensor, k: i64, dims: &[i64]) -> Result<TensorSpec> {
        let (a, b) = plane(self_, dims)?;
        let quarters = k.rem_euclid(4);
        if quarters == 0 {
            return Ok(TensorSpec::like(self_));
        }
        let mut spec = TensorSpec::laid_as(self_);
        if quarters != 2 {
            let strides = spec.strides.get_or_insert_with(|| contiguous_strides(&spec.shape));
            strides.swap(a, b);
            spec.shape.swap(a, b);
        }
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, k: i64, dims: &[i64]) -> Result<()> {
        let (a, b) = plane(self_, dims)?;
        let (out, flipped): (_, SmallVec<[usize; 2]>) = match k.rem_euclid(4) {
            1 => (&result.transpose(a as i64, b as i64)?, SmallVec::from_slice(&[b])),
            2 => (result, SmallVec::from_slice(&[a, b])),
            3 => (&result.transpose(a as i64, b as i64)?, SmallVec::from_slice(&[a])),
            _ => return result.copy_data(cpu, self_),
        };
        Ok(layout::flip(&mut out.view_mut(cpu), self_.view_ref(cpu), &flipped)?)
    }
    fn vjp_self(grad: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
        grad.rot90(-k.rem_euclid(4), dims)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[2, 3])).with("k", -1_i64)]
    }
}

/// The specs of the triangles of the matrices in `self_`.
fn triangle_spec(self_: &Tensor, name: &str) -> Result<TensorSpec> {
    ensure!(self_.ndim() >= 2, runtime, "{name}: input tensor must have at least 2 dimensions");
    Ok(TensorSpec::like(self_))
}

/// The lower triangle of each matrix up to `diagonal`, zeros above.
#[op("tril(Tensor self, int diagonal=0) -> Tensor", inplace = method, exact_out, jvp = linear, batch = matrices)]
impl Tril {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        triangle_spec(self_, "tril")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, diagonal: i64) -> Result<()> {
        Ok(layout::tril(&mut result.view_mut(cpu), self_.view_ref(cpu), diagonal)?)
    }
    fn vjp_self(grad: &Tensor, diagonal: i64) -> Result<Tensor> {
        grad.tril(diagonal)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3, 3])),
            Sample::of(s.normal(&[2, 2, 3])).with("diagonal", 1_i64),
            Sample::of(s.normal(&[0, 2])),
        ]
    }
}

/// The upper triangle of each matrix from `diagonal`, zeros below.
#[op("triu(Tensor self, int diagonal=0) -> Tensor", inplace = method, exact_out, jvp = linear, batch = matrices)]
impl Triu {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        triangle_spec(self_, "triu")
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, diagonal: i64) -> Result<()> {
        Ok(layout::triu(&mut result.view_mut(cpu), self_.view_ref(cpu), diagonal)?)
    }
    fn vjp_self(grad: &Tensor, diagonal: i64) -> Result<Tensor> {
        grad.triu(diagonal)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3, 3])),
            Sample::of(s.normal(&[2, 2, 3])).with("diagonal", -1_i64),
        ]
    }
}

/// Each index `i`, `repeats[i]` times: `[0, 2]` gives `[1, 1]`.
#[op("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor", function_only, not_differentiable,
     method = repeat_interleave_places, dynamic_output_shape, batch = data_dependent)]
impl RepeatInterleave {
    fn cpu(cpu: Cpu, repeats: &Tensor, output_size: Option<i64>) -> Result<Tensor> {
        ensure!(repeats.ndim() == 1, runtime, "repeat_interleave only accept 1D vector as repeat");
        ensure!(
            matches!(repeats.dtype(), DType::I64 | DType::I32),
            runtime,
            "repeats has to be Long or Int tensor"
        );
        let counts = repeats.to_vec::<i64>()?;
        ensure!(counts.iter().all(|&n| n >= 0), runtime, "repeats can not be negative");
        // (A sum beyond 64 bits is more than there is memory for.)
        let total = counts.iter().fold(0, |sum: i64, &n| sum.saturating_add(n));
        ensure!(
            output_size.is_none_or(|n| n == total),
            runtime,
            "allocated size does not match required size: {} and {total}",
            output_size.unwrap_or(total)
        );
        let out = Tensor::empty_of(&[total], DType::I64)?;
        let mut view = out.view_mut(cpu);
        let mut rest = view.as_slice_mut::<i64>().unwrap_or_default();
        let mut pace = WorkCounter::new();
        for (position, &n) in counts.iter().enumerate() {
            pace.spend(1 + n as usize);
            let (own, after) = rest.split_at_mut(n as usize);
            interrupt::chunks(own.len()).for_each(|part| own[part].fill(position as i64));
            rest = after;
        }
        out.converted(cpu, repeats.dtype())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[3], 0, 3)).without_gradient()]
    }
}

/// Each element (or slice along `dim`) repeated `repeats[i]` times; without `dim` the tensor is flattened.
#[op("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
     not_differentiable(repeats), method = repeat_interleave_by)]
impl RepeatInterleaveTensor {
    fn composite(
        self_: &Tensor,
        repeats: &Tensor,
        dim: Option<i64>,
        output_size: Option<i64>,
    ) -> Result<Tensor> {
        let input = if dim.is_none() { self_.flatten(0, -1)? } else { self_.clone() };
        let dim = wrap_dim(dim.unwrap_or(0), input.ndim())? as i64;
        let size = input.shape().get(dim as usize).copied().unwrap_or(1);
        let repeats = match (repeats.ndim(), repeats.numel()) {
            (0 | 1, 1) => repeats.reshape(&[1])?.expand(&[size], false)?,
            (1, n) => {
                ensure!(
                    n == size,
                    runtime,
                    "repeats must have the same size as input along dim, but got repeats.size(0) = {n} and input.size({dim}) = {size}"
                );
                repeats.clone()
            }
            _ => bail!(runtime, "repeats must be 0-dim or 1-dim tensor"),
        };
        input.index_select(dim, &repeats.repeat_interleave_places_with(output_size)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[3, 2]).into(), s.integers(&[3], 0, 3).into()])
                .with("dim", 0_i64),
        ]
    }
}

/// Each element (or slice along `dim`) `repeats` times, one after the other; without `dim` the tensor is flattened.
#[op("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
     method = repeat_interleave)]
impl RepeatInterleaveInt {
    fn composite(self_: &Tensor, repeats: i64, dim: Option<i64>) -> Result<Tensor> {
        ensure!(repeats >= 0, runtime, "Repeats must be non-negative");
        let input = if dim.is_none() { self_.flatten(0, -1)? } else { self_.clone() };
        let dim = wrap_dim(dim.unwrap_or(0), input.ndim())?;
        let input = if input.ndim() == 0 { input.reshape(&[1])? } else { input };
        let mut shape = Dims::from_slice(input.shape());
        shape.insert(dim + 1, repeats);
        let spread = input.unsqueeze(dim as i64 + 1)?.expand(&shape, false)?;
        spread
            .clone_tensor(Some(crate::MemoryFormat::Contiguous))?
            .flatten(dim as i64, dim as i64 + 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("repeats", 2_i64),
            Sample::of(s.normal(&[2, 3])).with("repeats", 3_i64).with("dim", 1_i64),
        ]
    }
}
