//! Fitting gradients to their tensors: a rule may leave broadcast dimensions and the dtype to the engine.
//!
//! Invariant: the result has the sizes, the dtype and the device that the next node expects, or it is an error.

use crate::autograd::arithmetic;
use crate::autograd::graph::input_meta::InputMeta;
use crate::error::ensure;
use crate::{Result, Tensor};

/// Makes a produced gradient fit the tensor it is for: sums broadcast dimensions, converts the dtype, and brings it to the
/// device, where it has one number or `moves` says that the op copies between devices.
#[inline]
pub(in crate::autograd) fn fit(
    grad: Tensor,
    meta: &InputMeta,
    moves: bool,
    what: impl Fn() -> String,
) -> Result<Tensor> {
    if grad.dtype() == meta.dtype
        && grad.shape() == meta.shape.as_slice()
        && grad.device() == meta.device
    {
        return Ok(grad);
    }
    let mut grad = grad;
    if grad.shape() != meta.shape.as_slice() {
        ensure!(
            arithmetic::is_expandable(&meta.shape, grad.shape()),
            runtime,
            "{} - got {} but expected shape compatible with {}",
            what(),
            arithmetic::shape_text(grad.shape()),
            arithmetic::shape_text(&meta.shape)
        );
        grad = arithmetic::sum_to(&grad, &meta.shape)?;
    }
    if grad.dtype() != meta.dtype {
        ensure!(
            meta.dtype.is_complex() || !grad.dtype().is_complex(),
            runtime,
            "{} - expected a real gradient for a real tensor but got dtype {}",
            what(),
            grad.dtype().spelled()
        );
        grad = arithmetic::to_dtype(&grad, meta.dtype)?;
    }
    if grad.device() != meta.device {
        ensure!(
            moves || grad.ndim() == 0,
            runtime,
            "{} - expected device {} but got {}",
            what(),
            meta.device,
            grad.device().spelled()
        );
        grad = arithmetic::to_device(&grad, meta.device)?;
    }
    Ok(grad)
}
