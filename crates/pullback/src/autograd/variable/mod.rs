//! What a tensor keeps for autograd, and what it is asked: history, views, tangents, gradient, hooks.
//!
//! In the order in which the modules build on each other. Nothing here runs a graph. Start at [`history`].

pub(in crate::autograd) mod detach;
pub(in crate::autograd) mod grad;
pub(in crate::autograd) mod history;
pub(in crate::autograd) mod meta;
pub(in crate::autograd) mod noted;
pub(in crate::autograd) mod refresh;
pub(in crate::autograd) mod replay;
pub(in crate::autograd) mod replayed;
pub(in crate::autograd) mod tangent;
pub(in crate::autograd) mod view;
pub(in crate::autograd) mod window;
