"""Windows of images as columns, and back."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Adds columns ``(N, C * prod(kernel_size), L)`` up to images ``(N, C, *output_size)``.

    Args:
        output_size: the spatial sizes of the output.
        kernel_size: the size of the windows.
        dilation: the step between the points of a window.
        padding: what was added on both sides.
        stride: the step between windows.
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The sums of the windows' elements at each position."""
        result: Tensor = F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
        return result

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """The windows of images ``(N, C, *)`` as columns ``(N, C * prod(kernel_size), L)``.

    Args:
        kernel_size: the size of the windows.
        dilation: the step between the points of a window.
        padding: zeros that are added on both sides.
        stride: the step between windows.
    """

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The windows."""
        result: Tensor = F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
        return result

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
