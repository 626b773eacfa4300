//! The sources that bytes are read from: memory, files, or objects of a language binding.

use crate::Result;
use crate::error::{Error, ensure};
use pullback_kernels::memory;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that can be read from any place on.
pub trait ReadAt {
    /// The number of bytes.
    fn size(&self) -> u64;
    /// Fills `into` with the bytes from `position` on. The caller has compared with [`ReadAt::size`], so that they exist.
    ///
    /// # Errors
    /// Those of reading the file, or of the object that holds the bytes.
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<()>;

    /// `count` bytes from `position` on. Nothing is allocated for bytes that are not there.
    ///
    /// # Errors
    /// `RuntimeError` if they reach beyond the end; out of memory; those of [`ReadAt::read_at`].
    fn bytes_at(&mut self, position: u64, count: u64) -> Result<Vec<u8>> {
        let is_inside = position.checked_add(count).is_some_and(|end| end <= self.size());
        ensure!(
            is_inside,
            runtime,
            "bytes {position} to {position} + {count} are not inside a file of {} bytes",
            self.size()
        );
        let mut bytes = memory::filled(0_u8, count as usize)?;
        self.read_at(position, &mut bytes)?;
        Ok(bytes)
    }
}

impl ReadAt for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(self.len());
        let Some(bytes) = self[start..].get(..into.len()) else {
            return Err(Error::runtime(format!(
                "{} bytes at {position} reach beyond the end, {}",
                into.len(),
                self.len()
            )));
        };
        into.copy_from_slice(bytes);
        Ok(())
    }
}

impl<S: ReadAt + ?Sized> ReadAt for Box<S> {
    fn size(&self) -> u64 {
        (**self).size()
    }
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        (**self).read_at(position, into)
    }
}

/// A file that is read at any position.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    size: u64,
}

impl FileSource {
    /// Opens a file.
    ///
    /// # Errors
    /// `RuntimeError` with the name and the system's reason.
    pub fn open(path: &Path) -> Result<FileSource> {
        let file = File::open(path).map_err(|error| failed("open", path, &error))?;
        let size = file.metadata().map_err(|error| failed("read", path, &error))?.len();
        Ok(FileSource { file, size })
    }
}

impl ReadAt for FileSource {
    fn size(&self) -> u64 {
        self.size
    }
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        let outcome = self.file.seek(SeekFrom::Start(position));
        outcome.and_then(|_| self.file.read_exact(into)).map_err(|error| {
            Error::runtime(format!("cannot read {} bytes at {position}: {error}", into.len()))
        })
    }
}

/// The error of an operation on a named file.
pub(super) fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::runtime(format!("cannot {what} {}: {error}", path.display()))
}
