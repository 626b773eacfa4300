//! Python's files as bytes to read from and to write to.
//!
//! What is read goes through a block of Python's own: an object may keep the buffer that it was
//! given to fill.

use crate::error::{carry, raise};
use pullback::io::ReadAt;
use pullback::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// How many bytes are moved at once.
const BLOCK: usize = 1 << 22;

/// An object with `read`, `seek` and `tell`, and perhaps `readinto`, from its present position on.
pub(super) struct FileObject {
    object: Py<PyAny>,
    start: u64,
    size: u64,
    reads_into: bool,
    block: Option<Py<PyByteArray>>,
}

impl FileObject {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> PyResult<FileObject> {
        let start: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (0, 2))?;
        let end: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (start,))?;
        let reads_into = object.hasattr("readinto")?;
        let (size, object) = (end.saturating_sub(start), object.clone().unbind());
        Ok(FileObject { object, start, size, reads_into, block: None })
    }

    fn read_block(&mut self, py: Python<'_>, into: &mut [u8]) -> PyResult<usize> {
        let object = self.object.bind(py);
        if !self.reads_into {
            let data = object.call_method1("read", (into.len(),))?;
            let bytes = data.cast::<PyBytes>()?.as_bytes();
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            return Ok(count);
        }
        let block = match &self.block {
            Some(block) => block.bind(py).clone(),
            None => {
                let block = PyByteArray::new(py, &[]);
                block.resize(BLOCK.min(self.size as usize))?;
                self.block = Some(block.clone().unbind());
                block
            }
        };
        let view = py.import("builtins")?.getattr("memoryview")?.call1((&block,))?;
        let part = view.get_item(pyo3::types::PySlice::new(py, 0, into.len() as isize, 1))?;
        let count: Option<usize> = object.call_method1("readinto", (&part,))?.extract()?;
        let count = count.unwrap_or(0).min(into.len());
        // (The data is copied: the object may have kept the buffer, and write to it later.)
        let filled = view.get_item(pyo3::types::PySlice::new(py, 0, count as isize, 1))?;
        let bytes = filled.call_method0("tobytes")?;
        into[..count].copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
        Ok(count)
    }

    fn fill(&mut self, py: Python<'_>, position: u64, into: &mut [u8]) -> Result<()> {
        let seek = self.object.bind(py).call_method1("seek", (self.start + position,));
        seek.map_err(carry)?;
        let mut done = 0;
        while done < into.len() {
            let end = into.len().min(done + BLOCK);
            let count = self.read_block(py, &mut into[done..end]).map_err(carry)?;
            if count == 0 {
                return Err(Error::runtime(format!(
                    "PytorchStreamReader failed reading file: it ended after {done} of {} bytes at {position}",
                    into.len()
                )));
            }
            done += count;
        }
        Ok(())
    }
}

impl ReadAt for FileObject {
    fn size(&self) -> u64 {
        self.size
    }
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        Python::attach(|py| self.fill(py, position, into))
    }
}

/// An object with `write`.
pub(super) struct WriteObject(Py<PyAny>);

impl WriteObject {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> WriteObject {
        WriteObject(object.clone().unbind())
    }
    fn write_block(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<usize> {
        let written = self.0.bind(py).call_method1("write", (PyBytes::new(py, bytes),))?;
        // Unbuffered files may write less and return the number; others need not return anything.
        if written.is_none() {
            return Ok(bytes.len());
        }
        match written.extract::<usize>() {
            Ok(count) => Ok(count.min(bytes.len())),
            Err(_) => {
                let given = crate::convert::type_name(&written);
                Err(PyTypeError::new_err(format!("write() should return an int, not {given}")))
            }
        }
    }
}

impl std::io::Write for WriteObject {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let block = &bytes[..bytes.len().min(BLOCK)];
        let outcome = Python::attach(|py| self.write_block(py, block).map_err(carry));
        outcome.map_err(std::io::Error::other)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The Python exception of an outcome.
pub(super) fn checked<T>(outcome: Result<T>) -> PyResult<T> {
    outcome.map_err(raise)
}
