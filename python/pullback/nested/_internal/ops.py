"""Questions about the dimensions of jagged tensors, under the names of PyTorch's module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .nested_tensor import NestedTensor

__all__ = ["raggedness_matches"]


def _outer_to_inner_dim(ndim: int, dim: Any, ragged_dim: int, canonicalize: bool = False) -> Any:
    """The dimension of the packed values for one of the tensor, or for each of several.

    Batch and ragged dimension are one in the packed values; of several, doubles are left out.

    Args:
        ndim: how many dimensions the tensor has.
        dim: the dimension, or a list of them.
        ragged_dim: the ragged dimension.
        canonicalize: whether a negative number counts from the end.

    Raises:
        IndexError: for a number that is no dimension.
    """
    if isinstance(dim, (tuple, list)):
        found = (_outer_to_inner_dim(ndim, one, ragged_dim, canonicalize) for one in dim)
        return type(dim)(dict.fromkeys(found))
    if not (-ndim if canonicalize else 0) <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    at = dim % ndim
    return (at or ragged_dim) - 1


def raggedness_matches(nt: NestedTensor, size: Sequence[Any]) -> bool:
    """Whether sizes begin as those of the tensor do, up to the ragged one; ``-1`` fits each."""
    own = nt.shape[: nt._ragged_idx + 1]
    given = tuple(size)[: len(own)]
    return len(given) == len(own) and all(
        one in (mine, -1) for mine, one in zip(own, given, strict=True)
    )
