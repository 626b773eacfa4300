//! Largest and smallest elements and where they are.
//!
//! NaN is larger and smaller than everything: it is the result if there is one. Along one dimension the
//! first of equal elements is taken and gets the whole gradient; `max()`, `amax` and `aminmax` share the
//! gradient evenly among equal elements. Complex numbers have no order and are refused.

use super::any_all::is_any_true;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::index::scatter::vector_shape;
use crate::ops::reduce::sum::{
    pick_into, picked_spec, reduce_into, reduced_spec, restore, spec_over, unreduce, without,
};
use crate::tensor::shape::{wrap_dim, wrap_dims};
use crate::tensor::{Cpu, TensorSpec, contiguous_strides};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::index::{self, ScatterReduction, ScatterSource};
use pullback_kernels::reduce;
use pullback_macros::op;
use std::borrow::Cow;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &MAX,
    &MAX_DIM,
    &MAX_OTHER,
    &MIN,
    &MIN_DIM,
    &MIN_OTHER,
    &AMAX,
    &AMIN,
    &AMINMAX,
    &ARGMAX,
    &ARGMIN,
    &SELECT_ALONG,
    &SELECT_ALONG_BACKWARD,
];

/// The largest of all elements. Equal ones share the gradient evenly.
#[op("max(Tensor self) -> Tensor", out, node = "MaxBackward1", batch = reduction_by(&AMAX))]
impl Max {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        refuse_nothing("max", self_)?;
        reduced_spec(self_, None, false, self_.dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(None, self_.ndim())?, reduce::amax)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        share(grad, self_, result, &[])
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        average(self_t, self_p, result, &[], false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[0, 3]));
        vec![InvalidSample::new(
            sample,
            ErrorKind::Runtime,
            "max(): Expected reduction dim to be specified",
        )]
    }
}

/// The largest elements along `dim` and the index of the first of each.
#[op("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", exact_out, apart, batch = reduction)]
impl MaxDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        check_ordered("max", self_)?;
        refuse_nothing_in("max", self_, &wrap_dims(Some(&[dim]), self_.ndim())?)?;
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, reduce::max_dim)
    }
    fn vjp_self(
        grad_values: &Tensor,
        indices: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
    ) -> Result<Tensor> {
        grad_values.select_along_backward(dim, indices, self_shape, keepdim)
    }
    fn jvp(
        self_t: &Tensor,
        indices: &Tensor,
        dim: i64,
        keepdim: bool,
    ) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(self_t.select_along(dim, indices, keepdim)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        one_dim_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let empty = Sample::of(s.normal(&[0, 3])).with("dim", 0);
        let far = Sample::of(s.normal(&[2])).with("dim", 1);
        vec![
            InvalidSample::new(
                empty,
                ErrorKind::Index,
                "max(): Expected reduction dim 0 to have non-zero size.",
            ),
            InvalidSample::new(
                far,
                ErrorKind::Index,
                "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
            ),
        ]
    }
}

/// The larger of two tensors, as `maximum`.
#[op("max.other(Tensor self, Tensor other) -> Tensor", out, apart, samples = binary)]
impl MaxOther {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.maximum(other)
    }
}

/// The smallest of all elements. Equal ones share the gradient evenly.
#[op("min(Tensor self) -> Tensor", out, node = "MinBackward1", batch = reduction_by(&AMIN))]
impl Min {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        refuse_nothing("min", self_)?;
        reduced_spec(self_, None, false, self_.dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(None, self_.ndim())?, reduce::amin)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        share(grad, self_, result, &[])
    }
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        average(self_t, self_p, result, &[], false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        full_samples(s)
    }
}

/// The smallest elements along `dim` and the index of the first of each.
#[op("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", exact_out, apart, batch = reduction)]
impl MinDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        check_ordered("min", self_)?;
        refuse_nothing_in("min", self_, &wrap_dims(Some(&[dim]), self_.ndim())?)?;
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, reduce::min_dim)
    }
    fn vjp_self(
        grad_values: &Tensor,
        indices: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
    ) -> Result<Tensor> {
        grad_values.select_along_backward(dim, indices, self_shape, keepdim)
    }
    fn jvp(
        self_t: &Tensor,
        indices: &Tensor,
        dim: i64,
        keepdim: bool,
    ) -> Result<[Option<Tensor>; 2]> {
        Ok([Some(self_t.select_along(dim, indices, keepdim)?), None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        one_dim_samples(s)
    }
}

/// The smaller of two tensors, as `minimum`.
#[op("min.other(Tensor self, Tensor other) -> Tensor", out, apart, samples = binary)]
impl MinOther {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.minimum(other)
    }
}

