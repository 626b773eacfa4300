//! Reading elements at indices given by tensors: `index`, `gather`, `index_select`, `masked_select`,
//! `take`, `embedding`, `nonzero` and the searches. Writing to such indices is in `scatter`.
//!
//! Index tensors are int64 or int32 and never have a gradient. A gradient goes back through the op that
//! writes to the indices that were read, adding where one was read twice.

use super::plan::{check_indices, expand_masks, located, plan, whole_mask};
use super::scatter::{check_rank, vector_shape};
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::meta::depends_on_elements;
use crate::ops::sparse;
use crate::tensor::Cpu;
use crate::tensor::promote::result_type;
use crate::tensor::shape::{broadcast_shapes, list, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::index as kernel;
use pullback_macros::op;
use smallvec::SmallVec;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &INDEX,
    &INDEX_SELECT,
    &GATHER,
    &MASKED_SELECT,
    &TAKE,
    &NONZERO,
    &NONZERO_NUMPY,
    &WHERE_TRUE,
    &ARGWHERE,
    &ONE_HOT,
    &SEARCHSORTED,
    &BUCKETIZE,
    &BINCOUNT,
];

/// Refuses index tensors that hold no whole numbers.
pub(in crate::ops) fn check_index_dtype(name: &str, index: &Tensor) -> Result<()> {
    ensure!(
        matches!(index.dtype(), DType::I64 | DType::I32),
        runtime,
        "{name}(): Expected dtype int32/int64 for index but got {}",
        index.dtype().scalar_name()
    );
    Ok(())
}

/// As `check_index_dtype` for the ops whose index has the shape of what is read or written: without elements
/// it may be of any dtype.
pub(in crate::ops) fn check_places_dtype(name: &str, index: &Tensor) -> Result<()> {
    if index.numel() == 0 { Ok(()) } else { check_index_dtype(name, index) }
}

/// A tensor with at least one dimension: 0-dim ones become vectors of one element. No history.
pub(in crate::ops) fn as_vector(t: &Tensor) -> Result<Tensor> {
    if t.ndim() > 0 {
        return Ok(t.clone());
    }
    t.alias_with(&[1], &[1], t.storage_offset())
}

/// The elements where the mask of the same shape is true.
fn selected(cpu: Cpu, self_: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let out = Tensor::empty_of(&[kernel::count_true(mask.view_ref(cpu)) as i64], self_.dtype())?;
    kernel::masked_select(&mut out.view_mut(cpu), self_.view_ref(cpu), mask.view_ref(cpu))?;
    Ok(out)
}

/// The elements at the indices that `indices` name: one index tensor per dimension (`None` takes all of it), which
/// broadcast together. Masks stand for the coordinates of their true elements. Negative indices count from the end.
#[op(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", narrow_floats,
    function_only,
    not_differentiable(indices),
    internal, jvp = linear, batch = index(self, indices))]
impl Index {
    fn meta(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<TensorSpec> {
        if check_indices(self_, indices)? {
            return Err(depends_on_elements("index", "a mask"));
        }
        let located = located(self_, indices)?;
        if located.given.is_empty() {
            return Ok(TensorSpec::laid_as(self_));
        }
        let spec = TensorSpec::beside(self_, &located.shape);
        if located.given.len() == 1
            && self_.is_contiguous()
            && indices.iter().flatten().all(Tensor::is_contiguous)
        {
            return spec.checked();
        }
        let strides = located.strides(self_, indices)?;
        spec.with_strides(strides).checked()
    }
    fn cpu(cpu: Cpu, self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
        if let Some(mask) = whole_mask(self_, indices) {
            return selected(cpu, self_, mask);
        }
        if let ([Some(at)], [_, rest @ ..]) = (indices, self_.shape())
            && at.dtype() == DType::I64
            && self_.is_contiguous()
            && at.is_contiguous()
        {
            let mut shape = Dims::from_slice(at.shape());
            shape.extend_from_slice(rest);
            let out = Tensor::empty_of(&shape, self_.dtype())?;
            kernel::index(&mut out.view_mut(cpu), self_.view_ref(cpu), &[0], &[at.view_ref(cpu)])?;
            return Ok(out);
        }
        check_indices(self_, indices)?;
        let indices = expand_masks(indices)?;
        let out = Index::meta(self_, &indices)?.empty()?;
        let plan = plan(cpu, self_, &indices)?;
        if plan.dims.is_empty() {
            out.copy_data(cpu, self_)?;
            return Ok(out);
        }
        let refs: SmallVec<[_; 4]> = plan.indices.iter().map(|t| t.view_ref(cpu)).collect();
        kernel::index(&mut out.view_mut(cpu), plan.input.view_ref(cpu), &plan.dims, &refs)?;
        Ok(out)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], indices: &[Option<Tensor>]) -> Result<Tensor> {
        let zeros = TensorSpec::beside(grad, self_shape).zeros()?;
        // A mask selects no element twice.
        let repeats = whole_mask(&zeros, indices).is_none();
        zeros.index_put(indices, grad, repeats)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, indices: Vec<Option<Tensor>>| {
            Sample::new([t.into(), Value::OptTensors(indices)])
        };
        let positions = |v: &[i64]| Tensor::from_slice(v, &[v.len() as i64]).ok();
        let mask = Tensor::from_slice(
            &[crate::Bool::new(true), crate::Bool::new(false), crate::Bool::new(true)],
            &[3],
        )
        .ok();
        vec![
            sample(s.normal(&[4, 3]), vec![positions(&[0, 2, -1, 0])]),
            sample(s.normal(&[4, 3]), vec![None, positions(&[0, 2])]),
            sample(s.normal(&[2, 3, 4]), vec![positions(&[0, 1]), None, positions(&[3, 0])]),
            sample(s.normal(&[3, 2]), vec![mask]),
        ]
    }
}

