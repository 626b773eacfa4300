"""Dropout layers: random zeros in training, the identity otherwise."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .._native import VF as _VF
from .module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]

_dropout = _VF.dropout


class _DropoutNd(Module):
    """What all dropout layers share.

    Args:
        p: the probability that an element (or channel) becomes zero.
        inplace: whether the input itself is changed.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """

    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements with probability ``p`` and scales the others by ``1 / (1 - p)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops elements in training, returns the input otherwise."""
        if self.inplace:
            return F.dropout(input, self.p, self.training, True)
        return _dropout(input, self.p, self.training)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of ``(N, C, L)`` or ``(C, L)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops channels in training, returns the input otherwise."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of ``(N, C, H, W)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops channels in training, returns the input otherwise."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops channels in training, returns the input otherwise."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU activations."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops elements in training, returns the input otherwise."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """:class:`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Drops channels in training, returns the input otherwise."""
        return F.feature_alpha_dropout(input, self.p, self.training)