/// The largest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly.
#[op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", exact_out, batch = reduction)]
impl Amax {
    fn meta(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<TensorSpec> {
        amin_amax_spec("amax", self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(Some(dim), self_.ndim())?, reduce::amax)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        let (grad, result) = (
            restore(grad, self_.shape(), Some(dim), keepdim)?,
            restore(result, self_.shape(), Some(dim), keepdim)?,
        );
        share(&grad, self_, &result, dim)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        average(self_t, self_p, &restore(result, self_p.shape(), Some(dim), keepdim)?, dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dims_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (none, rows) = (Sample::of(s.normal(&[0])), Sample::of(s.normal(&[3, 0])));
        vec![
            InvalidSample::new(
                none,
                ErrorKind::Runtime,
                "amax(): Expected reduction dim to be specified for input.numel() == 0.",
            ),
            InvalidSample::new(
                rows.with("dim", [0, 1]),
                ErrorKind::Index,
                "amax(): Expected reduction dim 1 to have non-zero size.",
            ),
        ]
    }
}

/// The smallest elements over the dimensions `dim` (all if empty). Equal ones share the gradient evenly.
#[op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", exact_out, batch = reduction)]
impl Amin {
    fn meta(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<TensorSpec> {
        amin_amax_spec("amin", self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<()> {
        reduce_into(cpu, result, self_, &wrap_dims(Some(dim), self_.ndim())?, reduce::amin)
    }
    fn vjp_self(
        grad: &Tensor,
        self_: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        let (grad, result) = (
            restore(grad, self_.shape(), Some(dim), keepdim)?,
            restore(result, self_.shape(), Some(dim), keepdim)?,
        );
        share(&grad, self_, &result, dim)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        result: &Tensor,
        dim: &[i64],
        keepdim: bool,
    ) -> Result<Tensor> {
        average(self_t, self_p, &restore(result, self_p.shape(), Some(dim), keepdim)?, dim, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        dims_samples(s)
    }
}

/// The smallest and the largest elements along `dim`, or of all. Equal ones share the gradient evenly.
#[op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", exact_out, apart, batch = reduction)]
impl Aminmax {
    fn meta(self_: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<[TensorSpec; 2]> {
        ensure!(
            !self_.dtype().is_complex(),
            type_error,
            "aminmax not implemented for {}",
            self_.dtype().scalar_name()
        );
        let dims = wrap_dims(as_list(dim.as_ref()), self_.ndim())?;
        ensure!(
            self_.numel() > 0 || dim.is_some(),
            runtime,
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        );
        refuse_empty("aminmax", self_, &dims)?;
        let spec = spec_over(self_, &dims, keepdim, self_.dtype());
        Ok([spec.clone(), spec])
    }
    // (Makes its results: the second reduction may ask for memory when the first has been written.)
    fn cpu(cpu: Cpu, self_: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<[Tensor; 2]> {
        let [min, max] = Aminmax::meta(self_, dim, keepdim)?;
        let (min, max) = (min.empty()?, max.empty()?);
        let dims = wrap_dims(as_list(dim.as_ref()), self_.ndim())?;
        reduce_into(cpu, &min, self_, &dims, reduce::amin)?;
        reduce_into(cpu, &max, self_, &dims, reduce::amax)?;
        Ok([min, max])
    }
    fn vjp_self(
        grad_min: Option<&Tensor>,
        grad_max: Option<&Tensor>,
        self_: &Tensor,
        min: &Tensor,
        max: &Tensor,
        dim: Option<i64>,
        keepdim: bool,
    ) -> Result<Option<Tensor>> {
        let dims = as_list(dim.as_ref());
        let part = |grad: Option<&Tensor>, value: &Tensor| {
            let Some(grad) = grad else { return Ok(None) };
            let (grad, value) = (
                restore(grad, self_.shape(), dims, keepdim)?,
                restore(value, self_.shape(), dims, keepdim)?,
            );
            share(&grad, self_, &value, dims.unwrap_or(&[])).map(Some)
        };
        Ok(match (part(grad_min, min)?, part(grad_max, max)?) {
            (Some(a), Some(b)) => Some(a.add(&b)?),
            (a, b) => a.or(b),
        })
    }
    fn jvp(
        self_p: &Tensor,
        self_t: &Tensor,
        min: &Tensor,
        max: &Tensor,
        dim: Option<i64>,
        keepdim: bool,
    ) -> Result<[Option<Tensor>; 2]> {
        let dims = as_list(dim.as_ref());
        let part = |value: &Tensor| {
            let value = restore(value, self_p.shape(), dims, keepdim)?;
            average(self_t, self_p, &value, dims.unwrap_or(&[]), keepdim).map(Some)
        };
        Ok([part(min)?, part(max)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = full_samples(s);
        out.extend(one_dim_samples(s));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let none = Sample::of(s.normal(&[0]));
        vec![
            InvalidSample::new(
                none.clone(),
                ErrorKind::Runtime,
                "aminmax(): cannot compute aminmax over an empty dimension",
            ),
            InvalidSample::new(
                none.with("dim", 0),
                ErrorKind::Index,
                "aminmax(): Expected reduction dim 0 to have non-zero size.",
            ),
        ]
    }
}

/// The index of the first largest element along `dim`, or in the flattened tensor.
#[op("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", exact_out, not_differentiable, batch = reduction)]
impl Argmax {
    fn meta(self_: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<TensorSpec> {
        place_spec("argmax", self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<i64>) -> Result<()> {
        let dims = wrap_dims(as_list(dim.as_ref()), self_.ndim())?;
        reduce_into(cpu, result, self_, &dims, reduce::argmax)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = full_samples(s);
        out.extend(one_dim_samples(s));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let (none, bools) = (Sample::of(s.normal(&[0, 3])), Sample::of(s.bools(&[2])));
        vec![
            InvalidSample::new(
                none,
                ErrorKind::Index,
                "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
            ),
            InvalidSample::new(
                bools,
                ErrorKind::NotImplemented,
                "argmax(): does not support bool input",
            ),
        ]
    }
}

/// The index of the first smallest element along `dim`, or in the flattened tensor.
#[op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", exact_out, not_differentiable, batch = reduction)]
impl Argmin {
    fn meta(self_: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<TensorSpec> {
        place_spec("argmin", self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: Option<i64>) -> Result<()> {
        let dims = wrap_dims(as_list(dim.as_ref()), self_.ndim())?;
        reduce_into(cpu, result, self_, &dims, reduce::argmin)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = full_samples(s);
        out.extend(one_dim_samples(s));
        out
    }
}

/// The elements that `indices` names along `dim`: the linear map that a reduction by selection is.
#[op("_select_along(Tensor self, int dim, Tensor indices, bool keepdim) -> Tensor", internal, method = select_along, jvp = linear, batch = picked(self, dim))]
impl SelectAlong {
    fn meta(self_: &Tensor, dim: i64, indices: &Tensor, keepdim: bool) -> Result<TensorSpec> {
        let at = wrap_dim(dim, self_.ndim())?;
        let sizes = kept_sizes(indices, self_.shape(), dim, keepdim)?;
        index::check_index_shape("self", &sizes, vector_shape(self_), at)?;
        let dims = [at];
        let is_whole = keepdim || self_.ndim() == 0;
        let shape = if is_whole && self_.ndim() > 0 { sizes } else { without(&sizes, &dims) };
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        dim: i64,
        indices: &Tensor,
        keepdim: bool,
    ) -> Result<()> {
        let (input, at) = (lifted(self_)?, wrap_dim(dim, self_.ndim())?);
        let indices = kept(indices, self_.shape(), dim, keepdim)?;
        let strides = contiguous_strides(indices.shape());
        let mut view = result.view_mut_as(cpu, indices.shape(), &strides);
        Ok(index::gather(&mut view, input.view_ref(cpu), at, indices.view_ref(cpu))?)
    }
    fn vjp_self(
        grad: &Tensor,
        indices: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
    ) -> Result<Tensor> {
        grad.select_along_backward(dim, indices, self_shape, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |x: &[i64], dim: i64, i: &[i64], keepdim: bool| {
            Sample::new([
                s.normal(x).into(),
                dim.into(),
                s.integers(i, 0, 2).into(),
                keepdim.into(),
            ])
        };
        vec![
            sample(&[2, 3], 0, &[3], false),
            sample(&[3, 2], -1, &[3, 1], true),
            sample(&[2], 0, &[], false),
        ]
    }
}

/// The adjoint of `_select_along`: zeros of shape `sizes` with `grad` at the indices that `indices` names.
#[op("value_selecting_reduction_backward(Tensor grad_output, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor",
     internal, method = select_along_backward, jvp = linear, batch = picked_backward(dim, sizes))]
impl SelectAlongBackward {
    fn meta(
        grad_output: &Tensor,
        dim: i64,
        indices: &Tensor,
        sizes: &[i64],
        keepdim: bool,
    ) -> Result<TensorSpec> {
        let spec = TensorSpec::beside(grad_output, sizes).checked()?;
        let at = wrap_dim(dim, sizes.len())?;
        let source = kept_sizes(grad_output, sizes, dim, keepdim)?;
        let positions = kept_sizes(indices, sizes, dim, keepdim)?;
        index::check_index_shape("src", &positions, &source, usize::MAX)?;
        let whole = if sizes.is_empty() { &[1] } else { sizes };
        index::check_index_shape("self", &positions, whole, at)?;
        Ok(spec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        dim: i64,
        indices: &Tensor,
        sizes: &[i64],
        keepdim: bool,
    ) -> Result<()> {
        result.zero_bytes();
        let at = wrap_dim(dim, sizes.len())?;
        let (source, indices) =
            (kept(grad_output, sizes, dim, keepdim)?, kept(indices, sizes, dim, keepdim)?);
        let source = ScatterSource::Tensor(source.view_ref(cpu));
        let target = lifted(result)?;
        Ok(index::scatter(
            &mut target.view_mut(cpu),
            at,
            indices.view_ref(cpu),
            source,
            (ScatterReduction::Assign, true),
        )?)
    }
    fn vjp_grad_output(grad: &Tensor, dim: i64, indices: &Tensor, keepdim: bool) -> Result<Tensor> {
        grad.select_along(dim, indices, keepdim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |g: &[i64], dim: i64, sizes: &[i64], keepdim: bool| {
            Sample::new([
                s.normal(g).into(),
                dim.into(),
                s.integers(g, 0, 2).into(),
                sizes.into(),
                keepdim.into(),
            ])
        };
        vec![
            sample(&[3], 0, &[2, 3], false),
            sample(&[3, 1], -1, &[3, 2], true),
            sample(&[], 0, &[2], false),
        ]
    }
}

fn as_list(dim: Option<&i64>) -> Option<&[i64]> {
    dim.map(std::slice::from_ref)
}

/// Tensors without dimensions as tensors with one element.
pub(crate) fn lifted(x: &Tensor) -> Result<Cow<'_, Tensor>> {
    if x.ndim() > 0 {
        return Ok(Cow::Borrowed(x));
    }
    x.alias_with(&[1], &[1], x.storage_offset()).map(Cow::Owned)
}

/// Sizes of the result of a reduction of `dim` of `shape`, with that dimension in it.
fn kept_sizes(result: &Tensor, shape: &[i64], dim: i64, keepdim: bool) -> Result<Dims> {
    let at = wrap_dim(dim, shape.len())?;
    if keepdim || shape.is_empty() {
        ensure!(
            !shape.is_empty() || result.numel() == 1,
            runtime,
            "expected a tensor of one element, but got {}",
            result.numel()
        );
        return Ok(Dims::from_slice(vector_shape(result)));
    }
    ensure!(
        result.ndim() + 1 == shape.len(),
        runtime,
        "expected a tensor of {} dimensions, but got {}",
        shape.len() - 1,
        result.ndim()
    );
    let mut sizes = Dims::from_slice(result.shape());
    sizes.insert(at, 1);
    Ok(sizes)
}

/// The result of a reduction of `dim` of `shape`, with that dimension in it.
fn kept(result: &Tensor, shape: &[i64], dim: i64, keepdim: bool) -> Result<Tensor> {
    if keepdim || shape.is_empty() {
        return lifted(result).map(Cow::into_owned);
    }
    let sizes = kept_sizes(result, shape, dim, keepdim)?;
    let mut strides = Dims::from_slice(result.strides());
    strides.insert(wrap_dim(dim, shape.len())?, 1);
    result.alias_with(&sizes, &strides, result.storage_offset())
}

/// The spec of a minimum or maximum over `dim`.
fn amin_amax_spec(name: &str, x: &Tensor, dim: &[i64], keepdim: bool) -> Result<TensorSpec> {
    if dim.is_empty() {
        refuse_nothing(name, x)?;
    }
    let dims = wrap_dims(Some(dim), x.ndim())?;
    refuse_empty(name, x, &dims)?;
    Ok(spec_over(x, &dims, keepdim, x.dtype()))
}

/// Refuses complex numbers, which have no order.
fn check_ordered(name: &str, x: &Tensor) -> Result<()> {
    ensure!(!x.dtype().is_complex(), type_error, "{name}(): does not support complex input");
    Ok(())
}

/// The spec of the indices of minima or maxima along `dim`.
fn place_spec(name: &str, x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<TensorSpec> {
    check_ordered(name, x)?;
    let dims = wrap_dims(as_list(dim.as_ref()), x.ndim())?;
    refuse_nothing_in(name, x, &dims)?;
    ensure!(x.dtype() != DType::Bool, not_implemented, "{name}(): does not support bool input");
    Ok(spec_over(x, &dims, keepdim, DType::I64))
}

/// Refuses a reduction without identity over a dimension without elements.
pub(in crate::ops) fn refuse_nothing_in(name: &str, x: &Tensor, dims: &[usize]) -> Result<()> {
    Ok(reduce::check_not_empty(name, x.shape(), dims)?)
}

/// Refuses a minimum or maximum over all elements where there is none.
fn refuse_nothing(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        x.numel() > 0,
        runtime,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
    );
    Ok(())
}

/// Refuses dimensions without elements among those that the caller named.
fn refuse_empty(name: &str, x: &Tensor, dims: &[usize]) -> Result<()> {
    let empty = dims.iter().find(|&&dim| x.shape().get(dim) == Some(&0));
    if let Some(dim) = empty {
        bail!(index, "{name}(): Expected reduction dim {dim} to have non-zero size.");
    }
    Ok(())
}

/// A mask of the elements that are `value`, a minimum or maximum; if it is NaN, of those that are NaN.
pub(in crate::ops) fn is_amin_or_amax(x: &Tensor, value: &Tensor) -> Result<Tensor> {
    if value.numel() != 1 {
        return x.eq(value);
    }
    if is_any_true(&value.isnan()?)? {
        return x.eq(value)?.logical_or(&x.isnan()?.logical_and(&value.isnan()?)?);
    }
    x.eq(value)
}

/// `grad` in equal parts at the elements that are `value`, a minimum or maximum, both with the reduced dimensions kept.
fn share(grad: &Tensor, x: &Tensor, value: &Tensor, dim: &[i64]) -> Result<Tensor> {
    let mask = is_amin_or_amax(x, value)?;
    let count = mask.sum_dim(Some(dim), true)?;
    unreduce(&grad.div(&count)?, x.shape(), Some(dim), true)?.mul(&mask)
}

/// The mean tangent over the elements that are `value`, a minimum or maximum.
fn average(
    tangent: &Tensor,
    x: &Tensor,
    value: &Tensor,
    dim: &[i64],
    keepdim: bool,
) -> Result<Tensor> {
    let mask = is_amin_or_amax(x, value)?;
    tangent.mul(&mask)?.sum_dim(Some(dim), keepdim)?.div(&mask.sum_dim(Some(dim), keepdim)?)
}

fn full_samples(s: &Sampler) -> Vec<Sample> {
    let transposed = s.distinct(&[2, 3]).transpose(0, 1).expect("samples are small");
    vec![Sample::of(s.distinct(&[2, 3])), Sample::of(s.distinct(&[])), Sample::of(transposed)]
}

fn one_dim_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.distinct(&[2, 3, 2])).with("dim", 1),
        Sample::of(s.distinct(&[2, 3])).with("dim", -1).with("keepdim", true),
        Sample::of(s.distinct(&[])).with("dim", 0),
        Sample::of(s.distinct(&[])).with("dim", -1).with("keepdim", true),
        Sample::of(s.distinct(&[0, 3])).with("dim", 1),
    ]
}

fn dims_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.distinct(&[2, 3, 2])).with("dim", [0, 2]),
        Sample::of(s.distinct(&[2, 3])).with("dim", [-1]).with("keepdim", true),
        Sample::of(s.distinct(&[2, 3])),
        Sample::of(s.distinct(&[])).with("dim", [0]),
        Sample::of(s.distinct(&[0, 3])).with("dim", [1]),
    ]
}
