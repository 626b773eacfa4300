//! Layers, optimisers and data for [`pullback`]: models with PyTorch's names, numbers and files.
//!
//! ```
//! use pullback_nn::prelude::*;
//!
//! #[derive(Module)]
//! struct Mlp {
//!     hidden: Linear,
//!     output: Linear,
//! }
//!
//! impl Forward for Mlp {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.output.forward(&self.hidden.forward(x)?.relu()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let model = Mlp { hidden: Linear::new(2, 8)?, output: Linear::new(8, 1)? };
//! let mut optimizer = SGD::new(&model, SGDOptions { lr: 0.1, ..Default::default() })?;
//! let (x, y) = (Tensor::randn([16, 2])?, Tensor::zeros([16, 1])?);
//! let loss = MSELoss::default().forward(&model.forward(&x)?, &y)?;
//! loss.backward()?;
//! optimizer.step()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Design
//!
//! - A [`Module`] shows its tensors by name, and nothing else: [`derive@Module`] derives that from
//!   the fields of a struct. Everything that is done with a model (parameters, state dicts, files,
//!   dtypes, devices) uses this one walk. The names and their order are PyTorch's, so that a state
//!   dict goes between Python and Rust.
//! - A tensor is a handle with identity: an optimiser holds handles of the parameters, and reading a state dict writes into
//!   them. So a model is borrowed by nobody while it is trained.
//! - [`Forward`] is the function of a module of one tensor, for [`nn::Sequential`]; a module of other arguments has a method of
//!   its own.
//! - A layer is made by `new` with what it must have, or by `with` and a struct of options that has a default.
//!   `options.tensors` says where its parameters lie, of which dtype they are and which generator they are drawn from.
//! - Initial values are drawn in the order in which PyTorch draws them: equal seeds give equal models
//!   (`crates/nn/tests/torch` compares recorded numbers).
//! - Optimisers gather lists and call the ops that the Python package calls, `pullback::ops::optim`.
//! - [`data::DataLoader`] gives batches in order, however many threads make them, and draws the numbers of PyTorch's.
//!
//! Start at [`module`]; then `nn` (layers, losses, initialisers), `optim`, `data`.

// The derive macro writes paths from the crate's root.
extern crate self as pullback_nn;

pub mod data;
pub mod module;
pub mod nn;
pub mod optim;

pub use module::{Forward, Module, StateDict};
pub use pullback_derive::Module;

/// The names that most programs use: `use pullback_nn::prelude::*;`. They include the prelude of
/// [`pullback`].
pub mod prelude {
    pub use crate::data::{DataLoader, DataLoaderOptions, Dataset, Progress, TensorDataset};
    pub use crate::nn::*;
    pub use crate::optim::*;
    pub use crate::{Forward, Module, StateDict};
    pub use pullback::prelude::*;
}

/// The programs of the page for users of Rust are compiled and run with the documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/rust.md")]
    struct Rust;
    #[doc = include_str!("../README.md")]
    struct Crate;
}
