//! Reading an archive: its directory at once, records when they are asked for.

use super::{
    CENTRAL, CENTRAL_SIZE, END, END_64, END_64_SIZE, END_SIZE, EXTRA_64, IN_EXTRA, LOCAL,
    LOCAL_SIZE, LOCATOR_64, LOCATOR_64_SIZE, LittleEndian,
};
use crate::error::{Error, ensure};
use crate::io::ReadAt;
use crate::{Result, Storage};
use pullback_kernels::memory;
use std::collections::HashMap;

/// How many bytes of comment may follow the end record.
const COMMENT: u64 = u16::MAX as u64;
/// A deflated byte becomes at most so many (zlib's `deflate` reaches 1032 with runs of one byte).
const MOST_INFLATED: u64 = 1032;

/// The flag of encrypted entries.
const ENCRYPTED: u16 = 1;

/// An entry of the directory.
#[derive(Clone, Debug)]
pub struct ArchiveRecord {
    /// Its name, with the archive's folder.
    pub name: String,
    /// The position of its header.
    pub header: u64,
    /// The number of its bytes.
    pub size: u64,
    /// The number of bytes that it takes in the file.
    pub stored: u64,
    /// The CRC-32 of its bytes; 0 if the writer did not compute it.
    pub crc: u32,
    method: u16,
    flags: u16,
}

/// A ZIP archive.
#[derive(Debug)]
pub struct Archive<S> {
    source: S,
    records: Vec<ArchiveRecord>,
    by_name: HashMap<String, usize>,
    /// Where the directory begins: all data lies before it.
    directory: u64,
}

/// PyTorch's words for an archive that is none, with what is wrong with it.
fn failed(what: &str, detail: impl std::fmt::Display) -> Error {
    Error::runtime(format!(
        "PytorchStreamReader failed reading zip archive: {what} ({detail}). The file is likely corrupted: it was not \
         saved or transferred completely, or was modified afterwards."
    ))
}

/// The position of the directory, and the number of its entries.
struct Directory {
    start: u64,
    size: u64,
    count: u64,
}

impl<S: ReadAt> Archive<S> {
    /// Reads the directory.
    ///
    /// # Errors
    /// `RuntimeError` that begins with "`PytorchStreamReader` failed reading zip archive" if this is no archive, and for
    /// entries that cannot be: outside of the file, more bytes than it holds, names twice; those of the source.
    pub fn open(mut source: S) -> Result<Archive<S>> {
        let directory = find_directory(&mut source)?;
        let bytes = source.bytes_at(directory.start, directory.size)?;
        let records = read_directory(&bytes, &directory)?;
        let mut by_name = HashMap::new();
        let mut total = 0_u64;
        for (index, record) in records.iter().enumerate() {
            total = total.saturating_add(record.stored).saturating_add(LOCAL_SIZE);
            if by_name.insert(record.name.clone(), index).is_some() {
                return Err(failed("duplicate entry", format!("{:?}", record.name)));
            }
        }
        // Entries that share bytes would let a short file unfold into a long one.
        if total > directory.start {
            let room = directory.start;
            return Err(failed(
                "invalid header or archive is corrupted",
                format!(
                    "the entries take {total} bytes, but there are {room} before the directory"
                ),
            ));
        }
        Ok(Archive { source, records, by_name, directory: directory.start })
    }

    /// The entries in the order of the directory.
    pub fn records(&self) -> &[ArchiveRecord] {
        &self.records
    }
    /// The entry of this name, if there is one.
    pub fn find(&self, name: &str) -> Option<&ArchiveRecord> {
        self.by_name.get(name).map(|&index| &self.records[index])
    }
    /// The source that the archive is read from.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The position of the bytes of an entry.
    ///
    /// # Errors
    /// `RuntimeError` if its header is none, or its bytes would not be before the directory.
    pub fn start_of(&mut self, record: &ArchiveRecord) -> Result<u64> {
        let name = &record.name;
        let broken = |detail: String| failed("invalid header or archive is corrupted", detail);
        let after = record.header.checked_add(LOCAL_SIZE).filter(|&end| end <= self.directory);
        if after.is_none() {
            return Err(broken(format!("{name:?} has its header at {}", record.header)));
        }
        let mut header = [0_u8; LOCAL_SIZE as usize];
        self.source.read_at(record.header, &mut header)?;
        let fields = LittleEndian(&header);
        if fields.u32(0) != LOCAL {
            return Err(broken(format!("no header of {name:?} at {}", record.header)));
        }
        let skipped = LOCAL_SIZE + u64::from(fields.u16(26)) + u64::from(fields.u16(28));
        let start = record.header + skipped;
        match start.checked_add(record.stored) {
            Some(end) if end <= self.directory => Ok(start),
            _ => Err(broken(format!(
                "{name:?} should have {} bytes at {start}, but the directory begins at {}",
                record.stored, self.directory
            ))),
        }
    }

