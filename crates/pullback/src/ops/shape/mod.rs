//! Views, and tensors put together or cut apart: no element changes.

mod associated;
pub(in crate::ops) mod chunk_cat;
pub(in crate::ops) mod combination;
pub(in crate::ops) mod diagonal;
pub mod join;
pub mod mesh;
pub(in crate::ops) mod reinterpret;
pub(in crate::ops) mod split;
pub(in crate::ops) mod split_fixed;
pub(crate) mod view;
pub(in crate::ops) mod view_copy;
pub(in crate::ops) mod view_scatter;
pub(in crate::ops) mod view_shape;
pub(in crate::ops) mod view_spec;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    join::OPS,
    mesh::OPS,
    chunk_cat::OPS,
    view_shape::OPS,
    split::OPS,
    split_fixed::OPS,
    reinterpret::OPS,
    view::OPS,
    combination::OPS,
    diagonal::OPS,
    view_copy::OPS,
    view_scatter::OPS,
];
