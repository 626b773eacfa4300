//! A thread that ends the process, naming the call, when a call takes too long; and panics without their text on the screen.

use std::any::Any;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What runs now, and since when.
static CALL: Mutex<Option<(String, Instant)>> = Mutex::new(None);
/// A call of a few elements takes microseconds; this is for slow machines.
const LONGEST: Duration = Duration::from_secs(20);

fn set(call: Option<(String, Instant)>) {
    *CALL.lock().unwrap() = call;
}

/// Says that a call begins.
pub(crate) fn begin(name: &str) {
    set(Some((name.to_string(), Instant::now())));
}

/// Says that it ended.
pub(crate) fn end() {
    set(None);
}

/// Watches from now on, and keeps the texts of panics, which are caught, from the screen.
pub(crate) fn start() {
    std::panic::set_hook(Box::new(|info| {
        let mut place = info.location().map(ToString::to_string).unwrap_or_default();
        // (With RUST_BACKTRACE=1.)
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            place = format!("{place}\n{trace}");
        }
        *PLACE.lock().unwrap() = place;
    }));
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let call = CALL.lock().unwrap().clone();
            if let Some((name, since)) = call
                && since.elapsed() > LONGEST
            {
                // (Past the test harness, which would keep it to itself.)
                let text = format!("still running after {LONGEST:?}: {name}\n");
                let _ = std::io::stderr().write_all(text.as_bytes());
                std::process::exit(1);
            }
        }
    });
}

/// Shows panics again.
pub(crate) fn stop() {
    end();
    drop(std::panic::take_hook());
}

static PLACE: Mutex<String> = Mutex::new(String::new());

/// What a panic said, and where.
pub(crate) fn panic_text(panic: &Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    format!("{text} at {}", PLACE.lock().unwrap())
}
