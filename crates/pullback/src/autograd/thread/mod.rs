//! The state of a thread that autograd depends on: its modes, and its stacks of hooks, observers and dispatch modes.
//!
//! Nothing here knows of graphs. Each module keeps its part of the state, and shows by a bit of [`mode`]'s word or by a
//! dispatch key whether it is in use, so that an op which does not need it reads nothing else. [`state`] takes all of it to
//! another thread. Start at [`mode`].

pub mod autocast;
pub(in crate::autograd) mod captured;
pub(in crate::autograd) mod creation_hooks;
pub mod dispatch_mode;
pub(in crate::autograd) mod level;
pub mod mode;
pub mod saved_hooks;
pub(in crate::autograd) mod state;
pub(in crate::autograd) mod vmap;
pub mod writes;
