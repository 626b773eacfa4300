//! The thread's modes and keys: one word, read once on every op's fast path.
//!
//! The lower half are modes: what is on for this thread. The upper half are the dispatch keys that the thread includes in
//! every call and those that it excludes (`tensor::key`).

use crate::local::local;
use crate::tensor::Key;
use std::cell::Cell;

/// The bits of the modes.
pub(crate) mod bit {
    /// Ops on tensors that require grad are recorded.
    pub(crate) const GRAD: u64 = 1;
    /// New tensors are inference tensors.
    pub(crate) const INFERENCE: u64 = 2;
    /// Forward-mode tangents are computed.
    pub(crate) const FORWARD: u64 = 4;
    /// Hooks pack saved tensors. The bit follows its own scopes, not those of [`ModeGuard`].
    pub(crate) const SAVED_HOOKS: u64 = 8;
    /// Observers are told of writes. The bit follows its own scopes.
    pub(crate) const WRITE_OBSERVERS: u64 = 16;
    /// Backward uses no further threads. The bit follows its own scopes.
    pub(crate) const SINGLE_THREADED: u64 = 64;
    /// Views keep the ops that make them. The bit follows its own scopes.
    pub(crate) const VIEW_REPLAY: u64 = 128;
    /// Gradients that backward computes from zeros are zero. The bit follows its own scopes.
    pub(crate) const MASKED_ZEROS: u64 = 256;
    /// A `.grad` may be laid out otherwise than its leaf. The bit follows its own scopes.
    pub(crate) const FREE_GRAD_LAYOUT: u64 = 512;
    /// Hooks see each node that is made. The bit follows its own scopes.
    pub(crate) const CREATION_HOOKS: u64 = 1024;
    /// Ops run in dtypes that autocast chooses: a bit for each of ten types of devices. The bits follow their own scopes.
    pub(crate) const AUTOCAST: u64 = 0x3ff << 16;
}

/// The initial modes; threads keep the differences from them.
const DEFAULT: u64 = bit::GRAD | bit::FORWARD;
/// The keys of the layers that record: inside of an op that another layer computes, they are excluded.
const RECORDING: u64 = Key::Autograd.excluded() | Key::ADInplaceOrView.excluded();
/// The bits that guards restore.
const GUARDED: u64 = bit::GRAD | bit::INFERENCE | bit::FORWARD | RECORDING;

/// All modes of this thread.
#[inline(always)]
pub(crate) fn current() -> u64 {
    local().modes.get() ^ DEFAULT
}

/// A guard that restores the modes of the time when it was made.
#[must_use = "the mode lasts as long as the guard"]
pub struct ModeGuard {
    /// The previous modes, as the thread keeps them.
    previous: u64,
    /// The thread's modes, found once. (The guard cannot leave the thread with it.)
    modes: &'static Cell<u64>,
}

impl Drop for ModeGuard {
    #[inline(always)]
    fn drop(&mut self) {
        self.modes.set((self.modes.get() & !GUARDED) | self.previous);
    }
}

#[inline(always)]
fn set_bits(mask: u64, on: u64) -> ModeGuard {
    let modes = &local().modes;
    let previous = modes.get();
    modes.set((previous & !mask) | (on ^ DEFAULT & mask));
    ModeGuard { previous: previous & GUARDED, modes }
}

