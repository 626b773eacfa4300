//! The members of tensors in Python beyond the ops of the registry: construction, properties,
//! methods by hand, printing, arrays of other libraries.

pub(crate) mod construct;
pub(crate) mod conversion;
pub(crate) mod display;
pub(crate) mod dlpack;
pub(crate) mod hook;
pub(crate) mod lazy;
pub(crate) mod legacy;
mod mapped;
pub(crate) mod method;
pub(crate) mod numpy;
pub(crate) mod property;
pub(crate) mod storage;
mod view;
pub(crate) mod weak;
