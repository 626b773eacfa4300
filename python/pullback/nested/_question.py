"""What is asked of a jagged tensor: its sizes under the names of ops, and comparisons of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._jagged import NestedTensor, unwrap

_Func = Callable[..., Any]


def _storage_offset(source: NestedTensor) -> int:
    return source._values.storage_offset()


_ANSWERS: dict[str, Callable[[NestedTensor], Any]] = {
    "sym_size": lambda source: source.shape,
    "sym_stride": lambda source: source.stride(),
    "sym_numel": lambda source: source.numel(),
    "sym_storage_offset": _storage_offset,
    "storage_offset": _storage_offset,
    "dim": lambda source: source.dim(),
    "numel": lambda source: source.numel(),
    "is_non_overlapping_and_dense": lambda source: False,
}


def _answer(name: str, func: _Func, source: NestedTensor, *dim: int) -> Any:
    found = _ANSWERS[name](source)
    return found[dim[0]] if dim else found


def _size(name: str, func: _Func, source: NestedTensor, *dim: int) -> Any:
    raise RuntimeError(
        "NestedTensor does not support directly calling torch.ops.aten.size: a size is a symbol; "
        "use nested_tensor.size()"
    )


def is_same_size(name: str, func: _Func, source: Any, other: Any) -> bool:
    """Whether two are cut in the same way and have the same sizes."""
    if not (isinstance(source, NestedTensor) and isinstance(other, NestedTensor)):
        raise RuntimeError(f"{name}(): expected two NestedTensors of the jagged layout")
    return bool(source.shape == other.shape)


def _apply(name: str, func: _Func, source: NestedTensor, function: Any) -> NestedTensor:
    """The elements by a function of Python, in place and without history, as of plain tensors."""
    source._values.apply_(function)
    return source


def _values(name: str, func: _Func, source: NestedTensor) -> Any:
    return unwrap(source)


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_ANSWERS, _answer),
    "size": _size,
    "is_same_size": is_same_size,
    "apply_": _apply,
    "_nested_get_values": _values,
}
