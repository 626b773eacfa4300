//! Batching rules of ops that write elements where a tensor says: `masked_scatter` and `put`. Those along a dimension are in
//! `dims`, those at lists of indices in `index`.

use super::index::{are_outside, examples, from_start};
use super::values::Values;
use super::{behind, one_by_one, widened};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Result, Scalar, Tensor};

/// The rule of `masked_scatter`: the element of `source` that a place gets is the one of the number of places before it.
pub(crate) fn masked_scatter(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    mask: &Tensor,
    source: &Tensor,
) -> Result<Outcome> {
    let shape = broadcast_shapes(&[self_.shape(), mask.shape()])?;
    let (numel, given): (i64, _) = (shape.iter().product(), source.numel());
    let fits = !call.writes() || &shape[..] == self_.shape();
    if given == 0 || mask.dtype() != DType::Bool || self_.dtype() != source.dtype() || !fits {
        return one_by_one(call);
    }
    let all = behind(call.size, &shape);
    let mask = widened(&call.front(mask)?, shape.len())?.expand(&all, false)?;
    let places = mask.reshape(&[call.size, numel])?.to_dtype(DType::I64)?.cumsum(1)?.plus(-1)?;
    if numel > given && is_any_true(&places.ge(&Tensor::wrapped(given)?)?)? {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let places = places.clamp(Some(Scalar::Int(0)), Some(Scalar::Int(given - 1)))?;
    let taken = call.front(source)?.reshape(&[call.size, given])?.gather(1, &places)?;
    let old = widened(&call.front(self_)?, shape.len())?;
    call.finish(&mask.where_self(&taken.reshape(&all)?, &old)?)
}

/// The rule of `put`: the places of an example are those of its elements among all.
pub(crate) fn put(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    index: &Tensor,
    source: &Tensor,
) -> Result<Outcome> {
    let (numel, count) = (self_.numel(), index.numel());
    if index.dtype() != DType::I64 || source.numel() != count {
        return one_by_one(call);
    }
    let places = from_start(&call.front(index)?.reshape(&[call.size, count])?, numel)?;
    if are_outside(&places, numel)? {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let first = examples(call.size, 1)?.mul(&Tensor::wrapped(numel)?)?;
    let mut values = Values::given(call);
    values.set_subject(if call.writes() { call.target()? } else { call.front(self_)? });
    values.set("index", places.add(&first)?);
    values.set("source", call.front(source)?.reshape(&[call.size, count])?);
    call.run(&values).map(Outcome::Batched)
}
