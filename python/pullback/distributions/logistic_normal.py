"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from ._parameter import forwarded
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: independent normal numbers through :class:`StickBreakingTransform`.

    A sample has one element more than there are normal numbers.

    Args:
        loc: the means, along the last dimension; a single number is a vector of one.
        scale: the standard deviations, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _batched = ()
    _normal = forwarded("base_dist", "base_dist")
    loc = forwarded("_normal", "loc")
    scale = forwarded("_normal", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)
