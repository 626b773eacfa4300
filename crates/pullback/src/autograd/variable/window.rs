//! The elements of its base that a view shows.

use crate::autograd::arithmetic;
use crate::tensor::{Dims, Flag};
use crate::{Result, Tensor};

/// The elements of its base that a view shows. Where one of the two holds complex numbers and the other real ones, sizes,
/// strides and offset count real numbers, a complex number being a pair of them.
pub(in crate::autograd) struct ViewWindow {
    pub(in crate::autograd) shape: Dims,
    strides: Dims,
    pub(in crate::autograd) offset: i64,
    /// The view shows a real base as complex numbers.
    shows_pairs: bool,
    /// The view shows the real numbers that a complex base is made of.
    counts_parts: bool,
    /// The base has the conj bit, and the view shows real numbers of it.
    pub(in crate::autograd) parts_of_conj: bool,
    /// The conj and neg bits in which view and base differ.
    differing_bits: u32,
}

impl ViewWindow {
    pub(in crate::autograd) fn of(view: &Tensor, base: &Tensor) -> Self {
        let geometry = view.geometry();
        let shows_pairs = geometry.dtype.is_complex() && !base.dtype().is_complex();
        let (mut shape, mut strides) = (geometry.shape.clone(), geometry.strides.clone());
        let mut offset = geometry.offset;
        if shows_pairs {
            strides.iter_mut().for_each(|stride| *stride *= 2);
            offset *= 2;
            shape.push(2);
            strides.push(1);
        }
        let counts_parts = base.dtype().is_complex() && !geometry.dtype.is_complex();
        // (A view of real numbers is taken of the base with its conjugates resolved.)
        let of_base = if counts_parts { Flag::NEG } else { Flag::UNRESOLVED };
        let differing_bits = view.sign_bits() ^ base.sign_bits() & of_base;
        let parts_of_conj = counts_parts && base.is_conj();
        ViewWindow {
            shape,
            strides,
            offset,
            shows_pairs,
            counts_parts,
            parts_of_conj,
            differing_bits,
        }
    }
    /// The position of the base's first element, in the units of `offset`.
    pub(in crate::autograd) fn start_of(&self, base: &Tensor) -> i64 {
        base.storage_offset() * if self.counts_parts { 2 } else { 1 }
    }
    /// The elements of `whole`, which has the base's layout, that the view shows: a view of `whole`. Where parts are counted,
    /// `whole` has a conj bit if the base has one.
    pub(in crate::autograd) fn show(&self, whole: &Tensor) -> Result<Tensor> {
        self.as_seen(self.elements(whole)?)
    }
    /// As [`ViewWindow::show`], with pairs left as real numbers: they need not lie where complex numbers can.
    pub(in crate::autograd) fn elements(&self, whole: &Tensor) -> Result<Tensor> {
        let mut seen = whole.clone();
        if self.parts_of_conj {
            seen = arithmetic::conj_view(&seen)?;
        }
        if self.counts_parts {
            seen = arithmetic::view_as_real(&seen)?;
        }
        seen = arithmetic::as_strided(&seen, &self.shape, &self.strides, self.offset)?;
        if self.shows_pairs { Ok(seen) } else { self.apply_bits(seen) }
    }
    /// The result of [`ViewWindow::elements`] as the view shows it.
    pub(in crate::autograd) fn as_seen(&self, elements: Tensor) -> Result<Tensor> {
        if self.shows_pairs {
            self.apply_bits(arithmetic::view_as_complex(&elements)?)
        } else {
            Ok(elements)
        }
    }
    /// The inverse of [`ViewWindow::as_seen`].
    pub(in crate::autograd) fn as_kept(&self, seen: Tensor) -> Result<Tensor> {
        if !self.shows_pairs {
            return Ok(seen);
        }
        let complex = self.apply_bits(arithmetic::to_dtype(&seen, seen.dtype().to_complex())?)?;
        arithmetic::view_as_real(&arithmetic::resolve_conj(&complex)?)
    }
    /// Applies the bits in which view and base differ; its own inverse.
    fn apply_bits(&self, mut shown: Tensor) -> Result<Tensor> {
        if self.differing_bits & Flag::CONJ != 0 {
            shown = arithmetic::conj_view(&shown)?;
        }
        if self.differing_bits & Flag::NEG != 0 {
            shown = arithmetic::neg_view(&shown)?;
        }
        Ok(shown)
    }
}
