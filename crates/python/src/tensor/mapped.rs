//! Storages over files, and over shared memory, that Python has mapped.
//!
//! The map is an object of the module `mmap`, which the storage keeps alive. Which file a storage shows is known here, by the
//! storage's address, for as long as it lives.

use crate::error::raise;
use crate::held::Held;
use pullback::Storage;
use pullback::tensor::Keeper;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The files by the addresses where they lie: `None` for maps whose writes stay private.
static FILES: LazyLock<Mutex<HashMap<usize, Option<String>>>> = LazyLock::new(Mutex::default);

/// A map's memory, the map, and its position.
struct MappedFile {
    _bytes: PyUntypedBuffer,
    _map: Held,
    address: usize,
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        FILES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}

/// A storage over all of a map; `filename` is told of it if others see its writes.
pub(super) fn over(map: &Bound<'_, PyAny>, filename: Option<String>) -> PyResult<Storage> {
    let bytes = PyUntypedBuffer::get(map)?;
    if bytes.readonly() {
        return Err(PyBufferError::new_err("a storage needs memory that can be written to"));
    }
    let (address, length) = (bytes.buf_ptr() as usize, bytes.len_bytes());
    let keeper = MappedFile { _bytes: bytes, _map: Held::new(map.clone().unbind()), address };
    FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(address, filename);
    // SAFETY: the exported buffer of the map, which the keeper holds.
    unsafe { Storage::foreign(address as *mut u8, length, Keeper::new(keeper)) }.map_err(raise)
}

/// Moves the content of a storage to a map that other processes see.
pub(super) fn move_to(storage: &Storage, map: &Bound<'_, PyAny>) -> PyResult<()> {
    let bytes = PyUntypedBuffer::get(map)?;
    if bytes.readonly() || bytes.len_bytes() < storage.nbytes() {
        return Err(PyBufferError::new_err(format!(
            "a storage of {} bytes cannot be moved to a map of {} bytes",
            storage.nbytes(),
            bytes.len_bytes()
        )));
    }
    let address = bytes.buf_ptr() as usize;
    let keeper = MappedFile { _bytes: bytes, _map: Held::new(map.clone().unbind()), address };
    FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(address, None);
    // SAFETY: the exported buffer of the map, which the keeper holds.
    unsafe { storage.move_to(address as *mut u8, Keeper::new(keeper)) }.map_err(raise)
}

/// Whether a storage shows a file, or memory that was moved to where other processes see it.
pub(super) fn shows_file(storage: &Storage) -> bool {
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.contains_key(&(storage.data_ptr() as usize))
}

/// The file that a storage shows, unless its writes stay private.
pub(super) fn filename(storage: &Storage) -> Option<String> {
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.get(&(storage.data_ptr() as usize)).cloned().flatten()
}
