"""Fisher and Snedecor's F distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Tensor, finfo, lgamma
from . import constraints
from .distribution import Distribution
from .gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared numbers by their degrees of freedom.

    With ``r = df1 / df2``,
    ``f(x) = r^(df1/2) x^(df1/2 - 1) (1 + r x)^(-(df1+df2)/2) / B(df1/2, df2/2)`` for ``x > 0``. The
    mean is defined for ``df2 > 2``, the variance for ``df2 > 4``, the mode for ``df1 > 2``;
    elsewhere they are NaN.

    Args:
        df1: degrees of freedom above, positive.
        df2: degrees of freedom below, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ("df1", "df2", "_gamma1", "_gamma2")
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        batch_shape = self._broadcast(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        result = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return result.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Any:
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        tiny = finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (a + b).lgamma() - lgamma(a) - lgamma(b)
        powers = a * ratio.log() + (a - 1) * value.log()
        return normalizer + powers - (a + b) * (ratio * value).log1p()
