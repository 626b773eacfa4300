//! The ops: a folder per area, a family per file; the first item of each file is its table of contents.
//!
//! An op is one `#[op]` item: signature, shapes, kernel, rules, samples. Its functions must not keep
//! state and must not look at modes; what is the same for every op (broadcast gradients, casts, in-place
//! and `out=` forms, versions, views) is done by `dispatch` and `autograd`. Start at `pointwise/arithmetic`.
//!

#![doc = include_str!("methods.md")]
#![forbid(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod classes;
pub mod creation;
pub mod fft;
pub mod foreach;
pub mod index;
pub mod linalg;
pub mod nn;
pub mod optim;
pub mod pointwise;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod signal;
pub(crate) mod sparse;

use crate::dispatch::OpDef;

/// The ops of one file.
type OpList = &'static [&'static OpDef];

static FOLDERS: &[&[OpList]] = &[
    creation::FAMILIES,
    random::FAMILIES,
    pointwise::FAMILIES,
    reduce::FAMILIES,
    shape::FAMILIES,
    index::FAMILIES,
    linalg::FAMILIES,
    fft::FAMILIES,
    signal::FAMILIES,
    nn::FAMILIES,
    foreach::FAMILIES,
    optim::FAMILIES,
    sparse::FAMILIES,
];

/// Every op.
pub fn registry() -> impl Iterator<Item = &'static OpDef> {
    FOLDERS.iter().flat_map(|families| families.iter().flat_map(|family| family.iter().copied()))
}
