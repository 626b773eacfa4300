"""The class of masked tensors and comparisons of them, under the name of PyTorch's module."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import _pattern
from .._tensor import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]


def _tensors_match(
    a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08
) -> bool:
    """Whether two plain tensors of one layout have equal elements, or close ones.

    Args:
        a: a tensor.
        b: the other, compared in the dtype of the first.
        exact: whether they must be equal.
        rtol: how much they may differ otherwise, relative to the second.
        atol: and absolutely.

    Raises:
        ValueError: for masked tensors, and for different layouts.
    """
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(_pattern.different_layouts(a, b))
    b = b.to(a.dtype)
    if _pattern.is_pattern(a):
        if a.shape != b.shape or not _pattern.has_same_places(a, b):
            return False
        a, b = _pattern.values(a), _pattern.values(b)
    if a.shape != b.shape:
        return False
    return bool(a.equal(b) if exact else a.allclose(b, rtol=rtol, atol=atol))


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two masked tensors have equal masks; true if one of the two is none.

    Raises:
        ValueError: for masks of different layouts.
    """
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return _tensors_match(a.get_mask(), b.get_mask())


def _get_data(a: Any) -> Any:
    """The data of a masked tensor without history; what is none comes back."""
    return a._masked_data if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Tensor | None:
    """The mask of a masked tensor; None of what is none."""
    return a.get_mask() if is_masked_tensor(a) else None
