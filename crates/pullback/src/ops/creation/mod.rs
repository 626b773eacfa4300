//! New tensors.

pub(in crate::ops) mod copy;
pub mod factory;
pub(in crate::ops) mod like;
pub mod spaced;

use super::Family;

/// The families of this folder.
pub(super) static FAMILIES: &[Family] = &[copy::OPS, factory::OPS, like::OPS, spaced::OPS];
