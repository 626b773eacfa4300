"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .cauchy import Cauchy
from .half_normal import _Half

__all__ = ["HalfCauchy"]


class HalfCauchy(_Half):
    """The absolute value of a Cauchy number, ``f(x) = 2 / (pi scale (1 + (x / scale)^2))``.

    Its support are the numbers from 0 upwards. Mean and variance are infinite.

    Args:
        scale: of the Cauchy number, which is the median here; positive.
        validate_args: see :class:`Distribution`.
    """

    _batched = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self._constant(math.inf, self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance
