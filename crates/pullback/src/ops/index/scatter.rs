//! Writing elements at indices given by tensors: `index_put`, `scatter`, `masked_scatter`, `put`. Whole slices are in `slices`.
//!
//! Every op writes into `self`; its functional form writes into a copy. Indices are checked before the
//! first write. Contributions to one index are added in row-major order, so results never vary.

use super::plan::{check_indices, located, plan, whole_mask};
use super::select::{as_vector, check_places_dtype};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, broadcast_strides, list, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::index::{self as kernel, ScatterReduction, ScatterSource};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &INDEX_PUT,
    &SCATTER,
    &SCATTER_VALUE,
    &SCATTER_REDUCE_MODE,
    &SCATTER_VALUE_REDUCE,
    &SCATTER_ADD,
    &MASKED_SCATTER,
    &PUT,
];

/// Refuses an index of another rank than the tensor (0-dim counts as 1-d).
pub(in crate::ops) fn check_rank(self_: &Tensor, index: &Tensor, what: &str) -> Result<()> {
    ensure!(
        self_.ndim().max(1) == index.ndim().max(1) || index.numel() == 0,
        runtime,
        "Index tensor must have the same number of dimensions as {what} tensor"
    );
    Ok(())
}

fn check_dtypes(name: &str, self_: &Tensor, source: &Tensor, what: &str) -> Result<()> {
    ensure!(
        self_.dtype() == source.dtype(),
        runtime,
        "{name}(): Expected self.dtype to be equal to {what}.dtype, but got {} and {}",
        self_.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    Ok(())
}

/// Writes `values`, broadcast, at the indices that `indices` name (see `index`); with `accumulate` adds them.
#[op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", narrow_floats,
    inplace,
    not_differentiable(indices), jvp = linear, batch = index_put(self, indices, values))]
