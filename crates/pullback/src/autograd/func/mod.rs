//! Transforms of functions, over closures: `grad`, `vjp`, `jvp`, `linearize`, `jacrev`, `jacfwd`, `hessian`, `vmap`,
//! `functionalize`.
//!
//! Each takes a function of tensors and gives what it computes of it at a point. They nest in any order, because what
//! they are made of does: inputs of a transform's own (`transform`), levels of forward mode, batched tensors (`batch`).
//! Names and meanings are those of PyTorch's `torch.func`; a function of several tensors is differentiated by all of them
//! with [`grads`], and by one of them by a closure that holds the others; [`vjps`], [`jvps`] and [`vmaps`] take functions of
//! several tensors that give several. Start with [`grad`].
//!
//! ```
//! use pullback::func::{Batched, grad, hessian, linearize, vmap};
//! use pullback::{Result, Tensor};
//!
//! fn loss(x: &Tensor) -> Result<Tensor> {
//!     x.mul(x)?.mul(x)?.sum()
//! }
//! # fn main() -> Result<()> {
//! let x = Tensor::from_slice(&[1.0, 2.0], &[2])?;
//! assert_eq!(grad(loss, &x)?.to_vec::<f64>()?, [3.0, 12.0]);
//! assert_eq!(hessian(loss, &x)?.to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
//!
//! // The gradient for each of three examples.
//! let batch = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
//! let each = vmap(|x| grad(loss, &x[0]), &[Batched::first(&batch)])?;
//! assert_eq!(each.to_vec::<f64>()?, [3.0, 12.0, 27.0, 48.0, 75.0, 108.0]);
//!
//! // Products of the Jacobian with any number of vectors, the function running once.
//! let (value, push) = linearize(Tensor::sin, &x.zeros_like()?)?;
//! assert_eq!(value.to_vec::<f64>()?, [0.0, 0.0]);
//! assert_eq!(push(&x)?.to_vec::<f64>()?, [1.0, 2.0]);
//! # Ok(())
//! # }
//! ```

mod basis;
mod batch;
mod forward;
mod functionalize;
mod reverse;

pub use batch::{Batched, Vmap, vmap, vmap_with, vmaps};
pub use forward::{hessian, jacfwd, jvp, jvps, linearize};
pub use functionalize::{Remove, functionalize};
pub use reverse::{
    grad, grad_and_value, grads, grads_and_value, jacrev, jacrev_by_chunks, vjp, vjps,
};
