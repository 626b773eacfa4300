"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, exp, lgamma, ones_like, tensor, zeros
from . import constraints
from ._parameter import OfCategories
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategories):
    """How often each category comes in ``n`` draws, ``P(x) = n! prod p_k^(x_k) / x_k!``.

    Its support are vectors of whole numbers with the sum ``n``; :meth:`log_prob` takes the number
    of draws from the value.

    Args:
        total_count: the number of draws ``n``.
        probs: the probabilities along the last dimension, see :class:`Categorical`.
        logits: their logarithms, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        NotImplementedError: for a ``total_count`` that is no int.
        ValueError: as for :class:`Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = ("total_count", "_categorical", "_binomial")
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        shape = self._extended_shape(sample_shape)
        counts = zeros(shape, dtype=draws.dtype, device=draws.device)
        return counts.scatter_add_(-1, draws, ones_like(draws)).type_as(self.probs)

    def entropy(self) -> Any:
        # H = n H_1 - log n! + sum_k E log(x_k!), with x_k binomial.
        n = tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        terms = exp(self._binomial.log_prob(counts)) * lgamma(counts + 1)
        return n * self._categorical.entropy() - lgamma(n + 1) + terms.sum([0, -1])

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # A category of probability 0 that did not occur contributes nothing.
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        choices = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return choices + (logits * value).sum(-1)
