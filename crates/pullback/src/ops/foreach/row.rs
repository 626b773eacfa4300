//! The rows of the ops on lists: the arguments of the op that runs for each tensor, in the order of its signature.

use crate::dispatch::Arg;
use crate::{Scalar, Tensor};

/// `op(x, other)`.
pub(super) fn pair<'a>(x: &'a Tensor, other: Arg<'a>) -> [Arg<'a>; 2] {
    [Arg::Tensor(x), other]
}

/// `op(x, other, alpha=1)`.
pub(super) fn with_alpha<'a>(x: &'a Tensor, other: Arg<'a>) -> [Arg<'a>; 3] {
    [Arg::Tensor(x), other, Arg::Scalar(Scalar::Int(1))]
}