impl IndexPut {
    fn meta(self_: &Tensor, indices: &[Option<Tensor>], values: &Tensor) -> Result<TensorSpec> {
        ensure!(
            !matches!(self_.dtype(), DType::F8E8M0FNU | DType::F4E2M1FNX2),
            not_implemented,
            "\"index_put\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        // (How many elements a mask selects depends on its elements.)
        if !check_indices(self_, indices)? {
            check_values(values, &located(self_, indices)?.shape)?;
            check_value_dtype(self_, values)?;
        }
        Ok(TensorSpec::laid_as(self_))
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        indices: &[Option<Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
        let values = if values.dtype() == self_.dtype() {
            values.clone()
        } else if is_fill(indices, values, accumulate) {
            values.converted(cpu, self_.dtype())?
        } else {
            check_values(values, &plan(cpu, self_, indices)?.shape)?;
            return check_value_dtype(self_, values);
        };
        if !accumulate
            && let Some(mask) = whole_mask(self_, indices)
            && put_masked(cpu, self_, mask, &values)?
        {
            return Ok(());
        }
        let plan = plan(cpu, self_, indices)?;
        check_values(&values, &plan.shape)?;
        let values = values.expand(&plan.shape, false)?;
        if plan.dims.is_empty() {
            return if accumulate {
                self_.add_(&values).map(|_| ())
            } else {
                self_.copy_data(cpu, &values)
            };
        }
        let refs: Vec<_> = plan.indices.iter().map(|t| t.view_ref(cpu)).collect();
        Ok(kernel::index_put(
            &mut plan.input.view_mut(cpu),
            &plan.dims,
            &refs,
            values.view_ref(cpu),
            accumulate,
        )?)
    }
    fn vjp_self(grad: &Tensor, indices: &[Option<Tensor>], accumulate: bool) -> Result<Tensor> {
        if accumulate {
            return Ok(grad.clone());
        }
        grad.index_put(indices, &TensorSpec::beside(grad, &[]).zeros()?, false)
    }
    fn vjp_values(grad: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
        grad.index(indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let positions = |v: &[i64]| Tensor::from_slice(v, &[v.len() as i64]).ok();
        let sample = |t: Tensor, indices: Vec<Option<Tensor>>, values: Tensor, accumulate: bool| {
            Sample::new([
                t.into(),
                Value::OptTensors(indices),
                values.into(),
                Value::Bool(accumulate),
            ])
        };
        vec![
            sample(s.normal(&[4, 3]), vec![positions(&[0, 2])], s.normal(&[2, 3]), false),
            sample(s.normal(&[4, 3]), vec![positions(&[0, 0, -1])], s.normal(&[3]), true),
            sample(s.normal(&[4, 3]), vec![None, positions(&[1])], s.normal(&[]), false),
        ]
    }
}

/// Refuses values that do not broadcast to the shape of what is written.
fn check_values(values: &Tensor, shape: &[i64]) -> Result<()> {
    ensure!(
        broadcast_strides(values.shape(), values.strides(), shape).is_ok(),
        runtime,
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
        list(values.shape()),
        list(shape)
    );
    Ok(())
}

/// Refuses values of another dtype than what is written to.
fn check_value_dtype(self_: &Tensor, values: &Tensor) -> Result<()> {
    ensure!(
        self_.dtype() == values.dtype(),
        runtime,
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        self_.dtype().scalar_name(),
        values.dtype().scalar_name()
    );
    Ok(())
}

/// Whether one value is written at the indices of one mask: as `masked_fill`, which converts it.
fn is_fill(indices: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> bool {
    let is_mask = |index: &Tensor| matches!(index.dtype(), DType::Bool | DType::U8);
    let mut given = indices.iter().flatten();
    let is_one_mask = given.next().is_some_and(is_mask) && given.next().is_none();
    is_one_mask && values.numel() == 1 && !accumulate
}

/// Writes one value, or as many as there are, where the mask of the same shape is true; false if there are others.
fn put_masked(cpu: Cpu, self_: &Tensor, mask: &Tensor, values: &Tensor) -> Result<bool> {
    if values.numel() == 1 && values.ndim() <= 1 {
        let values = values.view(&[])?.expand(self_.shape(), false)?;
        let (own, value) = (self_.view_ref(cpu), values.view_ref(cpu));
        elementwise::where_(&mut Iter::new(
            &[self_.view_mut(cpu)],
            &[mask.view_ref(cpu), value, own],
        )?)?;
        return Ok(true);
    }
    let fits =
        values.ndim() == 1 && kernel::count_true(mask.view_ref(cpu)) as i64 == values.numel();
    if fits {
        kernel::masked_scatter(&mut self_.view_mut(cpu), mask.view_ref(cpu), values.view_ref(cpu))?;
    }
    Ok(fits)
}

/// Sizes of a tensor, which without dimensions counts as a vector of one element.
pub(in crate::ops) fn vector_shape(tensor: &Tensor) -> &[i64] {
    if tensor.ndim() == 0 { &[1] } else { tensor.shape() }
}

/// The spec of the results of `scatter` and related ops: the strides are those of `self` made
/// dense. Refuses an index that is not one for `self` along `dim`.
fn scattered(self_: &Tensor, dim: i64, index: &Tensor) -> Result<TensorSpec> {
    let dim = wrap_dim(dim, self_.ndim())?;
    check_places_dtype("scatter", index)?;
    check_rank(self_, index, "self")?;
    if index.numel() > 0 {
        kernel::check_index_shape("self", vector_shape(index), vector_shape(self_), dim)?;
    }
    Ok(TensorSpec::like(self_))
}

/// As [`scattered`], of a number that is written.
fn scattered_number(self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<TensorSpec> {
    scattered(self_, dim, index)?.holding(value)
}

/// As [`scattered`], of a tensor that is written.
pub(in crate::ops) fn scattered_tensor(
    name: &str,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
) -> Result<TensorSpec> {
    wrap_dim(dim, self_.ndim())?;
    check_dtypes(name, self_, src, "src")?;
    check_rank(src, index, "src")?;
    let spec = scattered(self_, dim, index)?;
    if index.numel() > 0 {
        let all = usize::MAX;
        kernel::check_index_shape("src", vector_shape(index), vector_shape(src), all)?;
    }
    Ok(spec)
}

fn scatter(
    cpu: Cpu,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: ScatterSource<'_>,
    how: (ScatterReduction, bool),
) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let dim = wrap_dim(dim, self_.ndim())?;
    let (target, positions) = (as_vector(self_)?, as_vector(index)?);
    Ok(kernel::scatter(&mut target.view_mut(cpu), dim, positions.view_ref(cpu), source, how)?)
}

pub(in crate::ops) fn scatter_tensor(
    cpu: Cpu,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    how: (ScatterReduction, bool),
) -> Result<()> {
    let src = as_vector(src)?;
    scatter(cpu, self_, dim, index, ScatterSource::Tensor(src.view_ref(cpu)), how)
}

pub(in crate::ops) fn zero_at(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    grad.scatter_value(dim, index, Scalar::Int(0))
}

pub(in crate::ops) fn scatter_sample(s: &Sampler) -> (Tensor, Tensor, Tensor) {
    let index = Tensor::from_slice(&[0_i64, 2, 1, 1, 0, 2], &[2, 3]).expect("samples are small");
    (s.normal(&[3, 3]), index, s.normal(&[2, 3]))
}

/// Writes the elements of `src` at the indices `index` along `dim`: `self[index[i][j]][j] = src[i][j]` for `dim` 0. Of
/// repeated indices the last one stays.
#[op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), jvp = linear, batch = scatter)]
impl Scatter {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<TensorSpec> {
        scattered_tensor("scatter", self_, dim, index, src)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        scatter_tensor(cpu, self_, dim, index, src, (ScatterReduction::Assign, true))
    }
    fn vjp_self(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        zero_at(grad, dim, index)
    }
    fn vjp_src(grad: &Tensor, dim: i64, index: &Tensor, src_shape: &[i64]) -> Result<Tensor> {
        spread_to(&grad.gather(dim, index)?, src_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let (t, index, src) = scatter_sample(s);
        vec![Sample::new([t.into(), Value::Int(0), index.into(), src.into()])]
    }
}

/// A gradient for the part of a source that was read, with zeros for the rest.
pub(in crate::ops) fn spread_to(grad: &Tensor, shape: &[i64]) -> Result<Tensor> {
    if grad.shape() == shape {
        return Ok(grad.clone());
    }
    let mut pad = Dims::new();
    for (&have, &want) in grad.shape().iter().zip(shape).rev() {
        pad.push(0);
        pad.push(want - have);
    }
    grad.constant_pad_nd(&pad, Scalar::Int(0))
}

/// Writes `value` at the indices `index` along `dim`.
#[op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index),
    node = "ScatterBackward1", batch = scatter
)]
impl ScatterValue {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<TensorSpec> {
        scattered_number(self_, dim, index, value)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        scatter(
            cpu,
            self_,
            dim,
            index,
            ScatterSource::Scalar(value),
            (ScatterReduction::Assign, true),
        )
    }
    fn vjp_self(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        zero_at(grad, dim, index)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let (t, index, _) = scatter_sample(s);
        vec![Sample::new([
            t.into(),
            Value::Int(0),
            index.into(),
            Value::Scalar(Scalar::Float(2.0)),
        ])]
    }
}

fn simple_reduce(reduce: &str) -> Result<ScatterReduction> {
    match reduce {
        "add" => Ok(ScatterReduction::Sum),
        "multiply" => Ok(ScatterReduction::Prod),
        _ => bail!(runtime, "reduce argument must be either add or multiply."),
    }
}

/// As `scatter.src`, joining with what is there: `reduce` is "add" or "multiply". Has no derivative.
#[op(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace = method,
    exact_out, batch = scatter
)]
impl ScatterReduceMode {
    fn meta(
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
    ) -> Result<TensorSpec> {
        simple_reduce(reduce)?;
        scattered_tensor("scatter", self_, dim, index, src)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
    ) -> Result<()> {
        scatter_tensor(cpu, self_, dim, index, src, (simple_reduce(reduce)?, true))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduce: &str| {
            let (t, index, src) = scatter_sample(s);
            Sample::new([t.into(), Value::Int(0), index.into(), src.into()])
                .with("reduce", reduce)
                .without_gradient()
        };
        vec![sample("add"), sample("multiply")]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (t, index, src) = scatter_sample(s);
        let sample = |dim: i64, src: &Tensor, reduce: &str| {
            Sample::new([t.clone().into(), dim.into(), index.clone().into(), src.clone().into()])
                .with("reduce", reduce)
        };
        let single = src.copied(DType::F32).expect("samples are small");
        vec![
            InvalidSample::new(
                sample(0, &src, "sum"),
                ErrorKind::Runtime,
                "reduce argument must be either add or multiply.",
            ),
            InvalidSample::new(
                sample(0, &single, "add"),
                ErrorKind::Runtime,
                "scatter(): Expected self.dtype to be equal to src.dtype",
            ),
            InvalidSample::new(
                sample(2, &src, "add"),
                ErrorKind::Index,
                "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
            ),
        ]
    }
}

/// As `scatter.value`, joining with what is there: `reduce` is "add" or "multiply". Has no derivative.
#[op(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace = method,
    exact_out, batch = scatter
)]
impl ScatterValueReduce {
    fn meta(
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        value: Scalar,
        reduce: &str,
    ) -> Result<TensorSpec> {
        simple_reduce(reduce)?;
        scattered_number(self_, dim, index, value)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        value: Scalar,
        reduce: &str,
    ) -> Result<()> {
        scatter(
            cpu,
            self_,
            dim,
            index,
            ScatterSource::Scalar(value),
            (simple_reduce(reduce)?, true),
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduce: &str| {
            let (t, index, _) = scatter_sample(s);
            Sample::new([t.into(), Value::Int(0), index.into(), Value::Scalar(2.5.into())])
                .with("reduce", reduce)
                .without_gradient()
        };
        vec![sample("add"), sample("multiply")]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |index: Tensor, reduce: &str, phrase| {
            let args =
                [s.normal(&[3, 3]).into(), Value::Int(0), index.into(), Scalar::Int(2).into()];
            InvalidSample::new(Sample::new(args).with("reduce", reduce), ErrorKind::Runtime, phrase)
        };
        let positions = s.integers(&[1, 3], 0, 3);
        vec![
            bad(positions, "mean", "reduce argument must be either add or multiply."),
            bad(
                s.integers(&[1, 3], 3, 4),
                "add",
                "index 3 is out of bounds for dimension 0 with size 3",
            ),
            bad(
                s.integers(&[3], 0, 3),
                "add",
                "Index tensor must have the same number of dimensions as self tensor",
            ),
        ]
    }
}

/// Adds the elements of `src` at the indices `index` along `dim`.
#[op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), jvp = linear, batch = scatter)]
impl ScatterAdd {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<TensorSpec> {
        scattered_tensor("scatter", self_, dim, index, src)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        scatter_tensor(cpu, self_, dim, index, src, (ScatterReduction::Sum, true))
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_src(grad: &Tensor, dim: i64, index: &Tensor, src_shape: &[i64]) -> Result<Tensor> {
        spread_to(&grad.gather(dim, index)?, src_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let (t, _, src) = scatter_sample(s);
        vec![Sample::new([t.into(), Value::Int(0), s.integers(&[2, 3], 0, 3).into(), src.into()])]
    }
}

/// Writes the elements of `source`, in row-major order, to the indices where `mask` (bool) is true; `self` and `mask`
/// broadcast together.
#[op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace = method,
    not_differentiable(mask), jvp = linear, batch = masked_scatter(self, mask, source))]
impl MaskedScatter {
    fn meta(self_: &Tensor, mask: &Tensor, source: &Tensor) -> Result<TensorSpec> {
        ensure!(
            mask.dtype() == DType::Bool,
            runtime,
            "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().scalar_name()
        );
        ensure!(
            self_.dtype() == source.dtype(),
            runtime,
            "masked_scatter: expected self and source to have same dtypes but got {} and {}",
            self_.dtype().scalar_name(),
            source.dtype().scalar_name()
        );
        let shape = broadcast_shapes(&[self_.shape(), mask.shape()])?;
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        mask: &Tensor,
        source: &Tensor,
    ) -> Result<()> {
        let mask = mask.expand(result.shape(), false)?;
        result.copy_data(cpu, self_)?;
        let (mask, source) = (mask.view_ref(cpu), source.view_ref(cpu));
        Ok(kernel::masked_scatter(&mut result.view_mut(cpu), mask, source)?)
    }
    fn vjp_self(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let zeros = TensorSpec::beside(grad, grad.shape()).zeros()?;
        grad.masked_scatter(mask, &zeros)
    }
    fn vjp_source(grad: &Tensor, mask: &Tensor, source_shape: &[i64]) -> Result<Tensor> {
        let taken = grad.masked_select(mask)?;
        let numel: i64 = source_shape.iter().product();
        taken.constant_pad_nd(&[0, numel - taken.numel()], Scalar::Int(0))?.view(source_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], mask: &[i64]| {
            Sample::new([s.normal(shape).into(), s.bools(mask).into(), s.normal(&[7]).into()])
        };
        vec![sample(&[2, 3], &[2, 3]), sample(&[2, 3], &[3]), sample(&[3], &[2, 3])]
    }
}

/// Writes (or adds) the elements of `source` at row-major positions of `self`.
#[op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace = method,
    not_differentiable(index), jvp = linear, batch = put(self, index, source))]
