//! The right to read and write elements in memory, as a value that kernels are handed.
//!
//! The memory of a tensor need not hold its values: that of a batched tensor holds the first
//! example, that of a tensor whose class overrides its ops holds zeros, a meta tensor has none, and
//! that of a conjugate view holds the values before conjugation. So code that reads or writes
//! elements needs a [`Cpu`], and only the dispatcher provides one: to a CPU kernel, once a call has
//! passed all layers, so that its arguments are plain tensors in main memory. Rules, batching rules
//! and composites get none, and `ops` forbids unsafe code: a rule that reads memory does not
//! compile.

use super::{Device, Flag, Key, watch};
use crate::error::ensure;
use crate::{Result, Tensor};

/// The right to read and write the elements of plain tensors in main memory.
#[derive(Clone, Copy, Debug)]
pub struct Cpu(());

impl Cpu {
    /// The right for the kernel of a call that has passed all layers.
    ///
    /// # Safety
    /// The tensors that it is used on have memory, which holds their elements: they are strided, and neither batched nor
    /// meta tensors nor of a class that overrides its ops.
    #[inline(always)]
    pub(crate) unsafe fn grant() -> Cpu {
        Cpu(())
    }

    /// The right to read `tensor` outside of a kernel, as `to_vec`, printing and conversions to
    /// NumPy do.
    ///
    /// # Errors
    /// For tensors whose memory does not hold their elements: `RuntimeError` for a batched one, `TypeError` for a sparse one,
    /// `NotImplementedError` for one whose class overrides its ops or on the meta device.
    pub(crate) fn of(tensor: &Tensor) -> Result<Cpu> {
        tensor.check_elements()?;
        Ok(Cpu(()))
    }
}

impl Tensor {
    /// Refuses to read the elements of a tensor on the meta device.
    ///
    /// # Errors
    /// `NotImplementedError`.
    #[inline]
    pub(crate) fn check_memory(&self) -> Result<()> {
        ensure!(
            self.device() != Device::Meta,
            not_implemented,
            "Cannot copy out of meta tensor; no data!"
        );
        Ok(())
    }
    /// Refuses to read the elements of a tensor whose memory does not hold them.
    ///
    /// # Errors
    /// `RuntimeError` for a batched tensor, `TypeError` for a sparse one, `NotImplementedError` for one whose class overrides its ops.
    pub fn check_elements(&self) -> Result<()> {
        if watch::is_any() && !self.has_flag(Flag::WRAPPED_NUMBER) {
            watch::refuse(|| {
                "elements of a tensor are read on the host (by item(), bool(), tolist(), numpy(), print or the like)".into()
            });
        }
        ensure!(
            !self.has_flag(Flag::BATCHED),
            runtime,
            "vmap: the elements of a batched tensor cannot be read (a data-dependent operation): there are some for each example. Use ops instead, or return the tensor"
        );
        self.check_memory()?;
        ensure!(
            !self.is_sparse(),
            type_error,
            "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.",
            self.layout().spelled()
        );
        ensure!(
            !self.has_flag(Flag::PYTHON) || Key::Python.is_excluded(),
            not_implemented,
            "reading elements, as .tolist() and .numpy() do, is not supported for tensor subclasses that have __torch_dispatch__: only ops see them, the tensor has none of its own"
        );
        Ok(())
    }
}
