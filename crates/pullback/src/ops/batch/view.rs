//! Views: of the physical tensor, the batch dimension stays the first.

use super::{behind, dims, ints, widened};
use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{Batch, OpDef, Outputs, TensorVec, Value};
use crate::error::ensure;
use crate::tensor::extent;
use crate::tensor::shape::{list, wrap_dim};
use crate::{Dims, MemoryFormat, Result, Tensor};

/// Sizes in which one may be -1, complete.
fn complete(sizes: &[i64], numel: i64) -> Dims {
    let known: i64 = sizes.iter().filter(|&&n| n != -1).product();
    let fill =
        |&n: &i64| if n == -1 && known > 0 && numel % known == 0 { numel / known } else { n };
    sizes.iter().map(fill).collect()
}

/// `view` and its kin: the sizes behind that of the batch.
pub(crate) fn view(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let sizes = complete(call.ints(1), tensor.numel());
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(call.front(tensor)?);
    values[1] = ints(&behind(call.size, &sizes));
    call.run(&values).map(Outcome::Batched)
}

/// `new_zeros` and its kin: a tensor for each example, of these sizes.
pub(crate) fn sizes(call: &Call<'_>) -> Result<Outcome> {
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    values[0] = Value::Tensor(call.front(call.tensor(0))?);
    values[1] = ints(&behind(call.size, call.ints(1)));
    if let Some(index) = call.place("stride") {
        // One example behind the other.
        let strides = call.ints(index);
        values[index] = ints(&behind(extent(call.ints(1), strides)?, strides));
    }
    call.run(&values).map(Outcome::Batched)
}

