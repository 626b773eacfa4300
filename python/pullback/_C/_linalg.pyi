# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def linalg_cholesky(input: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor of Hermitian positive definite matrices (*, n, n): the lower triangular `L` with `A = L L^H`, or
    with `upper` the upper triangular `L^H`. Only the corresponding triangle of `A` is read.

    # Errors
    `LinAlgError` for a matrix that is not positive definite; `RuntimeError` for matrices that are not square;
    `NotImplementedError` for half precision and integer dtypes."""
def linalg_cholesky_ex(input: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_cholesky_ex:
    """The Cholesky factor of Hermitian positive definite matrices (*, n, n) together with error codes `info` (*), int32,
    in place of an error: 0, or the order of the first leading minor that is not positive definite, where the factor is
    NaN. `L` is what `torch.linalg.cholesky` gives. With `check_errors` a code that is not 0 raises `LinAlgError`.
    Source of the gradient: I. Murray, "Differentiation of the Cholesky decomposition" (2016)."""
@overload
def linalg_cond(input: Tensor, p: Number | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number `|A| |A^-1|` of matrices in the norm of order `p`: 1, -1, 2, -2, inf or -inf; `None` is 2.
    Orders 2 and -2 are quotients of singular values and exist for matrices of any shape. The condition number of a
    singular matrix is infinite.

    # Errors
    `ValueError` for other orders; `RuntimeError` for fewer than two dimensions and, but for orders 2 and -2, for
    matrices that are not square."""
