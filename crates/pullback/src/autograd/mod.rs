//! Differentiation: the graph, running it backwards, recording, forward mode, batches.
//!
//! The life of a recorded op: `call` begins it, `record` makes a node with what its rules need (`saved`) and hangs the outputs
//! onto it (`variable::history`); `engine` later runs nodes in reverse order and adds to `.grad`. Nothing here names an op,
//! except `arithmetic`, which has the few that the engine itself needs.
//!
//! The modules in reading order; each uses only those before it, but for `arithmetic`, whose ops are calls again
//! (`cargo xtask tidy` has the list, down to the files, and checks it):
//!
//! | module | what |
//! |---|---|
//! | `thread` | what a thread works under: modes, levels of forward mode and of `vmap`, hooks on saved tensors, observers of writes, dispatch modes, autocast; and all of it for another thread |
//! | `arithmetic` | the ops that the engine needs |
//! | `graph` | nodes and edges, their counted pointer, numbers, hooks; a leaf's accumulator; what errors say of nodes |
//! | `variable` | what a tensor keeps: history, views and their replays, tangents, `.grad` and hooks |
//! | `saved` | what nodes save, and how it comes back |
//! | `cycle` | leaves held by their own gradients alone |
//! | `engine` | running a graph: rules, hooks, accumulation, one execution, threads of devices |
//! | `batch` | batched tensors: what `vmap` is made of |
//! | `rebase` | the history of what was written to in place |
//! | `record` | the node of an op |
//! | `needs` | whether derivatives may be wanted |
//! | `call` | where calls of ops begin, and the layer that records |
//! | `each` | one op for each row of parallel lists |
//! | `api` | `backward`, `grad` |
//! | `checkpoint`, `multi_hook` | values computed again instead of kept; hooks on the gradients of several tensors |
//! | `forward` | forward mode: dual tensors, the derivative of an op in a direction |
//! | `view_func` | views undone |
//! | `function` | functions with derivatives of their own |
//! | `transform`, `func` | transforms of functions, over closures |
//! | `cast`, `outside`, `torch_dispatch` | layers of calls: autocast, the profiler, `__torch_dispatch__` |
//!
//! Start at `graph::node`, then `engine`; for forward mode at `forward`.

mod api;
mod arithmetic;
pub mod batch;
mod call;
pub(crate) mod cast;
mod checkpoint;
pub mod cycle;
mod each;
pub mod engine;
pub mod forward;
pub mod func;
mod function;
mod graph;
mod multi_hook;
mod needs;
pub(crate) mod outside;
mod rebase;
mod record;
mod saved;
mod thread;
pub mod torch_dispatch;
pub mod transform;
mod variable;
mod view_func;

pub use api::{BackwardOptions, backward, check_start, grad, grad_of_edges, implicit_start, start};
pub(crate) use call::layer;
pub use call::{call, call_inplace, call_out, is_unchanged};
pub use checkpoint::checkpoint;
pub(crate) use each::{call_each, write_each};
pub use engine::masked::{MaskedZeros, masked_zeros};
pub(crate) use forward::pushforward::Pushforward;
pub use function::{Context, Custom, Function, Results, Tensors, apply, apply_one};
pub use function::{comm, custom, custom_jvp, standard};
pub use graph::blame::origins;
pub(crate) use graph::blame::refused_resize;
pub use graph::creation::{CreationGuard, NodeCreationHook, node_creation_hook};
pub use graph::input_meta::InputMeta;
pub(crate) use graph::node::keeps_tensors;
pub(crate) use graph::node::{AccumulatorSlot, op_name};
pub use graph::node::{Backward, Edge, Node, SavedTensor, WeakNode};
pub use graph::sequence::peek_sequence_nr;
pub(crate) use graph::sequence::thread_number;
pub use graph::{anomaly, creation, hook};
pub use multi_hook::{on_first_grad, on_grads};
pub(crate) use needs::{needs_derivative_of, needs_ops, needs_ops_to_read};
pub(crate) use record::RefusedEdges;
pub use saved::SavedCount;
pub use saved::tensor::{freed, freed_before_hooks};
pub use thread::autocast::{AutocastGuard, no_autocast};
pub(crate) use thread::level::is_open as is_level_open;
pub use thread::mode::{enable_grad, inference_mode, is_grad_enabled, no_grad};
pub use thread::saved_hooks::{Packed, SavedTensorHooks, saved_tensors_hooks};
pub use thread::{autocast, dispatch_mode, mode, saved_hooks, writes};
pub use variable::guard::{HookGuard, HookResult};
pub use variable::meta::AutogradMeta;
pub use variable::replay::Visitor;
pub(crate) use variable::view::check_inplace;
