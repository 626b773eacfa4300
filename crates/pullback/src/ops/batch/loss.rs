//! Batching rules of losses: they are computed element by element, then reduced for each example.

use super::behind;
use super::values::Values;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{Arg, Outputs, TensorVec, Value};
use crate::{DType, Result, Tensor};
use smallvec::smallvec;

const NONE: i64 = 0;
const MEAN: i64 = 1;
const SUM: i64 = 2;

/// The mean or the sum over all dimensions but the first.
fn reduced(losses: &Tensor, reduction: i64) -> Result<Tensor> {
    if reduction == NONE {
        return Ok(losses.clone());
    }
    let (size, numel) = (losses.shape()[0], losses.shape()[1..].iter().product());
    let flat = losses.reshape(&[size, numel])?;
    if reduction == MEAN {
        flat.mean_dim(Some(&[1]), false)
    } else {
        flat.sum_dim(Some(&[1]), false)
    }
}

/// The rule of elementwise losses, whose arguments broadcast.
pub(crate) fn elementwise_loss(call: &BatchedCall<'_>) -> Result<Outcome> {
    let reduction = match call.named("reduction") {
        Some(Arg::Int(reduction)) if (NONE..=SUM).contains(&reduction) => reduction,
        _ => return super::one_by_one(call),
    };
    let mut rank = 0;
    crate::dispatch::each_tensor(call.args, |tensor| rank = rank.max(tensor.ndim()));
    let mut values = call.values(&mut |_, tensor| super::widened(&call.front(tensor)?, rank))?;
    values.set("reduction", NONE);
    let losses = values.call()?.one();
    Ok(reduced(&losses, reduction)?.into())
}

/// Merges the batch with the first dimension, so that the classes' dimension is the second.
fn folded(call: &BatchedCall<'_>, tensor: &Tensor, has_first: bool) -> Result<Tensor> {
    let front = call.front(tensor)?;
    if has_first { front.flatten(0, 1) } else { Ok(front) }
}

/// The weights of the elements' classes, 0 for `ignore_index`.
fn weights(
    call: &BatchedCall<'_>,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    like: &Tensor,
) -> Result<Tensor> {
    let counts = target.ne(&Tensor::wrapped(ignored)?)?.to_dtype(like.dtype())?;
    let Some(weight) = weight else { return Ok(counts) };
    // (`ignore_index` may be no class: its weight, which counts 0, is any of them.)
    let target = target.to_dtype(DType::I64)?;
    let valid = counts.ne(&Tensor::wrapped(0_i64)?)?.where_self(&target, &target.zeros_like()?)?;
    let Some(each) = call.physical(weight) else {
        return valid_weights(weight, &valid)?.mul(&counts);
    };
    let numel: i64 = target.shape()[1..].iter().product();
    let own = each.gather(1, &valid.reshape(&[call.size, numel])?)?.reshape(target.shape())?;
    own.mul(&counts)
}

fn valid_weights(weight: &Tensor, target: &Tensor) -> Result<Tensor> {
    let flat = target.reshape(&[-1])?;
    weight.index_select(0, &flat)?.reshape(target.shape())
}

/// The rule of the negative log likelihood loss of one row of classes, of several, or of images.
pub(crate) fn nll_loss(
    call: &BatchedCall<'_>,
    logs: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignored: i64,
) -> Result<Outcome> {
    let has_first = logs.ndim() >= 2;
    let classes = logs.shape().get(usize::from(has_first)).copied().unwrap_or(0);
    if weight.is_some_and(|weight| weight.shape() != [classes])
        || !(NONE..=SUM).contains(&reduction)
        || logs.ndim() == 0
        || target.ndim() + 1 != logs.ndim()
        || has_first && target.shape()[0] != logs.shape()[0]
    {
        return super::one_by_one(call);
    }
    let mut values = Values::given(call);
    values.set_subject(folded(call, logs, has_first)?);
    values.set("target", folded(call, target, has_first)?);
    values.set("reduction", NONE);
    let is_apart = call.is_batched(weight);
    if is_apart {
        values.set("weight", Value::None);
    }
    let losses = values.call()?.tensors().remove(0);
    let losses =
        if has_first { losses.unflatten(0, &[call.size, target.shape()[0]])? } else { losses };
    let each = weights(call, &call.front(target)?, weight, ignored, logs)?;
    let losses = if is_apart { losses.mul(&each)? } else { losses };
    let numel: i64 = target.shape().iter().product();
    let total = each.reshape(&[call.size, numel])?.sum_dim(Some(&[1]), false)?;
    let output = match reduction {
        NONE => losses,
        MEAN => reduced(&losses, SUM)?.div(&total)?,
        _ => reduced(&losses, reduction)?,
    };
    let total = if reduction == NONE { total.zeros_like()? } else { total };
    Ok(Outcome::Batched(Outputs::Tensors(smallvec![output, total])))
}

