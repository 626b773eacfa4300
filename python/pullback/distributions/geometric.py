"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .. import empty, finfo, no_grad, zeros_like
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._parameter import OneParameter
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(OneParameter):
    """The number of failures before the first success, ``P(k) = (1 - p)^k p`` for ``k = 0, 1 ..``.

    ``Tensor.geometric_`` counts the success as well.

    Args:
        probs: the probability of success ``p``, above 0, at most 1.
        logits: ``log(p / (1 - p))``, in place of ``probs``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: unless one of ``probs`` and ``logits`` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batched = OneParameter._batched

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._give(probs, logits), validate_args=validate_args)
        if not self._validate_args or probs is None:
            return
        value = self.probs
        is_valid = value > 0
        if not bool(is_valid.all()):
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n"
                f"{value.detach()[~is_valid]}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = empty(shape, dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_(finfo(u.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # There are no failures where none are possible: 0 log(0) is 0.
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return entropy / self.probs
