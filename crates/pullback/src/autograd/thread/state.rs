//! The whole state of a thread, for another thread: modes, hooks, autocast, levels, and the call site.
//!
//! A backward that goes on in another thread takes all of it along. Invariant: what the other thread computes is what the first
//! one would have computed. What the program's language keeps for each thread comes along by
//! [`Host::thread_state`](crate::host::Host::thread_state). A [`QuietState`] is that of a thread on which nobody can watch
//! the ops of a backward, so that there is little to take along, and threads of the pool can work for it.

use super::{autocast, creation_hooks, dispatch_mode, level, mode, saved_hooks, vmap};
use crate::autograd::thread::mode::bit;
use crate::call_site::{CallSite, Scope};
use crate::host::{Host, host};
use crate::prof::{self, Left};
use std::sync::Arc;

/// The state of a thread.
pub(in crate::autograd) struct ThreadState {
    modes: u64,
    is_multithreaded: bool,
    hooks: Vec<Arc<dyn saved_hooks::SavedTensorHooks>>,
    creation_hooks: Vec<creation_hooks::AnyHook>,
    dispatch_modes: dispatch_mode::Snapshot,
    casts: autocast::AutocastState,
    levels: Vec<vmap::VmapLevel>,
    seen: usize,
    call_site: CallSite,
    observers: prof::InheritedObservers,
    of_host: Option<Box<dyn FnOnce() + Send>>,
}

impl ThreadState {
    /// The state of this thread.
    pub(in crate::autograd) fn take() -> ThreadState {
        ThreadState {
            modes: mode::snapshot(),
            is_multithreaded: mode::is_multithreading_enabled(),
            hooks: saved_hooks::snapshot(),
            creation_hooks: creation_hooks::snapshot(),
            dispatch_modes: dispatch_mode::Snapshot::take(),
            casts: autocast::snapshot(),
            levels: vmap::snapshot(),
            seen: level::snapshot(),
            call_site: CallSite::here(),
            observers: prof::InheritedObservers::take(),
            of_host: host().map(Host::thread_state),
        }
    }

    /// Makes this the state of the current thread, which has none of its own. Call site and observers hold as long as the
    /// guards.
    pub(in crate::autograd) fn enter(self) -> (Left, Scope) {
        mode::restore(self.modes);
        mode::set_multithreading_enabled(self.is_multithreaded);
        mode::set_masked_zeros(self.modes & mode::bit::MASKED_ZEROS != 0);
        mode::set_view_replay_enabled(self.modes & mode::bit::VIEW_REPLAY != 0);
        mode::set_grad_layout_enforced(self.modes & mode::bit::FREE_GRAD_LAYOUT == 0);
        saved_hooks::restore(self.hooks);
        creation_hooks::restore(self.creation_hooks);
        self.dispatch_modes.restore();
        autocast::restore(&self.casts);
        vmap::restore(self.levels);
        level::restore(self.seen);
        if let Some(take_over) = self.of_host {
            take_over();
        }
        (self.observers.enter(), self.call_site.enter())
    }
}

/// The state of a thread that records nothing, and where no mode, hook, level or observer is on that could see its ops.
#[derive(Clone, Copy)]
pub(in crate::autograd) struct QuietState {
    modes: u64,
    call_site: CallSite,
}

/// The modes of a quiet thread: the others, and all keys, are off.
const QUIET: u64 = bit::FORWARD | bit::FREE_GRAD_LAYOUT;

impl QuietState {
    /// The state of this thread, if it is quiet.
    pub(in crate::autograd) fn take() -> Option<QuietState> {
        let modes = mode::snapshot();
        let is_quiet = modes & !QUIET == 0 && !level::is_open();
        is_quiet.then(|| QuietState { modes, call_site: CallSite::here() })
    }

    /// Makes this the state of the current thread as long as the guards live.
    pub(in crate::autograd) fn enter(self) -> (mode::AllModes, Scope) {
        (mode::set_all(self.modes), self.call_site.enter())
    }
}
