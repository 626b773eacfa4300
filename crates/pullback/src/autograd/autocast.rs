//! Autocast: ops run in the dtypes that suit them, while tensors keep theirs.
//!
//! An op says in its definition what is done with its arguments ([`CastPolicy`]); here is what a thread has turned on,
//! and `call`, which converts and then runs the op with autocast off. A conversion is recorded as any other, so that
//! gradients come back in the tensors' own dtypes. Only functional forms are converted: what writes into given tensors
//! runs in their dtypes. Invariant: the bits of `bit::AUTOCAST` in the thread's modes say for which types of devices
//! it is on; while all are off, ops look at nothing here.
//!
//! P. Micikevicius et al., "Mixed Precision Training", 2018.

use super::arithmetic;
use super::mode::{self, bit};
use crate::dispatch::{Arg, Call, CastPolicy, Form, Kernel, Outputs, each_tensor};
use crate::error::{bail, ensure};
use crate::tensor::{Flag, Key, WeakTensor};
use crate::{DType, Device, Error, Result, Tensor};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

/// The types of devices that autocast can be turned on for, and the dtypes they have at first.
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
/// Types of devices that exist elsewhere but have no autocast.
const WITHOUT: [&str; 10] =
    ["mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "lazy", "vulkan", "meta"];

const _: () = assert!(bit::AUTOCAST.count_ones() as usize == TARGETS.len());

/// A type of devices that autocast can be turned on for. Only the CPU's ops are in this build; for the others the
/// settings are kept, and have no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target(u8);

impl Target {
    /// Main memory.
    pub const CPU: Target = Target(0);

    /// Reads `cpu`, `cuda`, `cuda:1`; `None` for types that have no autocast.
    ///
    /// # Errors
    /// `RuntimeError` for what names no type of devices.
    pub fn parse(text: &str) -> Result<Option<Target>> {
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
        Ok(found.map(|index| Target(index as u8)))
    }
    fn of(device: Device) -> Result<Target> {
        Target::parse(device.kind())?.ok_or_else(|| unsupported(device.kind()))
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

/// What a thread has set, beside the bits.
struct Settings {
    /// As far as they were set; else the type's first one holds.
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
pub fn is_enabled(target: Target) -> bool {
    mode::current() & target.bit() != 0
}
/// Turns it on or off on this thread.
pub fn set_enabled(target: Target, enabled: bool) {
    mode::set_bit(target.bit(), enabled);
    Key::Autocast.include(is_any_enabled());
}
/// Whether it is on for any.
#[inline(always)]
pub fn is_any_enabled() -> bool {
    mode::current() & bit::AUTOCAST != 0
}
/// The dtype that ops run in which gain by lower precision.
pub fn dtype(target: Target) -> DType {
    let set = SETTINGS.with(|s| s.dtypes[target.index()].get());
    set.unwrap_or(TARGETS[target.index()].1)
}
/// Replaces it on this thread.
pub fn set_dtype(target: Target, dtype: DType) {
    SETTINGS.with(|s| s.dtypes[target.index()].set(Some(dtype)));
}
/// Whether converted weights are kept for the next op that wants them.
pub fn is_cache_enabled() -> bool {
    SETTINGS.with(|s| !s.has_no_cache.get())
}
/// Lets this thread keep them or not.
pub fn set_cache_enabled(enabled: bool) {
    SETTINGS.with(|s| s.has_no_cache.set(!enabled));
}
/// Notes that a region begins; gives how many there are around what follows.
pub fn increment_nesting() -> i32 {
    nest(1)
}
/// Notes that a region ends; gives how many are left. Whoever ends the last one calls [`clear_cache`].
pub fn decrement_nesting() -> i32 {
    nest(-1)
}
fn nest(step: i32) -> i32 {
    SETTINGS.with(|s| {
        s.nesting.set(s.nesting.get().wrapping_add(step));
        s.nesting.get()
    })
}

/// All that a thread has set, to be continued on another.
#[derive(Clone, Copy)]
pub(crate) struct State {
    bits: u64,
    dtypes: [Option<DType>; TARGETS.len()],
    nesting: i32,
    has_no_cache: bool,
}

/// What this thread has set.
pub(crate) fn snapshot() -> State {
    SETTINGS.with(|s| State {
        bits: mode::current() & bit::AUTOCAST,
        dtypes: s.dtypes.each_ref().map(Cell::get),
        nesting: s.nesting.get(),
        has_no_cache: s.has_no_cache.get(),
    })
}
/// Lets this thread go on with it.
pub(crate) fn restore(state: &State) {
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
    target: Target,
    was_enabled: bool,
    dtype: Option<DType>,
    /// The settings are the thread's.
    not_send: PhantomData<*const ()>,
}

impl AutocastGuard {
    fn new(target: Target, enabled: bool, dtype: Option<DType>) -> Self {
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
        dtype.name()
    );
    Ok(AutocastGuard::new(Target::of(device)?, true, Some(dtype)))
}

/// Runs this thread's ops on tensors of `device` in the tensors' own dtypes, as long as the guard lives.
///
/// # Errors
/// `RuntimeError` for devices without autocast.
pub fn no_autocast(device: Device) -> Result<AutocastGuard> {
    Ok(AutocastGuard::new(Target::of(device)?, false, None))
}

/// Turns autocast off inside of an op.
pub(super) struct Paused(u64);

impl Drop for Paused {
    fn drop(&mut self) {
        set_bits(self.0);
    }
}

/// Autocast is off as long as this lives; nothing is done if it is off already.
pub(super) fn pause() -> Option<Paused> {
    is_any_enabled().then(paused)
}

fn paused() -> Paused {
    let bits = mode::current() & bit::AUTOCAST;
    set_bits(0);
    Paused(bits)
}

/// The layer: converts the arguments of functional forms as the op's policy says. Further in, autocast is off; the parts of
/// a composite have policies of their own.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, args, .. } = *call;
    if !matches!(call.form, Form::Functional) {
        let _pause = paused();
        return call.next();
    }
    let policy = if is_enabled(Target::CPU) { def.autocast } else { CastPolicy::None };
    if policy == CastPolicy::None {
        let is_composite = matches!(def.kernel, Kernel::Composite(_));
        let _pause = (!is_composite).then(paused);
        return call.next();
    }
    let wanted = wanted_dtype(policy, args)?;
    let lower = dtype(Target::CPU);
    let _pause = paused();
    let held = convert_args(args, |tensor| convert(tensor, wanted, wanted == lower))?;
    call.with_args(&with_converted(args, &held)).next()
}

/// The dtype in which an op that gains by lower precision takes this tensor.
pub(crate) fn lowered(tensor: &Tensor) -> DType {
    let is_lowered = is_enabled(Target::CPU) && is_eligible(tensor);
    if is_lowered { dtype(Target::CPU) } else { tensor.dtype() }
}

/// Whether a policy applies to a tensor.
fn is_eligible(tensor: &Tensor) -> bool {
    tensor.device() == Device::Cpu
        && tensor.dtype().is_floating_point()
        && tensor.dtype() != DType::F64
}

/// The dtype that a policy asks for.
fn wanted_dtype(policy: CastPolicy, args: &[Arg<'_>]) -> Result<DType> {
    let lower = dtype(Target::CPU);
    match policy {
        CastPolicy::Lower => Ok(lower),
        CastPolicy::Fp32 | CastPolicy::None => Ok(DType::F32),
        CastPolicy::Promote => {
            let mut widest = Ok(lower);
            each_tensor(args, |tensor| {
                if let (Ok(now), true) = (&widest, is_eligible(tensor)) {
                    widest = wider(*now, tensor.dtype(), lower);
                }
            });
            widest
        }
    }
}

/// `float32` if one of the two is.
fn wider(now: DType, next: DType, lower: DType) -> Result<DType> {
    if now == DType::F32 || next == DType::F32 {
        return Ok(DType::F32);
    }
    if next != lower {
        bail!(
            runtime,
            "Unexpected floating ScalarType in autocast: {} while autocast runs ops in {}; convert the tensor first",
            next.name(),
            lower.name()
        );
    }
    Ok(lower)
}

/// An argument's tensors after conversion.
enum Held {
    /// Nothing to convert.
    Same,
    One(Tensor),
    List(Vec<Tensor>),
    Options(Vec<Option<Tensor>>),
}

fn convert_args(
    args: &[Arg<'_>],
    convert: impl Fn(&Tensor) -> Result<Option<Tensor>>,
) -> Result<SmallVec<[Held; 8]>> {
    let or_same = |t: &Tensor| convert(t).map(|c| c.unwrap_or_else(|| t.clone()));
    let one = |arg: &Arg<'_>| {
        Ok(match arg {
            Arg::Tensor(t) => convert(t)?.map_or(Held::Same, Held::One),
            Arg::Tensors(list) => Held::List(list.iter().map(or_same).collect::<Result<_>>()?),
            Arg::OptTensors(list) => Held::Options(
                list.iter().map(|t| t.as_ref().map(or_same).transpose()).collect::<Result<_>>()?,
            ),
            _ => Held::Same,
        })
    };
    args.iter().map(one).collect()
}

fn with_converted<'a>(args: &[Arg<'a>], held: &'a [Held]) -> SmallVec<[Arg<'a>; 8]> {
    let place = |(arg, held): (&Arg<'a>, &'a Held)| match held {
        Held::Same => *arg,
        Held::One(tensor) => Arg::Tensor(tensor),
        Held::List(list) => Arg::Tensors(list),
        Held::Options(list) => Arg::OptTensors(list),
    };
    args.iter().zip(held).map(place).collect()
}

/// The tensor in `wanted`, if it is eligible and has another dtype.
fn convert(tensor: &Tensor, wanted: DType, is_lower: bool) -> Result<Option<Tensor>> {
    if !is_eligible(tensor) || tensor.dtype() == wanted {
        return Ok(None);
    }
    if is_lower && is_weight(tensor) && is_cache_enabled() {
        return cached(tensor, wanted).map(Some);
    }
    arithmetic::to_dtype(tensor, wanted).map(Some)
}

/// Whether it is likely to be wanted again, and to be the same then.
fn is_weight(tensor: &Tensor) -> bool {
    tensor.dtype() == DType::F32 && tensor.has_flag(Flag::REQUIRES_GRAD) && !tensor.is_view()
}

/// A weight that was converted.
struct Entry {
    /// Keeps the weight's place in memory from being another tensor's, not the weight.
    _weight: WeakTensor,
    /// What the weight showed then, and what it had been written to.
    data: usize,
    version: u32,
    cast: Tensor,
}

/// By the weight, the dtype, and whether the conversion is recorded.
type CacheKey = (usize, DType, bool);
static CACHE: Mutex<BTreeMap<CacheKey, Entry>> = Mutex::new(BTreeMap::new());

/// The weight in `wanted`, made once as long as it does not change.
fn cached(weight: &Tensor, wanted: DType) -> Result<Tensor> {
    let key = (weight.id(), wanted, mode::is_recording());
    let (data, version) = (weight.data_ptr() as usize, weight.version());
    let is_current = |entry: &&Entry| entry.data == data && entry.version == version;
    let found = lock().get(&key).filter(is_current).map(|entry| entry.cast.clone());
    if let Some(cast) = found {
        return Ok(cast);
    }
    let cast = arithmetic::to_dtype(weight, wanted)?;
    let entry = Entry { _weight: weight.downgrade(), data, version, cast: cast.clone() };
    // What goes may run anything: not while this is locked.
    let old = lock().insert(key, entry);
    drop(old);
    Ok(cast)
}

fn lock() -> std::sync::MutexGuard<'static, BTreeMap<CacheKey, Entry>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of all weights that were converted, on whatever thread.
pub fn clear_cache() {
    let old = std::mem::take(&mut *lock());
    drop(old);
}

/// How many converted weights are kept.
pub fn cached_count() -> usize {
    lock().len()
}
