//! The raw module: everything that needs CPython's type slots instead of PyO3's classes.
//!
//! [`object`] is the life of a tensor's wrapper, [`class`] the types `TensorBase` and its metaclass,
//! [`storage`] the life of a storage's object, [`size`] the tuple type of shapes, [`callable`] the function and method objects of ops, `array`
//! `NumPy`'s arrays, [`context`] and [`apply`] those of custom functions, [`frame`] where the program is, [`tracer`] calls of Python functions, [`mode`] the
//! contexts of `no_grad` and its like, [`overridable`] functions of Python that types and modes may override, [`module`] the call of modules, [`missing`] names that modules lack, [`keyword`] which keyword was meant,
//! [`entry`] the way from C calls into Rust functions. Invariant: nothing here unwinds into C, and every
//! pointer to a wrapper was checked by type before its fields are read. Start at [`object`].

pub(crate) mod apply;
pub(crate) mod array;
pub(crate) mod asked;
pub(crate) mod callable;
pub(crate) mod class;
pub(crate) mod context;
pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod keyword;
mod line_table;
pub(crate) mod missing;
pub(crate) mod mode;
pub(crate) mod module;
pub(crate) mod number;
pub(crate) mod object;
pub(crate) mod overridable;
pub(crate) mod size;
pub(crate) mod storage;
pub(crate) mod tracer;
