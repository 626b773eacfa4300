"""Products that may leave a matrix out, and functions of linear algebra that PyTorch has removed.

Each of those says what to call instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ._tensor import Tensor

__all__ = [
    "bform",
    "cholesky",
    "eig",
    "lstsq",
    "matmul",
    "matrix_rank",
    "qform",
    "qr",
    "solve",
    "symeig",
]


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """``A @ B``, sparse or not; ``B`` if ``A`` is None, which stands for the identity."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """``X^T A Y`` over the last two dimensions."""
    return X.mT @ matmul(A, Y)


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """``S^T A S`` over the last two dimensions."""
    return bform(S, A, S)


def _removed(name: str, advice: str) -> NoReturn:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed. torch.{name}: {advice}"
    )


def eig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: ``torch.linalg.eig`` and ``eigvals`` give complex tensors."""
    _removed("eig", "use torch.linalg.eig, or torch.linalg.eigvals, which give complex tensors")


def symeig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: use ``torch.linalg.eigh`` or ``eigvalsh``, which read the lower triangle."""
    _removed(
        "symeig",
        "use torch.linalg.eigh, or torch.linalg.eigvalsh; they read the lower triangle, "
        "UPLO='U' the upper one that this function read",
    )


def lstsq(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: ``torch.linalg.lstsq`` takes the matrix first."""
    _removed(
        "lstsq",
        "use torch.linalg.lstsq(A, B).solution, which takes the matrix first; "
        "residuals are a field of their own there",
    )


def matrix_rank(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: use ``torch.linalg.matrix_rank``, whose ``hermitian`` was ``symmetric``."""
    _removed("matrix_rank", "use torch.linalg.matrix_rank, where 'symmetric' is called 'hermitian'")


def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: ``torch.linalg.solve`` takes the matrix first and gives no factors."""
    _removed(
        "solve",
        "use torch.linalg.solve(A, B), which takes the matrix first; "
        "torch.linalg.lu_factor gives the factors",
    )


def qr(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: use ``torch.linalg.qr`` with ``mode`` instead of ``some``."""
    _removed(
        "qr",
        "`torch.qr` is deprecated in favor of `torch.linalg.qr`; "
        "some=True is mode='reduced', some=False mode='complete'",
    )


def cholesky(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed: use ``torch.linalg.cholesky``."""
    _removed(
        "cholesky",
        "`torch.cholesky` is deprecated in favor of `torch.linalg.cholesky`; "
        "upper=True is torch.linalg.cholesky(A).mH",
    )
