"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import expm1, log1p, no_grad, ones_like, rand, where
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._parameter import OneParameter
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(OneParameter, ExponentialFamily):
    """The continuous Bernoulli distribution, ``f(x) = C p^x (1 - p)^(1 - x)`` for ``0 <= x <= 1``.

    ``C = 2 atanh(1 - 2p) / (1 - 2p)``, and 2 at ``p = 1/2``. Near that, where both parts of a ratio
    vanish, Taylor's series stand for the formulas (G. Loaiza-Ganem, J. P. Cunningham, "The
    continuous Bernoulli: fixing a pervasive error in variational autoencoders", 2019).

    Args:
        probs: the parameter ``p``, from 0 to 1; it is not the mean.
        logits: ``log(p / (1 - p))``, in place of ``probs``.
        lims: between which numbers ``p`` counts as near 1/2.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = OneParameter._batched
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = self._give(probs, logits)
        if probs is not None:
            # Before they are moved off 0 and 1, which hides what is out of range.
            if validate_args and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self._param = clamp_probs(self._param)
            setattr(self, "probs", self._param)  # noqa: B010 (a lazy property is not assigned to)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        """The parameter ``p``."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_far(self) -> Any:
        """The elements where ``p`` is not near 1/2."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _far_probs(self) -> Any:
        """``p``, with another number for those near 1/2, for which formulas are not to be used."""
        return where(self._is_far(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Any:
        """``log C``."""
        p = self._far_probs()
        # log|1 - 2p|, exact on both sides. (The side that is not meant gets a harmless number.)
        is_low = p <= 0.5
        below, above = where(is_low, p, 0.0), where(is_low, 1.0, p)
        gap = where(is_low, log1p(-2.0 * below), (2.0 * above - 1.0).log())
        far = (log1p(-p) - p.log()).abs().log() - gap
        x = (self.probs - 0.5).pow(2)
        return where(self._is_far(), far, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        p = self._far_probs()
        far = p / (2.0 * p - 1.0) + 1.0 / (log1p(-p) - p.log())
        x = self.probs - 0.5
        return where(self._is_far(), far, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Any:
        p = self._far_probs()
        far = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + (log1p(-p) - p.log()).pow(-2)
        x = (self.probs - 0.5).pow(2)
        return where(self._is_far(), far, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - cross

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        p = self._far_probs()
        far = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._is_far(), far, value)
        return where(value <= 0.0, 0.0, where(value >= 1.0, ones_like(inside), inside))

    def icdf(self, value: Any) -> Any:
        p = self._far_probs()
        far = log1p(-p + value * (2.0 * p - 1.0)) - log1p(-p)
        return where(self._is_far(), far / (p.log() - log1p(-p)), value)

    def entropy(self) -> Any:
        of_0, of_1 = log1p(-self.probs), self.probs.log()
        return self.mean * (of_0 - of_1) - self._cont_bern_log_norm() - of_0

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        low, high = (limit - 0.5 for limit in self._lims)
        is_far = (x <= low) | (x > high)
        safe = where(is_far, x, low)
        far = expm1(safe).abs().log() - safe.abs().log()
        return where(is_far, far, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
