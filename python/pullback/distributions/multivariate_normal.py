"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, Tensor, broadcast_shapes, linalg
from . import constraints
from ._cholesky import half_log_det, inverse_of, mahalanobis, precision_to_scale_tril
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]

_LOG_2_PI = math.log(2 * math.pi)


def _times_vector(matrix: Any, vector: Any) -> Any:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def only_one(given: dict[str, Any]) -> tuple[str, Any]:
    """The one matrix that is given for a covariance, and its name; None for the others."""
    present = [(name, value) for name, value in given.items() if value is not None]
    if len(present) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return present[0]


def scale_tril_of(name: str, matrix: Any) -> Any:
    """The Cholesky factor of the covariance that a matrix of this name says."""
    if name == "scale_tril":
        return matrix
    return (
        linalg.cholesky(matrix) if name == "covariance_matrix" else precision_to_scale_tril(matrix)
    )


class Covariance(Distribution):
    """A distribution with a covariance matrix, kept by its Cholesky factor.

    The factor has the batch of the matrix that was given, which is fewer numbers than the
    distribution's batch may have.
    """

    _unbroadcasted_scale_tril: Any

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape[-1:] * 2

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return inverse_of(self._unbroadcasted_scale_tril).expand(self._matrix_shape())


class MultivariateNormal(Covariance):
    """The normal distribution of vectors of size ``n``: mean ``m`` and covariance ``C = L L^T``.

    ``f(x) = exp(-(x - m)^T C^-1 (x - m) / 2) / sqrt((2 pi)^n det C)``. It is computed by ``L``, so
    that giving ``scale_tril`` spares a factorisation.

    Args:
        loc: the mean, of shape ``(..., n)``.
        covariance_matrix: ``C``, positive definite.
        precision_matrix: ``C^-1``, in place of ``C``.
        scale_tril: ``L``, lower triangular with a positive diagonal, in place of ``C``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for a ``loc`` without dimensions, a matrix with fewer than two, and unless
            exactly one matrix is given.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = ("loc", "covariance_matrix", "scale_tril", "precision_matrix")
    _kept = ("_unbroadcasted_scale_tril",)
    loc: Tensor

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        name, matrix = only_one(matrices)
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(Size(batch_shape), self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        variance = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _times_vector(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * _LOG_2_PI + distance) - half_log_det(factor)

    def entropy(self) -> Any:
        half = half_log_det(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1.0 + _LOG_2_PI) + half).expand(self._batch_shape)
