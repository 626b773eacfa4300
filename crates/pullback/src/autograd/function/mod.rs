//! Nodes that are no op's: functions with derivatives of their own, and a few that the library has itself.
//!
//! `custom` and `custom_jvp` say what becomes of the tensors that a user's functions give; `apply` and `closure` are such
//! functions in Rust; `standard` and `comm` are the library's own. Start at [`Function`].

mod apply;
mod closure;
pub mod comm;
pub mod custom;
pub mod custom_jvp;
pub mod standard;

pub use apply::{Context, Function, Tensors, apply, apply_one};
pub use closure::{Custom, Results};
