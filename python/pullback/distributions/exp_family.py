"""Exponential families: distributions whose entropies follow from how they are normalised."""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with density ``exp(<t(x), theta> - F(theta) + k(x))``.

    ``theta`` are the natural parameters (``_natural_params``), ``t`` the sufficient statistics,
    ``F`` the log normaliser (``_log_normalizer``) and ``k`` the carrier measure, whose expected
    value is ``_mean_carrier_measure``. The expected value of ``t(x)`` is the gradient of ``F``,
    from which entropies and divergences follow by differentiation (F. Nielsen, R. Nock, "Entropies
    and cross-entropies of exponential families", 2010).
    """

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _normalizer_and_gradients(self) -> tuple[list[Any], Any, Any]:
        """Natural parameters without history, the log normaliser of these, and its gradients."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        return natural, normalizer, grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self) -> Any:
        natural, normalizer, gradients = self._normalizer_and_gradients()
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients, strict=True):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
