//! The basis vectors that Jacobians are computed with.

use crate::autograd::arithmetic;
use crate::{Result, Tensor, TensorSpec};

/// The basis vectors of the shape of `like`: a row for each element.
pub(super) fn basis(like: &Tensor) -> Result<Tensor> {
    let count = like.numel();
    let mut shape = vec![count];
    shape.extend_from_slice(like.shape());
    let ones =
        arithmetic::add(&TensorSpec::beside(like, &[count]).zeros()?, &Tensor::wrapped(1.0)?)?;
    let zeros = TensorSpec::beside(like, &[count, count]).zeros()?;
    arithmetic::copy_in_place(&arithmetic::diagonal(&zeros)?, &ones)?;
    arithmetic::reshape(&zeros, &shape)
}
