//! Products and decompositions of matrices.

pub(in crate::ops) mod contraction;
pub(in crate::ops) mod decomposition;
pub(in crate::ops) mod distance;
pub mod einsum;
pub(in crate::ops) mod matmul;
pub(in crate::ops) mod solve;
pub(in crate::ops) mod vector_norm;
pub(in crate::ops) mod vector_product;

use super::Family;

/// The families of this folder.
pub(super) static FAMILIES: &[Family] = &[
    einsum::OPS,
    matmul::OPS,
    contraction::OPS,
    decomposition::OPS,
    solve::OPS,
    vector_norm::OPS,
    distance::OPS,
    vector_product::OPS,
];
