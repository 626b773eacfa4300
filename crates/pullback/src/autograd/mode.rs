//! The thread's modes: one bit mask, read once on every op's fast path.

use crate::local::local;
use std::cell::Cell;

/// The bits.
pub(crate) mod bit {
    /// Ops on tensors that require grad are recorded.
    pub(crate) const GRAD: u32 = 1;
    /// New tensors are inference tensors.
    pub(crate) const INFERENCE: u32 = 2;
    /// Forward-mode tangents are computed.
    pub(crate) const FORWARD: u32 = 4;
    /// What runs is the inside of an op: neither recorded nor tracked as a view.
    pub(crate) const BELOW: u32 = 32;
    /// Hooks pack what is saved. Follows its own scopes, not those of the other modes.
    pub(crate) const SAVED_HOOKS: u32 = 8;
    /// Somebody wants to know of writes. As above.
    pub(crate) const WRITE_OBSERVERS: u32 = 16;
    /// Backward is to use no further threads. As above.
    pub(crate) const SINGLE_THREADED: u32 = 64;
    /// Views keep the ops that make them. As above.
    pub(crate) const VIEW_REPLAY: u32 = 128;
    /// What backward makes of zeros stays zero. As above.
    pub(crate) const MASKED_ZEROS: u32 = 256;
    /// Somebody is told of what runs (see `prof`). As above.
    pub(crate) const OBSERVED: u32 = 512;
    /// For ten types of devices: ops run in dtypes that autocast chooses. As above.
    pub(crate) const AUTOCAST: u32 = 0x3ff << 16;
}

/// What holds at first; threads keep differences from it.
const DEFAULT: u32 = bit::GRAD | bit::FORWARD;
/// The bits that guards put back.
const GUARDED: u32 = bit::GRAD | bit::INFERENCE | bit::FORWARD | bit::BELOW;

/// All bits.
#[inline(always)]
pub(crate) fn current() -> u32 {
    local().modes.get() ^ DEFAULT
}

/// Puts back what the modes were when it was made.
#[must_use = "the mode lasts as long as the guard"]
pub struct ModeGuard {
    /// As the thread keeps them.
    previous: u32,
    /// The thread's modes, found once. (The guard cannot leave the thread with it.)
    modes: &'static Cell<u32>,
}

impl Drop for ModeGuard {
    #[inline(always)]
    fn drop(&mut self) {
        self.modes.set((self.modes.get() & !GUARDED) | self.previous);
    }
}

#[inline(always)]
fn set_bits(mask: u32, on: u32) -> ModeGuard {
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
/// Whether recording is turned on for this thread. In inference mode nothing is recorded all the same.
#[inline(always)]
pub fn is_grad_enabled() -> bool {
    current() & bit::GRAD != 0
}
/// Whether ops are recorded on this thread.
#[inline(always)]
pub(crate) fn is_recording() -> bool {
    current() & (bit::GRAD | bit::INFERENCE | bit::BELOW) == bit::GRAD
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
/// Inside of an op that somebody else answers, as long as the guard lives: recording stays turned on, but nothing is recorded.
pub(crate) fn below() -> ModeGuard {
    set_bits(bit::BELOW, bit::BELOW)
}
/// Says whether what this thread runs is the inside of such an op; gives what held before. Where it is not, ops are
/// recorded and writes are counted again.
pub fn set_below(is_below: bool) -> bool {
    let previous = self::is_below();
    set_bit(bit::BELOW, is_below);
    previous
}
/// Whether what runs is the inside of such an op.
#[inline(always)]
pub(super) fn is_below() -> bool {
    current() & bit::BELOW != 0
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
pub fn is_inference_mode() -> bool {
    current() & bit::INFERENCE != 0
}
/// Whether backward on this thread may use further threads; it is so at first.
pub fn is_multithreading_enabled() -> bool {
    current() & bit::SINGLE_THREADED == 0
}
/// Says whether it may. (One thread runs a graph in any case; but the order of its nodes is told only where it may not.)
pub fn set_multithreading_enabled(enabled: bool) {
    set_bit(bit::SINGLE_THREADED, !enabled);
}
/// Says whether views made on this thread from now on keep the ops that make them, so that these are what their history
/// is made of again after writes to their base.
pub fn set_view_replay_enabled(enabled: bool) {
    set_bit(bit::VIEW_REPLAY, enabled);
}
/// Whether they do.
pub fn is_view_replay_enabled() -> bool {
    current() & bit::VIEW_REPLAY != 0
}
/// Says whether what backward makes of zero gradients on this thread is zero (see [`super::masked_zeros`]).
pub fn set_masked_zeros(enabled: bool) {
    set_bit(bit::MASKED_ZEROS, enabled);
}
/// Whether it is.
#[inline]
pub fn is_masked_zeros() -> bool {
    current() & bit::MASKED_ZEROS != 0
}
/// Whether a call of an op is more than that: it is observed, or autocast is on.
#[inline(always)]
pub(super) fn is_surrounded() -> bool {
    current() & (bit::AUTOCAST | bit::OBSERVED) != 0
}
/// Sets bits that follow their own scopes.
pub(crate) fn set_bit(bit: u32, on: bool) {
    let modes = &local().modes;
    modes.set((modes.get() & !bit) | if on { bit } else { 0 });
}
/// The thread's modes as one opaque number, for scopes that do not nest lexically (Python's).
pub fn snapshot() -> u32 {
    current()
}
/// Puts back what [`snapshot`] gave.
pub fn restore(modes: u32) {
    let kept = &local().modes;
    kept.set((kept.get() & !GUARDED) | ((modes ^ DEFAULT) & GUARDED));
}
