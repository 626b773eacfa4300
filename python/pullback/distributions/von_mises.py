"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, Tensor, empty, float64, no_grad, rand, special, where, zeros
from .. import bool as _bool
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["VonMises"]


def _angles(shape: Size, concentration: Tensor, r: Tensor) -> Tensor:
    """Angles around 0, by rejection of wrapped Cauchy numbers.

    Source: D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979.
    """
    angle = empty(shape, dtype=r.dtype, device=r.device)
    is_done = zeros(shape, dtype=_bool, device=r.device)
    while not bool(is_done.all()):
        u1, u2, u3 = rand((3, *shape), dtype=r.dtype, device=r.device).unbind()
        z = (math.pi * u1).cos()
        f = (1 + r * z) / (r + z)
        c = concentration * (r - f)
        is_accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        angle = where(is_accepted, (u3 - 0.5).sign() * f.acos(), angle)
        is_done = is_done | is_accepted
    return angle


class VonMises(Distribution):
    """The von Mises distribution of angles, ``f(x) = exp(k cos(x - loc)) / (2 pi I0(k))``.

    Samples are in ``[-pi, pi)``; the density takes any angle. Samples are drawn in double
    precision. ``variance`` is the circular one, ``1 - I1(k) / I0(k)``.

    Args:
        loc: the mean angle.
        concentration: ``k``, positive; about one over the variance where it is large.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _batched = ("loc", "concentration")
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        batch_shape = self._broadcast(loc=loc, concentration=concentration)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    @lazy_property
    def _proposal_r(self) -> Any:
        """The parameter of the wrapped Cauchy distribution that is drawn from."""
        k = self.concentration.to(float64)
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # (Where k is small, rho is a difference of equal numbers.)
        return where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            angle = _angles(shape, self.concentration.to(float64), self._proposal_r.detach())
            angle = (angle + math.pi + self.loc.to(float64)) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # log I0(k) = log(exp(-k) I0(k)) + k, which does not overflow.
        log_normalizer = math.log(2 * math.pi) + special.i0e(k).log() + k
        return k * (value - self.loc).cos() - log_normalizer
