//! Memory that tensors no longer show.
//!
//! `set_data`, `set_` and `resize_` give a tensor another geometry, growing gives a storage another
//! block, and a kernel on another thread may still be reading the old one. So the old one is kept,
//! at most until the tensor or the storage goes. A binding that knows when no thread reads (the
//! Python binding does, by the interpreter lock) announces itself with [`collect`] and calls
//! [`give_back`] at such moments; then it is freed at once.

use super::raw::WeakTensor;
use super::{Storage, Tensor};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A tensor or storage that keeps memory which was replaced.
enum Holder {
    Tensor(WeakTensor),
    Storage(Storage),
}

/// Whether somebody calls [`give_back`] at all.
static COLLECTED: AtomicBool = AtomicBool::new(false);
/// Whether `HOLDERS` is not empty.
static ANY: AtomicBool = AtomicBool::new(false);
static HOLDERS: Mutex<Vec<Holder>> = Mutex::new(Vec::new());

/// Announces that [`give_back`] will be called.
pub fn collect() {
    COLLECTED.store(true, Relaxed);
}

/// Whether there is something to give back.
#[inline(always)]
pub fn is_any() -> bool {
    ANY.load(Relaxed)
}

/// Notes that `tensor` keeps a replaced geometry.
pub(super) fn note_tensor(tensor: &Tensor) {
    note(|| Holder::Tensor(tensor.downgrade()));
}

/// Notes that `storage` keeps a replaced block.
pub(super) fn note_storage(storage: &Storage) {
    note(|| Holder::Storage(storage.clone()));
}

fn note(holder: impl FnOnce() -> Holder) {
    if COLLECTED.load(Relaxed) {
        HOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(holder());
        ANY.store(true, Relaxed);
    }
}

/// Frees what was replaced so far.
///
/// # Safety
/// No other thread is inside of the library, and no frame of this one holds a geometry, a storage by reference or
/// the address of elements (sizes and strides may be held: they stay).
pub unsafe fn give_back() {
    let holders = {
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        ANY.store(false, Relaxed);
        std::mem::take(&mut *holders)
    };
    for holder in holders {
        match holder {
            Holder::Tensor(weak) => {
                if let Some(tensor) = weak.upgrade() {
                    // SAFETY: as the caller promises.
                    unsafe { tensor.drop_replaced() };
                }
            }
            // SAFETY: as the caller promises.
            Holder::Storage(storage) => unsafe { storage.drop_replaced() },
        }
    }
}
