"""First-class dimensions: dimensions that are objects, and tensors that are indexed with them.

``A[i, k]`` binds the dimensions of ``A`` to objects, whose sizes are known from then on. An op on
tensors that have such dimensions computes for every combination of them, whatever their order:
``(A[i, k] * B[k, j]).sum(k).order(i, j)`` is the product of two matrices. Where an op takes the
number of a dimension, it takes the object; where it takes a tensor, a dimension is the tensor of
its indices.

This is PyTorch's ``functorch.dim``. An op runs within a level of ``vmap`` for each dimension.
"""

from __future__ import annotations

from ._dimension import (
    Dim,
    DimensionBindError,
    DimensionMismatchError,
    DimList,
    dimlists,
    dims,
)
from ._move import cat, index, split, stack
from ._tensor import Tensor
from ._tensor import _Tensor as _Tensor

__all__ = [
    "Dim",
    "DimList",
    "DimensionBindError",
    "DimensionMismatchError",
    "Tensor",
    "cat",
    "dimlists",
    "dims",
    "index",
    "split",
    "stack",
]
