//! The autocast settings of a thread: the types of devices it is on for, its dtypes, and the cache of converted weights.
//!
//! `cast` is the layer of calls that converts. Invariant: the bits of `bit::AUTOCAST` in the thread's modes are those of the
//! types of devices that autocast is on for; while all are off, ops look at nothing here. Start at [`autocast`].

use super::mode::{self, bit};
use crate::error::ensure;
use crate::tensor::{Key, WeakTensor};
use crate::{DType, Device, Error, Result, Tensor};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

/// The types of devices that autocast can be turned on for, and their initial dtypes.
const TARGETS: [(&str, DType); 10] = [
    ("cpu", DType::BF16),
    ("cuda", DType::F16),
    ("xpu", DType::F16),
    ("ipu", DType::F16),
    ("hpu", DType::BF16),
    ("xla", DType::BF16),
    ("mps", DType::F16),
    ("mtia", DType::F16),
    ("maia", DType::BF16),
    ("privateuseone", DType::F16),
];
/// Types of devices that have no autocast.
const WITHOUT: [&str; 10] =
    ["mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "lazy", "vulkan", "meta"];

const _: () = assert!(bit::AUTOCAST.count_ones() as usize == TARGETS.len());

/// A type of devices that autocast can be turned on for. Only the CPU's ops are in this build; for the others the
/// settings are kept, and have no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AutocastDevice(u8);

impl AutocastDevice {
    /// The CPU.
    pub const CPU: AutocastDevice = AutocastDevice(0);

    /// Parses `cpu`, `cuda`, `cuda:1`; `None` for types that have no autocast.
    ///
    /// # Errors
    /// `RuntimeError` for a name that is not a type of devices.
    pub fn parse(text: &str) -> Result<Option<AutocastDevice>> {
        let (name, index) = text.split_once(':').map_or((text, None), |(n, i)| (n, Some(i)));
        let is_index = index.is_none_or(|i| i.parse::<u8>().is_ok());
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
        ensure!(is_index && is_name, runtime, "Invalid device string: '{text}'");
        let found = TARGETS.iter().position(|(target, _)| *target == name);
        ensure!(
            found.is_some() || WITHOUT.contains(&name),
            runtime,
            "Expected one of {}, {} device type at start of device string: {name}",
            TARGETS.map(|(target, _)| target).join(", "),
            WITHOUT.join(", ")
        );
        Ok(found.map(|index| AutocastDevice(index as u8)))
    }
    fn of(device: Device) -> Result<AutocastDevice> {
        AutocastDevice::parse(device.kind())?.ok_or_else(|| unsupported(device.kind()))
    }
    fn bit(self) -> u64 {
        1 << (bit::AUTOCAST.trailing_zeros() + u32::from(self.0))
    }
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

fn unsupported(kind: &str) -> Error {
    Error::runtime(format!("User specified an unsupported autocast device_type '{kind}'"))
}

/// The settings of a thread beside the bits.
struct Settings {
    /// The dtypes that were set; `None` means the initial one.
    dtypes: [Cell<Option<DType>>; TARGETS.len()],
    nesting: Cell<i32>,
    has_no_cache: Cell<bool>,
}

thread_local! {
    static SETTINGS: Settings = const {
        Settings {
            dtypes: [const { Cell::new(None) }; TARGETS.len()],
            nesting: Cell::new(0),
            has_no_cache: Cell::new(false),
        }
    };
}

/// Whether autocast is on for this type of devices.
pub fn is_enabled(target: AutocastDevice) -> bool {
    mode::current() & target.bit() != 0
}
/// Turns autocast for a type of devices on or off on this thread.
pub fn set_enabled(target: AutocastDevice, enabled: bool) {
    mode::set_bit(target.bit(), enabled);
    Key::Autocast.include(is_any_enabled());
}
/// Whether autocast is on for any type of devices.
#[inline(always)]
pub fn is_any_enabled() -> bool {
    mode::current() & bit::AUTOCAST != 0
}
/// The dtype of ops that gain by lower precision.
pub fn dtype(target: AutocastDevice) -> DType {
    let set = SETTINGS.with(|s| s.dtypes[target.index()].get());
    set.unwrap_or(TARGETS[target.index()].1)
}
/// Sets the dtype of ops that gain by lower precision, on this thread.
pub fn set_dtype(target: AutocastDevice, dtype: DType) {
    SETTINGS.with(|s| s.dtypes[target.index()].set(Some(dtype)));
}
/// Whether converted weights are cached.
pub fn is_cache_enabled() -> bool {
    SETTINGS.with(|s| !s.has_no_cache.get())
}
/// Turns the cache of converted weights on or off on this thread.
pub fn set_cache_enabled(enabled: bool) {
    SETTINGS.with(|s| s.has_no_cache.set(!enabled));
}
/// Begins a region; returns the number of regions inside of which the thread is now.
pub fn increment_nesting() -> i32 {
    nest(1)
}
/// Ends a region; returns the number of regions that are left. The caller that ends the last one calls [`clear_cache`].
pub fn decrement_nesting() -> i32 {
    nest(-1)
}
fn nest(step: i32) -> i32 {
    SETTINGS.with(|s| {
        s.nesting.set(s.nesting.get().wrapping_add(step));
        s.nesting.get()
    })
}

/// The settings of a thread, to be continued on another.
#[derive(Clone, Copy)]
pub(crate) struct AutocastState {
    bits: u64,
    dtypes: [Option<DType>; TARGETS.len()],
    nesting: i32,
    has_no_cache: bool,
}

/// The settings of this thread.
pub(crate) fn snapshot() -> AutocastState {
    SETTINGS.with(|s| AutocastState {
        bits: mode::current() & bit::AUTOCAST,
        dtypes: s.dtypes.each_ref().map(Cell::get),
        nesting: s.nesting.get(),
        has_no_cache: s.has_no_cache.get(),
    })
}
/// Gives this thread these settings.
pub(crate) fn restore(state: &AutocastState) {
    set_bits(state.bits);
    SETTINGS.with(|s| {
        for (cell, dtype) in s.dtypes.iter().zip(state.dtypes) {
            cell.set(dtype);
        }
        s.nesting.set(state.nesting);
        s.has_no_cache.set(state.has_no_cache);
    });
}

fn set_bits(bits: u64) {
    mode::set_bit(bit::AUTOCAST, false);
    mode::set_bit(bits, true);
    Key::Autocast.include(bits != 0);
}

/// Ends a region of [`autocast`] or [`no_autocast`].
#[must_use = "the region lasts as long as the guard"]
pub struct AutocastGuard {
    target: AutocastDevice,
    was_enabled: bool,
    dtype: Option<DType>,
    /// (Not `Send`: the settings are those of the thread.)
    not_send: PhantomData<*const ()>,
}

impl AutocastGuard {
    fn new(target: AutocastDevice, enabled: bool, dtype: Option<DType>) -> Self {
        let was_enabled = is_enabled(target);
        let previous = SETTINGS.with(|s| s.dtypes[target.index()].get());
        set_enabled(target, enabled);
        if let Some(dtype) = dtype {
            set_dtype(target, dtype);
        }
        increment_nesting();
        AutocastGuard { target, was_enabled, dtype: previous, not_send: PhantomData }
    }
}

impl Drop for AutocastGuard {
    fn drop(&mut self) {
        if decrement_nesting() == 0 {
            clear_cache();
        }
        set_enabled(self.target, self.was_enabled);
        SETTINGS.with(|s| s.dtypes[self.target.index()].set(self.dtype));
    }
}

/// Runs this thread's ops on tensors of `device` in dtypes that suit them, as long as the guard lives: matrix products
/// and convolutions in `dtype`, `bfloat16` or `float16`; losses, decompositions and other sensitive functions in
/// `float32`; where tensors are joined, in the widest of theirs. Tensors of `float64`, complex numbers and integers stay
/// as they are.
///
/// ```
/// use pullback::{DType, Device, Tensor, autocast};
/// # fn main() -> pullback::Result<()> {
/// let weight = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?.with_grad()?;
/// let loss = {
///     let _region = autocast(Device::Cpu, DType::BF16)?;
///     let y = weight.mm(&weight)?;
///     assert_eq!(y.dtype(), DType::BF16);
///     y.sum()?
/// };
/// loss.backward()?;
/// assert_eq!(weight.grad().unwrap().dtype(), DType::F32);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `RuntimeError` for other dtypes and for devices without autocast.
pub fn autocast(device: Device, dtype: DType) -> Result<AutocastGuard> {
    ensure!(
        matches!(dtype, DType::BF16 | DType::F16),
        runtime,
        "autocast supports only bfloat16 and float16, got {}",
        dtype.spelled()
    );
    Ok(AutocastGuard::new(AutocastDevice::of(device)?, true, Some(dtype)))
}

/// Runs this thread's ops on tensors of `device` in the tensors' own dtypes, as long as the guard lives.
///
/// # Errors
/// `RuntimeError` for devices without autocast.
pub fn no_autocast(device: Device) -> Result<AutocastGuard> {
    Ok(AutocastGuard::new(AutocastDevice::of(device)?, false, None))
}

/// A guard that turns autocast off inside of an op.
pub(in crate::autograd) struct PausedAutocast(u64);

impl Drop for PausedAutocast {
    fn drop(&mut self) {
        set_bits(self.0);
    }
}

/// Turns autocast off as long as the guard lives; `None` if it is off already.
pub(in crate::autograd) fn pause() -> Option<PausedAutocast> {
    is_any_enabled().then(paused)
}

/// As [`pause`], on a thread where autocast is on.
pub(in crate::autograd) fn paused() -> PausedAutocast {
    let bits = mode::current() & bit::AUTOCAST;
    set_bits(0);
    PausedAutocast(bits)
}

/// The dtype to which an op that gains by lower precision converts this tensor.
pub(crate) fn lowered(tensor: &Tensor) -> DType {
    let is_lowered = is_enabled(AutocastDevice::CPU) && is_eligible(tensor);
    if is_lowered { dtype(AutocastDevice::CPU) } else { tensor.dtype() }
}

/// Whether a policy applies to a tensor.
pub(in crate::autograd) fn is_eligible(tensor: &Tensor) -> bool {
    tensor.device() == Device::Cpu
        && tensor.dtype().is_floating_point()
        && tensor.dtype() != DType::F64
}

/// A weight that was converted.
struct CachedCast {
    /// Keeps the address of the weight from being reused, but not the weight alive.
    _weight: WeakTensor,
    /// The weight's memory and version when it was converted.
    data: usize,
    version: u32,
    cast: Tensor,
}

/// The weight's identity, the dtype, and whether the conversion is recorded.
type CacheKey = (usize, DType, bool);
static CACHE: Mutex<BTreeMap<CacheKey, CachedCast>> = Mutex::new(BTreeMap::new());

/// The weight in dtype `wanted`, which `cast` makes once as long as the weight does not change.
pub(in crate::autograd) fn cached(
    weight: &Tensor,
    wanted: DType,
    cast: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let key = (weight.id(), wanted, mode::is_recording());
    let (data, version) = (weight.data_ptr() as usize, weight.version());
    let is_current = |entry: &&CachedCast| entry.data == data && entry.version == version;
    let found = lock().get(&key).filter(is_current).map(|entry| entry.cast.clone());
    if let Some(cast) = found {
        return Ok(cast);
    }
    let cast = cast()?;
    let entry = CachedCast { _weight: weight.downgrade(), data, version, cast: cast.clone() };
    // (What is dropped may run any code: not under the lock.)
    let old = lock().insert(key, entry);
    drop(old);
    Ok(cast)
}

fn lock() -> std::sync::MutexGuard<'static, BTreeMap<CacheKey, CachedCast>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops all converted weights, of all threads.
pub fn clear_cache() {
    let old = std::mem::take(&mut *lock());
    drop(old);
}

/// The number of converted weights in the cache.
pub fn cached_count() -> usize {
    lock().len()
}
