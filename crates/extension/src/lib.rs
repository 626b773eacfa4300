//! Ops of a library of its own, called by a program that has another copy of pullback.
//!
//! Rust has no stable ABI: a loaded library brings its own copy of `pullback`, with its own engine
//! and memory. So the interface has only what C can express: tensors by DLPack (no copy; the
//! caller's are only read, and no result shares memory with one), and bytes for everything else.
//! Histories are not passed. The caller's engine requests derivatives as a [`Program`]: an op, to
//! which `vjp`, `jvp` and `vmap` are applied any number of times. It is evaluated wholly inside of
//! the library, by the op's own rules, and each application is again a function of tensors: a
//! second derivative is the `vjp` of a `vjp`. The price is that a backward computes the op once
//! more.
//!
//! `program` describes a computation, `abi` the interface, [`guest`] is the library's side (a
//! [`Library`] in a `static`), [`host`] the caller's. Invariant: no panic crosses the interface,
//! and memory is released by the side that allocated it.

mod abi;
pub mod guest;
pub mod host;
mod program;
#[cfg(unix)]
pub mod python;
mod run;

pub use abi::Table;
pub use guest::Library;
pub use program::{Given, Program, Step};

/// Makes the crate, a `cdylib`, a library that `torch.ops.load_library` takes: `library!("mymath", [KEPLER])` shows the op `KEPLER`
/// of the crate as `torch.ops.mymath.kepler`. On Unix a copy of the library under the name `mymath.so` can also be imported: it is
/// a module of Python whose functions are the ops.
#[macro_export]
macro_rules! library {
    ($namespace:literal, [$($op:path),+ $(,)?]) => {
        /// The function that a program calls after loading the library.
        #[unsafe(no_mangle)]
        pub extern "C" fn pullback_extension_table() -> &'static $crate::Table {
            static LIBRARY: $crate::Library = $crate::Library::new($namespace, &[$(&$op),+]);
            LIBRARY.table()
        }

        /// What Python's `import` asks for.
        #[cfg(unix)]
        #[unsafe(export_name = concat!("PyInit_", $namespace))]
        pub extern "C" fn pullback_extension_definition() -> *mut ::std::ffi::c_void {
            $crate::python::definition(pullback_extension_table())
        }
    };
}
