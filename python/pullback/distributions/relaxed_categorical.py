"""The categorical distribution relaxed to the inside of the simplex, with gradients."""

from __future__ import annotations

import math
from typing import Any

from .. import rand
from . import constraints
from ._parameter import OfCategories, forwarded
from .categorical import Categorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategories):
    """The logarithm of :class:`RelaxedOneHotCategorical`.

    It is ``log_softmax((logits + G) / temperature)`` with ``G`` Gumbel numbers. It does not
    underflow where the relaxed vector would.

    Args:
        temperature: a positive tensor.
        probs: the probabilities along the last dimension, see :class:`Categorical`.
        logits: their logarithms, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: as for :class:`Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # Not only the vectors whose exponentials add up to 1: these are too few for a density.
    support = constraints.real_vector
    has_rsample = True
    _batched = ("_categorical",)
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        size = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = math.lgamma(size) + self.temperature.log() * (size - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """The one-hot categorical distribution relaxed to the simplex: the concrete distribution.

    Samples tend to the corners as the temperature tends to 0; see :class:`RelaxedBernoulli`.

    Args:
        temperature: see :class:`ExpRelaxedCategorical`.
        probs: likewise.
        logits: likewise.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: as for :class:`Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _batched = ()
    temperature = forwarded("base_dist", "temperature")
    logits = forwarded("base_dist", "logits")
    probs = forwarded("base_dist", "probs")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
