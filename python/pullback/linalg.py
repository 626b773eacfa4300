"""Linear algebra: the functions of the registry's ``linalg_*`` ops under their short names."""

from __future__ import annotations

from ._C import _linalg
from ._C import _LinAlgError as LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "qr",
    "solve",
    "svd",
    "vector_norm",
]

cholesky = _linalg.linalg_cholesky
det = _linalg.linalg_det
eigh = _linalg.linalg_eigh
inv = _linalg.linalg_inv
qr = _linalg.linalg_qr
solve = _linalg.linalg_solve
svd = _linalg.linalg_svd
vector_norm = _linalg.linalg_vector_norm
