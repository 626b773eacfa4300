//! The allocator of this module: mimalloc, and for large requests the C library.
//!
//! mimalloc maps memory without asking the kernel to account for it: it grants terabytes that are not there, and the process is
//! killed at the first writes. What is so large is asked of the C library instead, which says at once that there is none.
//! (`pullback` does the same for the memory of tensors.)

use mimalloc::MiMalloc;
use pullback::binding::FROM_KERNEL;
use std::alloc::{GlobalAlloc, Layout, System};

/// See the module.
pub(crate) struct Accounted;

/// Who has memory of this size.
macro_rules! by_size {
    ($size:expr, $call:ident($($argument:expr),*)) => {
        if $size >= FROM_KERNEL { System.$call($($argument),*) } else { MiMalloc.$call($($argument),*) }
    };
}

// SAFETY: two allocators of which each gets back what it gave: the size says whose memory it is.
unsafe impl GlobalAlloc for Accounted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { by_size!(layout.size(), alloc(layout)) }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { by_size!(layout.size(), alloc_zeroed(layout)) }
    }
    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; the size is the one that was asked for.
        unsafe { by_size!(layout.size(), dealloc(place, layout)) }
    }
    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if (layout.size() >= FROM_KERNEL) == (size >= FROM_KERNEL) {
            // SAFETY: the caller's promise; the memory stays with whom it is.
            return unsafe { by_size!(size, realloc(place, layout, size)) };
        }
        // SAFETY: the caller's promise: a size that is valid with this alignment; both places have the smaller size.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(place, moved, size.min(layout.size()));
                self.dealloc(place, layout);
            }
            moved
        }
    }
}
