//! Writing an archive from front to back: nothing is written twice, so that any stream will do.

use super::{
    CENTRAL, DESCRIPTOR, END, END_64, END_64_SIZE, EXTRA_64, IN_EXTRA, LOCAL, LOCAL_SIZE,
    LOCATOR_64,
};
use crate::Result;
use crate::error::{Error, ensure};
use std::collections::HashSet;
use std::io::Write;

/// The version of the file format that PyTorch writes.
const FORMAT: &[u8] = b"3\n";
/// The flags of each record: names are UTF-8; sizes and CRC follow the data.
const FLAGS: u16 = 1 << 11;
const HAS_DESCRIPTOR: u16 = 1 << 3;
/// The extra field that fills the distance to the next multiple of the alignment.
const FILLER: &[u8; 2] = b"FB";

/// Writes an archive.
pub struct ArchiveWriter<W> {
    out: W,
    folder: String,
    alignment: u64,
    computes_crc: bool,
    position: u64,
    entries: Vec<DirectoryEntry>,
    /// The names of the records.
    known: HashSet<String>,
    names: u64,
    contents: u32,
}

struct DirectoryEntry {
    name: String,
    header: u64,
    size: u64,
    crc: u32,
    flags: u16,
}

impl<W: Write> ArchiveWriter<W> {
    /// An archive whose records are in the folder `folder` (in none, if that is empty) and begin at multiples of `alignment` bytes.
    ///
    /// # Errors
    /// `ValueError` for an alignment of 0, or above 32768.
    pub fn new(
        out: W,
        folder: &str,
        alignment: u64,
        computes_crc: bool,
    ) -> Result<ArchiveWriter<W>> {
        ensure!(
            (1..=1 << 15).contains(&alignment),
            value,
            "the alignment of records must be from 1 to 32768 bytes, not {alignment}"
        );
        let folder = folder.to_owned();
        Ok(ArchiveWriter {
            out,
            folder,
            alignment,
            computes_crc,
            position: 0,
            entries: Vec::new(),
            known: HashSet::new(),
            names: 0xcbf2_9ce4_8422_2325,
            contents: 0,
        })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `RuntimeError` for a name that is there already or too long; those of the stream.
    pub fn record(&mut self, name: &str, data: &[u8]) -> Result<()> {
        let crc = if self.computes_crc { crc32fast::hash(data) } else { 0 };
        self.begin(name, data.len() as u64, crc)?;
        self.put(data)?;
        self.describe()
    }

    /// Adds a record of `size` zeros without a CRC, whose bytes are to be written by somebody later.
    ///
    /// # Errors
    /// As for [`ArchiveWriter::record`].
    pub fn reserve(&mut self, name: &str, size: u64) -> Result<()> {
        self.begin(name, size, 0)?;
        let zeros = [0_u8; 1 << 12];
        let mut left = size;
        while left > 0 {
            let count = left.min(zeros.len() as u64);
            self.put(&zeros[..count as usize])?;
            left -= count;
        }
        self.describe()
    }

    /// Adds the records at the end of a file of PyTorch (its version and an identity), and the
    /// directory; returns the stream.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn finish(mut self) -> Result<W> {
        self.record("version", FORMAT)?;
        let identity = self.identity();
        self.record(".data/serialization_id", identity.as_bytes())?;
        self.end()
    }

