//! An allocator that refuses on purpose and looks out for those who insist.
//!
//! It refuses only what becomes an error ([`memory::refusal`]); anything else would end the process. What it does and
//! notes is the thread's own, but for the live bytes, which are the process's.

use pullback_kernels::memory::{self, Refusal};
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

pub(crate) struct Watchful;

#[global_allocator]
static ALLOCATOR: Watchful = Watchful;

static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Refuses nothing.
const NEVER: usize = usize::MAX;

thread_local! {
    /// How many requests came that may be refused, since [`refusing`] began.
    static ASKED: Cell<usize> = const { Cell::new(0) };
    /// Which of them is refused.
    static REFUSED: Cell<usize> = const { Cell::new(NEVER) };
    /// Bytes of the request that was refused last, if the next one may be another try.
    static TRIED: Cell<usize> = const { Cell::new(0) };
    /// Bytes from which on a request that must not fail is noted; 0 while nobody looks.
    static LARGE: Cell<usize> = const { Cell::new(0) };
    static NOTED: RefCell<Vec<(usize, Backtrace)>> = const { RefCell::new(Vec::new()) };
}

/// Whether a request of so many bytes is refused.
fn is_refused(bytes: usize) -> bool {
    if memory::refusal() != Refusal::IsError {
        note(bytes);
        return false;
    }
    let number = ASKED.try_with(|asked| asked.replace(asked.get() + 1)).unwrap_or(0);
    // (Tensor memory asks again when it has emptied its cache.)
    let again = TRIED.try_with(|tried| tried.replace(0) == bytes).unwrap_or(false);
    let refused = again || REFUSED.try_with(Cell::get).is_ok_and(|refused| refused == number);
    if refused && !again {
        let _ = TRIED.try_with(|tried| tried.set(bytes));
    }
    refused
}

fn note(bytes: usize) {
    let large = LARGE.try_with(Cell::get).unwrap_or(0);
    if large == 0 || bytes < large || memory::refusal() == Refusal::WasAsked {
        return;
    }
    // What the note itself takes is not noted.
    let _ = LARGE.try_with(|now| now.set(0));
    let _ = NOTED.try_with(|noted| noted.borrow_mut().push((bytes, Backtrace::force_capture())));
    let _ = LARGE.try_with(|now| now.set(large));
}

// SAFETY: the system's allocator, or none of its memory.
unsafe impl GlobalAlloc for Watchful {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(size as isize - layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Bytes that are allocated now.
pub(crate) fn live() -> isize {
    LIVE.load(Relaxed)
}

/// Runs `work` while request number `refused` of this thread is refused; says whether there was one.
pub(crate) fn refusing<R>(refused: usize, work: impl FnOnce() -> R) -> (R, bool) {
    ASKED.set(0);
    TRIED.set(0);
    REFUSED.set(refused);
    let result = work();
    REFUSED.set(NEVER);
    (result, ASKED.get() > refused)
}

/// Runs `work`; gives with it the requests of `large` bytes or more which could not have been refused.
pub(crate) fn noting<R>(large: usize, work: impl FnOnce() -> R) -> (R, Vec<(usize, Backtrace)>) {
    LARGE.set(large);
    let result = work();
    LARGE.set(0);
    (result, NOTED.take())
}