/// Turns recording on or off for this thread as long as the guard lives.
#[inline(always)]
pub fn set_grad(enabled: bool) -> ModeGuard {
    set_bits(bit::GRAD, if enabled { bit::GRAD } else { 0 })
}
/// Turns recording on or off for this thread for good.
pub fn set_grad_enabled(enabled: bool) {
    std::mem::forget(set_grad(enabled));
}
/// Whether recording is turned on for this thread. (In inference mode nothing is recorded even so.)
#[inline(always)]
pub fn is_grad_enabled() -> bool {
    current() & bit::GRAD != 0
}
/// Whether ops are recorded on this thread.
#[inline(always)]
pub(crate) fn is_recording() -> bool {
    current() & (bit::GRAD | bit::INFERENCE | Key::Autograd.excluded()) == bit::GRAD
}
/// Turns the computation of tangents on or off for this thread as long as the guard lives.
#[inline(always)]
pub fn set_forward(enabled: bool) -> ModeGuard {
    set_bits(bit::FORWARD, if enabled { bit::FORWARD } else { 0 })
}
/// Turns the computation of tangents on or off for this thread for good.
pub fn set_forward_enabled(enabled: bool) {
    std::mem::forget(set_forward(enabled));
}
/// Whether this thread computes tangents; not in inference mode.
pub fn is_forward_enabled() -> bool {
    current() & bit::FORWARD != 0
}
/// Excludes the layers that record, as long as the guard lives: the inside of an op that another layer computes. Grad mode
/// stays on, but nothing is recorded, no view is linked and no write counted.
pub(crate) fn exclude_recording() -> ModeGuard {
    set_bits(RECORDING, RECORDING)
}
/// Excludes (or includes) the layers that record on this thread; returns the previous value.
pub fn set_recording_excluded(is_excluded: bool) -> bool {
    let previous = is_tracking_excluded();
    set_bit(RECORDING, is_excluded);
    previous
}
/// Whether views are not linked and writes not counted: what runs is the inside of an op that another layer computes.
#[inline(always)]
pub(crate) fn is_tracking_excluded() -> bool {
    current() & Key::ADInplaceOrView.excluded() != 0
}
/// Whether tangents are computed on this thread: forward mode is not turned off, and the layers that record run.
#[inline(always)]
pub(in crate::autograd) fn is_pushing_forward() -> bool {
    current() & (bit::FORWARD | Key::Autograd.excluded()) == bit::FORWARD
}
/// No recording as long as the guard lives.
pub fn no_grad() -> ModeGuard {
    set_grad(false)
}
/// Recording as long as the guard lives.
pub fn enable_grad() -> ModeGuard {
    set_grad(true)
}
/// Turns inference mode on or off: off also turns recording back on, as PyTorch has it.
pub fn inference_mode(enabled: bool) -> ModeGuard {
    let on = if enabled { bit::INFERENCE } else { bit::GRAD | bit::FORWARD };
    set_bits(bit::INFERENCE | bit::GRAD | bit::FORWARD, on)
}
/// Whether this thread is in inference mode.
#[inline]
pub fn is_inference_mode() -> bool {
    current() & bit::INFERENCE != 0
}
/// Whether backward on this thread may use further threads, as it may initially.
pub fn is_multithreading_enabled() -> bool {
    current() & bit::SINGLE_THREADED == 0
}
/// Allows or forbids that backward on this thread uses further threads: those of devices, and those
/// of the pool for large branches, whose effects are those of one thread.
pub fn set_multithreading_enabled(enabled: bool) {
    set_bit(bit::SINGLE_THREADED, !enabled);
}
/// Makes views keep the ops that make them (or not), from now on on this thread. After a write to its base such a view gets its
/// history from these ops again.
pub fn set_view_replay_enabled(enabled: bool) {
    set_bit(bit::VIEW_REPLAY, enabled);
}
/// Whether views made on this thread keep the ops that make them.
pub fn is_view_replay_enabled() -> bool {
    current() & bit::VIEW_REPLAY != 0
}
/// Makes gradients that backward computes from zero gradients zero (or not), on this thread (see
/// [`crate::autograd::masked_zeros`]).
pub fn set_masked_zeros(enabled: bool) {
    set_bit(bit::MASKED_ZEROS, enabled);
}
/// Whether gradients that backward computes from zero gradients are zero on this thread.
#[inline]
pub fn is_masked_zeros() -> bool {
    current() & bit::MASKED_ZEROS != 0
}
/// Says whether backward on this thread gives a leaf's `.grad` the layout of the leaf, as it does initially, or takes gradients as they
/// come, without a warning.
pub fn set_grad_layout_enforced(enforced: bool) {
    set_bit(bit::FREE_GRAD_LAYOUT, !enforced);
}
/// Whether a leaf's `.grad` gets the layout of the leaf on this thread.
pub fn is_grad_layout_enforced() -> bool {
    current() & bit::FREE_GRAD_LAYOUT == 0
}
/// A guard that restores all modes of the time when it was made.
pub(in crate::autograd) struct AllModes(u64);

impl Drop for AllModes {
    fn drop(&mut self) {
        local().modes.set(self.0);
    }
}

/// Makes `modes`, which [`snapshot`] returned, the modes of this thread as long as the guard lives, with the bits that follow
/// their own scopes.
pub(in crate::autograd) fn set_all(modes: u64) -> AllModes {
    AllModes(local().modes.replace(modes ^ DEFAULT))
}
/// Sets bits that follow their own scopes.
pub(crate) fn set_bit(bit: u64, on: bool) {
    let modes = &local().modes;
    modes.set((modes.get() & !bit) | if on { bit } else { 0 });
}
/// The thread's modes as one opaque number, for scopes that do not nest lexically (Python's).
pub fn snapshot() -> u64 {
    current()
}
/// Restores modes that [`snapshot`] returned.
pub fn restore(modes: u64) {
    let kept = &local().modes;
    kept.set((kept.get() & !GUARDED) | ((modes ^ DEFAULT) & GUARDED));
}