    /// All bytes of an entry, checked against their CRC-32 unless its writer left that out.
    ///
    /// # Errors
    /// Those of [`Archive::start_of`]; `RuntimeError` for bytes that are not those that were written, and for encrypted and
    /// unknown kinds of entries; out of memory.
    pub fn read(&mut self, record: &ArchiveRecord) -> Result<Vec<u8>> {
        let start = self.start_of(record)?;
        record.check_kind()?;
        let stored = self.source.bytes_at(start, record.stored)?;
        let bytes = if record.method == 0 { stored } else { record.inflated(&stored)? };
        record.check_crc(&bytes)?;
        Ok(bytes)
    }

    /// The first `bytes` bytes of an entry as a storage of their own. All are compared with the CRC-32, but other numbers than
    /// were saved are worth a warning only: programs write into the storages of a checkpoint in place.
    ///
    /// # Errors
    /// Those of [`Archive::read`], save for the CRC-32; `RuntimeError` if the entry is shorter.
    pub fn read_storage(&mut self, record: &ArchiveRecord, bytes: u64) -> Result<Storage> {
        record.check_size(bytes)?;
        if record.is_stored() && bytes == record.size {
            let start = self.start_of(record)?;
            record.check_kind()?;
            let source = &mut self.source;
            return Storage::filled(bytes as usize, |into| {
                source.read_at(start, into)?;
                if let Err(error) = record.check_crc(into) {
                    crate::warn(error.message().to_owned());
                }
                Ok(())
            });
        }
        let all = self.read(record)?;
        Storage::filled(bytes as usize, |into| {
            into.copy_from_slice(&all[..into.len()]);
            Ok(())
        })
    }
}

impl ArchiveRecord {
    /// Whether its bytes are in the file uncompressed.
    pub fn is_stored(&self) -> bool {
        self.method == 0 && self.flags & ENCRYPTED == 0
    }
    /// Refuses a record that has fewer bytes than a storage needs.
    ///
    /// # Errors
    /// `RuntimeError` with both sizes.
    pub fn check_size(&self, bytes: u64) -> Result<()> {
        ensure!(
            bytes <= self.size,
            runtime,
            "record {:?} has {} bytes, but a storage of {bytes} bytes was expected",
            self.name,
            self.size
        );
        Ok(())
    }
    fn check_kind(&self) -> Result<()> {
        ensure!(
            self.flags & ENCRYPTED == 0,
            runtime,
            "PytorchStreamReader cannot read record {:?}: it is encrypted",
            self.name
        );
        ensure!(
            matches!(self.method, 0 | 8),
            runtime,
            "PytorchStreamReader cannot read record {:?}: it is compressed by method {}, not stored or deflated",
            self.name,
            self.method
        );
        Ok(())
    }
    fn check_crc(&self, bytes: &[u8]) -> Result<()> {
        let crc = if self.crc == 0 { 0 } else { crc32fast::hash(bytes) };
        ensure!(
            crc == self.crc,
            runtime,
            "PytorchStreamReader failed reading file {:?}: its CRC-32 is {crc:08x}, but {:08x} was recorded. It was damaged \
             or modified after it was saved",
            self.name,
            self.crc
        );
        Ok(())
    }
    fn inflated(&self, stored: &[u8]) -> Result<Vec<u8>> {
        // (At its full length at once: a list that grows would need half as much again.)
        let mut bytes = memory::filled(0_u8, self.size as usize)?;
        let parts = std::iter::once(stored);
        match miniz_oxide::inflate::decompress_slice_iter_to_slice(&mut bytes, parts, false, true) {
            Ok(count) if count as u64 == self.size => Ok(bytes),
            outcome => Err(Error::runtime(format!(
                "PytorchStreamReader failed reading file {:?}: decompression gives {}, but {} bytes were recorded",
                self.name,
                outcome.map_or_else(|error| format!("{error:?}"), |count| format!("{count} bytes")),
                self.size
            ))),
        }
    }
}

fn find_directory<S: ReadAt>(source: &mut S) -> Result<Directory> {
    let size = source.size();
    let tail = size.min(END_SIZE + COMMENT);
    let first = size - tail;
    let bytes = source.bytes_at(first, tail)?;
    let signature = END.to_le_bytes();
    let position = (0..bytes.len().saturating_sub(END_SIZE as usize - 1))
        .rev()
        .find(|&at| bytes[at..].starts_with(&signature));
    let Some(position) = position else {
        let detail = format!("there is no end record in the last {tail} of {size} bytes");
        return Err(failed("failed finding central directory", detail));
    };
    let end = LittleEndian(&bytes[position..]);
    let mut found = Directory {
        start: u64::from(end.u32(16)),
        size: u64::from(end.u32(12)),
        count: u64::from(end.u16(10)),
    };
    let end_at = first + position as u64;
    if let Some(wide) = find_wide_end(source, end_at)? {
        found = wide;
    }
    let is_inside = found.start.checked_add(found.size).is_some_and(|after| after <= end_at);
    if !is_inside || found.count > found.size / CENTRAL_SIZE as u64 {
        let detail = format!(
            "a directory of {} entries in {} bytes at {} does not fit before {end_at}",
            found.count, found.size, found.start
        );
        return Err(failed("invalid header or archive is corrupted", detail));
    }
    Ok(found)
}