/// Slices along `dim` at the indices `index` (a vector): `out[:, j] = self[:, index[j]]`.
#[op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", narrow_floats,
    exact_out,
    separate,
    not_differentiable(index), jvp = linear, batch = index_select(self, dim, index), sparse = index_select(self, dim, index))]
impl IndexSelect {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor) -> Result<TensorSpec> {
        let dim = wrap_dim(dim, self_.ndim())?;
        ensure!(index.ndim() <= 1, index, "index_select(): Index is supposed to be a vector");
        check_index_dtype("index_select", index)?;
        ensure!(
            self_.ndim() > 0 || index.numel() == 1,
            runtime,
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            index.numel()
        );
        let mut shape = Dims::from_slice(self_.shape());
        if let Some(size) = shape.get_mut(dim) {
            *size = index.numel();
        }
        TensorSpec::beside(self_, &shape).checked()
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64, index: &Tensor) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        let (target, input, positions) = (as_vector(result)?, as_vector(self_)?, as_vector(index)?);
        Ok(kernel::index_select(
            &mut target.view_mut(cpu),
            input.view_ref(cpu),
            dim,
            positions.view_ref(cpu),
        )?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], dim: i64, index: &Tensor) -> Result<Tensor> {
        if grad.is_sparse() {
            return sparse::index_select_backward(grad, self_shape, dim, index);
        }
        let zeros = TensorSpec::beside(grad, self_shape).zeros()?;
        zeros.index_add(dim, index, grad)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, dim: i64, index: &[i64]| {
            let index =
                Tensor::from_slice(index, &[index.len() as i64]).expect("samples are small");
            Sample::new([t.into(), Value::Int(dim), index.into()])
        };
        vec![
            sample(s.normal(&[3, 2]), 0, &[2, 0, 2]),
            sample(s.transposed(2, 3), -1, &[1]),
            sample(s.normal(&[3]), 0, &[]),
            sample(s.normal(&[]), 0, &[0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = |shape: &[i64], index: &[i64]| {
            let index =
                Tensor::from_slice(index, &[index.len() as i64]).expect("samples are small");
            Sample::new([s.normal(shape).into(), Value::Int(0), index.into()])
        };
        vec![
            InvalidSample::new(sample(&[3], &[3]), ErrorKind::Index, "index out of range"),
            InvalidSample::new(
                sample(&[], &[0, 0]),
                ErrorKind::Runtime,
                "Index to scalar can have only 1 value, got 2 value(s)",
            ),
        ]
    }
}

/// Elements along `dim` at the indices `index`, which has the shape of the result:
/// `out[i][j] = self[index[i][j]][j]` for `dim` 0.
#[op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    exact_out,
    separate(self),
    apart(index),
    not_differentiable(index), jvp = linear, batch = gather(index))]
