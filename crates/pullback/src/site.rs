//! Where a program called the library: the lines that errors of the graph name.
//!
//! A [`Site`] is one word, taken where a node is made or a tensor that somebody saved is written to; it becomes a
//! [`Place`] in a source file only when an error is put together. Rust programs are known by `#[track_caller]`, those
//! in another language by its binding ([`crate::host`]). Invariant: while a thread runs an op's inside, a backward or
//! anything without the binding's lock, its own word (`Local::site`) says for whom, and the binding is not asked.
//! Not here: what errors say (`autograd::blame`).

use crate::host::{Host, host};
use crate::local::local;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;

/// Where a call was made, in one word: a Rust location, or a number of the host's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Site(u64);

/// A line of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
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

impl Site {
    /// Nobody knows.
    pub const UNKNOWN: Site = Site(0);
    /// Nobody is to be asked.
    const NOWHERE: Site = Site(2);

    /// To be kept where only numbers can be.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }
    /// What [`Site::to_bits`] gave.
    pub(crate) fn from_bits(bits: u64) -> Site {
        Site(bits)
    }
    fn of(location: &'static Location<'static>) -> Site {
        Site(std::ptr::from_ref(location) as u64)
    }
    /// One of the host's numbers.
    fn of_host(number: u64) -> Site {
        Site(if number == 0 { 0 } else { number << 1 | 1 })
    }

    /// Where the program is now, on this thread.
    #[inline(always)]
    pub fn here() -> Site {
        let own = local().site.get();
        if own != 0 {
            return Site(own);
        }
        host().map_or(Site::UNKNOWN, |host| Site::of_host(host.line()))
    }

    /// Whether this thread runs the inside of an op, a backward, or anything without the binding's lock: then its own word
    /// says where that was called.
    pub(crate) fn is_inside() -> bool {
        local().site.get() != 0
    }

    /// The lines of the program that led here, innermost first; of a Rust program only the innermost is known.
    pub(crate) fn stack() -> Vec<Site> {
        let frames = host().map_or_else(Vec::new, Host::call_stack);
        if !frames.is_empty() {
            return frames.into_iter().map(Site::of_host).collect();
        }
        let own = Site(local().site.get());
        if own == Site::UNKNOWN || own == Site::NOWHERE { Vec::new() } else { vec![own] }
    }

    /// As [`Site::here`]; without a host to ask, it is `caller`.
    #[inline(always)]
    pub(crate) fn for_caller(caller: &'static Location<'static>) -> Site {
        let own = local().site.get();
        if own != 0 {
            return Site(own);
        }
        host().map_or_else(|| Site::of(caller), |host| Site::of_host(host.line()))
    }

    /// The line, with its text.
    pub fn place(self) -> Option<Place> {
        match self {
            Site::UNKNOWN | Site::NOWHERE => None,
            Site(number) if number & 1 == 1 => host()?.place(number >> 1),
            Site(address) => {
                // SAFETY: an even number above 2 is the address of a location that lives as long as the program
                // (`Site::of` makes no others).
                let location = unsafe { &*(address as *const Location<'static>) };
                Some(Place {
                    file: location.file().to_owned(),
                    line: location.line(),
                    function: None,
                    text: read_line(location.file(), location.line()),
                    columns: None,
                })
            }
        }
    }

    /// Until the guard is dropped, this is where this thread's calls come from; nobody is asked.
    #[must_use = "the site holds as long as the guard"]
    pub fn enter(self) -> Scope {
        let site = if self == Site::UNKNOWN { Site::NOWHERE } else { self };
        Scope::set(site.0)
    }
}

/// Puts back where the thread's calls came from before.
pub struct Scope {
    site: &'static Cell<u64>,
    previous: u64,
}

impl Scope {
    #[inline(always)]
    fn set(number: u64) -> Scope {
        let site = &local().site;
        Scope { site, previous: site.replace(number) }
    }

    /// For Rust programs: what happens until the guard is dropped happens for `caller`, unless it happens inside of
    /// something else or a binding is there to be asked.
    #[inline(always)]
    pub(crate) fn of_caller(caller: &'static Location<'static>) -> Scope {
        let site = &local().site;
        let previous = site.get();
        if previous == 0 && host().is_none() {
            site.set(Site::of(caller).0);
        }
        Scope { site, previous }
    }

    /// Until the guard is dropped the binding's program runs on this thread and is asked where it is.
    #[must_use = "the binding is asked as long as the guard lives"]
    pub fn of_host() -> Scope {
        Scope::set(0)
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        self.site.set(self.previous);
    }
}

/// Line `number` of a file, if there is such a file here. (Compilers write names from the folder of the workspace on,
/// and programs run in folders below it.)
fn read_line(file: &str, number: u32) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let text = here.ancestors().find_map(|dir| std::fs::read_to_string(dir.join(file)).ok())?;
    text.lines().nth(number.checked_sub(1)? as usize).map(str::to_owned)
}

impl fmt::Display for Place {
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

    fn place(text: &str, columns: Option<(u32, u32)>) -> String {
        let (file, text) = ("a.py".to_owned(), Some(text.to_owned()));
        Place { file, line: 3, function: Some("f".to_owned()), text, columns }.to_string()
    }

    #[test]
    fn a_place_prints_as_in_a_traceback_with_marks_under_the_call() {
        let shown = place("    y = a * b + c", Some((8, 13)));
        assert_eq!(shown, "    File \"a.py\", line 3, in f\n      y = a * b + c\n          ^^^^^");
        let whole = place("  x.add_(1)  ", Some((2, 11)));
        assert_eq!(whole, "    File \"a.py\", line 3, in f\n      x.add_(1)");
        assert_eq!(place("   ", Some((0, 9))), "    File \"a.py\", line 3, in f");
        let beyond = place("x = 1", Some((4, 400)));
        assert!(beyond.ends_with("x = 1\n          ^"));
    }

    #[test]
    fn the_outermost_rust_caller_is_named() {
        let _outer = Scope::of_caller(Location::caller());
        let site = Site::here();
        {
            let _inner = Scope::of_caller(Location::caller());
            assert_eq!(Site::here(), site);
        }
        let place = site.place().unwrap();
        assert!(place.file.ends_with("site.rs") && place.text.unwrap().contains("_outer"));
        let _none = Site::UNKNOWN.enter();
        assert_eq!(Site::here().place(), None);
    }
}
