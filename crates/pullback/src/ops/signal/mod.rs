//! Signals: windows, and the short-time Fourier transform.

pub(in crate::ops) mod stft;
pub(in crate::ops) mod window;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[window::OPS, stft::OPS];
