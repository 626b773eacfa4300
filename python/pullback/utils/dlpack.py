"""Tensors as DLPack capsules: memory shared with other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._dlpack import from_dlpack

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that shares the tensor's memory; it can be taken once.

    Raises:
        BufferError: if the tensor requires grad.
    """
    return tensor.__dlpack__()
