//! Where a program called the library: the lines that errors of the graph name.
//!
//! A [`CallSite`] is one word, taken where a node is made or a tensor that somebody saved is written to; it becomes a
//! [`SourceLine`] in a source file only when an error is put together. Rust programs are known by `#[track_caller]`, those
//! in another language by its binding ([`crate::host`]). Invariant: while a thread runs an op's inside, a backward or
//! anything without the binding's lock, its own word (`Local::call_site`) says for whom, and the binding is not asked.
//! Not here: what errors say (`autograd::blame`).

use crate::host::{Host, host};
use crate::local::local;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;

/// Where a call was made, in one word: a Rust location, or a number of the host's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CallSite(u64);

/// A line of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// The file's name as the compiler knew it.
    pub file: String,
    /// The line's number, from 1 on.
    pub line: u32,
    /// The function that it is in.
    pub function: Option<String>,
    /// The line, if its file can be read.
    pub text: Option<String>,
    /// Which characters of the line made the call: the first one and the one after the last, from 0 on.
    pub columns: Option<(u32, u32)>,
}

impl CallSite {
    /// The call site of calls that neither the program nor a host can name.
    pub const UNKNOWN: CallSite = CallSite(0);
    /// As [`CallSite::UNKNOWN`], while a guard lives that also keeps the host from being asked.
    const NOWHERE: CallSite = CallSite(2);

    /// The call site as a number, for atomics.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }
    /// The call site of a number that [`CallSite::to_bits`] gave.
    pub(crate) fn from_bits(bits: u64) -> CallSite {
        CallSite(bits)
    }
    fn of(location: &'static Location<'static>) -> CallSite {
        CallSite(std::ptr::from_ref(location) as u64)
    }
    /// One of the host's numbers.
    fn of_host(number: u64) -> CallSite {
        CallSite(if number == 0 { 0 } else { number << 1 | 1 })
    }

    /// Where the program is now, on this thread.
    #[inline(always)]
    pub fn here() -> CallSite {
        let own = local().call_site.get();
        if own != 0 {
            return CallSite(own);
        }
        host().map_or(CallSite::UNKNOWN, |host| CallSite::of_host(host.line()))
    }

    /// Whether this thread runs the inside of an op, a backward, or anything without the binding's
    /// lock: then its own word has the call site.
    pub(crate) fn is_inside() -> bool {
        local().call_site.get() != 0
    }

    /// The lines of the program that led here, innermost first; of a Rust program only the innermost is known.
    pub(crate) fn stack() -> Vec<CallSite> {
        let frames = host().map_or_else(Vec::new, Host::call_stack);
        if !frames.is_empty() {
            return frames.into_iter().map(CallSite::of_host).collect();
        }
        let own = CallSite(local().call_site.get());
        if own == CallSite::UNKNOWN || own == CallSite::NOWHERE { Vec::new() } else { vec![own] }
    }

    /// As [`CallSite::here`]; without a host to ask, it is `caller`.
    #[inline(always)]
    pub(crate) fn for_caller(caller: &'static Location<'static>) -> CallSite {
        let own = local().call_site.get();
        if own != 0 {
            return CallSite(own);
        }
        host().map_or_else(|| CallSite::of(caller), |host| CallSite::of_host(host.line()))
    }

