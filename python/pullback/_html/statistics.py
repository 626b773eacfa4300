"""What is known of a tensor's elements: least, largest, mean and spread, and what is not finite.

Large tensors are thinned first: an even choice of elements, by steps along each dimension, without
a copy of the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["Summary", "summarize", "thinned"]

_F = _C._VariableFunctions


class Summary(NamedTuple):
    """Rows of a table: a name and a text each."""

    rows: list[tuple[str, str]]


def thinned(tensor: Tensor, most: int) -> Tensor:
    """A view of at most ``most`` elements, evenly spaced along each dimension."""
    sizes = list(tensor.shape)
    steps = [1] * len(sizes)
    while math.prod(-(-size // step) for size, step in zip(sizes, steps, strict=True)) > most:
        # The dimension that still shows most of its elements.
        at = max(range(len(sizes)), key=lambda dim: sizes[dim] / steps[dim])
        steps[at] *= 2
    return tensor[tuple(slice(None, None, step) for step in steps)] if sizes else tensor


def summarize(elements: Tensor) -> Summary:
    """The statistics of a dense tensor with at least one element."""
    if elements.dtype == _C.bool:
        true = int(elements.sum())
        return Summary([("true", f"{true:,} of {elements.numel():,}")])
    if elements.is_complex():
        return _complex(elements)
    wide = elements.to(_C.float64)
    is_finite = _F.isfinite(wide)
    finite = wide[is_finite]
    rows = _numbers(finite, is_integral=not elements.is_floating_point())
    for name, found in (
        ("nan", _F.isnan(wide)),
        ("inf", wide == math.inf),
        ("-inf", wide == -math.inf),
    ):
        count = int(found.sum())
        if count:
            rows.append((name, f"{count:,}"))
    return Summary(rows)


def _numbers(finite: Tensor, is_integral: bool) -> list[tuple[str, str]]:
    if not finite.numel():
        return [("finite", "none")]

    def text(value: float) -> str:
        return f"{value:.0f}" if is_integral and abs(value) < 2**53 else f"{value:.4g}"

    low, high = float(finite.min()), float(finite.max())
    if finite.numel() == 1:
        return [("value", text(low))]
    rows = [("range", f"{text(low)} to {text(high)}")]
    # (The square of a deviation near the largest double would overflow.)
    scale = max(abs(low), abs(high), 1e-300)
    scaled = finite / scale
    mean, spread = float(scaled.mean()) * scale, float(scaled.std()) * scale
    rows.append(("mean, std", f"{mean:.4g}, {spread:.4g}"))
    zeros = int((finite == 0).sum())
    if zeros:
        rows.append(("zeros", f"{zeros:,} of {finite.numel():,}"))
    return rows


def _complex(elements: Tensor) -> Summary:
    wide = elements.to(_C.complex128)
    is_finite = _F.isfinite(wide)
    finite = wide[is_finite]
    if not finite.numel():
        return Summary([("finite", "none")])
    size = finite.abs()
    rows = [("absolute value", f"{float(size.min()):.4g} to {float(size.max()):.4g}")]
    mean = complex(finite.mean())
    rows.append(("mean", f"{mean.real:.4g}{mean.imag:+.4g}j"))
    other = int((~is_finite).sum())
    if other:
        rows.append(("not finite", f"{other:,}"))
    return Summary(rows)
