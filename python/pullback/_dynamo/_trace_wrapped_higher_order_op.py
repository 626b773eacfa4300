"""A context that libraries enter around functions of indices, by the name of PyTorch's module."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..overrides import TorchFunctionMode
from ..utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Lets ``x[i]`` by tensors be an op on tensors, also where they have no dimensions.

    Otherwise such an index is read as a number, which differs between the examples of ``vmap``.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Computes ``x[i]``; other functions run as they are."""
        if func is Tensor.__getitem__:
            indices = tree_leaves(args[1])
            if all(isinstance(index, Tensor) for index in indices):
                return func(args[0], tuple(index.unsqueeze(0) for index in indices)).squeeze(0)
        return func(*args, **(kwargs or {}))
