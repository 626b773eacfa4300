//! New tensors.

pub(in crate::ops) mod copy;
mod data;
pub mod factory;
pub(in crate::ops) mod like;
mod options;
pub mod spaced;
pub(in crate::ops) mod triangle;

pub use data::TensorData;
pub use options::{Sizes, TensorOptions};

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] =
    &[copy::OPS, factory::OPS, like::OPS, spaced::OPS, triangle::OPS];
