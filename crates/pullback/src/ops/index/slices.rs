//! What ops that write whole slices ask of their arguments: `index_add`, `index_reduce` and `index_copy`.
//!
//! The first two take a source of as many dimensions as the target. `index_copy` takes a tensor without dimensions for
//! one of one dimension and one element, and refuses with other errors, in another order: both as PyTorch does.

use super::select::check_index_dtype;
use crate::error::{bail, ensure};
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, Dims, Result, Tensor};

/// Refuses what `index_add` and `index_reduce` cannot join: there is a slice of `source` for each place, of the shape of
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

/// Refuses a source without dimension `dim`, and one that has more or fewer slices along it than `index` has places. A
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
