"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import arange, bernoulli, exp, log1p, logit, no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._parameter import OneParameter
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(OneParameter, ExponentialFamily):
    """1 with probability ``probs``, else 0.

    Args:
        probs: from 0 to 1.
        logits: ``log(probs / (1 - probs))``, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.

    Example:
        >>> from pullback.distributions import Bernoulli
        >>> Bernoulli(0.25).variance
        tensor(0.1875)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batched = OneParameter._batched

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._give(probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> Any:
        return (logit(self.probs),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return log1p(exp(x))
