"""How items become a batch: numbers and tensors are stacked, containers are walked.

`default_collate` joins a list of items, `default_convert` turns one item's arrays into
tensors. numpy is never imported from here: an item can only be an array if the program has
imported numpy already, and then its types are added to the table.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

from ... import Tensor, as_tensor, float64, stack, strided, tensor

CollateFn: TypeAlias = Callable[..., Any]
CollateMap: TypeAlias = dict[Any, CollateFn]

# Array dtypes that no tensor can hold: byte strings, strings, objects.
_TEXT_OR_OBJECT = re.compile(r"[SaUO]")


def _refuse(found: object) -> TypeError:
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {found}"
    )


def collate_tensor_fn(
    batch: Sequence[Tensor], *, collate_fn_map: CollateMap | None = None
) -> Tensor:
    """Stacks tensors along a new first dimension; they have to be dense and of one shape."""
    if batch[0].layout != strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    return stack(list(batch), 0)


def _collate_numpy_array(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    dtype = batch[0].dtype
    if _TEXT_OR_OBJECT.search(dtype.str) is not None:
        raise _refuse(dtype)
    return collate([as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def _collate_numpy_scalar(
    batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None
) -> Tensor:
    return as_tensor(batch)


def _collate_float(batch: Sequence[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return tensor(batch, dtype=float64)


def _collate_int(batch: Sequence[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    return tensor(batch)


def _collate_text(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: _collate_float,
    int: _collate_int,
    str: _collate_text,
    bytes: _collate_text,
}


def _loaded_numpy() -> Any:
    return sys.modules.get("numpy")


def _add_numpy_types() -> None:
    numpy = _loaded_numpy()
    if numpy is None or numpy.ndarray in default_collate_fn_map:
        return
    # In front of float and int: numpy's f64 scalar is a subclass of float.
    plain = {key: default_collate_fn_map.pop(key) for key in (float, int, str, bytes)}
    default_collate_fn_map[numpy.ndarray] = _collate_numpy_array
    default_collate_fn_map[(numpy.bool_, numpy.number, numpy.object_)] = _collate_numpy_scalar
    default_collate_fn_map.update(plain)


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Joins a non-empty list of items of one structure.

    `collate_fn_map` maps types (or tuples of types) to functions `f(batch, *, collate_fn_map)`;
    the exact type is looked up first, then subclasses in the order of the table. Mappings,
    named tuples and sequences are walked. Raises `TypeError` for other types, `RuntimeError`
    for sequences of different lengths.
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        found = collate_fn_map.get(kind)
        if found is None:
            for types, candidate in collate_fn_map.items():
                if isinstance(first, types):
                    found = candidate
                    break
        if found is not None:
            return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _rebuild_mapping(
            first,
            {
                key: collate([item[key] for item in batch], collate_fn_map=collate_fn_map)
                for key in first
            },
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = zip(*batch, strict=False)
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in columns))
    if isinstance(first, Sequence):
        return _collate_sequence(batch, collate_fn_map)
    raise _refuse(kind)


def _collate_sequence(batch: Any, collate_fn_map: CollateMap | None) -> Any:
    first = batch[0]
    lengths = [len(item) for item in batch]
    if any(length != lengths[0] for length in lengths):
        raise RuntimeError(
            f"each element in list of batch should be of equal size, but got sizes {lengths}"
        )
    joined = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
    # A tuple becomes a list: programs unpack a batch and some assign to its places.
    return joined if isinstance(first, tuple) else _rebuild_sequence(first, joined)


def _rebuild_mapping(like: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """A mapping of the type of `like`, with its other attributes; a dict if that fails."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _rebuild_sequence(like: Sequence[Any], items: list[Any]) -> Any:
    """A sequence of the type of `like`, with its other attributes; a list if that fails."""
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for position, item in enumerate(items):
                clone[position] = item
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def default_collate(batch: Any) -> Any:
    """Joins items into a batch, with a new first dimension for the item's number.

    Tensors and arrays are stacked, floats become f64 tensors, ints i64, bools bool; strings
    and bytes stay a list; mappings, named tuples and sequences are joined part by part.
    Raises `TypeError` for anything else.
    """
    _add_numpy_types()
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Turns the numpy arrays and scalars of one item into tensors; leaves the rest alone."""
    if isinstance(data, Tensor):
        return data
    numpy = _loaded_numpy()
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        if _TEXT_OR_OBJECT.search(data.dtype.str) is not None:
            return data
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(part) for part in data])
    return data
