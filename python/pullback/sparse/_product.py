"""Products, sums and diagonals of sparse tensors."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from .._sparse import sparse_coo_tensor

if TYPE_CHECKING:
    from .._tensor import Tensor

_F = _C._VariableFunctions


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices of which one at least is sparse.

    Dense, unless both are sparse. The gradient of a sparse one is sparse too: given where it
    specifies elements.

    Args:
        mat1: ``(m, k)``.
        mat2: ``(k, n)``.
        reduce: how the products of a row are joined, for a ``mat1`` of compressed rows and a dense
            ``mat2``: ``"sum"``, ``"mean"``, ``"amax"`` or ``"amin"``.

    Raises:
        RuntimeError: for sizes that do not fit, or dtypes that differ.
        NotImplementedError: for layouts and dtypes that cannot be joined so.
    """
    given = () if reduce is None else (reduce,)
    product: Tensor = _F._sparse_mm(mat1, mat2, *given)
    return product


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``exp(x)`` over its sum along a dimension, of the elements that ``input`` specifies.

    Args:
        input: a tensor of coordinate lists.
        dim: the dimension, a sparse or a dense one.
        dtype: what to compute in.
    """
    given: Tensor = _F._sparse_softmax(input, dim, dtype=dtype)
    return given


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of :func:`softmax`.

    Args:
        input: a tensor of coordinate lists.
        dim: the dimension, a sparse or a dense one.
        dtype: what to compute in.
    """
    given: Tensor = _F._sparse_log_softmax(input, dim, dtype=dtype)
    return given


def addmm(
    mat: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: builtins.float = 1.0,
    alpha: builtins.float = 1.0,
) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)``, with gradients as those of :func:`mm`.

    Args:
        mat: what is added: ``(m, n)``.
        mat1: a sparse matrix ``(m, k)``.
        mat2: ``(k, n)``.
        beta: the factor of ``mat``.
        alpha: the factor of the product.
    """
    product: Tensor = _F._sparse_mm(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    return mat * beta + product if beta != 1 else mat + product


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over some dimensions.

    Sparse as long as a sparse dimension is left. The gradient is sparse: given where ``input``
    specifies elements.

    Args:
        input: a tensor of coordinate lists.
        dim: a dimension, or several.
        dtype: the dtype of the sum.
    """
    options = {} if dtype is None else {"dtype": dtype}
    if dim is None:
        total: Tensor = _F._sparse_sum(input, **options)
        return total
    dims = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    if not dims:
        raise RuntimeError("_sparse_sum: at least one dimension to sum over is expected, got none")
    over: Tensor = _F._sparse_sum(input, dims, **options)
    return over


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix whose diagonals are rows of a matrix.

    ``out[i, i + k] = diagonals[d, i + k]`` for the offset ``k = offsets[d]``.

    Args:
        diagonals: ``(d, columns)``, or a vector for one diagonal.
        offsets: which diagonals: 0 the main one, above it positive, all different.
        shape: the sizes ``(rows, columns)``.
        layout: that of the result; ``sparse_coo`` by default.

    Raises:
        RuntimeError: for arguments of other shapes or dtypes, and for layouts that are not sparse
            or have blocks.
    """
    rows = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    wanted = offsets if offsets.dim() == 1 else offsets.unsqueeze(0)
    if rows.dim() != 2:
        raise RuntimeError(f"Diagonals must be vector or matrix, got {diagonals.dim()} dimensions")
    if wanted.dim() != 1:
        raise RuntimeError(f"Offsets must be scalar or vector, got {offsets.dim()} dimensions")
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {tuple(shape)}")
    if wanted.numel() != rows.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets "
            f"({wanted.numel()})"
        )
    if wanted.dtype is not _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {wanted.dtype}")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}"
        )
    diagonal_offsets = wanted.tolist()
    if len(set(diagonal_offsets)) != len(diagonal_offsets):
        raise RuntimeError(f"Offset tensor contains duplicate values: {diagonal_offsets}")
    matches: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []
    height, width = shape
    for d, offset in enumerate(diagonal_offsets):
        for column in range(max(offset, 0), min(width, height + offset, rows.shape[1])):
            matches.append((column - offset, column))
            taken.append((d, column))
    if not matches:
        made = sparse_coo_tensor(shape, dtype=rows.dtype)
    else:
        at = _C.tensor(taken).t()
        made = sparse_coo_tensor(_C.tensor(matches).t().contiguous(), rows[at[0], at[1]], shape)
    made = made.coalesce()
    return made if layout in (None, _C.sparse_coo) else made.to_sparse(layout=layout)
