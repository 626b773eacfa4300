"""Layers that make images larger."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """``functional.interpolate`` as a layer: ``(N, C, *)`` with other spatial sizes.

    Args:
        size: the spatial sizes of the output.
        scale_factor: those of the output over those of the input, in place of ``size``.
        mode: ``'nearest'``, ``'nearest-exact'``, ``'linear'``, ``'bilinear'``, ``'bicubic'``,
            ``'trilinear'`` or ``'area'``.
        align_corners: whether the corner elements of both have the same position.
        recompute_scale_factor: whether factors are computed anew from the rounded sizes.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: Any
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input, interpolated."""
        result: Tensor = F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        if self.scale_factor is None:
            return f"size={self.size}, mode={self.mode!r}"
        return f"scale_factor={self.scale_factor}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of ``(N, C, H, W)`` by the nearest element.

    Args:
        size: the spatial sizes of the output.
        scale_factor: those of the output over those of the input, in place of ``size``.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of ``(N, C, H, W)``, bilinear, with corners aligned.

    Args:
        size: the spatial sizes of the output.
        scale_factor: those of the output over those of the input, in place of ``size``.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
