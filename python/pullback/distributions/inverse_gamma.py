"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import where
from . import constraints
from ._parameter import forwarded
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """One over a gamma number: ``f(x) = rate^a x^(-a-1) exp(-rate / x) / Gamma(a)`` for ``x > 0``.

    The mean is infinite for ``a <= 1``, the variance for ``a <= 2``.

    Args:
        concentration: the shape ``a``, positive.
        rate: the scale of this distribution, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ()
    concentration = forwarded("base_dist", "concentration")
    rate = forwarded("base_dist", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
