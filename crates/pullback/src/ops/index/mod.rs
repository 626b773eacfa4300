//! Elements and slices at positions that tensors give, and sorting.

pub(in crate::ops) mod coordinate;
pub(in crate::ops) mod fill_diagonal;
pub(in crate::ops) mod masked;
pub(in crate::ops) mod membership;
pub(in crate::ops) mod plan;
pub(in crate::ops) mod scatter;
pub(in crate::ops) mod scatter_reduce;
pub(in crate::ops) mod segment;
pub(in crate::ops) mod select;
pub(in crate::ops) mod slices;
pub(in crate::ops) mod sort;
pub mod subscript;
pub(in crate::ops) mod take_along;

use super::OpList;
use crate::{Error, Result, Tensor};

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    select::OPS,
    take_along::OPS,
    masked::OPS,
    fill_diagonal::OPS,
    scatter::OPS,
    slices::OPS,
    scatter_reduce::OPS,
    segment::OPS,
    sort::OPS,
    membership::OPS,
    coordinate::OPS,
];

/// Refuses the floating dtypes of one byte for a kernel that takes `bcomplex32`, which is stored as they are.
fn refuse_narrow_floats(kernel: &str, tensor: &Tensor) -> Result<()> {
    let dtype = tensor.dtype();
    if !dtype.is_narrow_float() {
        return Ok(());
    }
    let name = dtype.scalar_name();
    Err(Error::not_implemented(format!("\"{kernel}\" not implemented for '{name}'")))
}
