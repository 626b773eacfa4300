"""Masked reductions of sparse tensors: sums, products, extrema and means of specified elements.

The elements that count are those where the mask is true; one that the input does not specify is
zero. Without a mask, which only a sum can do without, they are what the input specifies. Dense
dimensions are reduced first, within each value. Invariant: the result has the input's layout, and
specifies a line if and only if an element of it counts. Of all dimensions together, whose result is
one number, it specifies that number if it is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._sparse import sparse_coo_tensor
from .._tensor import Tensor
from ._mask import _identity, _reduction_identity, everywhere

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
        input: the tensor.
        dims: the dimensions to reduce, in ascending order.
        keepdim: keep them with size 1.
        dtype: that of the result, in which it is computed.
        mask: true where an element counts; strided or sparse.

    Raises:
        RuntimeError: for compressed rows without ``keepdim``, whose result is no matrix.
        ValueError: without mask, but for a sum.
    """
    if mask is None and name != "sum":
        layout = str(input.layout).removeprefix("torch.")
        raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")
    # (A 0-dimensional tensor accepts dimension 0, but has no line.)
    dims = dims if input.dim() else ()
    is_compressed = input.layout is not _C.sparse_coo
    if is_compressed and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    coordinates = (input.to_sparse(input.dim()) if is_compressed else input).coalesce()
    if name == "mean" and coordinates.dense_dim():
        assert mask is not None
        return _mean_of_values(coordinates, dims, keepdim, dtype, mask)
    at, values = _counting(name, coordinates, dtype, mask)
    if len(dims) == input.dim():
        number = _whole(name, values).reshape([1] * input.dim() if keepdim else [])
        return number.to_sparse(layout=input.layout)
    values = _within(name, values, dims, coordinates.sparse_dim(), keepdim)
    kept = [d for d in range(coordinates.sparse_dim()) if d not in dims]
    lines, line_of = _lines(at, [input.shape[d] for d in kept], kept)
    result = _combined(name, values, line_of, lines.shape[1])
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    if keepdim:
        every = lines.new_zeros(coordinates.sparse_dim(), lines.shape[1])
        every[kept] = lines
        lines = every
    made = sparse_coo_tensor(lines, result, shape, is_coalesced=True)
    return made.to_sparse(layout=input.layout) if is_compressed else made


def _counting(
    name: str, input: Tensor, dtype: _C.dtype, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The coordinates of the values of which any element counts, and those values.

    What does not count in a value is the reduction's identity.
    """
    if mask is None:
        return input.indices(), input.values().to(dtype)
    if not input.dense_dim():
        found = input.sparse_mask(_pattern(input, mask))
        return found.indices(), found.values().to(dtype)
    at, values, valid = _values_of_mask(input, mask)
    values = values.to(dtype)
    identity = values.new_full((), _identity(name, dtype, ()))
    return at, _VF.where(valid, values, identity)


def _values_of_mask(input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The coordinates of which any element counts, their values, and which of these count."""
    valid = everywhere(mask, input)
    at = valid.flatten(input.sparse_dim()).any(-1).nonzero().t()
    shape = input.shape[: input.sparse_dim()]
    pattern = sparse_coo_tensor(at, at.new_ones(at.shape[1]).to(_C.bool), shape, is_coalesced=True)
    values = input.sparse_mask(_widened(pattern, input)).values()
    return at, values, valid[tuple(at)]


def chosen(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """A sparse ``input`` where a mask of its layout is true: ``masked._where`` of such tensors.

    Specified is what the mask chooses: elements of the input, zero where it specifies none. Dense
    dimensions of a chosen value have ``fill_value`` where the mask is false.
    """
    is_compressed = input.layout is not _C.sparse_coo
    coordinates = (input.to_sparse(input.dim()) if is_compressed else input).coalesce()
    if coordinates.dense_dim():
        at, values, valid = _values_of_mask(coordinates, mask)
        values = _VF.where(valid, values, fill_value)
    else:
        found = coordinates.sparse_mask(_pattern(coordinates, mask))
        at, values = found.indices(), found.values()
    made = sparse_coo_tensor(at, values, input.shape, is_coalesced=True)
    return made.to_sparse(layout=input.layout) if is_compressed else made


def _widened(pattern: Tensor, input: Tensor) -> Tensor:
    """The pattern with the dense dimensions of ``input``, in which all is specified."""
    sizes = (pattern.indices().shape[1], *input.shape[input.sparse_dim() :])
    ones = _VF.ones(sizes, dtype=_C.bool)
    return sparse_coo_tensor(pattern.indices(), ones, input.shape, is_coalesced=True)


def _mean_of_values(
    input: Tensor, dims: Sequence[int], keepdim: bool, dtype: _C.dtype, mask: Tensor
) -> Tensor:
    """The mean of a tensor with dense dimensions."""
    valid = everywhere(mask, input)
    total = reduced("sum", input, dims, keepdim, dtype, valid)
    numbers = valid.to_sparse(input.sparse_dim())
    count = reduced("sum", numbers, dims, keepdim, _C.int64, valid)
    if len(dims) == input.dim():
        return (total.to_dense() / count.to_dense()).to(dtype).to_sparse()
    values = total.values() / count.values()
    return sparse_coo_tensor(total.indices(), values.to(dtype), total.shape, is_coalesced=True)


def _within(
    name: str, values: Tensor, dims: Sequence[int], sparse_dim: int, keepdim: bool
) -> Tensor:
    """The values reduced along their own dimensions."""
    dtype = values.dtype
    for dim in reversed(dims):
        if dim >= sparse_dim:
            values = getattr(_VF, name)(values, dim - sparse_dim + 1, keepdim)
    return values.to(dtype)


def _pattern(input: Tensor, mask: Tensor) -> Tensor:
    """The coordinates where a mask is true, as a sparse tensor."""
    if mask.layout is _C.strided or mask.shape != input.shape:
        at = everywhere(mask, input).nonzero().t()
    else:
        is_coo = mask.layout is _C.sparse_coo
        found = (mask if is_coo else mask.to_sparse(mask.dim())).coalesce()
        at = found.indices()[:, found.values().to(_C.bool)]
    ones = _VF.ones(at.shape[1], dtype=_C.bool)
    return sparse_coo_tensor(at, ones, input.shape, is_coalesced=True)


def _lines(at: Tensor, sizes: Sequence[int], kept: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The coordinates of the lines with elements, ascending, and the line of each element."""
    number = _VF.zeros_like(at[0]) if at.shape[0] else at.new_zeros(at.shape[1])
    for size, dim in zip(sizes, kept, strict=True):
        number = number * size + at[dim]
    lines, line_of = number.unique(return_inverse=True)
    where = _unravelled(lines, sizes)
    return _VF.stack(where) if where else lines.new_zeros(0, lines.shape[0]), line_of


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
    zeros = values.new_zeros((count, *values.shape[1:]))
    if name == "sum":
        return zeros.index_add(0, line_of, values)
    index = line_of.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
    return zeros.scatter_reduce(0, index, values, name, include_self=False)
