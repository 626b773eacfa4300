"""The functions of ``nn.functional`` that resize images: ``interpolate`` and its older names.

Which sizes and factors may be given is decided here; each mode is a native function for images of
its number of dimensions.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
# The rank of the images that a mode takes, and what is called with (input, size, align, factors).
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}
_ALIGNED = {
    "linear": "upsample_linear1d",
    "bilinear": "upsample_bilinear2d",
    "bicubic": "upsample_bicubic2d",
    "trilinear": "upsample_trilinear3d",
}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images ``(N, C, *sizes)`` of one to three dimensions, resized.

    Args:
        size: the new sizes, or one number for all of them.
        scale_factor: what sizes are multiplied with, or one number for all of them. Either this or
            ``size`` must be given.
        mode: ``'nearest'`` (the element in which a new one begins), ``'nearest-exact'`` (in which
            it has its centre), ``'linear'``, ``'bilinear'``, ``'trilinear'`` (the two elements
            around, along each of one, two or three dimensions), ``'bicubic'`` (the four),
            ``'lanczos'`` (a window of three lobes), or ``'area'`` (means of equal parts).
        align_corners: whether the centres of the outermost elements stay, not their outer edges;
            for the linear and cubic modes.
        recompute_scale_factor: whether the factors are taken from the sizes, which are whole.
        antialias: whether each new element is a mean over a neighbourhood as large as it is itself.
            For ``'bilinear'``, ``'bicubic'`` and ``'lanczos'``.

    Returns:
        ``(N, C, *new sizes)``.

    Raises:
        ValueError: both or neither of ``size`` and ``scale_factor``, or options that do not fit.
        TypeError: a ``size`` that is no whole number.
        NotImplementedError: a mode that is not for images of this rank.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear |"
                " bilinear | bicubic | trilinear"
            )
        aligned = False
    else:
        aligned = bool(align_corners)
    sizes = list(input.shape[2:])
    new_sizes, factors = _target(sizes, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        assert factors is not None
        new_sizes = [math.floor(float(n) * f) for n, f in zip(sizes, factors, strict=True)]
        factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a"
            " 4-D tensor as input"
        )
    if mode == "lanczos" and input.dim() == 4:
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        if aligned:
            raise ValueError("Lanczos mode does not support align_corners=True")
    return _resized(input, new_sizes, factors, mode, aligned, antialias)


def _target(
    sizes: list[int], size: Any, factor: Any
) -> tuple[list[int] | None, list[float] | None]:
    """One of the new sizes and the factors, as a list of a number for each dimension."""
    if size is not None and factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and factor is None:
        raise ValueError("either size or scale_factor should be defined")
    end = "(N, C, d1, d2, ...,dK) format and"
    if size is None:
        if not isinstance(factor, list | tuple):
            return None, [factor] * len(sizes)
        if len(factor) != len(sizes):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got"
                f" input with spatial dimensions of {sizes} and scale_factor of shape {factor}."
                f" Please provide input tensor in {end} scale_factor in (s1, s2, ...,sK) format."
            )
        return None, list(factor)
    if isinstance(size, list | tuple):
        if len(size) != len(sizes):
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input"
                f" with spatial dimensions of {sizes} and output size of {size}. Please provide"
                f" input tensor in {end} output size in (o1, o2, ...,oK) format."
            )
        if not all(isinstance(n, numbers.Integral | Tensor) for n in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int,"
                f" int], but got size with types {[type(n) for n in size]}"
            )
        return [int(n) for n in size], None
    if isinstance(size, Tensor):
        size = int(size)
    return [size] * len(sizes), None


def _resized(
    input: Tensor,
    size: list[int] | None,
    factors: list[float] | None,
    mode: str,
    aligned: bool,
    antialias: bool,
) -> Tensor:
    rank = input.dim()
    if mode == "area" and 3 <= rank <= 5:
        return _areas(input, size, factors)
    if mode in ("nearest", "nearest-exact") and 3 <= rank <= 5:
        name = "upsample_nearest" if mode == "nearest" else "_upsample_nearest_exact"
        return _native(f"{name}{rank - 2}d")(input, size, factors)
    wanted = _RANKS.get(mode)
    if wanted == rank:
        if antialias:
            return _native(f"_upsample_{mode}2d_aa")(input, size, aligned, factors)
        return _native(_ALIGNED[mode])(input, size, aligned, factors)
    if wanted is not None and 3 <= rank <= 5 and mode in ("linear", "bilinear", "trilinear"):
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {wanted}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes:"
        f" {_MODES} (got {mode})"
    )


def _native(name: str) -> Callable[..., Tensor]:
    function: Callable[..., Tensor] = getattr(_nn, name)
    return function


def _areas(input: Tensor, size: list[int] | None, factors: list[float] | None) -> Tensor:
    """Means of nearly equal parts, as many as there are new elements."""
    if size is None:
        assert factors is not None
        pairs = zip(input.shape[2:], factors, strict=True)
        size = [math.floor(float(n) * factor) for n, factor in pairs]
    if len(size) == 1:
        return _VF.adaptive_avg_pool1d(input, size)
    function = _nn.adaptive_avg_pool2d if len(size) == 2 else _nn.adaptive_avg_pool3d
    return function(input, size)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The older name of :func:`interpolate`."""
    _warn_of("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with the mode ``'nearest'``."""
    _warn_of("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with the mode ``'bilinear'``, the corners aligned."""
    _warn_of("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_of(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )
