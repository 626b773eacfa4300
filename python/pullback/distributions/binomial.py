"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Tensor, arange, binomial, exp, lgamma, no_grad
from ..nn.functional import softplus
from . import constraints
from ._parameter import OneParameter

__all__ = ["Binomial"]


class Binomial(OneParameter):
    """The number of successes in ``n`` trials, ``P(k) = C(n, k) p^k (1 - p)^(n - k)``.

    Its support are the whole numbers from 0 to n.

    Args:
        total_count: the number of trials ``n``, whole and not negative.
        probs: the probability of success ``p``, from 0 to 1.
        logits: ``log(p / (1 - p))``, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched = ("total_count", *OneParameter._batched)
    total_count: Tensor

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = self._give(probs, logits, total_count=total_count)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        # n log(1 - p), without taking the logarithm of a rounded difference.
        failures = n * softplus(self.logits)
        choices = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        return value * self.logits + choices - failures

    def _only_count(self, what: str) -> int:
        """The number of trials, if it is the same for all."""
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Any:
        self._only_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._only_count("enumerate_support")
        values = arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
