//! The autograd state of a tensor and its queries: history, views, tangents, gradient, hooks.
//!
//! In reading order: `window`, `replay` and `layout` how a view is made of its base; `meta` what is seldom needed; `noted`
//! whose gradient has a history; `history` the producer; `detach` other handles; `replayed` and `refresh` a view's history after
//! a write to its base; `tangent`; `view` links and checks; `grad_dtype` and `grad`. Nothing here runs a graph. Start at [`history`].

pub(in crate::autograd) mod detach;
pub(in crate::autograd) mod grad;
pub(in crate::autograd) mod grad_dtype;
pub(in crate::autograd) mod guard;
pub(in crate::autograd) mod history;
pub(in crate::autograd) mod layout;
pub(in crate::autograd) mod meta;
pub(in crate::autograd) mod noted;
pub(in crate::autograd) mod refresh;
pub(in crate::autograd) mod replay;
pub(in crate::autograd) mod replayed;
pub(in crate::autograd) mod tangent;
pub(in crate::autograd) mod view;
pub(in crate::autograd) mod window;
