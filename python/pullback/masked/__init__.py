"""Operations that pass over the elements for which a mask is false.

A mask is a boolean tensor, true where an element counts; it is broadcast to the tensor it goes
with, and may not have more dimensions. ``_reduction`` and ``_extremum`` have the reductions,
``_normalization`` what keeps the shape; ``_mask`` is what they share. Gradients with respect to
elements that are masked out are zero, also where these are ``nan`` or infinite.

A :class:`MaskedTensor` takes its mask along (``_tensor``; its overrides of calls and ops are in
``_dispatch``). The functions take it instead of a tensor, and give plain tensors.
"""

from .. import _absent
from ._extremum import amax, amin, argmax, argmin, median
from ._mask import _combine_input_and_mask as _combine_input_and_mask
from ._mask import _input_mask as _input_mask
from ._mask import _output_mask as _output_mask
from ._mask import _reduction_identity as _reduction_identity
from ._mask import _where as _where
from ._mask import canonical_dim as _canonical_dim  # noqa: F401
from ._normalization import (
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    normalize,
    softmax,
    softmin,
)
from ._reduction import logsumexp, mean, norm, prod, std, sum, var
from ._tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor",
    "as_masked_tensor",
    "is_masked_tensor",
    "masked_tensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_absent.announce(globals())
