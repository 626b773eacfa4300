//! Other handles to a tensor's value, without history.

use crate::autograd::arithmetic;
use crate::tensor::{Flag, Key, Version, shares_storage};
use crate::{Result, Tensor};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether the value is more than the memory holds, so that only an op can make another handle to it.
#[inline(always)]
fn is_detached_by_op(tensor: &Tensor) -> bool {
    tensor.overrides_ops() && (tensor.has_flag(Flag::BATCHED) || !Key::Python.is_excluded())
}

impl Tensor {
    /// Another tensor with exactly this geometry: shares memory and version counter, has no history.
    pub(crate) fn detached(&self) -> Result<Tensor> {
        if is_detached_by_op(self) {
            let made = arithmetic::detach(self)?;
            made.follow_version_of(self);
            made.set_birth(self.birth());
            return Ok(made);
        }
        let out = Tensor::of_same_geometry(self.geometry())?;
        out.set_birth(self.birth());
        if self.flags() & (Flag::INFERENCE | Flag::UNRESOLVED) != 0 {
            out.set_flag_fresh(self.flags() & Flag::INFERENCE);
            return Ok(out.with_bits_of(self));
        }
        Ok(out)
    }

    /// As [`Tensor::detached`] with a version counter of its own that starts at 0 (`.data`).
    pub(crate) fn with_own_version(&self) -> Result<Tensor> {
        if is_detached_by_op(self) {
            return arithmetic::detach(self);
        }
        let version = Some(Version::new(0).into());
        let alias = Tensor::from_geometry(self.geometry().clone().with_version(version))?;
        alias.set_birth(self.birth());
        Ok(alias.with_bits_of(self))
    }
}

impl Tensor {
    /// Lets this tensor, whose class computes its ops, and which is a view of `source` or its alias but has other memory, share
    /// its version counter.
    #[inline]
    pub(crate) fn follow_version_of(&self, source: &Tensor) {
        if self.has_flag(Flag::PYTHON) && !shares_storage(self, source) {
            self.share_version(source);
        }
    }
    #[cold]
    fn share_version(&self, source: &Tensor) {
        // (Two threads must not both give the source a counter.)
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let of_source = source.geometry();
        let counter = of_source.version.clone().unwrap_or_else(|| {
            let forked = source.version_counter().map_or_else(|| Version::new(0), Version::fork);
            let counter = Arc::new(forked);
            let version = Some(counter.clone());
            source.set_geometry(of_source.clone().with_version(version));
            counter
        });
        self.set_geometry(self.geometry().clone().with_version(Some(counter)));
    }
}