impl Gather {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor) -> Result<TensorSpec> {
        let dim = wrap_dim(dim, self_.ndim())?;
        check_places_dtype("gather", index)?;
        check_rank(self_, index, "input")?;
        if index.numel() > 0 {
            kernel::check_index_shape("self", vector_shape(index), vector_shape(self_), dim)?;
        }
        Ok(TensorSpec::beside(self_, index.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64, index: &Tensor) -> Result<()> {
        if index.numel() == 0 {
            return Ok(());
        }
        let dim = wrap_dim(dim, self_.ndim())?;
        let (target, input, positions) = (as_vector(result)?, as_vector(self_)?, as_vector(index)?);
        Ok(kernel::gather(
            &mut target.view_mut(cpu),
            input.view_ref(cpu),
            dim,
            positions.view_ref(cpu),
        )?)
    }
    fn vjp_self(
        grad: &Tensor,
        self_shape: &[i64],
        dim: i64,
        index: &Tensor,
        sparse_grad: bool,
    ) -> Result<Tensor> {
        if sparse_grad {
            return sparse::gather_backward(grad, self_shape, dim, index);
        }
        let zeros = TensorSpec::beside(grad, self_shape).zeros()?;
        zeros.scatter_add(dim, index, grad)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, dim: i64, index: Tensor| {
            Sample::new([t.into(), Value::Int(dim), index.into()])
        };
        vec![
            sample(s.normal(&[3, 2]), 0, s.integers(&[2, 2], 0, 3)),
            sample(s.normal(&[3, 4]), -1, s.integers(&[3, 2], 0, 4)),
            sample(s.normal(&[]), 0, s.integers(&[], 0, 1)),
        ]
    }
}

/// The elements where `mask` (bool) is true, in row-major order, as a vector; the shapes broadcast.
#[op(
    "masked_select(Tensor self, Tensor mask) -> Tensor", narrow_floats,
    exact_out,
    separate,
    not_differentiable(mask), jvp = linear, dynamic_output_shape, batch = data_dependent)]
impl MaskedSelect {
    fn cpu(cpu: Cpu, self_: &Tensor, mask: &Tensor) -> Result<Tensor> {
        ensure!(
            mask.dtype() == DType::Bool,
            runtime,
            "masked_select: expected BoolTensor for mask"
        );
        let shape = broadcast_shapes(&[self_.shape(), mask.shape()])?;
        let (input, mask) = (self_.expand(&shape, false)?, mask.expand(&shape, false)?);
        selected(cpu, &input, &mask)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], mask: &Tensor) -> Result<Tensor> {
        let shape = broadcast_shapes(&[self_shape, mask.shape()])?;
        let zeros = TensorSpec::beside(grad, &shape).zeros()?;
        zeros.masked_scatter(mask, grad)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.bools(&[2, 3]).into()]),
            Sample::new([s.normal(&[2, 3]).into(), s.bools(&[3]).into()]),
        ]
    }
}

/// Elements at row-major positions of the flattened tensor; negative ones count from the end.
#[op("take(Tensor self, Tensor index) -> Tensor", exact_out, separate, not_differentiable(index), jvp = linear, batch = take(self, index))]
impl Take {
    fn meta(self_: &Tensor, index: &Tensor) -> Result<TensorSpec> {
        ensure!(
            index.dtype() == DType::I64,
            runtime,
            "take(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        );
        ensure!(
            self_.numel() > 0 || index.numel() == 0,
            index,
            "take(): tried to take from an empty tensor"
        );
        Ok(TensorSpec::beside(self_, index.shape()))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, index: &Tensor) -> Result<()> {
        let (self_, index) = (self_.view_ref(cpu), index.view_ref(cpu));
        Ok(kernel::take(&mut result.view_mut(cpu), self_, index)?)
    }
    fn vjp_self(grad: &Tensor, self_shape: &[i64], index: &Tensor) -> Result<Tensor> {
        let zeros = TensorSpec::beside(grad, self_shape).zeros()?;
        zeros.put(index, grad, true)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3]).into(), s.integers(&[2, 2], -6, 6).into()])]
    }
}

/// The coordinates of the elements that are not zero, one row each, in row-major order: (count, ndim).
#[op("nonzero(Tensor self) -> Tensor", exact_out, narrow_floats, not_differentiable, dynamic_output_shape, batch = data_dependent)]
impl Nonzero {
    fn cpu(cpu: Cpu, self_: &Tensor) -> Result<Tensor> {
        super::refuse_narrow_floats("nonzero_count_cpu", self_)?;
        let count = kernel::count_true(self_.view_ref(cpu)) as i64;
        // (By columns, as each of them is used as an index.)
        let (shape, strides) = ([count, self_.ndim() as i64], [1, count]);
        let out = TensorSpec::of(&shape, DType::I64).with_strides(strides[..].into()).empty()?;
        if self_.ndim() > 0 {
            kernel::nonzero(&mut out.view_mut(cpu), self_.view_ref(cpu))?;
        }
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.bools(&[2, 3])).without_gradient()]
    }
}

