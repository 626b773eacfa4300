//! A counted pointer for nodes: `Arc`, but that the last handle of all goes without an atomic step (see `Counts`).

use crate::sync::{alloc, dealloc};
use crate::tensor::Counts;
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

#[repr(C)]
struct CountedBlock<T> {
    counts: Counts,
    value: T,
}

/// A handle that keeps its value alive.
pub(in crate::autograd) struct Counted<T>(NonNull<CountedBlock<T>>);

/// A handle that keeps only the memory.
pub(in crate::autograd) struct Weak<T>(Option<NonNull<CountedBlock<T>>>);

// SAFETY: shared like an `Arc`: the value is reached through shared references and dropped by the last handle.
unsafe impl<T: Send + Sync> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Counted<T> {}
// SAFETY: as above; until it is upgraded only the counts are touched.
unsafe impl<T: Send + Sync> Send for Weak<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Weak<T> {}

impl<T> Counted<T> {
    /// The first handle to a value that `write` initialises.
    ///
    /// # Safety
    /// `write` initialises the value and does not panic.
    #[inline(always)]
    pub(in crate::autograd) unsafe fn make(write: impl FnOnce(*mut T)) -> Self {
        let layout = Layout::new::<CountedBlock<T>>();
        // SAFETY: the layout has a size.
        let Some(block) = NonNull::new(unsafe { alloc(layout) }.cast::<CountedBlock<T>>()) else {
            handle_alloc_error(layout)
        };
        let raw = block.as_ptr();
        // SAFETY: fresh memory of that layout; all fields are written.
        unsafe {
            (&raw mut (*raw).counts).write(Counts::new());
            write(&raw mut (*raw).value);
        }
        Counted(block)
    }
    #[inline(always)]
    fn block(&self) -> &CountedBlock<T> {
        // SAFETY: it lives as long as this handle counts.
        unsafe { self.0.as_ref() }
    }
    /// The number of handles.
    #[inline(always)]
    pub(in crate::autograd) fn count(&self) -> usize {
        self.block().counts.strong()
    }
    /// The address of the value, which identifies it.
    #[inline(always)]
    pub(in crate::autograd) fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
    /// A copy of the pointer without a count of its own.
    ///
    /// # Safety
    /// It is dropped only if a count is left for it, and not used when the value is gone.
    #[inline(always)]
    pub(in crate::autograd) unsafe fn uncounted(&self) -> Self {
        Counted(self.0)
    }
    pub(in crate::autograd) fn downgrade(&self) -> Weak<T> {
        self.block().counts.add_weak();
        Weak(Some(self.0))
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.block().value
    }
}

impl<T> Clone for Counted<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.block().counts.add_strong();
        Counted(self.0)
    }
}

/// A value whose last handle was dropped; dropping this drops the value.
pub(in crate::autograd) struct Last<T>(NonNull<CountedBlock<T>>);

// SAFETY: what `Counted` may do; it is the only way to the value.
unsafe impl<T: Send + Sync> Send for Last<T> {}

impl<T> Last<T> {
    #[inline(always)]
    pub(in crate::autograd) fn value(&mut self) -> &mut T {
        // SAFETY: no handle is left; weak ones touch only the counts.
        unsafe { &mut (*self.0.as_ptr()).value }
    }

    /// Makes the value live on, with a new handle.
    pub(in crate::autograd) fn revive(self) -> Counted<T> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the block is alive as long as its value.
        let counts = unsafe { &this.0.as_ref().counts };
        // (The count of a sole handle was left as it was.)
        if counts.strong() == 0 {
            counts.revive();
        }
        Counted(this.0)
    }
}

impl<T> Drop for Last<T> {
    #[inline(always)]
    fn drop(&mut self) {
        drop_value(self.0);
    }
}

