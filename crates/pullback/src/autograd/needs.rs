//! Whether derivatives of what is computed now may be needed. Rules that could also compute without
//! ops decide by this.

use super::mode;
use super::thread::{dispatch_mode, level};
use super::variable::tangent;
use crate::Tensor;

/// Whether derivatives of what is computed now may be wanted, so that it must be made of ops that have some; or a mode wants to
/// see its ops.
fn needs_derivatives() -> bool {
    mode::is_recording()
        || (level::is_open() && tangent::is_enabled())
        || dispatch_mode::wants_ops()
}

/// Whether a rule must be made of ops that have derivatives and batching rules, in the place of one
/// op without: because derivatives may be needed, or because one of these tensors has its ops
/// computed by its class or for a batch.
pub(crate) fn needs_ops<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> bool {
    needs_derivatives() || tensors.into_iter().flatten().any(Tensor::overrides_ops)
}

/// Whether a rule that would otherwise read memory must be made of ops: as [`needs_ops`] has it, or
/// because the memory does not hold the values of the tensors.
pub(crate) fn needs_ops_to_read<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> bool {
    needs_derivatives() || tensors.into_iter().flatten().any(|tensor| !tensor.keys().is_empty())
}

/// Whether derivatives by this tensor may be needed.
pub(crate) fn needs_derivative_of(tensor: &Tensor) -> bool {
    let is_dual = || level::is_open() && tangent::is_enabled() && tangent::is_dual(tensor);
    (tensor.requires_grad() && mode::is_recording()) || is_dual()
}