/// As `nonzero`, one vector per dimension (a number counts as a vector).
#[op("nonzero_numpy(Tensor self) -> Tensor[]", internal, function_only, not_differentiable)]
impl NonzeroNumpy {
    fn composite(self_: &Tensor) -> Result<Vec<Tensor>> {
        let input = if self_.ndim() == 0 { self_.unsqueeze(0)? } else { self_.clone() };
        input.nonzero()?.unbind(1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.bools(&[2, 3])).without_gradient()]
    }
}

/// As `nonzero_numpy`.
#[op("where(Tensor condition) -> Tensor[]", not_differentiable, function_only)]
impl WhereTrue {
    fn composite(condition: &Tensor) -> Result<Vec<Tensor>> {
        condition.nonzero_numpy()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.bools(&[2, 3])).without_gradient()]
    }
}

/// As `nonzero`.
#[op("argwhere(Tensor self) -> Tensor", not_differentiable)]
impl Argwhere {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.nonzero()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.bools(&[2, 3])).without_gradient()]
    }
}

/// Refuses what cannot be class numbers, whatever they are.
fn check_classes(self_: &Tensor, num_classes: i64) -> Result<()> {
    ensure!(
        self_.dtype() == DType::I64,
        runtime,
        "one_hot is only applicable to index tensor of type LongTensor."
    );
    ensure!(
        self_.numel() > 0 || num_classes > 0,
        runtime,
        "Can not infer total number of classes from empty tensor."
    );
    ensure!(num_classes != 0, runtime, "num_classes should be positive");
    Ok(())
}

/// A 1 at each class number, else zeros, in a new last dimension of size `num_classes` (-1: one more than the largest).
#[op("one_hot(Tensor self, int num_classes=-1) -> Tensor", module = "nn", not_differentiable, batch = one_hot(num_classes))]
impl OneHot {
    fn meta(self_: &Tensor, num_classes: i64) -> Result<TensorSpec> {
        check_classes(self_, num_classes)?;
        if num_classes < 0 {
            return Err(depends_on_elements("one_hot", "self"));
        }
        let mut shape = Dims::from_slice(self_.shape());
        shape.push(num_classes);
        TensorSpec::beside(self_, &shape).checked()
    }
    fn cpu(cpu: Cpu, self_: &Tensor, num_classes: i64) -> Result<Tensor> {
        check_classes(self_, num_classes)?;
        let numbers = self_.to_vec::<i64>()?;
        ensure!(numbers.iter().all(|&n| n >= 0), runtime, "Class values must be non-negative.");
        let needed = numbers.iter().max().map_or(0, |&largest| largest.saturating_add(1));
        ensure!(
            num_classes < 0 || needed <= num_classes,
            runtime,
            "Class values must be smaller than num_classes."
        );
        let mut shape = Dims::from_slice(self_.shape());
        shape.push(if num_classes < 0 { needed } else { num_classes });
        let out = Tensor::empty_of(&shape, DType::I64)?;
        kernel::one_hot(&mut out.view_mut(cpu), self_.view_ref(cpu))?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[2, 3], 0, 4)).without_gradient()]
    }
}

fn search_dtype(out_int32: bool) -> DType {
    if out_int32 { DType::I32 } else { DType::I64 }
}

/// `right` of `searchsorted`, from its two spellings.
fn search_side(right: bool, side: Option<&str>) -> Result<bool> {
    let Some(side) = side else { return Ok(right) };
    ensure!(
        matches!(side, "left" | "right"),
        runtime,
        "torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
    );
    ensure!(
        !right || side == "right",
        runtime,
        "torch.searchsorted(): side and right can't be set to opposites, got side of {side} while right was True"
    );
    Ok(side == "right")
}