/// The 64-bit end record, which lies before the other if there is one.
fn find_wide_end<S: ReadAt>(source: &mut S, end_at: u64) -> Result<Option<Directory>> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR_64_SIZE) else { return Ok(None) };
    let locator = source.bytes_at(locator_at, LOCATOR_64_SIZE)?;
    let locator = LittleEndian(&locator);
    if locator.u32(0) != LOCATOR_64 {
        return Ok(None);
    }
    let at = locator.u64(8);
    if at.checked_add(END_64_SIZE).is_none_or(|after| after > locator_at) {
        let detail = format!("the 64-bit end record cannot be at {at}");
        return Err(failed("failed finding central directory", detail));
    }
    let end = source.bytes_at(at, END_64_SIZE)?;
    let end = LittleEndian(&end);
    if end.u32(0) != END_64 {
        let detail = format!("no 64-bit end record at {at}");
        return Err(failed("failed finding central directory", detail));
    }
    Ok(Some(Directory { start: end.u64(48), size: end.u64(40), count: end.u64(32) }))
}

fn read_directory(bytes: &[u8], directory: &Directory) -> Result<Vec<ArchiveRecord>> {
    let mut records = Vec::new();
    let mut at = 0;
    for number in 0..directory.count {
        let broken = |detail: &str| {
            let offset = directory.start + at as u64;
            let detail = format!("entry {number} of the directory, at {offset}: {detail}");
            failed("invalid header or archive is corrupted", detail)
        };
        let entry = bytes.get(at..).filter(|rest| rest.len() >= CENTRAL_SIZE);
        let fields = LittleEndian(entry.ok_or_else(|| broken("cut off"))?);
        if fields.u32(0) != CENTRAL {
            return Err(broken("no signature"));
        }
        let (name, extra) = (usize::from(fields.u16(28)), usize::from(fields.u16(30)));
        let length = CENTRAL_SIZE + name + extra + usize::from(fields.u16(32));
        let rest = bytes.get(at + CENTRAL_SIZE..at + length).ok_or_else(|| broken("cut off"))?;
        let name_bytes = &rest[..name];
        let name = std::str::from_utf8(name_bytes).map_err(|_| broken("its name is no UTF-8"))?;
        let mut record = ArchiveRecord {
            name: name.to_owned(),
            header: u64::from(fields.u32(42)),
            size: u64::from(fields.u32(24)),
            stored: u64::from(fields.u32(20)),
            crc: fields.u32(16),
            method: fields.u16(10),
            flags: fields.u16(8),
        };
        let wide = [24, 20, 42].map(|field| fields.u32(field) == IN_EXTRA);
        widen(&mut record, &rest[name_bytes.len()..][..extra], wide).map_err(broken)?;
        check_sizes(&record).map_err(|detail| broken(&detail))?;
        memory::push(&mut records, record)?;
        at += length;
    }
    Ok(records)
}

/// Takes the numbers that need 64 bits (size, stored size, place of the header) from the extra field.
fn widen(
    record: &mut ArchiveRecord,
    mut extra: &[u8],
    wide: [bool; 3],
) -> std::result::Result<(), &'static str> {
    if wide == [false; 3] {
        return Ok(());
    }
    while extra.len() >= 4 {
        let fields = LittleEndian(extra);
        let (tag, length) = (fields.u16(0), usize::from(fields.u16(2)));
        let content = extra.get(4..4 + length).ok_or("its extra field is cut off")?;
        if tag == EXTRA_64 {
            let mut numbers = content.chunks_exact(8).map(|number| LittleEndian(number).u64(0));
            let slots = [&mut record.size, &mut record.stored, &mut record.header];
            for (slot, _) in slots.into_iter().zip(wide).filter(|(_, is_wide)| *is_wide) {
                *slot = numbers.next().ok_or("its 64-bit numbers are missing")?;
            }
            return Ok(());
        }
        extra = &extra[4 + length..];
    }
    Err("its 64-bit numbers are missing")
}

/// Whether as many bytes can come from those that are stored.
fn check_sizes(record: &ArchiveRecord) -> std::result::Result<(), String> {
    let ArchiveRecord { size, stored, .. } = record;
    let fits = if record.method == 0 {
        size == stored
    } else {
        *size <= stored.saturating_mul(MOST_INFLATED)
    };
    let message = || format!("{size} bytes cannot come from {stored} stored ones");
    if fits { Ok(()) } else { Err(message()) }
}
