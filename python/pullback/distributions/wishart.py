"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import (
    Size,
    arange,
    broadcast_shapes,
    digamma,
    finfo,
    linalg,
    mvlgamma,
    randn,
    tensor,
    tril_indices,
)
from . import constraints
from ._cholesky import half_log_det, solve_lower
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import Covariance, only_one, scale_tril_of

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


class Wishart(Covariance, ExponentialFamily):
    """The distribution of ``sum_i x_i x_i^T`` for ``df`` normal vectors of covariance ``S``.

    ``f(X) = det(X)^((df-p-1)/2) exp(-tr(S^-1 X) / 2) / (2^(df p/2) det(S)^(df/2) Gamma_p(df/2))``,
    for positive definite matrices X of size ``p``.

    Samples are made by Bartlett's decomposition. One that is singular by rounding is drawn again,
    up to ``max_try_correction`` times; singular samples have a log probability of ``-inf``.

    Args:
        df: the degrees of freedom, above ``p - 1``; below ``p``, samples are often singular.
        covariance_matrix: ``S``, positive definite.
        precision_matrix: ``S^-1``, in place of ``S``.
        scale_tril: the Cholesky factor of ``S``, in its place.
        validate_args: see :class:`Distribution`.

    Raises:
        AssertionError: unless exactly one matrix is given.
        ValueError: for a matrix with fewer than two dimensions, or too small a ``df``.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("df", "covariance_matrix", "scale_tril", "precision_matrix", "_dist_chi2")
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        try:
            name, matrix = only_one(matrices)
        except ValueError as error:
            raise AssertionError(str(error)) from None
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, (int, float)):
            batch_shape = matrix.shape[:-2]
            self.df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = Size(broadcast_shapes(matrix.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        size = matrix.shape[-1]
        self._check_df(df, size)
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)
        degrees = self.df.unsqueeze(-1) - self._steps(self.df)
        self._dist_chi2 = Chi2(degrees.expand((*batch_shape, -1)))

    def _check_df(self, df: Any, size: int) -> None:
        if bool(self.df.le(size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        if bool(self.df.lt(size).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=3,
            )

    def _steps(self, like: Any) -> Any:
        """``0 .. p - 1`` in the dtype of a tensor."""
        return arange(self._event_shape[-1], dtype=like.dtype, device=like.device)

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        """``L A A^T L^T``, with A lower triangular: a diagonal of chi numbers above normal ones."""
        size = self._event_shape[-1]
        chi = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = chi.clamp(min=finfo(chi.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = tril_indices(size, size, offset=-1)
        below = Size(sample_shape) + self._batch_shape + (size * (size - 1) // 2,)
        noise[..., i, j] = randn(below, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _is_singular(self, sample: Any) -> Any:
        """The draws with a singular matrix anywhere in the batch."""
        is_singular = ~self.support.check(sample)
        return is_singular.flatten(1).any(-1) if self._batch_shape else is_singular

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        sample_shape = Size(sample_shape)
        # PyTorch replaces every sample once, singular or not; the stream of a seed goes with that.
        self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling(Size((sample_shape.numel(),)))
        is_singular = self._is_singular(sample)
        if bool(is_singular.any()):
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                count = int(is_singular.sum())
                sample = sample.clone()
                sample[is_singular] = self._bartlett_sampling(Size((count,)))
                is_singular = self._is_singular(sample)
                if not bool(is_singular.any()):
                    break
        return sample.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        df, size, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        # tr(S^-1 X) is the trace of L^-1 X L^-T.
        whitened = solve_lower(factor, solve_lower(factor, value).mT)
        return (
            -df * (size * _LOG_2 / 2 + half_log_det(factor))
            - mvlgamma(df / 2, p=size)
            + (df - size - 1) / 2 * linalg.slogdet(value).logabsdet
            - whitened.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Any:
        df, size = self.df, self._event_shape[-1]
        of_log_det = digamma((df / 2).unsqueeze(-1) - self._steps(df) / 2).sum(-1)
        return (
            (size + 1) * (size * _LOG_2 / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + mvlgamma(df / 2, p=size)
            - (df - size - 1) / 2 * of_log_det
            + df * size / 2
        )

    @property
    def _natural_params(self) -> Any:
        return (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        size = self._event_shape[-1]
        half_df = y + (size + 1) / 2
        log_det = linalg.slogdet(-2 * x).logabsdet
        return half_df * (size * _LOG_2 - log_det) + mvlgamma(half_df, p=size)
