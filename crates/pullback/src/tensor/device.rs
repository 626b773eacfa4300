//! The device of a tensor and the layout of its elements: the two keys of the kernel table.

use crate::error::ensure;
use crate::{Error, ErrorKind, Result};
use pullback_kernels::spelling::Spelled;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The number of CUDA devices that are simulated.
static SIMULATED: AtomicU8 = AtomicU8::new(0);

/// Lets main memory and the CPU's kernels stand for CUDA devices 0 to `count` - 1, from now on and in all threads.
///
/// For programs that use several devices, to be run and tested where there are none: tensors live
/// on one device each, ops refuse tensors of different ones, backward runs each device's nodes in a
/// thread of its own. Nothing becomes faster. The number never falls, because tensors may be on
/// these devices: a call with a smaller number changes nothing.
///
/// ```
/// use pullback::{Device, Tensor, simulate_devices};
/// # fn main() -> pullback::Result<()> {
/// simulate_devices(2);
/// let x = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
/// let y = x.to(None, Some(Device::Cuda(1)), false, None)?;
/// assert_eq!(y.mul(&y)?.device(), Device::Cuda(1));
/// assert!(x.mul(&y).unwrap_err().message().contains("at least two devices, cuda:1 and cpu!"));
/// # Ok(())
/// # }
/// ```
pub fn simulate_devices(count: u8) {
    SIMULATED.fetch_max(count, Relaxed);
}

thread_local! {
    /// The number that [`current_device`] returns.
    static CURRENT: Cell<u8> = const { Cell::new(0) };
}

/// The CUDA device of this thread, which `cuda` without a number means: initially 0, in backward
/// the device whose nodes the thread runs.
pub fn current_device() -> u8 {
    CURRENT.get()
}

/// Sets the CUDA device of this thread; returns the previous one.
///
/// # Errors
/// `RuntimeError` if there is no such device.
pub fn set_current_device(index: u8) -> Result<u8> {
    Device::Cuda(index).check_available()?;
    Ok(CURRENT.replace(index))
}

/// The number of CUDA devices; all are simulated (see [`simulate_devices`]).
pub fn device_count() -> u8 {
    SIMULATED.load(Relaxed)
}

/// The device of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Device {
    /// Main memory.
    #[default]
    Cpu,
    /// An NVIDIA GPU by index. Its backend is not part of this build, which can simulate some ([`simulate_devices`]).
    Cuda(u8),
    /// No memory at all: shapes and dtypes only.
    Meta,
    /// A kind of devices that has a name, but no backend in any build: no tensor can be on it.
    Absent(AbsentDevice),
}

/// A kind of devices that PyTorch names and this library has no backend for. Programs compare and print such devices; what
/// would make a tensor there raises an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AbsentDevice(u8);

/// The errors that PyTorch raises if it was built without a backend.
#[derive(Clone, Copy)]
enum DeviceRefusal {
    NotImplemented,
    /// The kind's Python module is there and raises an `AssertionError`.
    Assertion,
    /// The kind needs a Python module of another distribution.
    NoModule,
}

impl AbsentDevice {
    /// The names of the kinds, in PyTorch's order, and how a device of each is refused.
    const KINDS: [(&'static str, DeviceRefusal); 17] = [
        ("ipu", DeviceRefusal::NotImplemented),
        ("xpu", DeviceRefusal::Assertion),
        ("mkldnn", DeviceRefusal::NotImplemented),
        ("opengl", DeviceRefusal::NotImplemented),
        ("opencl", DeviceRefusal::NotImplemented),
        ("ideep", DeviceRefusal::NotImplemented),
        ("hip", DeviceRefusal::NotImplemented),
        ("ve", DeviceRefusal::NotImplemented),
        ("fpga", DeviceRefusal::NotImplemented),
        ("maia", DeviceRefusal::NotImplemented),
        ("xla", DeviceRefusal::NotImplemented),
        ("lazy", DeviceRefusal::NotImplemented),
        ("vulkan", DeviceRefusal::NotImplemented),
        ("mps", DeviceRefusal::NotImplemented),
        ("hpu", DeviceRefusal::NoModule),
        ("mtia", DeviceRefusal::Assertion),
        ("privateuseone", DeviceRefusal::NoModule),
    ];

    fn by_name(name: &str) -> Option<AbsentDevice> {
        let index = Self::KINDS.iter().position(|(kind, _)| *kind == name)?;
        Some(AbsentDevice(index as u8))
    }

    /// The name of the kind: `mps`.
    pub fn name(self) -> &'static str {
        Self::KINDS[usize::from(self.0)].0
    }

    /// The error for a tensor that would be on this device.
    fn refused(self) -> Error {
        let (name, refusal) = Self::KINDS[usize::from(self.0)];
        let kind = match refusal {
            DeviceRefusal::NotImplemented => ErrorKind::NotImplemented,
            DeviceRefusal::Assertion => ErrorKind::Assertion,
            DeviceRefusal::NoModule => ErrorKind::ModuleNotFound,
        };
        Error::new(
            kind,
            format!("device '{name}' is not available: pullback has no {name} backend (only cpu)"),
        )
    }
}

