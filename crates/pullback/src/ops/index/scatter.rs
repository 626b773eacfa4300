//! Writing elements at places given by tensors: `index_put`, `scatter`, `index_add`, `index_copy`,
//! `index_fill`, `masked_scatter`, `put`.
//!
//! Every op writes into `self`; its functional form writes into a copy. Indices are checked before the
//! first write. Contributions to one place are added in row-major order, so results never vary.

use super::select::{as_vector, check_places_dtype, plan, whole_mask};
use super::slices::{check_copied_slices, check_slices};
use crate::dispatch::{OpDef, Value, check_separate};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, list, wrap_dim};
use crate::{DType, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
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
    &INDEX_ADD,
    &INDEX_COPY,
    &INDEX_FILL,
    &INDEX_FILL_SCALAR,
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

/// Writes `values`, broadcast, at the places that `indices` name (see `index`); with `accumulate` adds them.
#[op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace,
    not_differentiable(indices), jvp = linear, batch = index_put)]
impl IndexPut {
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        indices: &[Option<Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
        ensure!(
            self_.dtype() == values.dtype() || is_fill(indices, values, accumulate),
            runtime,
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            self_.dtype().scalar_name(),
            values.dtype().scalar_name()
        );
        let values = if values.dtype() == self_.dtype() {
            values.clone()
        } else {
            values.converted(cpu, self_.dtype())?
        };
        if !accumulate
            && let Some(mask) = whole_mask(self_, indices)
            && put_masked(cpu, self_, mask, &values)?
        {
            return Ok(());
        }
        let plan = plan(cpu, self_, indices)?;
        let values = values.expand(&plan.shape, false).map_err(|error| {
            error.explained(|| {
                Error::runtime(format!(
                    "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
                    list(values.shape()),
                    list(&plan.shape)
                ))
            })
        })?;
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
        let places = |v: &[i64]| Tensor::from_slice(v, &[v.len() as i64]).ok();
        let sample = |t: Tensor, indices: Vec<Option<Tensor>>, values: Tensor, accumulate: bool| {
            Sample::new([
                t.into(),
                Value::OptTensors(indices),
                values.into(),
                Value::Bool(accumulate),
            ])
        };
        vec![
            sample(s.normal(&[4, 3]), vec![places(&[0, 2])], s.normal(&[2, 3]), false),
            sample(s.normal(&[4, 3]), vec![places(&[0, 0, -1])], s.normal(&[3]), true),
            sample(s.normal(&[4, 3]), vec![None, places(&[1])], s.normal(&[]), false),
        ]
    }
}

/// Whether one value is written at the places of one mask: as `masked_fill`, which converts it.
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

fn scatter(
    cpu: Cpu,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: ScatterSource<'_>,
    how: (ScatterReduction, bool),
) -> Result<()> {
    let dim = wrap_dim(dim, self_.ndim())?;
    check_places_dtype("scatter", index)?;
    if let ScatterSource::Scalar(value) = source {
        value.check_fits(self_.dtype())?;
    }
    check_rank(self_, index, "self")?;
    if index.numel() == 0 {
        return Ok(());
    }
    let (target, places) = (as_vector(self_)?, as_vector(index)?);
    Ok(kernel::scatter(&mut target.view_mut(cpu), dim, places.view_ref(cpu), source, how)?)
}

