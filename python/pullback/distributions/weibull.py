"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from .. import Tensor, lgamma, ones_like
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, ``f(x) = k / scale (x / scale)^(k-1) exp(-(x / scale)^k)``.

    Its support are the positive numbers.

    Args:
        scale: positive.
        concentration: the shape ``k``, positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched = ("scale", "concentration", "concentration_reciprocal")
    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Any:
        # (The reciprocal anew: the mode's graph is not shared with the mean's.)
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        of_square = lgamma(1 + 2 * self.concentration_reciprocal).exp()
        square_of = (2 * lgamma(1 + self.concentration_reciprocal)).exp()
        return self.scale.pow(2) * (of_square - square_of)

    def entropy(self) -> Any:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