/// For each of `self`'s values the first position in its row of `sorted_sequence` where it could be inserted (after equal
/// elements if `right`).
#[op(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    function_only,
    out,
    numbers,
    not_differentiable, batch = bucketize(sorted_sequence, sorter, self, &SEARCHSORTED)
)]
impl Searchsorted {
    fn meta(
        sorted_sequence: &Tensor,
        self_: &Tensor,
        out_int32: bool,
        right: bool,
        side: Option<&str>,
        sorter: Option<&Tensor>,
    ) -> Result<TensorSpec> {
        search_side(right, side)?;
        ensure!(
            sorted_sequence.ndim() > 0,
            runtime,
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim(0) and input value's dim({}) numel({})",
            self_.ndim(),
            self_.numel()
        );
        let rows = |t: &Tensor| t.shape()[..t.ndim().max(1) - 1].to_vec();
        ensure!(
            sorted_sequence.ndim() == 1
                || (self_.ndim() == sorted_sequence.ndim() && rows(self_) == rows(sorted_sequence)),
            runtime,
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {} and input value tensor {}",
            list(sorted_sequence.shape()),
            list(self_.shape())
        );
        if let Some(sorter) = sorter {
            ensure!(
                sorter.shape() == sorted_sequence.shape(),
                runtime,
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {}and got sorter tensor {}",
                list(sorted_sequence.shape()),
                list(sorter.shape())
            );
            ensure!(
                sorter.dtype() == DType::I64,
                runtime,
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {}",
                sorter.dtype().scalar_name()
            );
        }
        Ok(TensorSpec::like(self_).computed_in(search_dtype(out_int32)))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        sorted_sequence: &Tensor,
        self_: &Tensor,
        right: bool,
        side: Option<&str>,
        sorter: Option<&Tensor>,
    ) -> Result<()> {
        let right = search_side(right, side)?;
        let dtype = result_type(&[sorted_sequence, self_])?;
        let bring =
            |t: &Tensor| if t.dtype() == dtype { Ok(t.clone()) } else { t.converted(cpu, dtype) };
        let (sorted, values) = (bring(sorted_sequence)?, bring(self_)?);
        let (target, values) = (as_vector(result)?, as_vector(&values)?);
        Ok(kernel::searchsorted(
            &mut target.view_mut(cpu),
            sorted.view_ref(cpu),
            values.view_ref(cpu),
            right,
            sorter.map(|t| t.view_ref(cpu)),
        )?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.integers(&[4], 0, 1).into(), s.integers(&[3], -1, 2).into()])
                .without_gradient(),
        ]
    }
}

/// The bucket of each value among the sorted vector `boundaries`: as `searchsorted` with the arguments swapped.
#[op(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    function_only,
    out,
    numbers, leading_number,
    not_differentiable, batch = bucketize(boundaries, None, self, &SEARCHSORTED)
)]
impl Bucketize {
    fn meta(self_: &Tensor, boundaries: &Tensor, out_int32: bool) -> Result<TensorSpec> {
        ensure!(
            boundaries.ndim() == 1,
            runtime,
            "bucketize(): boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.ndim()
        );
        Ok(TensorSpec::like(self_).computed_in(search_dtype(out_int32)))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        boundaries: &Tensor,
        right: bool,
    ) -> Result<()> {
        Searchsorted::cpu(cpu, result, boundaries, self_, right, None, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.integers(&[3], -1, 2).into(), s.integers(&[4], 0, 1).into()])
                .without_gradient(),
        ]
    }
}

/// How often each number from 0 up to the largest occurs in a vector (at least `minlength` counts); with `weights` the
/// sum of the weights of its indices.
#[op("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", dynamic_output_shape, batch = data_dependent)]
impl Bincount {
    fn cpu(cpu: Cpu, self_: &Tensor, weights: Option<&Tensor>, minlength: i64) -> Result<Tensor> {
        ensure!(minlength >= 0, runtime, "minlength should be >= 0");
        ensure!(
            self_.dtype().is_integral(false),
            not_implemented,
            "\"bincount_cpu\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        let size = kernel::bincount_size(self_.view_ref(cpu), minlength as usize)? as i64;
        let weights = weights.map(|w| match w.dtype() {
            DType::F32 | DType::F64 => Ok(w.clone()),
            _ => w.converted(cpu, DType::F64),
        });
        let weights = weights.transpose()?;
        let dtype = weights.as_ref().map_or(DType::I64, Tensor::dtype);
        let out = TensorSpec::of(&[size], dtype).zeros()?;
        kernel::bincount(
            &mut out.view_mut(cpu),
            self_.view_ref(cpu),
            weights.as_ref().map(|t| t.view_ref(cpu)),
        )?;
        Ok(out)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[5], 0, 4)).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |x: Tensor, phrase| {
            InvalidSample::new(Sample::of(x), ErrorKind::NotImplemented, phrase)
        };
        vec![
            bad(s.bools(&[3]), "\"bincount_cpu\" not implemented for 'Bool'"),
            bad(s.positive(&[3]), "\"bincount_cpu\" not implemented for 'Double'"),
        ]
    }
}
