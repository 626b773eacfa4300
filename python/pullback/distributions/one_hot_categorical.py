"""The categorical distribution over unit vectors, and one with a gradient."""

from __future__ import annotations

from typing import Any

from .. import eye
from ..nn.functional import one_hot
from . import constraints
from ._parameter import OfCategories
from .categorical import Categorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategories):
    """Vectors of ``K`` zeros but for a single 1, whose index is :class:`Categorical`.

    Args:
        probs: the probabilities along the last dimension, see :class:`Categorical`.
        logits: their logarithms, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: as for :class:`Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return one_hot(self.probs.argmax(dim=-1), self.event_shape[0]).to(self.probs)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        indices = self._categorical.sample(sample_shape)
        return one_hot(indices, self.event_shape[0]).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        size = self.event_shape[0]
        values = eye(size, dtype=self._param.dtype, device=self._param.device)
        values = values.view((size,) + (1,) * len(self.batch_shape) + (size,))
        return values.expand((size, *self.batch_shape, size)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` whose samples have the gradient of the probabilities.

    It is biased: "straight through" the choice, as if the sample were ``probs`` (Y. Bengio, N.
    Leonard, A. Courville, "Estimating or propagating gradients through stochastic neurons for
    conditional computation", 2013).

    Args:
        probs: see :class:`OneHotCategorical`.
        logits: likewise.
        validate_args: see :class:`Distribution`.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
