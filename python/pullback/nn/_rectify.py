"""``rrelu``: the leaky rectifier whose slopes are drawn at random while a model is trained."""

from __future__ import annotations

import math

from .. import _C
from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn

__all__ = ["rrelu", "rrelu_"]


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """``x`` where positive, else ``a x`` (Xu et al. 2015, arXiv:1505.00853).

    Args:
        lower: the smallest slope.
        upper: the largest slope.
        training: whether each ``a`` is drawn from ``[lower, upper)``, not their mean.

    Raises:
        RuntimeError: bounds that are no numbers, or the lower one above the upper one.
        NotImplementedError: a dtype that is not floating.
    """
    return _rectified(input, lower, upper, training, inplace, None)


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: _C.Generator | None = None,
) -> Tensor:
    """:func:`rrelu` that writes into its input; ``generator`` draws the slopes if given."""
    return _rectified(input, lower, upper, training, True, generator)


def _rectified(
    input: Tensor,
    lower: float,
    upper: float,
    training: bool,
    inplace: bool,
    generator: _C.Generator | None,
) -> Tensor:
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound,"
            f" but got lower={lower} and upper={upper}"
        )
    if not training:
        slope = (lower + upper) / 2
        return _nn.leaky_relu_(input, slope) if inplace else _nn.leaky_relu(input, slope)
    if not input.is_floating_point() or input.dtype == _C.float16:
        raise NotImplementedError(
            f"\"rrelu_with_noise_out_cpu\" not implemented for '{input.type()[6:-6]}'"
        )
    slopes = _slopes(input.detach(), lower, upper, generator)
    return input.mul_(slopes) if inplace else input * slopes


def _slopes(input: Tensor, lower: float, upper: float, generator: _C.Generator | None) -> Tensor:
    """One for positive elements, and for each of the others a number in double precision."""
    mask = input <= 0
    count = int(mask.sum())
    drawn = _VF.empty((count,), dtype=_C.float64, device=input.device)
    drawn.uniform_(lower, upper, generator=generator)
    return _VF.ones_like(input).masked_scatter_(mask, drawn.to(input.dtype))
