//! Where a tensor lives and how its elements are laid out: the two keys of the kernel table.

use crate::{Error, Result};
use std::fmt;

/// A place for tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Device {
    /// Main memory.
    #[default]
    Cpu,
    /// An NVIDIA GPU by index. Its backend is not part of this build.
    Cuda(u8),
    /// No memory at all: shapes and dtypes only.
    Meta,
}

impl Device {
    /// Reads `cpu`, `cuda`, `cuda:1`, `meta`.
    ///
    /// # Errors
    /// `RuntimeError` for anything else.
    pub fn parse(text: &str) -> Result<Device> {
        let (kind, index) = text.split_once(':').map_or((text, None), |(k, i)| (k, Some(i)));
        let invalid = || Error::runtime(format!("Invalid device string: '{text}'"));
        let index = index.map(|i| i.parse::<u8>().map_err(|_| invalid())).transpose()?;
        match (kind, index) {
            ("cpu", None | Some(0)) => Ok(Device::Cpu),
            ("cuda", i) => Ok(Device::Cuda(i.unwrap_or(0))),
            ("meta", None | Some(0)) => Ok(Device::Meta),
            ("cpu" | "meta", _) => Err(invalid()),
            _ => Err(Error::runtime(format!(
                "Expected one of cpu, cuda, meta device type at start of device string: {kind}"
            ))),
        }
    }
    /// `cpu`, `cuda` or `meta`.
    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Cuda(_) => "cuda",
            Device::Meta => "meta",
        }
    }
    /// The index of an indexed device.
    pub fn index(self) -> Option<u8> {
        match self {
            Device::Cuda(i) => Some(i),
            _ => None,
        }
    }
    /// Refuses devices that this build has no kernels for.
    ///
    /// # Errors
    /// `RuntimeError` that says which backend is missing.
    #[inline]
    pub fn check_available(self) -> Result<()> {
        match self {
            Device::Cpu => Ok(()),
            other => Err(Error::runtime(format!(
                "device '{other}' is not available: this build of pullback has no {} backend (only cpu)",
                other.kind()
            ))),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index() {
            Some(i) => write!(f, "{}:{i}", self.kind()),
            None => f.write_str(self.kind()),
        }
    }
}

/// How elements are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Layout {
    /// Sizes and strides over one storage.
    #[default]
    Strided,
    /// Coordinate lists.
    SparseCoo,
    /// Compressed rows.
    SparseCsr,
    /// Compressed columns.
    SparseCsc,
    /// Compressed rows of blocks.
    SparseBsr,
    /// Compressed columns of blocks.
    SparseBsc,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 6] = [
        Layout::Strided,
        Layout::SparseCoo,
        Layout::SparseCsr,
        Layout::SparseCsc,
        Layout::SparseBsr,
        Layout::SparseBsc,
    ];
    /// `torch.strided`'s last part and its siblings.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Strided => "strided",
            Layout::SparseCoo => "sparse_coo",
            Layout::SparseCsr => "sparse_csr",
            Layout::SparseCsc => "sparse_csc",
            Layout::SparseBsr => "sparse_bsr",
            Layout::SparseBsc => "sparse_bsc",
        }
    }
    /// As messages spell it: `SparseCsr`.
    pub fn spelled(self) -> &'static str {
        match self {
            Layout::Strided => "Strided",
            Layout::SparseCoo => "Sparse",
            Layout::SparseCsr => "SparseCsr",
            Layout::SparseCsc => "SparseCsc",
            Layout::SparseBsr => "SparseBsr",
            Layout::SparseBsc => "SparseBsc",
        }
    }
    /// Whether rows or columns are compressed.
    pub fn is_compressed(self) -> bool {
        !matches!(self, Layout::Strided | Layout::SparseCoo)
    }
    /// Whether rows (not columns) are compressed; nothing for other layouts.
    pub fn compresses_rows(self) -> Option<bool> {
        match self {
            Layout::Strided | Layout::SparseCoo => None,
            Layout::SparseCsr | Layout::SparseBsr => Some(true),
            Layout::SparseCsc | Layout::SparseBsc => Some(false),
        }
    }
    /// Whether the values are blocks.
    pub fn is_blocked(self) -> bool {
        matches!(self, Layout::SparseBsr | Layout::SparseBsc)
    }
    /// The layout of the transpose.
    #[must_use]
    pub fn transposed(self) -> Layout {
        match self {
            Layout::SparseCsr => Layout::SparseCsc,
            Layout::SparseCsc => Layout::SparseCsr,
            Layout::SparseBsr => Layout::SparseBsc,
            Layout::SparseBsc => Layout::SparseBsr,
            other => other,
        }
    }
}

/// The order in which a new tensor's dimensions lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// As the source, where it has no gaps or overlaps.
    Preserve,
    /// `n, h, w, c` in memory for 4-d tensors.
    ChannelsLast,
    /// `n, d, h, w, c` in memory for 5-d tensors.
    ChannelsLast3d,
}
