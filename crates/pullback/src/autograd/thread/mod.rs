//! What a thread works under: its modes, and its stacks of what is turned on.
//!
//! Nothing here knows of graphs. Each module keeps what is the thread's, and says by a bit of [`mode`]'s word or by a dispatch
//! key whether there is anything, so that an op which nothing concerns looks at nothing else. [`state`] takes all of it to
//! another thread. Start at [`mode`].

pub mod autocast;
pub mod dispatch_mode;
pub(in crate::autograd) mod level;
pub mod mode;
pub mod saved_hooks;
pub(in crate::autograd) mod state;
pub(in crate::autograd) mod vmap;
pub mod writes;
