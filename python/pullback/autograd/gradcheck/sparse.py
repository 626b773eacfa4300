"""Sparse inputs as strided ones, so that each number that may change is an element of a tensor.

With ``masked`` only the specified elements change: the strided tensor holds the values. Without it
all do: the strided tensor is the dense one, and an element that is moved from zero is specified
then. Either way the function is called through a differentiable construction of its sparse input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _C
from .problem import Problem, as_tuple, is_tensor_like, requires_grad

if TYPE_CHECKING:
    from ..._tensor import Tensor

_Build = Callable[["Tensor"], "Tensor"]


def is_sparse(value: Any) -> bool:
    """Whether this is a tensor of a sparse layout."""
    return isinstance(value, _C.TensorBase) and value.layout is not _C.strided


def dense_problem(problem: Problem, masked: bool) -> Problem:
    """The same problem with strided inputs in place of sparse ones that require grad."""
    builders: dict[int, _Build] = {}
    inputs = list(problem.inputs)
    for i, value in enumerate(problem.inputs):
        if is_tensor_like(value) and is_sparse(value) and requires_grad(value):
            inputs[i], builders[i] = _parameter(value.detach(), masked)
    if not builders:
        return problem

    def function(*given: Any) -> Any:
        built = [builders[i](v) if i in builders else v for i, v in enumerate(given)]
        return problem.function(*built)

    return Problem(function, tuple(inputs), as_tuple(function(*inputs)))


def _parameter(value: Tensor, masked: bool) -> tuple[Tensor, _Build]:
    """A strided leaf that the sparse tensor depends on, and how it does."""
    if masked:
        coalesced = value.coalesce() if value.layout is _C.sparse_coo else value
        leaf = coalesced.values().clone().requires_grad_()
        return leaf, _with_values(coalesced)
    return value.to_dense().requires_grad_(), _laid_out_as(value)


def _with_values(like: Tensor) -> _Build:
    from ..._sparse import sparse_compressed_tensor, sparse_coo_tensor

    if like.layout is _C.sparse_coo:
        indices = like.indices()
        return lambda values: sparse_coo_tensor(indices, values, like.shape, is_coalesced=True)
    by_rows = like.layout in (_C.sparse_csr, _C.sparse_bsr)
    lists: Sequence[Tensor] = (
        (like.crow_indices(), like.col_indices())
        if by_rows
        else (like.ccol_indices(), like.row_indices())
    )
    return lambda values: sparse_compressed_tensor(
        lists[0], lists[1], values, like.shape, layout=like.layout
    )


def _laid_out_as(like: Tensor) -> _Build:
    if like.layout is _C.sparse_coo:
        return lambda dense: dense.to_sparse(like.sparse_dim())
    dense_dim = like.dense_dim()
    blocks = None
    if like.layout in (_C.sparse_bsr, _C.sparse_bsc):
        values = like.values()
        at = values.dim() - dense_dim - 2
        blocks = tuple(values.shape[at : at + 2])
    return lambda dense: dense.to_sparse(layout=like.layout, blocksize=blocks, dense_dim=dense_dim)
