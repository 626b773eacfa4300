"""Padding layers: constants, mirrors, repeated edges and wrapped signals around the input.

Invariant: ``padding`` is a tuple of two numbers per dimension, last dimension first, as
``functional.pad`` takes it; one number stands for all.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Pads the last dimensions of the input.

    Args:
        padding: numbers per side, last dimension first; one number for all sides. Negative
            numbers crop.
    """

    padding: Any
    # The number of padded dimensions and the mode of ``pad``; subclasses set them.
    _dims: int = 1
    _mode: str = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The numbers."""
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Pads with ``value``.

    Args:
        padding: numbers per side, last dimension first; one number for all sides.
        value: what to fill with.
    """

    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The numbers and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    """Pads with 0."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The numbers."""
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Pads with the other end of the input."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value."""

    _dims = 3


class ZeroPad1d(_ZeroPadNd):
    """Pads the last dimension with 0."""

    _dims = 1


class ZeroPad2d(_ZeroPadNd):
    """Pads the last two dimensions with 0."""

    _dims = 2


class ZeroPad3d(_ZeroPadNd):
    """Pads the last three dimensions with 0."""

    _dims = 3


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension of a batch with the other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions of a batch with the other end."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions of a batch with the other end."""

    _dims = 3


class _ReflectionPadNd(_PadNd):
    """Pads with the mirror image of the inside."""

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Pads with the nearest edge."""

    _mode = "replicate"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with the mirror image of the inside."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with the mirror image of the inside."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with the mirror image of the inside."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with the nearest edge."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions with the nearest edge."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with the nearest edge."""

    _dims = 3
