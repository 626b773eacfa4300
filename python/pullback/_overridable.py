"""Lets types and modes answer functions that are written in Python, as they answer ops."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from . import _C


def make_overridable(space: Any, names: Iterable[str]) -> None:
    """Puts an object that asks ``__torch_function__`` before each function of Python in ``names``.

    Args:
        space: a module's ``globals()``, or a class.
        names: what to look at; names of anything else are left alone.
    """
    is_class = isinstance(space, type)
    for name in names:
        function = vars(space)[name] if is_class else space[name]
        if not isinstance(function, FunctionType):
            continue
        asking = _C._overridable(function)
        if is_class:
            setattr(space, name, asking)
        else:
            space[name] = asking
