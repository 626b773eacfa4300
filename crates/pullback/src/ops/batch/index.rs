//! Batching rules of ops that take indices from tensors.

use super::values::Values;
use super::{behind, dims, one_by_one, widened};
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::dispatch::{OpDef, Outputs, TensorVec, Value};
use crate::error::{bail, ensure};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::promote;
use crate::tensor::shape::{broadcast_shapes, list, wrap_dim};
use crate::{DType, Dims, Error, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::memory;

/// The indices of the examples, as a column with `rank` further dimensions.
pub(super) fn examples(size: i64, rank: usize) -> Result<Tensor> {
    let numbers = memory::collect(0..size)?;
    let column = Tensor::from_slice(&numbers, &[size])?;
    let mut shape = behind(size, &[]);
    shape.resize(rank + 1, 1);
    column.reshape(&shape)
}

/// The indices of all dimensions of a batched indexed tensor, and where their dimensions are in the result.
struct BatchedIndexPlan {
    /// The physical tensor, with the batch in front.
    physical: Tensor,
    /// The indices of the physical tensor: for the batch, then for each dimension.
    indices: Vec<Option<Tensor>>,
    /// The number of dimensions that all indices have together after broadcasting, and their position in the logical
    /// result.
    rank: usize,
    at: usize,
}

impl BatchedIndexPlan {
    fn new(
        call: &BatchedCall<'_>,
        tensor: &Tensor,
        given: &[Option<Tensor>],
    ) -> Result<BatchedIndexPlan> {
        let mut indices: Vec<Option<Tensor>> = Vec::new();
        for index in given {
            match index {
                Some(mask) if matches!(mask.dtype(), DType::Bool | DType::U8) => {
                    let at = indices.len();
                    let there = tensor.shape().get(at..at + mask.ndim());
                    if mask.ndim() == 0 || there != Some(mask.shape()) {
                        return Err(Error::index(format!(
                            "The shape of the mask {} at index {at} does not match the shape of the indexed tensor {} at index {at}",
                            list(mask.shape()),
                            list(tensor.shape())
                        )));
                    }
                    if call.physical(mask).is_some() {
                        return Err(super::unsupported(
                            call,
                            "with a mask that is batched is not possible: how many elements it picks would differ between the examples (a data-dependent operation)",
                        ));
                    }
                    let positions = mask.nonzero()?;
                    for dim in 0..mask.ndim() as i64 {
                        indices.push(Some(positions.select(1, dim)?));
                    }
                }
                other => indices.push(other.clone()),
            }
        }
        if indices.len() > tensor.ndim() {
            return Err(Error::index(format!(
                "too many indices for tensor of dimension {}",
                tensor.ndim()
            )));
        }
        // bounded: by the number of indices.
        let shapes: Vec<&[i64]> = indices.iter().flatten().map(Tensor::shape).collect();
        let mut common = Dims::new();
        for shape in shapes {
            common = broadcast_shapes(&[&common, shape])?;
        }
        let rank = common.len();
        // bounded: by the number of indices.
        let given_at: Vec<usize> =
            indices.iter().enumerate().filter(|(_, i)| i.is_some()).map(|(d, _)| d).collect();
        let is_row = given_at.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let at = if is_row { given_at.first().copied().unwrap_or(0) } else { 0 };
        let mut all = vec![Some(examples(call.size, rank)?)];
        for index in indices {
            all.push(match index {
                None => None,
                Some(index) => Some(match call.physical(&index) {
                    Some(physical) => widened(&physical, rank)?,
                    None => index,
                }),
            });
        }
        Ok(BatchedIndexPlan { physical: call.front(tensor)?, indices: all, rank, at })
    }
    /// The elements that the indices select.
    fn picked(&self) -> Result<Tensor> {
        self.physical.index(&self.indices)
    }
    /// The logical result of a physical one: the dimensions of the indices come first in the physical result, and are
    /// moved to `at`.
    fn as_seen(&self, result: &Tensor) -> Result<Tensor> {
        if self.at == 0 || self.rank == 0 {
            return Ok(result.clone());
        }
        let from: Dims = (1..=self.rank as i64).collect();
        let to: Dims = from.iter().map(|dim| dim + self.at as i64).collect();
        result.movedim(&from, &to)
    }
    /// The inverse of [`BatchedIndexPlan::as_seen`]: the physical form of a logical value.
    fn as_kept(&self, seen: &Tensor) -> Result<Tensor> {
        if self.at == 0 || self.rank == 0 {
            return Ok(seen.clone());
        }
        let to: Dims = (1..=self.rank as i64).collect();
        let from: Dims = to.iter().map(|dim| dim + self.at as i64).collect();
        seen.movedim(&from, &to)
    }
}

/// The rule of `index`, `x[i, j]`.
pub(crate) fn index(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    indices: &[Option<Tensor>],
) -> Result<Outcome> {
    let plan = BatchedIndexPlan::new(call, self_, indices)?;
    Ok(plan.as_seen(&plan.picked()?)?.into())
}

/// The rule of `index_put`, `x[i, j] = v`.
pub(crate) fn index_put(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
) -> Result<Outcome> {
    let plan = BatchedIndexPlan::new(call, self_, indices)?;
    // The sizes of the selected elements, in the order of the logical result.
    let seen = plan.as_seen(&plan.picked()?)?;
    let source = match call.physical(values) {
        Some(physical) => widened(&physical, seen.ndim() - 1)?,
        None => values.clone(),
    };
    let source = plan.as_kept(&source.expand(seen.shape(), false)?)?;
    let physical = if call.writes() { call.target()? } else { plan.physical.clone() };
    let mut given = Values::given(call);
    given.set_subject(physical);
    given.set("indices", Value::OptTensors(plan.indices.clone()));
    given.set("values", source);
    call.run(&given).map(Outcome::Batched)
}

/// The rule of `index_select`.
pub(crate) fn index_select(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
) -> Result<Outcome> {
    let dim = wrap_dim(dim, self_.ndim())?;
    if self_.ndim() == 0 || index.ndim() != 1 {
        return one_by_one(call);
    }
    if !call.is_batched(index) {
        let front = call.front(self_)?;
        return Ok(front.index_select(dim as i64 + 1, index)?.into());
    }
    check_in_range(index, self_.shape()[dim])?;
    // bounded: by the rank.
    let mut given: Vec<Option<Tensor>> = vec![None; dim];
    given.push(Some(index.clone()));
    let plan = BatchedIndexPlan::new(call, self_, &given)?;
    Ok(plan.as_seen(&plan.picked()?)?.into())
}

/// The rule of `index_add`, `index_copy` and the like. With indices of each example the slices of all examples lie one after the
/// other along the dimension.
pub(crate) fn slices(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
) -> Result<Outcome> {
    slices_at(call, self_, dim, index, |index| Ok(index.clone()))
}

/// The rule of `index_fill`, whose negative indices are counted from the end.
pub(crate) fn slices_from_either_end(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
) -> Result<Outcome> {
    let rows = if self_.ndim() == 0 { 1 } else { self_.shape()[wrap_dim(dim, self_.ndim())?] };
    slices_at(call, self_, dim, index, |index| from_start(index, rows))
}

/// The rule of these ops, of which `counted` gives the indices of all examples as they count from the start.
fn slices_at(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    counted: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Outcome> {
    let number = call.tensor_named("value");
    if self_.ndim() == 0 || call.is_batched(number) {
        return one_by_one(call);
    }
    if call.is_batched(index) {
        return slices_of_each(call, self_, dim, index, counted);
    }
    let mut values = dims::shifted(call, self_.ndim())?;
    values.set("index", index.clone());
    if let Some(number) = number {
        values.set("value", number.clone());
    }
    call.run(&values).map(Outcome::Batched)
}

fn slices_of_each(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    counted: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Outcome> {
    let dim = wrap_dim(dim, self_.ndim())?;
    let (size, rows, count) = (call.size, self_.shape()[dim], index.numel());
    let source = call.tensor_named("source");
    let fits = |source: &Tensor| source.ndim() == self_.ndim() && source.shape()[dim] == count;
    if index.ndim() > 1 || index.dtype() != DType::I64 || !source.is_none_or(fits) {
        return one_by_one(call);
    }
    let places = counted(&call.front(index)?.reshape(&[size, count])?)?;
    if are_outside(&places, rows)? {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let at = dim as i64;
    let joined = |t: &Tensor| call.front(t)?.movedim_int(0, at)?.flatten(at, at + 1);
    let mut values = Values::given(call);
    values.set_subject(joined(self_)?);
    values.set("dim", at);
    let first = examples(size, 1)?.mul(&Tensor::wrapped(rows)?)?;
    values.set("index", places.add(&first)?.reshape(&[size * count])?);
    if let Some(source) = source {
        values.set("source", joined(source)?);
    }
    let result = values.call()?.one();
    call.finish(&result.unflatten(at, &[size, rows])?.movedim_int(at, 0)?)
}

/// Whether an index is not in `0..size`.
pub(super) fn are_outside(indices: &Tensor, size: i64) -> Result<bool> {
    let below = indices.lt(&Tensor::wrapped(0_i64)?)?;
    is_any_true(&below.logical_or(&indices.ge(&Tensor::wrapped(size)?)?)?)
}

/// Indices that are counted from the start, of such as may be counted from the end if they are negative.
pub(super) fn from_start(indices: &Tensor, size: i64) -> Result<Tensor> {
    let negative = indices.lt(&Tensor::wrapped(0_i64)?)?;
    negative.where_self(&indices.add(&Tensor::wrapped(size)?)?, indices)
}

/// The rule of `take`: indices into the flattened examples.
pub(crate) fn take(call: &BatchedCall<'_>, self_: &Tensor, index: &Tensor) -> Result<Outcome> {
    let flat = call.front(self_)?.reshape(&[call.size, self_.numel()])?;
    let positions = call.front(index)?.reshape(&[call.size, index.numel()])?;
    // (`gather` takes no indices from the end.)
    let positions = from_start(&positions, self_.numel())?;
    Ok(flat.gather(1, &positions)?.reshape(&behind(call.size, index.shape()))?.into())
}

/// The rule of `embedding`.
pub(crate) fn embedding(
    call: &BatchedCall<'_>,
    weight: &Tensor,
    indices: &Tensor,
) -> Result<Outcome> {
    let Some(physical) = call.physical(weight) else { return super::pass(call) };
    if weight.ndim() != 2 {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let rows = weight.shape()[0];
    let all = physical.flatten(0, 1)?;
    let positions = shifted_rows(call, indices, rows)?;
    Ok(all.index(&[Some(positions)])?.into())
}

/// The rule of embedding bags and their gradient: for a batch of tables (or of gradients) with shared bags, the columns
/// of all examples are concatenated; other calls run for one example after the other.
pub(crate) fn bags(call: &BatchedCall<'_>, table: &Tensor) -> Result<Outcome> {
    let mut batched = 0;
    crate::dispatch::each_tensor(call.args, |tensor| {
        batched += usize::from(call.is_batched(tensor));
    });
    let physical = call.physical(table).filter(|_| batched == 1 && table.ndim() == 2);
    let Some(physical) = physical else { return one_by_one(call) };
    let (size, rows, width) = (call.size, table.shape()[0], table.shape()[1]);
    let mut given = Values::given(call);
    given.set_subject(physical.transpose(0, 1)?.reshape(&[rows, size * width])?);
    let apart = |result: &Tensor| match *result.shape() {
        [count, _] => result.reshape(&[count, size, width])?.transpose(0, 1),
        _ => result.unsqueeze(0)?.expand(&behind(size, result.shape()), false),
    };
    let apart: TensorVec = given.call()?.tensors().iter().map(apart).collect::<Result<_>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(apart)))
}

/// Refuses indices of any example that are not in `0..size`: in the concatenated rows of all examples they would be
/// rows of another example.
fn check_in_range(indices: &Tensor, size: i64) -> Result<()> {
    ensure!(!are_outside(indices, size)?, index, "index out of range in self");
    Ok(())
}

/// The indices of rows in the concatenated tables of all examples.
fn shifted_rows(call: &BatchedCall<'_>, indices: &Tensor, rows: i64) -> Result<Tensor> {
    check_in_range(indices, rows)?;
    let first = examples(call.size, indices.ndim())?.mul(&Tensor::wrapped(rows)?)?;
    call.front(indices)?.add(&first)
}

/// The rule of the gradient of `embedding` with respect to its table.
pub(crate) fn embedding_backward(
    call: &BatchedCall<'_>,
    grad_output: &Tensor,
    indices: &Tensor,
    num_weights: i64,
    padding_idx: i64,
) -> Result<Outcome> {
    let rows = num_weights;
    let mut values = Values::given(call);
    values.set("grad_output", call.front(grad_output)?);
    values.set("indices", shifted_rows(call, indices, rows)?);
    values.set("num_weights", rows * call.size);
    values.set("padding_idx", -1_i64);
    let all = values.call()?.one().unflatten(0, &[call.size, rows])?;
    if (0..rows).contains(&padding_idx) {
        all.select(1, padding_idx)?.zero_()?;
    }
    Ok(all.into())
}

/// The rule of `one_hot` with a given number of classes.
pub(crate) fn one_hot(call: &BatchedCall<'_>, num_classes: i64) -> Result<Outcome> {
    if num_classes < 0 { super::data_dependent(call) } else { super::pass(call) }
}

/// The rule of `bucketize` and `searchsorted`: boundaries (and their order) of each example are a row for the op `search`.
pub(crate) fn bucketize(
    call: &BatchedCall<'_>,
    boundaries: &Tensor,
    sorter: Option<&Tensor>,
    numbers: &Tensor,
    search: &'static OpDef,
) -> Result<Outcome> {
    let is_shared = !call.is_batched(boundaries) && !call.is_batched(sorter);
    if boundaries.ndim() == 1 && is_shared {
        return super::pass(call);
    }
    let fits = |sorter: &Tensor| sorter.shape() == boundaries.shape();
    let [lead @ .., _] = boundaries.shape() else { return one_by_one(call) };
    let is_row = lead.is_empty();
    let matches = numbers.ndim() == boundaries.ndim() && numbers.shape().starts_with(lead);
    if !(is_row || matches) || !sorter.is_none_or(fits) {
        return one_by_one(call);
    }
    let numbers_of_each = call.front(numbers)?;
    let mut values = Values::none(search);
    for name in ["out_int32", "right", "side"] {
        if let Some(given) = call.named(name) {
            values.set(name, Value::from_arg(given));
        }
    }
    values.set("sorted_sequence", call.front(boundaries)?);
    if let Some(sorter) = sorter {
        values.set("sorter", call.front(sorter)?);
    }
    let shape = behind(call.size, numbers.shape());
    let rows = behind(call.size, &[numbers.numel()]);
    values.set("self", if is_row { numbers_of_each.reshape(&rows)? } else { numbers_of_each });
    Ok(values.call()?.one().reshape(&shape)?.into())
}

/// The rule of `isin`: elements are looked up among those that all examples share in one call, else in their example's row,
/// which is sorted for the op `search`.
pub(crate) fn among(
    call: &BatchedCall<'_>,
    elements: &Tensor,
    test_elements: &Tensor,
    invert: bool,
    search: &'static OpDef,
) -> Result<Outcome> {
    if !call.is_batched(test_elements) {
        return super::pass(call);
    }
    let dtype = promote::result_type(&[elements, test_elements])?;
    let has_order = |t: &Tensor| t.dtype() != DType::Bool && !t.dtype().is_complex();
    if !has_order(elements) || !has_order(test_elements) {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let row = |t: &Tensor| call.front(t)?.to_dtype(dtype)?.reshape(&[call.size, t.numel()]);
    let (own, others) = (row(elements)?, row(test_elements)?);
    let shape = behind(call.size, elements.shape());
    let found = if test_elements.numel() == 0 {
        TensorSpec::beside(&own, own.shape()).computed_in(DType::Bool).zeros()?
    } else {
        let [sorted, _] = others.sort(1, false)?;
        let mut values = Values::none(search);
        values.set("sorted_sequence", sorted.clone());
        values.set("self", own.clone());
        values.set("out_int32", false);
        values.set("right", false);
        let last = Scalar::Int(test_elements.numel() - 1);
        sorted.gather(1, &values.call()?.one().clamp(None, Some(last))?)?.eq(&own)?
    };
    Ok(if invert { found.logical_not()? } else { found }.reshape(&shape)?.into())
}

/// The rule of `isin` of a number.
pub(crate) fn is_number_among(
    call: &BatchedCall<'_>,
    element: Scalar,
    test_elements: &Tensor,
    invert: bool,
) -> Result<Outcome> {
    let is_complex = matches!(element, Scalar::Complex(..)) || test_elements.dtype().is_complex();
    if is_complex || matches!(element, Scalar::Bool(_)) || test_elements.dtype() == DType::Bool {
        // (Refused as it is without batch.)
        return one_by_one(call);
    }
    let row = call.front(test_elements)?.reshape(&[call.size, test_elements.numel()])?;
    let found = row.eq(&Tensor::wrapped(element)?)?.any_dim(1, false)?;
    Ok(if invert { found.logical_not()? } else { found }.into())
}

/// The rule of `fill` with a number that all examples share.
pub(crate) fn fill_number(call: &BatchedCall<'_>, self_: &Tensor) -> Result<Outcome> {
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?);
    call.run(&values).map(Outcome::Batched)
}

/// The rule of `fill_diagonal_`: the same elements of every example are filled.
pub(crate) fn fill_diagonal(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    fill_value: Scalar,
    wrap: bool,
) -> Result<Outcome> {
    let target = call.target()?;
    let mask = TensorSpec::beside(self_, self_.shape()).computed_in(DType::Bool).zeros()?;
    mask.fill_diagonal_(Scalar::Bool(true), wrap)?;
    target.masked_fill_(&mask, fill_value)?;
    Ok(target.into())
}

/// The rule of `fill` with a batched value: every element of an example becomes its value.
pub(crate) fn fill(call: &BatchedCall<'_>, self_: &Tensor, value: &Tensor) -> Result<Outcome> {
    if value.ndim() != 0 {
        return one_by_one(call);
    }
    if !call.is_batched(value) {
        return fill_number(call, self_);
    }
    let filled = call
        .aligned(value, self_.ndim())?
        .to_dtype(self_.dtype())?
        .expand(&behind(call.size, self_.shape()), false)?
        .clone_tensor(None)?;
    call.finish(&filled)
}

/// The rule of `masked_fill` with a tensor of one element, which may be batched.
pub(crate) fn masked_fill(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    mask: &Tensor,
    value: &Tensor,
) -> Result<Outcome> {
    if value.ndim() != 0 {
        return one_by_one(call);
    }
    let rank = self_.ndim().max(mask.ndim());
    if !call.is_batched(value) {
        let mut values = call.values(&mut |_, tensor| call.aligned(tensor, rank))?;
        values.set("value", value.clone());
        return call.run(&values).map(Outcome::Batched);
    }
    let given = call.aligned(value, rank)?.to_dtype(self_.dtype())?;
    let filled = call.aligned(mask, rank)?.where_self(&given, &call.aligned(self_, rank)?)?;
    call.finish(&filled)
}

/// The rule of `_values_at`, which reads values at coordinates that all examples share.
pub(crate) fn values_at(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    indices: &Tensor,
) -> Result<Outcome> {
    let physical = call.front(self_)?;
    ensure!(
        !call.is_batched(indices) && !physical.is_sparse(),
        not_implemented,
        "vmap: _values_at of sparse tensors, or at coordinates of each example, is not supported"
    );
    // The batch is one dense dimension more, behind all others.
    let mut values = Values::given(call);
    values.set_subject(physical.movedim_int(0, -1)?);
    let found = values.call()?.one();
    Ok(found.movedim_int(-1, 0)?.into())
}

/// The rule of ops that make sparse tensors, which cannot be batched.
pub(crate) fn sparse_result(call: &BatchedCall<'_>) -> Result<Outcome> {
    bail!(
        not_implemented,
        "vmap: {}() makes a sparse tensor, and sparse tensors of a batch are not supported",
        call.def.name
    )
}
