"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Tensor, exp, expm1, isclose, log1p, rand, where, zeros_like
from . import constraints
from .distribution import Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution of values above a threshold.

    ``f(x) = (1 + k z)^(-(1/k + 1)) / scale`` with ``z = (x - loc) / scale``; for ``k = 0`` it is
    ``exp(-z) / scale``. The support begins at ``loc`` and ends at ``loc - scale / k`` for negative
    ``k``. The mean is defined for ``k < 1``, the variance for ``k < 1/2``.

    Args:
        loc: the threshold.
        scale: positive.
        concentration: the shape ``k``, any number.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _batched = ("loc", "scale", "concentration")
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        batch_shape = self._broadcast(loc=loc, scale=scale, concentration=concentration)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Any, Any]:
        """Where the shape is 0, and the shape with 1 at these indices."""
        is_zero = isclose(self.concentration, zeros_like(self.concentration))
        return is_zero, self.concentration.masked_fill(is_zero, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, k = self._shape()
        exponent = 1 / k + 1
        # (For a uniform distribution, k = -1, the density is 1 up to the end.)
        power = where(exponent == 0, zeros_like(z), exponent * log1p(k * z))
        return -self.scale.log() - where(is_zero, z, power)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of values above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, k = self._shape()
        return where(is_zero, -z, -log1p(k * z) / k)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of :meth:`cdf`."""
        return log1p(-exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        is_zero, k = self._shape()
        log_rest = log1p(-value)
        power = self.loc + self.scale / k * expm1(-k * log_rest)
        return where(is_zero, self.loc - self.scale * log_rest, power)

    @property
    def mean(self) -> Any:
        is_defined = self.concentration < 1
        k = where(is_defined, self.concentration, 0.5)
        return where(is_defined, self.loc + self.scale / (1 - k), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        is_defined = self.concentration < 0.5
        k = where(is_defined, self.concentration, 0.25)
        result = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return where(is_defined, result, math.nan)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1
