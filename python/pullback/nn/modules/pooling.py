"""Pooling layers: one number for each window of the input.

Windows at random positions and norms of windows are in ``_fractional.py``; exported here.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ._fractional import FractionalMaxPool2d, FractionalMaxPool3d, LPPool1d, LPPool2d, LPPool3d
from ._fractional import _LPPoolNd as _LPPoolNd
from .module import Module
from .utils import _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    """The maximum of each window.

    Args:
        kernel_size: the size of the window.
        stride: the step between windows. Default: ``kernel_size``.
        padding: minus infinity on both sides, at most half a window.
        dilation: the step between the points of a window.
        return_indices: whether the positions of the maxima are returned, too.
        ceil_mode: whether partial windows at the end count.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of ``(N, C, L)`` or ``(C, L)``."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of ``(N, C, H, W)`` or ``(C, H, W)``."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class _MaxUnpoolNd(Module):
    """Puts maxima back to where they were; all else is zero.

    Args:
        kernel_size: the size of the windows that the maxima are of.
        stride: the step between them. Default: ``kernel_size``.
        padding: what was added on both sides.
    """

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def _keep(self, spread: Any, kernel_size: Any, stride: Any, padding: Any) -> None:
        """Keeps the sizes, one for each dimension."""
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """A partial inverse of :class:`MaxPool1d`: maxima to where they were, and zeros."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self._keep(_single, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Puts ``input`` to the indices ``indices`` of an output that has ``output_size``."""
        result: Tensor = F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return result


class MaxUnpool2d(_MaxUnpoolNd):
    """A partial inverse of :class:`MaxPool2d`: maxima to where they were, and zeros."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self._keep(_pair, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Puts ``input`` to the indices ``indices`` of an output that has ``output_size``."""
        result: Tensor = F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return result


class MaxUnpool3d(_MaxUnpoolNd):
    """A partial inverse of :class:`MaxPool3d`: maxima to where they were, and zeros."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self._keep(_triple, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Puts ``input`` to the indices ``indices`` of an output that has ``output_size``."""
        result: Tensor = F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return result


class _AvgPoolNd(Module):
    """The common base of average pools."""

    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of ``(N, C, L)`` or ``(C, L)``.

    Args:
        kernel_size: the length of the window.
        stride: the step between windows. Default: ``kernel_size``.
        padding: zeros on both sides.
        ceil_mode: whether partial windows at the end count.
        count_include_pad: whether the zeros of ``padding`` count in the mean.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of ``(N, C, H, W)`` or ``(C, H, W)``.

    Args:
        kernel_size: the size of the window.
        stride: the step between windows. Default: ``kernel_size``.
        padding: zeros on both sides.
        ceil_mode: whether partial windows at the end count.
        count_include_pad: whether the zeros of ``padding`` count in the mean.
        divisor_override: what sums are divided by in place of the window's size.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``.

    Arguments as of :class:`AvgPool2d`.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        result: Tensor = F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, value)


class _AdaptiveAvgPoolNd(Module):
    """Means over windows chosen to give an output of a certain size.

    Args:
        output_size: one number for all dimensions, or one for each; ``None`` keeps a size.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The options."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """``(N, C, L)`` or ``(C, L)`` to that many means per channel."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """``(N, C, H, W)`` or ``(C, H, W)`` to a plane of means per channel."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """``(N, C, D, H, W)`` or ``(C, D, H, W)`` to a volume of means per channel."""

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        result: Tensor = F.adaptive_avg_pool3d(input, self.output_size)
        return result


class _AdaptiveMaxPoolNd(Module):
    """Maxima over windows chosen to give an output of a certain size.

    Args:
        output_size: one number for all dimensions, or one for each; ``None`` keeps a size.
        return_indices: whether the positions of the maxima are returned, too.
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        """The options."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """``(N, C, L)`` or ``(C, L)`` to that many maxima per channel."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """``(N, C, H, W)`` or ``(C, H, W)`` to a plane of maxima per channel."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """``(N, C, D, H, W)`` or ``(C, D, H, W)`` to a volume of maxima per channel."""

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
