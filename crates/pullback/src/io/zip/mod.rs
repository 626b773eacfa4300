//! ZIP archives as PyTorch lays them out: a folder of records, stored as they are, each at a multiple of 64 bytes.
//!
//! [`Archive`] reads them (and the deflated entries of other programs), [`ArchiveWriter`] writes them. The format is PKWARE's
//! APPNOTE 6.3.9, with the 64-bit extensions; not split over files, not encrypted. Invariant: no size or offset of a file is
//! believed before it was compared with the bytes that are there.

mod read;
mod write;

pub use read::{Archive, ArchiveRecord};
pub use write::ArchiveWriter;

/// Signatures, little-endian.
const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;

/// Sizes of the fixed parts.
const LOCAL_SIZE: u64 = 30;
const CENTRAL_SIZE: usize = 46;
const END_SIZE: u64 = 22;
const END_64_SIZE: u64 = 56;
const LOCATOR_64_SIZE: u64 = 20;

/// The tag of the extra field with 64-bit numbers.
const EXTRA_64: u16 = 1;
/// The value of a 32-bit field whose number is in that extra field.
const IN_EXTRA: u32 = u32::MAX;

/// The numbers of a record of fixed layout, which was checked to be long enough.
struct LittleEndian<'a>(&'a [u8]);

impl LittleEndian<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }
}

#[cfg(test)]
mod tests;
