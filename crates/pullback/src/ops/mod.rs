//! The ops, a family per file; the first item of each file is its table of contents.
//!
//! An op is one `#[op]` item: signature, shapes, kernel, rules, samples. Its functions must not keep
//! state and must not look at modes; what is the same for every op (broadcast gradients, casts, in-place
//! and `out=` forms, versions, views) is done by `dispatch` and `autograd`. Start at `arithmetic`.

pub(crate) mod batch;
pub(crate) mod classes;

mod activation;
mod activation_smooth;
mod antialias;
mod arithmetic;
mod attention;
mod bessel;
mod binary;
mod chunk_cat;
mod clamp;
mod combination;
mod compare;
mod conjugate;
mod contraction;
mod conv;
mod copy;
mod covariance;
pub mod creation;
mod creation_like;
pub mod creation_spaced;
mod diagonal;
mod difference;
mod distance;
mod divisor;
mod dropout;
pub mod einsum;
mod embedding;
mod extreme;
mod gradient;
mod grid;
mod grid_derivative;
mod hash;
pub mod histogram;
mod index;
pub mod indexing;
pub mod join;
mod linalg;
mod linalg_solve;
mod loss;
mod loss_class;
mod margin;
mod masked_index;
mod matmul;
mod mean;
mod membership;
pub mod mesh;
mod moment;
mod norm;
mod norm_backward;
mod norm_group;
mod norm_legit;
pub mod operator;
pub mod optim;
mod pad;
mod piece;
mod pixel;
mod polynomial;
mod pool;
mod position;
mod power;
mod quantile;
pub mod random;
mod random_fill;
mod random_range;
mod reduce;
mod reinterpret;
mod remainder;
mod rnn;
mod rnn_layer;
mod scan;
mod scatter;
mod scatter_reduce;
mod segment;
mod slices;
mod softmax;
mod sort;
pub(crate) mod sparse;
mod special;
mod special_alias;
mod split;
mod take_along;
mod ternary;
mod trigonometry;
mod truth;
mod unary;
mod vector_norm;
mod vector_product;
pub(crate) mod view;
mod view_copy;
mod view_scatter;
mod view_shape;

use crate::dispatch::OpDef;

/// One family.
type Family = &'static [&'static OpDef];

#[rustfmt::skip]
static FAMILIES: &[Family] = &[
    arithmetic::OPS,
    remainder::OPS,
    copy::OPS,
    creation::OPS,
    creation_like::OPS,
    creation_spaced::OPS,
    einsum::OPS,
    join::OPS,
    mesh::OPS,
    chunk_cat::OPS,
    matmul::OPS,
    contraction::OPS,
    view_shape::OPS,
    split::OPS,
    piece::OPS,
    reinterpret::OPS,
    index::OPS,
    embedding::OPS,
    take_along::OPS,
    masked_index::OPS,
    scatter::OPS,
    scatter_reduce::OPS,
    segment::OPS,
    pad::OPS,
    pixel::OPS,
    grid::OPS,
    antialias::OPS,
    sort::OPS,
    random::OPS,
    random_fill::OPS,
    conv::OPS,
    pool::OPS,
    optim::OPS,
    linalg::OPS,
    linalg_solve::OPS,
    reduce::OPS,
    binary::OPS,
    power::OPS,
    divisor::OPS,
    special::OPS,
    bessel::OPS,
    polynomial::OPS,
    special_alias::OPS,
    membership::OPS,
    clamp::OPS,
    compare::OPS,
    conjugate::OPS,
    ternary::OPS,
    trigonometry::OPS,
    truth::OPS,
    unary::OPS,
    mean::OPS,
    extreme::OPS,
    moment::OPS,
    vector_norm::OPS,
    activation::OPS,
    activation_smooth::OPS,
    softmax::OPS,
    attention::OPS,
    loss::OPS,
    loss_class::OPS,
    margin::OPS,
    scan::OPS,
    norm::OPS,
    norm_backward::OPS,
    norm_group::OPS,
    norm_legit::OPS,
    rnn::OPS,
    rnn_layer::OPS,
    dropout::OPS,
    view::OPS,
    sparse::coo::OPS,
    sparse::compressed::OPS,
    sparse::convert::OPS,
    sparse::joined::OPS,
    sparse::mask::OPS,
    sparse::product::OPS,
    sparse::reduce::OPS,
    combination::OPS,
    covariance::OPS,
    diagonal::OPS,
    difference::OPS,
    distance::OPS,
    gradient::OPS,
    hash::OPS,
    histogram::OPS,
    position::OPS,
    quantile::OPS,
    vector_product::OPS,
    view_copy::OPS,
    view_scatter::OPS,
];

/// Every op.
pub fn registry() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().flat_map(|family| family.iter().copied())
}
