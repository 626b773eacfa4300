//! Tensors whose values are not those in their memory but the conjugates (the conj bit), the
//! negatives (the neg bit), or both.
//!
//! A view of the conjugates is made by setting a bit, and computes nothing. Views of it, other
//! handles to it and copies of its geometry keep the bits; code that reads or writes elements
//! applies them. [`Tensor::copy_data`] and the functions that use it do; kernels do not: they get
//! resolved arguments (`dispatch::resolve`). Invariant: the conj bit is set of complex tensors
//! only.

use super::shape::broadcast_strides;
use super::{Cpu, Flag, overlaps_partly};
use crate::{DType, Result, Tensor};
use pullback_kernels::{Iter, StridedRef, elementwise};

impl Tensor {
    /// Whether the values are the conjugates of those in memory (or, if it is also
    /// [`Tensor::is_neg`], the negatives of these).
    pub fn is_conj(&self) -> bool {
        self.has_flag(Flag::CONJ)
    }
    /// Whether the values are the negatives of those in memory.
    pub fn is_neg(&self) -> bool {
        self.has_flag(Flag::NEG)
    }
    /// Whether the conj bit or the neg bit is set.
    #[inline(always)]
    pub fn is_unresolved(&self) -> bool {
        self.has_flag(Flag::UNRESOLVED)
    }
    /// The name of its bits in errors, the conj bit first, and of the method that resolves them;
    /// `None` if it has none.
    pub fn unresolved_names(&self) -> Option<(&'static str, &'static str)> {
        if self.is_conj() {
            return Some(("conjugate", "resolve_conj()"));
        }
        self.is_neg().then_some(("negative", "resolve_neg()")) // tidy: not an op
    }
    /// The conj bit and the neg bit.
    #[inline]
    pub(crate) fn sign_bits(&self) -> u32 {
        self.flags() & Flag::UNRESOLVED
    }
    /// Sets the conj bit and the neg bit.
    pub(crate) fn set_sign_bits(&self, bits: u32) {
        self.swap_flags(Flag::UNRESOLVED, bits);
    }
    /// This fresh tensor with the bits of `source`, whose memory it shows. Real tensors get no conj
    /// bit.
    #[inline]
    pub(crate) fn with_bits_of(self, source: &Tensor) -> Tensor {
        if source.is_unresolved() {
            let kept = if self.dtype().is_complex() { Flag::UNRESOLVED } else { Flag::NEG };
            self.set_sign_bits(source.sign_bits() & kept);
        }
        self
    }
    /// A tensor whose memory holds the values of this one: itself, or a copy. No history.
    pub(crate) fn resolved(&self, cpu: Cpu) -> Result<Tensor> {
        if self.is_unresolved() { self.dense_copy(cpu) } else { Ok(self.clone()) }
    }

    /// [`Tensor::copy_data`] where one of the two has a bit.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_unresolved(&self, cpu: Cpu, source: &Tensor) -> Result<()> {
        if source.is_unresolved() && overlaps_partly(self, source) {
            return self.copy_data(cpu, &source.resolved(cpu)?);
        }
        if self.dtype() != source.dtype() {
            // Read as it is shown, converted, and written with the target's bits: at most one of these remains.
            return if source.is_unresolved() {
                self.copy_data(cpu, &source.resolved(cpu)?)
            } else {
                self.copy_data(cpu, &source.converted(cpu, self.dtype())?)
            };
        }
        let bits = self.sign_bits() ^ source.sign_bits();
        if bits == 0 {
            return self.copy_stored(cpu, source);
        }
        if bits != Flag::UNRESOLVED {
            return self.store(source, bits == Flag::CONJ);
        }
        let conjugated = source.empty_as(source.dtype())?;
        conjugated.store(source, true)?;
        self.store(&conjugated, false)
    }

    /// Stores the conjugates, or else the negatives, of what is stored for `source`, which has the same dtype and is either
    /// apart or the same elements.
    fn store(&self, source: &Tensor, conjugates: bool) -> Result<()> {
        let strides = broadcast_strides(source.shape(), source.strides(), self.shape())?;
        // SAFETY: broadcasting reaches only elements that the tensor reaches.
        let from =
            unsafe { StridedRef::new(source.data_ptr(), source.dtype(), self.shape(), &strides) };
        let mut iter = Iter::new(&[self.stored_mut()], &[from])?;
        Ok(if conjugates { elementwise::conj(&mut iter) } else { elementwise::neg(&mut iter) }?)
    }
}

/// Whether there are negatives in `dtype`, so that a tensor can have the neg bit.
pub(crate) fn has_negatives(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::U16 | DType::U32 | DType::U64)
}
