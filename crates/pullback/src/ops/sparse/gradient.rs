//! Sparse gradients: of an embedding only the rows that were read, and of an op that selects elements only those elements.

use super::coordinates::{SparseElements, unravelled};
use crate::error::ensure;
use crate::tensor::shape::wrap_dim;
use crate::{DType, Dims, Result, Tensor};
use pullback_kernels::memory;

/// The gradient of `embedding` for its weight: a row for each index that was read, `padding_idx` left out (-1: none).
pub(crate) fn embedding_backward(
    grad: &Tensor,
    indices: &Tensor,
    weight_shape: &[i64],
    (padding_idx, scale_grad_by_freq): (i64, bool),
) -> Result<Tensor> {
    ensure!(
        !scale_grad_by_freq,
        runtime,
        "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
    );
    let mut rows = indices.reshape(&[-1])?.to_dtype(DType::I64)?;
    let mut values = grad.reshape(&[rows.numel(), weight_shape[1]])?;
    if padding_idx >= 0 {
        let kept = rows.ne(&Tensor::wrapped(padding_idx)?)?.nonzero()?.reshape(&[-1])?;
        rows = rows.index_select(0, &kept)?;
        values = values.index_select(0, &kept)?;
    }
    Tensor::sparse_coo(&rows.unsqueeze(0)?, &values, weight_shape, false)
}

/// The gradient of `gather` for its input: an element for each that was read.
pub(crate) fn gather_backward(
    grad: &Tensor,
    shape: &[i64],
    dim: i64,
    index: &Tensor,
) -> Result<Tensor> {
    let count = index.numel();
    if shape.is_empty() {
        // A number has no coordinates: it is the dense dimension of none.
        let indices = Tensor::empty_of(&[0, count], DType::I64)?;
        return Tensor::sparse_coo(&indices, &grad.reshape(&[count])?, shape, false);
    }
    let dim = wrap_dim(dim, shape.len())?;
    let own = if index.ndim() == 0 { Dims::from_slice(&[1]) } else { index.shape().into() };
    let numbers = memory::collect(0..count)?;
    let mut rows = unravelled(&numbers, &own)?;
    rows[dim] = index.to_vec::<i64>()?;
    let indices = super::coordinates::table(&rows, count as usize)?;
    Tensor::sparse_coo(&indices, &grad.reshape(&[count])?, shape, false)
}

/// The coalesced elements of a sparse gradient, and its values with history.
fn taken_apart(grad: &Tensor) -> Result<(SparseElements, Tensor)> {
    let elements = SparseElements::ordered(grad)?;
    let values = if grad.layout() == crate::Layout::SparseCoo {
        grad.coalesce()?.values()?
    } else {
        // (Values of compressed layouts lie in another order.)
        grad.to_sparse()?.values()?
    };
    Ok((elements, values))
}

/// A sparse tensor of `shape` with these coordinates and values, with history.
fn put_together(indices: &[Vec<i64>], values: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let indices = super::coordinates::table(indices, values.shape()[0] as usize)?;
    Tensor::sparse_coo(&indices, values, shape, false)
}

/// The gradient of `select`: `grad` at one index of one more dimension, zero elsewhere.
pub(crate) fn select_backward(
    grad: &Tensor,
    shape: &[i64],
    dim: i64,
    index: i64,
) -> Result<Tensor> {
    let (mut elements, mut values) = taken_apart(grad)?;
    let dim = wrap_dim(dim, shape.len())?;
    let at = if index < 0 { index + shape[dim] } else { index };
    if dim <= elements.sparse_dim() {
        elements.indices.insert(dim, memory::filled(at, elements.count())?);
    } else {
        let in_values = (dim - elements.sparse_dim()) as i64 + 1;
        let mut sizes = Dims::from_slice(values.shape());
        sizes.insert(in_values as usize, shape[dim]);
        values = values.select_backward(&sizes, in_values, at)?;
    }
    put_together(&elements.indices, &values, shape)
}

/// The gradient of `slice`: each element at the index from which it was taken.
pub(crate) fn slice_backward(
    grad: &Tensor,
    shape: &[i64],
    dim: i64,
    start: Option<i64>,
    step: i64,
) -> Result<Tensor> {
    let (mut elements, mut values) = taken_apart(grad)?;
    let dim = wrap_dim(dim, shape.len())?;
    let start = start.unwrap_or(0);
    let first = (if start < 0 { start + shape[dim] } else { start }).clamp(0, shape[dim]);
    if dim < elements.sparse_dim() {
        elements.indices[dim].iter_mut().for_each(|index| *index = first + *index * step);
    } else {
        let in_values = dim - elements.sparse_dim() + 1;
        let mut sizes = Dims::from_slice(values.shape());
        let end = first + (sizes[in_values] - 1).max(0) * step + 1;
        sizes[in_values] = shape[dim];
        values = values.slice_backward(&sizes, in_values as i64, Some(first), Some(end), step)?;
    }
    put_together(&elements.indices, &values, shape)
}

/// The gradient of `index_select`: each element at the index from which it was taken.
pub(crate) fn index_select_backward(
    grad: &Tensor,
    shape: &[i64],
    dim: i64,
    index: &Tensor,
) -> Result<Tensor> {
    let (mut elements, values) = taken_apart(grad)?;
    let at = wrap_dim(dim, shape.len())?;
    if at >= elements.sparse_dim() {
        let mut sizes = Dims::from_slice(values.shape());
        let in_values = at - elements.sparse_dim() + 1;
        sizes[in_values] = shape[at];
        let zeros = crate::TensorSpec::beside(&values, &sizes).zeros()?;
        let values = zeros.index_add(in_values as i64, index, &values)?;
        return put_together(&elements.indices, &values, shape);
    }
    let from = index.to_vec::<i64>()?;
    for coordinate in &mut elements.indices[at] {
        let index = from[*coordinate as usize];
        *coordinate = if index < 0 { index + shape[at] } else { index };
    }
    put_together(&elements.indices, &values, shape)
}
