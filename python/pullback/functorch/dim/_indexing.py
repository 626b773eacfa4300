"""``x[...]`` with first-class dimensions, and writing so.

An index binds (a dimension), splits (a tuple of dimensions), or is one that plain tensors take too.
First all of it that is a view is done on the elements, then dimensions are bound by moving them to
the front, then what is left, indices that are tensors, is done for every combination of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ._dimension import Dim, DimensionBindError, DimList
from ._tensor import Tensor, _run, _Tensor, aligned, joined, made, parts, position

_ALL = slice(None)


def get(x: Any, at: Any) -> Any:
    """The result of ``x[at]``."""
    view, indices = _viewed(x, at)
    if all(index is _ALL for index in indices):
        return view
    return _run(_read, (view, indices), {})


def _read(x: Any, indices: list[Any]) -> Any:
    """The result of ``x[indices]``, of which those that are tensors may differ between examples."""
    # (A tensor without dimensions would be read as a number, of which there are several.)
    wide = [i if i is _ALL or i.ndim else i.unsqueeze(0) for i in indices]
    found = x[tuple(wide)]
    at = [n for n, index in enumerate(indices) if index is not _ALL]
    if any(indices[n].ndim for n in at):
        return found
    return found.squeeze(at[0] if at[-1] - at[0] == len(at) - 1 else 0)


def put(x: Any, at: Any, value: Any) -> None:
    """Does ``x[at] = value``."""
    view, indices = _viewed(x, at)
    target, dims = parts(view)
    if any(index is not _ALL for index in indices):
        return _scattered(target, dims, indices, value)
    if isinstance(value, _Tensor):
        _check_within(value.dims, dims)
        value = aligned(value, dims)
        gap = target.ndim - value.ndim
        value = value.reshape([*value.shape[: len(dims)], *(1,) * gap, *value.shape[len(dims) :]])
    elif isinstance(value, _C.TensorBase) and value.ndim > target.ndim - len(dims):
        value = value.expand(target.shape[len(dims) :])
    target[...] = value
    return None


def _check_within(dims: Sequence[Any], there: Sequence[Any]) -> None:
    for dim in dims:
        if position(there, dim) < 0:
            raise ValueError(
                f"the value has dimension {dim!r}, which what it is written to has not"
            )


def _scattered(target: Any, own: Sequence[Any], indices: list[Any], value: Any) -> None:
    """Writes where indices say that are tensors."""
    dims = joined([own, *(parts(index)[1] for index in indices if index is not _ALL)])
    axes = [len(own) + at for at, index in enumerate(indices) if index is not _ALL]
    rest = [at for at in range(len(own), target.ndim) if at not in axes]
    if rest and min(rest) < max(axes):
        raise NotImplementedError(
            "writing at an index with first-class dimensions wants indices that are tensors in "
            "front of slices"
        )
    chosen = [index for index in indices if index is not _ALL]
    rank = max(index.ndim for index in chosen)
    full = [_spread(dim, dims, rank) for dim in own] + [_spread(i, dims, rank) for i in chosen]
    if isinstance(value, _Tensor):
        _check_within(value.dims, dims)
    if isinstance(value, (_Tensor, _C.TensorBase)):
        value = _spread(value, dims, rank + len(rest))
    target[tuple(full)] = value


def _spread(x: Any, dims: Sequence[Any], rank: int) -> Any:
    """The elements with dimensions in front, and as many positional ones behind them."""
    value = aligned(x, dims)
    gap = len(dims) + rank - value.ndim
    if gap < 0:
        raise ValueError(f"the value has more than {rank} positional dimensions")
    return value.reshape([*value.shape[: len(dims)], *(1,) * gap, *value.shape[len(dims) :]])


def _viewed(x: Any, at: Any) -> tuple[Any, list[Any]]:
    """What an index does without reading indices from tensors.

    Returns:
        A view with its dimensions bound, and what is left to do along each positional dimension of
        it: an index that is a tensor, or all.
    """
    value, own = parts(x)
    plain: list[Any] = [_ALL] * len(own)
    # What becomes of each dimension of the view: dimensions it splits into, or an index.
    fates: list[Any] = list(own)
    seen = list(own)
    axis = len(own)
    for item in _items(at, value.ndim - len(own)):
        if item is None or isinstance(item, int):
            plain.append(item)
            axis += item is not None
            fates += [_ALL] if item is None else []
            continue
        if isinstance(item, slice):
            plain.append(item)
            fates.append(_ALL)
        else:
            plain.append(_ALL)
            fates.append(_fate(item, int(value.shape[axis]), seen))
        axis += _width(item)
        plain += [_ALL] * (_width(item) - 1)
    value = value[tuple(plain)]
    dims: list[Any] = []
    front: list[int] = []
    back: list[int] = []
    indices: list[Any] = []
    axis = 0
    for fate in fates:
        if isinstance(fate, list):
            value = value.unflatten(axis, [dim.size for dim in fate])
        for dim in fate if isinstance(fate, list) else (fate,):
            if isinstance(dim, Dim):
                dims.append(dim)
                front.append(axis)
                axis += 1
                continue
            indices.append(dim)
            for _ in range(_width(dim)):
                back.append(axis)
                axis += 1
    return made(value.permute(*front, *back), dims), indices


def _fate(item: Any, size: int, seen: list[Any]) -> Any:
    """What becomes of a dimension that is indexed by something else than a slice."""
    if isinstance(item, Dim):
        item.size = size
        if position(seen, item) < 0:
            seen.append(item)
            return item
        # (A second time: the diagonal.)
        return Tensor(item._tensor, (item,))
    if isinstance(item, (tuple, list)) and any(isinstance(part, Dim) for part in item):
        return _pack(list(item), size, seen)
    if isinstance(item, (_Tensor, _C.TensorBase)):
        return item
    return _C.tensor(item)


def _pack(pack: list[Any], size: int, seen: list[Any]) -> list[Any]:
    """Binds the dimensions that one dimension is split into."""
    known, unbound = 1, []
    for dim in pack:
        if not isinstance(dim, Dim):
            raise TypeError(f"a pack of dimensions has dimensions alone, but got {dim!r}")
        if position(seen, dim) >= 0:
            raise DimensionBindError(f"dimension {dim!r} is bound twice in one index")
        seen.append(dim)
        if dim.is_bound:
            known *= dim.size
        else:
            unbound.append(dim)
    if len(unbound) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {unbound[0]!r} and {unbound[1]!r}"
        )
    if unbound:
        if known == 0 or size % known:
            raise DimensionBindError(
                f"inferred dimension does not evenly fit into larger dimension: {size} vs "
                f"{tuple(pack)}"
            )
        unbound[0].size = size // known
    elif known != size:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack "
            f"{tuple(pack)}"
        )
    return pack


def _width(item: Any) -> int:
    """The number of dimensions that an index covers."""
    is_mask = isinstance(item, (_Tensor, _C.TensorBase)) and not isinstance(item, Dim)
    if is_mask and str(item.dtype) in ("torch.bool", "torch.uint8"):
        return int(item.ndim)
    return 1


def _items(at: Any, rank: int) -> list[Any]:
    """An index as a list that has something for each of so many dimensions."""
    if isinstance(at, list) and any(isinstance(item, (Dim, DimList)) for item in at):
        at = tuple(at)
    items: list[Any] = []
    for item in at if isinstance(at, tuple) else (at,):
        items += list(item) if isinstance(item, DimList) and item.is_bound else [item]
    rests = [n for n, item in enumerate(items) if item is Ellipsis or isinstance(item, DimList)]
    if len(rests) > 1:
        raise DimensionBindError(
            "at most one ... or unbound dimension list can exist in indexing list but found 2 at "
            f"offsets {rests[0]} and {rests[1]}"
        )
    taken = sum(_width(i) for n, i in enumerate(items) if i is not None and n not in rests)
    if taken > rank:
        raise ValueError(
            f"at least {taken} indices were supplied but the tensor only has {rank} dimensions"
        )
    if not rests:
        return items + [_ALL] * (rank - taken)
    rest = items[rests[0]]
    filling: list[Any] = [_ALL] * (rank - taken)
    if isinstance(rest, DimList):
        rest.bind_len(rank - taken)
        filling = list(rest)
    return items[: rests[0]] + filling + items[rests[0] + 1 :]
