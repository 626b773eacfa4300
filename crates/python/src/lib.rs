//! The Python binding of pullback: the extension module `pullback._C`.
//!
//! `raw` holds what needs CPython's type slots (the tensor class, the callables of ops, `Size`);
//! everything else is ordinary PyO3. `bind` and `convert` take a call to an op, `registry` makes the
//! functions and methods, `tensor` and `autograd` hold what is written by hand. This crate names no op.

#![allow(non_snake_case, reason = "the extension module is called _C, as PyTorch's is")]
#![allow(
    clippy::unused_self,
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    clippy::struct_excessive_bools,
    clippy::used_underscore_items,
    clippy::unsafe_removed_from_name,
    clippy::elidable_lifetime_names,
    reason = "the form of these functions is given by Python's protocols, by PyTorch's signatures or by PyO3's macros"
)]
#![allow(
    clippy::large_enum_variant,
    clippy::vec_box,
    reason = "argument buffers live on the stack of one call; boxes keep their addresses"
)]
#![allow(
    clippy::match_same_arms,
    clippy::if_not_else,
    clippy::match_bool,
    clippy::single_match_else,
    reason = "tables of cases read in the order of PyTorch's rules"
)]

use pyo3::prelude::*;

#[cfg(not(pullback_sanitize))]
mod allocator;
mod autograd;
mod bind;
mod capture;
mod convert;
mod device;
mod dispatch_mode;
mod dtype;
mod error;
mod explain;
mod extension;
mod function_mode;
mod held;
mod host;
mod indexing;
mod interrupt;
mod io;
mod lock;
mod raw;
mod registration;
mod registry;
mod result;
mod setting;
mod step;
mod tensor;
mod thread_guard;
mod torch_dispatch;
mod torch_function;

// (A sanitizer watches the C library's allocator.)
#[cfg(not(pullback_sanitize))]
#[global_allocator]
static ALLOCATOR: allocator::Accounted = allocator::Accounted;

/// Lets the allocator take pages of ordinary size from the system: the huge ones it asks for otherwise are cleared as
/// a whole at their first touch, and a small program holds 5 MB more. `MIMALLOC_ALLOW_THP=1` brings them back.
fn take_ordinary_pages() {
    /// `mi_option_allow_thp` of the version that `Cargo.toml` names.
    const ALLOW_HUGE_PAGES: std::ffi::c_int = 43;
    // SAFETY: sets a number, before the first memory is taken.
    unsafe { libmimalloc_sys::mi_option_set_default(ALLOW_HUGE_PAGES, 0) };
}

#[pymodule]
fn _C(module: &Bound<'_, PyModule>) -> PyResult<()> {
    take_ordinary_pages();
    let py = module.py();
    pullback::binding::replaced::collect();
    lock::init(module)?;
    interrupt::init(module)?;
    raw::frame::init()?;
    host::init();
    raw::missing::init()?;
    explain::init(module)?;
    module.add("OutOfMemoryError", py.get_type::<error::OutOfMemoryError>())?;
    module.add("_LinAlgError", py.get_type::<error::LinAlgError>())?;
    module.add("_VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("_IS_DEBUG", cfg!(debug_assertions))?;
    module.add("has_lapack", true)?;
    module.add("has_spectral", true)?;
    module.add("has_mkl", false)?;
    module.add("has_mkldnn", false)?;
    module.add("has_openmp", false)?;
    raw::size::init()?;
    // SAFETY: a static type that lives forever.
    let size = unsafe { Bound::from_borrowed_ptr(py, raw::size::size_type().cast()) };
    module.add("Size", size)?;
    module.add_function(wrap_pyfunction!(raw::size::_make_size, module)?)?;
    dtype::init(module)?;
    raw::class::init(module)?;
    module.add_function(wrap_pyfunction!(raw::class::_set_tensor_class, module)?)?;
    raw::module::init(module)?;
    tensor::display::init(module)?;
    tensor::lazy::init(module)?;
    tensor::legacy::init(module)?;
    tensor::storage::init(module)?;
    tensor::weak::init(module)?;
    autograd::node::init(module)?;
    autograd::origin::init(module)?;
    autograd::engine::init(module)?;
    autograd::mode::init(module)?;
    autograd::forward::init(module)?;
    autograd::anomaly::init(module)?;
    autograd::autocast::init(module)?;
    autograd::profiler::init(module)?;
    autograd::saved::init(module)?;
    autograd::standard::init(module)?;
    autograd::transform::init(module)?;
    raw::context::init(module)?;
    raw::apply::init(module)?;
    raw::overridable::init(module)?;
    setting::init(module)?;
    step::init(module)?;
    capture::init(module)?;
    torch_function::init(module)?;
    torch_dispatch::init(module)?;
    device::init(module)?;
    dispatch_mode::init(module)?;
    function_mode::init(module)?;
    io::init(module)?;
    extension::init(module)?;
    thread_guard::init(module)?;
    registration::init(module)?;
    registry::init(module)
}
