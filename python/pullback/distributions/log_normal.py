"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from ._parameter import forwarded
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """``exp`` of a normal number.

    ``f(x) = exp(-(log x - loc)^2 / (2 scale^2)) / (x scale sqrt(2 pi))``. Its support are the
    positive numbers.

    Args:
        loc: the mean of the logarithm.
        scale: the standard deviation of the logarithm, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = ()
    loc = forwarded("base_dist", "loc")
    scale = forwarded("base_dist", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
