"""Pooling over windows at random positions, and by norms of windows; for ``pooling.py``."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _pair, _triple

__all__: list[str] = []


class _FractionalMaxPoolNd(Module):
    """Maxima of windows whose positions are drawn, so that sizes shrink by any ratio.

    Args:
        kernel_size: the size of the windows.
        output_size: the size of the output.
        output_ratio: the size of the output over that of the input, in place of ``output_size``.
        return_indices: whether the positions of the maxima are returned, too.
        _random_samples: the numbers in ``[0, 1)`` that say where the windows are, ``(N, C, rank)``;
            drawn unless given.

    Raises:
        ValueError: neither a size nor a ratio is given, or both, or the ratio is not in ``(0, 1)``.
    """

    kernel_size: tuple[int, ...]
    output_size: tuple[int, ...] | None
    output_ratio: tuple[float, ...] | None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._spread(output_size)
        self.output_ratio = None if output_ratio is None else self._spread(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        ratios = self.output_ratio or ()
        if not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _spread(self, sizes: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def _pool(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Fractional max pooling of ``(N, C, H, W)`` or ``(C, H, W)`` (Graham 2014)."""

    def _spread(self, sizes: Any) -> tuple[Any, ...]:
        return _pair(sizes)

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional max pooling of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    def _spread(self, sizes: Any) -> tuple[Any, ...]:
        return _triple(sizes)

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their positions with ``return_indices``."""
        return self._pool(F.fractional_max_pool3d, input)


class _LPPoolNd(Module):
    """``(sum x**p)**(1 / p)`` over each window.

    Args:
        norm_type: ``p``.
        kernel_size: the size of the window.
        stride: the step between windows. Default: ``kernel_size``.
        ceil_mode: whether partial windows at the end count.
    """

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _pool(self, function: Any, input: Tensor) -> Tensor:
        result: Tensor = function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return result

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """Power-average pooling of ``(N, C, L)`` or ``(C, L)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms of the windows."""
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """Power-average pooling of ``(N, C, H, W)`` or ``(C, H, W)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms of the windows."""
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """Power-average pooling of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    def forward(self, input: Tensor) -> Tensor:
        """The norms of the windows."""
        return self._pool(F.lp_pool3d, input)
