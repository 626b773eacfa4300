//! The Python binding of autograd: nodes, hooks, the engine's entry, custom functions, modes.

pub(crate) mod anomaly;
pub(crate) mod autocast;
pub(crate) mod context;
pub(crate) mod cycle;
pub(crate) mod engine;
pub(crate) mod forward;
pub(crate) mod function;
pub(crate) mod hook;
pub(crate) mod hook_dicts;
pub(crate) mod mode;
pub(crate) mod node;
pub(crate) mod origin;
pub(crate) mod profiler;
pub(crate) mod saved;
pub(crate) mod standard;
pub(crate) mod transform;
