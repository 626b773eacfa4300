"""``torch.jagged``, the layout of tensors with one ragged dimension.

The layouts of the extension are those of its own tensors; this one is of a class in Python. To
``isinstance`` it is a layout like the others.
"""

from __future__ import annotations

from typing import Any

from . import _C


class _Jagged:
    __slots__ = ()

    @property
    def __class__(self) -> Any:
        return _C.layout

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the class of a layout cannot be changed")

    def __repr__(self) -> str:
        return "torch.jagged"

    def __reduce__(self) -> tuple[Any, ...]:
        return _jagged, ()

    def __copy__(self) -> _Jagged:
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> _Jagged:
        return self


jagged: Any = _Jagged()


def _jagged() -> Any:
    return jagged
