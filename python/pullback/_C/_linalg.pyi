# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def linalg_cholesky(input: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor:
    """The lower factor `L` of a Hermitian positive definite matrix, `A = L L^H`; with `upper`, `L^H`."""
def linalg_cholesky_ex(input: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_cholesky_ex:
    """As `linalg_cholesky`, with `info` (int32) that tells for each matrix 0 or the order of its first leading minor that is
    not positive definite; that matrix's factor is NaN. With `check_errors` such a matrix is an error."""
def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`: `out[0] = a[1] * b[2] - a[2] * b[1]`, and so on round. The other
    dimensions broadcast."""
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant. Its gradient at singular matrices comes from their singular values."""
def linalg_diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """The diagonals of matrices, as the last dimension: `diagonal` of the last two dimensions if nothing else is said."""
def linalg_eigh(input: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """Eigenvalues (ascending, real) and eigenvectors (as columns) of a Hermitian matrix, of which the triangle `UPLO` is
    read. Eigenvectors have a gradient only where eigenvalues are distinct."""
def linalg_eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues (ascending, real) of a Hermitian matrix, of which the triangle `UPLO` is read."""
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse matrix."""
def linalg_inv_ex(A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_inv_ex:
    """As `linalg_inv`, with `info` (int32) that tells for each matrix 0 or the number of its first pivot that is zero; the
    inverse is NaN there. With `check_errors` a singular matrix is an error."""
def linalg_qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """`A = Q R` with orthonormal columns in `Q` and `R` upper triangular; `mode` is "reduced", "complete" or "r" (no Q)."""
def linalg_slogdet(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_slogdet:
    """The determinant in two parts: `sign`, of magnitude 1, and the logarithm of its magnitude, which does not overflow; 0 and
    -inf for a singular matrix."""
def linalg_solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` (or of `X A = B` unless `left`), batches broadcast; `B` may be vectors."""
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_solve_ex:
    """As `linalg_solve`, with `info` (int32) that tells for each matrix 0 or the number of its first pivot that is zero; the
    solution is NaN there. With `check_errors` a singular matrix is an error."""
def linalg_svd(A: Tensor, full_matrices: _bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """The singular value decomposition `A = U diag(S) Vh`, singular values descending. The first min(m, n) singular vectors
    have a gradient where singular values are distinct; for complex matrices, of what does not depend on their phase."""
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of a matrix, descending."""
def linalg_vander(x: Tensor, *, N: _int | None = None) -> Tensor:
    """Vandermonde's matrices of vectors along the last dimension: powers 0 to `N` - 1 (`N` is their length if `None`) of each
    element in a row. Integers give int64."""
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Dot products along `dim`, with the conjugate of `x`: `sum(conj(x) * y)`. The other dimensions broadcast."""
def linalg_vector_norm(input: Tensor, ord: Number | _complex = 2, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over `dim` (all dimensions if `None`): `sum(|x|^ord)^(1/ord)`; infinite orders take
    the largest or smallest magnitude, order 0 counts what is not zero. Complex input gives a real result; at 0
    the gradient is 0."""