impl Put {
    fn meta(self_: &Tensor, index: &Tensor, source: &Tensor) -> Result<TensorSpec> {
        ensure!(
            index.dtype() == DType::I64,
            runtime,
            "put_(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        );
        ensure!(
            self_.dtype() == source.dtype(),
            runtime,
            "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
            self_.dtype().scalar_name(),
            source.dtype().scalar_name()
        );
        ensure!(
            index.numel() == source.numel(),
            index,
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, index.numel() = {}",
            source.numel(),
            index.numel()
        );
        Ok(TensorSpec::laid_as(self_))
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        index: &Tensor,
        source: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
        let source = source.dense(cpu)?.view(index.shape())?;
        Ok(kernel::put(
            &mut self_.view_mut(cpu),
            index.view_ref(cpu),
            source.view_ref(cpu),
            accumulate,
        )?)
    }
    fn vjp_self(
        grad: &Tensor,
        index: &Tensor,
        source_shape: &[i64],
        accumulate: bool,
    ) -> Result<Tensor> {
        if accumulate {
            return Ok(grad.clone());
        }
        grad.put(index, &TensorSpec::beside(grad, source_shape).zeros()?, false)
    }
    fn vjp_source(grad: &Tensor, index: &Tensor, source_shape: &[i64]) -> Result<Tensor> {
        grad.take(index)?.reshape(source_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let index = Tensor::from_slice(&[0_i64, 4, 2], &[3]).expect("samples are small");
        vec![Sample::new([s.normal(&[2, 3]).into(), index.into(), s.normal(&[3]).into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = s.integers(&[2], 0, 3).into();
        let sample = Sample::new([s.normal(&[3]).into(), index, s.normal(&[1]).into()]);
        let phrase = "Expected source and index to have the same number of elements";
        vec![InvalidSample::new(sample, ErrorKind::Index, phrase)]
    }
}