/// `expand`.
pub(crate) fn expand(call: &Call<'_>) -> Result<Outcome> {
    let (tensor, sizes) = (call.tensor(0), call.ints(1));
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

/// Sizes, strides and offset of a batch of views by strides, where those of one example are given: of the arguments from
/// `first` on.
fn strided(call: &Call<'_>, first: usize) -> Result<(Dims, Dims, i64)> {
    let tensor = call.tensor(0);
    let physical = call.front(tensor)?;
    let (sizes, strides) = (call.ints(first), call.ints(first + 1));
    let offset = match call.args[first + 2] {
        crate::dispatch::Arg::Int(offset) => offset,
        _ => physical.storage_offset(),
    };
    let step = physical.strides()[0];
    // Where an example's memory ends that of the next one begins. (Those that lie in each other reach as far as they do.)
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
    Ok((behind(call.size, sizes), behind(step, strides), offset))
}

/// `as_strided`: sizes and strides are those of one example.
pub(crate) fn as_strided(call: &Call<'_>) -> Result<Outcome> {
    let (sizes, strides, offset) = strided(call, 1)?;
    Ok(call.front(call.tensor(0))?.as_strided(&sizes, &strides, Some(offset))?.into())
}

/// `as_strided_scatter`. Examples that share memory are copied one by one, as is a tensor that is the same for all.
pub(crate) fn as_strided_scatter(call: &Call<'_>) -> Result<Outcome> {
    let Some(physical) = call.physical(call.tensor(0)) else { return super::one_by_one(call) };
    if physical.strides()[0] == 0 {
        return super::one_by_one(call);
    }
    let (sizes, strides, offset) = strided(call, 2)?;
    let src = call.front(call.tensor(1))?;
    Ok(physical.as_strided_scatter(&src, &sizes, &strides, Some(offset))?.into())
}

/// `select_scatter` and its kin: the dimensions are those of the tensor that is written to.
pub(crate) fn view_scatter(call: &Call<'_>) -> Result<Outcome> {
    let rank = call.tensor(0).ndim();
    if rank == 0 {
        return super::one_by_one(call);
    }
    let mut values = call.values(&mut |_, tensor| call.front(tensor))?;
    for (value, info) in values.iter_mut().zip(call.def.args) {
        if let Value::Int(dim) = value
            && matches!(info.name, "dim" | "dim1" | "dim2")
        {
            *dim = wrap_dim(*dim, rank)? as i64 + 1;
        }
    }
    call.run(&values).map(Outcome::Batched)
}

/// `permute`.
pub(crate) fn permute(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let rank = tensor.ndim();
    let mut order = Dims::new();
    order.push(0);
    for &dim in call.ints(1) {
        order.push(wrap_dim(dim, rank)? as i64 + 1);
    }
    ensure!(
        order.len() == rank + 1,
        runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
        order.len() - 1
    );
    Ok(call.front(tensor)?.permute(&order)?.into())
}

/// `t` and `transpose`.
pub(crate) fn swapped(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let rank = tensor.ndim();
    let front = call.front(tensor)?;
    let (a, b) = if call.def.args.len() == 1 {
        ensure!(
            rank <= 2,
            runtime,
            "t() expects a tensor with <= 2 dimensions, but self is {rank}D"
        );
        (0, i64::from(rank == 2))
    } else {
        (wrap_dim(call.int(1), rank)? as i64, wrap_dim(call.int(2), rank)? as i64)
    };
    if rank == 0 || a == b {
        return Ok(front.alias()?.into());
    }
    Ok(front.transpose(a + 1, b + 1)?.into())
}

/// Ops along dimensions that need some: `select`, `slice`, `unbind`, `split`, `diagonal`.
pub(crate) fn pick_view(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    if tensor.ndim() == 0 {
        // Refused, in the words of the op.
        let plain = Tensor::empty_of(&[], tensor.dtype())?;
        let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
        values[0] = Value::Tensor(plain);
        super::call(call.def, &values)?;
    }
    call.run(&dims::shifted(call, tensor.ndim())?).map(Outcome::Batched)
}

/// `unfold`: of a number it adds the window's dimension.
pub(crate) fn unfold(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let windows = call.run(&dims::shifted(call, tensor.ndim())?)?.one();
    Ok(if tensor.ndim() == 0 { windows.squeeze_dim(1)? } else { windows }.into())
}

/// `squeeze` of all dimensions of size 1.
pub(crate) fn squeeze(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let ones: Vec<i64> =
        (0..tensor.ndim()).filter(|&d| tensor.shape()[d] == 1).map(|d| d as i64 + 1).collect();
    squeezed(call, &ones)
}

/// `squeeze` of some.
pub(crate) fn squeeze_dim(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let dims: Vec<i64> = match call.args[1] {
        crate::dispatch::Arg::Int(dim) => vec![dim],
        // bounded: by the rank.
        _ => call.ints(1).to_vec(),
    };
    let mut ones = Vec::new();
    for dim in dims {
        let dim = wrap_dim(dim, tensor.ndim())?;
        if tensor.ndim() > 0 && tensor.shape()[dim] == 1 {
            ones.push(dim as i64 + 1);
        }
    }
    squeezed(call, &ones)
}

fn squeezed(call: &Call<'_>, dims: &[i64]) -> Result<Outcome> {
    let front = call.front(call.tensor(0))?;
    if dims.is_empty() { Ok(front.alias()?.into()) } else { Ok(front.squeeze_dims(dims)?.into()) }
}

/// `unsqueeze`.
pub(crate) fn unsqueeze(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let dim = wrap_dim(call.int(1), tensor.ndim() + 1)? as i64 + 1;
    Ok(call.front(tensor)?.unsqueeze(dim)?.into())
}

/// `view_copy` and its kin: copies of what the view's own rule shows.
pub(crate) fn copied(view: &'static OpDef, call: &Call<'_>) -> Result<Outcome> {
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

/// Forms that change what a tensor shows of its memory: as the op `def`, which gives a view.
pub(crate) fn in_place(call: &Call<'_>, def: &'static OpDef) -> Result<Outcome> {
    call.target()?;
    let Batch::Rule(rule) = def.batch else { return super::one_by_one(call) };
    let outcome = rule(&call.with_def(def))?;
    if let Outcome::Batched(Outputs::One(physical)) = &outcome {
        call.show(physical)?;
    }
    Ok(outcome)
}
