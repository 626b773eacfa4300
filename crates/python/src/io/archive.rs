//! `PyTorchFileReader` and `PyTorchFileWriter`: the container of checkpoints.

use super::file::{FileObject, WriteObject, checked};
use crate::convert::type_name;
use crate::error::raise;
use crate::tensor::storage::{storage_bytes, storage_object};
use pullback::io::zip::{Archive, ArchiveRecord, ArchiveWriter};
use pullback::io::{FileSource, ReadAt};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The newest version of the file format that is known.
const NEWEST: u64 = 10;

type AnySource = Box<dyn ReadAt + Send>;
type AnyOutput = Box<dyn std::io::Write + Send>;

/// The archive, unless it is in use by another thread or by the file object that it calls: waiting
/// could then last for ever.
fn free<T>(archive: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    match archive.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err("the archive is in use")),
    }
}

/// Reads an archive: of a file's name, or of an object with `read`, `seek` and `tell`, from its position on.
#[pyclass(module = "torch._C", frozen)]
pub(crate) struct PyTorchFileReader {
    archive: Mutex<Archive<AnySource>>,
    folder: String,
}

impl PyTorchFileReader {
    fn archive(&self) -> PyResult<MutexGuard<'_, Archive<AnySource>>> {
        free(&self.archive)
    }
    fn record(&self, name: &str) -> PyResult<ArchiveRecord> {
        let full = format!("{}/{name}", self.folder);
        self.archive()?.find(&full).cloned().ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "PytorchStreamReader failed locating file {name}: file not found"
            ))
        })
    }
}

#[pymethods]
impl PyTorchFileReader {
    #[new]
    fn new(file: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source: AnySource = match file.cast::<PyString>() {
            Ok(name) => Box::new(checked(FileSource::open(Path::new(name.to_str()?)))?),
            Err(_) => Box::new(FileObject::new(file)?),
        };
        let archive = checked(Archive::open(source))?;
        let first = archive.records().first().map_or("", |record| record.name.as_str());
        let Some((folder, _)) = first.split_once('/') else {
            return Err(PyRuntimeError::new_err(format!(
                "PytorchStreamReader failed reading zip archive: file in archive is not in a subdirectory: {first}"
            )));
        };
        let folder = folder.to_owned();
        let reader = PyTorchFileReader { archive: Mutex::new(archive), folder };
        reader.check_version()?;
        Ok(reader)
    }
    /// Whether there is a record of this name.
    fn has_record(&self, name: &str) -> PyResult<bool> {
        let full = format!("{}/{name}", self.folder);
        Ok(self.archive()?.find(&full).is_some())
    }
    /// The bytes of a record.
    fn get_record<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let record = self.record(name)?;
        let bytes = checked(self.archive()?.read(&record))?;
        PyBytes::new_with(py, bytes.len(), |to| {
            to.copy_from_slice(&bytes);
            Ok(())
        })
    }
    /// The first bytes of a record as a storage.
    fn get_storage_from_record<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        nbytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let record = self.record(name)?;
        storage_object(py, checked(self.archive()?.read_storage(&record, nbytes))?)
    }
    /// Refuses a record that has fewer bytes than a storage needs.
    fn check_record_size(&self, name: &str, nbytes: u64) -> PyResult<()> {
        checked(self.record(name)?.check_size(nbytes))
    }
    /// Whether the bytes of a record are in the file as they are.
    fn is_record_stored(&self, name: &str) -> PyResult<bool> {
        self.record(name).map(|record| record.is_stored())
    }
    /// Where the bytes of a record begin.
    fn get_record_offset(&self, name: &str) -> PyResult<u64> {
        let record = self.record(name)?;
        checked(self.archive()?.start_of(&record))
    }
    /// Where the header of a record begins.
    fn get_record_header_offset(&self, name: &str) -> PyResult<u64> {
        self.record(name).map(|record| record.header)
    }
    /// The names of the records.
    fn get_all_records(&self) -> PyResult<Vec<String>> {
        let own = |record: &ArchiveRecord| {
            let rest = record.name.strip_prefix(self.folder.as_str())?;
            rest.strip_prefix('/').map(str::to_owned)
        };
        Ok(self.archive()?.records().iter().filter_map(own).collect())
    }
    /// The identity of this archive; empty if it has none.
    fn serialization_id(&self) -> PyResult<String> {
        if !self.has_record(".data/serialization_id")? {
            return Ok(String::new());
        }
        let record = self.record(".data/serialization_id")?;
        let bytes = checked(self.archive()?.read(&record))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned()) // bounded: by the record
    }
}

