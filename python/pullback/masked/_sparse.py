"""Masked reductions of sparse tensors: sums, products, extrema and means of specified elements.

The elements that count are those where the mask is true; one that the input does not specify is
zero. Without a mask, which only a sum can do without, they are what the input specifies. Invariant:
the result has the input's layout, and specifies a line if and only if an element of it counts. Of
all dimensions together, whose result is one number, it specifies that number if it is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._sparse import sparse_coo_tensor
from .._tensor import Tensor
from ._mask import _reduction_identity

_VF = _C._VariableFunctions

_LAYOUTS = (_C.sparse_coo, _C.sparse_csr)


def is_reduced(input: Any) -> bool:
    """Whether this is a tensor of a layout that :func:`reduced` knows."""
    return isinstance(input, Tensor) and input.layout in _LAYOUTS


def reduced(
    name: str,
    input: Tensor,
    dims: Sequence[int],
    keepdim: bool,
    dtype: _C.dtype,
    mask: Tensor | None,
) -> Tensor:
    """The reduction of a sparse tensor along ``dims``.

    Args:
        name: ``sum``, ``prod``, ``amax``, ``amin`` or ``mean``.
        input: the tensor, of which all dimensions are sparse.
        dims: the dimensions to reduce, in ascending order.
        keepdim: keep them with size 1.
        dtype: that of the result, in which it is computed.
        mask: true where an element counts; strided or sparse.

    Raises:
        NotImplementedError: for dense dimensions.
        RuntimeError: for compressed rows without ``keepdim``, whose result is no matrix.
        ValueError: without mask, but for a sum.
    """
    if mask is None and name != "sum":
        layout = str(input.layout).removeprefix("torch.")
        raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")
    is_compressed = input.layout is not _C.sparse_coo
    if is_compressed and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if input.dense_dim():
        raise NotImplementedError(f"masked {name}: the tensor has {input.dense_dim()} dense dims")
    coordinates = (input.to_sparse(input.dim()) if is_compressed else input).coalesce()
    counting = coordinates if mask is None else coordinates.sparse_mask(_pattern(input, mask))
    at, values = counting.indices(), counting.values().to(dtype)
    kept = [d for d in range(input.dim()) if d not in dims]
    if not kept:
        number = _whole(name, values).reshape([1] * input.dim() if keepdim else [])
        return number.to_sparse(layout=input.layout)
    lines, line_of = _lines(at, [input.shape[d] for d in kept], kept)
    result = _combined(name, values, line_of, lines.shape[0])
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d in kept]
    where = _unravelled(lines, [input.shape[d] for d in kept])
    if keepdim:
        rows = iter(where)
        zeros = _VF.zeros_like(lines)
        where = [next(rows) if d in kept else zeros for d in range(input.dim())]
    indices = _VF.stack(where) if where else lines.new_zeros(0, lines.shape[0])
    made = sparse_coo_tensor(indices, result, shape, is_coalesced=True)
    return made.to_sparse(layout=input.layout) if is_compressed else made


def _pattern(input: Tensor, mask: Tensor) -> Tensor:
    """The coordinates where a mask is true, as a sparse tensor."""
    if mask.layout is _C.strided:
        at = _VF.broadcast_to(mask.to(_C.bool), list(input.shape)).nonzero().t()
    else:
        if mask.shape != input.shape:
            raise RuntimeError(
                f"a sparse mask must have the input's shape {tuple(input.shape)}, got "
                f"{tuple(mask.shape)}"
            )
        is_coo = mask.layout is _C.sparse_coo
        found = (mask if is_coo else mask.to_sparse(mask.dim())).coalesce()
        at = found.indices()[:, found.values().to(_C.bool)]
    ones = _VF.ones(at.shape[1], dtype=_C.bool)
    return sparse_coo_tensor(at, ones, input.shape, is_coalesced=True)


def _lines(at: Tensor, sizes: Sequence[int], kept: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The numbers of the lines with coordinates, ascending, and the position of each's line."""
    number = _VF.zeros_like(at[0]) if at.shape[0] else at.new_zeros(at.shape[1])
    for size, dim in zip(sizes, kept, strict=True):
        number = number * size + at[dim]
    lines, line_of = number.unique(return_inverse=True)
    return lines, line_of


def _unravelled(lines: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """The index of each dimension of lines that are numbered row by row."""
    found: list[Tensor] = []
    for size in reversed(sizes):
        found.append(lines % size)
        lines = lines.div(size, rounding_mode="floor")
    return found[::-1]


def _whole(name: str, values: Tensor) -> Tensor:
    """The reduction of all values; what changes nothing if there are none."""
    if name in ("amax", "amin"):
        identity = None if values.numel() else _reduction_identity(name, values)
        found: Tensor = getattr(values, name)() if identity is None else identity
        return found
    return values.mean() if name == "mean" else getattr(values, name)(dtype=values.dtype)


def _combined(name: str, values: Tensor, line_of: Tensor, count: int) -> Tensor:
    """The values of each line in one."""
    zeros = values.new_zeros(count)
    if name == "sum":
        return zeros.index_add(0, line_of, values)
    return zeros.scatter_reduce(0, line_of, values, name, include_self=False)