/// The rule of the gradient of the negative log likelihood loss.
pub(crate) fn nll_loss_backward(
    call: &BatchedCall<'_>,
    grad_output: &Tensor,
    sizes: &[i64],
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    total_weight: &Tensor,
) -> Result<Outcome> {
    let has_first = sizes.len() >= 2;
    let classes = sizes.get(usize::from(has_first)).copied().unwrap_or(0);
    let ignored = match call.named("ignore_index") {
        Some(Arg::Int(ignored)) if weight.is_none_or(|weight| weight.shape() == [classes]) => {
            ignored
        }
        _ => return super::one_by_one(call),
    };
    let mut each = call.front(grad_output)?;
    if reduction == MEAN {
        each = each.div(&call.front(total_weight)?)?;
    }
    if reduction != NONE {
        each = super::widened(&each, target.ndim())?
            .expand(&behind(call.size, target.shape()), false)?;
    }
    let is_apart = call.is_batched(weight);
    if is_apart {
        each = each.mul(&weights(call, &call.front(target)?, weight, ignored, grad_output)?)?;
    }
    let each = if has_first { each.flatten(0, 1)? } else { each };
    let mut all = behind(call.size, sizes);
    if has_first {
        let first = all.remove(0);
        all[0] *= first;
    }
    let mut values = Values::given(call);
    if is_apart {
        values.set("weight", Value::None);
    }
    values.set("grad_output", each);
    values.set("sizes", super::ints(&all));
    values.set("target", folded(call, target, has_first)?);
    values.set("reduction", NONE);
    values.set("total_weight", Tensor::wrapped(1.0_f64)?.to_dtype(grad_output.dtype())?);
    let result = values.call()?.one();
    Ok(if has_first { result.unflatten(0, &[call.size, sizes[0]])? } else { result }.into())
}

/// The rule of the hinge loss of several classes, of one row or of several.
pub(crate) fn multi_margin_loss(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Outcome> {
    let columns = self_.shape().last().copied().unwrap_or(0);
    let rows = if self_.ndim() == 2 { self_.shape()[0] } else { 1 };
    let fits = (1..=2).contains(&self_.ndim()) && target.ndim() <= 1 && target.numel() == rows;
    let weighs = weight.is_none_or(|weight| weight.shape() == [columns]);
    if !fits || !weighs || self_.numel() == 0 || !(NONE..=SUM).contains(&reduction) {
        return super::one_by_one(call);
    }
    let classes = call.front(target)?.reshape(&[call.size * rows])?;
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?.reshape(&[call.size * rows, columns])?);
    values.set("target", classes.clone());
    values.set("reduction", NONE);
    let apart = weight.filter(|&weight| call.is_batched(weight));
    if apart.is_some() {
        values.set("weight", Value::None);
    }
    let mut losses = values.call()?.one().reshape(&[call.size, rows])?;
    if let Some(weight) = apart {
        let own = call.front(weight)?.gather(1, &classes.reshape(&[call.size, rows])?)?;
        losses = losses.mul(&own.to_dtype(losses.dtype())?)?;
    }
    Ok(reduced(&losses.reshape(&behind(call.size, target.shape()))?, reduction)?.into())
}

/// The arguments of a loss of sequences with the batch merged with the examples, or `None` if there is no batch of examples to
/// merge it with.
fn merged_sequences(
    call: &BatchedCall<'_>,
    log_probs: &Tensor,
    targets: &Tensor,
) -> Result<Option<Values>> {
    if log_probs.ndim() != 3 || targets.ndim() != 2 {
        return Ok(None);
    }
    let mut values = call.values(&mut |info, tensor| {
        let front = call.front(tensor)?;
        if info.name == "log_probs" {
            front.movedim_int(0, 1)?.flatten(1, 2)
        } else {
            front.flatten(0, 1)
        }
    })?;
    for (info, value) in values.each() {
        if info.name.ends_with("_lengths")
            && let Value::Ints(lengths) = value
        {
            let size = usize::try_from(call.size).unwrap_or(0);
            let count = lengths.len().saturating_mul(size);
            let mut all = pullback_kernels::memory::with_capacity(count)?;
            (0..size).for_each(|_| all.extend_from_slice(lengths));
            *value = Value::Ints(all.into());
        }
    }
    Ok(Some(values))
}

/// The rule of `_ctc_loss`: the batch is merged with the examples of the sequences.
pub(crate) fn ctc_loss(
    call: &BatchedCall<'_>,
    log_probs: &Tensor,
    targets: &Tensor,
) -> Result<Outcome> {
    let Some(values) = merged_sequences(call, log_probs, targets)? else {
        return super::one_by_one(call);
    };
    let each = log_probs.shape()[1];
    let Outputs::Tensors(all) = call.run(&values)? else { return super::one_by_one(call) };
    let unfold = |t: Tensor| t.unflatten(0, &[call.size, each]);
    let all = all.into_iter().map(unfold).collect::<Result<TensorVec>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(all)))
}

/// The rule of the gradient of `_ctc_loss`.
pub(crate) fn ctc_loss_backward(
    call: &BatchedCall<'_>,
    log_probs: &Tensor,
    targets: &Tensor,
) -> Result<Outcome> {
    let Some(values) = merged_sequences(call, log_probs, targets)? else {
        return super::one_by_one(call);
    };
    let grad = call.run(&values)?.one();
    Ok(grad.unflatten(1, &[call.size, log_probs.shape()[1]])?.movedim_int(1, 0)?.into())
}
