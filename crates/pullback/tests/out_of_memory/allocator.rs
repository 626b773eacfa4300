//! An allocator that refuses on purpose and looks out for those who insist.
//!
//! It refuses only what becomes an error ([`memory::on_alloc_failure`]); anything else would end the process. What it does and
//! notes is the thread's own, but for the live bytes, which are the process's.

use pullback_kernels::memory::{self, OnAllocFailure};
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

pub(crate) struct Watchful;

#[global_allocator]
static ALLOCATOR: Watchful = Watchful;

static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Refuses nothing.
const NEVER: usize = usize::MAX;

/// More than this is refused while somebody looks out for large requests: what is asked for is then beyond any machine.
const MOST: usize = 128 << 20;

thread_local! {
    /// How many requests came that may be refused, since [`refusing`] began.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    /// Which of them is refused.
    static REFUSED: Cell<usize> = const { Cell::new(NEVER) };
    /// Bytes of the request that was refused last, if the next one may be another try.
    static TRIED: Cell<usize> = const { Cell::new(0) };
    /// Bytes from which on a request that must not fail is noted; 0 while nobody looks.
    static LARGE: Cell<usize> = const { Cell::new(0) };
    /// While the thread remembers where its memory was asked for: the places of what was not given back yet.
    static KEPT: RefCell<Option<HashMap<usize, Backtrace>>> = const { RefCell::new(None) };
    static NOTED: RefCell<Vec<(usize, Backtrace)>> = const { RefCell::new(Vec::new()) };
}

/// Whether a request of so many bytes is refused.
fn is_refused(bytes: usize) -> bool {
    if KEPT.try_with(|kept| kept.try_borrow().is_err()).unwrap_or(true) {
        // What remembering takes itself.
        return false;
    }
    if memory::on_alloc_failure() != OnAllocFailure::Error {
        note(bytes);
        return false;
    }
    if bytes > MOST && LARGE.try_with(Cell::get).is_ok_and(|large| large > 0) {
        return true;
    }
    let number = REQUESTS.try_with(|requests| requests.replace(requests.get() + 1)).unwrap_or(0);
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
    if large == 0 || bytes < large || memory::on_alloc_failure() == OnAllocFailure::AbortAfterProbe
    {
        return;
    }
    // What the note itself takes is not noted.
    let _ = LARGE.try_with(|now| now.set(0));
    let _ = NOTED.try_with(|noted| noted.borrow_mut().push((bytes, Backtrace::force_capture())));
    let _ = LARGE.try_with(|now| now.set(large));
}

/// Remembers or forgets memory. (What that takes itself is not looked at.)
fn remember(place: usize, is_taken: bool) {
    let _ = KEPT.try_with(|kept| {
        let Ok(mut kept) = kept.try_borrow_mut() else { return };
        let Some(kept) = kept.as_mut() else { return };
        if is_taken {
            kept.insert(place, Backtrace::force_capture());
        } else {
            kept.remove(&place);
        }
    });
}

/// Runs `work`; where the memory was asked for that it did not give back.
pub(crate) fn remembering(work: impl FnOnce()) -> Vec<Backtrace> {
    KEPT.set(Some(HashMap::new()));
    work();
    KEPT.take().unwrap_or_default().into_values().collect()
}

// SAFETY: the system's allocator, or none of its memory.
unsafe impl GlobalAlloc for Watchful {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's promise.
        let place = unsafe { System.alloc(layout) };
        remember(place.addr(), true);
        place
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        remember(place.addr(), false);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(size as isize - layout.size() as isize, Relaxed);
        remember(place.addr(), false);
        // SAFETY: the caller's promise.
        let place = unsafe { System.realloc(place, layout, size) };
        remember(place.addr(), true);
        place
    }
}

/// Bytes that are allocated now.
pub(crate) fn live() -> isize {
    LIVE.load(Relaxed)
}

/// Runs `work` while request number `refused` of this thread is refused; says whether there was one.
pub(crate) fn refusing<R>(refused: usize, work: impl FnOnce() -> R) -> (R, bool) {
    REQUESTS.set(0);
    TRIED.set(0);
    REFUSED.set(refused);
    let result = work();
    REFUSED.set(NEVER);
    TRIED.set(0);
    (result, REQUESTS.get() > refused)
}

/// Runs `work`; gives with it the requests of `large` bytes or more which could not have been refused.
pub(crate) fn noting<R>(large: usize, work: impl FnOnce() -> R) -> (R, Vec<(usize, Backtrace)>) {
    LARGE.set(large);
    let result = work();
    LARGE.set(0);
    (result, NOTED.take())
}
