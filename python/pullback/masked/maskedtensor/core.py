"""The class of masked tensors, under the name of PyTorch's module."""

from __future__ import annotations

from .._tensor import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
