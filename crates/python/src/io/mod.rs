//! Files: the library's archives and its pickle machine over Python's files and objects.
//!
//! `archive` reads and writes the container of checkpoints through any object with `read` or `write`, `unpickle` runs pickles
//! by rules that the package gives (`pullback/_weights_only_unpickler.py`). What can be parsed is parsed by the library, so
//! that Rust programs read the same files.

mod archive;
mod file;
mod unpickle;

use pyo3::prelude::*;

/// Adds the classes and functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<archive::PyTorchFileReader>()?;
    module.add_class::<archive::PyTorchFileWriter>()?;
    module.add_function(wrap_pyfunction!(unpickle::_unpickle, module)?)?;
    module.add_function(wrap_pyfunction!(unpickle::_pickle_globals, module)?)?;
    module.add_function(wrap_pyfunction!(unpickle::_resolve_names, module)?)
}
