//! The tangent of a tensor that was written to: its base gets one too, of which the view's is a part.

use crate::autograd::batch;
use crate::autograd::variable::layout::lies_as;
use crate::autograd::variable::tangent::{
    check_shape, copy, forward_base, laid_out, own, put, slice, zeros_like,
};
use crate::{DType, Result, Tensor};

/// Gives a tensor that has none, and was written to, a tangent: as it is if it lies as the tensor does, else a copy that does.
/// The base of a view gets one too, zero elsewhere, of which the view's is a part.
///
/// # Errors
/// `RuntimeError` if the sizes differ, or the tensor's elements share memory so that a tangent cannot lie as they do.
pub(in crate::autograd) fn set_after_write(tensor: &Tensor, tangent: Tensor) -> Result<()> {
    check_shape(tensor, &tangent)?;
    let Some(base) = forward_base(tensor) else {
        put(tensor, laid_out(tangent, tensor)?);
        return Ok(());
    };
    if lies_as(&tangent, &base) && lies_as(&tangent, tensor) {
        put(&base, tangent.clone());
        put(tensor, tangent);
        return Ok(());
    }
    let whole = match own(&base) {
        Some(known) => known,
        None => zeros_like(&base, fitting(tangent.dtype(), tensor.dtype(), base.dtype()))?,
    };
    // (The tangent may be batched though the tensor is not.)
    let whole = batch::with_levels_of(&whole, &tangent)?;
    let part = slice(tensor, &base, &whole)?;
    copy(&part, &tangent)?;
    put(&base, whole);
    put(tensor, part);
    Ok(())
}

/// The dtype of a base's tangent, of which a view's is a part: a view may show complex numbers as pairs, or pairs as complex
/// numbers.
fn fitting(tangent: DType, view: DType, base: DType) -> DType {
    if view.is_complex() == base.is_complex() { tangent } else { base }
}