    /// The line of source code, with its text; `None` if it is not known.
    pub fn source_line(self) -> Option<SourceLine> {
        match self {
            CallSite::UNKNOWN | CallSite::NOWHERE => None,
            CallSite(number) if number & 1 == 1 => host()?.source_line(number >> 1),
            CallSite(address) => {
                // SAFETY: an even number above 2 is the address of a location that lives as long as the program
                // (`CallSite::of` makes no others).
                let location = unsafe { &*(address as *const Location<'static>) };
                Some(SourceLine {
                    file: location.file().to_owned(),
                    line: location.line(),
                    function: None,
                    text: read_line(location.file(), location.line()),
                    columns: None,
                })
            }
        }
    }

    /// Makes this the call site of all calls of this thread until the guard is dropped; the host is not asked.
    #[must_use = "the call site holds as long as the guard"]
    pub fn enter(self) -> Scope {
        let call_site = if self == CallSite::UNKNOWN { CallSite::NOWHERE } else { self };
        Scope::set(call_site.0)
    }
}

/// A guard that restores the thread's previous call site when it is dropped.
pub struct Scope {
    call_site: &'static Cell<u64>,
    previous: u64,
}

impl Scope {
    #[inline(always)]
    fn set(number: u64) -> Scope {
        let call_site = &local().call_site;
        Scope { call_site, previous: call_site.replace(number) }
    }

    /// For Rust programs: makes `caller` the call site until the guard is dropped, unless the thread has a call site already
    /// or the program has a host that knows it.
    #[inline(always)]
    pub(crate) fn of_caller(caller: &'static Location<'static>) -> Scope {
        let call_site = &local().call_site;
        let previous = call_site.get();
        if previous == 0 && host().is_none() {
            call_site.set(CallSite::of(caller).0);
        }
        Scope { call_site, previous }
    }

    /// Until the guard is dropped the host's program runs on this thread, and the host is asked for call sites.
    #[must_use = "the host is asked as long as the guard lives"]
    pub fn of_host() -> Scope {
        Scope::set(0)
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        self.call_site.set(self.previous);
    }
}

/// Line `number` of a file, if there is such a file here. (Compilers write names from the folder of the workspace on,
/// and programs run in folders below it.)
fn read_line(file: &str, number: u32) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let text = here.ancestors().find_map(|dir| std::fs::read_to_string(dir.join(file)).ok())?;
    text.lines().nth(number.checked_sub(1)? as usize).map(str::to_owned)
}

impl fmt::Display for SourceLine {
    /// As the lines of a traceback, indented by four, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "    File \"{}\", line {}", self.file, self.line)?;
        if let Some(function) = &self.function {
            write!(f, ", in {function}")?;
        }
        let Some(text) = self.text.as_deref().filter(|text| !text.trim().is_empty()) else {
            return Ok(());
        };
        let shown = text.trim();
        write!(f, "\n      {shown}")?;
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let length = shown.chars().count();
        let Some((start, end)) = self.columns else { return Ok(()) };
        let start = (start as usize).saturating_sub(indent).min(length);
        let end = (end as usize).saturating_sub(indent).min(length);
        // (Marks under all of the line say nothing.)
        if start < end && end - start < length {
            write!(f, "\n      {}{}", " ".repeat(start), "^".repeat(end - start))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, columns: Option<(u32, u32)>) -> String {
        let (file, text) = ("a.py".to_owned(), Some(text.to_owned()));
        SourceLine { file, line: 3, function: Some("f".to_owned()), text, columns }.to_string()
    }

    #[test]
    fn a_line_prints_as_in_a_traceback_with_marks_under_the_call() {
        let shown = line("    y = a * b + c", Some((8, 13)));
        assert_eq!(shown, "    File \"a.py\", line 3, in f\n      y = a * b + c\n          ^^^^^");
        let whole = line("  x.add_(1)  ", Some((2, 11)));
        assert_eq!(whole, "    File \"a.py\", line 3, in f\n      x.add_(1)");
        assert_eq!(line("   ", Some((0, 9))), "    File \"a.py\", line 3, in f");
        let beyond = line("x = 1", Some((4, 400)));
        assert!(beyond.ends_with("x = 1\n          ^"));
    }

    #[test]
    fn the_outermost_rust_caller_is_named() {
        let _outer = Scope::of_caller(Location::caller());
        let call_site = CallSite::here();
        {
            let _inner = Scope::of_caller(Location::caller());
            assert_eq!(CallSite::here(), call_site);
        }
        let line = call_site.source_line().unwrap();
        assert!(line.file.ends_with("call_site.rs") && line.text.unwrap().contains("_outer"));
        let _none = CallSite::UNKNOWN.enter();
        assert_eq!(CallSite::here().source_line(), None);
    }
}
