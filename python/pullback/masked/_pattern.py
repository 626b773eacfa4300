"""Masked tensors whose data and mask are sparse: the elements that the mask specifies.

Such a mask is the *pattern* of a tensor: where its elements are, and which of them count. An
operation computes on the values alone, a strided tensor of one dimension, in the pattern's order;
:func:`filled` makes a sparse tensor of values again. Invariant: data and mask have the same
pattern, coordinates are coalesced, so that the order of values is that of rows.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._private import _convert_indices_from_csr_to_coo
from .._sparse import sparse_coo_tensor, sparse_csr_tensor
from .._tensor import Tensor

_VF = _C._VariableFunctions
LAYOUTS = (_C.sparse_coo, _C.sparse_csr)


def is_pattern(mask: Any) -> bool:
    """Whether a mask is sparse."""
    return isinstance(mask, Tensor) and mask.layout in LAYOUTS


def values(tensor: Tensor) -> Tensor:
    """The values of a tensor that has a pattern; a strided tensor is its own."""
    if tensor.layout is _C.sparse_coo:
        return tensor._values()
    return tensor.values() if tensor.layout is _C.sparse_csr else tensor


def filled(pattern: Tensor, data: Tensor) -> Tensor:
    """The sparse tensor with these values, which has the history that they have."""
    size = tuple(pattern.shape)
    if pattern.layout is _C.sparse_coo:
        return sparse_coo_tensor(pattern._indices(), data, size, is_coalesced=True)
    return sparse_csr_tensor(pattern.crow_indices(), pattern.col_indices(), data, size)


def places(pattern: Tensor) -> tuple[Tensor, ...]:
    """The coordinates of its elements: for each dimension the indices of all of them."""
    if pattern.layout is _C.sparse_coo:
        return tuple(pattern._indices().unbind(0))
    rows = _convert_indices_from_csr_to_coo(pattern.crow_indices(), pattern.col_indices())
    return tuple(rows.to(_C.int64).unbind(0))


def gathered(pattern: Tensor, plain: Tensor) -> Tensor:
    """The elements of a plain tensor, which is broadcast, where the pattern has some."""
    if is_pattern(plain):
        if plain.layout is not pattern.layout:
            raise ValueError(different_layouts(pattern, plain))
        return values(plain.sparse_mask(pattern))
    whole = plain.expand(pattern.shape)
    return whole[places(pattern)] if whole.dim() else whole.expand(values(pattern).shape)


def scattered(pattern: Tensor, data: Tensor) -> Tensor:
    """The strided tensor with these values where the pattern has elements, else zeros."""
    zeros = _VF.zeros(tuple(pattern.shape), dtype=data.dtype, device=data.device)
    if not zeros.dim():
        # (There is one value, or none, whose history the result has all the same.)
        return data.any() if data.dtype is _C.bool else data.sum(dtype=data.dtype)
    return zeros.index_put(places(pattern), data)


def different_layouts(a: Tensor, b: Tensor) -> str:
    """The error for two tensors of different layouts."""
    return f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}"


def is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two masks, of one layout, are equal; sparse ones with the same pattern."""
    if a is b:
        return True
    if a.layout is not b.layout:
        raise ValueError(different_layouts(a, b))
    if a.shape != b.shape:
        return False
    if not is_pattern(a):
        return bool((a == b).all())
    return has_same_places(a, b) and _VF.equal(values(a), values(b))


def has_same_places(a: Tensor, b: Tensor) -> bool:
    """Whether two sparse tensors of one layout specify the same elements, in the same order."""
    if a.layout is _C.sparse_coo:
        return _VF.equal(a._indices(), b._indices())
    pairs = ((a.crow_indices(), b.crow_indices()), (a.col_indices(), b.col_indices()))
    return all(_VF.equal(one.to(_C.int64), other.to(_C.int64)) for one, other in pairs)


def matched(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Data and mask with one pattern, coalesced.

    Data that specifies another number of elements than the mask keeps those of the mask.

    Raises:
        ValueError: for as many elements at other places.
    """
    if not is_pattern(mask):
        return data, mask
    if mask.layout is _C.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data._nnz() != mask._nnz():
        return data.sparse_mask(mask), mask
    if not has_same_places(data, mask):
        words = ("COO", "have the same indices")
        if mask.layout is _C.sparse_csr:
            words = ("CSR", "share either crow or col indices")
        raise ValueError(f"data and mask are both sparse {words[0]} tensors but do not {words[1]}.")
    return data, mask


def pattern_of(mask: Tensor, layout: Any) -> Tensor:
    """A mask in another layout: of a strided one, the pattern of the elements that count."""
    if mask.layout is layout:
        return mask
    if layout is _C.strided:
        return scattered(mask, values(mask))
    if is_pattern(mask):
        mask = scattered(mask, values(mask))
    made = mask.to_sparse_csr() if layout is _C.sparse_csr else mask.to_sparse()
    return made.coalesce() if layout is _C.sparse_coo else made
