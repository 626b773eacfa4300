"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, arange, broadcast_tensors, finfo, int64, multinomial
from . import constraints
from ._parameter import OneParameter, check_one_given

__all__ = ["Categorical"]


class Categorical(OneParameter):
    """One of the numbers ``0 .. K - 1``, each with its probability.

    Mean and variance are NaN: categories have no distance from each other.

    Args:
        probs: the probabilities along the last dimension, not negative; they are divided by their
            sum.
        logits: the logarithms of the probabilities, up to a number that all share, in place of
            ``probs``. The attribute has them such that the probabilities add up to 1.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given, and has a dimension.

    Example:
        >>> import pullback as torch
        >>> from pullback.distributions import Categorical
        >>> Categorical(torch.tensor([1.0, 1.0, 2.0])).log_prob(torch.tensor(2))
        tensor(-0.6931)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _batched = OneParameter._batched
    _kept = ("_num_events",)
    _is_binary = False

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            self._param = given - given.logsumexp(dim=-1, keepdim=True)
        else:
            self._param = given / given.sum(-1, keepdim=True)
        setattr(self, name, self._param)
        self._num_events = self._param.size(-1)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return self._constant(math.nan, self.probs)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self._constant(math.nan, self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        draws = multinomial(rows, sample_shape.numel(), True).T
        return draws.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        # (A probability of 0 counts 0, though its logarithm may be -inf.)
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(self._num_events, dtype=int64, device=self._param.device)
        return self._enumerated(values, expand)
