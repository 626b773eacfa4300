//! All that a thread works under, for another thread: modes, hooks, casts, levels, and the line of the program.
//!
//! A backward that goes on in another thread takes all of it along. Invariant: whatever the thread that goes on computes is
//! what the first one would have computed. What layers above keep for each thread comes along by a [`Carrier`].

use super::{autocast, dispatch_mode, level, mode, saved_hooks, vmap};
use crate::prof::{self, Left};
use crate::site::{Scope, Site};
use std::sync::{Arc, OnceLock};

/// What a layer above keeps for each thread: called on the thread that a backward was called on, it gives what the thread
/// that goes on calls first.
pub type Carrier = fn() -> Box<dyn FnOnce() + Send>;
static CARRIER: OnceLock<Carrier> = OnceLock::new();

/// Says once what else goes along when a backward goes on in another thread.
pub fn set_carrier(carrier: Carrier) {
    let _ = CARRIER.set(carrier);
}

/// All that a thread works under.
pub(in crate::autograd) struct ThreadState {
    modes: u64,
    is_multithreaded: bool,
    hooks: Vec<Arc<dyn saved_hooks::SavedTensorHooks>>,
    dispatch_modes: dispatch_mode::Snapshot,
    casts: autocast::State,
    levels: Vec<vmap::Level>,
    seen: usize,
    site: Site,
    observers: prof::State,
    outer: Option<Box<dyn FnOnce() + Send>>,
}

impl ThreadState {
    /// Of this thread.
    pub(in crate::autograd) fn take() -> ThreadState {
        ThreadState {
            modes: mode::snapshot(),
            is_multithreaded: mode::is_multithreading_enabled(),
            hooks: saved_hooks::snapshot(),
            dispatch_modes: dispatch_mode::Snapshot::take(),
            casts: autocast::snapshot(),
            levels: vmap::snapshot(),
            seen: level::snapshot(),
            site: Site::here(),
            observers: prof::State::take(),
            outer: CARRIER.get().map(|carry| carry()),
        }
    }

    /// Puts it onto this thread, which has nothing of its own. The line holds as long as the guards, and so do observers.
    pub(in crate::autograd) fn enter(self) -> (Left, Scope) {
        mode::restore(self.modes);
        mode::set_multithreading_enabled(self.is_multithreaded);
        mode::set_masked_zeros(self.modes & mode::bit::MASKED_ZEROS != 0);
        mode::set_view_replay_enabled(self.modes & mode::bit::VIEW_REPLAY != 0);
        saved_hooks::restore(self.hooks);
        self.dispatch_modes.restore();
        autocast::restore(&self.casts);
        vmap::restore(self.levels);
        level::restore(self.seen);
        if let Some(take_over) = self.outer {
            take_over();
        }
        (self.observers.enter(), self.site.enter())
    }
}
