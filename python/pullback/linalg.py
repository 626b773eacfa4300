"""Linear algebra: the functions of the registry's ``linalg_*`` ops under their short names."""

from __future__ import annotations

from ._C import _linalg
from ._C import _LinAlgError as LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "svd",
    "svdvals",
    "vander",
    "vecdot",
    "vector_norm",
]

cholesky = _linalg.linalg_cholesky
cholesky_ex = _linalg.linalg_cholesky_ex
cross = _linalg.linalg_cross
det = _linalg.linalg_det
diagonal = _linalg.linalg_diagonal
eigh = _linalg.linalg_eigh
eigvalsh = _linalg.linalg_eigvalsh
inv = _linalg.linalg_inv
inv_ex = _linalg.linalg_inv_ex
qr = _linalg.linalg_qr
slogdet = _linalg.linalg_slogdet
solve = _linalg.linalg_solve
solve_ex = _linalg.linalg_solve_ex
svd = _linalg.linalg_svd
svdvals = _linalg.linalg_svdvals
vander = _linalg.linalg_vander
vecdot = _linalg.linalg_vecdot
vector_norm = _linalg.linalg_vector_norm
