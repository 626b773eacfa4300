//! `functionalize`: a function without writes, and without views, as its caller sees it.

use crate::autograd::arithmetic;
use crate::{Result, Tensor};

/// What `functionalize` removes from a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// In-place ops.
    Mutations,
    /// In-place ops and views: an output that shares memory with the input without being the input is a copy.
    MutationsAndViews,
}

/// Returns `f(x)`: `functionalize` for programs that are written for PyTorch.
///
/// PyTorch runs `f` without in-place ops, which matters to those who trace it; an input that `f` changes is changed in
/// the end. Nothing traces functions here, and in-place ops are differentiated and batched as they are: `f` runs as it is.
///
/// # Errors
/// Those of `f`.
pub fn functionalize(
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    remove: Remove,
) -> Result<Tensor> {
    let output = f(x)?;
    let memory = |tensor: &Tensor| tensor.storage().map(|storage| storage.id());
    let is_view = !output.is_same(x) && memory(&output).is_some() && memory(&output) == memory(x);
    if remove == Remove::MutationsAndViews && is_view {
        return arithmetic::clone(&output);
    }
    Ok(output)
}
