//! The node that adds to a leaf's `.grad`, and who keeps whom alive.
//!
//! A leaf owns the memory of its accumulator, so that it is made once and not for every graph. Handles to it
//! ([`Node`]) are counted in it. While there are any it lives as a node of its own would: it holds the leaf, and
//! keeps its hooks and the sizes that the leaf had when the first handle was made. With the last handle it forgets
//! all that. Invariant: handles exist only while the leaf does.

use super::counted::Counted;
use super::input_meta::InputMeta;
use super::turn::Turn;
use crate::Tensor;
use crate::sync::{AtomicUsize, UnsafeCell};
use crate::tensor::SpinLock;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

/// The part of the node that only accumulators have.
pub(in crate::autograd) struct Accumulator {
    /// Counts as a handle of the leaf while there are handles to this node.
    leaf: ManuallyDrop<Tensor>,
    /// Twice the number of handles; and one if the leaf has given this node up, so that the last handle frees it.
    handles: AtomicUsize,
    /// The sizes and dtype of gradients; written by the maker of the first handle only.
    expected: UnsafeCell<[Option<InputMeta>; 1]>,
    /// The turn of the threads that add to the leaf's `.grad`.
    turn: Turn,
}

const HANDLE: usize = 2;
const GIVEN_UP: usize = 1;

// SAFETY: `expected` is written only while there is no handle, under the slot's lock, and read through handles.
unsafe impl Send for Accumulator {}
// SAFETY: as above.
unsafe impl Sync for Accumulator {}

impl Accumulator {
    pub(in crate::autograd) fn leaf(&self) -> &Tensor {
        &self.leaf
    }
    /// The sizes and dtype that a gradient must have. Called through a handle.
    pub(in crate::autograd) fn expected(&self) -> &[Option<InputMeta>] {
        // SAFETY: not written while there are handles.
        self.expected.with(|expected| unsafe { &*expected })
    }
    /// Whose turn it is to add to the leaf's `.grad`.
    pub(in crate::autograd) fn turn(&self) -> &Turn {
        &self.turn
    }
    /// The number of handles.
    pub(in crate::autograd) fn handles(&self) -> usize {
        self.handles.load(Ordering::Acquire) / HANDLE
    }
    /// Counts one more handle, made from another.
    pub(in crate::autograd) fn add_handle(&self) {
        self.handles.fetch_add(HANDLE, Ordering::Relaxed);
    }
    /// Counts one more handle if there are others. If there are none, everything done through
    /// earlier handles has completed.
    pub(in crate::autograd) fn try_add_handle(&self) -> bool {
        let more = |n| (n >= HANDLE).then_some(n + HANDLE);
        // (Also where it fails it acquires: `get` then writes what the last handles read.)
        self.handles.fetch_update(Ordering::Acquire, Ordering::Acquire, more).is_ok()
    }
}

/// A node around an accumulator, as the accumulator sees it.
pub(in crate::autograd) trait Home: Sized {
    /// The type of the node's hooks.
    type Hooks;
    /// The memory of a node around this accumulator.
    fn around(accumulator: Accumulator) -> Counted<Self>;
    /// The accumulator, if the node has one.
    fn accumulator(&self) -> Option<&Accumulator>;
    /// Whether the node has hooks.
    fn has_hooks(&self) -> bool;
    /// Takes all hooks away if `is_due`, which is called when no other thread can be adding one.
    fn take_hooks_if(&self, is_due: impl FnOnce() -> bool) -> Option<Self::Hooks>;
}

/// A new handle to the accumulator in `block`, which is counted already.
pub(in crate::autograd) fn handle<N: Home>(block: &Counted<N>) -> ManuallyDrop<Counted<N>> {
    // SAFETY: handles to accumulators do not count in the block (see `drop_handle`): its one count is the owner's.
    ManuallyDrop::new(unsafe { block.uncounted() })
}

