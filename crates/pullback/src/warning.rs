//! Warnings. They go to a handler (the Python binding makes Python warnings of them); without one
//! they are kept for [`take_warnings`].

use pullback_kernels::spelling::Text;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, RwLock};

type Handler = fn(&str);

static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether warnings that are given once per process are given every time.
static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Makes warnings that are given once per process be given every time (or not, as initially).
pub fn set_warn_always(always: bool) {
    ALWAYS.store(always, Relaxed);
}
/// The value that [`set_warn_always`] set.
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

thread_local! {
    /// The warnings of a thread that works for another one, which sends them to the handler.
    static WITHHELD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Withholds this thread's warnings from now on, for [`withheld`].
pub(crate) fn withhold() {
    WITHHELD.set(Some(Vec::new()));
}
/// The warnings that this thread has withheld since the last call.
pub(crate) fn withheld() -> Vec<String> {
    WITHHELD.with(|kept| kept.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default())
}

/// The result of `work`, and the warnings that this thread would have sent meanwhile, for the
/// thread that sends them.
pub(crate) fn collected<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    struct RestoredWarnings(Option<Vec<String>>);
    impl Drop for RestoredWarnings {
        fn drop(&mut self) {
            WITHHELD.set(self.0.take());
        }
    }
    let _restored = RestoredWarnings(WITHHELD.replace(Some(Vec::new())));
    let result = work();
    (result, withheld())
}

/// Warns if `given` is not set, and sets it.
pub(crate) fn warn_once(given: &AtomicBool, message: &str) {
    if !given.swap(true, Relaxed) || is_warn_always() {
        warn(message.to_owned());
    }
}

/// Sends a warning to the handler, or keeps it.
pub(crate) fn warn(message: String) {
    let is_kept = |kept: &RefCell<Option<Vec<String>>>| {
        kept.borrow_mut().as_mut().map(|kept| kept.push(message.clone())).is_some()
    };
    if WITHHELD.with(is_kept) {
        return;
    }
    let handler = *HANDLER.read().unwrap_or_else(|e| e.into_inner());
    if let Some(handler) = handler {
        return handler(Text::from(message).pytorch());
    }
    let text = Text::from(message).to_string();
    KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
}
