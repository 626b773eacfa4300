"""The functions of ``nn.functional`` over the places of an image: pooling, padding, pixels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_with_indices",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
]

_max_pool2d = _VF.max_pool2d
_pad = _nn.pad


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d` and the flat positions of the maxima within each plane."""
    stride = () if stride is None else stride
    both: Any = _nn.max_pool2d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return both[0], both[1]


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of ``(N, C, H, W)`` or ``(C, H, W)``.

    Args:
        stride: default: ``kernel_size``.
        padding: minus infinity on both sides, at most half a kernel.
        ceil_mode: whether partial windows at the end count.
        return_indices: whether the positions of the maxima are returned, too.
    """
    if stride is None:
        stride = ()
    if return_indices:
        function = _nn.max_pool2d_with_indices
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of ``(N, C, L)`` or ``(C, L)``; see :func:`max_pool2d`."""
    pool = _VF.max_pool1d_with_indices if return_indices else _VF.max_pool1d
    steps = [] if stride is None else stride
    return pool(input, kernel_size, steps, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of ``(N, C, L)`` or ``(C, L)``.

    Args:
        stride: default: ``kernel_size``.
        count_include_pad: whether the zeros of ``padding`` count in the mean.
    """
    steps = [] if stride is None else stride
    return _VF.avg_pool1d(input, kernel_size, steps, padding, ceil_mode, count_include_pad)


def _list_with_default(out_size: Any, defaults: Iterable[int]) -> list[int]:
    """Replaces ``None`` in ``out_size`` by the trailing sizes in ``defaults``."""
    given = list(defaults)
    if isinstance(out_size, int):
        return [out_size, out_size]
    if len(given) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    tail = given[len(given) - len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, tail, strict=True)]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of ``(N, C, H, W)`` or ``(C, H, W)`` over windows chosen to give ``output_size``.

    Args:
        output_size: one number or two; ``None`` keeps the input's size.
    """
    sizes = _list_with_default(output_size, input.size())
    return _nn.adaptive_avg_pool2d(input, sizes)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of ``(N, C, L)`` or ``(C, L)`` over windows chosen to give ``output_size``."""
    return _VF.adaptive_avg_pool1d(input, output_size)


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads the last dimensions.

    Args:
        pad: two numbers per dimension, the last dimension first; negative numbers crop.
        mode: ``'constant'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
        value: what ``'constant'`` fills with. Default: 0.
    """
    return _pad(input, pad, mode, value)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """``(*, C r**2, H, W)`` to ``(*, C, H r, W r)``: channels become pixels.

    Raises:
        RuntimeError: fewer than three dimensions, or channels not divisible by ``r**2``.
    """
    return _VF.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`.

    Raises:
        RuntimeError: fewer than three dimensions, or a size not divisible by the factor.
    """
    return _VF.pixel_unshuffle(input, downscale_factor)
