"""Types of tensors by their sizes, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """A size, or type, that nothing is known of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash("Dyn")

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


class TensorType:
    """Tensors of some sizes: ``TensorType((1, 2, Dyn))``."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = tuple(dim)

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.__args__ == other.__args__

    def __hash__(self) -> int:
        return hash(self.__args__)

    def __class_getitem__(cls, *args: Any) -> TensorType:
        sizes = args[0]
        return TensorType(sizes if isinstance(sizes, tuple) else (sizes,))


def _agree(first: Any, second: Any, are_alike: Any) -> bool:
    a, b = first.__args__, second.__args__
    return len(a) == len(b) and all(are_alike(x, y) for x, y in zip(a, b, strict=True))


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether two types do not contradict each other."""
    if t1 == t2 or Dyn in (t1, t2):
        return True
    both = isinstance(t1, TensorType) and isinstance(t2, TensorType)
    return both and _agree(t1, t2, is_consistent)


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says all that the second one says."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    both = isinstance(t1, TensorType) and isinstance(t2, TensorType)
    return both and _agree(t1, t2, is_more_precise)
