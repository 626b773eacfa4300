"""Makes functions that are written in Python overridable by types and modes, as ops are."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from . import _C


def make_overridable(space: Any, names: Iterable[str]) -> None:
    """Wraps the functions among ``names`` so that ``__torch_function__`` can override them.

    Args:
        space: a module's ``globals()``, or a class.
        names: the names to wrap; values that are no Python functions are left alone.
    """
    is_class = isinstance(space, type)
    for name in names:
        function = vars(space)[name] if is_class else space[name]
        if not isinstance(function, FunctionType):
            continue
        overridable = _C._overridable(function)
        if is_class:
            setattr(space, name, overridable)
        else:
            space[name] = overridable