impl PyTorchFileReader {
    fn check_version(&self) -> PyResult<()> {
        let name = if self.has_record(".data/version")? { ".data/version" } else { "version" };
        if !self.has_record(name)? {
            return Ok(());
        }
        let record = self.record(name)?;
        let bytes = checked(self.archive()?.read(&record))?;
        let version = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
        match version {
            Some(1..=NEWEST) => Ok(()),
            Some(version) => Err(PyRuntimeError::new_err(format!(
                "Attempted to read a PyTorch file with version {version}, but the supported versions are 1 to {NEWEST}"
            ))),
            None => Err(PyRuntimeError::new_err(
                "PytorchStreamReader failed reading zip archive: its version is no number",
            )),
        }
    }
}

/// Writes an archive into a file, by its name, or into an object with `write`.
#[pyclass(module = "torch._C", frozen)]
pub(crate) struct PyTorchFileWriter {
    writer: Mutex<Option<ArchiveWriter<AnyOutput>>>,
}

impl PyTorchFileWriter {
    fn with<R>(
        &self,
        run: impl FnOnce(&mut ArchiveWriter<AnyOutput>) -> pullback::Result<R>,
    ) -> PyResult<R> {
        let mut writer = free(&self.writer)?;
        match writer.as_mut() {
            Some(writer) => checked(run(writer)),
            None => Err(PyRuntimeError::new_err("Writer has been finished already")),
        }
    }
}

#[pymethods]
impl PyTorchFileWriter {
    #[new]
    #[pyo3(signature = (file, compute_crc32=true, storage_alignment=64))]
    fn new(file: &Bound<'_, PyAny>, compute_crc32: bool, storage_alignment: u64) -> PyResult<Self> {
        let (output, folder): (AnyOutput, String) = match file.cast::<PyString>() {
            Ok(name) => {
                let path = Path::new(name.to_str()?);
                let stem = path
                    .file_stem()
                    .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()); // bounded: by the name
                (Box::new(BufWriter::new(create(path)?)), stem)
            }
            Err(_) => (Box::new(WriteObject::new(file)), "archive".to_owned()),
        };
        let writer =
            checked(ArchiveWriter::new(output, &folder, storage_alignment, compute_crc32))?;
        Ok(PyTorchFileWriter { writer: Mutex::new(Some(writer)) })
    }
    /// Adds a record: `size` bytes of `data`, which is bytes, text or a storage.
    fn write_record(&self, name: &str, data: &Bound<'_, PyAny>, size: usize) -> PyResult<()> {
        let write = |bytes: &[u8]| match bytes.get(..size) {
            Some(bytes) => self.with(|writer| writer.record(name, bytes)),
            None => Err(PyRuntimeError::new_err(format!(
                "record {name} should have {size} bytes, but only {} were given",
                bytes.len()
            ))),
        };
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return write(bytes.as_bytes());
        }
        if let Ok(text) = data.cast::<PyString>() {
            return write(text.to_str()?.as_bytes());
        }
        match storage_bytes(data) {
            Some(storage) => storage.with_bytes(write).map_err(raise)?,
            None => Err(PyTypeError::new_err(format!(
                "write_record(): argument 'data' must be bytes, str or a storage, not {}",
                type_name(data)
            ))),
        }
    }
    /// Adds a record of zeros, to be written over later.
    fn write_record_metadata(&self, name: &str, size: u64) -> PyResult<()> {
        self.with(|writer| writer.reserve(name, size)) // bounded: writes, and keeps nothing
    }
    /// Writes the directory; nothing can be added afterwards.
    fn write_end_of_file(&self) -> PyResult<()> {
        let writer = free(&self.writer)?.take();
        match writer {
            Some(writer) => checked(writer.finish().map(drop)),
            None => Ok(()),
        }
    }
    /// The names of the records so far.
    fn get_all_written_records(&self) -> PyResult<Vec<String>> {
        self.with(|writer| Ok(writer.names().map(str::to_owned).collect()))
    }
}

fn create(path: &Path) -> PyResult<File> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.is_dir()
    {
        let parent = parent.display();
        return Err(PyRuntimeError::new_err(format!("Parent directory {parent} does not exist.")));
    }
    File::create(path).map_err(|error| {
        PyRuntimeError::new_err(format!("File {} cannot be opened: {error}.", path.display()))
    })
}
