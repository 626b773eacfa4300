//! The elements of a tensor as the bytes of a file: row by row, in little-endian order.

use super::ReadAt;
use crate::error::ensure;
use crate::tensor::checked_numel;
use crate::{DType, Result, Storage, Tensor, binding};
use std::io::Write;

/// Whether the bytes of numbers are in the other order than in the machine's memory.
pub(super) const IS_SWAPPED: bool = cfg!(target_endian = "big");

/// A tensor of the bytes from `position` on. Nothing is allocated for bytes that are not there.
///
/// # Errors
/// `RuntimeError` for sizes that overflow, and if the bytes reach beyond the end; out of memory; those of the source.
pub(super) fn read(
    source: &mut impl ReadAt,
    position: u64,
    shape: &[i64],
    dtype: DType,
    is_swapped: bool,
) -> Result<Tensor> {
    let bytes = checked_numel(shape)? as u64 * dtype.size() as u64;
    let is_inside = position.checked_add(bytes).is_some_and(|end| end <= source.size());
    ensure!(
        is_inside,
        runtime,
        "a tensor of sizes {shape:?} has {bytes} bytes at {position}, but the file ends at {}",
        source.size()
    );
    let mut storage = Storage::filled(bytes as usize, |into| source.read_at(position, into))?;
    if is_swapped {
        storage = swapped(&storage, dtype)?;
    }
    let strides = crate::tensor::contiguous_strides(shape);
    binding::over_storage(&storage, shape, &strides, 0, dtype)
}

/// Gives the bytes of a tensor to `write`.
///
/// # Errors
/// `NotImplementedError` for sparse tensors; out of memory; those of `write`.
pub(super) fn with_bytes<R>(tensor: &Tensor, write: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
    ensure!(
        !tensor.is_sparse(),
        not_implemented,
        "a tensor of layout torch.{} has no one block of elements: make it dense first",
        tensor.layout().spelled_name()
    );
    let plain = tensor.detach()?.resolve_conj()?.resolve_neg()?.contiguous()?;
    let count = plain.numel() as usize * plain.dtype().size();
    let Some(storage) = plain.storage().filter(|_| count > 0) else { return write(&[]) };
    let storage = if IS_SWAPPED { swapped(&storage, plain.dtype())? } else { storage };
    let start = plain.storage_offset() as usize * plain.dtype().size();
    storage.with_bytes(|bytes| write(&bytes[start..start + count]))?
}

/// Writes the bytes of a tensor.
///
/// # Errors
/// As for [`with_bytes`]; those of the stream.
pub(super) fn write(tensor: &Tensor, out: &mut impl Write) -> Result<()> {
    with_bytes(tensor, |bytes| out.write_all(bytes).map_err(|error| cannot_write(&error)))
}

/// The error of a stream.
pub(super) fn cannot_write(error: &std::io::Error) -> crate::Error {
    crate::Error::runtime(format!("cannot write: {error}"))
}

/// The bytes of each number in reverse order.
pub(super) fn swapped(storage: &Storage, dtype: DType) -> Result<Storage> {
    let size = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    Storage::filled(storage.nbytes(), |into| {
        storage.with_bytes(|bytes| into.copy_from_slice(bytes))?;
        into.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        Ok(())
    })
}
