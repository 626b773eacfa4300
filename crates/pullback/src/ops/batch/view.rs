//! Batching rules of views: they are views of the physical tensor, whose first dimension stays the batch.

use super::values::Values;
use super::{behind, dims, ints, widened};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Batch, OpDef, Outputs, TensorVec, Value};
use crate::error::ensure;
use crate::tensor::extent;
use crate::tensor::shape::{list, wrap_dim};
use crate::{Dims, MemoryFormat, Result, Tensor};

/// The sizes with a -1 replaced by what `numel` requires.
fn complete(sizes: &[i64], numel: i64) -> Dims {
    let known: i64 = sizes.iter().filter(|&&n| n != -1).product();
    let fill =
        |&n: &i64| if n == -1 && known > 0 && numel % known == 0 { numel / known } else { n };
    sizes.iter().map(fill).collect()
}

/// The rule of `view`, `reshape` and similar ops: the sizes come after that of the batch.
pub(crate) fn view(call: &BatchedCall<'_>, self_: &Tensor, size: &[i64]) -> Result<Outcome> {
    let sizes = complete(size, self_.numel());
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?);
    values.set("size", ints(&behind(call.size, &sizes)));
    call.run(&values).map(Outcome::Batched)
}

/// The rule of `new_zeros` and similar ops: a tensor of these sizes for each example.
pub(crate) fn sizes(call: &BatchedCall<'_>, self_: &Tensor, size: &[i64]) -> Result<Outcome> {
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?);
    values.set("size", ints(&behind(call.size, size)));
    call.run(&values).map(Outcome::Batched)
}

/// The rule of `new_empty_strided`: the examples follow one another in memory.
pub(crate) fn strided_sizes(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    size: &[i64],
    stride: &[i64],
) -> Result<Outcome> {
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?);
    values.set("size", ints(&behind(call.size, size)));
    values.set("stride", ints(&behind(extent(size, stride)?, stride)));
    call.run(&values).map(Outcome::Batched)
}

/// The rule of `expand`.
pub(crate) fn expand(call: &BatchedCall<'_>, self_: &Tensor, size: &[i64]) -> Result<Outcome> {
    let (tensor, sizes) = (self_, size);
    ensure!(
        sizes.len() >= tensor.ndim(),
        runtime,
        "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
        sizes.len(),
        tensor.ndim()
    );
    let added = sizes.len() - tensor.ndim();
    ensure!(
        sizes[..added].iter().all(|&size| size >= 0),
        runtime,
        "The expanded size of the tensor isn't allowed in a leading, non-existing dimension: expand of sizes {} to {}",
        list(tensor.shape()),
        list(sizes)
    );
    let wide = widened(&call.front(tensor)?, sizes.len())?;
    Ok(wide.expand(&behind(call.size, sizes), false)?.into())
}

/// Sizes, strides and offset of views of a tensor's memory.
struct Strided {
    sizes: Dims,
    strides: Dims,
    offset: i64,
}

/// The geometry of a batch of views, from that of the view of one example of `tensor`.
fn strided(
    call: &BatchedCall<'_>,
    tensor: &Tensor,
    [sizes, strides]: [&[i64]; 2],
    offset: Option<i64>,
) -> Result<Strided> {
    let physical = call.front(tensor)?;
    let offset = offset.unwrap_or(physical.storage_offset());
    let step = physical.strides()[0];
    // The memory of an example ends where that of the next one begins; that of overlapping examples extends as far as
    // their elements.
    let reach = extent(sizes, strides)?;
    let start = physical.storage_offset();
    let room = step.max(extent(tensor.shape(), &physical.strides()[1..])?);
    let is_inside = || {
        let end = offset.checked_add(reach);
        start <= offset && end.is_some_and(|end| end <= start + room)
    };
    ensure!(
        call.size < 2 || step == 0 || is_inside(),
        runtime,
        "vmap: {}(sizes={}, strides={}, storage_offset={offset}) can access memory outside of `tensor`: each example has {room} elements of memory from {start} on",
        call.def.name,
        list(sizes),
        list(strides)
    );
    let (sizes, strides) = (behind(call.size, sizes), behind(step, strides));
    Ok(Strided { sizes, strides, offset })
}

/// The rule of `as_strided`, whose sizes and strides are those of one example.
pub(crate) fn as_strided(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
) -> Result<Outcome> {
    let Strided { sizes, strides, offset } = strided(call, self_, [size, stride], storage_offset)?;
    Ok(call.front(self_)?.as_strided(&sizes, &strides, Some(offset))?.into())
}

/// The rule of `as_strided_scatter`. Examples that share memory are copied first, as is a tensor that all examples
/// share.
pub(crate) fn as_strided_scatter(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    src: &Tensor,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
) -> Result<Outcome> {
    let Some(physical) = call.physical(self_) else { return super::one_by_one(call) };
    if physical.strides()[0] == 0 {
        return super::one_by_one(call);
    }
    let Strided { sizes, strides, offset } = strided(call, self_, [size, stride], storage_offset)?;
    let src = call.front(src)?;
    Ok(physical.as_strided_scatter(&src, &sizes, &strides, Some(offset))?.into())
}

