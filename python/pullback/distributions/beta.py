"""The beta distribution."""

from __future__ import annotations

from typing import Any

from .. import lgamma, stack
from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution, ``f(x) = x^(a-1) (1-x)^(b-1) / B(a, b)`` for ``0 <= x <= 1``.

    ``(x, 1 - x)`` is a sample of ``Dirichlet([a, b])``.

    Args:
        concentration1: ``a``, positive.
        concentration0: ``b``, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched = ("_dirichlet",)

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, (int, float)) and isinstance(concentration0, (int, float)):
            concentration1, concentration0 = float(concentration1), float(concentration0)
        both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Any:
        """``a``."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """``b``."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> Any:
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return lgamma(x) + lgamma(y) - lgamma(x + y)
