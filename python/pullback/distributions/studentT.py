"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Tensor, digamma, lgamma, rsqrt, where
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution: ``loc + scale X / sqrt(Z / df)``, X normal and Z chi-squared.

    The density is proportional to ``(1 + y^2 / df)^(-(df + 1) / 2)`` with
    ``y = (x - loc) / scale``. Its support are the real numbers. The mean is defined for ``df > 1``,
    the variance finite for ``df > 2``.

    Args:
        df: the degrees of freedom, positive.
        loc: the median.
        scale: positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _batched = ("df", "loc", "scale", "_chi2")
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        batch_shape = self._broadcast(df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        is_finite = self.df > 2
        df = where(is_finite, self.df, 3.0)
        result = where(is_finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return result.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * rsqrt(z / self.df))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        half = 0.5 * (self.df + 1.0)
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self.df)
            - lgamma(half)
        )
        return -half * (y**2.0 / self.df).log1p() - normalizer

    def entropy(self) -> Any:
        half = 0.5 * (self.df + 1)
        log_beta = lgamma(0.5 * self.df) + math.lgamma(0.5) - lgamma(half)
        return (
            self.scale.log()
            + half * (digamma(half) - digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + log_beta
        )
