"""How masked tensors are made, under the name of PyTorch's module."""

from __future__ import annotations

from .._tensor import as_masked_tensor, masked_tensor

__all__ = ["as_masked_tensor", "masked_tensor"]
