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
@overload
def linalg_cond(input: Tensor, p: Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number with respect to inversion, `|A| |A^-1|`, in the norm of order `p`: ±1, ±2 or ±inf; `None` is 2. Orders 2 and -2,
    quotients of singular values, are for matrices of any shape. It is infinite for a singular matrix.

    # Errors
    `ValueError` for other orders; `RuntimeError` for what are no matrices, and but for 2 and -2 for those that are not square."""
@overload
def linalg_cond(input: Tensor, p: str, *, out: Tensor | None = None) -> Tensor: ...
def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`: `out[0] = a[1] * b[2] - a[2] * b[1]`, and so on round. The other
    dimensions broadcast."""
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant. Its gradient at singular matrices comes from their singular values."""
def linalg_diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """The diagonals of matrices, as the last dimension: `diagonal` of the last two dimensions if nothing else is said."""
def linalg_eig(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_eig:
    """Eigenvalues (*, n) and eigenvectors, the columns of (*, n, n), of (*, n, n): `A V = V diag(w)`. Both are complex. Vectors have
    length 1; their phase, here such that the largest element is real, is arbitrary, so that a loss must not depend on it. Vectors have a
    derivative where eigenvalues are distinct. Source: C. Boeddeker et al., "On the computation of complex-valued gradients" (2017), 4.1.

    # Errors
    `RuntimeError` for what is not square, whole numbers, infinities and NaN; `NotImplementedError` for half precision."""
def linalg_eigh(input: Tensor, UPLO: str = "L", *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_eigh:
    """Eigenvalues (ascending, real) and eigenvectors (as columns) of a Hermitian matrix, of which the triangle `UPLO` is
    read. Eigenvectors have a gradient only where eigenvalues are distinct."""
def linalg_eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a general matrix, complex, in no order.

    # Errors
    As `linalg.eig`."""
def linalg_eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues (ascending, real) of a Hermitian matrix, of which the triangle `UPLO` is read."""
def linalg_householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of `H1 H2 ... Hk` for the reflections below the diagonal of `input` (*, m, n), m >= n, and their factors `tau` (*, k), k <= n:
    (*, m, n) with orthonormal columns if they are of a QR decomposition.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and whole numbers."""
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse matrix."""
def linalg_inv_ex(A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_inv_ex:
    """As `linalg_inv`, with `info` (int32) that tells for each matrix 0 or the number of its first pivot that is zero; the
    inverse is NaN there. With `check_errors` a singular matrix is an error."""
def linalg_ldl_factor(input: Tensor, *, hermitian: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_ldl_factor:
    """As `linalg.ldl_factor_ex`; a block of zeros in D is an error."""
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_ldl_factor_ex:
    """`A = L D L^T` (with `hermitian` `L D L^H`) in LAPACK's compact form, by the pivoting of Bunch and Kaufman: `LD` holds the blocks of D, of order 1 and 2, and L
    below them; of `self` (*, n, n) the lower triangle is read. `pivots` (*, n), int32: positive for a block of order 1, twice the same negative number for one of
    order 2. `info` (*): 0, or the number from 1 of the first block that is zero, which is an error with `check_errors`.

    # Errors
    `RuntimeError` for what is not square; `NotImplementedError` for half precision and whole numbers."""
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B`, where `LD` and `pivots` are what `linalg.ldl_factor` gives for `A` with the same `hermitian`. Batches broadcast.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit, and pivots that no factorisation gives."""
def linalg_lstsq(input: Tensor, b: Tensor, rcond: _float | None = None, *, driver: str | None = None, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lstsq:
    """The solution (*, n, k) of the least squares problem `min |A X - B|` for `A` = `self` (*, m, n) and `B` (*, m, k), or vectors (*, m); that of least
    norm where there are many. `driver`: gels (QR, full rank only), gelsy (default), gelsd or gelss, for which singular values not above
    `rcond` times the largest count as zero. Beside it: the squared residuals (*, k), if m > n and all ranks are full (and the driver is
    not gelsy); the ranks, but for gels; singular values, for gelsd and gelss, which have no derivative, as in PyTorch.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit, and other drivers."""
def linalg_lu(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu:
    """`P` (*, m, m), `L` (*, m, k) with ones on its diagonal and `U` (*, k, n) of `A = P L U` for (*, m, n), k = min(m, n). `pivot = False` is
    refused on the CPU."""
def linalg_lu_factor(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu_factor:
    """The compact form of `A = P L U` and its pivots; a matrix with a zero on U's diagonal is an error."""
def linalg_lu_factor_ex(A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu_factor_ex:
    """The compact form of `A = P L U` for (*, m, n), its pivots (*, min(m, n)) and `info` (*), both int32: 0, or the number from 1 of the first
    element on U's diagonal that is zero, which is an error with `check_errors`. `pivot = False` is refused on the CPU.

    # Errors
    `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and whole numbers."""
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` (of `X A = B` unless `left`; of `A^H` in the place of `A` with `adjoint`), where `LU` and
    `pivots` are what `linalg.lu_factor` gives for `A`. Batches broadcast."""
def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `matmul`."""
def linalg_matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a matrix, `1 + A + A^2 / 2 + ...`, computed in double precision by scaling and squaring (N. J. Higham, 2005). What is not
    finite gives NaN.

    # Errors
    `RuntimeError` for what is not square; `NotImplementedError` for whole numbers."""
@overload
def linalg_matrix_norm(input: Tensor, ord: Number | _complex, dim: _size = (-2, -1), keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """A norm of the matrices that the two dimensions `dim` make: 1 and -1 the largest and the smallest sum of magnitudes of a column,
    inf and -inf of a row, 2 and -2 the largest and the smallest singular value. Of matrices without elements it is 0, the smallest of
    nothing is an error. Where several are largest the gradient is shared out.

    # Errors
    `RuntimeError` for other orders and for what are no two dimensions; `NotImplementedError` for whole numbers, and for half precision
    where singular values are needed."""
@overload
def linalg_matrix_norm(input: Tensor, ord: str = "fro", dim: _size = (-2, -1), keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def linalg_matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of a matrix by repeated squaring; of its inverse, if n is negative.

    # Errors
    `RuntimeError` for what is not square; as `linalg.inv` for negative n."""
@overload
def linalg_matrix_rank(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The number of singular values above `max(atol, rtol * largest)`, magnitudes of eigenvalues of one triangle if `hermitian`. By default
    `atol` is 0 and `rtol` the precision times the larger size, or 0 where `atol` is positive.

    # Errors
    `RuntimeError` for what are no matrices, whole numbers, complex tolerances; `NotImplementedError` for half precision."""
@overload
def linalg_matrix_rank(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(input: Tensor, tol: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(input: Tensor, tol: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def linalg_matrix_sqrth(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root, symmetric (Hermitian) and positive, of a matrix that is so, of which the lower triangle is read: `V diag(sqrt(w)) V^H` with its
    eigenvalues and vectors. Its derivative is the solution of `X dX + dX X = dA`, which needs no distinct eigenvalues. Negative eigenvalues
    give NaN.

    # Errors
    `RuntimeError` for what is not square; `NotImplementedError` for half precision and whole numbers."""
def linalg_multi_dot(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order that needs the fewest multiplications. The first and the last may be vectors.

    # Errors
    `RuntimeError` for fewer than two tensors, other numbers of dimensions, mixed dtypes and shapes that do not fit."""
@overload
def linalg_norm(input: Tensor, ord: Number | _complex | None = None, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """A norm of vectors (one dimension `dim`) or matrices (two): as `linalg.matrix_norm` for two dimensions and an order, else as
    `linalg.vector_norm`. Without `dim` the input, with one or two dimensions, is the vector or matrix; without an order as well, all
    elements are one vector and the order is 2.

    # Errors
    `RuntimeError` for other numbers of dimensions and orders that matrices do not have."""
@overload
def linalg_norm(input: Tensor, ord: str, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The inverse of Moore and Penrose (*, n, m) of (*, m, n), by singular values: those not above `max(atol, rtol * largest)` count as zero. With
    `hermitian`, by the eigenvalues of one triangle. By default `atol` is 0 and `rtol` the precision times the larger size, or 0 where
    `atol` is positive. Tolerances broadcast against the batch (*).

    # Errors
    `RuntimeError` for what are no matrices, whole numbers, complex tolerances, and with `hermitian` what is not square;
    `NotImplementedError` for half precision."""
@overload
def linalg_pinv(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def linalg_polar(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_polar:
    """The polar decomposition `A = U H` for (*, m, n) with m >= n: `U` (*, m, n) has orthonormal columns, `H` (*, n, n) is symmetric (Hermitian) and
    positive. With `A = W S V^H`, `U = W V^H` and `H = V S V^H`. Differentiable at full rank.

    # Errors
    `RuntimeError` for fewer rows than columns; `NotImplementedError` for half precision and whole numbers."""
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_qr:
    """`A = Q R` with orthonormal columns in `Q` and `R` upper triangular; `mode` is "reduced", "complete" or "r" (no Q)."""
def linalg_slogdet(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_slogdet:
    """The determinant in two parts: `sign`, of magnitude 1, and the logarithm of its magnitude, which does not overflow; 0 and
    -inf for a singular matrix."""
def linalg_solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` (or of `X A = B` unless `left`), batches broadcast; `B` may be vectors."""
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_solve_ex:
    """As `linalg_solve`, with `info` (int32) that tells for each matrix 0 or the number of its first pivot that is zero; the
    solution is NaN there. With `check_errors` a singular matrix is an error."""
def linalg_solve_triangular(input: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` (of `X A = B` unless `left`) for triangular `A`: `self`, of which one triangle is read, and
    with `unitriangular` not even its diagonal, which is taken to be ones. Batches broadcast. Zeros on the diagonal are no error: they give
    infinities and NaN. Derivatives as those of linear equations, within the triangle (M. B. Giles, "An extended collection of
    matrix derivative results", 2008, 2.3).

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and whole numbers."""
def linalg_svd(A: Tensor, full_matrices: _bool = True, *, driver: str | None = None, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_svd:
    """The singular value decomposition `A = U diag(S) Vh`, singular values descending. The first min(m, n) singular vectors
    have a gradient where singular values are distinct; for complex matrices, of what does not depend on their phase."""
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of a matrix, descending."""
def linalg_tensorinv(input: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a tensor with respect to `tensordot` over `ind` dimensions: `tensordot(A^-1, A, ind)` is the identity. The sizes before and behind
    `ind` have one product.

    # Errors
    `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no inverse."""
def linalg_tensorsolve(input: Tensor, other: Tensor, dims: _size | None = None, *, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `tensordot(A, X, X.ndim) = B` for `A` = `self` and `B` = `other`; the dimensions `dims` of `A` are moved to its end first.

    # Errors
    `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no solution."""
def linalg_vander(x: Tensor, *, N: _int | None = None) -> Tensor:
    """Vandermonde's matrices of vectors along the last dimension: powers 0 to `N` - 1 (`N` is their length if `None`) of each
    element in a row. Integers give int64."""
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Dot products along `dim`, with the conjugate of `x`: `sum(conj(x) * y)`. The other dimensions broadcast."""
def linalg_vector_norm(input: Tensor, ord: Number | _complex = 2, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over `dim` (all dimensions if `None`): `sum(|x|^ord)^(1/ord)`; infinite orders take
    the largest or smallest magnitude, order 0 counts what is not zero. Complex input gives a real result; at 0
    the gradient is 0."""
