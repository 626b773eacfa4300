"""What is asked of a jagged tensor by functions, as ``torch.numel``; ``apply_``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._jagged import NestedTensor

_Func = Callable[..., Any]


def _storage_offset(source: NestedTensor) -> int:
    return source._values.storage_offset()


_ANSWERS: dict[str, Callable[[NestedTensor], Any]] = {
    "storage_offset": _storage_offset,
    "dim": lambda source: source.dim(),
    "numel": lambda source: source.numel(),
    "size": lambda source: source.shape,
    "stride": lambda source: source.stride(),
}


def _answer(name: str, func: _Func, source: NestedTensor, dim: int | None = None) -> Any:
    found = _ANSWERS[name](source)
    return found if dim is None else found[dim]


def is_same_size(name: str, func: _Func, source: Any, other: Any) -> bool:
    """Whether two are cut in the same way and have the same sizes."""
    if not (isinstance(source, NestedTensor) and isinstance(other, NestedTensor)):
        raise RuntimeError(f"{name}(): expected two NestedTensors of the jagged layout")
    return bool(source.shape == other.shape)


def _apply(name: str, func: _Func, source: NestedTensor, function: Any) -> NestedTensor:
    """The elements by a function of Python, in place and without history, as of plain tensors."""
    source._values.apply_(function)
    return source


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_ANSWERS, _answer),
    "is_same_size": is_same_size,
    "apply_": _apply,
}
