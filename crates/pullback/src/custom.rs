//! Ops of other crates: the names that an item of [`op`](macro@crate::op) expands to, besides those
//! of [`dispatch`](crate::dispatch).
//!
//! Such an op has all that the library's own have: it is recorded, saves what its rules name, has forms in place and with `out=`
//! where it says so, goes through forward mode, `vmap`, autocast, the profiler and meta tensors, and its errors name lines.
//!
//! ```
//! use pullback::custom::{Iter, KernelResult, map_real};
//! use pullback::gradcheck::{Tolerance, gradcheck};
//! use pullback::prelude::*;
//! use pullback::op;
//!
//! /// The cardinal sine, `sin(x) / x` for `x != 0`, element by element.
//! #[op("cardinal(Tensor self) -> Tensor", inplace, meta = float, batch = pointwise, jvp = elementwise, samples = unary_nonzero)]
//! impl Cardinal {
//!     fn cpu(iter: &mut Iter) -> KernelResult<()> {
//!         map_real(iter, "cardinal", |[x]: [f64; 1]| x.sin() / x)
//!     }
//!     fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
//!         ((grad * self_.cos() - grad * result) / self_).get()
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let x = Tensor::from([1.0, -2.0])?.with_grad()?;
//! let y = x.cardinal()?; // a method of the trait `CardinalMethods`
//! assert_eq!(y.grad_fn()?.unwrap().name(), "CardinalBackward0");
//! y.sum()?.backward()?;
//! gradcheck(&|x| Ok(vec![x[0].cardinal()?]), &[x], Tolerance::default())??;
//! # Ok(())
//! # }
//! ```
//!
//! [`op`](macro@crate::op) explains words and functions. What differs outside of this crate:
//!
//! - methods are those of a trait, `<Name>Methods`, which the module of the item has;
//! - `cpu = path` is a function of the caller's, `meta = word`, `samples = word` and `batch = word` are those of
//!   [`meta`], [`samples`] and [`batch`];
//! - `copy_of` and `sparse` are refused;
//! - a kernel is a function of an [`Iter`], element by element, or makes its result of what [`Tensor::to_vec`](crate::Tensor::to_vec)
//!   reads; an op may also be a `composite` of others.
//!
//! The names in this module, and those of [`dispatch`](crate::dispatch) that an expansion fills, keep their meaning within a minor version.

pub use crate::layers::LAYERS;
pub use crate::tensor::Cpu;
pub use pullback_kernels::Iter;
/// The result of a kernel that computes element by element.
pub use pullback_kernels::Result as KernelResult;
pub use pullback_kernels::elementwise::{map, map_real};

/// The specs of results: words of `meta`.
pub mod meta {
    pub use crate::ops::classes::meta::{broadcast, float, float_with_numbers, predicate, real};
}

/// Arguments for property tests: words of `samples`.
pub mod samples {
    pub use crate::ops::classes::samples::{
        binary, binary_first_nonzero, binary_nonzero, binary_positive, ternary, unary,
        unary_above_one, unary_nonzero, unary_positive, unary_unit,
    };
}

/// Batching rules: words of `batch`, beside `pointwise`; and the types of a rule `batch(call, ..)`
/// of an op's own.
pub mod batch {
    pub use crate::dispatch::batch::{BatchedCall, Outcome};
    pub use crate::ops::batch::{along, matrices, reduction};
}
