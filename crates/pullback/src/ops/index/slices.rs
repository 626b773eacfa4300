//! Writing whole slices at indices along a dimension: `index_add`, `index_copy`, `index_fill`, and what they and
//! `index_reduce` ask of their arguments.
//!
//! `index_add` and `index_reduce` take a source of as many dimensions as the target. `index_copy` takes a tensor without
//! dimensions for one of one dimension and one element, and refuses with other errors, in another order: both as PyTorch does.

use super::select::{as_vector, check_index_dtype};
use crate::dispatch::{OpDef, Value, check_separate};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::index as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&INDEX_ADD, &INDEX_COPY, &INDEX_FILL, &INDEX_FILL_SCALAR];

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
    not_differentiable(index), jvp = linear, batch = slices(self, dim, index))]
impl IndexAdd {
    fn meta(
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        alpha: Scalar,
    ) -> Result<TensorSpec> {
        check_slices("index_add", self_, dim, index, source)?;
        TensorSpec::like(self_).holding(alpha)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        alpha: Scalar,
    ) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        let (target, positions, source) =
            (as_vector(self_)?, as_vector(index)?, as_vector(source)?);
        Ok(kernel::index_add(
            &mut target.view_mut(cpu),
            dim,
            positions.view_ref(cpu),
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
    jvp = linear, batch = slices(self, dim, index)
)]
impl IndexCopy {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<TensorSpec> {
        check_copied_slices(self_, dim, index, source)?;
        Ok(TensorSpec::like(self_))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        let (target, positions, source) =
            (as_vector(self_)?, as_vector(index)?, as_vector(source)?);
        Ok(kernel::index_copy(
            &mut target.view_mut(cpu),
            dim,
            positions.view_ref(cpu),
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
    inplace = method, narrow_floats,
    not_differentiable(index), batch = slices_from_either_end(self, dim, index)
)]
impl IndexFillScalar {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<TensorSpec> {
        super::refuse_narrow_floats("index_fill_cpu", self_)?;
        wrap_dim(dim, self_.ndim())?;
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
        Ok(TensorSpec::laid_as(self_))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        let dim = wrap_dim(dim, self_.ndim())?;
        let (target, positions) = (as_vector(self_)?, as_vector(index)?);
        Ok(kernel::index_fill(&mut target.view_mut(cpu), dim, positions.view_ref(cpu), value)?)
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

/// A number of the same kind (bool, integer, real, complex) as elements of `dtype`.
fn stand_in(dtype: DType) -> Scalar {
    if dtype.is_complex() { Scalar::Complex(0.0, 0.0) } else { Scalar::Int(0) }
}

/// Writes the 0-dim `value` into the slices `index` along `dim`.
#[op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace = method, narrow_floats,
    checks_sharing,
    node = "IndexFillBackward1",
    not_differentiable(index), batch = slices_from_either_end(self, dim, index)
)]
impl IndexFill {
    fn meta(self_: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<TensorSpec> {
        ensure!(
            value.ndim() == 0,
            runtime,
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.ndim()
        );
        IndexFillScalar::meta(self_, dim, index, stand_in(value.dtype()))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<()> {
        check_separate(self_, index)?;
        // The value is read before anything is written: it may be an element of the target.
        let value = value.element()?;
        value.check_fits(self_.dtype())?;
        IndexFillScalar::cpu_(cpu, self_, dim, index, value)
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

/// Refuses what `index_add` and `index_reduce` cannot join: there is a slice of `source` for each index, of the shape of
/// those of `self`. The dimension of the slices.
pub(in crate::ops) fn check_slices(
    name: &str,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
) -> Result<usize> {
    let dim = wrap_dim(dim, self_.ndim())?;
    ensure!(
        index.ndim() <= 1,
        index,
        "{name}_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}",
        index.ndim(),
        index.dtype().scalar_name(),
        list(index.shape())
    );
    check_index_dtype(name, index)?;
    ensure!(
        self_.dtype() == source.dtype(),
        runtime,
        "{name}_(): self ({}) and source ({}) must have the same scalar type",
        self_.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    check_count(name, dim, index, source)?;
    ensure!(
        self_.ndim() == source.ndim() && slice_of(self_, dim) == slice_of(source, dim),
        runtime,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} source.shape = {}",
        list(self_.shape()),
        list(source.shape())
    );
    Ok(dim)
}

/// Refuses a source without dimension `dim`, and one that has more or fewer slices along it than `index` has indices. A
/// source without dimensions is one slice.
fn check_count(name: &str, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    ensure!(
        dim == 0 || dim < source.ndim(),
        runtime,
        "{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {}",
        source.ndim()
    );
    let have = match source.shape().get(dim) {
        Some(&size) => size,
        None if index.numel() == 1 => 1,
        None => bail!(index, "Dimension specified as {dim} but tensor has no dimensions"),
    };
    ensure!(
        have == index.numel(),
        runtime,
        "{name}_(): Number of indices ({}) should be equal to source.size(dim): ({have}), for dim: {dim}",
        index.numel()
    );
    Ok(())
}

/// The shape of a tensor's slices along `dim`; all of it if it has no such dimension.
fn slice_of(tensor: &Tensor, dim: usize) -> Dims {
    let mut slice = Dims::from_slice(tensor.shape());
    if dim < slice.len() {
        slice.remove(dim);
    }
    slice
}

/// As [`check_slices`] for `index_copy`, for which a tensor without dimensions is one of one dimension and one element.
pub(in crate::ops) fn check_copied_slices(
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
) -> Result<usize> {
    let dim = wrap_dim(dim, self_.ndim())?;
    let count = index.numel();
    ensure!(
        index.ndim() <= 1,
        index,
        "index_copy_(): Index should have dimension 1 or 0 (got {})",
        index.ndim()
    );
    ensure!(
        source.ndim() > 0 || count == 1,
        index,
        "index_copy_(): When source is scalar, index should have one element (got {count})"
    );
    ensure!(
        source.ndim() == self_.ndim() || source.ndim() == 0 || self_.ndim() == 0,
        index,
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({}), destination dimensionality ({})",
        source.ndim(),
        self_.ndim()
    );
    ensure!(
        index.dtype() == DType::I64,
        runtime,
        "index_copy_(): Expected a long tensor for index, but got {}",
        index.dtype().scalar_name()
    );
    ensure!(
        self_.dtype() == source.dtype(),
        runtime,
        "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
        self_.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    check_copied_shapes(self_, dim, source)?;
    ensure!(
        source.ndim() == 0 || count == source.shape()[dim],
        index,
        "index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({})",
        source.shape()[dim]
    );
    Ok(dim)
}

/// Refuses slices of `source` along `dim` of another shape than those of `self`.
fn check_copied_shapes(self_: &Tensor, dim: usize, source: &Tensor) -> Result<()> {
    let (own, theirs) = (slice_of(self_, dim), slice_of(source, dim));
    let text = |slice: &[i64]| slice.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    ensure!(
        own == theirs,
        runtime,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension {dim} and source slice shape: {} at dimension 0.",
        text(&own),
        text(&theirs)
    );
    Ok(())
}
