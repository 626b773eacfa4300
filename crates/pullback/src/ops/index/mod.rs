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
