//! The elements of uninitialised tensors: what the memory held before, or, if
//! [`set_fill_uninitialized`] requests that, a value that is easy to notice.
//!
//! PyTorch fills such memory while deterministic algorithms are requested, so that a program which
//! reads elements before it wrote them does the same in every run. Only the ops that users call for
//! such memory ask (`empty` and its kin, `resize_`); what kernels write at once is left alone.

use super::{Storage, Tensor, extent};
use crate::DType;
use pullback_kernels::{Element, for_dtype};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_FILLED: AtomicBool = AtomicBool::new(false);

/// Whether uninitialised elements become NaN, or the largest number of an integer dtype, or true.
pub fn set_fill_uninitialized(is_filled: bool) {
    IS_FILLED.store(is_filled, Relaxed);
}

/// Whether uninitialised elements are filled.
pub fn is_filling_uninitialized() -> bool {
    IS_FILLED.load(Relaxed)
}

impl Tensor {
    /// Fills this fresh, uninitialised tensor if that is requested, and returns it.
    #[must_use]
    pub fn filled_if_enabled(self) -> Tensor {
        self.fill_if_enabled();
        self
    }
    /// As [`Tensor::filled_if_enabled`], for a tensor with other handles.
    pub(crate) fn fill_if_enabled(&self) {
        if IS_FILLED.load(Relaxed) && !self.is_sparse() {
            self.fill_fresh();
        }
    }
    #[cold]
    fn fill_fresh(&self) {
        let geometry = self.geometry();
        let elements = extent(&geometry.shape, &geometry.strides).unwrap_or(0) as usize;
        let size = geometry.dtype.size();
        let start = geometry.offset as usize * size;
        if let Some(storage) = &geometry.storage {
            fill(storage, start, start + elements * size, geometry.dtype);
        }
    }
}

/// Fills the elements that lie as a whole between two places of a storage, counted in bytes.
pub(super) fn fill(storage: &Storage, from: usize, to: usize, dtype: DType) {
    let (first, end) = (from.div_ceil(dtype.size()), to.min(storage.nbytes()) / dtype.size());
    for_dtype!(dtype, stored, T => {
        let value = shown::<T>();
        for index in first..end {
            // SAFETY: inside of the storage, whose memory is aligned for every dtype; nobody reads what nobody has set.
            unsafe { storage.written_ptr().cast::<T>().add(index).write(value) }
        }
    }, else fill(storage, from, to, DType::U8));
}

/// The value that uninitialised elements are filled with: NaN, or the largest number of dtypes
/// without NaN.
fn shown<T: Element>() -> T {
    let dtype = T::DTYPE;
    if dtype == DType::Bool {
        T::from_i64(1)
    } else if !dtype.is_integral(false) {
        T::from_f64(f64::NAN)
    } else if dtype.is_signed() {
        T::from_i64(i64::MAX >> (64 - 8 * dtype.size()))
    } else {
        // All bits: conversion of integers wraps.
        T::from_i64(-1)
    }
}