/// The rule of `select_scatter` and similar ops, whose dimensions are those of the tensor that is written to.
pub(crate) fn view_scatter(call: &BatchedCall<'_>) -> Result<Outcome> {
    let rank = call.subject()?.ndim();
    if rank == 0 {
        return super::one_by_one(call);
    }
    let mut values = call.values(&mut |_, tensor| call.front(tensor))?;
    for (info, value) in values.each() {
        if let Value::Int(dim) = value
            && matches!(info.name, "dim" | "dim1" | "dim2")
        {
            *dim = wrap_dim(*dim, rank)? as i64 + 1;
        }
    }
    call.run(&values).map(Outcome::Batched)
}

/// The rule of `permute`.
pub(crate) fn permute(call: &BatchedCall<'_>, self_: &Tensor, dims: &[i64]) -> Result<Outcome> {
    let rank = self_.ndim();
    let mut order = Dims::new();
    order.push(0);
    for &dim in dims {
        order.push(wrap_dim(dim, rank)? as i64 + 1);
    }
    ensure!(
        order.len() == rank + 1,
        runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
        order.len() - 1
    );
    Ok(call.front(self_)?.permute(&order)?.into())
}

/// The rule of `t`.
pub(crate) fn transposed(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    let rank = self_.ndim();
    ensure!(rank <= 2, runtime, "t() expects a tensor with <= 2 dimensions, but self is {rank}D");
    exchanged(call, self_, [0, i64::from(rank == 2)])
}

/// The rule of `transpose`.
pub(crate) fn swapped(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim0: i64,
    dim1: i64,
) -> Result<Outcome> {
    let rank = self_.ndim();
    exchanged(call, self_, [wrap_dim(dim0, rank)? as i64, wrap_dim(dim1, rank)? as i64])
}

/// The tensor with two dimensions of each example swapped.
fn exchanged(call: &BatchedCall<'_>, tensor: &Tensor, [a, b]: [i64; 2]) -> Result<Outcome> {
    let front = call.front(tensor)?;
    if tensor.ndim() == 0 || a == b {
        return Ok(front.alias()?.into());
    }
    Ok(front.transpose(a + 1, b + 1)?.into())
}

/// The rule of views along dimensions that 0-dimensional tensors lack: `select`, `slice`, `unbind`, `split`,
/// `diagonal`.
pub(crate) fn pick_view(call: &BatchedCall<'_>) -> Result<Outcome> {
    let tensor = call.subject()?;
    if tensor.ndim() == 0 {
        // The op itself raises the error.
        let mut values = Values::given(call);
        values.set_subject(Tensor::empty_of(&[], tensor.dtype())?);
        values.call()?;
    }
    call.run(&dims::shifted(call, tensor.ndim())?).map(Outcome::Batched)
}

/// The rule of `unfold`, which gives a 0-dimensional example the dimension of the window.
pub(crate) fn unfold(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    let windows = call.run(&dims::shifted(call, self_.ndim())?)?.one();
    Ok(if self_.ndim() == 0 { windows.squeeze_dim(1)? } else { windows }.into())
}

/// The rule of `squeeze` of all dimensions of size 1.
pub(crate) fn squeeze(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    let all: Dims = (0..self_.ndim() as i64).collect();
    squeeze_dims(call, self_, &all)
}

/// The rule of `squeeze` of one dimension.
pub(crate) fn squeeze_dim(call: &BatchedCall<'_>, self_: &Tensor, dim: i64) -> Result<Outcome> {
    squeeze_dims(call, self_, &[dim])
}

/// The rule of `squeeze` of several dimensions.
pub(crate) fn squeeze_dims(call: &BatchedCall<'_>, self_: &Tensor, dim: &[i64]) -> Result<Outcome> {
    let mut ones = Dims::new();
    for &dim in dim {
        let dim = wrap_dim(dim, self_.ndim())?;
        if self_.shape().get(dim) == Some(&1) {
            ones.push(dim as i64 + 1);
        }
    }
    let front = call.front(self_)?;
    if ones.is_empty() { Ok(front.alias()?.into()) } else { Ok(front.squeeze_dims(&ones)?.into()) }
}

/// The rule of `unsqueeze`.
pub(crate) fn unsqueeze(call: &BatchedCall<'_>, self_: &Tensor, dim: i64) -> Result<Outcome> {
    let dim = wrap_dim(dim, self_.ndim() + 1)? as i64 + 1;
    Ok(call.front(self_)?.unsqueeze(dim)?.into())
}

/// The rule of `view_copy` and similar ops: copies of what the rule of the view gives.
pub(crate) fn copied(view: &'static OpDef, call: &BatchedCall<'_>) -> Result<Outcome> {
    let Batch::Rule(rule) = view.batch else { return super::one_by_one(call) };
    let copy = |shown: &Tensor| shown.clone_tensor(Some(MemoryFormat::Contiguous));
    Ok(match rule(&call.with_def(view))? {
        Outcome::Batched(Outputs::One(shown)) => copy(&shown)?.into(),
        Outcome::Batched(Outputs::Tensors(all)) => {
            Outcome::Batched(Outputs::Tensors(all.iter().map(copy).collect::<Result<TensorVec>>()?))
        }
        same => same,
    })
}

/// The rule of in-place forms that change the geometry of a tensor, by the op `def`, which returns a view.
pub(crate) fn in_place(call: &BatchedCall<'_>, def: &'static OpDef) -> Result<Outcome> {
    call.target()?;
    let Batch::Rule(rule) = def.batch else { return super::one_by_one(call) };
    let outcome = rule(&call.with_def(def))?;
    if let Outcome::Batched(Outputs::One(physical)) = &outcome {
        call.show(physical)?;
    }
    Ok(outcome)
}
