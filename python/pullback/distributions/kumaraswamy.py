"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Tensor, digamma, full_like, lgamma
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, Transform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution, ``f(x) = a b x^(a-1) (1 - x^a)^(b-1)`` for ``0 <= x <= 1``.

    Its distribution function is ``1 - (1 - x^a)^b``. The mode is NaN where ``a`` or ``b`` is below
    1.

    Args:
        concentration1: ``a``, positive.
        concentration0: ``b``, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched = ("concentration1", "concentration0")
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        base = Uniform(full_like(b, 0), full_like(b, 1), validate_args=validate_args)
        transforms: list[Transform] = [
            PowerTransform(exponent=b.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=a.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """The expected value of ``x^n``, ``b B(1 + n/a, b)``."""
        first, b = 1 + n / self.concentration1, self.concentration0
        return b * (lgamma(first) + lgamma(b) - lgamma(first + b)).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        # ((a - 1) / (a b - 1))^(1/a)
        log_mode = a.reciprocal() * ((a - 1).log() - (a * b - 1).log())
        return log_mode.masked_fill((a < 1) | (b < 1), math.nan).exp()

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