/// Takes back the handle that `inner` was reached through.
///
/// # Safety
/// `inner` has the accumulator `it`; the handle is not used any more.
#[inline]
pub(in crate::autograd) unsafe fn drop_handle<N: Home>(inner: &Counted<N>, it: &Accumulator) {
    // Whatever is needed afterwards is fetched first: without a handle, others may free the node.
    // SAFETY: a pointer without a count; it is dropped below if the owner's count is left for it.
    let owners = ManuallyDrop::new(unsafe { inner.uncounted() });
    // SAFETY: a pointer without a count; it is dropped below if the count is its own.
    let leaf = unsafe { std::ptr::read(&raw const it.leaf) };
    let kept = inner.has_hooks().then(|| Counted::clone(inner));
    let before = it.handles.fetch_sub(HANDLE, Ordering::AcqRel);
    if before >= 2 * HANDLE {
        return;
    }
    if let Some(inner) = kept {
        drop(inner.take_hooks_if(|| inner.accumulator().is_none_or(|it| it.handles() == 0)));
    }
    if before & GIVEN_UP != 0 {
        drop(ManuallyDrop::into_inner(owners));
    }
    // This takes over the count that the maker of the first handle left here. With it the leaf and
    // the node may be freed.
    drop(ManuallyDrop::into_inner(leaf));
}

/// The slot of a leaf for its accumulator.
pub(in crate::autograd) struct HomeSlot<N>(SpinLock<Option<Counted<N>>>);

impl<N> Default for HomeSlot<N> {
    fn default() -> Self {
        HomeSlot(SpinLock::default())
    }
}

impl<N: Home> HomeSlot<N> {
    /// A handle to the accumulator of `leaf`, whose slot this is, and whether it is the first one.
    #[inline]
    pub(in crate::autograd) fn get(&self, leaf: &Tensor) -> (ManuallyDrop<Counted<N>>, bool) {
        let (handle, is_first, hooks) = self.0.with(|slot| {
            let inner = slot.get_or_insert_with(|| make(leaf));
            let it = inner.accumulator().expect("made by `make`");
            if it.handles.load(Ordering::Acquire) != 0 && it.try_add_handle() {
                return (handle(inner), false, None);
            }
            it.expected.with_mut(|expected| {
                // SAFETY: no handle, and the lock keeps others from making one.
                let [expected] = unsafe { &mut *expected };
                if !expected.as_ref().is_some_and(|meta| meta.is_of(leaf)) {
                    *expected = Some(InputMeta::of(leaf));
                }
            });
            // (Added while the last handle was on its way out.)
            let hooks = if inner.has_hooks() { inner.take_hooks_if(|| true) } else { None };
            std::mem::forget(leaf.clone());
            it.handles.store(HANDLE, Ordering::Release);
            (handle(inner), true, hooks)
        });
        // Outside of the lock: what they hold may run anything.
        drop(hooks);
        (handle, is_first)
    }
    /// A handle, if there are others.
    pub(in crate::autograd) fn live(&self) -> Option<ManuallyDrop<Counted<N>>> {
        self.0.with(|slot| {
            let inner = slot.as_ref()?;
            let it = inner.accumulator().expect("made by `make`");
            it.try_add_handle().then(|| handle(inner))
        })
    }
    /// Makes the next graph take a new accumulator, and returns a handle to this one. (Without handles, this one is as good as
    /// new.)
    pub(in crate::autograd) fn forget(&self) -> Option<ManuallyDrop<Counted<N>>> {
        self.0.with(|slot| {
            let inner = slot.as_ref()?;
            let it = inner.accumulator().expect("made by `make`");
            if !it.try_add_handle() {
                return None;
            }
            let last = handle(inner);
            it.handles.fetch_or(GIVEN_UP, Ordering::AcqRel);
            // The count of this handle belongs to the thread that drops the last handle now.
            std::mem::forget(slot.take());
            Some(last)
        })
    }
}

#[cold]
fn make<N: Home>(leaf: &Tensor) -> Counted<N> {
    // SAFETY: a pointer without a count: `get` counts with the first handle.
    let leaf = ManuallyDrop::new(unsafe { std::ptr::read(leaf) });
    N::around(Accumulator {
        leaf,
        handles: AtomicUsize::new(0),
        expected: UnsafeCell::new([None]),
        turn: Turn::default(),
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::autograd::{Node, WeakNode};
    use crate::dispatch::Grads;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    fn leaf() -> Tensor {
        Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3]).unwrap().with_grad().unwrap()
    }
    fn of(leaf: &Tensor) -> Node {
        leaf.accumulator().unwrap()
    }

    #[test]
    fn handles_hold_the_leaf_and_weak_ones_do_not() {
        let x = leaf();
        let node = of(&x);
        let again = of(&x);
        assert!(node.is_same(&again));
        assert_eq!((node.use_count(), x.use_count()), (2, 2));
        let weak: WeakNode = node.downgrade();
        drop(again);
        drop(x);
        let x = node.leaf().unwrap().clone();
        drop(node);
        assert_eq!(x.use_count(), 1);
        assert!(weak.upgrade().is_none());
        let node = of(&x);
        assert!(weak.upgrade().is_some_and(|n| n.is_same(&node)));
        drop((x, node));
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn hooks_go_with_the_last_handle() {
        let x = leaf();
        let (runs, held) = (Arc::new(AtomicU32::new(0)), Arc::new(()));
        let y = x.mul(&x).unwrap().sum().unwrap();
        let (seen, guard) = (runs.clone(), held.clone());
        of(&x).register_prehook(Arc::new(move |_: &Grads| {
            let _ = &guard;
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        }));
        y.backward().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        drop(y);
        assert_eq!(Arc::strong_count(&held), 1);
        x.mul(&x).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn expects_the_sizes_of_the_first_handle() {
        let x = leaf();
        let node = of(&x);
        x.set_data(&Tensor::from_slice(&[1.0_f32; 5], &[5]).unwrap()).unwrap();
        let shape = |node: &Node| node.input_meta()[0].as_ref().unwrap().shape.to_vec();
        assert_eq!(shape(&node), [3]);
        drop(node);
        assert_eq!(shape(&of(&x)), [5]);
    }

    #[test]
    fn one_given_up_lives_until_its_handles_go() {
        let x = leaf();
        let old = of(&x);
        x.set_data(&Tensor::from_slice(&[1.0_f64; 3], &[3]).unwrap()).unwrap();
        let new = of(&x);
        assert!(!old.is_same(&new));
        assert_eq!(new.input_meta()[0].as_ref().unwrap().dtype, crate::DType::F64);
        assert_eq!(x.use_count(), 3);
        let weak = old.downgrade();
        drop(x);
        drop(new);
        assert_eq!(old.leaf().unwrap().use_count(), 1);
        drop(old);
        assert!(weak.upgrade().is_none());
        // The node was given up without handles: there is nothing to do, and the next handle sees
        // the new dtype.
        let x = leaf();
        drop(of(&x));
        x.set_data(&Tensor::from_slice(&[1.0_f64; 3], &[3]).unwrap()).unwrap();
        assert_eq!(of(&x).input_meta()[0].as_ref().unwrap().dtype, crate::DType::F64);
    }

    #[test]
    fn threads_may_share_a_leaf_and_change_its_dtype() {
        let x = leaf();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let x = x.clone();
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let node = of(&x);
                        assert!(node.leaf().unwrap().is_same(&x));
                        if thread == 0 {
                            x.forget_accumulator();
                        }
                        drop(node.clone());
                        if thread == 1 {
                            let nothing = |_: &Grads| Ok(None);
                            node.register_prehook(Arc::new(nothing));
                        }
                    }
                });
            }
        });
        assert_eq!(x.use_count(), 1);
    }
}
