"""The functions of ``nn.functional`` over the positions of an image: pooling, padding, pixels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "affine_grid",
    "avg_pool1d",
    "grid_sample",
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


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...


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


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...


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


_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images ``(N, C, H, W)`` at the points ``(N, Hout, Wout, 2)``.

    Volumes have one dimension more. A point is ``(x, y)`` or ``(x, y, z)``, from -1 to 1.

    Args:
        mode: "bilinear" (of volumes: of three dimensions), "nearest", or "bicubic" (of both).
        padding_mode: what lies outside: "zeros", the "border" or a "reflection".
        align_corners: whether -1 and 1 are the outermost centres, and not the outer edges.

    Returns:
        ``(N, C, Hout, Wout)``.

    Raises:
        ValueError: an unknown mode.
        RuntimeError: shapes or dtypes do not fit.
    """
    if mode not in _INTERPOLATIONS:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        _warn_of_corners("grid_sample")
    return _VF.grid_sampler(
        input, grid, _INTERPOLATIONS[mode], _PADDINGS[padding_mode], bool(align_corners)
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points ``(N, H, W, 2)`` that affine maps ``(N, 2, 3)`` give, for :func:`grid_sample`.

    Args:
        theta: of volumes ``(N, 3, 4)``.
        size: the size ``(N, C, H, W)`` or ``(N, C, D, H, W)`` of the images to be made.
        align_corners: whether -1 and 1 are the outermost centres, and not the outer edges. Along a
            size of 1 both are one point then: it is 0, with a warning.

    Raises:
        ValueError: a theta that is no batch of such maps of numbers, or sizes below one.
        NotImplementedError: a size of another length.
    """
    if align_corners is None:
        _warn_of_corners("affine_grid")
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = tuple(size)
    if len(sizes) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {sizes}."
        )
    rank = len(sizes) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size "
            f"{sizes}. Got {theta.shape}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    if align_corners and min(sizes[2:]) == 1:
        warnings.warn(
            "affine_grid: where a size is 1, aligned corners have one place for both ends, which "
            "is taken for the middle. See the documentation of affine_grid for details.",
            stacklevel=3,
        )
    return _VF.affine_grid_generator(theta, sizes, bool(align_corners))


def _warn_of_corners(name: str) -> None:
    warnings.warn(
        f"{name}: align_corners is taken for False, as by default since PyTorch 1.3.0; say which "
        "corners are meant by giving align_corners=True or False",
        stacklevel=4,
    )
