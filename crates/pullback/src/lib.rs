//! Tensors with automatic differentiation: PyTorch's autograd system in Rust.
//!
//! ```
//! use pullback::prelude::*;
//! # fn main() -> pullback::Result<()> {
//! let x = Tensor::from([1.0_f32, 2.0, 3.0])?.with_grad()?;
//! let y = (&x * &x + 1.0).sum()?;
//! println!("{y}"); // tensor(17., grad_fn=<SumBackward0>)
//! y.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//!
//! let _off = no_grad(); // as long as the guard lives
//! x.i(1..)?.zero_()?;
//! assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Higher derivatives come from running a backward that is itself recorded, hooks see gradients on their way:
//!
//! ```
//! use pullback::{Tensor, autograd};
//! # fn main() -> pullback::Result<()> {
//! let x = Tensor::from([2.0])?.with_grad()?;
//! let y = x.mul(&x)?.mul(&x)?;
//! let options = autograd::BackwardOptions { create_graph: true, ..Default::default() };
//! let slope = autograd::grad(&[&y], &[&x], &[None], options)?.remove(0).unwrap();
//! let _guard = x.on_grad(|grad| (grad * 10.0).get())?; // as long as the guard lives
//! slope.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [120.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Functions with a derivative of their own: [`autograd::Function`]. Indexing: [`Tensor::i`] and [`index`].
//!
//! Layers, each using only those before it: `tensor` (memory, shapes, dtypes), `dispatch` (calling ops),
//! `autograd` (recording and running backwards), `ops` (the ops themselves, one place each). Start at
//! [`Tensor`]; ARCHITECTURE.md follows one line of user code through the files.

/// The programs in Rust of the README are compiled and run with the documentation tests (those of `docs/rust.md` by `crates/nn`).
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct Crate;
}

// The macro writes paths from the crate's root; these names are what the paths resolve to.
extern crate self as pullback;

pub mod autograd;
pub mod binding;
pub mod call_site;
pub mod capture;
pub mod custom;
pub mod dispatch;
pub mod dlpack;
mod error;
mod generator;
pub mod gradcheck;
pub mod host;
pub mod interrupt;
pub mod io;
mod layers;
mod local;
pub mod ops;
pub mod prof;
pub mod tensor;
mod warning;

pub use autograd::autocast::autocast;
pub use autograd::func;
pub use autograd::{enable_grad, inference_mode, is_grad_enabled, no_grad};
pub use error::{Error, ErrorKind, Result};
pub use generator::{Generator, default_generator, manual_seed};
pub use ops::creation::{Sizes, TensorData, TensorOptions};
pub use ops::{index::subscript as index, pointwise::chain::Chain, pointwise::operator::Computed};
pub(crate) use pullback_kernels::sync;
pub use pullback_kernels::{BC32, Bool, C32, C64, C128, DType, Element, Scalar, bf16, f16};
pub use pullback_macros::custom_op as op;
pub use tensor::display::{PrintOptions, print_options, set_print_options};
pub use tensor::{
    AbsentDevice, Device, Dims, Layout, MemoryFormat, Storage, Tensor, TensorSpec, memory,
};
pub use tensor::{current_device, device_count, set_current_device, simulate_devices};
pub(crate) use warning::warn;
pub use warning::{is_warn_always, set_warn_always, set_warning_handler, take_warnings};

/// The names that most programs use: `use pullback::prelude::*;`.
pub mod prelude {
    pub use crate::{Chain, DType, Device, Result, Tensor, no_grad};
}

/// The instruction set that kernels use. The environment variable `PULLBACK_CPU` (`generic`, `avx2`, `avx512`, `amx`)
/// lowers it for a whole process.
pub mod cpu {
    use crate::Result;
    pub use pullback_kernels::simd::SimdLevel;

    /// The instruction set in use: the machine's highest, or what `PULLBACK_CPU` lowers it to. (With `avx512`
    /// kernels use no tiles, with `amx` they may; the level is the same.)
    ///
    /// # Errors
    /// A value error if the variable has another word than those four.
    pub fn capability() -> Result<SimdLevel> {
        Ok(pullback_kernels::simd::capability()?)
    }
}

/// Threads that a large kernel, and a backward with large branches, may use.
pub mod threads {
    pub use crate::autograd::engine::{Branches, set_branches};
    pub use pullback_kernels::parallel::{num_threads, set_num_threads};
}
