"""Transforms of vectors and matrices: onto the simplex, triangular and definite matrices."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, eye, finfo, linalg, sigmoid
from ..nn.functional import logsigmoid, pad, softplus
from . import constraints
from ._transform import Plain, Transform
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


def clipped_sigmoid(x: Any) -> Any:
    """The logistic function, kept off 0 and 1."""
    kind = finfo(x.dtype)
    return sigmoid(x).clamp(min=kind.tiny, max=1.0 - kind.eps)


def _require_dims(shape: Any, count: int) -> None:
    if len(shape) < count:
        raise ValueError("Too few dimensions on input")


class CorrCholeskyTransform(Transform):
    """From vectors to the Cholesky factors of correlation matrices.

    The vector of ``n (n-1) / 2`` numbers is taken to (-1, 1) by tanh; each row of the strict lower
    triangle is then a stick of length 1 that is broken by the squares of the numbers ``z``:
    ``y_ij = z_ij sqrt(prod_(k<j) (1 - z_ik^2))`` (D. Lewandowski, D. Kurowicka, H. Joe, "Generating
    random correlation matrices based on vines and extended onion method", 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        z = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - z**2).sqrt().cumprod(-1)
        z = z + eye(z.shape[-1], dtype=z.dtype, device=z.device)
        return z * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        rest = pad((1 - (y * y).cumsum(dim=-1))[..., :-1], [1, 0], value=1)
        z = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (z.log1p() - z.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        # An element of column j > 0 is scaled by the root of what the ones before it have left; the
        # first column is not scaled.
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * rest.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        _require_dims(shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        _require_dims(shape, 2)
        size = shape[-1]
        if shape[-2] != size:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], size * (size - 1) // 2))


class SoftmaxTransform(Plain):
    """``y = exp(x) / sum(exp(x))``, from vectors to the simplex; the inverse gives ``log(y)``."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _require_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """From vectors to the simplex of one dimension more, by breaking a stick of length 1.

    The number ``x_k`` of ``n`` says which share of the rest is broken off,
    ``sigmoid(x_k - log(n - k))`` with ``k`` from 0: a vector of zeros gives equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x: Any, size: int) -> Any:
        """The logarithms of ``size .. 1``, in the dtype of ``x``."""
        return (size + 1 - x.new_ones(size).cumsum(-1)).log()

    def _call(self, x: Any) -> Any:
        share = clipped_sigmoid(x - self._offset(x, x.shape[-1]))
        rest = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        rest = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - rest.log() + self._offset(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x, x.shape[-1])
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _require_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        _require_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Plain):
    """From square matrices to lower triangular ones with positive diagonals.

    What is above the diagonal is left out, and the diagonal is exponentiated.
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Plain):
    """From square matrices to positive definite ones: :class:`LowerCholeskyTransform`, squared."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