@overload
def linalg_cond(input: Tensor, p: str, *, out: Tensor | None = None) -> Tensor: ...
def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`: `out[0] = a[1] * b[2] - a[2] * b[1]`, and cyclically for the
    other components. The other dimensions broadcast."""
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant (*) of square matrices (*, n, n); that of a matrix of order 0 is 1. The gradient is `det(A)^* A^-H`
    times that of the result, and at singular matrices the adjugate, which is computed from the singular values.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def linalg_diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """The diagonals of matrices, as the last dimension: `diagonal` of the last two dimensions if nothing else is said."""
def linalg_eig(input: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_eig:
    """The eigenvalue decomposition `A V = V diag(w)` of general matrices (*, n, n): eigenvalues (*, n) in no particular
    order, and eigenvectors, the columns of (*, n, n). Both are complex, also those of real matrices.

    Eigenvectors have length 1; their phase is arbitrary (here the largest element is real), so that a loss must not
    depend on it. They have a derivative where eigenvalues are distinct. Source: C. Boeddeker et al., "On the
    computation of complex-valued gradients" (2017), 4.1.

    # Errors
    `RuntimeError` for matrices that are not square, integer dtypes, infinities and NaN; `NotImplementedError` for half
    precision."""
def linalg_eigh(input: Tensor, UPLO: str = "L", *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_eigh:
    """The eigenvalue decomposition `A = V diag(w) V^H` of Hermitian (or real symmetric) matrices (*, n, n): eigenvalues
    (*, n), real and ascending, and orthonormal eigenvectors, the columns of (*, n, n).

    Only the lower (`UPLO` "L") or upper ("U") triangle is read. Eigenvectors have a gradient where eigenvalues are
    distinct; those of complex matrices are determined up to a phase, on which a loss must not depend.

    # Errors
    `RuntimeError` for matrices that are not square and for another `UPLO`; `NotImplementedError` for half precision and
    integer dtypes. The backward pass raises `RuntimeError` where the loss depends on a free phase or on eigenvectors of
    equal eigenvalues."""
def linalg_eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues (*, n) of general matrices (*, n, n), complex and in no particular order. Their derivative needs the
    eigenvectors, which are computed only if it is needed.

    # Errors
    The same as those of `torch.linalg.eig`."""
def linalg_eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues (*, n) of Hermitian (or real symmetric) matrices (*, n, n), real and ascending. Only the lower
    (`UPLO` "L") or upper ("U") triangle is read. The gradient needs the eigenvectors, which are computed only if it is
    needed.

    # Errors
    The same as those of `torch.linalg.eigh`."""
def linalg_householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product `H1 H2 ... Hk` of Householder reflections, whose vectors are below the diagonal
    of `input` (*, m, n), m >= n, and whose factors are `tau` (*, k), k <= n. The columns of the result (*, m, n) are
    orthonormal if the reflections are those of a QR decomposition.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices (*, n, n).

    # Errors
    `LinAlgError` for a singular matrix; `RuntimeError` for matrices that are not square; `NotImplementedError` for half
    precision and integer dtypes."""
def linalg_inv_ex(A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_inv_ex:
    """The inverse of square matrices (*, n, n) together with error codes `info` (*), int32, in place of an error: 0, or
    the index, from 1, of the first pivot that is zero, where the inverse is NaN. With `check_errors` a singular matrix
    raises `LinAlgError`. Source of the gradient: M. B. Giles, "An extended collection of matrix derivative results"
    (2008)."""
def linalg_ldl_factor(input: Tensor, *, hermitian: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_ldl_factor:
    """The factorisation `A = L D L^T` (with `hermitian` `A = L D L^H`) of symmetric or Hermitian matrices in LAPACK's
    compact form, with pivots, as `torch.linalg.ldl_factor_ex` describes them.

    # Errors
    Besides those of `torch.linalg.ldl_factor_ex`, `LinAlgError` where a diagonal block of D is zero."""
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_ldl_factor_ex:
    """The factorisation `A = L D L^T` (with `hermitian` `A = L D L^H`) of symmetric or Hermitian matrices (*, n, n) in
    LAPACK's compact form, together with error codes. Only the lower triangle is read.

    Pivots are chosen by the method of Bunch and Kaufman. `LD` holds the diagonal blocks of D, of order 1 and 2, and L
    below them. `pivots` (*, n), int32, is positive for a block of order 1, and holds the same negative number twice for
    one of order 2. `info` (*), int32, is 0 or the index, from 1, of the first diagonal block that is zero, which raises
    `LinAlgError` with `check_errors`.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` for right-hand sides `B` (*, n, k), where `LD` and `pivots` are what
    `torch.linalg.ldl_factor` gives for `A` with the same `hermitian`. Batches broadcast.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit, and for pivots that no factorisation gives."""
def linalg_lstsq(input: Tensor, b: Tensor, rcond: _float | None = None, *, driver: str | None = None, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lstsq:
    """The solution (*, n, k) of the least squares problem `min |A X - B|` for `A` = `self` (*, m, n) and `B` = `b` (*, m,
    k), or vectors (*, m); where there are several solutions, that of least norm.

    `driver` is "gels" (QR decomposition, for full rank only), "gelsy" (the default), "gelsd" or "gelss"; all but gels
    take singular values not above `rcond` times the largest for zero. The other results are: the squared residuals (*,
    k), if m > n, all ranks are full and the driver is not gelsy, else empty; the ranks, except for gels; and, for gelsd
    and gelss, the singular values, which as in PyTorch have no derivative.

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit, and for other drivers."""
def linalg_lu(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu:
    """The LU decomposition `A = P L U` of matrices (*, m, n) with partial pivoting: a permutation `P` (*, m, m), `L` (*,
    m, k) lower triangular with ones on its diagonal, and `U` (*, k, n) upper triangular, with k = min(m, n).
    `pivot=False` is refused on the CPU.

    # Errors
    `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes."""
def linalg_lu_factor(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu_factor:
    """The LU factorisation `A = P L U` of matrices (*, m, n) in LAPACK's compact form, and its pivots, as
    `torch.linalg.lu_factor_ex` describes them.

    # Errors
    Besides those of `torch.linalg.lu_factor_ex`, `LinAlgError` where U has a zero on its diagonal."""
def linalg_lu_factor_ex(A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_lu_factor_ex:
    """The LU factorisation `A = P L U` of matrices (*, m, n) with partial pivoting in LAPACK's compact form, together with
    error codes.

    `LU` (*, m, n) holds U in its upper triangle and L, without its unit diagonal, below. `pivots` (*, min(m, n)),
    int32, has for each step the row, from 1, that was swapped with it. `info` (*), int32, is 0 or the index, from 1, of
    the first zero on U's diagonal, which raises `LinAlgError` with `check_errors`. `pivot=False` is refused on the CPU.

    # Errors
    `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes."""
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` where `LU` and `pivots` are what `torch.linalg.lu_factor` gives for `A` (*, n, n); of
    `X A = B` unless `left`. With `adjoint`, `A^H` takes the place of `A`. Batches broadcast."""
