//! Warnings: what the library has to say that is no error. They go to a handler (the Python face makes
//! Python warnings of them); without one they are kept for [`take_warnings`].

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, RwLock};

type Handler = fn(&str);

static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether warnings that are given once per process are given every time.
static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Says whether warnings that are given once per process are given every time; they are not unless this was called.
pub fn set_warn_always(always: bool) {
    ALWAYS.store(always, Relaxed);
}
/// What [`set_warn_always`] set.
pub fn is_warn_always() -> bool {
    ALWAYS.load(Relaxed)
}

/// Sends later warnings to `handler`.
pub fn set_warning_handler(handler: Option<fn(&str)>) {
    *HANDLER.write().unwrap_or_else(|e| e.into_inner()) = handler;
}

/// The warnings kept since the last call.
pub fn take_warnings() -> Vec<String> {
    std::mem::take(&mut *KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Warns if `given` does not say that it has.
pub(crate) fn warn_once(given: &AtomicBool, message: &str) {
    if !given.swap(true, Relaxed) || is_warn_always() {
        warn(message.to_owned());
    }
}

/// Warns.
pub(crate) fn warn(message: String) {
    let handler = *HANDLER.read().unwrap_or_else(|e| e.into_inner());
    match handler {
        Some(handler) => handler(&message),
        None => KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(message),
    }
}
