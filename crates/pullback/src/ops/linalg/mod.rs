//! Products and decompositions of matrices.

pub(in crate::ops) mod contraction;
pub(in crate::ops) mod decomposition;
pub(in crate::ops) mod distance;
mod dot;
pub mod einsum;
pub(in crate::ops) mod equation;
pub(in crate::ops) mod general_eigen;
pub(in crate::ops) mod indefinite;
pub(in crate::ops) mod layout;
pub(in crate::ops) mod lu;
pub(in crate::ops) mod matmul;
mod matmul_form;
pub(in crate::ops) mod matrix_function;
pub(in crate::ops) mod matrix_norm;
pub(in crate::ops) mod orthogonal;
pub(in crate::ops) mod pseudo_inverse;
pub(in crate::ops) mod scaled_product;
pub(in crate::ops) mod solve;
pub(in crate::ops) mod triangular;
pub(in crate::ops) mod vector_norm;
pub(in crate::ops) mod vector_product;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    einsum::OPS,
    dot::OPS,
    matmul::OPS,
    matmul_form::OPS,
    contraction::OPS,
    decomposition::OPS,
    solve::OPS,
    vector_norm::OPS,
    distance::OPS,
    vector_product::OPS,
    triangular::OPS,
    lu::OPS,
    matrix_norm::OPS,
    general_eigen::OPS,
    pseudo_inverse::OPS,
    matrix_function::OPS,
    orthogonal::OPS,
    indefinite::OPS,
    equation::OPS,
    scaled_product::OPS,
];
