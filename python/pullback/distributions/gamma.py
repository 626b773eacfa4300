"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from .. import (
    _C,
    Tensor,
    as_tensor,
    digamma,
    finfo,
    lgamma,
    no_grad,
    special,
    xlogy,
)
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Gamma"]

_VF = _C._VariableFunctions


class Gamma(ExponentialFamily):
    """The gamma distribution, ``f(x) = rate^a x^(a-1) exp(-rate x) / Gamma(a)`` for ``x >= 0``.

    The gradients of samples by the concentration are implicit: that of the inverse of ``cdf`` at a
    fixed probability.

    Args:
        concentration: the shape ``a``, positive.
        rate: one over the scale, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("concentration", "rate")
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        batch_shape = self._broadcast(concentration=concentration, rate=rate)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def sample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        with no_grad():
            return self.rsample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Any = (), generator: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        value = _VF._standard_gamma(self.concentration.expand(shape), generator=generator)
        value = value / self.rate.expand(shape)
        # A gradient is that of the number before it was raised.
        value.detach().clamp_(min=finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Any:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            xlogy(self.concentration, self.rate)
            + xlogy(self.concentration - 1, value)
            - self.rate * value
            - lgamma(self.concentration)
        )

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)

    @property
    def _natural_params(self) -> Any:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return lgamma(x + 1) - (x + 1) * (-y).log()
