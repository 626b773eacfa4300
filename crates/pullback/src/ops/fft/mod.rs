//! Discrete Fourier transforms.
//!
//! `X[k] = c sum_j x[j] exp(-2 pi i j k / n)` forward, with the opposite sign inverse; `norm` determines `c`.
//! Everything is made of three primitive ops, `_fft_c2c`, `_fft_r2c` and `_fft_c2r` (`primitive`), which have the
//! kernels, the gradients and the batching rules; the functions of `torch.fft` bring their input to the right dtype and
//! sizes first (`input`) and call these.

mod input;
pub(in crate::ops) mod many;
pub(in crate::ops) mod one;
pub(in crate::ops) mod primitive;
pub(in crate::ops) mod shift;
mod strides;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[primitive::OPS, one::OPS, many::OPS, shift::OPS];
