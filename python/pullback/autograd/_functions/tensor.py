"""Functions with a derivative of their own that programs know from here.

:class:`Resize` is behind the deprecated ``Tensor.resize``; :class:`Type` is deprecated itself.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..function import Function

__all__ = ["Resize", "Type"]


def _product(sizes: Any) -> str:
    return "x".join(map(str, sizes))


class Resize(Function):
    """``y`` is ``x`` in another shape; ``dx`` is ``dy`` in that of ``x``."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        """The tensor in another shape: the same memory, if it is contiguous.

        Raises:
            RuntimeError: if the shape has another number of elements.
        """
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {_product(sizes)} ({math.prod(sizes)} elements in total), "
                f"but the given tensor has a size of {_product(tensor.size())} "
                f"({tensor.numel()} elements). autograd's resize can only change the shape of a "
                "given tensor, while preserving the number of elements."
            )
        ctx.sizes = tensor.size()
        return tensor.detach().contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """The gradient in the shape of the input."""
        return grad.contiguous().view(ctx.sizes), None


class Type(Function):
    """``y`` is ``x`` in another dtype; ``dx`` is ``dy`` in that of ``x``. Use ``Tensor.to``."""

    @staticmethod
    def forward(ctx: Any, i: Any, dest_type: Any) -> Any:
        """The tensor in another dtype, which may be one of the older classes of tensors."""
        warnings.warn(
            "`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
            "`torch.tensor.to(dtype=dtype)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        ctx.dtype = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """The gradient in the dtype of the input."""
        return grad.to(ctx.dtype), None