impl<T> Counted<T> {
    /// Drops this handle; returns the value if it was the last one.
    #[inline(always)]
    pub(in crate::autograd) fn let_go(self) -> Option<Last<T>> {
        let this = std::mem::ManuallyDrop::new(self);
        this.block().counts.drop_strong().then(|| Last(this.0))
    }
}

impl<T> Drop for Counted<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this handle's count, which goes here.
        drop(unsafe { self.uncounted() }.let_go());
    }
}

#[inline(never)]
fn drop_value<T>(block: NonNull<CountedBlock<T>>) {
    // SAFETY: the last strong handle is gone; weak ones touch only the counts.
    unsafe { std::ptr::drop_in_place(&raw mut (*block.as_ptr()).value) };
    release(block);
}

fn release<T>(block: NonNull<CountedBlock<T>>) {
    // SAFETY: the block is alive while the weak count is not zero.
    if unsafe { block.as_ref() }.counts.drop_weak() {
        // SAFETY: allocated with this layout; nobody is left.
        unsafe { dealloc(block.as_ptr().cast(), Layout::new::<CountedBlock<T>>()) };
    }
}

impl<T> Weak<T> {
    /// A strong handle, if the value is still alive.
    pub(in crate::autograd) fn upgrade(&self) -> Option<Counted<T>> {
        let block = self.0?;
        // SAFETY: the block is alive while this weak handle counts.
        unsafe { block.as_ref() }.counts.try_add_strong().then(|| Counted(block))
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Weak(None)
    }
}

impl<T> Clone for Weak<T> {
    fn clone(&self) -> Self {
        if let Some(block) = self.0 {
            // SAFETY: alive while this weak handle counts.
            unsafe { block.as_ref() }.counts.add_weak();
        }
        Weak(self.0)
    }
}

impl<T> Drop for Weak<T> {
    fn drop(&mut self) {
        if let Some(block) = self.0 {
            release(block);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// A value that counts its drops.
    struct DropCounter(Arc<AtomicUsize>);
    impl Drop for DropCounter {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    fn make(drops: &Arc<AtomicUsize>) -> Counted<DropCounter> {
        let value = DropCounter(drops.clone());
        // SAFETY: the value is moved to the place.
        unsafe { Counted::make(|ptr: *mut DropCounter| ptr.write(value)) }
    }

    #[test]
    fn the_last_handle_drops_the_value_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        let (a, weak) = (make(&drops), make(&drops).downgrade());
        assert_eq!(drops.load(Relaxed), 1);
        assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());
        let b = a.clone();
        assert_eq!((a.count(), b.address()), (2, a.address()));
        let weak = b.downgrade();
        drop(a);
        let again = weak.upgrade();
        drop(b);
        assert_eq!(drops.load(Relaxed), 1);
        drop(again);
        assert_eq!(drops.load(Relaxed), 2);
        assert!(weak.upgrade().is_none() && Weak::<DropCounter>::default().upgrade().is_none());
    }

    #[test]
    fn a_value_may_outlive_its_last_handle() {
        let drops = Arc::new(AtomicUsize::new(0));
        let sole = make(&drops).let_go().expect("the only handle").revive();
        assert_eq!((sole.count(), drops.load(Relaxed)), (1, 0));
        let weak = sole.downgrade();
        let again = sole.let_go().expect("the only strong handle").revive();
        assert_eq!(weak.upgrade().map(|handle| handle.count()), Some(2));
        drop(again);
        assert!(weak.upgrade().is_none() && drops.load(Relaxed) == 1);
    }

    #[test]
    fn threads_race_to_be_last() {
        let drops = Arc::new(AtomicUsize::new(0));
        for round in 1..=2000 {
            let value = make(&drops);
            let (weak, other) = (value.downgrade(), value.clone());
            std::thread::scope(|scope| {
                scope.spawn(move || drop(other));
                scope.spawn(move || drop(weak.upgrade()));
                drop(value);
            });
            assert_eq!(drops.load(Relaxed), round);
        }
    }
}