pub(in crate::ops) fn scatter_tensor(
    cpu: Cpu,
    name: &str,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    how: (ScatterReduction, bool),
) -> Result<()> {
    wrap_dim(dim, self_.ndim())?;
    check_dtypes(name, self_, src, "src")?;
    check_rank(src, index, "src")?;
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

/// Writes the elements of `src` at the places `index` along `dim`: `self[index[i][j]][j] = src[i][j]` for `dim` 0. Of
/// repeated places the last one stays.
#[op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), jvp = linear, batch = scatter)]
impl Scatter {
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        scatter_tensor(cpu, "scatter", self_, dim, index, src, (ScatterReduction::Assign, true))
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

/// Writes `value` at the places `index` along `dim`.
#[op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index),
    node = "ScatterBackward1", batch = scatter
)]
impl ScatterValue {
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
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
    ) -> Result<()> {
        scatter_tensor(cpu, "scatter", self_, dim, index, src, (simple_reduce(reduce)?, true))
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
        let places = s.integers(&[1, 3], 0, 3);
        vec![
            bad(places, "mean", "reduce argument must be either add or multiply."),
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

/// Adds the elements of `src` at the places `index` along `dim`.
#[op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), jvp = linear, batch = scatter)]
impl ScatterAdd {
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        scatter_tensor(cpu, "scatter", self_, dim, index, src, (ScatterReduction::Sum, true))
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

/// The slices `index` of a gradient along `dim`; a 0-dim one has one slice.
fn slices(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let grad = if grad.ndim() == 0 { grad.unsqueeze(0)? } else { grad.clone() };
    grad.index_select(dim, index)
}

/// Adds slices: `self[:, index[j]] += alpha * source[:, j]` along `dim`.
#[op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), jvp = linear, batch = slices)]
impl IndexAdd {
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        alpha: Scalar,
    ) -> Result<()> {
        let dim = check_slices("index_add", self_, dim, index, source)?;
        alpha.check_fits(self_.dtype())?;
        let (target, places, source) = (as_vector(self_)?, as_vector(index)?, as_vector(source)?);
        Ok(kernel::index_add(
            &mut target.view_mut(cpu),
            dim,
            places.view_ref(cpu),
            source.view_ref(cpu),
            alpha,
        )?)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn vjp_source(
        grad: &Tensor,
        dim: i64,
        index: &Tensor,
        source_shape: &[i64],
        alpha: Scalar,
    ) -> Result<Tensor> {
        slices(grad, dim, index)?.times(alpha.conj())?.reshape(source_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let index = s.integers(&[4], 0, 3);
        vec![
            Sample::new([
                s.normal(&[3, 2]).into(),
                Value::Int(0),
                index.into(),
                s.normal(&[4, 2]).into(),
            ])
            .with("alpha", Scalar::Float(2.0)),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = Tensor::from_slice(&[5_i64], &[1]).expect("samples are small");
        let (x, source) = (s.normal(&[2]), s.normal(&[1]));
        let sample = Sample::new([x.into(), Value::Int(0), index.into(), source.into()]);
        let phrase = "index 5 is out of bounds for dimension 0 with size 2";
        vec![InvalidSample::new(sample, ErrorKind::Index, phrase)]
    }
}

/// Writes slices: `self[:, index[j]] = source[:, j]` along `dim`.
#[op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index),
    autocast = promote,
    jvp = linear, batch = slices
)]
impl IndexCopy {
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<()> {
        let dim = check_copied_slices(self_, dim, index, source)?;
        let (target, places, source) = (as_vector(self_)?, as_vector(index)?, as_vector(source)?);
        Ok(kernel::index_copy(
            &mut target.view_mut(cpu),
            dim,
            places.view_ref(cpu),
            source.view_ref(cpu),
        )?)
    }
    fn vjp_self(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        grad.index_fill_scalar(dim, index, Scalar::Int(0))
    }
    fn vjp_source(grad: &Tensor, dim: i64, index: &Tensor, source_shape: &[i64]) -> Result<Tensor> {
        slices(grad, dim, index)?.reshape(source_shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let index = Tensor::from_slice(&[2_i64, 0], &[2]).expect("samples are small");
        vec![Sample::new([
            s.normal(&[3, 2]).into(),
            Value::Int(0),
            index.into(),
            s.normal(&[2, 2]).into(),
        ])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = s.integers(&[1], 0, 2).to_dtype(DType::I32).expect("samples are small");
        let (x, source) = (s.normal(&[2]), s.normal(&[1]));
        let sample = Sample::new([x.into(), Value::Int(0), index.into(), source.into()]);
        let phrase = "index_copy_(): Expected a long tensor for index, but got Int";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// Writes the number `value` into the slices `index` along `dim`.
#[op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace = method,
    not_differentiable(index), batch = slices
)]
impl IndexFillScalar {
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        ensure!(index.ndim() <= 1, runtime, "Index has to be a vector/scalar");
        ensure!(
            self_.dtype().is_complex() || !matches!(value, Scalar::Complex(..)),
            runtime,
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        );
        value.check_fits(self_.dtype())?;
        ensure!(
            index.dtype() == DType::I64,
            index,
            "index_fill_(): Expected dtype int64 for index, but got {}",
            index.dtype().scalar_name()
        );
        let (target, places) = (as_vector(self_)?, as_vector(index)?);
        Ok(kernel::index_fill(&mut target.view_mut(cpu), dim, places.view_ref(cpu), value)?)
    }
    fn vjp_self(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        grad.index_fill_scalar(dim, index, Scalar::Int(0))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let index = Tensor::from_slice(&[2_i64, 0], &[2]).expect("samples are small");
        vec![Sample::new([
            s.normal(&[3, 2]).into(),
            Value::Int(0),
            index.into(),
            Value::Scalar(Scalar::Float(3.0)),
        ])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = s.integers(&[1], 0, 2).to_dtype(DType::I32).expect("samples are small");
        let start = [s.normal(&[2]).into(), Value::Int(0), index.into(), Scalar::Int(1).into()];
        let phrase = "index_fill_(): Expected dtype int64 for index";
        vec![InvalidSample::new(Sample::new(start), ErrorKind::Index, phrase)]
    }
}

/// Writes the 0-dim `value` into the slices `index` along `dim`.
#[op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace = method,
    checks_sharing,
    node = "IndexFillBackward1",
    not_differentiable(index), batch = slices
)]
impl IndexFill {
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<()> {
        ensure!(
            value.ndim() == 0,
            runtime,
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.ndim()
        );
        check_separate(self_, index)?;
        // The value is read before anything is written: it may be an element of the target.
        IndexFillScalar::cpu_(cpu, self_, dim, index, value.item()?)
    }
    fn vjp_self(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        grad.index_fill_scalar(dim, index, Scalar::Int(0))
    }
    fn vjp_value(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        // A slice that the index names twice was filled once.
        let rank = grad.ndim();
        let mut sizes: Dims = Dims::from_elem(1, rank);
        if rank > 0 {
            let dim = wrap_dim(dim, rank)?;
            sizes[dim] = grad.shape()[dim];
        }
        let size = sizes.iter().product();
        let filled = TensorSpec::of(&[size], DType::Bool).on(grad.device()).zeros()?;
        let filled = filled.index_fill_scalar(0, index, Scalar::Bool(true))?;
        let others = filled.logical_not()?.reshape(&sizes)?;
        grad.masked_fill(&others, Scalar::Int(0))?.sum()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], index: &[i64]| {
            let index =
                Tensor::from_slice(index, &[index.len() as i64]).expect("samples are small");
            Sample::new([s.normal(shape).into(), 0_i64.into(), index.into(), s.normal(&[]).into()])
        };
        vec![sample(&[3, 2], &[2, 0]), sample(&[3, 2], &[1, 1, 0]), sample(&[], &[0, 0])]
    }
}

/// Writes the elements of `source`, in row-major order, to the places where `mask` (bool) is true; `self` and `mask`
/// broadcast together.
#[op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace = method,
    not_differentiable(mask), jvp = linear)]
impl MaskedScatter {
    fn cpu(cpu: Cpu, self_: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
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
        let (out, mask) =
            (self_.expand(&shape, false)?.dense_copy(cpu)?, mask.expand(&shape, false)?);
        kernel::masked_scatter(&mut out.view_mut(cpu), mask.view_ref(cpu), source.view_ref(cpu))?;
        Ok(out)
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
    not_differentiable(index), jvp = linear)]
impl Put {
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        index: &Tensor,
        source: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
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
