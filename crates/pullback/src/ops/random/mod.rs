//! Random numbers: PyTorch's, for the same seed.

pub mod factory;
pub(in crate::ops) mod fill;
pub(in crate::ops) mod range;
pub(in crate::ops) mod rejection;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[factory::OPS, fill::OPS, rejection::OPS];
