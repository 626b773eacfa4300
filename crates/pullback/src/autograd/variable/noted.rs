//! The tensors whose `.grad` has, or had, a history, held weakly: where the search for cycles begins (`cycle`).

use super::meta::set_noted;
use crate::Tensor;
use crate::tensor::WeakTensor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tensors with a recorded `.grad`, and with some that had one.
static NOTED: Mutex<Vec<WeakTensor>> = Mutex::new(Vec::new());

/// The number of tensors at which those that are gone are swept out.
static SWEEP_AT: AtomicUsize = AtomicUsize::new(64);

/// The tensors, under their lock.
pub(in crate::autograd) fn noted() -> MutexGuard<'static, Vec<WeakTensor>> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a tensor whose `.grad` has a history.
#[cold]
pub(in crate::autograd) fn note(tensor: &Tensor) {
    if set_noted(tensor) {
        return;
    }
    let mut list = noted();
    list.push(tensor.downgrade());
    if list.len() < SWEEP_AT.load(Ordering::Relaxed) {
        return;
    }
    let alive: Vec<Tensor> = list.iter().filter_map(WeakTensor::upgrade).collect();
    *list = alive.iter().map(Tensor::downgrade).collect();
    SWEEP_AT.store((2 * list.len()).max(64), Ordering::Relaxed);
    drop(list);
    // (Outside of the lock, because one of these handles may be the last by now.)
    drop(alive);
}
