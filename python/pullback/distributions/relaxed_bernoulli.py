"""The Bernoulli distribution relaxed to numbers between 0 and 1, with gradients."""

from __future__ import annotations

from typing import Any

from .. import rand
from . import constraints
from ._parameter import OneParameter, forwarded
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(OneParameter):
    """The logit of :class:`RelaxedBernoulli`.

    It is ``(logits + L) / temperature`` with L a logistic number. Its support are the real numbers.
    It does not underflow where the relaxed number would.

    Args:
        temperature: a positive tensor.
        probs: from 0 to 1.
        logits: ``log(probs / (1 - probs))``, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _batched = OneParameter._batched
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(self._give(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        gap = logits - value.mul(self.temperature)
        return self.temperature.log() + gap - 2 * gap.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """The Bernoulli distribution relaxed to (0, 1): the binary concrete distribution.

    Samples tend to 0 and 1 as the temperature tends to 0 (C. Maddison, A. Mnih, Y. W. Teh, "The
    concrete distribution", 2017; E. Jang, S. Gu, B. Poole, "Categorical reparameterization with
    Gumbel-softmax", 2017).

    Args:
        temperature: see :class:`LogitRelaxedBernoulli`.
        probs: likewise.
        logits: likewise.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
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
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