def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product of two tensors, which is what `torch.matmul` computes: vectors give a dot product, a matrix and a
    vector a vector, matrices a matrix; further leading dimensions are batches, which broadcast."""
def linalg_matrix_exp(input: Tensor) -> Tensor:
    """The matrix exponential `I + A + A^2 / 2! + A^3 / 3! + ...` of matrices (*, n, n), computed in double precision by
    scaling and squaring (N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
    Matrices with infinities or NaN give NaN.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for integer dtypes."""
@overload
def linalg_matrix_norm(input: Tensor, ord: Number | _complex, dim: _size = (-2, -1), keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `ord` of the matrices in the two dimensions `dim`.

    Orders 1 and -1 are the largest and the smallest column sum of absolute values, inf and -inf the largest and the
    smallest row sum, 2 and -2 the largest and the smallest singular value. The norm of a matrix without elements is 0,
    but its smallest sum or singular value is an error. Where several are the largest, the gradient is distributed
    evenly among them.

    # Errors
    `RuntimeError` for other orders and for a `dim` that is not two dimensions; `NotImplementedError` for integer
    dtypes, and for half precision where singular values are needed."""
@overload
def linalg_matrix_norm(input: Tensor, ord: str = "fro", dim: _size = (-2, -1), keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def linalg_matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of matrices (*, m, m), by repeated squaring. For `n` = 0 it is the identity, for negative `n` a
    power of the inverse.

    # Errors
    `RuntimeError` for matrices that are not square; for negative `n` also `LinAlgError` where there is no inverse."""
@overload
def linalg_matrix_rank(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The rank of matrices (*, m, n): the number (*), int64, of singular values above `max(atol, rtol * largest)`, or of
    absolute values of eigenvalues if the matrices are `hermitian`, of which the lower triangle is read.

    By default `atol` is 0 and `rtol` is the machine epsilon of the dtype times max(m, n), or 0 where `atol` is
    positive. Tolerances broadcast against the batch. The rank of a matrix without elements is 0.

    # Errors
    `RuntimeError` for fewer than two dimensions, integer dtypes and complex tolerances; `NotImplementedError` for half
    precision."""
@overload
def linalg_matrix_rank(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(input: Tensor, tol: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(input: Tensor, tol: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def linalg_matrix_sqrth(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The positive semidefinite square root of Hermitian positive semidefinite matrices (*, n, n), of which the lower
    triangle is read: `V diag(sqrt(w)) V^H` with the eigenvalues `w` and eigenvectors `V`.

    Its derivative is the solution `dX` of `X dX + dX X = dA`, which does not need distinct eigenvalues. Negative
    eigenvalues give NaN.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def linalg_multi_dot(tensors: tuple[Tensor, ...] | list[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order that needs the fewest multiplications. The first and the last may be vectors.

    # Errors
    `RuntimeError` for fewer than two tensors, other numbers of dimensions, mixed dtypes and shapes that do not fit."""
@overload
def linalg_norm(input: Tensor, ord: Number | _complex | None = None, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """A norm of vectors (if `dim` is one dimension) or matrices (if it is two) of order `ord`.

    With two dimensions and an order it is `torch.linalg.matrix_norm`, else `torch.linalg.vector_norm`. Without `dim`
    the whole input, of one or two dimensions, is the vector or matrix; without `ord` as well, all elements together are
    one vector and the order is 2.

    # Errors
    `RuntimeError` for another number of dimensions, and for orders that matrix norms do not have."""
@overload
def linalg_norm(input: Tensor, ord: str, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n), by singular values, of which those not above
    `max(atol, rtol * largest)` count as zero; with `hermitian`, by the eigenvalues of the lower triangle.

    By default `atol` is 0 and `rtol` is the machine epsilon of the dtype times max(m, n), or 0 where `atol` is
    positive. Tolerances broadcast against the batch (*). The derivative exists where the rank does not change nearby.
    Source: G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate" (1973).

    # Errors
    `RuntimeError` for fewer than two dimensions, integer dtypes, complex tolerances, and with `hermitian` for matrices
    that are not square; `NotImplementedError` for half precision."""
@overload
def linalg_pinv(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_pinv(input: Tensor, rcond: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def linalg_polar(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_polar:
    """The polar decomposition `A = U H` of matrices (*, m, n) with m >= n: `U` (*, m, n) has orthonormal columns, `H` (*,
    n, n) is Hermitian positive semidefinite. With the singular value decomposition `A = W S V^H`, `U = W V^H` and
    `H = V S V^H`. It is differentiable where `A` has full rank.

    # Errors
    `RuntimeError` for fewer rows than columns; `NotImplementedError` for half precision and integer dtypes."""
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_qr:
    """The QR decomposition `A = Q R` of matrices (*, m, n): `Q` has orthonormal columns, `R` is upper triangular.

    With `mode` "reduced", `Q` is (*, m, k) and `R` (*, k, n) for k = min(m, n); with "complete" they are (*, m, m) and
    (*, m, n); with "r", `Q` is empty and `R` as for "reduced". The gradient exists where the first k columns of `A` are
    linearly independent, not for "r", and for "complete" only if m <= n (H.-J. Liao et al., "Differentiable programming
    tensor networks", 2019).

    # Errors
    `RuntimeError` for fewer than two dimensions and for other modes; `NotImplementedError` for half precision and
    integer dtypes."""
def linalg_slogdet(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_slogdet:
    """The sign of the determinant of square matrices (*, n, n) and the natural logarithm of its absolute value, both of
    shape (*). `sign` has absolute value 1; the logarithm is real and does not overflow where the determinant would. A
    singular matrix gives 0 and -inf.

    # Errors
    `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes."""
def linalg_solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor:
    """The solution `X` of the linear equations `A X = B` for square matrices `A` (*, n, n), or of `X A = B` unless `left`.

    `B` is (*, n, k), or (*, n) for vectors; batches broadcast. Equations of order 0 have an empty solution.

    # Errors
    `LinAlgError` for a singular matrix; `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for
    half precision and integer dtypes."""
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_solve_ex:
    """The solution `X` of `A X = B` (of `X A = B` unless `left`) together with error codes `info` (*), int32, in place of
    an error: 0, or the index, from 1, of the first pivot that is zero, where the solution is NaN. With `check_errors` a
    singular matrix raises `LinAlgError`. Source of the gradient: M. B. Giles, "An extended collection of matrix
    derivative results" (2008)."""
def linalg_solve_triangular(input: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `A X = B` (of `X A = B` unless `left`) for triangular matrices `A` = `self` (*, n, n), of which
    only the upper or the lower triangle is read, and with `unitriangular` not even the diagonal, which is taken to be
    ones.

    Batches broadcast. Zeros on the diagonal are not an error: they give infinities and NaN. The derivatives are those
    of linear equations, restricted to the triangle (M. B. Giles, "An extended collection of matrix derivative results",
    2008).

    # Errors
    `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes."""
def linalg_svd(A: Tensor, full_matrices: _bool = True, *, driver: str | None = None, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> return_types.linalg_svd:
    """The singular value decomposition `A = U diag(S) Vh` of matrices (*, m, n), singular values in descending order.

    `S` has shape (*, k) with k = min(m, n) and a real dtype; `U` is (*, m, k) and `Vh` (*, k, n), or with
    `full_matrices` (*, m, m) and (*, n, n). Their columns and rows are orthonormal. The gradient of the first k
    singular vectors exists where singular values are distinct; those beyond are an arbitrary basis and have none.
    Singular vectors of complex matrices are determined up to a phase, on which a loss must not depend.

    # Errors
    `RuntimeError` for fewer than two dimensions and for a `driver`, which only other devices have;
    `NotImplementedError` for half precision and integer dtypes. The backward pass raises `RuntimeError` where the loss
    depends on a free phase, on vectors beyond the first k, or on singular vectors of equal singular values."""
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values (*, min(m, n)) of matrices (*, m, n), in descending order and of a real dtype. Their gradient
    exists where singular values are distinct, and needs the singular vectors, which are computed only if it is needed.

    # Errors
    The same as those of `torch.linalg.svd`."""
def linalg_tensorinv(input: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a tensor with respect to `tensordot` over `ind` dimensions: `tensordot(A^-1, A, ind)` is the
    identity. The product of the first `ind` sizes equals that of the others, and the result has the others first.

    # Errors
    `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no inverse."""
def linalg_tensorsolve(input: Tensor, other: Tensor, dims: _size | None = None, *, out: Tensor | None = None) -> Tensor:
    """The solution `X` of `tensordot(A, X, X.ndim) = B` for `A` = `self` and `B` = `other`; the dimensions `dims` of `A` are moved to its end first.

    # Errors
    `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no solution."""
def linalg_vander(x: Tensor, *, N: _int | None = None) -> Tensor:
    """The Vandermonde matrices of vectors along the last dimension: each row holds the powers 0 to `N` - 1 of an element,
    where `N` is the length of the vectors if `None`. Integers give int64."""
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Dot products along `dim`, with the conjugate of `x`: `sum(conj(x) * y)`. The other dimensions broadcast."""
def linalg_vector_norm(input: Tensor, ord: Number | _complex = 2, dim: _int | _size | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over `dim` (all dimensions if `None`): `sum(|x|^ord)^(1/ord)`. The orders inf and -inf are
    the largest and the smallest absolute value, order 0 is the number of elements that are not zero. Complex input
    gives a real result. At 0 the gradient is 0."""