/// The kind and the index that a text names, of which the index may be missing.
fn split(text: &str) -> Result<(&str, Option<u8>)> {
    let invalid = || Error::runtime(format!("Invalid device string: '{text}'"));
    ensure!(!text.is_empty(), runtime, "Device string must not be empty");
    let (kind, digits) = text.split_once(':').map_or((text, None), |(k, i)| (k, Some(i)));
    let is_name = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
    // (Signs and leading zeros, which Rust's parser accepts, are not part of a device's index.)
    let is_number = |i: &str| i == "0" || i.starts_with(|c: char| matches!(c, '1'..='9'));
    if !is_name || digits.is_some_and(|i| !is_number(i)) {
        return Err(invalid());
    }
    Ok((kind, digits.map(|i| i.parse().map_err(|_| invalid())).transpose()?))
}

impl Device {
    /// Reads `cpu`, `cuda`, `cuda:1`, `meta`, `mps`. Kinds with a single device accept any index.
    ///
    /// # Errors
    /// `RuntimeError` for anything else.
    pub fn parse(text: &str) -> Result<Device> {
        let (kind, index) = split(text)?;
        match kind {
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(index.unwrap_or_else(current_device))),
            "meta" => Ok(Device::Meta),
            _ => AbsentDevice::by_name(kind).map(Device::Absent).ok_or_else(|| {
                // (PyTorch's order, in which the meta device stands behind the fourteenth of these.)
                let (before, after) = AbsentDevice::KINDS.split_at(14);
                let names = |kinds: &[(&'static str, DeviceRefusal)]| {
                    let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect(); // tidy: short
                    names.join(", ")
                };
                Error::runtime(format!(
                    "Expected one of cpu, cuda, {}, meta, {} device type at start of device string: {kind}",
                    names(before),
                    names(after)
                ))
            }),
        }
    }
    /// The device for texts of errors: `cuda:1` in PyTorch's, `Cuda(1)` in Rust's.
    pub(crate) fn spelled(self) -> Spelled<Device, Device> {
        Spelled::new(self, self)
    }
    /// The kind of device: `cpu`, `cuda`, `meta`, `mps`.
    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Cuda(_) => "cuda",
            Device::Meta => "meta",
            Device::Absent(kind) => kind.name(),
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
    /// `RuntimeError` that says which backend is missing, or which device.
    #[inline]
    pub fn check_available(self) -> Result<()> {
        if matches!(self, Device::Cpu | Device::Meta) { Ok(()) } else { self.check_simulated() }
    }
    #[cold]
    fn check_simulated(self) -> Result<()> {
        if let Device::Absent(kind) = self {
            return Err(kind.refused());
        }
        let count = device_count();
        let Some(index) = self.index().filter(|_| count > 0) else {
            return Err(Error::runtime(format!(
                "device '{}' is not available: this build of pullback has no {} backend (only cpu)",
                self.spelled(),
                self.kind()
            )));
        };
        ensure!(
            index < count,
            runtime,
            "CUDA error: invalid device ordinal: there is no '{}' among {count} simulated devices",
            self.spelled()
        );
        Ok(())
    }
    /// Refuses all devices but main memory, for `what` of which there is nothing on simulated ones.
    ///
    /// # Errors
    /// Those of [`Device::check_available`]; `NotImplementedError`.
    pub fn check_memory(self, what: &str) -> Result<()> {
        self.check_available()?;
        ensure!(
            self == Device::Cpu,
            not_implemented,
            "{what} on devices other than the CPU are not supported (here '{}')",
            self.spelled()
        );
        Ok(())
    }
    /// The device as a number that [`Device::from_bits`] reads.
    #[inline]
    pub(super) fn bits(self) -> u16 {
        match self {
            Device::Cpu => 0,
            Device::Meta => 1,
            Device::Absent(AbsentDevice(kind)) => 2 + u16::from(kind),
            Device::Cuda(index) => 256 + u16::from(index),
        }
    }
    /// The device of a number that [`Device::bits`] returned.
    pub(super) fn from_bits(bits: u16) -> Device {
        match bits.to_le_bytes() {
            [0, 0] => Device::Cpu,
            [1, 0] => Device::Meta,
            [kind, 0] => Device::Absent(AbsentDevice(kind - 2)),
            [index, _] => Device::Cuda(index),
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
    /// All layouts.
    pub const ALL: [Layout; 6] = [
        Layout::Strided,
        Layout::SparseCoo,
        Layout::SparseCsr,
        Layout::SparseCsc,
        Layout::SparseBsr,
        Layout::SparseBsc,
    ];
    /// The name of the layout in `torch`: `strided`, `sparse_coo`.
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
    /// The layout for texts of errors: `Sparse` in some of PyTorch's, `SparseCoo` in Rust's.
    pub fn spelled(self) -> Spelled<&'static str, Layout> {
        let pytorch = match self {
            Layout::Strided => "Strided",
            Layout::SparseCoo => "Sparse",
            Layout::SparseCsr => "SparseCsr",
            Layout::SparseCsc => "SparseCsc",
            Layout::SparseBsr => "SparseBsr",
            Layout::SparseBsc => "SparseBsc",
        };
        Spelled::new(pytorch, self)
    }
    /// [`Layout::name`] for texts of errors: `sparse_coo` in PyTorch's, `SparseCoo` in Rust's.
    pub(crate) fn spelled_name(self) -> Spelled<&'static str, Layout> {
        Spelled::new(self.name(), self)
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
