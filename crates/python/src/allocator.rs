//! The allocator of this module: mimalloc, and the C library where mimalloc does not suffice.
//!
//! mimalloc maps memory without asking the kernel to account for it: it grants terabytes that are
//! not there, and the process is killed at the first writes. Such large blocks are requested from
//! the C library instead, which fails at once if there is no memory. (`pullback` does the same for
//! the memory of tensors.)
//!
//! And mimalloc takes memory for small objects by tens of mebibytes. Where that much is not to be had any more, requests that
//! become errors are refused, and those that would end the process go to the C library, which takes what is left page by
//! page: so the error still reaches the program.

use libmimalloc_sys::mi_is_in_heap_region;
use mimalloc::MiMalloc;
use pullback::binding::FROM_KERNEL;
use pullback::binding::memory::{OnAllocFailure, on_alloc_failure};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The allocator that the module's comment describes.
pub(crate) struct Accounted;

/// Whether the C library has given memory for a small block. (A thread that frees such a block got
/// it from a thread that had seen this flag set.)
static HELPED: AtomicBool = AtomicBool::new(false);

/// Whether the C library gave this memory.
#[inline(always)]
fn is_systems(ptr: *mut u8, size: usize) -> bool {
    // SAFETY: the function takes any address.
    size >= FROM_KERNEL || HELPED.load(Relaxed) && !unsafe { mi_is_in_heap_region(ptr.cast()) }
}

/// Memory for what mimalloc has none for.
#[cold]
#[inline(never)]
fn help(layout: Layout) -> *mut u8 {
    if on_alloc_failure() == OnAllocFailure::Error {
        return std::ptr::null_mut();
    }
    HELPED.store(true, Relaxed);
    // SAFETY: the layout of a request.
    unsafe { System.alloc_zeroed(layout) }
}

// SAFETY: two allocators of which each gets back what it gave.
unsafe impl GlobalAlloc for Accounted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            if layout.size() >= FROM_KERNEL {
                return System.alloc(layout);
            }
            let ptr = MiMalloc.alloc(layout);
            if ptr.is_null() { help(layout) } else { ptr }
        }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            if layout.size() >= FROM_KERNEL {
                return System.alloc_zeroed(layout);
            }
            let ptr = MiMalloc.alloc_zeroed(layout);
            if ptr.is_null() { help(layout) } else { ptr }
        }
    }
    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; it goes back to whom it came from.
        unsafe {
            if is_systems(ptr, layout.size()) {
                System.dealloc(ptr, layout);
            } else {
                MiMalloc.dealloc(ptr, layout);
            }
        }
    }
    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was_large, is_large) = (layout.size() >= FROM_KERNEL, size >= FROM_KERNEL);
        // SAFETY: the caller's promise: a size that is valid with this alignment. The memory stays with whom it is, or is
        // moved, where both places have the smaller size.
        unsafe {
            if is_systems(ptr, layout.size()) {
                if is_large || !was_large {
                    return System.realloc(ptr, layout, size);
                }
            } else if !is_large {
                let moved = MiMalloc.realloc(ptr, layout, size);
                if !moved.is_null() {
                    return moved;
                }
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(ptr, moved, size.min(layout.size()));
                self.dealloc(ptr, layout);
            }
            moved
        }
    }
}
