"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

from typing import Any

from .. import Size, Tensor, broadcast_tensors, diag_embed, eye, linalg
from . import constraints
from ._cholesky import half_log_det, mahalanobis, solve_lower
from .distribution import Distribution
from .multivariate_normal import _LOG_2_PI, _times_vector
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(matrix: Any) -> Any:
    return matrix + eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class LowRankCovariance:
    """The matrix ``W W^T + D`` with a diagonal D, by the Cholesky factor of ``1 + W^T D^-1 W``.

    That one has the size of the rank. Sources: the matrix determinant lemma, and Woodbury's
    identity ``(W W^T + D)^-1 = D^-1 - D^-1 W (1 + W^T D^-1 W)^-1 W^T D^-1``.

    Args:
        factor: ``W``, of shape ``(..., n, rank)``.
        diag: the diagonal of D, of shape ``(..., n)``.
    """

    def __init__(self, factor: Any, diag: Any) -> None:
        self.factor = factor
        self.diag = diag
        self.scaled = factor.mT / diag.unsqueeze(-2)
        self.capacitance_tril = linalg.cholesky(_plus_identity(self.scaled @ factor))

    def log_det(self) -> Any:
        """The logarithm of the determinant."""
        return 2 * half_log_det(self.capacitance_tril) + self.diag.log().sum(-1)

    def mahalanobis(self, x: Any) -> Any:
        """``x^T (W W^T + D)^-1 x`` of vectors."""
        of_rank = mahalanobis(self.capacitance_tril, _times_vector(self.scaled, x))
        return (x.pow(2) / self.diag).sum(-1) - of_rank

    def whitened(self) -> Any:
        """``A`` with ``(W W^T + D)^-1 = D^-1 - A^T A``."""
        return solve_lower(self.capacitance_tril, self.scaled)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance ``C = W W^T + diag(d)``.

    The density is that of :class:`MultivariateNormal`; for ``W`` of few columns it costs much less.

    Args:
        loc: the mean, of shape ``(..., n)``.
        cov_factor: ``W``, of shape ``(..., n, rank)``.
        cov_diag: ``d``, positive, of shape ``(..., n)``.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = ("loc", "cov_factor", "cov_diag")
    _kept = ("_covariance",)
    loc: Tensor

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        _check_shapes(loc, cov_factor, cov_diag)
        try:
            loc_, self.cov_factor, cov_diag_ = broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = loc_[..., 0], cov_diag_[..., 0]
        self._covariance = LowRankCovariance(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], loc.shape[-1:], validate_args=validate_args)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape * 2

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        variance = self._covariance.factor.pow(2).sum(-1) + self._covariance.diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        # The Cholesky factor of 1 + V V^T with V = D^-1/2 W, times D^1/2.
        root = self._covariance.diag.sqrt().unsqueeze(-1)
        scaled = self._covariance.factor / root
        factor = root * linalg.cholesky(_plus_identity(scaled @ scaled.mT))
        return factor.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._covariance.factor
        matrix = factor @ factor.mT + diag_embed(self._covariance.diag)
        return matrix.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        a = self._covariance.whitened()
        matrix = diag_embed(self._covariance.diag.reciprocal()) - a.mT @ a
        return matrix.expand(self._matrix_shape())

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        of_factor = shape[:-1] + self.cov_factor.shape[-1:]
        eps_factor = _standard_normal(of_factor, self.loc.dtype, self.loc.device)
        eps_diag = _standard_normal(shape, self.loc.dtype, self.loc.device)
        part = _times_vector(self._covariance.factor, eps_factor)
        return self.loc + part + self._covariance.diag.sqrt() * eps_diag

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = self._covariance.mahalanobis(value - self.loc)
        log_det = self._covariance.log_det()
        return -0.5 * (self._event_shape[0] * _LOG_2_PI + log_det + distance)

    def entropy(self) -> Any:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + _LOG_2_PI) + self._covariance.log_det())
        return entropy.expand(self._batch_shape)


def _check_shapes(loc: Any, cov_factor: Any, cov_diag: Any) -> None:
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event_shape = loc.shape[-1:]
    if cov_factor.dim() < 2:
        raise ValueError(
            "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
        )
    if cov_factor.shape[-2:-1] != event_shape:
        raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
    if cov_diag.shape[-1:] != event_shape:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
