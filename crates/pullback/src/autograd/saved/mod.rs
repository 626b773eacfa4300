//! The values that nodes save for their rules, the forms into which hooks pack them, and how they are unpacked.
//!
//! In reading order: `packed`, `tensor`, `slot`, `inspect`. The types are part of a node (`graph::node`), which owns them and
//! is what they lead to. Start at [`tensor`].

mod inspect;
pub(in crate::autograd) mod packed;
pub(in crate::autograd) mod slot;
pub(in crate::autograd) mod tensor;

pub use inspect::SavedCount;
