//! Signals: windows, and transforms of short pieces.

pub(in crate::ops) mod stft;
pub(in crate::ops) mod window;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[window::OPS, stft::OPS];
