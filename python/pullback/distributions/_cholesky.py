"""Cholesky factors of positive definite matrices in batches: solving and lengths by them."""

from __future__ import annotations

import math
from typing import Any

from .. import eye, linalg

__all__ = ["half_log_det", "inverse_of", "mahalanobis", "precision_to_scale_tril", "solve_lower"]


def solve_lower(factor: Any, right: Any) -> Any:
    """``X`` with ``factor @ X = right``, for a lower triangular factor."""
    # (A system with a triangular matrix has no other elements, and so no gradient for them.)
    return linalg.solve(factor.tril(), right)


def _identity_like(matrix: Any) -> Any:
    return eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def inverse_of(factor: Any) -> Any:
    """The inverse of ``factor @ factor.mT``."""
    inverse = solve_lower(factor, _identity_like(factor))
    return inverse.mT @ inverse


def half_log_det(factor: Any) -> Any:
    """Half of the logarithm of the determinant of ``factor @ factor.mT``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Any) -> Any:
    """The Cholesky factor of the inverse of ``precision``.

    With J the matrix that reverses the order of rows, the factor of ``J P J`` reversed again is an
    upper triangular U with ``P = U U^T``, and the factor wanted is the inverse of ``U^T``.
    """
    reversed_factor = linalg.cholesky(precision.flip((-2, -1)))
    lower = reversed_factor.flip((-2, -1)).mT
    return solve_lower(lower, _identity_like(precision))


def mahalanobis(factor: Any, difference: Any) -> Any:
    """``x^T (L L^T)^-1 x`` for factors ``L`` and vectors ``x``, whose batches broadcast.

    Each factor is used once, for all the vectors that it is broadcast to.
    """
    size = difference.size(-1)
    batch = difference.shape[:-1]
    own = factor.shape[:-2]
    outer = len(batch) - len(own)
    # Each of the factor's dimensions is taken apart into (repeated, own), of which one is 1.
    split = list(batch[:outer])
    for repeated, kept in zip(batch[outer:], own, strict=True):
        split += [repeated // kept if kept else 0, kept]
    count = outer + 2 * len(own)
    repeated_dims = [*range(outer), *range(outer, count, 2)]
    own_dims = list(range(outer + 1, count, 2))
    # Vectors as columns (own.., size, repeated..), so that one solve serves all that share a
    # factor.
    columns = difference.reshape([*split, size]).permute([*own_dims, count, *repeated_dims])
    vectors = columns.shape[len(own) + 1 :]
    solved = solve_lower(factor, columns.reshape((*own, size, math.prod(vectors))))
    lengths = solved.pow(2).sum(-2).reshape(own + vectors)
    # Back from (own.., repeated..) to the order in which the dimensions were taken apart.
    order = [0] * count
    for position, dim in enumerate(own_dims + repeated_dims):
        order[dim] = position
    return lengths.permute(order).reshape(batch)
