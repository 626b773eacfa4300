//! The tensor: a thin counted pointer to a record of geometry and autograd state.
//!
//! This folder knows memory, shapes and dtypes. It holds the fields that autograd needs (so that a
//! tensor is one allocation) but gives them no meaning. Invariants: a geometry that was ever shown
//! stays valid as long as the tensor (see `geometry`); flags and slots are changed only through
//! atomics and locks, so a `Tensor` may be used from any thread. Start at [`Tensor`].

mod access;
pub(crate) mod birth;
mod count;
mod data;
mod device;
pub mod display;
mod geometry;
mod key;
mod lock;
pub mod memory;
mod overlap;
pub mod promote;
mod raw;
pub mod replaced;
pub mod shape;
mod sparse;
mod spec;
mod storage;
pub(crate) mod uninitialized;
mod unresolved;
mod version;
pub(crate) mod watch;

pub use access::Cpu;
pub(crate) use count::Counts;
pub use device::{AbsentDevice, Device, Layout, MemoryFormat};
pub use device::{current_device, device_count, set_current_device, simulate_devices};
pub(crate) use geometry::*;
pub use geometry::{Dims, Geometry, contiguous_strides, dims_with};
pub(crate) use key::is_traced;
pub(crate) use key::{BACKENDS, SPARSE, UNRESOLVED};
pub use key::{Key, KeySet};
pub(crate) use lock::SpinLock;
pub(crate) use overlap::{
    are_apart, is_same_elements, overlaps_partly, overlaps_partly_resized, shares_elements,
    shares_memory, shares_storage,
};
pub(crate) use raw::Flag;
pub use raw::{Tensor, WeakTensor};
pub use sparse::{Compressed, Coo, Sparse};
pub use spec::TensorSpec;
pub(crate) use spec::strides_in;
pub(crate) use storage::Window;
pub use storage::{Keeper, Storage};
pub(crate) use unresolved::has_negatives;
pub(crate) use version::{Version, Write, Writer};
