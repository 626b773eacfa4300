"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, digamma, lgamma, where, xlogy
from ..nn.functional import one_hot
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]

_VF = _C._VariableFunctions


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, ``f(x) = Gamma(sum a) prod x_k^(a_k - 1) / prod Gamma(a_k)``.

    Its support is the simplex. The gradients of samples are implicit, see :class:`Gamma`.

    Args:
        concentration: the ``a_k``, positive, along the last dimension.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for a concentration without dimensions.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        # Where all concentrations are below 1, the density is infinite at the corners.
        excess = (self.concentration - 1).clamp(min=0.0)
        inner = excess / excess.sum(-1, True)
        corner = one_hot(inner.argmax(dim=-1), inner.shape[-1]).to(inner)
        return where((self.concentration < 1).all(dim=-1, keepdim=True), corner, inner)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _VF._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            xlogy(self.concentration - 1.0, value).sum(-1)
            + lgamma(self.concentration.sum(-1))
            - lgamma(self.concentration).sum(-1)
        )

    def entropy(self) -> Any:
        a, total = self.concentration, self.concentration.sum(-1)
        return (
            lgamma(a).sum(-1)
            - lgamma(total)
            - (a.size(-1) - total) * digamma(total)
            - ((a - 1.0) * digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return x.lgamma().sum(-1) - lgamma(x.sum(-1))
