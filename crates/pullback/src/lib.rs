//! Tensors with automatic differentiation: PyTorch's autograd system in Rust.
//!
//! ```
//! use pullback::Tensor;
//! # fn main() -> pullback::Result<()> {
//! let x = Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?.with_grad()?;
//! let y = x.mul(&x)?.sum(None)?;
//! y.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Layers, each using only those before it: `tensor` (memory, shapes, dtypes), `dispatch` (calling ops),
//! `autograd` (recording and running backwards), `ops` (the ops themselves, one place each). Start at
//! [`Tensor`]; ARCHITECTURE.md follows one line of user code through the files.

// The macro writes paths from the crate's root; these names are what they mean.
extern crate self as pullback;

pub mod autograd;
pub mod binding;
pub mod dispatch;
mod error;
mod generator;
pub mod gradcheck;
pub mod ops;
pub mod tensor;
mod warning;

pub use autograd::{enable_grad, inference_mode, is_grad_enabled, no_grad};
pub use error::{Error, ErrorKind, Result};
pub use generator::{Generator, default_generator, manual_seed};
pub use ops::{indexing as index, operator::Computed};
pub use pullback_kernels::{Bool, C64, C128, DType, Element, Scalar, bf16, f16};
pub use tensor::display::{PrintOptions, print_options, set_print_options};
pub use tensor::{Device, Dims, Layout, MemoryFormat, Storage, Tensor, TensorSpec, memory};
pub(crate) use warning::warn;
pub use warning::{set_warning_handler, take_warnings};

/// Threads that a large kernel may use.
pub mod threads {
    pub use pullback_kernels::parallel::{num_threads, set_num_threads};
}