    /// Adds the directory; returns the stream.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn end(mut self) -> Result<W> {
        self.directory()?;
        self.out.flush().map_err(|error| cannot_write(&error))?;
        Ok(self.out)
    }

    /// 40 digits that depend on the names and the contents of the records.
    pub fn identity(&self) -> String {
        format!("{:020}{:020}", self.names, self.contents)
    }
    /// Whether there is a record of this name.
    pub fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }
    /// The names of the records, without the folder.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let skipped = if self.folder.is_empty() { 0 } else { self.folder.len() + 1 };
        self.entries.iter().map(move |entry| &entry.name[skipped..])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| cannot_write(&error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn begin(&mut self, name: &str, size: u64, crc: u32) -> Result<()> {
        let folder = &self.folder;
        let full = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        ensure!(!self.has(name), runtime, "Tried to serialize record {name} twice");
        let too_long = full.len() > usize::from(u16::MAX);
        ensure!(!too_long, runtime, "the name of a record has {} bytes", full.len());
        let flags = if size == 0 { FLAGS } else { FLAGS | HAS_DESCRIPTOR };
        let entry = DirectoryEntry { name: full, header: self.position, size, crc, flags };
        let extra = entry.extra();
        let start = self.position + LOCAL_SIZE + (entry.name.len() + extra.len() + 4) as u64;
        let padding = start.next_multiple_of(self.alignment) - start;
        let mut header = Vec::new();
        header.extend(LOCAL.to_le_bytes());
        header.extend(0_u16.to_le_bytes());
        header.extend(flags.to_le_bytes());
        // (Not compressed; no time; CRC and sizes follow the data.)
        header.extend([0; 18]);
        header.extend((entry.name.len() as u16).to_le_bytes());
        header.extend((extra.len() as u16 + 4 + padding as u16).to_le_bytes());
        header.extend(entry.name.as_bytes());
        header.extend(extra);
        header.extend(FILLER);
        header.extend((padding as u16).to_le_bytes());
        header.resize(header.len() + padding as usize, b'Z');
        self.put(&header)?;
        for byte in name.bytes() {
            // (FNV-1a.)
            self.names = (self.names ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.contents = self.contents.rotate_left(5) ^ crc;
        self.entries.push(entry);
        self.known.insert(name.to_owned());
        Ok(())
    }

    /// The descriptor that follows the data of the record that was begun last.
    fn describe(&mut self) -> Result<()> {
        let Some(DirectoryEntry { size, crc, header, .. }) = self.entries.last() else {
            return Ok(());
        };
        if *size == 0 {
            return Ok(());
        }
        let mut descriptor = Vec::new();
        descriptor.extend(DESCRIPTOR.to_le_bytes());
        descriptor.extend(crc.to_le_bytes());
        for _ in 0..2 {
            if is_wide(*size) || is_wide(*header) {
                descriptor.extend(size.to_le_bytes());
            } else {
                descriptor.extend((*size as u32).to_le_bytes());
            }
        }
        self.put(&descriptor)
    }

    fn directory(&mut self) -> Result<()> {
        let start = self.position;
        for at in 0..self.entries.len() {
            let entry = self.entries[at].directory_entry();
            self.put(&entry)?;
        }
        let (size, count) = (self.position - start, self.entries.len() as u64);
        let end_64 = self.position;
        let mut end = Vec::new();
        end.extend(END_64.to_le_bytes());
        end.extend((END_64_SIZE - 12).to_le_bytes());
        // Made by, and to be read by, versions 3.0 and 4.5; two numbers of disks.
        end.extend(0x031e_u16.to_le_bytes());
        end.extend(0x002d_u16.to_le_bytes());
        end.extend([0; 8]);
        for number in [count, count, size, start] {
            end.extend(number.to_le_bytes());
        }
        end.extend(LOCATOR_64.to_le_bytes());
        end.extend(0_u32.to_le_bytes());
        end.extend(end_64.to_le_bytes());
        end.extend(1_u32.to_le_bytes());
        end.extend(END.to_le_bytes());
        end.extend(0_u32.to_le_bytes());
        let short = count.min(u64::from(u16::MAX)) as u16;
        end.extend(short.to_le_bytes());
        end.extend(short.to_le_bytes());
        end.extend(narrowed(size).to_le_bytes());
        end.extend(narrowed(start).to_le_bytes());
        end.extend(0_u16.to_le_bytes());
        self.put(&end)
    }
}

impl DirectoryEntry {
    /// The extra field with the numbers that need 64 bits.
    fn extra(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        if is_wide(self.size) {
            numbers.extend([self.size, self.size]);
        }
        if is_wide(self.header) {
            numbers.push(self.header);
        }
        let mut extra = Vec::new();
        if !numbers.is_empty() {
            extra.extend(EXTRA_64.to_le_bytes());
            extra.extend((numbers.len() as u16 * 8).to_le_bytes());
            extra.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        extra
    }
    fn directory_entry(&self) -> Vec<u8> {
        let extra = self.extra();
        let mut entry = Vec::new();
        entry.extend(CENTRAL.to_le_bytes());
        entry.extend([0; 4]);
        entry.extend(self.flags.to_le_bytes());
        entry.extend([0; 6]);
        entry.extend(self.crc.to_le_bytes());
        entry.extend(narrowed(self.size).to_le_bytes());
        entry.extend(narrowed(self.size).to_le_bytes());
        entry.extend((self.name.len() as u16).to_le_bytes());
        entry.extend((extra.len() as u16).to_le_bytes());
        entry.extend([0; 10]);
        entry.extend(narrowed(self.header).to_le_bytes());
        entry.extend(self.name.as_bytes());
        entry.extend(extra);
        entry
    }
}

fn is_wide(number: u64) -> bool {
    number >= u64::from(IN_EXTRA)
}
fn narrowed(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(IN_EXTRA)
}

/// The error of a stream; one that carries an error of the library's is that error.
fn cannot_write(error: &std::io::Error) -> Error {
    let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    own.cloned()
        .unwrap_or_else(|| Error::runtime(format!("PytorchStreamWriter failed writing: {error}")))
}
