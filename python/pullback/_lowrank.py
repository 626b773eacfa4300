"""Decompositions of low rank by random projections, and ``lu`` and ``chain_matmul`` as functions.

The algorithms are those of N. Halko, P.-G. Martinsson, J. A. Tropp, "Finding structure with
randomness" (SIAM Review 53, 2011): 4.4 with orthonormalisation in each step, and 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _C
from ._overridable import make_overridable as _make_overridable
from ._tensor import Tensor

__all__ = ["chain_matmul", "lu", "pca_lowrank", "svd_lowrank"]


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the order that needs the fewest multiplications.

    ``torch.linalg.multi_dot`` takes its place.

    Args:
        matrices: one or more; also one list of them.
        out: what to write the product into.

    Raises:
        RuntimeError: for none at all, tensors that are no matrices, and shapes that do not fit.
    """
    chain: Any = matrices
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        chain = matrices[0]
    if out is None:
        return _C._VariableFunctions.chain_matmul(chain)
    return _C._VariableFunctions.chain_matmul(chain, out=out)


def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The LU factorisation in compact form and its pivots, as ``torch.linalg.lu_factor``.

    Args:
        A: matrices (..., m, n).
        pivot: whether rows are swapped; False is refused on the CPU.
        get_infos: whether to tell of zero pivots by a third tensor instead of an error.
        out: tensors to write the results into.

    Raises:
        RuntimeError: for a zero pivot without ``get_infos``, and what are no matrices.
        TypeError: for an ``out`` that is no tuple or list of as many tensors.
    """
    found = _C._VariableFunctions._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    results = tuple(found) if get_infos else tuple(found)[:2]
    if out is None:
        return results
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for to, result in zip(out, results, strict=True):
        to.resize_as_(result).copy_(result)
    return tuple(out)


def _orthonormal(a: Tensor) -> Tensor:
    from . import linalg

    basis: Tensor = linalg.qr(a).Q
    return basis


def _range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns (..., m, q) that span about what ``A - M`` does."""

    def times(x: Tensor) -> Tensor:
        return A @ x if M is None else A @ x - M @ x

    def times_adjoint(x: Tensor) -> Tensor:
        adjoint = A.t().conj() if A.is_sparse else A.mH
        return adjoint @ x if M is None else adjoint @ x - M.mH @ x

    dtype = A.dtype
    start = _C._VariableFunctions.randn((A.shape[-1], q), dtype=dtype, device=A.device)
    basis = _orthonormal(times(start))
    for _ in range(niter):
        basis = _orthonormal(times_adjoint(basis))
        basis = _orthonormal(times(basis))
    return basis


def _check(A: Tensor, q: int, niter: int) -> None:
    m, n = A.shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")


def _svd_lowrank(A: Tensor, q: int, niter: int, M: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    from . import linalg

    m, n = A.shape[-2:]
    is_wide = m < n
    if is_wide:
        A = A.t().conj() if A.is_sparse else A.mH
        M = None if M is None else M.mH
    basis = _range(A, q, niter, M)
    # (A sparse matrix stands on the left of a product.)
    adjoint = A.t().conj() if A.is_sparse else A.mH
    small = (adjoint @ basis).mH
    if M is not None:
        small = small - basis.mH @ M
    U, S, Vh = linalg.svd(small, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


def svd_lowrank(
    A: Tensor,
    q: int | None = 6,
    niter: int | None = 2,
    M: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """About the singular value decomposition ``A - M = U diag(S) V^H`` of a matrix of low rank.

    Args:
        A: matrices (..., m, n), or one sparse matrix.
        q: how many values and vectors, somewhat more than the rank; 6 if ``None``.
        niter: how often the projection is improved; 2 if ``None``.
        M: what is taken away from ``A``, broadcast to its shape.

    Returns:
        ``(U, S, V)``.

    Raises:
        ValueError: for a ``q`` or ``niter`` out of range.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = M.broadcast_to(A.shape)
    return _svd_lowrank(A, q, niter, M)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """About the principal components of the rows of ``A``: ``A - mean = U diag(S) V^H``.

    Args:
        A: matrices (..., m, n), or one sparse matrix; m samples of n features.
        q: how many components; at most 6, or the smaller size, if ``None``.
        center: whether the mean of the rows is taken away.
        niter: how often the projection is improved.

    Returns:
        ``(U, S, V)``: the columns of ``V`` are the principal directions.

    Raises:
        ValueError: for a ``q`` or ``niter`` out of range.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    _check(A, q, niter)
    if not center:
        return _svd_lowrank(A, q, niter, None)
    if A.is_sparse:
        if A.dim() != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        ones = _C._VariableFunctions.ones((m, 1), dtype=A.dtype, device=A.device)
        mean = (A.t() @ ones).mT / m
        return _svd_lowrank(A, q, niter, mean.expand(m, n))
    return _svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter, None)


_make_overridable(globals(), __all__)
