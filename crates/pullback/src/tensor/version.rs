//! The version counter that tensors of one memory share: how often it was written to in place.
//!
//! Once somebody saved such a tensor for backward, the counter also remembers the last write, so that the error of a
//! stale value can name its line. Invariant: the count decides; what is remembered besides is only printed, and of
//! two writes at one moment it may be a mixture.

use crate::call_site::CallSite;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The counter.
pub(crate) struct Version {
    count: AtomicU32,
    is_watched: AtomicBool,
    is_out: AtomicBool,
    /// The name of the op that wrote last; null before the first watched write.
    by: AtomicPtr<&'static str>,
    at: AtomicU64,
}

/// The form of an op that writes, with its name.
#[derive(Clone, Copy)]
pub(crate) enum Writer {
    /// The in-place form of the op of this name, or what a program calls if that ends with a parenthesis.
    Inplace(&'static &'static str),
    /// Its form with `out=`.
    Out(&'static &'static str),
}

impl Version {
    #[inline]
    pub(crate) const fn new(count: u32) -> Version {
        Version {
            count: AtomicU32::new(count),
            is_watched: AtomicBool::new(false),
            is_out: AtomicBool::new(false),
            by: AtomicPtr::new(null_mut()),
            at: AtomicU64::new(0),
        }
    }
    /// A counter that starts at this count and is independent of it.
    pub(crate) fn fork(&self) -> Version {
        Version {
            count: AtomicU32::new(self.get()),
            is_watched: AtomicBool::new(self.is_watched()),
            is_out: AtomicBool::new(self.is_out.load(Ordering::Relaxed)),
            by: AtomicPtr::new(self.by.load(Ordering::Relaxed)),
            at: AtomicU64::new(self.at.load(Ordering::Relaxed)),
        }
    }
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }
    pub(crate) fn set(&self, count: u32) {
        self.count.store(count, Ordering::Release);
    }
    /// Counts a write.
    #[inline(always)]
    pub(crate) fn bump(&self, writer: Writer) {
        self.count.fetch_add(1, Ordering::AcqRel);
        if self.is_watched.load(Ordering::Relaxed) {
            self.remember(writer);
        }
    }
    #[inline(never)]
    fn remember(&self, writer: Writer) {
        let (Writer::Inplace(name) | Writer::Out(name)) = writer;
        self.is_out.store(matches!(writer, Writer::Out(_)), Ordering::Relaxed);
        self.by.store(std::ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
        self.at.store(CallSite::here().to_bits(), Ordering::Relaxed);
    }
    /// Makes the counter remember the last write from now on.
    #[inline(always)]
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }
    /// The last write, if it was remembered.
    pub(crate) fn last_write(&self) -> Option<Write> {
        // SAFETY: null, or the address of a name that lives as long as the program.
        let name = unsafe { self.by.load(Ordering::Relaxed).as_ref() }?;
        let is_out = self.is_out.load(Ordering::Relaxed);
        let is_op = !name.ends_with(['_', ')']);
        Some(Write {
            text: match is_out {
                true => format!("{name}(out=...)"),
                false if is_op => format!("{name}_"),
                false => (*name).to_owned(),
            },
            functional: (is_op && !is_out).then_some(*name),
            is_out,
            call_site: CallSite::from_bits(self.at.load(Ordering::Relaxed)),
        })
    }
}

/// A write that was remembered.
pub(crate) struct Write {
    /// The write as a program spells it.
    pub(crate) text: String,
    /// The name of the out-of-place form, if there is one.
    pub(crate) functional: Option<&'static str>,
    /// Whether it was the form with `out=`.
    pub(crate) is_out: bool,
    pub(crate) call_site: CallSite,
}
