"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Tensor, exp, lgamma, no_grad, poisson, sigmoid
from ..nn.functional import logsigmoid
from . import constraints
from ._parameter import OneParameter
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OneParameter):
    """The number of successes before ``r`` failures.

    ``P(k) = Gamma(r + k) / (k! Gamma(r)) p^k (1 - p)^r`` for ``k = 0, 1 ..``; a Poisson number
    whose rate is a gamma number.

    Args:
        total_count: the number of failures ``r``, not negative; need not be whole.
        probs: the probability of success ``p``, from 0, below 1.
        logits: ``log(p / (1 - p))``, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batched = ("total_count", *OneParameter._batched)
    total_count: Tensor

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = self._give(probs, logits, total_count=total_count)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # (A count of 0 is not checked: its rate is 0.)
        return Gamma(self.total_count, exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        r = self.total_count
        powers = r * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = lgamma(r + value) - lgamma(1.0 + value) - lgamma(r)
        return powers + choices.masked_fill(r + value == 0.0, 0.0)
